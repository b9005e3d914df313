"""Permission: the level of every place that the call names permits what the call would do there.

Places are those in sources, and paths on disk that lie below the base of one. A path on disk is judged by what the tool
says that the call does; a tool that says nothing reads it, or overwrites it where its parameter is one that is written.
A place without a level, or a protected one, gets the same words as one that is not there. It knows no globs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatewright.base.errors import ToolFailure
from gatewright.base.problem import Address
from gatewright.gate import message
from gatewright.gate.call import CallState, Finding, Stage, StageResult, denied
from gatewright.gate.context import context_of
from gatewright.gate.stages.rules import routed
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.target import Assessment, LevelDecision, Located
from gatewright.policy.verdict import Verdict

_NONE, _ALLOW = Permission.NONE, Verdict.ALLOW
_NOT_THERE = "this is not available for that path; choose another one"


def _run(state: CallState) -> StageResult:
    sources = state.ports.sources
    levels = [(place, place.level or sources.level(place)) for place in state.places] if sources is not None else []
    for place, level in levels:
        if level.permission is _NONE or level.protected:
            return StageResult(state, (_closed(place, level),))
    denials = state.chosen.source_denials
    closed_off = next((f for name in sorted(routed(state)) if (f := denials.get(name))), None) if denials else None
    if closed_off is not None:
        return StageResult(state, (replace(closed_off, model=closed_off.model or _NOT_THERE),))
    try:
        assessment = state.plan.tool.assess(state.chosen.name, state.arguments, context_of(state))
    except ToolFailure as failure:
        if not _all_allowed(state.chosen.actions, levels):
            return denied(state, failure.code, str(failure), state.plan.redactor(str(failure)))
        assessment = Assessment(state.chosen.actions[-1] if state.chosen.actions else None)
    state = state.having(assessment=assessment)
    findings = [
        finding
        for place, level in levels
        for action in _actions(state, assessment, place)
        if (finding := _finding(place, level, action)) is not None
    ]
    return _judged(state, assessment, findings, levels)


def _actions(state: CallState, assessment: Assessment, place: Located) -> Iterable[Action]:
    """What the call would do at that place."""
    if assessment.action is not None:
        return (assessment.action,)
    files = (file for file in state.files if file.place == place)
    return frozenset(Action.OVERWRITE if file.writes else Action.READ for file in files)


def _all_allowed(actions: tuple[Action, ...], levels: list[tuple[Located, LevelDecision]]) -> bool:
    """Whether it need not be known which action it is: then the tool itself says why it fails."""
    return all(verdict_for(level.permission, action) is Verdict.ALLOW for action in actions for _, level in levels)


def _judged(
    state: CallState, assessment: Assessment, findings: list[Finding], levels: list[tuple[Located, LevelDecision]]
) -> StageResult:
    if assessment.action is not None and not levels and state.plan.right.facts.needs_source:
        return denied(state, "no-place", "the call names no place whose level could permit it", message.PLACE)
    if assessment.ask is not None:
        findings.append(Finding(Verdict.ASK, "tool-asks", assessment.ask))
    if len(findings) > 1:
        findings.sort(key=lambda finding: finding.verdict is not Verdict.DENY)
    note = ", ".join([f"`{place.relative}` is {level.permission}" for place, level in levels])
    return StageResult(state, tuple(findings), note=note or "no place named")


def _closed(place: Located, level: LevelDecision) -> Finding:
    if level.protected:
        reason = f"`{place.relative}` of `{place.source_id}` is protected: no tool reaches it"
        return Finding(Verdict.DENY, "protected", reason, model=message.PLACE)
    reason = f"`{place.relative}` of `{place.source_id}` is none by {_by(place, level)}"
    return Finding(Verdict.DENY, "level-none", reason, _address(place, level), model=message.PLACE)


def _finding(place: Located, level: LevelDecision, action: Action) -> Finding | None:
    verdict = verdict_for(level.permission, action)
    if verdict is _ALLOW:
        return None
    what = f"`{place.relative}` of `{place.source_id}` is {level.permission} by {_by(place, level)}"
    if verdict is Verdict.ASK:
        return Finding(verdict, "level-asks", f"{what}, which asks before {action}", _address(place, level))
    model = message.PLACE if action is Action.READ else message.PLACE_FIXED
    return Finding(verdict, "level-denies", f"{what}, which denies {action}", _address(place, level), model=model)


def _by(place: Located, level: LevelDecision) -> str:
    what = "default" if level.index is None else f"rule {level.index + 1} `{level.pattern}`"
    return what if level.source_id in {None, place.source_id} else f"{what} of `{level.source_id}`, which overlaps it"


def _address(place: Located, level: LevelDecision) -> Address:
    source_id = level.source_id or place.source_id
    if level.index is None:
        return ("sources", source_id, "default_permission")
    return ("sources", source_id, "permission_rules", level.index)


PERMISSION = Stage("permission", _run)
