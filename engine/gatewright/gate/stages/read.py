"""Stages that read a call: its JSON, its tool, its operations; and texts in it that name places on disk.

It has more than 450 lines because every way in which a text may name a place ends in one list of places.

* **parse**: the model sent one JSON object within the limits; blank counts as an empty one.
* **lookup**: nobody stopped this agent, and it can see this tool. Unknown and hidden tools get the same words.
* **operation**: this agent can see every operation that the arguments name, exactly as written. Unknown and hidden ones
get the same words; the operator reads which layer hid it. A call that names several obeys the rules on each of them;
one that names none (an empty batch) those on all shown ones.

An argument that is a path (by the policy, or by a sure enough discovery) is judged at every place that it may lead to,
a relative one from every folder where it may start. Beyond that, every text of any tool that is wholly an absolute path
or a URL of a file is judged too, so that no argument is a way around a source; except texts that the author declares as
such.

A call must bring a user if its tool works for one, and no mark of a removed secret if it writes: a model that saw
`[REDACTED]` and wrote it back would destroy the secret. A mark that the text had before is not the model's fault, so
only the model's own input counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from os.path import lexists
from typing import NamedTuple, cast

from gatewright.arguments.path import PathRefused, may_be_path, paths_from
from gatewright.arguments.shell_judge import Named
from gatewright.base.errors import JsonRefused, ToolFailure
from gatewright.base.jsonvalue import JsonValue, is_text
from gatewright.base.late import late_regex
from gatewright.compile.operation import uses_of
from gatewright.compile.rule_test import Finding
from gatewright.gate.breach import KEY, OperationNotAllowed, to_json
from gatewright.gate.call import CallState, Stage, StageResult, deny, read_arguments
from gatewright.gate.decision import Message
from gatewright.gate.scope import confinement_words
from gatewright.gate.scrub import MARKER, holds_marker
from gatewright.gate.stop import CODE, Stop
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import Confine
from gatewright.policy.target import NamedPlace
from gatewright.policy.verdict import Action, SafetyTier, Verdict, covers
from gatewright.schema.operation import EACH, EACH_MEMBER, Missing, Steps, holds_batch, path_text, steps_of, values_at
from gatewright.tools.declaration import SideEffect
from gatewright.tools.parameter import NamedPath, Pointer, replace_texts
from gatewright.tools.parameter import values_at as values_below

_ONE_OBJECT = StageResult(note="one JSON object")


def _parse(state: CallState) -> StageResult:
    """Require one JSON object within the limits; blank counts as an empty one."""
    try:
        state.arguments = read_arguments(state.raw)
    except JsonRefused as refused:
        model = f"invalid arguments: {refused}; send one JSON object"
        return deny(refused.code, str(refused), model)
    return _ONE_OBJECT


PARSE = Stage("parse", _parse)


_NAME_CHARS = 80
_SHOWN_WORDS = "shown to this agent"
_IS_SHOWN = StageResult(note=_SHOWN_WORDS)


def stop_of(state: CallState) -> Stop | None:
    """The stop that the call meets now: of all agents, of its own, or of a caller of that."""
    stops = state.services.stops
    if stops is None or (time.monotonic() < stops.until_s and not lexists(stops.place)):
        return None
    whose = (state.agent_id, *(caller.agent_id for caller in state.callers))
    return next((stop for one in whose if (stop := stops.find(one)) is not None), None)


def _look_up(state: CallState) -> StageResult:
    """Require an agent that is not stopped, and a tool that it can see. Unknown and hidden tools get the same words."""
    stop = stop_of(state)
    if stop is not None:
        return deny(CODE, str(stop), Message.STOPPED)
    if state.agent is None:
        return deny("unknown-agent", f"no agent `{_printable(state.agent_id)}` in the policy", Message.NO_SUCH_TOOL)
    if state.user_id is not None and not is_text(state.user_id):
        return deny("bad-user", "the user id contains half of a surrogate pair", Message.NO_SUCH_TOOL)
    plan = state.agent.planned.get(state.tool_name) or state.agent.plan(state.tool_name)
    absent = state.services.absent.get(state.tool_name) if plan is None else None
    if absent is not None:
        return deny("not-available", absent, Message.NO_SUCH_TOOL)
    if plan is None:
        return deny("unknown-tool", f"no tool `{_printable(state.tool_name)}`", Message.NO_SUCH_TOOL)
    if plan.closed is not None:
        return StageResult((replace(plan.closed, model=Message.NO_SUCH_TOOL),))
    state.tool = state.plan = plan
    agent = state.agent
    words = agent.confinement.get(state.tool_name)
    if words is None:
        words = confinement_words(agent.policy, agent.agent, plan.tool.name, plan.tool.origin)
        agent.confinement[state.tool_name] = words
    if plan.observation is not None and plan.observation.enforced.closed is not None:
        return StageResult((replace(plan.observation.enforced.closed, noted=True),), words)
    return StageResult(note=f"{_SHOWN_WORDS}; {words}") if words else _IS_SHOWN


def _printable(name: str) -> str:
    return name[:_NAME_CHARS].encode("utf-8", "backslashreplace").decode()


LOOKUP = Stage("lookup", _look_up)


def _find_operation(state: CallState) -> StageResult:
    """Require that this agent can see every operation that the arguments name, exactly as written."""
    found, observation = _find(state), state.plan.observation
    if observation is None or found.findings or observation.enforced.closed is not None:
        return found
    kept = state.plan, state.chosen, state.uses
    state.plan = observation.enforced
    hidden = _find(state).findings
    state.plan, state.chosen, state.uses = kept
    state.operation = state.chosen
    return StageResult(tuple(replace(finding, noted=True) for finding in hidden), found.note)


def _find(state: CallState) -> StageResult:
    plan = state.plan
    called = plan.tool.operations_of(state.arguments)
    if called is None:
        found = plan.tool.operation_set
        is_fit = plan.shape is not None and plan.shape.checker.is_valid(state.arguments)
        if plan.hidden or found is None or not is_fit:
            return _unreadable(state)
        called = found.of(state.arguments, unreadable=True)  # any of them may be meant, and none is hidden
    if called is None:
        return _unreadable(state)
    if len(called) == 1:
        operation = plan.operations.get(called[0])
        if operation is not None:
            state.operation = state.chosen = operation
            return _IS_SHOWN
    return _several(state, called)


def _several(state: CallState, called: tuple[str, ...]) -> StageResult:
    """Require that the agent can see each operation of a batch."""
    plan = state.plan
    wrong = next((name for name in called if name not in plan.operations), None)
    if wrong is not None:
        return _refuse_operation(state, wrong)
    names = frozenset(called) or frozenset(plan.operations)
    state.operation = state.chosen = plan.batches.of(names)
    state.uses = uses_of(plan.tool, called)
    return StageResult(note=f"all {len(called)} {_SHOWN_WORDS}" if called else "names none, so counts as any")


def _refuse_operation(state: CallState, name: str) -> StageResult:
    plan, found = state.plan, state.plan.tool.operation_set
    if found is not None and name not in (found.of(state.arguments, left_out=False) or ()):
        return _missing(state)
    hidden, words = plan.hidden.get(name), _words(state, name)
    if hidden is not None:
        broken = OperationNotAllowed(plan.tool.name, name, tuple(sorted(plan.operations)))
        return StageResult((replace(hidden, model=words, facts={KEY: to_json(broken)}),))
    return deny("operation-unknown", f"`{plan.tool.name}` has no operation `{name[:_NAME_CHARS]}`", words)


def _unreadable(state: CallState) -> StageResult:
    plan, field = state.plan, state.plan.tool.operation_field
    given = state.arguments.get(next(iter(steps_of(field)), field), state.arguments.get(field))
    if given is None:
        return _missing(state)
    return deny("operation-unknown", f"`{field}` does not name an operation", plan.unknown_operation)


def _missing(state: CallState) -> StageResult:
    """Ask for the missing field without the name of its default operation, which may be hidden."""
    words = _words(state, None)
    reason = f"the call names no operation of `{state.plan.tool.name}`; {words}"
    return deny("operation-missing", reason, words)


def _words(state: CallState, name: str | None) -> str:
    """The list of operations, with the place that has ``name`` instead of one; None means a missing operation."""
    plan = state.plan
    field = f"`{plan.tool.operation_field}`"
    place = f"`{_place(state, name) or plan.tool.operation_field}`"
    return plan.unknown_operation.replace(field, place if name is not None else f"{place} is missing: it", 1)


def _place(state: CallState, name: str | None) -> str | None:
    """The first place of the operation field with ``name``; in a batch, that of the first element that has it."""
    tool, arguments = state.plan.tool, state.arguments
    places = (steps_of(tool.operation_field),) if tool.operation_set is None else tool.operation_set.places
    for steps in places:
        for value in values_at(arguments, steps):
            if value == name or (name is None and isinstance(value, Missing)):
                return next(iter(_pointers(arguments, steps, name)), None) if holds_batch(steps) else path_text(steps)
    return None


def _pointers(value: JsonValue, steps: Steps, name: str | None) -> Iterable[str]:
    """The places of the text below ``value``; None means those without a value."""
    if not steps:
        if value == name:
            yield ""
        return
    step, rest = steps[0], steps[1:]
    if step == EACH:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from (f"/{index}{below}" for below in _pointers(item, rest, name))
    elif step == EACH_MEMBER:
        for item in value.values() if isinstance(value, dict) else ():  # its key is the model's own text
            yield from (f"/*{below}" for below in _pointers(item, rest, name))
    elif isinstance(value, dict):
        yield from (f"/{step}{below}" for below in _pointers(value.get(step), rest, name))


OPERATION = Stage("operation", _find_operation)


_WRITING = frozenset({Action.APPEND, Action.OVERWRITE})


def unmet(state: CallState) -> Finding | None:
    """The denial of a call that lacks a user or contains a mark of a removed secret; None for a good call."""
    tool, chosen = state.plan.tool, state.chosen
    if tool.needs_user and not state.user_id:
        reason = f"`{state.tool_name}` works for one user and the call has none: set the agent's `user_id`, or pass one"
        return Finding(Verdict.DENY, "no-user", reason, model=Message.NO_USER)
    for one in chosen.parts or (chosen,):
        if one.actions:  # otherwise the effects of its tool decide
            writes = not _WRITING.isdisjoint(one.actions)
        else:
            writes = CapabilityKind.FS_WRITE in one.capabilities or SideEffect.DB_WRITE in tool.side_effects
        if writes:
            if not holds_marker(state.arguments):
                return None  # one look is enough for a batch of a thousand
            reason = f"the arguments contain `{MARKER}`, which stands for something hidden from the model"
            return Finding(Verdict.DENY, "redaction-marker", reason, model=Message.MARKED)
    return None


MAX_TEXTS = 10_000
"""The most texts of one call that may be paths, and the most places that they may mean."""
_TEXT_CHARS = 200
_NOTED = 20
_BELOW = late_regex(r"(?!/|.*\.\.)(?:\./+)*(?:[^/\\~%$]+|\w[\w@+,. -]*(?:/[\w@+,. -]+)+)?/*", re.DOTALL)


class ProgramWord(NamedTuple):
    """A word of a shell command that starts in ``folder``; ``stays``: the program that gets it runs there too.

    ``only_reads``: the command does not change it if it is a file.
    """

    pointer: Pointer
    named: Named
    folder: str
    stays: bool
    only_reads: bool


class _Led(NamedTuple):
    """The places that texts lead to, the paths for the tool and for conditions, and notes."""

    named: list[NamedPlace]
    tool: dict[Pointer, str]
    seen: dict[Pointer, str]
    notes: list[str]


def look_at_names(
    state: CallState,
    judged: Iterable[Pointer],
    words: Sequence[ProgramWord] = (),
    aimed: Iterable[NamedPath] = (),
) -> StageResult | None:
    """Find where texts lead that no marker has ``judged``, and store that in ``state``; None if nowhere.

    A path in a source is passed on without links and detours; conditions see every absolute path in that form.
    ``aimed``: paths of a tool that its caller runs, besides those in its arguments.
    """
    sources, paths = state.ports.sources, state.chosen.paths
    texts_only = state.plan.tool.texts
    named: list[NamedPlace] = []
    tool: dict[Pointer, str] = {}
    seen: dict[Pointer, str] = {}
    notes: list[str] = []
    if state.plan.tool.in_folder:
        led = _follow(state, aimed)
        if isinstance(led, StageResult):
            return led
        paths, (named, tool, seen, notes) = (), led
    if sources is None or not (paths or words or named or _may_name(state.arguments, texts_only)):
        return None
    open_ones = {n: v for n, v in state.arguments.items() if n not in texts_only} if texts_only else state.arguments
    given = dict(_paths(state)) if paths else {}
    silent = {p for plan in paths if plan.action is None for p, _ in values_below(state.arguments, plan.at)}
    unknown = Action.READ if state.chosen.right.tier is SafetyTier.READ_ONLY else Action.OVERWRITE
    texts: list[tuple[Pointer, str, Action, bool, ProgramWord | None]]
    texts = [(pointer, text, action, True, None) for (pointer, action), text in given.items()]
    taken = {pointer for pointer, _ in given}.union(judged, tool)
    texts += [(p, text, unknown, False, None) for p, text in _whole_paths(open_ones) if p not in taken]
    for word in words:  # a word that leads out of the folder may name a file that a program does anything to
        text = word.named.text
        only_reads = word.only_reads and _BELOW.fullmatch(text)
        texts.append((word.pointer, text, Action.READ if only_reads else unknown, True, word))
    if len(texts) > MAX_TEXTS:
        return _too_many()
    folders = _folders(state)
    agent = state.agent
    confined = agent is not None and state.plan.tool.in_folder and agent.policy.shell.confine is Confine.POLICY
    left = MAX_TEXTS
    for pointer, text, action, is_path, word in texts:
        where = ".".join(map(str, pointer))
        places = sources.places_named(
            text,
            action,
            folders=(word.folder,) if word else folders if is_path else None,
            bases=word is None or not word.stays,
            contents=is_path or pointer not in silent,
            patterns=word is None,
            lists=word.named.lists if word else None,
            confined=confined and word is not None,
        )
        if places is None:
            reason = f"`{where}` may mean too many different paths"
            return deny("unreadable-path", reason, Message.PLACE)
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
    state.arguments = cast("dict[str, JsonValue]", replace_texts(state.arguments, tool))
    state.policy_arguments = cast("dict[str, JsonValue]", replace_texts(state.policy_arguments, seen))
    more = f"; and {len(notes) - _NOTED} more" if len(notes) > _NOTED else ""
    return StageResult(note="; ".join(notes[:_NOTED]) + more) if notes else None


def _follow(state: CallState, aimed: Iterable[NamedPath]) -> _Led | StageResult:
    """Follow the paths of a tool that its caller runs from the folder where that works; a denial if one cannot be."""
    sources, start, led = state.ports.sources, start_of(state), _Led([], {}, {}, [])
    if sources is None or start is None:
        return deny("no-folder", "the folder where the calling program works is unknown", Message.PLACE)
    paths = [NamedPath(pointer, text, action) for (pointer, action), text in _paths(state)]
    endings = state.plan.tool.endings_in(state.arguments)
    try:
        paths += (*aimed, *state.plan.tool.paths_in(state.arguments))
    except ToolFailure as failure:
        return deny(failure.code, str(failure), str(failure))
    if len(paths) > MAX_TEXTS:
        return _too_many()
    for pointer, text, action, contents in paths:
        where, read = ".".join(map(str, pointer)), paths_from(start, text)
        if isinstance(read, PathRefused):
            return deny(read.code, f"`{where}`: {read.reason}", read.hint)
        places = sources.places_at(read, action, contents=contents, endings=endings)
        if not places:
            return deny("unresolvable", f"`{where}` leads nowhere that could be judged", Message.PLACE)
        is_new = action is Action.OVERWRITE and not any(lexists(sources.place(one.absolute)) for one in places)
        does = Action.APPEND if is_new else action
        led.named.extend(replace(one, argument=where, action=does, needs_grant=True) for one in places)
        for first in places[:1]:
            led.tool[pointer] = first.absolute
            led.seen[pointer] = first.absolute if first.source_id is None else first.relative
        led.notes.extend(_note(where, text, one) for one in places)
    return led


def start_of(state: CallState) -> str | None:
    """The folder where relative paths start in the arguments of a tool that its caller runs; None without one."""
    folder = state.folder or state.ports.folder
    return folder if folder is not None and folder.startswith("/") else None


def leads_out(state: CallState, folder: str, text: str) -> bool:
    """Tell whether some program may read ``text`` as a path that leaves ``folder`` through links."""
    sources, starts = state.ports.sources, _folders(state)
    if sources is None:
        return False
    held = sources.places_named(folder, Action.READ, folders=starts, contents=False)
    meant = sources.places_named(text, Action.READ, folders=starts, contents=False)
    if held is None or meant is None or (held and not meant):
        return True
    return any(
        not any(covers(one.absolute, place.absolute) for one in held if one.start == place.start) for place in meant
    )


def _too_many() -> StageResult:
    reason = f"more than {MAX_TEXTS:,} texts that may be paths, or places that they may mean"
    return deny("too-many-targets", reason, f"{reason}, in one call; make several calls")


def _folders(state: CallState) -> tuple[str, ...]:
    """The folders where a relative path may start: the policy's, and the working folder of the tool's server."""
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
        for pointer, value in values_below(state.arguments, plan.at):
            if isinstance(value, str):
                yield (pointer, plan.action), value
        if plan.default is not None and plan.argument not in state.arguments:
            yield ((plan.argument,), plan.action), plan.default


def _may_name(arguments: dict[str, JsonValue], texts_only: Collection[str]) -> bool:
    """Tell quickly whether some text may be a path; most calls contain none."""
    for name, value in arguments.items():
        if name in texts_only:
            continue
        if isinstance(value, str):
            if may_be_path(value):
                return True
        elif value and isinstance(value, dict | list):
            return True
        if not name.isidentifier() and may_be_path(name):
            return True
    return False


def _whole_paths(arguments: JsonValue) -> Iterator[tuple[Pointer, str]]:
    """Every text that may be a whole path, keys too, without recursion."""
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
    what = f"`{where}` `{text[:_TEXT_CHARS]}`" + (f", from `{place.start}`," if place.start is not None else "")
    if place.source_id is None:
        return f"{what} is `{place.absolute}`"
    return f"{what} is `{place.absolute}`, `{place.relative}` of `{place.source_id}`"
