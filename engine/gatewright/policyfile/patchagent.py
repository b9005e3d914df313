"""The least change of one agent's table, its capabilities, and of tool rules wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.report import RawPath
from gatewright.policy.document import Agent
from gatewright.policy.kinds.capability import Capability, kind_of, plain_capability
from gatewright.policy.rule import ToolRule
from gatewright.policyfile.editor import REMOVED, VALUES, Editor
from gatewright.policyfile.pairing import CAPABILITIES, TOOL_RULES
from gatewright.policyfile.patchvalue import (
    change_table,
    is_words,
    value_like,
    written_value,
)
from gatewright.policyfile.plain import (
    plain_agent,
    plain_kind,
    plain_rule,
)
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Kind
from gatewright.schema.walk import as_object


class AgentPatch:
    """Edits through one editor. ``adjacent``: new kinds are written as ``{ type, value }``, as Pattern reads them.

    ``renamed``: as for `change_table`.
    """

    def __init__(
        self,
        editor: Editor,
        *,
        adjacent: bool = False,
        renamed: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._editor, self._adjacent, self._renamed = editor, adjacent, renamed

    def patch(self, path: RawPath, old: Agent, new: Agent) -> None:
        """Edit the table of one agent."""
        if old == new:
            return
        before, after = plain_agent(old), plain_agent(new)
        for data in (before, after):
            data.pop("capabilities", None)
        change_table(self._editor, path, before, after, self._renamed)
        patch_capabilities(self._editor, (*path, "capabilities"), old.capabilities, new.capabilities)
        self.rules((*path, "tool_rules"), old.tool_rules, new.tool_rules)

    def rules(self, path: RawPath, old: tuple[ToolRule, ...], new: tuple[ToolRule, ...]) -> None:
        """Edit a list of tool rules."""
        self._editor.edit_list(
            path,
            old,
            new,
            TOOL_RULES,
            plain=lambda rule: plain_rule(rule, adjacent=self._adjacent),
            blocks=lambda rule: [block((*path, 0), plain_rule(rule, adjacent=self._adjacent))],
            change=self._change_rule,
        )

    def _change_rule(self, path: RawPath, old: ToolRule, new: ToolRule) -> None:
        if old.rule_type != new.rule_type and not self._change_payload((*path, "rule_type"), old, new):
            item = self._editor.find((*path, "rule_type"))
            adjacent = "type" in item.members if item is not None else self._adjacent
            self._editor.set_members(path, {"rule_type": plain_kind(new.rule_type, adjacent=adjacent)})
        before, after = ({"priority": rule.priority, **plain_rule(rule)} for rule in (old, new))
        del before["rule_type"], after["rule_type"]
        change_table(self._editor, path, before, after)

    def _change_payload(self, path: RawPath, old: ToolRule, new: ToolRule) -> bool:
        """Change the payload alone, where the kind stays and it is a written value or a table with the same members."""
        item = self._editor.find(path)
        if old.kind != new.kind or item is None:
            return False
        place = (*path, "value" if "type" in item.members else new.kind)
        payload = item.members.get(str(place[-1]))
        if payload is None:
            return False
        after = new.rule_type.plain()
        held, wanted = as_object(old.rule_type.plain()), as_object(after)
        if held and wanted and held.keys() & wanted.keys() and held.keys() == payload.members.keys():
            change_table(self._editor, place, held, wanted)
            return True
        if payload.kind not in VALUES:
            return False
        written = written_value(self._editor, payload)
        if is_words(written) and is_words(after):
            kept = [name for name in written if name in after]
            self._editor.edit_words(place, written, [*kept, *(name for name in after if name not in written)])
        else:
            self._editor.set_value(payload, value_like(written, after))
        return True


Capabilities = tuple[Capability, ...]


def patch_capabilities(editor: Editor, path: RawPath, old: Capabilities, new: Capabilities) -> None:
    """Turn the list at ``path`` from ``old`` to ``new``; a kept entry changes only inside."""
    if old == new:
        return
    item = editor.find(path)
    if item is None or len(item.elements) != len(old):
        editor.set_members(path[:-1], {str(path[-1]): list(map(plain_capability, new))})
        return
    editor.edit_list(
        path,
        old,
        new,
        CAPABILITIES,
        plain=plain_capability,
        blocks=lambda capability: [block((*path, 0), {str(kind_of(capability)): capability.plain()})],
        change=lambda place, one, other: _change(editor, place, one, other),
    )


def _change(editor: Editor, path: RawPath, old: Capability, new: Capability) -> None:
    entry, kind = editor.find(path), str(kind_of(new))
    if entry is None:
        return
    if entry.kind is Kind.TABLE or (kind_of(old) is kind_of(new) and kind in entry.members):
        if kind_of(old) is not kind_of(new):
            editor.set_members(path, {str(kind_of(old)): REMOVED, kind: new.plain()})
        else:
            change_table(editor, (*path, kind), old.plain(), new.plain())
    else:
        editor.set_value(entry, plain_capability(new))
