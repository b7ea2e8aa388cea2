"""UPER in a Stable-Baselines3 script: two lines differ from one with QRDQN. Kill it at any time and start it again.

    pip install 'uper[sb3]'
    python sb3_uper_cartpole.py --steps 30000 --folder runs/cartpole
"""

import argparse
import os
import shutil
from pathlib import Path

import gymnasium as gym
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from uper.sb3 import UPER  # was: from sb3_contrib import QRDQN


def make_model(seed: int) -> UPER:
    return UPER(  # was: return QRDQN(
        "MlpPolicy", "CartPole-v1", learning_rate=1e-3, buffer_size=50_000, learning_starts=1_000, batch_size=64,
        train_freq=4, target_update_interval=500, exploration_fraction=0.2, exploration_final_eps=0.04, seed=seed)


# The rest works with every off-policy algorithm. A run is resumed from the model and the replay buffer together: the
# model has the networks, the optimizer and the schedules, but not the transitions and their priorities.


class SaveEvery(BaseCallback):
    """Saves model and buffer between two rollouts, each time into a new folder.

    The newest folder gets its name when it is complete, so a kill while saving leaves the one before in place.
    """

    def __init__(self, folder: Path, steps: int) -> None:
        super().__init__()
        self.folder = folder
        self.steps = steps
        self.saved_at = 0

    def _on_training_start(self) -> None:
        self.saved_at = self.model.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        assert isinstance(self.model, UPER)
        if self.model.num_timesteps >= self.saved_at + self.steps:
            save(self.model, self.folder)
            self.saved_at = self.model.num_timesteps


def save(model: UPER, folder: Path) -> None:
    complete, part = folder / f"{model.num_timesteps:012d}", folder / "part"
    if complete.exists():
        return
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    model.save(part / "model.zip")
    model.save_replay_buffer(part / "buffer.pkl")
    older = saved_folders(folder)
    os.replace(part, complete)
    for old in older:
        shutil.rmtree(old)


def saved_folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())


def load_or_make(folder: Path, seed: int) -> UPER:
    saved = saved_folders(folder)
    if not saved:
        return make_model(seed)
    # Loading begins a new episode: Stable-Baselines3 does not save the state of environments. So a resumed run is not
    # step for step the one that was never stopped.
    model = UPER.load(saved[-1] / "model.zip", env=gym.make("CartPole-v1"))
    model.load_replay_buffer(saved[-1] / "buffer.pkl")
    assert model.replay_buffer is not None
    print(f"resumed at step {model.num_timesteps:,} with {model.replay_buffer.size():,} transitions")
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--save-every", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, default=Path("runs/sb3-cartpole"))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    model = load_or_make(arguments.folder, arguments.seed)
    # The steps that are left, so that the schedules end where they would have ended.
    model.learn(max(arguments.steps - model.num_timesteps, 0), reset_num_timesteps=False,
                callback=SaveEvery(arguments.folder, arguments.save_every))
    save(model, arguments.folder)
    mean, deviation = evaluate_policy(model, Monitor(gym.make("CartPole-v1")), n_eval_episodes=20)
    print(f"return after {model.num_timesteps:,} steps: {mean:.1f} +- {deviation:.1f}")


if __name__ == "__main__":
    main()
