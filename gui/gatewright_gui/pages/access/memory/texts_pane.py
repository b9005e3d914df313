"""Texts that are kept besides blocks: notes of a user, entries of an archive, messages of conversations.

Each pane is a list with a search, and the chosen text beside it.
"""

import json
from collections.abc import Awaitable
from dataclasses import replace
from datetime import datetime

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QStackedWidget, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError, JsonValue, ToolFailure
from gatewright_gui.pages.access.memory.block_list import ago_words
from gatewright_gui.pages.access.memory.text_dialog import Asked, TextDialog
from gatewright_gui.pages.access.memory.value_pane import memory_button
from gatewright_gui.pages.access.memory.weight_field import WeightField
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask, run_dialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import ElidedLabel, Label
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.qt.widget.text_field import LargeTextEdit, SearchField
from gatewright_gui.session.calls import cut
from gatewright_gui.session.filetext import difference_of
from gatewright_gui.session.memory import way_out
from gatewright_gui.session.remembered import Remembered, TextRow
from gatewright_gui.session.unsaved import Typed, TypedText
from gatewright_gui.session.watch import MemoryWatch

TEXT, ABOUT, WHEN, SCORE = range(4)
_KEPT = 300
"""Characters of a text that its row has."""


class TextModel(RowModel[TextRow]):
    """The texts, each in a row."""

    headers = (mark("Text"), mark("About"), mark("Time"), mark("Score"))

    def key(self, row: TextRow) -> object:
        """The text, whatever it says."""
        return row.text_id

    def text(self, row: TextRow, column: int) -> str:
        """Cells, the text in one line."""
        text = " ".join((row.snippet or row.text)[:_KEPT].split())
        when = "" if row.at_s is None else ago_words(row.at_s)
        return (text, row.about, when, "" if row.score is None else f"{row.score:.2f}")[column]

    def tip(self, row: TextRow, _column: int) -> str:
        """All of it."""
        return row.text


class TextsPane(QWidget):
    """A subclass says what is read and what can be done. ``name`` begins the names of its controls."""

    def __init__(self, context: PageContext, name: str, title: str, search: str) -> None:
        super().__init__()
        self.setObjectName(f"memory.{name}_pane")
        self._context, self._name = context, name
        self._remembered = Remembered(context.document)
        self._agent_id = ""
        self.search = named(SearchField(search), f"memory.{name}_search")
        self.bar = named(MessageBar(), f"memory.{name}_bar")
        self.model = TextModel()
        self.view = named(TableView(title), f"memory.{name}")
        self.view.show_model(self.model, {ABOUT: 190, WHEN: 96, SCORE: 60}, wide=TEXT)
        self.empty = named(EmptyState("database", "", ""), f"memory.{name}_empty")
        self.about = named(ElidedLabel(role="muted"), f"memory.{name}_about")
        self.top = row_of(stretch(self.search), space=2, margins=(2, 0, 2, 1))
        self.foot = row_of(stretch(self.about), space=1, margins=(2, 1))
        splitter = Splitter(Qt.Orientation.Vertical, f"memory.{name}", context.sizes)
        self._stack = QStackedWidget()
        for part in (splitter, self.empty):
            self._stack.addWidget(part)
        column_of(self.top, stretch(self._stack), into=self)
        FootBars(self, self.bar)
        for part in (self.view, holding(column_of(stretch(self._text_view()), self.foot))):
            splitter.addWidget(part)
        splitter.restore((300, 240))
        self._whole = splitter
        self._know_nothing()
        context.document.opened.connect(self._know_nothing)
        self.search.search_changed.connect(self.refresh)
        self.search.results_requested.connect(self.view.setFocus)
        self.search.leave_requested.connect(self.view.setFocus)
        self.view.selectionModel().currentChanged.connect(self._show)

    # what a subclass says

    def _text_view(self) -> QWidget:
        self.code = named(CodeView(tr("The text")), f"memory.{self._name}_text")
        self.code.set_wrapping(on=True)
        return self.code

    async def _read(self, query: str) -> tuple[TextRow, ...]:
        raise NotImplementedError

    def _why_empty(self, query: str) -> tuple[str, str]:
        """A title, and what one can do."""
        raise NotImplementedError

    def _show_text(self, row: TextRow) -> None:
        self.code.set_plain(cut(row.text))

    # reading

    def show_agent(self, agent_id: str) -> None:
        """The texts of another agent, or with "" the shared ones."""
        if agent_id != self._agent_id:
            self._agent_id = agent_id
            self._know_nothing()
        self.refresh()

    def _know_nothing(self) -> None:
        """Nothing is known until it was read."""
        self.model.set_rows(())
        self.empty.set_unknown()
        self._stack.setCurrentWidget(self.empty)

    def refresh(self, _why: object = None) -> None:
        """Read anew; what is there stays until the answer has come."""
        if self._context.document.is_open:
            self._context.tasks.start(self._refresh(), f"memory.{self._name}", replace=True)

    def main_view(self) -> QWidget:
        """The list; the search where it is empty."""
        return self.view if self._stack.currentWidget() is self._whole else self.search

    @property
    def current(self) -> TextRow | None:
        """The chosen text."""
        return self.model.row_at(self.view.currentIndex().row())

    async def _refresh(self) -> None:
        query, agent_id = self.search.text().strip(), self._agent_id
        try:
            rows = await self._read(query)
        except GatewrightError as error:
            if isValid(self):
                told = tr("{error}. What is shown may be old; nothing was changed.", error=error)
                self._say(told, way=way_out(error))
                if not self.empty.is_known:
                    self.empty.set_state("circle-alert", tr("The memory cannot be read"), str(error))
            return
        if not isValid(self) or agent_id != self._agent_id:
            return
        self.bar.hide()
        chosen = self.current
        self.model.set_rows(rows)
        self.view.setColumnHidden(SCORE, not query)
        self._stack.setCurrentWidget(self._whole if rows else self.empty)
        if not rows:
            self.empty.set_state("search" if query else "database", *self._why_empty(query))
        elif not self.view.currentIndex().isValid():
            at = self.model.find(chosen.text_id) if chosen is not None else 0
            self.view.setCurrentIndex(self.model.index(max(at, 0), TEXT))
        self._show()

    def _show(self, _now: QModelIndex | None = None, _before: QModelIndex | None = None) -> None:
        row = self.current
        if row is not None:
            at = "" if row.at_s is None else datetime.fromtimestamp(row.at_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
            size = counted(len(row.text), "character", "characters")
            self.about.set_text(" · ".join(filter(None, (row.about, at, size, row.metadata))))
            self._show_text(row)

    # doing

    def _start(self, work: Awaitable[None], name: str = "memory.act") -> None:
        self._context.tasks.start(self._do(work), name)

    async def _do(self, work: Awaitable[None]) -> None:
        problem = ""
        try:
            await work
        except GatewrightError as error:
            problem = str(error)
        if isValid(self):
            await self._refresh()
            if problem:
                self._say(problem)

    def _say(self, problem: str, way: str | None = None) -> None:
        self.bar.show_message("error", f"{problem[:1].upper()}{problem[1:]}", action=way)


class ArchivePane(TextsPane):
    """Entries are never changed; the operator inserts some, and forgets one."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context, "archive_entries", tr("The archive"), tr("Search the archive"))
        self.insert_button = memory_button(tr("Insert..."), "plus", "insert", tr("Add to the archive"))
        self.forget_button = memory_button(tr("Forget..."), "trash", "forget", tr("Take the entry out of the archive"))
        self.top.addWidget(self.insert_button)
        self.foot.addWidget(self.forget_button)
        self.insert_button.clicked.connect(lambda: self._start(self._insert(), "memory.dialog"))
        self.forget_button.clicked.connect(lambda: self._start(self._forget(), "memory.dialog"))

    async def _read(self, query: str) -> tuple[TextRow, ...]:
        return await self._remembered.archive(self._agent_id, query)

    def _why_empty(self, query: str) -> tuple[str, str]:
        if query:
            return tr("No entry has these words"), tr(
                "Words are found whole: a star at the end finds more, as in tid*."
            )
        return (
            tr("Nothing in the archive"),
            tr("Agents keep texts here with the tool recall. Insert one, or let an agent do it."),
        )

    async def _insert(self) -> None:
        asked = (
            Asked("text", tr("What is to be kept for good"), 6),
            Asked("metadata", tr("Metadata, a JSON object"), 2, False),
        )
        agent_id = self._agent_id
        dialog = TextDialog(self, tr("Insert into the archive"), asked, tr("Insert"), _metadata_fault)
        if await run_dialog(dialog):
            texts = dialog.texts
            metadata: dict[str, JsonValue] = json.loads(texts["metadata"].strip() or "{}")
            await self._remembered.insert(agent_id, texts["text"], metadata)

    async def _forget(self) -> None:
        row, agent_id = self.current, self._agent_id
        if row is None:
            return
        choices = (Choice("keep", tr("Keep it"), "primary"), Choice("forget", tr("Forget"), "danger"))
        text = tr("No agent finds it any more, and nothing brings it back.")
        if await ask(self, tr("Forget this entry?"), text, choices, icon="trash", role="ask") == "forget":
            await self._remembered.forget(agent_id, row.text_id)


class ConversationsPane(TextsPane):
    """The record, by the program that runs an agent, of its conversations with a user; only to be read."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context, "messages", tr("The conversations"), tr("Search the conversations"))
        self.user = named(QComboBox(), "memory.talk_user", spoken=tr("With whom"))
        self.user.setMinimumContentsLength(16)
        self.user.addItem(tr("nobody"), None)
        self.top.insertWidget(0, Label(tr("With")))
        self.top.insertWidget(1, self.user)
        self.user.activated.connect(self.refresh)

    async def _read(self, query: str) -> tuple[TextRow, ...]:
        if not self._agent_id:
            return ()
        users = await self._remembered.conversation_users(self._agent_id)
        self._offer(users)
        return await self._remembered.conversation(self._agent_id, self.user.currentData(), query)

    def _why_empty(self, query: str) -> tuple[str, str]:
        if not self._agent_id:
            return tr("Whose conversations?"), tr("Choose an agent at the top: nobody shares conversations.")
        if query:
            return tr("No message has these words"), tr("Words are found whole: a star at the end finds more.")
        return tr("No conversation"), tr(
            "The program that runs the agent records them. Choose a user, where there is one."
        )

    def _offer(self, users: tuple[str, ...]) -> None:
        known = [self.user.itemData(at) for at in range(1, self.user.count())]
        if known == list(users):
            return
        chosen = self.user.currentData()
        self.user.clear()
        self.user.addItem(tr("nobody"), None)
        for user in users:
            self.user.addItem(user, user)
        self.user.setCurrentIndex(max(self.user.findData(chosen), 0) if chosen is not None else min(len(users), 1))


class NotesPane(TextsPane):
    """Notes of one user, whom one chooses or types; what is typed over a note stays with it until it is saved."""

    def __init__(self, context: PageContext, typed: Typed) -> None:
        super().__init__(context, "notes", tr("The notes"), tr("Search the notes"))
        self.view.hideColumn(ABOUT)
        self._typed = typed
        self._over_now = ""
        """The note that what is typed is meant to go over as it is now, since somebody was told that it was changed."""
        self._editing: TextRow | None = None
        self.user = named(QComboBox(), "memory.user", spoken=tr("Whose notes"))
        self.user.setEditable(True)
        self.user.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.user.setMinimumContentsLength(16)
        line = self.user.lineEdit()
        if line is not None:
            named(line, "memory.user_id", spoken=tr("User")).setPlaceholderText(tr("id of a user"))
        self.new_button = memory_button(tr("New note..."), "plus", "new_note", tr("Keep a note for this user"))
        self.delete_button = memory_button(tr("Delete..."), "trash", "delete_note", tr("Forget the note"))
        self.save_button = named(
            QPushButton(tr("Save")),
            "memory.save_note",
            spoken=tr("Save the note"),
            tip=tr("Put this in its place"),
            kind="primary",
        )
        self.top.insertWidget(0, Label(tr("User")))
        self.top.insertWidget(1, self.user)
        self.weight = WeightField(context.document)
        self.weight.changed.connect(lambda: self.refresh() if self.isVisible() else None)
        for part in (self.weight, self.new_button):
            self.top.addWidget(part)
        for button in (self.delete_button, self.save_button):
            self.foot.addWidget(button)
        self.new_button.clicked.connect(lambda: self._start(self._add(), "memory.dialog"))
        self.delete_button.clicked.connect(lambda: self._start(self._delete(), "memory.dialog"))
        self.save_button.clicked.connect(self._save)
        self.user.activated.connect(self.refresh)
        self.user.currentTextChanged.connect(self._tell)
        if line is not None:
            line.returnPressed.connect(self.refresh)
        typed.read.connect(self._show)
        self._watch = MemoryWatch(context.document, context.tasks, self.isVisible, self._mark, self)
        self._watch.changed.connect(self.refresh)
        self._user = ""
        """Whose notes are shown."""

    def _text_view(self) -> QWidget:
        self.editor = named(LargeTextEdit(tr("The note")), "memory.note_text")
        self.editor.edited.connect(self._tell)
        self.difference = named(CodeView(tr("What saving changes in the note")), "memory.note_difference")
        self.difference.set_wrapping(on=True)
        self.difference.hide()
        return holding(row_of(stretch(self.editor), stretch(self.difference), space=2))

    def _mark(self, _: object) -> object:
        return self._remembered.note_mark(self._user)

    async def _read(self, query: str) -> tuple[TextRow, ...]:
        users = await self._remembered.note_users()
        known = [self.user.itemText(at) for at in range(self.user.count())]
        if known != list(users):
            typed = self.user.currentText()
            self.user.blockSignals(True)
            self.user.clear()
            self.user.addItems(users)
            self.user.setCurrentText(typed or (users[0] if users else ""))
            self.user.blockSignals(False)
        self._user = self.user.currentText().strip()
        self._tell()
        return await self._remembered.notes(self._user, query) if self._user else ()

    def _why_empty(self, query: str) -> tuple[str, str]:
        if not self._user:
            return tr("No notes"), tr(
                "No user has any yet. Type the id of a user, then make a note, or let an agent keep one."
            )
        if query:
            return tr("No note fits"), tr("Search other words, or clear the search.")
        return (
            tr("No notes for {user}", user=self._user),
            tr("Agents keep them with the tool memory_save. Make one, or choose another user."),
        )

    def _show_text(self, row: TextRow) -> None:
        typed = self._typed.of(_name(row))
        is_other = self._editing is None or self._editing.text_id != row.text_id
        was_typed = not is_other and self._editing is not None and self.editor.text != self._editing.text
        if is_other or not was_typed:
            text = row.text if typed is None else typed.text
            is_of_now = text == row.text or self._over_now == row.text_id
            self._editing = row if typed is None or is_of_now else replace(row, text=typed.over)
            self._over_now = ""
            if self.editor.text != text:
                self.editor.set_text(text)
        self._tell()

    def _tell(self, _text: object = None) -> None:
        editing, typed = self._editing, self.editor.text
        self.new_button.setEnabled(bool(self.user.currentText().strip()))
        if editing is None:
            self.save_button.setEnabled(False)
            self.difference.hide()
            return
        row = self.current
        kept = row.text if row is not None and row.text_id == editing.text_id else editing.text
        self.difference.set_diff(difference_of(cut(kept), cut(typed), tr("kept now"), tr("saved then")))
        self.difference.setVisible(typed != editing.text)
        self._typed.put(_name(editing), TypedText(typed, editing.text) if typed != editing.text else None)
        self.save_button.setEnabled(typed != editing.text and bool(typed.strip()))

    def _save(self) -> None:
        if self._editing is not None:
            self._start(self._save_change(self._editing, self.editor.text))

    async def _save_change(self, before: TextRow, text: str) -> None:
        try:
            await self._remembered.update_note(self._user, before, text)
        except ToolFailure as failure:
            if failure.code == "changed":
                self._editing, self._over_now = None, before.text_id
            raise
        self._typed.put(_name(before), None)
        if self._editing is before and self.editor.text == text:
            self._editing = None

    async def _add(self) -> None:
        user = self.user.currentText().strip()
        dialog = TextDialog(
            self, tr("A note for {user}", user=user), (Asked("text", tr("What is to be remembered")),), tr("Keep it")
        )
        if await run_dialog(dialog):
            await self._remembered.add_note(user, dialog.texts["text"])

    async def _delete(self) -> None:
        row, user = self.current, self._user
        if row is None:
            return
        choices = (Choice("keep", tr("Keep it"), "primary"), Choice("delete", tr("Delete"), "danger"))
        text = tr("No agent finds it any more, and nothing brings it back.")
        if await ask(self, tr("Delete this note?"), text, choices, icon="trash", role="ask") == "delete":
            await self._remembered.delete_note(user, row.text_id)
            self._typed.put(_name(row), None)


def _name(note: TextRow) -> str:
    return f"note {note.text_id}"


def _metadata_fault(texts: dict[str, str]) -> str:
    text = texts["metadata"].strip()
    if not text:
        return ""
    try:
        return "" if isinstance(json.loads(text), dict) else tr("metadata is a JSON object")
    except (ValueError, RecursionError) as error:
        return tr("metadata: it is no JSON: {error}", error=error)
