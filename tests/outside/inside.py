"""A model on loopback and a coding agent that asks no hook, both in this process' room: `gatewright run` starts it.

    python -P inside.py TREE PROGRAMS HOST CALLS WORD...

CALLS is a list of tools with arguments; what the model saw of each is printed. The WORDs are the agent's.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path


def main(tree: str, programs: str, host: str, calls: str, *words: str) -> None:
    sys.path.insert(0, tree)
    os.environ["GATEWRIGHT_PROGRAMS"] = programs
    from tests.outside.agents import AGENTS, Room
    from tests.outside.models import Call, serving

    agent = replace(AGENTS[host], arguments=words)
    room = Room(Path.home(), Path.cwd(), Path.home() / "tmp")
    room.temporary.mkdir()
    agent.prepare(room)
    with serving([[Call(tool, arguments)] for tool, arguments in json.loads(calls)]) as model:
        ended = agent.run(room, model.url)
    print(json.dumps({"results": model.seen.results, "ended": str(ended)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
