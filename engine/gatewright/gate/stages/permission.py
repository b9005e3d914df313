"""The stages that compare a call with its agent's grants: capabilities, and levels of places and blocks.

* **capability**: the kinds that the operation needs are granted, and its hosts, paths and names lie within the grant.
  Every marked argument is judged under its own kind, and under each needed kind that has no argument of its own. If a
  call has nothing by which a needed kind could be judged, it passes only under a grant without limits. Paths in sources
  are judged only for operations that need a file kind: an attached source implies access for other tools.
* **permission**: the level of every place and block in the call permits the call's action there. Places are those in
  sources, and paths on disk below the base of one. The tool says what a call does to a path on disk; otherwise the call
  reads it, or overwrites it if its parameter is marked as written. A place without a level, or a protected one, gets
  the same words as a missing one; so does a block of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gatewright.arguments.url import UrlTarget
from gatewright.base.errors import Address, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.compile.rule_test import Finding
from gatewright.gate.call import CallState, Stage, StageResult, deny
from gatewright.gate.decision import Message
from gatewright.gate.scope import covers_name, grants_of, hosts_of, names_of, prefixes_of
from gatewright.policy.capability import SCOPED, Capability, CapabilityKind
from gatewright.policy.document import Agent
from gatewright.policy.reach import granted_kinds
from gatewright.policy.target import (
    NOT_PERMITTED,
    Assessment,
    BlockTarget,
    CapabilityCheck,
    LevelDecision,
    Located,
    NamedPlace,
)
from gatewright.policy.verdict import (
    LEVEL_VERDICTS,
    Action,
    Permission,
    Verdict,
    common_depth,
    covers,
    host_matches,
    verdict_for,
)
from gatewright.tools.context import Ports

_NET = frozenset({CapabilityKind.NET_READ, CapabilityKind.NET_WRITE})
_FS = frozenset({CapabilityKind.FS_READ, CapabilityKind.FS_WRITE})
_DB = frozenset({CapabilityKind.DB_READ, CapabilityKind.DB_WRITE})
_TOP = "/"
_SHOWN = 200

_CODES = {
    **dict.fromkeys(_NET, "host-not-granted"),
    **dict.fromkeys(_FS, "path-not-granted"),
    **dict.fromkeys(_DB, "table-not-granted"),
    CapabilityKind.ENV_READ: "variable-not-granted",
}
_WORDS = {
    **dict.fromkeys(_NET, "that address is not available to you; use another one"),
    **dict.fromkeys(_FS, Message.PLACE),
    **dict.fromkeys(_DB, "that table is not available to you; use another one"),
    CapabilityKind.ENV_READ: "that variable is not available to you; use another one",
}
_MODEL = "this tool may not do that here; go on without it"
_PASSES = StageResult(note="no capability needed")


@frozen
class _Target:
    """One thing that an argument names: a test of whether a capability covers it, and a measure of how near one
    comes.
    """

    kind: CapabilityKind
    text: str
    covered: Callable[[Capability], bool]
    nearness: Callable[[Capability], int]


def _check_capabilities(state: CallState) -> StageResult:
    """Require grants of the kinds that the operation needs, with its hosts, paths and names within them."""
    needed = state.chosen.capabilities
    if not (needed or state.urls or state.files or state.names or (state.named and state.plan.tool.in_folder)):
        return _PASSES
    agent = state.agent.agent if state.agent is not None else None
    if agent is None:
        raise LookupError("a stage used the agent of a call that has none")
    checks: list[CapabilityCheck] = []
    findings: list[Finding] = []
    for kind, held in _targets_by_kind(needed, list(_targets(state))):
        for check, finding in _judge(state, agent, kind, held):
            checks.append(check)
            findings += [finding] if finding is not None else []
    note = ", ".join(dict.fromkeys(f"{check.kind} is granted" for check in checks))
    state.checks = tuple(checks)
    return StageResult(tuple(findings), note=note)


def _targets_by_kind(
    needed: frozenset[CapabilityKind], targets: Sequence[_Target]
) -> Iterator[tuple[CapabilityKind, list[_Target]]]:
    """Each judged kind with its targets, in the order of the kinds."""
    own = {target.kind for target in targets}
    for kind in CapabilityKind:
        if kind in own:
            yield kind, [target for target in targets if target.kind is kind]
        elif kind in needed:
            family = next((family for family in (_NET, _FS, _DB) if kind in family), ())
            yield kind, [target for target in targets if target.kind in family]


def _judge(
    state: CallState, agent: Agent, kind: CapabilityKind, targets: list[_Target]
) -> Iterator[tuple[CapabilityCheck, Finding | None]]:
    grants, ports = grants_of(agent, kind), state.ports
    if kind not in granted_kinds(capability for _, capability in grants):
        text = f"agent `{agent.agent_id}` is not granted {kind}"
        model = _WORDS[kind] if kind in _FS and targets and state.plan.tool.in_folder else _MODEL
        finding = Finding(Verdict.DENY, "capability-not-granted", text, _list_address(agent), model=model)
        yield CapabilityCheck(kind, allowed=False), finding
    elif targets:
        for target in targets:
            yield _within(agent, kind, grants, target)
    elif kind not in SCOPED or any(one.is_whole or _TOP in _prefixes(one, ports) for _, one in grants):
        yield CapabilityCheck(kind, allowed=True), None
    else:
        text = f"the call names nothing that {kind} could be judged by, and the grant of `{agent.agent_id}` is limited"
        address = _grant_address(agent, grants[0][0]) if len(grants) == 1 else _list_address(agent)
        yield (
            CapabilityCheck(kind, allowed=False),
            Finding(Verdict.DENY, "capability-unjudgeable", text, address, model=_MODEL),
        )


def _within(
    agent: Agent, kind: CapabilityKind, grants: list[tuple[int, Capability]], target: _Target
) -> tuple[CapabilityCheck, Finding | None]:
    if any(target.covered(capability) for _, capability in grants):
        return CapabilityCheck(kind, allowed=True, target=target.text), None
    nearest, index = max((target.nearness(capability), -index) for index, capability in grants)
    near = len(grants) == 1 or nearest > 0
    address = _grant_address(agent, -index) if near else _list_address(agent)
    text = f"`{target.text[:_SHOWN]}` lies outside of the {kind} of agent `{agent.agent_id}`"
    finding = Finding(Verdict.DENY, _CODES[kind], text, address, model=_WORDS[kind])
    return CapabilityCheck(kind, allowed=False, target=target.text), finding


def _targets(state: CallState) -> Iterator[_Target]:
    """The targets in the arguments, each under its marker's kind."""
    ports = state.ports
    reached = state.plan.actor.web_targets(state.chosen.name, state.ports.web)
    for url in (*state.urls, *(one for one in reached if isinstance(one, UrlTarget)), *state.onward):
        yield _host_target(CapabilityKind.NET_WRITE if url.writes else CapabilityKind.NET_READ, url)
    for file in state.files:
        yield _path_target(CapabilityKind.FS_WRITE if file.writes else CapabilityKind.FS_READ, file.absolute, ports)
    for name in state.names:
        yield _name_target(name.kind, name.name)
    on_disk = {file.place for file in state.files}
    for kind in (CapabilityKind.FS_READ, CapabilityKind.FS_WRITE):
        if kind in state.chosen.capabilities:
            for place in state.places:
                if place not in on_disk:
                    yield _path_target(kind, place.absolute, ports)
    needed = state.chosen.capabilities & _FS
    for place in state.named:
        if place.needs_grant:
            if place.source_id is None or place.source_id not in _own_sources(state):
                kind = CapabilityKind.FS_READ if place.action is Action.READ else CapabilityKind.FS_WRITE
                yield _path_target(kind, place.absolute, ports)
        elif needed and place.start in {None, ports.folder}:
            kind = CapabilityKind.FS_READ if place.action is Action.READ else CapabilityKind.FS_WRITE
            yield _path_target(kind if kind in needed else next(iter(needed)), place.absolute, ports)


def _own_sources(state: CallState) -> tuple[str, ...]:
    """The sources of files that the agent has: reaching them needs no grant."""
    return () if state.agent is None else state.agent.source_ids


def _host_target(kind: CapabilityKind, url: UrlTarget) -> _Target:
    shown = f"[{url.host}]" if ":" in url.host else url.host

    def is_covered(capability: Capability) -> bool:
        return any(host_matches(pattern, url.host, url.port) for pattern in hosts_of(capability))

    def nearness(capability: Capability) -> int:
        wanted = url.host.split(".")[::-1]
        names = [pattern.lower().removeprefix("*.").partition(":")[0] for pattern in hosts_of(capability)]
        return max((_common(wanted, name.split(".")[::-1]) for name in names), default=0)

    return _Target(kind, f"{shown}:{url.port}" if url.port else shown, is_covered, nearness)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    depth = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        depth += 1
    return depth


def _prefixes(capability: Capability, ports: Ports) -> list[str]:
    return prefixes_of(capability, ports.folder, ports.real)


def _path_target(kind: CapabilityKind, absolute: str, ports: Ports) -> _Target:
    def is_covered(capability: Capability) -> bool:
        return any(covers(prefix, absolute) for prefix in _prefixes(capability, ports))

    def nearness(capability: Capability) -> int:
        return max((common_depth(prefix, absolute) for prefix in _prefixes(capability, ports)), default=0)

    return _Target(kind, absolute, is_covered, nearness)


def _name_target(kind: CapabilityKind, name: str) -> _Target:
    return _Target(kind, name, lambda capability: covers_name(names_of(capability), name), lambda _: 0)


def _grant_address(agent: Agent, index: int) -> tuple[str | int, ...]:
    return ("agents", agent.agent_id, "capabilities", index)


def _list_address(agent: Agent) -> tuple[str | int, ...]:
    return ("agents", agent.agent_id, "capabilities")


CAPABILITY = Stage("capability", _check_capabilities)


_NONE, _ALLOW = Permission.NONE, Verdict.ALLOW
_SETS = {
    Permission.NONE: "hidden",
    Permission.READ_ONLY: "read only",
    Permission.ASK: "ask first",
    Permission.PARTNER: "changes ask",
    Permission.HUMAN: "ask to change",
    Permission.APPEND: "add only",
    Permission.READ_WRITE: "read and write",
    Permission.ADMIN: "full access",
}
_ACTIONS = tuple(Action)
_NOT_THERE = "this is not available for that path; choose another one"
_NOWHERE = StageResult(note="no place named")
_Levels = list[tuple[Located, LevelDecision]]


def _check_levels(state: CallState) -> StageResult:
    """Require levels at every place and block of the call that permit its action there."""
    sources, chosen = state.ports.sources, state.chosen
    levels: _Levels = []
    if sources is not None:
        for place in state.places:
            levels.append((place, place.level or sources.level(place)))
    closed, observation = _bar(state, levels), state.plan.observation
    if closed is not None and not (observation is not None and observation.passes("permission", closed)):
        return StageResult((closed,))
    try:
        assessment = _assess(state)
    except ToolFailure as failure:
        if failure.code == NOT_PERMITTED or not _all_allowed(state, levels):
            return deny(failure.code, str(failure), state.plan.redactor(str(failure)))
        assessment = Assessment.failing(chosen.actions[-1] if chosen.actions else None, failure)
    state.assessment = assessment
    if assessment.action is not None and not levels and state.plan.right.facts.needs_source:
        return deny("no-place", "the call names no place whose level could permit it", Message.PLACE)
    findings, notes = _objections(state, assessment, levels)
    if closed is not None:
        findings.insert(0, closed)
    if findings:
        findings.sort(key=lambda finding: finding.verdict is not Verdict.DENY)
        return StageResult(tuple(findings))
    return StageResult(note=", ".join(notes)) if notes else _NOWHERE


def _bar(state: CallState, levels: _Levels) -> Finding | None:
    """The denial of a call that names a place, block or source that nobody, or not this agent, can reach."""
    for place, level in levels:
        if level.permission is _NONE or level.protected:
            return _unreachable(f"`{place.relative}` of `{place.source_id}`", place, level)
    for place in state.named:
        level = place.level
        if level is not None and (level.permission is _NONE or level.protected):
            finding = _unreachable(_place_words(place), _as_located(place), level)
            return replace(finding, model=Message.SEARCH) if place.inside and place.needs_grant else finding
    for block in state.blocks:
        if block.permission is _NONE and block.block_id:
            reason = f"block `{block.label}` ({block.block_id}) is hidden from the agent"
            return Finding(Verdict.DENY, "level-none", reason, model=Message.NO_BLOCK)
        if block.permission is _NONE:
            reason = f"neither the agent nor the workspace has a block `{block.label}`"
            return Finding(Verdict.DENY, "unknown-block", reason, model=Message.NO_BLOCK)
    denials = state.chosen.source_denials
    for source_id in sorted(state.sources) if denials else ():
        if denial := denials.get(source_id):
            return replace(denial, model=denial.model or _NOT_THERE)
    return None


def _unreachable(what: str, at: Located | None, level: LevelDecision) -> Finding:
    if at is None or level.protected:
        reason = f"{what} is protected, or in the folder of a moved source: no tool reaches it"
        return Finding(Verdict.DENY, "protected", reason, model=Message.PLACE)
    reason = f"{what} is set to {_SETS[level.permission]} by {_by(at, level)}"
    return Finding(Verdict.DENY, "level-none", reason, _level_address(at, level), model=Message.PLACE)


def _assess(state: CallState) -> Assessment:
    """The tool's own assessment of the call; for a batch, of the part with the strongest action. Raises ToolFailure."""
    tool, chosen = state.plan.actor, state.chosen
    if chosen.assessment is not None:
        return chosen.assessment
    context = state.context()
    if not chosen.parts:
        return tool.assess(chosen.name, state.arguments, context)
    found = [one.assessment or tool.assess(one.name, state.arguments, context) for one in chosen.parts]
    most = max(found, key=lambda one: -1 if one.action is None else _ACTIONS.index(one.action))
    return replace(most, ask=next((one.ask for one in found if one.ask is not None), None))


def _all_allowed(state: CallState, levels: _Levels) -> bool:
    """Tell whether the levels allow every possible action: then the tool itself may explain its failure."""
    held = [level.permission for _, level in levels] + [block.permission for block in state.blocks]
    return all(verdict_for(level, action) is _ALLOW for action in state.chosen.actions for level in held)


def _objections(state: CallState, assessment: Assessment, levels: _Levels) -> tuple[list[Finding], list[str]]:
    """The objections of the levels to the call's actions, and each level for the trace."""
    findings: list[Finding] = []
    notes: list[str] = []
    for place, level in levels:
        notes.append(f"`{place.relative}` is set to {_SETS[level.permission]}")
        for action in _actions(state, assessment, place):
            if LEVEL_VERDICTS[level.permission, action] is not _ALLOW:
                what = f"`{place.relative}` of `{place.source_id}`"
                findings.append(_objection(state, what, place, level, action))
    for place in sorted(state.named, key=lambda one: bool(one.program) and not one.stands):
        if place.level is not None:
            notes.append(f"`{place.relative}` of `{place.source_id}` is set to {_SETS[place.level.permission]}")
            at = _as_located(place)
            verdict = verdict_for(place.level.permission, place.action)
            if at is not None and verdict is Verdict.ASK and place.program:
                findings.append(_question(place, at, place.level))
            elif at is not None and verdict is not _ALLOW:
                findings.append(_objection(state, _place_words(place), at, place.level, place.action))
    for block in state.blocks:
        notes.append(f"block `{block.label}` is set to {_SETS[block.permission]}")
        if assessment.action is not None and (finding := _block_objection(state, block, assessment.action)):
            findings.append(finding)
    if assessment.ask is not None:
        findings.append(Finding(Verdict.ASK, "tool-asks", assessment.ask))
    return findings, notes


def _actions(state: CallState, assessment: Assessment, place: Located) -> Iterable[Action]:
    """The actions of the call at that place; of several files, only those marked as written get the action."""
    if not state.files:
        return () if assessment.action is None else (assessment.action,)
    files = [file for file in state.files if file.place == place]
    if assessment.action is not None:
        only_read = bool(files) and not any(file.writes for file in files) and any(file.writes for file in state.files)
        return (Action.READ if only_read else assessment.action,)
    return frozenset(Action.OVERWRITE if file.writes else Action.READ for file in files)


def _objection(state: CallState, what: str, at: Located, level: LevelDecision, action: Action) -> Finding:
    """The objection of a level that asks before the action, or denies it."""
    verdict = verdict_for(level.permission, action)
    said = f"{what} is set to {_SETS[level.permission]} by {_by(at, level)}"
    if verdict is Verdict.ASK:
        asks = f"{said}, which asks before {_action_words(state, action)}"
        return Finding(verdict, "level-asks", asks, _level_address(at, level), about=at.relative)
    denies = f"{said}, which denies {action}"  # only level none denies reading
    return Finding(verdict, "level-denies", denies, _level_address(at, level), model=Message.PLACE_FIXED)


def _question(place: NamedPlace, at: Located, level: LevelDecision) -> Finding:
    """The question before a program of a shell command uses a file, or a file that one of its words may name."""
    does = "read" if place.action is Action.READ else "change"
    what = f"`{at.relative}` of `{at.source_id}`"
    if place.stands:
        said = f"`{place.program}` may {does} {what}, which"
    else:
        said = f"`{place.program}` may {does} files of `{at.source_id}`: its word `{at.relative}` could be one, and"
    asks = f"{said} is set to {_SETS[level.permission]} by {_by(at, level)}, which asks before {place.action}"
    about = f"{place.program} {at.relative}"
    return Finding(Verdict.ASK, "level-asks", asks, _level_address(at, level), about=about)


def _block_objection(state: CallState, block: BlockTarget, action: Action) -> Finding | None:
    verdict = verdict_for(block.permission, action)
    what = f"block `{block.label}` ({block.block_id}) is set to {_SETS[block.permission]}"
    if verdict is Verdict.ASK:
        asks = f"{what}, which asks before {_action_words(state, action)}"
        return Finding(verdict, "level-asks", asks, about=f"block {block.label}")
    if verdict is Verdict.DENY:
        return Finding(verdict, "level-denies", f"{what}, which denies {action}", model=Message.BLOCK_FIXED)
    return None


def _action_words(state: CallState, action: Action) -> str:
    """The caller's name for the call: its operation; for a batch or a tool without operations the action."""
    name = "" if state.chosen.parts else state.chosen.name
    return f"`{name}`" if name else str(action)


def _as_located(place: NamedPlace) -> Located | None:
    """The place as one in its source."""
    if place.source_id is None:
        return None
    return Located(place.source_id, place.inside or place.relative, place.absolute)


def _place_words(place: NamedPlace) -> str:
    """Words for the argument, its place on disk, and the part of it that has the level."""
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


def _level_address(place: Located, level: LevelDecision) -> Address:
    source_id = level.source_id or place.source_id
    if level.index is None:
        return ("sources", source_id, "default_permission")
    return ("sources", source_id, "permission_rules", level.index)


PERMISSION = Stage("permission", _check_levels)
