"""Replay buffers of Stable-Baselines3 over `uper.Replay`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common import buffers
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from uper._batch import Batch
from uper._fields import as_ids, as_priorities
from uper._options import NORMALIZATIONS, UpdateCounts, WeightsName, choice, number, whole
from uper._frame_replay import FrameReplay
from uper._replay import Replay
from uper.errors import OutOfMemoryError, UsageError

_REPLAY_OPTIONS = ("selector", "priority_exponent", "uniform_mix", "stratified", "initial_priority",
                   "largest_priority_decay", "recency", "members", "mask_probability")
_MOST_STACK = 8  # pictures in an observation of a FrameReplay


class ReplayBufferSamples(NamedTuple):
    """A batch of `ReplayBuffer.sample()`: the fields of Stable-Baselines3's samples, and those of a draw."""

    observations: Any  # a tensor, or a dict of tensors
    actions: Tensor  # [batch, action_dim]
    next_observations: Any
    dones: Tensor  # [batch, 1]: 1 where nothing follows; a time-out is 0
    rewards: Tensor  # [batch, 1]
    discounts: Tensor | None  # [batch, 1], only with n_steps > 1
    weights: Tensor  # [batch, 1]: importance weights
    ids: NDArray[np.uint64]  # [batch], for set_priorities()
    probabilities: NDArray[np.float64]  # [batch]: of each draw, exactly
    masks: Tensor | None  # [batch, members] of bool, only with members > 1

    def factors(self, gamma: float) -> Tensor:
        """[batch, 1]: the factor on the value of the next observations; 0 where nothing follows."""
        return (1 - self.dones) * (gamma if self.discounts is None else self.discounts)


class ReplayBuffer(buffers.ReplayBuffer):
    """A replay buffer of Stable-Baselines3 over `uper.Replay`.

    Pass it to an algorithm as `replay_buffer_class`, with options in `replay_buffer_kwargs`. Everything is stored in
    `replay`, a `uper.Replay` or `uper.FrameReplay`; there are no arrays `observations`, `actions` and so on.

    Args:
        buffer_size, observation_space, action_space, device, n_envs: As in Stable-Baselines3, which passes them.
        optimize_memory_usage: Store each picture once; for stacked pictures of type uint8 only.
        handle_timeout_termination: Bootstrap where an episode ran out of time. Works with optimize_memory_usage, too.
        importance_exponent: Of the weights: a number, or (from, to) over the `progress` of training.
        weights: As in `Replay.sample()`.
        n_steps, gamma: Steps of reward in a transition, and the discount per step. A VecNormalize normalizes the sum.
        frame_stack: Pictures in an observation, with optimize_memory_usage. By default channels in multiples of three
            are color pictures, and any others are gray ones.
        frame_capacity: Pictures in memory, with optimize_memory_usage.
        seed: Of the draws and masks; by default a draw from NumPy's global generator, which the model seeds.
        replay_options: selector, priority_exponent, uniform_mix, stratified, initial_priority, largest_priority_decay,
            recency, members and mask_probability of `uper.Replay`.
    """

    replay: Replay
    progress: float  # of training, from 0 to 1; training loops set it

    def __init__(self, buffer_size: int, observation_space: spaces.Space[Any], action_space: spaces.Space[Any],
                 device: torch.device | str = "auto", n_envs: int = 1, optimize_memory_usage: bool = False,
                 handle_timeout_termination: bool = True, *,
                 importance_exponent: float | tuple[float, float] = (0.4, 1.0), weights: WeightsName = "batch_max",
                 n_steps: int = 1, gamma: float = 0.99, frame_stack: int | None = None,
                 frame_capacity: int | None = None, seed: int | None = None, **replay_options: Any) -> None:
        self._check_space(observation_space)
        buffers.BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)  # rows of n_envs transitions
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        self.progress = 0.0
        self.importance_exponent = _range(importance_exponent, "importance_exponent")
        choice(weights, "weights", NORMALIZATIONS)
        self._weights: WeightsName = weights
        self.n_steps = whole(n_steps, "n_steps", 1, 10_000)
        if unknown := sorted(set(replay_options) - set(_REPLAY_OPTIONS)):
            raise UsageError(f"uper.sb3.{type(self).__name__} has no option {unknown[0]!r}; those of uper.Replay that "
                             f"it takes are {', '.join(_REPLAY_OPTIONS)}")
        self._action_field = ((self.action_dim,), np.dtype(self._maybe_cast_dtype(action_space.dtype)))
        self._frames = _FrameLayout(observation_space, frame_stack) if optimize_memory_usage else None
        self._replay_options = {**replay_options, "n_step": n_steps, "discount": gamma if n_steps > 1 else 1.0,
                                "num_envs": n_envs}
        self._frame_capacity, self._seed = frame_capacity, seed
        self._drawn: list[NDArray[np.uint64]] | None = None
        self._first_id = 0  # of `replay` among all ids of this buffer
        self._empty()

    def _check_space(self, space: spaces.Space[Any]) -> None:
        if isinstance(space, spaces.Dict):
            raise UsageError("uper.sb3.ReplayBuffer stores one array per observation; use uper.sb3.DictReplayBuffer "
                             "for Dict observations")

    def _empty(self) -> None:
        """Makes a new memory."""
        seed = int(np.random.randint(2**63 - 1)) if self._seed is None else self._seed
        capacity = self.buffer_size * self.n_envs
        try:
            if self._frames:
                self.replay = FrameReplay(capacity, self._frames.frame, self._frames.depth, action=self._action_field,
                                          frame_capacity=self._frame_capacity, seed=seed, **self._replay_options)
            else:
                self.replay = Replay(capacity, self._fields(), seed=seed, **self._replay_options)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(f"buffer_size={capacity:,} is too much: {error} (optimize_memory_usage=True in "
                                   "Stable-Baselines3)") from None
        self.pos, self.full = 0, False
        self._newest: Any = None  # the observations after the last step, if steps are folded
        self._ended = np.ones(self.n_envs, bool)

    def _fields(self) -> dict[str, Any]:
        observations = self._observation_fields()
        return {**observations, "action": self._action_field, "reward": ((), np.float32), "discount": ((), np.float32),
                **{"next_" + name: field for name, field in observations.items()}}

    def _observation_fields(self) -> dict[str, Any]:
        return {"obs": (self.obs_shape, self.observation_space.dtype)}

    # Filling

    def add(self, obs: Any, next_obs: Any, action: NDArray[Any], reward: NDArray[Any], done: NDArray[Any],
            infos: list[dict[str, Any]]) -> None:
        """Stores one step of all environments. `next_obs` has the last observation where an episode has ended."""
        obs, next_obs = self._rows(obs, "obs"), self._rows(next_obs, "next_obs")
        action = self._array(action, "action", self._action_field[0])
        reward = self._array(reward, "reward", ())
        done = self._array(done, "done", ()).astype(bool)
        terminated = self._terminated(done, infos)
        if self._frames or self.n_steps > 1:
            self._fold(obs, next_obs, action, reward, done, terminated)
        else:
            discount = np.subtract(1, terminated, dtype=np.float32)
            self.replay.add(action=action, reward=reward.astype(np.float32), discount=discount,
                            **_named(obs, "obs"), **_named(next_obs, "next_obs"))
        self.pos = self.replay.next_id // self.n_envs % self.buffer_size
        self.full = len(self.replay) == self.replay.capacity

    def _terminated(self, done: NDArray[np.bool_], infos: list[dict[str, Any]]) -> NDArray[np.bool_]:
        """Which environments have ended otherwise than by a time-out."""
        if len(infos) != self.n_envs:
            raise UsageError(f"add() got {len(infos)} infos, but this buffer is for {self.n_envs} environments "
                             "(n_envs)")
        cut = [bool(info.get("TimeLimit.truncated", False)) for info in infos]
        return done & ~np.array(cut) if self.handle_timeout_termination and True in cut else done

    def _fold(self, obs: Any, next_obs: Any, action: NDArray[Any], reward: NDArray[Any], done: NDArray[np.bool_],
              terminated: NDArray[np.bool_]) -> None:
        """Adds a step to the episodes under way. One that was reset from outside is seen by its observation."""
        begins = self._ended if self._newest is None else self._ended | _differ(obs, self._newest)
        if begins.any():
            which = np.flatnonzero(begins)
            self.replay.reset(_take(obs, which), which)
        self.replay.step(action, reward, next_obs, terminated, done & ~terminated, autoreset="disabled")
        self._newest, self._ended = _copy(next_obs), done

    def _rows(self, obs: Any, name: str) -> Any:
        """Observations as the memory stores them: an array, or a dict of arrays."""
        rows = self._array(obs, name, self.obs_shape)
        return self._frames.stacks(rows) if self._frames else rows

    def _array(self, value: Any, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array [n_envs, *shape]."""
        array = np.asarray(value)
        n = self.n_envs
        if array.shape == (n, *shape):
            return array
        if array.size == n * math.prod(shape) and (n == 1 or len(array) == n):
            return array.reshape(n, *shape)
        raise UsageError(f"add() got {name} of shape {array.shape}; this buffer stores {(n, *shape)}, for {n} "
                         "environments (n_envs)")

    def reset(self) -> None:
        """Drops all transitions. Updates with ids from before still change nothing."""
        first_id = self._first_id + self.replay.next_id
        self._empty()
        self._first_id = first_id

    @property
    def members(self) -> int:
        return int(self._replay_options.get("members", 1))

    def size(self) -> int:
        """The number of stored rows of n_envs transitions each."""
        return len(self.replay) // self.n_envs

    @property
    def dones(self) -> NDArray[np.float32]:  # type: ignore[override]
        """Zeros. With optimize_memory_usage `learn()` marks here that an episode was cut; `add()` sees that itself."""
        return np.zeros((self.buffer_size, self.n_envs), np.float32)

    # Drawing

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:  # type: ignore[override]
        """Draws transitions with replacement; `env` normalizes them."""
        batch = self.replay.sample(batch_size, importance_exponent=self.importance_exponent_now,
                                   weights=self._weights)
        samples = self._samples(batch, env)
        if self._drawn is not None:
            self._drawn.append(samples.ids)
        return samples

    @property
    def importance_exponent_now(self) -> float:
        """The importance exponent at the present `progress`."""
        first, last = self.importance_exponent
        return first + (last - first) * min(max(self.progress, 0.0), 1.0)

    def _get_samples(self, batch_inds: NDArray[Any],  # type: ignore[override]
                     env: VecNormalize | None = None) -> ReplayBufferSamples:
        """The transitions with these ids, without a draw."""
        return self._samples(self.replay.gather(as_ids(batch_inds) - np.uint64(self._first_id)), env)

    def _samples(self, batch: Batch, env: VecNormalize | None) -> ReplayBufferSamples:
        discount = batch["discount"].reshape(-1, 1)
        ends = 1 - discount if self.n_steps == 1 else (discount == 0).astype(np.float32)
        return ReplayBufferSamples(
            observations=self._observations(batch["obs"], env),
            actions=self._tensor(batch["action"]),
            next_observations=self._observations(batch["next_obs"], env),
            dones=self._tensor(ends),
            rewards=self._tensor(self._normalize_reward(batch["reward"].reshape(-1, 1), env)),
            discounts=None if self.n_steps == 1 else self._tensor(discount),
            weights=self._tensor(batch.weights.reshape(-1, 1)),
            ids=batch.ids + np.uint64(self._first_id) if self._first_id else batch.ids,
            probabilities=batch.probabilities,
            masks=self._tensor(batch.masks) if batch.members > 1 else None)

    def _observations(self, rows: Any, env: VecNormalize | None) -> Any:
        if self._frames:
            rows = self._frames.observations(rows)
        return self._tensor(self._normalize_obs(rows, env))

    def _tensor(self, array: Any) -> Tensor:
        """Shares the memory of the array on the CPU: every draw has arrays of its own."""
        tensor = torch.from_numpy(array)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)

    # Priorities

    def set_priorities(self, ids: ArrayLike, priorities: ArrayLike) -> UpdateCounts:
        """Sets priorities in order, as `Replay.set_priorities()`; returns how many were (updated, evicted, invalid)."""
        if not self._first_id:
            return self.replay.set_priorities(ids, priorities)
        which = as_ids(ids)
        values = as_priorities(priorities, len(which))
        known = which >= self._first_id
        counts = self.replay.set_priorities(which[known] - np.uint64(self._first_id), values[known])
        return counts._replace(evicted=counts.evicted + int((~known).sum()))

    def record_draws(self, record: bool = True) -> None:
        """Whether the ids of draws are kept from now on, for `take_draws()`."""
        self._drawn = [] if record else None

    def take_draws(self) -> NDArray[np.uint64]:
        """The ids that were drawn since the last call and are still there, each once."""
        if not self._drawn:
            return np.empty(0, np.uint64)
        ids, self._drawn = np.unique(np.concatenate(self._drawn)), []
        return ids[ids >= self._first_id + self.replay.first_id]


class DictReplayBuffer(ReplayBuffer, buffers.DictReplayBuffer):  # type: ignore[misc]
    """A `ReplayBuffer` for Dict observations. optimize_memory_usage is not possible, as in Stable-Baselines3."""

    def _check_space(self, space: spaces.Space[Any]) -> None:
        if not isinstance(space, spaces.Dict):
            raise UsageError(f"uper.sb3.DictReplayBuffer is for Dict observations, not {space}; use "
                             "uper.sb3.ReplayBuffer")

    def _observation_fields(self) -> dict[str, Any]:
        return {f"obs.{key}": (shape, self.observation_space[key].dtype) for key, shape in self.obs_shape.items()}

    def _rows(self, obs: Any, name: str) -> Any:
        if missing := sorted(set(self.obs_shape) - set(obs)):
            raise UsageError(f"add() got {name} without {missing[0]!r}")
        return {key: self._array(obs[key], f"{name}[{key!r}]", shape) for key, shape in self.obs_shape.items()}

    def _observations(self, rows: Any, env: VecNormalize | None) -> Any:
        normalized: Any = self._normalize_obs(rows, env)
        return {key: self._tensor(array) for key, array in normalized.items()}


class _FrameLayout:
    """How the channels of an observation become the pictures of a FrameReplay."""

    def __init__(self, space: spaces.Space[Any], depth: int | None) -> None:
        if not is_image_space(space, check_channels=False):
            raise UsageError(f"optimize_memory_usage=True is for pictures: a Box of uint8 from 0 to 255 with channels "
                             f"in front or last. Leave it out for {space}")
        assert space.shape is not None
        self._first = is_image_space_channels_first(space)  # type: ignore[arg-type]
        self._shape = space.shape if self._first else (space.shape[-1], *space.shape[:-1])
        channels = self._shape[0]
        if depth is None:
            depth = channels // 3 if channels % 3 == 0 else channels
        if not 1 <= depth <= _MOST_STACK or channels % depth:
            raise UsageError(f"{channels} channels cannot be a stack of {depth} pictures: set frame_stack in "
                             f"replay_buffer_kwargs to a divisor of {channels}, at most {_MOST_STACK}")
        self.depth = depth
        self.frame = (channels // depth, *self._shape[1:])

    def stacks(self, obs: NDArray[Any]) -> NDArray[np.uint8]:
        """[n, stack, *frame] of observations."""
        rows = obs if self._first else np.moveaxis(obs, -1, 1)
        return rows.reshape(len(obs), self.depth, *self.frame)

    def observations(self, stacks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        rows = stacks.reshape(len(stacks), *self._shape)
        return rows if self._first else np.ascontiguousarray(np.moveaxis(rows, 1, -1))


def _range(value: float | tuple[float, float], name: str) -> tuple[float, float]:
    """A number, or (from, to)."""
    first, last = value if isinstance(value, (tuple, list)) and len(value) == 2 else (value, value)
    return number(first, name, 0, 1), number(last, name, 0, 1)


def _named(rows: Any, name: str) -> dict[str, NDArray[Any]]:
    return {f"{name}.{key}": array for key, array in rows.items()} if isinstance(rows, dict) else {name: rows}


def _differ(rows: Any, others: Any) -> NDArray[np.bool_]:
    """[n]: which rows are not the same bytes."""
    pairs = [(rows[key], others[key]) for key in rows] if isinstance(rows, dict) else [(rows, others)]
    return np.array([any(row[i].astype(other.dtype, copy=False).tobytes() != other[i].tobytes() for row, other in pairs)
                     for i in range(len(pairs[0][0]))])


def _take(rows: Any, which: NDArray[np.intp]) -> Any:
    return {key: array[which] for key, array in rows.items()} if isinstance(rows, dict) else rows[which]


def _copy(rows: Any) -> Any:
    return {key: array.copy() for key, array in rows.items()} if isinstance(rows, dict) else rows.copy()
