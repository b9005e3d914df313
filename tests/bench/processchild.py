"""Calls of one process on a log that others may write too: `python -m tests.bench.processchild STATE KEYS SECONDS`.

It says that it is ready, waits for a line, and prints how many calls it made in that time and how many went wrong.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from gatewright.gate import AuditLog, Gate, Session, Status
from tests.bench.matrix import matrix, registry


def main(state: str, keys: str, seconds: float) -> None:
    """Make the calls."""
    truth = matrix(1, 5)
    agent_id = truth.agents[0]
    tool, operations = next(iter(truth.allowed[agent_id].items()))
    call = {"op": sorted(operations)[0], "path": "a"}
    call |= {"to": "b"} if call["op"] == "move" else {}
    call |= {"content": "b"} if call["op"] in {"write", "append"} else {}
    gate = Gate(truth.policy(), registry(truth.tools), audit=AuditLog(Path(state), Path(keys)))

    async def calls(until: float) -> tuple[int, int]:
        session, made, wrong = Session(), 0, 0
        while time.monotonic() < until:
            outcome = await gate.call(agent_id, tool, dict(call), session=session)
            made += 1
            wrong += outcome.status is not Status.ALLOWED
        return made, wrong

    asyncio.run(calls(time.monotonic() + min(0.2, seconds)))
    print("ready", flush=True)
    sys.stdin.readline()
    print(*asyncio.run(calls(time.monotonic() + seconds)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
