"""cost-table: seconds per iteration beside the paper's, and the ratios to DQN."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from uper_plots import style

COLORS = {"literal": "#1f77b4", "script": "#2ca02c", "script-twice": "#98df8a"}
PAPER = "#7f7f7f"
DEVICES = {"cpu": "CPU", "cuda": "GPU"}
# Row of the figure -> our column of data.csv and the paper's.
QUANTITIES = [
    ("seconds an iteration", "iteration_seconds", "iteration_sd_seconds", "paper_seconds", "paper_sd_seconds", "log"),
    ("times as long as DQN", "ratio_to_dqn", None, "paper_ratio_to_dqn", None, "linear"),
]


def draw_bars(axis, table, device, architectures, quantity):
    title, ours, our_error, paper, paper_error, scale = quantity
    readings = list(dict.fromkeys(table["reading"]))
    width = 0.8 / (len(readings) + 1)
    for place, reading in enumerate([*readings, "paper"]):
        own = (table["device"] == device) & (table["reading"] == (readings[0] if reading == "paper" else reading))
        name, error = (paper, paper_error) if reading == "paper" else (ours, our_error)
        at = np.array([architectures.index(a) for a in table["architecture"][own]], dtype=float)
        bars = axis.bar(at + (place - len(readings) / 2) * width, table[name][own], 0.92 * width,
                        yerr=table[error][own] if error else None, color=COLORS.get(reading, PAPER),
                        label=reading, error_kw={"elinewidth": 0.8})
        axis.bar_label(bars, fmt="%.3g", fontsize=6.5, padding=1)
    axis.set_yscale(scale)
    axis.set_xticks(range(len(architectures)), architectures)
    axis.set_ylabel(title)
    axis.set_title(DEVICES[device])
    axis.margins(y=0.15)


def draw(folder):
    table = style.read_columns(Path(folder) / "data.csv",
                               text=("reading", "device", "architecture", "agent"))
    devices = list(dict.fromkeys(table["device"]))
    architectures = list(dict.fromkeys(table["architecture"]))
    figure, axes = plt.subplots(len(QUANTITIES), len(devices), squeeze=False, layout="constrained",
                                figsize=(5.5 * len(devices), 6))
    for row, quantity in enumerate(QUANTITIES):
        for column, device in enumerate(devices):
            draw_bars(axes[row][column], table, device, architectures, quantity)
    axes[-1][0].legend(loc="upper left", fontsize=7)
    return figure
