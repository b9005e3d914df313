"""Permission: the level of every place and block that the call names permits what the call would do there.

Places are those in sources, and paths on disk that lie below the base of one. A path on disk is judged by what the tool
says that the call does; a tool that says nothing reads it, or overwrites it where its parameter is one that is written.
A place without a level, or a protected one, gets the same words as one that is not there; so does a block of memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatewright.base.errors import ToolFailure
from gatewright.base.problem import Address
from gatewright.compile.finding import Finding
from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.context import context_of
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.target import NOT_PERMITTED, Assessment, BlockTarget, LevelDecision, Located, NamedPlace
from gatewright.policy.verdict import Verdict

_NONE, _ALLOW = Permission.NONE, Verdict.ALLOW
_ACTIONS = tuple(Action)
_NOT_THERE = "this is not available for that path; choose another one"
_NOWHERE = StageResult(note="no place named")
_Levels = list[tuple[Located, LevelDecision]]


def _run(state: CallState) -> StageResult:
    sources, chosen = state.ports.sources, state.chosen
    levels: _Levels = []
    if sources is not None:
        levels = [(place, place.level or sources.level(place)) for place in state.places]
    closed = _closed(state, levels)
    if closed is not None:
        return StageResult((closed,))
    try:
        assessment = _assessed(state)
    except ToolFailure as failure:
        if failure.code == NOT_PERMITTED or not _all_allowed(state, levels):
            return denied(failure.code, str(failure), state.plan.redactor(str(failure)))
        assessment = Assessment.failing(chosen.actions[-1] if chosen.actions else None, failure)
    state.assessment = assessment
    if assessment.action is not None and not levels and state.plan.right.facts.needs_source:
        return denied("no-place", "the call names no place whose level could permit it", message.PLACE)
    findings, notes = _judged(state, assessment, levels)
    if findings:
        findings.sort(key=lambda finding: finding.verdict is not Verdict.DENY)
        return StageResult(tuple(findings))
    return StageResult(note=", ".join(notes)) if notes else _NOWHERE


def _closed(state: CallState, levels: _Levels) -> Finding | None:
    """The denial of a call that names what no level, no block and no source of the agent lets anybody reach."""
    for place, level in levels:
        if level.permission is _NONE or level.protected:
            return _unreachable(f"`{place.relative}` of `{place.source_id}`", place, level)
    for place in state.named:
        level = place.level
        if level is not None and (level.permission is _NONE or level.protected):
            return _unreachable(_named(place), _located(place), level)
    for block in state.blocks:
        if block.permission is _NONE and block.block_id:
            reason = f"block `{block.label}` ({block.block_id}) is none, so that the agent is not told of it"
            return Finding(Verdict.DENY, "level-none", reason, model=message.NO_BLOCK)
        if block.permission is _NONE:
            reason = f"neither the agent nor the workspace has a block `{block.label}`"
            return Finding(Verdict.DENY, "unknown-block", reason, model=message.NO_BLOCK)
    denials = state.chosen.source_denials
    for source_id in sorted(state.sources) if denials else ():
        if denial := denials.get(source_id):
            return replace(denial, model=denial.model or _NOT_THERE)
    return None


def _unreachable(what: str, at: Located | None, level: LevelDecision) -> Finding:
    if at is None or level.protected:
        reason = f"{what} is protected, or in the folder of a source that was moved: no tool reaches it"
        return Finding(Verdict.DENY, "protected", reason, model=message.PLACE)
    reason = f"{what} is none by {_by(at, level)}"
    return Finding(Verdict.DENY, "level-none", reason, _address(at, level), model=message.PLACE)


def _assessed(state: CallState) -> Assessment:
    """What the tool says that the call would do: of a batch, what needs the most. Raises ToolFailure."""
    tool, chosen, context = state.plan.tool.actor, state.chosen, context_of(state)
    if not chosen.parts:
        return tool.assess(chosen.name, state.arguments, context)
    found = [tool.assess(one.name, state.arguments, context) for one in chosen.parts]
    most = max(found, key=lambda one: -1 if one.action is None else _ACTIONS.index(one.action))
    return replace(most, ask=next((one.ask for one in found if one.ask is not None), None))


def _all_allowed(state: CallState, levels: _Levels) -> bool:
    """Whether it need not be known which action it is: then the tool itself says why it fails."""
    held = [level.permission for _, level in levels] + [block.permission for block in state.blocks]
    return all(verdict_for(level, action) is _ALLOW for action in state.chosen.actions for level in held)


def _judged(state: CallState, assessment: Assessment, levels: _Levels) -> tuple[list[Finding], list[str]]:
    """What the levels say to what the call would do, and each level for the trace."""
    findings: list[Finding] = []
    notes: list[str] = []
    for place, level in levels:
        notes.append(f"`{place.relative}` is {level.permission}")
        findings += [
            _objection(state, f"`{place.relative}` of `{place.source_id}`", place, level, action)
            for action in _actions(state, assessment, place)
            if verdict_for(level.permission, action) is not _ALLOW
        ]
    for place in sorted(state.named, key=lambda one: bool(one.program) and not one.stands):
        if place.level is not None:
            notes.append(f"`{place.relative}` of `{place.source_id}` is {place.level.permission}")
            at = _located(place)
            verdict = verdict_for(place.level.permission, place.action)
            if at is not None and verdict is Verdict.ASK and place.program:
                findings.append(_question(place, at, place.level))
            elif at is not None and verdict is not _ALLOW:
                findings.append(_objection(state, _named(place), at, place.level, place.action))
    for block in state.blocks:
        notes.append(f"block `{block.label}` is {block.permission}")
        if assessment.action is not None and (finding := _block_objection(state, block, assessment.action)):
            findings.append(finding)
    if assessment.ask is not None:
        findings.append(Finding(Verdict.ASK, "tool-asks", assessment.ask))
    return findings, notes


def _actions(state: CallState, assessment: Assessment, place: Located) -> Iterable[Action]:
    """What the call would do at that place: of several files, the action is done to those that are written."""
    files = [file for file in state.files if file.place == place]
    if assessment.action is not None:
        only_read = bool(files) and not any(file.writes for file in files) and any(file.writes for file in state.files)
        return (Action.READ if only_read else assessment.action,)
    return frozenset(Action.OVERWRITE if file.writes else Action.READ for file in files)


def _objection(state: CallState, what: str, at: Located, level: LevelDecision, action: Action) -> Finding:
    """That a level asks before the action, or denies it."""
    verdict, said = verdict_for(level.permission, action), f"{what} is {level.permission} by {_by(at, level)}"
    if verdict is Verdict.ASK:
        asks = f"{said}, which asks before {_called(state, action)}"
        return Finding(verdict, "level-asks", asks, _address(at, level), about=at.relative)
    denies = f"{said}, which denies {action}"  # no level but none denies reading
    return Finding(verdict, "level-denies", denies, _address(at, level), model=message.PLACE_FIXED)


def _question(place: NamedPlace, at: Located, level: LevelDecision) -> Finding:
    """Ask before a program of a shell command does something to a file, or to what one of its words could be."""
    does = "read" if place.action is Action.READ else "change"
    what = f"`{at.relative}` of `{at.source_id}`"
    if place.stands:
        said = f"`{place.program}` may {does} {what}, which"
    else:
        said = f"`{place.program}` may {does} files of `{at.source_id}`: its word `{at.relative}` could be one, and"
    asks = f"{said} is {level.permission} by {_by(at, level)}, which asks before {place.action}"
    about = f"{place.program} {at.relative}"
    return Finding(Verdict.ASK, "level-asks", asks, _address(at, level), about=about)


def _block_objection(state: CallState, block: BlockTarget, action: Action) -> Finding | None:
    verdict = verdict_for(block.permission, action)
    what = f"block `{block.label}` ({block.block_id}) is {block.permission}"
    if verdict is Verdict.ASK:
        asks = f"{what}, which asks before {_called(state, action)}"
        return Finding(verdict, "level-asks", asks, about=f"block {block.label}")
    if verdict is Verdict.DENY:
        return Finding(verdict, "level-denies", f"{what}, which denies {action}", model=message.BLOCK_FIXED)
    return None


def _called(state: CallState, action: Action) -> str:
    """What a call does, in the words of its caller: its operation, of a tool or batch that has not one the action."""
    name = "" if state.chosen.parts else state.chosen.name
    return f"`{name}`" if name else str(action)


def _located(place: NamedPlace) -> Located | None:
    """The place in the source that holds it."""
    if place.source_id is None:
        return None
    return Located(place.source_id, place.inside or place.relative, place.absolute)


def _named(place: NamedPlace) -> str:
    """The argument, where it leads, and what there the level is of."""
    start = f", from `{place.start}`," if place.start is not None else ""
    what = f"`{place.argument}`{start} is `{place.absolute}`"
    if place.source_id is None:
        return f"{what}, which"
    if place.inside:
        return f"{what}, and `{place.inside}` of `{place.source_id}` in it"
    return f"{what}: `{place.relative}` of `{place.source_id}`"


def _by(place: Located, level: LevelDecision) -> str:
    what = "default" if level.index is None else f"rule {level.index + 1} `{level.pattern}`"
    return what if level.source_id in {None, place.source_id} else f"{what} of `{level.source_id}`, which overlaps it"


def _address(place: Located, level: LevelDecision) -> Address:
    source_id = level.source_id or place.source_id
    if level.index is None:
        return ("sources", source_id, "default_permission")
    return ("sources", source_id, "permission_rules", level.index)


PERMISSION = Stage("permission", _run)
