"""Execution: what is recorded, reserved, stopped, given up, reused; tools that misbehave."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import threading
from collections import UserDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from enum import IntEnum
from typing import Any, cast

import pytest
from pydantic import BaseModel, field_serializer

from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import unbroken
from gatewright.gate import AuditUnavailable, Session, Status, history
from gatewright.gate.call import Recorder
from gatewright.gate.stages import execute
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, Normalization, ResourceBounds, ResultType, SideEffect
from gatewright.tools.registry import FunctionTool, operation, tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, World, context_for
from tests.support.patience import patient

PREFIX = "Tool execution failed:"


def listing(*names: str) -> str:
    return POLICY.replace('"vault"]', ", ".join(['"vault"', *(f'"{name}"' for name in names)]) + "]")


def made(function: Callable[..., Awaitable[Any]], **declared: Any) -> FunctionTool:
    given: dict[str, Any] = {
        "safety_tier": SafetyTier.READ_ONLY,
        "result_type": ResultType.OBJECT,
        "normalization": Normalization.JSON,
        "description": "Does it.",
    }
    return tool(**{**given, **declared})(function)


def limit(name: str, calls: int) -> str:
    return f'\n[[agents.archivist.tool_rules]]\ntool_name = "{name}"\nrule_type = {{ MaxCalls = {calls} }}\n'


async def flood() -> Any:
    return "x" * 50_000_000


async def swarm() -> Any:
    return [0] * 500_000


async def not_a_number() -> Any:
    return {"a": float("nan")}


async def deep() -> Any:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


async def half() -> Any:
    return {"a": "\ud800"}


async def huge() -> Any:
    return {"a": 1 << 100_000}


async def generator() -> Any:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    return numbers()


async def leaves() -> Any:
    raise SystemExit(3)


async def gives_up() -> Any:
    raise asyncio.CancelledError


async def panics() -> Any:
    class Panic(BaseException):
        pass

    raise Panic("core dumped")


@pytest.mark.parametrize(
    "function", [flood, swarm, not_a_number, deep, half, huge, generator, leaves, gives_up, panics]
)
async def test_tool_that_misbehaves_fails_its_call_and_nothing_else(
    make_world: MakeWorld, function: Callable[[], Awaitable[Any]]
) -> None:
    name = function.__name__
    world, session = make_world(listing(name), made(function)), Session()
    outcome = await world.call(name, {}, session=session)

    assert outcome.status is Status.FAILED
    assert outcome.output.startswith(PREFIX)
    assert len(outcome.output) < 300
    assert outcome.detail
    assert outcome.data is None
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolFailed"]
    assert session.calls(name) == 1
    assert (await world.call("echo", {"text": "x"}, session=session)).status is Status.ALLOWED


class Late:
    """Something in a result that answers once `let_go` is set, by whatever way it is read."""

    def __init__(self) -> None:
        self.began, self.let_go = threading.Event(), threading.Event()

    def read(self) -> int:
        self.began.set()
        self.let_go.wait(30)
        return 1

    def model(self) -> object:
        read = self.read

        class Model(BaseModel):
            @field_serializer("at", check_fields=False)
            def late(self, _value: int) -> int:
                return read()

            at: int = 0

        return Model()

    def mapping(self) -> object:
        read = self.read

        class Lazy(UserDict[str, int]):
            def __getitem__(self, key: str) -> int:
                return read() if key == "at" else 0

        return Lazy(at=0)

    def list(self) -> object:
        read = self.read

        class Lazy(list[int]):
            def __iter__(self) -> Iterator[int]:
                yield read()

        return {"at": Lazy()}

    def attribute(self) -> object:
        read = self.read

        class Lazy:
            @property
            def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
                read()
                return Mapping

            def items(self) -> object:
                return {"at": 1}.items()

        return Lazy()


LATE = ["model", "mapping", "list", "attribute"]


async def heard(event: threading.Event) -> None:
    """Wait until it is set, while the loop goes on."""
    while not event.is_set():
        await asyncio.sleep(0)


@pytest.mark.parametrize("way", LATE)
async def test_result_whose_own_code_is_slow_is_read_beside_the_event_loop(make_world: MakeWorld, way: str) -> None:
    late = Late()

    async def lazy() -> Any:
        return getattr(late, way)()

    world = make_world(listing("lazy"), made(lazy))
    call = asyncio.ensure_future(world.call("lazy", {}))
    await heard(late.began)
    assert (await world.call("echo", {"text": "meanwhile"})).output == "meanwhile"
    assert not call.done()
    late.let_go.set()

    assert (await call).output in ('{"at":1}', '{"at":[1]}')


@pytest.mark.parametrize("way", LATE)
async def test_result_that_is_not_read_in_time_is_an_error_that_says_the_tool_ran(
    make_world: MakeWorld, way: str
) -> None:
    late = Late()

    async def lazy() -> Any:
        return getattr(late, way)()

    bounds = ResourceBounds(timeout_s=1)
    world, session = make_world(listing("lazy"), made(lazy, resource_bounds=bounds)), Session()
    outcome = await world.call("lazy", {}, session=session)
    late.let_go.set()

    assert late.began.is_set()
    assert (outcome.status, outcome.code, outcome.data) == (Status.TIMED_OUT, "result-timed-out", None)
    assert "the tool ran, but its result could not be read in time" in outcome.output
    assert world.row_kinds()[-1] == "ToolTimedOut"
    assert (session.calls("lazy"), session.has_succeeded("lazy")) == (1, False)


class Slow(Exception):
    """Says what it is when it is let go."""

    def __init__(self, late: Late) -> None:
        super().__init__()
        self.late = late

    def __str__(self) -> str:
        return str(self.late.read())


class SlowFailure(ToolFailure):
    """The same as a failure for the model."""

    def __init__(self, late: Late) -> None:
        super().__init__("x")
        self.late = late

    def __str__(self) -> str:
        return str(self.late.read())


def noted(late: Late) -> Exception:
    error = ValueError("x")
    error.__notes__ = [Slow(late)]  # pyright: ignore[reportAttributeAccessIssue]
    return error


def caused(late: Late) -> Exception:
    error = ValueError("x")
    error.__cause__ = Slow(late)
    return error


@pytest.mark.parametrize("make", [Slow, SlowFailure, noted, caused])
async def test_exception_whose_own_code_never_ends_fails_its_call_and_holds_nothing_up(
    make_world: MakeWorld, make: Callable[[Late], Exception], caplog: pytest.LogCaptureFixture
) -> None:
    late = Late()

    async def lazy() -> Any:
        raise make(late)

    world = make_world(listing("lazy"), made(lazy))
    call = asyncio.ensure_future(world.call("lazy", {}))
    await heard(late.began)
    assert (await world.call("echo", {"text": "meanwhile"})).output == "meanwhile"
    outcome = await call

    assert not late.let_go.is_set()
    late.let_go.set()
    assert (outcome.status, outcome.code) == (Status.FAILED, "tool-crashed")
    assert "internal error" in outcome.output
    assert world.row_kinds()[-1] == "ToolFailed"
    assert ("the tool `lazy` raised" in caplog.text) is (make is not SlowFailure)


async def test_result_that_ends_in_the_word_of_an_iterator_fails_at_once(make_world: MakeWorld) -> None:
    class Stops(UserDict[str, int]):
        def items(self) -> Any:
            raise StopIteration

    async def stops() -> Any:
        return Stops(a=1)

    async with patient():
        outcome = await make_world(listing("stops"), made(stops)).call("stops", {})

    assert (outcome.status, outcome.code) == (Status.FAILED, "tool-crashed")


async def test_words_of_a_failure_are_bounded_before_they_are_worked_on(make_world: MakeWorld) -> None:
    async def wordy() -> Any:
        raise ToolFailure("x" * 30_000_000)

    outcome = await make_world(listing("wordy"), made(wordy)).call("wordy", {})

    assert (outcome.status, outcome.code) == (Status.FAILED, "tool-failed")
    assert len(outcome.detail) < 100_000


async def test_call_that_is_given_up_while_its_result_is_read_is_abandoned(make_world: MakeWorld) -> None:
    late = Late()

    async def lazy() -> Any:
        return late.model()

    world = make_world(listing("lazy"), made(lazy))
    call = asyncio.ensure_future(world.call("lazy", {}))
    await heard(late.began)
    call.cancel()
    await asyncio.wait({call})
    late.let_go.set()

    assert call.cancelled()
    assert world.row_kinds()[-1] == "ToolAbandoned"


async def test_result_without_code_of_its_own_is_read_without_a_thread(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shout(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError

    class Level(IntEnum):
        HIGH = 3

    value: dict[str, Any] = {Shout("a"): [Shout("b"), Level.HIGH, 0.5, None, True, ("c", {})]}

    async def plain() -> Any:
        return value

    monkeypatch.setattr("gatewright.base.late.threading.Thread", None)
    outcome = await make_world(listing("plain"), made(plain)).call("plain", {})
    assert outcome.output == '{"a":["b",3,0.5,null,true,["c",{}]]}'


async def test_tool_that_is_stopped_says_itself_what_became_of_it(make_world: MakeWorld) -> None:
    async def partly() -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ToolFailure("3 of 7 letters were sent", code="partly-sent") from None

    bounds = ResourceBounds(timeout_s=0.02)
    outcome = await make_world(listing("partly"), made(partly, resource_bounds=bounds)).call("partly", {})

    assert (outcome.status, outcome.code) == (Status.TIMED_OUT, "partly-sent")
    assert outcome.output == f"{PREFIX} 3 of 7 letters were sent"
    assert outcome.detail == "3 of 7 letters were sent"


async def test_operator_reads_what_the_model_does_not(make_world: MakeWorld) -> None:
    outcome = await make_world(listing("crash")).call("crash", {"text": "the cellar"})

    assert outcome.detail == "the tool raised ZeroDivisionError: the cellar"
    assert "cellar" not in outcome.output
    assert outcome.to_json()["detail"] == outcome.detail


class Brittle:
    """Audit that fails at the n-th row batch."""

    def __init__(self, world: World, *fails: int) -> None:
        assert world.audit is not None
        self.append, self.fails, self.count = world.audit.append, fails, 0

    def __call__(self, entries: Any, **more: Any) -> Any:
        self.count += 1
        if self.count in self.fails:
            raise AuditUnavailable("the disk is full")
        return self.append(entries, **more)


async def test_call_that_cannot_be_recorded_is_not_made_and_uses_nothing_up(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, session = make_world(POLICY + limit("counter", 1)), Session()
    monkeypatch.setattr(world.audit, "append", Brittle(world, 1))
    first = await world.call("counter", {"op": "up"}, session=session)
    second = await world.call("counter", {"op": "up"}, session=session)

    assert (first.status, first.decision.stage, first.code) == (Status.DENIED, "execute", "audit-unavailable")
    assert first.decision.reason == "the disk is full"
    assert first.output == f"{PREFIX} the call could not be recorded and was not made; try again later"
    assert (second.status, world.counter.value) == (Status.ALLOWED, 1)


async def test_result_whose_end_cannot_be_recorded_is_withheld(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(POLICY)
    monkeypatch.setattr(world.audit, "append", Brittle(world, 2))
    outcome = await world.call("counter", {"op": "up"})

    assert (outcome.status, outcome.code, outcome.data) == (Status.FAILED, "audit-unavailable", None)
    assert outcome.output == f"{PREFIX} the call was made, but its result could not be recorded and is withheld"
    assert (outcome.detail, outcome.output_hash, outcome.output_bytes, outcome.raw) == (
        "the end could not be recorded",
        None,
        0,
        None,
    )
    assert world.counter.value == 1


async def test_log_held_by_another_process_does_not_stop_the_event_loop(world: World) -> None:
    await world.call("echo", {"text": "first"})
    assert world.audit is not None
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        keeper = world.folder / "keys"
        with next(keeper.glob("audit-*.anchor")).open("r+b") as anchor:
            fcntl.flock(anchor, fcntl.LOCK_EX)
            held.set()
            go_on.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(5)
    calls = [asyncio.ensure_future(world.call("echo", {"text": str(number)})) for number in range(3)]
    for _ in range(20):
        await asyncio.sleep(0)
    ran = not any(call.done() for call in calls)
    go_on.set()
    outcomes = await asyncio.gather(*calls)
    thread.join()

    assert ran
    assert [outcome.output for outcome in outcomes] == ["0", "1", "2"]
    assert world.audit.verify().problems == ()


async def test_call_cancelled_while_its_record_waits_is_not_made_and_has_an_end() -> None:
    entered, go_on = threading.Event(), threading.Event()
    rows: list[bool] = []

    def write(_build: Any, wait: bool) -> bool:
        if not wait:
            return False
        entered.set()
        go_on.wait(5)
        rows.append(True)
        return True

    recorder = Recorder(write)
    task = asyncio.ensure_future(recorder(lambda _log: ()))
    while not entered.is_set():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task

    assert rows == [True]
    assert cancelled.value.__cause__ is None


async def test_cancellation_of_a_record_that_failed_carries_the_failure() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(unbroken(future))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    future.set_exception(AuditUnavailable("full"))
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task

    assert isinstance(cancelled.value.__cause__, AuditUnavailable)


async def test_slot_of_a_call_cancelled_before_it_began_is_given_back(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, session = make_world(POLICY + limit("counter", 1)), Session()
    force = world.gate.in_force()
    record = force.services.record
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(self: Recorder, build: Any) -> None:
        if not waiting.is_set():
            waiting.set()
            await unbroken(asyncio.ensure_future(go_on.wait()))
        await original(self, build)

    original = Recorder.__call__
    assert isinstance(record, Recorder)
    monkeypatch.setattr(Recorder, "__call__", slowly)
    call = asyncio.ensure_future(world.call("counter", {"op": "up"}, session=session))
    await waiting.wait()
    call.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert (world.counter.value, session.calls("counter")) == (0, 0)
    assert world.row_kinds()[-1] == "ToolAbandoned"


async def test_cancelled_call_of_a_stubborn_tool_is_abandoned_and_does_not_hang(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "GRACE_S", 0.01)
    stubborn = GateTool()
    world, session = make_world(listing("wait"), stubborn), Session()
    call = asyncio.ensure_future(world.call("wait", {"op": "stubbornly"}, session=session))
    await stubborn.began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    stubborn.let_go.set()

    assert world.row_kinds()[-1] == "ToolAbandoned"
    assert not session.facts().is_flying("wait")
    assert not session.has_succeeded("wait")


@pytest.mark.parametrize("steps", range(12))
async def test_call_cancelled_at_any_await_leaves_no_open_end(make_world: MakeWorld, steps: int) -> None:
    async def works() -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
        return {"done": "x" * 200_000}

    world, session = make_world(listing("works"), made(works)), Session()
    await world.call("echo", {"text": "opens the log"}, session=session)
    before = len(world.row_kinds())
    call = asyncio.ensure_future(world.call("works", {}, session=session))
    for _ in range(steps):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})
    rows = world.row_kinds()[before:]

    ends = [kind for kind in rows if kind in ("ToolCompleted", "ToolAbandoned", "ToolDenied", "ToolFailed")]
    assert len(ends) == rows.count("ToolInvoked")
    assert not session.facts().is_flying("works")


async def test_cancelled_signal_reaches_a_tool_that_works_in_a_thread(make_world: MakeWorld) -> None:
    seen: list[ToolExecutionContext] = []
    began = asyncio.Event()

    async def works(context: ToolExecutionContext) -> Any:
        seen.append(context)
        began.set()
        await asyncio.Event().wait()

    world = make_world(listing("works"), made(works))
    call = asyncio.ensure_future(world.call("works", {}))
    await began.wait()
    before = seen[0].cancelled
    call.cancel()
    await asyncio.wait({call})

    assert (before, seen[0].cancelled) == (False, True)
    remaining = seen[0].remaining_s()
    assert remaining is not None
    assert 0 < remaining <= 30


async def test_context_is_a_snapshot_of_the_call(make_world: MakeWorld) -> None:
    seen: list[ToolExecutionContext] = []

    async def looks(context: ToolExecutionContext) -> Any:
        seen.append(context)
        return {"user": context.require_user()}

    text = listing("looks") + "\n[tools.looks]\ntimeout = 7\n"
    outcome = await make_world(text, made(looks)).call("looks", {}, context=context_for("dana"))
    context = seen[0]

    assert json.loads(outcome.output) == {"user": "dana"}
    assert (context.agent_id, context.call_id, context.session_id) == ("archivist", outcome.call_id, outcome.session_id)
    assert context.bounds.timeout_s == 7
    with pytest.raises(AttributeError):
        context.user_id = "mallory"  # pyright: ignore[reportAttributeAccessIssue]


async def test_tool_without_its_user_says_so(make_world: MakeWorld) -> None:
    async def looks(context: ToolExecutionContext) -> Any:
        return {"user": context.require_user()}

    outcome = await make_world(listing("looks"), made(looks)).call("looks", {})

    assert (outcome.status, outcome.code) == (Status.FAILED, "no-user")
    assert "one user" in outcome.output


async def test_tool_that_declares_its_need_of_a_user_is_not_even_called(make_world: MakeWorld) -> None:
    async def looks() -> Any:
        return {}

    world = make_world(listing("looks"), made(looks, needs_user=True))
    decision = world.decide("looks", {})

    assert (decision.stage, decision.code) == ("arguments", "no-user")
    assert "user_id" in decision.reason
    assert (await world.call("looks", {}, context=context_for("dana"))).status is Status.ALLOWED


def test_bounds_that_nobody_enforces_are_refused() -> None:
    async def works() -> Any:
        return {}

    with pytest.raises(RegistrationError, match="not supported for a tool that runs inside this process"):
        made(works, resource_bounds=ResourceBounds(memory_bytes=1_000_000))
    assert made(works, resource_bounds=ResourceBounds(cpu_s=1.0), enforces_bounds=True)


def test_pure_tool_with_side_effects_is_refused() -> None:
    async def works() -> Any:
        return {}

    with pytest.raises(RegistrationError, match="declared pure and has side effects: `FsRead`"):
        made(works, determinism=Determinism.PURE, side_effects={SideEffect.FS_READ})


class Square:
    """A pure function that counts how often it is really called."""

    def __init__(self) -> None:
        self.calls = 0

    def tool(self) -> FunctionTool:
        async def square(n: int) -> Any:
            self.calls += 1
            if n < 0:
                raise ToolFailure("too small")
            return {"n": n, "square": n * n}

        return made(square, determinism=Determinism.PURE)


async def test_pure_result_is_reused_within_a_session_and_said_so(make_world: MakeWorld) -> None:
    square, session = Square(), Session()
    world = make_world(listing("square"), square.tool())
    first = await world.call("square", {"n": 3}, session=session)
    again = await world.call("square", '{ "n" : 3 }', session=session)
    other = await world.call("square", {"n": 4}, session=session)
    elsewhere = await world.call("square", {"n": 3})

    assert square.calls == 3
    assert (first.reused, again.reused, other.reused, elsewhere.reused) == (False, True, False, False)
    assert (again.output, again.output_hash, again.output_bytes, again.data, again.raw) == (
        first.output,
        first.output_hash,
        first.output_bytes,
        first.data,
        first.raw,
    )
    said = {row.stage: row.reason for row in again.decision.trace}
    assert said["execute"] == "reused: an equal call returned this result before"
    assert said["normalise"] == said["output"] == "reused"
    assert world.audit is not None
    ends = [json.loads(row.body) for row in world.audit.rows() if row.kind == "ToolCompleted"]
    assert [end.get("reused", False) for end in ends] == [False, True, False, False]


async def test_results_that_take_too_much_room_are_kept_no_more_the_oldest_first(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    world = make_world(listing("square"), Square().tool())
    one = await world.call("square", {"n": 4}, session=session)
    monkeypatch.setattr(history, "MAX_BYTES", 4 * (len(one.output) + 2 * len(one.data or b"")))
    for n in (5, 6, 7, 4, 8):
        await world.call("square", {"n": n}, session=session)
    seen = {n: (await world.call("square", {"n": n}, session=session)).reused for n in (8, 4, 7, 6, 5)}
    assert seen == {8: True, 4: True, 7: True, 6: True, 5: False}


async def test_reused_results_count_against_the_rules(make_world: MakeWorld) -> None:
    square, session = Square(), Session()
    world = make_world(listing("square") + limit("square", 2), square.tool())
    codes = [(await world.call("square", {"n": 3}, session=session)).code for _ in range(3)]

    assert (codes, square.calls) == (["allowed", "allowed", "max-calls"], 1)


class Changing(GateTool):
    """A pure tool that changes the arguments that it is given."""

    name = "changing"
    determinism = Determinism.PURE

    @operation
    async def give(self, of: str) -> JsonValue:
        """Give what it is asked for."""
        return of

    async def execute(
        self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext
    ) -> JsonValue | bytes:
        of = arguments["of"]
        cast("dict[str, JsonValue]", arguments)["of"] = "b"
        return of


async def test_tool_that_changes_its_arguments_changes_no_record_and_no_result_of_another_call(
    make_world: MakeWorld,
) -> None:
    world, session = make_world(listing("changing"), Changing()), Session()
    first = await world.call("changing", {"op": "give", "of": "a"}, session=session)
    second = await world.call("changing", {"op": "give", "of": "b"}, session=session)

    assert first.decision.arguments == {"op": "give", "of": "a"}
    assert (first.output, second.output, second.reused) == ("a", "b", False)


async def test_failure_of_a_pure_tool_is_not_kept(make_world: MakeWorld) -> None:
    square, session = Square(), Session()
    world = make_world(listing("square"), square.tool())
    outcomes = [await world.call("square", {"n": -1}, session=session) for _ in range(2)]

    assert square.calls == 2
    assert not any(outcome.reused for outcome in outcomes)


async def test_writing_back_a_redaction_marker_is_denied(world: World) -> None:
    (world.docs / "note.md").write_text("key = [REDACTED]\n", "utf-8")
    await world.call("file", {"op": "load", "path": "note.md"})
    marked = await world.call("file", {"op": "append", "path": "note.md", "content": "password: [REDACTED]\n"})
    plain = await world.call("file", {"op": "append", "path": "note.md", "content": "more\n"})

    assert (marked.status, marked.decision.stage, marked.code) == (Status.DENIED, "arguments", "redaction-marker")
    assert plain.status is Status.ALLOWED


@pytest.mark.parametrize(
    ("tool", "status", "code", "output", "size", "effects"),
    [
        ("counter", "allowed", "allowed", '{"by":1,"value":1}', 18, []),
        ("teleport", "denied", "unknown-tool", None, 0, []),
        ("vault", "unanswered", "approval-needed", None, 0, []),
    ],
)
async def test_outcome_as_json_says_everything_in_a_stable_order(
    world: World, tool: str, status: str, code: str, output: str | None, size: int, effects: list[str]
) -> None:
    outcome = await world.call(tool, {"op": "up"} if tool == "counter" else {}, session=Session("s"))
    decided, told = outcome.decision.to_json(), outcome.to_json()

    assert list(decided) == ["verdict", "enforced", "stage", "code", "reason", "rule", "model_message", "trace"]
    assert list(told.items()) == list(
        {
            **decided,
            "code": code,
            "status": status,
            "output": outcome.output if output is None else output,
            "detail": "",
            "truncated": False,
            "reused": False,
            "output_hash": hashlib.sha256(output.encode()).hexdigest() if output else None,
            "output_bytes": size,
            "side_effects": effects,
            "call": outcome.call_id,
            "session": "s",
            "should_continue": True,
            "elapsed_ms": round(outcome.elapsed_ms, 3),
        }.items()
    )
    assert outcome.call_id.startswith("call-")
    assert (outcome.data, outcome.raw) == ((output.encode(), {"by": 1, "value": 1}) if output else (None, None))


async def test_tool_that_somebody_cancels_before_it_begins_ends_the_call_at_once(world: World) -> None:
    loop = asyncio.get_running_loop()

    def cancelled_at_once(
        own: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **how: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(cast("Coroutine[Any, Any, Any]", work), loop=own, **how)
        if "_invoke" in repr(work):
            task.cancel()
        return task

    loop.set_task_factory(cancelled_at_once)
    try:
        async with patient():
            outcome = await world.call("file", {"op": "read", "path": "note.md"})
    finally:
        loop.set_task_factory(None)
    assert (outcome.status, outcome.code) == (Status.FAILED, "tool-crashed")
    assert world.row_kinds()[-1] == "ToolFailed"


class Tap:
    """A stream that runs until it is let go, and says whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    async def drip(self) -> AsyncIterator[str]:
        try:
            while True:
                yield "drop\n"
                await asyncio.sleep(0)
        finally:
            self.is_closed = True

    async def flood(self) -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 1_000_000
        finally:
            self.is_closed = True


def streaming(function: Callable[[], AsyncIterator[Any]], **declared: Any) -> FunctionTool:
    given: dict[str, Any] = {"safety_tier": SafetyTier.READ_ONLY, "description": "Streams.", **declared}
    return tool(**given)(function)


async def test_pieces_of_a_stream_are_told_as_they_come_and_become_one_recorded_result(make_world: MakeWorld) -> None:
    told: list[str] = []
    seen: list[int] = []

    async def lines() -> AsyncIterator[str]:
        for line in ("one\n", "key sk-ant-api03-" + "a1B2" * 20 + "\n", "three\n"):
            yield line
            seen.append(len(told))

    world = make_world(listing("lines"), streaming(lines))
    outcome = await world.call("lines", {}, on_piece=told.append)

    assert seen == [1, 2, 3]
    assert told == ["one\n", "key [REDACTED]\n", "three\n"]
    assert outcome.output == "".join(told)
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolCompleted"]
    assert world.audit is not None
    end = json.loads(list(world.audit.rows())[-1].body)
    whole = hashlib.sha256(json.dumps(outcome.output).encode()).hexdigest()
    assert (end["hash"], end["bytes"]) == (whole, len(outcome.output))


async def test_stream_of_other_values_is_a_list_and_one_of_bytes_is_bytes(make_world: MakeWorld) -> None:
    async def rows() -> AsyncIterator[Any]:
        yield {"row": 1}
        yield "two"

    async def parts() -> AsyncIterator[bytes]:
        yield b"\x00\x01"
        yield b"\x02"

    told: list[str] = []
    world = make_world(listing("rows", "parts"), streaming(rows), streaming(parts))
    assert (await world.call("rows", {}, on_piece=told.append)).output == '[{"row":1},"two"]'
    assert told == ['{"row":1}\n', "two"]
    assert (await world.call("parts", {})).data == b"\x00\x01\x02"


async def test_stream_is_cut_for_the_model_like_any_result(make_world: MakeWorld) -> None:
    async def many() -> AsyncIterator[str]:
        for number in range(5_000):
            yield f"{number:04}\n"

    outcome = await make_world(listing("many"), streaming(many)).call("many", {})
    assert outcome.truncated
    assert outcome.output.endswith("[output truncated — original size: 25,000 bytes]")
    assert outcome.data is not None
    assert json.loads(outcome.data) == "".join(f"{number:04}\n" for number in range(5_000))


async def test_stream_without_end_is_closed_when_its_time_is_over(make_world: MakeWorld) -> None:
    tap, told = Tap(), list[str]()
    bounds = ResourceBounds(timeout_s=0.1)
    world = make_world(listing("drip"), streaming(tap.drip, name="drip", resource_bounds=bounds))
    outcome = await world.call("drip", {}, on_piece=told.append)

    assert outcome.status is Status.TIMED_OUT
    assert tap.is_closed
    assert told


async def test_stream_that_is_too_large_is_closed_and_fails(make_world: MakeWorld) -> None:
    tap = Tap()
    outcome = await make_world(listing("flood"), streaming(tap.flood, name="flood")).call("flood", {})

    assert (outcome.status, outcome.code) == (Status.FAILED, "result-too-large")
    assert tap.is_closed


async def test_cancelled_call_closes_its_stream_and_tells_no_more_pieces(make_world: MakeWorld) -> None:
    tap, told = Tap(), list[str]()
    world = make_world(listing("drip"), streaming(tap.drip, name="drip"))
    call = asyncio.ensure_future(world.call("drip", {}, on_piece=told.append))
    while not told:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert tap.is_closed
    assert world.row_kinds()[-1] == "ToolAbandoned"


async def test_watcher_of_pieces_that_fails_stops_no_call(make_world: MakeWorld) -> None:
    def refuse(piece: str) -> None:
        raise ZeroDivisionError(piece)

    async def lines() -> AsyncIterator[str]:
        yield "one"

    outcome = await make_world(listing("lines"), streaming(lines)).call("lines", {}, on_piece=refuse)
    assert outcome.output == "one"
