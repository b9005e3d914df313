"""One turn of a model: rebuilds its tool calls from the streamed pieces, and makes them in a safe order.

Nothing that a model sends raises here. Input that cannot become a call at all (no id, no name, too many, too much) is a
`BrokenCall` with the reason; arguments that are not JSON stay unchanged, and the gate's parse stage denies them.
Neighbouring read-only calls run together, all others alone and in order, by their tier in the agent's plan before the
call. A call of an unknown tool or operation runs alone. A call that ends the loop does not end the turn, since the
model made all its calls at once; whoever drives the loop reads ``should_continue``. The rules of the gate decide
whether a later call may run. After a call that changes something and waits for an answer, or was refused, the rest of
the turn does not run, since the model meant it to come after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from gatewright.base.errors import JsonRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import MAX_BYTES, check_object, copy_value, parse_object
from gatewright.base.late import aio
from gatewright.gate.call import CallState, RawArguments, Stage, Status
from gatewright.gate.callrun import Outcome
from gatewright.gate.decision import StageTrace
from gatewright.gate.pipeline import run_stage
from gatewright.gate.stages.approval import APPROVAL
from gatewright.gate.stages.read import LOOKUP, OPERATION, PARSE
from gatewright.policy.verdict import SafetyTier, Verdict

MAX_CALLS = 128
MAX_TOTAL = 4 * MAX_BYTES
_MAX_NAME = 1024
_PLAIN = (type(None), str, bytes, int, float, list, tuple)
_ITEMS = frozenset({"response.output_item.added", "response.output_item.done"})
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}]', re.DOTALL)


@frozen
class ToolCall:
    """One call by a model. ``tool_call_id``: the provider's key for the answer."""

    tool: str
    arguments: RawArguments = "{}"
    tool_call_id: str = ""


@frozen
class BrokenCall:
    """Streamed pieces that make no call, with the reason."""

    index: int
    reason: str
    tool: str = ""
    tool_call_id: str = ""


def arguments_of(call: ToolCall | BrokenCall) -> RawArguments:
    """The arguments for the gate, which refuses a broken call with the reason."""
    return call.arguments if isinstance(call, ToolCall) else JsonRefused("broken-call", call.reason)


class _Pieces:
    """The pieces for one index so far."""

    __slots__ = ("is_too_large", "name", "parts", "size", "tool_call_id", "whole")

    def __init__(self) -> None:
        self.name = ""
        self.tool_call_id = ""
        self.parts: list[str] = []
        self.size = 0
        self.is_too_large = False
        self.whole = ""


class ToolCallAccumulator:
    """The calls in one answer of a model. Add every delta, then read `calls`."""

    def __init__(self) -> None:
        self._pieces: dict[int, _Pieces] = {}
        self._total = 0
        self._left_out = False

    def add(self, index: object, *, id: object = None, name: object = None, arguments: object = "") -> None:  # noqa: A002
        """Add one delta.

        The last non-empty id and name count; texts of arguments are joined. An object instead of a text is the whole
        arguments, unless texts follow. Other types are ignored.
        """
        if not isinstance(index, int):
            return
        pieces = self._pieces.get(index)
        if pieces is None:
            if len(self._pieces) >= MAX_CALLS:
                self._left_out = True
                return
            pieces = self._pieces[index] = _Pieces()
        if isinstance(id, str) and id:
            pieces.tool_call_id = id[:_MAX_NAME]
        if isinstance(name, str) and name:
            pieces.name = name[:_MAX_NAME]
        if isinstance(arguments, str) and arguments:  # a stream may continue for ever with empty texts
            self._take(pieces, arguments)
        elif isinstance(arguments, Mapping):
            pieces.whole = _text_of(cast("Mapping[object, object]", arguments)) or pieces.whole

    def add_openai(self, delta: object) -> None:
        """Add the ``delta`` of a choice of a chat completion chunk, with its ``tool_calls``; None is ignored.

        This and its neighbours take the objects of the provider's SDK, or the same as mappings. Raises TypeError for
        any other object, so that no tool call is dropped silently.
        """
        for position, row in enumerate(_rows(_read(delta, "tool_calls"))):
            index, function = _get(row, "index"), _get(row, "function")
            self.add(
                position if index is None else index,
                id=_get(row, "id"),
                name=_get(function, "name"),
                arguments=_get(function, "arguments"),
            )

    def add_openai_response(self, event: object) -> None:
        """Add an event of a responses stream: the start of a function call, a piece of its arguments, or its end."""
        kind, index, item = _read(event, "type"), _get(event, "output_index"), _get(event, "item")
        if kind == "response.function_call_arguments.delta":
            self.add(index, arguments=_get(event, "delta"))
        elif kind in _ITEMS and _get(item, "type") == "function_call":
            held = self._pieces.get(index) if isinstance(index, int) else None
            text = "" if held is not None and held.size else _get(item, "arguments")
            self.add(index, id=_get(item, "call_id"), name=_get(item, "name"), arguments=text)

    def add_anthropic(self, event: object) -> None:
        """Add an event of a messages stream: the start of a tool use, or a piece of its input; others are ignored."""
        kind, block, delta = _read(event, "type"), _get(event, "content_block"), _get(event, "delta")
        if kind == "content_block_start" and _get(block, "type") == "tool_use":
            self.add(
                _get(event, "index"), id=_get(block, "id"), name=_get(block, "name"), arguments=_get(block, "input")
            )
        elif kind == "content_block_delta" and _get(delta, "type") == "input_json_delta":
            self.add(_get(event, "index"), arguments=_get(delta, "partial_json"))

    def add_gemini(self, chunk: object) -> None:
        """Add a chunk of a stream of contents, with the complete function calls of its candidates.

        A call without an id, as Gemini often sends them, gets ``call_0``, ``call_1`` and so on.
        """
        for candidate in _rows(_read(chunk, "candidates")):
            for part in _rows(_get(_get(candidate, "content"), "parts")):
                call, number = _get(part, "function_call") or _get(part, "functionCall"), len(self._pieces)
                if call is not None:
                    call_id = _get(call, "id") or f"call_{number}"
                    self.add(number, id=call_id, name=_get(call, "name"), arguments=_get(call, "args"))

    def calls(self) -> tuple[ToolCall | BrokenCall, ...]:
        """The calls so far, by index; several objects in one become calls ``id_0``, ``id_1`` and so on."""
        found: list[ToolCall | BrokenCall] = []
        for index, pieces in sorted(self._pieces.items()):
            for call in _build(index, pieces):
                if len(found) >= MAX_CALLS:
                    return (*found, BrokenCall(index, f"more than {MAX_CALLS} calls in one answer"))
                found.append(call)
        if self._left_out:
            found.append(BrokenCall(MAX_CALLS, f"more than {MAX_CALLS} calls in one answer"))
        return tuple(found)

    def _take(self, pieces: _Pieces, text: str) -> None:
        """Add a piece of arguments; too much text is dropped and breaks the call."""
        if pieces.size + len(text) > MAX_BYTES or self._total + len(text) > MAX_TOTAL:
            pieces.is_too_large = True
            return
        pieces.parts.append(text)
        pieces.size += len(text)
        self._total += len(text)


def _build(index: int, pieces: _Pieces) -> Iterator[ToolCall | BrokenCall]:
    if not pieces.tool_call_id or not pieces.name:
        missing = " and no ".join(
            word for word, value in (("id", pieces.tool_call_id), ("name", pieces.name)) if not value
        )
        yield BrokenCall(index, f"the call has no {missing}", pieces.name, pieces.tool_call_id)
        return
    if pieces.is_too_large:
        reason = f"the arguments are larger than {MAX_BYTES:,} bytes"
        yield BrokenCall(index, reason, pieces.name, pieces.tool_call_id)
        return
    text = "".join(pieces.parts)
    text = text if text.strip() else pieces.whole or "{}"
    objects = several_objects(text)
    if not objects:
        yield ToolCall(pieces.name, text, pieces.tool_call_id)
    for number, one in enumerate(objects):
        yield ToolCall(pieces.name, one, f"{pieces.tool_call_id}_{number}")


def several_objects(text: str) -> tuple[str, ...]:
    """The texts of the objects that ``text`` consists of, if it has two or more; empty otherwise."""
    objects: list[str] = []
    depth = begin = end = 0
    for match in _TOKEN.finditer(text):
        if depth == 0 and (text[end : match.start()].strip() or len(objects) >= MAX_CALLS):
            return ()
        if match.group() == "{":
            begin = match.start() if depth == 0 else begin
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if depth == 0:
                end = match.end()
                objects.append(text[begin:end])
    if text[end:].strip() or len(objects) < 2:
        return ()
    return tuple(objects) if all(_is_object(one) for one in objects) else ()


def _is_object(text: str) -> bool:
    try:
        parse_object(text)
    except JsonRefused:
        return False
    return True


def _text_of(arguments: Mapping[object, object]) -> str:
    """The object as text, empty for an empty one; for values that are no JSON within the limits, a text that the gate
    refuses.
    """
    try:
        found = copy_value(check_object(arguments))
        return json.dumps(found, ensure_ascii=False) if found else ""
    except Exception:  # noqa: BLE001 an object of the host's may raise anything
        return "an object that is not JSON, or too large"


def _read(value: object, key: str) -> object:
    """A field of an SDK's object. Raises TypeError for an object without such a field."""
    kind = type(value).__name__
    if value is None or isinstance(value, Mapping):
        return _get(cast("object", value), key)
    if not hasattr(value, key):
        raise TypeError(f"a `{kind}` is not a piece of a stream: it has no `{key}`")
    return _get(value, key)


def _get(value: object, key: str) -> object:
    """A field of a mapping, or an attribute of an SDK's object; None if missing."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).get(key)
    return None if isinstance(value, _PLAIN) else getattr(value, key, None)


def _rows(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


_KNOWING: tuple[Stage, ...] = (PARSE, LOOKUP, OPERATION)

OnCallStage = Callable[[int, StageTrace], None]
"""Receives the number of a call within its turn, from 0, and a stage that it passed."""


Make = Callable[..., Awaitable[Outcome]]
"""Makes a call of a tool with arguments; ``on_stage`` receives each stage that it passes."""
Look = Callable[..., CallState]
"""The same call before its first stage."""


async def call_many(
    make: Make,
    look: Look,
    calls: Iterable[ToolCall | BrokenCall],
    on_stage: OnCallStage | None,
    *,
    most: int,
    with_ids: bool = False,
) -> tuple[Outcome, ...]:
    """The outcomes in the order of ``calls``, a denial for a broken one; at most ``most`` run at once.

    After a call that is not read-only and got no approval, the later ones are denied at the stage that asks. Cancelling
    it cancels all of them. ``with_ids``: the providers' keys are the calls' ids.
    """
    numbered = tuple(enumerate(calls))
    outcomes: dict[int, Outcome] = {}
    room = aio.Semaphore(max(1, most))

    unanswered = ""

    async def run(number: int, call: ToolCall | BrokenCall) -> None:
        async with room:
            watch = None if on_stage is None else partial(on_stage, number)
            call_id = call.tool_call_id if with_ids else ""
            outcomes[number] = await make(
                call.tool, arguments_of(call), on_stage=watch, unanswered=unanswered, call_id=call_id
            )

    for group, only_reads in _groups(look, numbered):
        if len(group) == 1:
            number, call = group[0]
            await run(number, call)
            if not only_reads and not unanswered and _lacks_approval(outcomes[number]):
                unanswered = call.tool
            continue
        async with aio.TaskGroup() as tasks:
            for number, call in group:
                tasks.create_task(run(number, call))
    return tuple(outcomes[number] for number, _ in numbered)


def _lacks_approval(outcome: Outcome) -> bool:
    return outcome.status in {Status.UNANSWERED, Status.WAITING} or (
        outcome.status is Status.DENIED and outcome.decision.stage == APPROVAL.name
    )


def _groups(
    look: Look, calls: Iterable[tuple[int, ToolCall | BrokenCall]]
) -> Iterator[tuple[list[tuple[int, ToolCall | BrokenCall]], bool]]:
    """The calls that run together, and True if they only read; each is examined in its turn, so that a swapped policy
    counts.
    """
    gathered: list[tuple[int, ToolCall | BrokenCall]] = []
    for number, call in calls:
        if _only_reads(look, call):
            gathered.append((number, call))
            continue
        if gathered:
            yield gathered, True
            gathered = []
        yield [(number, call)], False
    if gathered:
        yield gathered, True


def _only_reads(look: Look, call: ToolCall | BrokenCall) -> bool:
    """Tell whether the call is of an operation that is read-only under this policy."""
    state = look(call.tool, arguments_of(call))
    for stage in _KNOWING:
        result = run_stage(stage, state)
        if any(finding.verdict is Verdict.DENY for finding in result.findings):
            return False
    return state.chosen.right.tier is SafetyTier.READ_ONLY
