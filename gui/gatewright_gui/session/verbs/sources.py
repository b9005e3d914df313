"""Verbs on a source's ordered levels. They do not know the folder behind the source."""

from gatewright.policy import sourceedit
from gatewright.policy.document import PermissionRule
from gatewright.policy.permission import Permission
from gatewright_gui.session.document import Document


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
