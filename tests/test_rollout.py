"""uper rollout from outside: exit codes, what the dump holds, and that a seed decides everything."""

import hashlib
import json
import subprocess

import numpy as np
import pytest
from conftest import PROGRAM

GAMES = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]


def rollout(uper, *arguments, env="minatar/breakout", **options):
    """The JSON object of a rollout that must succeed."""
    result = uper("rollout", "--env", env, *arguments, "--json", **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def dumped(uper, path, *arguments, **options):
    summary = rollout(uper, *arguments, "--dump", path, **options)
    with np.load(path) as file:
        return summary, {name: file[name] for name in file.files}


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--policy", "random"], 2, ["--env"]),
        (["--env", "minatar/brekout", "--policy", "random"], 2,
         ["brekout", "did you mean 'minatar/breakout'"]),
        (["--env", "minatar/breakout"], 2, ["--policy random", "--actions FILE"]),
        (["--env", "minatar/breakout", "--policy", "random", "--actions", "a"], 2,
         ["--policy", "--actions"]),
        (["--env", "minatar/breakout", "--policy", "greedy"], 2, ["greedy"]),
        (["--env", "minatar/breakout", "--actions", "nowhere"], 3, ["nowhere"]),
        (["--env", "minatar/breakout", "--actions", "."], 2, ["folder"]),
        (["--env", "minatar/breakout", "--policy", "random", "--episodes", "0"], 2, ["--episodes"]),
        (["--env", "minatar/breakout", "--policy", "random", "--steps", "-1"], 2, ["--steps"]),
        (["--env", "minatar/breakout", "--policy", "random", "--steps", "5", "--episodes", "5"], 2,
         ["--steps", "--episodes"]),
        (["--env", "minatar/breakout", "--policy", "random", "--set", "agent.discount=0.5"], 2,
         ["agent.discount", "environment.*"]),
        (["--env", "minatar/breakout", "--policy", "random", "--set", "environment.name=grid/noisy"], 2,
         ["environment.name", "--env"]),
        (["--env", "minatar/breakout", "--policy", "random", "--set", "environment.stiky=0"], 2,
         ["environment.stiky", "environment.sticky"]),
        (["--env", "minatar/breakout", "--policy", "random", "--set", "environment.sticky=1.5"], 2,
         ["environment.sticky"]),
        (["--env", "minatar/breakout", "--policy", "random", "--set", "environment.sticky"], 2,
         ["key"]),
        (["--env", "minatar/breakout", "--policy", "random", "--environments", "0"], 2, ["--environments"]),
        (["--env", "minatar/breakout", "--policy", "random", "--seed", "-1"], 2, ["--seed", "-1"]),
        (["--env", "minatar/breakout", "--policy", "random", "--seed", "18446744073709551616"], 2, ["--seed"]),
        (["--env", "atari/pong", "--policy", "random", "--set", "environment.noisy_channels=2"], 2,
         ["environment.noisy_channels", "stacked"]),
        (["--env", "breakout", "--policy", "random"], 2, ["did you mean 'atari/breakout'"]),
        (["--env", "minatar/breakout", "--policy", "random", "--environments", "2", "--dump", "x.npz"], 2,
         ["--dump", "one environment"]),
        (["--env", "minatar/breakout", "--policy", "random", "--steps", "5", "--dump", "no/x.npz"], 2,
         ["no/x.npz"]),
        (["--env", "minatar/breakout", "--policy", "random", "--steps", "1000000000000", "--dump",
          "x.npz"], 4, ["1000000000000 steps", "MiB"]),
    ],
)
def test_bad_input(uper, tmp_path, arguments, code, words):
    result = uper("rollout", *arguments, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.iterdir()), "bad input must leave nothing behind"


@pytest.mark.parametrize("line", ["6", "-1", "two", "", "# comment", "1 2", "1.0"])
def test_a_bad_action_is_named_with_its_line_and_the_range(uper, tmp_path, line):
    (tmp_path / "actions.txt").write_text(f"0\n1\n{line}\n2\n")
    result = uper("rollout", "--env", "minatar/breakout", "--actions", tmp_path / "actions.txt")
    assert result.returncode == 2
    assert f"{tmp_path / 'actions.txt'}, line 3" in result.stderr
    assert "from 0 to 5" in result.stderr


def test_the_valid_range_is_the_environments(uper, tmp_path):
    (tmp_path / "actions.txt").write_text("3\n")
    for setting, code in (("false", 0), ("true", 2)):
        result = uper("rollout", "--env", "minatar/breakout", "--actions", tmp_path / "actions.txt",
                      "--set", f"environment.minimal_actions={setting}")
        assert result.returncode == code, result.stderr
    assert "from 0 to 2" in result.stderr


def test_a_full_disk_is_a_resource_error_and_leaves_no_file(uper, tmp_path):
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    result = uper("rollout", "--env", "minatar/breakout", "--policy", "random", "--dump",
                  tmp_path / "x.npz", preexec_fn=limit)
    assert result.returncode == 4, result.stderr
    assert not list(tmp_path.iterdir())


def test_the_seed_decides_every_byte(uper, tmp_path):
    digests = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        rollout(uper, "--policy", "random", "--episodes", 20, "--seed", seed, "--dump", tmp_path / name)
        digests[name] = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert digests["a"] == digests["b"]
    assert digests["a"] != digests["c"]


def test_the_seed_decides_the_actions_too(uper, tmp_path):
    first, second = (dumped(uper, tmp_path / f"{seed}.npz", "--policy", "random", "--steps", 600,
                            "--seed", seed)[1]["action"] for seed in (3, 4))
    assert 400 < (first != second).sum() < 590, "independent draws of 6 differ in 500 of 600"


def test_environments_share_the_episodes_whatever_the_threads(uper):
    play = ["--policy", "random", "--episodes", 40]
    one = rollout(uper, *play)
    summaries = [rollout(uper, *play, "--environments", 3, "--threads", threads) for threads in (1, 2, 3)]
    assert summaries[0] == summaries[1] == summaries[2]
    several = summaries[0]
    assert several["episodes"] == 40 and several["environments"] == 3 and several["unfinished_steps"] == 0
    assert several["steps"] == sum(several["lengths"])
    assert several["returns"][::3] == one["returns"][:14], "the first plays as it would alone"
    assert several["lengths"][::3] == one["lengths"][:14]
    assert several["lengths"][1::3] != several["lengths"][::3][:13], "the others have random numbers of their own"


def test_environments_share_the_steps(uper):
    summary = rollout(uper, "--policy", "random", "--steps", 1001, "--environments", 4)
    assert summary["steps"] == 1001
    assert sum(summary["lengths"]) + summary["unfinished_steps"] == 1001
    assert rollout(uper, "--policy", "random", "--steps", 2, "--environments", 5)["steps"] == 2


def test_environments_without_a_share_are_not_made(uper):
    few = rollout(uper, "--policy", "random", "--steps", 3, "--environments", 4096, env="atari/pong")
    assert few["steps"] == 3 and few["environments"] == 4096  # a minute if they were


def test_threads_that_cannot_be_started_are_a_resource_error(uper):
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))

    result = uper("rollout", "--env", "minatar/breakout", "--policy", "random", "--environments", 1000, "--threads",
                  1000, "--steps", 20_000_000, preexec_fn=limit)
    assert result.returncode == 4 and "of 1000 threads" in result.stderr, result.stderr
    assert result.stdout == ""


def test_output_that_does_not_arrive_is_a_resource_error(uper):
    for steps, words in (("10", "standard output"), ("100000", "No space left")):  # the second is longer than buffers
        command = [PROGRAM, "rollout", "--env", "minatar/breakout", "--policy", "random", "--steps", steps, "--json"]
        with open("/dev/full", "w") as full:
            result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert result.returncode == 4 and words in result.stderr


def test_dumped_actions_play_the_same_game_again(uper, tmp_path):
    _, random = dumped(uper, tmp_path / "random.npz", "--policy", "random", "--steps", 500, "--seed", 5)
    (tmp_path / "actions.txt").write_text("".join(f"{action}\n" for action in random["action"]))
    summary, again = dumped(uper, tmp_path / "again.npz", "--actions", tmp_path / "actions.txt",
                            "--seed", 5)
    assert summary["steps"] == 500 and summary["policy"] == "file"
    for name, values in random.items():
        np.testing.assert_array_equal(values, again[name])


def test_an_action_file_may_be_cut_by_steps_or_episodes(uper, tmp_path):
    (tmp_path / "actions.txt").write_text("0\n" * 300)
    assert rollout(uper, "--actions", tmp_path / "actions.txt")["steps"] == 300
    assert rollout(uper, "--actions", tmp_path / "actions.txt", "--steps", 7)["steps"] == 7
    assert rollout(uper, "--actions", tmp_path / "actions.txt", "--steps", 900)["steps"] == 300
    assert rollout(uper, "--actions", tmp_path / "actions.txt", "--episodes", 2)["episodes"] == 2


@pytest.mark.parametrize("game", GAMES)
def test_dump(uper, tmp_path, game):
    summary, dump = dumped(uper, tmp_path / "x.npz", "--policy", "random", "--steps", 6000,
                           env=f"minatar/{game}")
    channels = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}[game]
    assert {name: (values.dtype.str, values.shape) for name, values in dump.items()} == {
        "observation": ("|u1", (6000, 10, 10, channels)),
        "action": ("<i4", (6000,)),
        "reward": ("<f8", (6000,)),
        "discount": ("<f8", (6000,)),
        "terminated": ("|u1", (6000,)),
        "truncated": ("|u1", (6000,)),
    }
    assert set(np.unique(dump["observation"])) == {0, 1}
    assert set(np.unique(dump["action"])) == set(range(6))
    assert not dump["truncated"].any()
    np.testing.assert_array_equal(dump["discount"], 1 - dump["terminated"])
    ends = np.flatnonzero(dump["terminated"])
    assert summary["episodes"] == len(ends) == len(summary["returns"])
    assert summary["unfinished_steps"] == 5999 - (ends[-1] if len(ends) else -1)
    lengths = np.diff(np.concatenate([[-1], ends]))
    assert summary["lengths"] == lengths.tolist()
    sums = [float(part.sum()) for part in np.split(dump["reward"], ends + 1)[:len(ends)]]
    assert summary["returns"] == pytest.approx(sums)


def test_observations_are_those_before_the_action(uper, tmp_path):
    """Every episode of breakout begins with the same paddle and full rows of bricks."""
    _, dump = dumped(uper, tmp_path / "x.npz", "--policy", "random", "--episodes", 30)
    starts = np.concatenate([[0], np.flatnonzero(dump["terminated"])[:-1] + 1])
    first = dump["observation"][starts]
    assert (first[:, 9, 4, 0] == 1).all(), "the paddle is in the middle"
    assert (first[:, 1:4, :, 3] == 1).all(), "no brick is missing"
    assert (dump["observation"][starts + 4][:, 9, 4, 0] == 0).any(), "later it has moved"


def test_a_time_limit_truncates_and_bootstraps(uper, tmp_path):
    _, dump = dumped(uper, tmp_path / "x.npz", "--policy", "random", "--steps", 1000, "--set",
                     "environment.time_limit_frames=8")
    ends = dump["terminated"] | dump["truncated"]
    assert dump["truncated"].sum() > 20 and dump["terminated"].sum() > 20
    assert not (dump["terminated"] & dump["truncated"]).any()
    assert (dump["discount"][dump["truncated"] == 1] == 1).all()
    assert (dump["discount"][dump["terminated"] == 1] == 0).all()
    assert np.diff(np.flatnonzero(ends)).max() <= 8


def test_noise_reaches_the_environment(uper, tmp_path):
    _, dump = dumped(uper, tmp_path / "x.npz", "--policy", "random", "--steps", 4000, "--set",
                     "environment.reward_noise_sd=2", "--set", "environment.noisy_channels=1")
    assert dump["observation"].shape[3] == 5
    assert dump["reward"].std() == pytest.approx(2, rel=0.1)


def test_random_returns_agree_between_seeds(uper):
    """Two seeds: the difference of the means lies within 4.5 of its standard errors, and is not 0."""
    for game in ("breakout", "asterix", "space_invaders"):
        first, second = (rollout(uper, "--policy", "random", "--episodes", 400, "--seed", seed,
                                 env=f"minatar/{game}") for seed in (1, 2))
        error = np.hypot(first["standard_error"], second["standard_error"])
        difference = first["mean_return"] - second["mean_return"]
        assert 0 < abs(difference) < 4.5 * error
        assert 0 < error < 0.2 * first["mean_return"], "the test would notice a wrong policy"


def test_statistics(uper):
    summary = rollout(uper, "--policy", "random", "--episodes", 50)
    returns, lengths = np.array(summary["returns"]), np.array(summary["lengths"])
    assert summary["episodes"] == len(returns) == 50
    assert summary["steps"] == lengths.sum() and summary["unfinished_steps"] == 0
    assert summary["mean_return"] == pytest.approx(returns.mean())
    assert summary["standard_error"] == pytest.approx(returns.std(ddof=1) / np.sqrt(50))
    assert summary["mean_length"] == pytest.approx(lengths.mean())
    assert (summary["shortest_length"], summary["longest_length"]) == (lengths.min(), lengths.max())


def test_default_is_a_hundred_episodes_and_text_says_what_was_played(uper):
    assert rollout(uper, "--policy", "random")["episodes"] == 100
    result = uper("rollout", "--env", "minatar/breakout", "--policy", "random")
    assert "over 100 episodes" in result.stdout and "standard error" in result.stdout
    result = uper("rollout", "--env", "minatar/freeway", "--policy", "random", "--steps", 10)
    assert result.returncode == 0 and "10 of 10 steps" in result.stdout
    nothing = rollout(uper, "--policy", "random", "--steps", 10, env="minatar/freeway")
    assert nothing["mean_return"] is None and nothing["episodes"] == 0
