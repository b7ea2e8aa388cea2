"""python -m uper_plots.run RUN: draws RUN/plots/*.png from RUN/metrics.csv and nothing else.

returns.png      training and evaluation returns
learning.png     loss, gradient norm, exploration and importance exponents
uncertainty.png  E, A and target distance, priorities, effective sample size
"""

import csv
import os
import sys
from pathlib import Path

import numpy as np
from matplotlib import ticker

from uper_plots import style
from uper_plots.style import plt

BLUE, RED, GREEN, ORANGE, GRAY = "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#7f7f7f"
SMOOTHED_ROWS = 100  # a curve with more rows is also drawn smoothed
LOG_SPAN = 30  # values that span more than this factor get a logarithmic axis
FEW_DECADES = 300  # up to this factor, a logarithmic axis also has labels between the powers of ten


def read_metrics(path):
    """{column: array of floats}. An empty or unreadable cell is NaN."""

    def number(text):
        try:
            return float(text)
        except (TypeError, ValueError):
            return np.nan

    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        names = reader.fieldnames or []
    return {name: np.array([number(row[name]) for row in rows], dtype=float) for name in names}


def column(table, name):
    """(frames, values) of the cells with a number."""
    frames = table.get("frames", np.empty(0))
    values = table.get(name, np.full(len(frames), np.nan))
    known = np.isfinite(frames) & np.isfinite(values)
    return frames[known], values[known]


def smoothed(values, window):
    """The mean over the `window` values around each value, over fewer at the ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    low = np.maximum(index - window // 2, 0)
    high = np.minimum(index + window // 2 + 1, len(values))
    return (sums[high] - sums[low]) / (high - low)


def draw_curve(axes, table, name, label, color, marker=False):
    """Returns whether there was anything to draw."""
    frames, values = column(table, name)
    if len(frames) == 0:
        return False
    few = len(frames) < 30
    style_of_line = {"marker": "o" if marker or few else None, "markersize": 3.5}
    if marker or len(frames) <= SMOOTHED_ROWS:
        axes.plot(frames, values, color=color, label=label, linewidth=1.4, **style_of_line)
        return True
    axes.plot(frames, values, color=color, linewidth=0.6, alpha=0.3)
    window = max(3, len(frames) // 50)
    axes.plot(frames, smoothed(values, window), color=color, linewidth=1.6, label=label)
    return True


def use_log_axis(axes, table, names):
    """Makes the axis logarithmic if all values are positive and span orders of magnitude."""
    values = np.concatenate([column(table, name)[1] for name in names])
    if len(values) > 0 and values.min() > 0 and values.max() > LOG_SPAN * values.min():
        axes.set_yscale("log")
        plain = plt.FuncFormatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_major_formatter(plain)
        if values.max() < FEW_DECADES * values.min():
            axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(2, 5)))
            axes.yaxis.set_minor_formatter(plain)


def frames_text(frames, _):
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(frames) >= unit:
            return f"{frames / unit:g}{letter}"
    return f"{frames:g}"


def panel(axes, table, title, curves, unit="", log=False, limits=None):
    """Draws one set of axes over frames. `curves` are (column, label, color)."""
    axes.set_title(title, loc="left")
    axes.set_ylabel(unit)
    axes.xaxis.set_major_formatter(plt.FuncFormatter(frames_text))
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    drawn = [draw_curve(axes, table, *curve) for curve in curves]
    if not any(drawn):
        axes.text(0.5, 0.5, "nothing measured yet", transform=axes.transAxes, ha="center",
                  va="center", color=GRAY)
        axes.set_yticks([])
        return
    if log:
        use_log_axis(axes, table, [curve[0] for curve in curves])
    if limits is not None:
        axes.set_ylim(*limits)
    if sum(drawn) > 1 or len(curves) > 1:
        axes.legend()


def grid(table, rows, columns, size):
    """Axes that span the whole run."""
    figure, axes = plt.subplots(rows, columns, figsize=size, sharex=True, squeeze=False,
                                layout="constrained")
    for bottom in axes[-1]:
        bottom.set_xlabel("frames")
    frames = column(table, "frames")[0]
    if len(frames) > 0 and frames.max() > frames.min():
        margin = 0.03 * (frames.max() - frames.min())
        axes[0, 0].set_xlim(frames.min() - margin, frames.max() + margin)
    return figure, axes.ravel()


def draw_returns(table):
    figure, [axes] = grid(table, 1, 1, (7, 4))
    panel(axes, table, "return of an episode",
          [("train_return", "training, mean since the last row", BLUE),
           ("eval_return", "evaluation", RED, True)])
    return figure


def draw_learning(table):
    figure, axes = grid(table, 2, 2, (9, 5.5))
    panel(axes[0], table, "loss", [("loss", "loss", BLUE)], log=True)
    panel(axes[1], table, "gradient norm before clipping", [("grad_norm", "norm", ORANGE)],
          log=True)
    panel(axes[2], table, r"exploration $\varepsilon$", [("epsilon", "epsilon", GREEN)],
          limits=(-0.03, 1.03))
    panel(axes[3], table, r"importance exponent $\beta$", [("beta", "beta", RED)],
          limits=(-0.03, 1.03))
    return figure


def draw_uncertainty(table):
    figure, axes = grid(table, 2, 2, (9, 5.5))
    panel(axes[0], table, "uncertainty of the batches",
          [("epistemic_mean", r"epistemic $\mathcal{E}$", BLUE),
           ("aleatoric_mean", r"aleatoric $\mathcal{A}$", RED),
           ("target_distance_mean", "target distance, squared", GREEN)], log=True)
    panel(axes[1], table, "TD error, mean of the absolute values",
          [("td_error_mean", "TD error", ORANGE)], log=True)
    panel(axes[2], table, "priorities written back",
          [("priority_mean", "mean", BLUE), ("priority_max", "largest", GRAY)], log=True)
    panel(axes[3], table, "effective sample size of a batch",
          [("effective_sample_size", "effective sample size", GREEN)])
    return figure


PICTURES = {"returns": draw_returns, "learning": draw_learning, "uncertainty": draw_uncertainty}


def save(figure, path):
    """Saves a picture. The file appears under its name only when it is complete."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.png")
    try:
        figure.savefig(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        plt.close(figure)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = Path(sys.argv[1])
    try:
        table = read_metrics(run / "metrics.csv")
    except OSError as error:
        sys.exit(f"uper_plots.run: {error}")
    (run / "plots").mkdir(exist_ok=True)
    style.use_style()
    for name, draw in PICTURES.items():
        save(draw(table), run / "plots" / f"{name}.png")


if __name__ == "__main__":
    main()
