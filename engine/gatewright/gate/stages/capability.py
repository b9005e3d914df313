"""Capability: the kinds that the operation needs are granted, and its hosts, paths and names lie within the grant.

Every marked argument is judged under its own kind, and under a needed kind that no argument of its own stands for. A
needed kind with nothing to judge in the call passes only where the grant leaves nothing out. Paths in sources are
judged only for operations that need a file kind: an attached source implies access for tools that ask for no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gatewright.arguments.url import UrlTarget
from gatewright.base.frozen import frozen
from gatewright.compile.finding import Finding
from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult
from gatewright.gate.scope import covers_name, granted, hosts_of, names_of, prefixes_of
from gatewright.policy.document import Agent
from gatewright.policy.granted import granted_kinds
from gatewright.policy.hostpattern import host_matches
from gatewright.policy.kinds.capability import SCOPED, Capability, CapabilityKind
from gatewright.policy.permission import Action
from gatewright.policy.prefix import common_depth, covers
from gatewright.policy.target import CapabilityCheck
from gatewright.policy.verdict import Verdict
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
    **dict.fromkeys(_FS, message.PLACE),
    **dict.fromkeys(_DB, "that table is not available to you; use another one"),
    CapabilityKind.ENV_READ: "that variable is not available to you; use another one",
}
_MODEL = "this tool may not do that here; go on without it"
_PASSES = StageResult(note="no capability needed")


@frozen
class _Target:
    """One thing that an argument names: whether a capability covers it, and how near one comes that does not."""

    kind: CapabilityKind
    text: str
    covered: Callable[[Capability], bool]
    nearness: Callable[[Capability], int]


def _run(state: CallState) -> StageResult:
    needed = state.chosen.capabilities
    if not (needed or state.urls or state.files or state.names):
        return _PASSES
    agent = state.agent.agent if state.agent is not None else None
    if agent is None:
        raise LookupError("a stage asked for the agent of a call that has none")
    checks: list[CapabilityCheck] = []
    findings: list[Finding] = []
    for kind, held in _judged(needed, list(_targets(state))):
        for check, finding in _judge(state, agent, kind, held):
            checks.append(check)
            findings += [finding] if finding is not None else []
    note = ", ".join(dict.fromkeys(f"{check.kind} is granted" for check in checks))
    state.checks = tuple(checks)
    return StageResult(tuple(findings), note=note)


def _judged(
    needed: frozenset[CapabilityKind], targets: Sequence[_Target]
) -> Iterator[tuple[CapabilityKind, list[_Target]]]:
    """Each kind that counts with the targets to be judged under it, in the order of the kinds."""
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
    grants, ports = granted(agent, kind), state.ports
    if kind not in granted_kinds(capability for _, capability in grants):
        text = f"agent `{agent.agent_id}` is not granted {kind}"
        finding = Finding(Verdict.DENY, "capability-not-granted", text, _list_address(agent), model=_MODEL)
        yield CapabilityCheck(kind, allowed=False), finding
    elif targets:
        for target in targets:
            yield _within(agent, kind, grants, target)
    elif kind not in SCOPED or any(one.is_whole or _TOP in _prefixes(one, ports) for _, one in grants):
        yield CapabilityCheck(kind, allowed=True), None
    else:
        text = f"the call names nothing that {kind} could be judged by, and the grant of `{agent.agent_id}` is limited"
        address = _address(agent, grants[0][0]) if len(grants) == 1 else _list_address(agent)
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
    address = _address(agent, -index) if near else _list_address(agent)
    text = f"`{target.text[:_SHOWN]}` lies outside of the {kind} of agent `{agent.agent_id}`"
    finding = Finding(Verdict.DENY, _CODES[kind], text, address, model=_WORDS[kind])
    return CapabilityCheck(kind, allowed=False, target=target.text), finding


def _targets(state: CallState) -> Iterator[_Target]:
    """What the arguments name, each under the kind that its marker stands for."""
    ports = state.ports
    reached = state.plan.tool.actor.reached(state.chosen.name, state.ports.web)
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
    for place in state.named if needed else ():
        if place.start in {None, ports.folder}:
            kind = CapabilityKind.FS_READ if place.action is Action.READ else CapabilityKind.FS_WRITE
            yield _path_target(kind if kind in needed else next(iter(needed)), place.absolute, ports)


def _host_target(kind: CapabilityKind, url: UrlTarget) -> _Target:
    shown = f"[{url.host}]" if ":" in url.host else url.host

    def covered(capability: Capability) -> bool:
        return any(host_matches(pattern, url.host, url.port) for pattern in hosts_of(capability))

    def nearness(capability: Capability) -> int:
        wanted = url.host.split(".")[::-1]
        names = [pattern.lower().removeprefix("*.").partition(":")[0] for pattern in hosts_of(capability)]
        return max((_shared(wanted, name.split(".")[::-1]) for name in names), default=0)

    return _Target(kind, f"{shown}:{url.port}" if url.port else shown, covered, nearness)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    depth = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        depth += 1
    return depth


def _prefixes(capability: Capability, ports: Ports) -> list[str]:
    return prefixes_of(capability, ports.folder, ports.real)


def _path_target(kind: CapabilityKind, absolute: str, ports: Ports) -> _Target:
    def covered(capability: Capability) -> bool:
        return any(covers(prefix, absolute) for prefix in _prefixes(capability, ports))

    def nearness(capability: Capability) -> int:
        return max((common_depth(prefix, absolute) for prefix in _prefixes(capability, ports)), default=0)

    return _Target(kind, absolute, covered, nearness)


def _name_target(kind: CapabilityKind, name: str) -> _Target:
    return _Target(kind, name, lambda capability: covers_name(names_of(capability), name), lambda _: 0)


def _address(agent: Agent, index: int) -> tuple[str | int, ...]:
    return ("agents", agent.agent_id, "capabilities", index)


def _list_address(agent: Agent) -> tuple[str | int, ...]:
    return ("agents", agent.agent_id, "capabilities")


CAPABILITY = Stage("capability", _run)
