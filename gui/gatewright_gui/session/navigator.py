"""Wishes to go somewhere in the window: a page, a line of the policy, a tool, a level; and all places there are."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from PySide6.QtCore import QObject, Signal

from gatewright.workspace.api import Address, CapabilityKind, JsonValue, Lineage, PolicyRule, Problem
from gatewright_gui.session.document import Document
from gatewright_gui.session.place import (
    AgentPlace,
    LevelPlace,
    LinePlace,
    PolicyPlace,
    RulePlace,
    ServerPlace,
    ToolPlace,
    place_of_subject,
)
from gatewright_gui.session.selection import Selection

DetailPart = Literal["why", "limits"]
DEFAULT_LEVEL = -1
"""In place of the index of a permission rule: the source's default level."""


class Navigator(QObject):
    """Pages ask here; the window listens and goes."""

    page_requested = Signal(object)
    """Key of a page: str."""
    line_requested = Signal(object)
    """Line of the policy file, from 1: the TOML page shows it."""
    tool_requested = Signal(object, object, object)
    """Agent id, tool or None, operation or None: the Agents page shows that agent, and that row."""
    detail_requested = Signal(object, object)
    """DetailPart: which part is to be shown of the row that was asked for just before; the address of the rule in it
    that is meant, or None."""
    agent_requested = Signal(object, object)
    """Agent id, the address of a grant or an approvals key of it or None: the tab Rules shows what it is granted."""
    grant_requested = Signal(object, object)
    """Agent id, CapabilityKind: the tab Rules asks for the scope of such a grant."""
    level_requested = Signal(object, object)
    """Id of a source, index of a permission rule from 0 or `DEFAULT_LEVEL`: the Files page shows that row."""
    files_requested = Signal(object, object, object)
    """Agent id, tool, operation (`""` of a tool without): the Files page shows what that comes to at each file."""
    policy_rule_requested = Signal(object)
    """Index of a policy rule from 0: the Policy page shows it."""
    composition_requested = Signal(object)
    """Name of a composition: the Policy page shows it in its editor."""
    new_policy_rule_requested = Signal(object, object)
    """PolicyRule, str: the Policy page begins such a rule, whose condition is about that argument; not written yet."""
    question_told = Signal(object)
    """bool: whether a call of the console waits for an answer."""
    question_requested = Signal()
    """The keys are to go to that question."""
    waiting_requested = Signal(object)
    """tuple[str, ...], digests of calls of another process: the oldest of them that waits is to be shown."""
    call_requested = Signal(object, object, object, object, object, object)
    """Agent id, tool, operation or None, arguments or None, the folder of a coding agent or "": the Console begins a
    call of it.
    """
    decision_requested = Signal()
    """The Console decides the call that was begun just before, once it is filled in."""
    span_requested = Signal(object)
    """(from, to) in seconds since 1970: Activity shows the calls of that span."""
    difference_requested = Signal(object)
    """The TOML page shows this difference, or with None how the file differs from what is open."""
    servers_requested = Signal()
    """The Catalogs page asks which servers of a client are to be taken in."""
    client_requested = Signal()
    """The Catalogs page asks which client the gateway goes into."""
    server_requested = Signal(object)
    """tuple[str, str], what a row of Servers stands for and its name: that row is to be chosen once it is there."""
    trust_requested = Signal(object)
    """Id of a catalog: the Catalogs page asks whether its server is trusted."""
    reload_requested = Signal()
    """The policy file is to be read again, once somebody was asked about unsaved changes."""

    def go_to_page(self, key: str) -> None:
        """Show a page."""
        self.page_requested.emit(key)

    def tell_question(self, *, open_: bool) -> None:
        """Tell whether a call of the console waits for an answer."""
        self.question_told.emit(open_)

    def go_to_question(self) -> None:
        """Show the question that a call of the console waits with."""
        self.page_requested.emit("try")
        self.question_requested.emit()

    def ask_for_servers(self) -> None:
        """Ask which servers of a client are to be taken in."""
        self.page_requested.emit("servers")  # first: the page comes to be when it is shown
        self.servers_requested.emit()

    def ask_for_client(self) -> None:
        """Ask which client the gateway goes into."""
        self.page_requested.emit("servers")  # first, as above
        self.client_requested.emit()

    def go_to_server(self, kind: str, name: str) -> None:
        """Show a row of Servers: what it stands for (a catalog, host or client) and its name."""
        self.page_requested.emit("servers")  # first, as above
        self.server_requested.emit((kind, name))

    def ask_for_trust(self, catalog_id: str) -> None:
        """Ask whether the server of a catalog is trusted."""
        self.page_requested.emit("servers")  # first, as above
        self.trust_requested.emit(catalog_id)

    def go_to_waiting(self, digests: tuple[str, ...]) -> None:
        """Show the calls that wait for an answer, one of these first; () names none."""
        self.page_requested.emit("activity")  # first, as above
        self.waiting_requested.emit(digests)

    def go_to_span(self, span: tuple[float, float]) -> None:
        """Show the calls of a span of time, in seconds since 1970."""
        self.page_requested.emit("activity")  # first, as above
        self.span_requested.emit(span)

    def go_to_line(self, line: int) -> None:
        """Show a line of the policy."""
        self.page_requested.emit("text")  # first: a page hears nothing before it is there
        self.line_requested.emit(line)

    def go_to_difference(self, difference: str | None = None) -> None:
        """Show a difference, or how the policy file differs from what is open."""
        self.page_requested.emit("text")  # first, as above
        self.difference_requested.emit(difference)

    def go_to_tool(
        self,
        agent_id: str,
        tool: str,
        operation: str | None = None,
        part: DetailPart | None = None,
        rule: Address | None = None,
    ) -> None:
        """Show a row of the tree of tools, a part of what is told of it, and a rule in that part."""
        self.page_requested.emit("tools")  # first, as above
        self.tool_requested.emit(agent_id, tool, operation)
        if part is not None:
            self.detail_requested.emit(part, rule)

    def go_to_call(
        self,
        agent_id: str,
        tool: str,
        operation: str | None = None,
        arguments: Mapping[str, JsonValue] | None = None,
        folder: str = "",
        lineage: Lineage | None = None,
    ) -> None:
        """Begin a call of a tool in the Console, filled in where there are arguments; ``folder``: where the coding
        agent works, for a tool that it runs itself; ``lineage``: of the sub-agent that makes it.
        """
        self.page_requested.emit("try")  # first, as above
        self.call_requested.emit(agent_id, tool, operation, arguments, folder, lineage)

    def decide_call(self, agent_id: str, tool: str, operation: str, arguments: Mapping[str, JsonValue]) -> None:
        """Begin a call in the Console, and let the gate decide it."""
        self.go_to_call(agent_id, tool, operation, arguments)
        self.decision_requested.emit()

    def go_to_agent(self, agent_id: str, rule: Address | None = None) -> None:
        """Show what an agent is granted, and a rule of that."""
        self.page_requested.emit("rules")  # first, as above
        self.agent_requested.emit(agent_id, rule)

    def ask_for_grant(self, agent_id: str, kind: CapabilityKind) -> None:
        """Ask for the scope of what an agent is to be granted."""
        self.page_requested.emit("rules")  # first, as above
        self.grant_requested.emit(agent_id, kind)

    def go_to_level(self, source_id: str, index: int) -> None:
        """Show a row of a source's levels."""
        self.page_requested.emit("files")  # first, as above
        self.level_requested.emit(source_id, index)

    def go_to_files(self, agent_id: str, tool: str, operation: str) -> None:
        """Show what an operation of an agent comes to at each file."""
        self.page_requested.emit("files")  # first, as above
        self.files_requested.emit(agent_id, tool, operation)

    def go_to_policy_rule(self, index: int) -> None:
        """Show a policy rule."""
        self.page_requested.emit("rules")  # first, as above
        self.policy_rule_requested.emit(index)

    def go_to_composition(self, name: str) -> None:
        """Show the steps of a composition."""
        self.page_requested.emit("rules")  # first, as above
        self.composition_requested.emit(name)

    def begin_policy_rule(self, rule: PolicyRule, field: str) -> None:
        """Begin a policy rule about an argument in its form; nothing is written before somebody applies it."""
        self.page_requested.emit("rules")  # first, as above
        self.new_policy_rule_requested.emit(rule, field)

    def go_to_rule(self, place: RulePlace) -> None:
        """Show a rule where it is edited."""
        match place:
            case LinePlace():
                self.go_to_line(place.line)
            case LevelPlace():
                self.go_to_level(place.source_id, DEFAULT_LEVEL if place.index is None else place.index)
            case ToolPlace():
                self.go_to_tool(place.agent_id, place.tool, place.operation, place.part, place.rule)
            case AgentPlace():
                self.go_to_agent(place.agent_id, place.rule)
            case PolicyPlace():
                self.go_to_policy_rule(place.index)
            case ServerPlace():
                self.go_to_server("catalog", place.catalog_id)


Kind: TypeAlias = Literal["agent", "tool", "operation", "source", "problem"]
MAX_PROBLEMS = 200
"""The Problems page lists the rest."""


class Place(NamedTuple):
    """`name` is an id or a tool's name; of a problem its words, `at` where to. A tuple: there are tens of thousands."""

    kind: Kind
    name: str
    operation: str = ""
    detail: str = ""
    at: RulePlace | None = None


def places_of(document: Document) -> tuple[Place, ...]:
    """All of them, agents first; empty when nothing is open."""
    agents = [Place("agent", agent.agent_id, detail=agent.description) for agent in document.agents]
    sources = [Place("source", source.source_id, detail=source.base_path) for source in document.policy.file_sources]
    tools: list[Place] = []
    operations: list[Place] = []
    for facts in document.catalog:
        tools.append(Place("tool", facts.name, detail=facts.description))
        if facts.has_operations:
            operations += [Place("operation", facts.name, op.name, op.description) for op in facts.operations]
    problems = [
        Place("problem", problem.message, detail=problem.code, at=place_of_problem(document, problem))
        for problem in document.problems[:MAX_PROBLEMS]
    ]
    return (*agents, *tools, *operations, *sources, *problems)


def place_of_problem(document: Document, problem: Problem) -> RulePlace | None:
    """The place to look at a problem.

    Its line where there is no better place, and always of a file that is not in force; None without a line.
    """
    is_in_force = document.is_open and (document.alarm is None or problem not in document.alarm.problems)
    subject = problem.subject if is_in_force else None
    better = place_of_subject(document.policy, subject) if subject is not None else None
    return better or (LinePlace(problem.place.line) if problem.place is not None else None)


def go_to(place: Place, navigator: Navigator, selection: Selection) -> None:
    """Show a place. A tool is shown for the agent that is chosen."""
    match place.kind:
        case "agent":
            selection.show_everyone(on=False)
            selection.choose_agent(place.name)
            navigator.go_to_page("tools")
        case "tool" | "operation":
            navigator.go_to_tool(selection.agent_id or "", place.name, place.operation or None)
        case "source":
            navigator.go_to_level(place.name, DEFAULT_LEVEL)
        case "problem":
            if place.at is not None:
                navigator.go_to_rule(place.at)
            else:
                navigator.go_to_page("problems")
