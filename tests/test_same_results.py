"""Short runs of every agent end in the bytes that the first release recorded (tests/same_results.py)."""

import json
import os

import pytest
from conftest import PROGRAM, ROOT
from same_results import matrix, results

RECORDED = json.loads((ROOT / "tests" / "golden" / "results.json").read_text())
# Powers and logarithms come from the C library, whose last bits may differ between versions.
RECORDED_WITH = "glibc 2.36"


def test_every_row_is_recorded():
    assert set(matrix()) == set(RECORDED)


@pytest.mark.skipif(os.confstr("CS_GNU_LIBC_VERSION") != RECORDED_WITH, reason=f"recorded with {RECORDED_WITH}")
@pytest.mark.parametrize("agent", sorted({name.split()[0] for name in matrix()}))
def test_results_are_those_of_the_first_release(agent):
    names = [name for name in matrix() if name.split()[0] == agent]
    assert results(PROGRAM, names) == {name: RECORDED[name] for name in names}
