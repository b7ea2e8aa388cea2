#!/usr/bin/env python3
"""training_curves.py RUNS [--image FILE]: training returns of runs, a table and one panel per game.

RUNS holds run folders. The table has the mean return of the episodes in the last MARK frames before each
multiple of MARK that a run reached, the frames it made and the frames per second over all of it.
"""

import argparse
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from uper_plots import scores, style  # noqa: E402
from uper_plots.run import column, read_metrics, smoothed  # noqa: E402

SMOOTHED_ROWS = 9


def read_runs(folder):
    """{environment: [(agent, games in step, seed, metrics)]}"""
    runs = defaultdict(list)
    for path in sorted(folder.glob("*/config.toml")):
        config = tomllib.loads(path.read_text())
        run = config["agent"]["name"], config["environments"], config["seed"], read_metrics(path.parent / "metrics.csv")
        runs[config["environment"]["name"]].append(run)
    return {environment: sorted(group, key=lambda run: run[:3]) for environment, group in sorted(runs.items())}


def mean_before(metrics, frames, mark):
    """Mean return of the episodes that ended in (frames - mark, frames]."""
    rows = (metrics["frames"] > frames - mark) & (metrics["frames"] <= frames)
    ended = np.diff(metrics["episodes"], prepend=0)[rows]
    returns = metrics["train_return"][rows]
    known = (ended > 0) & np.isfinite(returns)
    return np.average(returns[known], weights=ended[known]) if known.any() else np.nan


def print_table(runs, mark):
    for environment, group in runs.items():
        last = max(metrics["frames"][-1] for *_, metrics in group)
        marks = [mark * i for i in range(1, int(last // mark) + 1)]
        print("| game | agent | in step | seed | " + " | ".join(f"{m / 1e6:g}M" for m in marks) + " | frames | a second |")
        print("|---|---|---|---|" + "---|" * (len(marks) + 2))
        for agent, environments, seed, metrics in group:
            values = [mean_before(metrics, m, mark) if metrics["frames"][-1] >= m else np.nan for m in marks]
            cells = " | ".join("-" if np.isnan(value) else f"{value:.1f}" for value in values)
            frames, seconds = metrics["frames"][-1], metrics["wall_seconds"][-1]
            print(f"| {environment} | `{agent}` | {environments} | {seed} | {cells} | {frames / 1e6:.2f}M | "
                  f"{frames / seconds:,.0f} |")
        print()


def draw(runs, path):
    figure, panels = style.row_of_panels(len(runs), width=4)
    for axes, (environment, group) in zip(panels, runs.items()):
        for agent, _, _, metrics in group:
            frames, values = column(metrics, "train_return")
            axes.plot(frames / 1e6, smoothed(values, SMOOTHED_ROWS), color=scores.color(agent), label=agent)
        axes.set(title=environment, xlabel="frames, millions")
    style.save_row(figure, panels, "training return", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--mark", type=float, default=1e6, help="frames (default 1e6)")
    parser.add_argument("--image", type=Path)
    arguments = parser.parse_args()
    runs = read_runs(arguments.runs)
    if not runs:
        sys.exit(f"{arguments.runs}: no run folders")
    print_table(runs, arguments.mark)
    if arguments.image:
        style.use_style()
        draw(runs, arguments.image)


if __name__ == "__main__":
    main()
