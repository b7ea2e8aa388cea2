"""Priorities without data, for memories that hold their own."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uper import _core
from uper._fields import as_array, as_ids, as_priorities
from uper._options import (NORMALIZATIONS, ReplayCounters, SelectorName, UpdateCounts, WeightsName, buffer_options,
                           choice, number, whole)
from uper.errors import CorruptError, UsageError

_MOST = 2**31 - 1
_FORMAT = 1


class IndexSample(NamedTuple):
    """Draws of a `PriorityIndex`."""

    ids: NDArray[np.uint64]
    probabilities: NDArray[np.float64]
    weights: NDArray[np.float32]


class PriorityIndex:
    """The priorities of a `Replay` without its data.

    By default it is a ring: `add()` gives consecutive ids, the oldest items leave first, and the data of an id belongs
    into place id % capacity. With by_slot=True the owner of the data says which places are filled: `put(slots)` gives
    each a new id, and id % capacity is the slot again. So an update of an item that was overwritten is noticed in both.

    Arguments are those of `Replay`; by_slot needs the proportional selector.
    """

    def __init__(self, capacity: int, *, by_slot: bool = False, selector: SelectorName = "proportional",
                 priority_exponent: float = 0.6, uniform_mix: float = 1e-3, stratified: bool = False,
                 initial_priority: float = 1.0, largest_priority_decay: float = 1.0, recency: float | None = None,
                 seed: int = 0) -> None:
        options = buffer_options(capacity=capacity, selector=selector, priority_exponent=priority_exponent,
                                 uniform_mix=uniform_mix, stratified=stratified, initial_priority=initial_priority,
                                 largest_priority_decay=largest_priority_decay, recency=recency)
        self._make(bool(by_slot), options, whole(seed, "seed", 0, 2**64 - 1))

    def _make(self, by_slot: bool, options: dict[str, Any], seed: int) -> None:
        self._by_slot, self._options, self._seed = by_slot, options, seed
        self._core = (_core.SlotIndex if by_slot else _core.RingIndex)(options, seed)

    def add(self, count: int = 1, priorities: ArrayLike | None = None) -> NDArray[np.uint64]:
        """Adds items with the largest priority so far, or with given ones, and returns their ids."""
        self._need(by_slot=False, call="add(count)", other="put(slots)")
        count = whole(count, "count", 0, _MOST)
        given = None if priorities is None else as_priorities(priorities, count)
        first = self._core.add(count, given)
        return np.arange(first, first + count, dtype=np.uint64)

    def put(self, slots: ArrayLike, priorities: ArrayLike | None = None) -> NDArray[np.uint64]:
        """Puts a new item into each slot, in place of one that is there, and returns the ids. Only with by_slot."""
        self._need(by_slot=True, call="put(slots)", other="add(count)")
        which = as_ids(slots)
        ids = np.empty(len(which), np.uint64)
        self._core.put(which, None if priorities is None else as_priorities(priorities, len(which)), ids)
        return ids

    def drop(self, slots: ArrayLike) -> None:
        """Empties slots. Only with by_slot."""
        self._need(by_slot=True, call="drop(slots)", other="evict_before(id)")
        self._core.drop(as_ids(slots))

    def evict_before(self, id: int) -> None:
        """Removes all items with a smaller id."""
        self._need(by_slot=False, call="evict_before(id)", other="drop(slots)")
        self._core.evict_before(whole(id, "id", 0, 2**64 - 1))

    def _need(self, by_slot: bool, call: str, other: str) -> None:
        if self._by_slot != by_slot:
            raise UsageError(f"{call} is for an index made with by_slot={by_slot}; use {other}")

    def sample(self, batch: int, *, importance_exponent: float = 0.4,
               weights: WeightsName = "batch_max") -> IndexSample:
        """Draws items with replacement; see `Replay.sample()`."""
        n = whole(batch, "batch", 1, _MOST)
        drawn = IndexSample(np.empty(n, np.uint64), np.empty(n), np.empty(n, np.float32))
        self._core.sample(*drawn, number(importance_exponent, "importance_exponent", 0, 1),
                          choice(weights, "weights", NORMALIZATIONS))
        return drawn

    def slots(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Where the data of these ids belongs: ids % capacity."""
        return (as_ids(ids) % np.uint64(self.capacity)).astype(np.int64)

    def set_priorities(self, ids: ArrayLike, priorities: ArrayLike) -> UpdateCounts:
        """Sets priorities in order; returns how many entries were (updated, evicted, invalid)."""
        counts = self._core.set_priorities(ids, priorities)
        if counts is None:
            which = as_ids(ids)
            counts = self._core.set_priorities(which, as_priorities(priorities, len(which)))
        return UpdateCounts(*counts)

    def set_priority_exponent(self, priority_exponent: float) -> None:
        """Changes the exponent and derives all probabilities anew; takes time proportional to the capacity."""
        self._core.set_priority_exponent(number(priority_exponent, "priority_exponent", 0, 4))

    def priority(self, ids: ArrayLike) -> NDArray[np.float64]:
        """The priorities of items, before the exponent. Raises UsageError if one is gone."""
        return self._read(ids, False)

    def probability(self, ids: ArrayLike) -> NDArray[np.float64]:
        """The exact probabilities that one draw gives these items. Raises UsageError if one is gone."""
        return self._read(ids, True)

    def _read(self, ids: ArrayLike, probabilities: bool) -> NDArray[np.float64]:
        which = as_ids(ids)
        values = np.empty(len(which))
        self._core.read(which, values, probabilities)
        return values

    def __len__(self) -> int:
        return len(self._core)

    @property
    def capacity(self) -> int:
        return int(self._options["capacity"])

    @property
    def first_id(self) -> int:
        """The oldest id. Only without by_slot."""
        self._need(by_slot=False, call="first_id", other="the ids that put() returned")
        return self._core.first_id

    @property
    def next_id(self) -> int:
        """The id that the next item will get. Only without by_slot."""
        self._need(by_slot=False, call="next_id", other="the ids that put() returned")
        return self._core.next_id

    @property
    def largest_priority(self) -> float:
        """The priority that a new item would get now."""
        return self._core.largest_priority

    @property
    def counters(self) -> ReplayCounters:
        return ReplayCounters(*self._core.counters())

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain data: an index made of it continues bit for bit."""
        return {"format": _FORMAT, "by_slot": self._by_slot, "options": dict(self._options), "seed": self._seed,
                "state": self._core.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes the state of another index with the same options. Raises, and changes nothing, if it does not fit."""
        try:
            known = state["format"] == _FORMAT and state["by_slot"] == self._by_slot
            capacity, content, seed = state["options"]["capacity"], state["state"], state["seed"]
        except (KeyError, TypeError) as error:
            raise CorruptError(f"this is no state of a PriorityIndex: {error!r}") from None
        if not known or capacity != self.capacity:
            raise UsageError("this state is of an index of another capacity or kind")
        other = type(self).__new__(type(self))
        other._make(self._by_slot, self._options, seed)
        other._core.restore(content)
        self._core, self._seed = other._core, seed

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._make(state["by_slot"], state["options"], state["seed"])
        self._core.restore(state["state"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to a file with checksums. The file appears under its name when it is complete."""
        layout = {"format": _FORMAT, "kind": "PriorityIndex", "by_slot": self._by_slot, "options": self._options,
                  "seed": self._seed}
        self._core.save(os.fspath(path), json.dumps(layout).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PriorityIndex:
        """An index from a file of `save()`. It continues bit for bit. Raises CorruptError if the file is damaged."""
        path = os.fspath(path)
        try:
            layout = json.loads(_core.layout_of_file(path))
            known = layout["format"] == _FORMAT and layout["kind"] == "PriorityIndex"
            by_slot, options, seed = layout["by_slot"], layout["options"], layout["seed"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{path}: the description of the index cannot be read: {error!r}") from None
        if not known:
            raise UsageError(f"{path} is a {layout['kind']} of format {layout['format']}, not a PriorityIndex")
        index = cls.__new__(cls)
        index._make(by_slot, options, seed)
        index._core.load(path)
        return index

    def check(self) -> None:
        """Raises InternalError if an invariant is broken; takes time proportional to the capacity."""
        self._core.check()

    def __repr__(self) -> str:
        return f"<uper.PriorityIndex: {len(self):,} of {self.capacity:,} items>"
