"""Page, agent, tool and closed groups of a workspace, kept when it is left and gone back to when it is opened again.

What is not there any more is passed over: then one begins where one begins in a new workspace.
"""

from collections.abc import Callable
from pathlib import Path

from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.session.document import Document
from gatewright_gui.session.selection import Selection
from gatewright_gui.session.verbs.operations import groups_to_close
from gatewright_gui.settings import LastPlace, Preferences
from gatewright_gui.window.shelf import PageShelf


class Whereabouts:
    """Of one window. Call `keep` before a workspace is left, `prepare` and `come_back` around opening one."""

    def __init__(
        self,
        document: Document,
        selection: Selection,
        shelf: PageShelf,
        preferences: Preferences,
        show_page: Callable[[str], None],
    ) -> None:
        self._document, self._selection, self._shelf = document, selection, shelf
        self._preferences, self._show_page = preferences, show_page

    def keep(self, path: Path | None = None) -> None:
        """Remember where one is, of the open workspace or of the one at ``path``; nothing while no policy is open."""
        if self._document.is_open and self._document.path is not None:
            chosen = self._selection
            place = LastPlace(
                self._shelf.current_key,
                chosen.agent_id or "",
                chosen.tool or "",
                chosen.operation or "",
                tuple(sorted(chosen.closed_groups)),
            )
            self._preferences.keep_last_place(path or self._document.path, place)

    def prepare(self, path: Path) -> None:
        """Into an empty window the agent and the tool come first, so that no other is shown before them."""
        kept = self._preferences.last_place(path)
        if kept is not None and not self._document.is_open:
            self._selection.close_groups(kept.closed_groups)
            self._selection.choose_agent(kept.agent_id or None)
            self._agents.tools.first_row = (kept.tool, kept.operation or None)

    def come_back(self) -> None:
        """To where one was in the workspace that is open now."""
        path = self._document.path
        kept = self._preferences.last_place(path) if path is not None else None
        self._selection.close_groups(kept.closed_groups if kept is not None else groups_to_close(self._document))
        if kept is None:
            return
        if kept.agent_id in self._document.policy.agents:
            self._selection.choose_agent(kept.agent_id)
        if kept.tool and (self._selection.tool or "", self._selection.operation or "") != (kept.tool, kept.operation):
            self._agents.tools.view.show_row(kept.tool, kept.operation or None)
        if kept.page and kept.page != self._shelf.current_key:
            self._show_page(kept.page)

    @property
    def _agents(self) -> ToolsPage:
        page = self._shelf.page("tools")
        if not isinstance(page, ToolsPage):
            raise TypeError("the page `tools` is that of the tools")
        return page
