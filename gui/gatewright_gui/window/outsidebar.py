"""The bar that says what others did to the policy file: they wrote it, or it is gone. It does nothing about it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.session.document import Document


class OutsideBar(MessageBar):
    """Says what the document knows; what the buttons wish for is told by signals."""

    reload_requested = Signal()
    save_over_requested = Signal()
    write_requested = Signal()
    """The file is to be written again where it is gone."""
    save_as_requested = Signal()
    difference_requested = Signal()
    merge_requested = Signal()
    """The file is to be read and the unsaved changes made again on top of it."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.setObjectName("window.outside")
        self.close_button.set_icon("x", tr("Keep what is open here"))
        self.action_requested.connect(self._act)
        self.other_requested.connect(self._act_otherwise)
        self.more_requested.connect(self.difference_requested)
        self.merge_button = named(
            QPushButton(tr("Merge")),
            "window.outside.merge",
            tip=tr("Read the file and make the unsaved changes again on top; only where both changed different things"),
        )
        self.merge_button.clicked.connect(self.merge_requested)
        self.add_button(self.merge_button)

    def tell_changed(self) -> None:
        """Somebody else wrote the file; what the bar says already is that and more."""
        if not self.isVisible():
            self._tell(self._changed)

    def tell_refused(self) -> None:
        """Nothing was saved for that reason."""
        self._tell(f"{tr('Not saved.')} {self._changed}")

    def tell_gone(self) -> None:
        """There is no file any more, or it is back."""
        if not self._document.is_gone:
            self.dismiss()
            return
        text = tr(
            "The policy file is gone from the disk. The policy that is open here stays in force; "
            "write it again to keep it."
        )
        self.show_message("warning", text, action=tr("Write it again"), other=tr("Save as..."))
        self.merge_button.hide()

    def _tell(self, text: str) -> None:
        is_dirty = self._document.is_dirty
        if is_dirty:
            text += " " + tr(
                "Merge both, take theirs (the unsaved changes here are gone), or keep mine (theirs are gone)."
            )
        action, other = (tr("Take theirs"), tr("Keep mine")) if is_dirty else (tr("Reload"), None)
        self.show_message("warning", text, action=action, other=other, more=tr("Show what changed"))
        self.merge_button.setVisible(is_dirty)

    @property
    def _changed(self) -> str:
        if len(self._document.files) > 1:
            return tr("The policy file, or a manifest that it names, was changed outside this window.")
        return tr("The policy file was changed outside this window.")

    def _act(self) -> None:
        (self.write_requested if self._document.is_gone else self.reload_requested).emit()

    def _act_otherwise(self) -> None:
        (self.save_as_requested if self._document.is_gone else self.save_over_requested).emit()
