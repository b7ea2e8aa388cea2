"""The cone, mean squared error, probabilities of the extreme arms, and the identical start."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from uper_plots import style
from uper_plots.figures import bandit_panels as panels


def draw_cone(axes, cone):
    """Draws the density of each arm's reward sideways over the arm's number."""
    reach = 3 * cone["sigma"].max()
    reward = np.linspace(cone["mean"].min() - reach, cone["mean"].max() + reach, 801)
    for arm, mean, sigma in zip(cone["arm"].astype(int), cone["mean"], cone["sigma"]):
        density = np.exp(-0.5 * ((reward - mean) / sigma) ** 2)
        shown = density > 0.01
        color = panels.arm_color(arm, len(cone["arm"]))
        axes.fill_betweenx(reward[shown], arm - 0.4 * density[shown], arm + 0.4 * density[shown],
                           color=color, alpha=0.7, linewidth=0)
    axes.plot(cone["arm"], cone["mean"], "k_", markersize=14)
    axes.set_xlabel("arm")
    axes.set_ylabel("reward")
    axes.set_title("(a) the conal bandit")


def draw_probabilities(axes, arms, schemes):
    quiet, noisy = arms["arm"].min(), arms["arm"].max()
    for scheme in schemes:
        for arm, line in ((quiet, "--"), (noisy, "-")):
            x, matrix = style.by_seed(arms, "draw_share", "iteration", scheme=scheme, arm=arm)
            panels.curve(axes, x, matrix, style.color(scheme), linestyle=line, linewidth=1)
    axes.plot([], [], "k--", label="quietest arm")
    axes.plot([], [], "k-", label="noisiest arm")
    axes.legend()
    axes.set_ylim(0, 0.6)
    axes.set_xlabel("iteration (1000 updates)")
    axes.set_ylabel("share of the iteration's draws")
    axes.set_title("(c) who is replayed")


def draw(folder):
    folder = Path(folder)
    mse = style.read_columns(folder / "mse.csv", text=("scheme",))
    arms = style.read_columns(folder / "arms.csv", text=("scheme",))
    identical = style.read_columns(folder / "mse_identical_start.csv", text=("scheme",))
    schemes = panels.schemes_in(mse)
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    draw_cone(axes[0], style.read_columns(folder / "cone.csv"))
    panels.draw_mse(axes[1], mse, schemes)
    axes[1].legend()
    axes[1].set_title("(b) error of the estimate, mean and 1 s.d.")
    draw_probabilities(axes[2], arms, schemes)
    panels.draw_mse(axes[3], identical, panels.schemes_in(identical))
    axes[3].legend()
    axes[3].set_title("(d) all members start alike")
    return figure
