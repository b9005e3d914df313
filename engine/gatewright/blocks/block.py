"""A block: a schema, a Loro document that obeys it, and the steps of its history; or one plain text.

Loro raises most of its errors as plain BaseException; ``guard`` wraps every call to Loro and turns them into our own
errors.

Every change goes through ``edit``, which makes it whole or not at all. One thread at a time may use a block.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

import loro

from gatewright.base.errors import DamagedBlock, GatewrightError, ToolFailure, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.difftext import diff_text
from gatewright.blocks.history import CREATE, Step, redo_target, undo_target, way
from gatewright.blocks.part import (
    CounterOp,
    Document,
    ListOp,
    MapOp,
    Op,
    check_growth,
    check_parts,
    counter_name,
    guard,
    map_name,
    passing,
)
from gatewright.blocks.plan import Hand, plan
from gatewright.blocks.schema import (
    Append,
    BlockSchema,
    CompositeSchema,
    Edit,
    FieldType,
    LogSchema,
    MapSchema,
    Overwrite,
    Redo,
    TextSchema,
    Undo,
    check_type,
    check_value,
    kind_of,
)
from gatewright.blocks.schemajson import plain, render

_BODY = "body"
_UPDATE_TIMEOUT_MS = 250


class TextBlock:
    """A text to edit in memory and store as a snapshot. One thread at a time may use it."""

    def __init__(self, document: loro.LoroDoc) -> None:
        self._document = document
        self._text = document.get_text(_BODY)

    @classmethod
    def from_text(cls, text: str) -> TextBlock:
        """A new block that holds ``text``."""
        with guard(WeMustFix("a new block cannot be made")):
            document = loro.LoroDoc()
            document.get_text(_BODY).insert(0, text)
            document.commit()
            return cls(document)

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> TextBlock:
        """Open the block of ``snapshot()``. Raises DamagedBlock for other bytes."""
        with guard(DamagedBlock()):
            document = loro.LoroDoc()
            document.import_(snapshot)
            return cls(document)

    @property
    def text(self) -> str:
        """The whole text."""
        with guard(WeMustFix("a block's text cannot be read")):
            return self._text.to_string()

    def set_text(self, text: str) -> None:
        """Set the whole text, as a small difference if one is quickly found, else all at once."""
        with guard(WeMustFix("a block refuses a new text")):
            try:
                self._text.update(text, timeout_ms=_UPDATE_TIMEOUT_MS)
            except ValueError:
                self._text.delete(0, self._text.len_unicode)
                self._text.insert(0, text)
            self._document.commit()

    def snapshot(self) -> bytes:
        """The document with its history, as bytes for ``from_snapshot``."""
        with guard(WeMustFix("a block cannot be written out")):
            self._document.commit()
            return bytes(self._document.export(loro.ExportMode.Snapshot()))


@frozen
class BlockSize:
    """The size of a block.

    ``chars``: what ``char_limit`` limits; ``items``: of lists and logs; ``history_bytes``: of a snapshot.
    """

    chars: int
    items: int
    history_bytes: int


class Block:
    """One block in memory."""

    def __init__(
        self, schema: BlockSchema, document: loro.LoroDoc, steps: Sequence[Step], *, char_limit: int | None = None
    ) -> None:
        self.schema = schema
        self.char_limit = char_limit
        self._document = Document(document, schema)
        self._steps = list(steps)

    @classmethod
    def create(
        cls,
        schema: BlockSchema,
        content: JsonValue = None,
        *,
        hand: Hand | None = None,
        char_limit: int | None = None,
    ) -> Block:
        """Make a new block; defaults fill absent fields.

        ``content``: text, object, list (entries for a log), or an object of sections.

        Raises ToolFailure, also for a required field without a value.
        """
        hand = hand or Hand()
        block = cls(schema, _new_document(), (), char_limit=char_limit)
        for section, part in block._document.parts.items():
            own, where = _content_of(schema, content, section), section or None
            if isinstance(part, MapSchema):
                own = _with_defaults(part, own)
            if own is None:
                continue
            edits: list[Edit] = [Overwrite(own, where)]
            if isinstance(part, LogSchema):
                if not isinstance(own, list):
                    raise ToolFailure("the content of a log is a list of entries", code="wrong-type")
                edits = [Append(entry, where) for entry in own]
            for edit in edits:
                block._apply(block.plan_edit(edit, Hand(hand.author, hand.at_s, may_all=True))[0])
        block._record(hand, CREATE, undoable=False)
        return block

    @classmethod
    def restore(
        cls,
        schema: BlockSchema,
        snapshot: bytes,
        updates: Iterable[bytes] = (),
        steps: Sequence[Step] = (),
        *,
        char_limit: int | None = None,
    ) -> Block:
        """Open the block of ``snapshot`` and the ``updates`` since. Raises DamagedBlock for other bytes."""
        document = _new_document()
        with guard(DamagedBlock()):
            document.import_(snapshot)
            for update in updates:
                if document.import_(update).pending:
                    raise ValueError("an update is missing")
            check_parts(Document(document, schema))
        return cls(schema, document, steps, char_limit=char_limit)

    # reading

    @property
    def value(self) -> JsonValue:
        """The whole content: text, object, list, or an object of sections."""
        with guard(WeMustFix("a block cannot be read")):
            if isinstance(self.schema, CompositeSchema):
                return {section: self._document.part(section) for section in self._document.parts}
            return self._document.part("")

    def render(self) -> str:
        """The content as the model sees it: the window of a text with a viewport, the newest entries of a log."""
        return render(self.schema, self.value)

    def plain(self) -> str:
        """Return the whole content as text for a diff: a text unchanged, other values as JSON, a composite by
        section.
        """
        return plain(self.schema, self.value)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The history, oldest step first; the oldest ones may be dropped."""
        return tuple(self._steps)

    def size(self) -> BlockSize:
        """The block's size."""
        with guard(WeMustFix("a block cannot be measured")):
            counts = [
                self._document.item_count(section)
                for section, part in self._document.parts.items()
                if not isinstance(part, TextSchema | MapSchema)
            ]
            return BlockSize(self._document.chars(), sum(counts), len(self.snapshot()))

    def undo_target(self, author: str) -> int | None:
        """The step that ``Undo`` by this author would take back."""
        return undo_target(self._steps, author)

    def redo_target(self, author: str) -> int | None:
        """The step that ``Redo`` by this author would repeat."""
        return redo_target(self._steps, author)

    def at(self, number: int) -> Block:
        """The block after a step. Raises ToolFailure (``no-step``) if the history lacks that state."""
        steps = [step for step in self._steps if step.number <= number]
        if not steps or steps[-1].number != number or not steps[-1].after:
            raise ToolFailure(f"the state after step {number} is not kept", code="no-step")
        with guard(ToolFailure(f"the state after step {number} is not kept", code="no-step")):
            document = _with_own_name(self._document.loro.fork_at(loro.Frontiers.decode(steps[-1].after)))
        return Block(self.schema, document, steps, char_limit=self.char_limit)

    # changing

    def edit(self, edit: Edit, hand: Hand) -> Step | None:
        """Do an edit and return its step, or None if it changes nothing. Raises ToolFailure without any change."""
        ops, target = self.plan_edit(edit, hand)
        if not ops and target is None:
            return None
        self._apply(ops)
        # nobody can take back an entry of a log
        return self._record(
            hand,
            kind_of(edit),
            target=target,
            undoable=not any(isinstance(op, ListOp) and op.name.startswith("entries:") for op in ops),
        )

    def plan_edit(self, edit: Edit, hand: Hand) -> tuple[tuple[Op, ...], int | None]:
        """Check an edit completely, and return its operations and the step that an undo or redo is about."""
        target = None
        try:
            if isinstance(edit, Undo | Redo):
                target, delta = way(self._document.loro, self._steps, hand.author, redo=isinstance(edit, Redo))
                ops = delta.ops()
                self._check_values(ops)
            else:
                ops = plan(self._document, self.schema, edit, hand)
            check_growth(self._document, ops, self.char_limit)
        except (GatewrightError, *passing()):
            raise
        except BaseException as error:
            raise WeMustFix("an edit cannot be planned") from error
        return ops, target

    def diff(self, edit: Edit, hand: Hand, name: str = "block") -> str:
        """Show an edit's change as a unified diff; empty if it changes nothing. Raises like ``edit``."""
        ops, _ = self.plan_edit(edit, hand)
        if not ops:
            return ""
        with guard(WeMustFix("an edit cannot be shown")):
            other = Block(self.schema, self._document.loro.fork(), ())
            other._document.apply(ops)
        return diff_text(name, self.plain(), other.plain())

    def note(self, hand: Hand, kind: str) -> Step:
        """Record a step that leaves the content alone, such as a pin."""
        return self._record(hand, kind, has_changes=False, undoable=False)

    # at rest

    @property
    def version(self) -> bytes:
        """The document's version, for ``updates_since``."""
        with guard(WeMustFix("a block's version cannot be read")):
            return self._document.loro.oplog_vv.encode()

    def updates_since(self, version: bytes) -> bytes:
        """Export the updates since a version. Raises ToolFailure (``bad-update``) for bytes that are no version."""
        with guard(ToolFailure("this is no version of a block", code="bad-update")):
            vector = loro.VersionVector.decode(version)
            return bytes(self._document.loro.export(loro.ExportMode.Updates(vector)))

    def snapshot(self) -> bytes:
        """The document with its history, as bytes for ``restore``; the caller stores the steps beside it."""
        with guard(WeMustFix("a block cannot be written out")):
            return bytes(self._document.loro.export(loro.ExportMode.Snapshot()))

    def shallow_snapshot(self) -> bytes:
        """The document without its history: a block restored from it has no earlier states and no undo."""
        with guard(WeMustFix("a block cannot be written out")):
            document = self._document.loro
            return bytes(document.export(loro.ExportMode.ShallowSnapshot(document.oplog_frontiers)))

    def take_in(self, updates: Iterable[bytes], steps: Sequence[Step]) -> None:
        """Merge the steps and updates of another holder of the same stored block. Raises DamagedBlock."""
        with guard(DamagedBlock()):
            for update in updates:
                if self._document.loro.import_(update).pending:
                    raise ValueError("an update is missing")
        self._document.forget()
        self._steps += steps

    def forget_steps(self, up_to: int) -> None:
        """Drop the oldest steps of the history."""
        self._steps = [step for step in self._steps if step.number > up_to]

    @property
    def frontier(self) -> bytes:
        """The document's state in the form of ``Step.after``."""
        try:
            return self._document.loro.state_frontiers.encode()
        except passing():
            raise
        except BaseException as error:
            raise WeMustFix("a block's state cannot be read") from error

    # inside

    def _apply(self, ops: tuple[Op, ...]) -> None:
        """Execute checked operations; if Loro stops in the middle, restore the document."""
        if not ops:
            return
        before = self._document.loro.state_frontiers
        try:
            self._document.apply(ops)
        except BaseException as error:
            with guard(WeMustFix("a block cannot be put back")):
                self._document.loro.commit()
                self._document = Document(_with_own_name(self._document.loro.fork_at(before)), self.schema)
            if isinstance(error, passing()):
                raise
            raise WeMustFix("a planned edit cannot be done") from error

    def _record(
        self, hand: Hand, kind: str, *, target: int | None = None, has_changes: bool = True, undoable: bool = True
    ) -> Step:
        number = self._steps[-1].number + 1 if self._steps else 1
        step = Step(number, hand.at_s, hand.author, kind, self.frontier, target, has_changes, undoable)
        self._steps.append(step)
        return step

    def _check_values(self, ops: tuple[Op, ...]) -> None:
        """Refuse an undo or redo that would empty a required field or overflow a counter."""
        for section, part in self._document.parts.items():
            if not isinstance(part, MapSchema):
                continue
            gone = {op.key for op in ops if isinstance(op, MapOp) and op.name == map_name(section) and op.value is None}
            if any(field.required and field.name in gone for field in part.fields):
                raise ToolFailure("this would empty a required field", code="required-field")
            for field in part.fields:
                counter = counter_name(section, field.name)
                by = sum(op.by for op in ops if isinstance(op, CounterOp) and op.name == counter)
                if by:
                    now = self._document.counter(section, field.name)
                    check_type(FieldType.COUNTER, now + by, f"field `{field.name}`")


def _content_of(schema: BlockSchema, content: JsonValue, section: str) -> JsonValue:
    """Return a section's part of the whole content. Raises ToolFailure."""
    if not isinstance(schema, CompositeSchema) or content is None:
        return content
    names = {item.name for item in schema.sections}
    if not isinstance(content, dict) or not names.issuperset(content):
        raise ToolFailure("the content of this block is an object of its sections", code="wrong-type")
    return content.get(section)


def _with_defaults(part: MapSchema, content: JsonValue) -> JsonValue:
    """Return the first fields of a map. Raises ToolFailure if a required one has no value."""
    if content is not None and not isinstance(content, dict):
        raise ToolFailure("the content is an object of fields", code="wrong-type")
    given = content or {}
    values: dict[str, JsonValue] = dict(given)
    for field in part.fields:
        if given.get(field.name) is not None:
            continue
        values.pop(field.name, None)
        if field.default is not None:
            values[field.name] = field.default
        elif field.required and field.type is not FieldType.COUNTER:
            check_value(field, None)
    return values


def _new_document() -> loro.LoroDoc:
    with guard(WeMustFix("a new document cannot be made")):
        return _with_own_name(loro.LoroDoc())


def _with_own_name(document: loro.LoroDoc) -> loro.LoroDoc:
    """Give the document a unique name for its edits, even after a fork that copied the library's random state."""
    document.peer_id = secrets.randbits(63)
    return document
