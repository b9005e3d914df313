"""A small workspace for tests of the gate: real policy text, files, blocks and log, and tools that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import builtin_tools, file_tool
from gatewright.gate import Approval, ApprovalRequest, AuditLog, Decision, Gate, Log, Outcome, Session, StopSwitch
from gatewright.gate.port import Rates
from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Policy
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.reader import parse_policy
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from gatewright.tools.context import Ports, ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.registry import ToolRegistry, operation, tool
from gatewright.tools.tool import Tool
from tests.engine.sources.bench import change_source, start_source
from tests.support.clock import ManualClock

POLICY = """gatewright = 1

[agents.archivist]
tools = ["file", "block", "echo", "counter", "vault"]

[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "append", "load", "save"] }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [
  { pattern = "secret/**", permission = "none" },
  { pattern = "frozen.md", permission = "read_only" },
  { pattern = "shared.md", permission = "partner" },
]
"""


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, normalization=Normalization.JSON)
async def echo(text: str) -> str:
    """Give the text back.

    Args:
        text: What to give back.
    """
    return text


@tool(safety_tier=SafetyTier.PRIVILEGED, result_type=ResultType.STRING, normalization=Normalization.JSON)
async def vault(text: str = "") -> str:
    """Open what is locked.

    Args:
        text: Why.
    """
    return f"open {text}"


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, normalization=Normalization.JSON)
async def fail(text: str) -> str:
    """Fail with a message for the model.

    Args:
        text: The message.
    """
    raise ToolFailure(text, code="told")


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, normalization=Normalization.JSON)
async def crash(text: str) -> str:
    """Fail with something unforeseen.

    Args:
        text: What not to tell.
    """
    raise ZeroDivisionError(text)


class CounterTool(Tool):
    """Counts."""

    name = "counter"
    description = "Counts things up and down."
    safety_tier = SafetyTier.SIDE_EFFECTING
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    def __init__(self) -> None:
        self.value = 0

    @operation
    async def up(self, by: int = 1) -> JsonValue:
        """Count up."""
        self.value += by
        return {"value": self.value, "by": by}

    @operation
    async def down(self, by: int = 1) -> JsonValue:
        """Count down."""
        self.value -= by
        return {"value": self.value, "by": by}


class GateTool(Tool):
    """Waits until a test releases it; may refuse to stop."""

    name = "wait"
    description = "Waits."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.let_go = asyncio.Event()
        self.was_stopped = False
        self.started = 0

    @operation
    async def politely(self) -> JsonValue:
        """Stop when asked."""
        self._begin()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.was_stopped = True
            raise
        return "done"

    @operation
    async def stubbornly(self) -> JsonValue:
        """Go on when asked to stop."""
        self._begin()
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.was_stopped = True
        return "late"

    def _begin(self) -> None:
        self.started += 1
        self.began.set()


class World:
    """A policy in force over files below ``folder / "docs"``."""

    def __init__(
        self,
        folder: Path,
        text: str = POLICY,
        *tools: Tool,
        audited: bool = True,
        log: Log | None = None,
        rates: Rates | None = None,
        stops: StopSwitch | None = None,
    ) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.docs.mkdir(exist_ok=True)
        self.clock = ManualClock()
        self.counter = CounterTool()
        self.registry = ToolRegistry()
        for one in (*builtin_tools(), echo, vault, fail, crash, self.counter, *tools):
            self.registry.register(one)
        self.blocks = BlockStore(folder / "state" / "blocks.sqlite", clock=self.clock)
        self.sources = SourceManager(
            lambda: self.registry.register(file_tool()), self.blocks, Protection([folder / "policy.toml"])
        )
        own = audited and log is None
        self.audit = AuditLog(folder / "state", folder / "keys", clock=self.clock) if own else None
        self.log = log or self.audit
        policy = self._read(text)
        for source in policy.sources:
            start_source(self.sources, source, folder / source.base_path)
        if not policy.sources:
            self.registry.register(file_tool())
        self.gate = Gate(
            self._checked(text),
            self.registry,
            ports=Ports(self.sources, folder=str(folder)),
            audit=self.log,
            clock=self.clock,
            places=self.places.place,
            rates=rates,
            stops=stops,
        )

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
        self.blocks.close()

    def reload(self, text: str) -> None:
        policy = self._checked(text)
        for source in policy.sources:
            change_source(self.sources, source)
        self.gate.reload(policy, places=self.places.place)

    def decide(
        self, tool_name: str, arguments: Any, *, agent: str = "archivist", session: Session | None = None
    ) -> Decision:
        return self.gate.decide(agent, tool_name, arguments, session=session)

    async def call(self, tool_name: str, arguments: Any, *, agent: str = "archivist", **more: Any) -> Outcome:
        return await self.gate.call(agent, tool_name, arguments, **more)

    def row_kinds(self) -> list[str]:
        return [] if self.audit is None else [row.kind for row in self.audit.rows()][1:]

    def _checked(self, text: str) -> Policy:
        known = KnownTools(self.registry.facts())
        loaded = parse_policy(text, file="policy.toml", known=known)
        assert loaded.policy is not None, "\n".join(map(str, loaded.problems))
        self.places = loaded.places
        return loaded.policy

    def _read(self, text: str) -> Policy:
        """Read the sources alone, before the tools that depend on them are known."""
        facts = (*self.registry.facts(), file_tool().facts())
        loaded = parse_policy(text, file="policy.toml", known=KnownTools(facts))
        assert loaded.policy is not None, "\n".join(map(str, loaded.problems))
        return loaded.policy


class Operator:
    """An approver that gives the answers of a test and remembers the questions."""

    def __init__(self, *, approves: bool = True) -> None:
        self.approves = approves
        self.requests: list[ApprovalRequest] = []
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, request: ApprovalRequest) -> Approval:
        self.requests.append(request)
        self.asked.set()
        await self.may_answer.wait()
        return Approval(self.approves, "dana")


def context_for(user: str) -> ToolExecutionContext:
    return ToolExecutionContext(agent_id="", session_id="", user_id=user)


def arguments(**given: JsonValue) -> Mapping[str, JsonValue]:
    return given
