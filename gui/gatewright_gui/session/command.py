"""An edit on the undo stack."""

from collections.abc import Callable

from PySide6.QtGui import QUndoCommand

from gatewright.workspace.api import Edit, inverse


class EditCommand(QUndoCommand):
    """Applies an edit, and takes it back by its inverse. Its text is the edit's name without the code marks."""

    def __init__(self, edit: Edit, apply: Callable[[Edit], None]) -> None:
        super().__init__(edit.name.replace("`", ""))
        self._edit = edit
        self._apply = apply

    def redo(self) -> None:
        """Do it."""
        self._apply(self._edit)

    def undo(self) -> None:
        """Take it back."""
        self._apply(inverse(self._edit))
