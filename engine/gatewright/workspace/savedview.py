"""What the models saw by the policy as it was last saved, beside what they see now. It reads and writes no file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.gate import AgentView
from gatewright.record.process import fork_safe_lock

if TYPE_CHECKING:
    from gatewright.compile.snapshot import Snapshot
    from gatewright.gate import Gate
    from gatewright.policy.document import Policy


class SavedViews:
    """Views made from a saved policy over the tools as they are now; kept until either is another one.

    What the edits since then do not concern is shared with the policy in force, so that a view costs what differs.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._policy: Policy | None = None
        self._snapshot: Snapshot | None = None
        self._views: dict[str, AgentView] = {}

    def view(self, gate: Gate, saved: Policy, agent_id: str) -> AgentView | None:
        """The view of an agent by the saved policy; None where it has no such agent.

        Where catalogs or roots were changed since, the tools of then are not there any more, and those of now stand in
        for them; see `remark`.
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
        """What has to be known to compare a saved view with the present one; empty where nothing has."""
        parts = _offers(saved, gate.snapshot().policy)
        return f"{' and '.join(parts)} changed since the last save: both sides have the tools of now" if parts else ""


_OFFERS = ("catalogs", "roots", "shell")


def _offers(one: Policy, other: Policy) -> list[str]:
    """In which of the parts that say where tools come from two policies differ."""
    return [part for part in _OFFERS if getattr(one, part) != getattr(other, part)]
