"""Changes a policy file as little as possible so that it says another policy; a wrong result is never written.

Comments, order, quoting, line endings and the author's spelling stay; an edit touches only its own lines. The result is
read again: if it is not exactly the wanted policy, nothing is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace

from gatewright.base.errors import NotSupported, RawPath, WeMustFix
from gatewright.policy.composition import Composition
from gatewright.policy.document import Agent, Dialect, MemoryWeights, Policy, Questions, ShellSettings, Source, Web
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.editor import Editor
from gatewright.policyfile.names import Places
from gatewright.policyfile.patchagent import AgentPatch, change_table, edit_rows, in_order
from gatewright.policyfile.readagent import PATTERN_ENDPOINTS, plain_agent, plain_source
from gatewright.policyfile.reader import value_of
from gatewright.policyfile.readrule import plain_rule
from gatewright.policyfile.readworkspace import WorkspaceTable
from gatewright.policyfile.render import agent_blocks, block, source_blocks
from gatewright.policyfile.splice import (
    AGENTS,
    CATALOGS,
    COMPOSITION_STEPS,
    COMPOSITIONS,
    LEVELS,
    POLICY_RULES,
    SOURCES,
    pairing,
)
from gatewright.policyfile.table import plain

Read = Callable[[str], Policy | None]
"""Returns the policy that a text says."""


def patch_text(text: str, before: Policy, after: Policy, read: Read | None = None) -> str:
    """Edit ``text``, which says ``before``, so that it says ``after``; for equal policies the text stays byte for byte.

    ``read``: the reader of a caller who needs the new policy anyway, so that the proof does not read the text a second
    time. Raises NotSupported for what the file's dialect cannot express, WeMustFix instead of returning anything wrong.
    """
    if before.is_same(after):
        return text
    if before.dialect is not after.dialect:
        raise NotSupported("a file keeps its dialect: export the policy instead")
    renamed = _with_new_names(before, after)
    text, before = _patch_once(text, before, renamed), renamed
    try:
        return _patch_once(text, before, after, read)
    except WeMustFix:
        for step in stages(before, after):
            text, before = _patch_once(text, before, step), step
        return text


def _patch_once(text: str, before: Policy, after: Policy, read: Read | None = None) -> str:
    if before.is_same(after):
        return text
    patched = _Patch(text, before, after).run()
    first = next(iter(after.agents), "")
    said = None if read is None else read(patched)
    if said != after:
        said = value_of(patched, first)
    if said is not None and said == after and not said.is_same(after):
        patched = in_order(patched, list(after.agents))
        said = value_of(patched, first)
    if said != after:
        raise WeMustFix("the edited policy file would not say what was meant, so it was not written")
    return patched


def _with_new_names(before: Policy, after: Policy) -> Policy:
    """Give the agents of ``before`` their new names, since additions to an agent are written under its name.

    Removed agents are left out, since others may have taken their names.
    """
    old, new = list(before.agents.values()), list(after.agents.values())
    pairs = pairing(old, new, AGENTS, related=_is_related(before, after)).origins
    names = {old[i].agent_id: new[j].agent_id for j, i in pairs.items()}
    if before.dialect is Dialect.PATTERN or all(name == agent_id for agent_id, name in names.items()):
        return before
    agents = [
        replace(
            agent,
            agent_id=names[agent.agent_id],
            sub_agents=tuple(names.get(name, name) for name in agent.sub_agents),
        )
        for agent in old
        if agent.agent_id in names
    ]
    rules = [
        rule if rule.agents is None else replace(rule, agents=tuple(names.get(name, name) for name in rule.agents))
        for rule in before.rules
    ]
    return replace(before, agents={agent.agent_id: agent for agent in agents}, rules=tuple(rules))


def _is_related(before: Policy, after: Policy) -> bool:
    """Tell whether one policy came from the other by edits: then some row of both has the same identity."""
    return not _identities(before).isdisjoint(_identities(after))


def _identities(policy: Policy) -> set[int]:
    rows = (*policy.agents.values(), *policy.sources, *policy.catalogs, *policy.rules, *policy.compositions)
    return {row.identity for row in rows}


def _names(policy: Policy) -> dict[str, str]:
    named = {"name": policy.name, "description": policy.description}
    return {key: text for key, text in named.items() if text is not None}


class _Patch:
    def __init__(self, text: str, before: Policy, after: Policy) -> None:
        self._before, self._after = before, after
        self._pattern = before.dialect is Dialect.PATTERN
        self._editor = Editor(text, related=_is_related(before, after))
        self._places = Places(text, "", before.dialect)
        rules = self._editor.find(("tool_rules",))
        kinds = [rule.members["rule_type"] for rule in rules.elements if "rule_type" in rule.members] if rules else []
        # new kinds are written as Pattern reads them if all others are
        self._adjacent = self._pattern and (not kinds or any("type" in kind.members for kind in kinds))
        agents, sources = list(before.agents.values()), before.sources
        self._agents = pairing(agents, list(after.agents.values()), AGENTS, related=self._editor.related).origins
        kept = pairing(sources, after.sources, SOURCES, related=self._editor.related).origins
        made, composed = before.compositions, after.compositions
        self._renamed_tools = {
            made[i].name: composed[j].name
            for j, i in pairing(made, composed, COMPOSITIONS, related=self._editor.related).origins.items()
            if made[i].name != composed[j].name
        }
        self._renamed_agents = {
            agents[i].agent_id: agent.agent_id
            for j, agent in enumerate(after.agents.values())
            if (i := self._agents.get(j)) is not None
        }
        self._agent = AgentPatch(
            self._editor,
            adjacent=self._adjacent,
            renamed={
                "sources": {sources[i].source_id: after.sources[j].source_id for j, i in kept.items()},
                "tools": self._renamed_tools,
            },
        )

    def run(self) -> str:
        before, after = self._before, self._after
        if self._pattern:
            self._refuse_foreign()
            old, new = next(iter(self._before.agents.values())), next(iter(self._after.agents.values()))
            if old.agent_id != new.agent_id:
                self._editor.set_members((), {"name": new.agent_id})
            if old.tool_rules and not new.tool_rules and self._editor.find(("data_sources",)) is None:
                self._editor.set_members((), {"tool_rules": []})  # these make the file one of Pattern's
                old = replace(old, tool_rules=())
            self._agent.patch((), old, new)
        else:
            change_table(self._editor, (), _names(before), _names(after))
            self._patch_agents()
        change_table(self._editor, ("defaults",), plain(before.defaults, whole=True), plain(after.defaults, whole=True))
        self._patch_sources()
        edit_rows(self._editor, ("catalogs",), before.catalogs, after.catalogs, CATALOGS, plain)
        self._patch_compositions()
        self._patch_tools()
        change_table(self._editor, ("workspace",), plain(before, WorkspaceTable), plain(after, WorkspaceTable))
        if before.default is not after.default:
            self._editor.set_members(("policy",), {"default": str(after.default)})
        renamed = {"agents": self._renamed_agents, "tools": self._renamed_tools}
        edit_rows(self._editor, ("policy", "rules"), before.rules, after.rules, POLICY_RULES, plain, renamed)
        return self._editor.result()

    def _patch_agents(self) -> None:
        old, new = self._before.agents, self._after.agents
        kept = self._renamed_agents
        for agent_id, agent in old.items():
            if agent_id not in kept:
                self._editor.remove(("agents", agent_id), comments=True)
                continue
            if kept[agent_id] != agent_id:
                self._editor.rename(("agents", agent_id), kept[agent_id])
            self._agent.patch(("agents", agent_id), agent, new[kept[agent_id]])
        named = {name: agent_id for agent_id, name in kept.items()}
        below: str | None = None
        added: list[tuple[Agent, str | None]] = []
        for agent in reversed(list(new.values())):
            if agent.agent_id in named:
                below = named[agent.agent_id]
            else:
                added.append((agent, below))
        for agent, above in reversed(added):
            rules = [plain_rule(rule, adjacent=self._adjacent) for rule in agent.tool_rules]
            data = plain_agent(agent) | ({"tool_rules": rules} if rules else {})
            blocks = list(agent_blocks(agent, adjacent=self._adjacent))
            self._editor.add_table(("agents",), agent.agent_id, data, blocks, above)

    def _patch_sources(self) -> None:
        old, new = self._before.sources, self._after.sources
        foreign = {s.source_id for s in old if (self._places.source_path(s.source_id) or ("",))[0] == "data_sources"}
        self._editor.edit_list(
            ("sources",),
            [source for source in old if source.source_id not in foreign],
            [source for source in new if source.source_id not in foreign],
            SOURCES,
            plain=self._inline_source,
            blocks=lambda source: list(source_blocks(source, adjacent=self._adjacent)),
            change=self._change_source,
        )
        for source in old:
            if source.source_id in foreign:
                self._patch_data_source(source, self._after.source(source.source_id))

    def _inline_source(self, source: Source) -> Mapping[str, object]:
        rules = [plain(rule) for rule in source.permission_rules]
        required = [plain_rule(rule, adjacent=self._adjacent) for rule in source.required_tools]
        lists = {"permission_rules": rules, "required_tools": required}
        return plain_source(source) | {key: rows for key, rows in lists.items() if rows}

    def _change_source(self, path: RawPath, old: Source, new: Source) -> None:
        change_table(self._editor, path, plain_source(old, whole=True), plain_source(new, whole=True))
        self._change_levels(path, old, new)
        self._agent.rules((*path, "required_tools"), old.required_tools, new.required_tools)

    def _change_levels(self, path: RawPath, old: Source, new: Source) -> None:
        rules = (old.permission_rules, new.permission_rules)
        edit_rows(self._editor, (*path, "permission_rules"), *rules, LEVELS, plain)

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
        new = replace(new, source_id=old.source_id, base_path=old.base_path)
        change_table(self._editor, path[:2], plain_source(old, whole=True), plain_source(new, whole=True))
        self._change_levels(path[:2], old, new)

    def _patch_compositions(self) -> None:
        self._editor.edit_list(
            ("compositions",),
            self._before.compositions,
            self._after.compositions,
            COMPOSITIONS,
            plain=plain,
            blocks=lambda composition: [block(("compositions", 0), plain(composition))],
            change=self._change_composition,
        )

    def _change_composition(self, path: RawPath, old: Composition, new: Composition) -> None:
        before, after = plain(old), plain(new)
        del before["steps"], after["steps"]
        change_table(self._editor, path, before, after)
        edit_rows(self._editor, (*path, "steps"), old.steps, new.steps, COMPOSITION_STEPS, plain)

    def _patch_tools(self) -> None:
        old, new = self._before.tools, self._after.tools
        kept = {name: self._renamed_tools.get(name, name) for name in old}
        for name, other in kept.items():
            if other not in new or (other != name and other in old):
                kept[name] = name
            elif other != name:
                self._editor.rename(("tools", name), other)
        for name, settings in old.items():
            path: RawPath = ("tools", name)
            after = new.get(kept[name])
            if after is None:
                self._editor.remove(path, comments=True)
            elif settings != after:
                data = plain(after)
                if not data and self._editor.is_only_dotted(path):
                    data["scrub"] = True
                change_table(self._editor, path, plain(settings), data)
        written = set(kept.values())
        for name, settings in new.items():
            if name not in written:
                data = plain(settings)
                self._editor.add_table(("tools",), name, data, [block(("tools", name), data)], None)

    def _refuse_foreign(self) -> None:
        after = self._after
        agents = list(after.agents.values())
        if len(agents) != 1 or after.name is not None or after.description is not None or after.tools:
            raise NotSupported("a file in Pattern's shape holds one agent and nothing about tools")
        if after.catalogs or after.compositions:
            raise NotSupported("a file in Pattern's shape holds no catalogs and no compositions")
        if after.roots.folders or after.shell != ShellSettings() or after.endpoints != PATTERN_ENDPOINTS:
            raise NotSupported("a file in Pattern's shape holds no roots, no shell and no endpoints")
        if after.memory != MemoryWeights():
            raise NotSupported("a file in Pattern's shape says nothing of how notes are ranked")
        if after.questions != Questions():
            raise NotSupported("a file in Pattern's shape says nothing of how long a question waits")
        if after.closed:
            raise NotSupported("a file in Pattern's shape says nothing of places that are closed")
        if after.web != Web():
            raise NotSupported("a file in Pattern's shape says nothing of the web")
        if agents[0].tools == ():
            raise NotSupported(
                "a file in Pattern's shape cannot say that an agent has no tool: an empty list means all"
            )
        if agents[0].sources is not None or agents[0].user_id is not None or agents[0].capabilities:
            raise NotSupported("a file in Pattern's shape cannot say which sources, user or capabilities an agent has")
        if after.rules or after.default is not Verdict.ALLOW:
            raise NotSupported("a file in Pattern's shape holds no policy rules")


def stages(before: Policy, after: Policy) -> Iterator[Policy]:
    """Policies between the two, each one change away from the one before it, for edits that meet in one place."""
    policy = before
    for name in [field.name for field in fields(Policy)]:
        old, new = getattr(before, name), getattr(after, name)
        values: Iterable[object] = (new,)
        if name in {"agents", "tools"}:
            values = _row_steps(old, new)
        elif name == "sources":
            sides = ({source.source_id: source for source in side.sources} for side in (before, after))
            values = (tuple(rows.values()) for rows in _row_steps(*sides))
        for value in values:
            policy = replace(policy, **{name: value})
            yield policy


def _row_steps(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The rows change one after the other, first the removed ones; of an agent and a source one field after the
    other.
    """
    rows = dict(old)
    for key in [key for key in old if key not in new]:
        del rows[key]
        yield dict(rows)
    for key, row in new.items():
        held = rows.get(key)
        if isinstance(held, Agent | Source) and held != row:
            for name in [field.name for field in fields(held)]:
                rows[key] = held = replace(held, **{name: getattr(row, name)})
                yield dict(rows)
        rows[key] = row
        yield dict(rows)
    yield new
