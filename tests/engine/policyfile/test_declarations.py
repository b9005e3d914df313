"""Operations that a policy declares for a stranger's tool: read, held to its schema, used by the rest of the file."""

from time import process_time

import pytest

from gatewright.base.errors import Place, SchemaError, Severity
from gatewright.policy.document import ToolSettings
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import AllowedOperations
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile import KnownTools
from gatewright.tools.definition import ToolDefinition
from tests.engine.policyfile.catalog import BARE, FACTS, STRANGERS, known_with, load, policy_of
from tests.support.patience import in_time

HEAD = "gatewright = 1\n"
RULE = "[[agents.a.tool_rules]]\ntool_name = 'hub.run@1'\n"
DECLARED = "[tools.'hub.run@1']\noperation_field = 'action'\noperations = ['go', 'stop']\n"


def test_a_field_and_its_operations_are_read() -> None:
    policy = policy_of(HEAD + DECLARED + "operation_tiers = { go = 'read_only' }\n")

    assert policy.tools["hub.run@1"] == ToolSettings(
        operation_field="action", operations=("go", "stop"), operation_tiers={"go": SafetyTier.READ_ONLY}
    )


@pytest.mark.parametrize(
    ("body", "field", "operations"),
    [
        ("operation_field = 'mode'", "mode", None),
        ("operations = ['go']", None, ("go",)),
        ("operation_field = ''", "", None),
    ],
)
def test_either_key_may_stand_alone(body: str, field: str | None, operations: tuple[str, ...] | None) -> None:
    policy = policy_of(f"{HEAD}[tools.'hub.run@1']\n{body}\n")

    assert policy.tools["hub.run@1"] == ToolSettings(operation_field=field, operations=operations)


USES = f"""{HEAD}
[defaults]
approvals = {{ "hub.run.go" = "ask" }}

[agents.a]
tools = ["hub.run@1", "block", "file"]
approvals = {{ "hub.run.stop" = "deny" }}
{RULE}rule_type = {{ AllowedOperations = ["go"] }}
{RULE}rule_type = {{ MaxCalls = 3 }}
conditions = ["operation:go"]
[[agents.a.tool_rules]]
tool_name = "block"
rule_type = "RequiresPrecedingTools"
conditions = ["hub.run.go"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
[[sources.required_tools]]
tool_name = "hub.run@1"
rule_type = {{ AllowedOperations = ["go", "stop"] }}

[[policy.rules]]
name = "no stop"
effect = "deny"
tools = ["hub.run@1"]
operations = ["stop"]
"""


def test_the_rest_of_the_file_is_held_to_the_tools_as_declared_wherever_it_stands() -> None:
    loaded = load(f"{USES}\n{DECLARED}operation_tiers = {{ stop = 'read_only' }}\n")

    assert not loaded.problems, "\n".join(map(str, loaded.problems))
    assert loaded.policy is not None
    assert loaded.policy.agents["a"].tool_rules[0].rule_type == AllowedOperations(frozenset({"go"}))


def test_without_the_declaration_every_such_use_is_an_error() -> None:
    codes = [(problem.code, problem.place.line if problem.place else 0) for problem in load(USES).problems]

    assert [code for code in codes if code[0] != "rule-without-effect"] == [
        ("unknown-operation", 4),
        ("unknown-operation", 8),
        ("operations-on-plain-tool", 11),
        ("operations-on-plain-tool", 15),
        ("unknown-operation", 19),
        ("operations-on-plain-tool", 27),
        ("unknown-operation", 33),
    ]


def test_an_operation_that_is_not_declared_is_unknown_with_the_word_that_was_meant() -> None:
    (problem,) = load(
        f"{HEAD}[agents.a]\ntools = ['hub.run@1']\n{RULE}rule_type = {{ AllowedOperations = ['stpo'] }}\n{DECLARED}"
    ).problems

    assert (problem.code, problem.near_miss) == ("unknown-operation", "stop")


def test_a_tool_declared_to_have_no_operations_takes_no_rule_about_them() -> None:
    rule = "[[agents.a.tool_rules]]\ntool_name = 'box'\nrule_type = { AllowedOperations = ['get'] }\n"
    text = f"{HEAD}[agents.a]\ntools = ['box']\n{rule}"

    assert policy_of(text)
    assert [problem.code for problem in load(f"{text}[tools.box]\noperation_field = ''\n").problems] == [
        "operations-on-plain-tool"
    ]


FAULTS = [
    ("[tools.'hub.run@1']\noperation_field = 3\n", "wrong-type", 3, 19, None),
    ("[tools.'hub.run@1']\noperation_field = ' '\n", "bad-value", 3, 19, None),
    ("[tools.'hub.run@1']\noperation_field = 'actoin'\n", "operations-unusable", 3, 19, None),
    ("[tools.'hub.run@1']\noperation_field = 'action'\n", "operations-unusable", 3, 19, None),
    ("[tools.'hub.run@1']\noperation_field = 'nope'\noperations = ['a']\n", "operations-unusable", 3, 19, None),
    ("[tools.'hub.run@1']\noperation_field = 'mode'\noperations = ['deep', 'dry']\n", "unknown-operation", 4, 15, None),
    ("[tools.'hub.run@1']\noperations = 'go'\n", "wrong-type", 3, 14, None),
    ("[tools.'hub.run@1']\noperations = ['go', 3]\n", "wrong-type", 3, 21, None),
    ("[tools.'hub.run@1']\noperations = []\n", "bad-value", 3, 14, None),
    ("[tools.'hub.run@1']\noperations = ['go', '']\n", "bad-value", 3, 21, None),
    ("[tools.'hub.run@1']\noperations = ['go ']\n", "bad-value", 3, 15, None),
    ("[tools.'hub.run@1']\noperations = ['go', 'stop', 'go']\n", "duplicate", 3, 29, None),
    ("[tools.'hub.run@1']\noperation_field = ''\noperations = ['go']\n", "bad-value", 4, 1, None),
    ("[tools.'hub.run@1']\noperation_tiers = { go = 'read_only' }\n", "operations-on-plain-tool", 3, 1, None),
    (f"{DECLARED}operation_tiers = {{ stpo = 'read_only' }}\n", "unknown-operation", 5, 21, "stop"),
    ("[tools.box]\noperations = ['get', 'put', 'drop', 'drpo']\n", "unknown-operation", 3, 37, "drop"),
    ("[tools.box]\noperation_fields = 'op'\n", "unknown-key", 3, 1, "operation_field"),
    ("[tools.bxo]\noperations = ['get']\n", "unknown-tool", 2, 1, "box"),
    ("[tools.'hub.run@7']\noperations = ['get']\n", "unknown-tool", 2, 1, "hub.run"),
    ("[tools.'hub.run@01']\nscrub = false\n", "bad-value", 2, 1, None),
    ("[tools.file]\noperations = ['read']\n", "operations-declared", 3, 1, None),
    ("[tools.file]\noperation_field = ''\n", "operations-declared", 3, 1, None),
    ("[tools.memo]\noperation_field = 'op'\n", "operations-declared", 3, 1, None),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), FAULTS)
def test_a_fault_of_a_declaration_is_named_with_its_place(
    body: str, code: str, line: int, column: int, near: str | None
) -> None:
    loaded = load(HEAD + body)

    (problem,) = loaded.problems
    assert loaded.policy is None
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", line, column), near)


def test_the_words_of_whoever_reads_the_schema_are_the_problem() -> None:
    (problem,) = load(f"{HEAD}[tools.'hub.run@1']\noperation_field = 'nope'\noperations = ['a']\n").problems

    assert "the schema has no field `nope`" in problem.message
    assert "`hub.run`" in problem.message


def test_a_bad_declaration_is_not_reported_again_at_every_use() -> None:
    bad = "[tools.'hub.run@1']\noperation_field = 'nope'\noperations = ['go', 'stop']\n"

    assert [problem.code for problem in load(f"{USES}\n{bad}").problems] == ["operations-unusable"]


def test_a_bare_name_declares_every_major_that_has_no_table_of_its_own() -> None:
    wrong = f"{HEAD}[tools.'hub.run']\noperation_field = 'mode'\n"
    right = f"{wrong}[tools.'hub.run@2']\nscrub = false\n"

    (problem,) = load(wrong).problems
    assert problem.code == "operations-unusable"
    assert policy_of(right).tools["hub.run"].operation_field == "mode"


def test_the_major_that_is_declared_is_the_only_one_that_changes() -> None:
    rule = "[agents.a]\ntools = ['hub.run@2']\n[[agents.a.tool_rules]]\ntool_name = 'hub.run@2'\n"
    (problem,) = load(f"{HEAD}{DECLARED}{rule}rule_type = {{ AllowedOperations = ['go'] }}\n").problems

    assert problem.code == "operations-on-plain-tool"


def test_a_list_that_takes_away_what_the_schema_lists_is_a_warning() -> None:
    loaded = load(f"{HEAD}[tools.box]\noperation_field = 'op'\noperations = ['get', 'put']\n")

    (problem,) = loaded.problems
    assert loaded.policy is not None
    assert (problem.severity, problem.code, str(problem.place)) == (
        Severity.WARNING,
        "operations-narrowed",
        "policy.toml:4:14",
    )
    assert "`drop`" in problem.message


@pytest.mark.parametrize("body", [DECLARED, "[tools.box]\noperations = ['drop', 'put', 'get']\n"])
def test_a_list_that_takes_nothing_away_is_no_warning(body: str) -> None:
    assert not load(HEAD + body).problems


@pytest.mark.parametrize("line", ["operation_field = 'action'", "operations = ['go']"])
def test_where_nobody_reads_schemas_a_declaration_is_not_supported(line: str) -> None:
    known = KnownTools((*BARE.facts, *(tool.facts() for tool in STRANGERS)))
    (problem,) = load(f"{HEAD}[tools.'hub.run@1']\n{line}\n", known=known).problems

    assert (problem.code, str(problem.place)) == ("not-supported", "policy.toml:3:1")


@pytest.mark.parametrize("tool", ["file", "box"])
def test_where_nobody_reads_schemas_a_tool_with_operations_keeps_them(tool: str) -> None:
    known = KnownTools((*BARE.facts, *(tool.facts() for tool in STRANGERS)))
    (problem,) = load(f"{HEAD}[tools.{tool}]\noperations = ['x']\n", known=known).problems

    assert problem.code == "operations-declared"


def test_the_facts_that_are_declared_are_those_that_were_registered() -> None:
    asked: list[tuple[str, int, str | None, tuple[str, ...] | None]] = []

    def declare(facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
        asked.append((facts.name, facts.major, field, operations))
        raise SchemaError("it says nothing")

    load(HEAD + DECLARED, known=KnownTools((*FACTS, STRANGERS[0].facts()), declare=declare))

    assert asked[0] == ("hub.run", 1, "action", ("go", "stop"))


def test_many_declarations_load_without_delay() -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"verb": {"type": "string"}}, "required": ["verb"]}
    tools = [type(STRANGERS[0])(ToolDefinition(f"t{n}", "", schema), origin="many") for n in range(300)]
    body = "".join(f"[tools.t{n}]\noperation_field = 'verb'\noperations = ['a', 'b']\n" for n in range(300))
    rules = "".join(
        f"[[agents.a.tool_rules]]\ntool_name = 't{n}'\nrule_type = {{ AllowedOperations = ['a'] }}\n"
        for n in range(300)
    )

    began = process_time()
    loaded = load(f"{HEAD}{body}[agents.a]\n{rules}", known=known_with(*tools))

    assert loaded.policy is not None
    assert in_time(process_time() - began, 2), "a few hundredths of a second, with room for a busy machine"
