"""TensorBoard's own reader accepts our event files and finds in them what the CSV holds."""

import csv
import os
import subprocess

import pytest
from conftest import ROOT
from tensorboard.backend.event_processing import event_accumulator, event_file_loader

TEST_PROGRAM = ROOT / "build" / "release" / "metrics_test"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A folder with metrics.csv and an event file of 100 rows, resumed at row 50."""
    folder = tmp_path_factory.mktemp("sample")
    subprocess.run([os.environ.get("UPER_METRICS_TEST", TEST_PROGRAM),
                    "--gtest_filter=MetricsLogTest.WritesASampleForOtherReaders"],
                   env={**os.environ, "UPER_SAMPLE_FOLDER": str(folder)}, check=True,
                   capture_output=True, timeout=60)
    return folder


def rows_of(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_every_record_is_read(sample):
    [path] = sample.glob("events.out.tfevents.*")
    events = list(event_file_loader.LegacyEventFileLoader(str(path)).Load())
    assert events[0].file_version == "brain.Event:2"
    assert [event.step for event in events[1:]] == [1000 * i for i in range(1, 101)]


def test_scalars_equal_the_csv(sample):
    board = event_accumulator.EventAccumulator(str(sample),
                                               size_guidance={"scalars": 0, "tensors": 0})
    board.Reload()
    rows = rows_of(sample)
    columns = [name for name in rows[0] if name != "frames" and any(row[name] for row in rows)]
    assert sorted(board.Tags()["scalars"]) == sorted(columns)
    for name in columns:
        expected = [(int(row["frames"]), float(row[name])) for row in rows if row[name]]
        found = [(event.step, event.value) for event in board.Scalars(name)]
        assert [step for step, _ in found] == [step for step, _ in expected]
        assert [value for _, value in found] == pytest.approx([value for _, value in expected],
                                                              rel=1e-6)


def test_csv_has_one_row_per_log_point(sample):
    assert [int(row["frames"]) for row in rows_of(sample)] == [1000 * i for i in range(1, 101)]
