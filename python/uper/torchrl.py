"""Prioritized replay for TorchRL: a sampler, and a replay buffer that hands it the ids of its samples.

The ids, exact probabilities and refusals are those of `uper.PriorityIndex`; the data stays in TorchRL's storage.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
    from torchrl import data as _data  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError("uper.torchrl needs TorchRL: pip install 'uper[torchrl]'") from error

from uper._fields import as_array
from uper._items import LARGEST_EXPONENT, Items, RingItems, SlotItems, Slots, as_slots
from uper._options import NORMALIZATIONS, ReplayCounters, UpdateCounts, WeightsName, choice, number, whole
from uper.errors import CorruptError, MissingDataError, UsageError

__all__ = ["EmptyError", "Sampler", "TensorDictPrioritizedReplayBuffer"]

_FORMAT = 1
_SETTINGS = "sampler.json"
_MOST_GROWTH = 2**32 - 1  # storages without a bound, as a ListStorage, have more
_REDUCTIONS = {"max": 0, "min": 1, "mean": 2, "median": 3}


class EmptyError(UsageError, RuntimeError):
    """A sample of an empty storage; TorchRL raises RuntimeError for it."""


class Sampler(_data.replay_buffers.samplers.Sampler):  # type: ignore[misc]
    """Draws the items of a TorchRL replay buffer by priority.

    Each sample gets the keys `id` (int64, unique for ever), `probability` (float64, of that draw, exactly), `weight`
    and `priority_weight` (float32, the importance weight; TorchRL's losses read the second).

    Priorities come back by `update_ids(sample["id"], priorities)`, or through the buffer: its
    `update_tensordict_priority(sample)` and `update_priority(index, priority)` name an index only. With the indices
    of a whole drawn batch they count for the items that were drawn. An item that was overwritten since then is left
    alone. Priorities that are NaN, infinite or negative never enter.

    Args:
        capacity: Most items. It grows to that of the storage before the first item.
        importance_exponent: From 0 (all weights 1) over 1 (the bias of the draws is undone) to 10. It may be set at
            any time, also by TorchRL's schedulers.
        weights: Divided by the largest of the batch, by the largest that any item could get, or not at all.
        by_slot: Whether the writer may write in any order. False is for RoundRobinWriter only. The default is True
            with the proportional selector; the others need False.
        reduction: Of several priorities of one item: "max", "min", "mean" or "median".
        prefix: Put before the keys id, probability and weight, for data that has keys of these names.
        options: selector, priority_exponent, uniform_mix, stratified, initial_priority, largest_priority_decay and
            seed, as for `uper.PriorityIndex`. Draws follow this seed, not the buffer's generator.
    """

    def __init__(self, capacity: int, *, importance_exponent: float = 0.4, weights: WeightsName = "batch_max",
                 by_slot: bool | None = None, reduction: str = "max", prefix: str = "", **options: Any) -> None:
        choice(weights, "weights", NORMALIZATIONS)
        choice(reduction, "reduction", _REDUCTIONS)
        if by_slot is None:
            by_slot = options.get("selector", "proportional") == "proportional"
        self.importance_exponent = importance_exponent
        self.weights = weights
        self.reduction = reduction
        self.id_key = prefix + "id"
        self._prefix = prefix
        self._options = options
        self._kind: Callable[..., Items] = SlotItems if by_slot else RingItems
        self._items: Items = self._kind(capacity, **options)
        self._inner: tuple[int, ...] | None = None  # sides of the storage after the first, if it has several
        self._marked: Any = None  # the index of the last mark_update(), which add() and extend() repeat

    # Settings

    @property
    def importance_exponent(self) -> float:
        return self._importance_exponent

    @importance_exponent.setter
    def importance_exponent(self, value: float) -> None:
        self._importance_exponent = number(value, "importance_exponent", 0, LARGEST_EXPONENT)

    @property
    def priority_exponent(self) -> float:
        """May be set at any time; that takes time proportional to the capacity."""
        return self._items.priority_exponent

    @priority_exponent.setter
    def priority_exponent(self, value: float) -> None:
        self._items.priority_exponent = value

    alpha = priority_exponent  # TorchRL's names
    beta = importance_exponent

    @property
    def capacity(self) -> int:
        return self._items.capacity

    @property
    def counters(self) -> ReplayCounters:
        return self._items.index.counters

    @property
    def default_priority(self) -> float:
        """The priority that a new item would get now."""
        return self._items.index.largest_priority

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    # Called by the buffer

    def sample(self, storage: Any, batch_size: int) -> tuple[Any, dict[str, torch.Tensor]]:
        """Indices of the storage, and what is known of each draw."""
        self._follow(storage)
        if len(self._items) == 0:
            raise EmptyError("cannot sample from an empty storage: add items first")
        slots, drawn = self._items.draw(batch_size, self._importance_exponent, self.weights)
        weight = torch.from_numpy(drawn.weights)
        info = {self.id_key: torch.from_numpy(drawn.ids.astype(np.int64)),
                self._prefix + "probability": torch.from_numpy(drawn.probabilities),
                self._prefix + "weight": weight, "priority_weight": weight}
        index = torch.from_numpy(slots)
        return index if self._inner is None else torch.unravel_index(index, storage.shape), info

    def add(self, index: Any) -> None:
        """The writer wrote one item there, or declined (None)."""
        self.extend(index)

    def extend(self, index: Any) -> None:
        """The writer wrote items there in this order. It declined where the index is -1."""
        if index is self._marked:
            self._marked = None  # The writer has called mark_update() with it already.
        elif index is not None:
            self._put(index)

    def mark_update(self, index: Any, *, storage: Any = None) -> None:
        """The data at these indices was written, maybe by another buffer of this storage: these are new items."""
        self._fit(storage)
        self._put(index)
        self._marked = index

    def update_priority(self, index: Any, priority: Any, *, storage: Any = None) -> UpdateCounts:
        """Sets priorities by index (see the class); returns how many were (updated, evicted, invalid)."""
        self._follow(storage)
        slots = self._slots(index)
        priorities = as_array(priority, "priority")
        if priorities.size == 1:
            priorities = np.broadcast_to(priorities.reshape(()), slots.shape)
        written = slots >= 0
        if not written.all():
            slots, priorities = slots[written], priorities.reshape(-1)[written]
        return self._items.update(slots, priorities)

    def update_ids(self, ids: Any, priorities: Any) -> UpdateCounts:
        """Sets priorities by the `id` of samples; returns how many were (updated, evicted, invalid).

        Items that are gone, and priorities that are NaN, infinite or negative, change nothing.
        """
        return self._items.update_ids(ids, priorities)

    def _put(self, index: Any) -> None:
        slots = self._slots(index)
        self._items.put(slots if slots.min(initial=0) >= 0 else slots[slots >= 0])

    def _slots(self, index: Any) -> Slots:
        """Places in the order of memory, from what TorchRL calls an index."""
        if isinstance(index, tuple):
            index = torch.stack(index, -1)
        given = as_slots(index)
        if self._inner is None or given.ndim < 2:
            return given.reshape(-1)
        sides = np.array([math.prod(self._inner[place:]) for place in range(len(self._inner) + 1)])
        slots: Slots = given.reshape(-1, len(sides)) @ sides
        return slots

    def _follow(self, storage: Any) -> None:
        """Takes over what the storage holds, if not all of it was written through its buffers."""
        self._fit(storage)
        if storage is None or len(storage) == len(self._items):
            return
        if len(storage) > self.capacity:
            raise UsageError(f"the storage has {len(storage):,} items, but this sampler can hold {self.capacity:,}: "
                             "make it with that capacity")
        self._items.keep(len(storage))

    def _fit(self, storage: Any) -> None:
        """Learns the shape of the storage, and grows to it before the first item."""
        if getattr(storage, "ndim", 1) > 1 and storage.shape is not None:
            self._inner = tuple(storage.shape[1:])
        if storage is not None and self.counters.added == 0:
            self._grow(storage.max_size)

    def _grow(self, capacity: int) -> None:
        if self.capacity < capacity < _MOST_GROWTH:
            self._items = self._kind(capacity, **self._options)

    # State

    def _empty(self) -> None:
        self._items.clear()
        self._marked = None

    def state_dict(self) -> dict[str, Any]:
        """Everything but the samples that wait for an update by index. Only numbers, text and tensors."""
        items = self._items.state_dict()
        index = items["index"] | {"state": torch.frombuffer(bytearray(items["index"]["state"]), dtype=torch.uint8)}
        ids = {"ids": torch.from_numpy(items["ids"].view(np.int64))} if "ids" in items else {}
        return {"format": _FORMAT, "capacity": self.capacity, "importance_exponent": self._importance_exponent,
                "items": items | ids | {"index": index}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of a sampler with the same options. Raises, and changes nothing, if it does not fit."""
        exponent, capacity = self._checked(state_dict)
        try:
            items = dict(state_dict["items"])
            items["index"] = items["index"] | {"state": items["index"]["state"].numpy().tobytes()}
            if "ids" in items:
                items["ids"] = items["ids"].numpy().view(np.uint64)
        except (KeyError, TypeError, AttributeError) as error:
            raise CorruptError(f"this is no state of uper.torchrl.Sampler: {error!r}") from None
        self._load(capacity, exponent, lambda target: target.load_state_dict(items))

    def dumps(self, path: Any) -> None:
        """Writes the state into files of the folder `path`."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        self._items.save(folder)
        settings = {"format": _FORMAT, "capacity": self.capacity, "importance_exponent": self._importance_exponent}
        (folder / _SETTINGS).write_text(json.dumps(settings))

    def loads(self, path: Any) -> None:
        """Takes the state of `dumps()`. Raises, and changes nothing, if a file is damaged or does not fit."""
        folder = Path(path)
        try:
            settings = json.loads((folder / _SETTINGS).read_text())
        except FileNotFoundError:
            raise MissingDataError(f"there is no saved sampler in {folder}") from None
        except ValueError as error:
            raise CorruptError(f"{folder / _SETTINGS} is damaged: {error}") from None
        exponent, capacity = self._checked(settings)
        self._load(capacity, exponent, lambda target: target.load(folder))

    def _checked(self, state: Any) -> tuple[float, int]:
        try:
            known = state["format"] == _FORMAT
            exponent, capacity = state["importance_exponent"], state["capacity"]
        except (KeyError, TypeError) as error:
            raise CorruptError(f"this is no state of uper.torchrl.Sampler: {error!r}") from None
        if not known:
            raise UsageError(f"this state has format {state['format']}; this version of uper reads {_FORMAT}")
        return (number(exponent, "importance_exponent", 0, LARGEST_EXPONENT),
                whole(capacity, "capacity", 1, _MOST_GROWTH))

    def _load(self, capacity: int, importance_exponent: float, fill: Callable[[Items], None]) -> None:
        if capacity != self.capacity and (self.counters.added or capacity < self.capacity):
            raise UsageError(f"this state is of a sampler of {capacity:,} items; this one has {self.capacity:,}")
        loaded = self._kind(capacity, **self._options)
        fill(loaded)
        self._items, self._importance_exponent, self._marked = loaded, importance_exponent, None

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:
            raise UsageError("a sampler with priorities cannot be shared between processes: use "
                             "TensorDictPrioritizedReplayBuffer(sync=False), which keeps it in the learner's")
        state: dict[str, Any] = super().__getstate__()
        return state | {"_marked": None}

    def __repr__(self) -> str:
        return (f"uper.torchrl.Sampler({len(self._items):,} of {self.capacity:,} items, "
                f"priority_exponent={self.priority_exponent:g}, importance_exponent={self._importance_exponent:g})")


# TorchRL's buffers hand priorities only to samplers that are PrioritizedSamplers.
_data.PrioritizedSampler.register(Sampler)


class TensorDictPrioritizedReplayBuffer(_data.TensorDictPrioritizedReplayBuffer):  # type: ignore[misc]
    """TorchRL's class of this name with uper's sampler, whose updates go by the `id` of the sample.

    So an update of any part of a sample, in any order and however late, is about the items that were drawn.

    Args:
        alpha: The priority exponent.
        beta: The importance exponent. `buffer.sampler.importance_exponent` may be set at any time.
        options: Further arguments of `Sampler`, as {"uniform_mix": 0.01, "seed": 7}.
        kwargs: The other arguments of TorchRL's class. `eps` has no effect: `uniform_mix` keeps every item drawable.
    """

    def __init__(self, *, alpha: float, beta: float, options: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        device = kwargs.pop("sampler_device", None)
        if device is not None and torch.device(device).type != "cpu":
            raise UsageError(f"priorities are kept on the CPU; sampler_device={device} is not possible")
        super().__init__(alpha=alpha, beta=beta, **kwargs)
        sampler = Sampler(min(self._storage.max_size, _MOST_GROWTH), priority_exponent=alpha,
                          importance_exponent=beta, reduction=kwargs.get("reduction", "max"), **(options or {}))
        if self._sync:
            self.set_sampler(sampler)
        else:
            self._prioritized_sampler = sampler

    def add(self, data: Any) -> Any:
        """Adds one item. If it is part of an earlier sample, its `id` of then is removed."""
        if self._sync and data is not None and self.sampler.id_key in data.keys():
            data.pop(self.sampler.id_key)
        return super().add(data)

    def update_tensordict_priority(self, data: Any) -> None:
        """Sets the priorities of a sample by its ids, from its entry `priority_key`."""
        sampler = self.prioritized_sampler
        ids = data.get(sampler.id_key, None)
        if ids is None or self._sample_unit is not None:
            super().update_tensordict_priority(data)
            return
        priorities = self._get_priority_vector(data) if data.ndim else torch.as_tensor(self._get_priority_item(data))
        while ids.ndim > priorities.ndim:
            ids = ids[..., 0]
        sampler.update_ids(ids, priorities.reshape(-1))
