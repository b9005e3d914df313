"""What is worth telling of a policy beside what its file says wrong: permission rules that can decide nothing.

It is told only where it is proved, and sought only in lists of rules that take a moment. It touches no disk.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gatewright.base.problem import Problem, Severity, Subject
from gatewright.policy.glob import PermissionRules
from gatewright.policy.shadow import shadowed

if TYPE_CHECKING:
    from gatewright.base.problem import Address
    from gatewright.policy.document import PermissionRule, Source
    from gatewright.policy.shadow import Shadow
    from gatewright.policyfile import LoadedPolicy

MAX_RULES = 128
_MAX_STEPS = 60_000


def lints(loaded: LoadedPolicy) -> tuple[Problem, ...]:
    """The warnings, each at its rule; none of a policy with errors."""
    sources = loaded.policy.sources if loaded.policy is not None else ()
    return tuple(_problem(loaded, source, shadow) for source in sources for shadow in _shadows(source.permission_rules))


@lru_cache(maxsize=64)
def _shadows(rules: tuple[PermissionRule, ...]) -> tuple[Shadow, ...]:
    if not 1 < len(rules) <= MAX_RULES:
        return ()
    return shadowed(PermissionRules(rules), max_steps=_MAX_STEPS)


def _problem(loaded: LoadedPolicy, source: Source, shadow: Shadow) -> Problem:
    rules = source.permission_rules
    above = " and ".join(f"{at + 1} `{rules[at].pattern}`" for at in shadow.by)
    which, match = ("rule", "matches") if len(shadow.by) == 1 else ("rules", "match")
    end = ", with the same level" if shadow.harmless else ""
    message = (
        f"rule {shadow.index + 1} `{rules[shadow.index].pattern}` of source `{source.source_id}` can never decide: "
        f"{which} {above} above it {match} all that it matches{end}"
    )
    address: Address = ("sources", source.source_id, "permission_rules", shadow.index)
    place = loaded.places.place(address)
    return Problem(Severity.WARNING, "rule-shadowed", message, place, subject=Subject(address))
