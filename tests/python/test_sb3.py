"""The adapters of Stable-Baselines3: buffers, training with priorities, saving and resuming."""

import copy
import io
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")
import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces
from sb3_contrib.common.utils import quantile_huber_loss as sb3_quantile_huber_loss
from stable_baselines3.common import buffers as sb3_buffers
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

import uper
import uper.torch
from uper.sb3 import DQN, QRDQN, UPER, DictReplayBuffer, RefreshPriorities, ReplayBuffer, td_errors

torch.set_num_threads(1)
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python" / "sb3_uper_cartpole.py"
VECTOR = spaces.Box(-np.inf, np.inf, (3,), np.float32)
TWO = spaces.Discrete(2)
PICTURES = spaces.Box(0, 255, (4, 8, 8), np.uint8)
DICT = spaces.Dict({"place": spaces.Box(-1, 1, (2,), np.float32), "cell": spaces.Discrete(5),
                    "view": spaces.Box(0, 255, (1, 36, 36), np.uint8)})
CARTPOLE = {"learning_rate": 1e-3, "buffer_size": 20_000, "learning_starts": 500, "batch_size": 64, "train_freq": 4,
            "target_update_interval": 250, "exploration_fraction": 0.2, "exploration_final_eps": 0.04}


def numbered(first, n_envs, terminals=(), timeouts=()):
    """The arguments of add() for one step, in which everything tells the number of the transition."""
    numbers = np.arange(first, first + n_envs, dtype=np.float32)
    done = np.isin(numbers, [*terminals, *timeouts])
    infos = [{"TimeLimit.truncated": number in timeouts} for number in numbers]
    obs = np.repeat(numbers[:, None], 3, 1)
    return obs, obs + n_envs, (numbers % 2).astype(np.int64), 10 * numbers, done, infos


def filled(steps, n_envs=1, capacity=100, terminals=(), timeouts=(), **options):
    buffer = ReplayBuffer(capacity, VECTOR, TWO, device="cpu", n_envs=n_envs, seed=1, **options)
    for step in range(steps):
        buffer.add(*numbered(step * n_envs, n_envs, terminals, timeouts))
    return buffer


# Types, shapes and content


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("action_space", [TWO, spaces.Box(-1, 1, (2,), np.float64), spaces.MultiDiscrete([3, 4]),
                                          spaces.MultiBinary(3)])
@pytest.mark.parametrize("space", [VECTOR, spaces.Box(-1, 1, (2, 2), np.float64), spaces.Discrete(5), PICTURES,
                                   spaces.MultiDiscrete([3, 4]), spaces.MultiBinary(3), DICT])
def test_samples_have_the_types_and_shapes_of_sb3(space, action_space, n_envs):
    ours, theirs = ((DictReplayBuffer, sb3_buffers.DictReplayBuffer) if isinstance(space, spaces.Dict) else
                    (ReplayBuffer, sb3_buffers.ReplayBuffer))
    pair = [kind(20, space, action_space, device="cpu", n_envs=n_envs) for kind in (ours, theirs)]
    assert isinstance(pair[0], theirs)
    batched = gym.vector.utils.batch_space(space, n_envs)
    batched.seed(1)
    for step in range(7):
        actions = np.stack([action_space.sample() for _ in range(n_envs)])
        arguments = (batched.sample(), batched.sample(), actions, np.ones(n_envs), np.zeros(n_envs, bool),
                     [{}] * n_envs)
        for buffer in pair:
            buffer.add(*copy.deepcopy(arguments))
        assert [buffer.size() for buffer in pair] == [min(step + 1, 20 // n_envs)] * 2
        assert [buffer.pos for buffer in pair] == [(step + 1) % (20 // n_envs)] * 2
        assert [buffer.full for buffer in pair] == [step + 1 >= 20 // n_envs] * 2
    mine, yours = (buffer.sample(6) for buffer in pair)
    assert mine._fields[:len(yours._fields)] == yours._fields
    for name in yours._fields:
        for one, other in zip(leaves(getattr(mine, name)), leaves(getattr(yours, name)), strict=True):
            assert one is other is None or (one.dtype, one.shape) == (other.dtype, other.shape), name


def leaves(value):
    return [value[key] for key in sorted(value)] if isinstance(value, dict) else [value]


@pytest.mark.parametrize("n_envs", [1, 4])
def test_ids_name_the_rows_that_were_added(n_envs):
    buffer = filled(20, n_envs)
    samples = buffer.sample(64)
    numbers = torch.tensor(samples.ids.astype(np.float32))
    assert set(samples.ids) <= set(range(20 * n_envs))
    assert len(set(samples.ids)) > 10
    assert torch.equal(samples.observations, numbers[:, None].expand(-1, 3))
    assert torch.equal(samples.next_observations, numbers[:, None].expand(-1, 3) + n_envs)
    assert torch.equal(samples.actions[:, 0].float(), numbers % 2)
    assert torch.equal(samples.rewards[:, 0], 10 * numbers)
    assert samples.discounts is None
    assert samples.masks is None


def test_a_sample_stays_as_it_is_when_the_buffer_moves_on():
    buffer = filled(20, capacity=20)
    samples = buffer.sample(8)
    before = samples.observations.clone()
    for step in range(20, 60):
        buffer.add(*numbered(step, 1))
    buffer.sample(8)
    assert torch.equal(samples.observations, before)


def test_extend_adds_several_steps():
    buffer = filled(0, n_envs=2)
    steps = [numbered(2 * step, 2) for step in range(5)]
    buffer.extend(*zip(*steps, strict=True))
    assert buffer.size() == 5
    assert torch.equal(buffer._get_samples(np.array([7])).rewards, torch.tensor([[70.0]]))


@pytest.mark.parametrize("handle", [True, False])
@pytest.mark.parametrize("n_steps", [1, 2])
def test_time_outs_bootstrap(handle, n_steps):
    buffer = filled(6, terminals=[2], timeouts=[4], handle_timeout_termination=handle, n_steps=n_steps, gamma=0.5)
    dones = buffer._get_samples(np.arange(5)).dones[:, 0].tolist()
    ends = [0, 0, 1, 0, 0 if handle else 1]
    if n_steps == 2:  # the step before leads to the end, too
        ends = [0, 1, 1, *([0, 0] if handle else [1, 1])]
    assert dones == ends


def test_n_steps_fold_rewards_within_an_episode():
    buffer = filled(7, terminals=[3], n_steps=3, gamma=0.5)
    samples = buffer._get_samples(np.arange(5))
    # Episodes 0 1 2 3 and 4 5 6; rewards are 10 * number.
    assert samples.rewards[:, 0].tolist() == [0 + 5 + 5, 10 + 10 + 7.5, 20 + 15, 30, 40 + 25 + 15]
    assert samples.dones[:, 0].tolist() == [0, 1, 1, 1, 0]
    assert samples.discounts[[0, 4], 0].tolist() == [0.125, 0.125]
    assert samples.factors(0.9)[:, 0].tolist() == [0.125, 0, 0, 0, 0.125]
    assert samples.next_observations[:, 0].tolist() == [3, 4, 4, 4, 7]


def test_n_steps_end_where_an_episode_was_reset_from_outside():
    """`learn()` resets the environments in mid-episode; no transition may reach across that."""
    buffer = ReplayBuffer(100, VECTOR, TWO, device="cpu", n_steps=2, gamma=0.5, seed=1)
    obs, after = np.zeros((2, 1, 3), np.float32)  # the caller's, filled again for each step
    for before in [0, 1, 7, 8]:
        obs[:], after[:] = before, before + 1
        buffer.add(obs, after, np.array([0]), np.array([1.0]), np.array([False]), [{}])
        after[:] = 7
    samples = buffer._get_samples(np.arange(buffer.size()))
    pairs = torch.stack([samples.observations[:, 0], samples.next_observations[:, 0]], 1)
    assert pairs.tolist() == [[0, 2], [7, 9]]


def test_rows_continue_although_a_number_is_nan():
    buffer = ReplayBuffer(100, VECTOR, TWO, device="cpu", n_steps=2, gamma=0.5, seed=1)
    row = np.array([[1, np.nan, 2]], np.float32)
    for _ in range(4):
        buffer.add(row, row, np.array([0]), np.array([1.0]), np.array([False]), [{}])
    assert buffer._get_samples(np.arange(3)).rewards[:, 0].tolist() == [1.5, 1.5, 1.5]


def test_vec_normalize_is_applied_as_by_sb3():
    env = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]), gamma=0.9)
    env.reset()
    for _ in range(50):
        env.step(np.array([1]))
    space = env.observation_space
    ours, theirs = ReplayBuffer(10, space, TWO, device="cpu"), sb3_buffers.ReplayBuffer(10, space, TWO, device="cpu")
    arguments = (np.full((1, 4), 2, np.float32), np.full((1, 4), 3, np.float32), np.array([1]), np.array([5.0]),
                 np.array([False]), [{}])
    for buffer in (ours, theirs):
        buffer.add(*arguments)
    mine, yours = ours.sample(3, env=env), theirs.sample(3, env=env)
    for name in ("observations", "next_observations", "rewards"):
        assert torch.equal(getattr(mine, name), getattr(yours, name))
        assert getattr(mine, name).dtype == torch.float32
    assert not torch.equal(mine.rewards, ours.sample(3).rewards)


# Draws and priorities


def test_probabilities_and_weights_are_those_of_the_formula():
    buffer = filled(8, priority_exponent=0.5, uniform_mix=0, importance_exponent=(0.4, 0.8))
    raw = np.arange(1, 9) ** 2.0
    assert buffer.set_priorities(np.arange(8), raw) == (8, 0, 0)
    expected = np.arange(1, 9) / np.arange(1, 9).sum()
    for progress, exponent in ((0, 0.4), (0.5, 0.6), (1, 0.8), (2, 0.8)):
        buffer.progress = progress
        assert buffer.importance_exponent_now == pytest.approx(exponent)
        samples = buffer.sample(200)
        np.testing.assert_allclose(samples.probabilities, expected[samples.ids.astype(int)], rtol=1e-6)
        weights = (8 * samples.probabilities) ** -exponent
        assert samples.weights.shape == (200, 1)
        np.testing.assert_allclose(samples.weights[:, 0], weights / weights.max(), rtol=1e-5)


def test_rows_are_drawn_by_their_priorities():
    buffer = filled(4, priority_exponent=1, uniform_mix=0)
    buffer.set_priorities(np.arange(4), [0, 1, 3, 4])
    counts = np.bincount(buffer.sample(8_000).ids.astype(int), minlength=4)
    assert counts[0] == 0
    # Four standard deviations of a binomial count.
    for count, probability in zip(counts[1:], (1 / 8, 3 / 8, 1 / 2), strict=True):
        assert abs(count - 8_000 * probability) < 4 * np.sqrt(8_000 * probability * (1 - probability))


def test_uniform_draws_have_weights_of_one():
    buffer = filled(10, selector="uniform")
    buffer.set_priorities(np.arange(10), np.arange(10))
    samples = buffer.sample(50)
    assert samples.weights.unique().tolist() == [1]
    assert np.all(samples.probabilities == 0.1)


def test_late_and_invalid_updates_change_nothing():
    buffer = filled(10, n_envs=2, capacity=20)
    samples = buffer.sample(16)
    assert buffer.set_priorities(samples.ids, torch.full((16,), torch.nan)) == (0, 0, 16)
    for step in range(10, 20):
        buffer.add(*numbered(2 * step, 2))
    before = buffer.replay.priority(np.arange(20, 40))
    assert buffer.set_priorities(samples.ids, torch.full((16,), 9.0)) == (0, 16, 0)
    assert np.array_equal(buffer.replay.priority(np.arange(20, 40)), before)


def test_reset_empties_and_ids_are_not_used_again():
    buffer = filled(10)
    old = buffer.sample(8).ids
    buffer.reset()
    assert (buffer.size(), buffer.pos, buffer.full) == (0, 0, False)
    for step in range(5):
        buffer.add(*numbered(step, 1))
    samples = buffer.sample(20)
    assert set(samples.ids) <= set(range(10, 15))
    assert torch.equal(samples.observations[:, 0], torch.tensor(samples.ids - np.uint64(10)).float())
    assert buffer.set_priorities(np.concatenate([old, samples.ids]), 2.0) == (20, 8, 0)
    assert torch.equal(buffer._get_samples(samples.ids).rewards, samples.rewards)


@pytest.mark.parametrize("options", [{}, {"n_steps": 3}, {"members": 4, "mask_probability": 0.5}])
def test_a_pickled_buffer_continues_alike(options):
    buffer = filled(30, n_envs=2, capacity=50, **options)
    buffer.set_priorities(buffer.sample(8).ids, np.arange(8))
    other = pickle.loads(pickle.dumps(buffer))
    for one in (buffer, other):
        one.add(*numbered(60, 2))
    first, second = buffer.sample(32), other.sample(32)
    assert np.array_equal(first.ids, second.ids)
    for name in ("observations", "rewards", "weights", "dones"):
        assert torch.equal(getattr(first, name), getattr(second, name))
    assert (first.masks is None) == (second.masks is None)
    assert first.masks is None or torch.equal(first.masks, second.masks)


def test_masks_have_the_given_probability():
    buffer = filled(2_000, capacity=2_000, members=5, mask_probability=0.25)
    masks = buffer._get_samples(np.arange(2_000)).masks
    assert masks.dtype == torch.bool
    assert masks.shape == (2_000, 5)
    assert abs(masks.float().mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 10_000)


# Pictures and dicts


def play_pictures(space, buffer, twin, steps, n_envs=2, channels_last=False, colors=1):
    """Stacks random pictures as VecFrameStack does, with ends, and adds them to both buffers."""
    rng = np.random.default_rng(3)
    axis = -1 if channels_last else 1
    depth = space.shape[-1 if channels_last else 0] // colors

    def picture():
        shape = (n_envs, 8, 8, colors) if channels_last else (n_envs, colors, 8, 8)
        return rng.integers(0, 256, shape, dtype=np.uint8)
    obs = np.concatenate([picture()] * depth, axis)
    for step in range(steps):
        keep = [slice(None)] * 4
        keep[axis] = slice(colors, None)
        after = np.concatenate([obs[tuple(keep)], picture()], axis)
        done = np.array([step % 7 == 6, step % 5 == 4])[:n_envs]
        arguments = (obs, after, rng.integers(0, 2, n_envs), rng.normal(size=n_envs), done,
                     [{"TimeLimit.truncated": bool(step % 2)}] * n_envs)
        for one in (buffer, twin):
            one.add(*copy.deepcopy(arguments))
        obs = after.copy()
        obs[done] = np.concatenate([picture()] * depth, axis)[done]


@pytest.mark.parametrize(("shape", "colors", "depth"), [((4, 8, 8), 1, 4), ((8, 8, 4), 1, 4), ((3, 8, 8), 3, 1),
                                                        ((6, 8, 8), 3, 2), ((1, 8, 8), 1, 1)])
def test_pictures_are_stored_once_and_come_back_whole(shape, colors, depth):
    space = spaces.Box(0, 255, shape, np.uint8)
    small = ReplayBuffer(80, space, TWO, device="cpu", n_envs=2, optimize_memory_usage=True, seed=1)
    large = ReplayBuffer(80, space, TWO, device="cpu", n_envs=2, seed=1)
    play_pictures(space, small, large, 60, channels_last=shape[-1] < 8, colors=colors)
    assert isinstance(small.replay, uper.FrameReplay)
    assert (small.size(), small.pos, small.full) == (40, 20, True)
    assert small._frames.depth == depth
    ids = np.arange(40, 120)
    first, second = small._get_samples(ids), large._get_samples(ids)
    for name in ("observations", "next_observations", "actions", "rewards", "dones"):
        assert torch.equal(getattr(first, name), getattr(second, name)), name
    assert first.observations.is_contiguous()


def test_pictures_need_a_quarter_of_the_memory():
    space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    sizes = [ReplayBuffer(20_000, space, TWO, device="cpu", optimize_memory_usage=small).replay.memory_bytes
             for small in (True, False)]
    assert sizes[0] < sizes[1] / 7


def test_frame_stack_can_be_told():
    space = spaces.Box(0, 255, (12, 16, 16), np.uint8)
    assert ReplayBuffer(10, space, TWO, optimize_memory_usage=True)._frames.depth == 4
    assert ReplayBuffer(10, space, TWO, optimize_memory_usage=True, frame_stack=6)._frames.frame == (2, 16, 16)
    for wrong in (5, 12, 0):
        with pytest.raises(uper.UsageError, match="frame_stack"):
            ReplayBuffer(10, space, TWO, optimize_memory_usage=True, frame_stack=wrong)


def test_dict_observations_come_back_by_key():
    buffer = DictReplayBuffer(40, DICT, TWO, device="cpu", n_envs=2, seed=1)
    twin = DictReplayBuffer(40, DICT, TWO, device="cpu", n_envs=2, seed=1, n_steps=2, gamma=0.5)
    for step in range(10):
        numbers = np.arange(2 * step, 2 * step + 2)
        obs = {"place": np.stack([numbers, -numbers], 1) / 100, "cell": numbers % 5,
               "view": np.broadcast_to(numbers[:, None, None, None], (2, 1, 36, 36)).astype(np.uint8)}
        after = {"place": obs["place"] + 0.02 * np.array([1, -1]), "cell": (numbers + 2) % 5,
                 "view": obs["view"] + np.uint8(2)}
        for one in (buffer, twin):
            one.add(copy.deepcopy(obs), copy.deepcopy(after), numbers % 2, np.ones(2), np.zeros(2, bool), [{}] * 2)
    samples = buffer.sample(30)
    numbers = torch.tensor(samples.ids.astype(np.int64))
    assert set(samples.observations) == {"place", "cell", "view"}
    assert torch.equal(samples.observations["cell"], numbers[:, None] % 5)
    assert torch.equal(samples.next_observations["view"][:, 0, 0, 0].long(), numbers + 2)
    assert torch.allclose(samples.observations["place"][:, 0], numbers / 100)
    folded = twin._get_samples(np.arange(4))
    assert torch.equal(folded.next_observations["cell"][:, 0], torch.tensor([4, 0, 1, 2]))
    assert folded.rewards[:, 0].tolist() == [1.5] * 4


# Refusals


@pytest.mark.parametrize(("call", "message"), [
    (lambda: ReplayBuffer(10, DICT, TWO), "DictReplayBuffer for Dict observations"),
    (lambda: DictReplayBuffer(10, VECTOR, TWO), "use uper.sb3.ReplayBuffer"),
    (lambda: ReplayBuffer(10, VECTOR, TWO, optimize_memory_usage=True), "Leave it out for Box"),
    (lambda: DictReplayBuffer(10, DICT, TWO, optimize_memory_usage=True), "Leave it out for Dict"),
    (lambda: ReplayBuffer(10, VECTOR, TWO, n_step=3), "no option 'n_step'"),
    (lambda: ReplayBuffer(10, VECTOR, TWO, weights="largest"), "weights must be one of"),
    (lambda: ReplayBuffer(10, VECTOR, TWO, importance_exponent=(0.4, 2)), "importance_exponent"),
    (lambda: ReplayBuffer(10, VECTOR, TWO).sample(4), "empty"),
    (lambda: filled(1, n_envs=4).add(*numbered(0, 2)), "4 environments"),
    (lambda: filled(1, n_envs=2).add(*numbered(0, 2)[:5], [{}]), "1 infos"),
    (lambda: filled(1).add(np.zeros((1, 7)), *numbered(0, 1)[1:]), r"obs of shape \(1, 7\)"),
    (lambda: filled(1, n_envs=2).add(np.zeros((3, 2)), *numbered(0, 2)[1:]), r"obs of shape \(3, 2\)"),
    (lambda: ReplayBuffer(10**9, PICTURES, TWO), "optimize_memory_usage=True"),
    (lambda: DQN("MlpPolicy", "CartPole-v1", rule="info_gain_delta"), "these do: uniform, td, "),
    (lambda: QRDQN("MlpPolicy", "CartPole-v1", rule="epistemic"), "does not fit"),
    (lambda: UPER("MlpPolicy", "CartPole-v1", rule="counts"), "does not fit"),
    (lambda: UPER("MlpPolicy", "CartPole-v1", members=65), "members"),
    (lambda: UPER("MlpPolicy", "CartPole-v1", target_rule="mean"), "target_rule"),
    (lambda: UPER("MlpPolicy", "CartPole-v1", policy_kwargs={"n_quantiles": 5}), "leave it out"),
    (lambda: UPER("MlpPolicy", "CartPole-v1", replay_buffer_kwargs={"members": 5}), "leave it out"),
    (lambda: DQN("MlpPolicy", "CartPole-v1", replay_buffer_class=HerReplayBuffer), "not HerReplayBuffer"),
    (lambda: RefreshPriorities(every=0), "every"),
])
def test_errors_say_what_to_do(call, message):
    with pytest.raises(uper.Error, match=message):
        call()


def test_a_refused_row_changes_nothing():
    buffer = filled(5, n_steps=2, n_envs=2)
    state = pickle.dumps(buffer)
    good = numbered(10, 2)
    for place, wrong in ((0, np.zeros((2, 7))), (1, np.zeros((3, 3))), (2, np.zeros(3)), (3, np.zeros(1)),
                         (4, np.zeros(1, bool)), (5, [{}])):
        with pytest.raises(uper.UsageError):
            buffer.add(*good[:place], wrong, *good[place + 1:])
    assert pickle.dumps(buffer) == state


def test_without_the_library_the_extra_is_named():
    code = "import sys; sys.modules['stable_baselines3'] = None; import uper.sb3"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert "ImportError: uper.sb3 needs" in run.stderr
    assert "pip install 'uper[sb3]'" in run.stderr


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}


# Training


def small(kind, env="CartPole-v1", **options):
    options = {"learning_starts": 50, "buffer_size": 1_000, "batch_size": 16, "seed": 1, "device": "cpu",
               "target_update_interval": 50} | options
    if kind is QRDQN:
        options["policy_kwargs"] = {"n_quantiles": 7} | options.get("policy_kwargs", {})
    if kind is UPER:
        options = {"members": 3, "quantiles": 7} | options
    return kind("MlpPolicy", env, **options)


def test_losses_are_those_of_sb3_times_the_weights():
    for kind in (DQN, QRDQN):
        model = small(kind)
        model.learn(100)
        samples = model.replay_buffer.sample(16)
        assert samples.weights.min() < 1
        losses, _ = model._losses(samples)
        factors = 0.99 * (1 - samples.dones)
        for row in range(16):
            target, value = sb3_target_and_value(model, samples, row, factors[row])
            expected = (torch.nn.functional.smooth_l1_loss(value, target) if kind is DQN else
                        sb3_quantile_huber_loss(value, target))
            torch.testing.assert_close(losses[row], samples.weights[row, 0] * expected, rtol=1e-4, atol=1e-5)


def sb3_target_and_value(model, samples, row, factor):
    action = int(samples.actions[row])
    obs, after = samples.observations[row:row + 1], samples.next_observations[row:row + 1]
    with torch.no_grad():
        if isinstance(model, DQN):
            return samples.rewards[row] + factor * model.q_net_target(after).max(), model.q_net(obs)[:, action][0][None]
        following = model.quantile_net_target(after)
        best = following.mean(1).argmax(1)
        return samples.rewards[row] + factor * following[:, :, best[0]], model.quantile_net(obs)[:, :, action]


def test_train_sets_the_priorities_of_its_rows():
    for kind, rule in ((DQN, "td"), (DQN, "total_delta"), (QRDQN, "td"), (QRDQN, "total"), (UPER, "info_gain_delta"),
                       (UPER, "ratio_ea_delta")):
        model = small(kind, rule=rule, learning_rate=0.0)  # the networks stay as they are
        model.learn(76)
        buffer = model.replay_buffer
        buffer.record_draws()
        model.train(gradient_steps=3, batch_size=16)
        drawn = buffer.take_draws()
        rows = buffer._get_samples(np.arange(76))
        expected = model._losses(rows)[1].numpy()
        assert len(drawn) > 16
        np.testing.assert_allclose(buffer.replay.priority(drawn), expected[drawn.astype(int)], rtol=1e-4)
        if kind is UPER:
            factors = rows.factors(0.99)[:, 0]
            with torch.no_grad():
                online = model.quantile_net(rows.observations).view(76, 3, 7, 2)
                online = online[np.arange(76), :, :, rows.actions[:, 0]]
                after = model.quantile_net_target(rows.next_observations).view(76, 3, 7, 2)
                best = after.mean(2).argmax(-1)  # of each member
                target = torch.stack([after[:, k][np.arange(76), :, best[:, k]] for k in range(3)], 1)
            priorities = uper.torch.priorities(online, target, rows.rewards[:, 0], factors, rule)
            np.testing.assert_allclose(expected, priorities, rtol=1e-5)


def test_the_cap_limits_priorities():
    model = small(UPER, rule="ratio_ea_delta", priority_cap=0.5)
    model.learn(80)
    assert 0.5 in model.replay_buffer.replay.priority(np.arange(80))
    assert small(DQN).priority_cap == 1e9
    assert small(UPER).priority_cap == 100


def test_members_learn_from_the_rows_of_their_masks_alone():
    model = small(UPER, mask_probability=0.25)
    model.learn(60)
    stored = model.replay_buffer._get_samples(np.arange(60)).masks
    assert stored.shape == (60, 3)
    assert abs(stored.float().mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 180)
    samples = model.replay_buffer.sample(16)
    masks = torch.zeros(16, 3, dtype=torch.bool)
    masks[:, 1] = True
    model.policy.optimizer.zero_grad()
    model._losses(samples._replace(masks=masks))[0].mean().backward()
    gradient = model.quantile_net.quantile_net[-1].bias.grad.view(3, 7, 2)
    assert gradient[1].abs().sum() > 0
    assert gradient[[0, 2]].abs().sum() == 0


def test_the_target_rule_decides_whose_greedy_action_counts():
    model = small(UPER, members=2, quantiles=1)
    quantiles = torch.tensor([[[[1.0, 0.0]], [[0.0, 5.0]]]])  # [1, 2 members, 1, 2 actions]
    assert model._greedy(quantiles).tolist() == [[0, 1]]
    model.target_rule = "ensemble"
    assert model._greedy(quantiles).tolist() == [[1]]


def test_uper_acts_by_the_mean_of_its_members():
    model = small(UPER)
    obs = np.array([[0.1, 0.2, 0.0, -0.1]], np.float32)
    with torch.no_grad():
        values = model.quantile_net(torch.tensor(obs)).view(1, 3, 7, 2).mean((1, 2))
    assert model.predict(obs, deterministic=True)[0] == values.argmax(1).numpy()


def test_the_importance_exponent_follows_the_progress():
    model = small(DQN, replay_buffer_kwargs={"importance_exponent": (0.2, 0.6)}, learning_starts=10)
    model.learn(100)
    assert model.replay_buffer.progress == pytest.approx(1, abs=0.05)
    assert model.logger.name_to_value["train/importance_exponent"] == pytest.approx(0.6, abs=0.02)


def test_n_steps_reach_the_buffer_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = small(DQN, n_steps=3, gamma=0.9)
    model.learn(80)
    assert (model.n_steps, model.replay_buffer.n_steps) == (3, 3)
    samples = model.replay_buffer.sample(64)
    torch.testing.assert_close(samples.discounts.unique(), torch.tensor([0.0, 0.9**3]))
    torch.testing.assert_close(samples.rewards.max(), torch.tensor(1 + 0.9 + 0.9**2))


@pytest.mark.parametrize("kind", [DQN, QRDQN, UPER])
def test_a_saved_run_continues_alike(kind, tmp_path):
    model = small(kind, n_steps=2)
    model.learn(120)
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    other = kind.load(tmp_path / "model.zip", env=gym.make("CartPole-v1"), device="cpu")
    other.load_replay_buffer(tmp_path / "buffer.pkl")
    if kind is UPER:
        assert (other.members, other.quantiles, other.n_quantiles) == (3, 7, 21)
        assert other.rule == "info_gain_delta"
    assert type(other.replay_buffer) is ReplayBuffer
    model._last_obs = None  # begin an episode, as after loading
    for one in (model, other):
        one.set_random_seed(7)
        one.learn(80, reset_num_timesteps=False)
    assert model.num_timesteps == other.num_timesteps == 200
    for name, value in model.policy.state_dict().items():
        assert torch.equal(value, other.policy.state_dict()[name]), name
    assert pickle.dumps(model.replay_buffer.replay) == pickle.dumps(other.replay_buffer.replay)


def test_a_foreign_buffer_is_refused():
    stock = stable_baselines3.DQN("MlpPolicy", "CartPole-v1", learning_starts=10, buffer_size=100)
    stock.learn(20)
    file = io.BytesIO()
    stock.save_replay_buffer(file)
    model = small(DQN)
    file.seek(0)
    model.load_replay_buffer(file)
    with pytest.raises(uper.UsageError, match=r"needs a uper.sb3.ReplayBuffer .* has ReplayBuffer"):
        model.learn(80)
    other = small(UPER)
    other.replay_buffer = small(UPER, members=2).replay_buffer
    with pytest.raises(uper.UsageError, match="members=3; it has ReplayBuffer with members=2"):
        other.learn(80)


class Grid(gym.Env):
    """A walk on a line, shown as a dict."""

    observation_space = DICT
    action_space = TWO

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.seen(), {}

    def step(self, action):
        self.place += 1 if action else -1
        return self.seen(), float(self.place), abs(self.place) >= 4, False, {}

    def seen(self):
        return {"place": np.full(2, self.place / 5, np.float32), "cell": abs(self.place),
                "view": np.full((1, 36, 36), self.place + 5, np.uint8)}


@pytest.mark.parametrize("kind", [DQN, UPER])
def test_dict_observations_and_four_environments(kind):
    options = {"members": 2, "quantiles": 5} if kind is UPER else {}
    model = kind("MultiInputPolicy", DummyVecEnv([Grid] * 4), learning_starts=40, buffer_size=400, batch_size=8,
                 target_update_interval=40, device="cpu", seed=1, **options)
    model.learn(192)
    assert isinstance(model.replay_buffer, DictReplayBuffer)
    assert model.replay_buffer.size() == 48
    assert model.replay_buffer.replay.counters.updated > 0


class Pictures(gym.Env):
    """Stacked pictures of a moving dot."""

    observation_space = PICTURES
    action_space = TWO

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.seen(), {}

    def step(self, action):
        self.time += 1
        return self.seen(), 1.0, False, self.time >= 9, {}

    def seen(self):
        stack = np.zeros((4, 8, 8), np.uint8)
        for i in range(4):
            stack[i, (self.time - i) % 8, 0] = 200
        return stack[::-1].copy()


def test_stock_dqn_stores_pictures_once_and_learns_twice():
    model = stable_baselines3.DQN("MlpPolicy", Monitor(Pictures()), replay_buffer_class=ReplayBuffer, seed=1,
                                  optimize_memory_usage=True, learning_starts=10, buffer_size=100, device="cpu")
    model.learn(44)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The last trajectory")  # of a library that would have to cut it
        model.learn(44)
    buffer = model.replay_buffer
    assert buffer.size() == 88
    samples = buffer._get_samples(np.arange(88))
    assert torch.equal(samples.observations[:, 1:], samples.next_observations[:, :-1])


def test_sac_learns_with_the_buffer_alone():
    model = stable_baselines3.SAC("MlpPolicy", "Pendulum-v1", replay_buffer_class=ReplayBuffer, learning_starts=100,
                                  seed=1, device="cpu", replay_buffer_kwargs={"n_steps": 2, "gamma": 0.98}, gamma=0.98)
    model.learn(150)
    assert model.replay_buffer.size() == 149
    assert model.replay_buffer.replay.counters.drawn == 50 * model.batch_size
    assert all(torch.isfinite(value).all() for value in model.policy.state_dict().values())


STOCK = [(stable_baselines3.SAC, "Pendulum-v1"), (stable_baselines3.TD3, "Pendulum-v1"),
         (stable_baselines3.DDPG, "Pendulum-v1"), (sb3_contrib.TQC, "Pendulum-v1"),
         (sb3_contrib.CrossQ, "Pendulum-v1"), (stable_baselines3.DQN, "CartPole-v1"),
         (sb3_contrib.QRDQN, "CartPole-v1")]


@pytest.mark.parametrize(("kind", "env"), STOCK, ids=lambda value: getattr(value, "__name__", None))
def test_refreshed_priorities_are_td_errors(kind, env):
    model = kind("MlpPolicy", env, replay_buffer_class=ReplayBuffer, learning_starts=40, batch_size=8, seed=1,
                 buffer_size=200, device="cpu", replay_buffer_kwargs={"priority_exponent": 1, "uniform_mix": 0})
    model.learn(60, callback=RefreshPriorities())
    buffer = model.replay_buffer
    counters = buffer.replay.counters
    assert 0 < counters.updated <= counters.drawn
    assert counters.invalid_updates == counters.updates_of_evicted == 0
    priorities = buffer.replay.priority(np.arange(60))
    assert len(np.unique(priorities)) > 5
    buffer.sample(4)  # nobody asks for these any more
    assert buffer.take_draws().size == 0
    # The draws of the last update were refreshed with the networks as they are now.
    rows = buffer._get_samples(np.arange(60))
    errors = td_errors(model, rows).numpy()
    assert errors.shape == (60,)
    if kind in (stable_baselines3.TD3, stable_baselines3.DDPG, stable_baselines3.DQN, sb3_contrib.QRDQN):
        assert np.isclose(priorities, errors, rtol=1e-4).sum() >= 4  # others draw actions at random
    if kind is stable_baselines3.TD3:
        with torch.no_grad():
            actions = model.actor_target(rows.next_observations)
            after = torch.cat(model.critic_target(rows.next_observations, actions), 1)
            target = rows.rewards + 0.99 * (1 - rows.dones) * after.min(1, keepdim=True).values
            now = torch.cat(model.critic(rows.observations, rows.actions), 1)
        np.testing.assert_allclose(errors, (target - now).abs().mean(1), rtol=1e-5)


def test_refresh_waits_and_skips_rows_that_are_gone():
    model = stable_baselines3.DQN("MlpPolicy", "CartPole-v1", replay_buffer_class=ReplayBuffer, learning_starts=20,
                                  batch_size=8, seed=1, buffer_size=30, device="cpu", train_freq=1)
    calls = []

    def constant(model, samples):
        calls.append(samples.ids)
        return torch.full((len(samples.ids),), 0.5)
    model.learn(80, callback=RefreshPriorities(every=10, priority=constant, batch_size=4))
    assert all(len(ids) <= 4 for ids in calls)
    counters = model.replay_buffer.replay.counters
    assert counters.updates_of_evicted == 0
    assert 0 < counters.updated < counters.drawn / 2  # rows left before their refresh, or were drawn twice
    assert model.replay_buffer.replay.priority(calls[-1]).tolist() == [0.5] * len(calls[-1])


def test_refresh_refuses_what_it_does_not_fit():
    with pytest.raises(uper.UsageError, match="leave out RefreshPriorities"):
        small(UPER).learn(10, callback=RefreshPriorities())
    model = stable_baselines3.DQN("MlpPolicy", "CartPole-v1", buffer_size=100)
    with pytest.raises(uper.UsageError, match="needs replay_buffer_class"):
        model.learn(10, callback=RefreshPriorities())
    with pytest.raises(uper.UsageError, match="give it priority"):
        td_errors(object(), None)


# Learning, and a killed run


def mean_return(kind, steps, **options):
    model = kind("MlpPolicy", "CartPole-v1", seed=1, device="cpu", **CARTPOLE, **options)
    model.learn(steps)
    return evaluate_policy(model, Monitor(gym.make("CartPole-v1")), n_eval_episodes=20)[0]


def test_dqn_learns_cartpole():
    assert mean_return(DQN, 8_000) > 100  # a random policy has 22


def test_uper_learns_cartpole():
    assert mean_return(UPER, 8_000, members=5, quantiles=11) > 100


def test_the_example_goes_on_after_a_kill(tmp_path):
    command = [sys.executable, EXAMPLE, "--save-every", "200", "--folder", tmp_path / "run"]
    run = subprocess.Popen([*command, "--steps", "1000000"], env=environment())
    try:
        deadline = time.monotonic() + 300
        while not list((tmp_path / "run").glob("0*/buffer.pkl")) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    saved = max(int(path.name) for path in (tmp_path / "run").glob("0*"))
    rest = subprocess.run([*command, "--steps", str(saved + 300)], env=environment(), capture_output=True, text=True)
    assert rest.returncode == 0, rest.stderr
    assert re.search(rf"resumed at step {saved:,} with {saved:,} transitions", rest.stdout)
    assert f"return after {saved + 300:,} steps" in rest.stdout
