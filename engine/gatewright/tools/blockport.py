"""What built-in tools and the gate ask of an agent's memory, blocks and archive, as a Protocol.

An agent reaches its own blocks, those that the workspace shares, and those that stand for files of its sources. What a
level denies by then, or was not granted, is refused again by whoever answers, whatever was decided before; so is what
it asks about, unless ``approved``: that somebody agreed to the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.blocks.edit import Edit
    from gatewright.policy.permission import Action
    from gatewright.policy.target import Assessment, BlockTarget, Refusal

BlockNote = Literal["pin", "unpin", "archive", "unarchive"]
"""A change of what is known about a block, not of what it holds."""

FILE_LABEL = "file:"
"""How the labels of blocks begin that stand for files."""


class BlockPort(Protocol):
    """The blocks as one agent reaches them. ``granted`` None: nothing was. Methods that do something raise ToolFailure.

    A label that no block bears and one of level none get the same words.
    """

    def find(self, label: str, *, agent_id: str, parameter: str = "") -> BlockTarget | Refusal:
        """The block of a label that is no file's, and its level; nothing is opened or made. Refused: no label."""
        ...

    def assess(self, label: str, change: Edit | BlockNote, *, agent_id: str) -> Assessment:
        """The action that a change needs, with what it would change; never raises."""
        ...

    async def edit(
        self,
        label: str,
        edit: Edit,
        *,
        agent_id: str,
        granted: Action | None,
        approved: bool = False,
        approved_change: Callable[[], str | None] | None = None,
    ) -> JsonValue:
        """Do an edit; answers label, whether anything changed, size, and whether there is something to undo or redo.

        ``approved_change`` gives the change that somebody agreed to, as ``assess`` told it: no other one is made.
        """
        ...

    async def note(
        self, label: str, note: BlockNote, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Pin, unpin, archive or unarchive; answers what is known afterwards."""
        ...

    async def info(self, label: str, *, agent_id: str) -> JsonValue:
        """What is known of a block: schema, type, permission, size, whether it is pinned."""
        ...

    async def content(self, label: str, *, agent_id: str) -> JsonValue:
        """What is shown of a block: ``content`` (text), and what is known of it."""
        ...

    async def insert_archived(self, label: str, text: str, *, agent_id: str, granted: Action | None) -> JsonValue:
        """Make an archived block with a text; answers what is known of it."""
        ...

    async def append_archived(
        self, label: str, text: str, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Add text at the end of an archived block; answers as ``edit``."""
        ...

    async def delete_archived(
        self, label: str, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Forget an archived block; answers its label."""
        ...

    async def swap(
        self, archive: str, load: str, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Archive one block and take another out of there, or neither; answers both labels."""
        ...

    async def insert_entry(
        self, content: str, metadata: Mapping[str, JsonValue] | None, *, agent_id: str, granted: Action | None
    ) -> JsonValue:
        """Keep a text in the archive; answers id and time."""
        ...

    async def search(
        self,
        query: str,
        *,
        agent_id: str,
        kinds: Sequence[str],
        limit: int,
        since: float | None = None,
        until: float | None = None,
        role: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> JsonValue:
        """``hits``, the best first: kind, score, and what is known of a text, with its content or a snippet.

        ``kinds``: of archive, block (those that were archived) and conversation. ``since``, ``until``: s since 1970.
        ``user_id``: with whom the conversations were.
        """
        ...
