"""Which tools and operations a policy may name, and which the contract knows but this release lacks. It runs none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gatewright.policy.toolname import split_name

if TYPE_CHECKING:
    from gatewright.policy.right import ToolFacts

_PLAIN = (
    "search send_message file_read file_search file_list read_file file_write file_edit file_delete vault_copyto "
    "web_fetch http_fetch web_search shell_exec memory_search memory_save memory_update memory_delete"
)

NOT_YET: Mapping[str, frozenset[str]] = {
    "block": frozenset({"load", "pin", "unpin", "archive"}),
    "block_edit": frozenset({"append", "replace", "patch", "set_field", "undo", "redo"}),
    "recall": frozenset({"insert", "append", "read", "search", "delete"}),
    "source": frozenset({"pause", "resume", "status", "list"}),
    "file": frozenset({"insert", "patch", "status", "diff", "reload"}),
    "context": frozenset({"append", "replace", "archive", "load_from_archival", "swap"}),
    **dict.fromkeys(_PLAIN.split(), frozenset[str]()),
}
"""Names of the contract's built-in tools and operations; a registered one of the same name counts as known."""


@dataclass(frozen=True, slots=True)
class KnownTools:
    """The registered tools, and the names (tool to operations) that are refused as not supported instead of unknown."""

    facts: tuple[ToolFacts, ...]
    unsupported: Mapping[str, frozenset[str]] = field(default_factory=lambda: NOT_YET, hash=False)

    @property
    def names(self) -> frozenset[str]:
        """The bare names of the registered tools."""
        return frozenset(facts.name for facts in self.facts)

    def of(self, written: str) -> tuple[ToolFacts, ...]:
        """The registered majors that ``name`` or ``name@major`` may stand for."""
        name, major = split_name(written)
        return tuple(facts for facts in self.facts if facts.name == name and major in {None, facts.major})
