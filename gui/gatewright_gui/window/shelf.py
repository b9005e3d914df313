"""The pages of a window in a stack; the welcome while nothing is open, an empty place where the policy has errors.

The page that a window begins with is made with it; another one when it is first shown or asked for.
"""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QStackedWidget

from gatewright_gui.pages.page import Page, PageContext, PageRow
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.session.document import Document
from gatewright_gui.window.welcome import Welcome

MOST_ASKED = QSize(760, 400)
"""What the pages ask of the window at the most, so that it fits a screen of 1280x800 at 150 %."""


class PageShelf(QStackedWidget):
    """One page is the current one, by key."""

    problems_requested = Signal()

    def __init__(self, rows: Sequence[PageRow], first: str, context: PageContext) -> None:
        super().__init__()
        self._document: Document = context.document
        self._context = context
        self._rows = {row.key: row for row in rows}
        self._pages: dict[str, Page] = {}
        self._current = first
        self.welcome = Welcome()
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
    def pages(self) -> Mapping[str, Page]:
        """The pages that were made, by key."""
        return self._pages

    def page(self, key: str) -> Page:
        """A page, made now if nobody needed it so far. Raises KeyError for an unknown key."""
        if key not in self._pages:
            self._pages[key] = self._rows[key].make(self._context)
            self.addWidget(self._pages[key])
        return self._pages[key]

    def is_usable(self, key: str) -> bool:
        """Whether a page has something to show."""
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
        for page in self._pages.values():
            page.end()

    def show_page(self, key: str) -> None:
        """Make a page the visible one, or say why it cannot be seen."""
        self._current = key
        if self.is_usable(key):
            page = self.page(key)
            self.setCurrentWidget(page)
            page.page_shown()
            return
        self.setCurrentWidget(self.welcome if self._document.failure is None else self.empty)
