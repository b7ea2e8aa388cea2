"""uper.decompose() and uper.priorities() against plain formulas."""

import numpy as np
import pytest

import uper

RNG = np.random.default_rng(7)


def example(batch=6, members=4, quantiles=5, dtype=np.float64):
    shape = (batch, members, quantiles)
    return (RNG.normal(3, 2, shape).astype(dtype), RNG.normal(2, 3, shape).astype(dtype), RNG.normal(size=batch),
            RNG.uniform(0, 1, batch))


def naive(online, target, reward, discount):
    """The definitions, by pairs."""
    result = []
    for theta, t, r, g in zip(online.astype(float), target.astype(float), reward, discount):
        goal = r + g * t
        epistemic, aleatoric = theta.var(0).mean(), theta.mean(0).var()
        total_delta = np.mean([(goal[k, :, None] - theta[k, None, :])**2 for k in range(len(theta))])
        result.append((theta.mean(), epistemic, aleatoric, (goal.mean() - theta.mean())**2, total_delta - aleatoric,
                       epistemic + aleatoric, total_delta))
    return uper.Uncertainty(*np.array(result).T)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 7), (3, 5, 1), (4, 3, 8), (5, 10, 51), (300, 10, 33)])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-11), (np.float32, 1e-5)])
def test_decompose_is_the_definition(shape, dtype, tolerance):
    online, target, reward, discount = example(*shape, dtype=dtype)
    found, wanted = uper.decompose(online, target, reward, discount), naive(online, target, reward, discount)
    for name in uper.Uncertainty._fields:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=tolerance, atol=tolerance,
                                   err_msg=name)
    np.testing.assert_array_equal(found.total, found.epistemic + found.aleatoric)
    np.testing.assert_array_equal(found.total_delta, found.epistemic_delta + found.aleatoric)


def test_by_hand():
    online = [[[0, 2], [2, 4]]]  # means over quantiles 1, 3; over members [1, 3]
    u = uper.decompose(online, scalar_target=[5])
    assert [float(x[0]) for x in u] == [2, 1, 1, 9, 10, 2, 11]
    assert uper.priorities(online, [[[5, 5], [5, 5]]], [0], [1], "epistemic")[0] == 1
    assert uper.priorities(online, [[[5, 5], [5, 5]]], [0], [1], "td")[0] == 3  # (4 + 2) / 2
    assert uper.priorities(online, [[[5, 5], [5, 5]]], [0], [1])[0] == pytest.approx(0.5 * np.log1p(10), rel=1e-9)


def test_limits():
    same_members = np.broadcast_to(RNG.normal(size=(3, 1, 9)), (3, 4, 9))
    assert np.all(uper.decompose(same_members).epistemic == 0)
    same_quantiles = np.broadcast_to(RNG.normal(size=(3, 4, 1)), (3, 4, 9))
    assert np.all(uper.decompose(same_quantiles).aleatoric == 0)
    shifted = uper.decompose(RNG.normal(size=(2, 3, 4)) + 1e9)
    assert np.all(shifted.total < 20)  # an offset costs no accuracy
    assert np.isnan(uper.decompose(same_members).target_distance_sq).all()


@pytest.mark.parametrize("rule", uper.PRIORITY_RULES)
def test_every_rule_is_its_formula(rule):
    online, target, reward, discount = example()
    u = naive(online, target, reward, discount)
    goal = reward[:, None] + discount[:, None] * target.mean(2)
    e = u.epistemic_delta if rule.endswith("_delta") else u.epistemic
    a, base = u.aleatoric + 1e-10, rule.removesuffix("_delta")
    total = e + u.aleatoric
    wanted = {"uniform": np.ones(6), "td": np.abs(goal - online.mean(2)).mean(1), "total": total, "epistemic": e,
              "info_gain": 0.5 * np.log1p(e / a), "ratio_ea": e / a, "ratio_eu": e / total, "ratio_e2u": e**2 / total,
              "ratio_e3u": e**3 / total}[base]
    np.testing.assert_allclose(uper.priorities(online, target, reward, discount, rule), np.minimum(wanted, 100), rtol=1e-8)


def test_the_rules_are_those_of_the_program():
    assert list(uper.PRIORITY_RULES)[:2] == ["uniform", "td"] and len(uper.PRIORITY_RULES) == 16
    assert "UPER" in uper.PRIORITY_RULES["info_gain_delta"]


def test_floor_cap_and_td_error():
    online, target, reward, discount = example()
    flat = np.zeros_like(online)
    assert np.all(uper.priorities(flat, target, reward, discount, "ratio_ea_delta") == 100)
    assert np.all(uper.priorities(flat, target, reward, discount, "ratio_ea_delta", cap=7) == 7)
    coarse = uper.priorities(flat, target, reward, discount, floor=2.0)
    wanted = 0.5 * np.log1p(naive(flat, target, reward, discount).epistemic_delta / 2)
    np.testing.assert_allclose(coarse, wanted, rtol=1e-9)
    given = uper.priorities(online, target, reward, discount, "td", td_error=np.arange(6))
    assert given.tolist() == [0, 1, 2, 3, 4, 5]


def test_nan_stays_in_its_row():
    online, target, reward, discount = example()
    online[2, 1, 0], reward[4] = np.nan, np.inf
    found = uper.priorities(online, target, reward, discount)
    assert np.isnan(found[[2, 4]]).all() and np.isfinite(found[[0, 1, 3, 5]]).all()


def test_types_and_layouts():
    online, target, reward, discount = example(dtype=np.float32)
    wanted = uper.priorities(online, target, reward, discount)
    turned = np.asfortranarray(online)
    np.testing.assert_array_equal(uper.priorities(turned, target.astype(np.float64), list(reward), discount[:, None]), wanted)
    np.testing.assert_allclose(uper.priorities(online.astype(np.float16), target, reward, discount), wanted, rtol=0.1)
    constant = uper.decompose(online, target, 1.0, 0.5)
    np.testing.assert_array_equal(constant.mean, uper.decompose(online).mean)


@pytest.mark.parametrize("change, message", [
    (dict(online=np.zeros((2, 3))), r"online has shape \(2, 3\)"), (dict(target=np.zeros((6, 4, 6))), "but online has"),
    (dict(reward=np.zeros(5)), "one entry per row"), (dict(discount=None), "needs reward and discount"),
    (dict(rule="best"), "no priority rule"), (dict(floor=0), "floor must be"), (dict(cap=np.inf), "cap must be"),
    (dict(td_error=np.zeros(2)), "td_error has shape"), (dict(online=[["a"]]), "numbers")])
def test_bad_input(change, message):
    names = dict(zip(("online", "target", "reward", "discount"), example()))
    with pytest.raises(uper.UsageError, match=message):
        uper.priorities(**(names | change))


def test_one_kind_of_target():
    online, target, reward, discount = example()
    with pytest.raises(uper.UsageError, match="either"):
        uper.decompose(online, target, reward, discount, scalar_target=reward)
