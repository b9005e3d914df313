"""Agents that may change texts of files but not write them to disk: all stays in blocks. It reads no TOML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.policy.document import Dialect
from gatewright.policy.requirement import Sight

if TYPE_CHECKING:
    from gatewright.base.problem import Address
    from gatewright.policy.document import Agent, Policy
    from gatewright.policy.requirement import Majors
    from gatewright.policy.right import ToolRight
    from gatewright.policyfile.report import Report
    from gatewright.policyfile.scan import RawPath

_TOOL, _SAVE = "file", "save"
_EDITS = ("append", "insert", "replace", "patch")
"""What changes a block alone; creating and deleting reach the disk by themselves."""


def warn_unsaved(policy: Policy, slim: Policy, majors: Majors, report: Report) -> None:
    """Add the warnings. ``slim``: the policy without policy rules that rights do not depend on."""
    if not any(facts.origin == "built-in" and facts.needs_source for facts in majors.get(_TOOL, ())):
        return
    rights = {agent.agent_id: Sight(slim, agent, majors).right(_TOOL) for agent in policy.agents.values()}
    for agent in policy.agents.values():
        right = rights[agent.agent_id]
        edits = [name for name in _EDITS if name in right.shown]
        if not edits or _SAVE in right.shown:
            continue
        others = [other for other in policy.agents.values() if other is not agent and _shares(policy, agent, other)]
        saver = next((other for other in others if _SAVE in rights[other.agent_id].shown), None)
        end = "reaches the disk" if saver is None else f"reaches the disk unless agent `{saver.agent_id}` saves it"
        may = " and ".join(f"`{name}`" for name in edits)
        message = f"agent `{agent.agent_id}` may {may} with `{_TOOL}` but not `{_SAVE}`: nothing of it {end}"
        report.warning(_place(policy, slim, agent, right), "edits-never-saved", message, at_value=True)


def _shares(policy: Policy, one: Agent, other: Agent) -> bool:
    """Whether both have a source: the blocks of its files are the same for both."""
    return not {source.source_id for source in policy.sources_of(one)}.isdisjoint(
        source.source_id for source in policy.sources_of(other)
    )


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
