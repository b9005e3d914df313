"""Calls tools whose results depend on nothing but their workspace, and prints the hash of each result.

Run as a program: ``python -m tests.engine.gate.hashing_process FOLDER`` with a new folder.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from gatewright import Workspace, tool
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Determinism, ResultType

NAMES = ("zebra", "ähre", "Ärger", "a", "A", "İstanbul", "\U0001f41d", "\ufb03", "z\u0301", "10", "9")
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("unsorted", {}),
    ("numbers", {}),
    ("loud", {"text": "straße und İstanbul"}),
    ("pixels", {}),
    ("pieces", {}),
    ("file_read", {"path": "shared/a.txt"}),
    ("file_list", {"path": "shared"}),
    ("file_search", {"query": "line"}),
    ("file", {"op": "read", "path": "a.md"}),
    ("file", {"op": "list", "path": "."}),
    ("both", {}),
)
POLICY = """gatewright = 1

[agents.a]
tools = ["unsorted", "numbers", "loud", "pixels", "pieces", "file_read", "file_list", "file_search", "file", "both"]
capabilities = [{ FsRead = { prefixes = ["shared"] } }]

[workspace]
roots = { shared = "shared" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

[[compositions]]
name = "both"
description = "Two results as one."
steps = [
  { tool = "file", arguments = { op = "read", path = "a.md" } },
  { tool = "loud", arguments = { text = "$steps.0.data.content" } },
]
"""


def deterministic(**more: Any) -> Any:
    """Declares a tool whose results depend on its workspace alone."""
    return tool(safety_tier=SafetyTier.READ_ONLY, determinism=Determinism.DETERMINISTIC, **more)


@deterministic(result_type=ResultType.OBJECT)
async def unsorted() -> dict[str, Any]:
    """Give keys in the order of a set, which is another in each process."""
    return {name: {inner: [name, inner] for inner in set(NAMES)} for name in set(NAMES)}


@deterministic(result_type=ResultType.ANY)
async def numbers() -> list[JsonValue]:
    """Give numbers of every kind."""
    return [0.1 + 0.2, 1e22, 1e-7, -0.0, 1.0, 2**53 + 1, -1, 1.5e300, True, None]


def upper(result: JsonValue | bytes) -> bytes:
    """Give a text in capital letters."""
    return str(result).upper().encode()


@deterministic(normalization=upper)
async def loud(text: str) -> str:
    """Give a text that a function normalises."""
    return text


@deterministic()
async def pixels() -> bytes:
    """Give bytes."""
    return bytes(range(256))


@deterministic(result_type=ResultType.ARRAY)
async def pieces() -> list[str]:
    """Give texts that look alike."""
    return sorted(NAMES)


def hashes(folder: Path) -> dict[str, str]:
    """The hash of each result, by the call."""
    for name, text in {
        "shared/a.txt": "first line\r\nsecond line\n",
        "shared/b.txt": "line",
        "docs/a.md": "one\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    tools = (unsorted, numbers, loud, pixels, pieces)
    with Workspace.open(folder, keys=folder.parent / "keys", tools=tools) as workspace:
        found: dict[str, str] = {}
        for name, arguments in CALLS:
            outcome = asyncio.run(workspace.call("a", name, arguments))
            assert outcome.status == "allowed", (name, outcome.detail, outcome.output)
            found[" ".join((name, *map(str, arguments.values())))] = outcome.output_hash or ""
        return found


if __name__ == "__main__":
    print(json.dumps(hashes(Path(sys.argv[1]))))
