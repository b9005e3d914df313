"""What the app says to its user without stopping them, as a value."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Message:
    """One sentence and how grave it is."""

    tone: Tone
    text: str
