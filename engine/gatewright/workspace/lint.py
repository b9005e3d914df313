"""Warnings about a valid policy: rules that decide nothing, grants that reach nothing, older definitions.

A grant is doubted only if every tool of the agent that needs the kind works on files of the roots, since nobody knows
the arguments of other tools. Folders count as they are now, with links resolved, as in the gate.

Each warning is proved; lists of rules that would take more than a moment are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import Address, Place, Problem, Severity, Subject, WorkspaceError, shown
from gatewright.builtins import root_tools
from gatewright.gate.scope import prefixes_of
from gatewright.policy.capability import CapabilityKind, kind_of
from gatewright.policy.document import Agent, CatalogType, PermissionRule, Policy, Source
from gatewright.policy.right import PathArgument, ToolFacts
from gatewright.policy.rulematch import all_with_settings
from gatewright.policy.shadow import Shadow, find_shadows
from gatewright.policy.verdict import Verdict, bare_names, covers, split_name
from gatewright.policyfile import LoadedPolicy
from gatewright.schema.walk import Schema, as_object, objects
from gatewright.tools.parameter import kind_needed
from gatewright.workspace.attachment import file_markers, root_folders
from gatewright.workspace.manifest import manifest_at, shipped_host

if TYPE_CHECKING:
    Facts = Callable[[], Iterable[ToolFacts]]

    Places = Callable[[Address], Place | None]

MAX_TOOLS_NAMED = 3
_OWN = "built-in"
_FILES = (CapabilityKind.FS_READ, CapabilityKind.FS_WRITE)
_Idle = tuple["Agent", int, CapabilityKind, tuple[str, ...]]


def grant_problems(policy: Policy, folder: Path, facts: Facts, places: Places) -> tuple[Problem, ...]:
    """Yield a warning for each idle grant.

    ``facts`` returns those of every tool, called only if a warning is possible.
    """
    if not policy.roots.folders:
        return ()
    folders = {name: str(path) for name, path in root_folders(policy.roots, folder).items()}
    found = [one for agent in policy.agents.values() for one in _idle(policy, agent, folders, str(folder))]
    if not found:
        return ()
    tools = tuple(facts())
    others = _others(tools)
    return tuple(
        _grant_problem(policy, agent, index, kind, needing, places)
        for agent, index, kind, needing in found
        if (others[kind].isdisjoint(bare_names(agent.tools, tools)) if agent.tools is not None else not others[kind])
    )


def _idle(policy: Policy, agent: Agent, folders: Mapping[str, str], folder: str) -> Iterator[_Idle]:
    """Yield the grants of a kind that miss every root on which tools need them, with those tools."""
    if agent.tools is None and policy.defaults.unlisted_tools is not Verdict.ALLOW:
        return
    listed = None if agent.tools is None else _bare(agent.tools)
    for kind in _FILES:
        held = [(at, one) for at, one in enumerate(agent.capabilities) if kind_of(one) is kind and one.scope]
        if not held:
            continue
        tools = tuple(
            name
            for name, roots in _roots_by_tool(kind).items()
            if (listed is None or name in listed) and not folders.keys().isdisjoint(roots)
        )
        roots = {root for name in tools for root in _roots_by_tool(kind)[name] if root in folders}
        prefixes = [prefix for _, one in held for prefix in prefixes_of(one, folder)]
        pairs = ((prefix, folders[root]) for prefix in prefixes for root in roots)
        if roots and not any(covers(one, other) or covers(other, one) for one, other in pairs):
            for at, _ in held:
                yield agent, at, kind, tools


@lru_cache(maxsize=4)
def _roots_by_tool(kind: CapabilityKind) -> Mapping[str, tuple[str, ...]]:
    """Return for each tool on roots that needs a kind the roots on which it needs the kind."""
    found: dict[str, tuple[str, ...]] = {}
    for tool in root_tools():
        markers = file_markers(tool)
        own = [marker for marker in markers if kind_needed(marker) is kind]
        # under a kind the gate judges the marked paths, else every path that needs the kind
        judged = own or (markers if kind in tool.capabilities else [])
        if roots := tuple(dict.fromkeys(root for marker in judged for root in marker.roots)):
            found[tool.name] = roots
    return found


@lru_cache(maxsize=512)
def _bare(tools: tuple[str, ...]) -> frozenset[str]:
    """Return the names without majors."""
    return frozenset(split_name(written)[0] if "@" in written else written for written in tools)


def _others(facts: Iterable[ToolFacts]) -> Mapping[CapabilityKind, frozenset[str]]:
    """Return for each kind the other tools that may need it, besides ours on roots."""
    ours = {name for kind in _FILES for name in _roots_by_tool(kind)}
    theirs = [one for one in facts if one.origin != _OWN or one.name not in ours]
    found: dict[CapabilityKind, frozenset[str]] = {}
    for kind in _FILES:  # a grant may serve these, or a path outside of all sources
        found[kind] = frozenset(
            one.name
            for one in theirs
            if any(kind in op.capabilities or (kind in op.judgeable and not op.actions) for op in one.operations)
        )
    return found


def _grant_problem(
    policy: Policy, agent: Agent, index: int, kind: CapabilityKind, tools: tuple[str, ...], places: Places
) -> Problem:
    """Report one idle grant; the warning names the folders as the policy writes them, like the grant itself."""
    roots = dict.fromkeys(root for name in tools for root in _roots_by_tool(kind)[name])
    folders = [f"`{folder}`" for root in roots if (folder := policy.roots.folder(root)) is not None]
    named = [f"`{name}`" for name in tools[:MAX_TOOLS_NAMED]]
    named += [f"{len(tools) - MAX_TOOLS_NAMED} more"] if len(tools) > MAX_TOOLS_NAMED else []
    message = (
        f"this {kind} of agent `{agent.agent_id}` reaches nothing of {_and(folders)}, "
        f"where {_and(named)} {'works' if len(tools) == 1 else 'work'}: every path there is denied"
    )
    address: Address = ("agents", agent.agent_id, "capabilities", index)
    subject = Subject(address, (agent.agent_id,), tuple((name, None) for name in tools))
    return Problem(Severity.WARNING, "grant-reaches-nothing", message, places(address), subject=subject)


def host_problems(policy: Policy, folder: Path, places: Places) -> Iterator[Problem]:
    """Yield a warning for each copy of a coding agent's definitions that is older than those of this Gatewright."""
    for catalog in policy.catalogs:
        if catalog.kind is not CatalogType.HOST:
            continue
        with suppress(WorkspaceError):  # no coding agent that is known, or no manifest: others say so
            shipped, ours = shipped_host(catalog.catalog_id)
            if catalog.manifest != shipped.manifest:
                continue
            there = _rows(manifest_at(folder / catalog.manifest))
            older = [name for name, row in _rows(ours).items() if there.get(name) != row]
            if older:
                address: Address = ("catalogs", catalog.catalog_id)
                named = [f"`{name}`" for name in older[:MAX_TOOLS_NAMED]]
                named += [f"{len(older) - MAX_TOOLS_NAMED} more"] if len(older) > MAX_TOOLS_NAMED else []
                message = (
                    f"the definitions of {_and(named)} of `{catalog.catalog_id}` differ from those of this Gatewright: "
                    f"`gatewright catalog import POLICY --host {catalog.catalog_id}` takes these over"
                )
                yield Problem(Severity.WARNING, "older-definitions", message, places(address), subject=Subject(address))


def _rows(manifest: Schema) -> dict[str, Schema]:
    """Return a manifest's tools by name, apart from their word on arguments that they do not name."""
    rows: dict[str, Schema] = {}
    for row in objects(manifest.get("tools")):
        schema = {**(as_object(row.get("inputSchema")) or {})}
        schema.pop("additionalProperties", None)
        rows[str(row.get("name"))] = {**row, "inputSchema": schema}
    return rows


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


MAX_RULES = 128
MAX_NAMED = 5
_MAX_STEPS = 60_000


def lints(loaded: LoadedPolicy, facts: Callable[[], Iterable[ToolFacts]]) -> tuple[Problem, ...]:
    """Collect the warnings, each at its rule or tool; none for a policy with errors. ``facts``: of every tool."""
    policy = loaded.policy
    if policy is None:
        return ()
    twins = tuple(_twins(loaded, policy, facts())) if policy.catalogs else ()
    if not policy.sources:
        return twins
    shadows = ((source, shadow) for source in policy.sources for shadow in _shadows(source.permission_rules))
    return (*(_rule_problem(loaded, *found) for found in shadows), *_path_lints(loaded, policy, facts()), *twins)


def _twins(loaded: LoadedPolicy, policy: Policy, facts: Iterable[ToolFacts]) -> Iterator[Problem]:
    """Yield bare names that mean a tool of ours although a catalog, too, has one that the policy never names."""
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
    for address, names in _tool_mentions(policy, tuple(tools.values())):
        for name in names:
            written.setdefault(name, address)
    for bare, twin in twins.items():
        if bare in written and twin.name not in written:
            message = (
                f"{shown(bare)} means the {tools[bare].origin} tool, and catalog `{twin.origin}` has one of that name "
                f"too, called {shown(twin.name)} here: write that name for it"
            )
            place = loaded.places.place(written[bare])
            yield Problem(Severity.WARNING, "name-of-two", message, place, subject=Subject(written[bare]))


def _tool_mentions(policy: Policy, facts: tuple[ToolFacts, ...]) -> Iterator[tuple[Address, Iterable[str]]]:
    """Yield the names of tools in the policy with their places; of a key of approvals, every possible name."""
    yield ("defaults", "approvals"), _beginnings(policy.defaults.approvals)
    for agent in policy.agents.values():
        at = "agents", agent.agent_id
        yield (*at, "tools"), bare_names(agent.tools or (), facts)
        for index, rule in enumerate(agent.tool_rules):
            yield (*at, "tool_rules", index), {split_name(rule.tool_name)[0]}
        yield (*at, "approvals"), _beginnings(agent.approvals)
    for index, rule in enumerate(policy.rules):
        yield ("policy", "rules", index), bare_names(rule.tools or (), facts)
    yield ("tools",), {split_name(name)[0] for name in policy.tools}


def _beginnings(keys: Iterable[str]) -> set[str]:
    steps = (key.split(".") for key in keys)
    return {".".join(parts[:end]) for parts in steps for end in range(1, len(parts) + 1)}


def _path_lints(loaded: LoadedPolicy, policy: Policy, facts: Iterable[ToolFacts]) -> Iterator[Problem]:
    """Yield tools of agents with arguments that look like undeclared paths."""
    facts, listing = tuple(facts), dict[str, str]()
    for agent in reversed(list(policy.agents.values())):
        listing.update((name, agent.agent_id) for name in bare_names(agent.tools or (), facts))
    everyone = next((agent.agent_id for agent in policy.agents.values() if agent.tools is None), None)
    for tool in all_with_settings(policy, facts):
        open_ends: dict[str, PathArgument] = {}
        for path in (path for row in tool.operations for path in row.paths):
            if path.confidence != "declared" and (path.use is None or not path.counts):
                open_ends[path.argument] = path  # neither the policy nor the tool says what happens to the path
        agent_id = listing.get(tool.name, everyone)
        if agent_id is None or not open_ends:
            continue
        named = ", ".join(shown(name) for name in list(open_ends)[:MAX_NAMED])
        more = f" and {len(open_ends) - MAX_NAMED} more" if len(open_ends) > MAX_NAMED else ""
        counts = [one.counts for one in open_ends.values()]
        done = "each counts as written" if all(counts) else "only those that are whole paths count"
        message = (
            f"{named}{more} of {shown(tool.name)} may name files: say in `paths` of its settings whether the tool "
            f"reads, writes or deletes them, or that they are no paths; until then {done}"
        )
        written = next((name for name in (f"{tool.name}@{tool.major}", tool.name) if name in policy.tools), None)
        address: Address = ("tools", written) if written else ("agents", agent_id, "tools")
        place = loaded.places.place(address)
        yield Problem(Severity.WARNING, "undeclared-paths", message, place, subject=Subject(address))


@lru_cache(maxsize=64)
def _shadows(rules: tuple[PermissionRule, ...]) -> tuple[Shadow, ...]:
    if not 1 < len(rules) <= MAX_RULES:
        return ()
    return find_shadows(rules, max_steps=_MAX_STEPS)


def _rule_problem(loaded: LoadedPolicy, source: Source, shadow: Shadow) -> Problem:
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
