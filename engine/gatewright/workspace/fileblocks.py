"""The sources' rules for the blocks of their files: level, line ends, size."""

from __future__ import annotations

from dataclasses import replace

from gatewright.base.errors import ToolFailure
from gatewright.blocks.edit import Append, Edit, Replace
from gatewright.memory.agentblocks import AgentBlocks
from gatewright.memory.blocktable import BlockRecord
from gatewright.memory.shelf import Shelf
from gatewright.policy.verdict import Permission
from gatewright.sources.filetext import encode_text, in_line_ending_of
from gatewright.sources.held import is_base_label
from gatewright.sources.manager import SourceManager


class SourceTexts:
    """The rules of ``sources`` for texts of their blocks."""

    def __init__(self, sources: SourceManager) -> None:
        self._sources = sources

    def level(self, record: BlockRecord) -> Permission:
        """Return the level of the file; none unless a running source has it."""
        return self._sources.level_of_label(record.label).permission

    def fit_line_ends(self, text: str, edit: Edit) -> Edit:
        """Give the edit the line ends of the text, like the sources themselves."""
        match edit:
            case Append(content=str() as content):
                return replace(edit, content=in_line_ending_of(text, content))
            case Replace(old=old, regex=False):
                old = old if old in text else in_line_ending_of(text, old)
                return replace(edit, old=old, new=in_line_ending_of(text, edit.new))
            case _:
                return edit

    def check(self, record: BlockRecord, text: str) -> None:
        """Raises ToolFailure for invalid text, and for more than the source takes."""
        source = self._sources.get(record.source_id)
        if source is None:
            raise ToolFailure("the source of this file is not attached any more", code="no-source")
        encode_text(text, source.source.max_file_bytes)

    def is_inner(self, record: BlockRecord) -> bool:
        """Tell whether it is the base text that a file and its block last had in common."""
        return is_base_label(record.label)


def agent_blocks(shelf: Shelf, sources: SourceManager) -> AgentBlocks:
    """Return the blocks of all agents under the levels of these sources."""
    texts = SourceTexts(sources)
    return AgentBlocks(shelf, levels=texts.level, files=texts)
