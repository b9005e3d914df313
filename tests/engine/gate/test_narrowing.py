"""The shown schema says what constraints ask for, as far as it can; the rest the stage rules enforces."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.plan import ToolShape
from gatewright.gate import Decision, Gate, SelfCheck, selfcheck
from gatewright.gate.breach import ConstraintViolation, violation_of
from gatewright.policy.document import Agent, Policy, ToolSettings
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, MaxCalls, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.schema import FORMATS
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry, operation
from gatewright.tools.tool import Tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, CounterTool, World


class Shelf(Tool):
    """Keeps books."""

    name = "shelf"
    description = "Keeps books."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    @operation
    async def borrow(self, title: str, days: int = 90) -> JsonValue:
        """Take a book.

        Args:
            title: Which book.
            days: For how long.
        """
        return {"title": title, "days": days}

    @operation
    async def renew(self, title: str, days: int) -> JsonValue:
        """Keep a book longer."""
        return {"title": title, "days": days}

    @operation
    async def burn(self, title: str, match: str = "") -> JsonValue:
        """Make room."""
        return {"title": title, "match": match}


SELECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "request": {
            "type": "object",
            "properties": {"operation": {"type": "string", "enum": ["get", "put"]}, "key": {"type": "string"}},
            "required": ["operation"],
        },
        "limit": {"type": "integer", "description": "How many."},
    },
    "required": ["request"],
}


BATCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ops": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"op": {"type": "string", "enum": ["get", "put", "drop"]}, "key": {"type": "string"}},
                "required": ["op"],
            },
        }
    },
    "required": ["ops"],
}


def stranger(schema: dict[str, Any], name: str = "remote") -> Tool:
    return DefinedTool(ToolDefinition(name, "Does things.", schema), origin="stranger")


def only(tool: str, *operations: str) -> ToolRule:
    return ToolRule(tool, AllowedOperations(frozenset(operations)))


def limit(tool: str, *operations: str, priority: int = 5, rule_id: str = "", **fields: Any) -> ToolRule:
    """``fields``: what each must satisfy."""
    return ToolRule(
        tool, ArgumentConstraints(fields), tuple(f"operation:{one}" for one in operations), priority, rule_id
    )


def gate_of(tool: Tool, *rules: ToolRule, extra: Verdict | None = None) -> Gate:
    registry = ToolRegistry()
    registry.register(tool)
    settings = {tool.name: ToolSettings(extra_arguments=extra)} if extra else {}
    return Gate(Policy(agents={"a": Agent("a", tool_rules=rules)}, tools=settings), registry)


def schema_of(gate: Gate, agent: str = "a") -> dict[str, Any]:
    return gate.view(agent).listings()[0].schema


def shape_of(gate: Gate, agent: str, tool: str) -> ToolShape:
    snapshot = gate.snapshot().agent(agent)
    assert snapshot is not None
    plan = snapshot.plan(tool)
    assert plan is not None
    assert plan.shape is not None
    return plan.shape


def words_of(value: object) -> set[str]:
    return set(re.findall(r"\w+", json.dumps(value)))


def stage_and_code(decision: Decision) -> tuple[str, str]:
    return decision.stage, decision.code


def test_shown_parameter_says_its_limit_and_keeps_its_description() -> None:
    gate = gate_of(Shelf(), limit("shelf", days={"maximum": 30, "description": "never for burn"}))

    assert schema_of(gate)["properties"]["days"] == {"type": "integer", "description": "For how long.", "maximum": 30}


def test_limit_of_some_operations_leaves_the_others_as_they_are() -> None:
    gate = gate_of(Shelf(), limit("shelf", "renew", days={"maximum": 30}))

    assert gate.decide("a", "shelf", {"op": "borrow", "title": "t", "days": 60}).verdict is not Verdict.DENY
    decision = gate.decide("a", "shelf", {"op": "renew", "title": "t", "days": 60})
    assert stage_and_code(decision) == ("schema", "argument-constraint")


def test_limit_of_every_shown_operation_is_said_without_a_condition() -> None:
    gate = gate_of(Shelf(), only("shelf", "renew"), limit("shelf", "renew", "burn", days={"maximum": 30}))

    assert schema_of(gate)["properties"]["days"]["maximum"] == 30
    assert "allOf" not in schema_of(gate)


def test_default_that_breaks_a_limit_makes_the_parameter_required_for_its_operation_only() -> None:
    gate = gate_of(Shelf(), limit("shelf", days={"maximum": 30}))

    assert stage_and_code(gate.decide("a", "shelf", {"op": "borrow", "title": "t"})) == (
        "schema",
        "argument-constraint",
    )
    assert gate.decide("a", "shelf", {"op": "borrow", "title": "t", "days": 30}).verdict is not Verdict.DENY
    assert gate.decide("a", "shelf", {"op": "burn", "title": "t"}).verdict is not Verdict.DENY


def required(tool: str, *names: str, operations: tuple[str, ...] = (), **fields: Any) -> ToolRule:
    """``names``: what a call must give; ``fields``: what each must satisfy."""
    conditions = tuple(f"operation:{one}" for one in operations)
    return ToolRule(tool, ArgumentConstraints(fields, names), conditions, rule_id="asks")


def shelf_of_a_stranger() -> Tool:
    """Operations of which two take `note` and one `until`, neither required nor with a default."""
    schema: dict[str, Any] = {
        "type": "object",
        "oneOf": [
            {
                "properties": {"op": {"const": "lend"}, "title": {"type": "string"}, "note": {"type": "string"}},
                "required": ["op", "title"],
            },
            {
                "properties": {
                    "op": {"const": "keep"},
                    "note": {"type": "string"},
                    "until": {"type": "integer"},
                    "days": {"type": "integer", "default": 3},
                },
                "required": ["op"],
            },
            {"properties": {"op": {"const": "count"}}, "required": ["op"]},
        ],
    }
    return stranger(schema, "shelf")


LEND, KEEP, COUNT = {"op": "lend", "title": "t"}, {"op": "keep"}, {"op": "count"}


def test_argument_that_a_rule_asks_for_is_asked_of_the_operations_that_take_it_only() -> None:
    gate = gate_of(shelf_of_a_stranger(), required("shelf", "note"))

    for call in (LEND, KEEP):
        decision = gate.decide("a", "shelf", call)
        assert stage_and_code(decision) == ("schema", "argument-constraint")
        assert decision.rule is not None
        assert decision.rule.rule_id == "asks"
        assert decision.model_message == "Tool execution failed: the arguments are limited:\n/note: must be given"
        assert violation_of(decision) == ConstraintViolation("shelf", "note", ("/note: must be given",))
        assert gate.decide("a", "shelf", {**call, "note": "n"}).verdict is not Verdict.DENY
    assert gate.decide("a", "shelf", COUNT).verdict is not Verdict.DENY
    assert selfcheck(gate) == SelfCheck(3)


def test_argument_that_all_shown_operations_take_is_required_by_the_shown_schema_without_a_condition() -> None:
    gate = gate_of(shelf_of_a_stranger(), only("shelf", "lend", "keep"), required("shelf", "note"))

    assert "note" in schema_of(gate)["required"]
    assert "allOf" not in schema_of(gate)
    assert "count" not in json.dumps(schema_of(gate))


def test_argument_asked_of_one_operation_stays_optional_for_the_others() -> None:
    gate = gate_of(shelf_of_a_stranger(), required("shelf", "note", operations=("keep",)))

    assert stage_and_code(gate.decide("a", "shelf", KEEP)) == ("schema", "argument-constraint")
    assert gate.decide("a", "shelf", LEND).verdict is not Verdict.DENY
    assert selfcheck(gate) == SelfCheck(3)


def test_default_of_an_argument_counts_as_given() -> None:
    gate = gate_of(shelf_of_a_stranger(), required("shelf", "days", "until"))

    assert gate.decide("a", "shelf", {**KEEP, "until": 1}).verdict is not Verdict.DENY
    assert stage_and_code(gate.decide("a", "shelf", {**KEEP, "days": 1})) == ("schema", "argument-constraint")


def test_argument_that_must_be_given_and_what_it_may_be_hold_together() -> None:
    gate = gate_of(shelf_of_a_stranger(), required("shelf", "until", until={"maximum": 9}))

    assert gate.decide("a", "shelf", {**KEEP, "until": 9}).verdict is not Verdict.DENY
    told = [gate.decide("a", "shelf", call).reason for call in (KEEP, {**KEEP, "until": 10})]
    assert told == ["/until: must be given", "/until: must be at most 9"]
    assert selfcheck(gate) == SelfCheck(3)


def test_rule_on_every_tool_asks_only_tools_that_take_the_argument() -> None:
    everywhere = required("*", "note")
    taking, other = shelf_of_a_stranger(), stranger({"type": "object", "properties": {}}, "idle")

    assert gate_of(taking, everywhere).decide("a", "shelf", KEEP).verdict is Verdict.DENY
    assert gate_of(other, everywhere).decide("a", "idle", {}).verdict is not Verdict.DENY
    assert gate_of(other, required("idle", "note")).decide("a", "idle", {}).verdict is Verdict.DENY
    assert gate_of(other, required("idle", "note")).decide("a", "idle", {"note": 1}).verdict is not Verdict.DENY


def test_asked_argument_that_the_schema_cannot_say_is_denied_at_the_stage_rules_and_is_a_lint() -> None:
    gate = gate_of(stranger(SELECT), required("remote", "limit", operations=("put",)))
    put: dict[str, JsonValue] = {"request": {"operation": "put"}}
    get: dict[str, JsonValue] = {"request": {"operation": "get"}}

    decision = gate.decide("a", "remote", put)
    assert stage_and_code(decision) == ("rules", "argument-constraint")
    assert decision.model_message is not None
    assert "/limit: must be given" in decision.model_message
    assert gate.decide("a", "remote", get).verdict is not Verdict.DENY
    assert [lint.code for lint in gate.view("a").lints("mcp")["remote"]] == ["constraint-not-shown"]
    assert selfcheck(gate) == SelfCheck(2)


def test_self_check_finds_a_shown_schema_that_does_not_ask_for_what_a_rule_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unlimited(shape: ToolShape, *_: object, **__: object) -> ToolShape:
        return shape

    monkeypatch.setattr(ToolShape, "with_limits", unlimited)
    result = selfcheck(gate_of(shelf_of_a_stranger(), required("shelf", "until")))

    assert [(row.operation, row.what) for row in result.differences] == [
        ("keep", "a call without `until`, which a rule requires, passes")
    ]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_call_of_every_format_that_lacks_what_a_rule_asks_for_is_denied(form: str) -> None:
    tool = stranger({"type": "object", "properties": {"note": {"type": "string"}, "page": {"type": "integer"}}})
    view = (gate := gate_of(tool, required("remote", "note"))).view("a")

    assert '"required": ["note"' in json.dumps(view.tools(form))
    name, arguments = view.restore(form, "remote", {"page": 1})
    assert gate.decide("a", name, arguments).verdict is Verdict.DENY


def test_parameter_that_only_a_hidden_operation_takes_is_not_hinted_at() -> None:
    gate = gate_of(Shelf(), only("shelf", "borrow", "renew"), limit("shelf", match={"const": "long"}))

    assert "match" not in json.dumps(schema_of(gate))
    assert "burn" not in json.dumps(gate.view("a").tools("mcp"))


def test_words_of_a_constraint_stay_with_the_operator() -> None:
    told = {"description": "not for burn", "title": "burn", "anyOf": [{"maximum": 3, "$comment": "burn"}]}
    gate = gate_of(Shelf(), only("shelf", "borrow", "renew"), limit("shelf", days=told))

    assert "burn" not in json.dumps(schema_of(gate))
    assert gate.decide("a", "shelf", {"op": "renew", "title": "t", "days": 4}).stage == "schema"


def test_limit_on_the_operation_field_hides_what_it_refuses() -> None:
    gate = gate_of(CounterTool(), limit("counter", op={"const": "up"}, rule_id="up only"))
    decision = gate.decide("a", "counter", {"op": "down"})

    assert schema_of(gate)["properties"]["op"]["enum"] == ["up"]
    assert stage_and_code(decision) == ("operation", "argument-constraint")
    assert decision.rule is not None
    assert decision.rule.address == ("agents", "a", "tool_rules", 0)
    assert decision.model_message == "Tool execution failed: `op` must be one of `up`"
    assert gate.decide("a", "counter", {"op": "up"}).verdict is not Verdict.DENY


def test_limit_on_the_operation_field_that_leaves_nothing_hides_the_tool() -> None:
    gate = gate_of(CounterTool(), limit("counter", op={"const": "sideways"}))

    assert gate.view("a").listings() == ()
    assert stage_and_code(gate.decide("a", "counter", {"op": "up"})) == ("lookup", "argument-constraint")


def test_limit_on_the_operation_field_of_some_operations_hides_those_only() -> None:
    gate = gate_of(CounterTool(), limit("counter", "down", op={"const": "sideways"}))

    assert schema_of(gate)["properties"]["op"]["enum"] == ["up"]


def test_limit_on_the_operation_field_names_no_operation_that_is_hidden() -> None:
    gate = gate_of(Shelf(), only("shelf", "borrow", "renew"), limit("shelf", op={"pattern": "^(borrow|burn)$"}))
    decision = gate.decide("a", "shelf", {"op": "renew", "title": "t", "days": 1})

    assert "burn" not in words_of(gate.view("a").tools("mcp"))
    assert decision.model_message == "Tool execution failed: `op` must be one of `borrow`"
    assert gate.decide("a", "shelf", {"op": "borrow", "title": "t"}).verdict is not Verdict.DENY


def test_limit_on_a_batch_is_shown() -> None:
    gate = gate_of(stranger(BATCH), limit("remote", ops={"maxItems": 1}))
    one: JsonValue = [{"op": "get"}]
    two: JsonValue = [{"op": "get"}, {"op": "put"}]

    assert schema_of(gate)["properties"]["ops"]["maxItems"] == 1
    assert gate.decide("a", "remote", {"ops": one}).verdict is not Verdict.DENY
    assert stage_and_code(gate.decide("a", "remote", {"ops": two})) == ("schema", "argument-constraint")


def test_limit_on_the_elements_of_a_batch_hides_what_it_refuses() -> None:
    bound: dict[str, Any] = {"items": {"properties": {"op": {"enum": ["get", "drop"]}, "key": {"pattern": "^a"}}}}
    gate = gate_of(stranger(BATCH), only("remote", "get", "put"), limit("remote", ops=bound))
    element = schema_of(gate)["properties"]["ops"]["items"]

    assert element["properties"]["key"]["pattern"] == "^a"
    assert not {"put", "drop"} & words_of(gate.view("a").tools("mcp"))
    assert stage_and_code(gate.decide("a", "remote", {"ops": [{"op": "put"}]})) == ("operation", "argument-constraint")
    assert gate.decide("a", "remote", {"ops": [{"op": "get", "key": "b"}]}).stage == "schema"
    assert gate.decide("a", "remote", {"ops": [{"op": "get", "key": "a"}]}).verdict is not Verdict.DENY


def test_limit_on_the_object_that_holds_the_operation_is_shown() -> None:
    gate = gate_of(stranger(SELECT), limit("remote", request={"properties": {"key": {"pattern": "^x"}}}))
    refused = gate.decide("a", "remote", {"request": {"operation": "get", "key": "a"}})

    assert schema_of(gate)["properties"]["request"]["properties"]["key"]["pattern"] == "^x"
    assert stage_and_code(refused) == ("schema", "argument-constraint")
    assert gate.decide("a", "remote", {"request": {"operation": "put", "key": "x"}}).verdict is not Verdict.DENY


@pytest.mark.parametrize(
    "bound",
    [
        {"not": {"properties": {"operation": {"const": "put"}}, "required": ["operation"]}, "maxProperties": 2},
        {"if": {"properties": {"operation": {"const": "put"}}}, "then": {"maxProperties": 1}},
        {"anyOf": [{"properties": {"operation": {"const": "put"}}}, {"properties": {"operation": {"const": "get"}}}]},
        {"enum": [{"operation": "put"}, {"operation": "get"}, {"operation": "get", "key": "k"}]},
    ],
)
def test_limit_around_the_operation_is_shown_without_the_hidden_one(bound: dict[str, Any]) -> None:
    gate = gate_of(stranger(SELECT), only("remote", "get"), limit("remote", request=bound))
    decision = gate.decide("a", "remote", {"request": {"operation": "get", "key": 3}})

    assert "put" not in words_of(gate.view("a").tools("mcp"))
    assert "put" not in words_of(decision.model_message)
    assert selfcheck(gate).differences == ()
    assert gate.decide("a", "remote", {"request": {"operation": "get", "key": "k"}}).verdict is not Verdict.DENY


def test_words_for_a_broken_limit_name_no_hidden_operation() -> None:
    bound: dict[str, Any] = {"propertyNames": {"enum": ["operation", "key"]}, "properties": {"key": {"pattern": "put"}}}
    gate = gate_of(stranger(SELECT), only("remote", "get"), limit("remote", request=bound))
    decision = gate.decide("a", "remote", {"request": {"operation": "get", "key": "a"}})

    assert stage_and_code(decision) == ("rules", "argument-constraint")
    assert (
        decision.model_message
        == "Tool execution failed: the arguments are limited:\n/request/key: is not allowed; try another value"
    )
    assert "put" not in words_of(gate.view("a").tools("mcp"))
    lints = gate.view("a").lints("mcp")["remote"]
    assert [(lint.code, lint.pointer, lint.level) for lint in lints] == [
        ("constraint-not-shown", "/properties/request", "looser")
    ]


def test_limit_on_a_path_is_enforced_on_its_canonical_form_and_not_shown(make_world: MakeWorld) -> None:
    written = 'tool_name = "file"\nrule_type = { ArgumentConstraints = { path = { pattern = "^docs/a/" } } }'
    world: World = make_world(
        POLICY.replace("[[sources]]", f"[[agents.archivist.tool_rules]]\n{written}\n\n[[sources]]")
    )
    shown = next(row for row in world.gate.view("archivist").listings() if row.name == "file")
    decision = world.decide("file", {"op": "read", "path": "b/c.md"})

    assert "^docs/a/" not in json.dumps(shown.schema)
    assert stage_and_code(decision) == ("rules", "argument-constraint")


def test_limit_of_an_operation_that_stands_deeper_is_enforced_and_not_shown() -> None:
    gate = gate_of(stranger(SELECT), limit("remote", "put", limit={"maximum": 3}))
    put: dict[str, Any] = {"request": {"operation": "put"}, "limit": 4}

    assert schema_of(gate)["properties"] == SELECT["properties"]
    assert [lint.code for lint in gate.view("a").lints("mcp")["remote"]] == ["constraint-not-shown"]
    assert stage_and_code(gate.decide("a", "remote", put)) == ("rules", "argument-constraint")
    assert gate.decide("a", "remote", {"request": {"operation": "get"}, "limit": 4}).verdict is not Verdict.DENY


def test_limit_beside_an_operation_that_stands_deeper_is_shown_when_it_holds_for_all() -> None:
    gate = gate_of(stranger(SELECT), limit("remote", limit={"maximum": 3}, request={"maxProperties": 1}))
    shown = schema_of(gate)["properties"]

    assert shown["limit"] == {"type": "integer", "description": "How many.", "maximum": 3}
    assert shown["request"] == {**SELECT["properties"]["request"], "maxProperties": 1}
    decision = gate.decide("a", "remote", {"request": {"operation": "get", "key": "k"}})
    assert stage_and_code(decision) == ("schema", "argument-constraint")


def test_limit_in_another_draft_is_enforced_and_not_shown() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}]}
    gate = gate_of(
        stranger({"type": "object", "properties": {"pair": pair, "n": {"type": "integer"}}}),
        limit("remote", pair={"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"minimum": 3}]}),
        limit("remote", n={"maximum": 3}),
    )

    assert schema_of(gate)["properties"] == {"pair": pair, "n": {"type": "integer", "maximum": 3}}
    assert stage_and_code(gate.decide("a", "remote", {"pair": [1]})) == ("rules", "argument-constraint")
    assert gate.decide("a", "remote", {"pair": [3]}).verdict is not Verdict.DENY


def test_call_that_breaks_the_schema_too_is_told_every_error_of_it() -> None:
    gate = gate_of(Shelf(), limit("shelf", days={"maximum": 30}))
    decision = gate.decide("a", "shelf", {"op": "renew", "title": 3, "days": 31})

    assert stage_and_code(decision) == ("schema", "schema-mismatch")
    assert decision.model_message is not None
    assert "/title: must be a string" in decision.model_message
    assert "/days: must be at most 30" in decision.model_message


def test_several_broken_limits_are_told_together_under_the_most_important() -> None:
    gate = gate_of(
        Shelf(),
        limit("shelf", title={"minLength": 3}, rule_id="long"),
        limit("shelf", days={"maximum": 30}, priority=9, rule_id="month"),
    )
    decision = gate.decide("a", "shelf", {"op": "renew", "title": "t", "days": 31})

    assert decision.rule is not None
    assert decision.rule.rule_id == "month"
    assert decision.rule.address == ("agents", "a", "tool_rules", 1)
    assert violation_of(decision) == ConstraintViolation("shelf", "days", ("/days: must be at most 30",))
    assert decision.model_message == (
        "Tool execution failed: the arguments are limited:\n"
        "/days: must be at most 30\n/title: must have at least 3 characters"
    )


def test_limit_that_is_broken_deep_inside_a_value_is_told_with_its_pointer() -> None:
    schema = {"type": "object", "properties": {"a/b": {"type": "array", "items": {"type": "object"}}}}
    bound: dict[str, Any] = {"items": {"properties": {"size": {"maximum": 3}}}}
    gate = gate_of(stranger(schema), ToolRule("remote", ArgumentConstraints({"a/b": bound})))
    decision = gate.decide("a", "remote", {"a/b": [{}, {"size": 4}]})

    assert violation_of(decision) == ConstraintViolation("remote", "a/b", ("/a~1b/1/size: must be at most 3",))


def test_tool_that_limits_its_own_arguments_shows_it() -> None:
    class Careful(Shelf):
        name = "careful"
        tool_rules = (ToolRule("careful", ArgumentConstraints({"days": {"maximum": 7}}), rule_id="week"),)

    gate = gate_of(Careful())

    assert schema_of(gate)["properties"]["days"]["maximum"] == 7
    assert gate.decide("a", "careful", {"op": "renew", "title": "t", "days": 8}).stage == "schema"


def shared_gate() -> Gate:
    registry = ToolRegistry()
    registry.register(Shelf())
    first, second = limit("shelf", days={"maximum": 30}), limit("shelf", title={"minLength": 3})
    agents = {
        "one": Agent("one", tool_rules=(first, second, ToolRule("shelf", MaxCalls(9)))),
        "two": Agent("two", tool_rules=(second, first)),
        "three": Agent("three", tool_rules=(second,)),
        "free": Agent("free"),
    }
    return Gate(Policy(agents=agents), registry)


def test_agents_with_equal_limits_share_one_narrowed_schema() -> None:
    gate = shared_gate()
    shapes = {agent: shape_of(gate, agent, "shelf") for agent in gate.policy.agents}

    assert shapes["one"] is shapes["two"]
    assert len({id(shape) for shape in shapes.values()}) == 3
    assert shapes["one"].whole is shapes["three"].whole is shapes["free"]
    assert shapes["free"].narrowed == frozenset()


def test_edit_of_one_agents_limits_compiles_no_schema_of_another_anew() -> None:
    gate = shared_gate()
    before = {agent: shape_of(gate, agent, "shelf") for agent in gate.policy.agents}
    gate.reload(gate.policy.with_agent(Agent("two", tool_rules=(limit("shelf", days={"maximum": 9}),))))
    after = {agent: shape_of(gate, agent, "shelf") for agent in gate.policy.agents}

    assert [agent for agent in after if after[agent] is not before[agent]] == ["two"]
    assert after["two"].whole is before["two"].whole
    assert schema_of(gate, "two")["properties"]["days"]["maximum"] == 9


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_a_narrowed_schema_and_calls_come_back(form: str) -> None:
    rules = (limit("shelf", days={"maximum": 30}), limit("shelf", "renew", title={"enum": ["Ulysses", "Emma"]}))
    view = gate_of(Shelf(), *rules).view("a")
    text = json.dumps(view.tools(form))
    name, arguments = view.restore(form, "shelf", json.dumps({"op": "renew", "title": "Emma", "days": 3}))

    assert ("Emma" in text) == (form != "gemini")
    assert name == "shelf"
    restored = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert restored == {"op": "renew", "title": "Emma", "days": 3}
    assert all(lint.level != "refused" for lints in view.lints(form).values() for lint in lints)


def test_default_of_null_is_checked_like_any_other() -> None:
    nobody = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None}
    guests: dict[str, Any] = {"type": "object", "properties": {"guests": nobody, "cc": nobody}}
    gate = gate_of(stranger(guests), limit("remote", guests={"type": "array", "minItems": 1}, cc=False))

    assert schema_of(gate)["required"] == ["guests"]
    assert stage_and_code(gate.decide("a", "remote", {})) == ("schema", "argument-constraint")
    assert stage_and_code(gate.decide("a", "remote", {"guests": None})) == ("schema", "argument-constraint")
    assert gate.decide("a", "remote", {"guests": ["x"], "cc": ["y"]}).verdict is Verdict.DENY
    assert gate.decide("a", "remote", {"guests": ["x"]}).verdict is not Verdict.DENY


MAIL: dict[str, Any] = {"type": "object", "properties": {"to": {"type": "string"}, "cc": {"type": "string"}}}
PINNED = limit("remote", cc=False)


@pytest.mark.parametrize("extra", [None, Verdict.DENY])
def test_a_constrained_tool_takes_no_argument_that_its_schema_does_not_name(extra: Verdict | None) -> None:
    gate = gate_of(stranger(MAIL), PINNED, extra=extra)

    assert schema_of(gate)["additionalProperties"] is False
    assert stage_and_code(gate.decide("a", "remote", {"to": "x", "CC": "y"})) == ("schema", "schema-mismatch")
    assert gate.decide("a", "remote", {"to": "x"}).verdict is not Verdict.DENY
    assert not gate.view("a").lints("mcp")
    assert selfcheck(gate).differences == ()


def test_unknown_arguments_may_be_left_open_or_closed_without_a_constraint() -> None:
    left_open = gate_of(stranger(MAIL), PINNED, extra=Verdict.ALLOW)
    closed = gate_of(stranger(MAIL), extra=Verdict.DENY)

    assert "additionalProperties" not in schema_of(left_open)
    assert left_open.decide("a", "remote", {"to": "x", "CC": "y"}).verdict is not Verdict.DENY
    assert not left_open.view("a").lints("mcp")
    assert schema_of(closed) == {**MAIL, "additionalProperties": False}
    assert stage_and_code(closed.decide("a", "remote", {"CC": "y"})) == ("schema", "schema-mismatch")
    assert schema_of(gate_of(stranger(MAIL))) == MAIL


def test_an_edit_of_the_setting_is_shown_at_once() -> None:
    gate = gate_of(stranger(MAIL))
    gate.reload(replace(gate.policy, tools={"remote": ToolSettings(extra_arguments=Verdict.DENY)}))

    assert schema_of(gate)["additionalProperties"] is False


@pytest.mark.parametrize("said", [True, {}, {"type": "string"}])
@pytest.mark.parametrize("keyword", ["additionalProperties", "unevaluatedProperties"])
def test_what_a_schema_opens_itself_stays_open_and_a_lint_says_so(keyword: str, said: Any) -> None:
    gate = gate_of(stranger({**MAIL, keyword: said}), PINNED)

    assert schema_of(gate)[keyword] == said
    assert gate.decide("a", "remote", {"CC": "y"}).verdict is not Verdict.DENY
    assert [lint.code for lint in gate.view("a").lints("mcp")["remote"]] == ["arguments-open"]


DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DRAFT_7, **MAIL, "unevaluatedProperties": False},
        {
            "$schema": DRAFT_7,
            "$ref": "#/definitions/mail",
            "definitions": {"mail": MAIL},
            "additionalProperties": False,
        },
    ],
    ids=["a keyword that the draft does not know", "beside a reference"],
)
def test_what_an_old_draft_does_not_read_closes_nothing_by_itself(schema: dict[str, Any]) -> None:
    gate = gate_of(stranger(schema), PINNED)

    assert stage_and_code(gate.decide("a", "remote", {"to": "x", "CC": "y"})) == ("schema", "schema-mismatch")
    assert selfcheck(gate).differences == ()


LOOKS_CLOSED: list[dict[str, Any]] = [
    {"anyOf": [{"additionalProperties": {}}, {"required": ["to"]}]},
    {"patternProperties": {"": {}}},
]


@pytest.mark.parametrize("part", LOOKS_CLOSED, ids=["an open alternative", "a pattern of any name"])
def test_a_schema_that_only_looks_closed_stays_open_and_a_lint_says_so(part: dict[str, Any]) -> None:
    gate = gate_of(stranger({**MAIL, **part, "unevaluatedProperties": False}), PINNED)

    assert [lint.code for lint in gate.view("a").lints("mcp")["remote"]] == ["arguments-open"]
    assert selfcheck(gate).differences == ()


TEXT: dict[str, Any] = {"type": "string"}
BY_ID: dict[str, Any] = {"type": "object", "properties": {"id": TEXT}, "required": ["id"]}
BY_NAME: dict[str, Any] = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
NAMED: dict[str, Any] = {"to": TEXT, "cc": TEXT}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": NAMED, "anyOf": [BY_ID, BY_NAME]},
        {"type": "object", "properties": NAMED, "oneOf": [BY_ID, BY_NAME]},
        {"type": "object", "properties": NAMED, "allOf": [{"$ref": "#/$defs/id"}], "$defs": {"id": BY_ID}},
        {"$ref": "#/definitions/all", "definitions": {"all": {**BY_ID, "properties": {**NAMED, "id": TEXT}}}},
        {"type": "object", "properties": NAMED, "if": {"required": ["cc"]}, "else": BY_ID},
        {"type": "object", "properties": NAMED, "allOf": [{"patternProperties": {"^id$": TEXT}}]},
        {"type": "object", "properties": NAMED, "required": ["id"]},
        {"anyOf": [{**BY_ID, "properties": {**NAMED, "id": TEXT}, "additionalProperties": False}]},
    ],
)
def test_every_way_to_name_an_argument_counts_when_a_schema_is_closed(schema: dict[str, Any]) -> None:
    gate = gate_of(stranger(schema), PINNED)

    assert gate.decide("a", "remote", {"to": "x", "id": "1"}).verdict is not Verdict.DENY
    assert stage_and_code(gate.decide("a", "remote", {"to": "x", "id": "1", "CC": "y"}))[0] == "schema"
    assert not [one for one in gate.view("a").lints("mcp").get("remote", ()) if one.code == "arguments-open"]
    assert selfcheck(gate).differences == ()


@pytest.mark.parametrize(
    "part",
    [
        {"if": {"required": ["CC"]}, "then": {"required": ["to"]}},
        {"allOf": [{"if": {"anyOf": [{"required": ["CC"]}, {"required": ["to"]}]}, "then": {}}]},
        {"if": {"$ref": "#/$defs/copied"}, "then": {}, "$defs": {"copied": {"required": ["CC"]}}},
        {"if": {"additionalProperties": True}, "then": {}},
        {"if": {"additionalProperties": {"type": "string"}}, "unevaluatedProperties": False},
        {"if": {"patternProperties": {"": {}}}, "unevaluatedProperties": False},
    ],
)
def test_asking_whether_an_argument_was_given_does_not_name_it(part: dict[str, Any]) -> None:
    gate = gate_of(stranger({**MAIL, **part}), PINNED)

    assert stage_and_code(gate.decide("a", "remote", {"to": "x", "CC": "y"})) == ("schema", "schema-mismatch")
    assert gate.decide("a", "remote", {"to": "x"}).verdict is not Verdict.DENY
    assert selfcheck(gate).differences == ()


def test_what_an_if_asks_for_is_named_where_it_is_asked_for_elsewhere_too() -> None:
    schema = {
        **MAIL,
        "if": {"$ref": "#/$defs/id"},
        "anyOf": [{"$ref": "#/$defs/id"}, {}],
        "$defs": {"id": {"required": ["id"]}},
    }

    assert gate_of(stranger(schema), PINNED).decide("a", "remote", {"id": "1"}).verdict is not Verdict.DENY


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_a_closed_schema_with_a_union_and_calls_come_back(form: str) -> None:
    schema = {"type": "object", "properties": NAMED, "anyOf": [BY_ID, BY_NAME]}
    view = gate_of(stranger(schema), limit("remote", to={"enum": ["x"]})).view("a")
    name, arguments = view.restore(form, "remote", json.dumps({"to": "x", "id": "1"}))

    assert (name, arguments if isinstance(arguments, dict) else json.loads(arguments)) == (
        "remote",
        {"to": "x", "id": "1"},
    )
    assert all(lint.level != "refused" for lints in view.lints(form).values() for lint in lints)


def test_a_tool_that_names_no_argument_takes_those_that_are_constrained() -> None:
    gate = gate_of(stranger({"type": "object"}), limit("remote", to={"enum": ["x"]}))

    assert gate.decide("a", "remote", {"to": "x"}).verdict is not Verdict.DENY
    assert gate.decide("a", "remote", {"to": "y"}).verdict is Verdict.DENY
    assert stage_and_code(gate.decide("a", "remote", {"to": "x", "cc": "y"})) == ("schema", "schema-mismatch")
