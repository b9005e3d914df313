"""Small widgets of the app: each knows how to show one thing, none knows what it means."""

from gatewright_gui.qt.widget.button import IconButton, Segmented
from gatewright_gui.qt.widget.chip import Chip, VerdictBadge, chip_width, paint_chip
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.icon_rail import IconRail
from gatewright_gui.qt.widget.item_view import TableView, TreeView
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, ProseLine, SectionHeader
from gatewright_gui.qt.widget.message_bar import MessageBar, ProgressStrip, Toast
from gatewright_gui.qt.widget.splitter import SizeStore, Splitter
from gatewright_gui.qt.widget.text_field import NumberField, SearchField

__all__ = [
    "Chip",
    "CodeView",
    "ElidedLabel",
    "EmptyState",
    "IconButton",
    "IconLabel",
    "IconRail",
    "MessageBar",
    "NumberField",
    "ProgressStrip",
    "ProseLine",
    "SearchField",
    "SectionHeader",
    "Segmented",
    "SizeStore",
    "Splitter",
    "TableView",
    "Toast",
    "TreeView",
    "VerdictBadge",
    "chip_width",
    "paint_chip",
]
