"""The blocks of a workspace as agents reach them through tools, each its own and the shared ones.

What it answers is plain JSON. Reading one record is done at once; whatever opens or writes a block is done in a thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.policy.permission import Action, Permission
from gatewright.policy.target import Assessment, BlockTarget, Later, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewright.base.jsonvalue import JsonValue
    from gatewright.blocks import Edit
    from gatewright.memory.blocks import BlockInfo, BlockService, Changed, FileTexts
    from gatewright.memory.record import BlockRecord
    from gatewright.memory.shelf import Shelf

Note = Literal["pin", "unpin", "archive"]


def owner_of(agent_id: str) -> str:
    """Whose blocks an agent's are."""
    return f"agent:{agent_id}"


class AgentBlocks:
    """Every agent's blocks. ``levels`` and ``files`` speak for the sources that blocks of files belong to."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        levels: Callable[[BlockRecord], Permission] | None = None,
        files: FileTexts | None = None,
    ) -> None:
        self._shelf = shelf
        self._levels = levels
        self._files = files

    # no effect

    def find(self, label: str, *, agent_id: str, parameter: str = "") -> BlockTarget | Refusal:
        """The block of a label and its level; one that no block bears is of level none, without an id."""
        from gatewright.memory.blockrule import NO_LABEL, is_label

        if not is_label(label):
            return Refusal("bad-label", f"`{parameter}` is empty, too long, or no printable text", NO_LABEL)
        found = self._service(agent_id).find(label)
        if found is None:
            return BlockTarget(parameter, label, "", Permission.NONE)
        return BlockTarget(parameter, label, found[0].block_id, found[1])

    def assess(self, label: str, change: Edit | Note, *, agent_id: str) -> Assessment:
        """The action that a change needs, and what would change, for whoever is asked."""
        from gatewright.memory.blockrule import action_of

        service = self._service(agent_id)
        if isinstance(change, str):
            return Assessment(Action.OVERWRITE, later=Later(lambda: _noted(service, label, change)))
        return Assessment(action_of(change), later=Later(lambda: service.preview(label, change, owner_of(agent_id))))

    # in a thread

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
        """Do an edit, if that is granted and the level lets it by now; what it asks about only if ``approved``."""

        def work(service: BlockService) -> JsonValue:
            author = owner_of(agent_id)
            changed = service.edit(
                label,
                edit,
                author=author,
                granted=_granted(granted),
                approved=approved,
                approved_change=approved_change,
            )
            return _after(service, changed, agent_id)

        return await self._in_thread(agent_id, work)

    async def note(
        self, label: str, note: Note, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Pin, unpin or archive, as ``edit``."""

        from gatewright.memory.blockrule import ARCHIVE, PIN

        def work(service: BlockService) -> JsonValue:
            do = service.archive if note == ARCHIVE else service.pin if note == PIN else service.unpin
            changed = do(label, author=owner_of(agent_id), granted=_granted(granted), approved=approved)
            return {**_known(service.info(label, owner_of(agent_id))), "changed": changed.step is not None}

        return await self._in_thread(agent_id, work)

    async def info(self, label: str, *, agent_id: str) -> JsonValue:
        """What is known of a block."""
        return await self._in_thread(agent_id, lambda service: _known(service.info(label, owner_of(agent_id))))

    async def content(self, label: str, *, agent_id: str) -> JsonValue:
        """What is shown of a block, and what is known of it."""

        def work(service: BlockService) -> JsonValue:
            return {**_known(service.info(label, owner_of(agent_id))), "content": service.rendered(label)}

        return await self._in_thread(agent_id, work)

    # inside

    def _service(self, agent_id: str) -> BlockService:
        from gatewright.memory.blocks import BlockService

        return BlockService(
            self._shelf.store,
            owner=owner_of(agent_id),
            levels=self._levels,
            shelf=self._shelf,
            files=self._files,
        )

    async def _in_thread(self, agent_id: str, work: Callable[[BlockService], JsonValue]) -> JsonValue:
        return await asyncio.to_thread(work, self._service(agent_id))


def _granted(granted: Action | None) -> Action:
    if granted is None:
        raise ToolFailure("nothing was granted", code="not-granted")
    return granted


def _known(info: BlockInfo) -> dict[str, JsonValue]:
    from gatewright.blocks import schema_to_json

    record = info.record
    said: dict[str, JsonValue] = {
        "label": record.label,
        "description": record.description,
        "type": str(record.type),
        "schema": schema_to_json(record.schema),
        "permission": str(info.permission),
        "pinned": record.pinned,
        "chars": info.size.chars,
        "items": info.size.items,
        "char_limit": record.char_limit,
        "can_undo": info.can_undo,
        "can_redo": info.can_redo,
    }
    return said


def _after(service: BlockService, changed: Changed, agent_id: str) -> JsonValue:
    info = service.info(changed.record.label, owner_of(agent_id))
    said = _known(info)
    kept = ("label", "chars", "items", "can_undo", "can_redo")
    return {**{key: said[key] for key in kept}, "changed": changed.step is not None}


def _noted(service: BlockService, label: str, note: Note) -> str | None:
    """What a note would change, as lines for whoever is asked. Raises ToolFailure when it cannot be done."""
    from gatewright.memory.blockrule import noted

    try:
        record = service.get(label)
    except WorkspaceError:
        return None
    after = noted(record, note, record.updated_at)
    kinds = _lines("type", str(record.type), str(after.type))
    return kinds + _lines("pinned", _word(record.pinned), _word(after.pinned))


def _lines(name: str, before: str, after: str) -> str:
    return "" if before == after else f"-{name}: {before}\n+{name}: {after}\n"


def _word(flag: bool) -> str:
    return "yes" if flag else "no"
