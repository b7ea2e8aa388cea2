"""The paper's cumulative improvement C by game, sorted, with one panel per comparison."""

from pathlib import Path

import numpy as np

from uper_plots import scores
from uper_plots.style import plt

LINEAR_UP_TO = 100  # percent; the axis is logarithmic beyond


def draw_comparison(axes, rows, subject, baseline, places):
    """`places` is the number of bars that the axis has space for, the same in all panels."""
    known = np.isfinite(rows["improvement_percent"])
    order = np.concatenate([np.flatnonzero(known)[np.argsort(-rows["improvement_percent"][known])],
                            np.flatnonzero(~known)])
    values = rows["improvement_percent"][order]
    names = [game.replace("_", " ") for game in rows["game"][order]]
    at = np.arange(len(order))
    shades = [scores.color(subject) if value > 0 else scores.color(baseline) for value in values]
    axes.bar(at, np.nan_to_num(values), color=shades, width=0.75)
    for position in at[~np.isfinite(values)]:
        axes.annotate("undefined", (position, 0), xytext=(0, 3), textcoords="offset points",
                      rotation=90 if places > 8 else 0, ha="center", va="bottom", fontsize=7, color="#888888")
    axes.axhline(0, color="#333333", linewidth=0.8)
    axes.set_xticks(at, names, rotation=90 if places > 8 else 0, fontsize=7 if places > 30 else 8)
    axes.set_xlim(-0.6, max(places, 3) - 0.4)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(y=0.08)
    if not np.any(np.abs(values[np.isfinite(values)]) > 1e-9):  # only zeros or rounding errors
        axes.set_ylim(-1, 1)
        axes.set_yticks([0])
    if np.any(np.abs(values[np.isfinite(values)]) > 3 * LINEAR_UP_TO):
        axes.set_yscale("symlog", linthresh=LINEAR_UP_TO)
        axes.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("C, percent")
    axes.set_title(f"{scores.label(subject)} over {scores.label(baseline)}", loc="left")


def draw(folder):
    data = scores.read(Path(folder) / "data.csv")
    pairs = list(dict.fromkeys(zip(data["subject"], data["baseline"])))
    if not pairs:
        figure, axes = plt.subplots(figsize=(6, 1.5))
        axes.text(0.5, 0.5, "no two agents have a game in common", ha="center", va="center")
        axes.set_axis_off()
        return figure
    games = len(set(data["game"]))
    long_names = games > 8
    columns = 1 if games > 12 else min(len(pairs), 2)
    rows = (len(pairs) + columns - 1) // columns
    width = min(max(4.2, 0.2 * games + 1.5), 13)
    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, rows * (3.3 if long_names else 2.4)),
                                squeeze=False, layout="constrained")
    for one, (subject, baseline) in zip(axes.flat, pairs):
        draw_comparison(one, scores.rows_where(data, subject=subject, baseline=baseline), subject, baseline, games)
    for one in axes.flat[len(pairs):]:
        one.set_visible(False)
    return figure
