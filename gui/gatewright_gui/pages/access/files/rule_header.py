"""The line over the rules: which source, what was counted, and a button for each thing that can be done with a rule."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QMenu, QToolButton, QWidget

from gatewright.workspace.api import Source, SourceType
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget import IconButton, SectionHeader
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.session.files import Hits


class RuleHeader(SectionHeader):
    """The picker hides while there is only one source."""

    source_chosen = Signal(object)
    """Id of a source: str."""
    add_source_requested = Signal()
    change_source_requested = Signal(str)
    """Id of a stream, or "" for the source that is shown."""
    remove_source_requested = Signal(str)
    """As before."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Levels"), parent=parent)
        self.picker = named(QComboBox(), "files.source", spoken=tr("Source"))
        self.picker.activated.connect(self._choose)
        self.add_control(self.picker)
        add = WordButton(tr("Add rule"))
        self.add_button = named(add, "files.add", spoken=tr("Add a rule for files"), tip=tr("Add rule (Ins)"))
        tie_icon(self.add_button, "plus")
        self.add_control(self.add_button)
        self.remove_button = self._button("remove", "trash", tr("Remove rule (Del)"))
        self.up_button = self._button("up", "arrow-up", tr("Move up (Alt+Up)"))
        self.down_button = self._button("down", "arrow-down", tr("Move down (Alt+Down)"))
        self.files_button = self._button(
            "showfiles", "list-filter", tr("Show the files that the rule decides (Ctrl+Return)")
        )
        self.source_menu = QMenu(self)
        source = named(
            QToolButton(),
            "files.sourcemenu",
            spoken=tr("Source: new, settings, remove"),
            tip=tr("Add a source, change or remove this one"),
        )
        source.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        source.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        tie_icon(source, "settings", "muted")
        source.setMenu(self.source_menu)
        self.add_control(source)
        self.show_streams(())

    @property
    def offered(self) -> tuple[str, ...]:
        """The sources that can be chosen, in order."""
        return tuple(str(self.picker.itemData(row)) for row in range(self.picker.count()))

    def show_sources(self, shown: tuple[Source, ...], chosen: str | None) -> None:
        """Offer these."""
        self.picker.clear()
        for source in shown:
            self.picker.addItem(source.source_id, source.source_id)
        self.picker.setCurrentIndex(self.picker.findData(chosen))
        self.picker.setVisible(len(shown) > 1)
        is_named = chosen and len(shown) <= 1
        self.set_title(tr("Rules in {source}", source=chosen) if is_named else tr("Rules in"))

    def choose_source(self, source_id: str) -> None:
        """Show another one as chosen."""
        self.picker.setCurrentIndex(self.picker.findData(source_id))

    def show_hits(self, hits: Hits | None, dead: int) -> None:
        """Show what was counted, None before; `dead`: rules that can never decide."""
        told = [tr("{count} never used", count=dead)] if dead else []
        if hits is not None:
            files, closed = counted(hits.files, "file", "files"), hits.unreadable_folders
            told.append(tr("more than {files}", files=files) if hits.truncated else files)
            told += [tr("{count:,} folders unreadable", count=closed)] if closed else []
        self.set_note(", ".join(told))
        never = tr("never used: rules above it already match everything it matches")
        self.setToolTip("\n".join(part for part in (never if dead else "", _beside(hits)) if part))

    def _button(self, name: str, icon: str, words: str) -> IconButton:
        button = named(IconButton(icon, words), f"files.{name}")
        self.add_control(button)
        return button

    def _choose(self, row: int) -> None:
        self.source_chosen.emit(self.picker.itemData(row))

    def show_streams(self, streams: tuple[Source, ...]) -> None:
        """Offer what can be done with the source that is shown, and with these."""
        for old in self.source_menu.findChildren(QMenu):
            old.deleteLater()
        self.source_menu.clear()
        change, remove = self.change_source_requested.emit, self.remove_source_requested.emit
        add_action(self.source_menu, tr("&New source..."), self.add_source_requested.emit)
        add_action(self.source_menu, tr("&Settings of this source..."), partial(change, ""))
        self.source_menu.addSeparator()
        add_action(self.source_menu, tr("&Remove this source..."), partial(remove, ""))
        if streams:
            self.source_menu.addSeparator()
        for stream in streams:
            is_own, named = stream.kind is SourceType.HOST, button_text(stream.source_id)
            words = tr("Source {source} of a program", source=named) if is_own else tr("Stream {source}", source=named)
            menu = self.source_menu.addMenu(words)
            add_action(menu, tr("&Settings..."), partial(change, stream.source_id))
            add_action(menu, tr("&Remove..."), partial(remove, stream.source_id))


def _beside(hits: Hits | None) -> str:
    """The words for what is not in the counts of the rules."""
    if hits is None:
        return ""
    told: list[str] = []
    if hits.protected:
        told.append(tr("{count:,} files are protected: no rule opens them", count=hits.protected))
    if hits.elsewhere:
        told.append(tr("{count:,} files are decided by another source, which is stricter", count=hits.elsewhere))
    if hits.unreadable_folders:
        told.append(tr("folders that cannot be read are not counted"))
    return "\n".join(told)
