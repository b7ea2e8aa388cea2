#!/usr/bin/env python3
"""Short training runs whose results a change of structure must not change.

    python3 tests/same_results.py PROGRAM record FILE.json    # writes the results of a program
    python3 tests/same_results.py PROGRAM compare FILE.json   # exit 1 and the rows that differ
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENTS = ("dqn", "double-dqn", "per", "qr-dqn", "qr-per", "qr-ens-uni", "qr-ens-per", "qr-ens-epi", "qr-ens-uper",
          "c51", "c51-ens-per", "c51-ens-uper")
SHORT = {"replay.minimum_transitions": 300, "replay.capacity_transitions": 1000, "log_every_frames": 500,
         "evaluate_every_frames": 1000, "evaluation_frames": 300, "checkpoint_every_frames": 700,
         "exploration.start_frames": 0, "exploration.end_frames": 1500, "agent.target_period_frames": 400, "agent.target_period_updates": 0,
         "replay.importance_exponent_start_transitions": 300}
# Atari counts four frames per step, and its networks are a hundred times as large.
ATARI = SHORT | {"agent.learn_period_frames": 64, "replay.batch_size": 16, "replay.minimum_transitions": 100,
                 "replay.capacity_transitions": 250, "network.hidden_units": 64, "evaluation_frames": 200,
                 "replay.importance_exponent_start_transitions": 100}


def matrix():
    """name -> (agent, environment, frames, settings, kill); `kill`: interrupted and resumed on the way."""
    rows = {}

    def add(agent, env, frames=1600, kill=False, base=SHORT, **settings):
        keys = {key.replace("__", "."): value for key, value in settings.items()}
        name = " ".join([agent, env, *(f"{key.split('.')[-1]}={value}" for key, value in keys.items()), *(["killed"] * kill)])
        rows[name] = (agent, env, frames, base | keys, kill)

    for agent in AGENTS:
        add(agent, "minatar/breakout")
        add(agent, "atari/pong", 1600, base=ATARI)
    for agent in ("dqn", "qr-ens-uper", "c51-ens-uper"):
        add(agent, "grid/noisy")
        add(agent, "noisy-minatar/seaquest", environments=4)
        add(agent, "minatar/space_invaders", environments=16, overlap_updates="true")
        add(agent, "atari/breakout", 3200, base=ATARI, environments=4, overlap_updates="true")
        add(agent, "atari/seaquest", 3200, base=ATARI, environments=16)
    for agent in ("qr-dqn", "qr-ens-per", "qr-ens-uper"):
        add(agent, "minatar/asterix", agent__n_steps=3)
        add(agent, "minatar/freeway", environments=4, agent__n_steps=3, overlap_updates="true", kill=True)
        add(agent, "atari/pong", base=ATARI, agent__n_steps=3, kill=True)
    add("qr-ens-uper", "minatar/breakout", network__separate_hidden="true")
    add("qr-ens-uper", "atari/pong", base=ATARI, network__separate_hidden="true")
    add("qr-ens-uper", "bandit/conal")
    add("qr-ens-uper", "minatar/breakout", replay__selector="rank")
    add("qr-ens-uper", "minatar/breakout", replay__stratified="true", replay__weight_normalization="buffer_max")
    add("qr-ens-uper", "minatar/breakout", agent__target_period_frames=0, agent__target_period_updates=150)
    add("qr-ens-uper", "atari/pong", base=ATARI, environment__protocol="dopamine", environment__reward_noise_sd=1)
    add("per", "minatar/seaquest", environment__noisy_channels=1, environment__random_action_probability=0.1)
    add("dqn", "minatar/breakout", optimizer__rule="rmsprop")
    return rows


def command(program, row, folder, threads):
    agent, env, frames, settings, _ = row
    settings = settings | {"threads": threads, "device": "cpu"}
    return [program, "train", "--agent", agent, "--env", env, "--frames", str(frames), "--seed", "7", "--out", str(folder),
            *(f for key, value in settings.items() for f in ("--set", f"{key}={value}"))]


# The columns that the recorded hashes cover: all of version 0.1 except for times. A new column does not change them.
COLUMNS = ("frames updates episodes train_return eval_return loss grad_norm epsilon beta priority_mean priority_max "
           "epistemic_mean aleatoric_mean target_distance_mean effective_sample_size td_error_mean floored_share "
           "capped_share refused_priorities noisy_draw_share noisy_stored_share replay_size train_episode_frames "
           "eval_episodes").split()


def timeless(path):
    """The rows of metrics.csv without the columns that hold times."""
    with open(path) as file:
        return [[row[name] for name in COLUMNS] for row in csv.DictReader(file)]


def run(program, row, threads):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        environment = os.environ | {"PYTHONPATH": ""}
        line = command(program, row, folder, threads)
        if row[4]:  # the signal comes when there is something to go on from
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            while process.poll() is None and not list(folder.glob("checkpoints/manifest-*.json")):
                time.sleep(0.005)
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=600)
        if done.returncode != 0:
            return {"exit": done.returncode, "error": done.stderr[-300:]}
        inspected = json.loads(subprocess.run([program, "inspect", str(folder), "--json"], capture_output=True, text=True,
                                              check=True).stdout)
        metrics = hashlib.sha256(json.dumps(timeless(folder / "metrics.csv")).encode()).hexdigest()[:32]
        return {key: inspected[key] for key in ("frames", "updates", "parameters_hash", "replay_hash")} | {"metrics": metrics}


def results(program, names=None, workers=2, threads=1):
    rows = {name: row for name, row in matrix().items() if names is None or name in names}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return dict(zip(rows, pool.map(lambda row: run(program, row, threads), rows.values())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="names that contain this")
    arguments = parser.parse_args()
    found = results(arguments.program, [name for name in matrix() if arguments.only in name], threads=arguments.threads)
    if arguments.what == "record":
        arguments.file.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    wanted = json.loads(arguments.file.read_text())
    differ = [name for name in found if found[name] != wanted.get(name)]
    for name in differ:
        print(f"{name}:\n  was {wanted.get(name)}\n  is  {found[name]}")
    print(f"{len(found) - len(differ)} same, {len(differ)} different")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
