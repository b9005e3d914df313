"""Answers by links while ``gatewright serve`` runs: real processes, a real client, and whoever opens a link."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

import pytest

from gatewright.workspace import Workspace
from tests.engine.adapters.test_answer_page import ALLOW, DENY, WAIT_S, Slack
from tests.engine.gateway.conftest import Listen, Place, Serve
from tests.engine.gateway.test_consent import APPEND
from tests.engine.gateway.test_http import connected
from tests.engine.gateway.test_stdio import text

WEBHOOK = "OPS_WEBHOOK"


class Desk(Place):
    """A place whose processes may send to the imitation of Slack."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, WEBHOOK: os.environ[WEBHOOK]}

    def names(self, link_base: str) -> str:
        return f'\n[workspace]\nquestions = {{ answer_by = ["slack:{WEBHOOK}"], link_base = "{link_base}" }}\n'

    def let_answer(self, link_base: str) -> None:
        with self.policy.open("a", encoding="utf-8") as file:
            file.write(self.names(link_base))

    def ends(self) -> list[str]:
        return [row["kind"] for row in self.rows() if row["kind"] in {"ToolCompleted", "ToolDenied"}]


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slack]:
    found = Slack()
    with found.served() as webhook:
        monkeypatch.setenv(WEBHOOK, webhook)
        yield found


@pytest.fixture
def place(slack: Slack, place: Place) -> Desk:
    return Desk(place.folder)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def link_of(slack: Slack) -> str:
    _, said = await asyncio.to_thread(slack.got.get, timeout=WAIT_S)
    (link,) = re.findall(r"<(\S+?)\|", said["text"])
    return str(link)


def visit(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Open a link as a browser does, which sends `Origin: null` for a form of a page without referrer."""
    sent = {"Origin": "null", **(headers or {})} if body is not None else dict(headers or {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=20) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def press(link: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    return await asyncio.to_thread(visit, link, body, headers)


@pytest.mark.parametrize("path", ["/answers", "", "/deep/er/", "/mcp", "/an%20swer"])
async def test_a_call_over_http_waits_for_the_link_that_the_same_process_serves(
    place: Desk, listen: Listen, slack: Slack, path: str
) -> None:
    base = f"http://127.0.0.1:{(port := free_port())}"
    place.let_answer(f"{base}{path}")
    gate = listen("--port", str(port))
    assert f"slack:{WEBHOOK}, with links to {base}{path}" in gate.told("sends questions to")
    async with connected(gate, place.token("writer")) as client:
        call = asyncio.create_task(client.call_tool("file", APPEND))
        link = await link_of(slack)
        assert link.startswith(f"{base}{path.rstrip('/')}/")
        status, page = await press(link)
        assert (status, "more\\n" in page) == (200, True)
        assert (await press(f"{link}x", ALLOW))[0] == 404
        assert not call.done()
        assert (await press(link, ALLOW))[0] == 200
        assert not (await call).is_error
        assert (await press(link, ALLOW))[0] == 410
        call = asyncio.create_task(client.call_tool("file", APPEND))
        assert (await press(await link_of(slack), DENY))[0] == 200
        assert "did not approve" in text(await call)
    assert gate.end() == 0

    assert place.ends() == ["ToolCompleted", "ToolDenied"]
    assert [row["body"]["who"] for row in place.rows("ApprovalResolved")] == [f"slack:{WEBHOOK}"] * 2
    assert slack.got.empty()
    assert link not in "".join(gate.lines)


async def test_the_pages_give_nothing_but_answers_and_the_tools_nothing_without_a_token(
    place: Desk, listen: Listen, slack: Slack
) -> None:
    base = f"http://127.0.0.1:{(port := free_port())}"
    place.let_answer(f"{base}/answers")
    gate, token = listen("--port", str(port)), place.token("writer")
    async with connected(gate, token) as client:
        call = asyncio.create_task(client.call_tool("file", APPEND))
        sealed = (await link_of(slack)).rpartition("/")[2]
        bearer = {"Authorization": f"Bearer {token}"}
        for path, status in (
            ("/mcp", 401),
            (f"/mcp/{sealed}", 401),
            (f"/{sealed}", 401),
            (f"/answersx/{sealed}", 401),
            ("/answers", 401),
            ("/answers/", 404),
            ("/answers/../mcp", 404),
            (f"/answers/answers/{sealed}", 404),
        ):
            assert (await press(f"{base}{path}", ALLOW))[0] == status, path
        assert (await press(f"{base}/answers/x", ALLOW, **bearer))[0] == 404
        assert (await press(f"{base}/{sealed}", ALLOW, **bearer))[0] == 404
        assert not call.done()
        assert (await press(f"{base}/answers/{sealed}", ALLOW, Host="gate.example.org"))[0] == 200
        assert not (await call).is_error
    assert gate.end() == 0


async def test_an_edit_of_the_policy_begins_and_ends_the_links_of_a_process_that_serves(
    place: Desk, listen: Listen, slack: Slack
) -> None:
    base = f"http://127.0.0.1:{(port := free_port())}"
    gate, token = listen("--port", str(port)), place.token("writer")
    assert (await press(f"{base}/answers/x"))[0] == 401
    async with connected(gate, token) as client:
        assert "nobody answered" in text(await client.call_tool("file", APPEND))
        place.let_answer(f"{base}/answers")
        await asyncio.to_thread(gate.told, "sends questions to")
        call = asyncio.create_task(client.call_tool("file", APPEND))
        assert (await press(await link_of(slack), ALLOW))[0] == 200
        assert not (await call).is_error
        place.edit(place.names(f"{base}/answers"), "")
        await asyncio.to_thread(gate.told, "sends no questions any more")
        assert "nobody answered" in text(await client.call_tool("file", APPEND))
        assert (await press(f"{base}/answers/x"))[0] == 401
    assert gate.end() == 0
    assert slack.got.empty()


async def answer_elsewhere(link: str, place: Desk, base: str, body: bytes) -> str:
    """Answer by the pages that another program serves."""
    from tests.engine.adapters.test_answer_page import visit as ask

    with Workspace.open(place.policy) as workspace:
        return (await ask(workspace.answer_pages(), link.removeprefix(base), body)).text


async def test_processes_on_standard_input_send_each_question_once_and_another_program_has_the_pages(
    place: Desk, serve: Serve, slack: Slack
) -> None:
    base = "https://gate.example.org/answers"
    place.let_answer(base)
    first, second = serve("writer"), serve("writer")
    for served in (first, second):
        await asyncio.to_thread(served.start)
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "file", "arguments": APPEND}}
    for number, served in enumerate((first, second)):
        served.send({**call, "id": number})
        link = await link_of(slack)
        assert "The call is allowed" in await answer_elsewhere(link, place, base, ALLOW)
        assert not (await asyncio.to_thread(served.answer, number))["result"].get("isError")
    for served in (first, second):
        status, errors = await asyncio.to_thread(served.end)
        assert (status, f"with links to {base}" in errors) == (0, True)
    assert slack.got.empty()
    assert place.ends() == ["ToolCompleted"] * 2
