"""Verbs on sources and their ordered levels."""

from collections.abc import Iterable

from gatewright.workspace.api import Permission, PermissionRule, Source, sourceedit
from gatewright_gui.session.document import Document
from gatewright_gui.session.files import pattern_of


def set_level(document: Document, source_id: str, index: int, level: Permission) -> bool:
    """Give the rule at `index` another level."""
    return document.push(lambda policy, _tools: sourceedit.set_level(policy, source_id, index, level))


def set_rule(document: Document, source_id: str, index: int, rule: PermissionRule) -> bool:
    """Put another rule in the place of the one at `index`."""
    return document.push(lambda policy, _tools: sourceedit.set_rule(policy, source_id, index, rule))


def set_default_level(document: Document, source_id: str, level: Permission) -> bool:
    """Change the level of paths that no rule matches."""
    return document.push(lambda policy, _tools: sourceedit.set_default_level(policy, source_id, level))


def add_rule(document: Document, source_id: str, rule: PermissionRule, index: int | None = None) -> bool:
    """Insert a rule before `index`, or as the last one."""
    return document.push(lambda policy, _tools: sourceedit.add_rule(policy, source_id, rule, index))


def remove_rule(document: Document, source_id: str, index: int) -> bool:
    """Remove the rule at `index`."""
    return document.push(lambda policy, _tools: sourceedit.remove_rule(policy, source_id, index))


def move_rule(document: Document, source_id: str, index: int, to: int) -> bool:
    """Move the rule at `index` so that it stands at `to` afterwards."""
    return document.push(lambda policy, _tools: sourceedit.move_rule(policy, source_id, index, to))


def remove_rules(document: Document, source_id: str, indexes: Iterable[int]) -> bool:
    """Remove several rules."""
    return document.push(lambda policy, _tools: sourceedit.remove_rules(policy, source_id, indexes))


def move_rules(document: Document, source_id: str, indexes: Iterable[int], to: int) -> bool:
    """Move rules so that the first of them stands at `to` afterwards and the others right below it."""
    return document.push(lambda policy, _tools: sourceedit.move_rules(policy, source_id, indexes, to))


def add_source(document: Document, source: Source) -> bool:
    """A new source, the last one."""
    return document.push(lambda policy, _tools: sourceedit.add_source(policy, source))


def add_refusal(document: Document, source: Source) -> str:
    """Why a new source would be refused; empty when it would not."""
    return document.refusal(lambda policy, _tools: sourceedit.add_source(policy, source))


def change_source(document: Document, source_id: str, after: Source) -> bool:
    """Other settings for a source; lists of agents follow another id."""
    return document.push(lambda policy, _tools: sourceedit.change_source(policy, source_id, after))


def change_refusal(document: Document, source_id: str, after: Source) -> str:
    """Why other settings would be refused; empty when they would not."""
    return document.refusal(lambda policy, _tools: sourceedit.change_source(policy, source_id, after))


def remove_source(document: Document, source_id: str) -> bool:
    """Take a source out of the policy and from the agents that list it; nothing on disk is touched."""
    return document.push(lambda policy, _tools: sourceedit.remove_source(policy, source_id))


def remove_refusal(document: Document, source_id: str) -> str:
    """Why a source cannot go; empty when it can."""
    return document.refusal(lambda policy, _tools: sourceedit.remove_source(policy, source_id))


def listed_by(document: Document, source_id: str) -> tuple[str, ...]:
    """The agents that have a list of their sources with this one in it."""
    agents = document.policy.agents.values()
    return tuple(agent.agent_id for agent in agents if agent.sources is not None and source_id in agent.sources)


def give_level(document: Document, source_id: str, path: str, level: Permission, at: int | None) -> bool:
    """Give a path, or all that is in a folder, a level. `at` is the rule that decides it now, None for the default.

    A rule that names just this path is changed; otherwise a new one is put above it, or last: no other path changes.
    """
    source = document.policy.source(source_id)
    if source is not None and at is not None and _names(source.permission_rules[at].pattern, pattern_of(path)):
        return set_level(document, source_id, at, level)
    return add_rule(document, source_id, PermissionRule(pattern_of(path), level), at)


def _names(pattern: str, own: str) -> bool:
    """Whether a pattern is one of the ways to write a path's own pattern."""
    folder = own.endswith("/")
    return f"/{pattern.removeprefix('/')}" in ({own, f"{own}**"} if folder else {own})
