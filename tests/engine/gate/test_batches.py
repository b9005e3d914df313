"""Calls that name several operations at once, or any: every rule of each, counted one by one, asked for as a whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.operation import MOST_BATCHES, PathPlan, batch_name, path_plans, uses_of
from gatewright.gate import Approval, Decision, Gate, ProvenCall, Remember, Session, Status, selfcheck
from gatewright.gate.breach import MaxCallsExceeded, violation_of
from gatewright.gate.session import Reservation
from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import OperationFacts, PathArgument
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    Cooldown,
    ExclusiveGroups,
    MaxCalls,
    PolicyRule,
    RateLimit,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    ToolRule,
)
from gatewright.policy.verdict import Action, PathUse, SafetyTier, Verdict
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.parameter import Step
from gatewright.tools.registry import ToolRegistry
from tests.engine.gate.asking import Desk, asking_gate, soon
from tests.engine.gate.conftest import MakeWorld
from tests.support.clock import ManualClock

TIERS = {"read": SafetyTier.READ_ONLY, "write": SafetyTier.SIDE_EFFECTING, "delete": SafetyTier.PRIVILEGED}
CALM = dict.fromkeys(TIERS, SafetyTier.READ_ONLY)


def element(*names: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"op": {"type": "string", "enum": list(names)}, "path": {"type": "string"}},
        "required": ["op"],
        "additionalProperties": False,
    }


BATCH = {
    "type": "object",
    "properties": {"operations": {"type": "array", "items": element(*TIERS)}, "mode": {"type": "string"}},
    "required": ["operations"],
}
NESTED = {"type": "object", "properties": {"request": element(*TIERS)}, "required": ["request"]}
KEYED: dict[str, Any] = {
    "type": "object",
    "oneOf": [
        {"type": "object", "properties": {name: {}}, "required": [name], "additionalProperties": False}
        for name in ("move", "copy")
    ],
}
OPTIONAL = {
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ["push", "pop", "drop"], "default": "push"}},
}
UNSAID = {"type": "object", "properties": {"action": {"type": "string", "enum": ["push", "pop", "drop"]}}}


class Store:
    """What runs the tool: it keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, JsonValue]] = []

    async def __call__(self, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue:
        assert context.agent_id
        self.given.append(arguments)
        return {"done": True}


def stranger(
    name: str,
    schema: dict[str, Any],
    tiers: Mapping[str, SafetyTier] | None = None,
    field: str | None = None,
    runner: Store | None = None,
) -> DefinedTool:
    definition = ToolDefinition(
        name,
        "Does things.",
        schema,
        safety_tier=SafetyTier.READ_ONLY,
        operation_tiers=tiers or {},
        operation_field=field,
    )
    return DefinedTool(definition, origin="there", trusted=True, runner=runner or Store())


def batch_tool(tiers: Mapping[str, SafetyTier] = CALM) -> DefinedTool:
    return stranger("files", BATCH, tiers, "operations[].op")


def gate_of(tool: DefinedTool, *rules: ToolRule, clock: ManualClock | None = None, **more: Any) -> Gate:
    registry = ToolRegistry()
    registry.register(tool)
    agent = Agent("a", tool_rules=rules, approvals=more.pop("approvals", {}))
    return Gate(Policy(agents={"a": agent}, **more), registry, clock=clock)


def batch(*names: str) -> dict[str, Any]:
    return {"operations": [{"op": name} for name in names]}


def only(*names: str) -> ToolRule:
    return ToolRule("files", AllowedOperations(frozenset(names)))


def on(operation: str, kind: Any) -> ToolRule:
    return ToolRule("files", kind, conditions=(f"operation:{operation}",))


def decide(gate: Gate, arguments: Any, session: Session | None = None) -> Decision:
    return gate.decide("a", "files", arguments, session=session)


async def call(gate: Gate, arguments: Any, session: Session) -> Status:
    return (await gate.call("a", "files", arguments, session=session)).status


def test_batch_of_shown_operations_is_allowed() -> None:
    gate = gate_of(batch_tool(), only("read", "write"))

    assert decide(gate, batch("read", "write", "read")).verdict is Verdict.ALLOW
    assert decide(gate, batch("read")).verdict is Verdict.ALLOW


def test_batch_with_one_hidden_operation_is_denied_and_names_the_element() -> None:
    gate = gate_of(batch_tool(), only("read", "write"))
    decision = decide(gate, batch("read", "delete"))

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "operation", "operation-not-allowed")
    assert decision.model_message == ("Tool execution failed: `/operations/1/op` must be one of `read`, `write`")


def test_batch_with_an_unknown_operation_gets_the_words_of_a_hidden_one() -> None:
    gate = gate_of(batch_tool(), only("read", "write"))
    hidden, unknown = decide(gate, batch("read", "delete")), decide(gate, batch("read", "DELETE"))

    assert (unknown.verdict, unknown.code) == (Verdict.DENY, "operation-unknown")
    assert unknown.model_message == hidden.model_message


@pytest.mark.parametrize("element", [{}, {"op": None}, {"op": 1}, {"op": ["read"]}, "read", None, 7])
def test_batch_with_an_element_that_names_nothing_is_denied(element: Any) -> None:
    decision = decide(gate_of(batch_tool(), only("read", "write")), {"operations": [{"op": "read"}, element]})

    assert (decision.verdict, decision.stage) == (Verdict.DENY, "operation")


def test_empty_batch_passes_and_is_judged_as_if_it_did_everything_shown() -> None:
    rule = PolicyRule("no deletes", Verdict.DENY, tools=("files",), operations=("delete",), when={"required": ["mode"]})
    gate = gate_of(batch_tool(), rules=(rule,))

    assert decide(gate, batch()).verdict is Verdict.ALLOW
    denied = decide(gate, {**batch(), "mode": "fast"})
    assert denied.rule is not None
    assert denied.rule.rule_id == "no deletes"
    assert decide(gate, {**batch("read"), "mode": "fast"}).verdict is Verdict.ALLOW


def test_policy_rules_and_constraints_of_each_operation_bind_the_batch() -> None:
    modes: dict[str, JsonValue] = {"mode": {"enum": ["slow"]}}
    gate = gate_of(batch_tool(), on("write", ArgumentConstraints(modes)))

    assert decide(gate, {**batch("read"), "mode": "fast"}).verdict is Verdict.ALLOW
    assert decide(gate, {**batch("read", "write"), "mode": "fast"}).verdict is Verdict.DENY
    assert decide(gate, {**batch("read", "write"), "mode": "slow"}).verdict is Verdict.ALLOW


def test_allow_for_one_operation_does_not_lift_the_default_of_another() -> None:
    allow = PolicyRule("reads", Verdict.ALLOW, tools=("files",), operations=("read",))
    may = PolicyRule("writes", Verdict.ALLOW, tools=("files",), operations=("write",), when={"required": ["mode"]})
    gate = gate_of(batch_tool(), rules=(allow, may), default=Verdict.DENY)

    assert decide(gate, batch("read")).verdict is Verdict.ALLOW
    assert decide(gate, batch("read", "write")).code == "policy-default"
    assert decide(gate, {**batch("read", "write"), "mode": "x"}).verdict is Verdict.ALLOW


def test_of_several_denials_of_a_batch_the_first_in_the_file_decides() -> None:
    when: dict[str, JsonValue] = {"required": ["mode"]}
    rules = tuple(PolicyRule(f"no {name}", Verdict.DENY, operations=(name,), when=when) for name in ("read", "write"))
    gate = gate_of(batch_tool(), rules=rules)

    for names in (("read", "write"), ("write", "read")):
        decided_by = decide(gate, {**batch(*names), "mode": "fast"}).rule
        assert decided_by is not None
        assert decided_by.rule_id == "no read"


def test_self_check_breaks_a_limit_by_no_call_of_another_operation() -> None:
    wrong = ArgumentConstraints({"operations": {"items": {"properties": {"op": {"const": "read"}}}}})

    assert not selfcheck(gate_of(batch_tool(), on("read", wrong))).differences


def test_batch_asks_when_one_of_it_does() -> None:
    gate = gate_of(batch_tool(TIERS), approvals={"files.delete": Verdict.ASK, "files.read": Verdict.ALLOW})

    assert decide(gate, batch("read")).verdict is Verdict.ALLOW
    decision = decide(gate, batch("read", "delete"))
    assert (decision.verdict, decision.code) == (Verdict.ASK, "approval-needed")


async def test_each_element_counts_as_a_call() -> None:
    gate, session = gate_of(batch_tool(), on("delete", MaxCalls(3))), Session()

    assert await call(gate, batch("delete", "read", "delete"), session) is Status.ALLOWED
    too_many = decide(gate, batch("delete", "delete"), session)
    assert violation_of(too_many) == MaxCallsExceeded("files", 3, 2, 2)
    assert too_many.model_message == (
        "Tool execution failed: this call does more at once than this session has left: 1 at most"
    )
    assert too_many.reason == (
        "`files` may be called 3 times per session, and 2 calls were made, and this call counts as 2"
    )
    assert await call(gate, batch("delete"), session) is Status.ALLOWED
    none_left = decide(gate, batch("delete", "delete"), session)
    assert (none_left.code, "may not be called again" in str(none_left.model_message)) == ("max-calls", True)
    assert decide(gate, batch("delete"), session).code == "max-calls"
    assert decide(gate, batch("read", "read"), session).verdict is Verdict.ALLOW
    assert decide(gate, batch(), session).code == "max-calls"


async def test_cap_of_one_call_is_said_as_once() -> None:
    gate, session = gate_of(batch_tool(), ToolRule("files", MaxCalls(1))), Session()
    assert await call(gate, batch("read"), session) is Status.ALLOWED
    assert decide(gate, batch("read"), session).reason == (
        "`files` may be called once per session, and 1 call was made"
    )


async def test_limit_on_the_whole_tool_counts_elements_and_an_empty_batch_once() -> None:
    gate, session = gate_of(batch_tool(), ToolRule("files", MaxCalls(4))), Session()

    assert await call(gate, batch("read", "write"), session) is Status.ALLOWED
    assert await call(gate, batch(), session) is Status.ALLOWED
    assert session.calls("files") == 3
    assert decide(gate, batch("read", "read"), session).code == "max-calls"
    assert decide(gate, batch("read"), session).verdict is Verdict.ALLOW


async def test_batch_that_is_not_recorded_gives_all_of_it_back() -> None:
    session = Session()
    slot = session.reserve("files", {"delete": 2, "read": 1}, 5.0, sources=["docs"])
    assert isinstance(slot, Reservation)
    assert (session.calls("files"), session.calls("files", frozenset({"delete"}))) == (3, 2)
    assert session.facts().calls("files", None, "docs") == 3

    session.release(slot)
    assert session.calls("files") == 0
    assert session.facts().last_start_s("files") is None


async def test_rate_takes_a_token_for_each_element() -> None:
    clock = ManualClock()
    gate, session = gate_of(batch_tool(), on("delete", RateLimit(3, 60.0)), clock=clock), Session()

    assert await call(gate, batch("delete", "delete", "read"), session) is Status.ALLOWED
    assert decide(gate, batch("delete", "delete"), session).code == "rate-limit"
    assert decide(gate, batch("delete"), session).verdict is Verdict.ALLOW
    never = decide(gate, batch(*["delete"] * 4), session)
    assert never.model_message == "Tool execution failed: this call does more at once than permitted: 3 at most"


async def test_cooldown_of_one_operation_holds_for_a_batch_with_it() -> None:
    clock = ManualClock()
    gate, session = gate_of(batch_tool(), on("delete", Cooldown(60.0)), clock=clock), Session()

    assert await call(gate, batch("delete", "delete"), session) is Status.ALLOWED
    assert decide(gate, batch("read", "delete"), session).code == "cooldown"
    assert decide(gate, batch("read"), session).verdict is Verdict.ALLOW


def test_members_of_an_exclusive_group_do_not_stand_in_one_batch() -> None:
    gate = gate_of(batch_tool(), ToolRule("*", ExclusiveGroups((("files.read", "files.delete"),))))

    assert decide(gate, batch("read", "delete")).code == "exclusive-group"
    assert decide(gate, batch("read", "write", "read")).verdict is Verdict.ALLOW


async def test_what_stands_in_one_batch_comes_before_none_of_it() -> None:
    first = ToolRule("files", RequiresPrecedingTools(), conditions=("operation:write", "files.read"))
    gate, session = gate_of(batch_tool(), first), Session()
    assert decide(gate, batch("read", "write"), session).code == "preceding-required"
    assert await call(gate, batch("read"), session) is Status.ALLOWED
    assert decide(gate, batch("read", "write"), session).verdict is Verdict.ALLOW

    before = ToolRule("files", RequiresFollowingTools(), conditions=("operation:read", "files.delete"))
    assert decide(gate_of(batch_tool(), before), batch("read", "delete")).code == "too-late"


async def test_success_is_recorded_for_each_distinct_operation_and_not_by_an_empty_batch() -> None:
    gate, session = gate_of(batch_tool()), Session()
    assert await call(gate, batch(), session) is Status.ALLOWED
    assert not session.has_succeeded("files", frozenset({"read"}))

    assert await call(gate, batch("read", "read", "write"), session) is Status.ALLOWED
    facts = session.facts()
    assert facts.uses["files"]["read", ""].successes == 1
    assert session.has_succeeded("files", frozenset({"write"}))
    assert not session.has_succeeded("files", frozenset({"delete"}))


def test_field_left_out_calls_the_default() -> None:
    gate = gate_of(stranger("files", OPTIONAL), only("push", "pop"))
    assert decide(gate, {}).verdict is Verdict.ALLOW
    assert decide(gate_of(stranger("files", OPTIONAL), only("pop")), {}).stage == "operation"


@pytest.mark.parametrize(
    ("schema", "arguments", "place"),
    [
        (OPTIONAL, {}, "action"),
        (OPTIONAL, {"action": None}, "action"),
        (UNSAID, {}, "action"),
        (
            {"type": "object", "properties": {"a": OPTIONAL, "b": OPTIONAL}},
            {"b": {}, "a": {"action": "pop"}},
            "b.action",
        ),
        (
            {"type": "object", "properties": {"steps": {"type": "array", "items": OPTIONAL}}},
            {"steps": [{"action": "pop"}, {}]},
            "/steps/1/action",
        ),
    ],
)
async def test_where_leaving_the_field_out_would_call_a_hidden_operation_the_key_is_said_to_be_missing(
    schema: dict[str, Any], arguments: dict[str, Any], place: str
) -> None:
    gate = gate_of(stranger("files", schema), only("pop"))
    words = f"`{place}` is missing: it must be one of `pop`"

    decided = decide(gate, arguments)
    outcome = await gate.call("a", "files", arguments)

    for decision in (decided, outcome.decision):
        assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "operation", "operation-missing")
        assert decision.model_message == f"Tool execution failed: {words}"
        assert decision.reason == f"the call names no operation of `files`; {words}"
        assert (decision.rule, violation_of(decision)) == (None, None)


def test_hidden_operation_that_is_written_out_is_refused_as_hidden_where_it_is_the_default_too() -> None:
    gate = gate_of(stranger("files", OPTIONAL), only("pop"))

    decision = decide(gate, {"action": "push"})

    assert decision.code == "operation-not-allowed"
    assert decision.model_message == "Tool execution failed: `action` must be one of `pop`"


async def test_field_left_out_without_a_default_counts_once_and_for_every_limit() -> None:
    tool = stranger("files", UNSAID)
    assert uses_of(tool, ("push", "pop", "drop")) == {"": 1}
    gate, session = gate_of(tool, ToolRule("files", MaxCalls(2)), on("drop", MaxCalls(1))), Session()

    assert await call(gate, {}, session) is Status.ALLOWED
    assert session.calls("files") == 1
    assert decide(gate, {"action": "drop"}, session).code == "max-calls"
    assert decide(gate, {"action": "push"}, session).verdict is Verdict.ALLOW


def test_nested_and_keyed_operations_are_told_apart() -> None:
    nested = gate_of(stranger("files", NESTED), only("read"))
    assert decide(nested, {"request": {"op": "read"}}).verdict is Verdict.ALLOW
    denied = decide(nested, {"request": {"op": "delete"}})
    assert denied.model_message == "Tool execution failed: `request.op` must be one of `read`"
    assert decide(nested, {"request": {}}).stage == "operation"

    keyed = gate_of(stranger("files", KEYED), only("move"))
    assert decide(keyed, {"move": {}}).verdict is Verdict.ALLOW
    assert decide(keyed, {"copy": {}}).model_message == (
        "Tool execution failed: the only argument must be one of `move`"
    )
    assert decide(keyed, {"move": {}, "copy": {}}).stage == "operation"
    assert decide(keyed, {}).code == "operation-missing"


def test_name_of_a_batch_is_no_name_of_an_operation() -> None:
    assert batch_name(["b", "a"], frozenset()) == '["a", "b"]'
    assert batch_name(["a", "b"], frozenset({'["a", "b"]'})) == '[["a", "b"]]'


def test_few_batches_of_many_are_kept() -> None:
    names = [f"op{n}" for n in range(12)]
    schema = {"type": "object", "properties": {"operations": {"type": "array", "items": element(*names)}}}
    gate = gate_of(stranger("files", schema, field="operations[].op"))
    agent = gate.snapshot().agent("a")
    assert agent is not None
    for mask in range(3, 1 << 8):
        chosen = [name for at, name in enumerate(names) if mask >> at & 1]
        assert decide(gate, batch(*chosen)).verdict is Verdict.ALLOW
    plan = agent.plan("files")
    assert plan is not None
    assert plan.batches.count <= MOST_BATCHES


def test_large_batch_is_counted_whole() -> None:
    gate, session = gate_of(batch_tool(), ToolRule("files", MaxCalls(10))), Session()
    decision = decide(gate, batch(*["read", "write"] * 2_000), session)

    assert violation_of(decision) == MaxCallsExceeded("files", 10, 0, 4_000)


async def test_tool_is_executed_with_the_whole_batch() -> None:
    store = Store()
    gate = gate_of(stranger("files", BATCH, CALM, "operations[].op", store))

    assert await call(gate, batch("read", "delete"), Session()) is Status.ALLOWED
    assert store.given == [batch("read", "delete")]


ASKING = """gatewright = 1

[agents.archivist]
tools = ["files"]

[agents.archivist.approvals]
"files" = "ask"
"""


async def test_lasting_approval_of_one_operation_never_covers_a_batch_with_another(make_world: MakeWorld) -> None:
    world = make_world(ASKING, batch_tool(TIERS))
    broker = asking_gate(world)
    desk, session = Desk(broker), Session("session-1")
    try:
        running = asyncio.ensure_future(world.call("files", batch("read"), session=session))
        question = await desk.question()
        broker.answer(question.request_id, Approval(True, "dana", Remember.DURATION, 600.0))
        assert (await soon(running)).status is Status.ALLOWED

        def says(*names: str) -> Verdict:
            return world.gate.decide("archivist", "files", batch(*names), session=session).verdict

        assert says("read", "read") is Verdict.ALLOW
        assert says("read", "delete") is Verdict.ASK
        assert says() is Verdict.ASK

        await desk.empty()
        running = asyncio.ensure_future(world.call("files", batch("delete", "read"), session=session))
        question = await desk.question()
        assert (question.operation, question.safety_tier) == ('["delete", "read"]', "privileged")
        broker.answer(question.request_id, Approval(True, "dana", Remember.DURATION, 600.0))
        assert (await soon(running)).status is Status.ALLOWED
        assert says("read", "delete", "delete") is Verdict.ALLOW
        assert says("delete") is Verdict.ASK
        assert says("read", "write") is Verdict.ASK
    finally:
        broker.close()


async def test_batch_stands_in_the_log_under_all_its_names(make_world: MakeWorld) -> None:
    world = make_world(ASKING.replace('"files" = "ask"', '"files" = "allow"'), batch_tool(TIERS))
    outcome = await world.call("files", batch("write", "read", "read"))
    assert outcome.status is Status.ALLOWED
    assert world.audit is not None
    rows = [row for row in world.audit.rows() if row.tool == "files"]

    assert {row.operation for row in rows} == {'["read", "write"]'}
    assert [row.kind for row in rows] == ["ToolInvoked", "PolicyDecision", "ToolCompleted"]
    assert json.loads(rows[0].body)["arguments"] == batch("write", "read", "read")


@pytest.mark.parametrize("names", [("read", "write"), ("read", "delete"), (), ("read",) * 3, ("burn",)])
def test_proof_of_a_batch_holds_for_it_and_for_no_other(make_world: MakeWorld, names: tuple[str, ...]) -> None:
    text = f"""{ASKING}
[[agents.archivist.tool_rules]]
tool_name = "files"
rule_type = {{ MaxCalls = 2 }}
"""
    world = make_world(text, batch_tool(TIERS))
    proof = world.decide("files", batch(*names)).proof
    checked = world.gate.verify(proof, ProvenCall("archivist", "files", batch(*names)))
    assert checked.holds, checked.problems
    assert not world.gate.verify(proof, ProvenCall("archivist", "files", batch(*names, "write"))).holds


def test_batches_of_real_libraries_are_gated_element_by_element(corpora: Path) -> None:
    rows = json.loads((corpora / "library_schema_shapes.json").read_text("utf-8"))
    seen = 0
    for row in rows:
        if row["model"] != "arrayOfDU":
            continue
        seen += 1
        gate = gate_of(stranger("files", row["schema"]), only("read"))
        read, write = ({"operation": name, "path": "a", "content": "b"} for name in ("read", "write"))
        assert decide(gate, {"operations": [{"operation": "read", "path": "a"}]}).verdict is Verdict.ALLOW
        for mixed in ([read, write], [write], [write, read]):
            assert decide(gate, {"operations": mixed}).stage == "operation"
    assert seen >= 3


def test_paths_of_an_operation_are_judged_by_what_is_done_there_and_by_their_default() -> None:
    paths = (
        PathArgument("p", None, "high"),
        PathArgument("q", PathUse.WRITE, "declared"),
        PathArgument("r", PathUse.NONE, "declared"),
        PathArgument("s", PathUse.READ, "medium"),
        PathArgument("edits[].path", PathUse.DELETE, "high"),
    )
    schemas: dict[str, JsonValue] = {"p": {"default": "x"}, "q": {"default": 3}, "r": True, "edits": {"default": "y"}}
    for tier, unknown in ((SafetyTier.READ_ONLY, Action.READ), (SafetyTier.PRIVILEGED, Action.OVERWRITE)):
        facts = OperationFacts("", tier, paths=paths, schemas=schemas)
        assert path_plans(facts) == (
            PathPlan("p", ("p",), unknown, "x"),
            PathPlan("q", ("q",), Action.OVERWRITE),
            PathPlan("r", ("r",), None),
            PathPlan("edits[].path", ("edits", Step.ITEMS, "path"), Action.DELETE),
        )
