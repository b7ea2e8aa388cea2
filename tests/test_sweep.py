"""`uper sweep`: the runs it makes, kills without losses, and the plans it refuses."""

import csv
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import slurm_cluster
from conftest import PROGRAM, ROOT

# Four runs of about a second each, with learning, evaluations and checkpoints.
SMALL = """
agents = ["dqn", "qr-ens-uper"]
environments = ["minatar/breakout"]
seeds = [1, 2]
[fixed]
frames = 2000
replay.capacity_transitions = 1500
replay.minimum_transitions = 200
replay.batch_size = 8
network.hidden_units = 16
log_every_frames = 250
evaluate_every_frames = 700
evaluation_frames = 200
checkpoint_every_frames = 300
"""
ENSEMBLE_RUN = "minatar-breakout_qr-ens-uper_seed=1"


def write(folder, text, name="sweep.toml"):
    path = folder / name
    path.write_text(text)
    return path


def sweep(file, folder, *more, **options):
    return subprocess.run([PROGRAM, "sweep", file, "--out", folder, *map(str, more)], capture_output=True,
                          text=True, timeout=300, **options)


def timeless(path):
    """The text of a CSV file without its columns of times."""
    with open(path, newline="") as file:
        return [{name: value for name, value in row.items() if not name.endswith(("_seconds", "_per_second"))}
                for row in csv.DictReader(file)]


def hashes(run):
    result = subprocess.run([PROGRAM, "inspect", run, "--json"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    described = json.loads(result.stdout)
    return [described[key] for key in ("frames", "updates", "parameters_hash", "replay_hash", "finished")]


def same_results(one, other):
    assert timeless(one / "summary.csv") == timeless(other / "summary.csv")
    names = sorted(path.name for path in (one / "runs").iterdir())
    assert names == sorted(path.name for path in (other / "runs").iterdir())
    for name in names:
        assert hashes(one / "runs" / name) == hashes(other / "runs" / name), name
        assert timeless(one / "runs" / name / "metrics.csv") == timeless(other / "runs" / name / "metrics.csv")
        assert (one / "runs" / name / "config.toml").read_bytes() == \
            (other / "runs" / name / "config.toml").read_bytes()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    result = sweep(write(folder, SMALL), folder / "out", "--jobs", 2)
    assert result.returncode == 0, result.stderr
    return folder / "out", result


@pytest.fixture(scope="module")
def sweep_seconds(tmp_path_factory):
    """Seconds that the sweep takes on this machine, so that kills can be spread over it."""
    folder = tmp_path_factory.mktemp("timed")
    start = time.monotonic()
    assert sweep(write(folder, SMALL), folder / "out", "--jobs", 2).returncode == 0
    return time.monotonic() - start


def test_runs_folders_and_summary(unbroken):
    folder, result = unbroken
    rows = timeless(folder / "summary.csv")
    assert [(row["agent.name"], row["seed"]) for row in rows] == \
        [("dqn", "1"), ("dqn", "2"), ("qr-ens-uper", "1"), ("qr-ens-uper", "2")]
    for row in rows:
        summary = json.loads((folder / "runs" / row["run"] / "summary.json").read_text())
        assert row["status"] == "done" and row["exit_code"] == "0" and row["frames"] == "2000"
        assert float(row["final_eval_return"]) == summary["final_eval_return"]
        assert (folder / "logs" / f"{row['run']}.log").stat().st_size > 0
    assert rows[2]["run"] == ENSEMBLE_RUN
    assert f"done {ENSEMBLE_RUN}" in result.stderr and "4 of 4 done" in result.stderr
    table = result.stdout.splitlines()
    assert len(table) == 5 and table[0].split()[:4] == ["#", "environment.name", "agent.name", "seed"]


def test_a_run_of_a_sweep_is_the_run_of_uper_train(unbroken, tmp_path):
    config = unbroken[0] / "runs" / ENSEMBLE_RUN / "config.toml"
    subprocess.run([PROGRAM, "train", config, "--out", tmp_path / "run", "--no-plots"], check=True,
                   capture_output=True)
    assert hashes(tmp_path / "run") == hashes(unbroken[0] / "runs" / ENSEMBLE_RUN)


def test_json_and_a_finished_sweep_starts_nothing(unbroken, tmp_path):
    folder = shutil.copytree(unbroken[0], tmp_path / "out")
    result = sweep(folder / "sweep.toml", folder, "--json")
    assert result.returncode == 0
    described = json.loads(result.stdout)
    assert described["done"] == 4 and described["failed"] == 0 and len(described["runs"]) == 4
    assert described["runs"][2]["run"] == ENSEMBLE_RUN and described["runs"][2]["exit_code"] == 0
    assert described["runs"][2]["settings"]["agent.name"] == "qr-ens-uper"
    assert "start " not in result.stderr
    same_results(unbroken[0], folder)


def children_of(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(word) for word in file.read().split()]


def kill_everything(process):
    """Kills the sweep and its children at once with SIGKILL, children first or last."""
    children = children_of(process)
    for pid in [process.pid, *children] if process.pid % 2 else [*children, process.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def kill_and_resume(file, folder, with_children, seconds, generator):
    """Kills the sweep at random moments, then lets it end. Gives the number of kills."""
    killed = 0
    for _ in range(5):
        process = subprocess.Popen([PROGRAM, "sweep", file, "--out", folder, "--jobs", "2"],
                                   stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=generator.uniform(0, seconds / 2))
            break  # the sweep ended before the kill
        except subprocess.TimeoutExpired:
            kill_everything(process) if with_children else process.kill()
            process.wait()
            killed += 1
    # Children survive a kill of the sweep alone. They save and end on their own; wait for them.
    result = sweep(file, folder, "--jobs", 2)
    assert result.returncode == 0, result.stderr
    return killed


@pytest.mark.parametrize("with_children", [True, False])
def test_killed_at_random_moments_it_ends_the_same(unbroken, sweep_seconds, tmp_path, with_children):
    file, generator, kills = write(tmp_path, SMALL), random.Random(with_children), 0
    for number in range(10):
        folder = tmp_path / f"out{number}"
        kills += kill_and_resume(file, folder, with_children, sweep_seconds, generator)
        same_results(unbroken[0], folder)
        if kills >= 8:
            return
    pytest.fail(f"only {kills} kills hit a running sweep")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_runs_end_with_a_killed_sweep(tmp_path):
    file = write(tmp_path, SMALL.replace("frames = 2000", "frames = 10_000_000"))
    process = subprocess.Popen([PROGRAM, "sweep", file, "--out", tmp_path / "out", "--jobs", "2"],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while len(list((tmp_path / "out").glob("runs/*/metrics.csv"))) < 2:
        time.sleep(0.01)
    children = children_of(process)
    process.kill()
    process.wait()
    try:
        end = time.monotonic() + 60
        while any(map(is_running, children)):
            assert time.monotonic() < end, "the runs go on without their sweep"
            time.sleep(0.02)
    finally:
        for child in filter(is_running, children):
            os.kill(child, signal.SIGKILL)
    logs = [path.read_text() for path in (tmp_path / "out" / "logs").iterdir()]
    assert len(logs) == 2 and all("interrupted and saved" in log for log in logs)


def test_a_sweep_goes_on_with_the_program_that_it_began_with(unbroken, tmp_path):
    """The program file is replaced while the sweep runs."""
    program, file = tmp_path / "uper", write(tmp_path, SMALL)
    shutil.copy(PROGRAM, program)
    process = subprocess.Popen([program, "sweep", file, "--out", tmp_path / "out", "--jobs", "1"],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not list((tmp_path / "out").glob("runs/*/config.toml")):
        assert process.poll() is None
        time.sleep(0.01)
    program.unlink()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert process.wait() == 0
    same_results(unbroken[0], tmp_path / "out")
    commands = [json.loads(path.read_text())["command"] for path in (tmp_path / "out").glob("runs/*/run.json")]
    assert len(commands) == 4 and all("deleted" not in str(command) for command in commands)


def test_a_run_that_somebody_holds_is_waited_for(unbroken, tmp_path):
    """A run may still be saving after the sweep was killed."""
    file, held = write(tmp_path, SMALL), tmp_path / "out" / "runs" / ENSEMBLE_RUN / "lock"
    held.parent.mkdir(parents=True)
    with open(held, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen([PROGRAM, "sweep", file, "--out", tmp_path / "out", "--jobs", "1"],
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while len(list((tmp_path / "out").glob("runs/*/finished"))) < 3:
            assert process.poll() is None
            time.sleep(0.02)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "waiting: " in errors, errors
    same_results(unbroken[0], tmp_path / "out")


def test_runs_that_do_not_fit_into_the_memory_together_are_refused(uper, tmp_path):
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    limits = [int(path.read_text()) for path in [Path("/sys/fs/cgroup/memory.max")]
              if path.exists() and path.read_text().strip() != "max"]
    record = 2 * 10 * 10 * 4 + 24  # two observations of breakout and the rest
    capacity = int(0.7 * min([available, *limits]) / record)
    plan = tmp_path / "sweep.toml"
    plan.write_text(f"""agents = ["dqn"]
environments = ["minatar/breakout"]
seeds = [1, 2]
[fixed]
threads = 1
frames = {capacity}
replay.capacity_transitions = {capacity}
""")
    result = uper("sweep", plan, "--jobs", 2, "--out", tmp_path / "sweep")
    assert result.returncode == 4, result.stderr
    assert "2 runs at a time need" in result.stderr and "--jobs 1 fits" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_every_run_and_the_same_command_goes_on(unbroken, tmp_path, number):
    file = write(tmp_path, SMALL)
    process = subprocess.Popen([PROGRAM, "sweep", file, "--out", tmp_path / "out", "--jobs", "2"],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not list((tmp_path / "out").glob("runs/*/metrics.csv")):
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 75 and "run the same command" in errors
    state = json.loads((tmp_path / "out" / "state.json").read_text())["runs"]
    assert "interrupted" in [run["status"] for run in state] and "running" not in [run["status"] for run in state]
    assert sweep(file, tmp_path / "out").returncode == 0
    same_results(unbroken[0], tmp_path / "out")


def test_one_failing_run_does_not_stop_the_rest(unbroken, tmp_path):
    file, folder = write(tmp_path, SMALL), tmp_path / "out"
    broken = folder / "runs" / "minatar-breakout_dqn_seed=1"
    (broken / "checkpoints").mkdir(parents=True)
    (broken / "checkpoints" / "remains").write_text("checkpoints without config.toml")
    result = sweep(file, folder, "--jobs", 2)
    assert result.returncode == 1
    assert f"FAILED {broken.name} with exit code 5" in result.stderr and "config.toml" in result.stderr
    assert [row["status"] for row in timeless(folder / "summary.csv")] == ["failed", "done", "done", "done"]
    assert timeless(folder / "summary.csv")[0]["exit_code"] == "5"
    shutil.rmtree(broken)  # after the repair the same command tries the run again
    again = sweep(file, folder)
    assert again.returncode == 0 and again.stderr.count("start ") == 1
    same_results(unbroken[0], folder)


def test_pinning(tmp_path):
    """Two runs at a time are pinned to one processor each."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("one processor: nothing to pin")
    file = write(tmp_path, SMALL.replace("frames = 2000", "frames = 10_000_000"))
    process = subprocess.Popen([PROGRAM, "sweep", file, "--out", tmp_path / "out", "--jobs", "2"],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while len(list((tmp_path / "out").glob("runs/*/metrics.csv"))) < 2:
            time.sleep(0.01)
        cpus = [os.sched_getaffinity(child) for child in children_of(process)]
        assert sorted(map(sorted, cpus)) == [[usable[0]], [usable[1]]]
        second = sweep(file, tmp_path / "out")
        assert second.returncode == 4 and str(process.pid) in second.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 75


@pytest.mark.parametrize("text, words", [
    ("[grid]\noptimizer.learning_rat = [1e-4]", ["sweep.toml:2", "did you mean 'optimizer.learning_rate'"]),
    ("seeds = [1, \"x\"]", ["sweep.toml:1", "an integer", "\"x\""]),
    ("agents = [\"qr-ens-upre\"]", ["sweep.toml:1", "did you mean 'qr-ens-uper'"]),
    ("seeds = [1]\nenvironments = [\n\"minatar/breakout\",\n\"minatar/brekout\"]",
     ["sweep.toml:4", "did you mean 'minatar/breakout'"]),
    ("[slurm]\ntiem = \"1\"", ["sweep.toml:2", "did you mean 'slurm.time'"]),
    ("frames = 10", ["sweep.toml:1", "[fixed]"]),
    ("seeds = [", ["sweep.toml:1", "TOML"]),
])
def test_bad_files_start_nothing(tmp_path, text, words):
    result = sweep(write(tmp_path, text), tmp_path / "out")
    assert result.returncode == 2, result.stderr
    for word in words:
        assert word in result.stderr
    assert not (tmp_path / "out").exists()


def test_other_bad_input(uper, unbroken, tmp_path):
    assert uper("sweep", tmp_path / "nothing.toml").returncode == 2
    assert sweep(write(tmp_path, SMALL), tmp_path / "out", "--summary").returncode == 3
    assert uper("sweep", tmp_path / "sweep.toml", "--only", 5).returncode == 2
    folder = shutil.copytree(unbroken[0], tmp_path / "copy")
    other = sweep(write(tmp_path, SMALL.replace("batch_size = 8", "batch_size = 9"), "other.toml"), folder)
    assert other.returncode == 2 and "another sweep" in other.stderr and "--out" in other.stderr
    fewer = sweep(write(tmp_path, SMALL.replace("seeds = [1, 2]", "seeds = [1]"), "fewer.toml"), folder)
    assert fewer.returncode == 2 and "seed=2" in fewer.stderr
    (folder / "state.json").write_text("{")
    assert sweep(folder / "sweep.toml", folder).returncode == 5


def test_a_sweep_may_grow(unbroken, tmp_path):
    folder = shutil.copytree(unbroken[0], tmp_path / "out")
    more = write(tmp_path, SMALL.replace("seeds = [1, 2]", "seeds = [1, 2, 3]"))
    result = sweep(more, folder)
    assert result.returncode == 0 and result.stderr.count("start ") == 2
    assert len(timeless(folder / "summary.csv")) == 6


def test_the_files_of_configs_are_valid(uper, tmp_path):
    known = uper("list", "envs").stdout.split()
    for file in sorted((ROOT / "configs" / "sweeps").glob("*.toml")):
        # No run was ever made there: exit code 3, after the whole file was checked. A build without the
        # emulator does not know the game.
        result = sweep(file, tmp_path / "none", "--summary")
        allowed = (3,) if "atari/" not in file.read_text() or "atari/asterix" in known else (2, 3)
        assert result.returncode in allowed, result.stderr
        assert result.returncode == 3 or "atari/" in result.stderr


@pytest.mark.soak
def test_slurm_preemption_and_time_limit(tmp_path):
    """A preempted element, and one near its time limit, save, are queued again and end with equal results."""
    if slurm_cluster.missing():
        pytest.skip(slurm_cluster.missing())
    text = SMALL.replace("frames = 2000", "frames = 100_000").replace('"dqn", ', "")
    file = write(tmp_path, text + '[slurm]\npartition = "low"\n')
    assert sweep(file, tmp_path / "here").returncode == 0
    folder = tmp_path / "out"
    with slurm_cluster.Cluster(tmp_path / "cluster", cpus=2) as cluster:
        submitted = sweep(file, folder, "--slurm", "--json", env=cluster.environment)
        assert submitted.returncode == 0, submitted.stderr
        job = json.loads(submitted.stdout)["job"]
        assert json.loads(submitted.stdout)["submitted"] == 2
        again = sweep(file, folder, "--slurm", env=cluster.environment)
        assert again.returncode == 4 and f"job {job}" in again.stderr
        cluster.wait_until(lambda: len(list(folder.glob("runs/*/metrics.csv"))) == 2, 60)
        # Sends the signal of the time limit, and starts a job that preempts the other element.
        cluster.run("scancel", "--signal=USR1", "--batch", f"{job}_1")
        cluster.wait_until(lambda: cluster.queue().get(f"{job}_1") == "PENDING", 60)
        cluster.run("sbatch", "--partition=high", "--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 2")
        cluster.wait_until(lambda: cluster.queue().get(f"{job}_2") == "PENDING", 60)
        for number in (1, 2):
            assert "interrupted and saved" in (folder / "slurm" / f"{number}.log").read_text()
        cluster.wait_until(lambda: not cluster.queue(), 500)
    assert sweep(file, folder, "--summary").returncode == 0
    same_results(tmp_path / "here", folder)


def test_without_slurm_it_says_so(tmp_path):
    result = sweep(write(tmp_path, SMALL), tmp_path / "out", "--slurm", env=dict(os.environ, PATH="/nowhere"))
    assert result.returncode == 3 and "sbatch" in result.stderr
