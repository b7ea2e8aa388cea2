#!/usr/bin/env python3
"""Random play on ale-py alone, with an action repeat and a time limit of your choice, beside the published scores.

    tools/random_play.py --repeat 6 --limit 18000 --episodes 40 --jobs 2 --games solaris crazy_climber

Shares no code with our games. For tools/random_scores.py's exceptions: does another protocol explain them?
An episode starts with 1 to 30 idle frames; the minimal actions; no sticky actions. Prints a row per game.
"""

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from ale_py import ALEInterface, LoggerMode, roms

PUBLISHED = Path(__file__).resolve().parent.parent / "data" / "atari57-human-random.csv"


def play_episode(ale, actions, stream, repeat, limit):
    """The return of one episode, and its frames."""
    ale.reset_game()
    for _ in range(stream.integers(1, 31)):
        ale.act(0)
    score, frames = 0.0, 0
    while not ale.game_over() and frames < limit:
        action = actions[stream.integers(len(actions))]
        for _ in range(min(repeat, limit - frames)):
            score += ale.act(action)
            frames += 1
            if ale.game_over():
                break
    return score, frames


def play(game, episodes, repeat, limit, seed):
    """Returns of all episodes, and the frames of all together."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", seed)
    ale.loadROM(roms.get_rom_path(game))
    stream = np.random.default_rng(seed)
    played = [play_episode(ale, ale.getMinimalActionSet(), stream, repeat, limit) for _ in range(episodes)]
    scores, frames = zip(*played)
    return np.array(scores), sum(frames)


def main():
    with open(PUBLISHED) as file:
        published = {row["game"]: float(row["random"]) for row in csv.DictReader(file)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=4, help="frames an action is held")
    parser.add_argument("--limit", type=int, default=108_000, help="frames of an episode")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", nargs="*", default=sorted(published), choices=sorted(published), metavar="GAME")
    arguments = parser.parse_args()
    print("game,repeat,limit,episodes,frames,published,measured,standard_error,errors_apart", flush=True)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        waiting = {game: pool.submit(play, game, arguments.episodes, arguments.repeat, arguments.limit, arguments.seed)
                   for game in arguments.games}
        for game, future in waiting.items():
            scores, frames = future.result()
            error = scores.std(ddof=1) / len(scores) ** 0.5
            apart = abs(scores.mean() - published[game]) / error if error > 0 else float("nan")
            print(f"{game},{arguments.repeat},{arguments.limit},{len(scores)},{frames},{published[game]:g},"
                  f"{scores.mean():.2f},{error:.2f},{apart:.1f}", flush=True)


if __name__ == "__main__":
    main()
