"""Connections of confined processes: what the audit log says of each, and how it takes many without growing on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.word import Word
from gatewright.gate.audit import AuditEntry, AuditLog, AuditUnavailable
from gatewright.gate.chain import RowKind
from gatewright.gate.record import clean
from gatewright.gate.scrub import scrub_text

_AT_ONCE, _KINDS = 64, 64
"""So many connections of one pause get a row each; of those beyond, equal ones share a row, and so do all that are of
more kinds than that."""
_PAUSE_S = 5.0
_HOST, _WHY = 256, 200


class Way(Word):
    """The way in which a process asks for a connection."""

    HTTP = "http"
    CONNECT = "connect"
    SOCKS = "socks"


@frozen
class Connection:
    """A connection that was asked for, when it is over.

    ``allowed``: the policy lets it through, which is not that it came about; ``code`` and ``why``: what spoke against
    it, or ended it before its time; ``address``: what the host stood for; ``sent`` and ``received``: bytes, seen from
    the process; ``count``: how many such connections it stands for.
    """

    host: str
    port: int
    way: Way
    allowed: bool
    code: str = ""
    why: str = ""
    address: str = ""
    sent: int = 0
    received: int = 0
    elapsed_ms: float = 0.0
    count: int = 1


class ConnectionLog:
    """Writes the connections of one agent's tool or catalog into the audit log, in a thread of its own.

    The last few seconds before the program is killed may be missing. ``clean``: takes out what the process was given
    to keep secret.
    """

    def __init__(
        self, log: AuditLog, agent_id: str, subject: str, *, clean: Callable[[str], str] = lambda text: text
    ) -> None:
        self._log, self._agent_id, self._subject, self._clean = log, agent_id, subject, clean
        self._lock = threading.Lock()
        self._single: list[Connection] = []
        self._shared: dict[tuple[object, ...], Connection] = {}
        self._writer: threading.Thread | None = None
        self._closing = threading.Event()
        self._failure: AuditUnavailable | None = None

    def tell(self, connection: Connection) -> None:
        """Have it written soon, which waits for nothing. Raises AuditUnavailable while nothing can be written."""
        with self._lock:
            failure = self._failure
            self._take(connection)
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="gatewright-connections", daemon=True)
                self._writer.start()
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Write what is left; it waits for that."""
        self._closing.set()
        writer = self._writer
        if writer is not None:
            writer.join()

    def _take(self, one: Connection) -> None:
        if len(self._single) < _AT_ONCE:
            self._single.append(one)
            return
        key = (one.host, one.port, one.way, one.allowed, one.code)
        if key not in self._shared and len(self._shared) >= _KINDS:
            one = replace(one, host="", port=0, address="", why="")
            key = ("", 0, one.way, one.allowed, one.code)
        other = self._shared.get(key)
        self._shared[key] = one if other is None else _together(other, one)

    def _write(self) -> None:
        """Write what waits, again after a pause, until nothing waits any more or nothing can be written."""
        while True:
            with self._lock:
                taken = [*self._single, *self._shared.values()]
                if not taken:
                    self._writer = None
                    return
                self._single, self._shared = [], {}
            failure = None
            try:
                self._log.append([self._row(one) for one in taken])
            except AuditUnavailable as error:
                failure = error
            with self._lock:
                self._failure = failure
                if failure is not None:
                    for one in taken:
                        self._take(one)
                    self._writer = None
                    return
            self._closing.wait(_PAUSE_S)

    def _row(self, one: Connection) -> AuditEntry:
        host = scrub_text(self._clean(one.host[:_HOST]))[0]
        body: dict[str, JsonValue] = {
            "host": clean(host, _HOST),
            "port": one.port,
            "way": str(one.way),
            "allowed": one.allowed,
            "sent": one.sent,
            "received": one.received,
            "elapsed_ms": round(one.elapsed_ms, 1),
        }
        if one.address:
            body["address"] = one.address
        if one.code:
            body |= {"code": clean(one.code), "why": clean(scrub_text(self._clean(one.why))[0], _WHY)}
        if one.count > 1:
            body["count"] = one.count
        return AuditEntry(RowKind.CONNECTION, agent=clean(self._agent_id), tool=clean(self._subject), body=body)


def _together(one: Connection, other: Connection) -> Connection:
    return replace(
        one,
        sent=one.sent + other.sent,
        received=one.received + other.received,
        elapsed_ms=one.elapsed_ms + other.elapsed_ms,
        count=one.count + other.count,
    )
