"""Edits as values: apply one, invert one.

An edit replaces whole agents, sources, catalogs, settings of tools, or a field of the policy such as its rules; it
carries what was there before, so that it refuses to land on a policy that has moved on, and so that its inverse needs
no memory.
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
    "closed",
]
"""What of a policy is edited as one: all but its agents, sources, catalogs and settings of tools."""
Row = TypeVar("Row", Agent, Source, Catalog)


@frozen
class _RowChange(Generic[Row]):
    """One row before and after; None on a side means that it is not there.

    ``at``: where it stands among the rows on the side where it is, if not as the last one.
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
    """One field of the policy before and after; of ``rules`` all of them, since a rule has no place but in its list."""

    field: Field
    before: object
    after: object


@frozen
class ToolSettingsChange:
    """``[tools.NAME]`` before and after; None on a side means that it is not there."""

    name: str
    before: ToolSettings | None
    after: ToolSettings | None


@frozen
class TextChange:
    """What the text of the policy is an edit of, before and after: what somebody typed is kept letter by letter.

    The last of the changes of an edit: with the others the policy is what ``after`` says.
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
        """Whether it changes nothing."""
        return all(change.before == change.after for change in self.changes)


@frozen
class ChangeSet:
    """What an applied edit touched, by id; ``everything`` when it was more than agents and sources."""

    agents: frozenset[str]
    sources: frozenset[str]
    everything: bool = False


def apply(policy: Policy, edit: Edit) -> Policy:
    """The policy after the edit. Raises EditRefused when the policy is not what the edit was made for."""
    for change in edit.changes:
        policy = _apply(policy, change)
    return policy


def inverse(edit: Edit) -> Edit:
    """The edit that takes this one back."""
    return Edit(edit.name, tuple(replace(one, before=one.after, after=one.before) for one in reversed(edit.changes)))


def typed_text(edit: Edit) -> Written | None:
    """The text that was typed, where the edit is one of the text."""
    return next((change.after for change in edit.changes if isinstance(change, TextChange)), None)


def edit_between(name: str, before: Policy, after: Policy) -> Edit:
    """The edit that makes one policy the other, row by row. Raises EditRefused where no edit can."""
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
    """The changes of the fields in which two policies differ."""
    fields: tuple[Field, ...] = get_args(Field)
    for name in fields:
        if getattr(before, name) != getattr(after, name):
            yield FieldChange(name, getattr(before, name), getattr(after, name))


def _row_changes(
    change: Callable[[Row | None, Row | None, int | None], Change], before: Mapping[str, Row], after: Mapping[str, Row]
) -> Iterator[Change]:
    """From the last that goes to the last that comes, so that each place holds when its turn is there.

    What stands in another order goes and comes, from the first such row on.
    """
    there, then = [row_id for row_id in before if row_id in after], [row_id for row_id in after if row_id in before]
    stay = {row_id for row_id, _ in takewhile(lambda pair: pair[0] == pair[1], zip(there, then, strict=True))}
    for at, (row_id, row) in reversed(list(enumerate(before.items()))):
        if row_id not in stay:
            yield change(row, None, at)
    for at, (row_id, row) in enumerate(after.items()):
        if row_id not in stay:
            yield change(None, _as(before[row_id], row) if row_id in before else row, at)
        elif before[row_id] != row:
            yield change(before[row_id], row, None)


def change_set(edit: Edit) -> ChangeSet:
    """The ids that the edit touches."""
    agents = {side.agent_id for c in edit.changes if isinstance(c, AgentChange) for side in (c.before, c.after) if side}
    sources = {
        side.source_id for c in edit.changes if isinstance(c, SourceChange) for side in (c.before, c.after) if side
    }
    everything = any(not isinstance(change, AgentChange | SourceChange | TextChange) for change in edit.changes)
    return ChangeSet(frozenset(agents), frozenset(sources), everything)


def _apply(policy: Policy, change: Change) -> Policy:
    match change:
        case AgentChange(before=Agent() as before, after=Agent() as after) if before.agent_id == after.agent_id:
            held = policy.agents.get(after.agent_id)  # where it stays, no other row is looked at: an edit may be of all
            _expect(held == before, f"agent `{after.agent_id}`")
            return policy.with_agent(_as(held or before, after))
        case AgentChange():
            agents = _changed(policy.agents.values(), "agent", lambda agent: agent.agent_id, change)
            return replace(policy, agents={agent.agent_id: agent for agent in agents})
        case SourceChange():
            rows = _changed(policy.sources, "source", lambda source: source.source_id, change)
            return replace(policy, sources=tuple(rows))
        case CatalogChange():
            rows = _changed(policy.catalogs, "catalog", lambda catalog: catalog.catalog_id, change)
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
    """The settings with those of one tool replaced where they stand, added at the end, or gone."""
    if after is None:
        return {held: settings for held, settings in policy.tools.items() if held != name}
    return {**policy.tools, name: after}


def _changed(rows: Collection[Row], what: str, id_of: Callable[[Row], str], change: _RowChange[Row]) -> list[Row]:
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
    return [_as(held, after) if row is held else row for row in rows]


def _as(held: Row, after: Row) -> Row:
    """What comes of a row is that row, however it was made."""
    return after if after.identity == held.identity else replace(after, identity=held.identity)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise EditRefused(f"{what} changed since this edit was made")


def moved(rows: Sequence[T], indexes: Iterable[int], to: int) -> tuple[T, ...]:
    """``rows`` with some of them, in the order they have, taken out and put back so that the first stands at ``to``."""
    chosen = frozenset(indexes)
    rest = [row for index, row in enumerate(rows) if index not in chosen]
    at = max(0, min(to, len(rest)))
    return (*rest[:at], *(rows[index] for index in sorted(chosen)), *rest[at:])
