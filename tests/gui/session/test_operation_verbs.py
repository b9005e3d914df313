import pytest

from gatewright.policy.document import Agent, Policy, ToolSettings
from gatewright.policy.edit import apply, inverse
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import AllowedOperations, MaxCalls, PolicyRule, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.schema import Schema, survey
from gatewright_gui.session.readings import DECLARE, Kind, reading_of
from gatewright_gui.session.verbs.operations import (
    AS_THE_SCHEMA_SAYS,
    NO_OPERATIONS,
    Declaration,
    consequences,
    declaration_of,
    declare_edit,
)

TIER = SafetyTier.PRIVILEGED
PLAIN = ToolFacts("calendar", 1, (OperationFacts("", TIER),), TIER, "office")
GATED = ToolFacts("calendar", 1, (OperationFacts("add", TIER), OperationFacts("purge", TIER)), TIER, "office")
POLICY = Policy(
    agents={
        "clerk": Agent(
            "clerk",
            tools=("calendar",),
            sources=(),
            approvals={"calendar.purge": Verdict.ASK},
            tool_rules=(
                ToolRule("calendar", AllowedOperations(frozenset({"add"}))),
                ToolRule("calendar", MaxCalls(3), conditions=("operation:purge",)),
                ToolRule("other", AllowedOperations(frozenset({"purge"}))),
            ),
        ),
        "guest": Agent("guest", tools=(), sources=()),
        "boss": Agent("boss", tools=("calendar",), sources=()),
    },
    rules=(PolicyRule("no purge", Verdict.DENY, tools=("calendar",), operations=("purge",)),),
)
FIELD = Declaration("command", ("add", "list"))


def test_declaration_is_one_edit_that_undo_takes_back() -> None:
    edit = declare_edit(POLICY, "calendar", 1, FIELD)
    after = apply(POLICY, edit)

    assert edit.name == "declare operations of `calendar`"
    assert after.tools == {"calendar": ToolSettings(operation_field="command", operations=("add", "list"))}
    assert declaration_of(after, "calendar", 1) == FIELD
    assert apply(after, inverse(edit)) == POLICY


def test_schema_says_again_takes_the_table_away_and_leaves_other_settings() -> None:
    declared = apply(POLICY, declare_edit(POLICY, "calendar", 1, FIELD))
    assert apply(declared, declare_edit(declared, "calendar", 1, AS_THE_SCHEMA_SAYS)).tools == {}

    kept = Policy(tools={"calendar@1": ToolSettings(timeout_s=3.0, operation_field="")})
    edit = declare_edit(kept, "calendar", 1, AS_THE_SCHEMA_SAYS)
    assert apply(kept, edit).tools == {"calendar@1": ToolSettings(timeout_s=3.0)}


def test_declaring_what_is_declared_is_no_edit() -> None:
    assert declare_edit(POLICY, "calendar", 1, AS_THE_SCHEMA_SAYS).is_empty
    after = apply(POLICY, declare_edit(POLICY, "calendar", 1, NO_OPERATIONS))
    assert declare_edit(after, "calendar", 1, NO_OPERATIONS).is_empty
    assert declaration_of(after, "calendar", 1) == NO_OPERATIONS


def test_consequences_name_every_place_that_would_lose_its_operations() -> None:
    said = consequences(POLICY, GATED, ("add", "list"))

    assert said == (
        "2 operations instead of 2",
        "no longer operations: purge",
        "new: list",
        "tool rule 2 of clerk names purge: change it first",
        "the approvals of clerk names purge: change it first",
        "policy rule no purge names purge: change it first",
        "boss: every operation is on; clerk: only what their own rules list",
    )


def test_consequences_of_no_change_and_of_no_operations() -> None:
    assert consequences(POLICY, GATED, ("add", "purge"))[0] == "2 operations, as now"
    assert consequences(POLICY, GATED, ())[0] == "one box takes the place of 2 operations"
    assert consequences(POLICY, PLAIN, ("add",))[0] == "1 operation instead of one box"


def field(name: str, schema: Schema) -> Schema:
    return {"type": "object", "properties": {name: schema}, "required": [name]}


@pytest.mark.parametrize(
    ("schema", "description", "kind", "mark"),
    [
        (field("action", {"type": "string", "enum": ["create_event", "delete_event"]}), "", "read", ""),
        (
            field("command", {"type": "string", "description": "One of: add_event, list_events."}),
            "",
            "free",
            "free text",
        ),
        (field("sql", {"type": "string"}), "Runs a statement", "open", "open-ended"),
        (field("text", {"type": "string"}), "", "plain", ""),
    ],
)
def test_reading_says_how_sure_it_is(schema: Schema, description: str, kind: Kind, mark: str) -> None:
    reading = reading_of(POLICY, PLAIN, survey(schema, description))

    assert (reading.kind, reading.mark) == (kind, mark)
    assert bool(reading.said) == (kind in {"free", "open"})
    assert (reading.act == DECLARE) == (kind != "read")


def test_declared_tool_says_where_it_is_declared() -> None:
    policy = Policy(tools={"calendar": ToolSettings(operation_field="command", operations=("add",))})
    free = survey(field("command", {"type": "string"}))

    assert reading_of(policy, GATED, free).said == ("it has its operations at `command` by [tools.calendar]",)
