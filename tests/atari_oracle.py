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
    """One game. Every episode starts from the state after the first reset."""

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
        """Loads the game again, so that no state of the last episode remains."""
        self.load()
        self.ale.reset_game()


def zoo_picture(frames, size):
    """The picture of the last two of four frames. A frame may be None."""
    places = [np.zeros((210, 160, 3), np.uint8) if frame is None else frame for frame in frames]
    pooled = np.max(np.stack(places[-2:]), axis=0)
    luma = np.tensordot(pooled, LUMA, (-1, 0)).astype(np.uint8)
    return np.asarray(Image.fromarray(luma).resize((size, size), Image.BILINEAR))


class Episode:
    """An episode after `noops` idle frames. Subclasses make the pictures and play the steps."""

    def __init__(self, console, noops, size=84, episodic_life=False):
        self.console, self.ale, self.size, self.episodic_life = console, console.ale, size, episodic_life
        console.reset()
        for _ in range(noops):
            self.ale.act(0)
        self.lives = self.ale.lives()
        self.steps = 0
        self.pictures = [self.first_picture()]

    def observation(self):
        shown = self.pictures[-STACK:]
        blank = np.zeros((self.size, self.size), np.uint8)
        return np.stack(shown + [blank] * (STACK - len(shown)), axis=-1)

    def play_frame(self, action):
        """Returns (reward, whether a life was lost, whether the episode is over)."""
        reward = self.ale.act(self.console.actions[action])
        lost = self.ale.lives() < self.lives
        self.lives = self.ale.lives()
        over = self.ale.game_over(with_truncation=False) or (self.episodic_life and lost)
        return reward, lost, over

    def end_step(self, reward, discount, over, picture):
        self.steps += 1
        self.pictures.append(picture)
        return Step(reward, discount, over, not over and self.steps == TIME_LIMIT_STEPS)


class ZooEpisode(Episode):
    """dqn-zoo."""

    def first_picture(self):
        return zoo_picture([None, None, None, self.ale.getScreenRGB()], self.size)

    def step(self, action):
        frames, total, discount = [None] * ACTION_REPEAT, 0.0, 1.0
        for number in range(ACTION_REPEAT):
            reward, lost, over = self.play_frame(action)
            total += reward
            frames[number] = self.ale.getScreenRGB()
            if lost or over:
                discount = 0.0
            if over:
                break
        return self.end_step(total, discount, over, zoo_picture(frames, self.size))


class DopamineEpisode(Episode):
    """dopamine without sticky actions."""

    def first_picture(self):
        gray = self.ale.getScreenGrayscale()
        self.buffer = [gray, np.zeros_like(gray)]
        return self.picture()

    def picture(self):
        return cv2.resize(np.maximum(*self.buffer), (self.size, self.size), interpolation=cv2.INTER_AREA)

    def step(self, action):
        total = 0.0
        for number in range(ACTION_REPEAT):
            reward, _, over = self.play_frame(action)
            total += reward
            if over:
                break
            if number >= ACTION_REPEAT - 2:
                self.buffer[number - (ACTION_REPEAT - 2)] = self.ale.getScreenGrayscale()
        return self.end_step(total, 0.0 if over else 1.0, over, self.picture())


EPISODES = {"dqn-zoo": ZooEpisode, "dopamine": DopamineEpisode}
