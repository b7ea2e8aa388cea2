#!/usr/bin/env python3
"""How speed changes with threads, batch, members, quantiles, actions and the size of the memory.

    python3 tools/scaling.py measure FOLDER [--program build/uper] [--threads 1,2,4,8,16] [--only threads]
    python tools/scaling.py plot FOLDER

`measure` needs Python alone and writes one CSV file for each; `plot` (matplotlib) draws FOLDER/*.png from them,
the fastest of three measurements.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AGENT = "qr-ens-uper"
REPEATS = "3"
TRAIN_FRAMES = "1500"

# Each of these is varied alone, at MinAtar size with all threads; the rest stays as the agent has it.
SIZES = {
    "batch": [8, 16, 32, 64, 128, 256],
    "members": [2, 5, 10, 20, 40],
    "quantiles": [11, 26, 51, 101, 201],
    "actions": [2, 4, 6, 9, 18],
}
ENTRIES = [10_000, 100_000, 1_000_000, 10_000_000]
COLUMNS = ["what", "x", "series", "value", "low", "high"]


def run(program, *words):
    result = subprocess.run([program, "bench", *map(str, words), "--json"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"uper bench {' '.join(map(str, words))}: {result.stderr}")
    return json.loads(result.stdout)


def update_row(program, what, x, series, *words):
    """One point: milliseconds of an update."""
    found = run(program, "learner", "--agent", AGENT, "--device", "cpu", "--no-peers", "--repeats", REPEATS, *words)
    return [what, x, series, found["update_ms"], *found["update_ms_spread"]]


def thread_rows(program, threads):
    for count in threads:
        yield update_row(program, "update_ms", count, "MinAtar", "--threads", count)
        yield update_row(program, "update_ms", count, "Atari", "--network", "nature", "--threads", count)
        found = run(program, "train", "--agent", AGENT, "--device", "cpu", "--frames", TRAIN_FRAMES, "--threads", count)
        speed = found["frames_per_second"]
        yield ["frames_per_second", count, "training, MinAtar", speed, speed, speed]


def size_rows(program, name, threads):
    for value in SIZES[name]:
        words = ["--threads", threads]
        words += [f"--{name}", value] if name in ("batch", "actions") else ["--set", f"network.{name}={value}"]
        yield update_row(program, "update_ms", value, "MinAtar", *words)


def memory_rows(program):
    for entries in ENTRIES:
        found = run(program, "replay", "--entries", entries, "--no-peers", "--repeats", REPEATS)
        for name in ("draw", "update", "insert"):
            yield ["ns_per_item", entries, name, found[f"{name}_ns"], *found[f"{name}_ns_spread"]]


def write(folder, name, rows):
    start = time.monotonic()
    with open(folder / f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow(row)
            file.flush()
    print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)


def measure(folder, program, threads, only):
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"threads": thread_rows(program, threads)}
    rows |= {name: size_rows(program, name, threads[-1]) for name in SIZES}
    rows |= {"memory": memory_rows(program)}
    for name in [only] if only else rows:
        write(folder, name, rows[name])


LABELS = {"update_ms": "one update, ms", "frames_per_second": "frames per second", "ns_per_item": "ns per item"}
TITLES = {"threads": "threads", "batch": "transitions in a batch", "members": "members", "quantiles": "quantiles",
          "actions": "actions", "memory": "transitions in memory"}


def labels_apart(x, least):
    """A text for each, empty where the last one is nearer than `least`."""
    labels, last = [], -least
    for value in x:
        labels.append(f"{value:,.0f}" if value - last >= least else "")
        last = value if labels[-1] else last
    return labels


def draw(path, name):
    sys.path.insert(0, str(ROOT / "python"))
    from uper_plots.style import plt, use_style

    use_style()
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    panels = list(dict.fromkeys((row["what"], row["series"]) for row in rows)) if name == "threads" else \
        [(rows[0]["what"], None)]
    figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels) + 0.6, 3), squeeze=False)
    for axis, (what, only) in zip(axes[0], panels):
        for series in dict.fromkeys(row["series"] for row in rows if row["what"] == what):
            if only not in (None, series):
                continue
            mine = [row for row in rows if row["what"] == what and row["series"] == series]
            x, low, high = ([float(row[key]) for row in mine] for key in ("x", "low", "high"))
            y = high if what == "frames_per_second" else low  # others may have held the slower ones up
            axis.plot(x, y, marker="o", markersize=3, label=series)
        if name == "threads":
            perfect = [y[0] * count / x[0] if what == "frames_per_second" else y[0] * x[0] / count for count in x]
            axis.plot(x, perfect, color="0.6", linestyle=":", label="if all work were shared")
        linear = name in SIZES
        axis.set(xlabel=TITLES[name], ylabel=LABELS[what], xscale="linear" if linear else "log")
        axis.set_xticks(x, labels_apart(x, max(x) / 20 if linear else 0))
        axis.minorticks_off()
        axis.set_ylim(bottom=0)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path.with_suffix(".png"))
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["measure", "plot"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default=str(ROOT / "build" / "uper"))
    parser.add_argument("--only", choices=TITLES, help="instead of all of them")
    parser.add_argument("--threads", help="to try, the last one for everything else (default: powers of two)")
    arguments = parser.parse_args()
    if arguments.action == "plot":
        for name in [arguments.only] if arguments.only else TITLES:
            draw(arguments.folder / f"{name}.csv", name)
        return
    cores = len(os.sched_getaffinity(0))
    threads = [int(word) for word in arguments.threads.split(",")] if arguments.threads else \
        [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= cores]
    measure(arguments.folder, arguments.program, threads, arguments.only)


if __name__ == "__main__":
    main()
