"""A workspace with tools of several places: built-in ones, a program's manifest, the pin of an MCP server."""

import json
import sys
from pathlib import Path
from typing import Any

from gatewright.tools.pin import Listing, Pin, accept, write_pin

PLANT, FAR, NEW = 60, 30, 3
"""How many tools the program and the server have; the last of the server are not accepted yet."""
HELD = tuple(f"far_{number:02}" for number in range(FAR - NEW, FAR))
_POLICY = f"""gatewright = 1

[defaults]
unlisted_tools = "deny"

[agents.clerk]
description = "Keeps the books of the plant"
tools = ["file", "plant_0000", "plant_0001", "plant_0042", "far_00"]

[agents.guest]
tools = []

[[catalogs]]
id = "plant"
type = "host"
manifest = "plant-tools.json"

[[catalogs]]
id = "far"
type = "mcp"
confine = "none"
command = {json.dumps(sys.executable)}
"""


def write_catalogs(folder: Path, plant: int = PLANT) -> Path:
    """Write the policy into a new folder and return its path."""
    (folder / "catalogs").mkdir(parents=True)
    tools = [_tool(f"plant_{number:04}", ("read", "write")) for number in range(plant)]
    (folder / "plant-tools.json").write_text(json.dumps({"tools": tools}), "utf-8")
    listed = [_tool(f"far_{number:02}") for number in range(FAR)]
    pin = accept(Pin(Listing.of(listed, name="far")), [f"far_{number:02}" for number in range(FAR - NEW)])
    (folder / "catalogs" / "far.json").write_bytes(write_pin(pin))
    policy = folder / "policy.toml"
    policy.write_text(_POLICY, "utf-8")
    return policy


def _tool(name: str, operations: tuple[str, ...] = ()) -> dict[str, Any]:
    properties: dict[str, Any] = {"what": {"type": "string", "description": "What it is about."}}
    if operations:
        properties["op"] = {"type": "string", "enum": list(operations), "description": "What to do."}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"name": name, "description": f"Looks after the things of {name}.", "inputSchema": schema}
