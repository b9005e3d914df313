"""What the app says to its user without stopping them, as a value."""

from typing import Literal

from gatewright.workspace.api import frozen

Tone = Literal["info", "warning", "error"]


@frozen
class Message:
    """One sentence and how grave it is; ``can_undo``: it tells of an edit that one may want to take back at once."""

    tone: Tone
    text: str
    can_undo: bool = False
