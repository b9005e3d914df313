"""The rights of all agents as a picture or as a list of the same facts, and above it what one points at in words."""

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QPushButton, QScrollArea, QWidget

from gatewright_gui.pages.overview.picture import RightsCanvas
from gatewright_gui.pages.overview.picture_layout import Part, lit_flows
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.rights_picture import Flow, RightsPicture
from gatewright_gui.settings import Preferences

MODE_KEY = "overview.rights"
LEGEND = mark("solid: on, dots: ask first, stripes: blocked; a click lights what concerns it")
NOTHING = (
    "shield",
    mark("Nothing is on yet"),
    mark("Tick operations on the page Agents: here is seen who may do what with what."),
)


class FlowModel(RowModel[Flow]):
    """A row for each right, and for each place that a tool comes at by it."""

    headers = (mark("Agent"), mark("Tool"), mark("Comes at"), mark("On"), mark("Ask first"))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._picture = RightsPicture()

    def show_flows(self, picture: RightsPicture, chosen: Part) -> None:
        """Show what a part of the picture concerns; () is all of it."""
        self._picture = picture
        self.set_rows(lit_flows(picture, chosen))

    def text(self, row: Flow, column: int) -> str:
        """Names and counts."""
        if column > 2:
            return f"{row.allow if column == 3 else row.ask:,}"
        number = (row.agent, row.tool, row.source)[column]
        return "" if number is None else self._picture.nodes[number].title


class PicturePane(QWidget):
    """Both views show what is chosen in the picture."""

    def __init__(self, views: Preferences) -> None:
        super().__init__()
        self._views = views
        self.canvas = RightsCanvas()
        self.model = FlowModel(self)
        self.words = named(ElidedLabel(role="muted"), "overview.words")
        self.mode = named(Segmented(tr("Picture or list")), "overview.mode")
        self.mode.add_segment("picture", tr("Picture"))
        self.mode.add_segment("list", tr("List"), tooltip=tr("The same in words and numbers"))
        self.list = named(TableView(tr("Rights of all agents")), "overview.flows")
        self.list.setModel(self.model)
        for column in range(3):
            self.list.setColumnWidth(column, 170)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.nothing = EmptyState("shield", "", "")
        scroll = QScrollArea()
        scroll.setWidget(self.canvas)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._stack = stack_of(scroll, self.list, self.nothing)
        header = SectionHeader(tr("Rights"))
        self.all_button = named(
            QPushButton(tr("Show all")), "overview.all", tip=tr("Light everything again (Escape)"), kind="link"
        )
        self.all_button.clicked.connect(lambda: self.canvas.choose(self.canvas.chosen))
        for control in (self.all_button, self.mode):
            header.add_control(control)
        column_of(header, row_of(stretch(self.words), margins=(2, 0, 2, 1)), stretch(self._stack), into=self)
        self.canvas.chosen_changed.connect(self._choose)
        self.canvas.told.connect(self._tell)
        self.mode.current_changed.connect(self._show_mode)
        if views.choice(MODE_KEY) == "list":
            self.mode.set_current("list")
        self._choose(())
        self._tell("")
        self.nothing.set_unknown()

    def forget(self) -> None:
        """Nothing is known any more."""
        self.show_picture(RightsPicture())
        self.nothing.set_unknown()

    def show_picture(self, picture: RightsPicture) -> None:
        """Show other rights."""
        self.nothing.set_state(*map(tr, NOTHING), action=tr("Go to Agents"))
        self.canvas.show_picture(picture)
        self._choose(self.canvas.chosen)
        self._show_mode(self.mode.current)

    def _choose(self, chosen: Part) -> None:
        self.model.show_flows(self.canvas.picture, chosen)
        self.all_button.setVisible(bool(chosen))

    def _tell(self, words: str) -> None:
        self.words.set_text(words or tr(LEGEND))

    def _show_mode(self, mode: object) -> None:
        self._views.set_choice(MODE_KEY, str(mode))
        self._stack.setCurrentIndex(2 if not self.canvas.picture.flows else 1 if mode == "list" else 0)
