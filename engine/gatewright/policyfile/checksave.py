"""Agents that may change texts of files but not write them to disk: all stays in blocks. It reads no TOML."""

from __future__ import annotations

from collections.abc import Collection

from gatewright.base.problem import Address
from gatewright.base.report import RawPath, Report
from gatewright.policy.document import Agent, Dialect, Policy
from gatewright.policy.requirement import Majors, Sight
from gatewright.policy.right import ToolRight

_TOOL, _SAVE = "file", "save"
_EDITS = ("append", "insert", "replace", "patch")
"""What changes a block alone; creating and deleting reach the disk by themselves."""


class Unsaved:
    """The warnings for the agents of policies that differ in their agents alone; the rights of each are kept.

    ``slim``: such a policy without policy rules that rights do not depend on.
    """

    def __init__(self, slim: Policy, majors: Majors) -> None:
        self._slim, self._majors = slim, majors
        self._rights: dict[str, tuple[Agent, ToolRight]] = {}

    def warn(self, policy: Policy, agents: Collection[Agent], report: Report) -> None:
        """Add the warnings for these agents. ``policy`` is the slim one with all of its rules."""
        if not any(facts.origin == "built-in" and facts.needs_source for facts in self._majors.get(_TOOL, ())):
            return
        rights = {agent.agent_id: self._right(agent) for agent in agents}
        savers = [agent for agent in agents if _SAVE in rights[agent.agent_id].shown]
        for agent in agents:
            right = rights[agent.agent_id]
            edits = [name for name in _EDITS if name in right.shown]
            if not edits or _SAVE in right.shown:
                continue
            own = {source.source_id for source in policy.sources_of(agent)}  # the blocks of their files are shared
            saver = next((one for one in savers if any(s.source_id in own for s in policy.sources_of(one))), None)
            end = "reaches the disk" if saver is None else f"reaches the disk unless agent `{saver.agent_id}` saves it"
            may = " and ".join(f"`{name}`" for name in edits)
            message = f"agent `{agent.agent_id}` may {may} with `{_TOOL}` but not `{_SAVE}`: nothing of it {end}"
            place, about = _place(policy, self._slim, agent, right), ((_TOOL, _SAVE),)
            report.warning(place, "edits-never-saved", message, at_value=True, agent_id=agent.agent_id, tools=about)

    def _right(self, agent: Agent) -> ToolRight:
        held = self._rights.get(agent.agent_id)
        if held is None or held[0] is not agent:
            held = self._rights[agent.agent_id] = (agent, Sight(self._slim, agent, self._majors).right(_TOOL))
        return held[1]


def _place(policy: Policy, slim: Policy, agent: Agent, right: ToolRight) -> RawPath:
    """What hides the operation, else the agent."""
    row = next((row for row in right.operations if row.operation == _SAVE), None)
    address: Address = next((reason.address for reason in row.reasons if reason.address), ()) if row else ()
    own: RawPath = () if policy.dialect is Dialect.PATTERN else ("agents", agent.agent_id)
    match address:
        case ("agents", _, "tool_rules", int(index)):
            return (*own, "tool_rules", index, "rule_type")
        case ("agents", _, *rest):
            return (*own, *rest)
        case ("policy", "rules", int(index)):
            return ("policy", "rules", next(at for at, rule in enumerate(policy.rules) if rule is slim.rules[index]))
        case ("sources", str(source_id), *rest) if policy.dialect is Dialect.GATEWRIGHT:
            return ("sources", [source.source_id for source in policy.sources].index(source_id), *rest)
        case ("sources", *_):
            return own
        case _:
            return address or own
