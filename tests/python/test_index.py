"""uper.PriorityIndex: a ring, or places that somebody else chooses."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uper


def same_draws(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.sample(64), b.sample(64)))


def test_a_ring_draws_as_a_replay_memory():
    index = uper.PriorityIndex(30, seed=4, stratified=True)
    memory = uper.Replay(30, {"a": ((), "i4")}, seed=4, stratified=True)
    for i in range(20):
        assert np.array_equal(index.add(3), memory.add(a=[1, 2, 3]))
        drawn, batch = index.sample(16), memory.sample(16)
        assert np.array_equal(drawn.ids, batch.ids) and np.array_equal(drawn.weights, batch.weights)
        assert index.set_priorities(drawn.ids, np.arange(16)) == memory.set_priorities(batch.ids, np.arange(16))
    assert index.slots([31, 59]).tolist() == [1, 29]
    index.evict_before(index.first_id + 5)
    assert len(index) == 25
    index.check()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_slots_against_a_plain_model(data):
    capacity = data.draw(st.integers(1, 7))
    mix = data.draw(st.sampled_from([0.0, 0.25, 1.0]))
    index = uper.PriorityIndex(capacity, by_slot=True, priority_exponent=1, uniform_mix=mix)
    items, puts, largest = {}, [0] * capacity, 1.0  # slot -> (id, priority)
    slot = st.integers(0, capacity - 1)
    for _ in range(data.draw(st.integers(1, 15))):
        slots = data.draw(st.lists(slot, min_size=1, max_size=5))
        action = data.draw(st.sampled_from(["put", "put with", "drop", "set"]))
        if action in ("put", "put with"):
            given_priorities = data.draw(st.lists(st.sampled_from([0.0, 0.5, 3.0, np.nan]), min_size=len(slots),
                                                  max_size=len(slots))) if action == "put with" else None
            ids = index.put(slots, given_priorities)
            for j, s in enumerate(slots):
                p = given_priorities[j] if given_priorities else np.nan
                largest = max(largest, 0 if np.isnan(p) else p)
                assert ids[j] == puts[s] * capacity + s
                puts[s] += 1
                items[s] = (ids[j], largest if np.isnan(p) else p)
        elif action == "drop":
            index.drop(slots)
            for s in slots:
                items.pop(s, None)
        else:
            ids = [data.draw(st.integers(0, 4)) * capacity + s for s in slots]
            values = data.draw(st.lists(st.sampled_from([0.0, 0.25, 2.0, np.inf]), min_size=len(ids), max_size=len(ids)))
            counts = [0, 0, 0]
            for i, v in zip(ids, values):
                s = i % capacity
                if i // capacity >= puts[s]:
                    counts[2] += 1
                elif s not in items or items[s][0] != i:
                    counts[1] += 1
                elif not np.isfinite(v):
                    counts[2] += 1
                else:
                    items[s], largest = (i, v), max(largest, v)
                    counts[0] += 1
            assert index.set_priorities(ids, values) == tuple(counts)
        assert len(index) == len(items) and index.largest_priority == largest
        index.check()
        if items:
            live = [i for i, _ in items.values()]
            p = np.array([p for _, p in items.values()])
            n = len(p)
            wanted = np.full(n, 1 / n) if p.sum() == 0 else (1 - mix) * p / p.sum() + mix / n
            np.testing.assert_allclose(index.probability(live), wanted, rtol=1e-12)
            drawn = index.sample(16, weights="buffer_max", importance_exponent=1)
            assert set(drawn.ids.tolist()) <= set(int(i) for i in live)
            np.testing.assert_array_equal(drawn.probabilities, index.probability(drawn.ids))
            smallest = wanted[wanted > 0].min()
            np.testing.assert_allclose(drawn.weights, smallest / drawn.probabilities, rtol=1e-5)


def test_slots_are_drawn_by_their_probabilities():
    index = uper.PriorityIndex(50, by_slot=True, uniform_mix=0.2, seed=2)
    index.put(np.arange(50), np.linspace(0, 2, 50))
    index.drop(np.arange(0, 50, 3))
    ids = np.setdiff1d(np.arange(50), np.arange(0, 50, 3))
    expected = index.probability(ids)
    counts = np.bincount(np.concatenate([index.sample(512).ids for _ in range(200)]).astype(int), minlength=50)[ids]
    draws = 200 * 512
    statistic = ((counts - draws * expected)**2 / (draws * expected)).sum()
    assert counts.sum() == draws and statistic < len(ids) - 1 + 5 * np.sqrt(2 * (len(ids) - 1))


@pytest.mark.parametrize("by_slot", [False, True])
def test_state(by_slot, tmp_path):
    index = uper.PriorityIndex(20, by_slot=by_slot, seed=8)
    ids = index.put([1, 5, 7]) if by_slot else index.add(25)
    index.set_priorities(ids, np.arange(len(ids)))
    index.sample(5)
    copy = pickle.loads(pickle.dumps(index))
    other = uper.PriorityIndex(20, by_slot=by_slot)
    other.load_state_dict(index.state_dict())
    index.save(tmp_path / "index")
    third = uper.PriorityIndex.load(tmp_path / "index")
    future = index.sample(64)
    for one in (copy, other, third):
        assert all(np.array_equal(x, y) for x, y in zip(one.sample(64), future))
        assert one.counters == index.counters
    with pytest.raises(uper.UsageError, match="another capacity"):
        uper.PriorityIndex(21, by_slot=by_slot).load_state_dict(copy.state_dict())
    with pytest.raises(uper.CorruptError):
        uper.PriorityIndex(20).load_state_dict({})
    (tmp_path / "index").write_bytes((tmp_path / "index").read_bytes()[:-5])
    with pytest.raises(uper.CorruptError):
        uper.PriorityIndex.load(tmp_path / "index")


@pytest.mark.parametrize("call, message", [
    (lambda r, s: r.put([1]), r"use add\(count\)"), (lambda r, s: s.add(1), r"use put\(slots\)"),
    (lambda r, s: s.put([20]), "slot 20 is out of range"), (lambda r, s: s.drop([20]), "slot 20 is out of range"),
    (lambda r, s: s.put([-1]), "never negative"), (lambda r, s: r.add(-1), "count must be"),
    (lambda r, s: r.add(2, [1.0]), "1 priorities for 2"), (lambda r, s: s.sample(1), "empty"),
    (lambda r, s: r.sample(1), "empty"), (lambda r, s: r.priority([3]), "no item with id 3"),
    (lambda r, s: uper.PriorityIndex(5, by_slot=True, selector="rank"), "proportional"),
    (lambda r, s: uper.PriorityIndex(5, by_slot=True, recency=10), "ages")])
def test_bad_calls(call, message):
    ring, slots = uper.PriorityIndex(20), uper.PriorityIndex(20, by_slot=True)
    with pytest.raises(uper.UsageError, match=message):
        call(ring, slots)
    assert len(ring) == len(slots) == 0
