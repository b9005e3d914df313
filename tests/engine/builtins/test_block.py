"""What the tools `block` and `block_edit` declare, and what they say where there are no blocks or sources.

What they do is tested through the gate, with real blocks and files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.builtins import builtin_tools
from gatewright.memory.block_store import BlockStore
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.rule import ContinueLoop
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import Ports, ToolExecutionContext
from gatewright.tools.parameter import Role
from tests.engine.sources.bench import make_bench, source_of

TOOLS = {tool.name: tool for tool in builtin_tools()}
BLOCK, EDIT = TOOLS["block"], TOOLS["block_edit"]
OVERWRITE = (Action.OVERWRITE,)


def test_operations_have_the_tiers_and_actions_of_the_contract() -> None:
    rows = {row.name: (row.tier, row.actions) for tool in (BLOCK, EDIT) for row in tool.facts().operations}

    changing = SafetyTier.SIDE_EFFECTING
    assert rows == {
        "load": (changing, (Action.READ,)),
        "pin": (changing, OVERWRITE),
        "unpin": (changing, OVERWRITE),
        "archive": (changing, OVERWRITE),
        "info": (SafetyTier.READ_ONLY, (Action.READ,)),
        "append": (changing, (Action.APPEND,)),
        "replace": (changing, OVERWRITE),
        "patch": (changing, OVERWRITE),
        "set_field": (changing, OVERWRITE),
        "undo": (changing, OVERWRITE),
        "redo": (changing, OVERWRITE),
    }


def test_patch_alone_needs_a_capability_and_neither_tool_needs_a_source() -> None:
    needing = {row.name for tool in (BLOCK, EDIT) for row in tool.facts().operations if row.capabilities}

    assert needing == {"patch"}
    assert EDIT.facts().operations[2].capabilities == {CapabilityKind.ADVANCED_EDIT}
    assert {tool.needs_source for tool in (BLOCK, EDIT)} == {False}


def test_every_operation_takes_one_label_that_the_gate_knows_as_one() -> None:
    for tool in (BLOCK, EDIT):
        for spec in tool.operations:
            roles = [parameter.role for parameter in spec.parameters if parameter.role is not Role.PLAIN]
            assert roles == ([Role.LABEL, Role.SOURCE] if spec.name == "load" else [Role.LABEL])
        assert [rule.rule_type for rule in tool.tool_rules] == [ContinueLoop()]


def test_replace_has_a_parameter_for_each_thing_it_is_told() -> None:
    properties = (EDIT.schema_for(frozenset({"replace"})) or {})["properties"]

    assert list(properties) == ["op", "label", "old", "new", "mode", "nth", "section"]
    assert properties["mode"]["enum"] == ["first", "all", "nth", "regex"]
    assert properties["mode"]["default"] == "first"


@pytest.mark.parametrize("operation", ["pin", "info", "load", "append", "undo"])
async def test_without_a_memory_the_tools_say_so(operation: str) -> None:
    tool = BLOCK if operation in {"pin", "info", "load"} else EDIT
    given = {"op": operation, "label": "x", **({"content": "y"} if operation == "append" else {})}

    with pytest.raises(ToolFailure, match="there are no blocks here"):
        await tool.execute(operation, given, ToolExecutionContext("a", "s", granted=Action.DELETE))


async def test_label_of_a_source_that_is_not_the_agents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    with BlockStore(tmp_path / "blocks.sqlite") as blocks:
        docs = make_bench(tmp_path, blocks)
        docs.start(source_of(), tmp_path)
        label = docs.manager.label_of(docs.at("a.md"))
        context = ToolExecutionContext("a", "s", source_ids=(), ports=Ports(docs.manager))

        with pytest.raises(ToolFailure, match="no source is attached"):
            await BLOCK.execute("info", {"op": "info", "label": label}, context)
