#!/usr/bin/env python3
"""compare_modes.py RUNS --key environments [--image FILE]: do two ways of training give the same learning curves?

RUNS holds run folders that differ in one key of their config.toml and in their seeds, e.g. one environment and
16 in step. For each agent and game it prints the area under the training curve (mean return over frames) of
both, and the 95 % interval of their difference (Welch), also as a share of the first one's area. With --image it
draws the curves.

A return belongs to the middle of its episode. With 16 games in step an episode takes 16 times as many of the
run's frames as with one game; its end alone would make them look slower. With --ends it belongs to the end, as
in metrics.csv. With --column another column of metrics.csv takes the place of train_return.
"""

import argparse
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from uper_plots import style  # noqa: E402
from uper_plots.run import column, read_metrics  # noqa: E402

POINTS = 50
COLORS = ["#1f77b4", "#d62728"]
OF_EPISODES = ["train_return", "train_episode_frames"]


def find(config, key):
    for part in key.split("."):
        config = config[part]
    return config


def read_curve(path, name, environments, ends):
    """(frames, values) of a run."""
    metrics = read_metrics(path)
    frames, values = column(metrics, name)
    if not len(values):
        sys.exit(f"{path}: no numbers in a column {name}")
    if ends or name not in OF_EPISODES:
        return frames, values
    return frames - environments * column(metrics, "train_episode_frames")[1] / 2, values


def read_runs(folder, key, name, ends):
    """{(agent, environment): {value of key: [(frames, values) of each run]}}; those with two values only."""
    groups = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*/config.toml")):
        config = tomllib.loads(path.read_text())
        group = config["agent"]["name"], config["environment"]["name"]
        curve = read_curve(path.parent / "metrics.csv", name, config["environments"], ends)
        groups[group][find(config, key)].append(curve)
    for (agent, environment), modes in list(groups.items()):
        if len(modes) != 2 or min(map(len, modes.values())) < 2:
            print(f"{agent} on {environment}: needs two values of {key} with two runs each; has "
                  f"{ {value: len(curves) for value, curves in modes.items()} }", file=sys.stderr)
            del groups[agent, environment]
    return groups


def on_grid(curves, end):
    """[run, point]: each curve, linear between its rows."""
    grid = np.linspace(end / POINTS, end, POINTS)
    return grid, np.array([np.interp(grid, frames, returns) for frames, returns in curves])


def difference(first, second):
    """(second - first, half width of its 95 % interval) of the means, variances not assumed equal."""
    parts = [np.var(values, ddof=1) / len(values) for values in (first, second)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (first, second)))
    return np.mean(second) - np.mean(first), stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))


def compare(groups, key):
    print(f"| agent | game | runs | area, {key} first | second | difference | of the first |")
    print("|---|---|---|---|---|---|---|")
    for (agent, environment), modes in sorted(groups.items()):
        (a, first), (b, second) = sorted(modes.items())
        end = min(frames[-1] for frames, _ in first + second)
        areas = [on_grid(curves, end)[1].mean(axis=1) for curves in (first, second)]
        delta, half = difference(*areas)
        base = np.mean(areas[0])
        print(f"| `{agent}` | {environment} | {len(first)} + {len(second)} | {a}: {base:.2f} | {b}: "
              f"{np.mean(areas[1]):.2f} | {delta:+.2f} ± {half:.2f} | {delta / abs(base):+.1%} ± {half / abs(base):.1%} |")


def draw(groups, key, name, path):
    figure, panels = style.row_of_panels(len(groups), width=3.6)
    for axes, ((agent, environment), modes) in zip(panels, sorted(groups.items())):
        for color, (value, curves) in zip(COLORS, sorted(modes.items())):
            grid, values = on_grid(curves, min(frames[-1] for frames, _ in curves))
            axes.plot(grid, values.T, color=color, alpha=0.25, linewidth=0.7)
            axes.plot(grid, values.mean(axis=0), color=color, label=f"{key} = {value}")
        axes.set(title=f"{agent}, {environment}", xlabel="frames")
    style.save_row(figure, panels, name.replace("train_", "training ").replace("_", " "), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--key", default="environments")
    parser.add_argument("--column", default="train_return")
    parser.add_argument("--ends", action="store_true", help="place returns at the ends of their episodes")
    parser.add_argument("--image", type=Path)
    arguments = parser.parse_args()
    groups = read_runs(arguments.runs, arguments.key, arguments.column, arguments.ends)
    if not groups:
        sys.exit(f"{arguments.runs}: nothing to compare")
    compare(groups, arguments.key)
    if arguments.image:
        style.use_style()
        draw(groups, arguments.key, arguments.column, arguments.image)


if __name__ == "__main__":
    main()
