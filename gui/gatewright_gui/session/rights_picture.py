"""What all agents may do, as the Overview tells it. For the worker process: nothing of Qt is loaded."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from gatewright.workspace.api import (
    Action,
    AgentView,
    OperationFacts,
    SafetyTier,
    Verdict,
    Workspace,
    frozen,
)

AT_A_TIME_S = 0.03
"""How long one question may take; then what is known is shown, and the next is asked."""
MOST_RISKS = 200


@frozen
class Share:
    """How many operations of an agent are on without asking, ask first, are blocked, and are off.

    `privileged`: how many of those that are on or ask.
    """

    on: int
    asks: int
    blocked: int
    off: int
    privileged: int

    @property
    def shown(self) -> int:
        """Those that the model sees."""
        return self.on + self.asks

    @property
    def every(self) -> int:
        """All of them."""
        return self.shown + self.blocked + self.off


@frozen
class Risk:
    """An operation that is privileged or deletes, and is on without asking; `agents`: for which."""

    tool: str
    operation: str
    is_privileged: bool
    agents: tuple[str, ...]


@frozen
class _Reach:
    """What is kept of an agent: its share, and its risks as (tool, operation, privileged)."""

    share: Share
    risks: tuple[tuple[str, str, bool], ...]


_reaches: WeakKeyDictionary[AgentView, _Reach] = WeakKeyDictionary()
"""By the view that it was read off: an edit gives another one to the agents that it concerns, and to no others."""


def shares_of(workspace: Workspace, agent_ids: Iterable[str]) -> dict[str, Share]:
    """The shares of these agents: of the first at least, of the others while there is time."""
    found: dict[str, Share] = {}
    until = time.monotonic() + AT_A_TIME_S
    for agent_id in agent_ids:
        if agent_id in workspace.policy.agents:
            found[agent_id] = _reach(workspace, agent_id).share
        if time.monotonic() > until:
            break
    return found


def risks_of(workspace: Workspace) -> tuple[Risk, ...]:
    """The riskiest operations, privileged ones and those of most agents first."""
    agents: defaultdict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for agent_id in workspace.policy.agents:
        for risk in _reach(workspace, agent_id).risks:
            agents[risk].append(agent_id)
    ranked = sorted(agents, key=lambda risk: (not risk[2], -len(agents[risk]), risk))
    return tuple(Risk(*risk, tuple(agents[risk])) for risk in ranked[:MOST_RISKS])


def _reach(workspace: Workspace, agent_id: str) -> _Reach:
    view = workspace.view(agent_id)
    found = _reaches.get(view)
    if found is None:
        found = _reaches[view] = _read_off(view)
    return found


def _read_off(view: AgentView) -> _Reach:
    counts, risks = Counter[str](), list[tuple[str, str, bool]]()
    for name, right in view.rights.items():
        for op, row in zip(right.facts.operations, right.operations, strict=True):
            if not row.ticked:
                counts["off"] += 1
                continue
            if row.verdict is Verdict.DENY:
                counts["blocked"] += 1
                continue
            is_privileged = row.tier is SafetyTier.PRIVILEGED
            counts["privileged"] += is_privileged
            counts["on" if row.verdict is Verdict.ALLOW else "asks"] += 1
            if row.verdict is Verdict.ALLOW and (is_privileged or deletes(op)):
                risks.append((name, op.name, is_privileged))
    share = Share(*(counts[name] for name in ("on", "asks", "blocked", "off", "privileged")))
    return _Reach(share, tuple(risks))


def deletes(op: OperationFacts) -> bool:
    """Whether a call may delete a file or a block."""
    return Action.DELETE in op.actions or any(
        one.use is not None and one.use.action is Action.DELETE for one in op.paths
    )
