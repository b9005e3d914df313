"""Scenes of the page Agents: the boxes, the limits, the matrix."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView

from gatewright.workspace.api import MaxCalls, Verdict
from gatewright_gui.app.driver import CTRL, DriveError
from gatewright_gui.app.scenes.player import NotHere, Tour, column, names
from gatewright_gui.app.scenes.preview import compare_schema
from gatewright_gui.pages.access.tools import limit_list
from gatewright_gui.pages.access.tools.matrix import MatrixModel, Place
from gatewright_gui.pages.access.tools.matrix_words import UNKNOWN, count_words
from gatewright_gui.pages.access.tools.row_state import Switch
from gatewright_gui.pages.access.tools.tool_delegate import ask_rect, box_rect
from gatewright_gui.pages.access.tools.tool_tree import IDLE, SWITCH
from gatewright_gui.pages.access.tools.why import Step
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.session.calls import visible_tools

ON, OFF, MIXED = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked


def boxes(tour: Tour) -> None:
    """An operation off, on, and off again; another asks first; why that is so."""
    agent_id, tool, _, operation = tour.subject
    tour.choose_row()
    tour.choose("inspector.tabs", "sees")
    tour.choose("preview.part", "schema")
    compare_views(tour)
    tour.show("agent", f"what {agent_id} may do, and the schema of {tool}; {counts(tour)}")
    steps = (
        ("untick", lambda: tour.click_in(tour.cell(operation), box_rect), OFF, "off: not in the schema, and denied"),
        ("tick", lambda: tour.click_in(tour.cell(operation), box_rect), ON, "on again"),
        ("undo", lambda: tour.key(Qt.Key.Key_Z, CTRL), OFF, "off, since Ctrl+Z took the tick back"),
    )
    for name, act, state, words in steps:
        act()
        tour.check(f"the box of `{operation}`", tour.box(operation), state)
        tour.check(f"the box of `{tool}`", tour.box() == MIXED, state == OFF)
        compare_views(tour)
        tour.show(name, f"{tool}.{operation} is {words}; {counts(tour)}")
    tour.choose("inspector.tabs", "why")
    tour.choose_row(operation)
    told = [row.text for row in column(tour.model_of("agents.why.list"), role=ROW) if isinstance(row, Step)]
    rights = {right.operation: right for right in tour.document.rights(agent_id)[tool].operations}
    reasons = [reason.text for reason in rights[operation].reasons]
    given = [reason for reason in reasons if any(reason in text for text in told)]
    tour.check("the reasons are the engine's, in its order", given, reasons)
    tour.check("a row that is off says so first", tour.text_of("agents.why.sentence"), "Off: not ticked.")
    tour.show("why", f"why: {next(iter(given), '')}")
    tour.choose("inspector.tabs", "try")
    tour.click("inspector.decide")
    tour.until(lambda: bool(tour.text_of("inspector.answer.title")), "the answer")
    tour.check("a call of it is denied in place", tour.text_of("inspector.answer.title"), "Denied")
    tour.show("try", f"a call of {tool}.{operation}, decided and not run")
    tour.choose("inspector.tabs", "why")
    free = [name for name, right in rights.items() if right.verdict is Verdict.ALLOW]
    if free:
        asking = "replace" if "replace" in free else free[0]
        tour.click_in(tour.cell(asking), ask_rect)
        tour.check(f"`{asking}` asks first", tour.cell(asking).data(SWITCH), Switch.ASK)
        right = next(right for right in tour.document.rights(agent_id)[tool].operations if right.operation == asking)
        tour.check("the engine says so", right.verdict, Verdict.ASK)
        tour.show("ask-first", f"{tool}.{asking} asks a person first")


def limit(tour: Tour) -> None:
    """A limit on calls is edited in its row."""
    tour.choose_row()
    tour.choose("inspector.tabs", "limits")
    view = tour.find("agents.limits.list", QAbstractItemView)
    before = [str(value) for value in column(view.model(), limit_list.Column.VALUE)]
    row = next((row for row, value in enumerate(before) if value.endswith(" calls in a session")), None)
    if row is None or not limits_of(tour):
        raise NotHere("the agent has no limit of its own on calls")
    tour.click_cell(view, view.model().index(row, limit_list.Column.VALUE))
    tour.key(Qt.Key.Key_Return)
    tour.type_over("12")
    tour.key(Qt.Key.Key_Return)
    tour.check("the new number is in the policy", MaxCalls(12) in limits_of(tour))
    tour.check("and in the row", column(view.model(), limit_list.Column.VALUE)[row], "12 calls in a session")
    tour.show("limit", f"{before[row]} with {tour.subject.tool} become 12")
    tour.choose("inspector.tabs", "why")


def matrix(tour: Tour) -> None:
    """All agents beside each other."""
    document = tour.document
    tour.go_to("tools")
    tour.click("access.everyone")
    model = tour.model_of("agents.matrix")
    if not isinstance(model, MatrixModel):
        raise DriveError("the matrix is not there")
    found, wanted = dict[str, object](), dict[str, object]()
    for agent in document.agents:
        for tool, right in document.rights(agent.agent_id).items():
            if right.facts.has_operations:
                cell = model.index(model.row_of(Place(tool, None)), model.column_of(agent.agent_id))
                tour.until(lambda cell=cell: cell.data() != UNKNOWN, "the cells")
                verdicts = [Verdict.DENY if op.is_hidden else op.verdict for op in right.operations]
                counts = (verdicts.count(verdict) for verdict in (Verdict.ALLOW, Verdict.ASK, Verdict.DENY))
                wanted[f"{agent.agent_id} {tool}"] = count_words(*counts)
                found[f"{agent.agent_id} {tool}"] = cell.data()
    tour.check("every cell counts what the engine allows", found, wanted)
    tour.show("matrix", f"{len(document.agents)} agents by {model.tool_count} tools")
    tour.choose_row()


def compare_views(tour: Tour) -> None:
    """Ticked in the window, shown to the model, let in by the gate: the same operations."""
    document, (agent_id, tool, selector, _) = tour.document, tour.subject
    tour.choose_row()
    tour.choose("inspector.tabs", "sees")
    operations = document.rights(agent_id)[tool].facts.operation_names
    ticked = [name for name in operations if tour.box(name) == ON and not tour.cell(name).data(IDLE)]
    tools = {one.name: one for one in visible_tools(document.workspace, agent_id)}
    tour.check("the model is shown what is ticked", [shape.name for shape in tools[tool].operations], ticked)
    stages_of = {name: document.workspace.decide(agent_id, tool, {selector: name}).stage for name in operations}
    tour.check("the gate lets it in", [name for name in operations if stages_of[name] != "operation"], ticked)
    compare_schema(tour)
    text = tour.text_of("preview.code")
    tour.check("what is off is named", [name for name in operations if name not in ticked and names(text, name)], [])
    on = sum(not op.is_hidden for right in document.rights(agent_id).values() for op in right.operations)
    can, asks = (int(tour.text_of(f"agents.tally.{name}").split()[-1].replace(",", "")) for name in ("can", "asks"))
    tour.check(f"{on} are counted", can + asks, on)


def counts(tour: Tour) -> str:
    """The counts over the tree."""
    return ", ".join(tour.text_of(f"agents.tally.{name}") for name in ("can", "asks", "cannot"))


def limits_of(tour: Tour) -> list[MaxCalls]:
    """The agent's own limits on the calls of the tool that is shown."""
    rules = tour.document.policy.agents[tour.subject.agent_id].tool_rules
    kinds = [rule.rule_type for rule in rules if rule.tool_name == tour.subject.tool]
    return [kind for kind in kinds if isinstance(kind, MaxCalls)]
