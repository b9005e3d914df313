"""The processes that serve a workspace to MCP clients, and who is connected there, as every process of it sees them.

One file in the state folder, ``serving.sqlite``; see `SealedTable` for why it cannot be forged. A process is there for
as long as it holds its `Lifeline`, however it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from gatewright.gate.lifeline import Lifeline, is_alive
from gatewright.record.sealedtable import SealedRow, SealedTable

FILE_NAME = "serving.sqlite"
MOST_CLIENTS = 1_000
"""Clients of one process that are told; of more the first."""
_PROCESS = "process"


@dataclass(frozen=True, slots=True)  # pydantic makes these, and knows no `frozen`
class ClientSession:
    """A client that is connected. ``client``: its name and version, as it gives them, or nothing.

    ``session_id``: the session that its calls count in; ``token_id``: None on standard input and output. ``denied`` of
    its ``calls`` were not allowed; ``waits``: the digests of those that wait for the operator, the oldest first.
    ``since_wall_s``: when it came, seconds since 1970.
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

    ``agents``: those that it serves, with stdio one, with http those of the tokens. Times in seconds since 1970.
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
    """The processes of one state folder. Methods may be called from any thread, and raise WorkspaceError."""

    def __init__(self, state: Path, keys: Path) -> None:
        self._folder = state
        self._rows = SealedTable(state / FILE_NAME, keys, (_PROCESS,), "serving")
        self._lifeline = Lifeline(state)

    def tell(self, process: ServingProcess) -> None:
        """Say what this process serves now, until ``close`` or its end."""
        body = _PLAIN.dump_json(process).decode()
        with self._lifeline.released_on_error(process.process_id), self._rows.changing() as change:
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
        """Serve no more, and let go of the file."""
        self._rows.close()
        self._lifeline.close()

    def _alive(self, rows: Iterable[SealedRow]) -> tuple[SealedRow, ...]:
        return tuple(row for row in rows if is_alive(self._folder, row.owner))
