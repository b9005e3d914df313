"""What a page is made from, and what the window needs of it."""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.qt.task import TaskOwner
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
        """What the keys belong to when one comes to the page; the first view that can take them, unless it says so."""
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
    """A page as a row of the window's table.

    `works_without_policy`: usable while the policy has errors; `words`: by what else the palette finds it.
    """

    key: str
    icon: str
    label: str
    make: Callable[[PageContext], Page]
    works_without_policy: bool = False
    words: str = ""
