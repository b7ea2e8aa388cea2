"""uper.Replay: contents, draws, priorities, state, and bad input."""

import os
import pickle
import threading

import numpy as np
import pytest
from conftest import FIELDS, same_future, transitions
from hypothesis import given, settings
from hypothesis import strategies as st

import uper


def test_rows_come_back_as_they_were_added(replay):
    batch = replay.sample(256)
    for name, (shape, dtype) in replay.fields.items():
        assert batch[name].dtype == dtype and batch[name].shape == (256, *shape)
    assert np.array_equal(batch.action, batch.ids.astype(int))
    assert np.array_equal(batch.obs[:, 0] + 1, batch.next_obs[:, 2])
    assert np.array_equal(batch.reward * 8, batch.action)
    assert set(batch.ids) <= set(range(60))


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_every_dtype_and_shape(dtype):
    rng = np.random.default_rng(0)
    memory = uper.Replay(7, {"a": ((2, 3), dtype), "b": ((), dtype), "c": (5, dtype)})
    values = {name: rng.integers(0, 2, (7, *shape)).astype(dtype) for name, (shape, _) in memory.fields.items()}
    assert list(memory.add(**values)) == list(range(7))
    batch = memory.gather(np.arange(7))
    assert all(np.array_equal(batch[name], value) for name, value in values.items())


def test_arrays_of_other_types_and_layouts_are_converted():
    memory = uper.Replay(10, {"a": ((2, 2), "f4"), "n": ((), "u1")})
    memory.add(a=np.arange(8, dtype="f8").reshape(2, 2, 2).transpose(0, 2, 1), n=[1, 2])
    memory.add(a=[[1, 2], [3, 4]], n=7)  # one transition without the leading dimension
    batch = memory.gather([0, 2])
    assert batch.a.tolist() == [[[0, 2], [1, 3]], [[1, 2], [3, 4]]] and batch.n.tolist() == [1, 7]


def test_the_oldest_leave_first():
    memory = uper.Replay(4, {"a": ((), "i4")})
    memory.add(a=np.arange(3))
    memory.add(a=np.arange(3, 6))
    assert (memory.first_id, memory.next_id, len(memory)) == (2, 6, 4)
    assert memory.gather([2, 3, 4, 5]).a.tolist() == [2, 3, 4, 5]
    memory.add(a=np.arange(100, 111))  # more than fit
    assert memory.gather(np.arange(13, 17)).a.tolist() == [107, 108, 109, 110]
    memory.check()


class Model:
    """A replay memory written as plainly as possible."""

    def __init__(self, capacity, exponent, mix):
        self.items, self.capacity, self.exponent, self.mix = {}, capacity, exponent, mix
        self.next_id, self.largest = 0, 1.0

    @staticmethod
    def accepts(priority):
        return bool(0 <= priority <= float(np.finfo("f4").max))

    def add(self, priority=None):
        if priority is not None and self.accepts(priority):
            self.largest = max(self.largest, float(np.float32(priority)))
            self.items[self.next_id] = float(np.float32(priority))
        else:
            self.items[self.next_id] = self.largest
        self.next_id += 1
        self.items.pop(self.next_id - 1 - self.capacity, None)

    def set(self, ids, priorities):
        counts = [0, 0, 0]
        for i, p in zip(ids, priorities):
            if i in self.items and self.accepts(p):
                self.items[i] = float(np.float32(p))
                self.largest = max(self.largest, self.items[i])
                counts[0] += 1
            else:
                counts[1 if i < self.next_id and i not in self.items else 2] += 1
        return tuple(counts)

    def probabilities(self):
        mass = np.array([0.0 if p == 0 else p**self.exponent for p in self.items.values()])
        n = len(mass)
        return np.full(n, 1 / n) if mass.sum() == 0 else (1 - self.mix) * mass / mass.sum() + self.mix / n


odd = st.sampled_from([0.0, 1.0, np.nan, np.inf, -1.0, 1e300, -0.0])
priority = odd | st.floats(0.015625, 16, width=32)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_against_a_plain_model(data):
    capacity = data.draw(st.integers(1, 9))
    exponent, mix = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])), data.draw(st.sampled_from([0.0, 0.125, 1.0]))
    memory = uper.Replay(capacity, {"a": ((), "i8")}, priority_exponent=exponent, uniform_mix=mix)
    model = Model(capacity, exponent, mix)
    for _ in range(data.draw(st.integers(1, 12))):
        n = data.draw(st.integers(1, 12))
        action = data.draw(st.sampled_from(["add", "add with", "set"])) if model.items else "add"
        if action == "add":
            memory.add(a=np.arange(model.next_id, model.next_id + n))
            for _ in range(n):
                model.add()
        elif action == "add with":
            values = data.draw(st.lists(priority, min_size=n, max_size=n))
            memory.add(a=np.arange(model.next_id, model.next_id + n), priorities=values)
            for value in values:
                model.add(value)
        else:
            ids = data.draw(st.lists(st.integers(0, model.next_id + 2), min_size=n, max_size=n))
            values = data.draw(st.lists(priority, min_size=n, max_size=n))
            assert memory.set_priorities(ids, values) == model.set(ids, values)
        live = list(model.items)
        assert (memory.first_id, memory.next_id, len(memory)) == (live[0], model.next_id, len(live))
        np.testing.assert_array_equal(memory.priority(live), list(model.items.values()))
        np.testing.assert_allclose(memory.probability(live), model.probabilities(), rtol=1e-12)
        batch = memory.sample(8, weights="none", importance_exponent=1)
        assert set(batch.ids) <= set(live) and np.array_equal(batch.a, batch.ids.astype(int))
        np.testing.assert_array_equal(batch.probabilities, memory.probability(batch.ids))
        np.testing.assert_allclose(batch.weights, 1 / (len(live) * batch.probabilities), rtol=1e-6)
        memory.check()


@pytest.mark.parametrize("options", [{}, {"stratified": True}, {"selector": "rank"}, {"selector": "uniform"},
                                     {"uniform_mix": 0.5}, {"priority_exponent": 0.0}, {"recency": 8}])
def test_draws_have_the_stated_probabilities(options):
    memory = uper.Replay(40, {"a": ((), "i4")}, seed=5, **options)
    memory.add(a=np.arange(60), priorities=np.linspace(0, 3, 60))
    ids = np.arange(20, 60)
    expected = memory.probability(ids)
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    draws = 200 * 512
    counts = np.bincount(np.concatenate([memory.sample(512).ids for _ in range(200)]).astype(int) - 20, minlength=40)
    cells = expected > 0
    assert counts[~cells].sum() == 0
    statistic = ((counts - draws * expected)[cells]**2 / (draws * expected[cells])).sum()
    degrees = cells.sum() - 1
    assert statistic < degrees + 5 * np.sqrt(2 * degrees)  # stratified draws vary less


def test_weights():
    memory = uper.Replay(4, {"a": ((), "i4")}, priority_exponent=1, uniform_mix=0)
    memory.add(a=np.arange(4), priorities=[1, 2, 4, 1])
    probabilities = np.array([1, 2, 4, 1]) / 8
    for normalization, unit in [("none", 0.25), ("buffer_max", 0.125)]:
        batch = memory.sample(64, importance_exponent=0.5, weights=normalization)
        np.testing.assert_allclose(batch.weights, (unit / probabilities[batch.a])**0.5, rtol=1e-6)
    batch = memory.sample(64, importance_exponent=1, weights="batch_max")
    np.testing.assert_allclose(batch.weights, batch.probabilities.min() / batch.probabilities, rtol=1e-6)
    assert np.all(memory.sample(64, importance_exponent=0).weights == 1)


def test_recency_halves_the_mass():
    memory = uper.Replay(1000, {"a": ((), "i4")}, recency=100, uniform_mix=0, priority_exponent=1)
    memory.add(a=np.zeros(1000))
    p = memory.probability([0, 100, 200, 999])
    np.testing.assert_allclose([p[1] / p[0], p[2] / p[1], p[3] / p[1]], [2, 2, 2**8.99], rtol=1e-12)
    for _ in range(40):  # beyond the point where all masses are derived anew
        memory.add(a=np.zeros(333))
        p = memory.probability([memory.first_id, memory.first_id + 100])
        assert p[1] / p[0] == pytest.approx(2, rel=1e-12)
    memory.check()
    assert same_future(memory, pickle.loads(pickle.dumps(memory)))


def test_late_updates_and_bad_priorities_change_nothing(replay):
    batch = replay.sample(64)
    replay.set_priorities(batch.ids, np.full(64, 0.5))
    replay.add(**transitions(100, 60))
    before = replay.probability(np.arange(60, 160))
    assert replay.set_priorities(batch.ids, np.full(64, 1e6)) == (0, 64, 0)
    ids = np.array([60, 61, 62, 63, 10**9], dtype=np.uint64)
    assert replay.set_priorities(ids, [np.nan, np.inf, -1, -np.inf, 1]) == (0, 0, 5)
    np.testing.assert_array_equal(replay.probability(np.arange(60, 160)), before)
    assert replay.counters.updates_of_evicted == 64 and replay.counters.invalid_updates == 5


def test_repeated_ids_keep_the_last(replay):
    assert replay.set_priorities([5, 5, 5], [1, 3, 2]).updated == 3
    assert replay.priority([5])[0] == 2


def test_new_items_get_the_largest_priority(replay):
    replay.set_priorities([0], [7.5])
    new = replay.add(**transitions(2))
    assert replay.priority(new).tolist() == [7.5, 7.5] and replay.largest_priority == 7.5
    assert replay.priority(replay.add(priorities=[0.25, np.nan], **transitions(2))).tolist() == [0.25, 7.5]
    assert replay.counters.invalid_insertions == 1


def test_the_exponent_can_change(replay):
    replay.set_priorities(np.arange(60), np.arange(60))
    replay.set_priority_exponent(2)
    expected = (1 - 1e-3) * np.arange(60)**2 / (np.arange(60)**2).sum() + 1e-3 / 60
    np.testing.assert_allclose(replay.probability(np.arange(60)), expected, rtol=1e-12)
    assert replay.priority_exponent == 2
    assert same_future(replay, pickle.loads(pickle.dumps(replay)))


def test_masks():
    memory = uper.Replay(20_000, {"a": ((), "i4")}, members=10, mask_probability=0.25)
    memory.add(a=np.arange(20_000))
    masks = memory.gather(np.arange(20_000)).masks
    assert masks.shape == (20_000, 10) and masks.dtype == bool
    sd = np.sqrt(0.25 * 0.75 / 20_000)
    assert np.all(np.abs(masks.mean(0) - 0.25) < 5 * sd)
    batch = memory.sample(100)
    assert np.array_equal(batch.masks, masks[batch.a])


def test_out_is_filled_again(replay):
    batch = replay.sample(16)
    obs, ids = batch.obs, batch.ids.copy()
    again = replay.sample(16, out=batch)
    assert again is batch and batch.obs is obs and not np.array_equal(batch.ids, ids)
    assert np.array_equal(obs[:, 0], batch.ids.astype("f4"))


def test_components_and_rules():
    memory = uper.Replay(10, {"a": ((), "i4")}, keep_components=True, uniform_mix=0, priority_exponent=1)
    ids = memory.add(a=np.arange(3))
    u = {"epistemic": [0.5, 1, 0], "aleatoric": [1, 2, 4], "target_distance_sq": [1, 1, 1], "epistemic_delta": [1.5, 2, 1]}
    assert memory.set_components(ids, u, td_error=[3, 2, 1]) == (3, 0, 0)
    np.testing.assert_allclose(memory.priority(ids), 0.5 * np.log1p([1.5, 1, 0.25]), rtol=1e-6)
    for rule, expected in [("epistemic", [0.5, 1, 0]), ("td", [3, 2, 1]), ("total_delta", [2.5, 4, 5])]:
        assert memory.set_rule(rule) == (3, 0, 0)
        np.testing.assert_allclose(memory.priority(ids), expected, rtol=1e-6)
    assert memory.components(ids)["aleatoric"].tolist() == [1, 2, 4]
    later = memory.add(a=[3])  # has none: keeps its priority
    assert np.isnan(memory.components(later)["epistemic"][0])
    assert memory.set_rule("epistemic") == (3, 0, 0) and memory.priority(later)[0] == memory.largest_priority
    copy = pickle.loads(pickle.dumps(memory))
    assert copy.set_rule("td") == (3, 0, 0) and copy.priority(ids).tolist() == [3, 2, 1]
    memory.add(a=np.arange(9))
    assert memory.set_components(ids, u).evicted == 3


@pytest.mark.parametrize("way", ["pickle", "file"])
@pytest.mark.parametrize("options", [{}, {"selector": "rank", "members": 70 // 7}, {"stratified": True, "n_step": 3}])
def test_a_saved_memory_continues_bit_for_bit(way, options, tmp_path):
    memory = uper.Replay(50, FIELDS, seed=9, num_envs=2, **options)
    memory.reset(np.zeros((2, 3)))
    for i in range(70):
        memory.step([i, -i], [1, 2], np.full((2, 3), i), [i % 7 == 6, False], [False, i % 11 == 10])
        if i % 9 == 8:
            batch = memory.sample(8)
            memory.set_priorities(batch.ids, np.arange(8))
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(memory))
    else:
        memory.save(tmp_path / "memory")
        copy = uper.Replay.load(tmp_path / "memory")
    assert copy.counters == memory.counters
    for a in (memory, copy):
        a.step([1, 2], [3, 4], np.ones((2, 3)), [True, False], [False, False])
    assert same_future(memory, copy)
    copy.check()


def test_damaged_files_are_refused(replay, tmp_path):
    path = tmp_path / "memory"
    replay.save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in [*range(40), *rng.integers(0, len(good), 200)]:
        bad = bytearray(good)
        bad[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        with pytest.raises((uper.CorruptError, uper.UsageError)):
            uper.Replay.load(path)
    for length in rng.integers(0, len(good), 50):
        path.write_bytes(good[:length])
        with pytest.raises(uper.CorruptError):
            uper.Replay.load(path)
    path.write_bytes(good + b"x")
    with pytest.raises(uper.CorruptError, match="follow"):
        uper.Replay.load(path)
    path.write_bytes(good)
    assert same_future(uper.Replay.load(path), replay)


def test_files_that_cannot_be_read_or_written(replay, tmp_path):
    with pytest.raises(uper.MissingDataError, match="nothing"):
        uper.Replay.load(tmp_path / "nothing")
    assert issubclass(uper.MissingDataError, FileNotFoundError)
    with pytest.raises(uper.MissingDataError, match="regular"):
        uper.Replay.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(uper.MissingDataError, match="regular"):
        uper.Replay.load(tmp_path / "pipe")
    with pytest.raises(uper.Error, match="missing"):
        replay.save(tmp_path / "missing" / "memory")
    with pytest.raises(uper.DiskError):
        replay.save("/dev/full/x") if os.path.isdir("/dev/full") else _save_to_a_full_disk(replay, tmp_path)


def _save_to_a_full_disk(replay, tmp_path):
    import resource
    import signal
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        replay.save(tmp_path / "full")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
        assert not list(tmp_path.glob("full*"))


BAD = {
    "unknown field": (lambda r: r.add(**transitions(2), more=[1, 2]), "no field 'more'"),
    "missing field": (lambda r: r.add(obs=np.zeros((2, 3))), "lacks the field 'action'"),
    "shape": (lambda r: r.add(**{**transitions(2), "obs": np.zeros((2, 4))}), r"obs has shape \(2, 4\)"),
    "rows": (lambda r: r.add(**{**transitions(2), "action": [1, 2, 3]}), "action has 3 rows, but others have 2"),
    "dtype": (lambda r: r.add(**{**transitions(2), "action": [0.5, 1.5]}), "action has type float64"),
    "objects": (lambda r: r.add(**{**transitions(2), "action": ["a", "b"]}), "must be numbers"),
    "priorities": (lambda r: r.add(**transitions(2), priorities=[1.0]), "1 priorities for 2"),
    "batch 0": (lambda r: r.sample(0), "batch must be a whole number"),
    "batch text": (lambda r: r.sample("32"), "batch must be a whole number"),
    "exponent": (lambda r: r.sample(3, importance_exponent=1.5), "importance_exponent must be"),
    "weights": (lambda r: r.sample(3, weights="max"), "weights must be one of"),
    "out": (lambda r: r.sample(3, out=r.gather([1, 2, 3, 4])), "out has 4 rows"),
    "ids": (lambda r: r.set_priorities([-1], [1.0]), "never negative"),
    "float ids": (lambda r: r.set_priorities([1.5], [1.0]), "whole numbers"),
    "lengths": (lambda r: r.set_priorities([1, 2], [1.0]), "1 priorities for 2|2 ids and 1 priorities"),
    "gone": (lambda r: r.gather([60]), "no transition with id 60"),
    "probability of none": (lambda r: r.probability([99]), "no transition with id 99"),
    "rule": (lambda r: r.set_rule("td"), "keep_components=True"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_say_what_is_wrong_and_change_nothing(replay, name):
    call, message = BAD[name]
    twin = pickle.loads(pickle.dumps(replay))
    with pytest.raises(uper.UsageError, match=message) as caught:
        call(replay)
    assert ".cc" not in str(caught.value) and isinstance(caught.value, ValueError)
    replay.check()
    assert len(replay) == 60 and same_future(replay, twin)


@pytest.mark.parametrize("options, message", [
    ({"capacity": -1}, "capacity"), ({"capacity": 2**32}, "capacity"), ({"capacity": 1.5}, "capacity"),
    ({"selector": "best"}, "selector must be one of"), ({"priority_exponent": -1}, "priority_exponent"),
    ({"uniform_mix": 2}, "uniform_mix"), ({"members": 65}, "members"), ({"mask_probability": np.nan}, "mask_probability"),
    ({"n_step": 0}, "n_step"), ({"discount": 1.1}, "discount"), ({"num_envs": 0}, "num_envs"), ({"seed": -1}, "seed"),
    ({"recency": 0.5}, "recency"), ({"rule": "best"}, "no priority rule"), ({"fields": {}}, "at least one"),
    ({"fields": {"a": ((0,), "f4")}}, "below 1"), ({"fields": {"a": "f4"}}, r"must be \(shape, dtype\)"),
    ({"fields": {"a": ((), "O")}}, "numbers"), ({"fields": {"ids": ((), "f4")}}, "cannot be called 'ids'"),
    ({"fields": {1: ((), "f4")}}, "must be text"), ({"recency": 5, "selector": "rank"}, "recency")])
def test_bad_options(options, message):
    with pytest.raises(uper.UsageError, match=message):
        uper.Replay(**({"capacity": 10, "fields": {"a": ((), "f4")}} | options))


def test_memory_that_does_not_fit():
    with pytest.raises(uper.OutOfMemoryError, match="smaller capacity"):
        uper.Replay(10**9, {"a": ((1000, 1000), "f4")})
    assert issubclass(uper.OutOfMemoryError, MemoryError)


def test_an_empty_memory(tmp_path):
    memory = uper.Replay(5, FIELDS)
    with pytest.raises(uper.UsageError, match="empty"):
        memory.sample(1)
    assert len(pickle.loads(pickle.dumps(memory))) == 0
    assert memory.set_priorities([], []) == (0, 0, 0)


def test_threads():
    memory = uper.Replay(500, {"a": ((), "i8"), "big": ((1000,), "f4")})
    memory.add(a=np.zeros(100), big=np.zeros((100, 1000)))
    failures = []

    def work(seed):
        try:
            for i in range(60):
                memory.add(a=np.full(50, seed), big=np.full((50, 1000), seed, "f4"))
                batch = memory.sample(200)
                assert np.all(batch.big == batch.a[:, None])
                memory.set_priorities(batch.ids, np.random.default_rng(seed + i).random(200))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    memory.check()
    assert memory.counters.added == 100 + 4 * 60 * 50


def test_after_a_fork(replay):
    read, write = os.pipe()
    if os.fork() == 0:
        batch = replay.sample(16)
        os.write(write, batch.ids.tobytes())
        os._exit(0)
    os.wait()
    assert os.read(read, 1000) == replay.sample(16).ids.tobytes()


def test_memory_stays_flat():
    """10^6 rows drawn: no leak of arrays, views or errors."""
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    memory = uper.Replay(1000, FIELDS, members=2)
    memory.add(**transitions(1000))
    for phase in range(2):
        for _ in range(2000):
            batch = memory.sample(256)
            memory.set_priorities(batch.ids, batch.probabilities)
            memory.add(**transitions(4))
            with pytest.raises(uper.UsageError):
                memory.set_priorities([1], [1.0, 2.0])
        if phase == 0:
            before = resident()
    assert resident() - before < 4e6


def test_names_and_reprs(replay):
    assert repr(replay) == "<uper.Replay: 60 of 100 transitions>"
    batch = replay.sample(2)
    assert list(batch) == [*FIELDS, "ids", "probabilities", "weights"] and len(batch) == 8
    with pytest.raises(AttributeError, match="it has obs, action"):
        batch.observation
    assert np.array_equal(batch["weights"], batch.weights)
