"""Changes the agents in a text as little as possible: tables, capabilities, tool rules, order.

Values keep the author's spelling. The first table of each agent decides the order of agents. When agents change places,
the text of each, with the comments above it, moves to the place of another.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard, TypeVar, cast

from gatewright.base.amount import parse_duration, parse_size, plain_duration, plain_number
from gatewright.base.errors import RawPath
from gatewright.policy.capability import Capability, kind_of, plain_capability
from gatewright.policy.document import Agent
from gatewright.policy.rule import ToolRule
from gatewright.policyfile.editor import REMOVED, VALUES, Editor
from gatewright.policyfile.readagent import plain_agent
from gatewright.policyfile.readrule import plain_kind, plain_rule
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Item, Kind, Section, scan
from gatewright.policyfile.splice import CAPABILITIES, TOOL_RULES, Naming, Splices
from gatewright.schema.walk import as_object

Written = tuple[bool, tuple[int, int]]
"""A table's statement (True) or header, and its place."""


def in_order(text: str, agent_ids: Sequence[str]) -> str:
    """Put the agents of a text in that order, as far as they are written in the same way; the policy stays the same."""
    tree, splices = scan(text), Splices(text)
    agents = tree.find(("agents",))
    if agents is None or agents.members.keys() != set(agent_ids):
        return text
    if agents.kind is Kind.INLINE:
        whole = {name: (item.key_start, item.end) for name, item in agents.members.items()}
        for name, wanted in zip(agents.members, agent_ids, strict=True):
            splices.replace(*whole[name], text[slice(*whole[wanted])].replace("\r\n", "\n"))
        return splices.result()
    written: dict[str, list[Written]] = {}
    for section in tree.sections:
        for agent_id, found in _places_of_agents(section, splices):
            written.setdefault(agent_id, []).append(found)
    for name, wanted in zip(agents.members, agent_ids, strict=True):
        if name == wanted:
            continue
        if {statement for statement, _ in written[name]} != {statement for statement, _ in written[wanted]}:
            return text
        first, *others = written[name]
        pieces = [text[slice(*span)].replace("\r\n", "\n").removesuffix("\n") + "\n" for _, span in written[wanted]]
        splices.replace(*first[1], ("" if first[0] else "\n").join(pieces))
        for _, span in others:
            splices.remove_block(*span)
    return splices.result()


def _places_of_agents(section: Section, splices: Splices) -> Iterator[tuple[str, Written]]:
    match section.path:
        case ("agents", str(agent_id), *_):
            start = splices.comments_above(splices.line_start(section.start))
            yield agent_id, (False, (start, splices.line_end(section.end)))
        case () | ("agents",):
            for statement in section.statements:
                path = (*section.path, *statement.keys)
                if path[0] == "agents" and len(path) > 1:
                    start = splices.comments_above(splices.line_start(statement.start))
                    yield str(path[1]), (True, (start, splices.line_end(statement.item.end)))
        case _:
            return


T = TypeVar("T")


def written_value(editor: Editor, item: Item) -> object:
    """The value of an item as the text has it."""
    return tomllib.loads(f"v = {editor.source_of(item)}")["v"]


def value_like(written: object, value: object) -> object:
    """Spell ``value`` as a number if it is a duration or a size that was ``written`` as a number."""
    if isinstance(written, str) or not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    for read in (lambda: _duration_like(written, parse_duration(value)), lambda: parse_size(value)):
        with contextlib.suppress(ValueError, OverflowError):
            return read()
    return value


def _duration_like(written: object, seconds: float) -> object:
    """Spell a duration as ``written`` is: as a number, or as ``{ secs, nanos }``."""
    if isinstance(written, int | float):
        return plain_number(seconds)
    if isinstance(written, dict):
        data = {"secs": int(seconds), "nanos": round((seconds - int(seconds)) * 1e9)}
        return data if data["nanos"] < 1_000_000_000 and parse_duration(data) == seconds else plain_duration(seconds)
    return plain_duration(seconds)


def change_table(
    editor: Editor,
    path: RawPath,
    old: Mapping[str, object],
    new: Mapping[str, object],
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Turn a table from ``old`` to ``new``: lists of texts entry by entry, tables member by member.

    Members that do not change keep their spelling. ``renamed``: for each list of names, by its key, the new names by
    the old ones.
    """
    changes: dict[str, object] = {key: REMOVED for key in old if key not in new}
    for key, value in new.items():
        held, place = old.get(key), (*path, key)
        if held == value:
            continue
        item, before, after = editor.find(place), as_object(held), as_object(value)
        if is_words(held) and is_words(value):
            editor.edit_words(place, held, value, (renamed or {}).get(key))
        elif item is not None and before and after:
            change_table(editor, place, before, after)
        elif item is not None and item.kind in VALUES and (held is None or isinstance(held, str)):
            changes[key] = value_like(written_value(editor, item), value)
        else:
            changes[key] = value
    editor.set_members(path, changes)


def edit_rows(
    editor: Editor,
    path: RawPath,
    old: Sequence[T],
    new: Sequence[T],
    naming: Naming[T],
    plain: Callable[[T], Mapping[str, object]],
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Turn a list of tables from ``old`` to ``new``.

    ``renamed``: see `change_table`.
    """
    editor.edit_list(
        path,
        old,
        new,
        naming,
        plain=plain,
        blocks=lambda row: [block((*path, 0), plain(row))],
        change=lambda place, one, other: change_table(editor, place, plain(one), plain(other), renamed),
    )


def is_words(value: object) -> TypeGuard[list[str]]:
    """Tell whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value))


class AgentPatch:
    """Edits agents through one editor. ``adjacent``: write new kinds as ``{ type, value }``, as Pattern reads them.

    ``renamed``: see `change_table`.
    """

    def __init__(
        self,
        editor: Editor,
        *,
        adjacent: bool = False,
        renamed: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._editor, self._adjacent, self._renamed = editor, adjacent, renamed

    def patch(self, path: RawPath, old: Agent, new: Agent) -> None:
        """Edit the table of one agent."""
        if old == new:
            return
        before, after = plain_agent(old), plain_agent(new)
        for data in (before, after):
            data.pop("capabilities", None)
        change_table(self._editor, path, before, after, self._renamed)
        patch_capabilities(self._editor, (*path, "capabilities"), old.capabilities, new.capabilities)
        self.rules((*path, "tool_rules"), old.tool_rules, new.tool_rules)

    def rules(self, path: RawPath, old: tuple[ToolRule, ...], new: tuple[ToolRule, ...]) -> None:
        """Edit a list of tool rules."""
        self._editor.edit_list(
            path,
            old,
            new,
            TOOL_RULES,
            plain=lambda rule: plain_rule(rule, adjacent=self._adjacent),
            blocks=lambda rule: [block((*path, 0), plain_rule(rule, adjacent=self._adjacent))],
            change=self._change_rule,
        )

    def _change_rule(self, path: RawPath, old: ToolRule, new: ToolRule) -> None:
        if old.rule_type != new.rule_type and not self._change_payload((*path, "rule_type"), old, new):
            item = self._editor.find((*path, "rule_type"))
            adjacent = "type" in item.members if item is not None else self._adjacent
            self._editor.set_members(path, {"rule_type": plain_kind(new.rule_type, adjacent=adjacent)})
        before, after = ({"priority": rule.priority, **plain_rule(rule)} for rule in (old, new))
        del before["rule_type"], after["rule_type"]
        change_table(self._editor, path, before, after)

    def _change_payload(self, path: RawPath, old: ToolRule, new: ToolRule) -> bool:
        """Change only the payload, if the kind stays and the payload is a value in the text or a table with the same
        members.
        """
        item = self._editor.find(path)
        if old.kind != new.kind or item is None:
            return False
        place = (*path, "value" if "type" in item.members else new.kind)
        payload = item.members.get(str(place[-1]))
        if payload is None:
            return False
        after = new.rule_type.plain()
        held, wanted = as_object(old.rule_type.plain()), as_object(after)
        if held and wanted and held.keys() & wanted.keys() and held.keys() == payload.members.keys():
            change_table(self._editor, place, held, wanted)
            return True
        if payload.kind not in VALUES:
            return False
        written = written_value(self._editor, payload)
        if is_words(written) and is_words(after):
            kept = [name for name in written if name in after]
            self._editor.edit_words(place, written, [*kept, *(name for name in after if name not in written)])
        else:
            self._editor.set_value(payload, value_like(written, after))
        return True


Capabilities = tuple[Capability, ...]


def patch_capabilities(editor: Editor, path: RawPath, old: Capabilities, new: Capabilities) -> None:
    """Turn the list at ``path`` from ``old`` to ``new``; an entry that stays changes only inside."""
    if old == new:
        return
    item = editor.find(path)
    if item is None or len(item.elements) != len(old):
        editor.set_members(path[:-1], {str(path[-1]): list(map(plain_capability, new))})
        return
    editor.edit_list(
        path,
        old,
        new,
        CAPABILITIES,
        plain=plain_capability,
        blocks=lambda capability: [block((*path, 0), {str(kind_of(capability)): capability.plain()})],
        change=lambda place, one, other: _change(editor, place, one, other),
    )


def _change(editor: Editor, path: RawPath, old: Capability, new: Capability) -> None:
    entry, kind = editor.find(path), str(kind_of(new))
    if entry is None:
        return
    if entry.kind is Kind.TABLE or (kind_of(old) is kind_of(new) and kind in entry.members):
        if kind_of(old) is not kind_of(new):
            editor.set_members(path, {str(kind_of(old)): REMOVED, kind: new.plain()})
        else:
            change_table(editor, (*path, kind), old.plain(), new.plain())
    else:
        editor.set_value(entry, plain_capability(new))
