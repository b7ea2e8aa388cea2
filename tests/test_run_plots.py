"""The curves of a run: drawn from metrics.csv alone, whatever it holds."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

PICTURES = ["learning.png", "returns.png", "uncertainty.png"]
COLUMNS = ("frames updates episodes train_return eval_return loss grad_norm epsilon beta "
           "frames_per_second priority_mean priority_max epistemic_mean aleatoric_mean "
           "target_distance_mean effective_sample_size td_error_mean").split()


def draw(run):
    return subprocess.run([sys.executable, "-m", "uper_plots.run", run], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, timeout=120)


def write_metrics(run, rows, columns=COLUMNS):
    run.mkdir(exist_ok=True)
    lines = [",".join(columns)]
    lines += [",".join(str(row.get(name, "")) for name in columns) for row in rows]
    (run / "metrics.csv").write_text("\n".join(lines) + "\n")


def full_rows(count):
    """A run as it is: nothing learned at first, an evaluation in every fifth row, gaps."""
    generator = np.random.default_rng(1)
    rows = []
    for i in range(count):
        row = {"frames": 1000 * i, "updates": 900 * i, "episodes": 30 * i, "epsilon": 1 / (i + 1),
               "beta": 0.4 + 0.6 * i / count}
        if i % 7 != 3:
            row["train_return"] = i / 10 + generator.normal()
        if i % 5 == 0:
            row["eval_return"] = i / 8
        if i >= 2:
            decay = np.exp(-i / 10)
            row |= {"loss": decay, "grad_norm": 3 * decay, "priority_mean": 0.5, "priority_max": 1.5,
                    "epistemic_mean": decay, "aleatoric_mean": 0.1 + decay,
                    "target_distance_mean": 0.01 + decay, "effective_sample_size": 28,
                    "td_error_mean": decay}
        rows.append(row)
    return rows


def check_pictures(run):
    from PIL import Image

    assert sorted(path.name for path in (run / "plots").iterdir()) == PICTURES
    inked = {}
    for name in PICTURES:
        with Image.open(run / "plots" / name) as image:
            pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
        assert len(pixels) > 300 * 300
        inked[name] = int((np.ptp(pixels, axis=1) > 60).sum())  # colored, not gray
    return inked


@pytest.mark.parametrize("count", [2, 30, 400])
def test_curves(tmp_path, count):
    write_metrics(tmp_path / "run", full_rows(count))
    result = draw(tmp_path / "run")
    assert result.returncode == 0 and result.stderr == ""
    inked = check_pictures(tmp_path / "run")
    assert inked["returns.png"] > 0 and inked["learning.png"] > 0
    if count > 2:
        assert all(count > 100 for count in inked.values()), inked


@pytest.mark.parametrize("rows", [[], [{"frames": 0, "updates": 0, "episodes": 0}], full_rows(1)],
                         ids=["no row", "an empty row", "one row"])
def test_hardly_anything_measured(tmp_path, rows):
    write_metrics(tmp_path / "run", rows)
    result = draw(tmp_path / "run")
    assert result.returncode == 0 and result.stderr == ""
    assert check_pictures(tmp_path / "run")["uncertainty.png"] == 0, "no curve where there is no number"


def test_zeros_and_negatives_need_no_logarithm(tmp_path):
    rows = [{"frames": i, "loss": value, "epistemic_mean": 0, "train_return": -value}
            for i, value in enumerate([0, -1, 1000, 2])]
    write_metrics(tmp_path / "run", rows)
    result = draw(tmp_path / "run")
    assert result.returncode == 0 and result.stderr == ""
    assert check_pictures(tmp_path / "run")["learning.png"] > 0


@pytest.mark.parametrize("values, scale", [([1, 10, 1000], "log"), ([1, 2, 3], "linear"),
                                           ([0, 1, 1000], "linear"), ([-1, 1, 1000], "linear")])
def test_an_axis_is_logarithmic_only_for_positive_values_far_apart(monkeypatch, values, scale):
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    from uper_plots import run

    table = {"frames": np.arange(3.0), "loss": np.array(values, dtype=float)}
    figure, axes = run.plt.subplots()
    run.use_log_axis(axes, table, ["loss"])
    assert axes.get_yscale() == scale
    run.plt.close(figure)


def test_a_last_line_cut_short_counts_as_far_as_it_goes(tmp_path):
    write_metrics(tmp_path / "run", full_rows(20))
    path = tmp_path / "run" / "metrics.csv"
    path.write_text(path.read_text() + "20000,18000,6")
    result = draw(tmp_path / "run")
    assert result.returncode == 0 and result.stderr == ""


def test_missing_columns_are_left_out(tmp_path):
    write_metrics(tmp_path / "run", full_rows(20), ["frames", "train_return"])
    assert draw(tmp_path / "run").returncode == 0
    inked = check_pictures(tmp_path / "run")
    assert inked["returns.png"] > 0 and inked["learning.png"] == inked["uncertainty.png"] == 0


def test_the_same_metrics_give_the_same_pictures_and_replace_old_ones(tmp_path):
    write_metrics(tmp_path / "run", full_rows(20))
    (tmp_path / "run" / "plots").mkdir()
    (tmp_path / "run" / "plots" / "returns.png").write_text("old")
    contents = []
    for _ in range(2):
        assert draw(tmp_path / "run").returncode == 0
        contents.append([(tmp_path / "run" / "plots" / name).read_bytes() for name in PICTURES])
    assert contents[0] == contents[1]


def test_without_metrics_it_says_so(tmp_path):
    result = draw(tmp_path)
    assert result.returncode != 0 and "metrics.csv" in result.stderr
    assert "Traceback" not in result.stderr and not list(tmp_path.iterdir())


def test_an_interrupt_shows_no_traceback(tmp_path):
    os.mkfifo(tmp_path / "metrics.csv")  # so that it is known when it has begun to read
    process = subprocess.Popen([sys.executable, "-m", "uper_plots.run", tmp_path], stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                               # A program that a shell starts in the background ignores interrupts, and so do its children.
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    errors = None
    with open(tmp_path / "metrics.csv", "w"):
        for _ in range(60):  # one that comes just before Python begins to wait for the file is seen after it only
            process.send_signal(signal.SIGINT)
            try:
                errors = process.communicate(timeout=1)[1]
                break
            except subprocess.TimeoutExpired:
                continue
    assert errors == ""
    assert process.returncode == -signal.SIGINT
