"""Shared parts of the tests that run the program from outside."""

import csv
import subprocess
from pathlib import Path

import pytest

pytest.register_assert_rewrite("kill_campaign")  # for messages with values
ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "uper"

with open(ROOT / "data" / "atari57-human-random.csv") as scores:
    GAMES_57 = [row["game"] for row in csv.DictReader(scores)]


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: long campaigns, run by `make soak` alone")


@pytest.fixture(scope="session")
def uper():
    """Runs the program and returns the finished process, its output as text."""
    assert PROGRAM.exists(), "run `make build` first"

    def run(*arguments, **options):
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                              timeout=300, **options)

    return run
