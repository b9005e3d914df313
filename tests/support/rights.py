"""Rights from the layers of a policy and the facts of tools alone, without gate and schemas."""

from collections.abc import Iterable

from gatewright.policy.document import Policy
from gatewright.policy.layer import Layers
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.verdict import pick_tools


def rights_by_layers(policy: Policy, agent_id: str, catalog: Iterable[ToolFacts]) -> dict[str, ToolRight]:
    """The agent's right on every tool of `catalog`, by bare name."""
    agent = policy.agents[agent_id]
    layers = Layers(policy, agent)
    return {name: layers.right(facts) for name, facts in pick_tools(catalog, agent.tools).items()}
