"""Built-in tools of coding agents: the schema that we ship and the gate agree on generated calls of every one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import pytest

from gatewright.gate import Gate
from gatewright.policy.capability import Exec, NetRead, NetWrite
from gatewright.policy.document import Agent, Policy
from gatewright.tools.definition import read_definitions
from gatewright.tools.host_tool import HostTool
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool
from gatewright_resources import folder
from tests.agreement.compare import Tally, compared
from tests.agreement.world import Cell, Stranger

HOSTS = {one.name.partition(".")[0]: one for one in folder("hosts").iterdir() if one.name.endswith(".json")}
CALLS_EACH = 20


@dataclass(frozen=True)
class BuiltIn(Stranger):
    """A tool of a coding agent, for agents that may use the network and start programs."""

    @cached_property
    def tool(self) -> Tool:
        return HostTool(self.definition, origin=self.origin, trusted=True)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        registry = ToolRegistry()
        registry.register(self.tool)
        granted = (NetRead(("*",)), NetWrite(("*",)), Exec())
        agents = {
            f"a{i}": Agent(f"a{i}", tool_rules=limit.rules(self.tool), capabilities=granted)
            for i, limit in enumerate(self.limits)
        }
        gate = Gate(Policy(agents=agents), registry)
        return tuple(
            Cell(self.tool, gate, f"a{i}", limit, self.tool.operation_set) for i, limit in enumerate(self.limits)
        )


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_what_built_in_tools_show_is_what_the_gate_lets_through(host: str) -> None:
    definitions, problems = read_definitions(json.loads(HOSTS[host].read_bytes()))
    assert problems == ()
    tools = [BuiltIn(definition, host) for definition in definitions]
    views = [(tool, number) for tool in tools for number in islice(range(len(tool.limits)), 4)]
    tally: Tally = compared(views, CALLS_EACH)
    assert tally.disagreements == []
    assert tally.cells >= len(definitions)
    assert tally.valid > tally.calls * 0.2
