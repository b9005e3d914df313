"""*Who can touch this file?* of the engine: every tool that may name a file, with what the gate says to such a call."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from gatewright.policy.verdict import Action, Permission, Verdict, strictest
from gatewright.workspace import Workspace
from gatewright.workspace.replay import Touch, touches

TEXT: dict[str, Any] = {"type": "string"}
FILES = ("a.md", "sub/b.md", "key.pem", "sub/")
_ACTIONS = {"read": Action.READ, "write": Action.OVERWRITE, "delete": Action.DELETE}


def _tool(name: str, properties: dict[str, Any], tier: str = "side_effecting") -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    said = {"gatewright": {"safety_tier": tier}}
    return {"name": name, "description": "d", "inputSchema": schema, "_meta": said}


TOOLS = (
    _tool("read_text", {"path": TEXT, "size": {"type": "integer", "minimum": 3}}, "read_only"),
    _tool("write_text", {"path": TEXT, "content": TEXT}),
    _tool("remove_text", {"file_path": TEXT}),
    _tool("read_many", {"paths": {"type": "array", "items": TEXT}}, "read_only"),
    _tool("apply", {"edits": {"type": "array", "items": {"type": "object", "properties": {"path": TEXT}}}}),
    _tool("files", {"operation": {"type": "string", "enum": ["read", "delete"]}, "path": TEXT}),
    _tool("say", {"message": TEXT}),
    _tool("odd", {"thing": TEXT}),
    _tool("move_file", {"source_path": TEXT, "destination_path": TEXT}),
)
CALLS: dict[tuple[str, str], str] = {
    ("read_text", ""): '{"path": "PATH", "size": 7}',
    ("write_text", ""): '{"path": "PATH", "content": "x"}',
    ("remove_text", ""): '{"file_path": "PATH"}',
    ("read_many", ""): '{"paths": ["PATH"]}',
    ("apply", ""): '{"edits": [{"path": "PATH"}]}',
    ("files", "read"): '{"operation": "read", "path": "PATH"}',
    ("files", "delete"): '{"operation": "delete", "path": "PATH"}',
    ("odd", ""): '{"thing": "PATH"}',
}
"""A call of each operation with one path, as somebody writes it who does not know how ours are made."""


def opened(folder: Path, draw: random.Random) -> Workspace:
    """A workspace whose agent has no source, and tools of a catalog that name paths."""
    (folder / "docs/sub").mkdir(parents=True)
    for name in FILES[:3]:
        (folder / "docs" / name).write_text("x", "utf-8")
    (folder / "m.json").write_text(json.dumps(TOOLS), "utf-8")
    levels = [str(draw.choice(tuple(Permission))) for _ in range(3)]
    keys = ", ".join(f'{tier} = "{draw.choice(("allow", "ask"))}"' for tier in ("side_effecting", "privileged"))
    (folder / "policy.toml").write_text(
        f"""gatewright = 1
[agents.helper]
tools = {json.dumps([tool["name"] for tool in TOOLS])}
sources = []
approvals = {{ {keys} }}
[agents.idle]
tools = []
sources = []
[[sources]]
id = "d"
type = "file"
base_path = "docs"
default_permission = "{levels[0]}"
[[sources.permission_rules]]
pattern = "*.pem"
permission = "{levels[1]}"
[[sources.permission_rules]]
pattern = "sub/**"
permission = "{levels[2]}"
[[catalogs]]
id = "hub"
type = "host"
manifest = "m.json"
trusted = true
[tools.odd]
paths = {{ thing = "{draw.choice(list(_ACTIONS))}" }}
""",
        "utf-8",
    )
    return Workspace.open(folder / "policy.toml")


@pytest.mark.parametrize("seed", range(12))
def test_what_is_said_of_a_tool_at_a_file_is_what_the_gate_decides(tmp_path: Path, seed: int) -> None:
    workspace = opened(tmp_path, random.Random(seed))
    for path in FILES:
        found = {
            (one.tool, one.operation): one for one in touches(workspace, "helper", "d", path) if one.tool != "file"
        }
        absolute = str(tmp_path / "docs" / path.rstrip("/"))

        assert found.keys() >= CALLS.keys()
        assert ("say", "") not in found
        for (tool, operation), call in CALLS.items():
            decided = workspace.decide("helper", tool, call.replace("PATH", absolute))
            touch = found[tool, operation]
            assert (touch.verdict, touch.why) == (decided.verdict, decided.reason), (path, tool)


@pytest.mark.parametrize("seed", range(12))
def test_a_move_takes_the_file_away_or_writes_over_it_and_both_are_told(tmp_path: Path, seed: int) -> None:
    workspace = opened(tmp_path, random.Random(seed))
    found = {one.action: one for one in touches(workspace, "helper", "d", "a.md") if one.tool == "move_file"}
    path = str(tmp_path / "docs/a.md")

    assert found.keys() == {Action.DELETE, Action.OVERWRITE}
    away = workspace.decide("helper", "move_file", {"source_path": path, "destination_path": "/elsewhere/x"})
    over = workspace.decide("helper", "move_file", {"source_path": "/elsewhere/x", "destination_path": path})
    assert (found[Action.DELETE].verdict, found[Action.OVERWRITE].verdict) == (away.verdict, over.verdict)


def test_an_agent_without_tools_touches_nothing_and_a_constraint_is_kept(tmp_path: Path) -> None:
    workspace = opened(tmp_path, random.Random(0))
    policy = workspace.policy_path.read_text("utf-8")
    rule = "{ ArgumentConstraints = { path = { pattern = '^/nowhere' } } }"
    limit = f"[[agents.helper.tool_rules]]\ntool_name = 'read_text'\nrule_type = {rule}\n"
    workspace.policy_path.write_text(policy + limit, "utf-8")
    workspace = Workspace.open(workspace.policy_path)

    assert _best(touches(workspace, "idle", "d", "a.md")) is Verdict.DENY
    [read] = [one for one in touches(workspace, "helper", "d", "a.md") if one.tool == "read_text"]
    assert read.verdict is Verdict.DENY


def _best(found: tuple[Touch, ...]) -> Verdict:
    verdicts = {one.verdict for one in found}
    return next((one for one in (Verdict.ALLOW, Verdict.ASK) if one in verdicts), strictest(Verdict.DENY))
