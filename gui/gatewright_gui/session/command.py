"""An edit on the undo stack."""

from collections.abc import Callable

from PySide6.QtGui import QUndoCommand

from gatewright.workspace.api import Edit, Written, inverse, text_of


class EditCommand(QUndoCommand):
    """Applies an edit, and takes it back by its inverse. Its text is the edit's name without the code marks.

    `base`: the text that the one of the policy before it is an edit of. It is handed on with every step but the first,
    so that after a save too each step leaves the text that was there. `step`: takes an edit, that text, and which way
    the stack goes.
    """

    def __init__(
        self, edit: Edit, base: Written, apply: Callable[[Edit], None], step: Callable[[Edit, Written, int], None]
    ) -> None:
        super().__init__(edit.name.replace("`", ""))
        self._edit, self._base = edit, base
        self._apply, self._step = apply, step
        self._is_done = False

    def redo(self) -> None:
        """Do it."""
        if self._is_done:
            self._step(self._edit, text_of(self._edit) or self._base, 1)
        else:
            self._is_done = True
            self._apply(self._edit)

    def undo(self) -> None:
        """Take it back."""
        self._step(inverse(self._edit), self._base, -1)
