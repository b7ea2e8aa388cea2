"""--device from outside: what a GPU must do where there is one, and what happens where there is none."""

import json

import numpy as np
import pytest

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


def test_a_run_moves_between_devices(uper, gpu, tmp_path):
    if not gpu:
        pytest.skip("no GPU")
    for frames, device in [(300, "cuda"), (600, "cpu"), (900, "cuda")]:
        result = train(uper, tmp_path / "run", frames, device)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["frames"] == frames
    assert uper("verify", tmp_path / "run").returncode == 0
    assert uper("evaluate", tmp_path / "run", "--episodes", 1).returncode == 0


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
