"""The chain of audit rows: how a row is sealed, and going through a chain to see whether it holds. It knows no file.

A row's MAC is HMAC-SHA-256 (RFC 2104, FIPS 180-4) over the MAC before it and the canonical JSON of the row.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from gatewright.base.jsonvalue import JsonValue, canonical_json

if TYPE_CHECKING:
    from gatewright.gate.keys import Anchor

START_MAC = "0" * 64
Unsealed = tuple[int, str, str, str, str, str, str, str, str]
"""A row without its MAC: seq, time, kind, call_id, agent, session, tool, operation, body."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row as it stands in the log; ``time`` is RFC 3339 in UTC, ``body`` is JSON text."""

    seq: int
    time: str
    kind: str
    call_id: str
    agent: str
    session: str
    tool: str
    operation: str
    body: str
    mac: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What verifying found: how many rows are proved, and what is wrong, in words."""

    rows: int
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: rows, sound, problems."""
        return {"rows": self.rows, "sound": self.is_sound, "problems": list(self.problems)}


def seal(key: bytes, previous: str, row: Unsealed) -> str:
    """The MAC of a row that follows the one with the MAC ``previous``."""
    return hmac.new(key, previous.encode() + canonical_json(list(row)), hashlib.sha256).hexdigest()


def verified(
    first: AuditRow, rest: Iterator[AuditRow], key: bytes, anchor: Anchor | None, problems: list[str]
) -> AuditReport:
    """Go through the rows and compare the end with the anchor; ``problems`` are those known before."""
    mac, count, anchored = START_MAC, 0, False
    for row in _chained(first, rest):
        problem = _row_problem(row, count + 1, key, mac)
        if problem:
            return AuditReport(count, (*problems, problem))
        count, mac = row.seq, row.mac
        anchored = anchored or (anchor is not None and anchor.seq == row.seq and anchor.mac == mac)
    if anchor is None:
        problems.append("the anchor of the log is missing")
    elif not anchored:
        problems.append(f"the log ends after row {count}, but its anchor stands at row {anchor.seq}")
    return AuditReport(count, tuple(problems))


def _chained(first: AuditRow, rest: Iterator[AuditRow]) -> Iterator[AuditRow]:
    yield first
    yield from rest


def _row_problem(row: AuditRow, expected: int, key: bytes, previous: str) -> str | None:
    if row.seq != expected:
        return f"row {expected} is missing"
    fields = (row.seq, row.time, row.kind, row.call_id, row.agent, row.session, row.tool, row.operation, row.body)
    try:
        mac = seal(key, previous, fields)
    except (TypeError, ValueError):
        return f"row {row.seq} is not readable"
    if not isinstance(row.mac, str) or not hmac.compare_digest(mac.encode(), row.mac.encode("utf-8", "replace")):  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"row {row.seq} was changed, moved or added"
    return None


def log_id_of(first: AuditRow) -> str:
    """The id of the log that begins with that row; empty when it names none."""
    try:
        body = cast("object", json.loads(first.body))
    except (ValueError, TypeError):
        return ""
    return str(cast("dict[str, object]", body).get("log", "")) if isinstance(body, dict) else ""
