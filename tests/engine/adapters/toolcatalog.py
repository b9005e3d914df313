"""A workspace with one catalog of tools that are defined in a manifest, for each type that runs some."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gatewright.workspace import Workspace

KEYS: Mapping[str, str] = {
    "http": 'url = "http://127.0.0.1:9/api"\n',
    "subprocess": 'command = "python3"\nargs = ["tool.py"]\nplaces = { "./tool.py" = "read" }\n',
    "wasm": 'module = "tool.wasm"\n',
}
"""The keys of each type beside `id`, `type` and `manifest`."""
ADD: Mapping[str, Any] = {
    "name": "sum",
    "description": "Adds two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
    "run": {"path": "/sum", "query": ["a", "b"]},
}
RUNS: Mapping[str, Mapping[str, Any]] = {"http": ADD["run"], "subprocess": {"args": ["sum"]}, "wasm": {}}
"""How the tool of each type is executed."""


def write_manifest(folder: Path, tools: object) -> None:
    """Write the manifest of the catalog of `write_policy`."""
    (folder / "tools.json").write_text(json.dumps({"name": "calc", "version": "1", "tools": tools}), "utf-8")


def write_policy(folder: Path, kind: str, tools: Sequence[str] = ("sum",), *, keys: str = "", more: str = "") -> None:
    """Write a policy with the catalog `calc`, whose tools agent `a` lists."""
    own = keys or KEYS[kind]
    if kind == "http":
        more = f'capabilities = [{{ NetRead = {{ allowlist = ["*"] }} }}]\n{more}'
        own += "\n[workspace]\nweb = { allow_private = true }\n"
    if kind == "wasm" and "capabilities" not in more:
        more = f"capabilities = [{{ WasmExec = {{}} }}]\n{more}"
    (folder / "policy.toml").write_text(
        f"gatewright = 1\n\n[agents.a]\ntools = {json.dumps(list(tools))}\n{more}\n"
        f'[[catalogs]]\nid = "calc"\ntype = "{kind}"\nmanifest = "tools.json"\n{own}',
        "utf-8",
    )


def opened(folder: Path, *, trust: bool = True) -> Workspace:
    """Open the workspace, with a folder of keys beside it."""
    return Workspace.open(folder, keys=folder.parent / "keys", trust=trust)
