"""The parts of the preview and the choices of each, by key: what they are called, and what is said of them."""

from collections.abc import Mapping

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.session.preview import Base, Counts, Preview

PARTS = (
    ("schema", mark("Schema"), mark("The tools as the model is given them")),
    ("rules", mark("Rules"), mark("The usage rules: the text on the tools for the system prompt")),
    ("difference", mark("Diff"), mark("What limits take away and change, and what was edited since the last save")),
    ("tokens", mark("Tokens"), mark("What every tool costs, and what the limits save")),
    (
        "context",
        mark("Context"),
        mark("What its host puts into the prompt from its memory: core blocks, then pinned ones"),
    ),
)
SCOPES = (
    ("tool", mark("This tool"), mark("Only the tool of the current row")),
    ("agent", mark("All tools"), mark("Every tool of the agent")),
)
FORMS = (
    ("json", "JSON", mark("Letter by letter as the model is sent it")),
    (
        "readable",
        mark("Readable"),
        mark("With real line breaks, operations and arguments as rows, and what the model is not sent"),
    ),
)
BASES = (
    ("unrestricted", mark("Unrestricted"), mark("Against what the model would see if nothing were limited")),
    ("saved", mark("Last save"), mark("Against what the model sees by the policy as it was last saved")),
)
COPY_NAMES = {
    "schema": mark("Copy the schema"),
    "rules": mark("Copy the usage rules"),
    "difference": mark("Copy the difference"),
    "context": mark("Copy the context"),
}
COPY_KEYS = "Ctrl+Shift+C"
NO_AGENT = mark("Choose an agent at the left, or add one.")
NOTHING_CHANGED: Mapping[Base, str] = {
    "unrestricted": mark("Nothing is taken away: the model sees all of it."),
    "saved": mark("The model sees what it saw at the last save."),
}
COUNTING = mark("counting the tokens…")


def sentence(note: str) -> str:
    """A note as a sentence, without code marks."""
    plain = note.replace("`", "")
    return f"{plain[:1].upper()}{plain[1:]}." if plain else ""


def host_texts(shown: Preview, part: str) -> tuple[str, str]:
    """What the models of coding agents really get of this: where it differs, and where it does not; empty for none."""
    whole, narrowing = ", ".join(shown.whole), ", ".join(shown.narrowing)
    if part == "rules" and (whole or narrowing):
        agents = ", ".join((*shown.whole, *shown.narrowing))
        return tr("Models in {agents} do not get these rules: write them into its own instructions.", agents=agents), ""
    if part not in {"schema", "difference"}:
        return "", ""
    said = tr(
        "Models in {agents} see its tools whole, off or not: the gate refuses calls of what is off.", agents=whole
    )
    told = tr("Models in {agents} see just this, and of a tool that is off its name alone.", agents=narrowing)
    return said if whole else "", told if narrowing else ""


def counts_text(counts: Counts) -> str:
    """How much of the catalog the model sees."""
    seen = tr(
        "The model sees {tools:,} of {all_tools:,} tools, {operations:,} of {all_operations:,} operations",
        tools=counts.shown_tools,
        all_tools=counts.all_tools,
        operations=counts.shown_operations,
        all_operations=counts.all_operations,
    )
    if not counts.observed:
        return seen
    names = label_text(", ".join(counts.observed), 400)
    return tr("Enforcing would hide {names}. {seen}", names=names, seen=seen)
