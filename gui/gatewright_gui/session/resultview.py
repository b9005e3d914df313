"""The ways to look at the result of a call: text, tree, change; and which of them comes first. It draws nothing."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from gatewright_gui.session.calls import MAX_SHOWN, CallRecord, cut, takes_away
from gatewright_gui.session.slowjson import slow_value

View = Literal["text", "tree", "diff"]
MAX_TREE = 8_000_000
"""Characters of JSON text that are still made into a tree."""
AT_ONCE = 20_000
"""Characters of a result that are read in the window's thread; longer ones are read beside it."""
NO_TREE: Final = object()
"""In place of a value where a result is no JSON."""
_TREE_FIRST_LINES = 60


@dataclass(frozen=True, slots=True)
class ResultViews:
    """`text` as it can be read, JSON indented; `diff` None where no text changes. `first`: what to begin with."""

    text: str | None
    is_json: bool
    has_tree: bool
    diff: str | None
    first: View


def views_of(record: CallRecord) -> ResultViews:
    """How the result of a record can be looked at."""
    text, is_json = (None, False) if record.output is None else _readable(record.output)
    has_tree = record.output is not None and not record.is_binary and _may_be_tree(record, is_json=is_json)
    diff = record.change
    first: View = "text"
    if diff is not None and not record.is_error:
        first = "diff"
    elif has_tree and not record.is_error and (not is_json or (text or "").count("\n") > _TREE_FIRST_LINES):
        first = "tree"
    return ResultViews(text, is_json, has_tree, diff, first)


def tree_value(record: CallRecord) -> Any:
    """The whole result as a JSON value, `NO_TREE` when it is none; takes time when it is long."""
    text = record.whole or record.output or ""
    if not _looks_like_json(text) or len(text) > MAX_TREE:
        return NO_TREE
    try:
        return slow_value(text)
    except ValueError:
        return NO_TREE


def is_long(record: CallRecord) -> bool:
    """Whether reading the result takes long enough to be done beside the window."""
    return max(map(len, (record.output or "", record.whole or ""))) > AT_ONCE


def change_note(record: CallRecord) -> str:
    """Whether the change was made: `changed`, `would change`; a file that goes is deleted."""
    deletes = "delete" in (record.operation or record.request.tool) and takes_away(record.change or "")
    past, present = ("deleted", "delete") if deletes else ("changed", "change")
    if record.kind == "decide":
        return f"would {present}"
    return past if record.status == "allowed" else f"would have {past}"


def record_value(record: CallRecord) -> dict[str, Any]:
    """A record as a JSON object, to be copied: what was asked, what was decided, every stage, what came of it."""
    request = record.request
    try:
        arguments = json.loads(request.text) if isinstance(request.arguments, str) else _plain(request.arguments)
    except (ValueError, RecursionError):
        arguments = request.arguments
    rule = record.rule
    return {
        "number": record.number,
        "kind": record.kind,
        "live": record.is_live,
        "time": record.wall_s,
        "agent": request.agent_id,
        "tool": request.tool,
        "operation": record.operation or None,
        "arguments": arguments,
        "verdict": str(record.verdict),
        "stage": record.stage,
        "code": record.code,
        "reason": record.reason,
        "detail": record.detail or None,
        "model_message": record.model_message,
        "rule": {"id": rule.rule_id, "line": rule.line} if rule is not None else None,
        "stages": [
            {
                "stage": row.name,
                "verdict": str(row.verdict),
                "reason": row.reason,
                "elapsed_us": round(row.elapsed_us, 1),
            }
            for row in record.stages
        ],
        "status": record.status,
        "output": record.output,
        "truncated": record.truncated,
        "output_bytes": record.output_bytes,
        "output_hash": record.output_hash,
        "elapsed_ms": round(record.elapsed_ms, 3),
        "change": record.change,
    }


def record_text(record: CallRecord) -> str:
    """A record as JSON text, to be copied."""
    return json.dumps(record_value(record), ensure_ascii=False, indent=2, default=str)


def _readable(output: str) -> tuple[str, bool]:
    if len(output) <= MAX_SHOWN and _looks_like_json(output):
        try:
            return cut(json.dumps(slow_value(output), ensure_ascii=False, indent=2)), True
        except (ValueError, RecursionError):
            return cut(output), False
    return cut(output), False


def _may_be_tree(record: CallRecord, *, is_json: bool) -> bool:
    if is_json:
        return True
    text = record.whole or (record.output or "" if len(record.output or "") > MAX_SHOWN else "")
    return _looks_like_json(text) and len(text) <= MAX_TREE and text.rstrip()[-1:] in {"}", "]"}


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in {"{", "["}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    return json.loads(json.dumps(value, default=str))
