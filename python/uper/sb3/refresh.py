"""Priorities for algorithms that do not set them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from uper._options import whole
from uper.errors import UsageError
from uper.sb3.algorithms import Prioritized
from uper.sb3.buffers import ReplayBuffer, ReplayBufferSamples


class RefreshPriorities(BaseCallback):
    """Sets priorities for algorithms that do not: the absolute TD errors of the transitions that were drawn.

    It runs after the updates of every `every`-th rollout, and at the end of training. That takes two further forward
    passes per drawn transition. SAC, TD3, DDPG, TQC, CrossQ, DQN and QRDQN are known; give `priority` for others.

    The algorithm's loss stays unweighted, as no callback can change it. So transitions with large errors count more in
    the mean that the algorithm minimizes. Priorities are those of the networks after the update. `DQN`, `QRDQN` and
    `UPER` of `uper.sb3` weight their loss and do not need this class.

    Args:
        every: Rollouts between two refreshes. In between, drawn transitions keep their old priority.
        priority: A function of the model and a batch of samples that returns the priorities [batch].
        batch_size: Most rows in one forward pass.
    """

    def __init__(self, every: int = 1, *,
                 priority: Callable[[Any, ReplayBufferSamples], Tensor] | None = None,
                 batch_size: int = 256, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.every = whole(every, "every", 1, 2**31 - 1)
        self.priority = td_errors if priority is None else priority
        self.batch_size = whole(batch_size, "batch_size", 1, 2**31 - 1)
        self._rollouts = 0

    def _on_training_start(self) -> None:
        if isinstance(self.model, Prioritized):
            raise UsageError(f"{type(self.model).__name__} sets priorities in its own training: leave out "
                             "RefreshPriorities")
        self._buffer().record_draws()

    def _buffer(self) -> ReplayBuffer:
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, ReplayBuffer):
            raise UsageError("RefreshPriorities needs replay_buffer_class=uper.sb3.ReplayBuffer (or DictReplayBuffer), "
                             f"but this model has {type(buffer).__name__}")
        return buffer

    def _on_rollout_start(self) -> None:
        if self._rollouts % self.every == 0:
            self._refresh()
        self._rollouts += 1

    def _on_training_end(self) -> None:
        self._refresh()
        self._buffer().record_draws(False)

    def _on_step(self) -> bool:
        return True

    @torch.no_grad()
    def _refresh(self) -> None:
        model, buffer = self.model, self._buffer()
        model.policy.set_training_mode(False)
        ids = buffer.take_draws()
        for start in range(0, len(ids), self.batch_size):
            samples = buffer._get_samples(ids[start:start + self.batch_size], env=model.get_vec_normalize_env())
            buffer.set_priorities(samples.ids, self.priority(model, samples))


@torch.no_grad()
def td_errors(model: Any, samples: ReplayBufferSamples) -> Tensor:
    """[batch]: |target - Q| of the algorithm's own target, a mean over critics. TD3's target noise is left out."""
    q_values, next_values = _values(model, samples)
    return (samples.rewards + samples.factors(model.gamma) * next_values - q_values).abs().mean(1)


def _values(model: Any, samples: ReplayBufferSamples) -> tuple[Tensor, Tensor]:
    """Q values [batch, critics] of the taken actions, and the values [batch, 1] of what follows."""
    if hasattr(model, "quantile_net"):
        q_values = model.quantile_net(samples.observations).mean(1)
        next_values = model.quantile_net_target(samples.next_observations).mean(1)
    elif hasattr(model, "q_net"):
        q_values, next_values = model.q_net(samples.observations), model.q_net_target(samples.next_observations)
    elif hasattr(model, "critic"):
        return _critic_values(model, samples)
    else:
        raise UsageError(f"RefreshPriorities does not know {type(model).__name__}: give it priority, a function of the "
                         "model and a batch")
    return q_values.gather(1, samples.actions.long()), next_values.max(1, keepdim=True).values


def _critic_values(model: Any, samples: ReplayBufferSamples) -> tuple[Tensor, Tensor]:
    """The same for actors and critics, as SAC, TD3 and their kin."""
    entropy: Tensor | float = 0.0
    if hasattr(model.actor, "action_log_prob"):
        actions, log_prob = model.actor.action_log_prob(samples.next_observations)
        factor = model.ent_coef_tensor if model.log_ent_coef is None else model.log_ent_coef.exp()
        entropy = -factor * log_prob.reshape(-1, 1)
    else:
        actions = model.actor_target(samples.next_observations)
    critic_target = getattr(model, "critic_target", model.critic)  # CrossQ has none
    q_values = model.critic(samples.observations, samples.actions)
    next_values = critic_target(samples.next_observations, actions)
    if isinstance(q_values, Tensor):  # TQC: quantiles [batch, critics, quantiles], the largest of which are dropped
        kept = model.critic.quantiles_total - model.top_quantiles_to_drop_per_net * model.critic.n_critics
        lowest = next_values.flatten(1).sort(1).values[:, :kept]
        return q_values.mean(2), lowest.mean(1, keepdim=True) + entropy
    return torch.cat(q_values, 1), torch.cat(next_values, 1).min(1, keepdim=True).values + entropy
