"""The stop: every call of all agents, or of one, is denied until somebody who holds the key lets them go on.

Anybody who may write into the state folder pulls it: a file there stops, also one that is empty, damaged, a link or no
file at all. While nothing is stopped a call costs one look for that name (`gate/stages/read.py`), and about once a
second a closer one; `gate/stages/execute.py` ends what runs.

The file alone would be lifted by whoever deletes it. So the first who sees it and holds the key (the command that
pulled it, a window, or a gate that it stops) writes its content under a seal into the key folder, and a row into the
log. From then on it stands there, whatever becomes of the file, and only `StopSwitch.lift` ends it, with the key of the
log, or of the user while no log exists. Without a state folder a stop holds in its object alone, and needs no key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import math
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gatewright.base.amount import Clock, SystemClock, iso_utc, new_id
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.base.printable import printable
from gatewright.gate.chain import RowKind
from gatewright.gate.port import AuditEntry, AuditUnavailable, Log
from gatewright.gate.session import log_text
from gatewright.record.folder import SHARED_KEY, PrivateFolder, find_key, have_key
from gatewright.record.process import fork_safe_lock
from gatewright.record.sealedtable import AnchorFile

FILE_NAME = "stop"
CODE = "stopped"
LOOK_S = 0.25
"""The time between looks at the stop while calls, servers or shells run."""
_MOST_BYTES = 1 << 16
_MAC_BYTES, _MOST_WORDS = 64, 500
_AGAIN_S = 0.9
"""The time for which no file means no stop: the seal is not looked at meanwhile."""
_log = logging.getLogger(__name__)


@frozen
class Stop:
    """One stop. ``agent_id`` empty: of all agents; ``wall_s``: seconds since 1970; ``is_logged``: the log has its
    row.
    """

    stop_id: str
    agent_id: str
    who: str
    why: str
    wall_s: float
    is_logged: bool = False

    def covers(self, agent_id: str) -> bool:
        """Tell whether it stops that agent."""
        return self.agent_id in {"", agent_id}

    def __str__(self) -> str:
        whom = f"agent `{self.agent_id}`" if self.agent_id else "all agents"
        return f"{self.who} stopped {whom} at {iso_utc(self.wall_s)}" + (f": {self.why}" if self.why else "")

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: id, agent (None: all), who, why, time."""
        return {
            "id": self.stop_id,
            "agent": self.agent_id or None,
            "who": self.who,
            "why": self.why,
            "time": iso_utc(self.wall_s),
        }

    @classmethod
    def of(cls, who: str, why: str, agent_id: str, wall_s: float) -> Stop:
        """A new stop, in words that the log can hold."""
        return cls(new_id("stop"), agent_id, _words(who), _words(why), wall_s)


_TYPES = (str, str, str, str, float, bool)


class StopSwitch:
    """The stop of one state folder; None: of this object alone. Any thread may call the methods, which raise
    WorkspaceError; reading never does, since what cannot be read stops.

    ``audit``: the log of its rows; it closes with the switch.
    """

    def __init__(
        self,
        state: Path | None = None,
        keys: Path | None = None,
        *,
        clock: Clock | None = None,
        audit: Log | None = None,
    ) -> None:
        self.place = "" if state is None else str(state / FILE_NAME)
        """The path of the file; empty: nowhere."""
        self.until_s = math.inf if state is None else 0.0
        """Until then nothing is stopped without the file."""
        self.standing: tuple[Stop, ...] = ()
        """The stops at the last look."""
        self.is_loose = False
        """At the last look a stop was not sealed, or not in the log."""
        self.running: dict[aio.Future[None], Callable[[], object]] = {}
        """The watches for a stop of each call whose tool runs, by the future that wakes it."""
        self.watched: set[aio.AbstractEventLoop] = set()
        """The loops in which somebody looks while calls run."""
        self._clock = clock or SystemClock()
        self._audit = audit
        self._lock, self._changes = fork_safe_lock(), fork_safe_lock()
        self._folder = None if state is None else PrivateFolder(state)
        self._keys = None if keys is None else PrivateFolder(keys)
        self._bound = b"stop\0" + (b"" if state is None else os.fsencode(os.path.realpath(state)))
        self._read: tuple[bytes, tuple[Stop, ...]] = b"", ()
        self._anchor = self._open_anchor()

    def look(self) -> tuple[Stop, ...]:
        """The stops that stand now, oldest first, whoever pulled them."""
        if self._folder is None:
            return self.standing
        with self._lock:
            began_s = time.monotonic()
            sealed = () if self._anchor is None else self._sealed(self._anchor)
            self.standing = _together(sealed, self._filed())
            safe = {one.stop_id for one in sealed if one.is_logged or self._audit is None}
            self.is_loose = any(one.stop_id not in safe for one in self.standing)
            self.until_s = 0.0 if self.standing else began_s + _AGAIN_S
            return self.standing

    def find(self, agent_id: str) -> Stop | None:
        """The stop of that agent now, or None."""
        return next((one for one in self.look() if one.covers(agent_id)), None)

    def pull(self, who: str, why: str = "", agent_id: str = "") -> Stop:
        """Stop all agents, or one, in every process; needs no key. Raises WorkspaceError for an unwritable folder."""
        stop = Stop.of(who, why, agent_id, self._clock.wall_s())
        if self._folder is None:
            self.standing, self.until_s = (*self.standing, stop), 0.0
            return stop
        with self._changing():
            self._folder.make()
            with self._folder.exclusive():
                self._write((*self._filed(), stop))
        with suppress(WorkspaceError):  # without a key it stands in the file
            self.seal()
        self.look()
        return stop

    def lift(self, who: str, agent_id: str = "") -> tuple[Stop, ...]:
        """End the stop of all agents, or that of one, and return what stood; empty if none did.

        Raises WorkspaceError without the key, and then the stop stands.
        """
        if self._folder is None:
            gone = tuple(one for one in self.standing if one.agent_id == agent_id)
            self.standing = tuple(one for one in self.standing if one not in gone)
            self.until_s = 0.0 if self.standing else math.inf
            return gone
        if not any(one.agent_id == agent_id for one in self.look()):
            return ()
        with self._changing():
            self._require_key()
            self._folder.make()
            with self._held() as anchor:
                standing = _together(self._sealed(anchor), self._filed())
                gone = tuple(one for one in standing if one.agent_id == agent_id)
                left = tuple(one for one in standing if one not in gone)
                left = self._record((*left, *gone), [lifted(one, who) for one in gone])[: len(left)]
                with self._folder.exclusive():
                    over = {one.stop_id for one in gone}
                    self._write(_together(left, (one for one in self._filed() if one.stop_id not in over)))
                self._seal(anchor, left)
        self.look()
        return gone

    def seal(self, *, begin: bool = False) -> None:
        """Put what the file says under the seal, and into the log; ``begin``: also where no log exists so far.

        Raises WorkspaceError where the key is not this workspace's.
        """
        if self._folder is None or self._anchor is None:
            return
        with self._changing():
            if not begin:
                self._require_own()
            with self._held() as anchor:
                known = self._sealed(anchor)
                after = self._record(_together(known, self._filed()), (), begin=begin)
                if after != known:
                    self._seal(anchor, after)
        self.look()

    async def settle(self) -> None:
        """Put a stop that a call met under the seal, in a thread; what cannot be sealed stops all the same."""
        if self.is_loose:
            try:
                await aio.to_thread(self.seal, begin=True)
            except WorkspaceError as error:
                _log.warning("a stop is not recorded: %s", error)

    def close(self) -> None:
        """Close the file in the key folder, and the log."""
        with self._lock:
            if self._anchor is not None:
                self._anchor.close()
        if self._audit is not None:
            self._audit.close()

    def _filed(self) -> tuple[Stop, ...]:
        """The stops in the file; one of all agents for a file that cannot be read or means nothing."""
        assert self._folder is not None
        try:
            text = self._folder.read(FILE_NAME, _MOST_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            return (self._strange((error.strerror or "it cannot be read").lower()),)
        found = None if len(text) > _MOST_BYTES else stops_in(text)
        return found or (self._strange("it does not say who pulled it"),)

    def _sealed(self, anchor: AnchorFile) -> tuple[Stop, ...]:
        """The stops under the seal; one of all agents where the seal is broken or its key is gone."""
        try:
            text = anchor.read()
            if text != self._read[0]:
                found = self._parse(text)
                self._read = text, (self._strange("its seal is broken"),) if found is None else found
            return self._read[1]
        except OSError as error:
            return (self._strange(f"its seal cannot be read: {error.strerror}"),)

    def _strange(self, why: str) -> Stop:
        return Stop(
            "stop-unreadable", "", "somebody", f"the stop in `{self.place}` stands: {why}", self._clock.wall_s()
        )

    def _write(self, stops: Iterable[Stop]) -> None:
        assert self._folder is not None
        if rows := [stop_fields(one) for one in stops]:
            self._folder.replace(FILE_NAME, json.dumps({"stops": rows}, indent=1).encode())
        else:
            self._folder.delete(FILE_NAME)

    def _record(self, stops: tuple[Stop, ...], more: Iterable[AuditEntry], *, begin: bool = True) -> tuple[Stop, ...]:
        """Write the rows of new stops and ``more`` into the log; returns the stops as logged."""
        audit = self._audit
        if audit is None or not (begin or audit.path is None or audit.path.exists()):
            return stops
        if rows := [*(pulled(one) for one in stops if not one.is_logged), *more]:
            audit.append(rows)
        return tuple(replace(one, is_logged=True) for one in stops)

    def _require_own(self) -> None:
        """Raises AuditUnavailable for a log whose key is elsewhere."""
        if self._audit is not None:
            self._audit.check()

    def _require_key(self) -> None:
        """Raises WorkspaceError unless the key of this workspace is here."""
        words = "a stop ends only with the key of the workspace"
        try:
            self._require_own()
        except AuditUnavailable as error:
            raise WorkspaceError(f"{words}: {error}") from None
        if self._keys is None or self._anchor is None or find_key(self._keys, SHARED_KEY) is None:
            where = f"; `{self._keys.path}` has none" if self._keys is not None else ""
            raise WorkspaceError(f"{words}{where}")

    def _key(self, *, create: bool) -> bytes | None:
        assert self._keys is not None
        shared = (have_key if create else find_key)(self._keys, SHARED_KEY)
        return None if shared is None else hmac.digest(shared, self._bound, "sha256")

    def _open_anchor(self) -> AnchorFile | None:
        if self._keys is None or self._folder is None:
            return None
        name = f"stop-{hashlib.sha256(self._bound).hexdigest()[:16]}.anchor"
        return AnchorFile(self._keys, name, lambda text: self._parse(text) is not None)

    @contextmanager
    def _held(self) -> Generator[AnchorFile]:
        """The file in the key folder, for one change by this thread alone; others may look meanwhile."""
        anchor = self._open_anchor()
        assert anchor is not None
        assert self._keys is not None
        self._keys.make()
        with self._changes, closing(anchor), anchor.hold(create=True):
            yield anchor

    def _seal(self, anchor: AnchorFile, stops: Iterable[Stop]) -> None:
        key, text = (
            self._key(create=True),
            json.dumps([[*stop_fields(one).values(), one.is_logged] for one in stops]).encode(),
        )
        assert key is not None
        anchor.write(hmac.digest(key, text, "sha256").hex().encode() + text)

    def _parse(self, text: bytes) -> tuple[Stop, ...] | None:
        """The stops in the sealed text, none in an empty one; None for a broken seal."""
        mac, said = text[:_MAC_BYTES], text[_MAC_BYTES:].rstrip()
        if not text.strip():
            return ()
        key = self._key(create=False)
        if key is None or not hmac.compare_digest(mac, hmac.digest(key, said, "sha256").hex().encode()):
            return None
        return tuple(Stop(*fields) for fields in json.loads(said))

    @contextmanager
    def _changing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self.place
            raise WorkspaceError(
                f"the stop cannot be changed: {(error.strerror or str(error)).lower()} (`{where}`)"
            ) from None


def _together(*parts: Iterable[Stop]) -> tuple[Stop, ...]:
    """All of them once, those of the first part as it has them."""
    found: dict[str, Stop] = {}
    for stop in (stop for part in parts for stop in part):
        found.setdefault(stop.stop_id, stop)
    return tuple(sorted(found.values(), key=lambda one: one.wall_s))


def stop_fields(stop: Stop) -> dict[str, JsonValue]:
    """The stop as `stops_in` reads it."""
    return {"id": stop.stop_id, "agent": stop.agent_id, "who": stop.who, "why": stop.why, "since": stop.wall_s}


def stops_in(text: bytes) -> tuple[Stop, ...]:
    """The stops in a file's text; none in a text of any other form."""
    try:
        said = json.loads(text)["stops"]
        rows = [(one["id"], one["agent"], one["who"], one["why"], float(one["since"])) for one in said]
        if any(not isinstance(field, kind) for row in rows for field, kind in zip(row, _TYPES, strict=False)):
            return ()
        for row in rows:
            iso_utc(row[4])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, OSError):
        return ()
    return tuple(Stop(_words(name), agent, _words(who), _words(why), at) for name, agent, who, why, at in rows)


def _words(text: str) -> str:
    """A text that somebody gave, as a log and a screen can hold it."""
    return printable(text[:_MOST_WORDS])


def pulled(stop: Stop) -> AuditEntry:
    """The row of a new stop."""
    return _log_row(RowKind.STOP_PULLED, stop, {"who": stop.who, "why": stop.why, "since": iso_utc(stop.wall_s)})


def lifted(stop: Stop, who: str) -> AuditEntry:
    """The row of a stop that somebody ended."""
    return _log_row(RowKind.STOP_LIFTED, stop, {"who": _words(who), "pulled_by": stop.who, "why": stop.why})


def _log_row(kind: RowKind, stop: Stop, body: dict[str, JsonValue]) -> AuditEntry:
    whole: dict[str, JsonValue] = {"stop": stop.stop_id, "all": not stop.agent_id, **body}
    return AuditEntry(kind, agent=log_text(stop.agent_id), body=whole)
