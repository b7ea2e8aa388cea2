"""Prioritized replay buffers for Tianshou: classes of the same names, whose priorities are a `uper.PriorityIndex`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from tianshou.data import PrioritizedReplayBuffer as _PrioritizedReplayBuffer
    from tianshou.data import PrioritizedVectorReplayBuffer as _PrioritizedVectorReplayBuffer
    from tianshou.data import ReplayBuffer as _ReplayBuffer
    from tianshou.data import ReplayBufferManager as _ReplayBufferManager
except ImportError as error:
    raise ImportError("uper.tianshou needs Tianshou: pip install 'uper[tianshou]'") from error

from uper._fields import as_array
from uper._items import LARGEST_EXPONENT, SlotItems, Slots, as_slots
from uper._options import ReplayCounters, UpdateCounts, number, whole
from uper.errors import UsageError

__all__ = ["PrioritizedReplayBuffer", "PrioritizedVectorReplayBuffer", "Weights"]

_TINY = 1e-300


class _Priorities(_ReplayBuffer):
    """Priorities for buffers of Tianshou, of any layout."""

    _items: SlotItems
    _alpha: float
    _beta: float
    _weight_norm: bool

    def _make_priorities(self, alpha: float, beta: float, weight_norm: bool, options: dict[str, Any]) -> None:
        self._items = SlotItems(self.maxsize, priority_exponent=alpha, **options)
        self._alpha = self._items.priority_exponent
        self._weight_norm = bool(weight_norm)
        self.set_beta(beta)
        self.options.update(alpha=alpha, beta=beta)

    @property
    def counters(self) -> ReplayCounters:
        return self._items.index.counters

    @property
    def weight(self) -> Weights:
        """weight[index] is priority ** alpha, to which draws are proportional."""
        return Weights(self._items)

    def set_beta(self, beta: float) -> None:
        """Sets the importance exponent, from 0 to 10."""
        self._beta = number(beta, "beta", 0, LARGEST_EXPONENT)

    def set_alpha(self, alpha: float) -> None:
        """Sets the priority exponent; takes time proportional to the size."""
        self._items.priority_exponent = alpha
        self._alpha = self._items.priority_exponent

    def init_weight(self, index: int | NDArray[Any]) -> None:
        """New items are at these indices; each gets the largest priority so far."""
        self._items.put(_slots(index))

    def sample_indices(self, batch_size: int | None) -> NDArray[Any]:
        """Draws indices by priority; gives all indices for 0."""
        if batch_size is None or batch_size <= 0:
            return super().sample_indices(batch_size)
        if len(self) == 0:
            raise UsageError("the buffer is empty: add transitions before sample()")
        return self._items.draw(batch_size, 0, "none")[0]

    def get_weight(self, index: int | NDArray[Any]) -> Any:
        """Importance weights (N P)^-beta of what is at these indices now, before `weight_norm`. 0 if nothing is."""
        mass = self.probability(index) * len(self)
        weight = np.where(mass > 0, np.maximum(mass, _TINY) ** -self._beta, 0.0)
        return weight if np.ndim(index) else float(weight[0])

    def update_weight(self, index: NDArray[Any], new_weight: ArrayLike) -> UpdateCounts:
        """Sets the priorities |new_weight|; returns how many were (updated, evicted, invalid).

        The indices of a sampled batch mean the items that were drawn: one that was overwritten since is left alone.
        """
        return self._items.update(_slots(index), _sizes(new_weight))

    def update_ids(self, ids: ArrayLike, new_weight: ArrayLike) -> UpdateCounts:
        """`update_weight()` by ids, for batches that are split or joined before their update."""
        return self._items.update_ids(ids, _sizes(new_weight))

    def ids(self, index: int | NDArray[Any]) -> NDArray[np.uint64]:
        """The ids, unique for ever, of what is at these indices now. Raises UsageError if nothing is."""
        ids = self._items.ids(_slots(index))
        self._items.index.priority(ids)
        return ids

    def probability(self, index: int | NDArray[Any]) -> NDArray[np.float64]:
        """The exact probabilities that one draw gives what is at these indices now."""
        return self._items.probability(_slots(index))

    def reset(self, keep_statistics: bool = False) -> None:
        """Removes all items. Updates that come later are refused."""
        super().reset(keep_statistics)
        self._items.clear()


class PrioritizedReplayBuffer(_Priorities, _PrioritizedReplayBuffer):  # type: ignore[misc]
    """Tianshou's class of this name with the priorities of uper.

    Args:
        size: Most transitions.
        alpha: Draws are proportional to priority ** alpha.
        beta: Importance exponent: 0 (all weights 1) to 1 (the bias of the draws is undone), at most 10; `set_beta()`
            changes it.
        weight_norm: Divide the weights by the largest of the batch.
        priorities: uniform_mix, stratified, initial_priority and largest_priority_decay, as for `uper.Replay`.
        random_seed: Of the draws.
        kwargs: stack_num, ignore_obs_next, save_only_last_obs and sample_avail, as in Tianshou.
    """

    def __init__(self, size: int, alpha: float, beta: float, weight_norm: bool = True, *,
                 priorities: Mapping[str, Any] | None = None, random_seed: int = 42, **kwargs: Any) -> None:
        _ReplayBuffer.__init__(self, size, random_seed=random_seed, **kwargs)
        self._make_priorities(alpha, beta, weight_norm, {"seed": random_seed, **(priorities or {})})


class PrioritizedVectorReplayBuffer(_Priorities, _PrioritizedVectorReplayBuffer):  # type: ignore[misc]
    """Tianshou's class of this name with the priorities of uper: one index over the rings of all environments.

    The environments may add in any order and number.

    Args:
        total_size: Most transitions of all environments.
        buffer_num: The number of environments.
        Other arguments: those of `PrioritizedReplayBuffer`.
    """

    def __init__(self, total_size: int, buffer_num: int, *, alpha: float, beta: float, weight_norm: bool = True,
                 priorities: Mapping[str, Any] | None = None, random_seed: int = 42, **kwargs: Any) -> None:
        size = -(-total_size // whole(buffer_num, "buffer_num", 1, total_size))
        parts = [_ReplayBuffer(size, random_seed=random_seed, **kwargs) for _ in range(buffer_num)]
        _ReplayBufferManager.__init__(self, parts)
        self._make_priorities(alpha, beta, weight_norm, {"seed": random_seed, **(priorities or {})})

    def set_beta(self, beta: float) -> None:
        """Sets the importance exponent, from 0 to 10."""
        _Priorities.set_beta(self, beta)


class Weights:
    """Reads priority ** alpha by index. `update_weight()` sets priorities."""

    def __init__(self, items: SlotItems) -> None:
        self._items = items

    def __len__(self) -> int:
        return self._items.capacity

    def __getitem__(self, index: int | NDArray[Any]) -> Any:
        mass = self._items.priority(_slots(index)) ** self._items.priority_exponent
        return mass if np.ndim(index) else float(mass[0])


def _slots(index: int | NDArray[Any]) -> Slots:
    return as_slots(index).reshape(-1)


def _sizes(weight: ArrayLike) -> NDArray[Any]:
    sizes: NDArray[Any] = np.abs(as_array(weight, "new_weight")).reshape(-1)
    return sizes
