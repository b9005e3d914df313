"""A session as JSON, read strictly: data that is not exactly a session is refused as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import NoReturn, cast

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue

FORMAT = "gatewright-session-1"
MAX_ROWS = 100_000
_MAX_NAME = 1_000
_MAX_COUNT = 2**53
_ROW = 8
Read = tuple[str, bool, float | None, list["SessionRow"], "tuple[str, str, float] | None"]


@frozen
class SessionRow:
    """The calls of one operation that went to one source (``""``: all)."""

    tool: str
    operation: str
    source: str
    calls: int
    flying: int
    successes: int
    started_s: float | None
    succeeded_s: float | None

    @property
    def name(self) -> str:
        """``tool`` or ``tool.operation``."""
        return call_words(self.tool, self.operation)

    def shift(self, seconds: float, latest_s: float = math.inf) -> SessionRow:
        """The row with shifted times, none after ``latest_s``."""
        started, succeeded = (
            None if time is None else min(time + seconds, latest_s) for time in (self.started_s, self.succeeded_s)
        )
        return replace(self, started_s=started, succeeded_s=succeeded)

    def land(self) -> SessionRow:
        """The row without running calls."""
        return replace(self, flying=0)

    def to_json(self) -> JsonValue:
        """The fields in their order."""
        return list(astuple(self))


def call_words(tool: str, operation: str) -> str:
    """``tool`` or ``tool.operation``."""
    return f"{tool}.{operation}" if operation else tool


def read_facts(data: object) -> Read:
    """Session id, ended, began, rows, and the mark: tool, call and wall time. Raises WorkspaceError."""
    table = _table(data, {"session", "ended", "began_s", "uses"})
    session_id, ended = _name(table["session"], "a session"), table["ended"]
    if not isinstance(ended, bool):
        _refuse("`ended` must be true or false")
    return session_id, ended, _time(table["began_s"]), _rows(table["uses"]), _mark(table.get("outside"))


def read_saved(data: object, ahead_s: float, now_s: float) -> Read:
    """A saved session with its wall times turned into monotonic ones, none in the future. Raises WorkspaceError."""
    table = _table(data, {"format", "session", "ended", "began_s", "uses"})
    if table["format"] != FORMAT:
        _refuse(f"`format` must be `{FORMAT}`")
    session_id, ended, began, rows, mark = read_facts({key: value for key, value in table.items() if key != "format"})
    began_s = None if began is None else min(began - ahead_s, now_s)
    return session_id, ended, began_s, [row.shift(-ahead_s, now_s).land() for row in rows], mark


def _table(data: object, keys: set[str]) -> Mapping[str, object]:
    if not isinstance(data, dict):
        _refuse("it must be one JSON object")
    table = cast("dict[str, object]", data)
    if set(table) - {"outside"} != keys:
        _refuse(f"its keys must be {', '.join(f'`{key}`' for key in sorted(keys))}")
    return table


def _rows(value: object) -> list[SessionRow]:
    if not isinstance(value, list) or len(cast("list[object]", value)) > MAX_ROWS:
        _refuse(f"`uses` must be a list of at most {MAX_ROWS:,} rows")
    rows = [_row(item) for item in cast("list[object]", value)]
    if len({(row.tool, row.operation, row.source) for row in rows}) != len(rows):
        _refuse("`uses` contains a row twice")
    return rows


def _row(value: object) -> SessionRow:
    if not isinstance(value, list) or len(cast("list[object]", value)) != _ROW:
        _refuse(f"a row of `uses` must be a list of {_ROW}")
    tool, operation, source, calls, flying, successes, started, succeeded = cast("list[object]", value)
    row = SessionRow(
        _name(tool, "a tool"),
        _name(operation, "an operation"),
        _name(source, "a source"),
        _count(calls),
        _count(flying),
        _count(successes),
        _time(started),
        _time(succeeded),
    )
    if not row.tool or row.flying > row.calls:
        _refuse("a row of `uses` contradicts itself")
    return row


def _mark(value: object) -> tuple[str, str, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(cast("list[object]", value)) != len(("tool", "call", "time")):
        _refuse("`outside` must be a list of a tool, a call and a time")
    tool, call, time = cast("list[object]", value)
    wall_s = _time(time)
    if wall_s is None:
        _refuse("`outside` needs a time")
    return _name(tool, "a tool"), _name(call, "a call"), wall_s


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME or (what == "a session" and not value):
        _refuse(f"{what} must be text of at most {_MAX_NAME:,} characters")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        _refuse("a count must be a whole number, 0 or more")
    return value


def _time(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        _refuse("a time must be a number of seconds or null")
    return float(value)


def _refuse(why: str) -> NoReturn:
    raise WorkspaceError(f"this is not a saved session: {why}")
