"""The formulas of ensembles, written down naively: all pairs of quantiles, float64, no shortcut."""

import math

import numpy as np


def decompose(online, target, reward, discount):
    """A dict of arrays [B]; online and target [B, K, M]."""
    online, target = np.asarray(online, np.float64), np.asarray(target, np.float64)
    targets = np.asarray(reward)[:, None, None] + np.asarray(discount)[:, None, None] * target
    mean = online.mean((1, 2))
    epistemic = online.var(1).mean(-1)
    aleatoric = online.mean(1).var(-1)
    pairs = targets[:, :, None, :] - online[:, :, :, None]
    total_delta = (pairs**2).mean((1, 2, 3))
    return {"mean": mean, "epistemic": epistemic, "aleatoric": aleatoric,
            "target_distance_sq": (targets.mean((1, 2)) - mean)**2, "epistemic_delta": total_delta - aleatoric,
            "total": online.var((1, 2)), "total_delta": total_delta}


def td_error(online, target, reward, discount):
    targets = np.asarray(reward)[:, None, None] + np.asarray(discount)[:, None, None] * np.asarray(target, np.float64)
    return np.abs(targets.mean(-1) - np.asarray(online, np.float64).mean(-1)).mean(-1)


def priorities(online, target, reward, discount, rule, floor=1e-10, cap=100.0):
    u = decompose(online, target, reward, discount)
    end = "_delta" if rule.endswith("_delta") else ""
    e, a, total = u["epistemic" + end], u["aleatoric"], u["total" + end]
    value = {
        "uniform": np.ones(len(e)),
        "td": td_error(online, target, reward, discount),
        "total": total,
        "epistemic": e,
        "info_gain": 0.5 * np.log(1 + e / (a + floor)),
        "ratio_ea": e / (a + floor),
        "ratio_eu": e / (total + floor),
        "ratio_e2u": e**2 / (total + floor),
        "ratio_e3u": e**3 / (total + floor),
    }[rule.removesuffix("_delta")]
    return np.minimum(value, cap)


def member_loss(online, targets, kappa):
    """One member: quantiles [M] against targets [N]."""
    m, total = len(online), 0.0
    for i, theta in enumerate(online):
        for target in targets:
            u = target - theta
            if kappa == 0:
                huber = abs(u)
            elif abs(u) <= kappa:
                huber = u * u / 2
            else:
                huber = kappa * (abs(u) - kappa / 2)
            total += abs((i + 0.5) / m - (u < 0)) * huber
    return total / len(targets)


def loss(online, reward, discount, target, masks=None, weights=None, kappa=1.0):
    """Per row; its mean is sum_bk w_b m_bk L_bk / max(1, sum_bk m_bk)."""
    batch, members = np.shape(online)[:2]
    masks = np.ones((batch, members), bool) if masks is None else masks
    weights = np.ones(batch) if weights is None else weights
    scale = batch / max(1, np.sum(masks))
    return np.array([weights[b] * scale * math.fsum(
        member_loss(online[b][k], reward[b] + discount[b] * np.asarray(target[b][k]), kappa)
        for k in range(members) if masks[b][k]) for b in range(batch)])


def example(seed=1, batch=6, members=5, quantiles=7, offset=0.0, dtype=np.float64):
    """online, target, reward, discount; some discounts are 0, as at the end of an episode."""
    rng = np.random.default_rng(seed)
    online, target = offset + rng.normal(size=(2, batch, members, quantiles))
    reward, discount = rng.normal(size=batch), rng.choice([0.0, 0.97], batch)
    return tuple(x.astype(dtype) for x in (online, target, reward, discount))
