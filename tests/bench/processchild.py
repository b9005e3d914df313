"""Calls of one process on a log that others may write too.

`python -m tests.bench.processchild STATE KEYS SECONDS AT_ONCE`

It says that it is ready, waits for a line, and prints how many calls it made in that time, always so many at once, how
many went wrong, and the microseconds of processor time that each took.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from gatewright.gate import AuditLog, Gate, Session, Status
from tests.bench.matrix import matrix, registry


def main(state: str, keys: str, seconds: float, at_once: int) -> None:
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
            outcomes = await asyncio.gather(
                *(gate.call(agent_id, tool, dict(call), session=session) for _ in range(at_once))
            )
            made += at_once
            wrong += sum(outcome.status is not Status.ALLOWED for outcome in outcomes)
        return made, wrong

    asyncio.run(calls(time.monotonic() + min(0.2, seconds)))
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    made, wrong = asyncio.run(calls(time.monotonic() + seconds))
    print(made, wrong, (time.process_time() - began) * 1e6 / max(made, 1), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
