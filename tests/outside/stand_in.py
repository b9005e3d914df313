"""A hook that ends in the way that the command names: `touch NAME` has it end like NAME of `ends.json` beside it.

It stands in for the gate where only the host is tried. A coding agent starts it: `python -I -S FILE FOLDER`.
"""

import json
import os
import sys
import time


def main(folder: str) -> None:
    message = json.load(sys.stdin)
    with open(os.path.join(folder, "ends.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        ends = json.load(file)
    command = _command(message)
    end = ends.get(command.rpartition(" ")[2], {})
    with open(os.path.join(folder, "messages.jsonl"), "a", encoding="utf-8") as file:  # noqa: PTH118, PTH123
        file.write(json.dumps(message) + "\n")
    time.sleep(end.get("sleep", 0))
    sys.stdout.write(end.get("stdout", ""))
    sys.stderr.write(end.get("stderr", ""))
    sys.exit(end.get("code", 0))


def _command(message: dict[str, dict[str, str]]) -> str:
    for name in ("tool_input", "toolArgs", "args"):
        if name in message:
            return message[name].get("command", "")
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
