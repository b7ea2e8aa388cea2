#!/usr/bin/env python3
"""minatar_results.py RUNS [--images FOLDER]: the MinAtar tables of docs/results.md from run folders.

RUNS holds one run folder for each agent, game and seed. Prints markdown: agents with published curves
beside them (data/minatar-curves.csv), then the replay priorities compared on plain and noisy games.
With --images it draws minatar-published.png and minatar-noise.png.
"""

import argparse
import csv
import math
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from uper_plots import style  # noqa: E402
from uper_plots.run import read_metrics  # noqa: E402

LAST_EPISODES = 100
MARKS = [250_000, 500_000, 1_000_000]
# Agent -> (source, agent) in the reference file: the same settings, except for the step size of "dqn", which the
# authors chose for each game.
CHOSEN = "dqn, chosen step size"
PUBLISHED = {"dqn": ("minatar_paper_plot", "DQN"), CHOSEN: ("minatar_paper_plot", "DQN"),
             "qr-dqn": ("clements2020_logs", "QRDQN")}
CHOSEN_STEP = {"breakout": 2**-9, "freeway": 2**-11}
PRIORITIES = {"qr-ens-uni": "uniform", "qr-ens-per": "td", "qr-ens-epi": "epistemic_delta",
              "qr-ens-uper": "info_gain_delta"}
# Two-sided 97.5 % points of Student's t by degrees of freedom; with more, the normal one.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def read_runs(folder):
    """{(agent, environment): {seed: metrics}}"""
    runs = defaultdict(dict)
    for path in sorted(folder.glob("*/config.toml")):
        config = tomllib.loads(path.read_text())
        environment = config["environment"]["name"]
        chosen = config["optimizer"]["learning_rate"] == CHOSEN_STEP.get(environment.split("/")[1])
        agent = CHOSEN if chosen and config["agent"]["name"] == "dqn" else config["agent"]["name"]
        runs[agent, environment][config["seed"]] = read_metrics(path.parent / "metrics.csv")
    return runs


def recent_return(metrics, frames, episodes=LAST_EPISODES):
    """Mean return of the last `episodes` that ended up to `frames`; None if there were fewer.

    A row holds the mean of its own episodes; of the oldest row only a part may be needed.
    """
    rows = metrics["frames"] <= frames
    ended = np.diff(metrics["episodes"][rows], prepend=0)
    total, missing = 0.0, episodes
    for count, mean in zip(ended[::-1], metrics["train_return"][rows][::-1]):
        if count > 0:
            taken = min(count, missing)
            total += taken * mean
            missing -= taken
            if missing == 0:
                return total / episodes
    return None


def interval(values):
    """(mean, half width of the 95 % interval) by Student's t over seeds."""
    values = np.array(values)
    if len(values) < 2:
        return values.mean(), math.inf
    point = STUDENT.get(len(values) - 1, 1.96)
    return values.mean(), point * values.std(ddof=1) / math.sqrt(len(values))


def text(values):
    mean, half = interval(values)
    return f"{mean:.2f} ± {half:.2f}" if math.isfinite(half) else f"{mean:.2f}"


def read_published():
    published = defaultdict(dict)
    with open(ROOT / "data" / "minatar-curves.csv", newline="") as file:
        for row in csv.DictReader(file):
            published[row["source"], row["agent"], row["game"]][int(row["frames"])] = float(row["mean_return"])
    return published


def published_table(runs, published):
    print("| agent | game | frames | mean of the seeds | each seed | published | ratio |")
    print("|---|---|---|---|---|---|---|")
    for (agent, environment), seeds in sorted(runs.items()):
        if agent not in PUBLISHED:
            continue
        game = environment.split("/")[1]
        reference = published[(*PUBLISHED[agent], game)]
        for frames in MARKS:
            values = [recent_return(metrics, frames) for _, metrics in sorted(seeds.items())
                      if metrics["frames"][-1] >= frames]
            values = [value for value in values if value is not None]
            if not values or frames not in reference:
                continue
            each = ", ".join(f"{value:.1f}" for value in values)
            print(f"| `{agent}` | {game} | {frames:,} | {text(values)} | {each} | {reference[frames]:.1f} | "
                  f"{np.mean(values) / reference[frames]:.2f} |")


def mean_return(metrics):
    """Mean return over the episodes of the whole run: the area under its curve."""
    ended = np.diff(metrics["episodes"], prepend=0)
    known = ended > 0
    return float(np.average(metrics["train_return"][known], weights=ended[known]))


def share(metrics, column):
    values = metrics[column][np.isfinite(metrics[column])]
    return float(values.mean()) if len(values) else math.nan


def noise_table(runs):
    print("| game | priority | return at the end | return over the run | draws of noisy transitions | stored |")
    print("|---|---|---|---|---|---|")
    environments = sorted({environment for agent, environment in runs if agent in PRIORITIES})
    for environment in environments:
        for agent in PRIORITIES:
            seeds = [metrics for _, metrics in sorted(runs.get((agent, environment), {}).items())]
            if not seeds:
                continue
            last = [recent_return(metrics, math.inf) for metrics in seeds]
            noisy = environment.startswith("noisy-")
            shares = [f"{np.nanmean([share(metrics, name) for metrics in seeds]):.3f}" if noisy else "-"
                      for name in ("noisy_draw_share", "noisy_stored_share")]
            print(f"| {environment} | `{agent}` | {text(last)} | {text([mean_return(m) for m in seeds])} | "
                  f"{shares[0]} | {shares[1]} |")


def curve(metrics, points):
    """Mean return of the 100 episodes before each point."""
    values = [recent_return(metrics, frames) for frames in points]
    return np.array([math.nan if value is None else value for value in values])


def draw_seeds(axes, seeds, color, label):
    end = min(metrics["frames"][-1] for metrics in seeds.values())
    points = np.linspace(end / 50, end, 50)
    curves = np.array([curve(metrics, points) for metrics in seeds.values()])
    for values in curves:
        axes.plot(points, values, color=color, alpha=0.3, linewidth=0.7)
    axes.plot(points, curves.mean(axis=0), color=color, label=label)


def draw_published(runs, published, path):
    environments = sorted({environment for agent, environment in runs if agent in PUBLISHED})
    figure, panels = style.row_of_panels(len(environments))
    for axes, environment in zip(panels, environments):
        game = environment.split("/")[1]
        for agent, color in zip(PUBLISHED, ("#9ecae1", "#1f77b4", "#ff7f0e")):
            if (agent, environment) in runs:
                draw_seeds(axes, runs[agent, environment], color, agent)
            if agent == CHOSEN:  # its published curve is dqn's
                continue
            reference = published[(*PUBLISHED[agent], game)]
            marks = [frames for frames in reference if frames <= MARKS[-1]]
            axes.plot(marks, [reference[frames] for frames in marks], "o", markersize=4, label=f"{agent}, published",
                      color=color if agent == "qr-dqn" else "#1f77b4")
        axes.set(title=game, xlabel="frames")
    style.save_row(figure, panels, "return, last 100 episodes", path)


def draw_noise(runs, path):
    environments = sorted({environment for agent, environment in runs if agent in PRIORITIES})
    figure, panels = style.row_of_panels(len(environments))
    for axes, environment in zip(panels, environments):
        for agent, scheme in PRIORITIES.items():
            if (agent, environment) in runs:
                draw_seeds(axes, runs[agent, environment], style.color(scheme), agent)
        axes.set(title=environment, xlabel="frames")
    style.save_row(figure, panels, "return, last 100 episodes", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--images", type=Path)
    arguments = parser.parse_args()
    runs, published = read_runs(arguments.runs), read_published()
    published_table(runs, published)
    print()
    noise_table(runs)
    if arguments.images:
        style.use_style()
        draw_published(runs, published, arguments.images / "minatar-published.png")
        draw_noise(runs, arguments.images / "minatar-noise.png")


if __name__ == "__main__":
    main()
