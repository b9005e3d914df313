"""One block: its value, what the model is shown, its settings, its history, and who may touch it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright_gui.models.access import AccessTable
from gatewright_gui.pages.access.memory.history_pane import HistoryPane
from gatewright_gui.pages.access.memory.settings_form import SettingsForm
from gatewright_gui.pages.access.memory.value_pane import Draft, ValuePane
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import ElidedLabel, SectionHeader
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.qt.widget.splitter import SizeStore
from gatewright_gui.session.block_access import GROUPS, BlockAccess
from gatewright_gui.session.memory import BlockContent, BlockRow, BlockType, author_words

PARTS = (
    ("value", mark("Value"), mark("All that it holds, to be changed here")),
    ("shown", mark("As shown"), mark("What the model is shown of it: a text with a viewport shows those lines alone")),
    ("settings", mark("Settings"), mark("Type, level, limit, description")),
    ("history", mark("History"), mark("Who changed it and when, each value, and the way back")),
    ("access", mark("Who may"), mark("Which agents may touch it, and how")),
)


class BlockPane(QWidget):
    """Shows one block; its value pane, settings and history ask for what is to be done by their own signals."""

    archive_requested = Signal()
    delete_requested = Signal()
    theirs_requested = Signal()
    """The value as it is now is to be shown, in the place of what was typed."""
    kept = Signal()
    """What was typed is to go over the value as it is now."""

    def __init__(self, sizes: SizeStore, tasks: TaskOwner) -> None:
        super().__init__()
        self.setObjectName("memory.block")
        self.content: BlockContent | None = None
        self.header = SectionHeader(tr("Block"))
        self.archive_button = named(QPushButton(tr("Put away")), "memory.archive")
        spoken, tip = tr("Delete the block"), tr("Forget it with its history")
        self.delete_button = named(QPushButton(tr("Delete...")), "memory.delete", spoken=spoken, tip=tip)
        tie_icon(self.delete_button, "trash")
        for button in (self.archive_button, self.delete_button):
            self.header.add_control(button)
        self.bar = named(MessageBar(), "memory.block_bar")
        self.place = named(ElidedLabel(role="muted"), "memory.place")
        self.part = named(Segmented(tr("What to show of the block"), is_dense=True), "memory.part")
        for key, words, tip in PARTS:
            self.part.add_segment(key, tr(words), tooltip=tr(tip))
        self.value = ValuePane(tasks)
        self.shown = named(CodeView(tr("What the model is shown")), "memory.shown")
        self.settings = SettingsForm()
        self.history = HistoryPane(sizes)
        self.access = named(AccessTable(tr("Which agents may touch the block"), GROUPS), "memory.access")
        self._parts: dict[str, QWidget] = {
            "value": self.value,
            "shown": self.shown,
            "settings": self.settings,
            "history": self.history,
            "access": self.access,
        }
        self._stack = stack_of(*self._parts.values())
        tabs = row_of(self.part, stretch(), margins=(2, 0, 2, 1))
        about = row_of(stretch(self.place), margins=(2, 0, 2, 1))
        column_of(self.header, about, tabs, stretch(self._stack), into=self)
        FootBars(self, self.bar)
        self.part.current_changed.connect(self._show_part)
        self.archive_button.clicked.connect(self.archive_requested)
        self.delete_button.clicked.connect(self.delete_requested)
        self.bar.action_requested.connect(self.theirs_requested)
        self.bar.other_requested.connect(self.kept)

    def show_content(
        self, content: BlockContent, row: BlockRow, place: str, access: tuple[BlockAccess, ...], draft: Draft | None
    ) -> None:
        """Show a block as it is now, with what was typed over an earlier value of it."""
        before, record = self.content, content.info.record
        is_other = before is None or (before.agent_id, before.label) != (content.agent_id, content.label)
        self.content = content
        self.header.set_title(record.label)
        self.header.set_note(record.description)
        whose = tr("its own") if record.owner else tr("shared by all agents")
        self.place.set_text(f"{row.kind_words}, {whose}. {place}")
        is_archived = record.type is BlockType.ARCHIVAL
        self.archive_button.setText(tr("Bring back") if is_archived else tr("Put away"))
        self.archive_button.setToolTip(
            tr("Make it a working block again")
            if is_archived
            else tr("Take it out of the model's sight; agents still find it by its words")
        )
        self.archive_button.setEnabled(is_archived or (record.type is BlockType.WORKING and not record.source_id))
        self.value.show_content(content, draft)
        if content is not before or not self.bar.is_error:  # what went wrong stays until something is another
            self._tell_draft(content, draft)
        self._show_part(self.part.current)
        self.settings.show_content(content)
        self.access.rows.set_rows(access)
        self.history.show_steps(content.steps, afresh=is_other)

    def say(self, problem: str) -> None:
        """Something could not be done; nothing that was typed is lost."""
        self.bar.show_message("error", problem)

    def _tell_draft(self, content: BlockContent, draft: Draft | None) -> None:
        if draft is None or draft.content.info.steps == content.info.steps:
            self.bar.hide()
            return
        last = content.steps[-1] if content.steps else None
        who = author_words(last.author) if last is not None else tr("somebody")
        text = tr("{who} changed it meanwhile. What you typed is not saved.", who=who)
        self.bar.show_message("warning", text, action=tr("Show theirs"), other=tr("Keep mine"))

    def _show_part(self, key: object = None) -> None:
        self._stack.setCurrentWidget(self._parts[str(key or "value")])
        if key == "shown" and self.content is not None:
            self.shown.set_plain(self.content.shown)
