"""Stable-Baselines3: replay buffers, and DQN, QR-DQN and UPER with prioritized replay.

`ReplayBuffer` and `DictReplayBuffer` fit every off-policy algorithm of Stable-Baselines3 and sb3-contrib. The training
loops of those algorithms never call their buffer back, so draws stay uniform until somebody sets priorities. `DQN`,
`QRDQN` and `UPER` of this module do that in their own training loop, and weight the loss. `RefreshPriorities` does it
for the others, without weights.

Hindsight experience replay is not supported: `HerReplayBuffer` relabels whole episodes, which these buffers do not
keep. Use it as it is.
"""

try:
    import sb3_contrib  # noqa: F401
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise ImportError("uper.sb3 needs Stable-Baselines3 and sb3-contrib: pip install 'uper[sb3]'") from error

from uper.sb3.algorithms import DQN, QRDQN, UPER
from uper.sb3.buffers import DictReplayBuffer, ReplayBuffer, ReplayBufferSamples
from uper.sb3.refresh import RefreshPriorities, td_errors

__all__ = ["DQN", "QRDQN", "UPER", "DictReplayBuffer", "RefreshPriorities", "ReplayBuffer", "ReplayBufferSamples",
           "td_errors"]
