"""Who is served now, in the place Servers, with real gateways and the official client."""

from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.types import CallToolResult
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.pages.servers.rows import NAME
from gatewright_gui.session.servers import Connected, Row, connection_facts
from gatewright_gui.window.main_window import MainWindow
from tests.engine.gateway.conftest import POLICY, Place, served_over_http
from tests.engine.gateway.test_consent import APPEND
from tests.engine.gateway.test_http import connected
from tests.engine.gateway.test_stdio import READ, client
from tests.gui.servers.test_page import press, told
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


def served(page: ServersPage) -> list[Row]:
    """The rows of clients that are connected."""
    return [row for row in page.model.rows if isinstance(row.subject, Connected) and row.subject.client is not None]


def told_of(page: ServersPage, row: Row) -> str:
    """All facts of a connected client."""
    assert isinstance(row.subject, Connected)
    return " ".join(fact.text for fact in connection_facts(row.subject))


def choose(page: ServersPage, row: Row) -> None:
    """Click a row."""
    page.view.scrollTo(page.model.index(page.model.find(row.key), NAME))
    at = page.view.visualRect(page.model.index(page.model.find(row.key), NAME)).center()
    QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, pos=at)


async def test_client_on_standard_input_is_shown_with_its_calls_and_leads_to_its_agent(
    window: MainWindow, place: Place
) -> None:
    page = page_of(window)
    assert not served(page)
    with calling(client(place, "reader")) as call:
        await until(lambda: served(page))
        for tool, arguments in (("file", READ), ("nonsense", {})):
            done = call(tool, arguments)
            await until(done.done)
        await until(lambda: served(page)[0].today == 2)
        (row,) = served(page)
        assert (row.name, row.state, row.agents) == ("tester 1.2", "connected now", ("reader",))
        choose(page, row)
        words = told(page)
        assert "connected on standard input since" in words
        assert "It is agent `reader`." in words
        assert "2 calls, 1 denied." in words
        window.selection.show_everyone(on=True)
        press(page, "servers.agent")
        await until(lambda: window.shelf.current_key == "tools")
        assert (window.selection.agent_id, window.selection.is_everyone) == ("reader", False)
        window.show_page("servers")
    await until(lambda: not served(page))


async def test_waiting_call_over_http_is_shown_and_a_click_leads_to_the_question(
    window: MainWindow, place: Place
) -> None:
    page = page_of(window)
    other = {**APPEND, "content": "earlier\n"}
    with served_over_http(place) as gate:
        token = place.token("writer", user_id="bob")
        await until(lambda: any(isinstance(row.subject, Connected) for row in page.model.rows))
        await until(lambda: window.waiting.is_known)
        with calling(connected(gate, place.token("writer", user_id="eve"))) as first:
            before = first("file", other)
            await until(lambda: len(window.waiting.questions) == 1)
            with calling(connected(gate, token)) as call:
                answer = call("file", APPEND)
                await until(lambda: [row.state for row in served(page)] == ["waits for you: 1 call"] * 2)
                bobs = next(row for row in served(page) if "bob" in told_of(page, row))
                assert (bobs.name, bobs.agents) == ("tester 1.2", ("writer",))
                await until(lambda: len(window.waiting.questions) == 2)

                choose(page, bobs)
                press(page, "servers.answer")
                inbox = window.shelf.page("activity")
                assert isinstance(inbox, ActivityPage)
                bar = inbox.question
                assert window.shelf.current_key == "activity"
                assert bar.isVisible()
                assert bar.question is not None
                assert "more" in bar.question.arguments
                bar.approve_button.click()
                await until(answer.done)
                assert not answer.result().is_error
                await until(lambda: bar.question is not None and bar.approve_button.isEnabled())
                window.show_page("servers")
                await until(lambda: bobs.key in {row.key for row in served(page) if not row.needs})
                bar.refuse_button.click()
                await until(before.done)
                assert before.result().is_error
                await until(lambda: any("1 denied." in told_of(page, row) for row in served(page)))
    await until(lambda: not served(page))
