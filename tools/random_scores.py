#!/usr/bin/env python3
"""Plays all 57 Atari games with random actions and compares the mean return with the published one.

    tools/random_scores.py --episodes 100 --jobs 16 --out results/random-scores

Each game is one `uper rollout --policy random`; JOBS run at a time, the longest first. Writes scores.csv and
scores.md. A game agrees when published and measured mean differ by at most 3 standard errors of the measured
mean. (The published means have errors of their own, which are not known.) A killed run goes on where it was:
finished games are kept in OUT/games.
"""

import argparse
import csv
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "uper"
PUBLISHED = ROOT / "data" / "atari57-human-random.csv"
LIMIT = 3
# Random play takes longest in these; they start first so that none is left at the end.
LONG = ["skiing", "tennis", "ice_hockey", "bowling", "double_dunk", "private_eye", "pitfall", "freeway", "boxing",
        "enduro", "solaris", "fishing_derby", "robotank", "surround", "montezuma_revenge", "hero", "yars_revenge"]
FIELDS = ["game", "published", "measured", "standard_error", "errors_apart", "agrees", "episodes", "frames"]


def play(game, arguments):
    """The rollout's summary, from OUT/games if it is there."""
    kept = arguments.out / "games" / f"{game}.json"
    if kept.exists():
        summary = json.loads(kept.read_text())
        if (summary["episodes"], summary["seed"]) == (arguments.episodes, arguments.seed):
            return summary
    command = [PROGRAM, "rollout", "--env", f"atari/{game}", "--policy", "random", "--episodes",
               str(arguments.episodes), "--seed", str(arguments.seed), "--json"]
    for setting in arguments.set:
        command += ["--set", setting]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(".unfinished")
    unfinished.write_text(result.stdout)
    unfinished.rename(kept)
    return json.loads(result.stdout)


def compare(game, published, summary):
    difference = summary["mean_return"] - published
    error = summary["standard_error"] or 0.0
    apart = abs(difference) / error if error > 0 else (0.0 if difference == 0 else math.inf)
    return {"game": game, "published": published, "measured": round(summary["mean_return"], 3),
            "standard_error": round(error, 3), "errors_apart": round(apart, 2), "agrees": apart <= LIMIT,
            "episodes": summary["episodes"], "frames": summary["frames"]}


def write_tables(rows, out):
    with open(out / "scores.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    lines = ["| game | published | measured | standard error | errors apart | agrees |", "|---|---:|---:|---:|---:|---|"]
    lines += [f"| {row['game']} | {row['published']:g} | {row['measured']:.1f} | {row['standard_error']:.2f} | "
              f"{row['errors_apart']:.1f} | {'yes' if row['agrees'] else 'no'} |" for row in rows]
    (out / "scores.md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", nargs="*", help="these instead of all")
    parser.add_argument("--set", action="append", default=[], metavar="environment.key=value")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "random-scores")
    arguments = parser.parse_args()
    with open(PUBLISHED) as file:
        published = {row["game"]: float(row["random"]) for row in csv.DictReader(file)}
    games = sorted(arguments.games or published, key=lambda game: (game not in LONG, game))
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {pool.submit(play, game, arguments): game for game in games}
        for done in as_completed(waiting):
            game = waiting[done]
            rows.append(compare(game, published[game], done.result()))
            print(json.dumps(rows[-1]), flush=True)
    rows.sort(key=lambda row: row["game"])
    write_tables(rows, arguments.out)
    agreeing = sum(row["agrees"] for row in rows)
    print(f"{agreeing} of {len(rows)} games within {LIMIT} standard errors; {arguments.out}/scores.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
