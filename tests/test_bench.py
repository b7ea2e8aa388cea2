"""uper bench and uper doctor from outside: the documented keys with plausible numbers."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import ROOT

# Timing peers takes a Python process of some seconds, so only one test per benchmark does it.
NO_PEERS = "--no-peers"


def run_json(uper, *arguments, **options):
    result = uper(*arguments, "--json", **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def check_spread(measured, key):
    low, high = measured[f"{key}_spread"]
    assert 0 < low <= measured[key] <= high


@pytest.mark.parametrize("agent, more", [("dqn", []), ("qr-ens-uper", [NO_PEERS]), ("c51", [NO_PEERS])])
def test_bench_learner(uper, agent, more):
    measured = run_json(uper, "bench", "learner", "--agent", agent, "--batch", 4, "--actions", 3,
                        "--threads", 1, "--repeats", 2, *more)
    assert measured["agent"] == agent
    assert (measured["batch"], measured["actions"], measured["threads"]) == (4, 3, 1)
    check_spread(measured, "update_ms")
    check_spread(measured, "act_us")
    assert measured["act_after_update_us"] > 0
    assert isinstance(measured["peers"], list) and not (more and measured["peers"])


def test_bench_learner_of_the_large_network(uper):
    small, large = (run_json(uper, "bench", "learner", "--agent", "double-dqn", "--network", network,
                             "--batch", 2, "--repeats", 1, NO_PEERS) for network in ("minatar", "nature"))
    assert large["update_ms"] > small["update_ms"], "a hundred times the arithmetic"


def test_bench_learner_uses_the_networks_own_settings(uper):
    sizes = {network: run_json(uper, "bench", "learner", "--agent", "qr-ens-uper", "--network", network,
                               "--batch", 1, "--repeats", 1, NO_PEERS)
             for network in ("minatar", "nature")}
    assert (sizes["minatar"]["members"], sizes["minatar"]["outputs"]) == (10, 51)
    assert (sizes["nature"]["members"], sizes["nature"]["outputs"]) == (10, 201)


@pytest.mark.parametrize("env", ["minatar/breakout", "grid/noisy", "bandit/conal"])
def test_bench_env(uper, env):
    measured = run_json(uper, "bench", "env", "--env", env, "--repeats", 2, "--threads", 2)
    assert measured["env"] == env and measured["threads"] == 2
    check_spread(measured, "frames_per_second")
    check_spread(measured, "raw_frames_per_second")


def test_bench_env_of_atari(uper):
    measured = run_json(uper, "bench", "env", "--env", "atari/pong", "--repeats", 1, "--threads", 2,
                        "--environments", 3, "--no-peers")
    assert measured["env"] == "atari/pong" and (measured["threads"], measured["environments"]) == (2, 3)
    for key in ("frames_per_second", "raw_frames_per_second", "pool_frames_per_second",
                "raw_pool_frames_per_second"):
        check_spread(measured, key)
    assert measured["peers"] == []


SHARES = [f"{part}_share" for part in ("acting", "environment", "sampling", "learning", "saving")]


@pytest.mark.parametrize("agent", ["dqn", "qr-ens-uper"])
def test_bench_train(uper, tmp_path, agent):
    measured = run_json(uper, "bench", "train", "--agent", agent, "--frames", 400, "--threads", 1,
                        cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert measured["frames"] == 400
    assert 300 < measured["updates"] <= 400, "learning starts early"
    assert measured["frames_per_second"] > 0
    assert measured["updates_per_second"] == pytest.approx(
        measured["frames_per_second"] * measured["updates"] / 400)
    for key in SHARES:
        assert 0 < measured[key] < 1, key
    assert sum(measured[key] for key in [*SHARES, "other_share"]) == pytest.approx(1)
    assert 0 < measured["save_seconds"] < 10
    assert not list(tmp_path.iterdir()), "the run folder is removed"


def test_bench_train_in_turns_with_the_emulator(uper):
    words = ("bench", "train", "--env", "atari/pong", "--agent", "dqn", "--device", "cpu", "--threads", 2)
    alone = run_json(uper, *words, "--frames", 1000)
    assert alone["turns"] >= 2
    for key in ("raw_frames_per_second", "share_of_raw"):
        check_spread(alone, key)
    assert alone["frames_per_second"] < 2 * alone["raw_frames_per_second_spread"][1]
    assert sum(alone[key] for key in [*SHARES, "other_share"]) == pytest.approx(1), "turns are not counted"
    several = run_json(uper, *words, "--frames", 400, "--environments", 2)
    check_spread(several, "raw_frames_per_second")
    assert "turns" not in several and several["share_of_raw"] > 0


def test_bench_train_measures_saving_with_a_filled_memory(uper, tmp_path):
    measured = run_json(uper, "bench", "train", "--agent", "per", "--frames", 300, "--replay-transitions",
                        2000, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    saving = measured["saving"]
    assert saving["replay_transitions"] == 2000 and saving["saves"] >= 5
    assert 0 < saving["save_pause_mean_seconds"] <= saving["pause_longest_seconds"]
    assert 0 < saving["stop_to_saved_seconds"] and 0 < saving["restore_seconds"]
    assert not list(tmp_path.iterdir()), "the run folder is removed"


def test_bench_train_takes_settings(uper):
    measured = run_json(uper, "bench", "train", "--agent", "per", "--frames", 200, "--set",
                        "replay.minimum_transitions=150", "--set", "replay.batch_size=5")
    assert 40 < measured["updates"] <= 51 and measured["batch"] == 5


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["learner", "--agent", "dqnn"], 2, ["did you mean 'dqn'"]),
        (["learner", "--device", "cuda"], 4, ["CPU"]),
        (["learner", "--device", "abacus"], 2, ["abacus"]),
        (["learner", "--network", "lenet"], 2, ["lenet"]),
        (["env", "--env", "minatar/pong"], 2, ["minatar/pong"]),
        (["env", "--threads", "0"], 2, ["--threads"]),
        (["train", "--agent", "dqnn"], 2, ["did you mean 'dqn'"]),
        (["train", "--env", "minatar/brekout"], 2, ["did you mean 'minatar/breakout'"]),
        (["train", "--set", "replay.batchsize=3"], 2, ["replay.batch_size"]),
        (["train", "--frames", "0"], 2, ["--frames"]),
        (["train", "--replay-transitions", "9999999"], 2, ["replay.capacity_transitions"]),
    ],
)
def test_bad_input(uper, tmp_path, arguments, code, words):
    result = uper("bench", *arguments, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr
    assert result.stdout == "" and not list(tmp_path.iterdir())


def test_bench_without_python_goes_on(uper):
    result = uper("bench", "learner", "--agent", "dqn", "--batch", 1, "--repeats", 1, "--json",
                  env={**os.environ, "UPER_PYTHON": "/nonexistent/python"})
    assert result.returncode == 0 and json.loads(result.stdout)["peers"] == []
    assert "/nonexistent/python" in result.stderr


def test_text_for_people(uper):
    result = uper("bench", "learner", "--agent", "dqn", "--batch", 1, "--repeats", 1)
    assert result.returncode == 0 and "one update, ms" in result.stdout
    result = uper("bench", "env", "--repeats", 1)
    assert result.returncode == 0 and "frames per second" in result.stdout
    result = uper("bench", "train", "--frames", 50)
    assert result.returncode == 0 and "saving everything once" in result.stdout


def test_doctor(uper):
    found = run_json(uper, "doctor")
    assert found["cores"] >= 1 and found["cpu"] and found["instruction_set"]
    assert 0 < found["memory_available_bytes"] <= found["memory_bytes"]
    assert found["disk_free_bytes"] > 0
    assert found["gpu"] is None
    assert found["atari"] is True and "ALE 0.12.1" in found["atari_emulator"] and found["atari_roms"] == 57
    assert found["environments"] == len(uper("list", "envs").stdout.split())
    assert found["agents"] == len(uper("list", "agents").stdout.split())
    assert found["python"]["matplotlib"]
    text = uper("doctor").stdout
    assert "works here" in text and "does not work here" in text and "GPU" in text


def test_doctor_without_python(uper):
    found = run_json(uper, "doctor", env={**os.environ, "UPER_PYTHON": "/nonexistent/python"})
    assert found["python"] is None
    assert any("make setup" in line for line in found["does_not_work"])
    assert not any("pictures" in line for line in found["works"])


def test_doctor_with_a_python_that_fails(uper):
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as file:
        file.write("#!/bin/sh\nexit 3\n")
    os.chmod(file.name, 0o755)
    try:
        found = run_json(uper, "doctor", env={**os.environ, "UPER_PYTHON": file.name})
    finally:
        os.unlink(file.name)
    assert found["python"] is None


def test_the_parts_of_an_update(uper):
    result = uper("bench", "learner", "--parts", "--agent", "dqn", "--threads", 2, "--repeats", 1, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    *parts, whole = found["parts"]
    assert len(parts) == 9 and whole["part"] == "whole update"
    for key in ("flop", "bytes", "seconds"):
        assert sum(part[key] for part in parts) == pytest.approx(whole[key])
    assert found["product_flops"] > 1e8 and found["memory_bytes_per_second"] > 1e7
    assert whole["share_of_product_rate"] == pytest.approx(
        whole["flop"] / whole["seconds"] / found["product_flops"])


def test_scaling_is_drawn_from_its_tables(tmp_path):
    for name in ("threads", "batch", "members", "quantiles", "actions", "memory"):
        (tmp_path / f"{name}.csv").write_text(
            "what,x,series,value,low,high\nupdate_ms,1,A,4,3,5\nupdate_ms,2,A,2,1.5,3\n")
    subprocess.run([sys.executable, ROOT / "tools" / "scaling.py", "plot", tmp_path], check=True)
    assert len(list(tmp_path.glob("*.png"))) == 6


def test_bench_learner_takes_an_instruction_set(uper):
    words = ("bench", "learner", "--agent", "dqn", "--repeats", 1, "--no-peers", "--threads", 1)
    best = run_json(uper, *words)["instruction_set"]
    assert run_json(uper, *words, "--instructions", best)["instruction_set"] == best
    result = uper(*words, "--instructions", "AVX1")
    assert result.returncode == 2 and "AVX1" in result.stderr and best in result.stderr
    if best.startswith("AVX3"):
        assert run_json(uper, *words, "--instructions", "AVX2")["instruction_set"] == "AVX2"
        assert run_json(uper, *words, "--instructions", "AVX2", "--parts")["instruction_set"] == "AVX2"


def test_runs_side_by_side_have_a_thread_each_unless_told_otherwise(uper):
    words = ("bench", "train", "--agent", "dqn", "--frames", 300, "--runs", 2)
    assert run_json(uper, *words)["threads"] == 1
    assert run_json(uper, *words, "--threads", 2)["threads"] == 2
    assert run_json(uper, *words, "--set", "threads=2")["threads"] == 2


@pytest.mark.parametrize("seconds", [0.01, 0.03, 0.3, 3])
def test_ctrl_c_ends_runs_side_by_side_also_before_they_have_begun(seconds):
    process = subprocess.Popen([ROOT / "build" / "uper", "bench", "train", "--env", "minatar/breakout", "--agent", "dqn",
                                "--frames", "100000", "--runs", "60"], stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # -SIGINT if the signal came before the handler was set


def test_threads_that_cannot_be_started_are_named():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # this counts stacks of 8 MB each too
    result = subprocess.run([ROOT / "build" / "uper", "bench", "learner", "--network", "minatar", "--agent", "dqn",
                             "--threads", "600", "--device", "cpu", "--repeats", "1"],
                            preexec_fn=limit, capture_output=True, text=True)
    assert result.returncode == 4, result.stderr
    assert "of 600 threads could be started" in result.stderr and "use fewer" in result.stderr
