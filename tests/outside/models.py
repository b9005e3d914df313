"""A model service on loopback that says which tools to call, in the protocols that the coding agents speak.

It keeps nothing between two requests: how many calls were made is read from the conversation that the agent sends. So
an agent that starts again goes on where it was.
"""

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.support.loopback import Handler, served

INNER = "this is the inner task"
_WHOLE = ("content_block_stop", "response.output_item.done")
"""The events by which a call has been sent as a whole."""
_NOTHING: dict[str, Any] = {"data": [], "models": [], "input_tokens": 1, "totalTokens": 1}


@dataclass(frozen=True)
class Call:
    """A tool call of the model. A text in place of arguments: Codex's tools that take plain text."""

    tool: str
    arguments: dict[str, Any] | str


Turn = Sequence[Call]
"""The calls of one answer: they are made at once."""


@dataclass
class Seen:
    """What an agent offered its model and showed it as results; ``results`` by the ids of the calls.

    ``inner``: the results of sub-agents.
    """

    tools: dict[str, Any] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    inner: dict[str, str] = field(default_factory=dict)


class Model:
    """The service. ``turns``: its answers one after the other; then it says that it is done.

    ``before``: called with the number of a turn each time before it is given. ``pause_s``: for so long it thinks after
    each call of an answer, which has been sent by then; without, an answer is sent as a whole. ``inner``: its calls,
    one by one, to a sub-agent that is told `INNER`.
    """

    def __init__(
        self, turns: Sequence[Turn], before: Callable[[int], None], pause_s: float, inner: Sequence[Call] = ()
    ) -> None:
        self.turns, self._before, self.pause_s, self._inner = turns, before, pause_s, inner
        self.seen = Seen()
        self.url = ""
        self._known: int | None = None

    @property
    def made(self) -> int:
        """The number of calls that came back with a result, without those of an earlier run of the conversation."""
        return len(self.seen.results) - (self._known or 0)

    def answer(
        self, offered: dict[str, Any], results: dict[str, str], told: Sequence[object] = ()
    ) -> list[tuple[str, Call]]:
        """Take down what the agent sent and give the calls of the next turn, each with its id.

        ``told``: what its person, or the agent that started it, said to it.
        """
        if not offered:
            return []
        if any(INNER in json.dumps(one) for one in told):
            self.seen.inner.update(results)
            calls = [(f"inner_{number:04}", call) for number, call in enumerate(self._inner)]
            return [one for one in calls if one[0] not in results][:1]
        self._known = len(results) if self._known is None else self._known
        self.seen.tools.update(offered)
        self.seen.results.update(results)
        at = 0
        for number, turn in enumerate(self.turns):
            ids = [f"call_{number:04}" for number in range(at, at + len(turn))]
            if not results.keys() >= set(ids):
                self._before(number)
                return list(zip(ids, turn, strict=True))
            at += len(turn)
        return []


COUNTS: list[Callable[[], int]] = []
"""Each tells how many calls a run of a program in the present test made."""


@contextmanager
def serving(
    turns: Sequence[Turn],
    before: Callable[[int], None] = lambda _: None,
    pause_s: float = 0.0,
    inner: Sequence[Call] = (),
) -> Generator[Model]:
    """Serve a model on loopback."""
    model = Model(turns, before, pause_s, inner)
    COUNTS.append(lambda: model.made)
    with served(partial(_Service, model)) as model.url:
        yield model


class _Service(Handler):
    def __init__(self, model: Model, *how: Any) -> None:
        self._model = model
        super().__init__(*how)

    def do_HEAD(self) -> None:  # noqa: N802 named so by the library
        self.answer(200, b"")

    def take(self, body: bytes) -> None:
        path = self.path.partition("?")[0]
        asked: dict[str, Any] = json.loads(body or b"{}")
        if path.endswith("/messages"):
            self._say(_messages(self._model, asked))
        elif path.endswith("/responses"):
            self._say(_responses(self._model, asked))
        elif path.endswith("/completions"):
            self._say((("", chunk) for chunk in _completions(self._model, asked)), b"data: [DONE]\n\n")
        elif path.endswith("streamGenerateContent"):
            self._say([("", _contents(self._model, asked))])
        else:
            said: dict[str, Any] = _contents(self._model, asked) if path.endswith("generateContent") else _NOTHING
            self.answer(200, json.dumps(said).encode(), {"Content-Type": "application/json"})

    def _say(self, events: Iterable[tuple[str, Any]], end: bytes = b"") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(ConnectionError):  # who asked may have heard enough
            for name, data in events:
                self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n").encode())
                if name in _WHOLE:
                    time.sleep(self._model.pause_s)
            self.wfile.write(end)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _messages(model: Model, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Anthropic's protocol: Claude Code."""
    blocks: list[Any] = [
        block
        for message in body.get("messages", [])
        if isinstance(message.get("content"), list)
        for block in message["content"]
    ]
    results = {block["tool_use_id"]: _text(block.get("content")) for block in blocks if block["type"] == "tool_result"}
    calls = model.answer({tool["name"]: tool for tool in body.get("tools", [])}, results)
    usage = {"input_tokens": 1, "output_tokens": 1}
    head: dict[str, Any] = {
        "id": f"msg_{len(results)}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
    }
    yield "message_start", {"type": "message_start", "message": {**head, "stop_reason": None, "usage": usage}}
    said: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {"type": "tool_use", "id": call_id, "name": call.tool, "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)},
        )
        for call_id, call in calls
    ] or [({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"})]
    for index, (block, delta) in enumerate(said):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    stop = "tool_use" if calls else "end_turn"
    yield (
        "message_delta",
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
    )
    yield "message_stop", {"type": "message_stop"}


def _responses(model: Model, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """OpenAI's newer protocol: Codex."""
    outputs = [item for item in body.get("input", []) if str(item.get("type")).endswith("_call_output")]
    results = {item["call_id"]: _text(item.get("output")) for item in outputs}
    calls = model.answer({tool.get("name") or tool["type"]: tool for tool in body.get("tools", [])}, results)
    items: list[dict[str, Any]] = [
        {"type": "custom_tool_call", "call_id": call_id, "name": call.tool, "input": call.arguments}
        if isinstance(call.arguments, str)
        else {
            "type": "function_call",
            "call_id": call_id,
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
        }
        for call_id, call in calls
    ]
    done = {"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": "done"}]}
    yield "response.created", {"type": "response.created", "response": {"id": "r1"}}
    for item in items or [done]:
        yield "response.output_item.done", {"type": "response.output_item.done", "item": item}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    yield "response.completed", {"type": "response.completed", "response": {"id": "r1", "usage": {**usage, **details}}}


def _completions(model: Model, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """OpenAI's older protocol: opencode and Copilot CLI."""
    messages: list[Any] = body.get("messages", [])
    results = {
        message["tool_call_id"]: _text(message.get("content")) for message in messages if message["role"] == "tool"
    }
    told = [message for message in messages if message["role"] == "user"]
    calls = model.answer({tool["function"]["name"]: tool["function"] for tool in body.get("tools", [])}, results, told)
    asked: list[dict[str, Any]] = [
        {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for index, (call_id, call) in enumerate(calls)
    ]
    delta: dict[str, Any] = {"role": "assistant", **({"tool_calls": asked} if asked else {"content": "done"})}
    head: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = "tool_calls" if asked else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage}


def _contents(model: Model, body: dict[str, Any]) -> dict[str, Any]:
    """Google's protocol: Gemini CLI. It gives each call an id of its own, and tells a result again when it goes on."""
    parts: list[Any] = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    outputs = [part["functionResponse"] for part in parts if "functionResponse" in part]
    told = {output["id"]: _text(output.get("response")) for output in outputs}
    results = {f"call_{at:04}": text for at, text in enumerate(told.values())}
    tools = [tool for group in body.get("tools", []) for tool in group.get("functionDeclarations", [])]
    calls = model.answer({tool["name"]: tool for tool in tools}, results)
    said: list[dict[str, Any]] = [{"functionCall": {"name": call.tool, "args": call.arguments}} for _, call in calls]
    done = "done" if tools else '{"model_choice": "flash", "reasoning": "x"}'
    content = {"role": "model", "parts": said or [{"text": done}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
