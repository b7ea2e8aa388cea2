"""Our Atari games against ale-py, Pillow and OpenCV: the same observations, rewards, discounts and ends."""

import numpy as np
import pytest
from ale_py import roms

from atari_oracle import EPISODES, Console
from conftest import GAMES_57

PROTOCOLS = list(EPISODES)
EVERY_TIME = ["alien", "assault", "beam_rider", "breakout", "freeway", "ms_pacman", "pong", "tennis"]
STEPS, STEPS_SOAK = 200, 3_000
NOOP_MAX = 30


def play(uper, folder, env, actions, *settings):
    """The dump of a rollout of these actions."""
    (folder / "actions").write_text("".join(f"{action}\n" for action in actions))
    arguments = [word for setting in settings for word in ("--set", f"environment.{setting}")]
    result = uper("rollout", "--env", f"atari/{env}", "--actions", folder / "actions", "--dump", folder / "x.npz",
                  "--seed", 3, *arguments)
    assert result.returncode == 0, result.stderr
    with np.load(folder / "x.npz") as file:
        return {name: file[name] for name in file.files}


def first_difference(episode, dump, begin, end):
    """The first step in [begin, end) that differs from the oracle's, with what differs; None if none does."""
    for number in range(begin, end):
        seen = episode.observation()
        pixels = int((seen != dump["observation"][number]).sum())
        if pixels:
            return number, f"{pixels} pixels"
        step = episode.step(dump["action"][number])
        for name in ("reward", "discount", "terminated", "truncated"):
            if dump[name][number] != getattr(step, name):
                return number, f"{name} {dump[name][number]}, expected {getattr(step, name)}"
        if (step.terminated or step.truncated) and number + 1 < end:
            return number, "the oracle's episode ended"
    return None


def check_episode(console, protocol, dump, begin, end, noops, **options):
    """One of the numbers of idle frames must explain the whole episode."""
    found = []
    for count in noops:
        difference = first_difference(EPISODES[protocol](console, count, **options), dump, begin, end)
        if difference is None:
            return
        found.append((difference[0], f"after {count} idle frames: {difference[1]}"))
    step, what = max(found)
    pytest.fail(f"{protocol}, episode from {begin}: differs at step {step}, {what}")


def check(uper, folder, game, protocol, steps, settings=(), noops=None, seed=1, **options):
    """Plays random actions in both; returns the dump."""
    console_options = {name: options.pop(name) for name in ("full_action_set", "mode", "difficulty") if name in options}
    console = Console(roms.get_rom_path(game), **console_options)
    actions = np.random.default_rng(seed).integers(len(console.actions), size=steps)
    dump = play(uper, folder, game, actions, f"protocol={protocol}", "sticky=0", *settings)
    assert dump["observation"].shape[0] == steps
    ends = np.flatnonzero(dump["terminated"] | dump["truncated"]) + 1
    noops = noops or (range(1, NOOP_MAX + 1) if protocol == "dqn-zoo" else [0])
    for begin, end in zip([0, *ends], [*ends, steps]):
        if begin < end:
            check_episode(console, protocol, dump, begin, end, noops, **options)
    return dump


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("game", EVERY_TIME)
def test_same_as_the_libraries(uper, tmp_path, game, protocol):
    check(uper, tmp_path, game, protocol, STEPS)


@pytest.mark.soak
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("game", GAMES_57)
def test_same_as_the_libraries_in_all_games(uper, tmp_path, game, protocol):
    check(uper, tmp_path, game, protocol, STEPS_SOAK, seed=2)


def test_the_play_has_lives_and_ends(uper, tmp_path):
    """So that the comparison has seen them: lives lost without an end, and ends."""
    zoo = check(uper, tmp_path, "breakout", "dqn-zoo", 450, ["noop_max_frames=1"], noops=[1])
    lost = (zoo["discount"] == 0) & (zoo["terminated"] == 0)
    assert lost.sum() >= 6 and zoo["terminated"].sum() >= 2 and (zoo["reward"] > 0).sum() >= 2
    dopamine = check(uper, tmp_path, "breakout", "dopamine", 450)
    assert dopamine["terminated"].sum() >= 2
    assert ((dopamine["discount"] == 0) == (dopamine["terminated"] == 1)).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_settings(uper, tmp_path, protocol):
    check(uper, tmp_path, "breakout", protocol, 150, ["episodic_life=true", "frame_size=64", "noop_max_frames=1"],
          noops=[1], episodic_life=True, size=64)
    dump = check(uper, tmp_path, "pong", protocol, 50, ["full_action_set=true"], full_action_set=True)
    assert dump["action"].max() == 17
    check(uper, tmp_path, "space_invaders", protocol, 50, ["mode=3", "difficulty=1"], mode=3, difficulty=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [96, 128, 159])
def test_other_sizes(uper, tmp_path, size, protocol):
    """Pillow resizes down before across from 111 on."""
    check(uper, tmp_path, "seaquest", protocol, 40, [f"frame_size={size}", "noop_max_frames=1"], noops=[1], size=size)


def test_the_dump_shows_the_stack(uper, tmp_path):
    """A000, AB00, ABC0, ABCD, BCDE."""
    seen = play(uper, tmp_path, "pong", [0] * 8)["observation"]
    assert seen.shape == (8, 84, 84, 4) and seen.dtype == np.uint8
    assert not seen[0, ..., 1:].any() and not seen[1, ..., 2:].any() and not seen[2, ..., 3:].any()
    assert seen[:3, ..., 0].any() and seen[3].any(axis=(0, 1)).all()
    for number in range(1, 8):
        newest = min(number, 3)
        same = seen[number][..., :newest] == (seen[number - 1][..., :newest] if number < 4
                                              else seen[number - 1][..., 1:])
        assert same.all()
