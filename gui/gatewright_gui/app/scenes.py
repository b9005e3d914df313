"""The scenes of the guided tour: what is done by mouse and keyboard, and what has to agree with the engine.

Over 450 lines, because the scenes are read in one piece, as they are played, with what several of them compare below.
"""

import difflib
import json
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QTreeView,
    QWidget,
)

from gatewright.workspace.api import MaxCalls, Permission, Verdict
from gatewright_gui.app.driver import CTRL, DriveError, Driver
from gatewright_gui.pages.agents import limit_list
from gatewright_gui.pages.agents.agents import AGENT_ID
from gatewright_gui.pages.agents.matrix import MatrixModel, Place
from gatewright_gui.pages.agents.matrix_words import UNKNOWN
from gatewright_gui.pages.agents.tool_delegate import ask_rect, box_rect
from gatewright_gui.pages.agents.tool_tree import TOOL, Column
from gatewright_gui.pages.agents.why_pane import WHY, Why
from gatewright_gui.pages.console import ConsolePage, conversation, stages
from gatewright_gui.pages.files import folder_tree, rule_model
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.calls import CallRecord, shown_tools
from gatewright_gui.session.catalogs import gateway_command
from gatewright_gui.session.files import PathLevel
from gatewright_gui.session.opening import POLICY_NAME, Opener, audit_log
from gatewright_gui.window.main_window import MainWindow

SIZE = (1280, 800)
START_S = 30.0
ON, OFF, MIXED = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked
READ = {"op": "read", "path": "README.md"}
CREATE = {"op": "create", "path": "inbox/from-the-tour.md", "content": "one line\n"}
SERVED = """\
gatewright = 1

[agents.guest]
tools = ["file"]
capabilities = ["AdvancedEdit"]

[[sources]]
id = "here"
type = "file"
base_path = "."
"""
"""The policy of the server that the tour adds."""
_WAITING = frozenset({"console.call", "console.live", "export", "catalogs"})
"""Tasks that wait for a person."""


class NotHere(Exception):
    """The workspace has nothing to show a scene on; the words say what is missing."""


class Subject(NamedTuple):
    """What is shown: an operation of an agent's tool; a call names its operation in `selector`."""

    agent_id: str
    tool: str
    selector: str
    operation: str


class Tour(Driver):
    """A window to show, what was found so far, and the ways through the window that several scenes take."""

    def __init__(self, window: MainWindow, out: Path) -> None:
        super().__init__(window, lambda: {*window.tasks.names} - _WAITING)
        self.window, self.document, self.out = window, window.document, out
        self.steps: list[dict[str, Any]] = []
        """As `tour.json` has them."""
        self.faults: list[str] = []
        """What was raised inside the window and seen by nobody."""
        self._checks: list[dict[str, object]] = []

    # what is found

    def play(self, scene: Callable[["Tour"], None]) -> None:
        """Play a scene; what cannot be done fails it, not the tour."""
        try:
            scene(self)
        except NotHere as missing:
            self.check("what is not there need not be shown", True)
            self.show(scene.__name__, f"does not apply: {missing}")
        except Exception as error:  # noqa: BLE001  # whatever breaks a scene off has to stand in the report
            self.check(f"the scene can be played: {type(error).__name__}: {error}", False)
            self.show(scene.__name__, "broken off")

    def check(self, what: str, found: object, wanted: object = True) -> None:
        """Note whether something is so, or is what it must be; where it is not, both are told."""
        ok = found == wanted if wanted is not True else bool(found)
        told = "" if ok or wanted is True else f": found {str(found)[:200]}, must be {str(wanted)[:200]}"
        self._checks.append({"what": what + told, "ok": ok})

    def show(self, name: str, line: str) -> None:
        """End a step: take its picture, and say in a line what is seen and whether all that was checked is so."""
        theme, page = self.window.theme.current, self.window.shelf.current_key
        pages = [page] if page != "agents" else ["matrix" if self.has("agents.matrix") else page, "preview"]
        picture = f"{len(self.steps) + 1:02d}-{name}-{theme}.png"
        self.check("the picture is written", self.picture(*SIZE).save(str(self.out / picture)))
        for fault in self.faults:
            self.check(f"nothing goes wrong in the window: {fault}", False)
        checks, self._checks = self._checks, []
        self.faults.clear()
        self.steps.append({"name": name, "pages": pages, "theme": theme, "picture": picture, "checks": checks})
        wrong = [check["what"] for check in checks if not check["ok"]]
        print(f"{len(self.steps):2d} {theme:<5} {'FAILED' if wrong else 'ok':<6} {name:<11} {line}", flush=True)
        for what in wrong:
            print(f"{'':9}not so: {what}", flush=True)

    # ways through the window

    def choose(self, name: str, key: str) -> None:
        """Click one of joined buttons, or go to a word of a list that a click opens."""
        control = self.find(name, QWidget)
        if isinstance(control, QComboBox):
            self.choose_in(control, control.findText(key))
        elif isinstance(control, Segmented) and control.current != key:
            self.click(control.button(key))

    def text_of(self, name: str) -> str:
        """What a control says; empty for a text that is not shown."""
        control = self.find(name, QWidget)
        if isinstance(control, CodeView):
            return control.editor.toPlainText() if control.isVisible() else ""
        return control.text() if isinstance(control, QLabel | QPushButton) else ""

    def model_of(self, name: str) -> QAbstractItemModel:
        """What a list, a table or a tree shows."""
        return self.find(name, QAbstractItemView).model()

    @property
    def tree(self) -> QTreeView:
        """The tree of tools and operations."""
        return self.find("agents.tree", QTreeView)

    def cell(self, operation: str | None = None, at: int = 0) -> QModelIndex:
        """A cell of the tree, of the tool that is shown or of an operation of it."""
        model = self.tree.model()
        above = [model.index(row, 0) for row in range(model.rowCount())]
        below = [model.index(row, 0, group) for group in above for row in range(model.rowCount(group))]
        top = next(row for row in (*above, *below) if row.data(TOOL) == self.subject.tool)
        row = top if operation is None else model.index(column(model, parent=top).index(operation), 0, top)
        return row.siblingAtColumn(at)

    def box(self, operation: str | None = None) -> Qt.CheckState:
        """What a box of the tree shows."""
        return Qt.CheckState(self.cell(operation).data(Qt.ItemDataRole.CheckStateRole))

    def click_in(self, cell: QModelIndex, rect_of: Callable[[QRect], QRect]) -> None:
        """Click a box or a switch in a cell of the tree."""
        rect = self.tree.visualRect(cell)
        self.click_cell(self.tree, cell, rect_of(rect).center() - rect.topLeft())

    def choose_row(self, operation: str | None = None) -> None:
        """Go to the tree of the agent that is shown, and click the name of a row."""
        agent_id = self.subject.agent_id
        self.click("rail.agents")
        self.choose("agents.mode", "tree")
        agents = self.find("agents.list", QAbstractItemView)
        self.click_cell(agents, agents.model().index(column(agents.model(), role=AGENT_ID).index(agent_id), 0))
        self.open_branch(self.tree, self.cell())
        self.click_cell(self.tree, self.cell(operation), QPoint(60, 8))

    @cached_property
    def subject(self) -> Subject:
        """The operator's files in the demo, elsewhere the first tool of two operations. Raises NotHere."""
        found = [
            Subject(
                agent.agent_id,
                tool.name,
                tool.operation_field,
                next((o.name for o in tool.operations if o.name == "delete"), tool.operations[-1].name),
            )
            for agent in self.document.agents
            for tool in shown_tools(self.document.workspace, agent.agent_id)
            if tool.operation_field and len(tool.operations) > 1
        ]
        if not found:
            raise NotHere("no agent has a tool with two operations that are on")
        return next((one for one in found if (one.agent_id, one.tool) == ("operator", "file")), found[0])


def open_window(tour: Tour) -> None:
    """The window as it comes up."""
    tour.settle(START_S)
    tour.until(lambda: " of " in tour.text_of("status.selfcheck"), "the self-check", START_S)
    document = tour.document
    found = document.workspace.selfcheck()
    told = f"self-check {found.checked - len(found.differences):,} of {found.checked:,}"
    tour.check("the foot of the window tells the engine's self-check", tour.text_of("status.selfcheck"), told)
    tour.check("the self-check finds no difference", len(found.differences), 0)
    agents = [agent.agent_id for agent in document.agents]
    tour.check("the list holds the agents of the policy", column(tour.model_of("agents.list"), role=AGENT_ID), agents)
    tour.show("open", f"{document.name}: {', '.join(agents)}; {told}")


def boxes(tour: Tour) -> None:
    """An operation off, on, and off again; another asks first; why that is so."""
    agent_id, tool, _, operation = tour.subject
    tour.choose_row()
    tour.choose("preview.part", "schema")
    compare_views(tour)
    tour.show("agent", f"what {agent_id} may do, and the schema of {tool}; {tour.text_of('agents.counter')}")
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
        tour.show(name, f"{tool}.{operation} is {words}; {tour.text_of('agents.counter')}")
    tour.choose("agents.detail.parts", "why")
    tour.choose_row(operation)
    told = [row.text for row in column(tour.model_of("agents.why.list"), role=WHY) if isinstance(row, Why)]
    rights = {right.operation: right for right in tour.document.rights(agent_id)[tool].operations}
    reasons = [reason.text for reason in rights[operation].reasons]
    tour.check("the reasons are the engine's, in its order", told[: len(reasons)], reasons)
    tour.show("why", f"why: {next(iter(told), '')}")
    free = [name for name, right in rights.items() if right.verdict is Verdict.ALLOW]
    if free:
        asking = "replace" if "replace" in free else free[0]
        tour.click_in(tour.cell(asking, Column.ASK), ask_rect)
        tour.check(f"`{asking}` asks first", tour.cell(asking, Column.VERDICT).data(), "ask first")
        right = next(right for right in tour.document.rights(agent_id)[tool].operations if right.operation == asking)
        tour.check("the engine says so", right.verdict, Verdict.ASK)
        tour.show("ask-first", f"{tool}.{asking} asks a person first")


def preview(tour: Tour) -> None:
    """What the model gets: the rules of use, what is taken away, the schema in every format."""
    agent_id, tool, _, operation = tour.subject
    tour.choose_row()
    tour.choose("preview.scope", "agent")
    tour.choose("preview.part", "rules")
    rules = tour.text_of("preview.code").strip()
    tour.check("the rules are the engine's", rules, tour.document.workspace.view(agent_id).usage_rules.strip())
    tour.check(f"they name `{operation}`", names(rules, operation), False)
    tour.show("rules", f"the usage rules of {agent_id}, {len(rules.splitlines())} lines")
    tour.choose("preview.scope", "tool")
    tour.choose("preview.part", "difference")
    lines = [line for line in tour.text_of("preview.code").splitlines() if names(line, operation)]
    tour.check(f"`{operation}` is taken away", lines and all(line.startswith("-") for line in lines))
    tour.show("difference", f"without limits {operation} would be in {len(lines)} lines more")
    tour.choose("preview.part", "schema")
    formats = tour.find("preview.format", QComboBox)
    for row in range(formats.count()):
        tour.choose_in(formats, row)
        compare_schema(tour)
    tour.show("formats", f"the schema of {tool} is the engine's in {formats.count()} formats")


def limit(tour: Tour) -> None:
    """A limit on calls is edited in its row."""
    tour.choose_row()
    tour.choose("agents.detail.parts", "limits")
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
    tour.choose("agents.detail.parts", "why")


def matrix(tour: Tour) -> None:
    """All agents beside each other."""
    document = tour.document
    tour.click("rail.agents")
    tour.choose("agents.mode", "matrix")
    model = tour.model_of("agents.matrix")
    if not isinstance(model, MatrixModel):
        raise DriveError("the matrix is not there")
    found, wanted = dict[str, object](), dict[str, object]()
    for agent in document.agents:
        for tool, right in document.rights(agent.agent_id).items():
            if right.facts.has_operations:
                cell = model.index(model.row_of(Place(tool, None)), model.column_of(agent.agent_id))
                tour.until(lambda cell=cell: cell.data() != UNKNOWN, "the cells")
                on = sum(not op.is_hidden for op in right.operations)
                wanted[f"{agent.agent_id} {tool}"] = f"{on}/{len(right.operations)}"
                found[f"{agent.agent_id} {tool}"] = cell.data()
    tour.check("every cell counts what the engine allows", found, wanted)
    tour.show("matrix", f"{len(document.agents)} agents by {model.tool_count} tools")
    tour.choose("agents.mode", "tree")


def files(tour: Tour) -> None:
    """The rules of a source, and the folder in their colours; a rule gets another level."""
    tour.click("rail.files")
    if not tour.document.policy.file_sources:
        raise NotHere("the policy has no source")
    source = tour.document.policy.file_sources[0]
    rules, folder = tour.find("files.rules", QAbstractItemView), tour.find("files.tree", QTreeView)
    levels = [str(rule.permission) for rule in source.permission_rules]
    shown = column(rules.model(), rule_model.LEVEL)
    tour.check("the levels of the rules, then the default", shown, [*levels, str(source.default_permission)])
    for row in range(folder.model().rowCount()):
        if folder.viewport().rect().contains(folder.visualRect(folder.model().index(row, 0))):
            tour.open_branch(folder, folder.model().index(row, 0))
    entries = levels_of(folder)
    plain = [at for _, at in entries if not at.is_closed and not at.overlapped]
    explained = tour.document.workspace.explain_paths(source.source_id, [at.path for at in plain])
    wanted = [row.permission for row in explained]
    tour.check("each entry has the level of the engine", [at.permission for at in plain], wanted)
    tour.show("files", f"{len(levels)} rules of {source.source_id} colour its folder")
    at_hand = [(index, at) for index, at in entries if at.index is not None and at.permission is not Permission.NONE]
    ruled = [(index, at) for index, at in at_hand if index.data(folder_tree.KIND) == "file"]
    if not ruled:
        raise NotHere("no rule decides what is in the folder")
    index, before = ruled[0]
    tour.click_cell(folder, index)
    marks = [row for row, shown in enumerate(column(rules.model(), role=rule_model.SHOWN)) if shown.is_deciding]
    tour.check("the rule that decides is marked", marks, [before.index])
    tour.show("rule", f"{before.path} is {before.permission}, and the rule that says so is marked")
    look = folder.viewport().grab().toImage()
    wanted = Permission.READ_ONLY if before.permission is Permission.HUMAN else Permission.HUMAN
    tour.click_cell(rules, rules.model().index(marks[0], rule_model.LEVEL))
    tour.until(lambda: bool(tour.popups()), "the list of levels")
    levels = tour.find("files.level", QComboBox)
    tour.click_cell(levels.view(), levels.model().index(levels.findData(str(wanted)), 0))
    tour.until(lambda: not tour.popups(), "the list of levels to close")
    explained = tour.document.workspace.explain_paths(source.source_id, [before.path])[0]
    tour.check("the engine gives the new level", explained.permission, wanted)
    tour.check("the folder shows it", index.data(folder_tree.PATH_LEVEL).permission, wanted)
    tour.check("in other colours", folder.viewport().grab().toImage() != look)
    tour.show("level", f"{before.path} is {wanted} in place of {before.permission}")


def console(tour: Tour) -> None:
    """A call that is denied, one that is allowed, one that asks: in a copy, by the real gate."""
    (agent_id, tool, selector, operation), page = tour.subject, enter_console(tour)
    folder = file_call(tour, Verdict.ALLOW, **READ)
    tour.choose("console.mode", "form")
    tour.choose("console.tool", "file")
    tour.choose("console.form.op", READ["op"])
    tour.type_over(READ["path"], "console.form.path")
    record = send(tour, page, "console.run")
    tour.check("the call is allowed and done", (record.verdict, record.status), (Verdict.ALLOW, "allowed"))
    text = (folder / READ["path"]).read_text("utf-8")
    tour.check("the result is the file", text.splitlines()[0] in tour.text_of("console.result"))
    tour.show("allowed", f"{record.called} of {READ['path']} is allowed at every stage")
    denied = {selector: operation, "path": "README.md"}
    write_call(tour, tool, denied)
    record, said = send(tour, page, "console.decide"), tour.document.workspace.decide(agent_id, tool, denied)
    tour.check("what is unticked is denied", (record.verdict, record.stage), (Verdict.DENY, "operation"))
    rule, wanted = (one.rule.rule_id if one.rule else "" for one in (record, said))
    tour.check("its code and its rule are the gate's", (record.code, rule), (said.code, wanted))
    tour.check("the model hears nothing of the rule", not rule or rule not in str(record.model_message))
    tour.show("denied", f"{record.called} is denied: {record.reason}")
    file_call(tour, Verdict.ASK, **CREATE)
    write_call(tour, "file", CREATE)
    answer, status = ("refuse", "denied") if tour.window.theme.current == "light" else ("approve", "allowed")

    def reply() -> None:
        tour.until(page.outcome.approval.isVisible, "the question")
        asked = page.outcome.approval.question
        who = (asked.agent_id, asked.tool, asked.operation) if asked else None
        tour.check("the question names the call", who, (agent_id, "file", CREATE["op"]))
        tour.check("and says why", asked is not None and asked.reasons)
        tour.show("asked", f"file.{CREATE['op']} of {CREATE['path']} waits for an answer")
        tour.click(f"console.{answer}")

    record = send(tour, page, "console.run", reply)
    tour.check("the call is as answered", record.status, status)
    tour.check("the folder itself is as before", not (folder / CREATE["path"]).exists())
    tour.show("answered", f"{record.called} is {record.status}: {record.reason}")


def live(tour: Tour) -> None:
    """A call in the workspace itself is in its audit log."""
    page = enter_console(tour)
    file_call(tour, Verdict.ALLOW, **READ)
    tour.click("console.live")
    tour.until(lambda: tour.has("choice-live"), "the question")
    tour.click("choice-live")
    tour.until(lambda: tour.has("window.liveframe"), "the frame around the window")
    write_call(tour, "file", READ)
    record = send(tour, page, "console.run")
    tour.check("the call is made in the workspace itself", (record.is_live, record.status), (True, "allowed"))
    log = audit_log(tour.document.workspace.policy_path)
    rows = list(log.rows())
    rows = [row for row in rows if row.call_id == rows[-1].call_id]
    told = [(row.kind, row.agent, row.tool, row.operation) for row in (rows[0], rows[-1])]
    called = tour.subject.agent_id, "file", READ["op"]
    tour.check("what was called is recorded", told, [("ToolInvoked", *called), ("ToolCompleted", *called)])
    tour.check("the log is whole", log.verify().problems, ())
    tour.show("live", f"{record.called} of {READ['path']} is run live: {len(rows)} rows in the audit log")
    tour.click("console.leavelive")
    tour.until(lambda: not tour.has("window.liveframe"), "the frame to go")


def catalogs(tour: Tour) -> None:
    """A server is added by its command, trusted, and its tools accepted: the gateway itself, before another policy."""
    with tempfile.TemporaryDirectory(prefix="gatewright-tour-") as folder:
        served = Path(folder) / POLICY_NAME
        served.write_text(SERVED, "utf-8")
        with Opener().open(served) as other:
            offered = sorted(tool.name for tool in shown_tools(other, "guest"))
        tour.click("rail.catalogs")
        tour.click(
            "catalogs.add" if tour.has("catalogs.add") else tour.find("catalogs.empty", EmptyState).action_button
        )
        command = shlex.join([*gateway_command(), "serve", str(served), "--agent", "guest"])
        tour.until(lambda: tour.has("catalog_add.text"), "the dialog")
        tour.type_over(f"GATEWRIGHT_KEYS= {command}", "catalog_add.text")
        tour.click("catalog_add.accept")
        row = tour.document.policy.catalogs[-1]
        tour.check("only the name of the variable is taken", row.env, ("GATEWRIGHT_KEYS",))
        workspace = tour.document.workspace
        tour.check("nothing was started", row.catalog_id in workspace.servers.states and not tour.has("catalogs.ask"))
        tour.show("catalog", f"`{row.catalog_id}` is added, and not trusted")
        tour.click("catalogs.trust")
        tour.until(lambda: tour.has("trust.definition"), "the question")
        asked = tour.text_of("trust.definition")
        tour.check("the question has the whole command", all(word in asked for word in (row.command or "", *row.args)))
        tour.check("and its digest", workspace.server_digest(row.catalog_id) in asked)
        tour.show("trust", "what would be started, before it is")
        tour.click("trust.accept")
        tools = tour.model_of("catalogs.tools")
        tour.until(lambda: tour.has("catalogs.ask") and tools.rowCount(), "the tools of the server", START_S)
        listed = sorted(map(str, column(tools)))
        tour.check("the server lists what its policy shows", listed, offered)
        if tour.has("catalogs.accept"):  # what was accepted once, is
            tour.click("catalogs.accept")
            tour.until(lambda: not tour.has("catalogs.accept"), "the tools to be accepted")
        held = [tool.name for tool in tour.document.catalog if tool.origin == row.catalog_id and tool.held]
        tour.check("no tool of it is held any more", held, [])
        tour.show("accept", f"`{row.catalog_id}` offers {', '.join(listed)}; accepted, so that agents can have it")
        tour.click("catalogs.run")
        tour.until(lambda: not tour.has("catalogs.ask"), "the server to stop", START_S)
        tour.key(Qt.Key.Key_Z, CTRL)
        ids = {one.catalog_id for one in tour.document.policy.catalogs}
        tour.check("undo takes the catalog back", row.catalog_id not in ids)


def policy(tour: Tour) -> None:
    """What saving would change, problems, the self-check."""
    workspace = tour.document.workspace
    tour.click("rail.toml")
    tour.choose("toml.part", "difference")
    lines = difflib.ndiff(workspace.policy_path.read_text("utf-8").splitlines(), workspace.text().splitlines())
    wanted = sorted(line[0] + line[2:] for line in lines if line[0] in "+-")
    shown = [line for line in tour.text_of("toml.code").splitlines() if line[:1] in {"+", "-"}]
    shown = sorted(line for line in shown if not line.startswith(("+++", "---")))
    tour.check("the page shows the lines that saving would change", shown, wanted)
    tour.show("toml", f"saving would change {len(wanted)} lines")
    tour.click("rail.problems")
    problems, foot = workspace.current_problems(), tour.text_of("status.problems")
    tour.check("each problem of the engine has a row", tour.model_of("problems.list").rowCount(), len(problems))
    tour.check("the foot of the window agrees", foot == "no problems", not problems)
    tour.show("problems", foot)
    tour.click("status.selfcheck")
    tour.until(lambda: tour.has("selfcheck.agents"), "the dialog")
    agents, found = tour.model_of("selfcheck.agents"), workspace.selfcheck()
    tour.until(lambda: agents.rowCount() == len(tour.document.agents), "the agents that were checked")
    tour.check("its heading has the engine's count", f"{found.checked:,}" in tour.text_of("selfcheck.summary"))
    tour.check("nothing differs", len(found.differences), 0)
    tour.show("selfcheck", f"{found.checked:,} answers compared, {len(found.differences)} differ")
    tour.click("selfcheck.close")


def dark(tour: Tour) -> None:
    """The other theme."""
    tour.click("top.theme")
    tour.check("the theme", tour.window.theme.current, "dark")
    tour.check("the window is dark", tour.window.grab().toImage().pixelColor(4, 400).lightness() < 128)
    compare_views(tour)
    tour.show("agent", f"the same in the dark; {tour.text_of('agents.counter')}")


def save(tour: Tour) -> None:
    """The policy is saved, and exported."""
    workspace = tour.document.workspace
    tour.click("rail.toml")
    tour.choose("toml.part", "text")
    text = workspace.text()
    tour.key(Qt.Key.Key_S, CTRL)
    tour.check("the file is as edited, byte by byte", workspace.policy_path.read_bytes(), text.encode())
    tour.check("the page shows it", tour.text_of("toml.code").splitlines(), text.splitlines())
    tour.check("nothing is left to save", not tour.find("top.save", QWidget).isEnabled())
    tour.show("save", f"{workspace.policy_path.name} is saved")
    tour.click("top.export")
    tour.until(lambda: tour.has("fileNameEdit"), "the dialog")
    tour.type_over(str(tour.out), "fileNameEdit")
    tour.key(Qt.Key.Key_Return)
    tour.until(lambda: "export" not in tour.window.tasks.names, "the export")
    with Opener().open(tour.out) as exported:
        tour.check("the engine reads the same policy from it", exported.policy, tour.document.policy)
        found = exported.selfcheck()
    tour.check("whose self-check finds no difference", len(found.differences), 0)
    tour.check("the window complains about nothing", not tour.window.message.isVisible())
    tour.show("export", f"{POLICY_NAME} is exported; its own self-check: {found.checked:,} answers")


LIGHT = (open_window, boxes, preview, limit, matrix, files, console, live, catalogs, policy)
DARK = (dark, preview, matrix, files, console, catalogs, policy, save)
SCENES = LIGHT + DARK


# what several scenes compare and do


def compare_views(tour: Tour) -> None:
    """Ticked in the window, shown to the model, let in by the gate: the same operations."""
    document, (agent_id, tool, selector, _) = tour.document, tour.subject
    tour.choose_row()
    operations = document.rights(agent_id)[tool].facts.operation_names
    ticked = [
        name for name in operations if tour.box(name) == ON and "off" not in tour.cell(name, Column.VERDICT).data()
    ]
    tools = {one.name: one for one in shown_tools(document.workspace, agent_id)}
    tour.check("the model is shown what is ticked", [shape.name for shape in tools[tool].operations], ticked)
    stages_of = {name: document.workspace.decide(agent_id, tool, {selector: name}).stage for name in operations}
    tour.check("the gate lets it in", [name for name in operations if stages_of[name] != "operation"], ticked)
    compare_schema(tour)
    text = tour.text_of("preview.code")
    tour.check("what is off is named", [name for name in operations if name not in ticked and names(text, name)], [])
    on = sum(not op.is_hidden for right in document.rights(agent_id).values() for op in right.operations)
    tour.check(f"{on} are counted", tour.text_of("agents.counter").startswith(f"{on:,} of "))


def compare_schema(tour: Tour) -> None:
    """The text of the preview is the engine's schema of the tool, in the format that is chosen."""
    form = str(tour.find("preview.format", QComboBox).currentData())
    view = tour.document.workspace.view(tour.subject.agent_id)
    at = [listing.name for listing in view.listings()].index(tour.subject.tool)
    wanted = json.loads(json.dumps(view.tools(form)[at], default=dict))
    tour.check(f"the schema for {form} is what the model gets", json.loads(tour.text_of("preview.code")), wanted)


def limits_of(tour: Tour) -> list[MaxCalls]:
    """The agent's own limits on the calls of the tool that is shown."""
    rules = tour.document.policy.agents[tour.subject.agent_id].tool_rules
    kinds = [rule.rule_type for rule in rules if rule.tool_name == tour.subject.tool]
    return [kind for kind in kinds if isinstance(kind, MaxCalls)]


def levels_of(folder: QTreeView) -> list[tuple[QPersistentModelIndex, PathLevel]]:
    """The entries that are in view, from the top, each with its level."""
    found: list[tuple[QPersistentModelIndex, PathLevel]] = []
    index = folder.model().index(0, 0)
    while index.isValid() and folder.visualRect(index).bottom() < folder.viewport().height():
        level = index.data(folder_tree.PATH_LEVEL)
        if isinstance(level, PathLevel):
            found.append((QPersistentModelIndex(index), level))
        index = folder.indexBelow(index)
    return found


def enter_console(tour: Tour) -> ConsolePage:
    """Go to the Console, as the agent that is shown."""
    agent_id = tour.subject.agent_id
    tour.click("rail.console")
    page = tour.window.shelf.page("console")
    if not isinstance(page, ConsolePage):
        raise DriveError("the Console page is not there")
    tour.choose("console.agent", agent_id)
    return page


def write_call(tour: Tour, tool: str, arguments: Mapping[str, str]) -> None:
    """Name a tool and type its arguments as JSON."""
    tour.choose("console.mode", "json")
    tour.type_over(tool, tour.find("console.tool", QComboBox))
    tour.type_over(json.dumps(arguments), tour.find("console.json", QPlainTextEdit).viewport())


def send(tour: Tour, page: ConsolePage, button: str, reply: Callable[[], None] | None = None) -> CallRecord:
    """Send a call once no pause is left that would have it denied, reply where it asks; what became of it."""
    calls, session = len(page.console.records), tour.model_of("console.sessionstate")
    tour.until(
        lambda: not any(" to wait" in str(state) for state in column(session, conversation.STATE)),
        "the pause after the last call to be over",
    )
    tour.click(button)
    if reply is not None:
        reply()
    tour.until(lambda: len(page.console.records) > calls and not page.console.is_busy, "the call")
    record, model = page.console.records[-1], tour.model_of("console.stages")
    drawn = dict(zip(column(model, stages.STAGE), column(model, stages.VERDICT), strict=True))
    wanted = {row.name: str(row.verdict) for row in record.stages}
    tour.check("each stage that passed is drawn", {name: drawn.get(name) for name in wanted}, wanted)
    return record


def file_call(tour: Tour, wanted: Verdict, **arguments: str) -> Path:
    """The folder of files. Raises NotHere where the gate does not give a call of the tool `file` this verdict."""
    workspace, sources = tour.document.workspace, tour.document.policy.file_sources
    if not sources or workspace.decide(tour.subject.agent_id, "file", arguments).verdict is not wanted:
        raise NotHere(f"the gate does not {wanted} `file` with {arguments}")
    return workspace.folder / sources[0].base_path


def column(
    model: QAbstractItemModel, at: int = 0, role: int = Qt.ItemDataRole.DisplayRole, parent: QModelIndex | None = None
) -> list[Any]:
    """What a column says, from the top."""
    above = parent or QModelIndex()
    return [model.index(row, at, above).data(role) for row in range(model.rowCount(above))]


def names(text: str, operation: str) -> bool:
    """Whether a text names an operation, as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(operation)}(?!\w)", text) is not None
