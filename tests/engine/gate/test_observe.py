"""Observe mode: what it passes, what it never passes, what the log keeps, and how it ends by itself."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gatewright.base.amount import plain_moment
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Session, Status
from gatewright.gate.chain import RowKind, read_object
from gatewright.gate.selfcheck import selfcheck
from gatewright.policy.observe import MOST_OBSERVE_S
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.reader import parse_policy
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import Operator, World
from tests.support.clock import ManualClock

DAY_S = 86_400.0
AHEAD = plain_moment(float(round(time.time())) + 10 * DAY_S)
OBSERVE = f'mode = "observe"\nobserve_until = "{AHEAD}"\n'
TOOLS = 'tools = ["file", "block", "echo", "counter", "vault", "fail"]\n'
SOURCE = """
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


def agent(*more: str, mode: str = OBSERVE) -> str:
    return "gatewright = 1\n[agents.archivist]\n" + TOOLS + mode + "\n".join(more) + SOURCE


def rules(*rows: str) -> str:
    return "".join(f"\n[[agents.archivist.tool_rules]]\n{row}\n" for row in rows)


def policy_rule(name: str, effect: str, *more: str) -> str:
    return f'\n[[policy.rules]]\nname = "{name}"\neffect = "{effect}"\n' + "\n".join(more)


@pytest.fixture
def now_world(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> MakeWorld:
    """Worlds whose clock shows the time at which their policy is read."""
    monkeypatch.setattr("tests.engine.gate.world.ManualClock", lambda: ManualClock(time.time()))
    return make_world


def last_decision(world: World) -> dict[str, Any]:
    assert world.audit is not None
    rows = [row for row in world.audit.rows() if row.kind == RowKind.POLICY_DECISION]
    return dict(read_object(rows[-1].body) or {})


PASSED: list[tuple[str, str, str, dict[str, JsonValue], str, str]] = [
    ("a policy rule", policy_rule("no", "deny", 'tools = ["echo"]'), "echo", {"text": "x"}, "deny", "lookup"),
    (
        "a policy rule with a condition",
        policy_rule("no", "deny", 'tools = ["echo"]', 'when = { properties = { text = { const = "x" } } }'),
        "echo",
        {"text": "x"},
        "deny",
        "policy",
    ),
    ("an ask of a policy rule", policy_rule("ask", "ask", 'tools = ["echo"]'), "echo", {"text": "x"}, "ask", "policy"),
    ("the default", '\n[policy]\ndefault = "deny"\n', "echo", {"text": "x"}, "deny", "lookup"),
    ("the tier", "", "vault", {"text": "x"}, "ask", "approval"),
    (
        "a constraint",
        rules('tool_name = "echo"\nrule_type = { ArgumentConstraints = { text = { const = "y" } } }'),
        "echo",
        {"text": "x"},
        "deny",
        "schema",
    ),
    (
        "a limit",
        rules('tool_name = "echo"\nrule_type = { MaxCalls = 0 }'),
        "echo",
        {"text": "x"},
        "deny",
        "rules",
    ),
    (
        "the order",
        rules('tool_name = "echo"\nrule_type = "RequiresPrecedingTools"\nconditions = ["counter"]'),
        "echo",
        {"text": "x"},
        "deny",
        "rules",
    ),
    ("a level", "", "file", {"op": "append", "path": "frozen.md", "content": "x"}, "deny", "permission"),
    ("a level none", "", "file", {"op": "read", "path": "secret/a.md"}, "deny", "permission"),
    ("a level that asks", "", "file", {"op": "append", "path": "shared.md", "content": "x"}, "ask", "permission"),
    (
        "a capability",
        "",
        "file",
        {"op": "patch", "path": "a.md", "patch": "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"},
        "deny",
        "operation",
    ),
]


@pytest.mark.parametrize(("what", "more", "tool", "given", "verdict", "stage"), PASSED, ids=lambda one: str(one)[:30])
async def test_an_observed_agent_passes_what_enforcing_denies_or_asks(
    now_world: MakeWorld, what: str, more: str, tool: str, given: dict[str, JsonValue], verdict: str, stage: str
) -> None:
    enforced, observed = (now_world(agent(mode=mode) + more) for mode in ("", OBSERVE))
    for world in (enforced, observed):
        for name in ("a.md", "frozen.md", "shared.md", "secret/a.md"):
            (world.docs / name).parent.mkdir(exist_ok=True)
            (world.docs / name).write_text("a\n")
    true, decision = enforced.decide(tool, given), observed.decide(tool, given)

    assert (str(true.verdict), true.stage) == (verdict, stage), what
    assert (true.enforced, true.effect) == (True, true.verdict)
    assert (decision.verdict, decision.stage, decision.code) == (true.verdict, true.stage, true.code)
    assert (decision.enforced, decision.effect, decision.model_message) == (False, Verdict.ALLOW, None)
    assert decision.to_json()["enforced"] is False
    assert [row.stage for row in decision.trace][-1] == "approval"

    outcome = await observed.call(tool, given)
    assert outcome.status is Status.ALLOWED, outcome
    row = last_decision(observed)
    assert (row["verdict"], row["stage"], row["code"], row["enforced"]) == (verdict, stage, true.code, False)
    assert row["stages"][stage] == verdict
    assert (await enforced.call(tool, given)).status is not Status.ALLOWED
    assert "enforced" not in last_decision(enforced)


NEVER: list[tuple[str, dict[str, JsonValue] | str, str]] = [
    ("echo", "{", "parse"),
    ("nothing", {}, "lookup"),
    ("send_message", {"target": "user", "content": "x"}, "lookup"),
    ("counter", {"op": "down"}, "operation"),
    ("counter", {"op": "sideways"}, "operation"),
    ("echo", {"text": 5}, "schema"),
    ("file", {"op": "read", "path": "../out.md"}, "arguments"),
    ("file", {"op": "read", "path": "policy.toml", "source": "all"}, "permission"),
]


@pytest.mark.parametrize(("tool", "given", "stage"), NEVER)
async def test_observing_never_passes_what_it_may_not(
    now_world: MakeWorld, tool: str, given: dict[str, JsonValue] | str, stage: str
) -> None:
    only_up = rules('tool_name = "counter"\nrule_type = { AllowedOperations = ["up"] }')
    whole = '\n[[sources]]\nid = "all"\ntype = "file"\nbase_path = "."\ndefault_permission = "admin"\n'
    world = now_world(agent() + whole + only_up)
    for name in ("out.md", "policy.toml"):
        (world.folder / name).write_text("out")
    decision = world.decide(tool, given)

    assert (decision.verdict, decision.stage, decision.enforced) == (Verdict.DENY, stage, True)
    assert (await world.call(tool, given)).status is Status.DENIED


def test_view_tells_what_enforcing_would_hide(now_world: MakeWorld) -> None:
    deny = policy_rule("no", "deny", 'tools = ["echo"]')
    up = policy_rule("no up", "deny", 'tools = ["counter"]\noperations = ["up"]')
    policies = agent(mode="") + deny + up, agent(mode="") + deny + f"\n{OBSERVE}" + up, agent() + deny + up
    views = [now_world(policy).gate.view("archivist") for policy in policies]
    shown = [{f"{name}.{one}" for name, right in view.rights.items() for one in right.shown} for view in views]

    assert [sorted(view.observed) for view in views] == [[], ["echo"], ["counter.up", "echo", "file.patch"]]
    assert [one - shown[0] for one in shown[1:]] == [{"echo."}, {"echo.", "counter.up", "file.patch"}]


async def test_a_denied_call_that_passes_counts_for_no_rule(now_world: MakeWorld) -> None:
    limits = rules(
        'tool_name = "counter"\nrule_type = { MaxCalls = 2 }',
        'tool_name = "vault"\nrule_type = "RequiresPrecedingTools"\nconditions = ["echo"]',
    )
    bad = policy_rule("no x", "deny", 'tools = ["echo"]', 'when = { properties = { text = { const = "x" } } }')
    world, session = now_world(agent('approvals = { privileged = "allow" }') + limits + bad), Session()
    verdicts = [
        str((await world.call(tool, given, session=session)).decision.verdict)
        for tool, given in [
            *[("counter", {"op": "up"})] * 4,
            ("echo", {"text": "x"}),
            ("vault", {}),
            ("echo", {"text": "y"}),
            ("vault", {}),
        ]
    ]

    assert verdicts == ["allow", "allow", "deny", "deny", "deny", "deny", "allow", "allow"]
    assert world.counter.value == 4
    assert session.calls("counter") == 2
    again = Session(session.session_id, "archivist")
    assert world.audit is not None
    world.audit.count(again)
    assert (again.calls("counter"), again.calls("echo"), again.calls("vault")) == (2, 1, 1)


async def test_an_observed_rule_alone_passes(now_world: MakeWorld) -> None:
    deny = policy_rule("no", "deny", 'tools = ["echo"]', OBSERVE.strip())
    ask = policy_rule("ask", "ask", 'tools = ["echo"]', 'when = { properties = { text = { const = "x" } } }')
    world = now_world(agent(mode="") + deny + ask)

    free, asks = world.decide("echo", {"text": "y"}), world.decide("echo", {"text": "x"})
    assert (free.verdict, free.effect, free.stage) == (Verdict.DENY, Verdict.ALLOW, "lookup")
    assert (asks.verdict, asks.effect) == (Verdict.DENY, Verdict.ASK)
    assert world.decide("vault", {}).enforced
    operator = Operator()
    outcome = await world.call("echo", {"text": "x"}, approver=operator)
    assert outcome.status is Status.ALLOWED
    assert [list(request.reasons) for request in operator.requests] == [["policy rule `ask` asks before it"]]
    assert (await world.call("echo", {"text": "x"})).status is Status.UNANSWERED


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
@pytest.mark.parametrize("effect", ["ask", "deny"])
def test_an_observed_rule_never_makes_a_call_stricter(now_world: MakeWorld, default: str, effect: str) -> None:
    head = f'\n[policy]\ndefault = "{default}"\n'
    row = policy_rule("one", effect, 'tools = ["echo"]')
    enforced = now_world(agent(mode="") + head + row)
    observed = now_world(agent(mode="") + head + row + f"\n{OBSERVE}")
    without = now_world(agent(mode="") + head)
    true, decision = enforced.decide("echo", {"text": "x"}), observed.decide("echo", {"text": "x"})

    assert decision.verdict is true.verdict
    left = without.decide("echo", {"text": "x"}).effect if effect == "deny" else Verdict.ALLOW
    assert decision.effect is left
    assert decision.enforced == (left is true.verdict)


def test_what_observing_would_hide_is_listed_and_the_self_check_agrees(now_world: MakeWorld) -> None:
    more = policy_rule("no", "deny", 'tools = ["counter"]', 'operations = ["down"]')
    more += rules(
        'tool_name = "echo"\nrule_type = { ArgumentConstraints = { text = { pattern = "^y", maxLength = 3 } } }',
        'tool_name = "vault"\nrule_type = { ArgumentConstraints = { required = ["text"] } }',
        'tool_name = "file"\nrule_type = { AllowedOperations = ["read", "patch", "save"] }',
    )
    enforced, observed = (now_world(agent(mode=mode) + more) for mode in ("", OBSERVE))

    def names(world: World) -> set[tuple[str, str]]:
        snapshot = world.gate.snapshot().agent("archivist")
        assert snapshot is not None
        return {(name, one) for name, right in snapshot.rights.items() for one in right.shown}

    assert names(observed) - names(enforced) == {("counter", "down"), ("file", "patch")}
    assert names(enforced) <= names(observed)
    for world in (enforced, observed):
        report = selfcheck(world.gate)
        assert not report.differences, report.differences
    listed = {tool.name for tool in observed.gate.view("archivist").listings()}
    assert listed >= {"counter", "echo", "vault", "file"}
    assert observed.gate.check("archivist", "counter", "down").is_open
    assert not enforced.gate.check("archivist", "counter", "down").is_open


async def test_enforcement_comes_back_by_itself(now_world: MakeWorld) -> None:
    world = now_world(agent() + policy_rule("no", "deny", 'tools = ["echo"]'))
    assert (await world.call("echo", {"text": "x"})).status is Status.ALLOWED
    assert "echo" in {tool.name for tool in world.gate.view("archivist").listings()}

    world.clock.advance(10 * DAY_S + 2)

    assert (await world.call("echo", {"text": "x"})).status is Status.DENIED
    assert "echo" not in {tool.name for tool in world.gate.view("archivist").listings()}
    assert world.decide("echo", {"text": "x"}).enforced


def test_nothing_is_observed_without_an_end_or_for_longer_than_30_days(now_world: MakeWorld) -> None:
    world = now_world(agent() + policy_rule("no", "deny", 'tools = ["echo"]'))
    held = world.gate.policy.agents["archivist"]
    now_s = world.clock.wall_s()
    for until_s in (None, now_s + MOST_OBSERVE_S + 60, now_s - 1):
        world.gate.reload(world.gate.policy.with_agent(replace(held, observe_until_s=until_s)))
        assert world.decide("echo", {"text": "x"}).enforced
    world.gate.reload(world.gate.policy.with_agent(replace(held, observe_until_s=now_s + MOST_OBSERVE_S)))
    assert not world.decide("echo", {"text": "x"}).enforced


def test_a_proof_of_a_passed_call_holds(now_world: MakeWorld) -> None:
    from gatewright.gate.inforce import ProvenCall

    world = now_world(agent() + policy_rule("no", "deny", 'tools = ["echo"]'))
    decision = world.decide("echo", {"text": "x"})
    assert world.gate.verify(decision.proof, ProvenCall("archivist", "echo", {"text": "x"})).holds


READ = [
    ("", None),
    (OBSERVE, None),
    ('mode = "observe"\n', "missing-key"),
    ('mode = "watch"\n', "unknown-variant"),
    (f'mode = "observe"\nobserve_until = "{plain_moment(time.time() + 31 * DAY_S)}"\n', "bad-value"),
    ('mode = "observe"\nobserve_until = "tomorrow"\n', "bad-value"),
    ('mode = "observe"\nobserve_until = "2026-11-30T10:00:00"\n', "bad-value"),
    ('mode = "observe"\nobserve_until = 3\n', "bad-value"),
    ('mode = "observe"\nobserve_until = 2020-01-01T00:00:00Z\n', "observe-over"),
    (f'observe_until = "{AHEAD}"\n', "observe-without-effect"),
    (f'mode = "observe"\nobserve_until = {AHEAD}\n', None),
]
PLACES = {
    "agent": "gatewright = 1\n[agents.archivist]\ntools = []\n{}",
    "rule": 'gatewright = 1\n[[policy.rules]]\nname = "no"\neffect = "deny"\n{}',
    "catalog": 'gatewright = 1\n[[catalogs]]\nid = "git"\ntype = "host"\nmanifest = "git.json"\n{}',
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("keys", "code"), READ, ids=range(len(READ)))
def test_each_place_of_the_key_is_read_alike(place: str, keys: str, code: str | None) -> None:
    known: Any = None  # nothing is looked up
    loaded = parse_policy(PLACES[place].format(keys), file="policy.toml", known=known)
    codes = [problem.code for problem in loaded.problems if problem.code in {code, "unknown-key"}]
    assert codes == ([code] if code else []), loaded.problems
    if code is None and keys:
        policy = loaded.policy
        assert policy is not None
        held = {"agent": policy.agents.get("archivist"), "rule": (*policy.rules, None)[0]}.get(place)
        if held is not None:
            assert held.observe_until_s == datetime.fromisoformat(AHEAD).astimezone(UTC).timestamp()


def test_a_rule_that_allows_has_nothing_to_observe() -> None:
    text = f'gatewright = 1\n[[policy.rules]]\nname = "yes"\neffect = "allow"\n{OBSERVE}'
    assert [problem.code for problem in parse_policy(text, file="p.toml", known=KnownTools(())).problems] == [
        "bad-value"
    ]
