"""What the tables of the Console share: their view, icons and colours of cells."""

from collections.abc import Iterable

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtWidgets import QAbstractItemView, QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role, VerdictName, current_look
from gatewright_gui.qt.widget import TableView
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.item_view import Delegate

_VERDICTS = {"allow": mark("allowed"), "ask": mark("asks"), "deny": mark("denied")}
OUTCOMES = (
    *_VERDICTS.values(),
    *(mark("allowed"), mark("denied"), mark("unanswered"), mark("failed"), mark("timed out"), mark("abandoned")),
    *(mark("cancelled"), mark("only decided"), mark("done")),
)
"""What can become of a call: words that `tr` translates where they are shown."""
PAD = 4
"""Pixels beside the words of a cell, as the style has it."""
FAILED: tuple[str, Role] = ("triangle-alert", "ask")
_ICONS: dict[str, tuple[str, Role]] = {
    "working": ("circle-dot", "accent"),
    "waiting": ("circle", "disabled"),
    "skipped": ("minus", "disabled"),
    "cancelled": ("circle-stop", "ask"),
    "failed": FAILED,
    "held": ("pause", "accent"),
    "unknown": ("circle-help", "disabled"),
}


def table_of(model: QAbstractItemModel, delegate: type[Delegate], spoken: str, name: str) -> TableView:
    """A table to read: one row can be chosen, no cell edited, and Tab leads out of it."""
    view = named(TableView(spoken), name)
    view.setModel(model)
    view.setItemDelegate(delegate(view))
    view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return view


def verdict_width(view: QWidget, least: int, texts: Iterable[str] = ()) -> int:
    """Pixels of a column that shows icon and word of a verdict, in any language; `texts`: other words, translated."""
    shown = tuple(texts) or tuple(tr(word) for word in OUTCOMES[:3])
    words = max(map(view.fontMetrics().horizontalAdvance, shown))
    return max(words + current_look().tokens.small_icon_size + 8 * PAD, least)


def outcome_text(word: str) -> str:
    """The words for what became of a call: a verdict, or how it ended."""
    return tr(_VERDICTS.get(word, word))


def verdict_mark(state: str) -> tuple[str, Role]:
    """Icon and colour of a verdict, or of a stage that has none."""
    verdicts: dict[str, VerdictName] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    if state in verdicts:
        name = verdicts[state]
        return VERDICT_ICONS[name], name
    return _ICONS[state]
