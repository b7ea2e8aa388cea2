"""JAX: priorities from quantiles and the loss of an ensemble, as functions that `jax.jit` can compile.

They compute in float32, or in float64 where `jax_enable_x64` is set. Shapes are checked when a function is traced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from uper import _ensemble
from uper._options import number
from uper._rules import check_rule
from uper.errors import UsageError

try:
    import jax
except ImportError as error:
    raise ImportError("uper.jax needs JAX: pip install 'uper[jax]'") from error
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

__all__ = ["Uncertainty", "decompose", "priorities", "quantile_huber_loss"]


class Uncertainty(NamedTuple):
    """Uncertainty of state-action pairs, one entry per row. No field except `mean` is ever negative.

    `total` = `epistemic` + `aleatoric`, and `total_delta` = `epistemic_delta` + `aleatoric`. The fields that need a
    target are NaN without one.
    """

    mean: Array  # Q
    epistemic: Array  # E: variance over members, mean over quantiles
    aleatoric: Array  # A: variance over quantiles of the mean over members
    target_distance_sq: Array  # (mean target - Q)^2
    epistemic_delta: Array  # E_delta: the error of the quantiles against the target, without A
    total: Array  # U
    total_delta: Array  # U_delta


def decompose(online: ArrayLike, target: ArrayLike | None = None, reward: ArrayLike | None = None,
              discount: ArrayLike | None = None, *, scalar_target: ArrayLike | None = None) -> Uncertainty:
    """Splits the uncertainty of quantiles into the part that data can reduce and the part that it cannot.

    The target of member k is reward + discount * target[:, k]: discount includes the end of an episode, as that of a
    batch does. No gradient flows through the result.

    Args:
        online: Quantiles of the taken actions, [batch, members, quantiles].
        target: Quantiles of the target network for the next actions, of the same shape.
        reward, discount: [batch], or one number for all.
        scalar_target: Instead of the three above: one value per row that all members are compared with.
    """
    quantiles = _quantiles(online, "online")
    _ensemble.check_target_form(target, reward, discount, scalar_target)
    if scalar_target is not None:
        return Uncertainty(*_ensemble.with_scalar_target(quantiles, _row(scalar_target, "scalar_target", quantiles)))
    if target is None:
        return Uncertainty(*_ensemble.without_target(quantiles, jnp.full(len(quantiles), jnp.nan, quantiles.dtype)))
    return Uncertainty(*_ensemble.with_target_quantiles(quantiles, *_target(target, reward, discount, quantiles)))


def priorities(online: ArrayLike, target: ArrayLike | None = None, reward: ArrayLike | None = None,
               discount: ArrayLike | None = None, rule: str = "info_gain_delta", *,
               td_error: ArrayLike | None = None, floor: float = 1e-10, cap: float = 100.0) -> Array:
    """Priorities [batch] for `Replay.set_priorities()`, from the quantiles of the update; see `decompose()`.

    A number that is NaN, infinite or negative gives the priority NaN, which a replay memory refuses and counts. Others
    are from 0 to `cap`. To compile it alone: `jax.jit(priorities, static_argnames=("rule", "floor", "cap"))`.

    Args:
        rule: One of `uper.PRIORITY_RULES`. The default, UPER's, is the information gain 1/2 ln(1 + E_delta / A).
            Rules without "_delta" need no target, reward and discount.
        td_error: [batch], for the rule "td"; by default mean over members of |mean target - mean online|.
        floor: Added to A where it is a denominator.
        cap: Largest priority.
    """
    check_rule(rule)
    floor, cap = _ensemble.check_limits(floor, cap)
    quantiles = _quantiles(online, "online")
    if rule == "uniform":
        return jnp.full(len(quantiles), min(1.0, cap), quantiles.dtype)
    if _ensemble.needs_target(rule, td_error is not None) and (target is None or reward is None or discount is None):
        raise UsageError(f"rule {rule!r} needs target, reward and discount")
    if rule == "td":
        error = (_td_error(quantiles, *_target(target, reward, discount, quantiles)) if td_error is None else
                 _row(td_error, "td_error", quantiles))
        return jnp.asarray(_ensemble.priority(jnp, rule, None, error, floor, cap))
    uncertainty = decompose(quantiles, target, reward, discount)
    return jnp.asarray(_ensemble.priority(jnp, rule, uncertainty, None, floor, cap))


def _td_error(quantiles: Array, target: Array, reward: Array, discount: Array) -> Array:
    gaps = _ensemble.mean_targets(target, reward, discount) - _ensemble.moments(quantiles).member_means
    return jnp.abs(gaps).mean(-1)


def quantile_huber_loss(online: ArrayLike, reward: ArrayLike, discount: ArrayLike, target: ArrayLike,
                        masks: ArrayLike | None = None, weights: ArrayLike | None = None,
                        kappa: float = 1.0) -> Array:
    """The quantile regression loss of each row, [batch]; its mean is the loss of uper's own learner.

    For member k, with T_j = reward + discount * target[:, k, j] and u_ij = T_j - online[:, k, i]:

        L_k = sum_i mean_j |tau_i - 1(u_ij < 0)| huber(u_ij),    tau_i = (i + 1/2) / quantiles,
        huber(u) = u^2 / 2 where |u| <= kappa, else kappa (|u| - kappa / 2).

    A row's loss is its weight times the sum over the members of its mask of L_k, divided by the mean number of members
    per row. So without masks it is the mean over members. No gradient reaches the target.

    Args:
        online: Quantiles of the taken actions, [batch, members, quantiles].
        reward, discount: [batch], or one number for all.
        target: Quantiles of the target network for the next actions, of the same shape.
        masks: [batch, members]: who learns from a row (`batch.masks`). Others get a gradient of exactly 0.
        weights: [batch]: importance weights (`batch.weights`).
        kappa: Where the loss turns linear; 0 is the plain quantile loss with |u|. A static argument of a jit.
    """
    kappa = number(kappa, "kappa", 0, 3e38)
    theta = _floats(online, "online")
    _ensemble.check_quantiles(theta, "online")
    quantiles, reward, discount = _target(target, reward, discount, theta)
    targets = reward[:, None, None] + discount[:, None, None] * quantiles
    if masks is not None:
        learns = _array(masks, "masks").astype(bool)
        _ensemble.check_masks(learns, theta)
        theta, targets = (jnp.where(learns[..., None], x, 0) for x in (theta, targets))
    losses = _pairwise_loss(theta, targets, kappa)
    rows = losses.mean(1) if masks is None else losses.sum(1) * len(learns) / jnp.maximum(learns.sum(), 1)
    return rows if weights is None else rows * _row(weights, "weights", theta)


def _pairwise_loss(theta: Array, targets: Array, kappa: float) -> Array:
    """[batch, members]: the loss of each member against its own targets. XLA fuses the pairs into the sum."""
    n = theta.shape[-1]
    tau = (jnp.arange(n) + 0.5).astype(theta.dtype) / n
    u = targets[..., None, :] - theta[..., :, None]
    size = u * jax.lax.stop_gradient(jnp.sign(u))  # |u|, whose derivative at 0 is 0
    huber = jnp.where(size <= kappa, 0.5 * u * u, kappa * (size - 0.5 * kappa)) if kappa > 0 else size
    return (jnp.where(u < 0, 1 - tau[:, None], tau[:, None]) * huber).mean(-1).sum(-1)


def _array(value: Any, name: str) -> Array:
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be numbers, not {type(value).__name__}: {error}") from None


def _floats(value: Any, name: str) -> Array:
    array = _array(value, name)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise UsageError(f"{name} must be an array of floating-point numbers, not {array.dtype}")
    return array.astype(jnp.promote_types(array.dtype, jnp.float32))


def _quantiles(value: Any, name: str) -> Array:
    array = _floats(value, name)
    _ensemble.check_quantiles(array, name)
    return jax.lax.stop_gradient(array.astype(jnp.result_type(float)))


def _target(target: Any, reward: Any, discount: Any, online: Array) -> tuple[Array, Array, Array]:
    quantiles = _floats(target, "target").astype(online.dtype)
    _ensemble.check_same(quantiles, "target", online)
    rows = quantiles, _row(reward, "reward", online), _row(discount, "discount", online)
    return jax.lax.stop_gradient(rows)


def _row(value: Any, name: str, online: Array) -> Array:
    array = _array(value, name).astype(online.dtype)
    if array.ndim == 0:
        array = jnp.broadcast_to(array, len(online))
    if array.shape == (len(online), 1):
        array = array[:, 0]
    _ensemble.check_row(array, name, len(online))
    return jax.lax.stop_gradient(array)
