"""The words of the cells of the matrix: in the cell, in a sentence, and outside the app."""

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.right_columns import Cell, OperationCell, Summary

UNKNOWN = "…"
NOT_THERE = "–"
CELL_WORDS = {
    Cell.MISSING: mark("not in this agent's version"),
    Cell.OFF: mark("off"),
    Cell.ON: mark("on"),
    Cell.ASKS: mark("asks first"),
    Cell.LOCKED: mark("asks first, by another layer"),
    Cell.OVERRULED: mark("off: blocked by policy"),
    Cell.SOME_ASK: mark("on, asks first for some"),
}


def short_words(found: Summary | OperationCell | None) -> str:
    """What stands in the cell."""
    match found:
        case None:
            return UNKNOWN
        case Summary():
            return f"{found.on}/{found.every}" if found.every else NOT_THERE
        case OperationCell(state, is_limited, but_paths, is_observed):
            said = tr(CELL_WORDS[state])
            if but_paths:
                said = tr("{state}, but for paths", state=said)
            said = tr("{state}, limited", state=said) if is_limited else said
            said = tr("{state}, only observed", state=said) if is_observed else said
            return NOT_THERE if state is Cell.MISSING else said


def plain_words(found: Summary | OperationCell | None) -> str:
    """The cell outside the app: counts with words, so that a spreadsheet takes them for no date."""
    return (
        tr("{count:,} of {every:,}", count=found.on, every=found.every)
        if isinstance(found, Summary)
        else short_words(found)
    )


def long_words(found: Summary | OperationCell | None) -> str:
    """The cell in a sentence."""
    match found:
        case None:
            return tr("being worked out")
        case Summary():
            notes = (
                tr("{count:,} of {every:,} operations on", count=found.on, every=found.every),
                tr("some ask first") if found.asks else "",
                tr("some are limited") if found.limited else "",
                tr("some are blocked by policy") if found.overruled else "",
                tr("some are only observed") if found.observed else "",
            )
            return ", ".join(note for note in notes if note)
        case OperationCell(state):
            return tr(CELL_WORDS[state]) if state is Cell.MISSING else short_words(found)
