"""The pages of a window in a stack, with an empty place where a page needs a policy and there is none.

The first page is made with the window; another one when it is first shown or asked for.
"""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright_gui.pages.page import Page, PageContext, PageRow
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.session.document import Document

NOTHING_OPEN = "Open a policy file, or look around in the demo: a small workspace of your own to try things in."


class PageShelf(QStackedWidget):
    """One page is the current one, by key."""

    problems_requested = Signal()
    open_requested = Signal()
    demo_requested = Signal()

    def __init__(self, rows: Sequence[PageRow], context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document: Document = context.document
        self._context = context
        self._rows = {row.key: row for row in rows}
        self._pages: dict[str, Page] = {}
        self._current = rows[0].key
        self.empty = EmptyState("folder-open", "No workspace is open", NOTHING_OPEN)
        self.empty.setObjectName("window.empty")
        self.empty.action_requested.connect(self._wish)
        self.empty.other_requested.connect(self.demo_requested)
        self.addWidget(self.empty)
        self.page(self._current)
        self.show_page(self._current)

    @property
    def current_key(self) -> str:
        """Key of the page that is meant to be seen."""
        return self._current

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
        if self.currentWidget() is self.empty:
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
        if self._document.failure is not None:
            text = "No agent may call anything until the file is mended. Look at the problems, mend it, then reload."
            self.empty.set_state("shield-x", "The policy has errors", text, action="Show problems")
        else:
            self.empty.set_state(
                "folder-open", "No workspace is open", NOTHING_OPEN, action="Open...", other="Open the demo"
            )
        self.setCurrentWidget(self.empty)

    def _wish(self) -> None:
        (self.problems_requested if self._document.failure else self.open_requested).emit()
