"""Small widgets of the app: each knows how to show one thing, none knows what it means."""

from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.chip import Chip, VerdictBadge, chip_width, paint_chip
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.icon_rail import IconRail
from gatewright_gui.qt.widget.item_view import TableView, TreeView
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.qt.widget.number_field import NumberField
from gatewright_gui.qt.widget.progress_strip import ProgressStrip
from gatewright_gui.qt.widget.prose_line import ProseLine
from gatewright_gui.qt.widget.search_field import SearchField
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.qt.widget.splitter import SizeStore, Splitter
from gatewright_gui.qt.widget.toast import Toast

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
