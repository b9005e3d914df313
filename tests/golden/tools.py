"""Tools that golden policies may name, besides those of every test world."""

from __future__ import annotations

from typing import Any

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, Normalization, ResultType
from gatewright.tools.registry import operation, tool
from gatewright.tools.tool import Tool
from tests.engine.gate.marked import marked_tools
from tests.engine.gate.world import GateTool

_KIND: dict[str, Any] = {
    "safety_tier": SafetyTier.READ_ONLY,
    "result_type": ResultType.STRING,
    "normalization": Normalization.JSON,
}


@tool(
    safety_tier=SafetyTier.READ_ONLY,
    result_type=ResultType.OBJECT,
    normalization=Normalization.JSON,
    output_schema={"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
)
async def tally(count: str) -> dict[str, JsonValue]:
    """Tell a count; what it is given becomes the result as it is.

    Args:
        count: A number, if the result is to be one.
    """
    return {"count": int(count) if count.isdigit() else count}


@tool(needs_user=True, **_KIND)
async def diary(context: ToolExecutionContext) -> str:
    """Tell whose diary it is."""
    return f"the diary of {context.user_id}"


@tool(name="quote", version="1.4.0", **_KIND)
async def quote_of_old(text: str) -> str:
    """Put a text into quotation marks.

    Args:
        text: Which.
    """
    return f"'{text}'"


@tool(name="quote", version="2.0.0", **_KIND)
async def quote_of_now(text: str) -> str:
    """Put a text into quotation marks, in the manner of today.

    Args:
        text: Which.
    """
    return f"“{text}”"


@tool(name="audit.log", determinism=Determinism.PURE, **_KIND)
async def dotted(text: str) -> str:
    """Stand under a name with a dot.

    Args:
        text: What to give back.
    """
    return text


@tool(**_KIND)
async def tell_tale(text: str) -> str:
    """Fail with words about things that an agent may not see.

    Args:
        text: The words.
    """
    raise ToolFailure(text, code="told")


class Shelf(Tool):
    """Three operations of three tiers."""

    name = "shelf"
    description = "Keeps things on a shelf."
    safety_tier = SafetyTier.SIDE_EFFECTING
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    @operation(tier=SafetyTier.READ_ONLY)
    async def peruse(self) -> str:
        """Look at what there is."""
        return "books"

    @operation
    async def shuffle(self, times: int = 1) -> str:
        """Put it into another order."""
        return f"shuffled {times}"

    @operation(tier=SafetyTier.PRIVILEGED)
    async def incinerate(self) -> str:
        """Burn it all."""
        return "ashes"


def golden_tools() -> list[Tool]:
    return [tally, diary, quote_of_old, quote_of_now, dotted, tell_tale, Shelf(), GateTool(), *marked_tools()]
