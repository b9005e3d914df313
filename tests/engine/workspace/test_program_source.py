"""Sources of a program's own: a table of SQLite as texts by key, a queue as a stream, and what such code does wrong."""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import AlreadyRegistered, RegistrationError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Approval, ApprovalRequest, Outcome, Status
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.sourceedit import set_default_level
from gatewright.policy.verdict import Action, Permission, SafetyTier, Verdict, verdict_for
from gatewright.sources.stream import MAX_WAITING, ChangeKind, StreamBatch, Tell
from gatewright.tools import PathParameter, ResultType, Tool, ToolExecutionContext
from gatewright.tools.declaration import Normalization
from gatewright.tools.registry import operation, write_manifest
from gatewright.workspace import BlockSource, StreamSource, Workspace
from tests.support.patience import pause_until

POLICY = """\
gatewright = 1

[agents.clerk]
tools = ["orders", "block", "source", "file"]
sources = ["orders"]

[agents.guest]
tools = ["orders", "block", "source"]
sources = ["docs"]

[[sources]]
id = "orders"
type = "host"

[[sources.permission_rules]]
pattern = "closed/**"
permission = "none"

[[sources.permission_rules]]
pattern = "open/**"
permission = "read_write"

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

[[sources]]
id = "later"
type = "host"
default_permission = "read_write"
"""
Key = Annotated[str, PathParameter()]


class OrderTool(Tool):
    """Works on orders."""

    name = "orders"
    safety_tier = SafetyTier.SIDE_EFFECTING
    result_type = ResultType.ANY
    normalization = Normalization.JSON
    required_capabilities = frozenset[str]()
    texts = frozenset({"text"})

    def __init__(self, orders: Orders) -> None:
        self.orders = orders

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,), name="list")
    async def list_all(self, context: ToolExecutionContext) -> list[str]:
        """Give the keys of all orders."""
        return context.require_sources().readable("orders", self.orders.keys())

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,))
    async def show(self, key: Key) -> str:
        """Give one order."""
        return self.orders.load(key)

    @operation(actions=(Action.OVERWRITE,))
    async def write(self, key: Key, text: str) -> bool:
        """Write an order."""
        self.orders.write(key, text)
        return True

    @operation(actions=(Action.DELETE,))
    async def drop(self, key: Key) -> bool:
        """Forget an order."""
        self.orders.write(key, None)
        return True


class Orders:
    """A table, each of its rows a text under a key."""

    source_id = "orders"

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as database:
            database.execute("CREATE TABLE orders (key TEXT PRIMARY KEY, text TEXT NOT NULL)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)

    def keys(self) -> list[str]:
        with self._open() as database:
            return [str(row[0]) for row in database.execute("SELECT key FROM orders ORDER BY key")]

    def write(self, key: str, text: str | None) -> None:
        with self._open() as database:
            database.execute("DELETE FROM orders WHERE key = ?", (key,))
            if text is not None:
                database.execute("INSERT INTO orders VALUES (?, ?)", (key, text))

    def load(self, key: str) -> str:
        with self._open() as database:
            row = database.execute("SELECT text FROM orders WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise ToolFailure("there is no such order", code="not-found")
        return str(row[0])

    def tools(self) -> tuple[Tool, ...]:
        return (OrderTool(self),)

    def required_tools(self) -> tuple[ToolRule, ...]:
        return ()


class Letters:
    """A queue whose letters are told as they come."""

    source_id = "later"

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.tell: Tell | None = None

    def put(self, letter: str) -> None:
        self.waiting.put(letter)
        if self.tell is not None:
            self.tell(letter, ChangeKind.ADDED)

    def start(self, tell: Tell) -> None:
        self.tell = tell

    def stop(self) -> None:
        self.tell = None

    def tools(self) -> tuple[Tool, ...]:
        return ()

    def required_tools(self) -> tuple[ToolRule, ...]:
        return ()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "docs").mkdir(parents=True)
    registry = [OrderTool(Orders(tmp_path / "shape.db"))]
    write_manifest(registry, tmp_path / "ws" / "tools.json")
    host = '\n[[catalogs]]\nid = "shop"\ntype = "host"\nmanifest = "tools.json"\ntrusted = true\n'
    (tmp_path / "ws" / "policy.toml").write_text(POLICY + host, "utf-8")
    return tmp_path / "ws"


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    made = Orders(tmp_path / "orders.db")
    for key, text in {"open/1": "ten chairs", "closed/1": "secret", "7": "a table"}.items():
        made.write(key, text)
    return made


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    with Workspace.open(folder, keys=folder.parent / "keys") as opened:
        yield opened


def called(workspace: Workspace, agent: str, tool: str, *, approve: bool = False, **arguments: JsonValue) -> Outcome:
    return sent(workspace, agent, tool, arguments, approve=approve)


def sent(
    workspace: Workspace, agent: str, tool: str, arguments: Mapping[str, JsonValue], *, approve: bool = False
) -> Outcome:
    async def answer(request: ApprovalRequest) -> Approval:
        return Approval(approve and request.tool == tool)

    return asyncio.run(workspace.call(agent, tool, json.dumps(arguments), approver=answer))


def operations(workspace: Workspace, agent: str) -> list[str]:
    shown = {str(tool["name"]): tool for tool in workspace.view(agent).tools("mcp")}
    schema: Any = shown.get("orders", {}).get("inputSchema", {})
    return schema.get("properties", {}).get("op", {}).get("enum", [])


def test_a_table_is_gated_key_by_key_under_the_levels_of_its_row(workspace: Workspace, orders: Orders) -> None:
    workspace.sources.add(orders)

    assert operations(workspace, "clerk") == ["drop", "list", "show", "write"]
    assert operations(workspace, "guest") == []
    assert json.loads(called(workspace, "clerk", "orders", op="list").output) == ["7", "open/1"]
    assert "ten chairs" in called(workspace, "clerk", "orders", op="show", key="open/1").output
    assert called(workspace, "clerk", "orders", op="write", key="open/2", text="a lamp").status is Status.ALLOWED
    assert orders.load("open/2") == "a lamp"
    denied = {
        "level-none": {"op": "show", "key": "closed/1"},
        "level-denies": {"op": "write", "key": "7", "text": "no"},
        "outside-base": {"op": "show", "key": "../7"},
    }
    for code, arguments in denied.items():
        outcome = sent(workspace, "clerk", "orders", arguments)
        assert (outcome.status, outcome.decision.code) == (Status.DENIED, code)
    assert called(workspace, "clerk", "orders", op="drop", key="open/1").status is Status.DENIED
    assert called(workspace, "clerk", "orders", approve=True, op="drop", key="open/1").status is Status.ALLOWED
    assert called(workspace, "guest", "orders", op="list").status is Status.DENIED
    assert workspace.selfcheck().differences == ()


def test_block_load_gives_a_text_of_the_source_under_the_same_levels(workspace: Workspace, orders: Orders) -> None:
    remove = workspace.sources.add(orders)
    loaded = called(workspace, "clerk", "block", op="load", label="open/1", source_id="orders")
    assert "ten chairs" in loaded.output
    assert called(workspace, "clerk", "block", op="load", label="closed/1", source_id="orders").status is Status.DENIED
    assert called(workspace, "guest", "block", op="load", label="open/1", source_id="orders").status is Status.DENIED
    assert called(workspace, "clerk", "block", op="load", label="9", source_id="orders").status is Status.FAILED
    assert called(workspace, "clerk", "file", op="read", path="open/1", source="orders").status is Status.DENIED
    remove()
    assert called(workspace, "clerk", "block", op="load", label="open/1", source_id="orders").status is Status.DENIED


def test_tools_come_and_go_with_the_source_and_with_its_row(workspace: Workspace, orders: Orders) -> None:
    def warnings() -> set[str]:
        return {one.message.split("`")[1] for one in workspace.current_problems() if one.code == "source-not-added"}

    assert warnings() == {"orders", "later"}
    remove = workspace.sources.add(orders)
    assert warnings() == {"later"}
    assert workspace.is_executable("orders")
    row = workspace.policy.source("orders")
    assert row is not None
    text = workspace.text()
    without = text.replace('id = "orders"\ntype = "host"', 'id = "others"\ntype = "host"').replace('["orders"]', "[]")

    workspace.apply(workspace.edit_between("rename", text, without))
    assert operations(workspace, "clerk") == []
    assert "which does not run" in workspace.decide("clerk", "orders", {"op": "list"}).reason
    workspace.apply(workspace.edit_between("back", without, text))
    assert operations(workspace, "clerk") == ["drop", "list", "show", "write"]

    remove()
    remove()
    assert operations(workspace, "clerk") == []
    assert workspace.sources.add(orders) is not None
    assert operations(workspace, "clerk") == ["drop", "list", "show", "write"]


def test_rules_of_the_row_and_of_the_source_itself_narrow_what_is_shown(workspace: Workspace, orders: Orders) -> None:
    class Strict(Orders):
        def __init__(self) -> None:
            pass

        def required_tools(self) -> tuple[ToolRule, ...]:
            return (ToolRule("orders", AllowedOperations(frozenset({"list", "show"}))),)

        def tools(self) -> tuple[Tool, ...]:
            return (OrderTool(orders),)

    remove = workspace.sources.add(Strict())
    assert operations(workspace, "clerk") == ["list", "show"]
    remove()
    rule = '[[sources.required_tools]]\ntool_name = "block"\nrule_type = { AllowedOperations = ["info"] }\n\n'
    text, docs = workspace.text(), '[[sources]]\nid = "docs"'
    workspace.apply(workspace.edit_between("limit", text, text.replace(docs, rule + docs)))
    workspace.sources.add(orders)
    denied = called(workspace, "clerk", "block", op="load", label="open/1", source_id="orders")
    assert denied.decision.code == "source-operation-not-allowed"
    assert workspace.selfcheck().differences == ()


def test_what_names_no_key_is_judged_by_the_level_of_the_whole_and_hidden_by_it(
    workspace: Workspace, orders: Orders
) -> None:
    workspace.sources.add(orders)
    workspace.apply(set_default_level(workspace.policy, "orders", Permission.NONE))
    assert operations(workspace, "clerk") == ["drop", "show", "write"]
    assert called(workspace, "clerk", "orders", op="list").status is Status.DENIED
    assert workspace.selfcheck().differences == ()


@pytest.mark.parametrize("level", Permission)
def test_a_level_says_of_keys_what_it_says_of_files(workspace: Workspace, orders: Orders, level: Permission) -> None:
    workspace.apply(set_default_level(workspace.policy, "orders", level))
    workspace.sources.add(orders)
    wanted = {Verdict.ALLOW: Status.ALLOWED, Verdict.ASK: Status.DENIED, Verdict.DENY: Status.DENIED}
    for op, action in (("show", Action.READ), ("write", Action.OVERWRITE), ("drop", Action.DELETE)):
        more = {"text": "x"} if op == "write" else {}
        decision = workspace.decide("clerk", "orders", {"op": op, "key": "7", **more})
        assert decision.verdict is verdict_for(level, action), (op, decision.reason)
        if op == "write":
            outcome = sent(workspace, "clerk", "orders", {"op": op, "key": "7", **more})
            assert outcome.status is wanted[decision.verdict]
    assert workspace.selfcheck(("clerk",)).differences == ()


def hang(_: str) -> str:
    threading.Event().wait()
    return ""


def fail(_: str) -> str:
    raise RuntimeError("password=hunter2")


def leave(_: str) -> str:
    raise SystemExit(3)


WRONG: dict[str, tuple[Callable[[str], object], str]] = {
    "raises": (fail, "source-failed"),
    "leaves": (leave, "source-failed"),
    "stops": (lambda _: next(iter(())), "source-failed"),
    "gives bytes": (lambda _: b"x", "bad-result"),
    "gives none": (lambda _: None, "bad-result"),
    "gives half a pair": (lambda _: "\ud800", "bad-result"),
    "gives a subclass": (lambda _: type("Text", (str,), {})("x"), "bad-result"),
    "gives too much": (lambda _: "é" * 600_000, "too-large"),
    "gives itself": (lambda _: WRONG, "bad-result"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_source_does_wrong_is_a_failure_with_a_reason(workspace: Workspace, orders: Orders, what: str) -> None:
    load, _ = WRONG[what]
    orders.load = load  # type: ignore[method-assign, assignment]
    workspace.sources.add(orders)
    outcome = called(workspace, "clerk", "block", op="load", label="open/1", source_id="orders")
    assert outcome.status is Status.FAILED
    assert "hunter2" not in outcome.output
    assert "the source" in outcome.output or "the text is larger" in outcome.output


def test_a_source_that_hangs_takes_no_more_than_a_few_threads(folder: Path, orders: Orders) -> None:
    text = (folder / "policy.toml").read_text("utf-8") + '\n[tools.block]\ntimeout = "50ms"\n'
    (folder / "policy.toml").write_text(text, "utf-8")
    orders.load = hang  # type: ignore[method-assign]
    with Workspace.open(folder, keys=folder.parent / "keys", sources=[orders]) as workspace:
        ends = [
            called(workspace, "clerk", "block", op="load", label="open/1", source_id="orders").status for _ in range(10)
        ]
    assert ends == [Status.TIMED_OUT] * 8 + [Status.FAILED] * 2


class NoActions(Tool):
    """Says nothing of what it does."""

    name = "silent"
    result_type = ResultType.ANY
    normalization = Normalization.JSON

    @operation()
    async def go(self, key: Key) -> str:
        """Go."""
        return key


@pytest.mark.parametrize(
    "changes",
    [
        {"source_id": 7},
        {"source_id": " "},
        {"tools": lambda: ("orders",)},
        {"tools": lambda: (NoActions(),)},
        {"required_tools": lambda: (ToolRule("block", AllowedOperations(frozenset({"load"}))),)},
        {"load": None, "required_tools": None},
    ],
)
def test_what_is_no_source_is_refused_and_changes_nothing(
    workspace: Workspace, orders: Orders, changes: dict[str, Any]
) -> None:
    before = workspace.gate.snapshot().registry.keys()
    for name, value in changes.items():
        setattr(orders, name, value)
    source: Any = object() if changes.get("load", 0) is None else orders
    with pytest.raises(RegistrationError):
        workspace.sources.add(source)
    assert workspace.gate.snapshot().registry.keys() == before
    assert workspace.policy_path.exists()


def test_a_source_is_added_once(workspace: Workspace, orders: Orders) -> None:
    workspace.sources.add(orders)
    with pytest.raises(AlreadyRegistered):
        workspace.sources.add(orders)


def pulled(subscription: Any, wanted: Callable[[StreamBatch], bool]) -> StreamBatch:
    found: list[StreamBatch] = []

    def seen() -> bool:
        found.append(subscription.pull(timeout_s=0.02))
        return wanted(found[-1])

    pause_until(seen, "the stream tells it")
    return found[-1]


def test_a_queue_is_a_stream_that_pauses_and_goes_on(workspace: Workspace) -> None:
    letters = Letters()
    remove = workspace.sources.add(letters)
    stream = workspace.streams.get("later")
    assert stream is not None
    assert isinstance(letters, StreamSource)
    assert not isinstance(letters, BlockSource)
    text = workspace.text()
    workspace.apply(workspace.edit_between("give", text, text.replace('sources = ["orders"]', 'sources = ["later"]')))

    def state() -> JsonValue:
        return json.loads(called(workspace, "clerk", "source", op="status", source_id="later").output)["data"]

    assert state() == {"source_id": "later", "type": "host", "state": "stopped", "subscribers": 0}
    with stream.subscribe() as changes:
        pause_until(lambda: letters.tell is not None, "it started")
        letters.put("a")
        assert pulled(changes, lambda batch: bool(batch.changes)).changes == (("a", ChangeKind.ADDED),)
        assert called(workspace, "clerk", "source", op="pause", source_id="later").status is Status.ALLOWED
        pause_until(lambda: letters.tell is None, "it stopped")
        letters.put("b")
        assert changes.pull() == StreamBatch()
        called(workspace, "clerk", "source", op="resume", source_id="later")
        assert pulled(changes, lambda batch: batch.more) == StreamBatch((), more=True)
        for number in range(MAX_WAITING + 5):
            letters.put(f"c/{number}")
        assert len(changes.pull(limit=5_000).changes) == MAX_WAITING
        remove()
        assert pulled(changes, lambda batch: bool(batch.problem)).problem == "the stream is not attached any more"
    assert workspace.streams.get("later") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(key=st.one_of(st.none(), st.integers(), st.text(max_size=12), st.binary(max_size=4)), kind=st.text(max_size=8))
def test_what_is_no_change_is_the_programs_own_error(workspace: Workspace, key: Any, kind: str) -> None:
    if workspace.streams.get("later") is None:
        workspace.sources.add(LETTERS)
    stream = workspace.streams.get("later")
    assert stream is not None
    with stream.subscribe() as changes:
        pause_until(lambda: LETTERS.tell is not None, "it started")
        assert LETTERS.tell is not None
        with suppress(ValueError):
            LETTERS.tell(key, ChangeKind(kind))
        assert changes.pull().problem is None


LETTERS = Letters()


def test_a_stream_that_fails_or_hangs_holds_nobody_up(workspace: Workspace) -> None:
    class Broken(Letters):
        def start(self, tell: Tell) -> None:
            raise RuntimeError("no")

        def stop(self) -> None:
            threading.Event().wait()

    workspace.sources.add(Broken())
    stream = workspace.streams.get("later")
    assert stream is not None
    with stream.subscribe() as changes:
        assert pulled(changes, lambda batch: bool(batch.problem)).problem == "the source failed: RuntimeError"
        text = workspace.text()
        after = text.replace('sources = ["orders"]', 'sources = ["later"]')
        workspace.apply(workspace.edit_between("give", text, after))
        told = called(workspace, "clerk", "source", op="status", source_id="later")
        assert json.loads(told.output)["data"]["problem"] == "the source failed: RuntimeError"
        for _ in range(20):
            stream.pause()
            stream.resume()
    assert sum(thread.name == "gatewright-stream" for thread in threading.enumerate()) <= 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(key=st.text(max_size=20))
def test_no_key_that_a_model_sends_raises_or_gets_past_none(workspace: Workspace, orders: Orders, key: str) -> None:
    if not workspace.sources.program.ids:
        orders.load = lambda key: f"reached {key}"  # type: ignore[method-assign]
        workspace.sources.add(orders)
    for named in (key, f"closed/{key}", f"open/../closed/{key}", f"./closed//{key}"):
        for tool, arguments in (
            ("orders", {"op": "show", "key": named}),
            ("block", {"op": "load", "label": named, "source_id": "orders"}),
        ):
            assert "reached closed/" not in sent(workspace, "clerk", tool, arguments).output
