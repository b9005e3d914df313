"""The live policy file with its difference against the disk; of a policy that failed to open, the text as it is."""

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton, QStackedWidget, QWidget

from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.toml.outline import OutlineList
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.session.filetext import FileText, file_text

OUTLINE_SIZES = (200, 800)
NO_CHANGES = ("No unsaved changes", "The file on disk is the policy that you see.")
GONE = ("The policy file is gone", "It is not on the disk any more. Save writes it again.")


class TomlPage(Page):
    """Text or changes. A line that somebody asks for is selected and marked."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("toml")
        self._context = context
        self._text = FileText("", "")
        self._line: int | None = None
        self._given: str | None = None
        self.header = SectionHeader("Policy file", note_is_path=True)
        self.part = named(Segmented("What to show"), "toml.part")
        self.part.add_segment("text", "File", tooltip="The file as it would be saved now")
        self.part.add_segment(
            "difference",
            "Difference",
            tooltip="What saving would change on disk, or what another program changed there",
        )
        self.hint = named(Label("Read only: edited on the pages, or in your editor"), "toml.hint", kind="muted")
        self.editor_button = named(
            QPushButton("Open in editor"),
            "toml.editor",
            tip="Open the policy file in the program that this system has for it",
        )
        tie_icon(self.editor_button, "external-link")
        self.code = named(CodeView("Policy file"), "toml.code")
        self.code.keep_wrapping("toml", context.sizes)
        self.empty = named(
            EmptyState("file-code", "No changes", "The file on disk is what you see here."), "toml.empty"
        )
        for control in (self.hint, self.part, self.editor_button):
            self.header.add_control(control)
        self._stack = QStackedWidget()
        self.outline = OutlineList()
        self.outline.line_requested.connect(self.code.go_to_line)
        self._parts = Splitter(Qt.Orientation.Horizontal, "toml.outline", context.sizes)
        self._parts.addWidget(self.outline)
        self._parts.addWidget(self.code)
        self._parts.setStretchFactor(1, 1)
        self._parts.restore(OUTLINE_SIZES)
        self._stack.addWidget(self._parts)
        self._stack.addWidget(self.empty)
        column_of(self.header, stretch(self._stack), into=self)
        document = context.document
        for moved in (
            document.opened,
            document.policy_changed,
            document.saved,
            document.changed_outside,
            document.gone_changed,
            document.save_refused,
        ):
            moved.connect(self._refresh)
        document.problems_changed.connect(self._mark)
        context.navigator.line_requested.connect(self.go_to_line)
        context.navigator.difference_requested.connect(self.show_difference)
        self.editor_button.clicked.connect(self._open_editor)
        self.part.current_changed.connect(self._show)
        self._refresh()

    def focus_search(self) -> None:
        """The find bar of the text."""
        self.code.open_find()

    def main_view(self) -> QWidget:
        """The text."""
        return self.code.editor

    def go_to_line(self, line: object) -> None:
        """Select a line of the file; one that is not there yet is gone to when the text comes."""
        if not isinstance(line, int):
            return
        self._line = line
        self.part.set_current("text")
        self._show()

    def show_difference(self, difference: str | None = None) -> None:
        """Show how the file on disk differs from what is open, or from something else until that changes."""
        self.part.set_current("difference")
        self._refresh()
        self._given = difference
        self._show()

    def _open_editor(self) -> None:
        path = self._context.document.path
        if path is not None and not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
            self._context.document.say("error", f"nothing opens `{path.name}` here: open it in an editor yourself")

    def _refresh(self, _why: object = None) -> None:
        document, self._given = self._context.document, None
        self.header.set_note(str(document.path) if document.path else "")
        self.editor_button.setEnabled(document.path is not None)
        self.part.set_segment_enabled("difference", document.is_open)
        if document.is_open:
            self._context.tasks.start(self._ask(), "toml", replace=True)
            return
        self.part.set_current("text")
        self._text = FileText(document.failure.text if document.failure else "", "")
        self._show()

    async def _ask(self) -> None:
        answer = await self._context.deriver.derive(file_text)
        if answer is not None:
            self._text = answer
            self._show()

    def _show(self, _part: object = None) -> None:
        if self.part.current == "difference":
            difference = self._given or self._text.difference
            if not difference:
                self.empty.set_state("file-code", *(GONE if self._text.is_gone else NO_CHANGES))
                self._stack.setCurrentWidget(self.empty)
                return
            self._stack.setCurrentWidget(self._parts)
            self.outline.hide()
            self.code.mark_lines({})
            self.code.set_diff(difference)
            return
        if not self._text.text:
            self.empty.set_state("file-code", "No policy", "Open a workspace to see its policy file.")
            self._stack.setCurrentWidget(self.empty)
            return
        self._stack.setCurrentWidget(self._parts)
        self.outline.rows.set_rows(self._text.outline)
        self.outline.setVisible(bool(self._text.outline))
        self.code.set_toml(self._text.text)
        self._mark()
        if self._line is not None:
            self.code.go_to_line(self._line)
            self._line = None

    def _mark(self, _problems: object = None) -> None:
        if self.part.current != "text":
            return
        marks: dict[int, Role] = {}
        for problem in self._context.document.problems:
            if problem.place is not None and (problem.is_error or problem.place.line not in marks):
                marks[problem.place.line] = "deny" if problem.is_error else "ask"
        self.code.mark_lines(marks)
