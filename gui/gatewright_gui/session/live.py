"""Whether the console's runs go to the real workspace instead of a disposable copy.

Off whenever another workspace is opened, and never remembered from one start of the app to the next.
"""

from PySide6.QtCore import QObject, Signal


class LiveMode(QObject):
    """One for a document; who turns it on has asked before."""

    changed = Signal(object)
    """bool."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_on = False

    @property
    def is_on(self) -> bool:
        """Tell whether runs change real files and blocks."""
        return self._is_on

    def enter(self) -> None:
        """From now on runs are real."""
        self._set(on=True)

    def leave(self) -> None:
        """From now on runs happen in a copy."""
        self._set(on=False)

    def _set(self, *, on: bool) -> None:
        if on != self._is_on:
            self._is_on = on
            self.changed.emit(on)
