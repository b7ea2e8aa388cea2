"""DQN on CartPole with TorchRL, its replay prioritized by uper: `python torchrl_dqn_cartpole.py [--frames N]`.

Only the replay buffer differs from a DQN of TorchRL alone. Each sample carries the ids of its items, and
update_tensordict_priority() gives the temporal-difference errors back to exactly these.
"""

import argparse

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage
from torchrl.envs import GymEnv, InitTracker, RewardSum, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, HardUpdate

from uper.torchrl import TensorDictPrioritizedReplayBuffer

BATCH = 64
FRAMES_PER_ROUND = 64
UPDATES_PER_ROUND = 16
WARM_UP = 1_000


def make_environment(seed):
    environment = TransformedEnv(GymEnv("CartPole-v1"))
    environment.append_transform(InitTracker())
    environment.append_transform(RewardSum())
    environment.set_seed(seed)
    return environment


def make_policy(environment):
    layers = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    values = TensorDictModule(layers, in_keys=["observation"], out_keys=["action_value"])
    return TensorDictSequential(values, QValueModule(spec=environment.action_spec))


def mean_return(policy, environment, episodes=20):
    """Of greedy episodes."""
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        returns = [environment.rollout(500, policy)["next", "episode_reward"][-1].item() for _ in range(episodes)]
    return sum(returns) / episodes


def train(frames, seed):
    torch.manual_seed(seed)
    policy = make_policy(make_environment(seed))
    exploration = EGreedyModule(make_environment(seed).action_spec, eps_init=1.0, eps_end=0.05,
                                annealing_num_steps=frames // 4)
    collector = Collector(make_environment(seed), TensorDictSequential(policy, exploration),
                          frames_per_batch=FRAMES_PER_ROUND,
                          total_frames=-(-frames // FRAMES_PER_ROUND) * FRAMES_PER_ROUND)
    buffer = TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=LazyTensorStorage(50_000),
                                               batch_size=BATCH, priority_key="td_error", options={"seed": seed})
    loss_of = DQNLoss(policy, action_space="one-hot", delay_value=True)
    loss_of.make_value_estimator(gamma=0.99)
    target = HardUpdate(loss_of, value_network_update_interval=200)
    optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-3)

    done = 0  # frames
    for data in collector:
        done += data.numel()
        exploration.step(data.numel())
        buffer.sampler.importance_exponent = min(1.0, 0.4 + 0.6 * done / frames)
        buffer.extend(data.reshape(-1))
        if done < WARM_UP:
            continue
        for _ in range(UPDATES_PER_ROUND):
            sample = buffer.sample()
            loss = loss_of(sample)["loss"]  # with the importance weights of the sample; it sets sample["td_error"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            target.step()
            buffer.update_tensordict_priority(sample)
    collector.shutdown()
    return policy, buffer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    policy, buffer = train(arguments.frames, arguments.seed)
    counters = buffer.sampler.counters
    print(f"{counters.updated:,} priorities set, {counters.updates_of_evicted:,} refused as too late")
    print(f"mean return of 20 greedy episodes: {mean_return(policy, make_environment(arguments.seed + 1000)):.1f}")


if __name__ == "__main__":
    main()
