"""Texts of a call that name places on disk though no marker says so: paths of strangers' tools, and the net below them.

An argument that is a path (declared in the policy, or found and sure enough) is judged wherever it leads, a relative
one from everywhere it may start. Below that, every text of any tool that as a whole is an absolute path or a URL of a
file is judged too, so that no argument is a way around a source; but for those that its author declares as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from gatewright.arguments.disk_name import may_be_path
from gatewright.arguments.shell_judge import Named
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.regex import late_regex
from gatewright.gate import message
from gatewright.gate.call import CallState, StageResult, denied
from gatewright.policy.permission import Action
from gatewright.policy.prefix import covers
from gatewright.policy.target import NamedPlace
from gatewright.policy.tier import SafetyTier
from gatewright.tools.mark import Pointer, replaced, values_at

MAX_TEXTS = 10_000
"""Of the texts of one call that may be paths, and of the places that they may mean."""
_SHOWN = 200
_NOTED = 20
_BELOW = late_regex(r"(?!/|.*\.\.)(?:\./+)*(?:[^/\\~%$]+|\w[\w@+,. -]*(?:/[\w@+,. -]+)+)?/*", re.DOTALL)


class ProgramWord(NamedTuple):
    """A word of a shell command that begins in ``folder``; ``stays``: what it is given to runs there, too.

    ``only_reads``: it is not changed, should it be a file.
    """

    pointer: Pointer
    named: Named
    folder: str
    stays: bool
    only_reads: bool


def look_at_names(state: CallState, judged: Iterable[Pointer], words: Sequence[ProgramWord] = ()) -> StageResult | None:
    """Note in ``state`` where the texts lead that are not ``judged`` by a marker; None where none leads anywhere.

    A path that lies in a source is handed on without links and detours; conditions see every absolute one so.
    """
    sources = state.ports.sources
    paths = state.chosen.paths
    texts_only = state.plan.tool.texts
    open_ones = {n: v for n, v in state.arguments.items() if n not in texts_only} if texts_only else state.arguments
    if sources is None or not (paths or words or _may_name(open_ones)):
        return None
    given = dict(_paths(state))
    silent = {p for plan in paths if plan.action is None for p, _ in values_at(state.arguments, plan.at)}
    unknown = Action.READ if state.chosen.right.tier is SafetyTier.READ_ONLY else Action.OVERWRITE
    texts: list[tuple[Pointer, str, Action, bool, ProgramWord | None]]
    texts = [(pointer, text, action, True, None) for (pointer, action), text in given.items()]
    taken = {pointer for pointer, _ in given}.union(judged)
    texts += [(p, text, unknown, False, None) for p, text in _whole_paths(open_ones) if p not in taken]
    for word in words:  # where it leads out of the folder, a program may do anything to the file that it could be
        text = word.named.text
        only_reads = word.only_reads and _BELOW.fullmatch(text)
        texts.append((word.pointer, text, Action.READ if only_reads else unknown, True, word))
    if len(texts) > MAX_TEXTS:
        return _too_many()
    folders = _folders(state)
    named: list[NamedPlace] = []
    tool: dict[Pointer, str] = {}
    seen: dict[Pointer, str] = {}
    notes: list[str] = []
    left = MAX_TEXTS
    for pointer, text, action, is_path, word in texts:
        where = ".".join(map(str, pointer))
        places = sources.named_by(
            text,
            action,
            folders=(word.folder,) if word else folders if is_path else None,
            bases=word is None or not word.stays,
            contents=is_path or pointer not in silent,
            patterns=word is None,
            lists=word.named.lists if word else None,
        )
        if places is None:
            reason = f"`{where}` can be read as too many different paths to tell where it leads"
            return denied("unreadable-path", reason, message.PLACE)
        left -= len(places)
        if left < 0:
            return _too_many()
        held = [one for one in places if is_path or one.level is not None]
        program = word.named.program if word else ""
        named += (replace(one, argument=where, action=action, program=program) for one in held)
        first = next((one for one in held if one.start is None), None)
        if is_path and word is None and first is not None and text.startswith("/"):
            seen[pointer] = first.absolute
            if first.source_id is not None:
                tool[pointer] = first.absolute
        notes += (_note(where, text, one) for one in held if one.level is not None)
    state.named = tuple(named)
    if moved := {pointer: place for pointer, path in tool.items() if (place := sources.place(path)) != path}:
        state.moved = {**state.moved, **moved}
    state.arguments = cast("dict[str, JsonValue]", replaced(state.arguments, tool))
    state.policy_arguments = cast("dict[str, JsonValue]", replaced(state.policy_arguments, seen))
    more = f"; and {len(notes) - _NOTED} more" if len(notes) > _NOTED else ""
    return StageResult(note="; ".join(notes[:_NOTED]) + more) if notes else None


def leads_out(state: CallState, folder: str, text: str) -> bool:
    """Whether some program may take ``text`` for a path that leads out of ``folder`` once links are resolved."""
    sources, starts = state.ports.sources, _folders(state)
    if sources is None:
        return False
    held = sources.named_by(folder, Action.READ, folders=starts, contents=False)
    meant = sources.named_by(text, Action.READ, folders=starts, contents=False)
    if held is None or meant is None or (held and not meant):
        return True
    return any(
        not any(covers(one.absolute, place.absolute) for one in held if one.start == place.start) for place in meant
    )


def _too_many() -> StageResult:
    reason = f"more than {MAX_TEXTS:,} texts that may be paths, or places that they may mean"
    return denied("too-many-targets", reason, f"{reason}, in one call; make several calls")


def _folders(state: CallState) -> tuple[str, ...]:
    """Where a relative path may start: the policy's folder, and the one that the tool's server is started in."""
    folder = state.ports.folder
    if folder is None:
        return ()
    catalogs = state.agent.policy.catalogs if state.agent is not None else ()
    started = (one.cwd for one in catalogs if one.cwd and one.catalog_id == state.plan.tool.origin)
    return (folder, *(f"{folder}/{cwd}" if not cwd.startswith("/") else cwd for cwd in started))


def _paths(state: CallState) -> Iterator[tuple[tuple[Pointer, Action], str]]:
    for plan in state.chosen.paths:
        if plan.action is None:
            continue
        for pointer, value in values_at(state.arguments, plan.at):
            if isinstance(value, str):
                yield (pointer, plan.action), value
        if plan.default is not None and plan.argument not in state.arguments:
            yield ((plan.argument,), plan.action), plan.default


def _may_name(arguments: dict[str, JsonValue]) -> bool:
    """Whether some text may be a path, judged quickly: most calls hold none."""
    for name, value in arguments.items():
        if isinstance(value, str):
            if may_be_path(value):
                return True
        elif value and isinstance(value, dict | list):
            return True
        if not name.isidentifier() and may_be_path(name):
            return True
    return False


def _whole_paths(arguments: JsonValue) -> Iterator[tuple[Pointer, str]]:
    """Every text that may be a path as a whole, keys too, without recursion."""
    stack: list[tuple[Pointer, JsonValue]] = [((), arguments)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, str):
            if may_be_path(value):
                yield pointer, value
        elif isinstance(value, dict):
            for name, item in value.items():
                if may_be_path(name):
                    yield (*pointer, name, ""), name
                stack.append(((*pointer, name), item))
        elif isinstance(value, list):
            stack += (((*pointer, index), item) for index, item in enumerate(value))


def _note(where: str, text: str, place: NamedPlace) -> str:
    what = f"`{where}` `{text[:_SHOWN]}`" + (f", from `{place.start}`," if place.start is not None else "")
    if place.source_id is None:
        return f"{what} is `{place.absolute}`"
    return f"{what} is `{place.absolute}`, `{place.relative}` of `{place.source_id}`"
