"""uper.torch: batches of tensors, priorities, the loss and the head."""

import copy
import math
import pickle
import sys

import pytest

torch = pytest.importorskip("torch")
import naive_ensemble as naive  # noqa: E402
import numpy as np  # noqa: E402
import uper  # noqa: E402
import uper.torch as ut  # noqa: E402

torch.set_num_threads(1)
RULES = tuple(uper.PRIORITY_RULES)
HAND = dict(online=[[[0, 2], [2, 4]]], target=[[[1, 1], [1, 3]]], reward=[1], discount=[0.5])
FIELDS = dict(mean=2, epistemic=1, aleatoric=1, target_distance_sq=0.0625, epistemic_delta=0.75, total=2,
              total_delta=1.75)


def tensors(arrays, **options):
    return [torch.as_tensor(array, **options) for array in arrays]


def hand():
    return tensors(HAND.values(), dtype=torch.float64)


# decompose

def test_hand_computed_uncertainty():
    assert {name: float(value) for name, value in ut.decompose(*hand())._asdict().items()} == FIELDS


def test_a_scalar_target_adds_its_distance():
    online = hand()[0]
    u = ut.decompose(online, scalar_target=torch.tensor([5.0]))
    assert (float(u.target_distance_sq), float(u.epistemic_delta), float(u.total_delta)) == (9, 10, 11)
    assert float(ut.decompose(online, scalar_target=5.0).total_delta) == 11


def test_without_a_target_its_fields_are_nan():
    u = ut.decompose(hand()[0])
    assert [name for name, value in u._asdict().items() if value.isnan()] == [
        "target_distance_sq", "epistemic_delta", "total_delta"]
    assert float(u.total) == 2


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-12), (np.float16, 1e-12)])
@pytest.mark.parametrize("shape", [(6, 5, 7), (1, 1, 1), (3, 1, 9), (4, 8, 1), (2, 10, 51)])
def test_same_as_the_naive_pairs(shape, dtype, tolerance):
    batch, members, quantiles = shape
    given = naive.example(2, batch, members, quantiles, offset=3, dtype=dtype)
    u = ut.decompose(*tensors(given))
    assert u.mean.dtype == torch.float64
    given = [x.astype(np.float64) for x in given]
    for name, expected in naive.decompose(*given).items():
        np.testing.assert_allclose(getattr(u, name), expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_identities(seed):
    u = ut.decompose(*tensors(naive.example(seed)))
    assert torch.equal(u.total, u.epistemic + u.aleatoric)
    assert torch.equal(u.total_delta, u.epistemic_delta + u.aleatoric)
    assert all(bool((value >= 0).all()) for value in u[1:])
    assert bool((u.epistemic_delta >= u.target_distance_sq * (1 - 1e-14)).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("members, quantiles", [(10, 51), (7, 13), (2, 200), (33, 3)])
def test_equal_members_and_equal_quantiles_give_exactly_zero(members, quantiles, dtype):
    torch.manual_seed(3)
    row = (1e5 + torch.randn(4, 1, quantiles, dtype=torch.float64)).to(dtype).expand(4, members, quantiles)
    assert torch.equal(ut.decompose(row).epistemic, torch.zeros(4, dtype=torch.float64))
    column = (1e5 + torch.randn(4, members, 1, dtype=torch.float64)).to(dtype).expand(4, members, quantiles)
    u = ut.decompose(column, column, 0.0, 1.0)
    assert torch.equal(u.aleatoric, torch.zeros(4, dtype=torch.float64))
    assert bool((u.epistemic > 0).all())


def test_a_common_offset_costs_no_digits():
    online, target, reward, discount = naive.example(4)
    online, target = np.round(online * 64) / 64, np.round(target * 64) / 64  # the offset is added without rounding
    near = ut.decompose(*tensors((online, target, reward * 0, discount * 0 + 1)))
    far = ut.decompose(*tensors((online + 2**30, target + 2**30, reward * 0, discount * 0 + 1)))
    for name in ("epistemic", "aleatoric", "epistemic_delta", "total_delta"):
        np.testing.assert_allclose(getattr(far, name), getattr(near, name), rtol=1e-7, err_msg=name)
    np.testing.assert_allclose(far.epistemic, near.epistemic, rtol=1e-14)


def test_numbers_count_for_all_rows():
    online, target, _, _ = tensors(naive.example())
    by_number = ut.decompose(online.float(), target.float(), 0.1, 0.99)
    by_row = ut.decompose(online.float(), target.float(), torch.full((6,), 0.1, dtype=torch.float64),
                          torch.full((6,), 0.99, dtype=torch.float64))
    assert all(torch.equal(a, b) for a, b in zip(by_number, by_row))
    column = ut.decompose(online.float(), target.float(), torch.full((6, 1), 0.1, dtype=torch.float64), 0.99)
    assert all(torch.equal(a, b) for a, b in zip(by_number, column))


# priorities

@pytest.mark.parametrize("rule, expected", [
    ("uniform", 1), ("td", 0.75), ("total", 2), ("total_delta", 1.75), ("epistemic", 1), ("epistemic_delta", 0.75),
    ("info_gain", 0.5 * math.log(2)), ("info_gain_delta", 0.5 * math.log(1.75)), ("ratio_ea", 1),
    ("ratio_ea_delta", 0.75), ("ratio_eu", 0.5), ("ratio_eu_delta", 3 / 7), ("ratio_e2u", 0.5),
    ("ratio_e2u_delta", 0.75**2 / 1.75), ("ratio_e3u", 0.5), ("ratio_e3u_delta", 0.75**3 / 1.75)])
def test_hand_computed_priorities(rule, expected):
    assert float(ut.priorities(*hand(), rule)) == pytest.approx(expected, rel=1e-9)


def test_the_default_rule_is_the_information_gain():
    assert torch.equal(ut.priorities(*hand()), ut.priorities(*hand(), "info_gain_delta"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("limits", [{}, {"floor": 0.3}, {"cap": 0.2}])
def test_every_rule_is_that_of_the_naive_formula(rule, limits):
    given = naive.example(5)
    expected = naive.priorities(*given, rule, **limits)
    actual = ut.priorities(*tensors(given), rule, **limits)
    assert actual.dtype == torch.float64 and not actual.requires_grad
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_the_limits_matter(rule):
    given = tensors(naive.example(5))
    usual = ut.priorities(*given, rule)
    assert bool((ut.priorities(*given, rule, cap=1e-3) <= 1e-3).all())
    has_floor = rule.startswith(("info_gain", "ratio"))
    assert torch.equal(ut.priorities(*given, rule, floor=10.0), usual) != has_floor


def test_a_td_error_that_is_given_is_used():
    given = tensors(naive.example())
    errors = torch.arange(6.0)
    assert torch.equal(ut.priorities(*given, "td", td_error=errors), errors.double())
    assert torch.equal(ut.priorities(given[0], rule="td", td_error=errors), errors.double())


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.endswith("_delta") and rule != "td"])
def test_rules_without_delta_need_no_target(rule):
    given = tensors(naive.example())
    assert torch.equal(ut.priorities(given[0], rule=rule), ut.priorities(*given, rule))


def test_ratios_of_nothing_are_zero_and_of_no_noise_are_capped():
    zeros = torch.zeros(1, 2, 3)
    apart = torch.tensor([[[1.0, 1, 1], [3, 3, 3]]])
    for rule in RULES:
        assert float(ut.priorities(zeros, zeros, 0.0, 1.0, rule)) == (rule == "uniform"), rule
    assert float(ut.priorities(apart, rule="ratio_ea")) == 100
    assert float(ut.priorities(apart, rule="info_gain")) == pytest.approx(0.5 * math.log1p(1e10))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "uniform"])
def test_what_is_not_finite_gives_nan_for_its_row_alone(rule, bad):
    given = tensors(naive.example())
    usual = ut.priorities(*given, rule)
    given[0][2, 1, 3] = bad
    broken = ut.priorities(*given, rule)
    assert broken.isnan().tolist() == [False, False, True, False, False, False]
    assert torch.equal(broken[[0, 1, 3, 4, 5]], usual[[0, 1, 3, 4, 5]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_a_bad_td_error_gives_nan(bad):
    online = hand()[0].expand(2, 2, 2)
    assert ut.priorities(online, rule="td", td_error=torch.tensor([bad, 1.0])).isnan().tolist() == [True, False]


def test_the_memory_refuses_nan_and_counts_it():
    memory = uper.Replay(10, {"x": ((), np.float32)})
    ids = memory.add(x=np.arange(6, dtype=np.float32))
    given = tensors(naive.example())
    given[1][4, 0, 0] = math.nan
    counts = memory.set_priorities(ids, ut.priorities(*given))
    assert counts == uper.UpdateCounts(updated=5, evicted=0, invalid=1)
    assert memory.counters.invalid_updates == 1
    assert memory.priority(ids[4:5])[0] == 1  # as before


@pytest.mark.parametrize("rule", ["epistemic", "info_gain", "ratio_eu"])
def test_an_overflow_of_what_the_rule_reads_gives_nan(rule):
    wide = torch.tensor([[[0.0, 1e200]] * 2], dtype=torch.float64)  # A overflows, E is 0
    assert math.isnan(ut.priorities(wide, rule=rule)) == (rule != "epistemic")


def test_results_are_detached_and_the_inputs_untouched():
    given = tensors(naive.example())
    before = [x.clone() for x in given]
    given[0].requires_grad_()
    assert not any(ut.priorities(*given, rule).requires_grad for rule in RULES)
    assert not any(value.requires_grad for value in ut.decompose(*given))
    assert all(torch.equal(a, b) for a, b in zip(before, given))


@pytest.mark.parametrize("rule", RULES)
def test_same_as_the_numpy_version(rule):
    given = naive.example(7, batch=4, members=10, quantiles=51)
    np.testing.assert_allclose(ut.priorities(*tensors(given), rule), uper.priorities(*given, rule), rtol=1e-9)


# quantile_huber_loss

def test_hand_computed_loss():
    online, target = torch.tensor([[[0.0, 1.0]]]), torch.tensor([[[0.5, 3.0]]])
    zero, one = torch.zeros(1), torch.ones(1)
    assert float(ut.quantile_huber_loss(online, zero, one, target)) == 0.90625
    # kappa 0: (0.25 (0.5 + 3) + 0.25 * 0.5 + 0.75 * 2) / 2
    assert float(ut.quantile_huber_loss(online, zero, one, target, kappa=0)) == 1.25
    # the target is r + discount * target
    assert float(ut.quantile_huber_loss(online, one * 0.5, one * 2, (target - 0.5) / 2)) == 0.90625


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 2e-6)])
@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0, 50.0])
@pytest.mark.parametrize("members, quantiles", [(5, 7), (1, 1), (2, 20)])
def test_loss_is_that_of_the_naive_pairs(members, quantiles, kappa, dtype, tolerance):
    online, target, reward, discount = naive.example(3, 4, members, quantiles, dtype=dtype)
    rng = np.random.default_rng(1)
    masks, weights = rng.random((4, members)) < 0.5, rng.random(4).astype(dtype)
    for more in ({}, {"masks": masks}, {"weights": weights}, {"masks": masks, "weights": weights}):
        actual = ut.quantile_huber_loss(*tensors((online, reward, discount, target)), kappa=kappa,
                                        **{name: torch.as_tensor(value) for name, value in more.items()})
        expected = naive.loss(online, reward, discount, target, kappa=kappa, **more)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
        assert actual.dtype == torch.as_tensor(online).dtype


def test_masks_and_weights_change_the_loss():
    online, target, reward, discount = tensors(naive.example(3, 2, 2, 4))
    given = online, reward, discount, target
    members = torch.stack([ut.quantile_huber_loss(online[:, k, None], reward, discount, target[:, k, None])
                           for k in range(2)], 1)
    torch.testing.assert_close(ut.quantile_huber_loss(*given), members.mean(1))
    masks = torch.tensor([[True, False], [True, True]])
    loss = ut.quantile_huber_loss(*given, masks)
    torch.testing.assert_close(loss.mean(), (members * masks).sum() / 3)
    weighted = ut.quantile_huber_loss(*given, masks, torch.tensor([0.5, 1.0]))
    torch.testing.assert_close(weighted, loss * torch.tensor([0.5, 1.0], dtype=torch.float64))
    assert torch.equal(ut.quantile_huber_loss(*given, torch.zeros(2, 2)), torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize("kappa", [0.0, 0.4, 1.0])
def test_gradient_against_finite_differences(kappa):
    online, target, reward, discount = tensors(naive.example(6, 3, 2, 5))
    masks, weights = torch.tensor([[1, 0], [1, 1], [0, 1]]), torch.tensor([0.5, 1.0, 0.25])
    online.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: ut.quantile_huber_loss(x, reward, discount, target, masks, weights,
                                                                     kappa=kappa), online, eps=1e-6, atol=1e-7)


def test_no_gradient_reaches_the_target_or_masked_members():
    online, target, reward, discount = tensors(naive.example(6, 3, 2, 5))
    online.requires_grad_()
    target.requires_grad_()
    masks = torch.tensor([[True, False], [True, True], [False, True]])
    with torch.no_grad():
        target[0, 1, 0] = math.nan  # a masked member's
    ut.quantile_huber_loss(online, reward, discount, target, masks).sum().backward()
    assert target.grad is None
    assert bool((online.grad[~masks] == 0).all())
    assert bool((online.grad[masks] != 0).all())


def test_a_pair_without_distance_adds_no_gradient():
    online = torch.ones(1, 1, 1, requires_grad=True)
    ut.quantile_huber_loss(online, 0.0, 1.0, torch.ones(1, 1, 1), kappa=0).sum().backward()
    assert float(online.grad) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("where", [0, 1, 2, 3])
def test_a_loss_of_what_is_not_finite_is_not_finite(where, bad):
    online, target, reward, discount = tensors(naive.example())
    given = [online, reward, discount, target]
    given[where][1] = bad
    assert ut.quantile_huber_loss(*given).isfinite().tolist() == [True, False, True, True, True, True]


def test_half_precision_is_computed_in_single():
    online, target, reward, discount = tensors(naive.example(dtype=np.float16))
    loss = ut.quantile_huber_loss(online, reward, discount, target)
    assert loss.dtype == torch.float32
    expected = ut.quantile_huber_loss(online.float(), reward.float(), discount.float(), target.float())
    assert torch.equal(loss, expected)


def test_gradient_steps_find_the_quantiles():
    torch.manual_seed(0)
    online = torch.zeros(1, 2, 5, requires_grad=True)
    target = torch.linspace(0, 1, 101)[torch.randint(101, (400, 1, 2, 5))]
    optimizer = torch.optim.Adam([online], 0.01)
    for sample in target:
        optimizer.zero_grad()
        ut.quantile_huber_loss(online, 1.0, 1.0, sample, kappa=0).sum().backward()
        optimizer.step()
    # 10 samples per step of a uniform law on [1, 2]: the midpoints are its quantiles
    np.testing.assert_allclose(online.detach()[0], np.tile([1.1, 1.3, 1.5, 1.7, 1.9], (2, 1)), atol=0.12)


# Wrong arguments

@pytest.mark.parametrize("change, message", [
    ({"online": torch.zeros(2, 3)}, r"online has shape \(2, 3\); it must be \[batch, members, quantiles\]"),
    ({"online": torch.zeros(2, 0, 3)}, "at least one member"),
    ({"online": torch.zeros(2, 3, 4, dtype=torch.int64)}, "floating-point numbers, not torch.int64"),
    ({"online": [[[1.0]]]}, "must be a tensor of floating-point numbers, not list"),
    ({"target": torch.zeros(2, 3, 5)}, r"target has shape \(2, 3, 5\), but online has \(2, 3, 4\)"),
    ({"target": None}, "needs target, reward and discount|must be a tensor"),
    ({"reward": torch.zeros(3)}, r"reward has shape \(3,\); it must have one number per row: \(2,\)"),
    ({"discount": torch.zeros(2, 2)}, r"discount has shape \(2, 2\)"),
    ({"reward": "many"}, "reward must be numbers, not str"),
    ({"target": torch.zeros(2, 3, 4, device="meta")}, "target is on meta, but online is on cpu"),
    ({"reward": torch.zeros(2, device="meta")}, "reward is on meta"),
])
def test_wrong_arguments_are_refused_with_a_sentence(change, message):
    usual = dict(online=torch.zeros(2, 3, 4), target=torch.zeros(2, 3, 4), reward=torch.zeros(2),
                 discount=torch.zeros(2))
    for call in (ut.priorities, ut.quantile_huber_loss):
        with pytest.raises(uper.UsageError, match=message):
            call(**(usual | change))


@pytest.mark.parametrize("options, message", [
    ({"rule": "counts"}, "no priority rule 'counts'; there are uniform, td"),
    ({"floor": 0.0}, "floor must be a number from 1e-37"),
    ({"cap": 0.0}, "cap must be a number from 1e-37"),
    ({"cap": math.inf}, "cap must be a number from"),
    ({"cap": math.nan}, "cap must be a number from"),
    ({"rule": "td", "td_error": torch.zeros(3)}, "td_error has shape"),
])
def test_wrong_options_of_priorities(options, message):
    with pytest.raises(uper.UsageError, match=message):
        ut.priorities(*hand(), **options)


@pytest.mark.parametrize("call", [
    lambda o, t, r, d: ut.decompose(o, t, r),
    lambda o, t, r, d: ut.decompose(o, reward=r, discount=d),
    lambda o, t, r, d: ut.decompose(o, t, r, d, scalar_target=1.0),
    lambda o, t, r, d: ut.priorities(o),
    lambda o, t, r, d: ut.quantile_huber_loss(o, r, d, t, masks=torch.ones(1, 3)),
    lambda o, t, r, d: ut.quantile_huber_loss(o, r, d, t, weights=torch.ones(2)),
    lambda o, t, r, d: ut.quantile_huber_loss(o, r, d, t, kappa=-1.0),
    lambda o, t, r, d: ut.quantile_huber_loss(o, r, d, t, kappa=math.inf),
])
def test_incomplete_or_contradictory_calls(call):
    with pytest.raises(uper.UsageError):
        call(*hand())


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "uper.torch")
    with pytest.raises(ImportError, match=r"pip install 'uper\[torch\]'"):
        import uper.torch  # noqa: F401


# Devices

@pytest.mark.parametrize("device", ["meta", *(["cuda"] if torch.cuda.is_available() else [])])
def test_results_are_on_the_device_of_the_quantiles(device):
    online, target, reward, discount = (x.to(device) for x in tensors(naive.example()))
    assert ut.decompose(online, target, reward, discount).total_delta.device.type == device
    for rule in RULES:
        assert ut.priorities(online, target, reward, discount, rule).device.type == device
    masks = torch.ones(6, 5, dtype=torch.bool, device=device)
    assert ut.quantile_huber_loss(online, reward, 0.9, target, masks).device.type == device


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same_values():
    given = tensors(naive.example())
    online, target, reward, discount = given
    there = [x.cuda() for x in given]
    for rule in RULES:
        torch.testing.assert_close(ut.priorities(*there, rule).cpu(), ut.priorities(*given, rule))
    torch.testing.assert_close(ut.quantile_huber_loss(there[0], there[2], there[3], there[1]).cpu(),
                               ut.quantile_huber_loss(online, reward, discount, target))


# TorchBatch

def filled(members=3, **options):
    memory = uper.Replay(64, {"obs": ((4,), np.float32), "action": ((), np.int64)}, members=members,
                         mask_probability=0.5, **options)
    memory.add(obs=np.random.default_rng(1).normal(size=(32, 4)).astype(np.float32), action=np.arange(32))
    return memory


def test_tensors_share_the_memory_of_the_batch():
    memory = filled()
    batch = memory.sample(8)
    tensors = batch.torch()
    for name in ("obs", "action", "weights", "probabilities"):
        assert np.shares_memory(tensors[name].numpy(), batch[name]), name
        assert tensors[name] is getattr(tensors, name)
    assert tensors.obs.dtype == torch.float32 and tensors.action.dtype == torch.int64
    assert tensors.weights.dtype == torch.float32 and tensors.probabilities.dtype == torch.float64
    memory.sample(8, out=batch)
    np.testing.assert_array_equal(tensors.obs.numpy(), batch.obs)


def test_masks_are_bools_of_members():
    batch = filled().sample(8)
    masks = batch.torch().masks
    assert masks.dtype == torch.bool and masks.shape == (8, 3)
    np.testing.assert_array_equal(masks.numpy(), batch.masks)
    assert torch.equal(filled(members=1).sample(8).torch().masks, torch.ones(8, 1, dtype=torch.bool))


def test_ids_go_straight_back_to_the_memory():
    memory = filled()
    tensors = memory.sample(8).torch()
    assert tensors.ids.dtype == np.uint64
    assert memory.set_priorities(tensors.ids, torch.full((8,), 2.5)).updated == 8
    np.testing.assert_array_equal(memory.priority(tensors.ids), 2.5)


def test_dict_observations_stay_dicts():
    gym = pytest.importorskip("gymnasium")
    space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, (2, 3), np.uint8),
                            state=gym.spaces.Dict(speed=gym.spaces.Box(-1, 1, (1,), np.float32)))
    memory = uper.Replay.for_spaces(16, space, gym.spaces.Discrete(2), num_envs=1)
    space.seed(1)
    memory.reset({k: v for k, v in gym.vector.utils.batch_space(space, 1).sample().items()})
    for _ in range(4):
        obs = gym.vector.utils.batch_space(space, 1).sample()
        memory.step(np.array([1]), np.array([0.5]), obs, np.array([False]), np.array([False]))
    batch = memory.sample(5)
    tensors = batch.torch()
    assert tensors.obs["image"].shape == (5, 2, 3) and tensors["next_obs"]["state"]["speed"].shape == (5, 1)
    assert np.shares_memory(tensors.obs["image"].numpy(), batch.obs["image"])


def test_the_keys_are_those_of_the_batch():
    batch = filled().sample(4)
    tensors = batch.torch()
    assert set(tensors) == set(batch) == {"obs", "action", "ids", "probabilities", "weights", "masks"}
    assert len(tensors) == 6 and "obs" in tensors and "reward" not in tensors
    with pytest.raises(AttributeError, match="this batch has no 'reward'; it has obs, action"):
        tensors.reward
    with pytest.raises(KeyError):
        tensors["reward"]
    assert "4 on cpu: obs, action" in repr(tensors)


def test_a_batch_can_be_copied_and_pickled():
    tensors = filled().sample(4).torch()
    for other in (copy.copy(tensors), copy.deepcopy(tensors), pickle.loads(pickle.dumps(tensors))):
        assert torch.equal(other.obs, tensors.obs) and list(other) == list(tensors)


def test_the_device_of_a_batch():
    batch = filled().sample(4)
    for device in ("meta", torch.device("meta")):
        tensors = batch.torch(device)
        assert {tensors[name].device.type for name in tensors if name != "ids"} == {"meta"}
    assert np.shares_memory(batch.torch("cpu").obs.numpy(), batch.obs)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_pinning_without_a_gpu_is_refused():
    with pytest.raises(uper.UsageError, match="pin=True needs a GPU"):
        filled().sample(4).torch(pin=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_pinning_copies():
    batch = filled().sample(4)
    assert batch.torch(pin=True).obs.is_pinned()
    there = batch.torch("cuda", pin=True)
    np.testing.assert_array_equal(there.obs.cpu().numpy(), batch.obs)


def test_types_that_pytorch_does_not_know():
    memory = uper.Replay(8, {"x": ((), np.longdouble)})
    memory.add(x=np.ones(3, np.longdouble))
    with pytest.raises(uper.UsageError, match="x has type float128"):
        memory.sample(2).torch()


def test_stacked_frames_with_the_stack_last():
    memory = uper.FrameReplay(16, (5, 6), 2, stack_axis=-1)
    memory.reset(np.zeros((1, 5, 6, 2), np.uint8))
    for i in range(3):
        obs = np.full((1, 5, 6, 2), i + 1, np.uint8)
        memory.step(np.array([0]), np.array([0.0]), obs, np.array([False]), np.array([False]))
    batch = memory.sample(4)
    tensors = batch.torch()
    assert tensors.obs.shape == (4, 5, 6, 2)
    np.testing.assert_array_equal(tensors.next_obs.numpy(), batch.next_obs)


# EnsembleQuantileHead

def test_head_shapes_and_helpers():
    torch.manual_seed(0)
    head = ut.EnsembleQuantileHead(8, actions=3, members=4, quantiles=5)
    theta = head(torch.randn(6, 8))
    assert theta.shape == (6, 3, 4, 5)
    assert sum(p.numel() for p in head.parameters()) == (8 + 1) * 3 * 4 * 5
    assert head(torch.randn(2, 6, 8)).shape == (2, 6, 3, 4, 5)
    torch.testing.assert_close(head.values(theta), theta.mean((2, 3)))
    actions = torch.tensor([0, 1, 2, 2, 1, 0])
    for row, action in enumerate(actions):
        assert torch.equal(head.take(theta, actions)[row], theta[row, action])
    assert torch.equal(head.take(theta, actions[:, None].int()), head.take(theta, actions))


def test_head_takes_greedy_actions_per_member_or_of_the_mean():
    torch.manual_seed(0)
    theta = torch.randn(6, 3, 4, 5)
    own = ut.EnsembleQuantileHead.take_greedy(theta)
    joint = ut.EnsembleQuantileHead.take_greedy(theta, per_member=False)
    differ = 0
    for row in range(6):
        best = int(theta[row].mean((1, 2)).argmax())
        assert torch.equal(joint[row], theta[row, best])
        for k in range(4):
            mine = int(theta[row, :, k].mean(-1).argmax())
            assert torch.equal(own[row, k], theta[row, mine, k])
            differ += mine != best
    assert differ > 0


def test_members_of_a_head_learn_apart():
    torch.manual_seed(0)
    head = ut.EnsembleQuantileHead(4, actions=2, members=2, quantiles=3)
    features, actions = torch.randn(5, 4), torch.zeros(5, dtype=torch.long)
    masks = torch.tensor([[True, False]]).expand(5, 2)
    online = head.take(head(features), actions)
    ut.quantile_huber_loss(online, torch.ones(5), 0.0, torch.zeros(5, 2, 3), masks).mean().backward()
    gradient = head.linear.weight.grad.view(2, 2, 3, 4)
    assert bool((gradient[0, 0] != 0).all()) and bool((gradient[1] == 0).all()) and bool((gradient[0, 1] == 0).all())
