"""Our statistics against the package rliable: point values, and intervals on the same resamples."""

import json
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from rliable import library, metrics

TOOL = ROOT / "build" / "release" / "stats_tool"
REPLICATIONS = 200


def scores(kind, runs, tasks, generator):
    """[run, task]"""
    if kind == "ties":
        return generator.integers(0, 3, (runs, tasks)).astype(float)
    if kind == "negative":
        return generator.normal(-0.2, 0.4, (runs, tasks))
    return generator.lognormal(0, 1.5, (runs, tasks))  # like Atari: a few games dominate the mean


def recorded(monkeypatch, bootstrap_class):
    """Every set of indices that rliable draws with this class, in order."""
    draws = []
    original = bootstrap_class.update_indices

    def update_indices(self):
        indices = original(self)
        draws.append(indices)
        return indices

    monkeypatch.setattr(bootstrap_class, "update_indices", update_indices)
    return draws


def by_task(matrix):
    """rliable has [run, task], we have [task][run]."""
    return np.asarray(matrix).T.tolist()


def ours(**data):
    result = subprocess.run([TOOL], input=json.dumps(data), capture_output=True, text=True, timeout=120, check=True)
    return json.loads(result.stdout)


def check(found, point, interval):
    assert found["value"] == pytest.approx(float(point), abs=1e-9, rel=1e-9)
    assert [found["low"], found["high"]] == pytest.approx(np.ravel(interval).tolist(), abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("kind, runs, tasks", [("atari", 3, 57), ("atari", 5, 1), ("negative", 2, 6),
                                               ("ties", 4, 7), ("atari", 7, 10)])
def test_aggregates_and_profiles(monkeypatch, kind, runs, tasks):
    generator = np.random.default_rng(runs * 100 + tasks)
    x, y = scores(kind, runs, tasks, generator), scores(kind, runs + 1, tasks, generator)
    taus = np.linspace(0, 8, 9)
    draws = recorded(monkeypatch, library.StratifiedBootstrap)
    aggregates = {"median": metrics.aggregate_median, "mean": metrics.aggregate_mean, "iqm": metrics.aggregate_iqm,
                  "gap": metrics.aggregate_optimality_gap}

    def theirs(matrix):
        return np.concatenate([[function(matrix) for function in aggregates.values()],
                               library.score_distributions(matrix, taus)])

    np.random.seed(1)
    points, intervals = library.get_interval_estimates({"x": x}, theirs, reps=REPLICATIONS)
    resamples = [by_task(indices[0]) for indices in draws]
    assert len(resamples) == REPLICATIONS
    plain = [[list(range(runs + 1)) for _ in range(tasks)] for _ in resamples]
    found = ours(x=by_task(x), y=by_task(y), taus=taus.tolist(), x_resamples=resamples, y_resamples=plain)
    for index, name in enumerate(aggregates):
        check(found[name], points["x"][index], intervals["x"][:, index])
    for index in range(len(taus)):
        check(found["profile"][index], points["x"][len(aggregates) + index],
              intervals["x"][:, len(aggregates) + index])


@pytest.mark.parametrize("kind", ["atari", "ties"])
def test_probability_of_improvement(monkeypatch, kind):
    generator = np.random.default_rng(7)
    x, y = scores(kind, 3, 6, generator), scores(kind, 4, 6, generator)
    draws = recorded(monkeypatch, library.StratifiedIndependentBootstrap)
    np.random.seed(2)
    points, intervals = library.get_interval_estimates({"pair": (x, y)}, metrics.probability_of_improvement,
                                                       reps=REPLICATIONS)
    assert len(draws) == REPLICATIONS
    indices = [positional for positional, _ in draws]
    found = ours(x=by_task(x), y=by_task(y), taus=[0.0], x_resamples=[by_task(pair[0][0]) for pair in indices],
                 y_resamples=[by_task(pair[1][0]) for pair in indices])
    check(found["improvement"], points["pair"], intervals["pair"])


@pytest.mark.parametrize("kind, tasks", [("ties", 9), ("atari", 1), ("negative", 57)])
def test_one_run_a_game_has_rliables_values_and_no_interval(kind, tasks):
    """Resampling one run gives rliable an interval of no width, which says nothing: we give none."""
    generator = np.random.default_rng(tasks)
    x, y = scores(kind, 1, tasks, generator), scores(kind, 1, tasks, generator)
    one = [[[0] for _ in range(tasks)] for _ in range(3)]
    found = ours(x=by_task(x), y=by_task(y), taus=[0.0, 0.5], x_resamples=one, y_resamples=one)
    expected = {"median": metrics.aggregate_median(x), "mean": metrics.aggregate_mean(x),
                "iqm": metrics.aggregate_iqm(x), "gap": metrics.aggregate_optimality_gap(x),
                "improvement": metrics.probability_of_improvement(x, y)}
    for name, value in expected.items():
        assert found[name]["value"] == pytest.approx(float(value), abs=1e-9, rel=1e-9), name
        assert found[name]["low"] is None and found[name]["high"] is None, name
