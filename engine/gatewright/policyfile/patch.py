"""The least change of a policy file that turns one policy into another. It never writes a file that says anything else.

Comments, order, quoting, line endings and the author's spelling stay; an edit touches only its own lines. The result is
read again: if it is not exactly the wanted policy, nothing is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.errors import NotSupported, WeMustFix
from gatewright.policy.document import Dialect
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, Cooldown, Periodic, RateLimit
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.editor import REMOVED, VALUES, Editor
from gatewright.policyfile.patchcapability import patch_capabilities
from gatewright.policyfile.patchtool import patch_catalogs, patch_tools
from gatewright.policyfile.patchvalue import set_words, written_duration, written_value
from gatewright.policyfile.patchworkspace import patch_roots
from gatewright.policyfile.place import Places
from gatewright.policyfile.plain import (
    duration_like,
    plain_agent,
    plain_approvals,
    plain_kind,
    plain_payload,
    plain_permission_rule,
    plain_policy_rule,
    plain_rule,
    plain_source,
)
from gatewright.policyfile.reader import value_of
from gatewright.policyfile.render import agent_blocks, source_blocks
from gatewright.policyfile.scan import Item, Kind, RawPath
from gatewright.policyfile.stages import renamed_agents, stages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewright.policy.document import Agent, Defaults, PermissionRule, Policy, Source
    from gatewright.policy.policyrule import PolicyRule
    from gatewright.policy.rule import ToolRule


def patch_text(text: str, before: Policy, after: Policy) -> str:
    """``text``, which says ``before``, edited to say ``after``; equal policies give the same text, byte for byte.

    Raises NotSupported for what the file's dialect cannot say, WeMustFix instead of returning anything wrong.
    """
    if before == after:
        return text
    if before.dialect is not after.dialect:
        raise NotSupported("a file keeps its dialect: export the policy instead")
    try:
        return _patched(text, before, after)
    except WeMustFix:
        for step in stages(before, after):
            text, before = _patched(text, before, step), step
        return text


def _patched(text: str, before: Policy, after: Policy) -> str:
    if before == after:
        return text
    patched = _Patch(text, before, after).run()
    if value_of(patched, next(iter(after.agents), "")) != after:
        raise WeMustFix("the edited policy file would not say what was meant, so it was not written")
    return patched


class _Patch:
    def __init__(self, text: str, before: Policy, after: Policy) -> None:
        self._before, self._after = before, after
        self._pattern = before.dialect is Dialect.PATTERN
        self._editor = Editor(text)
        self._places = Places(text, "", before.dialect)
        self._adjacent = self._writes_adjacent()

    def run(self) -> str:
        before, after = self._before, self._after
        if self._pattern:
            self._refuse_foreign()
            self._patch_pattern_agent()
        else:
            self._scalars(
                (), {"name": (before.name, after.name), "description": (before.description, after.description)}
            )
            self._patch_agents()
        self._patch_defaults(before.defaults, after.defaults)
        self._patch_sources()
        patch_catalogs(self._editor, before.catalogs, after.catalogs)
        patch_tools(self._editor, before.tools, after.tools)
        patch_roots(self._editor, before.roots, after.roots)
        self._patch_policy()
        return self._editor.result()

    def _writes_adjacent(self) -> bool:
        """Whether new kinds are written as ``{ type, value }``: where the author does so, or in a file of Pattern's."""
        rules = [
            item
            for agent_id in self._before.agents
            if (found := self._editor.find(self._agent_path(agent_id, "tool_rules")))
            for item in found.elements[:20]
        ]
        kinds = [rule.members["rule_type"] for rule in rules if "rule_type" in rule.members]
        return any("type" in kind.members for kind in kinds) or (self._pattern and not kinds)

    def _agent_path(self, agent_id: str, *more: str) -> RawPath:
        return more if self._pattern else ("agents", agent_id, *more)

    def _scalars(self, path: RawPath, pairs: Mapping[str, tuple[object, object]]) -> None:
        changes = {key: REMOVED if new is None else new for key, (old, new) in pairs.items() if old != new}
        self._editor.set_members(path, changes)

    def _patch_agents(self) -> None:
        old, new = self._before.agents, self._after.agents
        renamed = renamed_agents(self._before, self._after)
        for agent_id, agent in old.items():
            if agent_id in renamed:
                self._editor.rename(("agents", agent_id), renamed[agent_id])
                self._patch_agent(("agents", agent_id), agent, new[renamed[agent_id]])
            elif agent_id in new:
                self._patch_agent(("agents", agent_id), agent, new[agent_id])
            else:
                self._editor.remove(("agents", agent_id))
        for agent_id, agent in new.items():
            if agent_id not in old and agent_id not in renamed.values():
                self._add_agent(agent)

    def _add_agent(self, agent: Agent) -> None:
        agents = self._editor.find(("agents",))
        if agents is not None and agents.kind is Kind.INLINE:
            rules = [plain_rule(rule, adjacent=self._adjacent) for rule in agent.tool_rules]
            data = plain_agent(agent) | ({"tool_rules": rules} if rules else {})
            self._editor.set_members(("agents",), {agent.agent_id: data})
        else:
            self._editor.append_blocks(("agents",), list(agent_blocks(agent, adjacent=self._adjacent)))

    def _patch_agent(self, path: RawPath, old: Agent, new: Agent) -> None:
        if old == new:
            return
        self._scalars(path, {"description": (old.description or None, new.description or None)})
        set_words(self._editor, (*path, "tools"), old.tools, new.tools)
        if not self._pattern:
            set_words(self._editor, (*path, "sources"), old.sources, new.sources)
            self._scalars(path, {"user_id": (old.user_id, new.user_id)})
            patch_capabilities(self._editor, (*path, "capabilities"), old.capabilities, new.capabilities)
        self._verdicts((*path, "approvals"), old.approvals, new.approvals)
        self._rules((*path, "tool_rules"), old.tool_rules, new.tool_rules)

    def _rules(self, path: RawPath, old: tuple[ToolRule, ...], new: tuple[ToolRule, ...]) -> None:
        self._editor.edit_list(
            path,
            old,
            new,
            plain=lambda rule: plain_rule(rule, adjacent=self._adjacent),
            change=self._change_rule,
        )

    def _verdicts(self, path: RawPath, old: Mapping[str, Verdict], new: Mapping[str, Verdict]) -> None:
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
        self._scalars(
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
        """Change the payload alone, where the kind stays and the payload is one written value."""
        item = self._editor.find(path)
        if old.kind != new.kind or item is None:
            return False
        place = (*path, "value" if "type" in item.members else new.kind)
        payload = item.members.get(str(place[-1]))
        if payload is None or self._change_members(place, payload, old, new):
            return payload is not None
        if payload.kind not in VALUES:
            return False
        written, kind = written_value(self._editor, payload), new.rule_type
        if isinstance(kind, AllowedOperations) and isinstance(written, list):
            names: list[str] = [str(name) for name in written]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            kept = [name for name in names if name in kind.operations]
            self._editor.edit_words(place, names, [*kept, *sorted(kind.operations.difference(names))])
        elif isinstance(kind, Cooldown | Periodic):
            self._editor.set_value(payload, duration_like(written, kind.seconds))
        else:
            self._editor.set_value(payload, plain_payload(kind))
        return True

    def _change_members(self, place: RawPath, payload: Item, old: ToolRule, new: ToolRule) -> bool:
        """Change only what differs inside a payload that is a table."""
        before, after = old.rule_type, new.rule_type
        if isinstance(before, RateLimit) and isinstance(after, RateLimit):
            per = written_duration(self._editor, (*place, "per"), after.per_s)
            self._scalars(place, {"calls": (before.calls, after.calls)})
            self._scalars(place, {"per": (None, per)} if before.per_s != after.per_s else {})
            return True
        if not isinstance(before, ArgumentConstraints) or not isinstance(after, ArgumentConstraints):
            return False
        if not before.fields.keys() & after.fields.keys() or list(before.fields) != list(payload.members):
            return False
        gone = {name: REMOVED for name in before.fields if name not in after.fields}
        changed = {
            n: schema for n, schema in after.fields.items() if n not in before.fields or before.fields[n] != schema
        }
        self._editor.set_members(place, {**gone, **changed})
        return True

    def _patch_defaults(self, old: Defaults, new: Defaults) -> None:
        path: RawPath = ("defaults",)
        changes: dict[str, object] = {}
        if old.unlisted_tools != new.unlisted_tools:
            changes["unlisted_tools"] = str(new.unlisted_tools)
        if old.new_tools != new.new_tools:
            changes["new_tools"] = new.new_tools
        if old.max_output_bytes != new.max_output_bytes:
            changes["max_output_bytes"] = new.max_output_bytes
        if old.timeout_s != new.timeout_s:
            changes["timeout"] = written_duration(self._editor, (*path, "timeout"), new.timeout_s)
        if self._editor.find(path) is None and old.approvals != new.approvals:
            self._editor.set_members(path, changes | {"approvals": plain_approvals(new.approvals)})
            return
        self._editor.set_members(path, changes)
        self._verdicts((*path, "approvals"), old.approvals, new.approvals)

    def _patch_sources(self) -> None:
        old, new = self._before.sources, self._after.sources
        foreign = {s.source_id for s in old if (self._places.source_path(s.source_id) or ("",))[0] == "data_sources"}
        self._editor.edit_list(
            ("sources",),
            [source for source in old if source.source_id not in foreign],
            [source for source in new if source.source_id not in foreign],
            plain=self._inline_source,
            blocks=lambda source: list(source_blocks(source, adjacent=self._adjacent)),
            change=self._change_source,
            key=lambda source: source.source_id,
        )
        for source in old:
            if source.source_id in foreign:
                self._patch_data_source(source, self._after.source(source.source_id))

    def _inline_source(self, source: Source) -> Mapping[str, object]:
        rules = [plain_permission_rule(rule) for rule in source.permission_rules]
        required = [plain_rule(rule, adjacent=self._adjacent) for rule in source.required_tools]
        lists = {"permission_rules": rules, "required_tools": required}
        return plain_source(source) | {key: rows for key, rows in lists.items() if rows}

    def _change_source(self, path: RawPath, old: Source, new: Source) -> None:
        self._scalars(path, {"id": (old.source_id, new.source_id), "base_path": (old.base_path, new.base_path)})
        self._scalars(path, {"watch": (old.watch, new.watch)})
        self._change_levels(path, old, new)
        self._rules((*path, "required_tools"), old.required_tools, new.required_tools)

    def _change_levels(self, path: RawPath, old: Source, new: Source) -> None:
        level = (str(old.default_permission), str(new.default_permission))
        sizes = (old.max_file_bytes, new.max_file_bytes)
        self._scalars(path, {"default_permission": level, "max_file_bytes": sizes})
        self._editor.edit_list(
            (*path, "permission_rules"),
            old.permission_rules,
            new.permission_rules,
            plain=plain_permission_rule,
            change=self._change_permission_rule,
        )

    def _change_permission_rule(self, path: RawPath, old: PermissionRule, new: PermissionRule) -> None:
        level = (str(old.permission), str(new.permission))
        comment = REMOVED if new.comment is None else new.comment
        self._scalars(path, {"pattern": (old.pattern, new.pattern), "permission": level})
        if old.comment != new.comment:
            self._editor.set_members(path, {"comment": comment})

    def _patch_data_source(self, old: Source, new: Source | None) -> None:
        path = self._places.source_path(old.source_id) or ("data_sources", old.source_id)
        paths = self._editor.find(path[:-1])
        if old == new:
            return
        if paths is None or len(paths.elements) != 1:
            raise NotSupported(f"`data_sources.{path[1]}` holds several paths, which can only change together")
        if new is None:
            self._editor.remove(path[:2])
            return
        if old.required_tools != new.required_tools:
            raise NotSupported(f"`data_sources.{path[1]}` cannot hold required tools: use `[[sources]]`")
        if old.watch != new.watch:
            raise NotSupported(f"`data_sources.{path[1]}` cannot be watched: use `[[sources]]`")
        if old.base_path != new.base_path:
            self._editor.set_value(paths.elements[0], new.base_path)
        self._change_levels(path[:2], old, new)

    def _patch_policy(self) -> None:
        before, after = self._before, self._after
        if (before.default, before.rules) == (after.default, after.rules):
            return
        path: RawPath = ("policy",)
        if before.default is not after.default:
            self._editor.set_members(path, {"default": str(after.default)})
        self._editor.edit_list(
            (*path, "rules"),
            before.rules,
            after.rules,
            plain=plain_policy_rule,
            change=self._change_policy_rule,
            key=lambda rule: rule.name,
        )

    def _change_policy_rule(self, path: RawPath, old: PolicyRule, new: PolicyRule) -> None:
        before, after = plain_policy_rule(old), plain_policy_rule(new)
        words = {key for key in ("agents", "tools", "operations") if key in before and key in after}
        for key in words:
            set_words(self._editor, (*path, key), getattr(old, key), getattr(new, key))
        self._scalars(path, {key: (before.get(key), after.get(key)) for key in {**before, **after} if key not in words})

    def _refuse_foreign(self) -> None:
        after = self._after
        agents = list(after.agents.values())
        if len(agents) != 1 or after.name is not None or after.description is not None or after.tools:
            raise NotSupported("a file in Pattern's shape holds one agent and nothing about tools")
        if after.catalogs:
            raise NotSupported("a file in Pattern's shape holds no catalogs")
        if after.roots.folders:
            raise NotSupported("a file in Pattern's shape holds no roots")
        if agents[0].tools == ():
            raise NotSupported(
                "a file in Pattern's shape cannot say that an agent has no tool: an empty list means all"
            )
        if agents[0].sources is not None or agents[0].user_id is not None or agents[0].capabilities:
            raise NotSupported("a file in Pattern's shape cannot say which sources, user or capabilities an agent has")
        if after.rules or after.default is not Verdict.ALLOW:
            raise NotSupported("a file in Pattern's shape holds no policy rules")

    def _patch_pattern_agent(self) -> None:
        old, new = next(iter(self._before.agents.values())), next(iter(self._after.agents.values()))
        if old.agent_id != new.agent_id:
            self._editor.set_members((), {"name": new.agent_id})
        self._patch_agent((), old, new)
