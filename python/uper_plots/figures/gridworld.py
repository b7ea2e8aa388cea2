"""The noisy gridworld: learning curves, the map, and where each method replays."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from uper_plots import style

# Method -> (label, color). A priority has the same color as in the bandit figures.
METHODS = {
    "none": ("no replay", "#000000"),
    "er": ("ER (uniform)", style.color("uniform")),
    "per": ("PER (TD error)", style.color("td")),
    "uper": ("UPER (information gain)", style.color("info_gain_delta")),
}
REPLAY_METHODS = ("er", "per", "uper")

# Kind of cell -> color. Start, goal and noise have the paper's colors.
CELLS = {
    "wall": "#3b3b3b",
    "free": "#f2f2f2",
    "start": "#1f77b4",
    "goal": "#2ca02c",
    "noisy": "#ffd92f",
}
SMOOTHING_WINDOW = 10  # episodes


def smooth(values):
    """Trailing mean over SMOOTHING_WINDOW columns of [seed, episode], over fewer at the start."""
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    ends = np.arange(1, values.shape[1] + 1)
    starts = np.maximum(ends - SMOOTHING_WINDOW, 0)
    return (sums[:, ends] - sums[:, starts]) / (ends - starts)


def as_grid(table, column, chosen=slice(None)):
    """The chosen rows of a table as a matrix over its columns `row` and `column`."""
    rows = table["row"][chosen].astype(int)
    columns = table["column"][chosen].astype(int)
    values = table[column][chosen]
    grid = np.empty((rows.max() + 1, columns.max() + 1), dtype=values.dtype)
    grid[rows, columns] = values
    return grid


def draw_returns(axes, returns):
    for method, (label, color) in METHODS.items():
        episodes, values = style.by_seed(returns, "return", "episode", method=method)
        smoothed = smooth(values)
        mean = smoothed.mean(axis=0)
        axes.plot(episodes, mean, color=color, label=label)
        if len(values) > 1:
            error = smoothed.std(axis=0, ddof=1) / np.sqrt(len(values))
            axes.fill_between(episodes, mean - error, mean + error, color=color, alpha=0.25, lw=0)
    seeds = len(np.unique(returns["seed"]))
    axes.set_title(f"Return of the test episode ({seeds} seeds, mean and standard error)")
    axes.set_xlabel(f"training episodes (smoothed over {SMOOTHING_WINDOW})")
    axes.set_ylabel("undiscounted return")
    axes.set_xlim(0, returns["episode"].max())
    axes.legend(loc="lower right")


def strip(axes, title):
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_map(axes, kinds):
    names = list(CELLS)
    numbers = np.vectorize(names.index)(kinds)
    colors = ListedColormap([CELLS[name] for name in names])
    axes.imshow(numbers, cmap=colors, vmin=-0.5, vmax=len(names) - 0.5)
    strip(axes, "Map")
    handles = [Patch(color=CELLS[name], label=name) for name in ("start", "noisy", "goal")]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=3,
                handlelength=1, columnspacing=1)


def draw_heatmap(axes, share, kinds, largest, title):
    """Draws the share of a method's draws by cell. Walls are dark. No transition leaves the goal."""
    axes.imshow(np.where(kinds == "wall", 1.0, np.nan), cmap=ListedColormap([CELLS["wall"]]))
    visible = np.ma.masked_where(kinds == "wall", share)
    image = axes.imshow(visible, cmap="viridis", vmin=0, vmax=largest)
    for row, column in np.argwhere(kinds == "noisy"):
        axes.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False,
                                     edgecolor=CELLS["noisy"], lw=1.5))
    strip(axes, title)
    return image


def draw(folder):
    folder = Path(folder)
    returns = style.read_columns(folder / "returns.csv", text=("method",))
    draws = style.read_columns(folder / "heatmap.csv", text=("method",))
    kinds = as_grid(style.read_columns(folder / "map.csv", text=("kind",)), "kind")

    figure = plt.figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    draw_returns(left.subplots(), returns)

    panels = right.subplots(2, 2)
    draw_map(panels[0, 0], kinds)
    shares = {}
    for method in REPLAY_METHODS:
        counts = as_grid(draws, "draws", draws["method"] == method)
        shares[method] = counts / max(counts.sum(), 1)
    largest = max(max(share.max() for share in shares.values()), 1e-12)
    for axes, method in zip(panels.flat[1:], REPLAY_METHODS):
        image = draw_heatmap(axes, shares[method], kinds, largest, f"{method.upper()} draws")
    right.colorbar(image, ax=panels, shrink=0.8, label="share of the replay draws, by cell left")
    return figure
