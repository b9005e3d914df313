"""Plays the scenes of the guided tour: what is found, the steps, and the ways through the window that scenes share."""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPoint, QRect, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QComboBox, QLabel, QTreeView, QWidget

from gatewright_gui.app.driver import Driver
from gatewright_gui.pages.access.agents import AGENT_ID
from gatewright_gui.pages.access.tools.tool_delegate import name_left
from gatewright_gui.pages.access.tools.tool_tree import TOOL
from gatewright_gui.pages.page import TabbedPage
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.session.calls import visible_tools
from gatewright_gui.window.main_window import MainWindow

SIZE = (1280, 800)
_WAITING = frozenset(
    {
        *("save", "publish", "console.call", "console.live", "memory.dialog", "activity.mend", "activity.export"),
        *("servers", "servers.sees.confine.unconfine"),
    }
)
"""Tasks that wait for a person."""


class NotHere(Exception):
    """The workspace has nothing to show a scene on; the words say what is missing."""


class Subject(NamedTuple):
    """The subject shown: an operation of an agent's tool; a call names its operation in `selector`."""

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
        pages = [page] if page != "tools" else ["matrix" if self.has("agents.matrix") else page, "preview"]
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

    def go_to(self, key: str) -> None:
        """Click a place in the rail, and then the tab in it."""
        shelf = self.window.shelf
        self.click(f"rail.{shelf.place_of(key)}")
        place = shelf.place(key)
        if isinstance(place, TabbedPage):
            self.click_at(place.bar, lambda: place.bar.tabRect(list(place.rows).index(key)).center())

    def text_of(self, name: str) -> str:
        """The words of a control; empty for a text that is not shown."""
        control = self.find(name, QWidget)
        if isinstance(control, CodeView):
            return control.editor.toPlainText() if control.isVisible() else ""
        return control.text() if isinstance(control, QLabel | QAbstractButton) else ""

    def model_of(self, name: str) -> QAbstractItemModel:
        """The model that a list, a table or a tree shows."""
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
        """The state that a box of the tree shows."""
        return Qt.CheckState(self.cell(operation).data(Qt.ItemDataRole.CheckStateRole))

    def click_in(self, cell: QModelIndex, rect_of: Callable[[QRect], QRect]) -> None:
        """Click a box or a switch in a cell of the tree."""
        rect = self.tree.visualRect(cell)
        self.click_cell(self.tree, cell, rect_of(rect).center() - rect.topLeft())

    def choose_row(self, operation: str | None = None) -> None:
        """Go to the tree of the agent that is shown, and click the name of a row."""
        self.go_to("tools")
        self.choose_agent(self.subject.agent_id)
        self.open_branch(self.tree, self.cell())
        self.click_cell(self.tree, self.cell(operation), QPoint(name_left(QRect()) + 8, 8))

    def choose_agent(self, agent_id: str) -> None:
        """Click an agent in the list beside the tabs."""
        agents = self.find("agents.list", QAbstractItemView)
        self.click_cell(agents, agents.model().index(column(agents.model(), role=AGENT_ID).index(agent_id), 0))

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
            for tool in visible_tools(self.document.workspace, agent.agent_id)
            if tool.operation_field and len(tool.operations) > 1
        ]
        if not found:
            raise NotHere("no agent has a tool with two operations that are on")
        return next((one for one in found if (one.agent_id, one.tool) == ("operator", "file")), found[0])


def column(
    model: QAbstractItemModel, at: int = 0, role: int = Qt.ItemDataRole.DisplayRole, parent: QModelIndex | None = None
) -> list[Any]:
    """The values of a column, from the top."""
    above = parent or QModelIndex()
    return [model.index(row, at, above).data(role) for row in range(model.rowCount(above))]


def names(text: str, operation: str) -> bool:
    """Tell whether a text names an operation, as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(operation)}(?!\w)", text) is not None
