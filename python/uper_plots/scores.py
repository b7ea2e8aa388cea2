"""Shared by the figures from training runs: labels and colors of agents, curves with bands."""

import csv
import json
from pathlib import Path

import numpy as np

from uper_plots import style
from uper_plots.style import plt

# Agent -> (label as in the paper, color). A priority has the same color in all figures.
AGENTS = {
    "qr-ens-uper": ("UPER", "#2ca02c"),
    "per": ("PER", "#d62728"),
    "qr-dqn": ("QR-DQN", "#1f77b4"),
    "qr-per": ("QR-PER", "#ff7f0e"),
    "qr-ens-per": ("QR-ENS-PER", "#9467bd"),
    "qr-ens-epi": ("QR-ENS-EPI", "#17becf"),
    "qr-ens-uni": ("QR-ENS-UNI", "#7f7f7f"),
    "dqn": ("DQN", "#8c564b"),
    "double-dqn": ("double DQN", "#e377c2"),
    "c51": ("C51", "#bcbd22"),
    "c51-ens-per": ("C51-ENS-PER", "#f4a6a0"),
    "c51-ens-uper": ("C51-ENS-UPER", "#0b5351"),
}
OTHER_COLORS = ["#393b79", "#637939", "#8c6d31", "#843c39"]
# (source, agent) -> label of the published curves to draw. Other agents stay in published.csv.
PUBLISHED = {
    ("DQN Zoo", "prioritized"): "DQN Zoo prioritized",
    ("DQN Zoo", "qrdqn"): "DQN Zoo QR-DQN",
    ("Dopamine", "jax_cnn/DQN"): "Dopamine DQN",
    ("Dopamine", "jax_cnn/QR-DQN"): "Dopamine QR-DQN",
    ("minatar_paper_plot", "DQN"): "DQN, Young & Tian",
    ("clements2020_logs", "QR-DQN"): "QR-DQN, Clements et al.",
}
PUBLISHED_LINES = [(0, (1, 1)), (0, (5, 2)), (0, (3, 1, 1, 1)), (0, (8, 2, 1, 2))]
SUITES = {"atari": "Atari", "minatar": "MinAtar"}
UNITS = {"atari": "human-normalized score", "minatar": "score, 0 random, 1 published DQN"}


def label(agent):
    return AGENTS.get(agent, (agent,))[0]


def color(agent):
    if agent in AGENTS:
        return AGENTS[agent][1]
    return OTHER_COLORS[sum(map(ord, agent)) % len(OTHER_COLORS)]


def suite(information):
    return SUITES.get(information["suite"], information["suite"])


def unit(about):
    return UNITS.get(about["suite"], "normalized score")


def read(path, text=("agent", "game", "subject", "baseline", "source", "statistic", "finished", "subset")):
    """{column: array}. An empty cell of a column of numbers is NaN. A missing file has no rows."""
    if not Path(path).exists():
        return {}
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        names = reader.fieldnames or []
    return {
        name: np.array([row[name] for row in rows], dtype=object) if name in text
        else np.array([float(row[name] or "nan") for row in rows], dtype=float)
        for name in names
    }


def rows_where(table, **where):
    """The rows of a table that have these values."""
    if not table:
        return table
    chosen = np.ones(len(next(iter(table.values()))), dtype=bool)
    for name, wanted in where.items():
        chosen &= table[name] == wanted
    return {name: values[chosen] for name, values in table.items()}


def about(folder):
    return json.loads((Path(folder) / "about.json").read_text())


def frames_text(frames, _=None):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(frames) >= size:
            return f"{frames / size:g}{letter}"
    return f"{frames:g}"


def prepare(axes, title):
    axes.set_title(title, loc="left")
    axes.xaxis.set_major_formatter(plt.FuncFormatter(frames_text))
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


def band(axes, x, mean, deviation, shade, name=None, **line):
    """Draws a curve with a band of two standard deviations."""
    marker = "o" if len(x) == 1 else None
    axes.plot(x, mean, color=shade, label=name, linewidth=1.5, marker=marker, markersize=3, **line)
    if np.any(deviation > 0):
        axes.fill_between(x, mean - 2 * deviation, mean + 2 * deviation, color=shade, alpha=0.18,
                          linewidth=0)


def draw_published(axes, table, game):
    """Draws the published curves of a game ("" for the median over games) thin and gray."""
    for index, ((source, agent), name) in enumerate(PUBLISHED.items()):
        rows = rows_where(table, source=source, agent=agent, game=game)
        if rows and len(rows["frames"]):
            axes.plot(rows["frames"], rows["value"], color="#888888", linewidth=1, zorder=1, label=name,
                      linestyle=PUBLISHED_LINES[index % len(PUBLISHED_LINES)])


def draw_median(axes, data, agents):
    """Draws the median over games: the mean over seeds with two standard deviations over seeds. If no
    seed has all games, draws the median of the games' means as a dashed line."""
    for agent in agents:
        rows = rows_where(data, agent=agent)
        if np.all(np.isfinite(rows["median_mean"])):
            band(axes, rows["frames"], rows["median_mean"], rows["median_sd"], color(agent), label(agent))
        else:
            band(axes, rows["frames"], rows["task_median"], np.zeros(1), color(agent),
                 label(agent) + " (median of means)", linestyle="--")


def draw_game(axes, games, published, game, agents):
    """Draws one game: the mean over seeds with two standard deviations."""
    for agent in agents:
        rows = rows_where(games, agent=agent, game=game)
        if len(rows["frames"]) == 0:
            continue
        x, matrix = style.by_seed(rows, "normalised", "frames")
        band(axes, x, matrix.mean(axis=0), matrix.std(axis=0), color(agent), label(agent))
    draw_published(axes, published, game)
    prepare(axes, game.replace("_", " "))


def legend_below(figure, axes, columns=None):
    """Draws one legend for all axes below them."""
    found = {}
    for one in axes:
        for handle, text in zip(*one.get_legend_handles_labels()):
            found.setdefault(text, handle)
    if found:
        figure.legend(found.values(), found.keys(), loc="outside lower center",
                      ncols=columns or min(len(found), 6))


def subtitle(information, what):
    seeds = len(information["seeds"])
    return (f"{what}; window {information['window']}, {seeds} seed{'s' if seeds > 1 else ''}, "
            f"band: two standard deviations over seeds")
