"""Tools and agents made by hand, and their rights as the engine works them out. It checks nothing itself."""

from collections.abc import Mapping

from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.right import OperationFacts, ToolFacts, ToolRight
from gatewright.policy.rule import AllowedOperations, MaxCalls, RequiresConsent, ToolRule
from gatewright.policy.verdict import Action, SafetyTier
from tests.support.rights import rights_by_layers

READ, SIDE, PRIVILEGED = SafetyTier.READ_ONLY, SafetyTier.SIDE_EFFECTING, SafetyTier.PRIVILEGED
NOTES = ToolFacts(
    "notes",
    1,
    (
        OperationFacts("find", READ, description="Looks for words"),
        OperationFacts("write", SIDE, description="Writes a page"),
        OperationFacts("burn", PRIVILEGED, description="Removes for good"),
    ),
    PRIVILEGED,
    description="A book of pages",
)

CLOCK = ToolFacts("clock", 1, (OperationFacts("", READ),), READ, description="Tells the time")
DISK = ToolFacts("disk", 1, (OperationFacts("peek", READ, (Action.READ,)),), READ, needs_source=True)
CATALOG = (NOTES, CLOCK, DISK)

LIMITED = Agent(
    "limited",
    "May find and write",
    tools=("notes", "disk"),
    sources=(),
    tool_rules=(
        ToolRule("notes", AllowedOperations(frozenset({"find", "write"}))),
        ToolRule("notes", MaxCalls(1200)),
        ToolRule("notes", RequiresConsent(), conditions=("operation:write",)),
    ),
)
FREE = Agent("free", tools=("notes", "clock"), sources=())
POLICY = Policy(agents={"limited": LIMITED, "free": FREE}, sources=(Source("s", "."),))


def rights_of(agent: Agent) -> Mapping[str, ToolRight]:
    return rights_by_layers(POLICY.with_agent(agent), agent.agent_id, CATALOG)
