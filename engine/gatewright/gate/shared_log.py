"""The log of a shared state (`record/shared.py`), for any number of gateways.

Each open log writes a chain of its own: a row's hash is SHA-256 (FIPS 180-4) over the hash before it and the canonical
JSON of the row; the last row of each commit carries an Ed25519 signature (RFC 8032) by the key of its writer, which
lies in the key folder and which an operator has enrolled. The head is also kept there. So nobody with the database
alone can change, remove or reorder rows of a chain unseen, nor cut one whose key folder is at hand. The order between
chains is not proven.

If a commit fails, or its answer is lost, no call of it starts. The next commit first asks where the chain ends; rows
that were committed after all get an end which says that their calls never started.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatewright.base.amount import Clock, SystemClock, iso_utc
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue, Seal, canonical_json
from gatewright.base.late import last_of
from gatewright.gate.chain import (
    CALL_ENDS,
    START_MAC,
    AuditReport,
    AuditRow,
    RowKind,
)
from gatewright.gate.history import COUNTS, SOURCES, Counts, count_in
from gatewright.gate.port import AuditEntry, AuditUnavailable
from gatewright.gate.session import Session
from gatewright.gate.shared import SharedClaims
from gatewright.record.folder import PrivateFolder
from gatewright.record.process import fork_safe_lock, renew_after_fork
from gatewright.record.sealedtable import AnchorFile
from gatewright.record.shared import SharedConnection, SharedState
from gatewright.record.signing import Signer, is_signed

_KEY = "writer.key"
_HEAD = b'{"epoch": %10d, "seq": %19d, "hash": "%s"}'
_PAGE = 1000
_PIECE = 250
_MOST_PROBLEMS = 50
_APPEND = "SELECT gatewright.append(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_ROWS = """SELECT position, time, kind, call_id, agent, session, tool, operation, body, hash
  FROM gatewright.rows WHERE position > %s ORDER BY position LIMIT %s"""
_CHAIN = """SELECT seq, time, kind, call_id, agent, session, tool, operation, body, hash, signature
  FROM gatewright.rows WHERE writer = %s AND epoch = %s AND seq > %s ORDER BY seq LIMIT %s"""
_CHAINS = """SELECT writer, epoch, seq, hash, signature, public_key, name
  FROM gatewright.heads JOIN gatewright.writers USING (tenant, writer) ORDER BY writer, epoch"""
_FOR_EVER_S = 1e10
_BLIND_S = 2.0


class _Rows:
    """The rows of the log, in a transaction that holds the sessions and calls that it asks about."""

    def __init__(self, connection: SharedConnection) -> None:
        self._connection = connection

    def of_session(self, session: str, after: int) -> Iterable[tuple[Any, ...]]:
        return self._connection.execute("SELECT * FROM gatewright.session_rows(%s, %s)", (session, after))

    def of_call(self, call_id: str) -> tuple[AuditRow, ...]:
        found = self._connection.execute("SELECT * FROM gatewright.claimed_rows(%s)", (call_id,))
        return tuple(AuditRow(*row) for row in found)


class SharedLog:
    """The log of a shared state, to which this object appends a chain of its own. Opening writes nothing."""

    path = None

    def __init__(self, state: SharedState, keys: Path, *, clock: Clock | None = None, name: str = "") -> None:
        self._state = state
        self._keys = PrivateFolder(keys)
        self._clock = clock or SystemClock()
        self._name = name or socket.gethostname()
        self._lock = fork_safe_lock()
        self._chain: _Chain | None = None
        self._seal: Seal | None = None
        self._counts = Counts()
        self.claims = SharedClaims(state)
        renew_after_fork(self)

    def renew(self) -> None:
        """Begin another chain in a child."""
        self._chain = self._seal = None
        self._counts = Counts()

    def check(self) -> None:
        """Implement the port."""
        with self._lock:
            self._opened()

    def append(self, entries: Sequence[AuditEntry], *, wait: bool = True) -> bool:
        """Implement the port; it always has to wait."""
        if not wait:
            return False
        with self._lock:
            chain = self._opened()
            try:
                self._commit(chain, entries)
            except BaseException:
                self._counts.clear()
                chain.is_unsure = True
                raise
        return True

    def count(self, session: Session) -> None:
        """Implement the port."""
        with self._state.transaction(refusal=AuditUnavailable) as connection:
            count_in(session, _Rows(connection), self._clock)

    def claimed(self, call_id: str) -> tuple[AuditRow, ...]:
        """Implement the port."""
        with self._state.transaction(refusal=AuditUnavailable) as connection:
            return _Rows(connection).of_call(call_id)

    def digest(self, value: object) -> str:
        """Implement the port; all gateways of a tenant have one key, which the database gives only to gateways."""
        return self._digests().digest(b"digest\0" + canonical_json(value))

    def proof_key(self, log_id: str | None = None) -> tuple[str, bytes] | None:
        """Implement the port; a proof holds at every gateway of the tenant."""
        with suppress(AuditUnavailable):
            own, key = self._digests(), b"proof\0"
            own_id = f"log-{own.digest(b'id')[:16]}"
            return (own_id, bytes.fromhex(own.digest(key))) if log_id in {None, own_id} else None
        return None

    def rows(self, *, after: int | None = None) -> Iterator[AuditRow]:
        """Implement the port: of all chains together, in the order in which the database numbered them."""
        last = -1 if after is None else after
        while page := self._state.ask(_ROWS, (last, _PAGE), refusal=AuditUnavailable):
            yield from (AuditRow(*row) for row in page)
            last = page[-1][0]

    def verify(self) -> AuditReport:
        """Implement the port: every chain by itself, by the keys of the writers."""
        return last_of(self.verify_in_pieces())

    def verify_in_pieces(self) -> Generator[int, None, AuditReport]:
        """Implement the port; it yields the number of rows so far."""
        try:
            return (yield from self._walk())
        except (WorkspaceError, OSError) as error:
            return AuditReport(0, (str(error),))

    def close(self) -> None:
        """End the chain; the state is closed by whoever opened it."""
        with self._lock:
            if self._chain is not None:
                self._chain.close()
                self._chain = None

    def _commit(self, chain: _Chain, entries: Sequence[AuditEntry]) -> None:
        """Append the entries, after the ends of calls that a lost commit has begun."""
        time = iso_utc(self._clock.wall_s())
        late = chain.settle() if chain.is_unsure else ()
        if not any(entry.is_asked for entry in entries):
            self._state.ask(_APPEND, chain.add([*late, *entries], time), refusal=AuditUnavailable)
        else:
            every = [*late, *entries]
            held = {f"session {entry.session}" for entry in every if entry.session}
            held |= {f"session {entry.slot.session.log_name}" for entry in entries if entry.slot is not None}
            held |= {f"call {entry.call_id}" for entry in entries if entry.is_asked}
            with self._state.transaction(refusal=AuditUnavailable) as connection:
                # all at once: two gateways that took one after another could wait for each other
                connection.execute("SELECT gatewright.hold(%s)", (sorted(held),))
                self._append_fitting(chain, connection, every, time)
        chain.confirm()

    def _append_fitting(
        self, chain: _Chain, connection: SharedConnection, entries: Sequence[AuditEntry], time: str
    ) -> None:
        """Append the entries without those of calls to which the log objects, which sees the rows before them."""
        rows, ready, refused = _Rows(connection), list[AuditEntry](), set[str]()
        for entry in entries:
            if entry.slot is not None and entry.is_asked:
                if ready:
                    connection.execute(_APPEND.encode(), chain.add(ready, time))
                    ready = []
                if self._counts.refuses(entry.slot, rows):
                    refused.add(entry.call_id)
            if entry.call_id not in refused:
                ready.append(entry)
        if ready:
            connection.execute(_APPEND.encode(), chain.add(ready, time))

    def _opened(self) -> _Chain:
        if self._chain is None:
            self._chain = _Chain(self._state, self._keys, self._name, iso_utc(self._clock.wall_s()))
        return self._chain

    def _digests(self) -> Seal:
        seal = self._seal
        if seal is None:
            ((key,),) = self._state.ask("SELECT gatewright.digest_key()", refusal=AuditUnavailable)
            self._seal = seal = Seal(bytes(key))
        return seal

    def _walk(self) -> Generator[int, None, AuditReport]:
        ((tenant,),) = self._state.ask("SELECT gatewright.tenant()", refusal=AuditUnavailable)
        problems, proved, begun = list[str](), 0, dict[str, AuditRow]()
        for writer, epoch, seq, head, signature, public_key, name in self._state.ask(_CHAINS, refusal=AuditUnavailable):
            what, key = f"the chain {epoch} of {name} (`{writer}`)", bytes(public_key)
            if writer_of(key) != writer:
                problems.append(f"{what} has the key of another writer")
                continue
            walk = _Walk(_Signed(tenant, writer, epoch), key, what, _anchored(self._keys, writer, epoch))
            while page := self._state.ask(_CHAIN, (writer, epoch, walk.seq, _PAGE), refusal=AuditUnavailable):
                for number, (*fields, signed) in enumerate(page):
                    walk.step(AuditRow(*fields), None if signed is None else bytes(signed))
                    if number % _PIECE == 0:
                        yield proved + walk.proved
            walk.end(seq, head, bytes(signature))
            problems += walk.problems
            proved += walk.proved
            begun |= walk.begun
            yield proved
        more = [f"and {len(problems) - _MOST_PROBLEMS:,} more problems"] if len(problems) > _MOST_PROBLEMS else []
        return AuditReport(proved, (*problems[:_MOST_PROBLEMS], *more), tuple(begun.values()), proved)


class _Signed:
    """The head of a chain, as its writer signs it."""

    def __init__(self, tenant: str, writer: str, epoch: int) -> None:
        self._chain = ["gatewright head", tenant, writer, epoch]

    def __call__(self, seq: int, head: str) -> bytes:
        return canonical_json([*self._chain, seq, head])


class _Chain:
    """The chain that this process writes: its writer, its number, and its end.

    ``is_unsure``: a commit failed, and perhaps happened.
    """

    def __init__(self, state: SharedState, keys: PrivateFolder, name: str, time: str) -> None:
        try:
            self._signer = Signer(keys, _KEY)
        except OSError as error:
            raise AuditUnavailable(f"the key of the log in `{keys.path}` cannot be read: {error}") from error
        public = self._signer.public
        self.writer = writer_of(public)
        self._state = state
        ((is_enrolled,),) = self._ask("SELECT gatewright.introduce(%s, %s, %s)", self.writer, name, public)
        if not is_enrolled:
            raise AuditUnavailable(
                f"nobody has enrolled the writer of {name} yet: `gatewright state enroll {self.writer}`"
            )
        ((tenant, self.epoch),) = self._ask("SELECT gatewright.tenant(), gatewright.open_epoch(%s)", self.writer)
        self._message = _Signed(tenant, self.writer, self.epoch)
        self._anchor = AnchorFile(keys, _anchor_name(self.writer, self.epoch))
        self._head: tuple[int, str] = (0, START_MAC)
        self._next = self._head
        self._perhaps: dict[tuple[int, str], list[AuditEntry]] = {}
        self.is_unsure = False
        body: dict[str, JsonValue] = {"writer": self.writer, "epoch": self.epoch, "key": public.hex(), "name": name}
        self._state.ask(_APPEND, self.add([AuditEntry(RowKind.LOG_OPENED, body=body)], time), refusal=AuditUnavailable)
        self.confirm()

    def add(self, entries: Sequence[AuditEntry], time: str) -> tuple[object, ...]:
        """Chain rows after those added before; the arguments of ``append``. Raises ValueError or TypeError."""
        seq, head = after = self._next
        columns, hashes = [entry.columns() for entry in entries], list[str]()
        for one in columns:
            seq += 1
            head = hash_of(head, (seq, time, *one))
            hashes.append(head)
        self._next = seq, head
        self._perhaps[self._next] = [*self._perhaps.get(after, ()), *entries]
        signature = self._signer.sign(self._message(seq, head))
        texts = [list(column) for column in zip(*columns, strict=True)]
        return (self.writer, self.epoch, *after, [time] * len(columns), *texts, hashes, signature)

    def confirm(self) -> None:
        """Note that the rows added so far are committed."""
        try:
            with self._anchor.hold(create=True):
                self._anchor.write(_HEAD % (self.epoch, self._next[0], self._next[1].encode()))
        except OSError as error:  # the calls of these rows do not start, and the next commit says so
            raise AuditUnavailable(f"the head of the log cannot be kept in the key folder: {error}") from error
        self._head = self._next
        self._perhaps.clear()

    def settle(self) -> list[AuditEntry]:
        """Ask where the chain ends; the ends of the calls that a lost commit has begun, which never started."""
        ((seq, head),) = self._ask("SELECT seq, hash FROM gatewright.head(%s, %s)", self.writer, self.epoch)
        end = int(seq), str(head)
        if end != self._head and end not in self._perhaps:
            raise AuditUnavailable(f"the chain {self.epoch} of `{self.writer}` has an end that nobody here wrote")
        begun = self._perhaps.get(end, [])
        self._head = self._next = end
        self.is_unsure = False
        return [_never_started(entry) for entry in begun if entry.slot is not None]

    def close(self) -> None:
        """Close the file of the head."""
        self._anchor.close()

    def _ask(self, question: str, *params: object) -> list[tuple[Any, ...]]:
        return self._state.ask(question, params, refusal=AuditUnavailable)


class _Walk:
    """One walk along a chain, which ``what`` names. ``proved``: the rows that signatures cover; ``begun``: the calls
    without an end.
    """

    def __init__(self, message: _Signed, public_key: bytes, what: str, anchored: dict[int, str]) -> None:
        self.seq = self.proved = 0
        self.problems: list[str] = []
        self.begun: dict[str, AuditRow] = {}
        self._message = message
        self._key = public_key
        self._what = what
        self._anchored = anchored
        self._hash = START_MAC
        self._is_whole = True

    def step(self, row: AuditRow, signature: bytes | None) -> None:
        """Check a row by the one before; a signature proves the rows up to its own."""
        if row.seq != self.seq + 1:
            self._object(f"lacks rows before row {row.seq}")
        right = hash_of(self._hash, (row.seq, row.time, *row.columns))
        if self._is_whole and right != row.mac:
            self._object(f"was changed at row {row.seq}")
        if signature is not None and self._is_whole:
            if self._is_signed(row.seq, row.mac, signature):
                self.proved = row.seq
            else:
                self._object(f"has a false signature at row {row.seq}")
        if self._anchored.pop(row.seq, row.mac) != row.mac:
            self._object(f"differs at row {row.seq} from the head in the key folder")
        if row.kind == RowKind.TOOL_INVOKED:
            self.begun[row.call_id] = row
        elif row.kind in CALL_ENDS or row.kind == RowKind.CALL_WAITS:
            self.begun.pop(row.call_id, None)
        self.seq, self._hash = row.seq, row.mac

    def end(self, seq: int, head: str, signature: bytes) -> None:
        """Compare the end with the head in the database and with the one in the key folder."""
        if (seq, head) != (self.seq, self._hash) or (seq > 0 and not self._is_signed(seq, head, signature)):
            self._object(f"ends at row {self.seq}, but its head is at row {seq}")
        for kept in self._anchored:
            self._object(f"ends at row {self.seq}, but the key folder knows row {kept}")

    def _is_signed(self, seq: int, head: str, signature: bytes) -> bool:
        return is_signed(self._key, self._message(seq, head), signature)

    def _object(self, problem: str) -> None:
        self._is_whole = False
        self.problems.append(f"{self._what} {problem}")


def hash_of(previous: str, row: Sequence[JsonValue]) -> str:
    """The hash of a row (number, time, columns) after the one with that hash, in hexadecimal."""
    return hashlib.sha256(previous.encode() + canonical_json(row)).hexdigest()


def writer_of(public_key: bytes) -> str:
    """The id of the writer with that key."""
    return f"writer-{hashlib.sha256(public_key).hexdigest()[:16]}"


def _anchor_name(writer: str, epoch: int) -> str:
    return f"{writer}-{epoch}.anchor"


def _anchored(keys: PrivateFolder, writer: str, epoch: int) -> dict[int, str]:
    """The head of the chain that the key folder keeps, by its number; empty if it keeps none."""
    with closing(AnchorFile(keys, _anchor_name(writer, epoch))) as file, suppress(OSError, ValueError, KeyError):
        kept = json.loads(file.read())
        return {int(kept["seq"]): str(kept["hash"])}
    return {}


def _never_started(begun: AuditEntry) -> AuditEntry:
    """The end of a call whose first row was committed without its knowing."""
    taken_back = {key: begun.body[key] for key in (COUNTS, SOURCES) if key in begun.body}
    return replace(begun, kind=RowKind.TOOL_ABANDONED, body={"started": False, **taken_back}, slot=None)
