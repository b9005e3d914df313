"""What the app says to its user without stopping them, as a value."""

from typing import Literal

from gatewright.workspace.api import frozen

Tone = Literal["info", "warning", "error"]


@frozen
class Message:
    """One sentence and how grave it is."""

    tone: Tone
    text: str
