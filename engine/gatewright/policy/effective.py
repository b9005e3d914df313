"""What each agent may do with each operation once every layer has spoken, and why. It does not know calls.

The gate, the preview, the tree of checkboxes and the self-check all read this one result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.errors import WeMustFix
from gatewright.policy.layer import Layers
from gatewright.policy.toolname import chosen_tools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewright.policy.document import Policy
    from gatewright.policy.right import ToolFacts, ToolRight


def effective_rights(policy: Policy, agent_id: str, catalog: Iterable[ToolFacts]) -> dict[str, ToolRight]:
    """The agent's right on every tool of ``catalog`` (one major per name), keyed by bare name in catalog order.

    ``catalog`` may be a part of what is registered: what one tool gets depends on no other.
    """
    agent = policy.agents.get(agent_id)
    if agent is None:
        raise WeMustFix(f"no agent `{agent_id}`")
    layers = Layers(policy, agent)
    return {name: layers.right(facts) for name, facts in chosen_tools(catalog, agent.tools).items()}
