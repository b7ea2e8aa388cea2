"""uper.FrameReplay: pictures stored once, by any way of stacking."""

import pickle

import numpy as np
import pytest
from conftest import same_future

import uper

RNG = np.random.default_rng(0)


def pictures(n, shape=(4, 5)):
    return RNG.integers(1, 255, (n, *shape), dtype=np.uint8)


class Stacker:
    """Stacks of the newest 4 pictures, padded at the start as wrappers do."""

    def __init__(self, padding):
        self.padding, self.frames = padding, []

    def reset(self, frame):
        zeros = np.zeros_like(frame)
        self.frames = {"reset": [frame] * 4, "zero": [zeros] * 3 + [frame], "behind": [frame] + [zeros] * 3}[self.padding]
        self.seen = 1
        return np.stack(self.frames)

    def step(self, frame):
        if self.padding == "behind" and self.seen < 4:  # A000, AB00, ABC0
            self.frames = [*self.frames[:self.seen], frame, *self.frames[self.seen + 1:]]
        else:
            self.frames = [*self.frames[1:], frame]
        self.seen += 1
        return np.stack(self.frames)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("padding", ["reset", "zero", "behind"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_stacks_come_back_and_pictures_are_stored_once(padding, n_step, mode, axis):
    memory = uper.FrameReplay(500, (4, 5), 4, n_step=n_step, num_envs=2, stack_axis=axis)
    turned = (lambda x: np.moveaxis(x, 1, -1)) if axis == -1 else (lambda x: x)
    seen, episodes, stackers = [], 0, [Stacker(padding), Stacker(padding)]
    now = np.stack([s.reset(f) for s, f in zip(stackers, pictures(2))])
    memory.reset(turned(now))
    paths = [[now[0]], [now[1]]]
    waiting = [False, False]
    for t in range(80):
        over = np.array([t % 9 == 8, t % 13 == 12]) & ~np.array(waiting)
        obs, final = [], [None, None]
        for e in range(2):
            if waiting[e]:
                obs.append(stackers[e].reset(pictures(1)[0]))
                paths[e] = [obs[-1]]
                waiting[e] = False
                continue
            obs.append(stackers[e].step(pictures(1)[0]))
            paths[e].append(obs[-1])
            if over[e]:
                seen += [(paths[e][i], paths[e][min(i + n_step, len(paths[e]) - 1)]) for i in range(len(paths[e]) - 1)]
                episodes += 1
                if mode == "same_step":
                    final[e] = obs[e]
                    obs[e] = stackers[e].reset(pictures(1)[0])
                    paths[e] = [obs[e]]
                else:
                    waiting[e] = True
        final_obs = None
        if over.any() and mode == "same_step":
            final_obs = np.array([None if f is None else turned(f[None])[0] for f in final] + [None], object)[:-1]
        memory.step([t, -t], [1, 1], turned(np.stack(obs)), over, [False, False], final_obs=final_obs, autoreset=mode)
    rows = memory.gather(np.arange(memory.next_id))
    back = (lambda x: np.moveaxis(x, -1, 0)) if axis == -1 else (lambda x: x)
    stored = {(back(s).tobytes(), back(n).tobytes()) for s, n in zip(rows.obs, rows.next_obs)}
    assert episodes > 10 and {(s.tobytes(), n.tobytes()) for s, n in seen} <= stored
    assert memory.frames_stored <= 2 * 81 + episodes + 2  # one per step and one per reset
    memory.check()
    assert same_future(memory, pickle.loads(pickle.dumps(memory)))


def test_the_oldest_transitions_leave_when_frames_run_out():
    memory = uper.FrameReplay(100, (4, 5), 4, frame_capacity=30)
    stacker = Stacker("reset")
    memory.reset(stacker.reset(pictures(1)[0])[None])
    for t in range(200):
        memory.step(t, t, stacker.step(pictures(1)[0])[None], False, False)
        memory.check()
    assert 20 <= len(memory) < 30
    batch = memory.sample(64)
    assert np.array_equal(batch.obs[:, 1:], batch.next_obs[:, :-1])


def test_frames_by_hand():
    memory = uper.FrameReplay(10, (4, 5), 2)
    a, b, c = pictures(3)
    ids = [memory.add_frame(x) for x in (a, b, c)]
    memory.add(obs=[[-1, ids[0]], [ids[0], ids[1]]], next_obs=[ids[:2], ids[1:]], action=[1, 2], reward=[1, 2],
               discount=[1, 0])
    rows = memory.gather([0, 1])
    assert np.array_equal(rows.obs[0], [np.zeros((4, 5)), a]) and np.array_equal(rows.next_obs[1], [b, c])
    with pytest.raises(uper.UsageError, match="no frame with id 9"):
        memory.add(obs=[[0, 9]], next_obs=[[0, 1]], action=[1], reward=[1], discount=[1])
    with pytest.raises(uper.UsageError, match="frame ids"):
        memory.add(obs=[[0]], next_obs=[[0, 1]], action=[1], reward=[1], discount=[1])


def test_save_and_load(tmp_path):
    memory = uper.FrameReplay(50, (4, 5), 4, n_step=2, stack_axis=-1, members=3)
    stacker = Stacker("zero")
    memory.reset(np.moveaxis(stacker.reset(pictures(1)[0]), 0, -1))
    for t in range(120):
        memory.step(t, t, np.moveaxis(stacker.step(pictures(1)[0]), 0, -1), t % 20 == 19, False)
    memory.save(tmp_path / "frames")
    copy = uper.FrameReplay.load(tmp_path / "frames")
    assert same_future(memory, copy)
    with pytest.raises(uper.UsageError, match="FrameReplay"):
        uper.Replay.load(tmp_path / "frames")


def test_for_spaces_and_size():
    gymnasium = pytest.importorskip("gymnasium")
    spaces = gymnasium.spaces
    memory = uper.FrameReplay.for_spaces(1000, spaces.Box(0, 255, (4, 84, 84), np.uint8), spaces.Discrete(6))
    assert memory.sample_shape == (4, 84, 84)
    assert uper.FrameReplay(1_000_000).memory_bytes < 7.4e9
    with pytest.raises(uper.UsageError, match="pictures"):
        uper.FrameReplay.for_spaces(10, spaces.Box(-1, 1, (3,)), spaces.Discrete(2))
    with pytest.raises(uper.UsageError, match="stack"):
        uper.FrameReplay(10, (84, 84), 9)
