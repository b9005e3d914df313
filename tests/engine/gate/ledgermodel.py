"""A model of named calls, and random schedules that compare it with the gate: in two processes, one of which dies.

The schedule lives in one process, and what it does elsewhere in children of it. A child that is to die does so at one
of `DEATHS`: a boundary of a function by its name. As a program: `python -m tests.engine.gate.ledgermodel COUNT [SEED]`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import file_tool
from gatewright.gate import (
    Approval,
    ApprovalStore,
    AuditLog,
    AuditRow,
    Gate,
    Outcome,
    PermissionBroker,
    Remember,
    RowKind,
    Status,
)
from gatewright.gate import ledger as ledgers
from gatewright.gate.approvalstore import STALE_S
from gatewright.gate.stages import execute
from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Policy
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.reader import parse_policy
from gatewright.record.sealedtable import AnchorFile
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from gatewright.tools.context import Ports
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.registry import ToolRegistry, tool
from tests.support.clock import ManualClock

KEYS = "a", "b"
NAMELESS = "n"
"""The call that is made in no conversation: each answer makes it once, and a replay asks anew."""
POLICY = """gatewright = 1
description = "{version}"

[agents.clerk]
tools = ["pay"]
approvals = {{ pay = "ask" }}
capabilities = [{{ FsRead = {{ prefixes = ["{folder}"] }} }}]

[tools.pay]
paths = {{ bill = "read" }}
"""

DEATHS: dict[str, tuple[object, str, bool]] = {
    "before the question is stored": (ApprovalStore, "suspend", False),
    "the question is stored and not listed, or a row committed and not anchored": (AnchorFile, "write", False),
    "the question is stored, and no row": (ApprovalStore, "suspend", True),
    "the call waits, and nobody was told": (ledgers.ClaimedRun, "_waiting", False),
    "before the row of the answer": (PermissionBroker, "_record_answer", False),
    "the row of the answer is written, and the answer not stored": (PermissionBroker, "_record_answer", True),
    "the answer is stored": (ApprovalStore, "answer", True),
    "before a row": (AuditLog, "append", False),
    "after a row": (AuditLog, "append", True),
    "the call is recorded, and has no effect": (execute, "_execute", False),
    "the effect has happened": (execute, "_execute", True),
    "before the outcome is kept": (ledgers.Ledger, "keep", False),
    "the outcome is kept, and no end": (ledgers.Ledger, "keep", True),
    "the end is recorded, and the question stands": (ApprovalStore, "withdraw", False),
    "the question is removed, and nobody was told": (ApprovalStore, "withdraw", True),
}


@dataclass
class Asked:
    """A question as the model saw it: the call, its bill and the policy of then."""

    key: str
    amount: int
    bill: str
    version: int


@dataclass
class Ledger:
    """The questions so far, and the policy in force."""

    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    version: int = 0


class Schedule:
    """One random schedule in a folder of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random, self.folder, self.model = Random(seed), folder, Ledger()
        self.bill, self.effects = folder / "bill", folder / "effects"
        self.bill.write_text("0", "utf-8")
        self.effects.touch()
        self.clock = ManualClock()
        self.blocks = BlockStore(folder / "state" / "blocks.sqlite", clock=self.clock)
        self.registry = ToolRegistry()
        self.registry.register(_pay(self))
        self.policies = [self._policy(version) for version in (0, 1)]
        self.audit = AuditLog(folder / "state", folder / "keys", clock=self.clock)
        self.store = ApprovalStore(folder / "state", folder / "keys", clock=self.clock)
        self.broker = PermissionBroker(self.store, self.clock, audit=self.audit)
        self.gate = Gate(
            self.policies[0],
            self.registry,
            ports=Ports(
                SourceManager(lambda: self.registry.register(file_tool()), self.blocks, Protection([])),
                folder=str(folder),
            ),
            audit=self.audit,
            clock=self.clock,
            broker=self.broker,
        )
        self.did: list[str] = []
        self.gave_for_a_time = False

    def run(self, steps: int) -> None:
        """Take random steps, then finish every call, and compare."""
        acts = [self.call] * 6 + [self.answer] * 4 + [self.race, self.change_bill, self.change_policy, self.wait]
        for _ in range(steps):
            self.random.choice(acts)()
            self.look()
        for key in (*KEYS, NAMELESS):
            self.finish(key)
        self.compare()

    def close(self) -> None:
        self.gate.close()
        self.broker.close()
        self.blocks.close()

    # -- what happens

    def call(self) -> None:
        key, amount = self.random.choice((*KEYS, NAMELESS)), self.random.choice((1, 1, 1, 2))
        self._somewhere(f"call {key} {amount}", lambda: self._make(key, amount))

    def answer(self) -> None:
        pending = self.broker.pending()
        if not pending:
            return
        asked = self.random.choice(pending)
        kinds = [Approval(True, "dana")] * 4 + [
            Approval(False, "dana"),
            Approval(True, "dana", Remember.DURATION, 60.0),
        ]
        approval, asked_id = self.random.choice(kinds), asked.request_id
        self.gave_for_a_time |= approval.lasts
        self._somewhere(f"answer {asked.call_key} {approval.approved}", lambda: self.broker.answer(asked_id, approval))

    def race(self) -> None:
        """Two processes make one call at the same moment."""
        key = self.random.choice((*KEYS, NAMELESS))
        self.did.append(f"race {key}")
        children = [self._fork(lambda: self._make(key, 1), "") for _ in range(2)]
        for child in children:
            self._end(child)

    def change_bill(self) -> None:
        self.did.append("bill")
        self.bill.write_text(str(self.random.randrange(3)), "utf-8")

    def change_policy(self) -> None:
        self.did.append("policy")
        self.model.version = 1 - self.model.version
        self.gate.reload(self.policies[self.model.version])

    def wait(self) -> None:
        self.did.append("wait")
        self.clock.advance(self.random.choice((30.0, 90.0, 3 * 86_400.0)))

    def finish(self, key: str) -> None:
        """Ask, answer and repeat the call until it has an outcome, then make it once more."""
        amount = next((one.amount for one in reversed(self.model.asked.values()) if one.key == key), 1)
        outcome = self._make(key, amount)
        for _ in range(4):
            self.look()
            if outcome.code == "call-id-reused":
                amount = 3 - amount
            if outcome.question is not None:
                self.broker.answer(outcome.question.request_id, Approval(True, "dana"))
            if outcome.status in {Status.ALLOWED, Status.UNKNOWN} or outcome.code == "approval-refused":
                break
            outcome = self._make(key, amount)
        else:
            raise AssertionError(f"`{key}` comes to no end: {outcome.status} {outcome.code}")
        if key != NAMELESS and outcome.code != "approval-refused":
            again = self._make(key, amount)
            assert again.replayed or again.status is Status.UNKNOWN, f"`{key}`, made again, came to {again.code}"
            assert not again.replayed or again.output == outcome.output

    # -- what must be so

    def look(self) -> None:
        """Store what each new question showed."""
        waiting = [row for row in self.audit.rows() if row.kind == RowKind.CALL_WAITS]
        listed = {one.request_id: one for one in self.broker.pending()}
        for one in listed.values():
            seen = Asked(
                one.call_key, int(str(one.arguments["amount"])), self.bill.read_text("utf-8"), self.model.version
            )
            self.model.asked.setdefault(one.request_id, seen)
        held = {row.row_id for row in self.store._rows.rows()} | {one.request.request_id for one in self.broker.stale()}  # pyright: ignore[reportPrivateUsage]
        for row in waiting:
            said = json.loads(row.body)
            if said["question"] not in held and self.clock.wall_s() < said["until"] + STALE_S:
                assert self._began_after(row), f"the question {said['question']} is lost"

    def _began_after(self, asked: AuditRow) -> bool:
        return any(row.seq > asked.seq and row.call_id == asked.call_id for row, _ in self._begun())

    def _begun(self) -> list[tuple[AuditRow, dict[str, Any]]]:
        """The rows with which a call began, with their bodies."""
        rows = [(row, json.loads(row.body)) for row in self.audit.rows() if row.kind == RowKind.TOOL_INVOKED]
        return [(row, body) for row, body in rows if "forms" in body]

    def spent_by(self, key: str) -> str:
        """The answer that the last call of that key has spent, while its effect happens."""
        return [str(body.get("answer", "")) for _, body in self._begun() if body["arguments"]["key"] == key][-1]

    def compare(self) -> None:
        """Compare the effects, the rows and the answers on the disk."""
        report = self.audit.verify()
        assert report.is_sound, report.problems
        begun = [body for _, body in self._begun()]
        effects = [json.loads(line) for line in self.effects.read_text("utf-8").splitlines()]
        for key, times in Counter(one["key"] for one in effects).items():
            assert times == 1 or key == NAMELESS, f"`{key}` happened {times} times"
            assert times <= sum(body["arguments"]["key"] == key for body in begun), f"`{key}` happened without a row"
        spent = [body["answer"] for body in begun if "answer" in body]
        assert len(set(spent)) == len(spent), "an answer was used twice"
        for effect in effects:
            asked = self.model.asked.get(effect["answer"])
            assert asked is not None or not effect["answer"], "an answer to nothing was used"
            known = None if asked is None else (asked.key, asked.amount, asked.bill, asked.version)
            did = effect["key"], effect["amount"], effect["bill"], effect["version"]
            assert known in {None, did}, f"the answer to {known} was used for {did}"
            assert asked is not None or self.gave_for_a_time, "an effect that nobody allowed"

    # -- where it happens

    def _make(self, key: str, amount: int) -> Outcome:
        given: dict[str, JsonValue] = {"key": key, "amount": amount, "bill": str(self.bill)}
        where = "" if key == NAMELESS else "chat"
        return asyncio.run(self.gate.call("clerk", "pay", given, call_id=key, conversation=where, on_ask="suspend"))

    def _somewhere(self, what: str, act: Callable[[], object]) -> None:
        """Act in this process, in another one, or in one that is killed while it acts."""
        place = self.random.choice(("here", "there", "dies", "dies"))
        death = self.random.choice([*DEATHS]) if place == "dies" else ""
        self.did.append(f"{what} {death or place}")
        if place == "here":
            act()
        else:
            self._end(self._fork(act, death))

    def _fork(self, act: Callable[[], object], death: str) -> int:
        times = self.random.choice((1, 1, 2, 3))
        child = os.fork()
        if child == 0:
            status = 70
            try:
                if death:
                    _die(*DEATHS[death], times)
                act()
                status = 0
            finally:
                os._exit(status)
        return child

    def _end(self, child: int) -> None:
        status = os.waitpid(child, 0)[1]
        assert status in {0, signal.SIGKILL}, f"a process ended with {status}"

    def _policy(self, version: int) -> Policy:
        text = POLICY.format(version=version, folder=self.folder)
        loaded = parse_policy(text, file="policy.toml", known=KnownTools(self.registry.facts()))
        assert loaded.policy is not None, loaded.problems
        return loaded.policy


def _pay(schedule: Schedule) -> Any:
    @tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING, normalization=Normalization.JSON)
    async def pay(key: str, amount: int, bill: str) -> str:
        """Pay a bill.

        Args:
            key: Which.
            amount: How much.
            bill: The file with the bill.
        """
        said = {"key": key, "amount": amount, "bill": Path(bill).read_text("utf-8")}
        said |= {"version": schedule.model.version, "answer": schedule.spent_by(key)}
        with schedule.effects.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
        return f"paid {schedule.effects.stat().st_size}"

    return pay


def _die(owner: Any, name: str, after: bool, times: int) -> None:
    """Kill this process when it reaches a boundary of a function for the given time."""
    whole, left = getattr(owner, name), [times]

    def die() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if inspect.iscoroutinefunction(whole):

        @wraps(whole)
        async def later(*given: Any, **named: Any) -> Any:
            if not after:
                die()
            done = await whole(*given, **named)
            if after:
                die()
            return done

        setattr(owner, name, later)
        return

    @wraps(whole)
    def patched(*given: Any, **named: Any) -> Any:
        if not after:
            die()
        done = whole(*given, **named)
        if after:
            die()
        return done

    setattr(owner, name, patched)


def run(seed: int, beside: Path | None = None, steps: int = 8) -> None:
    """One schedule. AssertionError says what was not so, and what was done."""
    folder = Path(tempfile.mkdtemp(prefix="ledger-", dir=beside))
    schedule = Schedule(folder, seed)
    try:
        schedule.run(steps)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}; it did: {'; '.join(schedule.did)}") from None
    finally:
        schedule.close()
        shutil.rmtree(folder)


def run_all(first: int, count: int, beside: Path | None = None) -> None:
    """So many schedules, one after the other."""
    for number in range(first, first + count):
        run(number, beside)


if __name__ == "__main__":
    wanted, begin = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for done in range(0, wanted, 100):
        run_all(begin + done, min(100, wanted - done))
        print(min(done + 100, wanted), "schedules", flush=True)
    print("nothing happened twice, was lost or misused")
