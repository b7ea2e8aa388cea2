"""Shared parts of the tests of the Python package, which must be installed."""

import numpy as np
import pytest

import uper

FIELDS = {"obs": ((3,), "f4"), "action": ((), "i8"), "reward": ((), "f4"), "discount": ((), "f4"),
          "next_obs": ((3,), "f4")}


def transitions(n, start=0):
    """n transitions, each recognizable by its number."""
    number = np.arange(start, start + n)
    return {"obs": np.repeat(number[:, None], 3, 1).astype("f4"), "action": number, "reward": number.astype("f4") / 8,
            "discount": np.full(n, 0.9, "f4"), "next_obs": np.repeat(number[:, None] + 1, 3, 1).astype("f4")}


@pytest.fixture
def replay():
    """A memory of 100 with 60 transitions."""
    memory = uper.Replay(100, FIELDS, seed=3)
    memory.add(**transitions(60))
    return memory


def same_future(a, b, calls=5, batch=32):
    """Whether two memories draw the same from now on."""
    for _ in range(calls):
        x, y = a.sample(batch), b.sample(batch)
        if not (np.array_equal(x.ids, y.ids) and np.array_equal(x.probabilities, y.probabilities)
                and np.array_equal(x.weights, y.weights) and np.array_equal(x.masks, y.masks)
                and all(np.array_equal(x[name], y[name]) for name in a.fields)):
            return False
        priorities = np.linspace(0.1, 2, batch)
        if a.set_priorities(x.ids, priorities) != b.set_priorities(y.ids, priorities):
            return False
    return True
