"""What the cells of the matrix say: in the cell, in a sentence, and outside the app."""

from gatewright_gui.session.right_columns import Cell, OperationCell, Summary

UNKNOWN = "…"
NOT_THERE = "–"
CELL_WORDS = {
    Cell.MISSING: "not in this agent's version",
    Cell.OFF: "off",
    Cell.ON: "on",
    Cell.ASKS: "asks first",
    Cell.LOCKED: "asks first, by another layer",
    Cell.OVERRULED: "off: blocked by policy",
    Cell.SOME_ASK: "on, asks first for some",
}


def short_words(found: Summary | OperationCell | None) -> str:
    """What stands in the cell."""
    match found:
        case None:
            return UNKNOWN
        case Summary():
            return f"{found.on}/{found.every}" if found.every else NOT_THERE
        case OperationCell(state, is_limited):
            return NOT_THERE if state is Cell.MISSING else f"{CELL_WORDS[state]}{', limited' * is_limited}"


def plain_words(found: Summary | OperationCell | None) -> str:
    """The cell outside the app: counts with words, so that a spreadsheet takes them for no date."""
    return f"{found.on} of {found.every}" if isinstance(found, Summary) else short_words(found)


def long_words(found: Summary | OperationCell | None) -> str:
    """The cell in a sentence."""
    match found:
        case None:
            return "being worked out"
        case Summary():
            notes = (
                f"{found.on} of {found.every} operations on",
                "some ask first" if found.asks else "",
                "some are limited" if found.limited else "",
                "some are blocked by policy" if found.overruled else "",
            )
            return ", ".join(note for note in notes if note)
        case OperationCell(state):
            return CELL_WORDS[state] if state is Cell.MISSING else short_words(found)
