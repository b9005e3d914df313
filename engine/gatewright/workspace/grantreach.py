"""Grants on files that reach none of the folders which the tools that need them work on. It decides no call.

It is told only where every tool of the agent that needs the kind is one on files of the roots: what others may be
given nobody knows. Folders are looked at as they are now, links resolved, as the gate does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.problem import Address, Place, Problem, Severity, Subject
from gatewright.builtins import root_tools
from gatewright.gate.scope import prefixes_of
from gatewright.policy.document import Agent, Policy
from gatewright.policy.kinds.capability import CapabilityKind, kind_of
from gatewright.policy.right import ToolFacts
from gatewright.policy.scope import covers
from gatewright.policy.verdict import Verdict, split_name
from gatewright.tools.parameter import kind_needed
from gatewright.workspace.roots import file_markers, root_folders

if TYPE_CHECKING:
    Facts = Callable[[], Iterable[ToolFacts]]

    Places = Callable[[Address], Place | None]

MAX_NAMED = 3
_OWN = "built-in"
_FILES = (CapabilityKind.FS_READ, CapabilityKind.FS_WRITE)
_Idle = tuple["Agent", int, CapabilityKind, tuple[str, ...]]


def grant_problems(policy: Policy, folder: Path, facts: Facts, places: Places) -> tuple[Problem, ...]:
    """The warnings, each at its grant. ``facts``: of every tool, asked for only if something may have to be told."""
    if not policy.roots.folders:
        return ()
    folders = {name: str(path) for name, path in root_folders(policy.roots, folder).items()}
    found = [one for agent in policy.agents.values() for one in _idle(policy, agent, folders, str(folder))]
    if not found:
        return ()
    others = _others(facts())
    return tuple(
        _problem(policy, agent, index, kind, tools, places)
        for agent, index, kind, tools in found
        if (others[kind].isdisjoint(_bare(agent.tools)) if agent.tools is not None else not others[kind])
    )


def _idle(policy: Policy, agent: Agent, folders: Mapping[str, str], folder: str) -> Iterator[_Idle]:
    """The grants of a kind which all lie apart from every root that tools on roots need it for, and those tools."""
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
    """The tools on roots that need a kind, and the roots that they need it for."""
    found: dict[str, tuple[str, ...]] = {}
    for tool in root_tools():
        markers = file_markers(tool)
        own = [marker for marker in markers if kind_needed(marker) is kind]
        # what the gate judges under a kind: the paths marked so, else every path where it is needed
        judged = own or (markers if kind in tool.capabilities else [])
        if roots := tuple(dict.fromkeys(root for marker in judged for root in marker.roots)):
            found[tool.name] = roots
    return found


@lru_cache(maxsize=512)
def _bare(tools: tuple[str, ...]) -> frozenset[str]:
    """The names without majors."""
    return frozenset(split_name(written)[0] if "@" in written else written for written in tools)


def _others(facts: Iterable[ToolFacts]) -> Mapping[CapabilityKind, frozenset[str]]:
    """By kind: the tools that may need it and are none of ours on roots."""
    ours = {name for kind in _FILES for name in _roots_by_tool(kind)}
    theirs = [one for one in facts if one.origin != _OWN or one.name not in ours]
    found: dict[CapabilityKind, frozenset[str]] = {}
    for kind in _FILES:  # a grant may be of use where it is needed, or where a path may be given that is in no source
        found[kind] = frozenset(
            one.name
            for one in theirs
            if any(kind in op.capabilities or (kind in op.judgeable and not op.actions) for op in one.operations)
        )
    return found


def _problem(
    policy: Policy, agent: Agent, index: int, kind: CapabilityKind, tools: tuple[str, ...], places: Places
) -> Problem:
    """The folders are named as they are written, since that is what one may write in the grant."""
    roots = dict.fromkeys(root for name in tools for root in _roots_by_tool(kind)[name])
    folders = [f"`{folder}`" for root in roots if (folder := policy.roots.folder(root)) is not None]
    named = [f"`{name}`" for name in tools[:MAX_NAMED]]
    named += [f"{len(tools) - MAX_NAMED} more"] if len(tools) > MAX_NAMED else []
    message = (
        f"this {kind} of agent `{agent.agent_id}` reaches nothing of {_and(folders)}, "
        f"where {_and(named)} {'works' if len(tools) == 1 else 'work'}: every path there is denied"
    )
    address: Address = ("agents", agent.agent_id, "capabilities", index)
    subject = Subject(address, (agent.agent_id,), tuple((name, None) for name in tools))
    return Problem(Severity.WARNING, "grant-reaches-nothing", message, places(address), subject=subject)


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
