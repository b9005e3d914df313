"""What a page is made from, and what the window needs of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractScrollArea, QStackedWidget, QTabBar, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.coding_agents import CodingAgents
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.draft import PolicyDraft
from gatewright_gui.session.navigator import Navigator
from gatewright_gui.session.selection import Selection
from gatewright_gui.session.waiting import Waiting
from gatewright_gui.settings import Preferences


@frozen
class PageContext:
    """Everything a page may use. One for all pages of a window."""

    document: Document
    selection: Selection
    navigator: Navigator
    deriver: Deriver
    tasks: TaskOwner
    sizes: Preferences
    waiting: Waiting
    draft: PolicyDraft
    coding_agents: CodingAgents
    save: Callable[[], Awaitable[bool]]
    """Saves after what changes was shown; whether it is saved."""


class Page(QWidget):
    """A page of the window; its constructor takes a `PageContext` and nothing else."""

    def focus_search(self) -> None:
        """Ctrl+F: put the cursor where one searches; nothing where there is nothing to search."""

    def page_shown(self) -> None:
        """The page became the visible one: bring what was put off up to date."""

    def end(self) -> None:
        """The window closes: stop what works for the page and remove what it made."""

    def main_view(self) -> QWidget | None:
        """The owner of the keys when one comes to the page; the first view that can take them, unless it says so."""
        return next((view for view in self.findChildren(QAbstractScrollArea) if _takes_keys(view, self)), None)

    def focus_main(self) -> None:
        """Give the keys to the page's main view."""
        view = self.main_view()
        if view is not None:
            view.setFocus(Qt.FocusReason.OtherFocusReason)


def _takes_keys(view: QAbstractScrollArea, page: QWidget) -> bool:
    can = view.isVisibleTo(page) and view.isEnabledTo(page)
    return can and bool(view.focusPolicy() & Qt.FocusPolicy.TabFocus)


@frozen
class PageRow:
    """A page as a row of a table: of the window's places, or of the tabs of one.

    `icon`: "" for a tab; `works_without_policy`: usable while the policy has errors; `words`: by what else the palette
    finds it; `tabs`: the pages in it, of which one is shown; `at_foot`: stands at the foot of the rail; `is_read`: one
    looks and tries there, and no room is kept for what an edit changes.
    """

    key: str
    icon: str
    label: str
    make: Callable[[PageContext], Page]
    works_without_policy: bool = False
    words: str = ""
    tabs: tuple["PageRow", ...] = ()
    at_foot: bool = False
    is_read: bool = False


class TabbedPage(Page):
    """A page of tabs, each a page of its own that is made when it is first shown."""

    tab_changed = Signal(object)
    """Key of the tab that was chosen: str."""

    def __init__(self, context: PageContext, name: str, rows: Sequence[PageRow]) -> None:
        super().__init__()
        self.setObjectName(name)
        self.context, self.rows = context, {row.key: row for row in rows}
        self._pages: dict[str, Page] = {}
        self._is_shown = False
        self.bar = named(QTabBar(), f"{name}.tabs", spoken=tr("Parts of the page"))
        self.bar.setExpanding(False)
        self.bar.setUsesScrollButtons(True)
        for row in rows:
            self.bar.addTab(tr(row.label))
        self.stack = QStackedWidget()
        column_of(stretch(self.frame()), into=self)
        self.bar.currentChanged.connect(self._show_current)

    def frame(self) -> QWidget:
        """Lay out the bar of tabs and what is below it."""
        return holding(column_of(self.bar, stretch(self.stack)))

    def make_tab(self, row: PageRow) -> Page:
        """Make the page of a tab."""
        return row.make(self.context)

    @property
    def current_key(self) -> str:
        """Key of the chosen tab."""
        return list(self.rows)[self.bar.currentIndex()]

    @property
    def pages(self) -> Mapping[str, Page]:
        """The pages of tabs that were made, by key."""
        return self._pages

    def tab(self, key: str) -> Page:
        """Return the page of a tab, made now if nobody needed it so far. Raises KeyError for an unknown key."""
        if key not in self._pages:
            self._pages[key] = self.make_tab(self.rows[key])
            self.stack.addWidget(self._pages[key])
        return self._pages[key]

    def show_tab(self, key: str) -> None:
        """Choose a tab. Raises ValueError for an unknown key."""
        self.bar.setCurrentIndex(list(self.rows).index(key))

    def set_note(self, key: str, note: str) -> None:
        """Say something short behind the name of a tab, such as a count; "" takes it away."""
        name = tr(self.rows[key].label)
        self.bar.setTabText(list(self.rows).index(key), f"{name}  {note}" if note else name)

    def enable_tab(self, key: str, *, on: bool) -> None:
        """Let a tab be chosen, or not."""
        self.bar.setTabEnabled(list(self.rows).index(key), on)

    def _show_current(self, _index: int) -> None:
        if self._is_shown:
            self.page_shown()
        self.tab_changed.emit(self.current_key)

    def page_shown(self) -> None:
        """The chosen tab became visible."""
        self._is_shown = True
        page = self.tab(self.current_key)
        self.stack.setCurrentWidget(page)
        page.page_shown()

    def focus_search(self) -> None:
        """Ctrl+F: in the chosen tab."""
        self.tab(self.current_key).focus_search()

    def focus_main(self) -> None:
        """Give the keys to the chosen tab."""
        self.tab(self.current_key).focus_main()

    def main_view(self) -> QWidget | None:
        """Return the main view of the chosen tab."""
        return self.tab(self.current_key).main_view()

    def end(self) -> None:
        """End all tabs that were made."""
        for page in self._pages.values():
            page.end()
