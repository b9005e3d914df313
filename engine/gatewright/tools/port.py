"""What built-in tools and the gate ask of sources and blocks, as Protocols. It does not know who answers.

A path that reaches a port has passed ``locate``: it is canonical and inside its base. Every method that touches the
disk checks containment again on the descriptor it opens, so that a swapped symlink between check and use gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, FileTarget, FileText, LevelDecision, Located, Refusal


class SourcePort(Protocol):
    """The sources of a workspace, as tools see them. ``allowed`` are the source ids of the calling agent."""

    def locate(self, path: str, *, source_id: str | None, allowed: Sequence[str]) -> Located | Refusal:
        """Where a model's path leads; touches metadata only."""
        ...

    def locate_label(self, label: str, *, allowed: Sequence[str]) -> Located | Refusal:
        """Where a block's label (``file:{hash8}:{relative}``) leads."""
        ...

    def find_file(
        self, path: str, *, folder: str | None, prefixes: Sequence[str] = (), parameter: str = "", writes: bool = False
    ) -> FileTarget | Refusal:
        """Where a path on disk leads, links resolved: inside a source, ``folder`` or one of ``prefixes`` (absolute).

        Protected files, and folders that hold one, are refused. Touches metadata only.
        """
        ...

    def label_of(self, at: Located) -> str:
        """The block label of a place."""
        ...

    def level(self, at: Located) -> LevelDecision:
        """The effective level of a place; protected files are none."""
        ...

    def assess_save(self, at: Located) -> Assessment:
        """Whether saving only extends the file (append) or not (overwrite), with the diff."""
        ...

    def assess_load(self, at: Located) -> Assessment:
        """Read; asks when it would throw away unsaved edits."""
        ...

    def text_of(self, at: Located) -> str | None:
        """The text of that place now (block, else disk); None where there is none, or too much to compare."""
        ...

    def assess_text(self, at: Located, new_text: str) -> Assessment:
        """The diff from the text of that place (block or disk) to ``new_text``, without an action."""
        ...

    async def read(self, at: Located) -> FileText:
        """The block's text if loaded, else the disk's. Raises ToolFailure."""
        ...

    async def list_folder(self, at: Located) -> list[JsonValue]:
        """Entries of a folder that the agent may read, sorted: name, kind, size, permission, loaded."""
        ...

    async def load(self, at: Located) -> JsonValue:
        """Read the disk into the block; answers label, size, lines."""
        ...

    async def save(self, at: Located, granted: Action) -> JsonValue:
        """Write the block to disk, atomically; refuses when the disk changed since or more than granted is needed."""
        ...

    async def append(self, at: Located, content: str) -> JsonValue:
        """Add text at the end of the block (loads it first)."""
        ...

    async def replace(self, at: Located, old: str, new: str) -> JsonValue:
        """Replace the one occurrence of ``old`` in the block (loads it first)."""
        ...

    async def create(self, at: Located, content: str) -> JsonValue:
        """Make a new file and its block; never overwrites."""
        ...

    async def delete(self, at: Located) -> JsonValue:
        """Remove a file from disk and its block; refuses folders."""
        ...

    async def block_info(self, at: Located) -> JsonValue:
        """Metadata of the block at that place. Raises ToolFailure when it is not loaded."""
        ...
