"""DQN on CartPole with Tianshou, its replay prioritized by uper: `python tianshou_dqn_cartpole.py [--steps N]`.

Only the buffer differs from a DQN of Tianshou alone: it fills the place of Tianshou's class of the same name.
"""

import argparse

import gymnasium
import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from uper.tianshou import PrioritizedVectorReplayBuffer

ENVIRONMENTS = 4
EPOCH_STEPS = 1_000


def make_environments(count, seed):
    environments = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(count)])
    environments.seed(seed)
    return environments


def make_algorithm(environment):
    net = Net(state_shape=environment.observation_space.shape, action_shape=environment.action_space.n,
              hidden_sizes=[128, 128])
    policy = DiscreteQLearningPolicy(model=net, action_space=environment.action_space, eps_training=1.0)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.99, target_update_freq=200)


def train(steps, seed):
    np.random.seed(seed)
    torch.manual_seed(seed)
    algorithm = make_algorithm(gymnasium.make("CartPole-v1"))
    buffer = PrioritizedVectorReplayBuffer(20_000, ENVIRONMENTS, alpha=0.6, beta=0.4, random_seed=seed)
    training = Collector(algorithm, make_environments(ENVIRONMENTS, seed), buffer, exploration_noise=True)
    training.reset()
    training.collect(n_step=min(1_000, steps), random=True)

    def on_training_step(_, step):
        algorithm.policy.set_eps_training(max(0.05, 1 - 4 * step / steps))
        buffer.set_beta(min(1.0, 0.4 + 0.6 * step / steps))

    epochs = -(-steps // EPOCH_STEPS)
    algorithm.run_training(OffPolicyTrainerParams(
        training_collector=training, max_epochs=epochs, epoch_num_steps=min(steps, EPOCH_STEPS),
        collection_step_num_env_steps=16, batch_size=64, update_step_num_gradient_steps_per_sample=0.25,
        training_fn=on_training_step, verbose=False, show_progress=False))
    return algorithm, buffer


def mean_return(algorithm, seed, episodes=20):
    """Of greedy episodes."""
    collector = Collector(algorithm, make_environments(1, seed))
    collector.reset()
    return float(collector.collect(n_episode=episodes).returns.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    algorithm, buffer = train(arguments.steps, arguments.seed)
    print(f"{buffer.counters.updated:,} priorities set, {buffer.counters.updates_of_evicted:,} refused as too late")
    print(f"mean return of 20 greedy episodes: {mean_return(algorithm, arguments.seed + 1000):.1f}")


if __name__ == "__main__":
    main()
