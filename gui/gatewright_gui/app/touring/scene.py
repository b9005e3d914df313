"""What all steps share: window, driver, report, and how a step ends in a picture. It knows no step."""

import re
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt

from gatewright.base.errors import GatewrightError
from gatewright_gui.app.touring.driver import PATIENCE_S, DriveError, Driver
from gatewright_gui.app.touring.report import PageName, Report, Step, Theme
from gatewright_gui.pages.agents.tool_view import ToolView
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.document import Document
from gatewright_gui.window.main_window import MainWindow

SIZE = (1280, 800)
_WAITING = frozenset(
    {
        "console.call",
        "console.compare",
        "console.exact",
        "console.live",
        "export",
        "declare",
        "constrain",
        "agents.rights",
    }
)
"""Tasks that wait for a person."""
_HANDLED = (DriveError, GatewrightError, OSError, LookupError, ValueError, AttributeError, TypeError)
_OLD_PICTURE = re.compile(r"\d\d-[a-z0-9-]+-(light|dark)\.png")


class Scene:
    """One tour under way."""

    def __init__(self, window: MainWindow, out: Path) -> None:
        self.window = window
        self.driver = Driver(window)
        self.report = Report()
        self.out = out
        self.faults: list[str] = []
        """What was raised inside the window and seen by nobody."""

    @property
    def document(self) -> Document:
        """What the window has open."""
        return self.window.document

    @property
    def theme(self) -> Theme:
        """The theme that is on."""
        return self.window.theme.current

    def step(self, name: str, *pages: PageName) -> "_Making":
        """Make one step: what cannot be done fails the step, not the tour; a picture ends it."""
        step = Step(len(self.report.steps) + 1, name, pages, self.theme)
        self.report.steps.append(step)
        return _Making(self, step)

    def end(self, step: Step) -> None:
        """Note what went wrong unseen, take the picture, tell."""
        for fault in self.faults:
            step.check(f"nothing goes wrong in the window: {fault}", ok=False)
        self.faults.clear()
        step.theme = self.theme
        self._take_picture(step)
        self._tell(step)

    def settle(self, seconds: float = PATIENCE_S) -> None:
        """Wait until nothing is under way beside the window but what waits for an answer."""
        tasks = self.window.tasks
        try:
            self.driver.until(lambda: _WAITING.issuperset(tasks.names), "the window to come to rest", seconds)
        except DriveError as error:
            raise DriveError(f"{error}; under way: {', '.join(sorted({*tasks.names} - _WAITING))}") from None

    def _take_picture(self, step: Step) -> None:
        image = self.driver.picture(*SIZE)
        step.check("the picture is written", image.save(str(self.out / step.picture)))

    @staticmethod
    def _tell(step: Step) -> None:
        good = sum(check.ok for check in step.checks)
        mark = "ok" if step.is_ok else "FAILED"
        print(
            f"{step.number:2d} {step.name:<22} {step.theme:<5} {good} of {len(step.checks)} checks {mark}", flush=True
        )
        for check in step.checks:
            if not check.ok:
                print(f"     not so: {check.what}", flush=True)

    # ways through the window that several steps take

    def go_to(self, page: str) -> None:
        """Choose a page by its button in the rail."""
        self.driver.click(f"rail.{page}")
        self.driver.until(lambda: self.window.shelf.current_key == page, f"the page `{page}`")
        self.settle()

    def choose(self, segmented: str, key: str) -> None:
        """Click one of joined buttons."""
        buttons = self.driver.find(segmented, Segmented)
        self.driver.click(buttons.button(key))
        self.driver.until(lambda: buttons.current == key, f"`{key}` of `{segmented}` to be chosen")
        self.settle()

    def text_of(self, code: str) -> str:
        """The whole text of a code view, as the window holds it; empty where the view is not shown."""
        view = self.driver.find(code, CodeView)
        return view.editor.toPlainText() if view.isVisible() else ""

    @property
    def tree(self) -> ToolView:
        """The tree of tools and operations."""
        return self.driver.find("agents.tree", ToolView)

    def row(self, tool: str, operation: str | None = None, column: int = 0) -> QModelIndex:
        """A cell of the tree, found by the words that are shown. Raises DriveError when it is not there."""
        model = self.tree.model()
        top = _row_of(self.tree, QModelIndex(), tool)
        if operation is None:
            return top.siblingAtColumn(column)
        row = _row_of(self.tree, top, operation)
        return model.index(row.row(), column, top)

    def visible_rows(self, parent: QModelIndex) -> list[str]:
        """The names that are shown below a row."""
        model = self.tree.model()
        return [str(model.index(row, 0, parent).data()) for row in range(model.rowCount(parent))]

    def box(self, tool: str, operation: str | None = None) -> Qt.CheckState:
        """What a box of the tree shows."""
        return Qt.CheckState(self.row(tool, operation).data(Qt.ItemDataRole.CheckStateRole))


@dataclass(frozen=True, slots=True)
class _Making:
    """A step under way."""

    scene: Scene
    step: Step

    def __enter__(self) -> Step:
        return self.step

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        failed = error
        if error is None:
            try:
                self.scene.settle()
            except DriveError as late:
                failed = late
        if failed is not None and not isinstance(failed, _HANDLED):
            return False
        if failed is not None:
            self.step.check(f"the step can be made: {failed or type(failed).__name__}", ok=False)
        self.scene.end(self.step)
        return True


def _row_of(view: ToolView, parent: QModelIndex, name: str) -> QModelIndex:
    model = view.model()
    for row in range(model.rowCount(parent)):
        index = model.index(row, 0, parent)
        if index.data() == name:
            return index
    raise DriveError(f"there is no row `{name}` in the tree")


def clear_pictures(folder: Path) -> None:
    """Remove the pictures of an earlier tour. Raises OSError."""
    for file in list(folder.iterdir()):
        if _OLD_PICTURE.fullmatch(file.name):
            file.unlink()
