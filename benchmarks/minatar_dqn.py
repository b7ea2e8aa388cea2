"""minatar_dqn.py GAME SEED FRAMES: DQN with MinAtar's published settings in PyTorch, on the MinAtar package.

Shares nothing with our code: a second opinion on what these settings reach. Prints frames and the mean return
of the last 100 episodes every 20,000 frames. Needs torch and MinAtar; about 300 frames per second on one core.
"""

import random
import sys
from collections import deque

import numpy as np
import torch
from minatar import Environment

ACTIONS = 6
BATCH = 32
CAPACITY = 100_000
START = 5_000  # random actions, no learning
EXPLORATION = 100_000  # frames over which epsilon falls from 1 to 0.1
TARGET_PERIOD = 1_000  # updates
DISCOUNT = 0.99


def make_network(channels):
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(),
                         nn.Linear(128, ACTIONS))


class Memory:
    def __init__(self, channels):
        self.before = np.zeros((CAPACITY, channels, 10, 10), bool)
        self.after = np.zeros_like(self.before)
        self.action = np.zeros(CAPACITY, np.int64)
        self.reward = np.zeros(CAPACITY, np.float32)
        self.discount = np.zeros(CAPACITY, np.float32)
        self.added = 0

    def add(self, before, action, reward, discount, after):
        slot = self.added % CAPACITY
        self.before[slot], self.after[slot] = before, after
        self.action[slot], self.reward[slot], self.discount[slot] = action, reward, discount
        self.added += 1

    def sample(self):
        rows = np.random.choice(min(self.added, CAPACITY), BATCH)
        return [torch.from_numpy(column[rows]) for column in
                (self.before.view(np.uint8), self.action, self.reward, self.discount, self.after.view(np.uint8))]


def update(online, target, optimizer, memory):
    before, action, reward, discount, after = memory.sample()
    with torch.no_grad():
        goal = reward + discount * target(after.float()).max(1).values
    value = online(before.float()).gather(1, action[:, None])[:, 0]
    loss = torch.nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def choose(online, state, frame):
    epsilon = max(0.1, 1 - 0.9 * (frame - START) / EXPLORATION) if frame >= START else 1
    if random.random() < epsilon:
        return random.randrange(ACTIONS)
    with torch.no_grad():
        return int(online(torch.from_numpy(state[None]).float()).argmax())


def main(game, seed, frames):
    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    environment = Environment(game, sticky_action_prob=0.1, difficulty_ramping=True)
    environment.seed(seed)
    environment.reset()
    look = lambda: np.ascontiguousarray(environment.state().transpose(2, 0, 1))
    channels = environment.state_shape()[2]
    online, target = make_network(channels), make_network(channels)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.RMSprop(online.parameters(), lr=2.5e-4, alpha=0.95, centered=True, eps=0.01)
    memory, returns, total, updates = Memory(channels), deque(maxlen=100), 0.0, 0
    state = look()
    for frame in range(frames):
        action = choose(online, state, frame)
        reward, ended = environment.act(action)
        after = look()
        memory.add(state, action, reward, 0 if ended else DISCOUNT, after)
        total += reward
        state = after
        if ended:
            returns.append(total)
            total = 0.0
            environment.reset()
            state = look()
        if memory.added > START:
            update(online, target, optimizer, memory)
            updates += 1
            if updates % TARGET_PERIOD == 0:
                target.load_state_dict(online.state_dict())
        if (frame + 1) % 20_000 == 0:
            print(frame + 1, f"{np.mean(returns):.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
