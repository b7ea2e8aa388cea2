"""uper.tianshou: Tianshou's buffers with our priorities."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tianshou")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from tianshou.data import Batch, PrioritizedReplayBufferManager, ReplayBuffer  # noqa: E402
from tianshou.data import PrioritizedReplayBuffer as TheirBuffer  # noqa: E402

import uper  # noqa: E402
from uper.tianshou import PrioritizedReplayBuffer, PrioritizedVectorReplayBuffer  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def step(value, done=False):
    return Batch(obs=np.array([value]), act=value, rew=1.0, terminated=done, truncated=False,
                 obs_next=np.array([value + 1]), info={})


def fill(buffer, count, first=0):
    for value in range(first, first + count):
        buffer.add(step(value))
    return buffer


def single(size=8, alpha=0.6, beta=0.5, **kwargs):
    return PrioritizedReplayBuffer(size, alpha, beta, **kwargs)


def vector(size=12, count=3, alpha=0.6, beta=0.5, **kwargs):
    return PrioritizedVectorReplayBuffer(size, count, alpha=alpha, beta=beta, **kwargs)


def add_to(buffer, environments, value):
    buffer.add(Batch.stack([step(value + 100 * environment) for environment in environments]),
               buffer_ids=np.array(environments))


# One environment


def test_weights_and_probabilities_are_exact():
    buffer = fill(single(4, alpha=0.5, beta=0.7, priorities={"uniform_mix": 0.1}), 4)
    everything = np.arange(4)
    assert buffer.update_weight(everything, np.array([1.0, -4.0, 9.0, 16.0])) == (4, 0, 0)
    expected = 0.9 * np.array([0.1, 0.2, 0.3, 0.4]) + 0.1 / 4
    np.testing.assert_allclose(buffer.probability(everything), expected, rtol=1e-12)
    np.testing.assert_allclose(buffer.get_weight(everything), (4 * expected) ** -0.7, rtol=1e-12)
    np.testing.assert_allclose(buffer.weight[everything], [1, 2, 3, 4], rtol=1e-6)
    batch, indices = buffer.sample(64)
    weights = (4 * expected[indices]) ** -0.7
    np.testing.assert_allclose(batch.weight, weights / weights.max(), rtol=1e-12)
    assert (batch.act == indices).all()
    raw = fill(single(4, weight_norm=False, beta=1), 4)
    raw.update_weight(everything, np.array([1.0, 2, 3, 4]))
    np.testing.assert_allclose(raw[everything].weight, 1 / (4 * raw.probability(everything)))


def test_draws_follow_the_probabilities():
    buffer = fill(single(4, alpha=1.0, priorities={"uniform_mix": 0}), 4)
    buffer.update_weight(np.arange(4), np.array([1.0, 2, 3, 4]))
    counts = np.bincount(buffer.sample_indices(20_000), minlength=4)
    expected = 20_000 * np.array([0.1, 0.2, 0.3, 0.4])
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # 99.9 % of chi-square with 3 degrees of freedom


def test_it_is_tianshous_buffer_otherwise():
    buffer = fill(single(8, stack_num=2), 20)
    assert isinstance(buffer, TheirBuffer) and isinstance(vector(), PrioritizedReplayBufferManager)
    assert (buffer.sample_indices(0) == [4, 5, 6, 7, 0, 1, 2, 3]).all()
    assert len(buffer.sample_indices(-1)) == 0
    assert buffer[:3].weight.shape == (3,) and buffer.sample(5)[0].obs.shape == (5, 2, 1)
    assert buffer.get_weight(3) == 1 and buffer.weight[3] == 1


def test_seeds_decide_the_draws_alone():
    draws = []
    for seed in (3, 3, 4):
        np.random.seed(len(draws))
        draws.append(fill(single(random_seed=seed), 8).sample_indices(64))
    assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()


def test_new_transitions_get_the_largest_priority():
    buffer = fill(single(8), 4)
    buffer.update_weight(np.array([1, 2]), torch.tensor([5.0, 3.0], requires_grad=True))
    fill(buffer, 1, 4)
    np.testing.assert_allclose(buffer.weight[np.arange(8)], np.array([1, 5, 3, 1, 5, 0, 0, 0]) ** 0.6, rtol=1e-6)
    assert buffer.get_weight(np.array([7])) == 0  # nothing is there


def test_a_late_update_changes_nothing():
    buffer = fill(single(64), 64)
    batch, indices = buffer.sample(64)
    fill(buffer, 64, 64)
    assert buffer.update_weight(indices, np.full(64, 1e6)) == (0, 64, 0)
    assert (buffer.weight[np.arange(64)] == 1).all() and buffer.counters.updates_of_evicted == 64
    assert buffer.update_weight(np.arange(64), np.full(64, 2.0)).updated == 64  # what is there now


def test_updates_by_id_may_be_split():
    buffer = fill(single(8), 8)
    indices = buffer.sample_indices(8)
    ids = buffer.ids(indices)
    fill(buffer, 4, 8)
    parts = [buffer.update_ids(ids[part], np.full(4, 3.0)) for part in (slice(0, 4), slice(4, 8))]
    assert sum(part.evicted for part in parts) == (indices < 4).sum()
    assert (buffer.weight[np.arange(4)] == 1).all()


def test_one_nan_is_counted_and_all_are_still_drawn():
    buffer = fill(single(64), 64)
    _, indices = buffer.sample(64)
    assert buffer.update_weight(indices, np.where(np.arange(64) == 3, np.nan, 1.0)) == (63, 0, 1)
    assert len(np.unique(buffer.sample_indices(4096))) == 64


def test_exponents_change_at_any_time():
    buffer = fill(single(4, priorities={"uniform_mix": 0}), 4)
    buffer.update_weight(np.arange(4), np.array([1.0, 2, 3, 4]))
    buffer.set_alpha(1)
    buffer.set_beta(1)
    np.testing.assert_allclose(buffer.get_weight(np.arange(4)), 10 / (4 * np.array([1.0, 2, 3, 4])), rtol=1e-6)
    for call in (lambda: buffer.set_beta(-1), lambda: buffer.set_alpha(-1)):
        with pytest.raises(uper.UsageError):
            call()
    assert buffer._beta == 1 and buffer._alpha == 1


def test_reset_forgets_and_refuses_what_comes_late():
    for buffer, filled in ((single(), fill), (vector(), None)):
        if filled:
            fill(buffer, 8)
        else:
            for value in range(4):
                add_to(buffer, [0, 1, 2], value)
        indices = buffer.sample_indices(8)
        buffer.reset()
        assert len(buffer) == len(buffer._items) == 0
        with pytest.raises(uper.UsageError, match="empty"):
            buffer.sample_indices(4)
        if filled:
            fill(buffer, 8)
        else:
            for value in range(4):
                add_to(buffer, [0, 1, 2], value)
        assert buffer.update_weight(indices, np.ones(8)).evicted == 8


def test_a_buffer_takes_over_another():
    buffer = single(6)
    buffer.update(fill(ReplayBuffer(4), 4))
    assert len(buffer._items) == 4 and (np.sort(buffer.sample(32)[0].act) >= 0).all()
    buffer.update(fill(ReplayBuffer(4), 4, 10))
    assert buffer.counters.added == 8 and buffer.counters.evicted == 2


# Several environments


def test_environments_out_of_step():
    """Environment 1 adds most: its ring wraps while the others have room. Ids, data and refusals stay right."""
    buffer = vector(12, 3)
    chance = np.random.default_rng(5)
    for value in range(40):
        which = [1] if value % 3 else sorted(chance.choice(3, size=2, replace=False))
        add_to(buffer, which, value)
        if value % 5 == 0:
            batch, indices = buffer.sample(6)
            environments = indices // 4
            assert (batch.act // 100 == environments).all()
            buffer.update_weight(indices, chance.exponential(size=6))
        assert len(buffer) == len(buffer._items)
    late = buffer.sample_indices(16)
    for value in range(4):
        add_to(buffer, [1], 50 + value)
    counts = buffer.update_weight(late, np.full(16, 1e6))
    assert counts == ((late // 4 != 1).sum(), (late // 4 == 1).sum(), 0) and 0 < counts.evicted < 16
    assert (buffer.weight[np.arange(4, 8)] < 1000).all()
    buffer._items.index.check()


def test_the_importance_exponent_of_a_vector_buffer_has_an_effect():
    buffer = vector()
    for value in range(4):
        add_to(buffer, [0, 1, 2], value)
    buffer.update_weight(np.arange(12), np.arange(12) + 1.0)
    buffer.set_beta(0)
    assert (buffer[np.arange(12)].weight == 1).all()
    buffer.set_beta(1)
    assert len(np.unique(buffer[np.arange(12)].weight)) == 12


def test_all_environments_are_drawn_by_one_index():
    buffer = vector(40, 4, alpha=1, priorities={"uniform_mix": 0})
    for value in range(10):
        add_to(buffer, range(4), value)
    priorities = np.arange(40) + 1.0
    buffer.update_weight(np.arange(40), priorities)
    counts = np.bincount(buffer.sample_indices(50_000) // 10, minlength=4)
    expected = 50_000 * priorities.reshape(4, 10).sum(1) / priorities.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 16.3


def test_sizes_are_rounded_up_as_in_tianshou():
    assert vector(10, 4).maxsize == 12 and vector(10, 4)._items.capacity == 12
    with pytest.raises(uper.UsageError, match="buffer_num"):
        vector(10, 0)


# State


@pytest.mark.parametrize("way", [lambda buffer, _: pickle.loads(pickle.dumps(buffer)),
                                 lambda buffer, _: copy.deepcopy(buffer),
                                 lambda buffer, path: (buffer.save_hdf5(path), type(buffer).load_hdf5(path))[1]])
@pytest.mark.parametrize("kind", [single, vector])
def test_a_saved_buffer_goes_on_equally(kind, way, tmp_path):
    buffer = kind()
    for value in range(9):
        add_to(buffer, [0, 1, 2], value) if kind is vector else buffer.add(step(value))
    buffer.update_weight(buffer.sample_indices(6), np.arange(6.0))
    buffer.set_alpha(0.8)
    other = way(buffer, str(tmp_path / "buffer.hdf5"))
    for _ in range(3):
        (one, first), (two, second) = buffer.sample(16), other.sample(16)
        assert (first == second).all() and (one.weight == two.weight).all() and (one.act == two.act).all()
        for each in (buffer, other):
            add_to(each, [0, 2], 9) if kind is vector else each.add(step(9))
            each.update_weight(first, np.arange(16.0))
    assert buffer.counters == other.counters and other._items.priority_exponent == 0.8


@pytest.mark.parametrize("call", [
    lambda buffer: buffer.update_weight(np.array([8]), np.array([1.0])),
    lambda buffer: buffer.update_weight(np.array([-1]), np.array([1.0])),
    lambda buffer: buffer.update_weight(np.array([0, 1]), np.array([1.0])),
    lambda buffer: buffer.update_weight(np.array([0.5]), np.array([1.0])),
    lambda buffer: buffer.ids(np.array([6]))])
def test_wrong_calls_change_nothing(call):
    buffer = fill(single(8), 4)
    before = buffer._items.state_dict()["index"]["state"]
    with pytest.raises(uper.UsageError):
        call(buffer)
    assert buffer._items.state_dict()["index"]["state"] == before


@pytest.mark.parametrize("arguments", [{"alpha": -1}, {"beta": 11}, {"size": 0}, {"priorities": {"uniform_mix": 2}}])
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(uper.UsageError):
        PrioritizedReplayBuffer(**{"size": 4, "alpha": 0.6, "beta": 0.4} | arguments)


# As a whole


def test_without_tianshou_the_import_names_the_extra():
    code = "import sys; sys.modules['tianshou'] = None\nimport uper.tianshou"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'uper[tianshou]'" in result.stderr and result.returncode == 1


def test_the_example_learns():
    """10,000 steps. A mean return of 171.7 was measured with seed 1; a random player gets 22."""
    command = [sys.executable, str(ROOT / "examples" / "python" / "tianshou_dqn_cartpole.py"), "--steps", "10000"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(output.rsplit(":", 1)[1]) > 80, output
