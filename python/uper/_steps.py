"""The fields of a memory that `step()` fills, and the arrays for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from uper._fields import Field, as_array
from uper.errors import UsageError

Tree = Any  # an array, or a dict of arrays for Dict observations


class StepFields:
    """Which field is what for `step()`."""

    stack: Field | None = None  # of an observation, if frames are stored
    stack_axis = 0

    def __init__(self, fields: tuple[Field, ...], names: dict[str, int], frames: bool) -> None:
        self._fields = fields
        self._names = names
        self._observations = [] if frames else _named(names, "obs")
        self._next_observations = [] if frames else [names["next_" + fields[i].name] for i in self._observations]
        known = {*self._observations, *self._next_observations, names["reward"], names["discount"]}
        self._step = [i for i in range(len(fields)) if i not in known]
        self.is_tree = any("." in fields[i].name for i in range(len(fields)))

    @classmethod
    def find(cls, fields: tuple[Field, ...], frames: bool) -> StepFields | None:
        """None if the fields are not those of steps."""
        names = {field.name: i for i, field in enumerate(fields)}
        observations = _named(names, "obs")
        numbers = all(name in names and fields[names[name]].shape == () and fields[names[name]].dtype in ("f4", "f8")
                      for name in ("reward", "discount"))
        pairs = all("next_" + fields[i].name in names and
                    fields[names["next_" + fields[i].name]].bytes == fields[i].bytes for i in observations)
        complete = numbers and pairs and bool(_named(names, "action")) and (frames or bool(observations))
        return cls(fields, names, frames) if complete else None

    def options(self) -> dict[str, Any]:
        """For the C++ code."""
        return {"observations": self._observations, "next_observations": self._next_observations,
                "steps": self._step, "reward": self._names["reward"], "discount_field": self._names["discount"]}

    def observations(self, obs: Tree, count: int, name: str) -> tuple[NDArray[Any], ...]:
        """The arrays of observations, in the order of the C++ code."""
        if self.stack is not None:
            array = as_array(obs, name)
            if self.stack_axis == -1 and array.ndim > 1:
                array = np.moveaxis(array, -1, 1 if array.ndim == len(self.stack.shape) + 1 else 0)
            return (self.stack.convert(array, count),)
        flat = flat_fields({"obs": obs})
        wanted = [self._fields[i].name for i in self._observations]
        if set(flat) != set(wanted):
            raise UsageError(f"{name} has {', '.join(sorted(flat))}; this memory stores {', '.join(sorted(wanted))}")
        return tuple(self._fields[i].convert(flat[self._fields[i].name], count) for i in self._observations)

    def final_observations(self, final_obs: Tree, count: int) -> tuple[NDArray[Any], ...]:
        """Gymnasium gives an array of objects, which has None for environments that have not ended."""
        if isinstance(final_obs, Mapping):
            final_obs = {key: self._filled(value, f"obs.{key}") for key, value in final_obs.items()}
        else:
            final_obs = self._filled(final_obs, "obs")
        return self.observations(final_obs, count, "final_obs")

    def _filled(self, value: Any, name: str) -> Any:
        if not (isinstance(value, np.ndarray) and value.dtype == object):
            return value
        present = [entry for entry in value if entry is not None]
        if present and isinstance(present[0], Mapping):
            return {key: self._filled(np.array([None if entry is None else entry[key] for entry in value] + [None],
                                               object)[:-1], f"{name}.{key}") for key in present[0]}
        empty = np.zeros_like(np.asarray(present[0])) if present else np.zeros(self._shape_of(name))
        return np.stack([empty if entry is None else np.asarray(entry) for entry in value])

    def _shape_of(self, name: str) -> tuple[int, ...]:
        return self.stack.shape if self.stack is not None else self._fields[self._names[name]].shape

    def step_arrays(self, action: Any, extra: Mapping[str, Any], count: int) -> tuple[NDArray[Any], ...]:
        """The action and further fields of a step, in the order of the C++ code."""
        flat = flat_fields({"action": action, **extra})
        wanted = [self._fields[i].name for i in self._step]
        if set(flat) != set(wanted):
            raise UsageError(f"step() got {', '.join(sorted(flat))}; this memory stores {', '.join(sorted(wanted))}")
        return tuple(self._fields[i].convert(flat[self._fields[i].name], count) for i in self._step)

    def tree(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """The arrays of a batch with dict observations joined."""
        tree: dict[str, Any] = {}
        for name, array in arrays.items():
            *path, last = name.split(".")
            place = tree
            for part in path:
                place = place.setdefault(part, {})
            place[last] = array
        return tree


def _named(names: dict[str, int], name: str) -> list[int]:
    """The fields of this name, or of the entries of a dict of this name."""
    return [i for full, i in names.items() if full == name or full.startswith(name + ".")]


def flat_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Dict observations as one entry per field: {"obs": {"image": x}} becomes {"obs.image": x}."""
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": inner for key, inner in flat_fields(value).items()}
        else:
            flat[name] = value
    return flat


def per_environment(value: ArrayLike, name: str, dtype: DTypeLike, count: int) -> NDArray[Any]:
    """One number per environment."""
    array = np.ascontiguousarray(as_array(value, name), dtype)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.shape != (count,):
        raise UsageError(f"{name} has shape {array.shape}; it must have one entry per environment: ({count},)")
    return array
