"""The live policy file as text that can be typed in, with its difference against the disk; also one with errors."""

from PySide6.QtCore import QModelIndex, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QKeySequence, QShortcut
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright.workspace.api import Problem
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.policy_file.outline import OutlineList
from gatewright_gui.pages.policy_file.problems import COLUMNS, MESSAGE, PLACE, ProblemModel, problem_words
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, stack_of, stretch
from gatewright_gui.qt.listing import Listing
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.code_editor import CodeEditor, LineFault
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.draft import text_over
from gatewright_gui.session.filetext import FileText, file_text

OUTLINE_SIZES = (200, 800)
NO_CHANGES = (mark("No unsaved changes"), mark("The file on disk is the policy that you see."))
FAULTS_HEIGHT = 132
_APPLY = "toml.apply"
GONE = (mark("The policy file is gone"), mark("It is not on the disk any more. Save writes it again."))


class TextPage(Page):
    """Text or changes. A line that somebody asks for is selected and marked.

    What is typed is a draft (`session/draft.py`) until it is applied; the text of the policy is not shown over it.
    """

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("toml")
        self._context = context
        self._draft = context.draft
        self._text = FileText("", "")
        self._line: int | None = None
        self._given: str | None = None
        self._holds_draft = False
        """Whether the editor holds the draft, with what can be undone of it."""
        self._is_applying = False
        self.header = SectionHeader(tr("Policy file"), note_is_path=True)
        self.part = named(Segmented(tr("What to show")), "toml.part")
        self.part.add_segment("text", tr("File"), tooltip=tr("The file as it would be saved now"))
        self.part.add_segment(
            "difference",
            tr("Difference"),
            tooltip=tr("What saving would change on disk, or what another program changed there"),
        )
        self.hint = named(Label(), "toml.hint", kind="muted")
        self.apply_button = named(QPushButton(tr("Apply")), "toml.apply", kind="primary")
        self.discard_button = named(
            QPushButton(tr("Discard")), "toml.discard", tip=tr("Show the policy as it is again")
        )
        self.editor_button = named(
            QPushButton(tr("Open in editor")),
            "toml.editor",
            tip=tr("Open the policy file in the program that this system has for it"),
        )
        tie_icon(self.editor_button, "external-link")
        self.editor = CodeEditor(tr("Policy file"))
        self.code = named(CodeView(tr("Policy file"), editor=self.editor), "toml.code")
        self.faults = ProblemModel((COLUMNS[MESSAGE], COLUMNS[PLACE]))
        nothing = EmptyState("check", "", "")
        self.fault_list = Listing(self.faults, "toml.faults", tr("What is wrong with the text"), nothing)
        self.code.keep_wrapping("toml", context.sizes)
        self.code.keep_find()
        self.empty = named(
            EmptyState("file-code", tr("No changes"), tr("The file on disk is what you see here.")), "toml.empty"
        )
        self.outline = OutlineList()
        self._lay_out()
        self._connect(context)
        self._refresh()

    def _lay_out(self) -> None:
        for button in (self.apply_button, self.discard_button):
            button.hide()  # until something is typed
        for control in (self.hint, self.discard_button, self.apply_button, self.part, self.editor_button):
            self.header.add_control(control)
        self.fault_list.setFixedHeight(FAULTS_HEIGHT)
        self.fault_list.hide()
        panes, across = (self.outline, self.code), Qt.Orientation.Horizontal
        self._parts = split_of(across, "toml.outline", self._context.sizes, panes, OUTLINE_SIZES, 1)
        self._stack = stack_of(self._parts, self.empty)
        column_of(self.header, stretch(self._stack), self.fault_list, into=self)

    def focus_search(self) -> None:
        """Go into the find box of the text."""
        self.code.open_find()

    def main_view(self) -> QWidget:
        """The text."""
        return self.code.editor

    def end(self) -> None:
        """Take what was typed last."""
        self._draft.take()

    def _connect(self, context: PageContext) -> None:
        document = context.document
        for moved in (
            document.closed,
            document.opened,
            document.policy_changed,
            document.saved,
            document.changed_outside,
            document.gone_changed,
            document.save_refused,
        ):
            moved.connect(self._refresh)
        document.problems_changed.connect(self._mark)
        self._draft.changed.connect(self._refresh)
        self._draft.checked.connect(self._mark)
        self.editor.typed.connect(self._take_text)
        self.apply_button.clicked.connect(self._apply_or_stop)
        self.discard_button.clicked.connect(self._draft.discard)
        for keys, act in (("Ctrl+Return", self._apply), ("F8", self.editor.go_to_next_fault)):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)
        context.navigator.line_requested.connect(self.go_to_line)
        context.navigator.difference_requested.connect(self.show_difference)
        self.editor_button.clicked.connect(self._open_editor)
        self.part.current_changed.connect(self._show)
        self.outline.line_requested.connect(self._go_to_part)
        self.fault_list.view.clicked.connect(self._go_to_fault)
        self.fault_list.view.activated.connect(self._go_to_fault)

    def _go_to_fault(self, _index: QModelIndex) -> None:
        row = self.fault_list.current
        problem = row.problem if row is not None and not row.count else None
        if problem is not None and problem.place is not None:
            self.part.set_current("text")
            self.editor.go_to_fault(_fault(problem, problem.place.line, problem.place.column))

    def _take_text(self) -> None:
        over = self._draft.over if self._draft.is_pending else self._text.text
        self._holds_draft = True
        self._draft.type(over, lambda: self._read(over))

    def _read(self, over: str) -> str:
        self.code.take_typed()
        return text_over(over, self.editor.lines)

    def _go_to_part(self, line: int) -> None:
        """To the line that begins a part, wherever it stands in what is typed."""
        head, lines = self._text.text.split("\n")[line - 1].rstrip("\r"), self.editor.lines
        same = [at for at, other in enumerate(lines, 1) if other == head]
        self.code.go_to_line(min(same, key=lambda at: abs(at - line), default=line))

    def _apply(self) -> None:
        async def apply() -> None:
            self._tell_draft()
            try:
                await self._draft.apply()
            finally:
                self._is_applying = False
                self._tell_draft()

        if self._draft.is_pending and not self._is_applying:
            self._is_applying = True
            self._context.tasks.start(apply(), _APPLY)

    def _apply_or_stop(self) -> None:
        if self._is_applying:
            self._context.tasks.cancel(_APPLY)
        else:
            self._apply()

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
            text = tr("nothing opens `{file}` here: open it in an editor yourself", file=path.name)
            self._context.document.say("error", text)

    def _refresh(self, _why: object = None) -> None:
        document, self._given = self._context.document, None
        self.header.set_note(str(document.path) if document.path else "")
        self.editor_button.setEnabled(document.path is not None)
        self.part.set_segment_enabled("difference", document.is_open)
        if document.is_open:
            self._context.tasks.start(self._ask(), "toml", replace=True)
            if not self._draft.is_pending:
                return
        else:
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
            self._show_changes(self._given or self._text.difference)
            return
        is_pending = self._draft.is_pending
        if not self._text.text and not is_pending:
            self.empty.set_state("file-code", tr("No policy"), tr("Open a workspace to see its policy file."))
            self._stack.setCurrentWidget(self.empty)
            self.outline.rows.set_rows(())
            self._tell_draft()
            return
        self._stack.setCurrentWidget(self._parts)
        self.outline.rows.set_rows(self._text.outline)
        self.outline.setVisible(bool(self._text.outline))
        if not is_pending:
            self.editor.let_type(False)  # what was typed cannot be taken back key by key any more
        if not (is_pending and self._holds_draft):
            self.code.set_toml(self._draft.text if is_pending else self._text.text)
        self._holds_draft = is_pending
        self.editor.let_type(True)
        self._mark()
        if self._line is not None:
            self.code.go_to_line(self._line)
            self._line = None

    def _show_changes(self, difference: str) -> None:
        self.fault_list.hide()
        if not difference:
            self.empty.set_state("file-code", *map(tr, GONE if self._text.is_gone else NO_CHANGES))
            self._stack.setCurrentWidget(self.empty)
            return
        self._draft.take()
        self._holds_draft = False
        self._stack.setCurrentWidget(self._parts)
        self.outline.hide()
        self.code.mark_lines({})
        self.editor.show_faults(())
        self.editor.let_type(False)
        self.code.set_diff(difference)

    def _mark(self, _problems: object = None) -> None:
        """Show what is wrong with the text: of a draft with its words, else of the policy."""
        self._tell_draft()
        if self.part.current != "text":
            return
        is_pending = self._draft.is_pending
        problems = self._draft.problems if is_pending else self._context.document.problems
        marks: dict[int, Role] = {}
        faults: list[LineFault] = []
        for problem in problems:
            if problem.place is not None:
                line, column = problem.place.line, problem.place.column
                faults.append(_fault(problem, line, column))
                if problem.is_error or line not in marks:
                    marks[line] = "deny" if problem.is_error else "ask"
        self.code.mark_lines(marks)
        self.outline.rows.mark_lines({} if is_pending else marks)
        self.editor.show_faults(sorted(faults))
        self.faults.set_problems(problems if is_pending else ())
        self.fault_list.show_view(is_there=True)
        self.fault_list.setVisible(is_pending and bool(problems))

    def _tell_draft(self) -> None:
        """The buttons, and what is to be known of what is typed."""
        document, is_pending = self._context.document, self._draft.is_pending
        self.apply_button.setVisible(is_pending)
        self.discard_button.setVisible(is_pending)
        self.apply_button.setText(tr("Apply") if document.is_open else tr("Save and open"))
        tip = tr("Write the file and open it (Ctrl+Return)")
        if document.is_open:
            tip = tr("Make what is typed one edit of the policy (Ctrl+Return)")
        self.apply_button.setToolTip(tip)
        errors = sum(problem.is_error for problem in self._draft.problems)
        told = tr("Typed, not applied")
        if errors:
            told = tr("Typed, not applied: {errors} (F8)", errors=counted(errors, "error", "errors"))
        if self._is_applying:
            told = tr("Applying...")
            self.apply_button.setText(tr("Stop"))
            self.apply_button.setToolTip(tr("Stop applying: what is typed stays"))
        self.apply_button.setEnabled(document.is_open or not self._is_applying)  # a file is written to its end
        self.hint.setText(told if is_pending else "")


def _fault(problem: Problem, line: int, column: int) -> LineFault:
    return LineFault(line, column, plain(problem_words(problem)), "deny" if problem.is_error else "ask")
