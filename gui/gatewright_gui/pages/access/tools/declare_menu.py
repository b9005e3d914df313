"""The ways to say what the operations, paths and results of the current tool are: a button, rows of its menu, and
dialogs.
"""

from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu, QWidget

from gatewright.workspace.api import ToolFacts
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.session.readings import CHOOSE, DECLARE, Reading, is_strange
from gatewright_gui.session.verbs import operations as verbs
from gatewright_gui.session.verbs.operations import AS_THE_SCHEMA_SAYS, NO_OPERATIONS, Declaration

TASK = "declare"
PATHS = mark("Paths of its arguments…")
RESULTS = mark("Who writes its results…")
_MENU = ((CHOOSE, "list", False), (DECLARE, "pencil", True))


class DeclareMenu(QObject):
    """Follows the current tool; strangers' tools have the button, the others do not."""

    declared = Signal(object)
    """The operations of a tool were declared: its name, str."""

    def __init__(self, context: PageContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._parent = parent
        self._facts: ToolFacts | None = None
        self._any: ToolFacts | None = None
        """The current tool, also one of our own."""
        self._act = CHOOSE
        self.button = named(WordButton(tr("Operations…")), "agents.declare", tip=tr(CHOOSE), kind="link")
        tie_icon(self.button, "list")
        self.button.clicked.connect(self._open_current)
        self.button.hide()

    def show_tool(self, facts: ToolFacts | None, reading: Reading | None) -> None:
        """Another tool is the current one."""
        self._any = facts
        self._facts = facts if facts is not None and is_strange(facts) else None
        self.button.setVisible(self._facts is not None)
        self._act = reading.act if reading is not None else CHOOSE
        named(self.button, spoken=tr(self._act), tip=tr(self._act))

    def fill(self, menu: QMenu) -> None:
        """The rows for the current tool; of our own only its results."""
        if self._any is None:
            return
        menu.addSeparator()
        if self._facts is not None:
            self._fill_strange(menu, self._facts)
        add_action(menu, tr(RESULTS), partial(self.ask_results, self._any), icon="users", name="agents.results")

    def _fill_strange(self, menu: QMenu, facts: ToolFacts) -> None:
        for text, icon, wants_free in _MENU:
            add_action(menu, tr(text), partial(self.open, facts, wants_free=wants_free), icon=icon)
        add_action(
            menu,
            tr(PATHS),
            lambda: self._context.tasks.start(self._ask_paths(facts), TASK, replace=True),
            icon="folder",
            can=bool(facts.texts),
        )
        now = verbs.declaration_of(self._context.document.policy, facts.name, facts.major)
        for text, icon, wanted in (
            (tr("No operations here"), "circle-slash", NO_OPERATIONS),
            (tr("As the schema says"), "rotate-ccw", AS_THE_SCHEMA_SAYS),
        ):
            add_action(menu, text, partial(self._write, facts, wanted), icon=icon, can=now != wanted)

    def open(self, facts: ToolFacts, *, wants_free: bool) -> None:
        """Ask the operator."""
        self._context.tasks.start(self._ask(facts, wants_free=wants_free), TASK, replace=True)

    def ask_results(self, facts: ToolFacts) -> None:
        """Ask the operator who writes the results of a tool."""
        from gatewright_gui.pages.access.tools.results_dialog import ask_trust

        self._context.tasks.start(ask_trust(self._context, self._parent, self._now(facts)), TASK, replace=True)

    def _now(self, facts: ToolFacts) -> ToolFacts:
        """The tool as the catalog has it now."""
        found = self._context.document.catalog
        return next((one for one in found if (one.name, one.major) == (facts.name, facts.major)), facts)

    def _open_current(self, _checked: bool = False) -> None:
        if self._facts is not None:
            self.open(self._facts, wants_free=self._act == DECLARE)

    def _write(self, facts: ToolFacts, wanted: "Declaration") -> None:
        verbs.declare(self._context.document, facts.name, facts.major, wanted)

    async def _ask_paths(self, facts: ToolFacts) -> None:
        from gatewright_gui.pages.access.tools.paths_dialog import PathsDialog
        from gatewright_gui.qt.dialog import run_dialog
        from gatewright_gui.session.verbs import operations as verbs

        document = self._context.document
        dialog = PathsDialog(self._parent.window(), document, self._now(facts))
        if await run_dialog(dialog):
            verbs.declare_paths(document, facts.name, facts.major, dialog.declared)

    async def _ask(self, facts: ToolFacts, *, wants_free: bool) -> None:
        from gatewright_gui.pages.access.tools.declare_dialog import DeclareDialog
        from gatewright_gui.qt.dialog import run_dialog
        from gatewright_gui.session.operation_field import full_survey

        document = self._context.document
        survey = await self._context.deriver.derive(full_survey, facts.name)
        if survey is None:
            document.say("warning", tr("the schema of `{tool}` cannot be looked at", tool=facts.name))
            return
        dialog = DeclareDialog(self._parent.window(), document, facts, survey, wants_free=wants_free)
        if await run_dialog(dialog) and verbs.declare(document, facts.name, facts.major, dialog.declaration):
            self.declared.emit(facts.name)
