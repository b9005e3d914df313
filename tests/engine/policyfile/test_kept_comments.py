"""Whatever is edited, in whatever order: a comment goes only with what it belongs to, and agents keep their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import EditRefused, NotSupported
from gatewright.policy import agentedit, policyedit, rights, ruleedit, sourceedit
from gatewright.policy.agentedit import Along, Granted, copy_rights
from gatewright.policy.capability import ClockRead, EnvRead, FsRead, NetRead, kind_of
from gatewright.policy.document import (
    Dialect,
    MemoryWeights,
    PermissionRule,
    Policy,
    Questions,
    Roots,
    ShellBackend,
    ShellSettings,
    Source,
    ToolSettings,
    Web,
)
from gatewright.policy.edit import AgentChange, Edit, Field, ToolSettingsChange, apply, inverse
from gatewright.policy.rights import Preset, preset_edit
from gatewright.policy.rule import Cooldown, MaxCalls, PolicyRule, RateLimit
from gatewright.policy.ruleedit import RulePosition
from gatewright.policy.verdict import DiscordEndpoint, Endpoints, Permission, SafetyTier, Verdict
from gatewright.workspace.policytext import PolicyText
from tests.engine.policyfile.catalog import FACTS, FILE_OPERATIONS, KNOWN, load
from tests.engine.policyfile.commentmap import comments_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewright.base.errors import RawPath
    from gatewright.base.jsonvalue import JsonValue

FILES = sorted((Path(__file__).parent / "written").glob("*.toml"))
ENDINGS: dict[str, Callable[[str], str]] = {
    "lf": str,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "bom": lambda text: "\ufeff" + text,
}
NAMES = ("a", "archivist", "new", "solo", "z", "other")
LEVELS = tuple(Permission)
Order = Sequence[int | None]
"""For each row after an edit the place that it had before; None for a new one."""
_labels = count(1)


@dataclass(frozen=True)
class Labels:
    """Which row is which, told by what each edit does and by nothing that the program keeps."""

    agents: dict[str, int]
    sources: dict[str, int]
    rules: dict[str, int]
    lists: dict[tuple[int, str], list[int]]

    @staticmethod
    def of_new(policy: Policy) -> Labels:
        return Labels({}, {}, {}, {}).after(Policy(), policy, Done(Edit("", ())))

    def after(self, before: Policy, after: Policy, done: Done) -> Labels:
        agents = _named(self.agents, after.agents, done, "agents")
        sources = _named(self.sources, [source.source_id for source in after.sources], done, "sources")
        rules = _named(self.rules, [rule.name for rule in after.rules], done, "rules")
        old = {self.agents[agent.agent_id]: agent for agent in before.agents.values()}
        old_sources = {self.sources[source.source_id]: source for source in before.sources}
        lists: dict[tuple[int, str], list[int]] = {}
        rows = [(agents[agent.agent_id], agent, old) for agent in after.agents.values()]
        for label, row, held in (*rows, *((sources[s.source_id], s, old_sources) for s in after.sources)):
            for what in ("tool_rules", "capabilities", "permission_rules", "required_tools"):
                now, was = getattr(row, what, ()), getattr(held.get(label), what, ())
                order = done.order if what == done.what and now != was else None
                lists[label, what] = _placed(self.lists.get((label, what), []), was, now, order)
        return Labels(agents, sources, rules, lists)

    def of(self, row: RawPath, policy: Policy) -> object:
        """The label of a row of the file that says this policy."""
        match row:
            case ("tool_rules", int(index)):
                return self.of(("agents", next(iter(policy.agents)), "tool_rules", index), policy)
            case ("agents", str(name)):
                return self.agents[name]
            case ("agents", str(name), str(what), int(index)):
                return self.lists[self.agents[name], what][index]
            case ("sources", int(at)):
                return self.sources[policy.sources[at].source_id]
            case ("sources", int(at), str(what), int(index)):
                return self.lists[self.sources[policy.sources[at].source_id], what][index]
            case ("policy", "rules", int(index)):
                return self.rules[policy.rules[index].name]
            case _:
                return row

    def living(self, policy: Policy) -> set[object]:
        rows = [label for held in self.lists.values() for label in held]
        tools = [("tools", name) for name in policy.tools]
        return {(), *tools, *self.agents.values(), *self.sources.values(), *self.rules.values(), *rows}

    def word(self, part: tuple[str, ...], now: Labels) -> tuple[str, ...]:
        """A word of a list of agents or sources, as what it names is called now."""
        held = {"agents": (self.agents, now.agents), "sources": (self.sources, now.sources)}
        if len(part) != 2 or part[0] not in held:
            return part
        before, after = held[part[0]]
        label = before.get(part[1].strip('"'))
        return next(((part[0], f'"{name}"') for name, one in after.items() if one == label), part)


@dataclass(frozen=True)
class Done:
    """An edit; of one kind of rows what it renames, or where it puts those of a list."""

    edit: Edit
    what: str = ""
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    order: Order | None = None


def _named(labels: dict[str, int], names: Iterable[str], done: Done, what: str) -> dict[str, int]:
    back = {new: old for old, new in done.renamed.items()} if done.what == what else {}
    return {name: labels.get(back.get(name, name)) or next(_labels) for name in names}


def _placed(labels: list[int], was: Sequence[object], now: Sequence[object], order: Order | None) -> list[int]:
    if order is not None:
        return [next(_labels) if i is None else labels[i] for i in order]
    if len(now) >= len(was):
        return [*labels, *(next(_labels) for _ in now[len(was) :])]
    found: list[int] = []
    rest = list(zip(labels, was, strict=True))
    for row in now:
        while rest and rest[0][1] != row:
            rest.pop(0)
        found.append(rest.pop(0)[0])
    return found


# the edits of the app


def _agent(draw: st.DrawFn, policy: Policy) -> str:
    if not policy.agents:
        raise EditRefused("no agent")
    return draw(st.sampled_from(list(policy.agents)))


def _add_agent(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(agentedit.add_agent(policy, draw(st.sampled_from(NAMES)), draw(st.sampled_from(["", "a new one"]))))


def _duplicate_agent(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(agentedit.duplicate_agent(policy, _agent(draw, policy), draw(st.sampled_from(NAMES))))


def _rename_agent(draw: st.DrawFn, policy: Policy) -> Done:
    old, new = _agent(draw, policy), draw(st.sampled_from(NAMES))
    return Done(agentedit.rename_agent(policy, old, new), "agents", {old: new})


def _remove_agents(draw: st.DrawFn, policy: Policy) -> Done:
    gone = [_agent(draw, policy) for _ in range(draw(st.integers(1, 2)))]
    return Done(agentedit.remove_agents(policy, gone))


def _describe_agent(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(agentedit.describe_agent(policy, _agent(draw, policy), draw(st.sampled_from(["", "said"]))))


def _list_sources(draw: st.DrawFn, policy: Policy) -> Done:
    agent = policy.agents[_agent(draw, policy)]
    ids = [source.source_id for source in policy.sources]
    listed = draw(st.none() | st.lists(st.sampled_from(ids), unique=True).map(tuple)) if ids else None
    return Done(Edit("attach", (AgentChange(agent, replace(agent, sources=listed)),)))


def _tick_tool(draw: st.DrawFn, policy: Policy) -> Done:
    tool = draw(st.sampled_from(["file", "block", "memo", "calc"]))
    return Done(rights.tick_tool(policy, FACTS, _agent(draw, policy), tool, on=draw(st.booleans())))


def _tick_operations(draw: st.DrawFn, policy: Policy) -> Done:
    names = draw(st.lists(st.sampled_from(FILE_OPERATIONS), min_size=1, max_size=4, unique=True))
    return Done(rights.tick_operations(policy, FACTS, _agent(draw, policy), "file", names, on=draw(st.booleans())))


def _reset_tool(draw: st.DrawFn, policy: Policy) -> Done:
    agent_id, tool = _agent(draw, policy), draw(st.sampled_from(["file", "block"]))
    edit = rights.reset_tools(policy, FACTS, agent_id, (tool,))
    return Done(edit)


def _ask_first(draw: st.DrawFn, policy: Policy) -> Done:
    tool, operation = draw(st.sampled_from([("file", ""), ("file", "save"), ("calc", "")]))
    return Done(rights.ask_first(policy, FACTS, _agent(draw, policy), tool, operation, on=draw(st.booleans())))


def _approval(draw: st.DrawFn, policy: Policy) -> Done:
    key, verdict = draw(st.sampled_from(["read_only", "file.save"])), draw(st.sampled_from(list(Verdict)))
    return Done(agentedit.set_approval(policy, FACTS, _agent(draw, policy), key, verdict))


def _remove_approval(draw: st.DrawFn, policy: Policy) -> Done:
    agent = policy.agents[_agent(draw, policy)]
    keys = list(agent.approvals) or ["none"]
    return Done(agentedit.remove_approval(policy, agent.agent_id, draw(st.sampled_from(keys))))


def _preset(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(preset_edit(policy, FACTS, [_agent(draw, policy)], draw(st.sampled_from(list(Preset)))))


def _limit(draw: st.DrawFn, policy: Policy) -> Done:
    limit = draw(st.sampled_from([MaxCalls(2), MaxCalls(8), Cooldown(3.0), RateLimit(4, 60.0)]))
    operations = draw(st.sampled_from([None, ["save"]]))
    return Done(ruleedit.set_limit(policy, FACTS, _agent(draw, policy), "file", limit, operations))


def _constrain(draw: st.DrawFn, policy: Policy) -> Done:
    name = draw(st.sampled_from(["path", "source"]))
    schema: JsonValue = {"pattern": "^x"}
    return Done(ruleedit.set_constraint(policy, FACTS, _agent(draw, policy), "file", name, schema, ["save"]))


def _standing(draw: st.DrawFn, policy: Policy) -> RulePosition:
    agent = policy.agents[_agent(draw, policy)]
    if not agent.tool_rules:
        raise EditRefused("no rule")
    index = draw(st.integers(0, len(agent.tool_rules) - 1))
    return RulePosition(agent.agent_id, index, agent.tool_rules[index])


def _change_rule(draw: st.DrawFn, policy: Policy) -> Done:
    standing, kind = _standing(draw, policy), draw(st.sampled_from([MaxCalls(4), Cooldown(9)]))
    if type(standing.rule.rule_type) is not type(kind):
        raise EditRefused("another kind")
    return Done(ruleedit.change_rule(policy, standing, kind))


def _remove_rule(draw: st.DrawFn, policy: Policy) -> Done:
    standing = _standing(draw, policy)
    order = [i for i in range(len(policy.agents[standing.agent_id].tool_rules)) if i != standing.index]
    return Done(ruleedit.remove_rule(policy, standing), what="tool_rules", order=order)


def _grant(draw: st.DrawFn, policy: Policy) -> Done:
    capability = draw(st.sampled_from([ClockRead(), FsRead(("more",)), NetRead(("x.org",)), EnvRead(("LANG",))]))
    return Done(agentedit.grant(policy, _agent(draw, policy), capability))


def _revoke(draw: st.DrawFn, policy: Policy) -> Done:
    agent = policy.agents[_agent(draw, policy)]
    if not agent.capabilities:
        raise EditRefused("no grant")
    index = draw(st.integers(0, len(agent.capabilities) - 1))
    order = [i for i in range(len(agent.capabilities)) if i != index]
    granted = Granted(agent.agent_id, index, agent.capabilities[index])
    return Done(agentedit.revoke(policy, granted), what="capabilities", order=order)


def _source(draw: st.DrawFn, policy: Policy) -> Source:
    if not policy.sources:
        raise EditRefused("no source")
    return draw(st.sampled_from(policy.sources))


def _levels(draw: st.DrawFn, policy: Policy, what: str) -> Done:
    source, level = _source(draw, policy), draw(st.sampled_from(LEVELS))
    places: list[int | None] = list(range(len(source.permission_rules)))
    name = source.source_id
    if what == "add" or not places:
        at = draw(st.integers(0, len(places)))
        rule = PermissionRule(draw(st.sampled_from(["n/**", "m/**", "secret/**"])), level)
        return Done(
            sourceedit.add_rule(policy, name, rule, at),
            what="permission_rules",
            order=[*places[:at], None, *places[at:]],
        )
    index = draw(st.integers(0, len(places) - 1))
    if what == "level":
        return Done(sourceedit.set_level(policy, name, index, level))
    if what == "rule":
        rule = PermissionRule(draw(st.sampled_from(["o/**", "secret/**"])), level)
        return Done(sourceedit.set_rule(policy, name, index, rule), what="permission_rules", order=places)
    if what == "remove":
        order = [i for i in places if i != index]
        return Done(sourceedit.remove_rule(policy, name, index), what="permission_rules", order=order)
    order, to = [i for i in places if i != index], draw(st.integers(0, len(places) - 1))
    order.insert(to, index)
    return Done(sourceedit.move_rule(policy, name, index, to), what="permission_rules", order=order)


def _default_level(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(sourceedit.set_default_level(policy, _source(draw, policy).source_id, draw(st.sampled_from(LEVELS))))


def _add_source(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(sourceedit.add_source(policy, Source(draw(st.sampled_from(NAMES)), "here")))


def _remove_source(draw: st.DrawFn, policy: Policy) -> Done:
    return Done(sourceedit.remove_source(policy, _source(draw, policy).source_id))


def _rename_source(draw: st.DrawFn, policy: Policy) -> Done:
    source, name = _source(draw, policy), draw(st.sampled_from(NAMES))
    after = Source(name, draw(st.sampled_from([source.base_path, "moved"])), permission_rules=source.permission_rules)
    after = replace(after, required_tools=source.required_tools)
    return Done(sourceedit.change_source(policy, source.source_id, after), "sources", {source.source_id: name})


def _policy_rules(draw: st.DrawFn, policy: Policy) -> Done:
    """As the page of policies does it; renaming changes the rest of the rule as well."""
    names = [rule.name for rule in policy.rules]
    what = draw(st.sampled_from(["add", "change", "move", "remove"]))
    if what == "add" or not names:
        rule = PolicyRule(draw(st.sampled_from(["third", "fourth"])), Verdict.DENY, tools=("calc",))
        if rule.name in names:
            raise EditRefused("named already")
        return Done(policyedit.add_rule(policy, rule, draw(st.none() | st.integers(0, len(names)))))
    at = draw(st.integers(0, len(names) - 1))
    if what == "move":
        indexes = draw(st.sets(st.integers(0, len(names) - 1), min_size=1))
        return Done(policyedit.move_rules(policy, indexes, draw(st.integers(0, len(names)))))
    if what == "remove":
        return Done(policyedit.remove_rules(policy, [at]))
    name = draw(st.sampled_from(["first", "second", names[at]]))
    if name in names and name != names[at]:
        raise EditRefused("named already")
    rule = replace(policy.rules[at], name=name, effect=Verdict.ASK, tools=("block",), operations=None, when=None)
    return Done(policyedit.change_rule(policy, at, rule), "rules", {names[at]: name})


def _field(draw: st.DrawFn, policy: Policy) -> Done:
    defaults = replace(policy.defaults, max_output_bytes=draw(st.integers(1, 9)), approvals={"calc": Verdict.ASK})
    values: dict[Field, object] = {
        "defaults": draw(st.sampled_from([defaults, policy.defaults, replace(policy.defaults, timeout_s=2.0)])),
        "default": draw(st.sampled_from(list(Verdict))),
        "roots": draw(st.sampled_from([Roots(), Roots("s"), Roots("s", vault="v"), Roots(tmp="t")])),
        "web": draw(st.sampled_from([Web(), Web(allow_private=True)])),
        "shell": draw(st.sampled_from([ShellSettings(), ShellSettings(ShellBackend.HOST, ("ls", "git"), ("rm",))])),
        "endpoints": draw(st.sampled_from([Endpoints(user=True), Endpoints(discord=DiscordEndpoint("D_TOKEN"))])),
        "memory": draw(st.sampled_from([MemoryWeights(), MemoryWeights(0.5, 0.5)])),
        "questions": draw(
            st.sampled_from([Questions(), Questions(9.0, answer_by=("slack:A",), link_base="https://a.b")])
        ),
    }
    field = draw(st.sampled_from(list(values)))
    return Done(policyedit.set_field(policy, field, values[field]))


def _tool_settings(draw: st.DrawFn, policy: Policy) -> Done:
    name = draw(st.sampled_from(["file", "calc", "memo@2"]))
    held = policy.tools.get(name)
    changed = replace(
        held or ToolSettings(), timeout_s=draw(st.sampled_from([None, 2.0])), safety_tier=SafetyTier.PRIVILEGED
    )
    after = draw(st.sampled_from([changed, changed, None]))
    return Done(Edit("settings", (ToolSettingsChange(name, held, after),)))


def _copy_rights(draw: st.DrawFn, policy: Policy) -> Done:
    """Of an agent without rules, so that it is plain which ones go."""
    plain = [agent.agent_id for agent in policy.agents.values() if not agent.tool_rules]
    if not plain:
        raise EditRefused("every agent has rules")
    along = Along(sources=draw(st.booleans()))
    return Done(copy_rights(policy, draw(st.sampled_from(plain)), [_agent(draw, policy)], along))


EDITS: tuple[Callable[[st.DrawFn, Policy], Done], ...] = (
    _add_agent,
    _duplicate_agent,
    _rename_agent,
    _remove_agents,
    _describe_agent,
    _list_sources,
    _tick_tool,
    _tick_operations,
    _reset_tool,
    _ask_first,
    _approval,
    _remove_approval,
    _preset,
    _limit,
    _constrain,
    _change_rule,
    _remove_rule,
    _grant,
    _revoke,
    *(
        lambda draw, policy, what=what: _levels(draw, policy, what)
        for what in ("add", "level", "rule", "remove", "move")
    ),
    _default_level,
    _add_source,
    _remove_source,
    _rename_source,
    _policy_rules,
    _field,
    _tool_settings,
    _copy_rights,
)


@dataclass
class Desk:
    """A policy that is edited, what it was before each edit, and what its file says of comments."""

    text: PolicyText
    policy: Policy
    labels: Labels
    path: Path
    done: list[tuple[Policy, Labels, Edit]] = field(default_factory=list[tuple[Policy, Labels, Edit]])
    undone: list[tuple[Policy, Labels, Edit]] = field(default_factory=list[tuple[Policy, Labels, Edit]])

    @classmethod
    def of(cls, path: Path) -> Desk:
        loaded = load(path.read_bytes().decode(), str(path))
        assert loaded.policy is not None, "\n".join(map(str, loaded.problems))
        desk = cls(PolicyText(path, loaded, loaded.policy, KNOWN), loaded.policy, Labels.of_new(loaded.policy), path)
        desk.remember()
        return desk

    def remember(self) -> None:
        """What the comments of the saved text belong to."""
        found = comments_of(self.text.saved)
        self._labels = self.labels
        self._comments = {
            name: (self.labels.of(o.row, self.policy), o.part, _name(o.row, self.policy)) for name, o in found.items()
        }

    def edit(self, done: Done) -> None:
        after = apply(self.policy, done.edit)
        if _fault(self.text, after):
            return
        labels = self.labels.after(self.policy, after, done)
        self.done.append((self.policy, self.labels, done.edit))
        self.policy, self.labels = after, labels
        self.undone.clear()

    def undo(self) -> None:
        if self.done:
            policy, labels, edit = self.done.pop()
            self.undone.append((self.policy, self.labels, edit))
            self.policy, self.labels = apply(self.policy, inverse(edit)), labels
            assert self.policy.is_same(policy)

    def redo(self) -> None:
        if self.undone:
            policy, labels, edit = self.undone.pop()
            self.done.append((self.policy, self.labels, edit))
            self.policy, self.labels = apply(self.policy, edit), labels
            assert self.policy.is_same(policy)

    def look(self) -> None:
        """The text says the policy, and what is left of it has its comments."""
        text = self.text.of(self.policy)
        now, living = comments_of(text), self.labels.living(self.policy)
        parts = {(self.labels.of(owner.row, self.policy), owner.part) for owner in parts_of(text)}
        for name, (label, part, called) in self._comments.items():
            where = now.get(name)
            row = None if where is None else self.labels.of(where.row, self.policy)
            if label not in living:
                astray = where is not None and not where.part and row in living and row != ()
                assert not astray or (where and _name(where.row, self.policy) == called), (name, where, text)
            elif not part or (label, self._labels.word(part, self.labels)) in parts:
                assert where is not None, (name, label, part, text)
                assert label in {(), row}, (name, label, where, text)

    def save(self) -> None:
        self.look()
        self.text.save(self.policy)
        self.remember()

    def reload(self) -> None:
        self.save()
        loaded = load(self.path.read_bytes().decode(), str(self.path))
        if loaded.policy is None:
            return
        assert loaded.policy.is_same(self.policy), loaded.text
        self.policy, self.text = loaded.policy, PolicyText(self.path, loaded, loaded.policy, KNOWN)
        self.done.clear()
        self.undone.clear()


def _name(row: RawPath, policy: Policy) -> object:
    """What a row is called; one that comes where one of that name went may be taken for it."""
    match row:
        case ("tool_rules", int(index)):
            return _name(("agents", next(iter(policy.agents)), "tool_rules", index), policy)
        case ("agents", str(name), str(what), int(index)):
            if what == "capabilities":
                return kind_of(policy.agents[name].capabilities[index])
            rule = policy.agents[name].tool_rules[index]
            return rule.tool_name, rule.kind
        case ("sources", int(at), "permission_rules", int(index)):
            return policy.sources[at].permission_rules[index].pattern
        case ("sources", int(at)):
            return policy.sources[at].source_id
        case ("policy", "rules", int(index)):
            return policy.rules[index].name
        case _:
            return row


def _fault(text: PolicyText, policy: Policy) -> bool:
    """Whether the file cannot say it: the app refuses such an edit."""
    try:
        text.of(policy)
    except NotSupported:
        return True
    return policy.dialect is Dialect.PATTERN and not policy.agents


DRAWN = {edit: st.composite(edit) for edit in EDITS}
WHATS = st.sampled_from([*EDITS, *EDITS, "undo", "undo", "redo", "look", "look", "save", "reload"])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_comments_and_order_outlive_any_edits(file: Path, ending: str, data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / file.name
    path.write_bytes(ENDINGS[ending](file.read_text()).encode())
    desk = Desk.of(path)
    for _ in range(data.draw(st.integers(1, 12))):
        what = data.draw(WHATS)
        if isinstance(what, str):
            getattr(desk, what)()
            continue
        try:
            done = data.draw(DRAWN[what](desk.policy))
        except EditRefused:
            continue
        desk.edit(done)
    desk.reload()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_taken_back_is_saved_as_it_was(file: Path, ending: str, tmp_path: Path) -> None:
    path = tmp_path / file.name
    path.write_bytes(ENDINGS[ending](file.read_text()).encode())
    desk, text = Desk.of(path), path.read_bytes()
    assert comments_of(desk.text.saved)
    for agent_id in reversed(list(desk.policy.agents)):
        desk.edit(Done(agentedit.remove_agent(desk.policy, agent_id)))
    for _ in range(len(desk.done)):
        desk.undo()

    desk.save()

    assert path.read_bytes() == text
