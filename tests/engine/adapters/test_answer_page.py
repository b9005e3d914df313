"""Links that let a person answer a question from elsewhere, and the pages behind them."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import re
import socket
import socketserver
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields, replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from hypothesis import assume, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Mount

from gatewright import Workspace, tool
from gatewright.adapters.answer_page import MOST_BODY, AnswerPages
from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, Outcome, Status
from gatewright.gate.approval import ApprovalRequest, IdRecord, WholeCall
from gatewright.policy.delegation import Lineage
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.tool import Tool
from tests.support.clock import ManualClock
from tests.support.loopback import Handler
from tests.support.loopback import served as web_served

ANN, OPS = "mailto:ann@example.org", "slack:OPS_WEBHOOK"
BASE = "https://gate.example.org/answers"
POLICY = f"""gatewright = 1

[agents.clerk]
tools = ["pay"]
approvals = {{ pay = "ask" }}

[workspace]
questions = {{ answer_by = ["{ANN}", "{OPS}"], link_base = "{BASE}" }}
"""
ALLOW, DENY = b"answer=allow", b"answer=deny"


class Desk:
    """A workspace with a tool that asks, opened as several processes would, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.payments = folder, ManualClock(), list[str]()
        (folder / "w").mkdir()
        self.write(POLICY)
        self.made: list[Workspace] = []
        self.workspace = self.open()

    def write(self, text: str) -> None:
        (self.folder / "w" / "policy.toml").write_text(text, "utf-8")

    def open(self) -> Workspace:
        keys = self.folder / "keys"
        self.made.append(Workspace.open(self.folder / "w", tools=[self._tool()], keys=keys, clock=self.clock))
        return self.made[-1]

    async def ask(self, to: str = "eve", call_id: str = "c1") -> str:
        """The link of a call that asks and is suspended."""
        outcome = await self.call(to, call_id)
        assert outcome.status is Status.WAITING
        assert outcome.question is not None
        return self.workspace.answer_pages().link(outcome.question, ANN)

    async def call(self, to: str = "eve", call_id: str = "c1") -> Outcome:
        more: dict[str, Any] = {"call_id": call_id, "conversation": "chat-7", "on_ask": "suspend"}
        return await self.open().call("clerk", "pay", {"to": to}, **more)

    def _tool(self) -> Tool:
        @tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING, normalization=Normalization.JSON)
        async def pay(to: str) -> str:
            """Pay.

            Args:
                to: The one who gets it.
            """
            self.payments.append(to)
            return "paid"

        return pay


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    yield found
    for one in found.made:
        one.close()


class Reply:
    def __init__(self, messages: list[dict[str, Any]]) -> None:
        begin, end = messages
        self.status: int = begin["status"]
        self.headers = {name.decode(): value.decode() for name, value in begin["headers"]}
        self.raw: bytes = end["body"]
        self.text = self.raw.decode()


async def visit(
    pages: AnswerPages, path: str, body: bytes | None = None, method: str = "", pieces: int = 1, root: str = ""
) -> Reply:
    """Ask the application, as a server would."""
    size = -(-len(body or b"") // pieces) or 1
    parts = [(body or b"")[at : at + size] for at in range(0, len(body or b""), size)] or [b""]
    incoming = [{"type": "http.request", "body": one, "more_body": at + 1 < len(parts)} for at, one in enumerate(parts)]
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    named = method or ("GET" if body is None else "POST")
    await pages({"type": "http", "method": named, "path": path, "root_path": root, "headers": []}, receive, send)
    return Reply(sent)


def path_of(link: str) -> str:
    assert link.startswith(f"{BASE}/")
    return link.removeprefix(BASE)


def state_of(desk: Desk) -> tuple[object, ...]:
    """Everything that an answer would change."""
    workspace = desk.workspace
    rows = [row.kind for row in workspace.audit.rows()]
    return workspace.broker.pending(), workspace.broker.grants.answers(), workspace.broker.standing(), rows


async def test_a_link_shows_the_whole_question_and_answers_it_once_in_the_name_of_its_address(desk: Desk) -> None:
    path, pages = path_of(await desk.ask()), desk.workspace.answer_pages()
    before = state_of(desk)
    desk.clock.advance(120)
    page = await visit(pages, path)
    assert page.status == 200
    for part in ("clerk", "pay", "side_effecting", "&quot;to&quot;: &quot;eve&quot;", "chat-7", "2m ago", ANN, "c1"):
        assert part in page.text
    for reason in desk.workspace.broker.pending()[0].reasons:
        assert reason.replace('"', "&quot;") in page.text
    assert state_of(desk) == before, "looking changes nothing"
    done = await visit(pages, path, ALLOW)
    assert (done.status, "allowed" in done.text) == (200, True)
    for body in (None, ALLOW, DENY):
        again = await visit(pages, path, body)
        assert (again.status, "has been answered" in again.text) == (410, True)
    row = [row for row in desk.workspace.audit.rows() if row.kind == "ApprovalResolved"][-1]
    assert json.loads(row.body)["who"] == ANN
    assert (await desk.call()).status is Status.ALLOWED
    assert desk.payments == ["eve"]
    for body in (None, ALLOW, DENY):
        assert (await visit(pages, path, body)).status == 410
    assert (await desk.call()).replayed
    assert desk.payments == ["eve"]


async def test_each_of_several_identical_calls_has_a_link_and_the_first_answer_closes_all(desk: Desk) -> None:
    await desk.ask()
    broker, pages = desk.workspace.broker, desk.workspace.answer_pages()
    alike = [replace(broker.pending()[0], request_id=f"ask_{number}", call_key="") for number in range(4)]
    assert all(broker.grants.post(one, 10) for one in alike)
    assert [one.waiting for one in broker.pending()] == [5]
    paths = [path_of(pages.link(one, ANN)) for one in alike]
    assert [(await visit(pages, path)).status for path in paths] == [200] * 4
    assert (await visit(pages, paths[2], DENY)).status == 200
    assert [(await visit(pages, path, ALLOW)).status for path in paths] == [410] * 4
    assert broker.pending() == ()


async def test_a_denial_by_a_link_is_one(desk: Desk) -> None:
    path = path_of(await desk.ask())
    assert (await visit(desk.open().answer_pages(), path, DENY)).status == 200
    assert (await desk.call()).status is Status.DENIED
    assert desk.payments == []


async def test_of_two_answers_at_once_one_counts(desk: Desk) -> None:
    path, first, second = path_of(await desk.ask()), desk.open().answer_pages(), desk.open().answer_pages()
    both = await asyncio.gather(*(visit(pages, path, body) for pages in (first, second) for body in (ALLOW, DENY)))
    assert sorted(one.status for one in both) == [200, 410, 410, 410]
    assert [row.kind for row in desk.workspace.audit.rows()].count("ApprovalResolved") == 1


async def test_a_call_that_waits_in_its_process_is_answered_by_a_link(desk: Desk) -> None:
    pages = desk.workspace.answer_pages()
    links: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def send(pending: tuple[Any, ...]) -> None:
        for one in pending:
            loop.call_soon_threadsafe(links.put_nowait, pages.link(one, OPS))

    leave = desk.workspace.broker.subscribe(send)
    call = asyncio.ensure_future(desk.workspace.call("clerk", "pay", {"to": "eve"}))
    path = path_of(await links.get())
    assert (await visit(pages, path)).status == 200
    assert (await visit(pages, path, ALLOW)).status == 200
    assert (await call).status is Status.ALLOWED
    assert (await visit(pages, path, ALLOW)).status == 410
    leave()
    assert desk.payments == ["eve"]


@pytest.mark.parametrize("body", [None, ALLOW])
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        (POLICY.replace(f'"{ANN}", ', ""), 403),
        (POLICY.replace(f', link_base = "{BASE}"', ""), 403),
        (POLICY.replace("[workspace]", "[workspace]\nclosed = ['secret']"), 409),
        (POLICY.replace('questions = { answer_by = ["' + ANN, 'questions = { wait = "1d", answer_by = ["' + ANN), 409),
    ],
)
async def test_a_link_is_void_once_the_policy_says_something_else(
    desk: Desk, changed: str, status: int, body: bytes | None
) -> None:
    path = path_of(await desk.ask())
    assert changed != POLICY
    desk.write(changed)
    pages, before = desk.open().answer_pages(), state_of(desk)
    assert (await visit(pages, path, body)).status == status
    assert state_of(desk) == before


async def test_a_link_ends_with_the_time_of_its_question(desk: Desk) -> None:
    path, pages = path_of(await desk.ask()), desk.workspace.answer_pages()
    desk.clock.advance(7 * 86_400)
    before = state_of(desk)
    for body in (None, ALLOW):
        assert (await visit(pages, path, body)).status == 410
    assert state_of(desk) == before


async def test_a_link_to_a_question_that_was_asked_anew_says_why_it_is_closed(desk: Desk) -> None:
    path = path_of(await desk.ask())
    desk.write(POLICY.replace("[workspace]", "[workspace]\nclosed = ['secret']"))
    assert (await desk.call()).status is Status.WAITING
    page = await visit(desk.open().answer_pages(), path, ALLOW)
    assert (page.status, "the policy has changed" in page.text) == (410, True)
    assert len(desk.workspace.broker.pending()) == 1


_OTHER: dict[str, Any] = {
    "arguments": {"to": "mallory"},
    "expires_wall_s": 9e9,
    "asked_wall_s": 5.0,
    "asks": (),
    "records": (IdRecord("to", "eve", {"id": "eve"}, "look", 1.0),),
    "places": (("agents", 0),),
    "reasons": ("for fun",),
    "forms": ("x",),
    "due_wall_s": 7.0,
    "process_id": 7,
    "whole": WholeCall("plan", {}, "c1"),
    "lineage": Lineage("clerk", "helper"),
}


@pytest.mark.parametrize("name", sorted({one.name for one in fields(ApprovalRequest)} - {"waiting"}))
async def test_a_link_is_bound_to_every_part_of_its_question(desk: Desk, name: str) -> None:
    await desk.ask()
    question, pages = desk.workspace.broker.pending()[0], desk.workspace.answer_pages()
    path = path_of(pages.link(replace(question, **{name: _OTHER.get(name, "other")}), ANN))
    before = state_of(desk)
    for body in (None, ALLOW):
        assert (await visit(pages, path, body)).status in ({410} if name == "request_id" else {409})
    assert state_of(desk) == before


async def test_a_link_of_another_workspace_or_key_is_worth_nothing(desk: Desk, tmp_path: Path) -> None:
    path = path_of(await desk.ask())
    (tmp_path / "other").mkdir()
    other = Desk(tmp_path / "other")
    await other.ask()
    before = state_of(other)
    assert (await visit(other.workspace.answer_pages(), path, ALLOW)).status == 404
    assert state_of(other) == before
    other.workspace.close()


@pytest.fixture(scope="module")
def asked_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str, str]]:
    """A desk with two open questions, and the paths of their links."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    first, second = (path_of(asyncio.run(desk.ask(call_id, call_id))) for call_id in ("c1", "c2"))
    yield desk, first, second
    for one in desk.made:
        one.close()


@given(data=st.data())
def test_any_change_of_a_link_answers_nothing(asked_twice: tuple[Desk, str, str], data: st.DataObject) -> None:
    desk, path, other = asked_twice
    at = data.draw(st.integers(0, len(path)))
    character = data.draw(st.one_of(st.sampled_from("aA0.-_=/%+ "), st.characters(codec="utf-8")))
    kind = data.draw(st.sampled_from(["replace", "insert", "delete", "swap"]))
    changed = {
        "replace": path[:at] + character + path[at + 1 :],
        "insert": path[:at] + character + path[at:],
        "delete": path[:at] + path[at + 1 :],
        "swap": path.partition(".")[0] + "." + other.partition(".")[2],
    }[kind]
    assume(changed not in (path, path[1:]))  # a server puts a `/` first whatever it is asked
    before = state_of(desk)
    body = data.draw(st.sampled_from([None, ALLOW, DENY]))
    reply = asyncio.run(visit(desk.workspace.answer_pages(), changed, body))
    assert 400 <= reply.status < 500
    assert state_of(desk) == before


@pytest.mark.parametrize("body", [b"", b"answer=", b"answer=yes", b"answer=allow&answer=deny", b"{}", b"\xff" * 99])
async def test_a_body_that_is_no_answer_answers_nothing(desk: Desk, body: bytes) -> None:
    path, before = path_of(await desk.ask()), state_of(desk)
    before = state_of(desk)
    assert (await visit(desk.workspace.answer_pages(), path, body, "POST")).status == 400
    assert state_of(desk) == before


async def test_a_huge_body_is_not_read_to_its_end(desk: Desk) -> None:
    path = path_of(await desk.ask())
    pages, before = desk.workspace.answer_pages(), state_of(desk)
    read = 0

    async def receive() -> Any:
        nonlocal read
        read += 64
        return {"type": "http.request", "body": b"a" * 64, "more_body": True}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await pages({"type": "http", "method": "POST", "path": path, "headers": []}, receive, send)
    assert (sent[0]["status"], read <= MOST_BODY + 64) == (413, True)
    assert state_of(desk) == before
    assert (await visit(pages, path, ALLOW, pieces=5)).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", ""])
async def test_another_method_answers_nothing(desk: Desk, method: str) -> None:
    path = path_of(await desk.ask())
    before = state_of(desk)
    reply = await visit(desk.workspace.answer_pages(), path, ALLOW, method or "CONNECT")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, POST")
    assert state_of(desk) == before


async def test_a_client_that_goes_before_the_end_of_its_answer_has_not_answered(desk: Desk) -> None:
    path = path_of(await desk.ask())
    pages, before = desk.workspace.answer_pages(), state_of(desk)
    incoming = [{"type": "http.request", "body": ALLOW, "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return incoming.pop(0)

    async def send(_: Any) -> None:
        raise OSError("gone")

    await pages({"type": "http", "method": "POST", "path": path, "headers": []}, receive, send)
    assert state_of(desk) == before


async def test_nothing_on_a_page_is_markup_or_invisible_and_nobody_keeps_it(desk: Desk) -> None:
    hostile = "</pre><script>alert(1)</script><form action=//evil>\u202egnp\u200b\x1b[2J&amp;\"'"
    path = path_of(await desk.ask(hostile))
    pages = desk.workspace.answer_pages()
    page = await visit(pages, path)
    assert "<script" not in page.text
    assert page.text.count("<form") == 1
    assert not {"\u202e", "\u200b", "\x1b"} & set(page.text)
    assert "\\u202e" in page.text
    others = [await visit(pages, asked, body) for asked, body in (("/nothing", None), (path, b"x"), (path, ALLOW))]
    for reply in (page, *others):
        headers = reply.headers
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
        assert headers["content-length"] == str(len(reply.raw))
    head = await visit(pages, path, method="HEAD")
    assert (head.status, head.raw) == (410, b"")


@pytest.mark.parametrize("broken", ["approvals.key", "log"])
async def test_an_answer_that_cannot_be_stored_or_recorded_is_none(desk: Desk, broken: str) -> None:
    path = path_of(await desk.ask())
    keys = [one for one in (desk.folder / "keys").rglob("*.key") if (one.name == "approvals.key") == (broken != "log")]
    kept = {one: one.read_bytes() for one in keys}
    assert kept
    for one in keys:
        one.write_bytes(b"damaged")
    assert (await visit(desk.open().answer_pages(), path, ALLOW)).status == 503
    for one, content in kept.items():
        one.write_bytes(content)
    assert len(desk.open().broker.pending()) == 1
    assert (await visit(desk.open().answer_pages(), path, ALLOW)).status == 200


async def test_only_addresses_of_the_policy_get_links(desk: Desk) -> None:
    await desk.ask()
    question = desk.workspace.broker.pending()[0]
    with pytest.raises(WorkspaceError, match="answer_by"):
        desk.workspace.answer_pages().link(question, "mailto:eve@example.org")
    desk.write(POLICY.replace(f', link_base = "{BASE}"', ""))
    with pytest.raises(WorkspaceError, match="link_base"):
        desk.open().answer_pages().link(question, ANN)


async def test_an_answer_elsewhere_closes_the_link(desk: Desk) -> None:
    path = path_of(await desk.ask())
    desk.workspace.broker.answer(desk.workspace.broker.pending()[0].request_id, Approval(False, "dana"))
    assert (await visit(desk.workspace.answer_pages(), path, ALLOW)).status == 410


@asynccontextmanager
async def served(app: Any) -> AsyncGenerator[str]:
    """The address of a real server for the application."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        running = asyncio.ensure_future(server.serve(sockets=[listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await running


def fetch(url: str, body: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=20) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("mounted", [True, False])
async def test_a_real_server_serves_the_pages_alone_or_mounted(desk: Desk, mounted: bool) -> None:
    pages = desk.workspace.answer_pages()
    app = Starlette(routes=[Mount("/answers", app=pages)]) if mounted else pages
    token = path_of(await desk.ask())
    async with served(app) as address:
        base = f"{address}/answers" if mounted else address
        for url, body, status in (
            (f"{base}{token}", None, 200),
            (f"{base}{token}x", ALLOW, 404),
            (f"{base}/", None, 404),
            (f"{base}{token}", b"x" * 100_000, 413),
            (f"{base}{token}", ALLOW, 200),
            (f"{base}{token}", ALLOW, 410),
        ):
            assert (await asyncio.to_thread(fetch, url, body)) == status
    assert urlsplit(BASE).path == "/answers"


WAIT_S = 20.0


class Slack:
    """An imitation of Slack's incoming webhooks that keeps what it gets."""

    def __init__(self, status: int = 200) -> None:
        self.got: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self.status = status

    @contextmanager
    def served(self) -> Generator[str]:
        slack = self

        class Webhook(Handler):
            def take(self, body: bytes) -> None:
                slack.got.put((self.path, json.loads(body)))
                self.answer(slack.status, b"ok")

        with web_served(Webhook) as address:
            yield f"{address}/services/T0/B0/s3cret"


class Post:
    """An imitation of a mail server that keeps what it gets."""

    def __init__(self) -> None:
        self.got: queue.SimpleQueue[tuple[list[str], EmailMessage]] = queue.SimpleQueue()

    @contextmanager
    def served(self) -> Generator[str]:
        post = self

        class Server(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                said: list[str] = []
                self.wfile.write(b"220 here\r\n")
                while line := self.rfile.readline():
                    said.append(line.decode().strip())
                    word = said[-1].split(":")[0].split(" ")[0].upper()
                    if word == "DATA":
                        self.wfile.write(b"354 go\r\n")
                        text = b"".join(iter(self.rfile.readline, b".\r\n"))
                        found = message_from_bytes(text.replace(b"\r\n..", b"\r\n."), policy=policy.default)
                        post.got.put((said, found))
                    self.wfile.write(b"221 bye\r\n" if word == "QUIT" else b"250 ok\r\n")

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            yield f"smtp://127.0.0.1:{server.server_address[1]}"
            server.shutdown()
            thread.join()


async def test_a_question_goes_to_chat_and_to_e_mail_and_is_answered_from_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    slack, post = Slack(), Post()
    with slack.served() as webhook, post.served() as mail:
        monkeypatch.setenv("OPS_WEBHOOK", webhook)
        monkeypatch.setenv("GATEWRIGHT_MAIL", mail)
        monkeypatch.setenv("GATEWRIGHT_MAIL_FROM", "gate@example.org")
        stop = desk.workspace.send_questions()
        call = asyncio.ensure_future(desk.workspace.call("clerk", "pay", {"to": "eve"}))
        path, said = await asyncio.to_thread(slack.got.get, timeout=WAIT_S)
        assert (path, said["text"].splitlines()[0]) == ("/services/T0/B0/s3cret", "clerk asks for pay")
        spoken, letter = await asyncio.to_thread(post.got.get, timeout=WAIT_S)
        assert {"mail FROM:<gate@example.org>", "rcpt TO:<ann@example.org>"} <= {
            one.split(" size=")[0] for one in spoken
        }
        assert (letter["Subject"], letter["To"]) == ("clerk asks for pay", "ann@example.org")
        links = [*re.findall(r"<(\S+?)\|", said["text"]), *re.findall(r"https://\S+", letter.get_content())]
        first, second = map(path_of, links)
        pages = desk.workspace.answer_pages()
        assert OPS in (await visit(pages, first)).text
        assert ANN in (await visit(pages, second)).text
        assert (await visit(pages, second, DENY)).status == 200
        assert (await call).status is Status.DENIED
        assert (await visit(pages, first, ALLOW)).status == 410
        stop()
        assert slack.got.empty()
        assert post.got.empty()
    assert desk.payments == []


async def test_who_is_to_answer_is_reminded_once_of_a_question_that_is_due(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    slack = Slack()
    desk.write(POLICY.replace(f'"{ANN}", ', ""))
    with slack.served() as webhook:
        monkeypatch.setenv("OPS_WEBHOOK", webhook)
        stop = (opened := desk.open()).send_questions()
        await desk.call("<!channel> & eve")
        _, said = await asyncio.to_thread(slack.got.get, timeout=WAIT_S)
        assert said["text"].startswith("clerk asks for pay\n")
        assert "channel" not in said["text"]
        desk.clock.advance(86_400)
        _, said = await asyncio.to_thread(slack.got.get, timeout=WAIT_S)
        assert said["text"].startswith("Still waits: clerk asks for pay\n")
        await desk.call(call_id="c2")
        _, said = await asyncio.to_thread(slack.got.get, timeout=WAIT_S)
        assert said["text"].startswith("clerk asks for pay\n")
        stop()
        assert len(opened.broker.pending()) == 2
        assert slack.got.empty()


@pytest.fixture
def logged() -> Iterator[queue.SimpleQueue[str]]:
    """What the sender logs."""
    found: queue.SimpleQueue[str] = queue.SimpleQueue()

    class Put(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.put(record.getMessage())

    handler, logger = Put(), logging.getLogger("gatewright.adapters.answer_page")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


@pytest.mark.parametrize("webhook", ["", "http://hooks.example.org/s3cret", "s3cret", "refuses"])
@pytest.mark.parametrize("mail", ["", "smtp://127.0.0.1:1", "smtps://ann:s3cret@127.0.0.1:1", "smtp://a:s3cret@h:x"])
async def test_what_cannot_be_sent_is_logged_without_its_secrets_and_stops_no_call(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    logged: queue.SimpleQueue[str],
    webhook: str,
    mail: str,
) -> None:
    slack = Slack(500)
    with slack.served() as refusing:
        monkeypatch.setenv("OPS_WEBHOOK", refusing if webhook == "refuses" else webhook)
        monkeypatch.setenv("GATEWRIGHT_MAIL", mail)
        monkeypatch.setenv("GATEWRIGHT_MAIL_FROM", "gate@example.org")
        stop = desk.workspace.send_questions()
        call = asyncio.ensure_future(desk.workspace.call("clerk", "pay", {"to": "eve"}))
        told = [await asyncio.to_thread(logged.get, timeout=WAIT_S) for _ in range(2)]
        (question,) = desk.workspace.broker.pending()
        assert desk.workspace.broker.answer(question.request_id, Approval(True, "dana"))
        assert (await call).status is Status.ALLOWED
        stop()
    for words, who in zip(told, (ANN, OPS), strict=True):
        assert words.startswith(f"the question {question.request_id} was not sent to {who}: ")
    assert "s3cret" not in caplog.text


def test_without_addresses_nothing_is_sent_and_the_program_hears_it(desk: Desk) -> None:
    desk.write(POLICY.replace(f'questions = {{ answer_by = ["{ANN}", "{OPS}"], ', "questions = { "))
    with pytest.raises(WorkspaceError, match="answer_by"):
        desk.open().send_questions()
