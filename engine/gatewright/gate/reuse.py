"""Results of pure tools, kept for the session that they were made in. It runs nothing and decides nothing.

A result is found again for the same tool (the very object that was registered), operation, agent, user, way of
scrubbing and canonical arguments. What is kept is what became of it: scrubbed, normalised, not yet cut. A failure is
not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakKeyDictionary

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.session import Session
from gatewright.record.fork import fork_safe_lock

MAX_RESULTS = 128
MAX_BYTES = 4 * 1024 * 1024

Key = tuple[object, ...]
"""What makes two calls of a session equal."""


@frozen
class KeptResult:
    """What became of a result: the text for the model before cutting, the bytes that stand for it, their hash.

    ``raw``: what the tool gave.
    """

    output: str
    normal: bytes
    output_hash: str
    output_bytes: int
    raw: JsonValue | bytes = None

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        return len(self.output) + 2 * len(self.normal)


class _Shelf:
    """The results of one session, the one used longest ago first."""

    def __init__(self) -> None:
        self.rows: OrderedDict[Key, KeptResult] = OrderedDict()
        self.size = 0

    def put(self, key: Key, kept: KeptResult) -> None:
        old = self.rows.pop(key, None)
        self.size += kept.size - (old.size if old else 0)
        self.rows[key] = kept
        while len(self.rows) > MAX_RESULTS or self.size > MAX_BYTES:
            self.size -= self.rows.popitem(last=False)[1].size


class PureResults:
    """The results of all sessions of one gate; they go with their session."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._shelves: WeakKeyDictionary[Session, _Shelf] = WeakKeyDictionary()

    def find(self, session: Session, key: Key) -> KeptResult | None:
        """The result of an earlier, equal call of the session."""
        with self._lock:
            shelf = self._shelves.get(session)
            kept = shelf.rows.get(key) if shelf is not None else None
            if shelf is not None and kept is not None:
                shelf.rows.move_to_end(key)
            return kept

    def keep(self, session: Session, key: Key, kept: KeptResult) -> None:
        """Keep what became of a call that succeeded; what is too large is not kept."""
        if kept.size > MAX_BYTES // 4:
            return
        with self._lock:
            self._shelves.setdefault(session, _Shelf()).put(key, kept)
