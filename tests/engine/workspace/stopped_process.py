"""A process of many conversations that call until a stop denies them; then it stays, with nothing left to do.

``FOLDER SESSIONS``: each call leaves the time at which its tool began in the file that is named after the process. A
shell and a server are started first, and one call would last for ever.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from gatewright.gate import Session
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Normalization, ResultType, Tool, operation
from gatewright.workspace import Workspace


class Beat(Tool):
    """Says when it began."""

    name = "beat"
    description = "Says when it began."
    safety_tier = SafetyTier.SIDE_EFFECTING
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @operation
    async def once(self) -> str:
        """Begin and end."""
        with (self.folder / f"{os.getpid()}.began").open("a") as file:
            file.write(f"{time.time()}\n")
        await asyncio.sleep(0)
        return "done"

    @operation
    async def ever(self) -> str:
        """Begin and never end."""
        await asyncio.Event().wait()
        return "done"


async def converse(workspace: Workspace, arguments: dict[str, str]) -> str:
    session = Session()
    while True:
        outcome = await workspace.call("clerk", "beat", arguments, session=session)
        if outcome.code != "allowed":
            return outcome.code


async def main(folder: Path, sessions: int) -> None:
    with Workspace.open(folder, tools=[Beat(folder)], trust=True) as workspace:
        shell = await workspace.call("clerk", "shell_exec", {"command": "echo begun"})
        server = await workspace.call("clerk", "add", {"a": 1, "b": 2})
        print(json.dumps({"shell": shell.code, "server": server.code}), flush=True)
        ends = [converse(workspace, {"op": "once"}) for _ in range(sessions - 1)]
        codes = await asyncio.gather(*ends, converse(workspace, {"op": "ever"}))
        print(json.dumps({"codes": sorted(codes), "ended": time.time()}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
