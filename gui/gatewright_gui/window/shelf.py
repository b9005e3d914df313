"""The pages of a window in a stack; the welcome while nothing is open, an empty place where the policy has errors.

The page that a window begins with is made with it; another one when it is first shown or asked for, or before that in
the pauses after the start.
"""

import asyncio
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QStackedWidget

from gatewright_gui.pages.page import Page, PageContext, PageRow, TabbedPage
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.session.document import Document
from gatewright_gui.window.welcome import Welcome

MOST_ASKED = QSize(760, 400)
"""What the pages ask of the window at the most, so that it fits a screen of 1280x800 at 150 %."""

_PAUSE_S = 0.15
"""The time between two pages that are made for later, in which the window answers."""


class PageShelf(QStackedWidget):
    """One page is the current one, by its key: a tab of a place, or a place without tabs."""

    problems_requested = Signal()
    current_changed = Signal(object)
    """Key of the page that is meant to be seen: str."""

    def __init__(self, rows: Sequence[PageRow], first: str, context: PageContext) -> None:
        super().__init__()
        self._document: Document = context.document
        self._context = context
        self._rows = {one.key: one for row in rows for one in (row, *row.tabs)}
        self._place_of = {one.key: row.key for row in rows for one in (row, *row.tabs)}
        self._places: dict[str, Page] = {}
        self._current = first
        self.welcome = Welcome(context.tasks)
        self.empty = EmptyState(
            "shield-x",
            tr("The policy has errors"),
            tr("No agent may call anything until the file is mended. Look at the problems, mend it, then reload."),
            action=tr("Show problems"),
        )
        self.empty.setObjectName("window.empty")
        self.empty.action_requested.connect(self.problems_requested)
        self.addWidget(self.welcome)
        self.addWidget(self.empty)
        self.page(self._current)
        self.show_page(self._current)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """For a moment a new page may ask for more than it needs: the window does not grow for that."""
        return super().minimumSizeHint().boundedTo(MOST_ASKED)

    @property
    def current_key(self) -> str:
        """Key of the page that is meant to be seen."""
        return self._current

    @property
    def current_row(self) -> PageRow:
        """The row of the page that is meant to be seen."""
        return self._rows[self._current]

    @property
    def current_place(self) -> str:
        """Key of the place that is meant to be seen."""
        return self.place_of(self._current)

    def place_of(self, key: str) -> str:
        """Return the key of the place that a page is in. Raises KeyError for an unknown key."""
        return self._place_of[key]

    @property
    def pages(self) -> Mapping[str, Page]:
        """The pages that were made, by key: tabs, and places without."""
        found: dict[str, Page] = {}
        for key, page in self._places.items():
            found |= page.pages if isinstance(page, TabbedPage) else {key: page}
        return found

    def knows(self, key: str) -> bool:
        """Tell whether a key is that of a page or place."""
        return key in self._rows

    def place(self, key: str) -> Page:
        """Return the place of a page, made now if nobody needed it so far. Raises KeyError for an unknown key."""
        place = self._place(self._place_of[key])
        if self.indexOf(place) < 0:
            self.addWidget(place)
        return place

    def _place(self, key: str) -> Page:
        """Return a place that may not be in the stack yet: to come into the window takes it as long again."""
        if key not in self._places:
            place = self._places[key] = self._rows[key].make(self._context)
            if isinstance(place, TabbedPage):
                place.tab_changed.connect(self._follow_tab)
        return self._places[key]

    async def make_rest(self) -> None:
        """Make the pages that nobody has shown yet, one after another, so that no first visit waits for one."""
        for key, row in self._rows.items():
            if row.tabs or key in self.pages:
                continue
            await asyncio.sleep(_PAUSE_S)
            self._place(self._place_of[key])
            await asyncio.sleep(_PAUSE_S)
            self.page(key)

    def page(self, key: str) -> Page:
        """Return a page, made now if nobody needed it so far. Raises KeyError for an unknown key."""
        place = self.place(key)
        return place.tab(key) if isinstance(place, TabbedPage) and key in place.rows else place

    def is_usable(self, key: str) -> bool:
        """Tell whether a page has something to show."""
        return self._document.is_open or (self._rows[key].works_without_policy and self._document.failure is not None)

    def focus_current(self) -> None:
        """Give the keys to what is seen."""
        if self.currentWidget() is self.welcome:
            self.welcome.buttons["new"].setFocus(Qt.FocusReason.OtherFocusReason)
        elif self.currentWidget() is self.empty:
            self.empty.action_button.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.page(self._current).focus_main()

    def end(self) -> None:
        """The window closes."""
        for page in self._places.values():
            page.end()

    def show_page(self, key: str) -> None:
        """Make a page the visible one, or say why it cannot be seen; of a place with tabs the tab chosen last."""
        if self._rows[key].tabs:
            place = self._places.get(key)
            key = place.current_key if isinstance(place, TabbedPage) else self._rows[key].tabs[0].key
        is_other, self._current = key != self._current, key
        if self.is_usable(key):
            place = self.place(key)
            if isinstance(place, TabbedPage):
                for row in place.rows.values():
                    place.enable_tab(row.key, on=self.is_usable(row.key))
                place.show_tab(key)
            self.setCurrentWidget(place)
            place.page_shown()
        else:
            self.setCurrentWidget(self.welcome if self._document.failure is None else self.empty)
        if is_other:
            self.current_changed.emit(key)

    def _follow_tab(self, key: str) -> None:
        if self._place_of[key] == self.current_place and key != self._current:
            self._current = key
            self.current_changed.emit(key)
