"""Our MinAtar games against the package: with its draws replayed, the same to the last bit; without, alike."""

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest

import minatar_policies as policies
from minatar_recording import DRAWS, GAMES, PURPOSES, RESET, Environment, record, replay, run_tool

SCRIPTED = {
    "asterix": [policies.asterix],
    "breakout": [policies.breakout],
    "freeway": [policies.freeway],
    "seaquest": [policies.Seaquest(), policies.careless_seaquest],
    "space_invaders": [policies.space_invaders, policies.sparing_space_invaders],
}
STEPS_RANDOM, STEPS_SCRIPTED, STEPS_WITHOUT_RAMPING = 6_000, 15_000, 5_000

# The scripted play with ramping must have seen these ranges: attribute of the package's game -> smallest, largest.
DEEP = {
    "asterix": {"spawn_speed": (1, 10), "move_speed": (1, 5), "ramp_index": (0, 9)},
    "breakout": {"pos": (0, 9), "ball_y": (0, 9)},
    "freeway": {"terminate_timer": (-1, 2499), "pos": (1, 9)},
    "seaquest": {"e_spawn_speed": (1, 20), "move_speed": (2, 5), "diver_count": (-2, 6), "oxygen": (-1, 200),
                 "sub_x": (0, 9), "sub_y": (0, 8)},
    "space_invaders": {"enemy_move_interval": (6, 12), "pos": (0, 9)},
}


class Depth:
    """Smallest and largest value of each attribute of DEEP."""

    def __init__(self, game):
        self.attributes = DEEP[game]
        self.seen = {}

    def __call__(self, game):
        for name in self.attributes:
            value = getattr(game, name)
            low, high = self.seen.get(name, (value, value))
            self.seen[name] = (min(low, value), max(high, value))

    def check(self):
        for name, (low, high) in self.attributes.items():
            seen_low, seen_high = self.seen[name]
            assert seen_low <= low and seen_high >= high, f"{name}: only {self.seen[name]} was reached"


def check_same(play, folder):
    rewards, terminated, truncated, frames = replay(play, folder)
    expected = np.stack(play.frames)
    different = ((rewards != play.rewards) | (terminated != play.ends) | (truncated != 0)
                 | (frames != expected).any(axis=(1, 2, 3)))
    if different.any():
        first = int(np.argmax(different))
        channels = sorted(set(np.argwhere(frames[first] != expected[first])[:, 2].tolist()))
        pytest.fail(f"{play.game}: {different.sum()} of {len(different)} events differ, the first is {first} "
                    f"(action {play.events[first]}): reward {rewards[first]} for {play.rewards[first]}, "
                    f"terminated {terminated[first]} for {play.ends[first]}, channels {channels}")


@lru_cache(maxsize=None)
def recorded(game):
    """The plays of the package with ramping, and what the scripted ones have seen."""
    depth = Depth(game)
    plays = [record(game, policies.random, STEPS_RANDOM)]
    for seed, policy in enumerate(SCRIPTED[game], 1):
        plays.append(record(game, policy, STEPS_SCRIPTED // len(SCRIPTED[game]), seed=seed, watch=depth))
    return plays, depth


@pytest.mark.parametrize("game", GAMES)
def test_same_frames_rewards_and_ends(game, tmp_path):
    plays, _ = recorded(game)
    for play in plays:
        check_same(play, tmp_path)
    assert sum(play.steps for play in plays) >= 20_000


@pytest.mark.parametrize("game", GAMES)
def test_same_without_ramping(game, tmp_path):
    for policy in (policies.random, SCRIPTED[game][0]):
        check_same(record(game, policy, STEPS_WITHOUT_RAMPING, ramping=False, seed=11), tmp_path)


@pytest.mark.parametrize("game", GAMES)
def test_the_play_goes_deep(game):
    """So that the comparison above has seen every rule: channels, draws, and the ends of every range."""
    plays, depth = recorded(game)
    depth.check()
    frames = np.concatenate([play.frames for play in plays])
    assert frames.any(axis=(0, 1, 2)).all(), "a channel was never seen"
    drawn = Counter(PURPOSES[purpose] for play in plays for purpose, _, _ in play.draws)
    assert set(drawn) == {"repeat_action", *(name for names in DRAWS[game].values() for name in names)}
    if game == "asterix":
        assert drawn["visitor_lane"] < drawn["visitor_right"], "there was always an empty lane"


def test_breakout_refills_its_bricks_and_flies_through_some():
    """The two rules of breakout that no attribute of DEEP shows."""
    play = recorded("breakout")[0][1]
    frames = np.stack(play.frames)
    balls, bricks = frames[:, :, :, 1], frames[:, :, :, 3]
    refilled = (np.diff(bricks.sum(axis=(1, 2), dtype=int)) > 0) & (np.array(play.events[1:]) != RESET)
    assert refilled.sum() >= 3
    assert (balls & bricks).any(axis=(1, 2)).sum() >= 10


def test_aliens_of_space_invaders_land():
    """And turn at the wall there, or are run into: two ends that are hard to reach."""
    play = recorded("space_invaders")[0][2]
    frames, ends = np.stack(play.frames), np.flatnonzero(play.ends)
    aliens, cannons = frames[..., 1], frames[..., 0]
    landed = ends[aliens[ends - 1, 9].any(axis=1)]
    assert (aliens[landed, 0].any(axis=1) & ~aliens[landed - 1, 0].any(axis=1)).sum() >= 2
    assert (aliens[landed] & cannons[landed]).any(axis=(1, 2)).sum() >= 2


def package_returns(game, episodes, seed):
    """Return and length of each episode of the random policy."""
    environment = Environment(game)
    environment.seed(seed)
    generator = np.random.default_rng(seed)
    results = []
    for _ in range(episodes):
        environment.reset()
        total, steps, over = 0, 0, False
        while not over:
            reward, over = environment.act(generator.integers(6))
            total += reward
            steps += 1
        results.append((total, steps))
    return np.array(results, dtype=float)


@pytest.mark.parametrize("game, episodes, ours_episodes", [
    ("asterix", 600, 20_000), ("breakout", 2_000, 20_000), ("freeway", 40, 2_000), ("seaquest", 1_000, 20_000),
    ("space_invaders", 500, 20_000)])
def test_random_policy_returns_agree(game, episodes, ours_episodes):
    """Means of return and length within 4 standard errors of their difference (1 in 16,000 by chance; seeds are fixed)."""
    theirs = package_returns(game, episodes, seed=5)
    lines = run_tool("random", game, ours_episodes, 5).split()
    ours = np.array(lines, dtype=float).reshape(-1, 2)
    assert len(ours) == ours_episodes
    error = np.sqrt(theirs.var(axis=0, ddof=1) / len(theirs) + ours.var(axis=0, ddof=1) / len(ours))
    difference = np.abs(theirs.mean(axis=0) - ours.mean(axis=0))
    print(game, "theirs", theirs.mean(axis=0), "ours", ours.mean(axis=0), "standard error", error)
    assert (difference <= 4 * error).all()
