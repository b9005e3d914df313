"""What is said to calls, in the language of the app."""

from gatewright.workspace.api import Verdict
from gatewright_gui.qt.language import mark, tr

_WORDS = {Verdict.ALLOW: mark("allow"), Verdict.ASK: mark("ask first"), Verdict.DENY: mark("deny")}


def verdict_words(verdict: Verdict) -> str:
    """`allow`, `ask first` or `deny`."""
    return tr(_WORDS[verdict])
