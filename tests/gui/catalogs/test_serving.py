"""Who is served now, on the page of catalogs, with real gateways and the official client."""

from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.types import CallToolResult
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QTest

from gatewright_gui.pages.activity.approvals import WaitingPage
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.pages.servers.serving_panel import AGENT, CALLS, CLIENT, DENIED, WAITS, WAY
from gatewright_gui.window.main_window import MainWindow
from tests.engine.gateway.conftest import POLICY, Place, served_over_http
from tests.engine.gateway.test_consent import APPEND
from tests.engine.gateway.test_http import connected
from tests.engine.gateway.test_stdio import READ, client
from tests.gui.session.opened import opened_window, settled, until

Call = Callable[[str, dict[str, Any]], Future[CallToolResult]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "desk"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("hello\n", "utf-8")
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    return Place(folder)


@pytest.fixture
async def window(place: Place, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(place.policy, tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


@contextmanager
def calling(made: AbstractAsyncContextManager[Client]) -> Generator[Call]:
    """A client in a thread and loop of its own, as it would be in another program."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(made) as one:
        yield lambda tool, arguments: portal.start_task_soon(one.call_tool, tool, arguments)


def page_of(window: MainWindow) -> ServersPage:
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    return page


def cells(page: ServersPage, row: int = 0) -> list[str]:
    model = page.served.model
    return [str(model.index(row, column).data()) for column in (CLIENT, AGENT, WAY, CALLS, DENIED, WAITS)]


def click(page: ServersPage, index: QModelIndex) -> None:
    view = page.served.view
    view.scrollTo(index)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())


async def test_client_on_standard_input_is_shown_with_its_calls_and_leads_to_its_agent(
    window: MainWindow, place: Place
) -> None:
    page = page_of(window)
    assert not page.served.isVisible()
    with calling(client(place, "reader")) as call:
        await until(lambda: page.served.isVisible() and cells(page)[0] == "tester 1.2")
        for tool, arguments in (("file", READ), ("nonsense", {})):
            done = call(tool, arguments)
            await until(done.done)
        await until(lambda: cells(page)[3] == "2")
        assert cells(page) == ["tester 1.2", "reader", "standard input", "2", "1", ""]
        click(page, page.served.model.index(0, AGENT))
        await until(lambda: window.shelf.current_key == "tools")
        assert window.selection.agent_id == "reader"
        window.show_page("servers")
    await until(lambda: not page.served.isVisible())


async def test_waiting_call_over_http_is_shown_and_a_click_leads_to_the_question(
    window: MainWindow, place: Place
) -> None:
    page = page_of(window)
    other = {**APPEND, "content": "earlier\n"}
    with served_over_http(place) as gate:
        token = place.token("writer", user_id="bob")
        await until(page.served.isVisible)
        await until(lambda: window.waiting.is_known)
        with calling(connected(gate, place.token("writer", user_id="eve"))) as first:
            before = first("file", other)
            await until(lambda: len(window.waiting.questions) == 1)
            with calling(connected(gate, token)) as call:
                answer = call("file", APPEND)
                await until(lambda: page.served.model.rowCount() == 2 and cells(page, 1)[5] == "1 call")
                assert cells(page, 1)[:2] == ["tester 1.2", "writer"]
                assert "bob" in cells(page, 1)[2]
                await until(lambda: len(window.waiting.questions) == 2)

                click(page, page.served.model.index(1, WAITS))
                inbox = window.shelf.page("waiting")
                assert isinstance(inbox, WaitingPage)
                bar = inbox.question
                assert window.shelf.current_key == "waiting"
                assert bar.isVisible()
                assert bar.question is not None
                assert "more" in bar.question.arguments
                bar.approve_button.click()
                await until(answer.done)
                assert not answer.result().is_error
                await until(lambda: bar.question is not None and bar.approve_button.isEnabled())
                window.show_page("servers")
                await until(lambda: cells(page, 1)[5] == "")
                bar.refuse_button.click()
                await until(before.done)
                assert before.result().is_error
                await until(lambda: cells(page)[4] == "1")
    await until(lambda: not page.served.isVisible())
