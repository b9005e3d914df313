"""What an agent is granted and what asks first, as the rows of one table; edits go to verbs.

Capabilities: those granted, then those that its tools need and lack. Approvals: the tiers, the agent's own keys, then
the keys of the defaults that it inherits.
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
)
from gatewright_gui.pages.access.tools.row_state import TIER_WORDS
from gatewright_gui.pages.access.tools.rule_table import RuleRows
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import Index


class Column(IntEnum):
    """The columns, from the left."""

    WHAT = 0
    VALUE = 1
    ABOUT = 2
    WHERE = 3


class RowKind(StrEnum):
    """What a row is. A new one is a grant or a key that is not written yet."""

    HEADING = "heading"
    GRANTED = "granted"
    MISSING = "missing"
    APPROVAL = "approval"
    INHERITED = "inherited"
    NEW_GRANT = "new grant"
    NEW_KEY = "new key"


@frozen
class AgentRow:
    """`what`: a kind of capability, an approvals key, or the words of a heading."""

    kind: RowKind
    what: str
    value: str = ""
    about: str = ""
    address: Address | None = None
    granted: Granted | None = None
    verdict: Verdict | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What stays the same when only the value changes; what was new becomes the row of its kind."""
        alike = {
            RowKind.NEW_GRANT: RowKind.GRANTED,
            RowKind.MISSING: RowKind.GRANTED,
            RowKind.NEW_KEY: RowKind.APPROVAL,
            RowKind.INHERITED: RowKind.APPROVAL,
        }
        return (alike.get(self.kind, self.kind), self.what)

    @property
    def is_own(self) -> bool:
        """Tell whether it can be removed here."""
        return self.kind in {RowKind.GRANTED, RowKind.APPROVAL}


class AgentVerbs(Protocol):
    """What the table asks for; False: refused, and said."""

    def scope(self, row: AgentRow, text: str) -> bool:
        """Another scope, or a grant with that scope."""
        ...

    def verdict(self, key: str, verdict: Verdict) -> bool:
        """A verdict for a key."""
        ...

    def rename(self, row: AgentRow, key: str) -> bool:
        """Another key, or a new one that asks first."""
        ...


def agent_rows(
    policy: Policy, agent: Agent, catalog: Sequence[ToolFacts], scopes: Mapping[int, str]
) -> tuple[AgentRow, ...]:
    """All rows; `scopes` are the texts of the agent's capabilities by their index."""
    return (
        AgentRow(RowKind.HEADING, tr("Capabilities")),
        *_capabilities(agent, catalog, scopes),
        AgentRow(RowKind.HEADING, tr("Approvals")),
        *_approvals(policy, agent),
    )


def has_scope(kind: CapabilityKind) -> bool:
    """Tell whether one says how far it reaches."""
    return kind not in {CapabilityKind.CLOCK_READ, CapabilityKind.ADVANCED_EDIT}


def missing_kinds(agent: Agent, needed: Mapping[CapabilityKind, tuple[str, ...]]) -> tuple[CapabilityKind, ...]:
    """What its tools need and it is not granted."""
    held = {kind_of(capability) for capability in agent.capabilities}
    return tuple(kind for kind in CapabilityKind if kind in needed and kind not in held)


def needed_by(agent: Agent, catalog: Sequence[ToolFacts]) -> Mapping[CapabilityKind, tuple[str, ...]]:
    """What of the agent's tools needs each kind."""
    chosen = pick_tools(catalog, agent.tools)
    listed = None if agent.tools is None else bare_names(agent.tools, chosen.values())
    return needs(facts for name, facts in chosen.items() if listed is None or name in listed)


def _capabilities(agent: Agent, catalog: Sequence[ToolFacts], scopes: Mapping[int, str]) -> Iterator[AgentRow]:
    needed = needed_by(agent, catalog)
    for index, capability in enumerate(agent.capabilities):
        kind = kind_of(capability)
        about = _needed_words(needed.get(kind, ()))
        address: Address = ("agents", agent.agent_id, "capabilities", index)
        granted = Granted(agent.agent_id, index, capability)
        value = scopes.get(index, "") or _whole(capability)
        yield AgentRow(RowKind.GRANTED, str(kind), value, about, address, granted)
    for kind in missing_kinds(agent, needed):
        yield AgentRow(RowKind.MISSING, str(kind), tr("not granted"), _needed_words(needed[kind]))


def _approvals(policy: Policy, agent: Agent) -> Iterator[AgentRow]:
    own, everyone = agent.approvals, policy.defaults.approvals
    rest = [key for key in own if key not in TIER_KEYS]
    inherited = [key for key in everyone if key not in TIER_KEYS and key not in own]
    for key in (*TIER_KEYS, *rest, *inherited):
        if key in own:
            address: Address | None = ("agents", agent.agent_id, "approvals", key)
            yield _approval(RowKind.APPROVAL, key, own[key], _key_words(key), address)
        elif key in everyone:
            about = tr("{what}, by the defaults", what=_key_words(key))
            yield _approval(RowKind.INHERITED, key, everyone[key], about, ("defaults", "approvals", key))
        else:
            verdict = TIER_DEFAULTS[SafetyTier(key)]
            yield _approval(RowKind.INHERITED, key, verdict, tr("{what}, by default", what=_key_words(key)), None)


def _approval(kind: RowKind, key: str, verdict: Verdict, about: str, address: Address | None) -> AgentRow:
    return AgentRow(kind, key, tr(verdict.words), about, address, verdict=verdict)


def _key_words(key: str) -> str:
    if key in TIER_KEYS:
        return tr("all that is {tier}", tier=tr(TIER_WORDS[key]))
    if selected_catalog(key) is not None:
        return tr("all tools of the catalog")
    return tr("one operation") if "." in key else tr("one tool")


def _needed_words(names: Sequence[str]) -> str:
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

    headers = (mark("What"), mark("Value"), mark("About"), mark("Where"))

    def __init__(self, verbs: AgentVerbs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._verbs = verbs

    def find_row(self, what: str) -> int | None:
        """The row of a kind of capability or of a key."""
        return next((at for at, row in enumerate(self.rows) if row.what == what), None)

    def begin(self, kind: RowKind, what: str) -> int:
        """A row for a grant or a key that is asked for now."""
        return self.begin_draft(AgentRow(kind, what, about=tr("not written yet")))

    def place_of(self, draft: AgentRow, rows: Sequence[AgentRow]) -> int:
        """Behind the last of the agent's own rows of that part, where the written row will be."""
        first, own = 1, RowKind.GRANTED
        if draft.kind is RowKind.NEW_KEY:
            heading = next((at for at, row in enumerate(rows) if at and row.kind is RowKind.HEADING), 0)
            first, own = heading + 1 + len(TIER_KEYS), RowKind.APPROVAL
        return max([first, *(at + 1 for at, row in enumerate(rows) if row.kind is own and at >= first)])

    def text(self, row: AgentRow, column: int, /) -> str:
        """What a cell shows."""
        return (row.what, row.value, row.about, self.link(row))[column]

    def typed(self, row: AgentRow, column: int) -> object:
        """A verdict, or what one types over; words for no scope are not typed."""
        if column != Column.VALUE:
            return row.what
        if row.verdict is not None:
            return row.verdict
        is_words = row.granted is None or row.value == _whole(row.granted.capability)
        return "" if is_words else row.value

    def tip(self, row: AgentRow, column: int, /) -> str:
        """The whole text; of what is missing, what can be done."""
        if row.kind is not RowKind.MISSING:
            return self.text(row, column)
        return tr("{capability} is not granted, {about}. Enter: grant it", capability=row.what, about=row.about)

    def can_edit(self, row: AgentRow, column: int) -> bool:
        """Scopes, verdicts and the agent's own keys."""
        match row.kind:
            case RowKind.APPROVAL:
                return column == Column.VALUE or (column == Column.WHAT and row.what not in TIER_KEYS)
            case RowKind.INHERITED:
                return column == Column.VALUE
            case RowKind.NEW_KEY:
                return column == Column.WHAT
            case RowKind.GRANTED | RowKind.NEW_GRANT | RowKind.MISSING:
                return column == Column.VALUE and has_scope(CapabilityKind(row.what))
            case RowKind.HEADING:
                return False

    def edit_cell(self, row: AgentRow, column: int, value: Any) -> bool:
        """Ask a verb: a scope or a verdict in VALUE, a key in WHAT."""
        if column == Column.WHAT:
            return str(value) != row.what and self.write(row, lambda: self._verbs.rename(row, str(value).strip()))
        if row.kind in {RowKind.APPROVAL, RowKind.INHERITED}:
            return value != row.verdict and self._verbs.verdict(row.what, Verdict(value))
        if row.granted is not None and str(value).strip() == self.typed(row, Column.VALUE):
            return False  # words may be rounder than the value
        return self.write(row, lambda: self._verbs.scope(row, str(value)))

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings are not chosen."""
        row, flags = self.row_at(index.row()), super().flags(index)
        is_heading = row is not None and row.kind is RowKind.HEADING
        return flags & ~Qt.ItemFlag.ItemIsSelectable if is_heading else flags
