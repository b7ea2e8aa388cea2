"""The formulas of `uper.torch` and `uper.jax`, on arrays of either library. `xp` is the library itself.

Nothing here subtracts sums of squares: each field adds terms that are never negative. Equal members give an epistemic
uncertainty of exactly 0, equal quantiles an aleatoric one of exactly 0, as in the C++ code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from uper._options import number
from uper.errors import UsageError

Array = Any


class Moments(NamedTuple):
    """Moments of quantiles [B, K, M] that the decompositions need."""

    mean: Array  # [B]
    member_means: Array  # [B, K]
    epistemic: Array  # [B]
    aleatoric: Array  # [B]
    shape_disagreement: Array  # [B]: the part of epistemic that is not the disagreement of the member means


def moments(online: Array) -> Moments:
    """Moments of the quantiles. Differences to one member or quantile come first, so that equal ones give 0."""
    origin = online[:, :1, :1]
    member_means = (online - origin).mean(-1)
    members = online - online[:, :1]
    members = members - members.mean(1)[:, None]
    shapes = members - members.mean(-1)[..., None]
    quantiles = (online - online[..., :1]).mean(1)
    return Moments(mean=origin[:, 0, 0] + member_means.mean(-1), member_means=origin[..., 0] + member_means,
                   epistemic=(members * members).mean((1, 2)), aleatoric=variance(quantiles),
                   shape_disagreement=(shapes * shapes).mean((1, 2)))


def variance(values: Array) -> Array:
    """The population variance over the last axis; exactly 0 for equal values."""
    values = values - values[..., :1]
    values = values - values.mean(-1)[..., None]
    return (values * values).mean(-1)


def mean_targets(target: Array, reward: Array, discount: Array) -> Array:
    """The mean target of each member, [B, K]."""
    origin = target[..., :1]
    return reward[:, None] + discount[:, None] * (origin[..., 0] + (target - origin).mean(-1))


def without_target(online: Array, missing: Array) -> tuple[Array, ...]:
    """The fields of an Uncertainty; `missing` [B] where a target would be needed."""
    of = moments(online)
    return (of.mean, of.epistemic, of.aleatoric, missing, missing, of.epistemic + of.aleatoric, missing)


def with_scalar_target(online: Array, target: Array) -> tuple[Array, ...]:
    """The fields for one target value per row: E_delta = delta^2 + E."""
    of = moments(online)
    distance = (target - of.mean) ** 2
    return _fields(of, distance, distance + of.epistemic)


def with_target_quantiles(online: Array, target: Array, reward: Array, discount: Array) -> tuple[Array, ...]:
    """The fields for target quantiles of each member, without forming pairs of quantiles:

    E_delta = discount^2 mean_k V(target_k) + mean_k (mean target_k - mean online_k)^2 + mean disagreement of shape.
    """
    of = moments(online)
    gaps = mean_targets(target, reward, discount) - of.member_means
    spread = discount * discount * variance(target).mean(-1)
    return _fields(of, gaps.mean(-1) ** 2, spread + (gaps * gaps).mean(-1) + of.shape_disagreement)


def _fields(of: Moments, distance: Array, epistemic_delta: Array) -> tuple[Array, ...]:
    return (of.mean, of.epistemic, of.aleatoric, distance, epistemic_delta, of.epistemic + of.aleatoric,
            epistemic_delta + of.aleatoric)


def _power_ratio(power: int) -> Callable[[Any, Array, Array, float], Array]:
    """e^power / (e + a + floor), in an order that does not overflow on the way."""
    def ratio(xp: Any, e: Array, a: Array, floor: float) -> Array:
        half = e ** (0.5 * (power - 1))
        return half / (1 + (a + floor) / e) * half
    return ratio


_RATIOS: dict[str, Callable[[Any, Array, Array, float], Array]] = {
    "info_gain": lambda xp, e, a, floor: 0.5 * xp.log1p(e / (a + floor)),
    "ratio_ea": lambda xp, e, a, floor: e / (a + floor),
    "ratio_eu": _power_ratio(1),
    "ratio_e2u": _power_ratio(2),
    "ratio_e3u": _power_ratio(3),
}


def needs_target(rule: str, has_td_error: bool) -> bool:
    """Whether a rule compares with the target quantiles."""
    return rule.endswith("_delta") or (rule == "td" and not has_td_error)


def priority(xp: Any, rule: str, uncertainty: Any, td_error: Array, floor: float, cap: float) -> Array:
    """The priority of each row; NaN where a number that the rule reads is NaN, infinite or negative."""
    if rule == "td":
        return _limited(xp, td_error, _valid(xp, td_error), cap)
    name = rule.removesuffix("_delta")
    epistemic = uncertainty.epistemic_delta if rule.endswith("_delta") else uncertainty.epistemic
    total = uncertainty.total_delta if rule.endswith("_delta") else uncertainty.total
    if name not in _RATIOS:
        value = {"total": total, "epistemic": epistemic}[name]
        return _limited(xp, value, _valid(xp, value), cap)
    value = _RATIOS[name](xp, epistemic, uncertainty.aleatoric, floor)
    return _limited(xp, value, _valid(xp, epistemic) & _valid(xp, uncertainty.aleatoric), cap)


def _valid(xp: Any, values: Array) -> Array:
    return xp.isfinite(values) & (values >= 0)


def _limited(xp: Any, value: Array, valid: Array, cap: float) -> Array:
    return xp.where(valid, xp.where(value > cap, cap, value), float("nan"))


def check_limits(floor: Any, cap: Any) -> tuple[float, float]:
    """The floor of the aleatoric uncertainty and the cap of priorities, as numbers above 0."""
    return number(floor, "floor", 1e-37, 3e38), number(cap, "cap", 1e-37, 3e38)


def check_quantiles(value: Array, name: str) -> None:
    """Refuses anything that is not [batch, members, quantiles]."""
    shape = tuple(value.shape)
    if len(shape) != 3 or 0 in shape[1:]:
        raise UsageError(f"{name} has shape {shape}; it must be [batch, members, quantiles] with at least one member "
                         "and quantile (for one member: x[:, None])")


def check_same(value: Array, name: str, online: Array) -> None:
    """Refuses target quantiles of another shape than the online ones."""
    if tuple(value.shape) != tuple(online.shape):
        raise UsageError(f"{name} has shape {tuple(value.shape)}, but online has {tuple(online.shape)}: give the "
                         "quantiles of the chosen actions, [batch, members, quantiles], for both")


def check_row(value: Array, name: str, batch: int) -> None:
    """Refuses anything but one number per row."""
    if tuple(value.shape) != (batch,):
        raise UsageError(f"{name} has shape {tuple(value.shape)}; it must have one number per row: ({batch},)")


def check_masks(value: Array, online: Array) -> None:
    """Refuses masks that are not [batch, members]."""
    if tuple(value.shape) != tuple(online.shape[:2]):
        raise UsageError(f"masks has shape {tuple(value.shape)}; it must be [batch, members]: "
                         f"{tuple(online.shape[:2])}")


def check_target_form(target: Any, reward: Any, discount: Any, scalar_target: Any) -> None:
    """Refuses incomplete or double targets."""
    given = [value is not None for value in (target, reward, discount)]
    if any(given) != all(given):
        raise UsageError("target, reward and discount belong together: give all of them or none")
    if any(given) and scalar_target is not None:
        raise UsageError("give either target, reward and discount, or scalar_target, not both")
