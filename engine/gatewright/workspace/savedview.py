"""The models' views under the last saved policy, for comparison with the present ones."""

from __future__ import annotations

from dataclasses import replace

from gatewright.compile.snapshot import Snapshot
from gatewright.gate import AgentView, Gate
from gatewright.policy.document import Policy
from gatewright.record.process import fork_safe_lock


class SavedViews:
    """Views of the saved policy over the present tools, kept until either changes.

    They share the parts that later edits leave alone with the policy in force, so that a view costs only its
    differences.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._policy: Policy | None = None
        self._snapshot: Snapshot | None = None
        self._views: dict[str, AgentView] = {}

    def view(self, gate: Gate, saved: Policy, agent_id: str) -> AgentView | None:
        """Return an agent's view under the saved policy; None if it lacks the agent.

        If catalogs or roots changed since, their former tools are gone, and the present ones replace them; see
        `remark`.
        """
        now = gate.snapshot()
        with self._lock:
            held = self._snapshot
            if held is None or self._policy is not saved or not held.is_current or _offers(held.policy, now.policy):
                held = (
                    now
                    if now.policy is saved
                    else now.renew(replace(saved, **{part: getattr(now.policy, part) for part in _OFFERS}), None)
                )
                self._policy, self._snapshot, self._views = saved, held, {}
            agent = held.agent(agent_id)
            if agent is None:
                return None
            if agent_id not in self._views:
                self._views[agent_id] = AgentView(agent)
            return self._views[agent_id]

    @staticmethod
    def remark(gate: Gate, saved: Policy) -> str:
        """Explain a limit of comparing a saved view with the present one; empty without any."""
        parts = _offers(saved, gate.snapshot().policy)
        return f"{' and '.join(parts)} changed since the last save: both sides have the tools of now" if parts else ""


_OFFERS = ("catalogs", "roots", "shell")


def _offers(one: Policy, other: Policy) -> list[str]:
    """List the parts that supply tools in which two policies differ."""
    return [part for part in _OFFERS if getattr(one, part) != getattr(other, part)]
