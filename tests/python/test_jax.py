"""uper.jax: the same values as the naive formulas and as uper.torch, under jit."""

import math
import sys

import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import naive_ensemble as naive  # noqa: E402
import numpy as np  # noqa: E402
import uper  # noqa: E402
import uper.jax as uj  # noqa: E402

RULES = tuple(uper.PRIORITY_RULES)
HAND = [np.array(x, np.float32) for x in ([[[0, 2], [2, 4]]], [[[1, 1], [1, 3]]], [1], [0.5])]
FIELDS = dict(mean=2, epistemic=1, aleatoric=1, target_distance_sq=0.0625, epistemic_delta=0.75, total=2,
              total_delta=1.75)
compiled_priorities = jax.jit(uj.priorities, static_argnames=("rule", "floor", "cap"))
compiled_loss = jax.jit(uj.quantile_huber_loss, static_argnames="kappa")
TOLERANCES = {False: 5e-6, True: 1e-12}  # of float32 and float64


def test_hand_computed_uncertainty():
    for decompose in (uj.decompose, jax.jit(uj.decompose)):
        assert {name: value.item() for name, value in decompose(*HAND)._asdict().items()} == FIELDS


def test_a_scalar_target_and_none():
    u = uj.decompose(HAND[0], scalar_target=5.0)
    assert (u.target_distance_sq.item(), u.epistemic_delta.item(), u.total_delta.item()) == (9, 10, 11)
    u = uj.decompose(HAND[0])
    assert u.total.item() == 2 and jnp.isnan(u.epistemic_delta) and jnp.isnan(u.total_delta)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("shape", [(6, 5, 7), (1, 1, 1), (3, 1, 9), (4, 8, 1)])
def test_same_as_the_naive_pairs(shape, x64):
    given = naive.example(2, *shape, dtype=np.float64 if x64 else np.float32)
    with jax.enable_x64(x64):
        u = jax.jit(uj.decompose)(*given)
    assert u.mean.dtype == (np.float64 if x64 else np.float32)
    for name, expected in naive.decompose(*given).items():
        np.testing.assert_allclose(getattr(u, name), expected, rtol=TOLERANCES[x64], atol=TOLERANCES[x64], err_msg=name)


@pytest.mark.parametrize("x64", [False, True])
def test_same_as_the_torch_version(x64):
    torch = pytest.importorskip("torch")
    import uper.torch as ut
    given = naive.example(8, batch=4, members=10, quantiles=51)
    theirs = [torch.as_tensor(x) for x in given]
    with jax.enable_x64(x64):
        for rule in RULES:
            np.testing.assert_allclose(uj.priorities(*given, rule), ut.priorities(*theirs, rule),
                                       rtol=TOLERANCES[x64], err_msg=rule)
        for kappa in (0.0, 1.0):
            np.testing.assert_allclose(
                uj.quantile_huber_loss(given[0], given[2], given[3], given[1], kappa=kappa),
                ut.quantile_huber_loss(theirs[0], theirs[2], theirs[3], theirs[1], kappa=kappa), rtol=TOLERANCES[x64])


def test_identities():
    u = uj.decompose(*naive.example(1, dtype=np.float32))
    np.testing.assert_array_equal(u.total, u.epistemic + u.aleatoric)
    np.testing.assert_array_equal(u.total_delta, u.epistemic_delta + u.aleatoric)
    assert all(bool((value >= 0).all()) for value in u[1:])


@pytest.mark.parametrize("members, quantiles", [(10, 51), (7, 13), (2, 200), (33, 3)])
def test_equal_members_and_equal_quantiles_give_exactly_zero(members, quantiles):
    rng = np.random.default_rng(3)
    row = np.broadcast_to((1e5 + rng.normal(size=(4, 1, quantiles))).astype(np.float32), (4, members, quantiles))
    column = np.broadcast_to((1e5 + rng.normal(size=(4, members, 1))).astype(np.float32), (4, members, quantiles))
    for decompose in (uj.decompose, jax.jit(uj.decompose)):
        np.testing.assert_array_equal(decompose(row).epistemic, 0)
        u = decompose(column, column, 0.0, 1.0)
        np.testing.assert_array_equal(u.aleatoric, 0)
        assert bool((u.epistemic > 0).all())


@pytest.mark.parametrize("rule, expected", [
    ("uniform", 1), ("td", 0.75), ("total", 2), ("total_delta", 1.75), ("epistemic", 1), ("epistemic_delta", 0.75),
    ("info_gain", 0.5 * math.log(2)), ("info_gain_delta", 0.5 * math.log(1.75)), ("ratio_ea", 1),
    ("ratio_ea_delta", 0.75), ("ratio_eu", 0.5), ("ratio_eu_delta", 3 / 7), ("ratio_e2u", 0.5),
    ("ratio_e2u_delta", 0.75**2 / 1.75), ("ratio_e3u", 0.5), ("ratio_e3u_delta", 0.75**3 / 1.75)])
def test_hand_computed_priorities(rule, expected):
    assert compiled_priorities(*HAND, rule=rule).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_and_its_limits(rule):
    given = naive.example(5, dtype=np.float32)
    for limits in ({}, {"floor": 0.3}, {"cap": 0.2}):
        np.testing.assert_allclose(compiled_priorities(*given, rule=rule, **limits),
                                   naive.priorities(*given, rule, **limits), rtol=5e-6)


def test_jit_with_the_rule_alone_static():
    given = naive.example()
    compiled = jax.jit(uj.priorities, static_argnames="rule")
    np.testing.assert_allclose(compiled(*given, rule="td"), naive.priorities(*given, "td"), rtol=5e-6)
    np.testing.assert_allclose(compiled(*given), naive.priorities(*given, "info_gain_delta"), rtol=5e-6)


def test_a_td_error_that_is_given_is_used():
    errors = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(compiled_priorities(naive.example()[0], rule="td", td_error=errors), errors)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "uniform"])
def test_what_is_not_finite_gives_nan_for_its_row_alone(rule, bad):
    given = naive.example()
    given[0][2, 1, 3] = bad
    assert np.isnan(compiled_priorities(*given, rule=rule)).tolist() == [False, False, True, False, False, False]


def test_the_memory_refuses_nan_and_counts_it():
    memory = uper.Replay(10, {"x": ((), np.float32)})
    ids = memory.add(x=np.arange(6, dtype=np.float32))
    given = naive.example()
    given[1][4, 0, 0] = math.nan
    assert memory.set_priorities(ids, uj.priorities(*given)) == (5, 0, 1)
    assert memory.counters.invalid_updates == 1


@pytest.mark.parametrize("kappa, expected", [(1.0, 0.90625), (0.0, 1.25)])
def test_hand_computed_loss(kappa, expected):
    online, target = np.array([[[0.0, 1.0]]]), np.array([[[0.5, 3.0]]])
    assert compiled_loss(online, np.zeros(1), np.ones(1), target, kappa=kappa).item() == expected


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("x64", [False, True])
def test_loss_is_that_of_the_naive_pairs(x64, kappa):
    online, target, reward, discount = naive.example(3, 4, 5, 7)
    rng = np.random.default_rng(1)
    masks, weights = rng.random((4, 5)) < 0.5, rng.random(4)
    with jax.enable_x64(x64):
        for more in ({}, {"masks": masks}, {"weights": weights}, {"masks": masks, "weights": weights},
                     {"masks": np.zeros((4, 5))}):
            actual = compiled_loss(online, reward, discount, target, kappa=kappa, **more)
            expected = naive.loss(online, reward, discount, target, kappa=kappa, **more)
            np.testing.assert_allclose(actual, expected, rtol=TOLERANCES[x64], atol=TOLERANCES[x64])


@pytest.mark.parametrize("kappa", [0.0, 0.4, 1.0])
def test_gradient_against_finite_differences(kappa):
    online, target, reward, discount = naive.example(6, 3, 2, 5)
    masks, weights = np.array([[1, 0], [1, 1], [0, 1]]), np.array([0.5, 1.0, 0.25])

    def loss(x):
        return uj.quantile_huber_loss(x, reward, discount, target, masks, weights, kappa=kappa).mean()

    with jax.enable_x64(True):
        gradient = np.asarray(jax.grad(loss)(online))
        for place in np.ndindex(online.shape):
            step = np.zeros_like(online)
            step[place] = 1e-6
            assert gradient[place] == pytest.approx(float(loss(online + step) - loss(online - step)) / 2e-6, abs=1e-8)


def test_gradient_reaches_the_online_quantiles_of_learning_members_alone():
    online, target, reward, discount = naive.example(6, 3, 2, 5)
    masks = np.array([[True, False], [True, True], [False, True]])
    target[0, 1, 0] = math.nan  # a masked member's

    def loss(*given):
        return uj.quantile_huber_loss(*given, masks).sum()

    by_online, *others = jax.grad(loss, argnums=(0, 1, 2, 3))(online, reward, discount, target)
    assert (np.asarray(by_online)[~masks] == 0).all() and (np.asarray(by_online)[masks] != 0).all()
    assert not any(gradient.any() for gradient in others)


def test_no_gradient_flows_through_priorities():
    online, *rest = naive.example()
    assert not jax.grad(lambda x: uj.priorities(x, *rest).sum() + uj.decompose(x, *rest).total.sum())(online).any()


def test_a_pair_without_distance_adds_no_gradient():
    gradient = jax.grad(lambda x: uj.quantile_huber_loss(x, 0.0, 1.0, jnp.ones((1, 1, 1)), kappa=0).sum())
    assert gradient(jnp.ones((1, 1, 1))).item() == 0


@pytest.mark.parametrize("change, message", [
    ({"online": np.zeros((2, 3))}, r"online has shape \(2, 3\); it must be \[batch, members, quantiles\]"),
    ({"online": np.zeros((2, 3, 4), int)}, "floating-point numbers, not int32"),
    ({"target": np.zeros((2, 3, 5))}, r"target has shape \(2, 3, 5\), but online has \(2, 3, 4\)"),
    ({"reward": np.zeros(3)}, r"reward has shape \(3,\); it must have one number per row: \(2,\)"),
    ({"discount": None}, "discount"),
])
def test_wrong_arguments_are_refused_with_a_sentence(change, message):
    usual = dict(online=np.zeros((2, 3, 4)), target=np.zeros((2, 3, 4)), reward=np.zeros(2), discount=np.zeros(2))
    for call in (uj.priorities, uj.quantile_huber_loss, compiled_priorities, compiled_loss):
        with pytest.raises(uper.UsageError, match=message):
            call(**(usual | change))


@pytest.mark.parametrize("call", [
    lambda o, t, r, d: uj.priorities(o, t, r, d, "oracle"),
    lambda o, t, r, d: uj.priorities(o, t, r, d, cap=0.0),
    lambda o, t, r, d: uj.priorities(o, rule="td"),
    lambda o, t, r, d: uj.decompose(o, t, r),
    lambda o, t, r, d: uj.decompose(o, t, r, d, scalar_target=1.0),
    lambda o, t, r, d: uj.quantile_huber_loss(o, r, d, t, masks=np.ones((1, 3))),
    lambda o, t, r, d: uj.quantile_huber_loss(o, r, d, t, weights=np.ones(2)),
    lambda o, t, r, d: uj.quantile_huber_loss(o, r, d, t, kappa=-1.0),
])
def test_incomplete_or_contradictory_calls(call):
    with pytest.raises(uper.UsageError):
        call(*HAND)


def test_without_jax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "uper.jax")
    with pytest.raises(ImportError, match=r"pip install 'uper\[jax\]'"):
        import uper.jax  # noqa: F401
