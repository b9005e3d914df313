"""How a golden case is read, set up and played: a world, what happened before, the decision, the call, the rows."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gatewright.adapters.messages import Messages
from gatewright.builtins import SendMessageTool, note_tools
from gatewright.gate import Approval, ApprovalRequest, Gate, Outcome, PermissionBroker, Remember, Session
from gatewright.gate.breach import violation_of
from gatewright.gate.decision import Decision, StageTrace
from gatewright.memory.block_store import BlockStore, Shelf
from gatewright.memory.notes import NoteBook
from gatewright.policyfile.reader import value_of
from gatewright.tools import Tool
from gatewright.tools.context import Ports
from gatewright.workspace.attachment import agent_blocks
from tests.engine.gate.asking import store_of
from tests.engine.gate.world import GateTool, World, context_for
from tests.golden.tools import golden_tools
from tests.support.clock import ManualClock

CASES = Path(__file__).parent / "cases"
KEYS = {
    "name",
    "agent",
    "user",
    "session",
    "before",
    "after_s",
    "tool",
    "arguments",
    "approve",
    "while_asked",
    "want",
    "said",
}
EARLIER = {"agent", "user", "session", "tool", "arguments", "after_s", "answer", "revoked"}
WHILE = {"file", "text", "old", "new", "earlier"}
WANTED = {
    "asks",
    "canonical",
    "code",
    "continues",
    "detail",
    "line",
    "model",
    "output",
    "pending",
    "reminders",
    "reused",
    "rows",
    "rule",
    "stage",
    "status",
    "truncated",
    "verdict",
    "violation",
}
ANSWERS: dict[str, Approval] = {
    "yes": Approval(True, "dana"),
    "no": Approval(False, "dana"),
    "yes, for an hour": Approval(True, "dana", Remember.DURATION, 3600.0),
    "yes, for the scope": Approval(True, "dana", Remember.SCOPE),
    "no, for an hour": Approval(False, "dana", Remember.DURATION, 3600.0),
}
KEPT = "yes, kept for one such call"
ROUTINE = {
    "one JSON object",
    "shown to this agent",
    "fits the shown schema",
    "no rule limits it",
    "no capability needed",
    "no policy rule matches",
    "none of them is a path",
    "no place named",
    "nothing asks",
    "executed",
    "no output schema",
    "fits",
}


def documents() -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, tomllib.loads(path.read_text("utf-8"))) for path in sorted(CASES.glob("*.toml"))]


@dataclass
class Dana:
    """An operator who gives one answer, and may do something before giving it."""

    answer: Approval
    meanwhile: Any = None
    requests: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])

    async def __call__(self, request: ApprovalRequest) -> Approval:
        self.requests.append(request)
        if self.meanwhile is not None:
            await self.meanwhile()
        return self.answer


@dataclass(frozen=True)
class Played:
    """The result of a case."""

    decision: Decision
    outcome: Outcome
    first_trace: tuple[StageTrace, ...]
    asked: tuple[ApprovalRequest, ...]
    reminders: tuple[str, ...]
    pending: tuple[str, ...]
    rows: list[dict[str, Any]]


def _sending(folder: Path, text: str) -> tuple[Tool, ...]:
    """The tool of messages, where the policy has endpoints; none that connects is trusted."""
    policy = value_of(text, "policy")
    if policy is None or not policy.endpoints.targets:
        return ()
    store = BlockStore(folder / "state" / "blocks.sqlite", clock=ManualClock())
    return (SendMessageTool(policy, Messages(store, lambda: policy, lambda _: False).port),)


class Stage:
    """A golden policy in force, with its files, a book of standing approvals, and sessions by name."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.folder, self.policy = folder, document["policy"]
        for name, text in document.get("files", {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        tools = (*golden_tools(), *note_tools(), *_sending(folder, self.policy))
        self.waiting = next(tool for tool in tools if isinstance(tool, GateTool))
        self.world = World(folder, self.policy, *tools)
        world = self.world
        self.broker = PermissionBroker(store_of(world), world.clock, audit=world.audit)
        world.gate = Gate(
            world.gate.policy,
            world.registry,
            ports=Ports(
                world.sources,
                blocks=agent_blocks(Shelf(world.blocks), world.sources),
                notes=NoteBook(folder / "state" / "notes", world.clock),
                folder=str(folder),
            ),
            audit=world.audit,
            clock=world.clock,
            places=world.places.place,
            grants=self.broker.grants,
        )
        self.sessions: dict[str, Session] = {}

    def close(self) -> None:
        self.broker.close()
        self.world.close()

    async def play(self, case: dict[str, Any]) -> Played:
        for earlier in case.get("before", []):
            assert earlier.keys() <= EARLIER
            await self._earlier({"agent": case["agent"], **earlier})
        world, gate = self.world, self.world.gate
        world.clock.advance(case.get("after_s", 0))
        who = self._who(case)
        due = gate.reminders(case["agent"], who["session"]) if case["agent"] in gate.policy.agents else ()
        given = case["arguments"].replace("<folder>", str(self.folder))
        decision = gate.decide(case["agent"], case["tool"], given, **who)
        rows_before = len(self._rows())
        dana = self._dana(case)
        stages: list[StageTrace] = []
        outcome = await gate.call(case["agent"], case["tool"], given, **who, approver=dana, on_stage=stages.append)
        self.waiting.let_go.set()  # a tool that would not stop may end now, for nobody waits for it
        known = case["agent"] in gate.policy.agents
        return Played(
            decision,
            outcome,
            tuple(stages[: len(decision.trace)]),
            tuple(dana.requests) if dana else (),
            due,
            gate.pending_exit(case["agent"], who["session"]) if known else (),
            self._rows()[rows_before:],
        )

    def said(self, played: Played) -> dict[str, Any]:
        """Return the remarks of each stage, without the bytes of results, which differ from run to run."""
        rows = (*played.decision.trace, *played.outcome.decision.trace)
        last: dict[str, Any] = {row.stage: self._local(row.reason) for row in rows if row.stage != "normalise"}
        said = {stage: reason for stage, reason in last.items() if reason not in ROUTINE}
        checks = [
            f"{one['kind']} {one['target'] or 'everything'}: {'yes' if one['allowed'] else 'no'}"
            for row in played.rows
            for one in row.get("checks", ())
        ]
        more = {"checks": [self._local(check) for check in checks], "facts": dict(played.decision.facts)}
        return said | {name: value for name, value in more.items() if value}

    def found(self, played: Played) -> dict[str, Any]:
        """Return the case's outcome under the names that ``want`` uses."""
        decision, outcome = played.decision, played.outcome
        broken = violation_of(decision)
        return {
            "verdict": str(decision.verdict),
            "stage": decision.stage,
            "code": decision.code,
            "rule": decision.rule.rule_id if decision.rule else None,
            "line": self._line(decision.rule.line if decision.rule else None),
            "model": decision.model_message,
            "canonical": {k: self._local(v) for k, v in decision.arguments.items()},
            "violation": type(broken).__name__ if broken else None,
            "status": str(outcome.status),
            "output": outcome.output,
            "detail": outcome.detail,
            "truncated": outcome.truncated,
            "reused": outcome.reused,
            "continues": outcome.should_continue,
            "asks": [self._local(reason) for request in played.asked for reason in request.reasons],
            "reminders": list(played.reminders),
            "pending": list(played.pending),
        }

    def _local(self, value: Any) -> Any:
        return value.replace(str(self.folder), "<folder>") if isinstance(value, str) else value

    def _line(self, number: int | None) -> str | None:
        return None if number is None else self.policy.splitlines()[number - 1].strip()

    def _rows(self) -> list[dict[str, Any]]:
        assert self.world.audit is not None
        return [
            {"kind": row.kind, "agent": row.agent, "tool": row.tool, "operation": row.operation, **json.loads(row.body)}
            for row in self.world.audit.rows()
            if row.kind != "LogOpened"
        ]

    def _who(self, step: dict[str, Any]) -> dict[str, Any]:
        session = self.sessions.setdefault(step.get("session", "main"), Session())
        return {"session": session, "context": context_for(step["user"]) if "user" in step else None}

    def _dana(self, case: dict[str, Any]) -> Dana | None:
        if "approve" not in case:
            return None
        return Dana(ANSWERS["yes" if case["approve"] else "no"], self._meanwhile(case))

    def _meanwhile(self, case: dict[str, Any]) -> Any:
        step = case.get("while_asked")
        if step is None:
            return None
        assert step.keys() <= WHILE

        async def happens() -> None:
            if "file" in step:
                (self.folder / step["file"]).write_text(step["text"], "utf-8")
            if "old" in step:
                assert step["old"] in self.policy
                self.world.reload(self.policy.replace(step["old"], step["new"]))
            if "earlier" in step:
                await self._earlier({"agent": case["agent"], **step["earlier"]})

        return happens

    async def _earlier(self, step: dict[str, Any]) -> None:
        answer = step.get("answer")
        dana = Dana(ANSWERS.get(answer, ANSWERS["no"])) if answer else None
        gate, who = self.world.gate, self._who(step)
        outcome = await gate.call(step["agent"], step["tool"], step["arguments"], **who, approver=dana)
        if dana is not None:
            assert dana.requests, f"nobody was asked before {step['tool']}: {outcome.decision.reason}"
            if answer == KEPT:
                self.broker.grants.remember(dana.requests[0], replace(ANSWERS["yes"], remember=Remember.ONCE))
        if step.get("revoked"):
            for grant in self.broker.grants.standing():
                self.broker.grants.revoke(grant.grant_id)
        self.world.clock.advance(step.get("after_s", 0))


def fits(rows: list[dict[str, Any]], wanted: list[Any]) -> bool:
    """True if the rows are as expected: a text gives the kind of a row, a table the values of some fields."""
    return len(rows) == len(wanted) and all(_is(row, want) for row, want in zip(rows, wanted, strict=True))


def _is(row: dict[str, Any], want: str | dict[str, Any]) -> bool:
    if isinstance(want, str):
        return row["kind"] == want
    return all(key in row and row[key] == value for key, value in want.items())
