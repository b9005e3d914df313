"""Edits as values, with ``apply`` and ``inverse``.

An edit replaces whole agents, sources, catalogs, settings of tools, or a field of the policy such as its rules. It
carries the former value, so it refuses a policy that has changed meanwhile, and can build its own inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Generic, Literal, TypeVar, get_args

from gatewright.base.errors import EditRefused
from gatewright.base.frozen import frozen
from gatewright.policy.document import Agent, Catalog, Policy, Source, ToolSettings, Written

T = TypeVar("T")
Field = Literal[
    "name",
    "description",
    "defaults",
    "default",
    "rules",
    "roots",
    "web",
    "shell",
    "endpoints",
    "compositions",
    "memory",
    "questions",
    "closed",
]
"""The fields that edits replace as a whole: all but agents, sources, catalogs and settings of tools."""
Row = TypeVar("Row", Agent, Source, Catalog)


@frozen
class _RowChange(Generic[Row]):
    """One row before and after; None means that the row does not exist on that side.

    ``at``: its place among the rows where it exists; None means the last.
    """

    before: Row | None
    after: Row | None
    at: int | None = None


@frozen
class AgentChange(_RowChange[Agent]):
    """One agent before and after."""


@frozen
class SourceChange(_RowChange[Source]):
    """One source before and after."""


@frozen
class CatalogChange(_RowChange[Catalog]):
    """One catalog before and after."""


@frozen
class FieldChange:
    """One field of the policy before and after; for ``rules`` the whole list."""

    field: Field
    before: object
    after: object


@frozen
class ToolSettingsChange:
    """``[tools.NAME]`` before and after; None means that the table does not exist on that side."""

    name: str
    before: ToolSettings | None
    after: ToolSettings | None


@frozen
class TextChange:
    """The base of the policy's text before and after, so that a typed text survives letter by letter.

    It is the last change of an edit; together with the others it leads to the policy in ``after``.
    """

    before: Written
    after: Written


Change = AgentChange | SourceChange | CatalogChange | FieldChange | ToolSettingsChange | TextChange


@frozen
class Edit:
    """A named list of changes, e.g. ``turn off `delete` of `file` for `archivist```."""

    name: str
    changes: tuple[Change, ...]

    @property
    def is_empty(self) -> bool:
        """True if the edit changes nothing."""
        return all(change.before == change.after for change in self.changes)


@frozen
class ChangeSet:
    """The ids that an edit touched; ``everything`` if it touched other parts than agents and sources."""

    agents: frozenset[str]
    sources: frozenset[str]
    everything: bool = False


def apply(policy: Policy, edit: Edit) -> Policy:
    """Apply an edit. Raises EditRefused if the policy differs from the one for which the edit was made."""
    for change in edit.changes:
        policy = _apply(policy, change)
    return policy


def inverse(edit: Edit) -> Edit:
    """The edit that undoes this one."""
    return Edit(edit.name, tuple(replace(one, before=one.after, after=one.before) for one in reversed(edit.changes)))


def text_of(edit: Edit) -> Written | None:
    """The text that somebody typed, for an edit of the text; None for other edits."""
    return next((change.after for change in edit.changes if isinstance(change, TextChange)), None)


def edit_between(name: str, before: Policy, after: Policy) -> Edit:
    """The edit that turns one policy into the other, row by row. Raises EditRefused if none can."""
    changes: list[Change] = [
        *_row_changes(AgentChange, before.agents, after.agents),
        *_row_changes(SourceChange, *({row.source_id: row for row in one.sources} for one in (before, after))),
        *_row_changes(CatalogChange, *({row.catalog_id: row for row in one.catalogs} for one in (before, after))),
    ]
    changes.extend(field_changes(before, after))
    changes.extend(
        ToolSettingsChange(tool, before.tools.get(tool), after.tools.get(tool))
        for tool in dict.fromkeys((*before.tools, *after.tools))
        if before.tools.get(tool) != after.tools.get(tool)
    )
    edit = Edit(name, tuple(changes))
    if not apply(before, edit).is_same(after):
        raise EditRefused("the policies differ in more than edits change")
    return edit


def field_changes(before: Policy, after: Policy) -> Iterator[FieldChange]:
    """The changes of the fields that differ between two policies."""
    fields: tuple[Field, ...] = get_args(Field)
    for name in fields:
        if getattr(before, name) != getattr(after, name):
            yield FieldChange(name, getattr(before, name), getattr(after, name))


def _row_changes(
    change: Callable[[Row | None, Row | None, int | None], Change], before: Mapping[str, Row], after: Mapping[str, Row]
) -> Iterator[Change]:
    """Remove rows from the last to the first, then add rows from the first, so that every place is right in its turn.

    Rows in a new order leave and return, from the first such row on.
    """
    there, then = [row_id for row_id in before if row_id in after], [row_id for row_id in after if row_id in before]
    stay = {row_id for row_id, _ in takewhile(lambda pair: pair[0] == pair[1], zip(there, then, strict=True))}
    for at, (row_id, row) in reversed(list(enumerate(before.items()))):
        if row_id not in stay:
            yield change(row, None, at)
    for at, (row_id, row) in enumerate(after.items()):
        if row_id not in stay:
            yield change(None, _same_row(before[row_id], row) if row_id in before else row, at)
        elif before[row_id] != row:
            yield change(before[row_id], row, None)


def change_set(edit: Edit) -> ChangeSet:
    """The ids that an edit touches."""
    agents = {side.agent_id for c in edit.changes if isinstance(c, AgentChange) for side in (c.before, c.after) if side}
    sources = {
        side.source_id for c in edit.changes if isinstance(c, SourceChange) for side in (c.before, c.after) if side
    }
    everything = any(not isinstance(change, AgentChange | SourceChange | TextChange) for change in edit.changes)
    return ChangeSet(frozenset(agents), frozenset(sources), everything)


def _apply(policy: Policy, change: Change) -> Policy:
    match change:
        case AgentChange(before=Agent() as before, after=Agent() as after) if before.agent_id == after.agent_id:
            held = policy.agents.get(after.agent_id)  # compare only the surviving row: the edit may be one of thousands
            _expect(held == before, f"agent `{after.agent_id}`")
            return policy.with_agent(_same_row(held or before, after))
        case AgentChange():
            agents = _replace_row(policy.agents.values(), "agent", lambda agent: agent.agent_id, change)
            return replace(policy, agents={agent.agent_id: agent for agent in agents})
        case SourceChange():
            rows = _replace_row(policy.sources, "source", lambda source: source.source_id, change)
            return replace(policy, sources=tuple(rows))
        case CatalogChange():
            rows = _replace_row(policy.catalogs, "catalog", lambda catalog: catalog.catalog_id, change)
            return replace(policy, catalogs=tuple(rows))
        case FieldChange(name, before, after):
            _expect(getattr(policy, name) == before, f"`{name}` of the policy")
            return replace(policy, **{name: after})
        case ToolSettingsChange(name, before, after):
            _expect(policy.tools.get(name) == before, f"the settings of `{name}`")
            return replace(policy, tools=_settings(policy, name, after))
        case TextChange(_, after):
            return replace(policy, written=after)


def _settings(policy: Policy, name: str, after: ToolSettings | None) -> dict[str, ToolSettings]:
    """The settings with those of one tool replaced in place, appended, or removed."""
    if after is None:
        return {held: settings for held, settings in policy.tools.items() if held != name}
    return {**policy.tools, name: after}


def _replace_row(rows: Collection[Row], what: str, id_of: Callable[[Row], str], change: _RowChange[Row]) -> list[Row]:
    before, after = change.before, change.after
    named = before or after
    key = id_of(named) if named else ""
    held = next((row for row in rows if id_of(row) == key), None)
    _expect(held == before, f"{what} `{key}`")
    rest = [row for row in rows if row is not held]
    if after is None:
        return rest
    _expect(all(id_of(row) != id_of(after) for row in rest), f"{what} `{id_of(after)}`")
    if held is None:
        rest.insert(len(rest) if change.at is None else change.at, after)
        return rest
    return [_same_row(held, after) if row is held else row for row in rows]


def _same_row(held: Row, after: Row) -> Row:
    """``after`` with the identity of the row that it replaces."""
    return after if after.identity == held.identity else replace(after, identity=held.identity)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise EditRefused(f"{what} changed since this edit was made")


def move_rows(rows: Sequence[T], indexes: Iterable[int], to: int) -> tuple[T, ...]:
    """Move some rows, in their order, so that the first of them gets the place ``to``."""
    chosen = frozenset(indexes)
    rest = [row for index, row in enumerate(rows) if index not in chosen]
    at = max(0, min(to, len(rest)))
    return (*rest[:at], *(rows[index] for index in sorted(chosen)), *rest[at:])
