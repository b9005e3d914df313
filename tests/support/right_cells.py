"""Operations of agents, drawn from the demo and from made-up workspaces, with calls drawn for each."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from gatewright.gate import Decision
from gatewright.gate.witness import witness
from gatewright.policy.right import OperationFacts, OperationRight, ToolRight
from gatewright.policy.verdict import Permission, Verdict
from gatewright.schema.selector import KEYED_FIELD
from gatewright.workspace import Workspace
from tests.support.demo import copy_demo

_DATA = frozenset({"unknown-block", "unknown-label", "not-found", "no-place", "tool-asks"})
"""Codes of verdicts that follow from what stands there now, not from the policy."""
_OF_POLICY = frozenset({"rules", "capability", "policy", "permission", "approval"})
_KINDS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "string", "enum": ["one", "two"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "properties": {"note": {"type": "string"}}},
    {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    {},
)
_NAMES = ("query", "path", "count", "content", "file_path", "target", "labels", "mode", "url", "destination")
_VERBS = ("get", "search", "write", "delete", "move", "send")


@dataclass(frozen=True)
class Cell:
    """One operation of one agent, with what may be named in its calls."""

    workspace: Workspace
    agent_id: str
    tool: ToolRight
    facts: OperationFacts
    right: OperationRight
    paths: tuple[str, ...]
    words: tuple[str, ...]


def made_workspaces(folder: Path) -> list[Workspace]:
    """The demo, and four made-up ones."""
    draw = random.Random(20261126)
    opened = [Workspace.open(copy_demo(folder / "demo"))]
    opened += [Workspace.open(_strange(folder / f"w{number}", draw)) for number in range(4)]
    for one in opened:
        for number, level in enumerate(Permission):
            one.blocks("").create(f"shared-{number}", content="text", permission=level, author="operator")
    return opened


def _strange(folder: Path, draw: random.Random) -> Path:
    """A policy with sources of drawn levels, and tools of drawn arguments."""
    levels = [str(level) for level in Permission]
    (folder / "docs/sub").mkdir(parents=True)
    (folder / "docs/a.md").write_text("a", "utf-8")
    (folder / "docs/sub/b.md").write_text("b", "utf-8")
    rules = "".join(
        f'[[sources.permission_rules]]\npattern = "{pattern}"\npermission = "{draw.choice(levels)}"\n'
        for pattern in draw.sample(["sub/**", "a.md", "*.log"], draw.randrange(3))
    )
    tools = [_tool(number, draw) for number in range(24)]
    (folder / "m.json").write_text(json.dumps(tools), "utf-8")
    agents = ""
    for name in ("one", "two"):
        listed = [
            *draw.sample([tool["name"] for tool in tools], 18),
            "block",
            "block_edit",
            "recall@2",
            "search",
            "file",
        ]
        keys = ", ".join(f'"{tier}" = "{draw.choice(["allow", "ask"])}"' for tier in ("privileged", "side_effecting"))
        agents += f'[agents.{name}]\ntools = {json.dumps(listed)}\nsources = ["d"]\napprovals = {{ {keys} }}\n'
    (folder / "policy.toml").write_text(
        f"""gatewright = 1
{agents}
[[sources]]
id = "d"
type = "file"
base_path = "docs"
default_permission = "{draw.choice(levels)}"
{rules}
[[catalogs]]
id = "c"
type = "host"
manifest = "m.json"
trusted = true
""",
        "utf-8",
    )
    return folder / "policy.toml"


def _tool(number: int, draw: random.Random) -> dict[str, Any]:
    names = draw.sample(_NAMES, draw.randrange(4))
    schema: dict[str, Any] = {"type": "object", "properties": {name: draw.choice(_KINDS) for name in names}}
    if draw.random() < 0.6:
        schema["additionalProperties"] = draw.random() < 0.2
    if names:
        schema["required"] = names[:1]
    if draw.random() < 0.4:
        operations = draw.sample(_VERBS, 3)
        schema["properties"]["operation"] = {"type": "string", "enum": operations}
        schema["required"] = [*schema.get("required", ()), "operation"]
    tier = draw.choice(["read_only", "side_effecting", "privileged"])
    said = {"gatewright": {"safety_tier": tier}}
    return {"name": f"t{number}_{draw.choice(_VERBS)}", "description": "d", "inputSchema": schema, "_meta": said}


def cells_of(workspaces: list[Workspace]) -> list[Cell]:
    """Every operation of every agent."""
    found: list[Cell] = []
    for one in workspaces:
        policy = one.policy
        bases = [one.folder / source.base_path for source in policy.file_sources]
        files = [path for base in bases for path in (base, *base.rglob("*")) if not path.name.startswith(".")]
        paths = (*map(str, files), *(f"file://{path}" for path in files[:9]), str(bases[0] / "new.log"))
        relative = tuple(str(path.relative_to(base)) for base in bases for path in files if base in path.parents)
        labels = [one.sources.label_of(place) for path in relative if (place := _place(one, path)) is not None]
        words = (
            *relative,
            *labels,
            *(f"shared-{n}" for n in range(7)),
            "plain words",
            "https://example.org/a",
            "desk/a",
        )
        for agent_id in policy.agents:
            for tool in one.rights(agent_id).values():
                for facts, right in zip(tool.facts.operations, tool.operations, strict=True):
                    found.append(Cell(one, agent_id, tool, facts, right, paths, words))
    return found


def _place(workspace: Workspace, path: str) -> Any:
    source_id = workspace.policy.file_sources[0].source_id
    found = workspace.sources.locate(path, source_id=source_id, allowed=(source_id,))
    return found if hasattr(found, "relative") else None


def drawn_call(cell: Cell, texts: tuple[str, ...], draw: random.Random) -> dict[str, Any] | None:
    """Arguments of the cell's operation with drawn texts, options and, where it is open, one more."""
    facts = cell.tool.facts
    agent = cell.workspace.gate.snapshot().agent(cell.agent_id)
    plan = None if agent is None else agent.plan(facts.name)
    assert plan is not None
    schema = plan.tool.input_schema()
    chosen = tuple((name,) for name in cell.facts.parameters if draw.random() < 0.5)
    try:
        made = witness(schema, chosen)
    except LookupError:
        return None
    assert isinstance(made, dict)
    if facts.has_operations and facts.selection is not None:
        fields = [name for name in facts.selection.fields if name != KEYED_FIELD]
        if len(fields) != 1 or not isinstance(made.get(fields[0], ""), str):
            return None
        kept = {name: value for name, value in made.items() if name in cell.facts.parameters}
        missing = [name for name in cell.facts.required if name not in kept]
        for name in missing:
            try:
                kept[name] = witness(cast("dict[str, Any]", cell.facts.schemas[name]))
            except LookupError:
                return None
        made = {**kept, fields[0]: cell.facts.name}
        fixed = fields[0]
    else:
        fixed = ""
    drawn = {name: value if name == fixed else _drawn(value, texts, draw) for name, value in made.items()}
    return {**drawn, "more": draw.choice(texts)} if draw.random() < 0.2 else drawn


def _drawn(value: Any, texts: tuple[str, ...], draw: random.Random) -> Any:
    if isinstance(value, str):
        return draw.choice(texts) if draw.random() < 0.8 else value
    if isinstance(value, list):
        return [_drawn(one, texts, draw) for one in cast("list[Any]", value)] or [draw.choice(texts)]
    if isinstance(value, dict):
        return {name: _drawn(one, texts, draw) for name, one in cast("dict[str, Any]", value).items()}
    return value


def is_of_policy(found: Decision) -> bool:
    """True if the verdict follows from the policy, not from what stands there now or from the schema."""
    return found.verdict is Verdict.ALLOW or (found.stage in _OF_POLICY and found.code not in _DATA)
