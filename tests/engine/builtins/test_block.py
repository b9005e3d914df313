"""The `block` tool over sources in memory."""

from typing import Any, cast

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.builtins import builtin_tools
from gatewright.policy.permission import Action
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.parameter import Role
from tests.support.memory_sources import MemorySources

(TOOL,) = builtin_tools()


async def test_info_tells_about_the_block_of_a_label() -> None:
    port = MemorySources({("docs", "a.md"): "text"})
    context = ToolExecutionContext("a", "s", source_ids=("docs",), sources=port)
    at = cast("Any", port.locate("a.md", source_id=None, allowed=("docs",)))
    await port.load(at)

    result = cast("Any", await TOOL.execute("info", {"op": "info", "label": port.label_of(at)}, context))

    assert result["success"] is True
    assert result["data"]["size"] == 4


async def test_label_of_a_source_that_is_not_the_agents_is_refused() -> None:
    port = MemorySources({("docs", "a.md"): "text"})
    at = cast("Any", port.locate("a.md", source_id=None, allowed=("docs",)))
    context = ToolExecutionContext("a", "s", source_ids=(), sources=port)

    with pytest.raises(ToolFailure, match="no such label"):
        await TOOL.execute("info", {"label": port.label_of(at)}, context)


async def test_block_without_any_source_says_so() -> None:
    with pytest.raises(ToolFailure, match="no file source is attached"):
        await TOOL.execute("info", {"label": "file:0:a"}, ToolExecutionContext("a", "s"))


def test_info_is_read_only_and_its_label_is_one_to_the_gate() -> None:
    (info,) = TOOL.facts().operations

    assert (info.name, info.tier, info.actions) == ("info", SafetyTier.READ_ONLY, (Action.READ,))
    assert [parameter.role for parameter in TOOL.parameters("info")] == [Role.LABEL]
    assert TOOL.needs_source
