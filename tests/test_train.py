"""Training from outside: resuming to the bit, refusing what is wrong, losing nothing."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time

import pytest
from conftest import PROGRAM
from kill_campaign import FRAMES, campaign, command, inspect, kill_and_resume, same_result, timeless_rows, train


def test_every_evaluation_has_its_row(tmp_path):
    assert train(tmp_path / "run", log_every_frames=1000, evaluate_every_frames=300, frames=1000).returncode == 0
    rows = {int(row["frames"]): row["eval_return"] for row in timeless_rows(tmp_path / "run")}
    assert list(rows) == [0, 300, 600, 900, 1000] and all(rows.values())


def test_noisy_transitions_are_counted(tmp_path):
    shares = {}
    for env in ("minatar/breakout", "noisy-minatar/breakout"):
        run = tmp_path / env.replace("/", "-")
        assert train(run, env=env, **{"agent.n_steps": 1}).returncode == 0
        shares[env] = [float(row["noisy_stored_share"]) for row in timeless_rows(run) if row["replay_size"] != "0"]
    assert set(shares["minatar/breakout"]) == {0.0}
    # A quarter of the states is noisy; which ones are visited how often depends on the game.
    assert all(0.05 < share < 0.6 for share in shares["noisy-minatar/breakout"])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    result = train(folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def run_seconds(tmp_path_factory):
    """How long a run takes here, so that kills can be spread over it."""
    start = time.monotonic()
    assert train(tmp_path_factory.mktemp("timed") / "run").returncode == 0
    return time.monotonic() - start


def test_the_promised_files_are_there(unbroken):
    for name in ("config.toml", "run.json", "metrics.csv", "summary.json"):
        assert (unbroken / name).stat().st_size > 0
    assert list(unbroken.glob("events.out.tfevents.*"))
    summary = json.loads((unbroken / "summary.json").read_text())
    assert summary["frames"] == FRAMES and summary["agent"] == "qr-ens-uper"
    header = (unbroken / "metrics.csv").read_text().splitlines()[0]
    assert header.startswith(
        "frames,updates,episodes,train_return,eval_return,loss,grad_norm,epsilon,beta,frames_per_second,"
        "priority_mean,priority_max,epistemic_mean,aleatoric_mean,target_distance_mean,effective_sample_size")
    described = inspect(unbroken)
    assert described["finished"] and described["updates"] > 2000 and described["checkpoints"]


def test_the_same_seed_gives_the_same_run_for_any_threads(unbroken, tmp_path):
    for threads in (1, 3):
        folder = tmp_path / f"threads{threads}"
        assert train(folder, threads=threads).returncode == 0
        same_result(unbroken, folder)


def test_another_seed_gives_another_run(unbroken, tmp_path):
    assert train(tmp_path / "run", seed=2).returncode == 0
    assert inspect(tmp_path / "run")["parameters_hash"] != inspect(unbroken)["parameters_hash"]


def test_config_toml_gives_the_same_run(unbroken, tmp_path):
    words = [PROGRAM, "train", unbroken / "config.toml", "--out", tmp_path / "run", "--no-plots"]
    assert subprocess.run(words, capture_output=True).returncode == 0
    same_result(unbroken, tmp_path / "run")


def test_evaluation_does_not_disturb_training(unbroken, tmp_path):
    assert train(tmp_path / "run", evaluate_every_frames=0).returncode == 0
    for key in ("parameters_hash", "replay_hash"):
        assert inspect(tmp_path / "run")[key] == inspect(unbroken)[key]


def test_killed_at_random_moments_the_run_ends_the_same(unbroken, run_seconds, tmp_path):
    generator = random.Random(1)
    kills = 0
    for number in range(20):
        folder = tmp_path / f"run{number}"
        kills += kill_and_resume(folder, 9, run_seconds, generator)
        same_result(unbroken, folder)
        if kills >= 25:
            return
    pytest.fail(f"only {kills} kills hit a running program")


@pytest.mark.soak
def test_a_thousand_kills(tmp_path):
    kills, _ = campaign(tmp_path, kills=1000, seed=1, workers=len(os.sched_getaffinity(0)))
    assert kills >= 1000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_the_same_command_goes_on(tmp_path, number):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    long = {"frames": 10 * FRAMES}  # it must not end before the signal comes
    process = subprocess.Popen(command(folder, **long), stderr=subprocess.PIPE, text=True)
    while not (folder / "metrics.csv").exists():
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 75, errors
    assert "run the same command" in errors
    assert train(folder, **long).returncode == 0
    assert train(whole, **long).returncode == 0
    same_result(whole, folder)


def test_a_finished_run_says_so_and_can_be_made_longer(unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    again = train(folder)
    assert again.returncode == 0 and "finished" in again.stderr
    same_result(unbroken, folder)
    assert train(folder, frames=FRAMES + 500).returncode == 0
    assert inspect(folder)["frames"] == FRAMES + 500


def test_another_configuration_is_refused_by_key(unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    result = train(folder, **{"optimizer.learning_rate": 1e-3})
    assert result.returncode == 2
    assert "optimizer.learning_rate" in result.stderr
    same_result(unbroken, folder)


def test_a_second_process_is_refused(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen(command(folder, frames=10_000_000), stderr=subprocess.DEVNULL)
    try:
        while not (folder / "metrics.csv").exists():
            time.sleep(0.01)
        result = train(folder, frames=10_000_000)
        assert result.returncode == 4
        assert str(process.pid) in result.stderr
    finally:
        process.kill()
        process.wait()


def checkpoint_files(folder):
    return sorted((folder / "checkpoints").iterdir())


def test_every_damaged_file_is_found_and_an_older_checkpoint_used(unbroken, tmp_path):
    names = [path.name for path in checkpoint_files(unbroken)]
    generator = random.Random(7)
    for name in names:
        folder = tmp_path / "run"
        shutil.copytree(unbroken, folder)
        path = folder / "checkpoints" / name
        content = bytearray(path.read_bytes())
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(content)
        verify = subprocess.run([PROGRAM, "verify", folder], capture_output=True, text=True)
        assert verify.returncode == 5 and name in verify.stdout, name
        result = train(folder, frames=FRAMES + 10)
        assert result.returncode in (0, 5), name
        if result.returncode == 0:
            assert inspect(folder)["frames"] == FRAMES + 10
        else:
            assert name in result.stderr
        shutil.rmtree(folder)


def test_without_a_good_checkpoint_nothing_starts_afresh(unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    for path in (folder / "checkpoints").glob("manifest-*"):
        path.write_bytes(path.read_bytes()[:-20])
    result = train(folder, frames=FRAMES + 10)
    assert result.returncode == 5
    assert "manifest" in result.stderr


def test_a_full_disk_keeps_the_old_checkpoint_and_training_goes_on(tmp_path):
    folder = tmp_path / "run"
    limit = 60_000  # bytes a file: the parameters fit, the larger replay segments do not

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    result = subprocess.run(command(folder), capture_output=True, text=True, preexec_fn=small_files)
    assert "training goes on" in result.stderr, result.stderr
    assert "not saved" in result.stderr
    assert subprocess.run([PROGRAM, "verify", folder], capture_output=True).returncode in (0, 3)
    assert train(folder).returncode == 0


@pytest.fixture(scope="module")
def three_games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three") / "run"
    result = train(folder, environments=3, threads=1)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.parametrize("threads, overlap", [(1, "true"), (2, "false"), (2, "true")])
def test_overlap_and_threads_change_nothing(unbroken, three_games, tmp_path, threads, overlap):
    for environments, expected in ((1, unbroken), (3, three_games)):
        folder = tmp_path / str(environments)
        assert train(folder, environments=environments, threads=threads,
                     overlap_updates=overlap).returncode == 0
        same_result(expected, folder)


def test_three_games_killed_at_random_moments_end_the_same(three_games, run_seconds, tmp_path):
    options = {"environments": 3, "overlap_updates": "true"}
    assert kill_and_resume(tmp_path / "run", 6, run_seconds, random.Random(2), **options) > 0
    same_result(three_games, tmp_path / "run")


def test_too_little_memory_is_found_out_before_the_start(tmp_path):
    folder = tmp_path / "run"
    result = train(folder, **{"frames": 4_000_000_000, "replay.capacity_transitions": 4_000_000_000})
    assert result.returncode == 4
    assert "GiB of memory" in result.stderr and "replay.capacity_transitions" in result.stderr
    assert not (folder / "config.toml").exists()


def test_memory_that_is_not_given_is_no_crash(tmp_path):
    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

    words = command(tmp_path / "run", **{"replay.capacity_transitions": 2_000_000})
    result = subprocess.run(words, capture_output=True, text=True, preexec_fn=little_memory)
    assert result.returncode == 4, result.stderr
    assert "lower replay.capacity_transitions" in result.stderr


@pytest.mark.parametrize(
    "words, code, expected",
    [
        (["--env", "minatar/brekout"], 2, "did you mean 'minatar/breakout'"),
        (["--agent", "qr-ens-upr"], 2, "did you mean 'qr-ens-uper'"),
        (["--set", "replay.capcity_transitions=10"], 2, "replay.capacity_transitions"),
        (["--set", "replay.batch_size=many"], 2, "replay.batch_size"),
        (["--set", "replay.batch_size=0"], 2, "replay.batch_size"),
        (["--frames", "-5"], 2, "frames"),
        (["--device", "cuda"], 4, "cuda"),
        (["no-such-file.toml"], 2, "no-such-file.toml"),
    ],
)
def test_wrong_input(uper, tmp_path, words, code, expected):
    result = uper("train", *words, "--out", "run", cwd=tmp_path)
    assert result.returncode == code, result.stderr
    assert expected in result.stderr
    assert not (tmp_path / "run" / "config.toml").exists()


@pytest.mark.parametrize("words", [["inspect"], ["verify"], ["evaluate"]])
def test_a_missing_run_is_missing_data(uper, tmp_path, words):
    result = uper(*words, tmp_path / "nowhere")
    assert result.returncode == 3
    assert "nowhere" in result.stderr


def test_evaluate_plays_the_trained_agent(uper, unbroken):
    one = json.loads(uper("evaluate", unbroken, "--episodes", 5, "--json").stdout)
    two = json.loads(uper("evaluate", unbroken, "--episodes", 5, "--json").stdout)
    other = json.loads(uper("evaluate", unbroken, "--episodes", 5, "--seed", 2, "--json").stdout)
    assert one == two and one["episodes"] == 5 and len(one["returns"]) == 5
    assert other["returns"] != one["returns"] or other["frames"] != one["frames"]


def test_evaluate_concludes_nothing_from_one_episode(uper, unbroken):
    for limit in (["--episodes", 1], ["--frames", 3]):
        result = uper("evaluate", unbroken, *limit, "--against", "random")
        assert result.returncode == 0 and "at least two episodes" in result.stdout, result.stdout
        assert "better" not in result.stdout and "[" not in result.stdout
        report = json.loads(uper("evaluate", unbroken, *limit, "--json").stdout)
        assert report["standard_error"] is report["ci_low"] is report["ci_high"] is None


def test_evaluate_against_a_random_policy(uper, unbroken):
    alone = json.loads(uper("evaluate", unbroken, "--episodes", 20, "--json").stdout)
    both = json.loads(uper("evaluate", unbroken, "--episodes", 20, "--against", "random", "--json").stdout)
    random = both.pop("random")
    assert both == alone and alone["ci_low"] <= alone["mean_return"] <= alone["ci_high"]
    assert random["episodes"] == 20 and random["returns"] != alone["returns"]
    text = uper("evaluate", unbroken, "--episodes", 20, "--against", "random").stdout
    assert "random policy" in text and "intervals" in text
    assert uper("evaluate", unbroken, "--against", "chance").returncode == 2


@pytest.mark.parametrize("agent", ["dqn", "double-dqn", "per", "qr-dqn", "qr-per", "qr-ens-uni", "qr-ens-per",
                                   "qr-ens-epi", "c51", "c51-ens-per", "c51-ens-uper"])
def test_every_agent_trains_and_resumes(tmp_path, agent):
    small = {"frames": 700, "replay.minimum_transitions": 100, "replay.batch_size": 8,
             "replay.capacity_transitions": 500, "checkpoint_every_frames": 250, "log_every_frames": 250,
             "evaluate_every_frames": 0, "network.hidden_units": 16,
             "replay.importance_exponent_start_transitions": 100,
             "replay.importance_exponent_end_transitions": 700}

    def run(folder, *more):
        words = [str(PROGRAM), "train", "--agent", agent, "--env", "minatar/asterix", "--out", str(folder),
                 "--no-plots"]
        for key, value in small.items():
            words += ["--set", f"{key}={value}"]
        return subprocess.run(words + list(more), capture_output=True, text=True, timeout=120)

    whole = run(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut", "--frames", "300").returncode == 0
    # Longer by the same key: the first 300 frames are not repeated.
    assert run(tmp_path / "cut").returncode == 0
    for key in ("parameters_hash", "replay_hash"):
        assert inspect(tmp_path / "whole")[key] == inspect(tmp_path / "cut")[key]
