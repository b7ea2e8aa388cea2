"""Panels that the bandit figures share."""

import numpy as np

from uper_plots import style

ARM_COLORS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#e3b505"]  # quiet to noisy


def schemes_in(table):
    """The schemes of a table, in the order of the list of priorities."""
    present = set(table["scheme"])
    return [scheme for scheme in style.SCHEMES if scheme in present]


def curve(axes, x, matrix, color, label=None, band=True, **line):
    """Draws the mean over seeds with a band of one standard deviation."""
    mean = matrix.mean(axis=0)
    axes.plot(x, mean, color=color, label=label, **line)
    if band and matrix.shape[0] > 1:
        deviation = matrix.std(axis=0)
        low = np.maximum(mean - deviation, mean * 1e-2)  # stays positive on a logarithmic axis
        axes.fill_between(x, low, mean + deviation, color=color, alpha=0.2, linewidth=0)


def draw_mse(axes, table, schemes):
    for scheme in schemes:
        x, matrix = style.by_seed(table, "mse", "iteration", scheme=scheme)
        line = "--" if scheme + "_delta" in schemes else "-"  # the same color as the other version
        curve(axes, x, matrix, style.color(scheme), style.label(scheme), linestyle=line)
    axes.set_yscale("log")
    axes.set_xlabel("iteration (1000 updates)")
    axes.set_ylabel("true MSE")


def draw_arms(axes, table, scheme, value, band=False):
    """Draws one line per arm."""
    arms = np.unique(table["arm"]).astype(int)
    for arm in arms:
        x, matrix = style.by_seed(table, value, "iteration", scheme=scheme, arm=arm)
        curve(axes, x, matrix, arm_color(arm, len(arms)), f"arm {arm}", band=band, linewidth=1)


def arm_color(arm, arms):
    return ARM_COLORS[round(arm * (len(ARM_COLORS) - 1) / max(arms - 1, 1))]
