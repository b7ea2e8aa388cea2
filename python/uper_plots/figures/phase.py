"""phase: each uncertainty-based priority over E and A, with iso-lines."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator

from uper_plots import style


def as_matrix(table, rule):
    """The axis and the matrix [aleatoric, epistemic] of one rule's priorities."""
    rows = table["rule"] == rule
    grid = np.unique(table["epistemic"][rows])
    order = np.lexsort((table["epistemic"][rows], table["aleatoric"][rows]))
    return grid, table["priority"][rows][order].reshape(len(grid), len(grid))


def use_log_axes(axis, vertical):
    """Sets up the axes. Call it before drawing, because contour labels are placed by the axes."""
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(numticks=5))
    if vertical:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(numticks=5))


def draw_rule(axis, grid, matrix, rule):
    log_priority = np.log10(matrix)
    levels = np.linspace(log_priority.min(), log_priority.max(), 60)
    axis.contourf(grid, grid, log_priority, levels=levels, cmap="viridis")
    span = log_priority.max() - log_priority.min()
    step = 0.5 if span <= 5 else 1.0 if span <= 8 else 2.0
    iso = np.arange(np.ceil(log_priority.min() / step), log_priority.max() / step) * step
    lines = axis.contour(
        grid, grid, log_priority, levels=iso, colors="white", linewidths=0.7, linestyles="solid"
    )
    axis.set_aspect("equal")
    axis.clabel(lines, fmt=lambda v: f"$10^{{{v:g}}}$", fontsize=6.5)
    axis.plot(grid, grid, color="k", linestyle="--", linewidth=0.9)
    axis.set_title(style.label(rule))
    axis.set_xlabel(r"epistemic $\mathcal{E}$")
    axis.set_ylabel(r"aleatoric $\mathcal{A}$")


def draw_diagonal(axis, table, rules):
    """Draws the priority along E = A. A flat line depends only on the ratio of E and A."""
    for rule in rules:
        grid, matrix = as_matrix(table, rule)
        axis.plot(grid, np.diagonal(matrix), color=style.color(rule), label=style.label(rule))
    axis.set_yscale("log")
    axis.set_title(r"along $\mathcal{E}=\mathcal{A}$")
    axis.set_xlabel(r"$\mathcal{E}=\mathcal{A}$")
    axis.set_ylabel("priority")
    axis.legend(fontsize=7, loc="upper left", ncols=2)


def draw(folder):
    table = style.read_columns(Path(folder) / "data.csv", text=("rule",))
    rules = list(dict.fromkeys(table["rule"]))
    grid, _ = as_matrix(table, rules[0])
    steps = np.diff(grid)
    logarithmic = not np.allclose(steps, steps[0])
    figure, axes = plt.subplots(2, 4, figsize=(12, 6.2), layout="constrained")
    if logarithmic:
        for position, axis in enumerate(axes.flat):
            use_log_axes(axis, vertical=position < len(rules))
    for axis, rule in zip(axes.flat, rules):
        draw_rule(axis, *as_matrix(table, rule), rule)
    draw_diagonal(axes.flat[len(rules)], table, rules)
    return figure
