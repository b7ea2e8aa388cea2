"""train_peers.py SETTINGS: times the training loop of Stable-Baselines3's DQN on a MinAtar game.

Called by `uper bench train` with the settings of the run as JSON; prints a JSON list of
{name, frames_per_second}. The same game (the MinAtar package), network (16 filters 3x3, 128 units),
batch, memory, periods, discount, exploration and number of threads; its own losses and loop.
"""

import importlib.util
import json
import sys
import time
from types import SimpleNamespace

import wait_policy

MOST_FRAMES = 3000  # its speed is steady, and it would take minutes
NEEDED = ("stable_baselines3", "gymnasium", "minatar")


def make_environment(game):
    import gymnasium
    import minatar
    import numpy as np

    class MinAtarGame(gymnasium.Env):
        def __init__(self):
            self.game = minatar.Environment(game)
            height, width, channels = self.game.state_shape()
            self.observation_space = gymnasium.spaces.Box(0, 1, (channels, height, width), np.uint8)
            self.action_space = gymnasium.spaces.Discrete(self.game.num_actions())

        def observe(self):
            return self.game.state().transpose(2, 0, 1).astype(np.uint8)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            if seed is not None:
                self.game.seed(seed)
            self.game.reset()
            return self.observe(), {}

        def step(self, action):
            reward, terminated = self.game.act(int(action))
            return self.observe(), float(reward), bool(terminated), False, {}

    return MinAtarGame()


def make_torso():
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class MinAtarTorso(BaseFeaturesExtractor):
        def __init__(self, observation_space, hidden_units):
            super().__init__(observation_space, hidden_units)
            nn = torch.nn
            self.layers = nn.Sequential(
                nn.Conv2d(observation_space.shape[0], 16, 3), nn.ReLU(), nn.Flatten(),
                nn.Linear(8 * 8 * 16, hidden_units), nn.ReLU())

        def forward(self, observations):
            return self.layers(observations)

    return MinAtarTorso


def make_agent(settings, frames):
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(settings.threads)
    policy = {
        "features_extractor_class": make_torso(),
        "features_extractor_kwargs": {"hidden_units": settings.hidden_units},
        "net_arch": [],
        "normalize_images": False,
    }
    if settings.optimizer == "rmsprop":
        policy["optimizer_class"] = torch.optim.RMSprop
        policy["optimizer_kwargs"] = {"alpha": 0.95, "eps": 0.01, "centered": True}
    return DQN(
        "CnnPolicy", make_environment(settings.game), policy_kwargs=policy, device="cpu", seed=1,
        learning_rate=settings.learning_rate, buffer_size=settings.capacity,
        learning_starts=settings.learning_starts, batch_size=settings.batch,
        gamma=settings.discount, train_freq=settings.learn_period, gradient_steps=1,
        target_update_interval=settings.target_period,
        exploration_initial_eps=settings.epsilon_from, exploration_final_eps=settings.epsilon_to,
        exploration_fraction=settings.epsilon_end_frames / frames)


def main():
    settings = SimpleNamespace(**json.loads(sys.argv[1]))
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} not installed: Stable-Baselines3 is left out", file=sys.stderr)
        print("[]")
        return
    if not wait_policy.is_child():
        print(json.dumps([wait_policy.faster_of_both(lambda peer: peer["frames_per_second"])]))
        return
    import stable_baselines3

    frames = min(settings.frames, MOST_FRAMES)
    agent = make_agent(settings, frames)
    start = time.perf_counter()
    agent.learn(total_timesteps=frames)
    seconds = time.perf_counter() - start
    print(json.dumps([{"name": f"Stable-Baselines3 {stable_baselines3.__version__} DQN",
                       "frames_per_second": frames / seconds}]))


if __name__ == "__main__":
    main()
