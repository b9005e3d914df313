"""Arguments, names and ids that mean harm: a denial with a reason, at once, in little memory; never an exception.

The bar is 50 ms for a decision; a test fails only beyond a second, because machines that run tests are busy.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.jsonvalue import MAX_BYTES, MAX_VALUES
from gatewright.gate import Approval, Decision, Remember, Session, Status
from gatewright.gate.turn import BrokenCall, ToolCall, ToolCallAccumulator
from gatewright.policy.verdict import Verdict
from gatewright.tools import DefinedTool, ToolDefinition
from tests.engine.gate.asking import Desk, asking_gate, soon
from tests.engine.gate.marked import marked_tools
from tests.engine.gate.world import Operator, World, context_for
from tests.support.patience import in_time

LIMIT_S = 1.0
MB = 1_000_000
POLICY = """gatewright = 1

[agents.archivist]
tools = ["file", "block", "echo", "counter", "vault", "fetch", "crawl", "peek", "rows", "setting", "deliver", "find"]
capabilities = [
  { NetRead = { allowlist = ["*"] } },
  { NetWrite = { allowlist = ["*"] } },
  { FsRead = { prefixes = ["."] } },
  { DbRead = { tables = ["a*"] } },
  { EnvRead = { vars = ["A"] } },
]

[[agents.archivist.tool_rules]]
tool_name = "echo"
rule_type = { ArgumentConstraints = { text = { pattern = "^(a+)+$|^(([a-z])+.)+[A-Z]([a-z])+$" } } }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [
  { pattern = "**/a*a*a*a*a*b/**", permission = "none" },
  { pattern = "shared.md", permission = "partner" },
]

[[policy.rules]]
name = "no doubles"
effect = "deny"
tools = ["echo", "file"]
when = { anyOf = [
  { properties = { text = { pattern = "(x+x+)+y" } }, required = ["text"] },
  { properties = { path = { pattern = "(x+x+)+y" } }, required = ["path"] },
] }
"""


def text(value: str) -> str:
    return '{"text": "' + value + '"}'


def keys(count: int) -> str:
    return "{" + ",".join(f'"k{i}":1' for i in range(count)) + "}"


def contained() -> dict[str, Any]:
    rows: list[Any] = []
    rows.append(rows)
    return {"text": rows}


def broad(depth: int) -> Any:
    """A small thing in memory that is huge when it is walked."""
    value: Any = "x"
    for _ in range(depth):
        value = [value] * 100
    return {"text": value}


def find_tool() -> DefinedTool:
    """A search whose conditions hold conditions."""
    inner = {"type": "array", "items": {"$ref": "#/$defs/E"}}
    branches: list[dict[str, Any]] = [
        {"type": "object", "properties": {"type": {"const": kind}, "args": inner}, "required": ["type", "args"]}
        for kind in ("and", "or", "not")
    ]
    plain = {"type": {"const": "eq"}, "field": {"type": "string"}}
    branches.append({"type": "object", "properties": plain, "required": ["type", "field"]})
    loose = [{"items": {"$ref": "#/$defs/L"}, "type": "array", "minItems": low} for low in (0, 1)]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"where": {"$ref": "#/$defs/E"}, "rows": {"$ref": "#/$defs/L"}},
        "$defs": {"E": {"anyOf": branches}, "L": {"anyOf": loose}},
    }
    return DefinedTool(ToolDefinition("find", "Find rows", schema), origin="host")


def conditions(depth: int, innermost: Any) -> Any:
    for _ in range(depth):
        innermost = {"type": "and", "args": [innermost]}
    return {"where": innermost}


def rows(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return {"rows": value}


class Raising(dict[str, Any]):
    """A dictionary none of whose methods can be used."""

    def _no(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __len__ = __getitem__ = __iter__ = __contains__ = __eq__ = items = keys = values = get = _no  # pyright: ignore


class RaisingText(str):
    """A text none of whose methods can be used."""

    __slots__ = ()

    def _no(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __len__ = __getitem__ = __iter__ = __str__ = __contains__ = _no  # pyright: ignore
    encode = isascii = isprintable = strip = startswith = _no  # pyright: ignore


class RaisingNumber(int):
    """A number that cannot be compared or written."""

    def _no(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __index__ = __str__ = __repr__ = _no  # pyright: ignore


class Endless(Mapping[str, Any]):
    """A mapping without an end."""

    def __getitem__(self, key: str) -> Any:
        return 1

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return map(str, itertools.count())


class Failing(Mapping[str, Any]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise OSError

    def __len__(self) -> int:
        raise OSError

    def __iter__(self) -> Iterator[str]:
        raise OSError


@dataclass(frozen=True)
class Case:
    """A hostile call, made when it is needed, and where it must end."""

    name: str
    tool: str
    make: Callable[[], Any]
    stage: str
    code: str


def case(name: str, make: Callable[[], Any], code: str, stage: str = "parse", tool: str = "echo") -> Case:
    return Case(name, tool, make, stage, code)


CASES = [
    case("list as deep as a stack", lambda: "[" * 100_000, "too-deep"),
    case("objects as deep as a stack", lambda: '{"a":' * 100_000, "too-deep"),
    case("depth that is closed again", lambda: '{"text":' + "[" * 90_000 + "]" * 90_000 + "}", "too-deep"),
    case("depth of 65", lambda: '{"text":' + "[" * 64 + "]" * 64 + "}", "too-deep"),
    case("ten megabytes", lambda: text("a" * 10 * MB), "too-large"),
    case("ten megabytes of bytes", lambda: text("a" * 10 * MB).encode(), "too-large"),
    case("ten megabytes as a mapping", lambda: {"text": "a" * 10 * MB}, "too-large"),
    case("four megabytes of characters that are sixteen of bytes", lambda: text("\U0001f600" * 4 * MB), "too-large"),
    case("ten megabytes of blanks", lambda: " " * 10 * MB, "too-large"),
    case("million of values", lambda: {"text": [0] * MB}, "too-many-values"),
    case("hundred thousand keys", lambda: keys(100_000), "too-many-values"),
    case("hundred thousand keys as a mapping", lambda: {f"k{i}": 1 for i in range(100_000)}, "too-many-values"),
    case("values that share their parts", lambda: broad(20), "too-many-values"),
    case(
        "commas and escaped quotes in a text that never ends",
        lambda: '{"a":"' + "," * (MAX_VALUES + 1) + '\\"' * MB,
        "not-json",
    ),
    case(
        "commas and escaped quotes that end in a backslash",
        lambda: '{"a":"' + "," * (MAX_VALUES + 1) + '\\"' * MB + "\\",
        "not-json",
    ),
    case("NaN", lambda: '{"text": NaN}', "not-finite"),
    case("NaN as a value", lambda: {"text": float("nan")}, "not-finite"),
    case("minus infinity", lambda: '{"text": -Infinity}', "not-finite"),
    case("number beyond the floats", lambda: '{"text": 1e400}', "not-finite"),
    case("exponent of four million digits", lambda: '{"text": 1e' + "1" * 4 * MB + "}", "not-finite"),
    case("integer of five thousand digits", lambda: '{"text": ' + "1" * 5000 + "}", "integer-range"),
    case("integer of four million digits", lambda: '{"text": ' + "1" * 4 * MB + "}", "integer-range"),
    case("thousand long integers", lambda: '{"text": [' + ",".join(["1" * 4000] * 1000) + "]}", "integer-range"),
    case("huge integer as a value", lambda: {"text": 10**5000}, "integer-range"),
    case("same key twice", lambda: '{"text": "a", "text": "a"}', "duplicate-key"),
    case("same key twice, once escaped", lambda: '{"text": "a", "t\\u0065xt": "a"}', "duplicate-key"),
    case("same key twice, deep inside", lambda: '{"text": [{"a": {"b": 1, "b": 2}}]}', "duplicate-key"),
    case("half of a surrogate pair", lambda: '{"text": "\\ud800"}', "lone-surrogate"),
    case("half of a surrogate pair, not escaped", lambda: text("\ud800"), "lone-surrogate"),
    case("half of a surrogate pair in a key", lambda: '{"\\udc00": 1}', "lone-surrogate"),
    case("half of a surrogate pair as a value", lambda: {"text": ["\udfff"]}, "lone-surrogate"),
    case("surrogates as UTF-8", lambda: b'{"text": "\xed\xa0\x80"}', "not-utf8"),
    case("Latin-1", lambda: b'{"text": "\xe9"}', "not-utf8"),
    case("UTF-16", lambda: text("a").encode("utf-16"), "not-utf8"),
    case("byte order mark", lambda: "\ufeff" + text("a"), "not-json"),
    case("byte order mark as bytes", lambda: b"\xef\xbb\xbf" + text("a").encode(), "not-json"),
    case("NUL in a text", lambda: text("a\x00b"), "not-json"),
    case("NUL instead of arguments", lambda: "\x00", "not-json"),
    case("trailing object", lambda: text("a") + text("b"), "not-json"),
    case("trailing NUL", lambda: text("a") + "\x00", "not-json"),
    case("comment", lambda: '{"text": "a" /* b */}', "not-json"),
    case("single quotes", lambda: "{'text': 'a'}", "not-json"),
    case("list", lambda: "[]", "not-an-object"),
    case("null", lambda: "null", "not-an-object"),
    case("object in a text", lambda: json.dumps(text("a")), "not-an-object"),
    case("nothing", lambda: None, "not-an-object"),
    case("generator", lambda: (key for key in "ab"), "not-an-object"),
    case("generator inside", lambda: {"text": (key for key in "ab")}, "not-json"),
    case("set inside", lambda: {"text": {1}}, "not-json"),
    case("bytes inside", lambda: {"text": b"a"}, "not-json"),
    case("key that is a number", lambda: {1: "a", "text": "a"}, "not-json"),
    case("key that is nothing", lambda: {None: "a"}, "not-json"),
    case("key that is a tuple", lambda: {("text",): "a"}, "not-json"),
    case("list that contains itself", contained, "too-deep"),
    case("mapping without an end", Endless, "too-many-values"),
    case("mapping that cannot be read", Failing, "internal-error"),
    case("number that cannot be compared", lambda: {"text": RaisingNumber(1)}, "internal-error"),
    case("text that cannot be read", lambda: {"text": [RaisingText("a")]}, "internal-error"),
    case("thousands of keys that do not exist", lambda: keys(19_000), "schema-mismatch", "schema"),
    case("key of four megabytes", lambda: '{"' + "k" * 4 * MB + '": 1}', "schema-mismatch", "schema"),
    case("dictionary that raises", lambda: {"text": Raising(a=1)}, "schema-mismatch", "schema"),
    case(
        "thousands of empty objects",
        lambda: {"text": [dict[str, Any]() for _ in range(19_000)]},
        "schema-mismatch",
        "schema",
    ),
    case(
        "condition of no kind, deep inside",
        lambda: conditions(28, {"type": "like"}),
        "schema-mismatch",
        "schema",
        "find",
    ),
    case("condition without a kind, deep inside", lambda: conditions(28, {}), "schema-mismatch", "schema", "find"),
    case("rows in rows that fit neither", lambda: rows(60), "schema-mismatch", "schema", "find"),
    case("float of four million digits", lambda: '{"text": 0.' + "1" * 4 * MB + "}", "schema-mismatch", "schema"),
    case("operation of four megabytes", lambda: {"op": "u" * 4 * MB}, "operation-unknown", "operation", "counter"),
    case("operation that is a list", lambda: {"op": ["up"]}, "operation-unknown", "operation", "counter"),
    case("operation with a look-alike", lambda: {"op": "uр"}, "operation-unknown", "operation", "counter"),
    case("operation with a NUL", lambda: {"op": "up\x00"}, "operation-unknown", "operation", "counter"),
    case("text that nearly fits", lambda: text("a" * 4 * MB + "!"), "argument-constraint", "schema"),
    case("text that fits neither", lambda: text("x" * 4 * MB), "argument-constraint", "schema"),
    case("text of words", lambda: text("abc " * MB), "argument-constraint", "schema"),
    case(
        "address of four megabytes", lambda: {"url": "https://" + "a." * 2 * MB}, "url-too-long", "arguments", "fetch"
    ),
    case(
        "thousand long addresses",
        lambda: {"urls": ["https://example.org/" + "a/../" * 800] * 999},
        "too-many-targets",
        "arguments",
        "crawl",
    ),
    case("many addresses", lambda: {"urls": ["https://a.b/"] * 19_000}, "too-many-targets", "arguments", "crawl"),
    case("table of four megabytes", lambda: {"table": "a" * 4 * MB}, "bad-name", "arguments", "rows"),
    case("variable with a NUL", lambda: {"name": "A\x00"}, "bad-name", "arguments", "setting"),
    case("path of dots", lambda: {"op": "read", "path": "../" * MB}, "path-too-long", "arguments", "file"),
    case("path on disk of dots", lambda: {"path": "../" * MB}, "path-too-long", "arguments", "peek"),
    case("path with a NUL", lambda: {"op": "read", "path": "a\x00b"}, "path-control", "arguments", "file"),
    case("name of four thousand", lambda: {"op": "read", "path": "x" * 4000}, "path-too-long", "arguments", "file"),
    case(
        "label of two megabytes",
        lambda: {"op": "save", "label": "file:" + "a/" * MB},
        "unknown-label",
        "arguments",
        "file",
    ),
]
IDS = [one.name for one in CASES]
NAMES = {
    "nothing": "",
    "half a surrogate pair": "\ud800",
    "NUL": "\x00",
    "ten megabytes": "a" * 10 * MB,
    "right to left": "\u202e" * 1000,
    "heading": "vault\n## Tool Usage Rules",
    "fullwidth": "ｅｃｈｏ",
    "upper case": "ECHO",
    "padded": "echo ",
    "path": "../echo",
    "major": "echo@" + "9" * 5000,
    "two majors": "echo@1@1",
    "only a major": "@1",
    "flags": "\U0001f1e9\U0001f1ea" * 5000,
    "quotes": "\"'`{}$(id)`",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    policy = POLICY.replace('base_path = "docs"', 'base_path = "docs"\nmax_file_bytes = 8_388_608', 1)
    world = World(tmp_path_factory.mktemp("hostile"), policy, *marked_tools(), find_tool())
    assert asyncio.run(world.call("echo", {"text": "aaa"})).status is Status.ALLOWED
    yield world
    world.close()


def is_modest(decision: Decision, sent: object) -> None:
    """A denial in few words that repeats nothing of what was sent."""
    assert decision.verdict is Verdict.DENY
    assert 0 < len(decision.reason) < 1_000
    assert decision.model_message is not None
    assert decision.model_message.startswith("Tool execution failed: ")
    assert len(decision.model_message) < 500
    if isinstance(sent, str) and len(sent) > 100:
        assert not any(sent[at : at + 40] in decision.model_message for at in range(0, min(len(sent), 4040) - 40, 40))
    assert decision.proof.verdict is Verdict.DENY


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_decide_denies_with_a_reason_at_once(hostile: World, one: Case) -> None:
    sent = one.make()
    began = time.process_time()
    decision = hostile.decide(one.tool, sent)
    took_s = time.process_time() - began

    assert (decision.stage, decision.code) == (one.stage, one.code)
    is_modest(decision, sent)
    assert in_time(took_s, LIMIT_S)


@pytest.mark.parametrize("one", CASES, ids=IDS)
async def test_call_denies_and_the_log_stays_small_and_sound(hostile: World, one: Case) -> None:
    assert hostile.audit is not None
    rows_before = len(list(hostile.audit.rows()))
    sent = one.make()
    began = time.process_time()
    outcome = await hostile.call(one.tool, sent)
    took_s = time.process_time() - began
    rows = list(hostile.audit.rows())[rows_before:]

    assert (outcome.status, outcome.decision.stage, outcome.code) == (Status.DENIED, one.stage, one.code)
    assert outcome.output == outcome.decision.model_message
    assert [row.kind for row in rows if row.kind != "CapabilityCheck"] == [
        "ToolInvoked",
        "PolicyDecision",
        "ToolDenied",
    ]
    assert sum(len(row.body.encode()) for row in rows) < 64_000
    assert in_time(took_s, LIMIT_S)


async def test_one_turn_of_hostile_calls_is_answered_in_order(hostile: World) -> None:
    calls = [ToolCall(one.tool, one.make(), f"call-{number}") for number, one in enumerate(CASES)]
    fine = ToolCall("counter", {"op": "up"})
    outcomes = await hostile.gate.call_many("archivist", [fine, *calls, fine])

    assert [outcome.code for outcome in outcomes] == ["allowed", *(one.code for one in CASES), "allowed"]
    assert hostile.audit is not None
    assert hostile.audit.verify().is_sound


@pytest.mark.parametrize("one", CASES, ids=IDS)
async def test_streamed_in_pieces_it_is_a_denied_call_or_no_call(hostile: World, one: Case) -> None:
    sent = one.make()
    if isinstance(sent, bytes):
        sent = sent.decode("latin-1")
    streamed = ToolCallAccumulator()
    began = time.process_time()
    streamed.add(0, id="a", name=one.tool)
    for piece in [sent[at : at + MB] for at in range(0, len(sent), MB)] if isinstance(sent, str) else [sent]:
        streamed.add(0, arguments=piece)
    built = streamed.calls()
    assert in_time(time.process_time() - began, LIMIT_S)
    for call in built:
        if isinstance(call, BrokenCall):
            assert 0 < len(call.reason) < 200
        else:
            outcome = await hostile.call(call.tool, call.arguments)
            assert outcome.status in {Status.DENIED, Status.ALLOWED}
            assert one.code != "lone-surrogate" or outcome.status is Status.DENIED


def test_accumulator_takes_deltas_of_any_shape() -> None:
    streamed = ToolCallAccumulator()
    shapes: tuple[Any, ...] = (
        None,
        {},
        {"tool_calls": 1},
        {"tool_calls": [None, {"index": "x"}, {"function": 1}]},
    )
    for odd in shapes:
        streamed.add_openai(odd)
        streamed.add_anthropic(odd)
    others: tuple[Any, ...] = (1, "a", [], [[]])
    for odd in shapes + others:
        streamed.add(odd, id=odd, name=odd, arguments=odd)
    for index in range(-500, 500):
        streamed.add(index, id="i" * MB if index == 0 else "i", name="n", arguments="{")
    built = streamed.calls()

    assert len(built) <= 130
    assert all(len(call.tool_call_id) <= 1024 for call in built)


@pytest.mark.parametrize(
    "make",
    [lambda: text("a" * 10 * MB), lambda: {"text": "a" * 10 * MB}, lambda: {"text": [0] * (10 * MB // 8)}],
    ids=["text", "mapping", "list"],
)
async def test_ten_megabytes_cost_no_multiple_of_their_memory(hostile: World, make: Callable[[], Any]) -> None:
    sent = make()
    tracemalloc.start()
    try:
        hostile.decide("echo", sent)
        await hostile.call("echo", sent)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < MAX_BYTES


async def test_largest_accepted_text_costs_a_few_times_its_memory(hostile: World) -> None:
    sent = text("é" * (MAX_BYTES // 2 - 20))
    tracemalloc.start()
    try:
        assert hostile.decide("echo", sent).code == "argument-constraint"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 6 * MAX_BYTES


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_odd_name_of_a_tool_or_an_agent_gets_the_words_of_an_unknown_tool(hostile: World, name: str) -> None:
    for agent, tool in (("archivist", name), (name, "echo"), (name, name)):
        decision = hostile.decide(tool, text("aaa"), agent=agent)
        outcome = await hostile.call(tool, text("aaa"), agent=agent)
        assert outcome.status is Status.DENIED
        assert outcome.decision.stage == "lookup"
        assert decision.code == outcome.code
        assert outcome.output.startswith("Tool execution failed: no tool of that name is available to you;")
        is_modest(decision, name)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_odd_session_and_user_raise_nothing_and_are_recorded(hostile: World, name: str) -> None:
    assert hostile.audit is not None
    session, context, operator = Session(name), context_for(name), Operator()
    allowed = await hostile.call("echo", text("aaa"), session=session)
    asked = await hostile.call("vault", {}, session=session, approver=operator)
    of_user = await hostile.call("vault", {}, context=context, approver=operator)

    assert (allowed.status, asked.status) == (Status.ALLOWED, Status.ALLOWED)
    assert of_user.code == ("bad-user" if name == "\ud800" else "allowed")
    assert hostile.gate.decide("archivist", "vault", {}, session=session, context=context).proof.to_text()
    assert Session.resume(json.loads(json.dumps(session.to_saved(hostile.clock))), hostile.clock) is not None
    assert all(len(row.session) <= 100 for row in hostile.audit.rows())
    assert hostile.audit.verify().is_sound


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_odd_session_is_asked_about_and_remembered_through_a_broker(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, POLICY, *marked_tools(), find_tool())
    broker = asking_gate(world, POLICY, waits_alone=True)
    desk = Desk(broker)
    session = Session(name)
    call = asyncio.ensure_future(world.call("vault", {}, session=session))
    question = await desk.question()
    broker.answer(question.request_id, Approval(True, "dana", Remember.DURATION, 60.0))

    assert (await soon(call)).status is Status.ALLOWED
    assert (await soon(world.call("vault", {}, session=session))).status is Status.ALLOWED
    broker.close()
    world.close()


@pytest.mark.parametrize(
    ("before", "added"),
    [("x\n", "y\n" * 1_500_000), ("a\n" * 495, "".join(f"{i}\na\n" for i in range(240))), ("x" * MB, "y" * 2 * MB)],
    ids=["lines", "lines that nearly match", "one line"],
)
async def test_operator_is_shown_a_bounded_change(hostile: World, before: str, added: str) -> None:
    (hostile.docs / "shared.md").write_text(before, "utf-8")
    operator = Operator(approves=False)
    outcome = await hostile.call("file", {"op": "append", "path": "shared.md", "content": added}, approver=operator)

    assert outcome.code == "approval-refused"
    assert len(operator.requests[0].diff or "") < 70_000


async def test_secret_in_the_place_of_a_tools_name_is_in_no_row(world: World) -> None:
    for secret in ("ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", "https://mo:hunter22xyz@db/x", "password=hunter22xyz"):
        outcome = await world.call(secret, {})
        assert outcome.code == "unknown-tool"
    await world.call("no_such_tool", {})
    assert world.audit is not None
    rows = [*world.audit.rows()][1:]
    assert [row.tool for row in rows[-3:]] == ["no_such_tool"] * 3
    assert len(rows) == 12
    assert not [row for row in rows if "hunter22xyz" in str(row) or "ghp_" in str(row)]
