"""A button that copies a text and says so for a moment."""

from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.widget.button import IconButton

COPIED_MS = 1500


class CopyButton(IconButton):
    """`text` is asked when the button is pressed; nothing is copied where it is empty."""

    def __init__(self, name: str, text: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__("copy", name, parent=parent)
        self._name, self._text = name, text
        self._copied = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied.timeout.connect(self._reset)
        self.clicked.connect(self.copy)

    def copy(self) -> None:
        """Put the text on the clipboard."""
        text = self._text()
        if text:
            QGuiApplication.clipboard().setText(text)
            self.set_icon("check", tr("Copied"), "allow")
            self._copied.start()

    def set_name(self, name: str) -> None:
        """Say what is copied."""
        self._name = name
        self._reset()

    def _reset(self) -> None:
        self._copied.stop()
        self.set_icon("copy", self._name)
