"""A process that makes calls over a workspace: one JSON command per line of its input, one JSON result per line back.

``{"call": TOOL, "arguments": {...}}`` asks through a broker over the workspace's state; ``{"spend": [GRANT, ...]}``
tries to use up each of these standing approvals. ``--waits-alone``: calls wait even where no operator is attached.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from gatewright.gate import ApprovalStore, PermissionBroker, Session
from gatewright.workspace import Workspace


def spent(broker: PermissionBroker, grant_ids: list[str]) -> list[bool]:
    grants = [broker.grants.get(grant_id) for grant_id in grant_ids]
    return [grant is not None and broker.grants.spend(grant) for grant in grants]


def main(folder: Path, *, waits_alone: bool) -> None:
    workspace = Workspace.open(folder, state=folder / "state", keys=folder / "keys")
    broker = PermissionBroker(ApprovalStore(folder / "state", folder / "keys"), waits_alone=waits_alone)
    session = Session("session-1")
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        if "spend" in command:
            result: object = spent(broker, command["spend"])
        else:
            given = command["call"], command["arguments"]
            outcome = asyncio.run(workspace.gate.call("archivist", *given, session=session, approver=broker))
            result = {"status": str(outcome.status), "code": outcome.code}
        print(json.dumps(result), flush=True)
    broker.close()
    workspace.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), waits_alone="--waits-alone" in sys.argv)
