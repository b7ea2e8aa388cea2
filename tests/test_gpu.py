"""--device from outside: what a GPU must do where there is one, and what happens where there is none."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from conftest import ROOT

SMALL = ["--env", "minatar/breakout", "--set", "replay.minimum_transitions=100", "--set",
         "evaluate_every_frames=0", "--set", "checkpoint_every_frames=200", "--no-plots"]


@pytest.fixture(scope="module")
def gpu(uper):
    return json.loads(uper("doctor", "--json").stdout)["gpu"]


def train(uper, folder, frames, device):
    return uper("train", "--agent", "qr-ens-uper", *SMALL, "--frames", frames, "--device", device,
                "--out", folder, "--json")


def test_without_a_gpu_auto_goes_on_and_cuda_is_refused(uper, gpu, tmp_path):
    if gpu:
        pytest.skip("there is a GPU")
    result = train(uper, tmp_path / "auto", 150, "auto")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("training on the CPU") <= 1  # builds with CUDA say why
    result = train(uper, tmp_path / "cuda", 150, "cuda")
    assert result.returncode == 4 and "cuda" in result.stderr
    assert not (tmp_path / "cuda").exists()


def test_instruction_sets_are_those_of_the_cpu(uper, gpu):
    if not gpu:
        pytest.skip("no GPU")
    result = uper("bench", "learner", "--device", "cuda", "--instructions", "AVX2", "--repeats", 1)
    assert result.returncode == 2 and "--device cpu" in result.stderr


def test_a_run_moves_between_devices(uper, gpu, tmp_path):
    if not gpu:
        pytest.skip("no GPU")
    for frames, device in [(300, "cuda"), (600, "cpu"), (900, "cuda")]:
        result = train(uper, tmp_path / "run", frames, device)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["frames"] == frames
    assert uper("verify", tmp_path / "run").returncode == 0
    assert uper("evaluate", tmp_path / "run", "--episodes", 1).returncode == 0


def test_other_precisions_need_a_gpu(uper, gpu, tmp_path):
    devices = ["cpu"] if gpu else ["cpu", "auto"]
    for device in devices:
        for precision in ["tf32", "tf32x3"]:
            result = uper("train", *SMALL, "--frames", 150, "--device", device, "--set", f"precision={precision}",
                          "--out", tmp_path / "run")
            assert result.returncode == 2, result.stderr
            assert precision in result.stderr and "needs a GPU" in result.stderr and "fp32" in result.stderr
            assert not (tmp_path / "run").exists()
    result = uper("bench", "learner", "--set", "precision=tf32")
    assert result.returncode == 2 and "needs a GPU" in result.stderr


def test_an_agent_of_another_precision_can_be_watched_without_a_gpu(uper, gpu, tmp_path):
    if gpu:
        pytest.skip("there is a GPU")
    assert train(uper, tmp_path / "run", 150, "auto").returncode == 0
    config = tmp_path / "run" / "config.toml"
    text = config.read_text()
    assert 'precision = "fp32"' in text
    config.write_text(text.replace('precision = "fp32"', 'precision = "tf32"'))
    result = uper("evaluate", tmp_path / "run", "--episodes", 1)
    assert result.returncode == 0, result.stderr
    result = train(uper, tmp_path / "run", 300, "auto")  # but not trained on
    assert result.returncode == 2 and "precision" in result.stderr


@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_a_run_of_another_precision_goes_on_as_it_began(uper, gpu, tmp_path, precision):
    if not gpu:
        pytest.skip("no GPU")

    def run(folder, frames, *more):
        return uper("train", "--agent", "qr-ens-uper", *SMALL, "--frames", frames, "--device", "cuda", *more,
                    "--out", folder)

    setting = ["--set", f"precision={precision}"]
    for frames in [450, 900]:
        result = run(tmp_path / "halves", frames, *setting)
        assert result.returncode == 0, result.stderr
    assert run(tmp_path / "whole", 900, *setting).returncode == 0
    assert run(tmp_path / "fp32", 900).returncode == 0
    assert hashes(uper, tmp_path / "halves") == hashes(uper, tmp_path / "whole")
    assert hashes(uper, tmp_path / "whole") != hashes(uper, tmp_path / "fp32")
    result = run(tmp_path / "whole", 1200)  # fp32 was asked for
    assert result.returncode == 2 and "precision" in result.stderr
    assert uper("evaluate", tmp_path / "whole", "--episodes", 1).returncode == 0
    result = uper("bench", "learner", "--device", "cuda", "--json", "--repeats", 1, *setting)
    assert json.loads(result.stdout)["precision"] == precision


def hashes(uper, folder):
    result = json.loads(uper("inspect", folder, "--json").stdout)
    return result["parameters_hash"], result["replay_hash"]


def test_overlapped_and_resumed_runs_are_the_sequential_one(uper, gpu, tmp_path):
    if not gpu:
        pytest.skip("no GPU")
    for name, more in [("plain", ["--set", "overlap_updates=false"]),
                       ("overlapped", ["--set", "overlap_updates=true"])]:
        for frames in [450, 900]:  # the second command goes on
            result = uper("train", "--agent", "qr-ens-uper", *SMALL, "--frames", frames, "--device",
                          "cuda", *more, "--out", tmp_path / name)
            assert result.returncode == 0, result.stderr
    result = train(uper, tmp_path / "whole", 900, "cuda")
    assert result.returncode == 0, result.stderr
    assert hashes(uper, tmp_path / "plain") == hashes(uper, tmp_path / "whole")
    assert hashes(uper, tmp_path / "overlapped") == hashes(uper, tmp_path / "whole")


@pytest.mark.parametrize("game, frames", [("minatar/breakout", 400), ("atari/pong", 4000)])
def test_runs_of_a_sweep_share_the_gpu(uper, gpu, tmp_path, game, frames):
    if not gpu:
        pytest.skip("no GPU")
    plan = tmp_path / "sweep.toml"
    plan.write_text(f"""agents = ["qr-ens-uper"]
environments = ["{game}"]
seeds = [1, 2, 3]
[fixed]
device = "cuda"
threads = 1
frames = {frames}
evaluate_every_frames = 0
replay.minimum_transitions = 100
replay.capacity_transitions = 2000
exploration.epsilon_from = 0.1
""")
    result = uper("sweep", plan, "--jobs", 3, "--out", tmp_path / "sweep", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["done"] == 3
    settings = ["threads=1", "evaluate_every_frames=0", "replay.minimum_transitions=100",
                "replay.capacity_transitions=2000", "exploration.epsilon_from=0.1"]
    alone = uper("train", "--agent", "qr-ens-uper", "--env", game, "--seed", 2, "--device", "cuda", "--frames", frames,
                 *(word for setting in settings for word in ("--set", setting)), "--no-plots", "--out",
                 tmp_path / "alone")
    assert alone.returncode == 0, alone.stderr
    runs = json.loads(result.stdout)["runs"]
    assert hashes(uper, runs[1]["folder"]) == hashes(uper, tmp_path / "alone")


@pytest.mark.parametrize("environments", [1, 16])
def test_what_is_played_before_learning_is_what_the_cpu_plays(uper, gpu, tmp_path, environments):
    if not gpu:
        pytest.skip("no GPU")
    settings = [f"environments={environments}", "replay.minimum_transitions=20000",
                "replay.capacity_transitions=20000", "evaluate_every_frames=0", "exploration.epsilon_from=0.2", "exploration.epsilon_to=0.2"]
    for device in ["cpu", "cuda"]:
        result = uper("train", "--agent", "qr-ens-uper", "--env", "atari/pong", "--device", device, "--frames", 76800,
                      *(word for setting in settings for word in ("--set", setting)), "--no-plots", "--out",
                      tmp_path / device)
        assert result.returncode == 0, result.stderr
    assert hashes(uper, tmp_path / "cpu") == hashes(uper, tmp_path / "cuda")


@pytest.mark.parametrize("agent", ["dqn", "double-dqn", "qr-dqn", "qr-ens-uper", "c51-ens-uper"])
def test_a_step_is_that_of_the_cpu(uper, gpu, tmp_path, agent):
    if not gpu:
        pytest.skip("no GPU")
    for device in ["cpu", "cuda"]:
        result = uper("dump-step", "--agent", agent, "--device", device, "--out",
                      tmp_path / f"{device}.npz")
        assert result.returncode == 0, result.stderr
    cpu, cuda = np.load(tmp_path / "cpu.npz"), np.load(tmp_path / "cuda.npz")
    assert sorted(cpu.files) == sorted(cuda.files)
    for name in cpu.files:
        if name == "settings":
            continue
        scale = np.abs(cpu[name].astype(np.float64)).max() or 1
        assert np.abs(cpu[name].astype(np.float64) - cuda[name]).max() <= 1e-5 * scale, name


@pytest.mark.soak
def test_a_thousand_updates_of_atari_size_are_those_of_the_cpu(gpu):
    if not gpu:
        pytest.skip("no GPU")
    result = subprocess.run([ROOT / "build" / "release" / "cuda_test", "--gtest_also_run_disabled_tests",
                             "--gtest_filter=CudaUpdateTest.DISABLED_*"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:]
    assert "1 test from" in result.stdout


def test_a_lost_gpu_ends_the_run_and_leaves_its_checkpoints(uper, gpu, tmp_path):
    if not gpu:
        pytest.skip("no GPU")
    library = tmp_path / "lose_gpu.so"
    source = pathlib.Path(__file__).with_name("lose_gpu.c")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, "-ldl", "-lpthread"], check=True)
    frames = 60_000
    result = uper("train", "--agent", "qr-ens-uper", *SMALL, "--frames", frames, "--device", "cuda", "--out",
                  tmp_path / "run", env={**os.environ, "LD_PRELOAD": str(library), "LOSE_GPU_AFTER": "4"})
    assert "lose_gpu: 0" in result.stderr
    assert result.returncode == 4, result.stderr
    assert uper("verify", tmp_path / "run").returncode == 0
    assert 200 <= json.loads(uper("inspect", tmp_path / "run", "--json").stdout)["frames"] < frames
    for folder in ["run", "whole"]:  # the first one goes on
        result = train(uper, tmp_path / folder, frames, "cuda")
        assert result.returncode == 0, result.stderr
    assert hashes(uper, tmp_path / "run") == hashes(uper, tmp_path / "whole")
