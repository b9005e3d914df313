"""Sessions on disk: one JSON file per session in a folder, replaced whole. It does not know what a session means."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.atomicfile import write_atomically
from gatewright.base.errors import WorkspaceError
from gatewright.gate.session import Session

if TYPE_CHECKING:
    from gatewright.base.clock import Clock

FOLDER = "sessions"
MAX_BYTES = 4 * 1024 * 1024
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UPPER = re.compile(r"[A-Z]")
_ESCAPED = re.compile(r"\+([a-z])")
_FILE = re.compile(r"s-((?:[a-z0-9._-]|\+[a-z]){1,200})\.json")


class SessionStore:
    """The sessions in one folder, which comes with the first; ``clock`` is the one that the gate counts by."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self._folder = folder
        self._clock = clock

    def save(self, session: Session) -> None:
        """Write the session over what was kept of it. Raises WorkspaceError."""
        path = self._path(session.session_id)
        data = json.dumps(session.saved(self._clock), ensure_ascii=False, separators=(",", ":")).encode()
        if len(data) > MAX_BYTES:
            raise WorkspaceError(f"the session `{session.session_id}` is too large to be kept")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(path, data, mode=0o600)
        except OSError as error:
            raise WorkspaceError(f"the session `{session.session_id}` cannot be kept: {error}") from error

    def load(self, session_id: str) -> Session:
        """The session as it was saved, with a count for every call that was under way. Raises WorkspaceError."""
        path = self._path(session_id)
        try:
            data = json.loads(_content(path))
        except OSError as error:
            raise WorkspaceError(f"the session `{session_id}` cannot be read: {error}") from error
        except (ValueError, RecursionError):
            raise WorkspaceError(f"`{path}` holds no saved session: it is not JSON") from None
        try:
            session = Session.resumed(data, self._clock)
        except WorkspaceError as error:
            raise WorkspaceError(f"`{path}`: {error}") from None
        if session.session_id != session_id:
            raise WorkspaceError(f"`{path}` holds another session, `{session.session_id[:100]}`")
        return session

    def list(self) -> tuple[str, ...]:
        """The ids of the sessions that are kept, sorted. Raises WorkspaceError."""
        try:
            return tuple(sorted(self._ids()))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise WorkspaceError(f"the sessions in `{self._folder}` cannot be listed: {error}") from error

    def delete(self, session_id: str) -> bool:
        """Forget the session; whether there was one. Raises WorkspaceError."""
        try:
            self._path(session_id).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise WorkspaceError(f"the session `{session_id}` cannot be deleted: {error}") from error
        return True

    def _ids(self) -> Iterator[str]:
        for path in self._folder.iterdir():
            found = _FILE.fullmatch(path.name)
            if found is not None:
                yield _ESCAPED.sub(lambda match: match[1].upper(), found[1])

    def _path(self, session_id: str) -> Path:
        """A name for the file that no other id has, on systems that fold case too."""
        if _SESSION_ID.fullmatch(session_id) is None:
            raise WorkspaceError(
                f"`{session_id[:100]!r}` is no id of a session that can be kept: letters, digits, `.`, `_` and `-`"
            )
        return self._folder / f"s-{_UPPER.sub(lambda match: f'+{match[0].lower()}', session_id)}.json"


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise WorkspaceError(f"`{path}` holds no saved session: it is larger than {MAX_BYTES:,} bytes")
    return data
