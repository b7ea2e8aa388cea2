"""Every priority: error curves, and for each scheme the arms' probabilities and errors."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from uper_plots import style
from uper_plots.figures import bandit_panels as panels

BASELINES = ["uniform", "td", "counts", "oracle"]
COLUMNS = 6


def draw_terms(figure, terms, scheme):
    """Draws the terms of the squared TD error and of the total uncertainty, one panel per arm."""
    arms = np.unique(terms["arm"])
    names = [
        ("true_distance_sq", r"$(\mathcal{E}^*)^2$", "#1f77b4", "-"),
        ("target_variance", r"$V[r]$", "#d62728", "-"),
        ("estimation_variance", r"$V_\tau[\theta]$", "#ff7f0e", "-"),
        ("td_error_sq", r"$E[\delta^2]$", "black", "--"),
        ("total_uncertainty", r"$\mathcal{U}$", "black", ":"),
    ]
    all_axes = figure.subplots(1, len(arms), sharex=True)
    for axes, arm in zip(np.atleast_1d(all_axes), arms):
        chosen = (terms["scheme"] == scheme) & (terms["arm"] == arm)
        for name, label, color, line in names:
            axes.plot(terms["iteration"][chosen], terms[name][chosen], line, color=color,
                      label=label, linewidth=1)
        axes.set_yscale("log")
        axes.set_title(f"arm {int(arm)}")
        axes.set_xlabel("iteration")
    np.atleast_1d(all_axes)[0].legend()
    figure.suptitle(f"terms of the TD error and of the total uncertainty, scheme {style.label(scheme)}")


def draw_grid(figure, table, schemes, value, title, log):
    """Draws one panel per scheme with one line per arm."""
    rows = -(-len(schemes) // COLUMNS)
    grid = np.atleast_1d(figure.subplots(rows, COLUMNS, sharex=True, sharey=True)).flatten()
    for axes, scheme in zip(grid, schemes):
        panels.draw_arms(axes, table, scheme, value)
        axes.set_title(style.label(scheme))
        if log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 0.6)
    for axes in grid[len(schemes):]:
        axes.axis("off")
    grid[0].legend(fontsize=6)
    figure.suptitle(title)


def draw(folder):
    folder = Path(folder)
    mse = style.read_columns(folder / "mse.csv", text=("scheme",))
    arms = style.read_columns(folder / "arms.csv", text=("scheme",))
    terms = style.read_columns(folder / "terms.csv", text=("scheme",))
    schemes = panels.schemes_in(mse)
    delta = [s for s in schemes if s.endswith("_delta")]
    plain = [s for s in schemes if s not in delta and s not in BASELINES]
    base = [s for s in schemes if s in BASELINES]
    rows = -(-len(schemes) // COLUMNS)
    figure = plt.figure(figsize=(15, 9 + 3.4 * rows), layout="constrained")
    parts = figure.subfigures(4, 1, height_ratios=[4, 1.7 * rows, 1.7 * rows, 3])
    left, right = parts[0].subplots(1, 2, sharey=True)
    for axes, group, name in ((left, plain, r"$\mathcal{E}$"), (right, delta, r"$\mathcal{E}_\delta$")):
        panels.draw_mse(axes, mse, base + group)
        axes.set_title(f"priorities made of {name}, and the baselines")
        axes.legend(ncols=2)
    draw_grid(parts[1], arms, schemes, "draw_share", "share of draws of each arm", log=False)
    draw_grid(parts[2], arms, schemes, "error_sq", "squared error of each arm", log=True)
    draw_terms(parts[3], terms, "td" if "td" in schemes else schemes[0])
    return figure
