"""The words of the cells of the matrix, Off, Ask first and On: of an operation, and counted of several."""

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.right_columns import Cell, OperationCell, Summary

UNKNOWN = "…"
NOT_THERE = "–"
OFF, ASKS, ON = mark("Off"), mark("Ask first"), mark("On")
CELL_WORDS = {
    Cell.MISSING: mark("not in this agent's version"),
    Cell.OFF: OFF,
    Cell.ON: ON,
    Cell.ASKS: ASKS,
    Cell.LOCKED: mark("Ask first, by another layer"),
    Cell.OVERRULED: mark("Off: ticked, blocked by policy"),
    Cell.SOME_ASK: mark("On, Ask first for some"),
}


def count_words(on: int, asks: int, off: int) -> str:
    """Say of how many operations each holds; one word where all are alike."""
    parts = [(count, tr(words)) for count, words in ((on, ON), (asks, ASKS), (off, OFF)) if count]
    if len(parts) == 1:
        return parts[0][1]
    return ", ".join(f"{count:,} {words}" for count, words in parts) or NOT_THERE


def part_words(found: Summary | OperationCell | None) -> str:
    """Say in figures what a mark that is filled in part stands for."""
    if not isinstance(found, Summary) or not found.on + found.asks:
        return ""
    if found.off:
        return f"{found.on + found.asks:,}/{found.on + found.asks + found.off:,}"
    return tr("{count:,} ask", count=found.asks) if found.on and found.asks else ""


def short_words(found: Summary | OperationCell | None) -> str:
    """Say what holds in a cell."""
    match found:
        case None:
            return UNKNOWN
        case Summary():
            return count_words(found.on, found.asks, found.off)
        case OperationCell(state, is_limited, but_paths, is_observed):
            said = tr(CELL_WORDS[state])
            if but_paths:
                said = tr("{state}, but for paths", state=said)
            said = tr("{state}, limited", state=said) if is_limited else said
            said = tr("{state}, only observed", state=said) if is_observed else said
            return NOT_THERE if state is Cell.MISSING else said


def long_words(found: Summary | OperationCell | None) -> str:
    """Say the cell in a sentence."""
    match found:
        case None:
            return tr("being worked out")
        case Summary():
            notes = (
                short_words(found),
                tr("some depend on the path or the value") if found.depends else "",
                tr("some are blocked by policy") if found.overruled else "",
                tr("some are only observed") if found.observed else "",
            )
            return ", ".join(note for note in notes if note)
        case OperationCell(state):
            return tr(CELL_WORDS[state]) if state is Cell.MISSING else short_words(found)
