"""The replay memory for stacked pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from uper._fields import Field, as_array, parse_fields
from uper._options import SelectorName, whole
from uper._replay import Replay
from uper._spaces import space_fields
from uper.errors import UsageError


class FrameReplay(Replay):
    """A `Replay` for stacked pictures, which stores each picture once.

    A million transitions of Atari's [4, 84, 84] observations take 7.3 GB. Observations are given and returned as whole
    stacks. A picture that is already stored is found by its content, so any way of stacking works, and so do reset
    observations that repeat a frame.

    Args:
        capacity: Most transitions. The oldest also leave when their frames must make room.
        frame_shape: Of one picture, uint8.
        stack: Pictures in an observation, 1 to 8.
        stack_axis: Where they are in an observation: 0 for [stack, ...], -1 for [..., stack].
        action: (shape, dtype) of an action.
        fields: Further fields {name: (shape, dtype)}.
        frame_capacity: Pictures in memory. The default suits episodes of at least 64 steps.
        Other arguments: those of `Replay`.
    """

    _kind = "FrameReplay"

    def __init__(self, capacity: int, frame_shape: tuple[int, ...] = (84, 84), stack: int = 4, *,
                 stack_axis: int = 0, action: tuple[tuple[int, ...] | int, DTypeLike] = ((), np.int64),
                 fields: Mapping[str, tuple[tuple[int, ...] | int, DTypeLike]] | None = None,
                 frame_capacity: int | None = None, selector: SelectorName = "proportional",
                 priority_exponent: float = 0.6, uniform_mix: float = 1e-3, stratified: bool = False,
                 initial_priority: float = 1.0, largest_priority_decay: float = 1.0, recency: float | None = None,
                 keep_components: bool = False, rule: str = "info_gain_delta", floor: float = 1e-10,
                 cap: float = 100.0, members: int = 1, mask_probability: float = 1.0, n_step: int = 1,
                 discount: float = 0.99, num_envs: int = 1, seed: int = 0) -> None:
        parsed = parse_fields({"action": action, "reward": ((), np.float32), "discount": ((), np.float32),
                               **(fields or {})})
        options = self._common_options(
            capacity=capacity, selector=selector, priority_exponent=priority_exponent, uniform_mix=uniform_mix,
            stratified=stratified, initial_priority=initial_priority, largest_priority_decay=largest_priority_decay,
            recency=recency, keep_components=keep_components, rule=rule, floor=floor, cap=cap, members=members,
            mask_probability=mask_probability, n_step=n_step, discount=discount, num_envs=num_envs)
        if stack_axis not in (0, -1):
            raise UsageError(f"stack_axis must be 0 or -1, not {stack_axis!r}")
        self._frame_shape = tuple(whole(side, "frame_shape", 1, 2**20) for side in frame_shape)
        self._stack_axis = stack_axis
        depth = whole(stack, "stack", 1, 8)
        # Frames of unfinished transitions must stay, too.
        unfinished = options["num_envs"] * (options["n_step"] + depth + 2)
        default = options["capacity"] + options["capacity"] // 64 + 1024 + unfinished
        chosen = default if frame_capacity is None else whole(frame_capacity, "frame_capacity", unfinished, 2**32 - 2)
        options |= {"frame_bytes": int(np.prod(self._frame_shape, dtype=np.int64)), "stack": depth,
                    "frame_capacity": chosen}
        self._make(parsed, options, whole(seed, "seed", 0, 2**64 - 1))

    @classmethod
    def for_spaces(cls, capacity: int, observation_space: Any, action_space: Any, **options: Any) -> FrameReplay:
        """A memory for pictures of a Box space, uint8 [stack, height, width] (or [height, width, stack] with
        stack_axis=-1)."""
        fields = space_fields(observation_space, action_space)
        shape, dtype = fields.get("obs", ((), None))
        if dtype != np.uint8 or len(shape) < 2:
            raise UsageError("uper.FrameReplay is for pictures of type uint8, [stack, height, width]; use uper.Replay "
                             f"for {observation_space}")
        axis = options.get("stack_axis", 0)
        frame = shape[1:] if axis == 0 else shape[:-1]
        return cls(capacity, frame, shape[axis], action=fields["action"], **options)

    def _make(self, fields: tuple[Field, ...], options: dict[str, Any], seed: int) -> None:
        super()._make(fields, options, seed)
        assert self._steps is not None
        self._steps.stack = Field("obs", (options["stack"], *self._frame_shape), np.dtype(np.uint8))
        self._steps.stack_axis = self._stack_axis

    def _new_stacks(self, n: int) -> tuple[Any, Any]:
        shape = (n, self._options["stack"], *self._frame_shape)
        return np.empty(shape, np.uint8), np.empty(shape, np.uint8)

    def _shown(self, arrays: dict[str, Any], stacks: tuple[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        obs, next_obs = (np.moveaxis(stack, 1, -1) if self._stack_axis == -1 else stack for stack in stacks)
        shown = {"obs": obs, **arrays, "next_obs": next_obs}
        return shown, shown

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one observation in a batch."""
        depth = (self._options["stack"],)
        return depth + self._frame_shape if self._stack_axis == 0 else self._frame_shape + depth

    @property
    def frames_stored(self) -> int:
        """Pictures in memory."""
        return self._core.frames_stored()

    def add_frame(self, frame: ArrayLike) -> int:
        """Stores a picture and returns its id, for `add()`. `step()` does this by itself."""
        given = Field("frame", self._frame_shape, np.dtype(np.uint8)).convert(frame, 1)
        return self._core.add_frame(given)

    def add(self, *, obs: ArrayLike, next_obs: ArrayLike, priorities: ArrayLike | None = None,  # type: ignore[override]
            **fields: ArrayLike) -> NDArray[np.uint64]:
        """Stores transitions whose observations are ids of `add_frame()`: obs and next_obs [n, stack].

        An id of -1 is a picture of zeros.
        """
        arrays, given = self._converted(fields, priorities)
        count = len(next(iter(arrays.values())))
        stacks = np.empty((count, 2, self._options["stack"]), np.uint64)
        for place, ids in enumerate((obs, next_obs)):
            array = as_array(ids, "obs")
            if array.dtype.kind not in "iu" or array.reshape(count, -1).shape != (count, self._options["stack"]):
                raise UsageError(f"obs and next_obs must be frame ids [{count}, {self._options['stack']}]")
            stacks[:, place] = array.reshape(count, -1).astype(np.int64).view(np.uint64)
        first, count = self._core.add_stacks(arrays, given, stacks)
        return np.arange(first, first + count, dtype=np.uint64)

    def _more_layout(self) -> dict[str, Any]:
        return {"frame_shape": self._frame_shape, "stack_axis": self._stack_axis}

    def _restore_layout(self, described: dict[str, Any]) -> None:
        self._frame_shape = tuple(described["frame_shape"])
        self._stack_axis = described["stack_axis"]
