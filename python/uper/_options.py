"""Options that the replay memories share."""

from __future__ import annotations

import math
import os
from typing import Any, Literal, NamedTuple, get_args

from uper.errors import OutOfMemoryError, UsageError

SelectorName = Literal["proportional", "rank", "uniform"]
WeightsName = Literal["batch_max", "buffer_max", "none"]
AutoresetName = Literal["next_step", "same_step", "disabled"]

# The numbers of the C++ enumerations.
SELECTORS = {"proportional": 0, "rank": 1, "uniform": 2}
NORMALIZATIONS = {"none": 0, "batch_max": 1, "buffer_max": 2}
AUTORESETS = {"next_step": 0, "same_step": 1, "disabled": 2}


class UpdateCounts(NamedTuple):
    """Counts of the entries of one `set_priorities()` by result."""

    updated: int
    evicted: int  # the item is gone; nothing was changed
    invalid: int  # NaN, infinite or negative, or an id that no item ever had; nothing was changed


class ReplayCounters(NamedTuple):
    """Events since the memory was made."""

    added: int
    evicted: int
    invalid_insertions: int
    drawn: int
    uniform_fallbacks: int  # draws that were uniform because no item had a positive priority
    updated: int
    updates_of_evicted: int
    invalid_updates: int


def choice(value: str, name: str, choices: dict[str, int]) -> int:
    """The number of a named choice."""
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise UsageError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def whole(value: Any, name: str, smallest: int, largest: int) -> int:
    """A whole number in a range."""
    try:
        number = int(value)
        exact = number == value
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or isinstance(value, (str, bytes)) or not smallest <= number <= largest:
        raise UsageError(f"{name} must be a whole number from {smallest:,} to {largest:,}, not {value!r}")
    return number


def number(value: Any, name: str, smallest: float, largest: float) -> float:
    """A number in a range."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not smallest <= result <= largest:
        raise UsageError(f"{name} must be a number from {smallest:g} to {largest:g}, not {value!r}")
    return result


def buffer_options(*, capacity: int, selector: str, priority_exponent: float, uniform_mix: float, stratified: bool,
                   initial_priority: float, largest_priority_decay: float,
                   recency: float | None = None) -> dict[str, Any]:
    """The checked options of a replay buffer, for the C++ code."""
    return {
        "capacity": whole(capacity, "capacity", 1, 2**32 - 1),
        "selector": choice(selector, "selector", SELECTORS),
        "priority_exponent": number(priority_exponent, "priority_exponent", 0, 4),
        "uniform_mix": number(uniform_mix, "uniform_mix", 0, 1),
        "stratified": bool(stratified),
        "initial_priority": number(initial_priority, "initial_priority", 1e-37, 3e38),
        "largest_priority_decay": number(largest_priority_decay, "largest_priority_decay", 1e-9, 1),
        "recency": 0.0 if recency is None else number(recency, "recency", 1, 1e18),
    }


def check_memory(needed: int) -> None:
    """Refuses a memory that this machine cannot hold, before it is allocated."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > total:
        raise OutOfMemoryError(f"this replay memory needs {_gigabytes(needed)}, but the machine has "
                               f"{_gigabytes(total)}: use a smaller capacity, or uper.FrameReplay for stacked pictures")


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"


assert set(SELECTORS) == set(get_args(SelectorName))
assert set(NORMALIZATIONS) == set(get_args(WeightsName))
assert set(AUTORESETS) == set(get_args(AutoresetName))
