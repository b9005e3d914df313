"""The words of the preview: its parts, what one can choose, what stands where nothing is. It does not know widgets."""

from collections.abc import Mapping

from gatewright_gui.session.lints import PROVIDER_WORDS
from gatewright_gui.session.preview import Base, Counts

FORMAT_WORDS = {**PROVIDER_WORDS, "openai": "OpenAI (chat)", "openai-responses": "OpenAI (responses)"}
PARTS = (
    ("schema", "Schema", "The tools as the model is given them"),
    ("rules", "Rules", "The usage rules: the text on the tools for the system prompt"),
    ("difference", "Difference", "What limits take away and change, and what was edited since the last save"),
    ("tokens", "Tokens", "What every tool costs, and what the limits save"),
)
SCOPES = (("tool", "This tool", "Only the tool of the current row"), ("agent", "All tools", "Every tool of the agent"))
BASES = (
    ("unrestricted", "Unrestricted", "Against what the model would see if nothing were limited"),
    ("saved", "Last save", "Against what the model sees by the policy as it was last saved"),
)
COPY_NAMES = {"schema": "Copy the schema", "rules": "Copy the usage rules", "difference": "Copy the difference"}
COPY_KEYS = "Ctrl+Shift+C"

NO_AGENT = "Choose an agent at the left, or add one."
NOTHING_CHANGED: Mapping[Base, str] = {
    "unrestricted": "Nothing is taken away: the model sees all of it.",
    "saved": "The model sees what it saw at the last save.",
}
COUNTING = "counting the tokens…"


def sentence(note: str) -> str:
    """A note as a sentence, without code marks."""
    plain = note.replace("`", "")
    return f"{plain[:1].upper()}{plain[1:]}." if plain else ""


def counts_text(counts: Counts) -> str:
    """How much of the catalog the model sees."""
    tools = f"{counts.shown_tools:,} of {counts.all_tools:,} tools"
    return f"The model sees {tools}, {counts.shown_operations:,} of {counts.all_operations:,} operations"
