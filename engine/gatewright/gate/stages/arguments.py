"""Arguments: what the operation needs is there, and every marked text (path, URL, label, ...) is made canonical.

Later stages and the tool see canonical values only; the trace shows both. A path on disk has two: absolute for the
tool and for prefixes of capabilities, relative to its root for conditions (``policy_arguments``). No name of a host is
resolved here. A refusal echoes nothing to the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gatewright.arguments.shell import ShellCommand, ShellRules, parse_command
from gatewright.arguments.shell_program import may_move
from gatewright.arguments.shell_word import CommandRefused
from gatewright.arguments.url import UrlRefused, UrlTarget, parse_host, parse_url
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.named import ProgramWord, look_at_names
from gatewright.gate.precondition import unmet
from gatewright.gate.scope import file_prefixes
from gatewright.policy.document import ROOT_NAMES, ShellBackend
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.permission import Permission
from gatewright.policy.target import FILE_LABEL, BlockTarget, FileTarget, Located, NameTarget, Refusal
from gatewright.tools.mark import Pointer, replaced, values_at
from gatewright.tools.parameter import (
    CommandParameter,
    FileParameter,
    HostParameter,
    LabelParameter,
    Mark,
    Parameter,
    PathParameter,
    SourceParameter,
    TableParameter,
    UrlParameter,
    VariableParameter,
    kind_needed,
)

MAX_MARKED = 1_000
MAX_MARKED_CHARACTERS = 256 * 1024
"""Of all paths and addresses of one call together: what making them canonical may cost."""
_SHOWN = 200
_NOTED = 20
_MAX_NAME = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_REFUSED = (Refusal, UrlRefused, CommandRefused)
_IN_SOURCE = frozenset({PathParameter, SourceParameter})
_DEFERRED = "names are resolved and checked at execution"


class _Given(NamedTuple):
    """A marked text as it was given; ``pointer`` begins with the parameter's name."""

    mark: Mark
    pointer: Pointer
    text: str

    @property
    def where(self) -> str:
        return ".".join(map(str, self.pointer))


class _Command(NamedTuple):
    """A shell command as it will be executed, and the files that it redirects to; ``folder``: where it begins.

    ``stays``: all of it runs there; ``only_reads``: it changes no file that an argument of a program names.
    """

    said: ShellCommand
    files: tuple[FileTarget, ...]
    folder: str
    stays: bool
    only_reads: bool


Target = Located | FileTarget | UrlTarget | NameTarget | BlockTarget | _Command | None


class _Found:
    """What the texts came to: for the tool, for conditions (where that differs), and as targets."""

    __slots__ = ("blocks", "files", "names", "notes", "places", "policy", "routed", "tool", "urls", "words")

    def __init__(self) -> None:
        self.tool: dict[Pointer, str] = {}
        self.policy: dict[Pointer, str] = {}
        self.notes: list[str] = []
        self.places: list[Located] = []
        self.files: list[FileTarget] = []
        self.urls: list[UrlTarget] = []
        self.names: list[NameTarget] = []
        self.routed: list[Located] = []
        self.blocks: list[BlockTarget] = []
        self.words: list[ProgramWord] = []


def _run(state: CallState) -> StageResult:
    operation = state.chosen
    objection = unmet(state)
    if objection is not None:
        return StageResult((objection,))
    missing = state.plan.tool.missing_arguments
    issues = [issue for one in operation.each for issue in missing(one.name, state.arguments)]
    if issues:
        lines = "\n".join(dict.fromkeys(f"{issue.pointer or '/'}: {issue.message}" for issue in issues))
        return denied("arguments-mismatch", lines, f"the arguments do not fit:\n{lines}")
    if not operation.roles:
        state.policy_arguments = state.arguments
        return look_at_names(state, ()) or StageResult(note="none of them is a path")
    given: list[_Given] = []
    found = _Found()
    result = _canonical(state, given, found)
    if result.findings:
        return result
    more = look_at_names(state, (item.pointer for item in given), found.words)
    if more is None:
        return result
    return more if more.findings else StageResult(note=f"{result.note}; {more.note}")


def _canonical(state: CallState, given: list[_Given], found: _Found) -> StageResult:
    for parameter, mark, pointer, value in _marked(state):
        if len(given) == MAX_MARKED:
            reason = f"more than {MAX_MARKED:,} paths and addresses"
            return denied("too-many-targets", reason, f"{reason} in one call; make several calls")
        if not isinstance(value, str):
            reason = f"`{parameter.name}` is marked as {mark.role} and holds something that is no text"
            return denied("argument-unjudgeable", reason, f"`{parameter.name}` must hold texts only")
        given.append(_Given(mark, (parameter.name, *pointer), value))
    if len(given) > 1 and sum(len(item.text) for item in given) > MAX_MARKED_CHARACTERS:
        reason = f"paths and addresses of more than {MAX_MARKED_CHARACTERS:,} characters"
        return denied("too-many-targets", reason, f"{reason} in one call; make several calls")
    if not given:
        state.policy_arguments = state.arguments
        return StageResult(note="no path given")
    return _located(state, given, found)


def _marked(state: CallState) -> Iterator[tuple[Parameter, Mark, Pointer, JsonValue]]:
    """Everything that stands where a marker is."""
    for parameter in state.chosen.roles:
        value = state.arguments.get(parameter.name, parameter.default)
        for mark in parameter.marks:
            for pointer, held in values_at(value, mark.at):
                yield parameter, mark, pointer, held


def _located(state: CallState, given: list[_Given], found: _Found) -> StageResult:
    source_id: str | None = None
    kinds = {type(item.mark.marker) for item in given}
    if not _IN_SOURCE.isdisjoint(kinds):
        allowed = _allowed(state)
        if state.ports.sources is None or not allowed:
            none = _no_source(state)
            return denied(none.code, none.reason, none.hint)
        source_id = next((item.text for item in given if isinstance(item.mark.marker, SourceParameter)), None)
        if source_id is not None and source_id not in allowed:
            names = ", ".join(f"`{name}`" for name in allowed)
            reason = f"agent `{state.agent_id}` has no source `{source_id[:_SHOWN]}`"
            return denied("unknown-source", reason, f"the source must be one of {names}")
    prefixes = file_prefixes(state) if FileParameter in kinds else ()
    for item in given:
        target = _target(state, item, source_id, prefixes)
        if isinstance(target, _REFUSED):
            return denied(target.code, target.reason, target.hint)
        _take(state, found, item, target)
    return _settled(state, found)


def _target(
    state: CallState, item: _Given, source_id: str | None, prefixes: tuple[str, ...]
) -> Target | Refusal | UrlRefused | CommandRefused:
    """What a marked text means, or why it is refused."""
    sources = state.ports.sources
    private = state.ports.web is not None and state.ports.web.allow_private
    match item.mark.marker:
        case PathParameter() if sources is not None:
            return sources.locate(item.text, source_id=source_id, allowed=_allowed(state))
        case UrlParameter(schemes=schemes, effect=effect):
            writes = effect == "write"
            return parse_url(item.text, schemes=schemes, allow_private=private, parameter=item.where, writes=writes)
        case HostParameter(effect=effect):
            return parse_host(item.text, allow_private=private, parameter=item.where, writes=effect == "write")
        case TableParameter() | VariableParameter():
            return _name(item)
        case SourceParameter():
            return None
        case CommandParameter():
            return _command(state, item)
        case LabelParameter(makes=makes):
            target = _labelled(state, item, source_id)
            is_new = makes and isinstance(target, BlockTarget) and not target.block_id
            return replace(target, permission=Permission.READ_WRITE) if is_new else target
        case FileParameter(writes=writes, roots=roots) if roots:
            return _in_root(state, item, roots, writes=writes)
        case FileParameter(writes=writes) if sources is not None:
            folder = state.ports.folder
            return sources.find_file(item.text, folder=folder, prefixes=prefixes, parameter=item.where, writes=writes)
        case PathParameter() | FileParameter():
            reason = "no port to the files of the workspace, so that it cannot be known which are protected"
            return Refusal("no-files", reason, message.PLACE)


def _labelled(state: CallState, item: _Given, source_id: str | None) -> Located | BlockTarget | Refusal:
    """A label that says so is a file's; with a source, any other text is a path there; else it is a block's."""
    sources, blocks, allowed = state.ports.sources, state.ports.blocks, _allowed(state)
    if source_id is None and blocks is not None and not item.text.startswith(FILE_LABEL):
        return blocks.find(item.text, agent_id=state.agent_id, parameter=item.where)
    if sources is None or not allowed:
        return _no_source(state)
    if source_id is None or item.text.startswith(FILE_LABEL):
        return sources.locate_label(item.text, allowed=allowed if source_id is None else (source_id,))
    return sources.locate(item.text, source_id=source_id, allowed=allowed)


def _allowed(state: CallState) -> tuple[str, ...]:
    return state.agent.source_ids if state.agent else ()


def _no_source(state: CallState) -> Refusal:
    return Refusal("no-source", f"agent `{state.agent_id}` has no file source", message.NO_SOURCE)


def _in_root(state: CallState, item: _Given, roots: tuple[str, ...], *, writes: bool) -> FileTarget | Refusal:
    port = state.ports.roots
    if port is None:
        return Refusal("no-roots", "no port to the roots of the workspace", message.PLACE)
    return port.find(item.text, roots=roots, parameter=item.where, writes=writes)


def _command(state: CallState, item: _Given) -> _Command | Refusal | CommandRefused:
    """What a command starts is judged by ``[workspace] shell``; what it redirects to lies in the open roots."""
    port, agent = state.ports.roots, state.agent
    if port is None or agent is None:
        return Refusal("no-roots", "no port to the roots of the workspace", message.PLACE)
    settings, files = agent.policy.shell, list[FileTarget]()
    start = port.find(ROOT_NAMES[0], roots=ROOT_NAMES[:1])
    if isinstance(start, Refusal):
        return start

    def locate(target: str, writes: bool) -> str | CommandRefused:
        if settings.backend is ShellBackend.SESSION and not target.startswith("/"):
            reason = "a relative redirect in a session: the folder that it begins in is known only when it runs"
            return CommandRefused("shell-redirect", reason, "redirect to an absolute path; `pwd` tells the folder")
        path = target if target.startswith("/") else f"{ROOT_NAMES[0]}/{target}"
        found = port.find(path, roots=("shared", "tmp"), parameter=item.where, writes=writes)
        if isinstance(found, Refusal):
            return CommandRefused(found.code, found.reason, found.hint)
        files.append(found)
        return found.absolute

    rules = ShellRules(frozenset(settings.allow), frozenset(settings.deny), settings.allow_substitution)
    said = parse_command(item.text, rules, locate)
    if isinstance(said, CommandRefused):
        return said
    is_fresh = settings.backend is ShellBackend.HOST  # in a session an earlier function may stand for a program
    stays = is_fresh and not any(map(may_move, said.programs))
    return _Command(said, tuple(files), start.absolute, stays, is_fresh and said.only_reads)


def _name(item: _Given) -> NameTarget | Refusal:
    kind = kind_needed(item.mark.marker)
    if kind is None or not item.text or len(item.text) > _MAX_NAME or _CONTROL.search(item.text):
        reason = f"`{item.where}` is empty, too long or holds control characters"
        return Refusal("bad-name", reason, f"`{item.mark.role}` names are plain texts")
    if kind is CapabilityKind.ENV_READ and "=" in item.text:
        return Refusal("bad-name", f"`{item.where}` holds `=`, which no variable's name does", "leave `=` out of names")
    return NameTarget(item.where, item.text, kind)


def _take(state: CallState, found: _Found, item: _Given, target: Target) -> None:
    """Note what a text came to."""
    shown = item.text[:_SHOWN]
    match target:
        case Located():
            is_path = isinstance(item.mark.marker, PathParameter)
            sources = state.ports.sources
            canonical = target.relative if is_path or sources is None else sources.label_of(target)
            found.tool[item.pointer] = found.policy[item.pointer] = canonical
            found.places.append(target)
            found.routed.append(target)
            found.notes.append(f"`{shown}` is `{target.relative}` of `{target.source_id}`")
        case FileTarget():
            found.tool[item.pointer], found.policy[item.pointer] = target.absolute, target.relative
            found.files.append(target)
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
        case _Command(said=said, files=files, folder=folder, stays=stays, only_reads=only_reads):
            found.tool[item.pointer] = found.policy[item.pointer] = said.text
            found.files += files
            found.places += (file.place for file in files if file.place is not None)
            found.words += (ProgramWord(item.pointer, word, folder, stays, only_reads) for word in said.words)
            caveat = state.plan.tool.actor.caveat
            programs = ", ".join(f"`{name}`" for name in said.programs[:_NOTED])
            notes = (f"allowed: {programs}" if programs else "", f"executes `{said.text[:_SHOWN]}`", caveat)
            found.notes.append("; ".join(filter(None, notes)))
        case None:
            pass


def _settled(state: CallState, found: _Found) -> StageResult:
    """Give the state the canonical values, the source where the operation takes one, and the targets."""
    arguments = policy_arguments = _with(state, found.tool)
    if found.files:
        policy_arguments = _with(state, found.policy)
    filled = _filled(state, found)
    if filled:
        arguments, policy_arguments = arguments | filled, policy_arguments | filled
    policy_arguments = policy_arguments | _path_of_label(state, found)
    places = found.places
    state.arguments, state.policy_arguments = arguments, policy_arguments
    state.places = tuple(dict.fromkeys(places) if len(places) > 1 else places)
    state.files, state.urls = tuple(found.files), tuple(found.urls)
    state.names, state.blocks = tuple(found.names), tuple(found.blocks)
    return StageResult(note=_note(found) or "a source")


def _filled(state: CallState, found: _Found) -> dict[str, JsonValue]:
    """The source of the one place that the call goes to, under the names of the parameters that stand for it."""
    routed = {place.source_id for place in found.routed}
    if len(routed) != 1:
        return {}
    return {
        parameter.name: found.routed[0].source_id
        for parameter in state.chosen.roles
        for mark in parameter.marks
        if isinstance(mark.marker, SourceParameter)
    }


def _path_of_label(state: CallState, found: _Found) -> dict[str, JsonValue]:
    """The path of the one place that a label names, for conditions: what they say of paths holds for it too."""
    if len(found.routed) != 1:
        return {}
    return {
        parameter.name: found.routed[0].relative
        for parameter in state.chosen.roles
        for mark in parameter.marks
        if isinstance(mark.marker, PathParameter)
        and not mark.at
        and state.arguments.get(parameter.name) is None
        and (parameter.name,) not in found.tool
    }


def _with(state: CallState, texts: dict[Pointer, str]) -> dict[str, JsonValue]:
    """The arguments with the texts at those places; a default that was checked is written out."""
    given, new = state.arguments, dict(state.arguments)
    by_name: dict[str, dict[Pointer, str]] = {}
    for pointer, text in texts.items():
        if len(pointer) == 1:
            new[str(pointer[0])] = text
        else:
            by_name.setdefault(str(pointer[0]), {})[pointer[1:]] = text
    if by_name:
        defaults = {parameter.name: parameter.default for parameter in state.chosen.roles}
        new.update({n: replaced(given.get(n, defaults.get(n)), held) for n, held in by_name.items()})
    return new


def _note(found: _Found) -> str:
    if len(found.notes) == 1 and not found.urls:
        return found.notes[0]
    notes = found.notes[:_NOTED]
    if len(found.notes) > _NOTED:
        notes.append(f"and {len(found.notes) - _NOTED} more")
    if any(url.deferred for url in found.urls):
        notes.append(_DEFERRED)
    return "; ".join(notes)


ARGUMENTS = Stage("arguments", _run)
