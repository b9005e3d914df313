"""The grants of an agent, what asks first, its whole catalogs and its sub-agents, as the rows of one table;
edits go to verbs.

Capabilities: those granted, then those that its tools need and lack. Approvals: the tiers, the agent's own keys, then
the keys of the defaults that it inherits. Catalogs: each ``catalog:ID`` of its list of tools. Sub-agents: which
rights those have that it names, then their names.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any, Protocol

from PySide6.QtCore import QObject, Qt

from gatewright.workspace.api import (
    TIER_DEFAULTS,
    TIER_KEYS,
    Address,
    Agent,
    Capability,
    CapabilityKind,
    Delegate,
    Granted,
    Policy,
    SafetyTier,
    ToolFacts,
    Verdict,
    bare_names,
    frozen,
    kind_of,
    needs,
    pick_tools,
    selected_catalog,
    selector_of,
)
from gatewright_gui.pages.access.tools.rule_table import RuleRows
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.verbs.agents import ACCESS_WORDS


class Column(IntEnum):
    """The columns, from the left."""

    WHAT = 0
    VALUE = 1
    ABOUT = 2
    WHERE = 3


class RowKind(StrEnum):
    """The kind of a row. A new row is a grant, a key or a sub-agent that is not written yet."""

    HEADING = "heading"
    GRANTED = "granted"
    MISSING = "missing"
    APPROVAL = "approval"
    INHERITED = "inherited"
    CATALOG = "catalog"
    DELEGATE = "delegate"
    CHILD = "child"
    NEW_GRANT = "new grant"
    NEW_KEY = "new key"
    NEW_CHILD = "new child"


@frozen
class AgentRow:
    """`what`: a kind of capability, an approvals key, ``catalog:ID``, a sub-agent, or the words of a heading."""

    kind: RowKind
    what: str
    value: str = ""
    about: str = ""
    address: Address | None = None
    granted: Granted | None = None
    verdict: Verdict | None = None
    delegate: Delegate | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The parts that stay the same when only the value changes; what was new becomes the row of its kind."""
        alike = {
            RowKind.NEW_GRANT: RowKind.GRANTED,
            RowKind.MISSING: RowKind.GRANTED,
            RowKind.NEW_KEY: RowKind.APPROVAL,
            RowKind.INHERITED: RowKind.APPROVAL,
            RowKind.NEW_CHILD: RowKind.CHILD,
        }
        return (alike.get(self.kind, self.kind), self.what)

    @property
    def is_own(self) -> bool:
        """Tell whether it can be removed here."""
        return self.kind in {RowKind.GRANTED, RowKind.APPROVAL, RowKind.CATALOG, RowKind.CHILD}


class AgentVerbs(Protocol):
    """The verbs that the table asks for; False: refused, and said."""

    def scope(self, row: AgentRow, text: str) -> bool:
        """Another scope, or a grant with that scope."""
        ...

    def verdict(self, key: str, verdict: Verdict) -> bool:
        """A verdict for a key."""
        ...

    def rename(self, row: AgentRow, key: str) -> bool:
        """Another key, a new one that asks first, or a new sub-agent."""
        ...

    def delegate(self, delegate: Delegate) -> bool:
        """Which rights the sub-agents that it names have."""
        ...


def agent_rows(
    policy: Policy, agent: Agent, catalog: Sequence[ToolFacts], scopes: Mapping[int, str]
) -> tuple[AgentRow, ...]:
    """All rows, with a heading above each part that has any; `scopes`: the texts of its capabilities by their index."""
    parts = (
        (tr("Access"), _capabilities(agent, catalog, scopes)),
        (tr("When it asks first"), _approvals(policy, agent)),
        (tr("Whole servers"), _catalogs(agent, catalog)),
        (tr("Sub-agents"), _sub_agents(agent)),
    )
    found: list[AgentRow] = []
    for heading, part in parts:
        rows = list(part)
        found += (AgentRow(RowKind.HEADING, heading), *rows) if rows else ()
    return tuple(found)


DELEGATES: Mapping[Delegate, str] = {
    Delegate.OWN: mark("keep all their own rights"),
    Delegate.INTERSECT: mark("only what it may do itself"),
}


def has_scope(kind: CapabilityKind) -> bool:
    """Tell whether one says how far it reaches."""
    return kind not in {CapabilityKind.CLOCK_READ, CapabilityKind.ADVANCED_EDIT}


def missing_kinds(agent: Agent, needed: Mapping[CapabilityKind, tuple[str, ...]]) -> tuple[CapabilityKind, ...]:
    """The kinds that its tools need and it is not granted."""
    held = {kind_of(capability) for capability in agent.capabilities}
    return tuple(kind for kind in CapabilityKind if kind in needed and kind not in held)


def needs_of(agent: Agent, catalog: Sequence[ToolFacts]) -> Mapping[CapabilityKind, tuple[str, ...]]:
    """The agent's tools and operations that need each kind."""
    chosen = pick_tools(catalog, agent.tools)
    listed = None if agent.tools is None else bare_names(agent.tools, chosen.values())
    return needs(facts for name, facts in chosen.items() if listed is None or name in listed)


def _capabilities(agent: Agent, catalog: Sequence[ToolFacts], scopes: Mapping[int, str]) -> Iterator[AgentRow]:
    needed = needs_of(agent, catalog)
    for index, capability in enumerate(agent.capabilities):
        kind = kind_of(capability)
        about = _need_words(needed.get(kind, ()))
        address: Address = ("agents", agent.agent_id, "capabilities", index)
        granted = Granted(agent.agent_id, index, capability)
        value = scopes.get(index, "") or _whole(capability)
        yield AgentRow(RowKind.GRANTED, str(kind), value, about, address, granted)
    for kind in missing_kinds(agent, needed):
        yield AgentRow(RowKind.MISSING, str(kind), tr("not granted"), _need_words(needed[kind]))


def _approvals(policy: Policy, agent: Agent) -> Iterator[AgentRow]:
    own, everyone = agent.approvals, policy.defaults.approvals
    rest = [key for key in own if key not in TIER_KEYS]
    inherited = [key for key in everyone if key not in TIER_KEYS and key not in own]
    for key in (*TIER_KEYS, *rest, *inherited):
        if key in own:
            address: Address | None = ("agents", agent.agent_id, "approvals", key)
            yield _approval(RowKind.APPROVAL, key, own[key], _key_words(key), address)
        elif key in everyone:
            about = ", ".join(filter(None, (_key_words(key), tr("as for everyone"))))
            yield _approval(RowKind.INHERITED, key, everyone[key], about, ("defaults", "approvals", key))
        else:
            verdict = TIER_DEFAULTS[SafetyTier(key)]
            yield _approval(RowKind.INHERITED, key, verdict, tr("the default"), None)


def _catalogs(agent: Agent, catalog: Sequence[ToolFacts]) -> Iterator[AgentRow]:
    """The catalogs of which the agent has all tools."""
    for at, name in enumerate(agent.tools or ()):
        if selected_catalog(name) is None:
            continue
        tools = len({facts.name for facts in catalog if selector_of(facts.origin) == name})
        about = tr("{tools} now, later ones too", tools=counted(tools, "tool", "tools"))
        yield AgentRow(RowKind.CATALOG, name, tr("all its tools"), about, ("agents", agent.agent_id, "tools", at))


def _sub_agents(agent: Agent) -> Iterator[AgentRow]:
    if not agent.sub_agents and agent.delegate is Delegate.OWN:
        return
    where: Address = ("agents", agent.agent_id)
    has, about = agent.delegate, tr("any other agent that it starts may never do more than it")
    at = None if has is Delegate.OWN else (*where, "delegate")
    yield AgentRow(RowKind.DELEGATE, tr("Agents named below"), tr(DELEGATES[has]), about, at, delegate=has)
    value, about = tr("its own rights"), tr("when {agent} starts it", agent=agent.agent_id)
    if has is Delegate.INTERSECT:
        value = tr("what {agent} may do itself", agent=agent.agent_id)
    for index, name in enumerate(agent.sub_agents):
        yield AgentRow(RowKind.CHILD, name, value, about, (*where, "sub_agents", index))


def _approval(kind: RowKind, key: str, verdict: Verdict, about: str, address: Address | None) -> AgentRow:
    return AgentRow(kind, key, tr(VERDICTS[verdict]), about, address, verdict=verdict)


VERDICTS: Mapping[Verdict, str] = {
    Verdict.ALLOW: mark("without asking"),
    Verdict.ASK: mark("ask first"),
    Verdict.DENY: mark("never"),
}
"""The words of an approvals key for operations that are on."""


_NAMES = {RowKind.HEADING, RowKind.CATALOG, RowKind.DELEGATE, RowKind.CHILD, RowKind.NEW_CHILD}
"""Rows that are neither of a capability nor of a key."""


_TIERS = {
    "read_only": mark("Calls that only read"),
    "side_effecting": mark("Calls that change something"),
    "privileged": mark("Calls marked privileged"),
}


def _what_words(row: AgentRow) -> str:
    """The kind of a capability, or a tier, in words; what else a row is of has its own name."""
    if row.kind in {RowKind.GRANTED, RowKind.MISSING, RowKind.NEW_GRANT}:
        words = tr(ACCESS_WORDS[CapabilityKind(row.what)])
        return f"{words[:1].upper()}{words[1:]}"
    is_tier = row.kind in {RowKind.APPROVAL, RowKind.INHERITED} and row.what in _TIERS
    return tr(_TIERS[row.what]) if is_tier else row.what


def _key_words(key: str) -> str:
    if key in TIER_KEYS:
        return ""
    if selected_catalog(key) is not None:
        return tr("all tools of the server")
    return tr("one operation") if "." in key else tr("one tool")


def _need_words(names: Sequence[str]) -> str:
    if not names:
        return tr("none of its tools needs it")
    tools = ", ".join(names[:3])
    if len(names) <= 3:
        return tr("needed by {tools}", tools=tools)
    return tr("needed by {tools} and {count} more", tools=tools, count=len(names) - 3)


def _whole(capability: Capability) -> str:
    return tr("as the tool declares") if has_scope(kind_of(capability)) else tr("granted")


class AgentRulesModel(RuleRows[AgentRow]):
    """A new row that is not written yet stands with those of its kind."""

    headers = (mark("What"), mark("Setting"), mark("Why"), mark("Where"))

    def __init__(self, verbs: AgentVerbs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._verbs = verbs

    def find_row(self, what: str) -> int | None:
        """The row of a kind of capability or of a key."""
        rows = enumerate(self.rows)
        return next((at for at, row in rows if row.what == what and row.kind not in _NAMES), None)

    def begin(self, kind: RowKind, what: str) -> int:
        """A row for a grant, a key or a sub-agent that is asked for now."""
        return self.begin_draft(AgentRow(kind, what, about=tr("not written yet")))

    def place_of(self, draft: AgentRow, rows: Sequence[AgentRow]) -> int:
        """Behind the last of the agent's own rows of that part, where the written row will be."""
        if draft.kind is RowKind.NEW_CHILD:
            return len(rows)
        keys = next((at for at, row in enumerate(rows) if row.what in TIER_KEYS), 0)
        first, own = int(keys > 1), RowKind.GRANTED  # below the heading of what is granted, where it stands
        if draft.kind is RowKind.NEW_KEY:
            first, own = keys + len(TIER_KEYS), RowKind.APPROVAL
        return max([first, *(at + 1 for at, row in enumerate(rows) if row.kind is own and at >= first)])

    def text(self, row: AgentRow, column: int, /) -> str:
        """The text of a cell."""
        return (_what_words(row), row.value, row.about, self.link(row))[column]

    def editor_value(self, row: AgentRow, column: int) -> object:
        """A verdict, or what one types over; words for no scope are not typed."""
        if column != Column.VALUE:
            return row.what
        if row.verdict is not None:
            return row.verdict
        if row.delegate is not None:
            return row.delegate
        is_words = row.granted is None or row.value == _whole(row.granted.capability)
        return "" if is_words else row.value

    def tip(self, row: AgentRow, column: int, /) -> str:
        """The whole text, with the key of the policy file; of what is missing, what can be done."""
        text = self.text(row, column)
        if row.kind is RowKind.MISSING:
            what = {"capability": _what_words(row), "about": row.about}
            text = tr("{capability}: not granted, {about}. Enter: grant it", **what)
        is_named = column == Column.WHAT and text != row.what
        return tr("{words}\nin the policy file: {key}", words=text, key=row.what) if is_named else text

    def can_edit(self, row: AgentRow, column: int) -> bool:
        """Scopes, verdicts and the agent's own keys."""
        match row.kind:
            case RowKind.APPROVAL:
                return column == Column.VALUE or (column == Column.WHAT and row.what not in TIER_KEYS)
            case RowKind.INHERITED | RowKind.DELEGATE:
                return column == Column.VALUE
            case RowKind.NEW_KEY | RowKind.NEW_CHILD:
                return column == Column.WHAT
            case RowKind.GRANTED | RowKind.NEW_GRANT | RowKind.MISSING:
                return column == Column.VALUE and has_scope(CapabilityKind(row.what))
            case RowKind.HEADING | RowKind.CATALOG | RowKind.CHILD:
                return False

    def edit_cell(self, row: AgentRow, column: int, value: Any) -> bool:
        """Ask a verb: a scope, a verdict or the rights of sub-agents in VALUE, a key or a sub-agent in WHAT."""
        if column == Column.WHAT:
            return str(value) != row.what and self.write(row, lambda: self._verbs.rename(row, str(value).strip()))
        if row.kind in {RowKind.APPROVAL, RowKind.INHERITED}:
            return value != row.verdict and self._verbs.verdict(row.what, Verdict(value))
        if row.delegate is not None:
            return value != row.delegate and self._verbs.delegate(Delegate(value))
        if row.granted is not None and str(value).strip() == self.editor_value(row, Column.VALUE):
            return False  # words may be rounder than the value
        return self.write(row, lambda: self._verbs.scope(row, str(value)))

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings are neither chosen nor walked to."""
        row = self.row_at(index.row())
        return Qt.ItemFlag.NoItemFlags if row is not None and row.kind is RowKind.HEADING else super().flags(index)
