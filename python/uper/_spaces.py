"""Fields for Gymnasium's spaces. Gymnasium itself is not needed: spaces are known by their attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from uper.errors import UsageError

Fields = dict[str, tuple[tuple[int, ...], Any]]


def space_fields(observation_space: Any, action_space: Any) -> Fields:
    """The fields of transitions between these spaces."""
    observations = _leaves(observation_space, "obs")
    return {**observations, **_leaves(action_space, "action"), "reward": ((), np.float32), "discount": ((), np.float32),
            **{"next_" + name: spec for name, spec in observations.items()}}


def _leaves(space: Any, name: str) -> Fields:
    kind = type(space).__name__
    if kind == "Dict" and hasattr(space, "spaces"):
        return {leaf: spec for key, inner in space.spaces.items() for leaf, spec in _leaves(inner, f"{name}.{key}").items()}
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if shape is None or dtype is None or kind in ("Tuple", "Sequence", "Graph", "Text", "OneOf"):
        raise UsageError(f"{name}: a {kind} space cannot be stored; Box, Discrete, MultiDiscrete, MultiBinary and Dict "
                         "of these can (wrap the environment, for instance by gymnasium.wrappers.FlattenObservation)")
    return {name: (tuple(int(side) for side in shape), np.dtype(dtype))}
