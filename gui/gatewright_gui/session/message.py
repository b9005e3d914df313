"""What the app says to its user without stopping them, as a value."""

from typing import Literal

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import tr

Tone = Literal["info", "warning", "error"]


@frozen
class Message:
    """One sentence and how grave it is; ``can_undo``: it tells of an edit that one may want to take back at once;
    ``can_save_as``: of a file that could not be written, which another place may help.
    """

    tone: Tone
    text: str
    can_undo: bool = False
    can_save_as: bool = False


def not_saved(error: Exception) -> Message:
    """That the policy could not be written, and why."""
    why = str(error)
    text = why if "was not saved" in why else tr("not saved: {reason}", reason=why)
    return Message("error", text, can_save_as=True)
