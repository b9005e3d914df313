"""The history and the session below the request, kept up to date and acted on. It makes no call."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from gatewright.base.errors import GatewrightError
from gatewright_gui.pages.console.compare_dialog import CompareDialog
from gatewright_gui.pages.console.exact import ExactDialog
from gatewright_gui.pages.console.history import HistoryPanel
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import shown
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.comparison import compared
from gatewright_gui.session.console import Console
from gatewright_gui.session.conversation import SessionState


class HistoryControl(QObject):
    """`agent_id` tells whose session is shown."""

    def __init__(
        self,
        context: PageContext,
        console: Console,
        history: HistoryPanel,
        page: QWidget,
        agent_id: Callable[[], str | None],
    ) -> None:
        super().__init__(page)
        self._context, self._console, self._history, self._page = context, console, history, page
        self._agent_id = agent_id
        history.revoke_requested.connect(self._revoke)
        history.reset_requested.connect(self._reset_session)
        history.compare_requested.connect(self._compare)
        history.clear_requested.connect(console.forget_calls)
        console.records_changed.connect(self._show_records)
        console.session_changed.connect(self._show_session)

    def show_session(self) -> None:
        """Show where the conversation of the agent stands."""
        agent_id = self._agent_id()
        if agent_id is None:
            self._history.show_session(None)
        else:
            self._show_session(self._console.session_state(agent_id))

    def show_exact(self, record: CallRecord) -> None:
        """Show exactly what the model gets of a call."""
        self._context.tasks.start(shown(ExactDialog(self._page, record)), "console.exact", replace=True)

    def _show_records(self) -> None:
        self._history.set_records(self._console.records)

    def _show_session(self, state: SessionState) -> None:
        if state.agent_id != self._agent_id():
            return
        self._history.show_session(state)
        if not state.is_whole:
            look = self._console.look_at_session(state.agent_id)
            self._context.tasks.start(look, "console.session", replace=True)

    def _compare(self, one: CallRecord, other: CallRecord) -> None:
        self._context.tasks.start(self._show_comparison(one, other), "console.compare", replace=True)

    async def _show_comparison(self, one: CallRecord, other: CallRecord) -> None:
        told = await asyncio.to_thread(compared, one, other)
        await shown(CompareDialog(self._page, told))

    def _revoke(self, grant_id: str) -> None:
        agent_id = self._agent_id()
        if agent_id is not None:
            self._context.tasks.start(self._take_back(agent_id, grant_id), "console.revoke", replace=True)

    async def _take_back(self, agent_id: str, grant_id: str) -> None:
        try:
            await self._console.revoke(agent_id, grant_id)
        except GatewrightError as error:
            self._context.document.say("error", f"not revoked: {error}")

    def _reset_session(self) -> None:
        agent_id = self._agent_id()
        if agent_id is not None:
            self._console.reset_session(agent_id)
