"""What a call gave back: as text, as a tree, as the change that it makes. It decides nothing about the call.

What is long is read beside the window: a moment later it is there.
"""

import asyncio

from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget
from shiboken6 import isValid

from gatewright_gui.models.callhistory import result_note
from gatewright_gui.pages.console.jsontree import JsonTreeView
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import Chip, CodeView, ElidedLabel, EmptyState, SectionHeader, Segmented
from gatewright_gui.session.calls import CallRecord, change_words, cut
from gatewright_gui.session.resultview import NO_TREE, ResultViews, change_note, is_long, tree_value, views_of

_TIPS = {
    "text": "What the model gets, as text",
    "tree": "The result as a tree of keys and values, whole",
    "diff": "What the call changes in a text",
}
TASK, TREE_TASK = "console.result", "console.resulttree"
_READING = ("scroll-text", "Reading the result", "It is long: it will be here in a moment")
_NOT = {"tree": "The result is no JSON", "diff": "The call changes no text"}


class ResultPanel(QWidget):
    """Begins with the view that tells most; the one that was chosen by hand stays chosen for results of that kind."""

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._record: CallRecord | None = None
        self._views: ResultViews | None = None
        self._wished: dict[bool, str] = {}
        self._is_setting = False
        self._has_tree = False
        self.text = CodeView("Result")
        self.text.setObjectName("console.result")
        self.text.set_wrapping(True)  # the end of a message is often what one looks for
        self.tree = JsonTreeView(tasks)
        self.diff = CodeView("Change")
        self.diff.setObjectName("console.diff")
        self.none = EmptyState("scroll-text", "", "")
        self.head = SectionHeader("Result")
        self.mark = Chip("", role="ask")
        self.mark.setObjectName("console.resultmark")
        self.parts = Segmented("The result as")
        self.parts.setObjectName("console.resultas")
        for key, words in (("text", "Text"), ("tree", "Tree"), ("diff", "Diff")):
            self.parts.add_segment(key, words)
        self.parts.current_changed.connect(self._wish)
        self._about = ElidedLabel(path=True, mono=True, role="muted")
        self._about.setObjectName("console.changeabout")
        self._stack = QStackedWidget()
        for part in (self.none, self.text, self.tree, self.diff):
            self._stack.addWidget(part)
        self._lay_out()

    @property
    def record(self) -> CallRecord | None:
        """The call whose result is shown."""
        return self._record

    def show_nothing(self, icon: str, title: str, words: str) -> None:
        """There is no result, and why."""
        self._forget_reading()
        self._record = self._views = None
        self.none.set_state(icon, title, words)
        self.head.set_note("")
        self.head.setToolTip("")
        for part in (self.mark, self.parts, self._about):
            part.hide()
        self.tree.clear()
        self._stack.setCurrentWidget(self.none)

    def show_record(self, record: CallRecord, none: tuple[str, str, str]) -> None:
        """Show the result of a call; `none` is said where there is none."""
        if not is_long(record):
            self._forget_reading()
            self._take(record, views_of(record), none)
        elif not self._tasks.closed:
            self.show_nothing(*_READING)
            self._tasks.start(self._read(record, none), TASK)

    def _forget_reading(self) -> None:
        self._tasks.cancel(TASK)
        self._tasks.cancel(TREE_TASK)

    async def _read(self, record: CallRecord, none: tuple[str, str, str]) -> None:
        views = await asyncio.to_thread(views_of, record)
        if isValid(self):
            self._take(record, views, none)

    def _take(self, record: CallRecord, views: ResultViews, none: tuple[str, str, str]) -> None:
        if views.text is None and views.diff is None:
            self.show_nothing(*none)
            return
        self._record, self._views, self._has_tree = record, views, False
        self._fill(record, views)
        self._offer()
        has_change = views.diff is not None
        wished = self._wished.get(has_change)
        self._is_setting = True
        self.parts.set_current(wished if wished is not None and self._has(wished) else views.first)
        self._is_setting = False
        self._show_part(self.parts.current)

    def open_find(self) -> None:
        """Search what is shown."""
        current = self._stack.currentWidget()
        if current is self.tree:
            self.tree.focus_search()
        elif isinstance(current, CodeView):
            current.open_find()

    def _fill(self, record: CallRecord, views: ResultViews) -> None:
        if views.text is None:
            self.text.set_plain("")
        elif views.is_json:
            self.text.set_json(views.text)
        else:
            self.text.set_plain(views.text)
        self.diff.set_diff(cut(change_words(views.diff, record.operation)[1]) if views.diff is not None else "")
        self.head.set_note(
            result_note(record) if record.output is not None else "not run: the change that it would make"
        )
        self.head.setToolTip(f"SHA-256 {record.output_hash}" if record.output_hash else "")
        self._mark(record)

    def _mark(self, record: CallRecord) -> None:
        """What must not be overlooked: an error in place of a result, a result that was cut."""
        if record.is_error:
            self.mark.set_chip("error", "circle-x", "deny")
        elif record.truncated:
            self.mark.set_chip("cut for the model", "triangle-alert", "ask")
        words = "The model gets an error in place of a result" if record.is_error else _cut_words(record)
        self.mark.setToolTip(words)
        self.mark.setAccessibleName(words)
        self.mark.setVisible(record.is_error or record.truncated)

    def _offer(self) -> None:
        self.parts.show()
        for key in self.parts.keys:
            has = self._has(key)
            self.parts.set_segment_enabled(key, has)
            self.parts.button(key).setToolTip(_TIPS[key] if has else _NOT.get(key, "The call was not run"))

    def _has(self, key: str) -> bool:
        views = self._views
        if views is None:
            return False
        return {"text": views.text is not None, "tree": views.has_tree, "diff": views.diff is not None}.get(key, False)

    def _wish(self, key: object) -> None:
        if self._is_setting or self._views is None:
            return
        self._wished[self._views.diff is not None] = str(key)
        self._show_part(key)

    def _show_part(self, key: object) -> None:
        record, views = self._record, self._views
        if record is None or views is None:
            return
        self._about.setVisible(key == "diff")
        if key == "diff":
            said = change_words(views.diff or "", record.operation)[0]
            self._about.set_text(f"{change_note(record)} {said}".rstrip())
            self._stack.setCurrentWidget(self.diff)
        elif key == "tree":
            self._show_tree(record)
        else:
            self._stack.setCurrentWidget(self.text)

    def _show_tree(self, record: CallRecord) -> None:
        if self._has_tree:
            self._stack.setCurrentWidget(self.tree)
        elif is_long(record):
            self.none.set_state(*_READING)
            self._stack.setCurrentWidget(self.none)
            self._tasks.start(self._read_tree(record), TREE_TASK, replace=True)
        else:
            self._take_tree(tree_value(record))

    async def _read_tree(self, record: CallRecord) -> None:
        value = await asyncio.to_thread(tree_value, record)
        if isValid(self) and record is self._record and self.parts.current == "tree":
            self._take_tree(value)

    def _take_tree(self, value: object) -> None:
        if value is NO_TREE:
            self.parts.set_segment_enabled("tree", False)
            self.parts.set_current("text")
            return
        self._has_tree = True
        self.tree.set_value(value)
        self._stack.setCurrentWidget(self.tree)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        for part in (self.mark, self.parts):
            self.head.add_control(part)
        about = QHBoxLayout()
        about.setContentsMargins(tokens.space_2, 0, tokens.space_2, 0)
        about.addWidget(self._about)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addLayout(about)
        column.addWidget(self._stack, 1)


def _cut_words(record: CallRecord) -> str:
    if not record.truncated:
        return ""
    tree = "; the tree shows all of it" if record.whole is not None else ""
    hashed = f", SHA-256 of the whole {record.output_hash}" if record.output_hash else ""
    return f"Cut for the model from {record.output_bytes:,} bytes{hashed}{tree}"
