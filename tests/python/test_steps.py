"""Replay.step(): n-step returns and episode ends in Gymnasium's three autoreset modes."""

import numpy as np
import pytest
from conftest import FIELDS

import uper

gymnasium = pytest.importorskip("gymnasium")


class Counter(gymnasium.Env):
    """Its observation is (episode, step, seed); episodes end after 1 to 4 steps, every second one is cut."""

    observation_space = gymnasium.spaces.Box(-1e9, 1e9, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(1000)

    def __init__(self, number):
        self.number, self.episode, self.step_count = number, -1, 0

    def _obs(self):
        return np.array([self.episode, self.step_count, self.number], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.step_count = 0
        return self._obs(), {}

    def step(self, action):
        self.step_count += 1
        over = self.step_count == 1 + (self.episode + self.number) % 4
        cut = self.episode % 2 == 1
        return self._obs(), float(10 * self.episode + self.step_count), over and not cut, over and cut, {}


def play(mode, kind, n_step, steps=40, envs=3):
    """Plays Counter through a memory; action: 100 * environment + step of the loop."""
    mode = gymnasium.vector.AutoresetMode(mode)
    vector = kind([lambda i=i: Counter(i) for i in range(envs)], autoreset_mode=mode)
    memory = uper.Replay.for_spaces(10_000, vector.single_observation_space, vector.single_action_space, n_step=n_step,
                                    num_envs=envs, discount=0.5)
    name = {"NextStep": "next_step", "SameStep": "same_step", "Disabled": "disabled"}[mode.value]
    obs, _ = vector.reset(seed=1)
    memory.reset(obs)
    for _ in range(steps):
        obs, reward, terminated, truncated, info = vector.step(np.full(envs, 7))
        memory.step(np.full(envs, 7), reward, obs, terminated, truncated, final_obs=info.get("final_obs"),
                    autoreset=name)
        over = terminated | truncated
        if name == "disabled" and over.any():
            obs, _ = vector.reset(options={"reset_mask": over})
            memory.reset(obs[over], env_ids=np.flatnonzero(over))
    vector.close()
    return memory.gather(np.arange(memory.first_id, memory.next_id))


def expected(number, n_step, episodes):
    """The transitions of the first episodes of an environment: (s, s', reward, discount)."""
    for episode in range(episodes):
        length = 1 + (episode + number) % 4
        for t in range(length):
            end = min(t + n_step, length)
            reward = sum(0.5**k * (10 * episode + t + k + 1) for k in range(end - t))
            terminal = end == length and episode % 2 == 0
            yield (episode, t, number), (episode, end, number), reward, 0.0 if terminal else 0.5**(end - t)


@pytest.mark.parametrize("n_step", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_no_transition_crosses_a_reset(mode, kind, n_step):
    rows = play(mode, kind, n_step)
    assert np.array_equal(rows.obs[:, 0], rows.next_obs[:, 0]) and np.array_equal(rows.obs[:, 2], rows.next_obs[:, 2])
    for number in range(3):
        of_this = rows.obs[:, 2] == number
        found = {(tuple(s), tuple(t), r, d) for s, t, r, d in zip(rows.obs[of_this].tolist(),
                 rows.next_obs[of_this].tolist(), rows.reward[of_this].tolist(), rows.discount[of_this].tolist())}
        whole_episodes = int(rows.obs[of_this, 0].max())
        wanted = set(expected(number, n_step, whole_episodes))
        assert whole_episodes >= 8 and wanted <= found
        assert all(row[0][0] == whole_episodes for row in found - wanted)  # of the episode under way


def test_modes_store_the_same():
    stored = [play(mode, gymnasium.vector.SyncVectorEnv, 3, steps=steps) for mode, steps in
              [("NextStep", 60), ("SameStep", 40), ("Disabled", 40)]]
    sets = [{tuple(row) for row in np.column_stack([s.obs, s.next_obs, s.reward, s.discount])} for s in stored]
    episodes = min(max(row[0] for row in rows) for rows in sets)
    complete = [{row for row in rows if row[0] < episodes} for rows in sets]
    assert complete[0] == complete[1] == complete[2] and len(complete[0]) > 30


@pytest.mark.parametrize("call, message", [
    (lambda m: m.step([1], [1], np.zeros((2, 3)), [0, 0], [0, 0]), "action has 1 rows"),
    (lambda m: m.step([1, 2], [1], np.zeros((2, 3)), [0, 0], [0, 0]), "reward has shape"),
    (lambda m: m.step([1, 2], [1, 2], np.zeros((2, 4)), [0, 0], [0, 0]), "obs has shape"),
    (lambda m: m.step([1, 2], [1, 2], np.zeros((2, 3)), [0], [0, 0]), "terminated has shape"),
    (lambda m: m.step([1, 2], [1, 2], np.zeros((2, 3)), [0, 1], [0, 0], autoreset="same_step"), "final_obs"),
    (lambda m: m.step([1, 2], [1, 2], np.zeros((2, 3)), [0, 0], [0, 0], autoreset="no"), "autoreset must be one of"),
    (lambda m: m.step([1], [1], np.zeros((1, 3)), [0], [0], env_ids=[5]), "env_ids"),
    (lambda m: m.step([1, 1], [1, 1], np.zeros((2, 3)), [0, 0], [0, 0], env_ids=[1, 1]), "named twice"),
    (lambda m: m.step([1, 2], [1, 2], np.zeros((2, 3)), [0, 0], [0, 0], more=[1, 2]), "this memory stores action"),
    (lambda m: m.reset(np.zeros((3, 3))), "obs has 3 rows"),
])
def test_bad_steps_change_nothing(call, message):
    memory = uper.Replay(10, FIELDS, num_envs=2)
    memory.reset(np.zeros((2, 3)))
    memory.step([1, 2], [1, 2], np.ones((2, 3)), [0, 0], [0, 0])
    with pytest.raises(uper.UsageError, match=message):
        call(memory)
    assert memory.step([3, 4], [1, 2], np.ones((2, 3)), [0, 0], [0, 0]).tolist() == [2, 3]
    assert memory.gather([2, 3]).obs.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_steps_need_a_reset_when_it_is_the_callers():
    memory = uper.Replay(10, FIELDS, num_envs=1)
    step = lambda over=False: memory.step([1], [1], np.ones((1, 3)), [over], [False], autoreset="disabled")  # noqa: E731
    with pytest.raises(uper.UsageError, match=r"call reset\(\)"):
        step()
    memory.reset(np.zeros(3))
    assert len(step(True)) == 1
    with pytest.raises(uper.UsageError, match=r"call reset\(\)"):
        step()


def test_other_fields_cannot_be_stepped():
    with pytest.raises(uper.UsageError, match="for_spaces"):
        uper.Replay(10, {"a": ((), "f4")}).reset([1])


def test_dict_observations_and_further_fields():
    spaces = gymnasium.spaces
    space = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "inner": spaces.Dict({"x": spaces.Discrete(9)})})
    memory = uper.Replay.for_spaces(20, space, spaces.Box(-1, 1, (2,), np.float32), num_envs=2)
    obs = lambda t: {"image": np.full((2, 2, 2), t), "inner": {"x": np.array([t, t + 1])}}  # noqa: E731
    memory.reset(obs(0))
    for t in range(1, 4):
        memory.step(np.full((2, 2), t / 8), [t, t], obs(t), [False, False], [False, False])
    rows = memory.gather([0, 5])
    assert rows.obs["image"].tolist() == [[[0, 0], [0, 0]], [[2, 2], [2, 2]]]
    assert rows.next_obs["inner"]["x"].tolist() == [1, 4] and rows.action.tolist() == [[1 / 8] * 2, [3 / 8] * 2]
    with pytest.raises(uper.UsageError, match="obs.image"):
        memory.reset({"image": np.zeros((2, 2, 2))})
    with_more = uper.Replay(9, {**FIELDS, "goal": ((), "i4")})
    with_more.reset(np.zeros(3))
    with_more.step(1, 1.0, np.ones(3), False, False, goal=7)
    assert with_more.gather([0]).goal.tolist() == [7]


def test_spaces_that_cannot_be_stored():
    spaces = gymnasium.spaces
    with pytest.raises(uper.UsageError, match="Tuple"):
        uper.Replay.for_spaces(10, spaces.Tuple([spaces.Discrete(2)]), spaces.Discrete(2))
    assert uper.Replay.for_spaces(10, spaces.MultiBinary(4), spaces.MultiDiscrete([2, 3])).fields["action"][0] == (2,)
