"""An approval that a client of the gateway waits for, answered in the window with a real mouse and a real keyboard."""

import asyncio
from pathlib import Path

import pytest

from gatewright_gui.pages.activity import ActivityPage
from tests.engine.gateway.conftest import Place, Serve, Served, place, serve
from tests.engine.gateway.test_consent import APPEND
from tests.journeys.hand import Hand, until

__all__ = ["place", "serve"]
pytestmark = pytest.mark.journey


@pytest.fixture
def served(serve: Serve) -> Served:
    made = serve("writer")
    made.start()
    return made


@pytest.fixture
def policy(place: Place, served: Served) -> Path:
    """Served already when the window opens it."""
    return place.policy


async def test_call_that_waits_in_the_gateway_is_approved_and_the_next_refused(
    hand: Hand, place: Place, served: Served
) -> None:
    def call(number: int) -> asyncio.Task[dict[str, dict[str, bool]]]:
        asked = asyncio.to_thread(served.ask, number, "tools/call", name="file", arguments=APPEND)
        return asyncio.create_task(asked)

    await until(lambda: hand.window.waiting.is_known, "the window to hear of calls")

    # every page tells that it waits; one sees what is asked, and approves it
    first = call(1)
    await until(hand.window.asking.isVisible, "the bar that tells of the call")
    assert not first.done()
    await hand.click(hand.window.asking.action_button)
    page = hand.window.shelf.page("activity")
    assert isinstance(page, ActivityPage)
    assert page.question.question is not None
    assert page.question.question.called == "file.append"
    await hand.click(page.question.approve_button)
    await until(first.done, "the answer of the gateway")
    assert not first.result()["result"]["isError"]

    # the next is denied, by keys: one to its question, one for the answer
    second = call(2)
    await until(page.band.rows[0].isVisible, "the next call")
    await hand.key("F6")
    await until(page.question.refuse_button.isVisible, "the next question")
    await hand.key("alt+1")
    await until(second.done, "the answer of the gateway")
    assert second.result()["result"]["isError"]
    assert len(place.rows("ToolCompleted")) == 1
    assert [row["body"]["approved"] for row in place.rows("ApprovalResolved")] == [True, False]
