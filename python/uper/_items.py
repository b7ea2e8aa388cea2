"""Items that the owner of the data knows by slot: what the adapters to other libraries' memories have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uper._fields import as_array, as_priorities
from uper._index import IndexSample, PriorityIndex
from uper._options import UpdateCounts, WeightsName
from uper.errors import CorruptError, Error, MissingDataError, UsageError

Slots = NDArray[np.int64]
Ids = NDArray[np.uint64]

_NO_ID = np.uint64(2**64 - 1)  # of an empty slot; an update of it counts as invalid
_MOST_WAITING = 64
LARGEST_EXPONENT = 10  # of importance
_INDEX_FILE, _MORE_FILE = "index.uper", "items.npz"


class Items(ABC):
    """A `PriorityIndex` that finds the ids itself, for libraries whose updates name slots only.

    An `update()` with exactly the slots of a drawn batch is about the items that were drawn: where a slot was written
    again since then, it is refused. Other slots, and those of the last `put()`, mean what they hold now.
    """

    by_slot: bool

    def __init__(self, capacity: int, **options: Any) -> None:
        self._capacity = capacity
        self._options = {"priority_exponent": 0.6} | options
        self.index = self._new_index()
        self._waiting: deque[tuple[bytes, Ids]] = deque(maxlen=_MOST_WAITING)  # drawn batches, by their slots
        self._written = b""  # slots of the last call, if that was put()

    def _new_index(self) -> PriorityIndex:
        return PriorityIndex(self._capacity, by_slot=self.by_slot, **self._options)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def capacity(self) -> int:
        return self.index.capacity

    @property
    def priority_exponent(self) -> float:
        return float(self._options["priority_exponent"])

    @priority_exponent.setter
    def priority_exponent(self, value: float) -> None:
        self.index.set_priority_exponent(value)
        self._options["priority_exponent"] = float(value)

    @abstractmethod
    def put(self, slots: Slots) -> None:
        """A new item in each slot, in order, in place of one that is there."""

    @abstractmethod
    def keep(self, count: int) -> None:
        """Makes the slots 0 to count - 1 the filled ones, with new items where one was missing."""

    @abstractmethod
    def clear(self) -> None:
        """Empties all slots. Ids go on, so that updates of items from before are refused."""

    @abstractmethod
    def ids(self, slots: Slots) -> Ids:
        """The present ids in these slots."""

    def priority(self, slots: Slots) -> NDArray[np.float64]:
        """The priorities in these slots; 0 where there is no item."""
        return self._read(slots, self.index.priority)

    def probability(self, slots: Slots) -> NDArray[np.float64]:
        """The exact probabilities that one draw gives these slots; 0 where there is no item."""
        return self._read(slots, self.index.probability)

    def _read(self, slots: Slots, of: Callable[[Ids], NDArray[np.float64]]) -> NDArray[np.float64]:
        ids = self.ids(slots)
        filled = ids != _NO_ID
        if filled.all():
            return of(ids)
        values = np.zeros(len(slots))
        values[filled] = of(ids[filled])
        return values

    def draw(self, batch: int, importance_exponent: float, weights: WeightsName) -> tuple[Slots, IndexSample]:
        """Draws items, and remembers which for `update()`. The exponent may be above 1, as the libraries allow."""
        drawn = self.index.sample(batch, importance_exponent=min(importance_exponent, 1), weights=weights)
        if importance_exponent > 1:
            drawn = drawn._replace(weights=drawn.weights ** np.float32(importance_exponent))
        slots = self.index.slots(drawn.ids)
        self._waiting.append((slots.tobytes(), drawn.ids))
        self._written = b""
        return slots, drawn

    def update(self, slots: Slots, priorities: ArrayLike) -> UpdateCounts:
        """Sets priorities by slot (see the class); returns how many were (updated, evicted, invalid)."""
        given = as_priorities(priorities, len(slots))
        if slots.size and not 0 <= slots.min() <= slots.max() < self.capacity:
            raise UsageError(f"an index is out of range: they go from 0 to {self.capacity - 1}")
        ids = self._ids_meant(slots)
        self._written = b""
        return self.index.set_priorities(ids, given)

    def _ids_meant(self, slots: Slots) -> Ids:
        key = slots.tobytes()
        if key != self._written:
            for place, (drawn, ids) in enumerate(self._waiting):
                if drawn == key:
                    del self._waiting[place]
                    return ids
        return self.ids(slots)

    def update_ids(self, ids: ArrayLike, priorities: ArrayLike) -> UpdateCounts:
        """Sets priorities by id: items that are gone are refused, always."""
        return self.index.set_priorities(ids, priorities)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the drawn batches that wait for an update."""
        return {"index": self.index.state_dict(), **self._more_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the state of items of the same capacity. Raises, and changes nothing, if it does not fit."""
        index = self._new_index()
        index.load_state_dict(_entry(state, "index"))
        self._take(index, state)

    def save(self, folder: Path) -> None:
        """Writes the state into files of a folder, with checksums."""
        self.index.save(folder / _INDEX_FILE)
        np.savez(folder / _MORE_FILE, **self._more_state())

    def load(self, folder: Path) -> None:
        """Takes the state of `save()`. Raises, and changes nothing, if a file is damaged or does not fit."""
        index = self._new_index()
        index.load_state_dict(PriorityIndex.load(folder / _INDEX_FILE).state_dict())
        try:
            with np.load(folder / _MORE_FILE, allow_pickle=False) as more:
                self._take(index, more)
        except FileNotFoundError:
            raise MissingDataError(f"{folder / _MORE_FILE} is not there: the saved sampler is incomplete") from None
        except (OSError, ValueError, BadZipFile) as error:
            if isinstance(error, Error):
                raise
            raise CorruptError(f"{folder / _MORE_FILE} is damaged: {error}") from None

    def _more_state(self) -> dict[str, Any]:
        return {"priority_exponent": self.priority_exponent}

    def _take(self, index: PriorityIndex, more: Mapping[str, Any]) -> None:
        self._options["priority_exponent"] = float(_entry(more, "priority_exponent"))
        self.index = index
        self._waiting.clear()
        self._written = b""


def as_slots(index: ArrayLike) -> Slots:
    """Indices as an array of their shape."""
    given = as_array(index, "index")
    if given.dtype.kind not in "iu" and given.size:
        raise UsageError(f"an index must be a whole number, not {given.dtype}")
    return given.astype(np.int64, copy=False)


def _entry(state: Mapping[str, Any], name: str) -> Any:
    try:
        return state[name]
    except (KeyError, TypeError):
        raise CorruptError(f"this is no state of prioritized items of uper: it lacks {name!r}") from None


class SlotItems(Items):
    """Items of a memory that writes its slots in any order."""

    by_slot = True

    def __init__(self, capacity: int, **options: Any) -> None:
        super().__init__(capacity, **options)
        self._ids: Ids = np.full(self.capacity, _NO_ID)

    def put(self, slots: Slots) -> None:
        self._ids[slots] = self.index.put(slots)
        self._written = slots.tobytes()

    def keep(self, count: int) -> None:
        filled = self._ids != _NO_ID
        self._drop(np.flatnonzero(filled[count:]) + count)
        missing = np.flatnonzero(~filled[:count])
        if missing.size:
            self.put(missing)

    def clear(self) -> None:
        self._drop(np.flatnonzero(self._ids != _NO_ID))

    def _drop(self, slots: Slots) -> None:
        self.index.drop(slots)
        self._ids[slots] = _NO_ID

    def ids(self, slots: Slots) -> Ids:
        return self._ids[slots]

    def _more_state(self) -> dict[str, Any]:
        return super()._more_state() | {"ids": self._ids.copy()}

    def _take(self, index: PriorityIndex, more: Mapping[str, Any]) -> None:
        ids = np.asarray(_entry(more, "ids"))
        if ids.shape != self._ids.shape or ids.dtype != np.uint64:
            raise CorruptError(f"this state lacks the ids of {self.capacity:,} slots")
        filled = np.flatnonzero(ids != _NO_ID)
        try:
            index.priority(ids[filled])  # raises if one is not live
        except UsageError:
            filled = filled[:0]
        if len(filled) != len(index) or not np.array_equal(index.slots(ids[filled]), filled):
            raise CorruptError("this state is damaged: its ids are not those of its items")
        super()._take(index, more)
        self._ids = ids.copy()


class RingItems(Items):
    """Items of a memory that overwrites the oldest first: slot 0, 1, ..., capacity - 1, 0, ..."""

    by_slot = False

    def put(self, slots: Slots) -> None:
        following = (np.arange(len(slots)) + self.index.next_id) % self.capacity
        if not np.array_equal(slots, following):
            raise UsageError(f"index {_first_difference(slots, following)} was written, but a ring of "
                             f"{self.capacity:,} continues at {self.index.next_id % self.capacity}: use by_slot=True, "
                             "with the proportional selector, for memories that write in another order")
        self.index.add(len(slots))
        self._written = slots.tobytes()

    def keep(self, count: int) -> None:
        missing = count - len(self)
        if missing < 0:
            raise UsageError(f"the memory has {count:,} items but its ring of priorities {len(self):,}: use "
                             "by_slot=True for memories that drop items")
        self.put((np.arange(missing) + self.index.next_id) % self.capacity)

    def clear(self) -> None:
        self.index.add(-self.index.next_id % self.capacity)  # the next item goes into slot 0 again
        self.index.evict_before(self.index.next_id)

    def ids(self, slots: Slots) -> Ids:
        last = self.index.next_id - 1
        ids = last - (last - slots) % self.capacity
        return np.where(ids >= self.index.first_id, ids.astype(np.uint64), _NO_ID)


def _first_difference(slots: Slots, expected: Slots) -> int:
    return int(slots[np.flatnonzero(slots != expected)[0]])
