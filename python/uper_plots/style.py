"""Shared by all figures: colors, labels, reading CSV files, saving."""

import csv
import os
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)
import numpy as np  # noqa: E402

# Scheme -> (label as in the paper, color). A scheme has the same color in every figure.
SCHEMES = {
    "uniform": ("uniform", "#7f7f7f"),
    "td": (r"TD error $|\delta|$ (PER)", "#d62728"),
    "counts": (r"inverse counts $1/\sqrt{1+C}$", "#9467bd"),
    "oracle": (r"oracle $\mathcal{E}^*$", "#000000"),
    "total": (r"$\mathcal{U}$", "#8c564b"),
    "total_delta": (r"$\mathcal{U}_\delta$", "#8c564b"),
    "epistemic": (r"$\mathcal{E}$", "#1f77b4"),
    "epistemic_delta": (r"$\mathcal{E}_\delta$", "#1f77b4"),
    "info_gain": (r"$\Delta\mathcal{H}$", "#2ca02c"),
    "info_gain_delta": (r"$\Delta\mathcal{H}_\delta$ (UPER)", "#2ca02c"),
    "ratio_ea": (r"$\mathcal{E}/\mathcal{A}$", "#ff7f0e"),
    "ratio_ea_delta": (r"$\mathcal{E}_\delta/\mathcal{A}$", "#ff7f0e"),
    "ratio_eu": (r"$\mathcal{E}/\mathcal{U}$", "#e377c2"),
    "ratio_eu_delta": (r"$\mathcal{E}_\delta/\mathcal{U}_\delta$", "#e377c2"),
    "ratio_e2u": (r"$\mathcal{E}^2/\mathcal{U}$", "#bcbd22"),
    "ratio_e2u_delta": (r"$\mathcal{E}_\delta^2/\mathcal{U}_\delta$", "#bcbd22"),
    "ratio_e3u": (r"$\mathcal{E}^3/\mathcal{U}$", "#17becf"),
    "ratio_e3u_delta": (r"$\mathcal{E}_\delta^3/\mathcal{U}_\delta$", "#17becf"),
}


def label(scheme):
    return SCHEMES[scheme][0]


def color(scheme):
    return SCHEMES[scheme][1]


def use_style():
    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.labelsize": 9,
            "legend.fontsize": 8,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.dpi": 130,
            "svg.hashsalt": "uper",  # so that the same data give the same file
        }
    )


def read_columns(path, text=()):
    """The CSV file as {column: array} of floats, or of strings for the columns named in `text`."""
    columns = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            for name, value in row.items():
                columns[name].append(value)
    return {
        name: np.array(values) if name in text else np.array(values, dtype=float)
        for name, values in columns.items()
    }


def by_seed(table, value, index, **where):
    """Matrix [seed, index] of column `value` among the rows that match `where`."""
    chosen = np.ones(len(table[value]), dtype=bool)
    for name, wanted in where.items():
        chosen &= table[name] == wanted
    seeds = np.unique(table["seed"][chosen])
    positions = np.unique(table[index][chosen])
    matrix = np.full((len(seeds), len(positions)), np.nan)
    rows = np.searchsorted(seeds, table["seed"][chosen])
    columns = np.searchsorted(positions, table[index][chosen])
    matrix[rows, columns] = table[value][chosen]
    return positions, matrix


def save(figure, folder):
    """Writes figure.png and figure.svg. Each file appears under its name only when it is complete."""
    for suffix in ("png", "svg"):
        temporary = Path(folder) / f".figure.{os.getpid()}.{suffix}"
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(temporary, bbox_inches="tight", metadata=metadata)
        os.replace(temporary, Path(folder) / f"figure.{suffix}")
    plt.close(figure)


def row_of_panels(count, width=3.2):
    """(figure, list of axes). The axes stand side by side."""
    figure, panels = plt.subplots(1, count, figsize=(width * count, 2.8), squeeze=False)
    return figure, list(panels[0])


def save_row(figure, panels, ylabel, path):
    """Draws the first panel's legend below all panels."""
    panels[0].set_ylabel(ylabel)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels))
    figure.savefig(path)
