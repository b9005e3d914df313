"""Shows who can do what, as a picture or a list, and above it the part under the pointer in words."""

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QPushButton, QScrollArea, QWidget

from gatewright_gui.pages.home.picture import ReachCanvas
from gatewright_gui.pages.home.picture_layout import Flow, Part, Picture, by_risk, by_use, lit_flows, picture_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import ElidedLabel, SectionHeader
from gatewright_gui.session.effects import Reaches, Used
from gatewright_gui.settings import Preferences

MODE_KEY = "home.reach"
LEGEND = mark("Dotted: asks first; the rest does not. Click an agent or an effect to see it alone.")
NOTHING = (
    "shield",
    mark("Nothing is on yet"),
    mark("Tick operations in Access; then this shows who can do what."),
)
_RANKS = {"risk": by_risk, "use": by_use}


class FlowModel(RowModel[Flow]):
    """A row for each agent and effect."""

    headers = (mark("Agent"), mark("Can do"), mark("Without asking"), mark("Ask first"))
    numeric = frozenset({2, 3})

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._picture = Picture()

    def show_flows(self, picture: Picture, chosen: Part) -> None:
        """Show what a part of the picture concerns; () is all of it."""
        self._picture = picture
        self.set_rows(lit_flows(picture, chosen))

    def text(self, row: Flow, column: int) -> str:
        """Names and counts."""
        if column > 1:
            return f"{row.count.free if column == 2 else row.count.asks:,}"
        return self._picture.nodes[(row.agent, row.effect)[column]].title


class PicturePane(QWidget):
    """Both views show what is chosen in the picture."""

    def __init__(self, views: Preferences) -> None:
        super().__init__()
        self._views = views
        self._reaches: Reaches = {}
        self._used: Used = ()
        self.canvas = ReachCanvas()
        self.model = FlowModel(self)
        self.words = named(ElidedLabel(role="muted"), "home.words")
        self.mode = named(Segmented(tr("Which agents, and how")), "home.mode")
        self.mode.add_segment(
            "risk", tr("By risk"), tooltip=tr("First the agents that can delete or run without asking")
        )
        self.mode.add_segment("use", tr("By use"), tooltip=tr("First the agents that use most of their rights"))
        self.mode.add_segment("all", tr("All"), tooltip=tr("Every agent, in the order of the policy"))
        self.mode.add_segment("list", tr("List"), tooltip=tr("The same in words and numbers"))
        self.list = named(TableView(tr("What agents can do")), "home.flows")
        self.list.setModel(self.model)
        for column, width in enumerate((170, 130, 110, 90)):
            self.list.setColumnWidth(column, width)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.nothing = EmptyState("shield", "", "")
        scroll = QScrollArea()
        scroll.setWidget(self.canvas)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._stack = stack_of(scroll, self.list, self.nothing)
        header = SectionHeader(tr("Who can do what"))
        self.all_button = named(
            QPushButton(tr("Show all")), "home.all", tip=tr("Light everything again (Escape)"), kind="link"
        )
        self.all_button.clicked.connect(lambda: self.canvas.choose(self.canvas.chosen))
        for control in (self.all_button, self.mode):
            header.add_control(control)
        column_of(header, row_of(stretch(self.words), margins=(2, 0, 2, 1)), stretch(self._stack), into=self)
        self.canvas.chosen_changed.connect(self._choose)
        self.canvas.told.connect(self._tell)
        self.mode.current_changed.connect(self._change_mode)
        self.mode.set_current(views.choice(MODE_KEY) if views.choice(MODE_KEY) in {"use", "all", "list"} else "risk")
        self._tell("")
        self.forget()

    def forget(self) -> None:
        """Say that nothing is known any more."""
        self.show_reaches({}, ())
        self.nothing.set_unknown()

    def show_reaches(self, reaches: Reaches, used: Used) -> None:
        """Show what agents can do, and rank them by the rights that calls have used."""
        self._reaches, self._used = reaches, used
        self.nothing.set_state(*map(tr, NOTHING), action=tr("Go to Access"))
        rank = _RANKS.get(str(self.mode.current))
        self.canvas.show_picture(picture_of(reaches, rank(reaches, used) if rank else ()))
        self._choose(self.canvas.chosen)
        is_list = self.mode.current == "list"
        self._stack.setCurrentIndex(2 if not self.canvas.picture.flows else 1 if is_list else 0)
        self._tell("")

    def _choose(self, chosen: Part) -> None:
        self.model.show_flows(self.canvas.picture, chosen)
        self.all_button.setVisible(bool(chosen))

    def _tell(self, words: str) -> None:
        self.words.set_text(words or ("" if self.mode.current == "list" else tr(LEGEND)))

    def _change_mode(self, mode: object) -> None:
        self._views.set_choice(MODE_KEY, str(mode))
        if self._reaches:
            self.show_reaches(self._reaches, self._used)
