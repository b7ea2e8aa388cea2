"""E, squared target distance and A: one column per arm and one line per scheme."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from uper_plots import style
from uper_plots.figures import bandit_panels as panels

QUANTITIES = [
    ("epistemic", r"$\hat{\mathcal{E}}$"),
    ("target_distance_sq", r"$\delta_\Theta^2$"),
    ("aleatoric", r"$\hat{\mathcal{A}}$"),
]
WINDOW = 10  # iterations; each target distance is the distance to a single noisy reward


def smoothed(values):
    kernel = np.ones(WINDOW) / WINDOW
    return np.convolve(values, kernel, mode="valid")


def draw(folder):
    folder = Path(folder)
    table = style.read_columns(folder / "arms.csv", text=("scheme",))
    cone = style.read_columns(folder / "cone.csv")
    schemes = panels.schemes_in(table)
    arms = np.unique(table["arm"]).astype(int)
    figure, grid = plt.subplots(len(QUANTITIES), len(arms), figsize=(15, 8), sharex=True,
                                layout="constrained", squeeze=False)
    for row, (value, name) in enumerate(QUANTITIES):
        for column, arm in enumerate(arms):
            axes = grid[row, column]
            for scheme in schemes:
                x, matrix = style.by_seed(table, value, "iteration", scheme=scheme, arm=arm)
                mean = matrix.mean(axis=0)
                if value == "target_distance_sq" and len(x) > WINDOW:
                    x, mean = x[WINDOW - 1:], smoothed(mean)
                line = "-" if scheme.endswith("_delta") else "--"
                axes.plot(x, mean, line, color=style.color(scheme), linewidth=1,
                          label=style.label(scheme))
            axes.set_yscale("log")
            if row == 0:
                axes.set_title(f"arm {arm} ($\\sigma$ = {cone['sigma'][column]:.3g})")
            if row == len(QUANTITIES) - 1:
                axes.axhline(cone["sigma"][column] ** 2, color="black", linewidth=0.6, linestyle=":")
                axes.set_xlabel("iteration (1000 updates)")
        grid[row, 0].set_ylabel(name)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure
