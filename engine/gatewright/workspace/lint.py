"""What is worth telling of a policy beside what its file says wrong: rules that decide nothing, paths nobody declared.

It is told only where it is proved, and sought only in lists of rules that take a moment. It touches no disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from gatewright.base.problem import Address, Problem, Severity, Subject, shown
from gatewright.policy.document import PermissionRule, Policy, Source
from gatewright.policy.right import PathArgument, ToolFacts
from gatewright.policy.rulematch import overridden_all
from gatewright.policy.shadow import Shadow, shadowed
from gatewright.policy.verdict import split_name

if TYPE_CHECKING:
    from gatewright.policyfile import LoadedPolicy

MAX_RULES = 128
MAX_NAMED = 5
_MAX_STEPS = 60_000


def lints(loaded: LoadedPolicy, facts: Callable[[], Iterable[ToolFacts]]) -> tuple[Problem, ...]:
    """The warnings, each at its rule or tool; none of a policy with errors. ``facts``: of every tool."""
    policy = loaded.policy
    if policy is None:
        return ()
    twins = tuple(_twins(loaded, policy, facts())) if policy.catalogs else ()
    if not policy.sources:
        return twins
    shadows = ((source, shadow) for source in policy.sources for shadow in _shadows(source.permission_rules))
    return (*(_problem(loaded, *found) for found in shadows), *_undeclared(loaded, policy, facts()), *twins)


def _twins(loaded: LoadedPolicy, policy: Policy, facts: Iterable[ToolFacts]) -> Iterator[Problem]:
    """Bare names that mean a tool of ours although a catalog has one too, which the policy names nowhere."""
    tools = {tool.name: tool for tool in facts}
    prefixes = {one.catalog_id: one.prefix or one.catalog_id for one in policy.catalogs}
    twins: dict[str, ToolFacts] = {}
    for tool in tools.values():
        bare = tool.name.removeprefix(f"{prefixes.get(tool.origin, '')}.")
        if bare != tool.name and bare in tools and tools[bare].origin not in prefixes:
            twins.setdefault(bare, tool)
    if not twins:
        return
    written: dict[str, Address] = {}
    for address, names in _written(policy):
        for name in names:
            written.setdefault(name, address)
    for bare, twin in twins.items():
        if bare in written and twin.name not in written:
            message = (
                f"{shown(bare)} means the {tools[bare].origin} tool, and catalog `{twin.origin}` has one of that name "
                f"too, which is {shown(twin.name)} here: name that where it is meant"
            )
            place = loaded.places.place(written[bare])
            yield Problem(Severity.WARNING, "name-of-two", message, place, subject=Subject(written[bare]))


def _written(policy: Policy) -> Iterator[tuple[Address, set[str]]]:
    """The names of tools in the policy by where they stand; a key of approvals counts as all that it may begin with."""
    yield ("defaults", "approvals"), _beginnings(policy.defaults.approvals)
    for agent in policy.agents.values():
        at = "agents", agent.agent_id
        yield (*at, "tools"), {split_name(name)[0] for name in agent.tools or ()}
        for index, rule in enumerate(agent.tool_rules):
            yield (*at, "tool_rules", index), {split_name(rule.tool_name)[0]}
        yield (*at, "approvals"), _beginnings(agent.approvals)
    for index, rule in enumerate(policy.rules):
        yield ("policy", "rules", index), {split_name(name)[0] for name in rule.tools or ()}
    yield ("tools",), {split_name(name)[0] for name in policy.tools}


def _beginnings(keys: Iterable[str]) -> set[str]:
    steps = (key.split(".") for key in keys)
    return {".".join(parts[:end]) for parts in steps for end in range(1, len(parts) + 1)}


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
    return shadowed(rules, max_steps=_MAX_STEPS)


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
