"""DQN, QR-DQN and UPER with prioritized replay."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch import Tensor

from uper._options import choice, number, whole
from uper._rules import PRIORITY_RULES
from uper.errors import UsageError
from uper.sb3.buffers import DictReplayBuffer, ReplayBuffer, ReplayBufferSamples
from uper.torch import priorities, quantile_huber_loss

_FOR_ENSEMBLES = {"epistemic", "info_gain", "ratio_ea", "ratio_eu", "ratio_e2u", "ratio_e3u"}  # 0 for one member
_FOR_VALUES = {"uniform", "td", "epistemic_delta", "total_delta"}  # those that need no spread at all
_BY_ALEATORIC = {"info_gain", "info_gain_delta", "ratio_ea", "ratio_ea_delta"}  # without bound where it is 0


class Prioritized(OffPolicyAlgorithm):
    """Training with prioritized replay: each batch gives its rows new priorities, and the loss is weighted."""

    rule: str
    priority_cap: float
    members = 1
    max_grad_norm: Any

    def _setup_model(self) -> None:
        if self.replay_buffer_class is None:
            is_dict = isinstance(self.observation_space, spaces.Dict)
            self.replay_buffer_class = DictReplayBuffer if is_dict else ReplayBuffer
        if not issubclass(self.replay_buffer_class, ReplayBuffer):
            raise UsageError(f"uper.sb3.{type(self).__name__} needs uper.sb3.ReplayBuffer or DictReplayBuffer as "
                             f"replay_buffer_class, not {self.replay_buffer_class.__name__}")
        n_steps = getattr(self, "n_steps", 1)  # new in Stable-Baselines3 2.7
        if n_steps > 1:
            self.replay_buffer_kwargs = {**self.replay_buffer_kwargs, "n_steps": n_steps}
        if "n_steps" in self.replay_buffer_kwargs:
            self.replay_buffer_kwargs = {"gamma": self.gamma, **self.replay_buffer_kwargs}
        self.n_steps = 1  # the base class warns that it does not pass n_steps on
        super()._setup_model()
        self.n_steps = n_steps

    def _set_rule(self, rule: str, priority_cap: float | None, quantiles: int) -> None:
        """Refuses a rule that would be constant for this network."""
        fit = [one for one in PRIORITY_RULES if (self.members > 1 or one not in _FOR_ENSEMBLES) and
               (self.members * quantiles > 1 or one in _FOR_VALUES)]
        if rule not in fit:
            raise UsageError(f"rule {rule!r} does not fit uper.sb3.{type(self).__name__} with members={self.members} "
                             f"and quantiles={quantiles}; these do: {', '.join(fit)}")
        default = 100.0 if rule in _BY_ALEATORIC else 1e9
        self.rule = rule
        self.priority_cap = number(default if priority_cap is None else priority_cap, "priority_cap", 1e-30, 1e30)

    def _losses(self, samples: ReplayBufferSamples) -> tuple[Tensor, Tensor]:
        """The loss of each row, weighted, and its priority: [batch] each."""
        raise NotImplementedError

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        buffer = self._buffer()
        buffer.progress = 1 - self._current_progress_remaining
        losses = []
        for _ in range(gradient_steps):
            samples = buffer.sample(batch_size, env=self._vec_normalize_env)
            rows, row_priorities = self._losses(samples)
            loss = rows.mean()
            self._descend(loss)
            buffer.set_priorities(samples.ids, row_priorities)
            losses.append(loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))
        self.logger.record("train/importance_exponent", buffer.importance_exponent_now)

    def _buffer(self) -> ReplayBuffer:
        buffer = self.replay_buffer
        if not isinstance(buffer, ReplayBuffer) or buffer.members != self.members:
            raise UsageError(f"this model needs a uper.sb3.ReplayBuffer with members={self.members}; it has "
                             f"{type(buffer).__name__}" + (f" with members={buffer.members}"
                                                           if isinstance(buffer, ReplayBuffer) else ""))
        return buffer

    def _descend(self, loss: Tensor) -> None:
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()


class DQN(Prioritized, stable_baselines3.DQN):
    """DQN of Stable-Baselines3 with prioritized replay.

    Arguments are those of Stable-Baselines3 and the following. Options of the memory go into `replay_buffer_kwargs`, as
    dict(priority_exponent=0.6, importance_exponent=(0.4, 1.0)).

    Args:
        rule: Of the priorities: "td" (|TD error|), "epistemic_delta" or "total_delta" (its square), or "uniform".
        priority_cap: Largest priority; 1e9 by default, as rewards may have any size.
    """

    def __init__(self, policy: Any, env: Any, *args: Any, rule: str = "td", priority_cap: float | None = None,
                 **kwargs: Any) -> None:
        self._set_rule(rule, priority_cap, quantiles=1)
        super().__init__(policy, env, *args, **kwargs)

    def _losses(self, samples: ReplayBufferSamples) -> tuple[Tensor, Tensor]:
        discounts = samples.factors(self.gamma)
        with torch.no_grad():
            next_values = self.q_net_target(samples.next_observations).max(1, keepdim=True).values
            targets = samples.rewards + discounts * next_values
        q_values = self.q_net(samples.observations).gather(1, samples.actions.long())
        losses = samples.weights * torch.nn.functional.smooth_l1_loss(q_values, targets, reduction="none")
        row_priorities = priorities(q_values[..., None], next_values[..., None], samples.rewards[:, 0], discounts[:, 0],
                                    self.rule, cap=self.priority_cap)
        return losses[:, 0], row_priorities


class QRDQN(Prioritized, sb3_contrib.QRDQN):
    """QR-DQN of sb3-contrib with prioritized replay.

    Arguments are those of sb3-contrib, and:

    Args:
        rule: Of the priorities: "td", or one that uses the spread of the quantiles, as "total" or "info_gain_delta".
        priority_cap: Largest priority. By default 100 for rules that divide by the aleatoric uncertainty, which may be
            0, and 1e9 for others, as rewards may have any size.
        huber_kappa: Where the quantile loss turns linear; 0 is the plain quantile loss.
    """

    target_rule: Literal["per_member", "ensemble"] = "per_member"

    def __init__(self, policy: Any, env: Any, *args: Any, rule: str = "td", priority_cap: float | None = None,
                 huber_kappa: float = 1.0, **kwargs: Any) -> None:
        outputs = (kwargs.get("policy_kwargs") or {}).get("n_quantiles", 200)
        self._set_rule(rule, priority_cap, outputs // self.members)
        self.huber_kappa = number(huber_kappa, "huber_kappa", 0, 1e6)
        super().__init__(policy, env, *args, **kwargs)

    def _losses(self, samples: ReplayBufferSamples) -> tuple[Tensor, Tensor]:
        discounts = samples.factors(self.gamma)[:, 0]
        with torch.no_grad():
            following = self._by_member(self.quantile_net_target(samples.next_observations))
            target = _take_actions(following, self._greedy(following))
        online = _take_actions(self._by_member(self.quantile_net(samples.observations)), samples.actions.long())
        rewards = samples.rewards[:, 0]
        losses = quantile_huber_loss(online, rewards, discounts, target, samples.masks, samples.weights[:, 0],
                                     kappa=self.huber_kappa)
        return losses, priorities(online, target, rewards, discounts, self.rule, cap=self.priority_cap)

    def _by_member(self, quantiles: Tensor) -> Tensor:
        """[batch, members, quantiles, actions] of the network's [batch, n_quantiles, actions]."""
        batch, outputs, actions = quantiles.shape
        return quantiles.view(batch, self.members, outputs // self.members, actions)

    def _greedy(self, quantiles: Tensor) -> Tensor:
        """The best actions, [batch, members] or, of the ensemble's mean, [batch, 1]."""
        values = quantiles.mean(2)
        return (values if self.target_rule == "per_member" else values.mean(1, keepdim=True)).argmax(2)


class UPER(QRDQN):
    """QR-DQN with an ensemble, and replay prioritized by the information gain of its uncertainties.

    The network of sb3-contrib's QRDQN gets members * quantiles outputs per action. Each member learns from its own
    target, and from the transitions of its mask. The policy acts by the ensemble's mean. Arguments are those of
    `QRDQN`, and:

    Args:
        members: Of the ensemble, 1 to 64.
        quantiles: Per member.
        mask_probability: That a member learns from a transition.
        target_rule: "per_member", each member by its own greedy action, or "ensemble", all by that of the mean.
    """

    def __init__(self, policy: Any, env: Any, *args: Any, members: int = 10, quantiles: int = 51,
                 mask_probability: float = 0.5, rule: str = "info_gain_delta", huber_kappa: float = 0.0,
                 target_rule: Literal["per_member", "ensemble"] = "per_member",
                 policy_kwargs: dict[str, Any] | None = None, replay_buffer_kwargs: dict[str, Any] | None = None,
                 **kwargs: Any) -> None:
        self.members = whole(members, "members", 1, 64)
        self.quantiles = whole(quantiles, "quantiles", 1, 2**20)
        choice(target_rule, "target_rule", {"per_member": 0, "ensemble": 1})
        self.target_rule = target_rule
        outputs = {"n_quantiles": self.members * self.quantiles}
        memory = {"members": self.members, "mask_probability": number(mask_probability, "mask_probability", 0, 1)}
        super().__init__(policy, env, *args, rule=rule, huber_kappa=huber_kappa,
                         policy_kwargs=_merged(policy_kwargs, outputs, "policy_kwargs"),
                         replay_buffer_kwargs=_merged(replay_buffer_kwargs, memory, "replay_buffer_kwargs"), **kwargs)


def _merged(given: dict[str, Any] | None, own: dict[str, Any], name: str) -> dict[str, Any]:
    """The options with those that follow from UPER's arguments."""
    for key in own.keys() & (given or {}).keys():
        raise UsageError(f"{key} in {name} follows from UPER's own arguments: leave it out, and set members, quantiles "
                         "or mask_probability")
    return {**(given or {}), **own}


def _take_actions(quantiles: Tensor, actions: Tensor) -> Tensor:
    """[batch, members, quantiles] for actions [batch, members] or [batch, 1]."""
    index = actions[:, :, None, None].expand(-1, quantiles.shape[1], quantiles.shape[2], 1)
    return quantiles.gather(3, index)[..., 0]
