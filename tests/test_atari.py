"""Atari through the program: ROMs that are not right, keys, and games that go on in another process."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from conftest import GAMES_57, ROOT

ROMS = ROOT / ".cache" / "ale-0.12.1" / "roms"
STATES = ROOT / "build" / "release" / "atari_states"
PONG_MD5 = "60e0ea3cbe0913d39803477945e9e5ec"


def rollout(uper, *arguments, env="atari/pong"):
    return uper("rollout", "--env", env, "--policy", "random", *arguments)


def break_missing(path):
    path.unlink()
    return "is missing"


def break_empty(path):
    path.write_bytes(b"")
    return "d41d8cd98f00b204e9800998ecf8427e"


def break_truncated(path):
    path.write_bytes(path.read_bytes()[:-1])
    return "2047 bytes"


def break_one_bit(path):
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    return "2048 bytes"


def break_other_game(path):
    shutil.copy(ROMS / "breakout.bin", path)
    return "f34f08e5eb96e500e851a80be3277a56"


def break_too_large(path):
    os.truncate(path, (1 << 26) + 1)
    return "larger"


def break_folder(path):
    path.unlink()
    path.mkdir()
    return "not a file"


@pytest.mark.parametrize("damage", [break_missing, break_empty, break_truncated, break_one_bit, break_other_game,
                                    break_too_large, break_folder])
def test_a_rom_that_is_not_right(uper, tmp_path, damage):
    shutil.copy(ROMS / "pong.bin", tmp_path / "pong.bin")
    setting = ["--set", f"environment.rom_dir={tmp_path}"]
    assert rollout(uper, "--steps", 5, *setting).returncode == 0, "the copy is right"
    words = damage(tmp_path / "pong.bin")
    for arguments in (["rollout", "--policy", "random", "--steps", 5], ["bench", "env", "--no-peers"]):
        result = uper(*arguments, "--env", "atari/pong", *setting)
        assert result.returncode == 3, result.stderr
        for word in (words, "atari/pong", str(tmp_path / "pong.bin"), PONG_MD5):
            assert word in result.stderr
        assert result.stdout == ""


def test_a_run_knows_its_roms_from_any_folder(uper, tmp_path):
    (tmp_path / "own").mkdir()
    shutil.copy(ROMS / "pong.bin", tmp_path / "own" / "pong.bin")
    command = ["train", "--agent", "dqn", "--env", "atari/pong", "--set", "environment.rom_dir=own", "--set",
               "replay.minimum_transitions=50", "--set", "evaluate_every_frames=0", "--no-plots", "--out", "run",
               "--device", "cpu"]
    for frames in (80, 160):  # the second command goes on
        result = uper(*command, "--frames", frames, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    result = uper("evaluate", tmp_path / "run", "--frames", 40, cwd="/")
    assert result.returncode == 0, result.stderr


def test_a_folder_that_is_not_there(uper, tmp_path):
    result = rollout(uper, "--set", f"environment.rom_dir={tmp_path}/nowhere")
    assert result.returncode == 3 and "nowhere/pong.bin" in result.stderr


@pytest.mark.parametrize("arguments, words", [
    (["--env", "atari/pnog"], "did you mean 'atari/pong'"),
    (["--env", "atari/space_invader"], "did you mean 'atari/space_invaders'"),
    (["--env", "atari/pong", "--set", "environment.protocol=gym"], "dqn-zoo"),
    (["--env", "atari/pong", "--set", "environment.mode=77"], "the game has only 0, 1"),
    (["--env", "atari/pong", "--set", "environment.difficulty=4"], "the game has only 0, 1"),
    (["--env", "atari/pong", "--set", "environment.frame_size=4"], "environment.frame_size"),
    (["--env", "atari/pong", "--set", "environment.sticky=2"], "environment.sticky"),
])
def test_bad_settings(uper, arguments, words):
    result = uper("rollout", "--policy", "random", "--steps", 3, *arguments)
    assert result.returncode == 2 and words in result.stderr


def test_all_games_are_listed(uper):
    listed = uper("list", "envs").stdout.split()
    assert [name for name in listed if name.startswith("atari/")] == [f"atari/{game}" for game in GAMES_57]


def test_wrong_action_in_a_file(uper, tmp_path):
    (tmp_path / "actions").write_text("0\n5\n6\n")
    result = uper("rollout", "--env", "atari/pong", "--actions", tmp_path / "actions")
    assert result.returncode == 2 and "6" in result.stderr and "line 3" in result.stderr


def test_a_seed_decides_everything(uper, tmp_path):
    def dump(seed, *settings):
        path = tmp_path / "x.npz"
        arguments = [word for setting in settings for word in ("--set", setting)]
        assert rollout(uper, "--steps", 150, "--seed", seed, "--dump", path, *arguments).returncode == 0
        with np.load(path) as file:
            return {name: file[name] for name in file.files}

    for settings in ([], ["environment.protocol=dopamine"]):
        first, again, other = dump(1, *settings), dump(1, *settings), dump(2, *settings)
        assert all((first[name] == again[name]).all() for name in first)
        assert (first["observation"] != other["observation"]).any()


def test_frames_are_raw_frames(uper):
    result = rollout(uper, "--steps", 100, "--json")
    assert json.loads(result.stdout)["frames"] == 400


def continued(folder, game, protocol, played, steps):
    """Digests of a game that goes on, and of the same one restored in another process."""
    words = [STATES, game, protocol, "5", str(played), str(steps), folder / "state"]
    outputs = [subprocess.run([*words, *more], capture_output=True, text=True, check=True).stdout.split()
               for more in ([], ["restore"])]
    assert len(outputs[0]) == steps // 100
    return outputs


@pytest.mark.parametrize("game, protocol", [("pong", "dqn-zoo"), ("breakout", "dopamine"), ("qbert", "dqn-zoo"),
                                            ("star_gunner", "dopamine")])
def test_goes_on_in_another_process(tmp_path, game, protocol):
    unbroken, restored = continued(tmp_path, game, protocol, played=77, steps=300)
    assert unbroken == restored and len(set(unbroken)) > 1


@pytest.mark.soak
@pytest.mark.parametrize("protocol", ["dqn-zoo", "dopamine"])
@pytest.mark.parametrize("game", GAMES_57)
def test_every_game_goes_on_in_another_process(tmp_path, game, protocol):
    for played in (1, 333, 1500):
        unbroken, restored = continued(tmp_path, game, protocol, played, steps=2000)
        assert unbroken == restored
