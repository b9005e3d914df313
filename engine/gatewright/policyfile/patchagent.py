"""The least change of one agent's table, and of tool rules wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.report import RawPath
from gatewright.policy.document import Agent
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.editor import REMOVED, VALUES, Editor
from gatewright.policyfile.pairing import TOOL_RULES
from gatewright.policyfile.patchcapability import patch_capabilities
from gatewright.policyfile.patchvalue import (
    change_table,
    is_words,
    set_scalars,
    set_words,
    value_like,
    written_value,
)
from gatewright.policyfile.plain import (
    plain_approvals,
    plain_kind,
    plain_rule,
)
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Kind
from gatewright.schema.walk import as_object


class AgentPatch:
    """Edits through one editor. ``adjacent``: new kinds are written as ``{ type, value }``, as Pattern reads them.

    ``renamed_sources``: old to new ids.
    """

    def __init__(
        self,
        editor: Editor,
        *,
        adjacent: bool = False,
        pattern: bool = False,
        renamed_sources: Mapping[str, str] | None = None,
    ) -> None:
        self._editor, self._adjacent, self._pattern = editor, adjacent, pattern
        self._renamed_sources = renamed_sources

    def patch(self, path: RawPath, old: Agent, new: Agent) -> None:
        """Edit the table of one agent."""
        if old == new:
            return
        set_scalars(self._editor, path, {"description": (old.description or None, new.description or None)})
        set_words(self._editor, (*path, "tools"), old.tools, new.tools)
        if not self._pattern:
            set_words(self._editor, (*path, "sources"), old.sources, new.sources, self._renamed_sources)
            set_scalars(self._editor, path, {"user_id": (old.user_id, new.user_id)})
            patch_capabilities(self._editor, (*path, "capabilities"), old.capabilities, new.capabilities)
        self.verdicts((*path, "approvals"), old.approvals, new.approvals)
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

    def verdicts(self, path: RawPath, old: Mapping[str, Verdict], new: Mapping[str, Verdict]) -> None:
        """Edit ``approvals``."""
        item = self._editor.find(path)
        if old == new:
            return
        if item is None:
            self._editor.set_members(path[:-1], {"approvals": plain_approvals(new)})
        elif not new and item.kind is Kind.INLINE:
            self._editor.remove(path)
        else:
            changed = {key: verdict for key, verdict in new.items() if old.get(key) != verdict}
            gone = {key: REMOVED for key in old if key not in new}
            self._editor.set_members(path, {**gone, **plain_approvals(changed)})

    def _change_rule(self, path: RawPath, old: ToolRule, new: ToolRule) -> None:
        if old.rule_type != new.rule_type and not self._change_payload((*path, "rule_type"), old, new):
            item = self._editor.find((*path, "rule_type"))
            adjacent = "type" in item.members if item is not None else self._adjacent
            self._editor.set_members(path, {"rule_type": plain_kind(new.rule_type, adjacent=adjacent)})
        set_scalars(
            self._editor,
            path,
            {
                "tool_name": (old.tool_name, new.tool_name),
                "priority": (old.priority, new.priority),
                "id": (old.rule_id, new.rule_id),
                "metadata": (old.metadata, new.metadata),
            },
        )
        set_words(self._editor, (*path, "conditions"), old.conditions or None, new.conditions or None)

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
