"""What is worth telling of a policy beside what its file says wrong: rules that decide nothing, paths nobody declared.

It is told only where it is proved, and sought only in lists of rules that take a moment. It touches no disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from gatewright.base.problem import Address, Problem, Severity, Subject
from gatewright.base.report import shown
from gatewright.policy.document import PermissionRule, Policy, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.right import PathArgument, ToolFacts
from gatewright.policy.setting import overridden_all
from gatewright.policy.shadow import Shadow, shadowed
from gatewright.policy.toolname import split_name

if TYPE_CHECKING:
    from gatewright.policyfile import LoadedPolicy

MAX_RULES = 128
MAX_NAMED = 5
_MAX_STEPS = 60_000


def lints(loaded: LoadedPolicy, facts: Callable[[], Iterable[ToolFacts]]) -> tuple[Problem, ...]:
    """The warnings, each at its rule or tool; none of a policy with errors. ``facts``: of every tool."""
    policy = loaded.policy
    if policy is None or not policy.sources:
        return ()
    shadows = ((source, shadow) for source in policy.sources for shadow in _shadows(source.permission_rules))
    return (*(_problem(loaded, *found) for found in shadows), *_undeclared(loaded, policy, facts()))


def _undeclared(loaded: LoadedPolicy, policy: Policy, facts: Iterable[ToolFacts]) -> Iterator[Problem]:
    """Tools that some agent has and whose arguments look like paths, without that anything settles what they are."""
    listing: dict[str, str] = {}
    for agent in reversed(list(policy.agents.values())):
        listing.update((split_name(written)[0], agent.agent_id) for written in agent.tools or ())
    everyone = next((agent.agent_id for agent in policy.agents.values() if agent.tools is None), None)
    for tool in overridden_all(policy, tuple(facts)):
        open_ends: dict[str, PathArgument] = {}
        for path in (path for row in tool.operations for path in row.paths):
            if path.confidence != "declared" and (path.use is None or not path.counts):
                open_ends[path.argument] = path  # neither the policy nor the tool's own words say what is done there
        agent_id = listing.get(tool.name, everyone)
        if agent_id is None or not open_ends:
            continue
        named = ", ".join(shown(name) for name in list(open_ends)[:MAX_NAMED])
        more = f" and {len(open_ends) - MAX_NAMED} more" if len(open_ends) > MAX_NAMED else ""
        counts = [one.counts for one in open_ends.values()]
        done = "are judged as if they were written" if all(counts) else "are judged only where they are whole paths"
        message = (
            f"{named}{more} of {shown(tool.name)} may be paths and {done}: "
            "say in `paths` of its settings whether they are for reading, writing, deleting, or no paths"
        )
        written = next((name for name in (f"{tool.name}@{tool.major}", tool.name) if name in policy.tools), None)
        address: Address = ("tools", written) if written else ("agents", agent_id, "tools")
        place = loaded.places.place(address)
        yield Problem(Severity.WARNING, "undeclared-paths", message, place, subject=Subject(address))


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
