"""A client of one MCP server, against real servers: a good one of the official SDK, and raw ones that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from gatewright.adapters.mcp_client import McpServer, Patience, ServerRefused, ServerStatus
from gatewright.adapters.mcp_transport import Endpoint, ServerFailed
from gatewright.adapters.server_process import Command
from gatewright.base.jsonvalue import JsonValue
from tests.support.checkout import ROOT
from tests.support.patience import patient, pause_until
from tests.support.patience import until as eventually

SUPPORT = ROOT / "tests" / "support"
MARK = "GATEWRIGHT_TEST_MARK"
HASTE = Patience(start_s=1.0)

Start = Callable[..., McpServer]


def marked(mark: str) -> list[int]:
    """The processes that have the mark in their environment: a server and all that it started."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


@pytest.fixture
def mark() -> str:
    return uuid4().hex


@pytest.fixture
def server(mark: str) -> Iterator[Start]:
    """Makes servers, stops them at the end, and sees that nothing of them is left."""
    made: list[McpServer] = []

    def make(
        *words: str, patience: Patience | None = None, secrets: tuple[str, ...] = (), **environment: str
    ) -> McpServer:
        program = {"stdio": "sdk_server.py", "good": "good_server.py"}.get(words[0], "bad_server.py")
        environment = {"PATH": os.defpath, MARK: mark, **environment}
        command = Command(sys.executable, (str(SUPPORT / program), *words), environment, secrets=secrets)
        made.append(McpServer(lambda: command, patience=patience))
        return made[-1]

    yield make
    for one in made:
        one.close()
    assert marked(mark) == []


def text_of(result: dict[str, JsonValue]) -> str:
    content = result["content"]
    assert isinstance(content, list)
    assert isinstance(content[0], dict)
    return str(content[0]["text"])


async def test_a_server_says_what_it_is_and_lists_its_tools_as_it_spells_them(server: Start) -> None:
    listed = await server("stdio").list()
    assert (listed.name, listed.version, listed.instructions) == ("good", "1.2.3", "Ask before you write.")
    echo = listed.tools[0]
    assert isinstance(echo, dict)
    assert echo["name"] == "echo"
    assert echo["annotations"] == {"readOnlyHint": True}


async def test_results_of_every_shape_pass_through_whole(server: Start) -> None:
    good = server("stdio")
    assert (await good.call("add", {"a": 1, "b": 2}))["structuredContent"] == {"total": 3}
    picture = (await good.call("picture", {}))["content"]
    assert isinstance(picture, list)
    assert [block["type"] for block in picture if isinstance(block, dict)] == ["text", "image"]
    assert (await good.call("fail", {}))["isError"] is True


async def test_the_good_server_of_other_tests_lists_and_answers_as_that_of_the_sdk(server: Start) -> None:
    sdk, good = server("stdio"), server("good")
    listed, other = await sdk.list(), await good.list()
    assert (other.name, other.version, other.instructions) == (listed.name, listed.version, listed.instructions)
    assert other.tools == listed.tools
    for name, arguments in (
        ("echo", {"text": "hé\n"}), ("add", {"a": 1, "b": -2}), ("picture", {}), ("fail", {}), ("count", {}),
        ("grow", {}), ("slow", {"seconds": 0.01}), ("no such tool", {}), ("environment", {}),
    ):  # fmt: skip
        told, also = await sdk.call(name, arguments), await good.call(name, arguments)
        assert also == told or name == "environment", name
        assert also.keys() == told.keys(), name
    assert (await sdk.call("add", {"a": "x"}))["isError"] is (await good.call("add", {"a": "x"}))["isError"] is True


async def test_a_server_gets_the_trace_that_its_call_belongs_to(server: Start, tmp_path: Path) -> None:
    good, tracer = server("good", str(tmp_path / "log")), TracerProvider().get_tracer("program")
    await good.call("echo", {"text": "none"})
    with tracer.start_as_current_span("one") as one:
        await good.call("echo", {"text": "one"})
    ids = one.get_span_context()
    none, told, echoed = (tmp_path / "log").read_text("utf-8").splitlines()

    assert (none, echoed) == ("echo none", "echo one")
    assert told.startswith(f"echo of 00-{trace.format_trace_id(ids.trace_id)}-{trace.format_span_id(ids.span_id)}-")


async def test_twenty_calls_at_once_each_get_their_own_answer(server: Start) -> None:
    good = server("stdio")
    answers = await asyncio.gather(*(good.call("echo", {"text": f"n{number}"}) for number in range(20)))
    assert [text_of(answer) for answer in answers] == [f"n{number}" for number in range(20)]


async def test_progress_is_told_in_the_loop_of_the_caller(server: Start) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    loops: set[object] = set()

    def tell(done: float, whole: float | None, words: str | None) -> None:
        loops.add(asyncio.get_running_loop())
        told.append((done, whole, words))

    await server("stdio").call("count", {}, on_progress=tell)
    await eventually(lambda: told)
    # where the client gets no processor meanwhile, several come at once, and of those one is told
    assert told[0] == (1.0, 3.0, "at 1")
    assert told == sorted({*told} & {(1.0, 3.0, "at 1"), (2.0, 3.0, "at 2"), (3.0, 3.0, "at 3")})
    assert loops == {asyncio.get_running_loop()}


async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(server: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    good = server("stdio", str(log))
    call = asyncio.create_task(good.call("slow", {"seconds": 60}))
    await eventually(lambda: log.exists() and "slow begins" in log.read_text())
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await eventually(lambda: "slow cancelled" in log.read_text())
    assert text_of(await good.call("echo", {"text": "still there"})) == "still there"


async def test_tools_that_came_later_are_listed_once_the_server_said_so(server: Start) -> None:
    good = server("stdio")
    before = len((await good.list()).tools)
    await good.call("grow", {})
    assert len((await good.list()).tools) == before + 1


async def test_an_old_list_is_asked_for_again(server: Start) -> None:
    raw = server("garbage", patience=Patience(stale_s=0.0))
    first = await raw.list()
    assert (await raw.list()) is not first


async def test_a_server_gets_the_environment_it_is_given_and_nothing_else(
    server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    seen = (await server("stdio", GIVEN="yes").call("environment", {}))["structuredContent"]
    assert isinstance(seen, dict)
    assert seen["GIVEN"] == "yes"
    assert set(seen) <= {"GIVEN", "PATH", MARK, "LC_CTYPE"}


async def test_a_server_killed_in_mid_call_fails_that_call_and_is_started_again_by_the_next(server: Start) -> None:
    good = server("stdio")
    with pytest.raises(ServerFailed, match="killed by SIGKILL during `tools/call`"):
        await good.call("die", {})
    await eventually(lambda: good.state.status is ServerStatus.FAILED)
    assert text_of(await good.call("echo", {"text": "back"})) == "back"
    assert good.state.status is ServerStatus.RUNNING


async def test_a_server_that_fails_again_and_again_is_left_alone_for_longer_each_time(server: Start) -> None:
    bad = server("exit-at-start")
    for _ in range(2):
        with pytest.raises(ServerFailed, match="exit code 3"):
            await bad.list()
    with pytest.raises(ServerFailed, match="the next attempt is in 1 s, or restart it yourself"):
        await bad.list()
    with pytest.raises(ServerFailed, match="exit code 3"):
        await bad.restart()


async def test_a_stopped_server_says_so_and_its_waiting_calls_fail(server: Start) -> None:
    bad = server("hang-at-call")
    call = asyncio.create_task(bad.call("one", {}))
    await eventually(lambda: bad.state.status is ServerStatus.RUNNING)
    await bad.stop()
    with pytest.raises(ServerFailed, match="was stopped"):
        await call
    assert bad.state.status is ServerStatus.STOPPED


async def test_a_server_may_be_used_from_one_loop_after_another(server: Start) -> None:
    good = server("stdio")

    def say(word: str) -> str:
        return text_of(asyncio.run(good.call("echo", {"text": word})))

    assert [await asyncio.to_thread(say, word) for word in ("one", "two")] == ["one", "two"]


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("hang-at-start", "did not answer within 1 s"),
        ("hang-at-list", "did not answer within 1 s"),
        ("exit-at-start", "ended with exit code 3: it last wrote `cannot open the database`"),
        ("exit-at-handshake", "ended with exit code 3: it last wrote `cannot open the database`"),
        ("exit-at-list", "ended with exit code 3: it last wrote `cannot open the database`"),
        ("closes-output", "closed its output"),
        ("long-line-at-start", "line of more than 16 MiB"),
        ("long-line-at-list", "line of more than 16 MiB"),
        ("endless-pages", "more than 500 pages"),
        ("many-tools", "more than 5,000 tools"),
        ("no-list", "no list of tools"),
        ("other-version", "version `1999-01-01` of the protocol"),
    ],
)
async def test_a_server_that_cannot_be_used_fails_with_the_reason(server: Start, way: str, why: str) -> None:
    bad = server(way, patience=HASTE if way.startswith("hang") else None)
    with pytest.raises(ServerFailed, match=why):
        await bad.start()
    assert bad.state.status is ServerStatus.FAILED
    assert bad.state.reason


@pytest.mark.parametrize(
    ("way", "why"),
    [("exit-at-call", "ended with exit code 3"), ("long-line-at-call", "line of more than 16 MiB")],
)
async def test_a_server_that_breaks_in_mid_call_fails_the_call_with_the_reason(
    server: Start, way: str, why: str
) -> None:
    with pytest.raises(ServerFailed, match=why):
        await server(way).call("one", {})


async def test_a_server_that_hangs_in_a_call_holds_up_no_other(server: Start) -> None:
    bad = server("hang-at-call")
    await bad.list()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await bad.call("one", {})
    assert bad.state.status is ServerStatus.RUNNING


async def test_one_bad_definition_does_not_lose_the_others(server: Start) -> None:
    tools = (await server("bad-tools").list()).tools
    assert len(tools) == 5


async def test_lines_that_are_no_messages_are_noted_and_passed_over(server: Start) -> None:
    bad = server("garbage")
    assert len((await bad.list()).tools) == 1
    assert bad.state.notes == ("it wrote a line that is no message of the protocol (5 times)",)


@pytest.mark.parametrize("how", ["cut", "surrogate", "wrong"])
@pytest.mark.parametrize(("at", "method"), [("start", "initialize"), ("list", "tools/list"), ("call", "tools/call")])
async def test_an_answer_that_cannot_be_read_fails_what_was_asked_at_once(
    server: Start, at: str, method: str, how: str
) -> None:
    bad = server(f"unreadable-{at}", how)
    with pytest.raises(ServerFailed, match=f"answered `{method}` with something that is no message of the protocol"):
        async with patient():
            await bad.call("one", {})


async def test_a_server_that_asks_for_what_is_not_offered_gets_an_error_and_that_is_noted(server: Start) -> None:
    bad = server("asks")
    assert text_of(await bad.call("one", {})) == "all refused"
    assert bad.state.notes == tuple(
        f"it asked for `{method}`, which is not on offer"
        for method in ("sampling/createMessage", "roots/list", "elicitation/create")
    )


async def test_a_server_that_asks_without_end_and_reads_nothing_is_left(server: Start) -> None:
    with pytest.raises(ServerFailed, match="asked more than it reads answers"):
        async with patient():
            await server("asks-without-end").call("one", {})


async def test_a_server_that_tells_without_end_still_answers(server: Start) -> None:
    async with patient():
        assert await server("tells-without-end").call("one", {}) == {"content": []}


async def test_of_standard_error_the_end_is_kept_as_text_that_can_be_shown(server: Start) -> None:
    bad = server("stderr-flood")
    await bad.call("one", {})
    await eventually(lambda: "the end" in bad.stderr)
    assert len(bad.stderr) < 70_000
    assert "the end\\u001b[31m" in bad.stderr


async def test_an_error_of_the_protocol_is_the_servers_own_words(server: Start, tmp_path: Path) -> None:
    good = server("stdio")
    answer = await good.call("no_such_tool", {})
    assert answer["isError"] is True
    with pytest.raises(ServerRefused):
        await server("refuses-calls").call("one", {})


@pytest.mark.parametrize("way", ["with-child", "stays"])
async def test_nothing_that_a_server_started_outlives_its_stop(
    server: Start, way: str, tmp_path: Path, mark: str
) -> None:
    bad = server(way, str(tmp_path / "pid"))
    await bad.start()
    assert marked(mark)
    await bad.stop()
    assert marked(mark) == []


def test_a_child_of_a_fork_has_a_server_of_its_own(server: Start, mark: str) -> None:
    plain = server("plain")
    assert text_of(asyncio.run(plain.call("one", {}))) == "raw"
    (mine,) = marked(mark)
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            is_new = plain.state.status is ServerStatus.STOPPED
            said = text_of(asyncio.run(plain.call("one", {})))
            plain.close()
            status = 0 if is_new and said == "raw" else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert marked(mark) == [mine]
    assert text_of(asyncio.run(plain.call("one", {}))) == "raw"


@pytest.mark.parametrize("number", [9, 15])
def test_nothing_of_a_server_outlives_a_program_that_is_killed(number: int, tmp_path: Path, mark: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, sys\n"
        "from gatewright.adapters.mcp_client import McpServer\n"
        "from gatewright.adapters.server_process import Command\n"
        "server = McpServer(lambda: Command(sys.executable, (sys.argv[1], 'with-child', sys.argv[2]), "
        f"{{'{MARK}': '{mark}'}}))\n"
        "async def main():\n"
        "    await server.start()\n"
        "    print('running', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    words = [sys.executable, str(program), str(SUPPORT / "bad_server.py"), str(tmp_path / "pid")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT / "engine")}) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "running\n"
        assert len(marked(mark)) == 2
        run.send_signal(number)
    pause_until(lambda: not marked(mark))


async def test_a_command_that_is_not_there_is_a_plain_failure() -> None:
    server = McpServer(lambda: Command("/no/such/command"))
    with pytest.raises(ServerFailed, match=r"cannot be started: this command does not exist: install"):
        await server.start()


@pytest.fixture
async def endpoint() -> AsyncIterator[str]:
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(SUPPORT / "sdk_server.py"), "http", stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    port = int(await program.stdout.readline())
    yield f"http://127.0.0.1:{port}/mcp"
    with suppress(ProcessLookupError):
        program.kill()
    await program.wait()


async def test_a_server_over_http_lists_calls_and_tells_progress(endpoint: str) -> None:
    server = McpServer(lambda: Endpoint(endpoint))
    told: list[float] = []

    def tell(done: float, *_: object) -> None:
        told.append(done)

    try:
        assert (await server.list()).name == "good"
        assert text_of(await server.call("echo", {"text": "over http"})) == "over http"
        await server.call("count", {}, on_progress=tell)
        await eventually(lambda: told == [1.0, 2.0, 3.0])
    finally:
        await server.stop()


async def test_a_server_over_http_that_dies_is_a_plain_failure(endpoint: str) -> None:
    server = McpServer(lambda: Endpoint(endpoint))
    await server.start()
    with pytest.raises(ServerFailed, match="did not answer `tools/call`: SSE stream ended without a response"):
        await server.call("die", {})
    with pytest.raises(ServerFailed, match="connection"):
        await server.restart()
    assert server.state.status is ServerStatus.FAILED


async def test_an_address_where_nobody_listens_is_a_plain_failure() -> None:
    with pytest.raises(ServerFailed, match="connection"):
        await McpServer(lambda: Endpoint("http://127.0.0.1:9/mcp")).start()


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncGenerator[str]:
    """The address of an HTTP server that gives every request the same answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"


def head(status: str, *lines: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "connection: close", "", "")).encode()


async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("401 Unauthorized", "content-length: 0"))


async def redirect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("307 Temporary Redirect", "location: http://127.0.0.1:9/elsewhere", "content-length: 0"))


async def write_without_end(writer: asyncio.StreamWriter, first: bytes) -> None:
    writer.write(first)
    for _ in range(200):
        writer.write(b" " * (1024 * 1024))
        await writer.drain()


async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await write_without_end(writer, head("200 OK", "content-type: application/json"))


async def flood_one_event(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await write_without_end(writer, head("200 OK", "content-type: text/event-stream") + b"data: ")


async def compress(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("200 OK", "content-type: application/json", "content-encoding: gzip", "content-length: 0"))


async def say_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    while await reader.read(1024):
        pass


async def say_garbage(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("200 OK", "content-type: application/json", "content-length: 5") + b"{\xff\x00[1")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (refuse, "HTTP status 401"),
        (redirect, "Redirect to http://127.0.0.1:9/elsewhere not followed"),
        (flood, "sent an answer of more than 16 MiB"),
        (flood_one_event, "SSE"),
        (compress, "compressed answers"),
        (say_nothing, "did not answer within 1 s"),
        (say_garbage, "Failed to parse JSON response"),
    ],
)
async def test_what_an_http_server_should_not_answer_is_a_plain_failure(answer: Answer, why: str) -> None:
    patience = HASTE if answer is say_nothing else None
    async with answering(answer) as url:
        server = McpServer(lambda: Endpoint(url), patience=patience)
        with pytest.raises(ServerFailed, match=why):
            await server.start()
        assert server.state.status is ServerStatus.FAILED


TOKEN = "correct horse battery"


REFUSED = """
import asyncio, os, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from gatewright.adapters.mcp_client import McpServer
from gatewright.adapters.server_process import Command

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)


async def main():
    server = McpServer(lambda: Command(sys.executable, tuple(sys.argv[1:]), dict(os.environ)))
    try:
        await server.call("one", {})
    except Exception as error:
        print(type(error).__name__, str(error)[-20:-4])
    await server.stop()


asyncio.run(main())
for span in spans.get_finished_spans():
    print(span.to_json(indent=None))
"""


def test_the_words_of_a_refusal_are_told_and_are_in_no_span(mark: str) -> None:
    """The SDK sends spans of its own to the provider of the whole process, so the test has one to itself."""
    words = [sys.executable, "-c", REFUSED, str(SUPPORT / "bad_server.py"), "repeats", "error"]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "TOKEN": "s3cr3t", MARK: mark}
    told, *spans = subprocess.run(words, env=variables, capture_output=True, check=True, text=True).stdout.splitlines()

    assert told == "ServerRefused the token s3cr3t"
    (span,) = [json.loads(one) for one in spans if "tools/call" in one]
    assert (span["status"]["status_code"], span["attributes"]["error.type"]) == ("ERROR", "-32000")
    assert not [one for one in spans if "s3cr3t" in one]
    assert marked(mark) == []


async def test_what_a_server_was_given_stands_in_no_failure_that_it_tells_of(server: Start) -> None:
    with pytest.raises(ServerRefused, match=r"^x{1980}the token \[REDACTED\]$"):  # cut after it was taken out
        await server("repeats", "error", TOKEN=TOKEN, secrets=(TOKEN,)).call("one", {})
    failed = await server("repeats", "result", TOKEN=TOKEN, secrets=(TOKEN,)).call("one", {})
    assert text_of(failed) == "the token [REDACTED] is bad"
    ended = server("repeats", "stderr", TOKEN=TOKEN, secrets=(TOKEN,))
    with pytest.raises(ServerFailed, match=r"exit code 3 during .* `the token \[REDACTED\] is bad`"):
        await ended.call("one", {})
    assert "[REDACTED]" in ended.stderr
    assert TOKEN not in f"{ended.stderr}{ended.state}"


@pytest.mark.parametrize(
    "token",
    [TOKEN, "1234567890", "p/w+d?=&%", 'quoted "pass" \\ word', "пароль-ключ", "hunter2hunter2", "[1, 2, 3, 4]"],
)
async def test_what_a_server_was_given_stands_in_no_result_or_description(server: Start, token: str) -> None:
    made = server("repeats", "whole", TOKEN=token, secrets=(token,))
    answer = await made.call("one", {})
    told = json.dumps([answer, (await made.list()).tools], ensure_ascii=False)
    for form in (token, json.dumps(token)[1:-1], quote(token), quote(token, "")):
        assert json.dumps(form, ensure_ascii=False)[1:-1] not in told
    assert told.count("[REDACTED]") >= 7


async def test_answer_with_an_id_of_another_type_is_not_taken_for_ours(server: Start) -> None:
    made = server("answers-as-text")
    for _ in range(3):
        assert text_of(await made.call("one", {})) == "true"
    assert made.state.notes == ("it answered a request that nobody made (3 times)",)


async def test_of_a_flood_on_standard_error_no_half_of_a_secret_is_kept(server: Start) -> None:
    flood = server("repeats", "flood", TOKEN=TOKEN, secrets=(TOKEN,))
    await flood.call("one", {})
    await eventually(lambda: flood.stderr.endswith("the end\n"))
    assert set(flood.stderr.splitlines()) == {"[REDACTED]", "the end"}


async def test_what_is_too_short_to_tell_it_from_chance_stays(server: Start) -> None:
    failed = await server("repeats", "result", TOKEN="seven77", secrets=("seven77",)).call("one", {})
    assert text_of(failed) == "the token seven77 is bad"


async def test_headers_that_a_server_repeats_are_taken_out_with_and_without_their_first_word() -> None:
    async def repeat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head("403 no a-tenant-9 nor secret-words", "content-length: 0"))

    async with answering(repeat) as url:
        server = McpServer(lambda: Endpoint(url, {"authorization": "Bearer secret-words", "x-tenant": "a-tenant-9"}))
        with pytest.raises(ServerFailed, match=r"403 no \[REDACTED\] nor \[REDACTED\]:"):
            await server.start()


async def test_headers_reach_the_server_and_nothing_compressed_is_asked_for() -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(head("401 Unauthorized", "content-length: 0"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        with pytest.raises(ServerFailed, match=r"401 Unauthorized: .*`headers_env`"):
            await McpServer(lambda: Endpoint(url, {"authorization": "Bearer t"})).start()
    assert b"authorization: bearer t" in seen[0].lower()
    assert b"accept-encoding: identity" in seen[0].lower()


async def test_a_server_over_http_that_was_restarted_is_connected_to_again_by_the_next_call() -> None:
    asked: list[str] = []
    results: dict[str, JsonValue] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "h", "version": "1"},
        },
        "tools/call": {"content": [{"type": "text", "text": "there"}]},
    }

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", start)
        body = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
        method = body.get("method", "")
        asked.append(method)
        if method not in results:
            writer.write(head("202 Accepted", "content-length: 0"))
        elif method == "tools/call" and asked.count("initialize") == 1:
            writer.write(head("404 Not Found", "content-length: 0"))
        else:
            answer = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": results[method]}).encode()
            lines = ("content-type: application/json", "mcp-session-id: one", f"content-length: {len(answer)}")
            writer.write(head("200 OK", *lines) + answer)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        server = McpServer(lambda: Endpoint(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"))
        with pytest.raises(ServerFailed, match="forgotten the session"):
            await server.call("one", {})
        assert text_of(await server.call("one", {})) == "there"
        await server.stop()
    assert asked.count("initialize") == 2
