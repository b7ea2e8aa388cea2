"""Fields of a replay memory: names, shapes and types, and the conversion of what users give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from uper.errors import UsageError

_MOST_FIELDS = 1024


@dataclass(frozen=True)
class Field:
    """One array of each transition."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def format(self) -> str:
        """The element type in the notation of the buffer protocol."""
        return memoryview(np.empty(0, self.dtype)).format

    def convert(self, value: ArrayLike, count: int | None = None) -> NDArray[Any]:
        """The value as an array [n, *shape] of this type; `count`: n."""
        given = as_array(value, self.name)
        if given.dtype != self.dtype:
            if not np.can_cast(given.dtype, self.dtype, "same_kind") and not _is_exact(given, self.dtype):
                raise UsageError(f"{self.name} has type {given.dtype}, which cannot be stored as {self.dtype}")
            given = given.astype(self.dtype)
        if given.shape == self.shape and count in (None, 1):
            given = given[None]
        if given.shape[1:] != self.shape or given.ndim == 0:
            raise UsageError(f"{self.name} has shape {given.shape}; it must be (n, {', '.join(map(str, self.shape))})"
                             .replace(", )", ",)"))
        if count is not None and len(given) != count:
            raise UsageError(f"{self.name} has {len(given)} rows, but others have {count}")
        return np.ascontiguousarray(given)


def _is_exact(given: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Numbers may become whole numbers of another type if nothing is lost (an int64 action of a uint8 field)."""
    if given.dtype.kind not in "iubf" or dtype.kind not in "iub":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.array_equal(given.astype(dtype).astype(given.dtype), given))


def as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """An array of numbers; PyTorch tensors of any device are copied to the CPU."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise UsageError(f"{name} cannot be made an array: {error}") from None
    if given.dtype.kind not in "biufc":
        raise UsageError(f"{name} must be numbers, not {given.dtype}")
    return given


def as_ids(ids: ArrayLike) -> NDArray[np.uint64]:
    """Ids as the C++ code takes them."""
    given = as_array(ids, "ids").reshape(-1)
    if given.size == 0:
        return np.empty(0, np.uint64)
    # NumPy makes a list of int and uint64 an array of floats.
    if given.dtype.kind == "f" and np.all((np.abs(given) < 2**53) & (given == np.floor(given))):
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu":
        raise UsageError(f"ids must be whole numbers, not {given.dtype}")
    if given.dtype.kind == "i" and given.min() < 0:
        raise UsageError(f"ids are never negative, but one is {given.min()}")
    return np.ascontiguousarray(given, np.uint64)


def as_priorities(priorities: ArrayLike, count: int | None = None) -> NDArray[np.float64]:
    """Priorities as the C++ code takes them; a single number counts for all of `count`."""
    given = as_array(priorities, "priorities")
    if given.dtype.kind == "c":
        raise UsageError("priorities must be real numbers")
    if given.ndim == 0 and count is not None:
        given = np.broadcast_to(given, count)
    given = np.ascontiguousarray(given, np.float64).reshape(-1)
    if count is not None and len(given) != count:
        raise UsageError(f"there are {len(given)} priorities for {count} transitions")
    return given


def parse_fields(fields: Mapping[str, tuple[tuple[int, ...] | int, DTypeLike]]) -> tuple[Field, ...]:
    """The fields of a specification {name: (shape, dtype)}."""
    if not isinstance(fields, Mapping) or not fields:
        raise UsageError("fields must be a dict {name: (shape, dtype)} with at least one entry")
    if len(fields) > _MOST_FIELDS:
        raise UsageError(f"there are {len(fields)} fields; at most {_MOST_FIELDS} are possible")
    return tuple(_parse(name, spec) for name, spec in fields.items())


_RESERVED = {"ids", "probabilities", "weights", "masks", "priorities", "torch", "members"}


def _parse(name: str, spec: Any) -> Field:
    if not isinstance(name, str) or not name:
        raise UsageError(f"the name of a field must be text, not {name!r}")
    if name in _RESERVED:
        raise UsageError(f"a field cannot be called {name!r}: a batch has that already")
    try:
        shape, dtype = spec
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(side) for side in shape)
        dtype = np.dtype(dtype).newbyteorder("=")
    except (TypeError, ValueError) as error:
        raise UsageError(f"field {name!r} must be (shape, dtype), as ((4,), 'float32'), not {spec!r}: {error}") from None
    if dtype.kind not in "biufc" or dtype.itemsize > 16:
        raise UsageError(f"field {name!r}: elements must be numbers, not {dtype}")
    if any(side < 1 for side in shape):
        raise UsageError(f"field {name!r}: shape {shape} has a side below 1")
    return Field(name, shape, dtype)
