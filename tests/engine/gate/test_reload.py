"""A policy swapped under load: everything that a caller is told comes from one policy, and a refused one rings."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from gatewright.base.errors import Place, Problem, Severity
from gatewright.gate import Alarm, Session, Status
from gatewright.gate.inforce import changes
from gatewright.policy.document import Agent, Defaults, Policy, Source, ToolSettings
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict
from gatewright.sources.basefolder import base_folder
from gatewright.tools.context import Ports
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, Operator, World

OTHER = "# two lines\n# more\n" + POLICY.replace('["read", "append", "load", "save"]', '["append", "create"]').replace(
    'default_permission = "read_write"', 'default_permission = "read_only"'
).replace('"counter", "vault"]', '"vault"]')
CALLERS, RELOADS = 100, 1000


@dataclass(frozen=True)
class Side:
    """All that the two policies say differently."""

    digest: str
    shown: frozenset[str]
    read: tuple[Any, ...]
    append: tuple[Any, ...]
    counter: tuple[Any, ...]


def told(world: World, tool: str, arguments: Any) -> tuple[str, tuple[Any, ...]]:
    decision = world.gate.decide("archivist", tool, arguments)
    line = decision.rule.line if decision.rule else None
    return decision.proof.policy_digest, (decision.verdict, decision.code, decision.model_message, line)


def shown(world: World) -> frozenset[str]:
    tools = world.gate.view("archivist").tools("mcp")
    schema = next(tool["inputSchema"] for tool in tools if tool["name"] == "file")
    return frozenset({*(tool["name"] for tool in tools), *json.dumps(schema["properties"]["op"]).split('"')})


def side(world: World) -> Side:
    digest, read = told(world, "file", {"op": "read", "path": "note.md"})
    return Side(
        digest,
        shown(world),
        read,
        told(world, "file", {"op": "append", "path": "note.md", "content": "x"})[1],
        told(world, "counter", {"op": "up"})[1],
    )


class Swapper:
    """Puts one policy and the other in force, each with its own levels and lines."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sides = [self._read(text) for text in (POLICY, OTHER)]
        self._bases = {
            source.source_id: base_folder(world.folder / source.base_path)
            for policy, _ in self._sides
            for source in policy.sources
        }

    def put(self, which: int) -> None:
        policy, places = self._sides[which]
        sources = self._world.sources
        sources.follow([(source, self._bases[source.source_id]) for source in policy.sources])
        self._world.gate.reload(policy, places=places, ports=Ports(sources.snapshot(), folder=str(self._world.folder)))

    def _read(self, text: str) -> tuple[Policy, Any]:
        policy = self._world._checked(text)  # pyright: ignore[reportPrivateUsage]
        return policy, self._world.places.place


def test_concurrent_callers_never_see_a_mixture(world: World) -> None:
    swapper = Swapper(world)
    sides: list[Side] = []
    for which in (0, 1):
        swapper.put(which)
        sides.append(side(world))
    assert sides[0].digest != sides[1].digest
    assert all(getattr(sides[0], name) != getattr(sides[1], name) for name in ("shown", "read", "append", "counter"))
    by_digest = {one.digest: one for one in sides}
    over, seen, wrong = threading.Event(), set[str](), list[Any]()
    ready = threading.Barrier(CALLERS + 1)

    def caller(number: int) -> None:
        calls = (
            ("read", "file", {"op": "read", "path": "note.md"}),
            ("append", "file", {"op": "append", "path": "note.md", "content": "x"}),
            ("counter", "counter", {"op": "up"}),
        )
        ready.wait()
        while not over.is_set():
            name, tool, arguments = calls[number % 3]
            digest, answer = told(world, tool, arguments)
            seen.add(digest)
            if getattr(by_digest[digest], name) != answer:
                wrong.append((digest, answer))
            if number % 10 == 0 and shown(world) not in {one.shown for one in sides}:
                wrong.append("a mixed list")

    with ThreadPoolExecutor(CALLERS) as pool:
        futures = [pool.submit(caller, number) for number in range(CALLERS)]
        ready.wait()
        for turn in count():
            swapper.put(turn % 2)
            if turn >= RELOADS and (seen == set(by_digest) or wrong):
                break
        over.set()
        for future in futures:
            future.result()

    assert wrong == []
    assert seen == set(by_digest)


def test_places_of_the_policy_stay_unless_a_reload_brings_others(world: World) -> None:
    def standing() -> tuple[str | None, int | None]:
        rule = world.decide("file", {"op": "delete", "path": "note.md"}).rule
        assert rule is not None
        return rule.file, rule.line

    def elsewhere(_: object) -> Place:
        return Place("other.toml", 99)

    before = standing()
    assert before[0] == "policy.toml"
    for places, wanted in ((None, before), (elsewhere, ("other.toml", 99))):
        world.gate.reload(world.gate.policy, places=places)
        assert standing() == wanted
    world.gate.reload(world.gate.policy)
    assert standing() == ("other.toml", 99)


async def test_running_call_ends_on_the_policy_it_began_with(make_world: MakeWorld) -> None:
    waiting = GateTool()
    world = make_world(POLICY.replace('"vault"]', '"vault", "wait"]'), waiting)
    call = asyncio.create_task(world.call("wait", {"op": "politely"}))
    await waiting.began.wait()
    world.reload(POLICY)
    assert world.decide("wait", {"op": "politely"}).code == "tool-not-listed"
    waiting.let_go.set()
    outcome = await call

    assert (outcome.status, outcome.output) == (Status.ALLOWED, "done")


async def test_waiting_call_is_decided_again_and_its_row_names_the_new_policy(world: World) -> None:
    operator = Operator()
    operator.may_answer.clear()
    call = asyncio.create_task(world.call("vault", {}, approver=operator))
    await operator.asked.wait()
    world.reload(OTHER.replace(', "vault"]', "]"))
    operator.may_answer.set()
    outcome = await call
    assert world.audit is not None
    bodies = [json.loads(row.body) for row in world.audit.rows() if row.kind == "PolicyDecision"]

    assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "lookup")
    assert bodies[0]["policy"] != bodies[1]["policy"] == world.gate.snapshot().policy_digest


async def test_changed_policy_stands_in_the_log_before_the_first_call_under_it(world: World) -> None:
    before = world.gate.snapshot().policy_digest
    world.reload(POLICY.replace('["read",', "["))
    world.reload(OTHER)
    assert world.audit is not None
    assert not world.audit.path.exists()
    await world.call("echo", {"text": "a"})
    await world.call("echo", {"text": "b"})
    kinds = world.row_kinds()
    body = json.loads(next(row for row in world.audit.rows() if row.kind == "PolicyChanged").body)

    assert kinds == ["PolicyChanged", *["ToolInvoked", "PolicyDecision", "ToolCompleted"] * 2]
    assert body == {
        "refused": False,
        "file": None,
        "before": before,
        "after": world.gate.snapshot().policy_digest,
        "changes": ["agent `archivist` changed", "source `docs` changed"],
    }


async def test_a_turned_default_of_the_policy_rules_stands_in_the_log(world: World) -> None:
    world.reload(POLICY + '\n[policy]\ndefault = "ask"\n')
    await world.call("echo", {"text": "a"})
    assert world.audit is not None
    body = json.loads(next(row for row in world.audit.rows() if row.kind == "PolicyChanged").body)
    assert body["changes"] == ["the default of the policy rules is `ask`"]


def test_changes_of_a_policy_are_told_one_by_one() -> None:
    def policy(*names: str, **more: Any) -> Policy:
        rules = tuple(PolicyRule(name, Verdict.ASK) for name in ("", *names))
        agents = {name: Agent(name) for name in names}
        tools = {name: ToolSettings(description=name) for name in names}
        return Policy(agents=agents, tools=tools, sources=tuple(Source(n, n) for n in names), rules=rules, **more)

    before, after = policy("gone", "kept"), policy("kept", "new", defaults=Defaults(max_output_bytes=7))
    after = replace(after, agents={**after.agents, "kept": Agent("kept", tools=())})
    words = ["agent", "settings of tool", "source", "policy rule"]
    of_each = [[f"{what} `gone` was removed", f"{what} `new` is new"] for what in words]
    of_each[0].append("agent `kept` changed")
    assert changes(before, after) == [*(word for each in of_each for word in each), "the defaults changed"]
    assert changes(before, before) == ["another part changed"]
    turned = replace(before, default=Verdict.ASK, rules=(PolicyRule("", Verdict.DENY), *before.rules[1:]))
    assert changes(before, turned) == ["policy rule `#1` changed", "the default of the policy rules is `ask`"]


@pytest.mark.parametrize("count", [20, 21])
async def test_of_many_changes_twenty_are_told_and_how_many_more_there_are(world: World, count: int) -> None:
    world.reload(POLICY + "".join(f"\n[agents.a{at:02}]\n" for at in range(count)))
    await world.call("echo", {"text": "a"})
    assert world.audit is not None
    body = json.loads(next(row for row in world.audit.rows() if row.kind == "PolicyChanged").body)
    told = [f"agent `a{at:02}` is new" for at in range(20)]
    assert body["changes"] == [*told, *["and 1 more"] * (count - 20)]


async def test_change_that_is_taken_back_before_a_call_is_not_recorded(world: World) -> None:
    world.reload(OTHER)
    world.reload(POLICY)
    await world.call("echo", {"text": "a"})

    assert "PolicyChanged" not in world.row_kinds()


async def test_change_is_recorded_with_the_next_call_when_the_log_could_not_be_written(world: World) -> None:
    await world.call("echo", {"text": "a"})
    assert world.audit is not None
    world.reload(OTHER)
    moved = world.folder / "moved"
    (world.folder / "state").rename(moved)
    assert (await world.call("echo", {"text": "b"})).code == "audit-unavailable"
    moved.rename(world.folder / "state") if not (world.folder / "state").exists() else None
    await world.call("echo", {"text": "c"})

    assert world.row_kinds().count("PolicyChanged") == 1


PROBLEM = Problem(Severity.ERROR, "unknown-key", "no key `tols`")


async def test_refused_policy_rings_until_a_good_one_is_in_force(world: World) -> None:
    heard: list[Alarm | None] = []
    stop = world.gate.on_alarm(heard.append)
    assert world.gate.alarm is None
    alarm = world.gate.refuse([PROBLEM])
    assert (world.gate.alarm, heard) == (alarm, [alarm])
    assert (alarm.problems, alarm.raised_wall_s) == ((PROBLEM,), world.clock.wall_s())
    assert world.decide("echo", {"text": "a"}).verdict is Verdict.ALLOW
    world.reload(POLICY)
    assert (world.gate.alarm, heard) == (None, [alarm, None])
    stop()
    world.gate.refuse([PROBLEM])
    assert heard == [alarm, None]


async def test_refused_policies_stand_in_the_log_and_are_never_many(world: World) -> None:
    for _ in range(500):
        world.gate.refuse([replace(PROBLEM, severity=Severity.WARNING), *[PROBLEM] * 50])
    await world.call("echo", {"text": "a"})
    assert world.audit is not None
    bodies = [json.loads(row.body) for row in world.audit.rows() if row.kind == "PolicyChanged"]

    assert bodies == [{"refused": True, "file": None, "problems": ["error: no key `tols` [unknown-key]"] * 5}] * 20


def test_listener_that_fails_stops_no_reload(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_alarm: Alarm | None) -> None:
        raise ZeroDivisionError

    world.gate.on_alarm(broken)
    world.gate.refuse([PROBLEM])
    world.reload(POLICY)

    assert world.gate.alarm is None
    assert "a listener to alarms failed" in caplog.text


def test_session_goes_on_under_the_new_policy(make_world: MakeWorld) -> None:
    world = make_world()
    session = Session()
    asyncio.run(world.call("counter", {"op": "up"}, session=session))
    once = '\n[[agents.archivist.tool_rules]]\ntool_name = "counter"\nrule_type = { MaxCalls = 1 }\n'
    world.reload(POLICY + once)

    assert world.decide("counter", {"op": "up"}, session=session).code == "max-calls"
