"""The stage of arguments: requires all that the operation needs, and makes every marked text (path, URL, label, ...)
canonical.

It has more than 450 lines because one walk finds the meaning of every marker, and what it finds is stored at once.
Later stages and the tool see only canonical values; the trace shows both. A path on disk has two: absolute for the tool
and for prefixes of capabilities, relative to its root for conditions (``policy_arguments``). Host names are not
resolved here. A refusal echoes nothing to the model.
"""

from __future__ import annotations

import re
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from gatewright.arguments.path import PathRefused, paths_from
from gatewright.arguments.shell import ShellCommand, ShellRules, parse_command
from gatewright.arguments.shell_program import may_move
from gatewright.arguments.shell_word import CommandRefused
from gatewright.arguments.url import UrlRefused, UrlTarget, parse_host, parse_url
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.rule_test import Finding
from gatewright.gate.call import CallState, Stage, StageResult, deny
from gatewright.gate.decision import Message, spell_address
from gatewright.gate.scope import file_prefixes
from gatewright.gate.stages.read import ProgramWord, look_at_names, start_of, unmet
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import ROOT_NAMES, ShellBackend
from gatewright.policy.target import FILE_LABEL, BlockTarget, FileTarget, Located, NameTarget, Refusal
from gatewright.policy.verdict import Action, Permission, Verdict
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.parameter import (
    CommandParameter,
    FileParameter,
    HostParameter,
    LabelParameter,
    Mark,
    NamedPath,
    PathParameter,
    Pointer,
    SourceParameter,
    TableParameter,
    UrlParameter,
    VariableParameter,
    kind_needed,
    replace_texts,
    values_at,
)

MAX_MARKED = 1_000
MAX_MARKED_CHARACTERS = 256 * 1024
"""The most characters of all paths and addresses in one call, since making them canonical takes time."""
_SHOWN = 200
_NOTED = 20
_MAX_NAME = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_REFUSED = (Refusal, UrlRefused, CommandRefused)
_IN_SOURCE = frozenset({PathParameter, SourceParameter})
_DEFERRED = "host names are resolved and checked at execution"


class _Given(NamedTuple):
    """A marked text as given; ``pointer`` begins with the parameter's name."""

    mark: Mark
    pointer: Pointer
    text: str

    @property
    def where(self) -> str:
        return ".".join(map(str, self.pointer))


class _Command(NamedTuple):
    """A shell command as it will run, and the files of its redirects; ``folder``: where it starts.

    ``stays``: all of it runs there; ``only_reads``: it changes no file that an argument of a program names. ``aimed``:
    the redirects of a command that its caller runs.
    """

    said: ShellCommand
    files: tuple[FileTarget, ...]
    folder: str
    stays: bool
    only_reads: bool
    aimed: tuple[NamedPath, ...] = ()


Target = Located | FileTarget | UrlTarget | NameTarget | BlockTarget | _Command | None


class _Found:
    """The meanings of the texts: for the tool, for conditions (if different), and as targets."""

    __slots__ = (
        "aimed",
        "asks",
        "blocks",
        "files",
        "moved",
        "names",
        "notes",
        "places",
        "policy",
        "routed",
        "tool",
        "urls",
        "words",
    )

    def __init__(self) -> None:
        self.aimed: list[NamedPath] = []
        self.tool: dict[Pointer, str] = {}
        self.policy: dict[Pointer, str] = {}
        self.moved: dict[Pointer, str] = {}
        self.notes: list[str] = []
        self.places: list[Located] = []
        self.files: list[FileTarget] = []
        self.urls: list[UrlTarget] = []
        self.names: list[NameTarget] = []
        self.routed: list[Located] = []
        self.blocks: list[BlockTarget] = []
        self.words: list[ProgramWord] = []
        self.asks: list[Finding] = []


_POINTER, _MARKER = attrgetter("pointer"), attrgetter("mark.marker")
_PASSES = StageResult(note="no path given")
_NO_ROLES = StageResult(note="none of them is a path")


def _run(state: CallState) -> StageResult:
    """Require all arguments of the operation, and make every marked text (path, URL, label, ...) canonical."""
    plan, operation = state.plan, state.chosen
    objection = unmet(state)
    if objection is not None:
        return StageResult((objection,))
    issues: list[ArgumentIssue] = []
    for one in operation.parts or (operation,):
        issues += plan.tool.missing_arguments(one.name, state.arguments)
    if issues:
        lines = "\n".join(dict.fromkeys(f"{issue.pointer or '/'}: {issue.message}" for issue in issues))
        return deny("arguments-mismatch", lines, f"the arguments do not fit:\n{lines}")
    for place in plan.actor.web_targets(operation.name, state.ports.web):
        if isinstance(place, UrlRefused):
            return deny(place.code, place.reason, place.hint)
    state.policy_arguments = state.arguments
    whole = plan.right.facts.source
    if not operation.roles:
        return (_whole_source(state, whole) if whole else None) or look_at_names(state, ()) or _NO_ROLES
    given = _texts_at_marks(state)
    if isinstance(given, StageResult):
        return given
    found = _Found()
    result = _locate(state, given, found) if given else _PASSES
    if result.findings:
        return result
    if whole and (objection := _whole_source(state, whole)):
        return objection
    more = look_at_names(state, map(_POINTER, given), found.words, found.aimed)
    if more is not None:
        result = more if more.findings else StageResult(note=f"{result.note}; {more.note}")
    return StageResult(tuple(found.asks), result.note) if found.asks and not result.findings else result


def _whole_source(state: CallState, source_id: str) -> StageResult | None:
    """Apply the level of a program's source to a call of its tool that names no key; None means continue."""
    sources = state.ports.sources
    if any(place.source_id == source_id for place in state.places):
        return None
    allowed = _source_ids(state)
    at = sources.locate(".", source_id=source_id, allowed=allowed) if sources is not None and allowed else None
    if not isinstance(at, Located):
        none = _no_source(state)
        return deny(none.code, none.reason, none.hint)
    state.places = (*state.places, at)
    return None


def _texts_at_marks(state: CallState) -> list[_Given] | StageResult:
    """Every text at a marker, or the denial of a call with an unusable value there."""
    given: list[_Given] = []
    for parameter in state.chosen.roles:
        value = state.arguments.get(parameter.name, parameter.default)
        for mark in parameter.marks if value is not None else ():
            for pointer, text in values_at(value, mark.at) if mark.at or not isinstance(value, str) else (((), value),):
                if len(given) == MAX_MARKED:
                    reason = f"more than {MAX_MARKED:,} paths and addresses"
                    return deny("too-many-targets", reason, f"{reason} in one call; make several calls")
                if not isinstance(text, str):
                    reason = f"`{parameter.name}` is marked as {mark.role} but contains a non-text value"
                    return deny("argument-unjudgeable", reason, f"`{parameter.name}` must contain texts only")
                given.append(_Given(mark, (parameter.name, *pointer), text))
    if len(given) > 1 and sum(len(item.text) for item in given) > MAX_MARKED_CHARACTERS:
        reason = f"paths and addresses of more than {MAX_MARKED_CHARACTERS:,} characters"
        return deny("too-many-targets", reason, f"{reason} in one call; make several calls")
    return given


def _locate(state: CallState, given: list[_Given], found: _Found) -> StageResult:
    """Find the meaning of every text, and store the canonical values and the targets in the state."""
    source_id: str | None = state.plan.right.facts.source or None
    kinds, allowed = {*map(type, map(_MARKER, given))}, _source_ids(state)
    if not _IN_SOURCE.isdisjoint(kinds):
        if state.ports.sources is None or not allowed:
            none = _no_source(state)
            return deny(none.code, none.reason, none.hint)
        if SourceParameter in kinds:
            source_id = next(item.text for item in given if isinstance(item.mark.marker, SourceParameter))
            if source_id not in allowed:
                names = ", ".join(f"`{name}`" for name in allowed)
                reason = f"agent `{state.agent_id}` has no source `{source_id[:_SHOWN]}`"
                return deny("unknown-source", reason, f"the source must be one of {names}")
    prefixes = file_prefixes(state) if FileParameter in kinds else ()
    for item in given:
        target = _target(state, item, source_id, allowed, prefixes)
        if isinstance(target, _REFUSED):
            at = target.at if isinstance(target, CommandRefused) else None
            return deny(target.code, target.reason, target.hint, address=at)
        _take(state, found, item, target)
    _settle(state, found)
    notes = found.notes[:_NOTED]
    if len(found.notes) > _NOTED:
        notes.append(f"and {len(found.notes) - _NOTED} more")
    if found.urls and any(url.deferred for url in found.urls):
        notes.append(_DEFERRED)
    return StageResult(note="; ".join(notes) or "a source")


def _target(
    state: CallState, item: _Given, source_id: str | None, allowed: tuple[str, ...], prefixes: tuple[str, ...]
) -> Target | Refusal | UrlRefused | CommandRefused:
    """The meaning of a marked text, or its refusal."""
    sources, web = state.ports.sources, state.ports.web
    match item.mark.marker:
        case PathParameter() if sources is not None:
            return sources.locate(item.text, source_id=source_id, allowed=allowed)
        case UrlParameter(schemes=schemes, effect=effect):
            private, writes = web is not None and web.allow_private, effect == "write"
            return parse_url(item.text, schemes=schemes, allow_private=private, parameter=item.where, writes=writes)
        case HostParameter(effect=effect):
            private = web is not None and web.allow_private
            return parse_host(item.text, allow_private=private, parameter=item.where, writes=effect == "write")
        case TableParameter() | VariableParameter():
            return _name(item)
        case SourceParameter():
            return None
        case CommandParameter(in_folder=True, folder=folder):
            return _command_in_folder(state, item, state.arguments.get(folder))
        case CommandParameter():
            return _command(state, item)
        case LabelParameter(makes=makes):
            target = _find_label(state, item, source_id, allowed)
            is_new = makes and isinstance(target, BlockTarget) and not target.block_id
            return replace(target, permission=Permission.READ_WRITE) if is_new else target
        case FileParameter(writes=writes, roots=roots) if roots:
            port = state.ports.roots
            if port is None:
                return Refusal("no-roots", "no port to the roots of the workspace", Message.PLACE)
            return port.find(item.text, roots=roots, parameter=item.where, writes=writes)
        case FileParameter(writes=writes) if sources is not None:
            folder = state.ports.folder
            return sources.find_file(item.text, folder=folder, prefixes=prefixes, parameter=item.where, writes=writes)
        case PathParameter() | FileParameter():
            reason = "no port to the files of the workspace, so their protection is unknown"
            return Refusal("no-files", reason, Message.PLACE)


def _find_label(
    state: CallState, item: _Given, source_id: str | None, allowed: tuple[str, ...]
) -> Located | BlockTarget | Refusal:
    """Find the target of a label: a file's if the label says so; with a source, a path there; otherwise a block's."""
    sources, blocks = state.ports.sources, state.ports.blocks
    if source_id is None and blocks is not None and not item.text.startswith(FILE_LABEL):
        return blocks.find(item.text, agent_id=state.agent_id, parameter=item.where)
    if sources is None or not allowed:
        return _no_source(state)
    if source_id is None or item.text.startswith(FILE_LABEL):
        return sources.locate_label(item.text, allowed=allowed if source_id is None else (source_id,))
    return sources.locate(item.text, source_id=source_id, allowed=allowed)


def _source_ids(state: CallState) -> tuple[str, ...]:
    """The sources that a call may name: those of files; a program's source only for its own tools and those that take
    labels.
    """
    if state.agent is None:
        return ()
    own = state.plan.right.facts.source
    if own:
        return (own,) if own in state.agent.own_source_ids else ()
    if not state.chosen.takes_labels:
        return state.agent.source_ids
    return state.agent.source_ids + state.agent.own_source_ids


def _no_source(state: CallState) -> Refusal:
    own = state.plan.right.facts.source
    what = f"not the source `{own}`, or it does not run" if own else "no file source"
    return Refusal("no-source", f"agent `{state.agent_id}` has {what}", Message.NO_SOURCE)


def _command(state: CallState, item: _Given) -> _Command | Refusal | CommandRefused:
    """Judge a command's programs by ``[workspace] shell``; its redirects must lie in the open roots."""
    port, agent = state.ports.roots, state.agent
    if port is None or agent is None:
        return Refusal("no-roots", "no port to the roots of the workspace", Message.PLACE)
    if obstacle := state.plan.actor.obstacle:
        return Refusal("not-confined", obstacle, "commands cannot run on this system; an operator must fix that")
    settings, files = agent.policy.shell, list[FileTarget]()
    start = port.find(ROOT_NAMES[0], roots=ROOT_NAMES[:1])
    if isinstance(start, Refusal):
        return start

    def locate(target: str, writes: bool) -> str | CommandRefused:
        if settings.backend is ShellBackend.SESSION and not target.startswith("/"):
            reason = "a relative redirect in a session: its folder is known only at execution"
            return CommandRefused("shell-redirect", reason, "redirect to an absolute path; `pwd` tells the folder")
        path = target if target.startswith("/") else f"{ROOT_NAMES[0]}/{target}"
        found = port.find(path, roots=("shared", "tmp"), parameter=item.where, writes=writes)
        if isinstance(found, Refusal):
            return CommandRefused(found.code, found.reason, found.hint)
        files.append(found)
        return found.absolute

    is_fresh = settings.backend is ShellBackend.HOST  # in a session an earlier function may replace a program
    rules = ShellRules(settings.allow, settings.deny, settings.allow_substitution, is_fresh, settings.ask)
    said = parse_command(item.text, rules, locate)
    if isinstance(said, CommandRefused):
        return said
    stays = is_fresh and not any(map(may_move, said.programs))
    return _Command(said, tuple(files), start.absolute, stays, is_fresh and said.only_reads)


def _command_in_folder(state: CallState, item: _Given, named: JsonValue) -> _Command | Refusal | CommandRefused:
    """Judge a command that its caller runs, by ``[workspace] shell``; levels and grants decide about its redirects.

    ``named``: the folder where it starts, if the call names one.
    """
    agent, start, aimed = state.agent, start_of(state), list[NamedPath]()
    if agent is None or start is None:
        return Refusal("no-folder", "the folder where the command's program works is unknown", Message.PLACE)
    at = paths_from(start, named) if isinstance(named, str) else (start,)
    if isinstance(at, PathRefused):
        return Refusal(at.code, at.reason, at.hint)
    settings, folder = agent.policy.shell, at[0]

    def locate(target: str, writes: bool) -> str | CommandRefused:
        read = paths_from(folder, f"./{target}" if target.startswith("~") else target)
        if isinstance(read, PathRefused):
            return CommandRefused(read.code, read.reason, read.hint)
        aimed.append(NamedPath((*item.pointer, len(aimed)), read[0], Action.OVERWRITE if writes else Action.READ))
        return read[0]

    rules = ShellRules(settings.allow, settings.deny, settings.allow_substitution, ask=settings.ask)
    said = parse_command(item.text, rules, locate)
    if isinstance(said, CommandRefused):
        return said
    stays = not any(map(may_move, said.programs))
    return _Command(said, (), folder, stays, said.only_reads, tuple(aimed))


def _name(item: _Given) -> NameTarget | Refusal:
    kind = kind_needed(item.mark.marker)
    if kind is None or not item.text or len(item.text) > _MAX_NAME or _CONTROL.search(item.text):
        reason = f"`{item.where}` is empty, too long or contains control characters"
        return Refusal("bad-name", reason, f"`{item.mark.role}` names are plain texts")
    if kind is CapabilityKind.ENV_READ and "=" in item.text:
        return Refusal(
            "bad-name", f"`{item.where}` contains `=`, which no variable's name does", "leave `=` out of names"
        )
    return NameTarget(item.where, item.text, kind)


def _take(state: CallState, found: _Found, item: _Given, target: Target) -> None:
    """Record the meaning of a text."""
    shown = item.text[:_SHOWN]
    match target:
        case Located():
            is_path = isinstance(item.mark.marker, PathParameter)
            sources = state.ports.sources
            canonical = target.relative if is_path or sources is None else sources.label_of(target)
            found.tool[item.pointer] = found.policy[item.pointer] = canonical
            found.places.append(target)
            found.routed.append(target)
            same = "" if shown == target.relative else f"`{shown}` is "
            found.notes.append(f"{same}`{target.relative}` of `{target.source_id}`")
        case FileTarget():
            found.tool[item.pointer], found.policy[item.pointer] = target.absolute, target.relative
            found.files.append(target)
            if target.stands is not None:
                found.moved[item.pointer] = target.stands
            if target.place is not None:
                found.places.append(target.place)
            root = f" of `{target.source_id}`" if target.source_id is not None else ""
            found.notes.append(f"`{shown}` is `{target.absolute}`, `{target.relative}`{root}")
        case UrlTarget():
            found.tool[item.pointer] = found.policy[item.pointer] = target.text
            found.urls.append(target)
            found.notes.append(f"`{shown}` is `{target.text[:_SHOWN]}`")
        case NameTarget():
            found.names.append(target)
            found.notes.append(f"{item.mark.role} `{shown}`")
        case BlockTarget():
            found.tool[item.pointer] = found.policy[item.pointer] = target.label
            found.blocks.append(target)
            found.notes.append(f"block `{shown}`")
        case _Command(said=said, files=files, folder=folder, stays=stays, only_reads=only_reads, aimed=aimed):
            found.aimed += aimed
            found.tool[item.pointer] = found.policy[item.pointer] = said.text
            found.files += files
            found.places += (file.place for file in files if file.place is not None)
            found.words += (ProgramWord(item.pointer, word, folder, stays, only_reads) for word in said.words)
            caveat = state.plan.actor.caveat
            asks = {part.text: part for part in said.parts if part.asks}
            named = [part for part in said.parts if part.text not in asks][:_NOTED]
            allowed = ", ".join(f"`{part.text}` by `{part.entry}` ({spell_address(part.at)})" for part in named)
            notes = (f"allowed: {allowed}" if allowed else "", f"executes `{said.text[:_SHOWN]}`", caveat)
            found.notes.append("; ".join(filter(None, notes)))
            for part in asks.values():
                reason = f"`{part.text}` asks first by `{part.entry}` of `[workspace] shell`; {found.notes[-1]}"
                found.asks.append(Finding(Verdict.ASK, "shell-ask", reason, part.at))
        case None:
            pass


def _settle(state: CallState, found: _Found) -> None:
    """Store the canonical values and the targets in the state.

    If the operation takes a source, it gets the source of the call's only place. If a label names the place, conditions
    see its path, so that conditions on paths apply to it too.
    """
    arguments = _with(state, found.tool)
    policy_arguments = _with(state, found.policy) if found.files else dict(arguments)
    routed, places = found.routed, found.places
    if routed and (len(routed) == 1 or len({place.source_id for place in routed}) == 1):
        at = routed[0]
        for parameter in state.chosen.roles:
            name = parameter.name
            is_open = len(routed) == 1 and (name,) not in found.tool and state.arguments.get(name) is None
            for mark in parameter.marks:
                if isinstance(mark.marker, SourceParameter):
                    arguments[name] = policy_arguments[name] = at.source_id
                elif is_open and isinstance(mark.marker, PathParameter) and not mark.at:
                    policy_arguments[name] = at.relative
    state.arguments, state.policy_arguments = arguments, policy_arguments
    state.places = tuple(dict.fromkeys(places) if len(places) > 1 else places)
    state.files, state.urls = tuple(found.files), tuple(found.urls)
    state.names, state.blocks = tuple(found.names), tuple(found.blocks)
    if found.moved:
        state.moved = found.moved


def _with(state: CallState, texts: dict[Pointer, str]) -> dict[str, JsonValue]:
    """The arguments with these texts at their places; a default that was checked is added."""
    given, new = state.arguments, dict(state.arguments)
    by_name: dict[str, dict[Pointer, str]] = {}
    for pointer, text in texts.items():
        if len(pointer) == 1:
            new[str(pointer[0])] = text
        else:
            by_name.setdefault(str(pointer[0]), {})[pointer[1:]] = text
    if by_name:
        defaults = {parameter.name: parameter.default for parameter in state.chosen.roles}
        new.update({n: replace_texts(given.get(n, defaults.get(n)), held) for n, held in by_name.items()})
    return new


ARGUMENTS = Stage("arguments", _run)
