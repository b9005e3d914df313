"""A valid workspace in which every free name and text is the same hostile text."""

from __future__ import annotations

import json
from pathlib import Path


def hostile_workspace(folder: Path, text: str, *, description: str | None = None, pattern: str = "ask*") -> Path:
    """Write policy and manifest; the policy's path. The files of its source, in the folder `d`, are left to the caller.

    `description`: the agent's, if it is another text; `pattern`: of the one rule of the source.
    """
    said = _in_toml(text)
    schema = {
        "type": "object",
        "description": text,
        "properties": {"op": {"enum": ["a", text], "description": text}, text: {"type": "string", "title": text}},
    }
    unnamed = {"name": text, "description": text, "inputSchema": {"type": "object"}}
    manifest = [{"name": "t", "description": text, "inputSchema": schema}, unnamed]
    (folder / "d").mkdir(parents=True)
    (folder / "m.json").write_text(json.dumps(manifest), "utf-8")
    (folder / "policy.toml").write_text(
        f"""gatewright = 1
name = {said}
description = {said}

[agents.a]
description = {said if description is None else _in_toml(description)}
tools = ["file", "t", "block"]
sources = ["d"]

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = {{ MaxCalls = 3 }}

[[agents.a.tool_rules]]
tool_name = "t"
rule_type = "RequiresConsent"
metadata = {{ note = {said} }}

[[agents.a.tool_rules]]
tool_name = "t"
rule_type = {{ ArgumentConstraints = {{ op = {{ const = {said} }} }} }}

[[sources]]
id = "d"
type = "file"
base_path = "d"
default_permission = "read_write"

[[sources.permission_rules]]
pattern = {_in_toml(pattern)}
permission = "human"
comment = {said}

[tools.file]
description = {said}

[[catalogs]]
id = "c"
type = "host"
manifest = "m.json"

[[policy.rules]]
name = "r"
effect = "deny"
tools = ["file"]
operations = ["create"]
message = {said}

[[policy.rules]]
name = "s"
effect = "ask"
tools = ["file"]
operations = ["read"]
when = {{ properties = {{ path = {{ const = {said} }} }} }}
message = {said}

[[policy.rules]]
name = "x"
effect = "deny"
tools = ["file"]
operations = ["read"]
when = {{ properties = {{ path = {{ const = "x" }} }} }}
message = {said}
""",
        "utf-8",
    )
    return folder / "policy.toml"


def _in_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
