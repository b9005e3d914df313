"""A process that makes calls in a conversation, each of which leaves a line in a file and then kills the process.

``FOLDER WAY SESSION TIMES``: ``way`` is how the program has its conversation; ``TIMES`` 0: no call kills, and as many
are made as are allowed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from gatewright.gate import Session
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Normalization, ResultType, Tool, operation
from gatewright.workspace import Workspace

WAYS = ("hold", "session", "own object", "saved by the program")


class Ledger(Tool):
    """Pays."""

    name = "ledger"
    description = "Pays."
    safety_tier = SafetyTier.SIDE_EFFECTING
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    def __init__(self, path: Path, *, kills: bool) -> None:
        self._path = path
        self._kills = kills

    @operation
    async def pay(self) -> str:
        """Pay."""
        return self._done("pay")

    @operation
    async def refund(self) -> str:
        """Pay back."""
        return self._done("refund")

    def _done(self, what: str) -> str:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")
        if self._kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"


def opened(folder: Path, *, kills: bool = False) -> Workspace:
    tools = [Ledger(folder / "ledger.txt", kills=kills)]
    return Workspace.open(folder, tools=tools, state=folder / "state", keys=folder / "keys")


async def calls(workspace: Workspace, way: str, session_id: str, times: int, operation: str = "pay") -> list[str]:
    """The codes of so many calls, or of those until one is denied."""
    codes: list[str] = []

    async def call(session: Session) -> None:
        while len(codes) < (times or 99) and (not codes or codes[-1] == "allowed"):
            outcome = await workspace.call("a", "ledger", {"op": operation}, session=session)
            codes.append(outcome.code)

    if way == "hold":
        async with workspace.sessions.hold(session_id, agent_id="a") as session:
            await call(session)
    elif way == "session":
        await call(workspace.session("a", session_id))
    elif way == "own object":
        await call(Session(session_id, "a"))
    else:
        await call(Session.resume(Session(session_id, "a").to_saved(), agent_id="a"))
    return codes


if __name__ == "__main__":
    kills = int(sys.argv[4])
    print(asyncio.run(calls(opened(Path(sys.argv[1]), kills=bool(kills)), sys.argv[2], sys.argv[3], kills)))
