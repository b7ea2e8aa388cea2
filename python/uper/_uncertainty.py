"""Uncertainty and priorities of an ensemble of quantile learners, for NumPy arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uper import _core
from uper._fields import as_array
from uper._options import number
from uper._rules import check_rule
from uper.errors import UsageError

Array = NDArray[np.float64]


class Uncertainty(NamedTuple):
    """The parts of the uncertainty of Q(s, a), each [batch]. All but `mean` are at least 0.

    total = epistemic + aleatoric, total_delta = epistemic_delta + aleatoric.
    """

    mean: Array  # Q
    epistemic: Array  # E: disagreement of the members
    aleatoric: Array  # A: spread of the mean distribution
    target_distance_sq: Array  # squared distance of the mean target to Q
    epistemic_delta: Array  # E and the distance to the target
    total: Array  # U
    total_delta: Array


def decompose(online: ArrayLike, target: ArrayLike | None = None, reward: ArrayLike | None = None,
              discount: ArrayLike | None = None, *, scalar_target: ArrayLike | None = None) -> Uncertainty:
    """The uncertainty of the taken actions' values.

    Args:
        online: Quantiles of the online network, [batch, members, quantiles].
        target: Quantiles of the target network for the next actions, of the same shape. Member k's target is
            reward + discount * target[:, k].
        reward, discount: [batch]; discount is 0 after a termination.
        scalar_target: [batch], in place of the three: one number is the target of all members.

    Without any target the fields that need one are NaN.
    """
    call = _Call(online, target, reward, discount, scalar_target)
    out = np.empty((7, len(call.reward)))
    call.function("decompose")(*call.arguments, out)
    result = Uncertainty(*out)
    if not call.has_target:
        for field in (result.target_distance_sq, result.epistemic_delta, result.total_delta):
            field[:] = np.nan
    return result


def priorities(online: ArrayLike, target: ArrayLike, reward: ArrayLike, discount: ArrayLike,
               rule: str = "info_gain_delta", *, td_error: ArrayLike | None = None, floor: float = 1e-10,
               cap: float = 100.0) -> NDArray[np.float64]:
    """The priorities of a batch by a rule of `uper.PRIORITY_RULES`; arguments as for `decompose()`.

    The default is UPER: 1/2 ln(1 + E_delta / A). `floor` is added to A where a rule divides by it; no priority is
    larger than `cap`. `td_error` [batch] stands for the mean over members of |target - Q_k|. A result is NaN if the
    inputs are; a replay memory refuses and counts it.
    """
    call = _Call(online, target, reward, discount, None)
    out = np.empty(len(call.reward))
    errors = None if td_error is None else _row(td_error, "td_error", len(out))
    call.function("priorities")(*call.arguments, check_rule(rule), errors, number(floor, "floor", 1e-300, 1e300),
                                number(cap, "cap", 1e-37, 3e38), out)
    return out


class _Call:
    """Checked arrays for the C++ code."""

    def __init__(self, online: ArrayLike, target: ArrayLike | None, reward: ArrayLike | None,
                 discount: ArrayLike | None, scalar_target: ArrayLike | None) -> None:
        theta = _quantiles(online, "online", None)
        batch = len(theta)
        self.has_target = target is not None or scalar_target is not None
        if scalar_target is not None:
            if target is not None or reward is not None or discount is not None:
                raise UsageError("give either target, reward and discount, or scalar_target")
            reward, discount = scalar_target, np.zeros(batch)
        elif target is not None:
            if reward is None or discount is None:
                raise UsageError("a target needs reward and discount")
            target = _quantiles(target, "target", theta)
        else:
            reward, discount = np.zeros(batch), np.zeros(batch)
        self.reward = _row(reward, "reward", batch)
        self._dtype = theta.dtype
        self.arguments = (theta, target, self.reward, _row(discount, "discount", batch), theta.shape[1], theta.shape[2])

    def function(self, name: str) -> Any:
        return getattr(_core, f"{name}_{self._dtype}")


def _quantiles(value: ArrayLike, name: str, like: NDArray[Any] | None) -> NDArray[Any]:
    array = as_array(value, name)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if array.ndim != 3 or 0 in array.shape:
        raise UsageError(f"{name} has shape {array.shape}; it must be [batch, members, quantiles]")
    if like is not None:
        if array.shape != like.shape:
            raise UsageError(f"{name} has shape {array.shape}, but online has {like.shape}")
        array = array.astype(like.dtype, copy=False)
    return np.ascontiguousarray(array)


def _row(value: ArrayLike, name: str, batch: int) -> NDArray[np.float64]:
    array = as_array(value, name)
    if array.dtype.kind == "c":
        raise UsageError(f"{name} must be real numbers")
    if array.ndim == 0:
        array = np.broadcast_to(array, batch)
    if array.shape == (batch, 1):
        array = array[:, 0]
    if array.shape != (batch,):
        raise UsageError(f"{name} has shape {array.shape}; it must have one entry per row: ({batch},)")
    return np.ascontiguousarray(array, np.float64)
