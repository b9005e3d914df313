"""What the host of an agent puts into the prompt from its memory: the core blocks, then those that are pinned."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.memory.record import BlockType

if TYPE_CHECKING:
    from gatewright.memory.blocks import BlockInfo, BlockService

_FENCE = "```"


@frozen
class ContextBlock:
    """A block in context. ``content``: what is shown of it, of a text with a viewport those lines alone."""

    info: BlockInfo
    content: str

    def to_json(self) -> dict[str, JsonValue]:
        """The block as JSON; ``chars`` counts all that it holds, ``char_limit`` null is no limit of its own."""
        record = self.info.record
        return {
            "label": record.label,
            "type": str(record.type),
            "shared": not record.owner,
            "pinned": record.pinned,
            "permission": str(self.info.permission),
            "description": record.description,
            "chars": self.info.size.chars,
            "char_limit": record.char_limit,
            "content": self.content,
        }

    @property
    def text(self) -> str:
        """The block as Markdown: heading, facts, description, and the content between fences that it cannot close."""
        record, chars = self.info.record, f"{self.info.size.chars:,}"
        size = f"{chars} of {record.char_limit:,} characters" if record.char_limit else f"{chars} characters"
        shared = "" if record.owner else ", shared"
        fence = max([_FENCE, *(found + "`" for found in re.findall("`{3,}", self.content))], key=len)
        lines = [f"### {record.label}", "", f"{record.type}, {self.info.permission}{shared}, {size}"]
        lines += [" ".join(record.description.split())] if record.description else []
        return "\n".join([*lines, "", fence, self.content, fence])


@frozen
class AgentContext:
    """The blocks that an agent has in context: the core ones, then the pinned ones, each by label."""

    agent_id: str
    blocks: tuple[ContextBlock, ...]

    @property
    def text(self) -> str:
        """All of it as Markdown; empty where there is no block."""
        return "\n\n".join(["## Memory", *(block.text for block in self.blocks)]) if self.blocks else ""

    def to_json(self) -> dict[str, JsonValue]:
        """``agent`` and ``blocks``."""
        return {"agent": self.agent_id, "blocks": [block.to_json() for block in self.blocks]}


def context_of(agent_id: str, service: BlockService, source_ids: Collection[str]) -> AgentContext:
    """What the agent has in context of blocks that it may read; those of files, where it has the source."""
    found = [record for record in service.list() if not record.source_id or record.source_id in source_ids]
    core = [record for record in found if record.type is BlockType.CORE]
    pinned = [record for record in found if record.pinned and record.type is not BlockType.CORE]
    blocks = (ContextBlock(service.info(one.label), service.rendered(one.label)) for one in (*core, *pinned))
    return AgentContext(agent_id, tuple(blocks))
