"""What makes two rows of a list in the policy file the same row, though it changed. It edits nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.policy.capability import Capability, kind_of
from gatewright.policy.document import Catalog, PermissionRule, Source
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rule import ToolRule
from gatewright.policy.toolname import split_name
from gatewright.policyfile.listdiff import Likeness

if TYPE_CHECKING:
    from collections.abc import Hashable


def _row(row: Hashable) -> Hashable:
    return row


def _tool_and_kind(rule: ToolRule) -> tuple[str, str]:
    return split_name(rule.tool_name)[0], rule.kind


def _scope(rule: PolicyRule) -> tuple[Hashable, ...]:
    return rule.agents, rule.tools, rule.operations


WORDS: Likeness[str] = Likeness(_row)
TOOL_RULES: Likeness[ToolRule] = Likeness(
    _row,
    kin=(
        lambda rule: rule.rule_id,
        lambda rule: (*_tool_and_kind(rule), rule.conditions),
        _tool_and_kind,
    ),
)
LEVELS: Likeness[PermissionRule] = Likeness(
    _row,
    kin=(lambda rule: rule.pattern,),
    in_place=(lambda rule: (rule.permission, rule.comment),),
)
SOURCES: Likeness[Source] = Likeness(lambda source: source.source_id, in_place=(lambda source: source.base_path,))
CATALOGS: Likeness[Catalog] = Likeness(lambda catalog: catalog.catalog_id, in_place=(lambda catalog: catalog.manifest,))
POLICY_RULES: Likeness[PolicyRule] = Likeness(
    lambda rule: rule.name, in_place=(lambda rule: replace(rule, name=""), _scope)
)
CAPABILITIES: Likeness[Capability] = Likeness(_row, kin=(kind_of,))
