"""A model of named calls, and random schedules that compare it with the gate: in two processes, one of which dies.

The schedule lives in one process, and has a peer: another process with a gate of its own over the same files, which
does what it is told and may be killed meanwhile at one of `DEATHS`, a boundary of a function by its name. As a program:
`python -m tests.engine.gate.ledgermodel COUNT [SEED [PROGRESS]]`. The file PROGRESS holds the next seed; started again,
it goes on from there.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from multiprocessing import Pipe
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import file_tool
from gatewright.gate import (
    Approval,
    ApprovalStore,
    AuditLog,
    AuditRow,
    Gate,
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
from gatewright.policy.right import ToolFacts
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.reader import parse_policy
from gatewright.record.sealedtable import AnchorFile
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from gatewright.tools.context import Ports
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.defined import compose
from gatewright.tools.registry import ToolRegistry, tool
from tests.support.clock import ManualClock

_WHO = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
_POLICIES: dict[str, Policy] = {}
KEYS = "a", "b", "c", "d"
COMPOSED = {"c": ("both", ("c0", "c1")), "d": ("nested", ("d0", "d1", "d2"))}
"""The calls of compositions: the tool, and the keys of the payments that are its steps, or steps of its steps."""
NAMELESS = "n"
"""The call that is made in no conversation: each answer makes it once, and a replay asks anew."""
POLICY = """gatewright = 1
description = "{version}"

[agents.clerk]
tools = ["pay", "both", "nested"]
approvals = {{ side_effecting = "allow", pay = "ask", nested = "ask" }}
capabilities = [{{ FsRead = {{ prefixes = ["{folder}"] }} }}]

[tools.pay]
paths = {{ bill = "read" }}

[[compositions]]
name = "both"
input = {{ properties = {{ c0 = {{}}, c1 = {{}}, amount = {{}}, bill = {{}} }} }}
steps = [
  {{ tool = "pay", arguments = {{ key = "$input.c0", amount = "$input.amount", bill = "$input.bill" }} }},
  {{ tool = "pay", arguments = {{ key = "$input.c1", amount = "$input.amount", bill = "$input.bill" }} }},
]

[[compositions]]
name = "nested"
input = {{ properties = {{ d0 = {{}}, d1 = {{}}, d2 = {{}}, amount = {{}}, bill = {{}} }} }}

[[compositions.steps]]
tool = "pay"
arguments = {{ key = "$input.d0", amount = "$input.amount", bill = "$input.bill" }}

[[compositions.steps]]
tool = "both"
arguments = {{ c0 = "$input.d1", c1 = "$input.d2", amount = "$input.amount", bill = "$input.bill" }}
"""

Death = tuple[object, str, bool]
ASKING: dict[str, Death] = {
    "before the question is stored": (ApprovalStore, "suspend", False),
    "the question is stored and not listed, or a row committed and not anchored": (AnchorFile, "write", False),
    "the question is stored, and no row": (ApprovalStore, "suspend", True),
    "the call waits, and nobody was told": (ledgers.ClaimedRun, "_waiting", False),
}
MAKING: dict[str, Death] = {
    "before a row": (AuditLog, "append", False),
    "after a row": (AuditLog, "append", True),
    "the call is recorded, and has no effect": (execute, "_execute", False),
    "the effect has happened": (execute, "_execute", True),
    "before the outcome is kept": (ledgers.FileClaims, "keep", False),
    "the outcome is kept, and no end": (ledgers.FileClaims, "keep", True),
    "a step waits, and no row says so of the composition": (execute, "_wait", False),
    "the composition waits with its step": (execute, "_wait", True),
    "the end is recorded, and the question stands": (ApprovalStore, "withdraw", False),
    "the question is removed, and nobody was told": (ApprovalStore, "withdraw", True),
}
ANSWERING: dict[str, Death] = {
    "before the row of the answer": (PermissionBroker, "_record_answer", False),
    "the row of the answer is written, and the answer not stored": (PermissionBroker, "_record_answer", True),
    "the answer is stored": (ApprovalStore, "answer", True),
    "the answer is stored and not listed, or its row not anchored": (AnchorFile, "write", False),
    "the answer is to be recorded": (AuditLog, "append", False),
    "the answer is recorded": (AuditLog, "append", True),
}
CALLING = ASKING | MAKING
DEATHS = CALLING | ANSWERING


class Told(NamedTuple):
    """What the program hears of a call."""

    status: Status
    code: str
    output: str
    question: str
    replayed: bool


class Side:
    """The gate of one process over the files of a schedule."""

    def __init__(self, folder: Path) -> None:
        self.bill, self.effects = folder / "bill", folder / "effects"
        self.clock, self.version = ManualClock(), 0
        self.blocks = BlockStore(folder / "state" / "blocks.sqlite", clock=self.clock)
        self.registry = ToolRegistry()
        self.registry.register(_pay(self))
        self.audit = AuditLog(folder / "state", folder / "keys", clock=self.clock)
        self.store = ApprovalStore(folder / "state", folder / "keys", clock=self.clock)
        self.broker = PermissionBroker(self.store, self.clock, audit=self.audit)
        self.policies = [_policy(version, folder, self.registry) for version in (0, 1)]
        for made in compose(self.policies[0], self.registry.facts(), self.registry.tools()):
            self.registry.register(made)
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
        self.rows: list[tuple[AuditRow, dict[str, Any]]] = []

    def set(self, version: int, moment_s: float) -> None:
        """Put a policy in force, and set the clock."""
        self.clock.advance(moment_s - self.clock.wall_s())
        if version != self.version:
            self.version = version
            self.gate.reload(self.policies[version])

    def make(self, key: str, amount: int) -> Told:
        """Make a call."""
        tool, steps = COMPOSED.get(key, ("pay", ()))
        given: dict[str, JsonValue] = {"amount": amount, "bill": str(self.bill)}
        given |= {step: step for step in steps} or {"key": key}
        where = "" if key == NAMELESS else "chat"
        made = asyncio.run(self.gate.call("clerk", tool, given, call_id=key, conversation=where, on_ask="suspend"))
        asked = made.question.request_id if made.question is not None else ""
        return Told(made.status, made.code, made.output, asked, made.replayed)

    def answer(self, asked: str, approval: Approval) -> None:
        """Answer a question."""
        self.broker.answer(asked, approval)

    def read(self) -> list[tuple[AuditRow, dict[str, Any]]]:
        """The rows so far, with their bodies; each is read once."""
        after = self.rows[-1][0].seq if self.rows else None
        self.rows += [(row, json.loads(row.body)) for row in self.audit.rows(after=after)]
        return self.rows

    def begun(self) -> list[tuple[AuditRow, dict[str, Any]]]:
        """The rows with which a call began, or began again."""
        return [(row, body) for row, body in self.read() if row.kind == RowKind.TOOL_INVOKED and "forms" in body]

    def spent_by(self, key: str) -> str:
        """The answer that the last call of that key has spent, while its effect happens."""
        return [str(body.get("answer", "")) for _, body in self.begun() if body["arguments"].get("key") == key][-1]

    def close(self) -> None:
        """Close its files."""
        self.gate.close()
        self.broker.close()
        self.blocks.close()


class Order(NamedTuple):
    """What the peer is to do, in which schedule, under which policy and when; and where it dies meanwhile."""

    seed: int
    folder: Path
    version: int
    moment_s: float
    act: str
    given: tuple[Any, ...]
    death: str = ""
    times: int = 1


class Peer:
    """The other process, which is there until an order kills it; then the next order begins another one."""

    def __init__(self) -> None:
        self._pid = 0

    def begin(self, order: Order) -> None:
        """Give an order without waiting for its end."""
        if not self._pid:
            self._ours, theirs = Pipe()
            _let_threads_end()
            self._pid = os.fork()
            if not self._pid:
                self._ours.close()
                _serve(theirs)
            theirs.close()
        self._ours.send(order)

    def end(self) -> None:
        """Wait for the end of the order, or of the process that it killed."""
        try:
            failure = self._ours.recv()
        except EOFError:
            pid, self._pid = self._pid, 0
            self._ours.close()
            status = os.waitpid(pid, 0)[1]
            assert status == signal.SIGKILL, f"a process ended with {status}"
            return
        assert not failure, failure

    def close(self) -> None:
        """End the process."""
        if self._pid:
            self._ours.close()
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0


def _let_threads_end() -> None:
    """Give the system the turns to end the threads that Python has joined: until then they may hold locks of OpenSSL,
    which a child would wait for without an end. Threads of libraries, which stay, are not waited for.
    """
    tasks = Path("/proc/self/task")
    for _ in range(500):
        if not tasks.exists() or len([*tasks.iterdir()]) <= threading.active_count():
            return
        os.sched_yield()


def _serve(orders: Any) -> None:
    """Follow orders until there are no more."""
    gc.freeze()  # or else the collector copies each page of the heap
    side, seed = None, -1
    try:
        while True:
            order: Order = orders.recv()
            failure = ""
            try:
                if side is None or seed != order.seed:
                    if side is not None:
                        side.close()
                    side, seed = Side(order.folder), order.seed
                side.set(order.version, order.moment_s)
                with _death(order):
                    getattr(side, order.act)(*order.given)
            except Exception:  # noqa: BLE001 the schedule is told whatever it was
                failure = traceback.format_exc()
            orders.send(failure)
    except EOFError:
        os._exit(0)
    finally:
        os._exit(70)


@contextmanager
def _death(order: Order) -> Generator[None]:
    """Kill this process when it reaches a boundary of a function for the given time."""
    if not order.death:
        yield
        return
    owner, name, after = DEATHS[order.death]
    whole, left = getattr(owner, name), [order.times]

    def die(at: bool) -> None:
        left[0] -= at is after
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    @wraps(whole)
    async def later(*given: Any, **named: Any) -> Any:
        die(False)
        done = await whole(*given, **named)
        die(True)
        return done

    @wraps(whole)
    def now(*given: Any, **named: Any) -> Any:
        die(False)
        done = whole(*given, **named)
        die(True)
        return done

    setattr(owner, name, later if inspect.iscoroutinefunction(whole) else now)
    try:
        yield
    finally:
        setattr(owner, name, whole)


@dataclass
class Asked:
    """A question as the model saw it: the call, its bill and the policy of then."""

    root: str
    key: str
    amount: int
    bill: str
    version: int


class Schedule:
    """One random schedule in a folder of its own."""

    def __init__(self, folder: Path, seed: int, peer: Peer) -> None:
        self.random, self.seed, self.folder, self.peer = Random(seed), seed, folder, peer
        self.asked: dict[str, Asked] = {}
        (folder / "bill").write_text("0", "utf-8")
        (folder / "effects").touch()
        self.here = Side(folder)
        self.did: list[str] = []
        self.answered: set[str] = set()
        self.whole: list[str] = []
        """The calls that came to their end."""
        self.gave_for_a_time = False

    def run(self, steps: int) -> None:
        """Take random steps, then finish every call, and compare."""
        acts = [self.call] * 6 + [self.answer] * 4 + [self.race, self.change_policy, self.wait] + [self.change_bill] * 2
        for _ in range(steps):
            self.random.choice(acts)()
            self.look()
        for key in (*KEYS, NAMELESS):
            self.finish(key)
        self.compare()

    # -- what happens

    def call(self) -> None:
        """Make a call: often one that was answered, which then happens, or that happens no more."""
        key, amount = self.random.choice((*KEYS, NAMELESS)), self.random.choice((1, 1, 1, 2))
        deaths, answered = CALLING, [one for name, one in self.asked.items() if name in self.answered]
        if answered and self.random.random() < 0.6:
            one = self.random.choice(answered[-2:])
            key, amount, deaths = one.root, one.amount, MAKING
        self._somewhere(f"call {key} {amount}", "make", (key, amount), deaths)

    def answer(self) -> None:
        pending = sorted(self.here.broker.pending(), key=lambda one: (one.call_key, str(one.arguments["amount"])))
        if not pending:
            return
        asked = self.random.choice(pending)
        kinds = [Approval(True, "dana")] * 4 + [
            Approval(False, "dana"),
            Approval(True, "dana", Remember.DURATION, 60.0),
        ]
        approval = self.random.choice(kinds)
        self.answered.add(asked.request_id)
        self.gave_for_a_time |= approval.lasts
        what = f"answer {asked.call_key} {approval.approved}"
        self._somewhere(what, "answer", (asked.request_id, approval), ANSWERING)

    def race(self) -> None:
        """Two processes make one call at the same moment."""
        key = self.random.choice((*KEYS, NAMELESS))
        death = self.random.choice(["", "", *CALLING])
        self.did.append(f"race {key} {death}")
        self.peer.begin(self._order("make", (key, 1), death))
        self.here.make(key, 1)
        self.peer.end()

    def change_bill(self) -> None:
        self.did.append("bill")
        self.here.bill.write_text(str(self.random.randrange(3)), "utf-8")

    def change_policy(self) -> None:
        self.did.append("policy")
        self.here.set(1 - self.here.version, self.here.clock.wall_s())

    def wait(self) -> None:
        self.did.append("wait")
        self.here.clock.advance(self.random.choice((30.0, 90.0, 3 * 86_400.0)))

    def finish(self, key: str) -> None:
        """Ask, answer and repeat the call until it has an outcome, then make it once more; a process may die of it."""
        amount = next((one.amount for one in reversed(self.asked.values()) if one.root == key), 1)
        told = self.here.make(key, amount)
        for attempt in range(12):
            self.look()
            if told.code == "call-id-reused":
                amount = 3 - amount
            if told.question:
                self.here.answer(told.question, Approval(True, "dana"))
            ended = Status.ALLOWED, Status.UNKNOWN, Status.FAILED
            if told.status in ended or (told.code == "approval-refused" and not told.replayed):
                break
            if attempt in {0, 2}:
                self._somewhere(f"finish {key} {amount}", "make", (key, amount), MAKING)
            told = self.here.make(key, amount)
        else:
            raise AssertionError(f"`{key}` comes to no end: {told.status} {told.code}")
        if key != NAMELESS and told.code != "approval-refused":
            again = self.here.make(key, amount)
            assert again.replayed or again.status is Status.UNKNOWN, f"`{key}`, made again, came to {again.code}"
            assert not again.replayed or again.output == told.output
        if told.status is Status.FAILED:
            assert told.code in {"end-unknown", "approval-refused"}, f"`{key}` failed: {told.code}"
        if told.status is Status.ALLOWED:
            self.whole.append(key)

    # -- what must be so

    def look(self) -> None:
        """Store what each new question showed."""
        here = self.here
        listed = {one.request_id: one for one in here.broker.pending()}
        for one in listed.values():
            amount = int(str(one.arguments["amount"]))
            key = str(one.arguments.get("key", one.call_key))
            seen = Asked(one.call_key.partition(":")[0], key, amount, here.bill.read_text("utf-8"), here.version)
            self.asked.setdefault(one.request_id, seen)
        held = {row.row_id for row in here.store._rows.rows()}  # pyright: ignore[reportPrivateUsage]
        held |= {one.request.request_id for one in here.broker.stale()}
        for row, said in here.read():
            is_gone = row.kind == RowKind.CALL_WAITS and said["question"] not in held
            if is_gone and here.clock.wall_s() < said["until"] + STALE_S:
                began = any(one.seq > row.seq and one.call_id == row.call_id for one, _ in here.begun())
                assert began, f"the question {said['question']} is lost"

    def compare(self) -> None:
        """Compare the effects, the rows and the answers on the disk."""
        here = self.here
        report = here.audit.verify()
        assert report.is_sound, report.problems
        here.rows.clear()
        begun = [body for _, body in here.begun()]
        effects = [json.loads(line) for line in here.effects.read_text("utf-8").splitlines()]
        made, runs = Counter(body["arguments"].get("key") for body in begun), set[tuple[str, str]]()
        for key, times in Counter(one["key"] for one in effects).items():
            assert times == 1 or key == NAMELESS, f"`{key}` happened {times} times"
            assert times <= made[key], f"`{key}` happened without a row"
        spent: list[str] = []
        for number, body in enumerate(begun):
            run = body.get("answer", ""), str(body.get("run", number))
            spent += [run[0]] if run[0] and run not in runs else []
            runs.add(run)
        assert len(set(spent)) == len(spent), "an answer was used twice"
        for key in self.whole:
            steps = COMPOSED.get(key, ("", (key,)))[1]
            happened = [one["key"] for one in effects if one["key"] in steps]
            assert key == NAMELESS or happened == [*steps], f"of `{key}` happened {happened}"
        for effect in effects:
            asked = self.asked.get(effect["answer"])
            assert asked is not None or not effect["answer"], "an answer to nothing was used"
            known = None if asked is None else (asked.key, asked.amount, asked.bill, asked.version)
            did = effect["key"], effect["amount"], effect["bill"], effect["version"]
            assert known in {None, did}, f"the answer to {known} was used for {did}"
            assert asked is not None or self.gave_for_a_time, "an effect that nobody allowed"

    # -- where it happens

    def _order(self, act: str, given: tuple[Any, ...], death: str) -> Order:
        here, times = self.here, self.random.choice((1, 1, 1, 2) if given[0] not in COMPOSED else range(1, 8))
        return Order(self.seed, self.folder, here.version, here.clock.wall_s(), act, given, death, times)

    def _somewhere(self, what: str, act: str, given: tuple[Any, ...], deaths: dict[str, Death]) -> None:
        """Act in this process, in the other one, or in the other one which is killed while it acts."""
        place = self.random.choice(("here", "there", "dies", "dies"))
        death = self.random.choice([*deaths]) if place == "dies" else ""
        self.did.append(f"{what} {death or place}")
        if place == "here":
            getattr(self.here, act)(*given)
        else:
            self.peer.begin(self._order(act, given, death))
            self.peer.end()


def _policy(version: int, folder: Path, registry: ToolRegistry) -> Policy:
    text = POLICY.format(version=version, folder=folder)
    if text not in _POLICIES:
        loaded = parse_policy(text, file="policy.toml", known=KnownTools(registry.facts(), compose=_compose))
        assert loaded.policy is not None, loaded.problems
        _POLICIES[text] = loaded.policy
    return _POLICIES[text]


def _compose(policy: Policy, facts: tuple[ToolFacts, ...]) -> tuple[ToolFacts, ...]:
    return tuple(made.facts() for made in compose(policy, facts))


def _pay(side: Side) -> Any:
    @tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING, normalization=Normalization.JSON)
    async def pay(key: str, amount: int, bill: str) -> str:
        """Pay a bill.

        Args:
            key: Which.
            amount: How much.
            bill: The file with the bill.
        """
        said = {"key": key, "amount": amount, "bill": Path(bill).read_text("utf-8")}
        said |= {"version": side.version, "answer": side.spent_by(key)}
        with side.effects.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
        return f"paid {side.effects.stat().st_size}"

    return pay


def run(seed: int, folder: Path, peer: Peer, steps: int = 8) -> str:
    """One schedule in a new folder of that name; the text says what was not so, and what was done."""
    folder.mkdir()
    schedule = Schedule(folder, seed, peer)
    try:
        schedule.run(steps)
    except AssertionError as error:
        peer.close()
        return f"seed {seed}: {error}; it did: {'; '.join(schedule.did)}"
    finally:
        schedule.here.close()
        shutil.rmtree(folder)
    return ""


def run_each(first: int, count: int, beside: Path | None = None) -> Generator[str]:
    """So many schedules, one after the other; all in one place, so that each policy is read once."""
    peer = Peer()
    try:
        with tempfile.TemporaryDirectory(prefix="ledger-", dir=beside) as place:
            for seed in range(first, first + count):
                yield run(seed, Path(place, "w"), peer)
    finally:
        peer.close()


def run_all(first: int, count: int, beside: Path | None = None) -> None:
    """So many schedules, of which none may fail."""
    for failure in run_each(first, count, beside):
        assert not failure, failure


def main(count: int, first: int, progress: Path) -> int:
    """Run so many schedules; ``progress`` holds the next seed, from which another run goes on."""
    begin = int(progress.read_text("utf-8")) if progress.exists() else first
    failed: list[str] = []
    for number, failure in enumerate(run_each(begin, first + count - begin), begin - first + 1):
        failed += filter(None, [failure])
        print(end=f"{failure}\n" if failure else "", flush=True)
        if number % 100 == 0 or number == count:
            progress.write_text(str(first + number), "utf-8")
            used = sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in _WHO)
            each_s = used / (first + number - begin)
            print(f"{number} of {count}, {len(failed)} failed, {each_s:.3f} s of a processor each", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    first_seed = int(given[1]) if len(given) > 1 else 0
    sys.exit(main(int(given[0]), first_seed, Path(given[2] if len(given) > 2 else f"ledger-{first_seed}.next")))
