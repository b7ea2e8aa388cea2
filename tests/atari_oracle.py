"""The two Atari protocols written down in Python with the libraries that published results used.

An independent reading of the rules: ale-py plays, numpy, Pillow and OpenCV make the observations. Nothing is
random here: idle frames are given, actions come from the caller, sticky actions are off.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from ale_py import ALEInterface, LoggerMode
from PIL import Image

ACTION_REPEAT, STACK = 4, 4
TIME_LIMIT_STEPS = 27_000
LUMA = [0.299, 0.587, 1 - (0.299 + 0.587)]

ALEInterface.setLoggerMode(LoggerMode.Error)


@dataclass
class Step:
    reward: float
    discount: float
    terminated: bool
    truncated: bool


class Console:
    """One game; every episode starts from the state after the first reset."""

    def __init__(self, rom, full_action_set=False, mode=None, difficulty=None):
        self.ale = ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("random_seed", 1)
        self.rom, self.mode, self.difficulty = rom, mode, difficulty
        self.load()
        self.actions = self.ale.getLegalActionSet() if full_action_set else self.ale.getMinimalActionSet()

    def load(self):
        self.ale.loadROM(self.rom)
        if self.mode is not None:
            self.ale.setMode(self.mode)
        if self.difficulty is not None:
            self.ale.setDifficulty(self.difficulty)

    def reset(self):
        """A console that was switched off and on: nothing is left of the game before."""
        self.load()
        self.ale.reset_game()


def zoo_picture(frames, size):
    """Of the last two of four places, of which some may be None."""
    places = [np.zeros((210, 160, 3), np.uint8) if frame is None else frame for frame in frames]
    pooled = np.max(np.stack(places[-2:]), axis=0)
    luma = np.tensordot(pooled, LUMA, (-1, 0)).astype(np.uint8)
    return np.asarray(Image.fromarray(luma).resize((size, size), Image.BILINEAR))


class ZooEpisode:
    """dqn-zoo, after `noops` idle frames."""

    def __init__(self, console, noops, size=84, episodic_life=False):
        self.console, self.ale, self.size, self.episodic_life = console, console.ale, size, episodic_life
        console.reset()
        for _ in range(noops):
            self.ale.act(0)
        self.lives = self.ale.lives()
        self.steps = 0
        self.pictures = [zoo_picture([None, None, None, self.ale.getScreenRGB()], size)]

    def observation(self):
        shown = self.pictures[-STACK:]
        blank = np.zeros((self.size, self.size), np.uint8)
        return np.stack(shown + [blank] * (STACK - len(shown)), axis=-1)

    def step(self, action):
        frames, reward, discount, over = [None] * ACTION_REPEAT, 0.0, 1.0, False
        for number in range(ACTION_REPEAT):
            reward += self.ale.act(self.console.actions[action])
            frames[number] = self.ale.getScreenRGB()
            lost = self.ale.lives() < self.lives
            self.lives = self.ale.lives()
            over = self.ale.game_over(with_truncation=False) or (self.episodic_life and lost)
            if lost or over:
                discount = 0.0
            if over:
                break
        self.steps += 1
        self.pictures.append(zoo_picture(frames, self.size))
        return Step(reward, discount, over, not over and self.steps == TIME_LIMIT_STEPS)


class DopamineEpisode:
    """dopamine without sticky actions."""

    def __init__(self, console, noops, size=84, episodic_life=False):
        self.console, self.ale, self.size, self.episodic_life = console, console.ale, size, episodic_life
        console.reset()
        for _ in range(noops):
            self.ale.act(0)
        self.lives = self.ale.lives()
        self.steps = 0
        grey = self.ale.getScreenGrayscale()
        self.buffer = [grey, np.zeros_like(grey)]
        self.pictures = [self.picture()]

    def picture(self):
        return cv2.resize(np.maximum(*self.buffer), (self.size, self.size), interpolation=cv2.INTER_AREA)

    observation = ZooEpisode.observation

    def step(self, action):
        reward, over = 0.0, False
        for number in range(ACTION_REPEAT):
            reward += self.ale.act(self.console.actions[action])
            lost = self.ale.lives() < self.lives
            self.lives = self.ale.lives()
            over = self.ale.game_over(with_truncation=False) or (self.episodic_life and lost)
            if over:
                break
            if number >= ACTION_REPEAT - 2:
                self.buffer[number - (ACTION_REPEAT - 2)] = self.ale.getScreenGrayscale()
        self.steps += 1
        self.pictures.append(self.picture())
        return Step(reward, 0.0 if over else 1.0, over, not over and self.steps == TIME_LIMIT_STEPS)


EPISODES = {"dqn-zoo": ZooEpisode, "dopamine": DopamineEpisode}
