#!/usr/bin/env python3
"""Kills training runs at random moments, starts them again, and checks that they end like runs nobody
disturbed, bit for bit. Needs Python alone:

    python3 tests/kill_campaign.py --kills 1000 --seed 1 --workers 2
"""

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "build" / "uper"

# A run of a few seconds in which everything happens: learning, evaluating, logging, saving.
FRAMES = 3000
SETTINGS = {
    "frames": FRAMES,
    "replay.capacity_transitions": 1500,  # the ring's seam is passed
    "replay.minimum_transitions": 200,
    "replay.batch_size": 8,
    "agent.n_steps": 3,
    "network.members": 3,
    "network.quantiles": 5,
    "network.hidden_units": 16,
    "exploration.start_frames": 0,
    "exploration.end_frames": 2000,
    "log_every_frames": 250,
    "evaluate_every_frames": 700,
    "evaluation_frames": 200,
    "checkpoint_every_frames": 300,
}

# The cases of a campaign, one round after the other. Each has one thread, since several run side by side.
CASES = [{"agent": agent, "env": env, "threads": 1} for env in ("minatar/seaquest", "minatar/asterix", "minatar/freeway")
         for agent in ("qr-ens-uper", "c51-ens-uper", "dqn")]
KILLS_A_ROUND = 12


def command(folder, *more, agent="qr-ens-uper", env="minatar/breakout", **settings):
    words = [str(PROGRAM), "train", "--agent", agent, "--env", env, "--out", str(folder), "--no-plots"]
    for key, value in {**SETTINGS, **settings}.items():
        words += ["--set", f"{key}={value}"]
    return words + [str(word) for word in more]


def train(folder, *more, **options):
    return subprocess.run(command(folder, *more, **options), capture_output=True, text=True, timeout=300)


def inspect(folder):
    result = subprocess.run([PROGRAM, "inspect", str(folder), "--json"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def timeless_rows(folder):
    """metrics.csv without its columns of times."""
    with open(folder / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: value for name, value in row.items()
             if not name.endswith(("_seconds", "_per_second"))} for row in rows]


def same_result(one, other):
    a, b = inspect(one), inspect(other)
    for key in ("frames", "updates", "parameters_hash", "replay_hash", "finished"):
        assert a[key] == b[key], f"{key} of {one} and {other}: {a[key]}, {b[key]}"
    assert timeless_rows(one) == timeless_rows(other), f"metrics.csv of {one} and {other}"


def kill_and_resume(folder, kills, run_seconds, generator, *more, **options):
    """Kills the run at random moments, then lets it end; how often it was killed."""
    killed = 0
    for _ in range(kills):
        process = subprocess.Popen(command(folder, *more, **options), stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=generator.uniform(0, 1.5 * run_seconds / kills))
            break  # it ended before
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    result = train(folder, *more, **options)
    assert result.returncode == 0, result.stderr
    return killed


def whole_run(folder, case, device):
    """Trains without a kill; how long that took."""
    start = time.monotonic()
    result = train(folder, "--device", device, **case)
    assert result.returncode == 0, result.stderr
    return time.monotonic() - start


def play_round(number, folder, seed, seconds, device):
    """One run, killed several times and compared with its undisturbed twin; the number of kills. What
    is found wrong stays in the folder."""
    case = number % len(CASES)
    run = folder / f"round{number}"
    kills = kill_and_resume(run, KILLS_A_ROUND, seconds[case], random.Random(f"{seed}/{number}"), "--device",
                            device, **CASES[case])
    same_result(folder / f"whole{case}", run)
    shutil.rmtree(run)
    return kills


def campaign(folder, kills, seed, workers, device="cpu", report=lambda kills, rounds: None):
    """Plays rounds, as many at a time as there are workers, until this many kills hit a running program.
    Returns the kills and the rounds."""
    with ThreadPoolExecutor(workers) as pool:
        seconds = list(pool.map(lambda case: whole_run(folder / f"whole{case}", CASES[case], device),
                                range(len(CASES))))
        done = rounds = 0
        running = set()
        while done < kills or running:
            while done < kills and len(running) < workers:
                running.add(pool.submit(play_round, rounds, folder, seed, seconds, device))
                rounds += 1
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            done += sum(future.result() for future in ended)
            report(done, rounds - len(running))
    return done, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="how many at least (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--folder", type=Path, help="where the runs go (default: a temporary folder)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="kills-"))
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def report(kills, rounds):
        print(f"\r{kills} kills, {rounds} rounds", end="", file=sys.stderr, flush=True)

    kills, rounds = campaign(folder, arguments.kills, arguments.seed, arguments.workers, arguments.device, report)
    print(f"\n{kills} kills in {rounds} rounds of {len(CASES)} cases, {time.monotonic() - start:.0f} s: "
          "every run ended like its undisturbed twin")
    if arguments.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
