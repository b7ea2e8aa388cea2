"""The command line's contract: messages, exit codes, nothing half-written."""

import json
import os
import resource
import signal
import subprocess
import time

import pytest
from conftest import PROGRAM, ROOT

# A bandit that takes a blink.
SMALL = ["--seeds", 2, "--set", "iterations=5", "--set", "steps_per_iteration=20"]
DAMAGED = "*.tmp.*"


def test_help_of_every_command_has_an_example(uper):
    commands = [["train"], ["evaluate"], ["rollout"], ["reproduce"], ["report"], ["sweep"], ["inspect"], ["verify"],
                ["dump-step"], ["list"], ["doctor"], ["bench", "replay"], ["bench", "learner"], ["bench", "env"],
                ["bench", "train"]]
    for command in commands:
        result = uper(*command, "--help")
        assert result.returncode == 0
        assert "Example: uper " + " ".join(command) in result.stdout


def test_version(uper):
    assert uper("--version").stdout.startswith("uper 0.")


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ([], 2, ["subcommand"]),
        (["trian"], 2, ["unknown command 'trian' (did you mean 'train'?)"]),
        (["bench", "lerner"], 2, ["unknown command 'lerner' (did you mean 'learner'?)"]),
        (["train", "--agnet", "dqn"], 2, ["unknown option '--agnet' (did you mean '--agent'?)"]),
        (["train", "--frmes=10"], 2, ["unknown option '--frmes' (did you mean '--frames'?)"]),
        (["reproduce"], 2, ["figure"]),
        (["reproduce", "bandti"], 2, ["bandti", "did you mean 'bandit'", "uper list figures"]),
        (["reproduce", "cost-table", "--set", "environment=minatar/brekout"], 2, ["did you mean 'minatar/breakout'"]),
        (["sweep"], 2, ["file"]),
        (["sweep", "nothing.toml"], 2, ["nothing.toml"]),
        (["sweep", "nothing.toml", "--jobs", "0"], 2, ["--jobs"]),
        (["sweep", "nothing.toml", "--slurm", "--summary"], 2, ["--slurm"]),
        (["reproduce", "atari-median"], 3, ["training runs"]),
        (["reproduce", "bandit", "--seeds", "0"], 2, ["--seeds"]),
        (["reproduce", "bandit", "--seeds", "-3"], 2, ["--seeds"]),
        (["reproduce", "bandit", "--seeds", "ten"], 2, ["--seeds"]),
        (["reproduce", "bandit", "--jobs", "0"], 2, ["--jobs"]),
        (["reproduce", "bandit", "--sed", "3"], 2, ["--sed"]),
        (["reproduce", "bandit", "--set", "quantile=30"], 2, ["quantile", "did you mean 'quantiles'"]),
        (["reproduce", "bandit", "--set", "quantiles"], 2, ["key=value"]),
        (["reproduce", "bandit", "--set", "quantiles=0"], 2, ["quantiles", "from 1 to"]),
        (["reproduce", "bandit", "--set", "quantiles=many"], 2, ["quantiles", "many"]),
        (["reproduce", "bandit", "--set", "schemes=td,info_gian"], 2, ["info_gian", "did you mean 'info_gain'"]),
        (["reproduce", "bandit", "some-run"], 2, ["takes no training runs"]),
        (["reproduce", "bandit", "--out", "/proc/nowhere"], 2, ["/proc/nowhere"]),
        (["list", "figure"], 2, ["figure"]),
        (["bench", "replay", "--entries", "5"], 2, ["--entries"]),
    ],
)
def test_bad_input(uper, tmp_path, arguments, code, words):
    result = uper(*arguments, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr
    assert not list(tmp_path.iterdir()), "bad input must leave nothing behind"


def test_out_below_a_file_is_refused(uper, tmp_path):
    (tmp_path / "file").write_text("mine")
    result = uper("reproduce", "bandit", *SMALL, "--out", tmp_path / "file" / "x")
    assert result.returncode == 2
    assert str(tmp_path / "file") in result.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_the_cost_table_needs_its_game(uper, tmp_path):
    if "atari/pong" in uper("list", "envs").stdout.split():
        pytest.skip("this build has the game")
    result = uper("reproduce", "cost-table", cwd=tmp_path)
    assert result.returncode == 3 and "atari/pong" in result.stderr
    assert not list(tmp_path.iterdir())


def test_lists(uper):
    figures = uper("list", "figures").stdout.split()
    assert figures[0] == "bandit" and "gridworld" in figures and "direct-variance" in figures
    priorities = json.loads(uper("list", "priorities", "--json").stdout)["priorities"]
    assert priorities[:2] == ["uniform", "td"] and "info_gain_delta" in priorities
    envs = uper("list", "envs").stdout.split()
    assert envs[:3] == ["bandit/conal", "bandit/shifted", "grid/noisy"] and "minatar/seaquest" in envs
    agents = uper("list", "agents").stdout.split()
    assert agents[0] == "dqn" and {"per", "qr-ens-uper", "c51-ens-uper"} <= set(agents)


def test_every_key_is_documented(uper):
    documents = (ROOT / "docs" / "configuration.md").read_text()
    for key in uper("list", "keys").stdout.split():
        assert f"`{key}`" in documents, key


def test_a_full_disk_is_a_resource_error_and_leaves_no_partial_file(uper, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    result = uper("reproduce", "bandit", *SMALL, "--out", tmp_path / "out", preexec_fn=limit)
    assert result.returncode == 4
    assert "arms.csv" in result.stderr or "mse.csv" in result.stderr
    assert not [path for path in (tmp_path / "out").iterdir() if path.stat().st_size >= 2000]
    assert not list((tmp_path / "out").glob(DAMAGED))


def test_ctrl_c_stops_soon_with_130_and_leaves_no_partial_file(tmp_path):
    process = subprocess.Popen([PROGRAM, "reproduce", "bandit", "--seeds", "1000", "--out", "out"],
                               cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert os.listdir(tmp_path / "out") == []
