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
from gatewright.gate.stages.rules import routed
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.target import NOT_PERMITTED, Assessment, BlockTarget, LevelDecision, Located, NamedPlace
from gatewright.policy.verdict import Verdict

_NONE, _ALLOW = Permission.NONE, Verdict.ALLOW
_ACTIONS = tuple(Action)
_NOT_THERE = "this is not available for that path; choose another one"


def _run(state: CallState) -> StageResult:
    sources = state.ports.sources
    levels = [(place, place.level or sources.level(place)) for place in state.places] if sources is not None else []
    for place, level in levels:
        if level.permission is _NONE or level.protected:
            return StageResult((_closed(place, level),))
    named = state.named
    for place in named:
        if place.level is not None and (place.level.permission is _NONE or place.level.protected):
            return StageResult((_named_closed(place, place.level),))
    unseen = next((block for block in state.blocks if block.permission is _NONE), None)
    if unseen is not None:
        return StageResult((_no_block(unseen),))
    denials = state.chosen.source_denials
    closed_off = next((f for name in sorted(routed(state)) if (f := denials.get(name))), None) if denials else None
    if closed_off is not None:
        return StageResult((replace(closed_off, model=closed_off.model or _NOT_THERE),))
    try:
        assessment = _assessed(state)
    except ToolFailure as failure:
        if failure.code == NOT_PERMITTED or not _all_allowed(state, levels):
            return denied(failure.code, str(failure), state.plan.redactor(str(failure)))
        assessment = Assessment.failing(state.chosen.actions[-1] if state.chosen.actions else None, failure)
    state.assessment = assessment
    findings = [
        finding
        for place, level in levels
        for action in _actions(state, assessment, place)
        if (finding := _finding(place, level, action, _called(state, action))) is not None
    ]
    if named:
        findings += [found for place in named if (found := _named_finding(state, place)) is not None]
    if state.blocks and assessment.action is not None:
        called = _called(state, assessment.action)
        judged = (_block_finding(block, assessment.action, called) for block in state.blocks)
        findings += [finding for finding in judged if finding is not None]
    return _judged(state, assessment, findings, levels)


def _assessed(state: CallState) -> Assessment:
    """What the tool says that the call would do: of a batch, what needs the most. Raises ToolFailure."""
    tool, chosen, context = state.plan.tool.actor, state.chosen, context_of(state)
    if not chosen.parts:
        return tool.assess(chosen.name, state.arguments, context)
    found = [tool.assess(one.name, state.arguments, context) for one in chosen.parts]
    most = max(found, key=lambda one: -1 if one.action is None else _ACTIONS.index(one.action))
    return replace(most, ask=next((one.ask for one in found if one.ask is not None), None))


def _actions(state: CallState, assessment: Assessment, place: Located) -> Iterable[Action]:
    """What the call would do at that place: of several files, the action is done to those that are written."""
    files = [file for file in state.files if file.place == place]
    if assessment.action is not None:
        only_read = bool(files) and not any(file.writes for file in files) and any(file.writes for file in state.files)
        return (Action.READ if only_read else assessment.action,)
    return frozenset(Action.OVERWRITE if file.writes else Action.READ for file in files)


def _all_allowed(state: CallState, levels: list[tuple[Located, LevelDecision]]) -> bool:
    """Whether it need not be known which action it is: then the tool itself says why it fails."""
    held = [level.permission for _, level in levels] + [block.permission for block in state.blocks]
    return all(verdict_for(level, action) is _ALLOW for action in state.chosen.actions for level in held)


def _judged(
    state: CallState, assessment: Assessment, findings: list[Finding], levels: list[tuple[Located, LevelDecision]]
) -> StageResult:
    if assessment.action is not None and not levels and state.plan.right.facts.needs_source:
        return denied("no-place", "the call names no place whose level could permit it", message.PLACE)
    if assessment.ask is not None:
        findings.append(Finding(Verdict.ASK, "tool-asks", assessment.ask))
    findings.sort(key=lambda finding: finding.verdict is not Verdict.DENY)
    notes = [f"`{place.relative}` is {level.permission}" for place, level in levels]
    if state.named:
        notes += [
            f"`{one.relative}` of `{one.source_id}` is {one.level.permission}" for one in state.named if one.level
        ]
    note = ", ".join([*notes, *(f"block `{block.label}` is {block.permission}" for block in state.blocks)])
    return StageResult(tuple(findings), note=note or "no place named")


def _no_block(block: BlockTarget) -> Finding:
    if block.block_id:
        reason = f"block `{block.label}` ({block.block_id}) is none, so that the agent is not told of it"
        return Finding(Verdict.DENY, "level-none", reason, model=message.NO_BLOCK)
    reason = f"neither the agent nor the workspace has a block `{block.label}`"
    return Finding(Verdict.DENY, "unknown-block", reason, model=message.NO_BLOCK)


def _called(state: CallState, action: Action) -> str:
    """What a call does, in the words of its caller: its operation, of a tool or batch that has not one the action."""
    name = "" if state.chosen.parts else state.chosen.name
    return f"`{name}`" if name else str(action)


def _block_finding(block: BlockTarget, action: Action, called: str) -> Finding | None:
    verdict = verdict_for(block.permission, action)
    what = f"block `{block.label}` ({block.block_id}) is {block.permission}"
    if verdict is Verdict.ASK:
        about = f"block {block.label}"
        return Finding(verdict, "level-asks", f"{what}, which asks before {called}", about=about)
    if verdict is Verdict.DENY:
        return Finding(verdict, "level-denies", f"{what}, which denies {action}", model=message.BLOCK_FIXED)
    return None


def _closed(place: Located, level: LevelDecision) -> Finding:
    if level.protected:
        closed = "is protected, or in the folder of a source that was moved: no tool reaches it"
        reason = f"`{place.relative}` of `{place.source_id}` {closed}"
        return Finding(Verdict.DENY, "protected", reason, model=message.PLACE)
    reason = f"`{place.relative}` of `{place.source_id}` is none by {_by(place, level)}"
    return Finding(Verdict.DENY, "level-none", reason, _address(place, level), model=message.PLACE)


def _finding(place: Located, level: LevelDecision, action: Action, called: str) -> Finding | None:
    verdict = verdict_for(level.permission, action)
    if verdict is _ALLOW:
        return None
    what = f"`{place.relative}` of `{place.source_id}` is {level.permission} by {_by(place, level)}"
    if verdict is Verdict.ASK:
        asks = f"{what}, which asks before {called}"
        return Finding(verdict, "level-asks", asks, _address(place, level), about=place.relative)
    denies = f"{what}, which denies {action}"  # no level but none denies reading
    return Finding(verdict, "level-denies", denies, _address(place, level), model=message.PLACE_FIXED)


def _named_closed(place: NamedPlace, level: LevelDecision) -> Finding:
    if level.protected or place.source_id is None:
        closed = "is protected, or in the folder of a source that was moved: no tool reaches it"
        return Finding(Verdict.DENY, "protected", f"{_named(place)} {closed}", model=message.PLACE)
    at = Located(place.source_id, place.inside or place.relative, place.absolute)
    reason = f"{_named(place)} is none by {_by(at, level)}"
    return Finding(Verdict.DENY, "level-none", reason, _address(at, level), model=message.PLACE)


def _named_finding(state: CallState, place: NamedPlace) -> Finding | None:
    level = place.level
    if level is None or place.source_id is None:
        return None
    at = Located(place.source_id, place.inside or place.relative, place.absolute)
    found = _finding(at, level, place.action, _called(state, place.action))
    if found is None:
        return None
    return replace(found, reason=_named(place) + found.reason.removeprefix(f"`{at.relative}` of `{at.source_id}`"))


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
