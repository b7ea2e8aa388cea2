"""Names of the priority rules and of the statistics that they read."""

from __future__ import annotations

from uper._core import priority_rules
from uper.errors import UsageError

# {name: formula} of the rules that an agent with a network can use. E and A are the epistemic and the aleatoric part
# of the uncertainty U. A rule with _delta includes the distance to the target.
PRIORITY_RULES: dict[str, str] = priority_rules()

# The statistics of one item, in the order of the C++ code.
COMPONENTS = ("epistemic", "aleatoric", "target_distance_sq", "epistemic_delta", "td_error")


def check_rule(rule: str) -> str:
    """The rule, if there is one of that name."""
    if rule in PRIORITY_RULES:
        return rule
    raise UsageError(f"there is no priority rule {rule!r}; there are {', '.join(PRIORITY_RULES)}")
