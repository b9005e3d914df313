"""What an id in the arguments of a call stands for, as far as an earlier result of the same session told it.

An id is a text, or a whole number below a key that looks like one of an id: `id`, or one that ends with it. It stands
for the object of a result that has just that value, of the same type, below such a key. This is shown to the operator
beside the arguments; nothing is decided by it.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.excerpt import bounded
from gatewright.gate.scrub import scrub_value
from gatewright.gate.session import Session
from gatewright.record.fork import fork_safe_lock

MOST_RECORDS = 5
"""Ids of one call that are told."""
MOST_RESULTS, MOST_BYTES = 64, 1 << 20
"""Of one session: how many results are kept, the newest, and how many bytes of them."""
_MOST_IDS, _LONGEST_ID = 64, 200
_MAY_HOLD = re.compile(rb'id\\*"', re.IGNORECASE)
_Id = tuple[type, "str | int"]


@frozen
class IdRecord:
    """What one id stands for. ``argument``: where it stands in the arguments, as in `ticket_id` or `items[0].id`.

    ``record``: the object, bounded and without secrets; ``called``: tool and operation of the call that gave it, at
    ``wall_s`` in seconds since 1970.
    """

    argument: str
    value: str | int
    record: JsonValue
    called: str
    wall_s: float

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: argument, value, record, called, time."""
        return {
            "argument": self.argument,
            "value": self.value,
            "record": self.record,
            "called": self.called,
            "time": self.wall_s,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> IdRecord:
        """The reverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        value = data["value"]
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise TypeError("an id is a text or a whole number")
        time_s = float(cast("float", data["time"]))
        return cls(str(data["argument"]), value, data["record"], str(data["called"]), time_s)


class _Kept(NamedTuple):
    called: str
    normal: bytes
    wall_s: float


class _Wanted(NamedTuple):
    argument: str
    key: str


class EarlierResults:
    """Results of the sessions of one gate in which ids may be looked up; they go with their session."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._kept: WeakKeyDictionary[Session, deque[_Kept]] = WeakKeyDictionary()

    def keep(self, session: Session, called: str, normal: bytes, wall_s: float) -> None:
        """Keep the bytes of a result that succeeded, if they may hold an id."""
        if len(normal) > MOST_BYTES or not _MAY_HOLD.search(normal):
            return
        with self._lock:
            kept = self._kept.setdefault(session, deque(maxlen=MOST_RESULTS))
            kept.append(_Kept(called, normal, wall_s))
            size = sum(len(one.normal) for one in kept)
            while size > MOST_BYTES:
                size -= len(kept.popleft().normal)

    def of(self, session: Session, arguments: Mapping[str, JsonValue]) -> tuple[IdRecord, ...]:
        """What the ids among the arguments stand for; takes time where much was kept."""
        with self._lock:
            kept = tuple(self._kept.get(session, ()))
        wanted = dict(_ids_in(arguments))
        found: dict[_Id, tuple[int, IdRecord]] = {}
        for one in reversed(kept):
            _look(one, wanted, found)
        return tuple(found[known][1] for known in wanted if known in found)[:MOST_RECORDS]


def _look(kept: _Kept, wanted: Mapping[_Id, _Wanted], found: dict[_Id, tuple[int, IdRecord]]) -> None:
    """The objects of a result that have a wanted id. One that has it as `id`, or as the argument calls it, is better
    than one that has it as that of something else; of equal ones the newest and first counts.
    """
    for table in _objects(_read(kept.normal)):
        for key, value in table.items():
            if not isinstance(value, str | int) or not _names_id(key):
                continue
            known = _id(value)
            if (asked := wanted.get(known)) is None:
                continue
            rank = 2 if key.casefold() in {"id", asked.key.casefold()} else 1
            if rank > found.get(known, (0,))[0]:
                record, _ = scrub_value(bounded(table)[0])
                found[known] = rank, IdRecord(asked.argument, value, record, kept.called, kept.wall_s)


def _ids_in(arguments: Mapping[str, JsonValue]) -> Iterator[tuple[_Id, _Wanted]]:
    """Values that may be ids, first come first, each with the argument that holds it."""
    seen: set[_Id] = set()
    stack: list[tuple[str, str, JsonValue]] = [(key, key, value) for key, value in reversed([*arguments.items()])]
    while stack and len(seen) < _MOST_IDS:
        argument, key, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{argument}.{name}", name, inner) for name, inner in reversed([*value.items()])]
        elif isinstance(value, list):
            stack += [(f"{argument}[{at}]", key, inner) for at, inner in reversed([*enumerate(value)])]
        elif isinstance(value, str | int) and (known := _id(value)) not in seen:
            is_text = isinstance(value, str)
            if 0 < len(value) <= _LONGEST_ID if is_text else not isinstance(value, bool) and _names_id(key):
                seen.add(known)
                yield known, _Wanted(argument, key)


def _id(value: str | int) -> _Id:
    """A text and a number are never the same, nor is `true` the number 1."""
    return type(value), value


def _names_id(key: str) -> bool:
    return key.casefold().endswith(("id", "ids"))


def _read(normal: bytes) -> Any:
    try:
        return json.loads(normal)
    except (ValueError, RecursionError):
        return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value, first come first; of MCP servers also those in blocks of text that are JSON."""
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack += reversed(cast("list[Any]", one))
        elif isinstance(one, dict):
            table = cast("dict[str, Any]", one)
            yield table
            text = table.get("text") if table.get("type") == "text" else None
            if isinstance(text, str) and text.lstrip()[:1] in {"{", "["}:
                stack.append(_read(text.encode("utf-8", "replace")))
            stack += reversed(table.values())
