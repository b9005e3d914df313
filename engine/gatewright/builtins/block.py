"""The ``block`` tool: what is known of a block. It does not know how blocks are kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import done, place
from gatewright.policy.permission import Action
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResourceBounds, ResultType
from gatewright.tools.decorator import operation
from gatewright.tools.parameter import LabelParameter
from gatewright.tools.tool import Tool


class BlockTool(Tool):
    """Blocks by their labels."""

    name = "block"
    description = "Tells about blocks, the texts that are kept for you under a label."
    safety_tier = SafetyTier.SIDE_EFFECTING
    resource_bounds = ResourceBounds(timeout_s=15.0)
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON
    tool_rules = (ToolRule("block", ContinueLoop()),)
    needs_source = True  # the only blocks are those of files
    required_capabilities = frozenset[str]()  # an attached source implies access by this tool

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,))
    async def info(
        self,
        context: ToolExecutionContext,
        label: Annotated[str, LabelParameter(), Field(description="Label of the block.")],
    ) -> JsonValue:
        """Give what is known of a block: schema, type, permission, size, whether it is pinned."""
        sources = context.require_sources()
        at = place(sources.locate_label(label, allowed=context.source_ids))
        return done(f"block of `{at.relative}`", await sources.block_info(at))
