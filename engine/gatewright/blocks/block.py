"""A block: a schema, a Loro document that holds to it, and the steps that led there; or one text alone.

Loro raises most of its errors as plain BaseException; every call to it goes through ``guarded``, which turns them into
errors of our tree.

Every change goes through ``edit``, and is done whole or not at all. Not for use from two threads at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

import loro

from gatewright.base.errors import DamagedBlock, GatewrightError, ToolFailure, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.difftext import diff_text
from gatewright.blocks.edit import Append, Edit, Overwrite, Redo, Undo, kind_of
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
    guarded,
    map_name,
    passing,
)
from gatewright.blocks.plan import Hand, plan
from gatewright.blocks.render import plain, render
from gatewright.blocks.schema import (
    BlockSchema,
    CompositeSchema,
    FieldType,
    LogSchema,
    MapSchema,
    TextSchema,
    check_type,
    check_value,
)

_BODY = "body"
_UPDATE_TIMEOUT_MS = 250


class TextBlock:
    """A text that is edited in memory and kept as a snapshot. Not safe for use from two threads at once."""

    def __init__(self, document: loro.LoroDoc) -> None:
        self._document = document
        self._text = document.get_text(_BODY)

    @classmethod
    def from_text(cls, text: str) -> TextBlock:
        """A new block that holds ``text``."""
        with guarded(WeMustFix("a new block cannot be made")):
            document = loro.LoroDoc()
            document.get_text(_BODY).insert(0, text)
            document.commit()
            return cls(document)

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> TextBlock:
        """The block of ``snapshot()``. Raises DamagedBlock for bytes that are none."""
        with guarded(DamagedBlock()):
            document = loro.LoroDoc()
            document.import_(snapshot)
            return cls(document)

    @property
    def text(self) -> str:
        """The whole text."""
        with guarded(WeMustFix("a block's text cannot be had")):
            return self._text.to_string()

    def set_text(self, text: str) -> None:
        """Make the whole text ``text``, as a small difference where one is found in time, else all at once."""
        with guarded(WeMustFix("a block refuses a new text")):
            try:
                self._text.update(text, timeout_ms=_UPDATE_TIMEOUT_MS)
            except ValueError:
                self._text.delete(0, self._text.len_unicode)
                self._text.insert(0, text)
            self._document.commit()

    def snapshot(self) -> bytes:
        """The document with its history, for ``from_snapshot``."""
        with guarded(WeMustFix("a block cannot be written out")):
            self._document.commit()
            return bytes(self._document.export(loro.ExportMode.Snapshot()))


@frozen
class BlockSize:
    """``chars``: what ``char_limit`` counts; ``items``: of lists and logs; ``history_bytes``: a snapshot's size."""

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
        """A new block. ``content``: text, object, list (of a log its entries), or an object of sections; fields have
        their defaults.

        Raises ToolFailure, also when a required field has no value.
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
                block._apply(block.planned(edit, Hand(hand.author, hand.at_s, may_all=True))[0])
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
        """The block of ``snapshot`` and the ``updates`` since. Raises DamagedBlock for bytes that are none."""
        document = _new_document()
        with guarded(DamagedBlock()):
            document.import_(snapshot)
            for update in updates:
                if document.import_(update).pending:
                    raise ValueError("an update is missing")
            check_parts(Document(document, schema))
        return cls(schema, document, steps, char_limit=char_limit)

    # reading

    @property
    def value(self) -> JsonValue:
        """All of it: text, object, list, or an object of sections."""
        with guarded(WeMustFix("a block cannot be read")):
            if isinstance(self.schema, CompositeSchema):
                return {section: self._document.part(section) for section in self._document.parts}
            return self._document.part("")

    def rendered(self) -> str:
        """What is shown to the model: of a text with a viewport the window, of a log the newest entries."""
        return render(self.schema, self.value)

    def plain(self) -> str:
        """All of it as text, for a diff: a text as it is, everything else as JSON, a composite section by section."""
        return plain(self.schema, self.value)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The history, oldest first; the oldest may no longer be kept."""
        return tuple(self._steps)

    def size(self) -> BlockSize:
        """How large it is."""
        with guarded(WeMustFix("a block cannot be measured")):
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
        """The step that ``Redo`` by this author would do again."""
        return redo_target(self._steps, author)

    def at(self, number: int) -> Block:
        """The block as it was after a step. Raises ToolFailure (``no-step``) when that is not known or kept."""
        steps = [step for step in self._steps if step.number <= number]
        if not steps or steps[-1].number != number or not steps[-1].after:
            raise ToolFailure(f"the state after step {number} is not kept", code="no-step")
        with guarded(ToolFailure(f"the state after step {number} is not kept", code="no-step")):
            document = _with_own_name(self._document.loro.fork_at(loro.Frontiers.decode(steps[-1].after)))
        return Block(self.schema, document, steps, char_limit=self.char_limit)

    # changing

    def edit(self, edit: Edit, hand: Hand) -> Step | None:
        """Do an edit; the step, or None when it changes nothing. Raises ToolFailure, and nothing is changed then."""
        ops, target = self.planned(edit, hand)
        if not ops and target is None:
            return None
        self._apply(ops)
        # entries of a log are taken back by nobody
        return self._record(
            hand,
            kind_of(edit),
            target=target,
            undoable=not any(isinstance(op, ListOp) and op.name.startswith("entries:") for op in ops),
        )

    def planned(self, edit: Edit, hand: Hand) -> tuple[tuple[Op, ...], int | None]:
        """What an edit would do, checked in every way, and the step that an undo or redo concerns."""
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
        """The change that an edit would make, as a unified diff; empty when none. Raises like ``edit``."""
        ops, _ = self.planned(edit, hand)
        if not ops:
            return ""
        with guarded(WeMustFix("an edit cannot be shown")):
            other = Block(self.schema, self._document.loro.fork(), ())
            other._document.apply(ops)
        return diff_text(name, self.plain(), other.plain())

    def note(self, hand: Hand, kind: str) -> Step:
        """Record something that did not change the content, such as that it was pinned."""
        return self._record(hand, kind, has_changes=False, undoable=False)

    # at rest

    @property
    def version(self) -> bytes:
        """What the document holds, for ``updates_since``."""
        with guarded(WeMustFix("a block's version cannot be had")):
            return self._document.loro.oplog_vv.encode()

    def updates_since(self, version: bytes) -> bytes:
        """What came since. Raises ToolFailure (``bad-update``) for bytes that are no version."""
        with guarded(ToolFailure("this is no version of a block", code="bad-update")):
            vector = loro.VersionVector.decode(version)
            return bytes(self._document.loro.export(loro.ExportMode.Updates(vector)))

    def snapshot(self) -> bytes:
        """The document with its history, for ``restore``; the steps are kept beside it."""
        with guarded(WeMustFix("a block cannot be written out")):
            return bytes(self._document.loro.export(loro.ExportMode.Snapshot()))

    def shallow_snapshot(self) -> bytes:
        """The document without its history; earlier states and undo are gone for whoever restores it."""
        with guarded(WeMustFix("a block cannot be written out")):
            document = self._document.loro
            return bytes(document.export(loro.ExportMode.ShallowSnapshot(document.oplog_frontiers)))

    def take_in(self, updates: Iterable[bytes], steps: Sequence[Step]) -> None:
        """Steps that another holder of the same stored block did, with their updates. Raises DamagedBlock."""
        with guarded(DamagedBlock()):
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
        """The state that the document is in, as ``Step.after`` holds it."""
        try:
            return self._document.loro.state_frontiers.encode()
        except passing():
            raise
        except BaseException as error:
            raise WeMustFix("a block's state cannot be had") from error

    # inside

    def _apply(self, ops: tuple[Op, ...]) -> None:
        """Do operations that were checked; if Loro stops in the middle, the document is put back as it was."""
        if not ops:
            return
        before = self._document.loro.state_frontiers
        try:
            self._document.apply(ops)
        except BaseException as error:
            with guarded(WeMustFix("a block cannot be put back")):
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
        """What an undo or redo may not do to fields: empty a required one, count beyond what a counter holds."""
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
    """What of the whole content is a section's. Raises ToolFailure."""
    if not isinstance(schema, CompositeSchema) or content is None:
        return content
    names = {item.name for item in schema.sections}
    if not isinstance(content, dict) or not names.issuperset(content):
        raise ToolFailure("the content of this block is an object of its sections", code="wrong-type")
    return content.get(section)


def _with_defaults(part: MapSchema, content: JsonValue) -> JsonValue:
    """The fields that a map begins with. Raises ToolFailure when a required one has no value."""
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
    with guarded(WeMustFix("a new document cannot be made")):
        return _with_own_name(loro.LoroDoc())


def _with_own_name(document: loro.LoroDoc) -> loro.LoroDoc:
    """The document with a name for its edits that nobody else has, also where the library's own dice were forked."""
    document.peer_id = secrets.randbits(63)
    return document
