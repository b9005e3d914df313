"""Verbs on a source's ordered levels. They do not know the folder behind the source."""

from gatewright.policy import sourceedit
from gatewright.policy.document import PermissionRule
from gatewright.policy.permission import Permission
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
