"""The state of this installation."""

from __future__ import annotations

import os
import platform
import sys

from uper import _core
from uper._program import PROGRAM, why_missing

# Extra -> the distributions that it needs.
EXTRAS = {"gym": ["gymnasium"], "torch": ["torch"], "jax": ["jax"], "sb3": ["stable-baselines3", "sb3-contrib"],
          "torchrl": ["torchrl"], "tianshou": ["tianshou"]}


def doctor() -> dict[str, str]:
    """Versions, the program, and which extras can be used, as {name: sentence}."""
    from importlib import metadata  # slow to import
    found = {"uper": _core.version,
             "python": f"{platform.python_version()} ({sys.implementation.name})",
             "numpy": metadata.version("numpy"),
             "processor": f"{platform.machine()}, {_core.instructions} for statistics, "
                          f"{len(os.sched_getaffinity(0))} cores usable",
             "program": why_missing() or PROGRAM}
    for extra, names in EXTRAS.items():
        found[f"uper[{extra}]"] = ", ".join(_installed(name) for name in names)
    return found


def _installed(name: str) -> str:
    from importlib import metadata
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"
