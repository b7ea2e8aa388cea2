"""The replay memories."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from uper import _core
from uper._batch import Batch, check_out
from uper._fields import Field, as_array, as_ids, as_priorities, parse_fields
from uper._options import (AUTORESETS, NORMALIZATIONS, AutoresetName, ReplayCounters, SelectorName, UpdateCounts,
                           WeightsName, buffer_options, check_memory, choice, number, whole)
from uper._rules import COMPONENTS, check_rule
from uper._spaces import space_fields
from uper._steps import StepFields, Tree, flat_fields, per_environment
from uper.errors import CorruptError, UsageError

_FORMAT = 1  # of the description in a saved memory
_MOST_BATCH = 2**31 - 1


class Replay:
    """Transitions of named fields, drawn by priority.

    Ids are 64-bit and never reused, so an update of an item that is gone changes nothing. Priorities that are NaN,
    infinite or negative never enter. Draw probabilities are exact. Equal seeds and calls give equal draws. Any thread
    may call any method: one lock per object guards each call.

    Args:
        capacity: Most transitions; the oldest leave first.
        fields: {name: (shape, dtype)} of one transition. With `obs`, `action`, `reward`, `discount` and `next_obs`
            (as `for_spaces()` makes them) `step()` can fill the memory from vector environments.
        selector: "proportional" to priority ** priority_exponent, "rank" (of the priorities), or "uniform".
        priority_exponent: From 0 (all items of positive priority alike) to 4.
        uniform_mix: Share of draws that are uniform, so that every item can be drawn.
        stratified: One draw in each of `batch` equal parts of the cumulative priorities.
        initial_priority: Priority of new items until a larger one is set; afterwards the largest one.
        largest_priority_decay: Factor on the largest priority at each `set_priorities()`.
        recency: Half-life of the draws' mass in newer items: an item's mass halves with so many of them. None: age does
            not count. A half-life far below the capacity makes adding slower.
        keep_components: Keep the statistics behind each priority (20 bytes per item), so that `set_rule()` can derive
            all priorities anew.
        rule, floor, cap: For `set_components()`: the priority's rule, the floor of A where a rule divides by it, and
            the largest priority. `uper.PRIORITY_RULES` lists the rules.
        members: Ensemble members. Each row then has a mask of the members that learn from it.
        mask_probability: That a member learns from a row.
        n_step, discount, num_envs: For `step()`: steps per transition, factor per step, number of environments.
        seed: Of the draws and masks.
    """

    def __init__(self, capacity: int, fields: Mapping[str, tuple[tuple[int, ...] | int, DTypeLike]], *,
                 selector: SelectorName = "proportional", priority_exponent: float = 0.6, uniform_mix: float = 1e-3,
                 stratified: bool = False, initial_priority: float = 1.0, largest_priority_decay: float = 1.0,
                 recency: float | None = None, keep_components: bool = False, rule: str = "info_gain_delta",
                 floor: float = 1e-10, cap: float = 100.0, members: int = 1, mask_probability: float = 1.0,
                 n_step: int = 1, discount: float = 0.99, num_envs: int = 1, seed: int = 0) -> None:
        parsed = parse_fields(fields)
        options = self._common_options(
            capacity=capacity, selector=selector, priority_exponent=priority_exponent, uniform_mix=uniform_mix,
            stratified=stratified, initial_priority=initial_priority, largest_priority_decay=largest_priority_decay,
            recency=recency, keep_components=keep_components, rule=rule, floor=floor, cap=cap, members=members,
            mask_probability=mask_probability, n_step=n_step, discount=discount, num_envs=num_envs)
        self._make(parsed, options, whole(seed, "seed", 0, 2**64 - 1))

    @staticmethod
    def _common_options(*, keep_components: bool, rule: str, floor: float, cap: float, members: int,
                        mask_probability: float, n_step: int, discount: float, num_envs: int,
                        **buffer: Any) -> dict[str, Any]:
        return buffer_options(**buffer) | {
            "keep_components": bool(keep_components),
            "rule": check_rule(rule),
            "floor": number(floor, "floor", 1e-300, 1e300),
            "cap": number(cap, "cap", 1e-37, 3e38),
            "members": whole(members, "members", 1, 64),
            "mask_probability": number(mask_probability, "mask_probability", 0, 1),
            "n_step": whole(n_step, "n_step", 1, 10_000),
            "discount": number(discount, "discount", 0, 1),
            "num_envs": whole(num_envs, "num_envs", 1, 1_000_000)}

    def _make(self, fields: tuple[Field, ...], options: dict[str, Any], seed: int) -> None:
        self._fields = fields
        self._options = options
        self._seed = seed
        self._steps = StepFields.find(fields, "frame_bytes" in options)
        core_options = options | (self._steps.options() if self._steps else {})
        check_memory(sum(field.bytes for field in fields) * options["capacity"] +
                     options.get("frame_bytes", 0) * options.get("frame_capacity", 0))
        described = [(field.name, list(field.shape), field.format, field.bytes) for field in fields]
        self._core = _core.Memory(described, core_options, seed)

    @classmethod
    def for_spaces(cls, capacity: int, observation_space: Any, action_space: Any, **options: Any) -> Replay:
        """A memory for the spaces of one environment (Gymnasium's `single_observation_space` of a vector).

        Its fields are obs, action, reward, discount and next_obs. Dict observations become a field per entry, and
        `step()`, `reset()` and batches take and give dicts. `options` are those of the constructor.
        """
        return cls(capacity, space_fields(observation_space, action_space), **options)

    # Filling

    def add(self, *, priorities: ArrayLike | None = None, **fields: ArrayLike) -> NDArray[np.uint64]:
        """Stores a batch of finished transitions, [n, ...] per field, and returns their ids.

        New ones get the largest priority so far, or the given `priorities`. Arrays without the leading dimension are
        one transition.
        """
        added = self._core.add(fields, priorities)
        if added is None:
            added = self._core.add(*self._converted(fields, priorities))
        first, count = added
        return np.arange(first, first + count, dtype=np.uint64)

    def _converted(self, fields: Mapping[str, Any],
                   priorities: ArrayLike | None) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64] | None]:
        fields = flat_fields(fields)
        names = {field.name for field in self._fields}
        if missing := [field.name for field in self._fields if field.name not in fields]:
            raise UsageError(f"add() lacks the field {missing[0]!r}; this memory has {', '.join(sorted(names))}")
        if unknown := sorted(set(fields) - names):
            raise UsageError(f"this memory has no field {unknown[0]!r}; it has {', '.join(sorted(names))}")
        arrays: dict[str, NDArray[Any]] = {}
        count = None
        for field in self._fields:
            arrays[field.name] = field.convert(fields[field.name], count)
            count = len(arrays[field.name])
        if priorities is not None:
            priorities = as_priorities(priorities, count)
        return arrays, priorities

    def reset(self, obs: Tree, env_ids: ArrayLike | None = None) -> None:
        """Begins an episode of the environments (all, or `env_ids`) with their first observations, [n, ...]."""
        steps = self._step_fields()
        which = self._environments(env_ids)
        self._core.reset(which, steps.observations(obs, len(which), "obs"))

    def step(self, action: Any, reward: ArrayLike, obs: Tree, terminated: ArrayLike, truncated: ArrayLike, *,
             final_obs: Tree | None = None, env_ids: ArrayLike | None = None,
             autoreset: AutoresetName = "next_step", **extra: ArrayLike) -> NDArray[np.uint64]:
        """Adds one step of the environments and returns the ids of the transitions that it completes.

        The arguments are those of `envs.step(action)`, with one row per environment. Each environment is folded into
        n-step transitions by itself. No transition reaches across a reset. A truncated episode bootstraps.

        Args:
            final_obs: With autoreset "same_step": Gymnasium's info["final_obs"], needed when an episode ended.
            env_ids: The environments of the rows; all if None.
            autoreset: The `autoreset_mode` of the environments: "next_step" (the step after an end is the reset),
                "same_step", or "disabled" (call `reset()` yourself).
            extra: Further fields of the step, if this memory has any.
        """
        steps = self._step_fields()
        which = self._environments(env_ids)
        n = len(which)
        mode = choice(autoreset, "autoreset", AUTORESETS)
        last = None if final_obs is None else steps.final_observations(final_obs, n)
        first, count = self._core.step(
            which, steps.step_arrays(action, extra, n), per_environment(reward, "reward", np.float64, n),
            steps.observations(obs, n, "obs"), per_environment(terminated, "terminated", np.bool_, n),
            per_environment(truncated, "truncated", np.bool_, n), last, mode)
        return np.arange(first, first + count, dtype=np.uint64)

    def _step_fields(self) -> StepFields:
        if self._steps is None:
            raise UsageError("step() and reset() need the fields obs, action, reward, discount and next_obs (see "
                             "Replay.for_spaces); use add() for other fields")
        return self._steps

    def _environments(self, env_ids: ArrayLike | None) -> NDArray[np.uint64]:
        if env_ids is None:
            return np.arange(self._options["num_envs"], dtype=np.uint64)
        given = as_array(env_ids, "env_ids")
        if given.dtype == np.bool_ and given.shape == (self._options["num_envs"],):
            return np.flatnonzero(given).astype(np.uint64)
        if given.dtype.kind not in "iu":
            raise UsageError(f"env_ids must be whole numbers, or a mask of {self._options['num_envs']} bools")
        return as_ids(given)

    # Drawing

    def sample(self, batch: int, *, importance_exponent: float = 0.4, weights: WeightsName = "batch_max",
               out: Batch | None = None) -> Batch:
        """Draws `batch` transitions with replacement.

        Args:
            importance_exponent: From 0 (all weights 1) to 1 (the bias of the draws is undone).
            weights: Divided by the largest of the batch, by the largest that any item could get, or not at all.
            out: An earlier batch of the same size, whose arrays are filled again.
        """
        normalization = NORMALIZATIONS.get(weights)
        if normalization is None:
            normalization = choice(weights, "weights", NORMALIZATIONS)
        if not 0 <= importance_exponent <= 1:
            number(importance_exponent, "importance_exponent", 0, 1)
        if out is None:
            out = self._new_batch(whole(batch, "batch", 1, _MOST_BATCH))
        else:
            check_out(out, batch, self)
        self._core.sample(out._out, importance_exponent, normalization)
        return out

    def gather(self, ids: ArrayLike) -> Batch:
        """The transitions with these ids, without a draw: their probabilities now, weights of 1."""
        which = as_ids(ids)
        batch = self._new_batch(len(which))
        batch.ids[:] = which
        batch.weights[:] = 1
        self._core.read(which, batch.probabilities, True)
        self._core.gather(batch._out)
        return batch

    def _new_batch(self, n: int) -> Batch:
        arrays = {field.name: np.empty((n, *field.shape), field.dtype) for field in self._fields}
        ids, probabilities = np.empty(n, np.uint64), np.empty(n)
        weights = np.empty(n, np.float32)
        masks = np.empty(n, np.uint64) if self._options["members"] > 1 else None
        stacks = self._new_stacks(n)
        out = (*arrays.values(), ids, probabilities, weights, masks, *stacks)
        return Batch(*self._shown(arrays, stacks), self._options["members"], ids, probabilities, weights, masks, out)

    def _new_stacks(self, n: int) -> tuple[Any, Any]:
        return None, None

    def _shown(self, arrays: dict[str, Any], stacks: tuple[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return arrays, self._steps.tree(arrays) if self._steps and self._steps.is_tree else arrays

    # Priorities

    def set_priorities(self, ids: ArrayLike, priorities: ArrayLike) -> UpdateCounts:
        """Sets priorities in order; returns how many entries were (updated, evicted, invalid).

        Entries of items that are gone, and priorities that are NaN, infinite or negative, change nothing.
        """
        counts = self._core.set_priorities(ids, priorities)
        if counts is None:
            which = as_ids(ids)
            counts = self._core.set_priorities(which, as_priorities(priorities, len(which)))
        return UpdateCounts(*counts)

    def set_priority_exponent(self, priority_exponent: float) -> None:
        """Changes the exponent and derives all probabilities anew; takes time proportional to the capacity."""
        self._core.set_priority_exponent(number(priority_exponent, "priority_exponent", 0, 4))
        self._options["priority_exponent"] = float(priority_exponent)

    def priority(self, ids: ArrayLike) -> NDArray[np.float64]:
        """The priorities of items, before the exponent. Raises UsageError if one is gone."""
        return self._read(ids, probabilities=False)

    def probability(self, ids: ArrayLike) -> NDArray[np.float64]:
        """The exact probabilities that one draw gives these items. Raises UsageError if one is gone."""
        return self._read(ids, probabilities=True)

    def _read(self, ids: ArrayLike, probabilities: bool) -> NDArray[np.float64]:
        which = as_ids(ids)
        values = np.empty(len(which))
        self._core.read(which, values, probabilities)
        return values

    # Components of priorities

    def set_components(self, ids: ArrayLike, uncertainty: Any = None, *,
                       td_error: ArrayLike | None = None) -> UpdateCounts:
        """Keeps the statistics behind priorities and sets the priorities by this memory's rule.

        `uncertainty` is what `uper.decompose()` returns, or anything with the entries epistemic, aleatoric,
        target_distance_sq and epistemic_delta; what a rule does not read may be missing. `td_error` is |TD error|.
        """
        which = as_ids(ids)
        rows = np.full((len(which), len(COMPONENTS)), np.nan, np.float32)
        for column, name in enumerate(COMPONENTS):
            value = td_error if name == "td_error" else _entry(uncertainty, name)
            if value is not None:
                rows[:, column] = as_priorities(value, len(which))
        self._need_components()
        rule = self._options["rule"], self._options["floor"], self._options["cap"]
        return UpdateCounts(*self._core.set_components(which, rows, *rule))

    def set_rule(self, rule: str) -> UpdateCounts:
        """Changes the rule and derives the priorities of all items that have components; the others keep theirs."""
        self._need_components()
        counts = self._core.derive_priorities(check_rule(rule), self._options["floor"], self._options["cap"])
        self._options["rule"] = rule
        return UpdateCounts(*counts)

    def components(self, ids: ArrayLike) -> dict[str, NDArray[np.float32]]:
        """The kept statistics of items by name; NaN where there are none."""
        self._need_components()
        which = as_ids(ids)
        rows = np.empty((len(which), len(COMPONENTS)), np.float32)
        self._core.read_components(which, rows)
        return {name: rows[:, column].copy() for column, name in enumerate(COMPONENTS)}

    def _need_components(self) -> None:
        if not self._options["keep_components"]:
            raise UsageError("this memory keeps no components: make it with keep_components=True")

    # State

    def __len__(self) -> int:
        return len(self._core)

    @property
    def capacity(self) -> int:
        return int(self._options["capacity"])

    @property
    def fields(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """{name: (shape, dtype)}, as given to the constructor."""
        return {field.name: (field.shape, field.dtype) for field in self._fields}

    @property
    def memory_bytes(self) -> int:
        """The memory that this replay memory uses once it is full."""
        return self._core.memory_bytes()

    @property
    def first_id(self) -> int:
        """The oldest id in memory."""
        return self._core.first_id

    @property
    def next_id(self) -> int:
        """The id that the next transition will get. The ids in memory are range(first_id, next_id)."""
        return self._core.next_id

    @property
    def largest_priority(self) -> float:
        """The priority that a new transition would get now."""
        return self._core.largest_priority

    @property
    def counters(self) -> ReplayCounters:
        return ReplayCounters(*self._core.counters())

    @property
    def priority_exponent(self) -> float:
        return float(self._options["priority_exponent"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to a file with checksums. The file appears under its name when it is complete."""
        self._core.save(os.fspath(path), self._layout())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Replay:
        """A memory from a file of `save()`. It continues bit for bit. Raises CorruptError if the file is damaged."""
        path = os.fspath(path)
        memory = cls._from_layout(_core.layout_of_file(path), path)
        memory._core.load(path)
        return memory

    def __getstate__(self) -> bytes:
        return self._core.state(self._layout())

    def __setstate__(self, state: bytes) -> None:
        memory = type(self)._from_layout(_core.layout_of_state(state), "the pickled replay memory")
        memory._core.restore(state)
        self.__dict__.update(memory.__dict__)

    def _layout(self) -> bytes:
        fields = [[field.name, field.shape, field.dtype.str] for field in self._fields]
        return json.dumps({"format": _FORMAT, "kind": type(self)._kind, "fields": fields, "options": self._options,
                           "seed": self._seed} | self._more_layout()).encode()

    def _more_layout(self) -> dict[str, Any]:
        return {}

    _kind = "Replay"

    @classmethod
    def _from_layout(cls, layout: bytes, source: str) -> Replay:
        try:
            described = json.loads(layout)
            known = described["format"] == _FORMAT and described["kind"] == cls._kind
            fields = tuple(Field(name, tuple(shape), np.dtype(dtype)) for name, shape, dtype in described["fields"])
            options, seed = described["options"], described["seed"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{source}: the description of the memory cannot be read: {error}") from None
        if not known:
            raise UsageError(f"{source} is a {described.get('kind')} of format {described.get('format')}; this is "
                             f"uper.{cls.__name__}, which reads format {_FORMAT}")
        memory = cls.__new__(cls)
        memory._restore_layout(described)
        memory._make(fields, options, seed)
        return memory

    def _restore_layout(self, described: dict[str, Any]) -> None:
        pass

    def check(self) -> None:
        """Raises InternalError if an invariant of the memory is broken; takes time proportional to the capacity."""
        self._core.check()

    def __repr__(self) -> str:
        return f"<uper.{type(self).__name__}: {len(self):,} of {self.capacity:,} transitions>"


def _entry(uncertainty: Any, name: str) -> Any:
    """A statistic of an Uncertainty or a dict; None if it is not there."""
    if isinstance(uncertainty, Mapping):
        return uncertainty.get(name)
    return getattr(uncertainty, name, None)
