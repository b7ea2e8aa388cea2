"""The package MinAtar, played with its random draws recorded by purpose, and our games replaying them."""

import logging
import os
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

logging.disable(logging.WARNING)  # the package complains where seaborn is missing; nothing is drawn here
from minatar import Environment  # noqa: E402

logging.disable(logging.NOTSET)

ROOT = Path(__file__).resolve().parent.parent
TOOL = Path(os.environ.get("UPER_MINATAR_REPLAY", ROOT / "build" / "release" / "minatar_replay"))
GAMES = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]
STICKY = 0.1
RESET = 255

# The enumerators of uper::DrawPurpose (src/uper/envs/minatar/game_random.h), in order.
PURPOSES = ["repeat_action", "ball_side", "car_speed", "car_goes_left", "visitor_right", "visitor_is_gold",
            "visitor_lane", "enemy_right", "enemy_is_sub", "enemy_row", "diver_right", "diver_row"]

# Method of the package's game that draws -> what its calls of the generator decide, in order.
DRAWS = {
    "asterix": {"_spawn_entity": ["visitor_right", "visitor_is_gold", "visitor_lane"]},
    "breakout": {"reset": ["ball_side"]},
    "freeway": {"_randomize_cars": ["car_speed", "car_goes_left"]},
    "seaquest": {"_spawn_enemy": ["enemy_right", "enemy_is_sub", "enemy_row"],
                 "_spawn_diver": ["diver_right", "diver_row"]},
    "space_invaders": {},
}


@dataclass
class Play:
    """The events of a game (actions and resets) and, for each, the package's answer."""
    game: str
    ramping: bool
    events: list = field(default_factory=list)
    draws: list = field(default_factory=list)  # (purpose, range or 0 for a chance, value)
    rewards: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    frames: list = field(default_factory=list)

    @property
    def steps(self):
        return sum(event != RESET for event in self.events)


class RecordingRandom:
    """Stands in for the package's RandomState; `purposes` says what the next calls decide."""

    def __init__(self, seed, draws, purposes=()):
        self.generator = np.random.RandomState(seed)
        self.draws = draws
        self.purposes = iter(purposes)

    def _record(self, bound, values):
        purpose = PURPOSES.index(next(self.purposes))
        self.draws += [(purpose, bound, float(value)) for value in np.ravel(values)]

    def rand(self, *shape):
        values = self.generator.rand(*shape)
        self._record(0, values)
        return values

    def randint(self, low, high=None, size=None):
        if high is None:
            low, high = 0, low
        values = self.generator.randint(low, high, size)
        self._record(high - low, np.asarray(values) - low)
        return values


def _forever(purpose):
    while True:
        yield purpose


def recorded_environment(game, ramping, seed, draws):
    environment = Environment(game, sticky_action_prob=STICKY, difficulty_ramping=ramping)
    environment.random = RecordingRandom(seed, draws, _forever("repeat_action"))
    random = environment.env.random = RecordingRandom(seed + 1, draws)

    def announce(method, purposes):
        def call(*arguments, **options):
            random.purposes = iter(purposes)
            return method(*arguments, **options)
        return call

    for name, purposes in DRAWS[game].items():
        setattr(environment.env, name, announce(getattr(environment.env, name), purposes))
    return environment


def record(game, policy, steps, ramping=True, seed=0, watch=None):
    """Plays `steps` steps; policy(game object, generator) gives actions, watch(game object) looks on."""
    play = Play(game, ramping)
    environment = recorded_environment(game, ramping, seed, play.draws)
    generator = np.random.default_rng(seed)
    over = True
    for _ in range(steps):
        if over:
            environment.reset()
            _note(play, environment, RESET, 0, False)
        action = int(policy(environment.env, generator))
        reward, over = environment.act(action)
        _note(play, environment, action, reward, over)
        if watch:
            watch(environment.env)
    return play


def _note(play, environment, event, reward, over):
    play.events.append(event)
    play.rewards.append(float(reward))
    play.ends.append(bool(over))
    play.frames.append(environment.state().astype(np.uint8))


def replay(play, folder):
    """Our game on the same events and draws: (rewards, terminated, truncated, frames)."""
    source, target = Path(folder) / "input", Path(folder) / "output"
    events = bytes(play.events)
    draws = b"".join(struct.pack("<Bid", *draw) for draw in play.draws)
    source.write_bytes(struct.pack("<Q", len(events)) + events + struct.pack("<Q", len(play.draws)) + draws)
    run_tool("replay", play.game, int(play.ramping), STICKY, source, target)
    shape = play.frames[0].shape
    result = np.fromfile(target, dtype=[("reward", "<f8"), ("terminated", "u1"), ("truncated", "u1"),
                                        ("frame", "u1", shape)])
    return result["reward"], result["terminated"], result["truncated"], result["frame"]


def run_tool(*arguments):
    assert TOOL.exists(), f"{TOOL} is missing: build the target minatar_replay"
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
