"""PyTorch: batches as tensors, priorities from quantiles on any device, the loss and the head of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uper import _ensemble
from uper._options import number
from uper._rules import check_rule
from uper.errors import UsageError

try:
    import torch
except ImportError as error:
    raise ImportError("uper.torch needs PyTorch: pip install 'uper[torch]'") from error
from torch import Tensor, nn

if TYPE_CHECKING:
    from uper._batch import Batch

__all__ = ["EnsembleQuantileHead", "TorchBatch", "Uncertainty", "decompose", "priorities", "quantile_huber_loss"]


class TorchBatch(Mapping[str, Any]):
    """A `uper.Batch` with tensors, by attribute or by key: what `Batch.torch()` returns.

    On the CPU the tensors share the memory of the batch, so `sample(out=batch)` overwrites both. `masks` are bool
    [batch, members]. `ids` stay the NumPy array: `set_priorities()` works in host memory, and PyTorch has few
    operations on uint64.
    """

    __slots__ = ("_tree", "ids", "masks", "probabilities", "weights")

    ids: NDArray[np.uint64]
    probabilities: Tensor
    weights: Tensor
    masks: Tensor

    def __init__(self, batch: Batch, device: torch.device | str | None = None, pin: bool = False) -> None:
        if pin and not torch.cuda.is_available():
            raise UsageError("pin=True needs a GPU that PyTorch can use, and there is none: leave pin out")
        place = None if device is None else torch.device(device)
        self.ids = batch.ids
        self.probabilities = _tensor(batch.probabilities, "probabilities", place, pin)
        self.weights = _tensor(batch.weights, "weights", place, pin)
        self.masks = _tensor(batch.masks, "masks", place, pin)
        names = [name for name in batch if name not in self.__slots__]
        self._tree = {name: _tensors(batch[name], name, place, pin) for name in names}

    def __getattr__(self, name: str) -> Any:
        if name == "_tree":  # not made yet: copy and pickle look before __init__
            raise AttributeError(name)
        try:
            return self._tree[name]
        except KeyError:
            raise AttributeError(f"this batch has no {name!r}; it has {', '.join(self)}") from None

    def __getitem__(self, name: str) -> Any:
        if name in self._tree:
            return self._tree[name]
        if name in self.__slots__[1:]:
            return getattr(self, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._tree
        yield from self.__slots__[1:]

    def __len__(self) -> int:
        """The number of arrays. The number of rows is `len(batch.ids)`."""
        return len(self._tree) + 4

    def __repr__(self) -> str:
        return f"<uper.torch.TorchBatch of {len(self.ids)} on {self.weights.device}: {', '.join(self._tree)}>"


def _tensors(value: Any, name: str, device: torch.device | None, pin: bool) -> Any:
    if isinstance(value, dict):
        return {key: _tensors(inner, f"{name}.{key}", device, pin) for key, inner in value.items()}
    return _tensor(value, name, device, pin)


def _tensor(array: NDArray[Any], name: str, device: torch.device | None, pin: bool) -> Tensor:
    try:
        tensor = torch.from_numpy(array)
    except TypeError as error:
        raise UsageError(f"{name} has type {array.dtype}, which this PyTorch does not know: {error}") from None
    if pin:
        tensor = tensor.pin_memory()
    return tensor if device is None else tensor.to(device, non_blocking=pin)


class Uncertainty(NamedTuple):
    """Uncertainty of state-action pairs, one entry per row. No field except `mean` is ever negative.

    `total` = `epistemic` + `aleatoric`, and `total_delta` = `epistemic_delta` + `aleatoric`. The fields that need a
    target are NaN without one.
    """

    mean: Tensor  # Q
    epistemic: Tensor  # E: variance over members, mean over quantiles
    aleatoric: Tensor  # A: variance over quantiles of the mean over members
    target_distance_sq: Tensor  # (mean target - Q)^2
    epistemic_delta: Tensor  # E_delta: the error of the quantiles against the target, without A
    total: Tensor  # U
    total_delta: Tensor  # U_delta


@torch.no_grad()
def decompose(online: Tensor, target: Tensor | None = None, reward: Tensor | float | None = None,
              discount: Tensor | float | None = None, *, scalar_target: Tensor | float | None = None) -> Uncertainty:
    """Splits the uncertainty of quantiles into the part that data can reduce and the part that it cannot.

    The target of member k is reward + discount * target[:, k]: discount includes the end of an episode, as that of a
    batch does. Computed in float64 (float32 on devices without it), on the device of `online`, without gradients.

    Args:
        online: Quantiles of the taken actions, [batch, members, quantiles].
        target: Quantiles of the target network for the next actions, of the same shape.
        reward, discount: [batch], or one number for all.
        scalar_target: Instead of the three above: one value per row that all members are compared with.
    """
    quantiles = _precise(_quantiles(online, "online"))
    _ensemble.check_target_form(target, reward, discount, scalar_target)
    if scalar_target is not None:
        return Uncertainty(*_ensemble.with_scalar_target(quantiles, _row(scalar_target, "scalar_target", quantiles)))
    if target is None:
        return Uncertainty(*_ensemble.without_target(quantiles, quantiles.new_full((len(quantiles),), torch.nan)))
    return Uncertainty(*_ensemble.with_target_quantiles(quantiles, *_target(target, reward, discount, quantiles)))


@torch.no_grad()
def priorities(online: Tensor, target: Tensor | None = None, reward: Tensor | float | None = None,
               discount: Tensor | float | None = None, rule: str = "info_gain_delta", *,
               td_error: Tensor | None = None, floor: float = 1e-10, cap: float = 100.0) -> Tensor:
    """Priorities [batch] for `Replay.set_priorities()`, from the quantiles of the update; see `decompose()`.

    A number that is NaN, infinite or negative gives the priority NaN, which a replay memory refuses and counts. Others
    are from 0 to `cap`. The result is on the device of `online`, in float64 (float32 on devices without it).

    Args:
        rule: One of `uper.PRIORITY_RULES`. The default, UPER's, is the information gain 1/2 ln(1 + E_delta / A).
            Rules without "_delta" need no target, reward and discount.
        td_error: [batch], for the rule "td"; by default mean over members of |mean target - mean online|.
        floor: Added to A where it is a denominator.
        cap: Largest priority.
    """
    check_rule(rule)
    floor, cap = _ensemble.check_limits(floor, cap)
    quantiles = _precise(_quantiles(online, "online"))
    if rule == "uniform":
        return quantiles.new_full((len(quantiles),), min(1.0, cap))
    if _ensemble.needs_target(rule, td_error is not None) and (target is None or reward is None or discount is None):
        raise UsageError(f"rule {rule!r} needs target, reward and discount")
    if rule == "td":
        error = (_td_error(quantiles, *_target(target, reward, discount, quantiles)) if td_error is None else
                 _row(td_error, "td_error", quantiles))
        return torch.as_tensor(_ensemble.priority(torch, rule, None, error, floor, cap))
    uncertainty = decompose(online, target, reward, discount)
    return torch.as_tensor(_ensemble.priority(torch, rule, uncertainty, None, floor, cap))


def _td_error(quantiles: Tensor, target: Tensor, reward: Tensor, discount: Tensor) -> Tensor:
    gaps = _ensemble.mean_targets(target, reward, discount) - _ensemble.moments(quantiles).member_means
    return torch.as_tensor(gaps.abs().mean(-1))


def quantile_huber_loss(online: Tensor, reward: Tensor | float, discount: Tensor | float, target: Tensor,
                        masks: Tensor | None = None, weights: Tensor | None = None, kappa: float = 1.0) -> Tensor:
    """The quantile regression loss of each row, [batch]; its mean is the loss of uper's own learner.

    For member k, with T_j = reward + discount * target[:, k, j] and u_ij = T_j - online[:, k, i]:

        L_k = sum_i mean_j |tau_i - 1(u_ij < 0)| huber(u_ij),    tau_i = (i + 1/2) / quantiles,
        huber(u) = u^2 / 2 where |u| <= kappa, else kappa (|u| - kappa / 2).

    A row's loss is its weight times the sum over the members of its mask of L_k, divided by the mean number of members
    per row. So without masks it is the mean over members. No gradient reaches the target. Takes O(M log M) time per
    member for M quantiles, as the targets are sorted. Second derivatives are not supported.

    Args:
        online: Quantiles of the taken actions, [batch, members, quantiles].
        reward, discount: [batch], or one number for all.
        target: Quantiles of the target network for the next actions, of the same shape.
        masks: [batch, members]: who learns from a row (`batch.masks`). Others get a gradient of exactly 0.
        weights: [batch]: importance weights (`batch.weights`).
        kappa: Where the loss turns linear; 0 is the plain quantile loss with |u|.
    """
    kappa = number(kappa, "kappa", 0, 3e38)
    online = _quantiles(online, "online")
    target, reward, discount = _target(target, reward, discount, online)
    targets = reward[:, None, None] + discount[:, None, None] * target
    if masks is not None:
        masks = _masks(masks, online)
        online, targets = (torch.where(masks[..., None], x, 0.0) for x in (online, targets))
    losses, slopes = _loss_and_slope(online, targets, kappa)
    losses = losses + (slopes * (online - online.detach())).sum(-1)  # adds 0, and the gradient
    rows = losses.mean(1) if masks is None else losses.sum(1) * len(masks) / masks.sum().clamp(min=1)
    return rows if weights is None else rows * _row(weights, "weights", online)


@torch.no_grad()
def _loss_and_slope(theta: Tensor, targets: Tensor, kappa: float) -> tuple[Tensor, Tensor]:
    """The loss of each member, [batch, members], and its derivative, [batch, members, quantiles].

    Searches divide the sorted targets at each theta - kappa, theta and theta + kappa. The sums of the four ranges are
    differences of prefix sums, so no pairs are formed. Distances from the median, in float64, keep the digits.
    """
    n = theta.shape[-1]
    targets = _precise(targets).sort(-1).values
    origin = targets[..., n // 2, None]
    y, x = targets - origin, theta - origin
    prefix = nn.functional.pad(torch.stack((torch.ones_like(y), y, y * y)).cumsum(-1), (1, 0))

    def before(edge: Tensor, right: bool = False) -> Tensor:  # count, sum and squares of the targets below it
        place = torch.searchsorted(y, edge, right=right)
        return prefix.gather(-1, place.expand(3, *place.shape))

    low, middle, high = before(x - kappa), before(x), before(x + kappa, right=True)
    far_below, far_above = _linear(x, low, kappa, -1), _linear(x, prefix[..., -1:] - high, kappa, 1)
    below, above = _quadratic(x, middle - low), _quadratic(x, high - middle)
    tau = (torch.arange(n, dtype=x.dtype, device=x.device) + 0.5) / n
    loss, slope = (1 - tau) * (far_below + below) + tau * (above + far_above)
    return (loss.sum(-1) / n).to(theta.dtype), (slope / n).to(theta.dtype)


def _quadratic(x: Tensor, targets: Tensor) -> Tensor:
    """Loss and slope, stacked, of targets with |u| <= kappa."""
    count, sums, squares = targets
    return torch.stack((0.5 * (squares - 2 * x * sums + count * x * x).clamp(min=0), count * x - sums))


def _linear(x: Tensor, targets: Tensor, kappa: float, sign: int) -> Tensor:
    """Loss and slope, stacked, of targets with |u| > kappa and this sign of u."""
    count, sums, _ = targets
    distance = sign * (sums - count * x) - 0.5 * kappa * count
    return torch.stack((distance, -sign * count)) * (kappa or 1.0)


class EnsembleQuantileHead(nn.Module):
    """The last layer of an ensemble: features [..., features] to quantiles [..., actions, members, quantiles].

    Members are slices of one linear layer. They differ by their initial weights, and by the masks of the loss.
    """

    def __init__(self, features: int, actions: int, members: int = 10, quantiles: int = 51) -> None:
        super().__init__()
        self.shape = (actions, members, quantiles)
        self.linear = nn.Linear(features, actions * members * quantiles)

    def forward(self, features: Tensor) -> Tensor:
        quantiles: Tensor = self.linear(features)
        return quantiles.view(*features.shape[:-1], *self.shape)

    @staticmethod
    def values(quantiles: Tensor) -> Tensor:
        """Q of each action, [batch, actions]: the mean over members and quantiles."""
        return quantiles.mean((-1, -2))

    @staticmethod
    def take(quantiles: Tensor, actions: Tensor) -> Tensor:
        """The quantiles [batch, members, quantiles] of one action per row."""
        rows = torch.arange(len(quantiles), device=quantiles.device)
        return quantiles[rows, actions.reshape(-1).long()]

    @staticmethod
    def take_greedy(quantiles: Tensor, per_member: bool = True) -> Tensor:
        """The quantiles [batch, members, quantiles] of the greedy actions, for a target.

        Each member takes its own best action, as in UPER, or all take the best of the ensemble's mean.
        """
        means = quantiles.mean(-1)
        if not per_member:
            means = means.mean(-1, keepdim=True)
        best = means.argmax(1)[:, None, :, None]
        return quantiles.take_along_dim(best, dim=1)[:, 0]


def _precise(values: Tensor) -> Tensor:
    """In float64, where the device has it."""
    return values if values.device.type == "mps" else values.double()


def _quantiles(value: Any, name: str) -> Tensor:
    """In single precision at least."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise UsageError(f"{name} must be a tensor of floating-point numbers, not {kind}")
    _ensemble.check_quantiles(value, name)
    return value.to(torch.promote_types(value.dtype, torch.float32))


def _target(target: Any, reward: Any, discount: Any, online: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    quantiles = _quantiles(target, "target").to(online.dtype)
    _ensemble.check_same(quantiles, "target", online)
    _check_device(quantiles, "target", online)
    return quantiles, _row(reward, "reward", online), _row(discount, "discount", online)


def _row(value: Any, name: str, online: Tensor) -> Tensor:
    row = value if isinstance(value, Tensor) else _new_tensor(value, name, online, online.dtype)
    if row.ndim == 0:
        row = row.expand(len(online))
    if row.shape == (len(online), 1):
        row = row[:, 0]
    _ensemble.check_row(row, name, len(online))
    _check_device(row, name, online)
    return row.to(online.dtype)


def _masks(value: Any, online: Tensor) -> Tensor:
    masks = value if isinstance(value, Tensor) else _new_tensor(value, "masks", online, torch.bool)
    _ensemble.check_masks(masks, online)
    _check_device(masks, "masks", online)
    return masks.bool()


def _new_tensor(value: Any, name: str, online: Tensor, dtype: torch.dtype) -> Tensor:
    try:
        return torch.as_tensor(value, dtype=dtype, device=online.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name} must be numbers, not {type(value).__name__}: {error}") from None


def _check_device(value: Tensor, name: str, online: Tensor) -> None:
    if value.device != online.device:
        raise UsageError(f"{name} is on {value.device}, but online is on {online.device}: move one of them")
