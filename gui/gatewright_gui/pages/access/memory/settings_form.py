"""What a block is besides what it holds: type, level, limit, whether it is pinned, what it is about."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import Permission
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import NumberField
from gatewright_gui.session.memory import BlockContent, BlockSettings, BlockType
from gatewright_gui.session.verdict import permission_words

MOST_CHARS = 4 * 1024 * 1024
_TYPES = {
    BlockType.CORE: mark("core: always in context"),
    BlockType.WORKING: mark("working: in context while it is pinned"),
    BlockType.LOG: mark("log: a running record"),
}
LEVELS = {
    Permission.READ_WRITE: mark("agents change it"),
    Permission.APPEND: mark("agents add to it"),
    Permission.PARTNER: mark("agents ask before they change it"),
    Permission.HUMAN: mark("agents ask before they change it"),
    Permission.READ_ONLY: mark("agents read it"),
    Permission.ADMIN: mark("agents change it and delete it"),
    Permission.ASK: mark("every access asks first, reading too"),
    Permission.NONE: mark("agents do not even see it"),
}


def level_line(level: Permission) -> str:
    """The words of a level, and what it lets agents do with a block."""
    return f"{permission_words(level)}: {tr(LEVELS[level])}"


class SettingsFields(QWidget):
    """The fields alone, for a block that is there and for one that is to be made. ``name`` begins their names."""

    changed = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.type = named(QComboBox(), f"{name}.type", spoken=tr("Type"))
        for kind, words in _TYPES.items():
            self.type.addItem(tr(words), kind)
        self.type.setCurrentIndex(1)
        self.level = named(QComboBox(), f"{name}.level", spoken=tr("Level for agents"))
        for level in LEVELS:
            self.level.addItem(level_line(level), level)
        self.level.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.level.setMinimumContentsLength(24)
        self.limit = named(NumberField(tr("Limit"), 0, MOST_CHARS, unit=tr("characters")), f"{name}.limit")
        self.limit.setSpecialValueText(tr("no limit of its own"))
        self.limit.setGroupSeparatorShown(True)
        self.pinned = named(QCheckBox(tr("Pinned: it stays in context")), f"{name}.pinned")
        self.about = named(QLineEdit(), f"{name}.about", spoken=tr("Description"))
        self.about.setPlaceholderText(tr("what it is about, told to the model"))
        self.rows = QFormLayout(self)
        self.rows.setContentsMargins(0, 0, 0, 0)
        for words, field in (
            (tr("Type"), self.type),
            (tr("Level"), self.level),
            (tr("Limit"), self.limit),
            (tr("About"), self.about),
        ):
            self.rows.addRow(Label(words), field)
        self.rows.addRow("", self.pinned)
        for signal in (
            self.type.currentIndexChanged,
            self.level.currentIndexChanged,
            self.limit.valueChanged,
            self.pinned.toggled,
            self.about.textChanged,
        ):
            signal.connect(self.changed)

    @property
    def settings(self) -> BlockSettings:
        """The settings that the fields say."""
        return BlockSettings(
            BlockType(self.type.currentData()),
            Permission(self.level.currentData()),
            self.limit.value(),
            self.about.text(),
            self.pinned.isChecked(),
        )

    def set_settings(self, of: BlockSettings) -> None:
        """Fill the fields."""
        if of.type is BlockType.ARCHIVAL and self.type.findData(of.type) < 0:
            self.type.addItem(tr("archival: put away"), of.type)
        elif of.type is not BlockType.ARCHIVAL and (at := self.type.findData(BlockType.ARCHIVAL)) >= 0:
            self.type.removeItem(at)
        self.type.setCurrentIndex(self.type.findData(of.type))
        self.level.setCurrentIndex(self.level.findData(of.permission))
        self.limit.setValue(of.char_limit or 0)
        self.about.setText(of.description or "")
        self.pinned.setChecked(bool(of.pinned))


class SettingsForm(QWidget):
    """The settings of a block that is there; what was changed and not applied stays when the block changes."""

    apply_requested = Signal(object)
    """BlockSettings: what is to be changed, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._before: BlockSettings = BlockSettings()
        self._block_id = ""
        self.fields = SettingsFields("memory.settings")
        self.note = named(Label(wraps=True), "memory.settings_note", kind="muted")
        self.apply_button = named(
            QPushButton(tr("Apply")), "memory.apply", spoken=tr("Apply the settings"), kind="primary"
        )
        foot = row_of(stretch(self.note), self.apply_button, space=2)
        column_of(self.fields, foot, stretch(), into=self, space=3, margins=3)
        self.fields.changed.connect(self._tell)
        self.apply_button.clicked.connect(self._apply)

    def show_content(self, content: BlockContent) -> None:
        """Show the settings of a block."""
        record, info = content.info.record, content.info
        new = BlockSettings(
            record.type, info.permission, record.char_limit or 0, record.description, pinned=record.pinned
        )
        if record.block_id != self._block_id or not self._changes or new != self._before:
            self._block_id, self._before = record.block_id, new
            self.fields.set_settings(new)
        is_file, is_archived = bool(record.source_id), record.type is BlockType.ARCHIVAL
        self.fields.type.setEnabled(not is_archived)
        self.fields.pinned.setEnabled(not is_archived)
        for field in (self.fields.level, self.fields.limit):
            field.setEnabled(not is_file)
        said = [tr("level and size are those of the file: its source says them")] * is_file
        said += [tr("it is put away: bring it back to pin it or to give it another type")] * is_archived
        self.note.setText("; ".join(said))
        self._tell()

    @property
    def _changes(self) -> BlockSettings | None:
        """The settings that differ from the block; None where nothing does."""
        now, before = self.fields.settings, self._before
        changes = BlockSettings(
            None if now.type == before.type else now.type,
            None if now.permission == before.permission else now.permission,
            None if now.char_limit == before.char_limit else now.char_limit,
            None if now.description == before.description else now.description,
            None if now.pinned == before.pinned else now.pinned,
        )
        return None if changes == BlockSettings() else changes

    def _tell(self) -> None:
        self.apply_button.setEnabled(self._changes is not None)

    def _apply(self) -> None:
        changes = self._changes
        if changes is not None:
            self.apply_requested.emit(changes)
