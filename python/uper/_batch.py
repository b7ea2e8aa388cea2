"""A batch of transitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uper.errors import UsageError

if TYPE_CHECKING:
    from uper.torch import TorchBatch


class Batch(Mapping[str, Any]):
    """A batch of `Replay.sample()`: one array per field, by attribute or by key, and for each row

    - `ids` (uint64): for `set_priorities()`,
    - `probabilities` (float64): of that draw, exactly,
    - `weights` (float32): importance weights,
    - `masks` (bool, [batch, members]): the members that learn from the row; only with members > 1.

    Observations of a Dict space are dicts of arrays.
    """

    __slots__ = ("_arrays", "_mask_bits", "_out", "_tree", "ids", "members", "probabilities", "weights")

    ids: NDArray[np.uint64]
    probabilities: NDArray[np.float64]
    weights: NDArray[np.float32]

    def __init__(self, arrays: dict[str, Any], tree: dict[str, Any], members: int, ids: NDArray[np.uint64],
                 probabilities: NDArray[np.float64], weights: NDArray[np.float32],
                 mask_bits: NDArray[np.uint64] | None, out: tuple[Any, ...]) -> None:
        self._arrays = arrays  # by the name of the field
        self._tree = tree  # as the user sees them: dict observations are joined
        self._mask_bits = mask_bits
        self._out = out  # in the order of the C++ code
        self.members = members
        self.ids = ids
        self.probabilities = probabilities
        self.weights = weights

    @property
    def masks(self) -> NDArray[np.bool_]:
        """[batch, members]: whether a member learns from a row. All true for one member."""
        if self._mask_bits is None:
            return np.ones((len(self.ids), 1), dtype=bool)
        bits = np.arange(self.members, dtype=np.uint64)
        return (self._mask_bits[:, None] >> bits & np.uint64(1)).astype(bool)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._tree[name]
        except KeyError:
            raise AttributeError(f"this batch has no {name!r}; it has {', '.join(self)}") from None

    def __getitem__(self, name: str) -> Any:
        if name in self._tree:
            return self._tree[name]
        if name in ("ids", "probabilities", "weights", "masks"):
            return getattr(self, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._tree
        yield from ("ids", "probabilities", "weights")
        if self._mask_bits is not None:
            yield "masks"

    def __len__(self) -> int:
        """The number of arrays. The number of rows is `len(batch.ids)`."""
        return len(self._tree) + 3 + (self._mask_bits is not None)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} {value.dtype}{list(value.shape)}" for name, value in self._arrays.items())
        return f"<uper.Batch of {len(self.ids)}: {arrays}>"

    def torch(self, device: Any = None, pin: bool = False) -> TorchBatch:
        """The same with PyTorch tensors. On the CPU they share the arrays' memory; `pin` copies to pinned memory."""
        try:
            from uper.torch import TorchBatch
        except ImportError as error:
            raise ImportError("Batch.torch() needs PyTorch: pip install 'uper[torch]'") from error
        return TorchBatch(self, device, pin)


def check_out(out: Batch, batch: int, owner: object) -> None:
    """Refuses a batch to be reused that is of another size or memory."""
    if not isinstance(out, Batch):
        raise UsageError(f"out must be a Batch of an earlier sample(), not {type(out).__name__}")
    if len(out.ids) != batch:
        raise UsageError(f"out has {len(out.ids)} rows, but {batch} are to be drawn")
