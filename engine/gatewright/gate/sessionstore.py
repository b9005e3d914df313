"""Sessions on disk, and the processes that serve a workspace to MCP clients, for all processes of the workspace.

Each session has one file in a folder, replaced as a whole: an HMAC, and the session as JSON with a version. Without the
key nobody can forge a session: an edited one, one in place of another, and a copy from another workspace are refused. A
renamed workspace keeps its sessions, a moved or copied one does not. A deletion, or an older copy of the same session,
stays unnoticed.

The list of servers and connected clients is in one file of the state folder, ``serving.sqlite``; `SealedTable` says why
nobody can forge it. A process counts as present while it holds its `Lifeline`, however it ends.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gatewright.base.amount import Clock
from gatewright.base.errors import SessionConflict, WorkspaceError
from gatewright.base.file import lock
from gatewright.base.late import aio, unbroken
from gatewright.gate.chain import RowKind
from gatewright.gate.port import AuditEntry, Log, SessionShelf
from gatewright.gate.session import Session
from gatewright.record.folder import SHARED_KEY, Home, PrivateFolder, find_key, have_key
from gatewright.record.process import Lifeline, is_alive
from gatewright.record.sealedtable import SealedRow, SealedTable

FOLDER = "sessions"
MAX_BYTES = 4 * 1024 * 1024
_TOO_LARGE = MAX_BYTES + 66  # the seal with its newline, and one byte that is too many
_LOCK_PATIENCE_S = 2.0
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UPPER = re.compile(r"[A-Z]")
_ESCAPED = re.compile(r"\+([a-z])")
_holders: dict[tuple[str, str], aio.Future[Any]] = {}
"""The tasks of this process that hold a session, by folder and file."""
_FILE = re.compile(r"s-((?:[a-z0-9._-]|\+[a-z]){1,200})(@[0-9a-f]{16})?\.session")


class SessionStore:
    """The sessions in one folder, which the first session creates, sealed with the key in the folder ``keys``; or on a
    shelf elsewhere. ``clock`` is the gate's.

    An id names one session of each agent, and one without an agent. ``log``: counts in a session the calls that began
    after its save. Methods raise WorkspaceError.
    """

    def __init__(
        self,
        folder: Path | SessionShelf,
        keys: Path | None = None,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        self._shelf: SessionShelf = SessionFiles(folder, keys) if isinstance(folder, Path) else folder
        self._clock = clock
        self._log = log

    @asynccontextmanager
    async def hold(
        self, session_id: str, *, agent_id: str = "", patience_s: float | None = None
    ) -> AsyncGenerator[Session]:
        """The saved session, or a new one, for this task alone among all tasks and processes; it is saved at the end.

        If somebody else holds the session, this waits, and after ``patience_s`` raises SessionConflict; if this task
        holds it already, it raises at once. A dead process releases the session. An exception in the body does not
        prevent the save.
        """
        name = _name(session_id, agent_id)
        held, task = (self._shelf.place, name), aio.current_task()
        if task is not None and _holders.get(held) is task:
            raise SessionConflict(f"this task holds the session `{session_id}` already")
        deadline = None if patience_s is None else time.monotonic() + patience_s
        while (holder := self._shelf.try_lock(name)) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise SessionConflict(f"the session `{session_id}` is held by somebody else")
            await aio.sleep(self._shelf.step_s)
        if task is not None:
            _holders[held] = task
        try:
            session = self.resume(session_id, agent_id=agent_id)
            session.is_held = True
            try:
                yield session
            finally:
                try:
                    await unbroken(aio.ensure_future(aio.to_thread(self.save, session)))
                finally:
                    session.is_held = False
        finally:
            _holders.pop(held, None)
            self._shelf.let_go(name, holder)

    def resume(self, session_id: str, *, agent_id: str = "") -> Session:
        """The saved session, in which every call that began since then counts; a new one if none is saved."""
        return self._count(self._find(session_id, agent_id) or Session(session_id, agent_id))

    def load(self, session_id: str, *, agent_id: str = "") -> Session:
        """The saved session; an error if none is saved."""
        session = self._find(session_id, agent_id)
        if session is None:
            raise WorkspaceError(f"no session `{session_id}` is saved")
        return self._count(session)

    def save(self, session: Session) -> None:
        """Save the session. Raises SessionConflict if the saved one has changed since its load or save."""
        name = _name(session.session_id, session.agent_id)
        with session.saving, nullcontext() if session.is_held else self._lock(name):
            kept = self._find(session.session_id, session.agent_id)
            version = kept.version if kept is not None else 0
            saved = {
                "version": session.version + 1,
                "agent": session.agent_id,
                "saved": session.to_saved(self._clock),
            }
            if version != session.version or not self._shelf.write(name, saved):
                how = "deleted" if kept is None else "saved by somebody else"
                raise SessionConflict(f"the session `{session.session_id}` was {how} since it was loaded")
            session.version = version + 1

    def list(self, *, agent_id: str = "") -> tuple[str, ...]:
        """The ids of the saved sessions of that agent, sorted."""
        mark, names = _mark(agent_id), self._shelf.names()
        kept = [found[1] for name in names if (found := _FILE.fullmatch(name)) and (found[2] or "") == mark]
        return tuple(sorted(_ESCAPED.sub(lambda match: match[1].upper(), name) for name in kept))

    def delete(self, session_id: str, *, agent_id: str = "") -> bool:
        """Delete the session with its counts, and record that in the log; True if one was saved."""
        name = _name(session_id, agent_id)
        if not self._shelf.has(name):
            return False
        with self._lock(name):
            if self._log is not None:
                self._log.append([_deletion(session_id, agent_id)])
            return self._shelf.delete(name)

    def _count(self, session: Session) -> Session:
        if self._log is not None:
            self._log.count(session)
        return session

    def _find(self, session_id: str, agent_id: str) -> Session | None:
        name = _name(session_id, agent_id)
        kept, where = self._shelf.read(name), f"`{self._shelf.place}/{name}`"
        if kept is None:
            return None
        try:
            session = Session.resume(kept["saved"], self._clock, agent_id=kept["agent"])
            session.version = kept["version"]
        except (ValueError, KeyError, TypeError):
            raise WorkspaceError(f"{where} contains no saved session") from None
        except WorkspaceError as error:
            raise WorkspaceError(f"{where}: {error}") from None
        if (session.session_id, session.agent_id) != (session_id, agent_id):
            whose = f" of the agent `{session.agent_id}`" if session.agent_id else ""
            raise WorkspaceError(f"{where} contains another session, `{session.session_id}`{whose}")
        return session

    @contextmanager
    def _lock(self, name: str) -> Generator[None]:
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while (holder := self._shelf.try_lock(name)) is None:
            if time.monotonic() >= deadline:
                raise SessionConflict(f"the session in `{self._shelf.place}/{name}` is held by somebody else")
            time.sleep(self._shelf.step_s)
        try:
            yield
        finally:
            self._shelf.let_go(name, holder)


class SessionFiles:
    """Sessions as files of a folder, each with a seal by the key in the folder ``keys``. ``name``: that of a file."""

    step_s = 0.005
    """The time between two tries to lock a session."""

    def __init__(self, folder: Path, keys: Path | None) -> None:
        self._folder = PrivateFolder(folder.parent).folder(folder.name)
        self._keys = keys
        self.place = os.path.realpath(self._folder.path)
        """The folder without links."""

    def read(self, name: str) -> dict[str, Any] | None:
        """The saved session with its version and agent; None if none is saved. Raises WorkspaceError."""
        path = self._folder.path / name
        try:
            content = self._folder.read(name, _TOO_LARGE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise WorkspaceError(f"the session in `{path}` cannot be read: {error}") from error
        if len(content) >= _TOO_LARGE:
            raise WorkspaceError(f"`{path}` contains no saved session: it is larger than {MAX_BYTES:,} bytes")
        try:
            kept: dict[str, Any] = json.loads(self._unseal(content))
            self._refuse_foreign(kept)
        except (ValueError, KeyError, TypeError):
            raise WorkspaceError(f"`{path}` contains no saved session") from None
        except WorkspaceError as error:
            raise WorkspaceError(f"`{path}`: {error}") from None
        return kept

    def write(self, name: str, saved: Mapping[str, Any]) -> bool:
        """Replace the saved session, whose lock the caller holds. Raises WorkspaceError."""
        home = Home.of(self._folder.path.parent)
        body = session_text(str(self._folder.path / name), {**saved, "home": [home.folder, home.around]})
        seal = _seal(self._key(create=True), body)
        try:
            self._folder.replace(name, b"%s\n%s" % (seal, body))
        except OSError as error:
            raise WorkspaceError(f"the session in `{self._folder.path / name}` cannot be saved: {error}") from error
        return True

    def names(self) -> Iterable[str]:
        """The names of what is there. Raises WorkspaceError."""
        try:
            return self._folder.names()
        except OSError as error:
            raise WorkspaceError(f"the sessions in `{self._folder.path}` cannot be listed: {error}") from error

    def has(self, name: str) -> bool:
        """Tell whether a session is saved under that name. Raises WorkspaceError."""
        try:
            return self._folder.look(name) is not None
        except OSError as error:
            raise WorkspaceError(f"the session in `{self._folder.path / name}` cannot be read: {error}") from error

    def delete(self, name: str) -> bool:
        """Delete a session, whose lock the caller holds; True if it was there. Raises WorkspaceError."""
        try:
            return self._folder.delete(name)
        except OSError as error:
            raise WorkspaceError(f"the session in `{self._folder.path / name}` cannot be deleted: {error}") from error

    def try_lock(self, name: str) -> int | None:
        """Lock the session by a temporary file beside it; None while somebody else holds it. Raises WorkspaceError."""
        beside = _lock_name(name)
        try:
            self._folder.make()
            holder = self._folder.open(beside, os.O_RDWR | os.O_CREAT)
            try:
                lock(holder, 0.0)
                facts, there = os.fstat(holder), self._folder.look(beside)
                if there is not None and os.path.samestat(facts, there):
                    return holder
            except BlockingIOError:
                pass  # somebody has it, or had it until now
            except BaseException:
                os.close(holder)
                raise
        except OSError as error:
            raise WorkspaceError(f"the session cannot be saved in `{self._folder.path / name}`: {error}") from error
        os.close(holder)
        return None

    def let_go(self, name: str, holder: int) -> None:
        """Release the session, by removing the file that others wait for."""
        self._folder.end(_lock_name(name), holder)

    def _refuse_foreign(self, kept: Mapping[str, Any]) -> None:
        """Raise WorkspaceError for a session of another workspace, or without one."""
        if "home" not in kept:
            raise WorkspaceError("an older version saved it without its workspace: remove it")
        home = Home(*kept["home"])
        if not home.is_same(Home.of(self._folder.path.parent)):
            whose = f"it belongs to `{home.folder}`, and does not follow a copied or moved workspace"
            raise WorkspaceError(f"{whose}; remove it to begin a new one")

    def _unseal(self, content: bytes) -> bytes:
        """The text after the seal in the first line, if Gatewright wrote both."""
        seal, _, body = content.partition(b"\n")
        if not hmac.compare_digest(_seal(self._key(create=False), body), seal):
            raise WorkspaceError("somebody changed it: Gatewright did not write this")
        return body

    def _key(self, *, create: bool) -> bytes:
        if self._keys is None:
            raise WorkspaceError("there is no key folder")
        try:
            key = (have_key if create else find_key)(PrivateFolder(self._keys), SHARED_KEY)
        except OSError as error:
            raise WorkspaceError(f"the key of the sessions in `{self._folder.path}` cannot be read: {error}") from error
        if key is None:
            raise WorkspaceError("its key is missing, so it may be forged")
        return hmac.new(key, b"sessions", hashlib.sha256).digest()


def session_text(name: str, saved: Mapping[str, Any]) -> bytes:
    """The session as JSON. Raises WorkspaceError if that is too large to keep."""
    body = json.dumps(saved, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MAX_BYTES:
        raise WorkspaceError(f"the session in `{name}` is too large to save")
    return body


def _name(session_id: str, agent_id: str) -> str:
    """A unique name for the file, even on systems that ignore case."""
    if _SESSION_ID.fullmatch(session_id) is None:
        raise WorkspaceError(
            f"`{session_id[:100]!r}` is not a valid id of a saved session: letters, digits, `.`, `_` and `-`"
        )
    return f"s-{_UPPER.sub(lambda match: f'+{match[0].lower()}', session_id)}{_mark(agent_id)}.session"


def _deletion(session_id: str, agent_id: str) -> AuditEntry:
    session = Session(session_id, agent_id)
    return AuditEntry(
        RowKind.SESSION_DELETED, agent=session.log_agent, session=session.log_name, body={"session": session_id}
    )


def _lock_name(name: str) -> str:
    return f"{name.removesuffix('.session')}.lock"


def _mark(agent_id: str) -> str:
    """A mark for the files of an agent, whose id may contain characters that a file name may not."""
    return f"@{hashlib.sha256(agent_id.encode()).hexdigest()[:16]}" if agent_id else ""


def _seal(key: bytes, body: bytes) -> bytes:
    return hmac.new(key, body, hashlib.sha256).hexdigest().encode()


FILE_NAME = "serving.sqlite"
MOST_CLIENTS = 1_000
"""The most clients of one process to list."""
_PROCESS = "process"


@dataclass(frozen=True, slots=True)  # pydantic makes these, and does not support `frozen`
class ClientSession:
    """A connected client. ``client``: its name and version in its own words, or empty.

    ``session_id``: the session that counts its calls; ``token_id``: None on standard input and output. ``denied`` of
    its ``calls`` were not allowed; ``waits``: the digests of those that wait for the operator, the oldest first.
    ``since_wall_s``: when it connected, seconds since 1970.
    """

    client: str
    agent_id: str
    session_id: str
    user_id: str | None
    token_id: str | None
    since_wall_s: float
    calls: int = 0
    denied: int = 0
    waits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServingProcess:
    """A process that serves a policy file. ``transport``: stdio or http; ``address``: its URL, with http.

    ``agents``: the agents that it serves: with stdio one, with http those of the tokens. Times in seconds since 1970.
    """

    process_id: str
    policy: str
    pid: int
    transport: str
    address: str
    agents: tuple[str, ...]
    since_wall_s: float
    clients: tuple[ClientSession, ...] = ()


_PLAIN = TypeAdapter(ServingProcess)


class ServingBook:
    """The processes of one state folder. Any thread may call the methods, which raise WorkspaceError."""

    def __init__(self, state: Path, keys: Path) -> None:
        self._folder = state
        self._rows = SealedTable(state / FILE_NAME, keys, (_PROCESS,), "serving")
        self._lifeline = Lifeline(state)

    def tell(self, process: ServingProcess) -> None:
        """Publish the data of this process, until ``close`` or its end."""
        body = _PLAIN.dump_json(process).decode()
        with self._lifeline.release_on_error(process.process_id), self._rows.changing() as change:
            alive = set(self._alive(change.rows))
            change.delete(row for row in change.rows if row not in alive)
            owner = self._lifeline.hold(process.process_id)
            change.put(SealedRow(_PROCESS, process.process_id, "", process.policy, owner, None, body))

    def list(self, policy: Path) -> tuple[ServingProcess, ...]:
        """The processes that serve a policy file now, the oldest first."""
        own = str(policy.resolve())
        rows = self._alive(row for row in self._rows.rows() if row.digest == own)
        return tuple(sorted((_PLAIN.validate_json(row.body) for row in rows), key=lambda one: one.since_wall_s))

    def close(self) -> None:
        """Withdraw this process, and close the file."""
        self._rows.close()
        self._lifeline.close()

    def _alive(self, rows: Iterable[SealedRow]) -> tuple[SealedRow, ...]:
        return tuple(row for row in rows if is_alive(self._folder, row.owner))
