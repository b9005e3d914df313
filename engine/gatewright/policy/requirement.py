"""Requirements that an agent could never meet, since what they demand is hidden from it.

Loading refuses them and so does an edit; both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gatewright.base.frozen import frozen
from gatewright.policy.document import Agent, Policy
from gatewright.policy.layer import Layers
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.rule import ANY_TOOL, RequiredBeforeExit, RequiredBeforeExitIf, StartConstraint, ToolRule
from gatewright.policy.toolname import chosen_tools, split_name

_REQUIRED = (StartConstraint, RequiredBeforeExit, RequiredBeforeExitIf)
Majors = dict[str, list["ToolFacts"]]


@frozen
class HiddenRequirement:
    """A rule (its index among the agent's) that demands what the agent does not see. ``what``: as to be shown."""

    index: int
    rule: ToolRule
    what: str

    @property
    def code(self) -> str:
        """The code of its problem."""
        start = isinstance(self.rule.rule_type, StartConstraint)
        return "start-constraint-hidden" if start else "exit-requirement-hidden"

    @property
    def consequence(self) -> str:
        """What could never happen."""
        return "start with it" if isinstance(self.rule.rule_type, StartConstraint) else "end"

    @property
    def demand(self) -> str:
        """What the agent must do with it."""
        start = isinstance(self.rule.rule_type, StartConstraint)
        return "has to start with it" if start else "has to call it before it ends"


class Sight:
    """What one agent sees, worked out for the tools that are asked about. ``majors``: see ``majors_of``."""

    def __init__(self, policy: Policy, agent: Agent, majors: Mapping[str, list[ToolFacts]]) -> None:
        self._agent, self._majors = agent, majors
        self._layers = Layers(policy, agent)
        self._rights: dict[str, ToolRight] = {}

    def hides(self, written: str, operations: frozenset[str] | None = None) -> str | None:
        """What of the tool is hidden, when all that is asked for is: the tool itself or the operations."""
        name = split_name(written)[0]
        if name not in self._majors:
            return None
        right = self.right(name)
        if right.is_hidden:
            return f"`{name}`"
        if operations and operations.isdisjoint(right.shown):
            return " or ".join(f"`{name}.{operation}`" for operation in sorted(operations))
        return None

    def hides_condition(self, condition: str) -> str | None:
        """The same of a condition ``tool`` or ``tool.operation``, the longest registered name first."""
        end = len(condition)
        while end > 0:
            if split_name(condition[:end])[0] in self._majors:
                operation = condition[end + 1 :]
                return self.hides(condition[:end], frozenset({operation}) if operation else None)
            end = condition.rfind(".", 0, end)
        return None

    def right(self, name: str) -> ToolRight:
        """The agent's right on a registered tool: of two majors on the one that it has."""
        if name not in self._rights:
            held = self._majors[name]
            facts = held[0] if len(held) == 1 else chosen_tools(held, self._agent.tools)[name]
            self._rights[name] = self._layers.right(facts)
        return self._rights[name]


def majors_of(catalog: Iterable[ToolFacts]) -> Majors:
    """The registered majors by bare name."""
    found: Majors = {}
    for facts in catalog:
        found.setdefault(facts.name, []).append(facts)
    return found


def has_requirement(agent: Agent) -> bool:
    """Whether a rule of the agent demands that something was called."""
    return any(isinstance(rule.rule_type, _REQUIRED) for rule in agent.tool_rules)


def hidden_requirements(
    policy: Policy, agent: Agent, majors: Mapping[str, list[ToolFacts]]
) -> Iterator[HiddenRequirement]:
    """The start and exit requirements that the agent could never meet: it does not see the tool or its operations."""
    if not has_requirement(agent):
        return
    sight = Sight(policy, agent, majors)
    for index, rule in enumerate(agent.tool_rules):
        if isinstance(rule.rule_type, _REQUIRED) and rule.tool_name != ANY_TOOL:
            what = sight.hides(rule.tool_name, rule.operations)
            if what is not None:
                yield HiddenRequirement(index, rule, what)
