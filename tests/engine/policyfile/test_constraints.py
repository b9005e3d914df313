"""Constraints that cannot mean what they say are errors with their place; those that can are not."""

from typing import Any

import pytest

from gatewright.base.errors import Place, Severity
from gatewright.policyfile import KnownTools, LoadedPolicy, parse_policy
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition

MAIL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "recipients": {"type": "array", "items": {"type": "string"}},
        "cc": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        "subject": {"type": "string", "maxLength": 100},
        "priority": {"type": "string", "enum": ["low", "normal", "high"]},
        "retries": {"type": "integer", "minimum": 0, "maximum": 5},
        "size": {"type": ["integer", "string"]},
        "urgent": {"type": "boolean"},
        "anything": {},
        "header": {
            "type": "object",
            "properties": {"key": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["key"],
            "additionalProperties": False,
        },
    },
    "required": ["recipients", "subject"],
}
BATCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ops": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"op": {"type": "string", "enum": ["get", "put"]}, "key": {"type": "string"}},
                "required": ["op"],
            },
        },
        "dry": {"type": "boolean"},
    },
    "required": ["ops"],
}
HEAD = """\
gatewright = 1
[agents.a]
tools = ["mail", "store"]
"""
RULE = '[[agents.a.tool_rules]]\ntool_name = "{tool}"\nrule_type = {{ ArgumentConstraints = {{ {said} }} }}\n'


def load(*rules: tuple[str, str]) -> LoadedPolicy:
    """Rules as (tool, what its constraints say)."""
    tools = [
        DefinedTool(ToolDefinition(name, "", schema), origin="there")
        for name, schema in (("mail", MAIL), ("store", BATCH))
    ]
    text = HEAD + "".join(RULE.format(tool=tool, said=said) for tool, said in rules)
    return parse_policy(text, file="policy.toml", known=KnownTools(tuple(tool.facts() for tool in tools)))


def place_of(said: str, at: str) -> Place:
    """Where ``at`` stands in the one rule that says ``said``."""
    line = RULE.format(tool="", said=said).splitlines()[2]
    return Place("policy.toml", 6, line.index(at, line.index(said)) + 1)


WRONG: list[tuple[str, str, str, str]] = [
    ("recipients = { pattern = '^x$' }", "keyword-not-applicable", "pattern", "`items = { pattern = ... }`"),
    ("cc = { pattern = '^x$' }", "keyword-not-applicable", "pattern", "an array or null"),
    ("subject = { minimum = 3 }", "keyword-not-applicable", "minimum", "a string"),
    ("retries = { minLength = 3 }", "keyword-not-applicable", "minLength", "a number"),
    ("urgent = { maxItems = 1 }", "keyword-not-applicable", "maxItems", "true or false"),
    ("recipients = { items = { minimum = 3 } }", "keyword-not-applicable", "minimum", "a string"),
    ("header = { properties = { times = { pattern = 'x' } } }", "keyword-not-applicable", "pattern", "a number"),
    ("header = { properties = { kay = { pattern = 'x' } } }", "unknown-field", "kay", "`kay`"),
    ("recipient = { maxItems = 0 }", "unknown-field", "recipient", "`mail` lacks"),
    ("recipients = { enum = ['a@b.example'] }", "no-value-left", "{ enum", "asks for a string"),
    ("recipients = { type = 'string' }", "no-value-left", "{ type", "asks for a string"),
    ("recipients = { items = { const = 3 } }", "no-value-left", "{ const", "asks for a number"),
    ("priority = { enum = ['urgent', 'lowest'] }", "no-value-left", "{ enum", "none fits both"),
    ("priority = { const = 'urgent' }", "no-value-left", "{ const", "none fits both"),
    ("retries = { minimum = 6 }", "no-value-left", "{ minimum", "none fits both"),
    ("subject = { minLength = 101 }", "no-value-left", "{ minLength", "none fits both"),
    ("subject = false", "no-value-left", "false", ""),
    ("header = { required = ['kay'] }", "unknown-field", "'kay'", "`kay`"),
    ("size = { type = 'boolean' }", "no-value-left", "{ type", "asks for true or false"),
    ("subject = { anyOf = [{ const = 1 }, { type = 'boolean' }] }", "no-value-left", "{ anyOf", ""),
    ("required = ['subject', 'prioriti']", "unknown-field", "'prioriti'", "`mail` lacks"),
    ("recipients = { in_folder = 'x/' }", "keyword-not-applicable", "in_folder", "`items = { in_folder = ... }`"),
    ("subject = { in_folder = '../x' }", "bad-value", "'../x'", "none of them `..`"),
    ("subject = { in_folder = 'x/', pattern = '^y' }", "bad-value", "'x/'", "`allOf`"),
    ("urgent = false, required = ['urgent']", "no-value-left", "'urgent'", "must be given here and is `false`"),
]


@pytest.mark.parametrize(("said", "code", "at", "words"), WRONG)
def test_constraint_that_cannot_mean_what_it_says_is_an_error(said: str, code: str, at: str, words: str) -> None:
    loaded = load(("mail", said))

    (problem,) = loaded.problems
    assert loaded.policy is None
    assert (problem.severity, problem.code) == (Severity.ERROR, code)
    assert problem.place == place_of(said, at)
    assert words in problem.message


@pytest.mark.parametrize(
    "said",
    [
        "recipients = { items = { enum = ['a@b.example'] }, minItems = 1 }, cc = false",
        "cc = { maxItems = 0 }",
        "cc = false",
        "cc = { type = 'null' }",
        "subject = { pattern = '^Re: ' }",
        "priority = { enum = ['low', 'normal'] }",
        "subject = { allOf = [{ in_folder = 'x' }, { pattern = 'y' }] }",
        "retries = { maximum = 3, multipleOf = 1 }",
        "size = { pattern = '^x', minimum = 3 }",
        "size = { type = 'integer' }",
        "anything = { pattern = '^x', maxItems = 3 }",
        "header = { properties = { key = { pattern = '^x' }, times = false } }",
        "header = { maxProperties = 1, propertyNames = { pattern = '^k' } }",
        "recipients = { anyOf = [{ maxItems = 1 }, { items = { pattern = '@b.example$' } }] }, cc = false",
        "recipients = { not = { contains = { const = 'x' } } }, cc = { maxItems = 0 }",
        "subject = true",
        "required = ['priority', 'subject']",
        "priority = { enum = ['low'] }, required = ['priority']",
    ],
)
def test_constraint_that_says_something_is_no_problem(said: str) -> None:
    assert load(("mail", said)).problems == ()


def test_copies_left_open_beside_pinned_recipients_are_a_warning() -> None:
    said = "recipients = { maxItems = 1 }"

    (problem,) = load(("mail", said)).problems
    assert (problem.severity, problem.code) == (Severity.WARNING, "argument-unpinned")
    assert problem.place is not None
    assert problem.place.line == 6
    assert "calls of `mail` may give any `cc`" in problem.message
    assert load(("mail", said), ("mail", "cc = false")).problems == ()


@pytest.mark.parametrize(
    ("name", "named"), [("delete_file", ["`file_id`"]), ("remove-event", ["`file_id`"]), ("read_file", [])]
)
def test_an_identifier_left_open_beside_a_pin_of_a_deletion_is_a_warning(name: str, named: list[str]) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"file_id": {"type": "string"}, "mode": {}}}
    known = KnownTools((DefinedTool(ToolDefinition(name, "", schema), origin="there").facts(),))
    head = HEAD.replace('"mail", "store"', f'"{name}"')
    unpinned = head + RULE.format(tool=name, said="mode = { const = 'soft' }")
    pinned = head + RULE.format(tool=name, said="mode = { const = 'soft' }, file_id = { const = '1' }")
    problems = parse_policy(unpinned, file="policy.toml", known=known).problems

    assert [problem.code for problem in problems] == ["argument-unpinned" for _ in named]
    assert all(one in problem.message for one, problem in zip(named, problems, strict=True))
    assert parse_policy(pinned, file="policy.toml", known=known).problems == ()


def test_argument_that_one_rule_asks_for_and_another_forbids_is_an_error() -> None:
    problems = load(("mail", "required = ['urgent']"), ("mail", "urgent = false")).problems

    assert [(problem.code, problem.place) for problem in problems] == [
        ("no-value-left", place_of("required = ['urgent']", "'urgent'"))
    ]
    assert load(("mail", "required = ['urgent']"), ("mail", "anything = false")).problems == ()


def test_asking_for_an_argument_that_has_a_default_is_a_warning_since_the_default_counts_as_given() -> None:
    said = "required = ['subject', 'cc']"

    (problem,) = load(("mail", said)).problems

    assert (problem.severity, problem.code, problem.place) == (
        Severity.WARNING,
        "rule-without-effect",
        place_of(said, "'cc'"),
    )
    assert "has a default, which counts as given" in problem.message


PIN = ("mail", "subject = { maxLength = 9 }")
OPEN = '\n[tools.mail]\nextra_arguments = "{}"\n'


def opened(schema: dict[str, Any], *rules: tuple[str, str], setting: str = "", more: str = "") -> list[tuple[str, int]]:
    """The warnings and their lines for a tool `mail` with that schema; a setting stands below the rules."""
    known = KnownTools((DefinedTool(ToolDefinition("mail", "", schema), origin="there").facts(),))
    text = HEAD.replace(', "store"', "") + "".join(RULE.format(tool=tool, said=said) for tool, said in rules) + more
    text += OPEN.format(setting) if setting else ""
    problems = parse_policy(text, file="policy.toml", known=known).problems
    assert all(problem.severity is Severity.WARNING for problem in problems)
    return [(problem.code, problem.place.line if problem.place else 0) for problem in problems]


def test_a_setting_that_opens_a_constrained_tool_is_a_warning_at_the_setting() -> None:
    assert opened(MAIL, PIN, PIN, setting="allow") == [("arguments-open", 12)]
    assert opened(MAIL, setting="allow") == [], "nothing is constrained"
    assert opened({**MAIL, "additionalProperties": False}, PIN, setting="allow") == [], "its schema closes it anyway"
    assert opened(MAIL, PIN, setting="deny") == []


KEEP_OPEN: list[dict[str, Any]] = [
    {"additionalProperties": True},
    {"additionalProperties": {"type": "string"}},
    {"patternProperties": {"": {}}},
    {"anyOf": [{"additionalProperties": {}}, {}]},
]


@pytest.mark.parametrize("part", KEEP_OPEN)
def test_a_constrained_tool_that_its_schema_keeps_open_is_one_warning_at_its_first_rule(part: dict[str, Any]) -> None:
    other = '[agents.b]\ntools = ["mail"]\n' + RULE.format(tool="mail", said=PIN[1]).replace(".a.", ".b.")
    everywhere = ("*", PIN[1])

    assert opened({**MAIL, **part}, PIN, ("mail", "size = { maxLength = 9 }"), more=other) == [("arguments-open", 6)]
    assert opened({**MAIL, **part}, everywhere) == [("arguments-open", 6)]
    assert opened({**MAIL, **part}, ("*", "nobody = { maxLength = 9 }")) == []
    assert opened({**MAIL, **part}) == []


def test_a_setting_that_cannot_close_a_tool_is_a_warning_with_and_without_a_constraint() -> None:
    schema = {**MAIL, "additionalProperties": True}

    assert opened(schema, setting="deny") == [("arguments-open", 6)]
    assert opened(schema, PIN, setting="deny") == [("arguments-open", 9)]


def test_a_constrained_tool_that_its_agent_does_not_list_is_no_warning() -> None:
    schema = {**MAIL, "additionalProperties": True}
    known = KnownTools((DefinedTool(ToolDefinition("mail", "", schema), origin="there").facts(),))
    text = HEAD.replace('"mail", "store"', "") + RULE.format(tool="mail", said=PIN[1])

    assert parse_policy(text, file="policy.toml", known=known).problems == ()


def test_misspelt_field_is_named_as_it_was_meant() -> None:
    (problem,) = load(("mail", "recipient = { maxItems = 0 }")).problems

    assert problem.near_miss == "recipients"


def test_listed_value_that_the_tool_never_takes_is_a_warning() -> None:
    loaded = load(("mail", "priority = { enum = ['low', 'normla'] }"))

    (problem,) = loaded.problems
    assert loaded.policy is not None
    assert (problem.severity, problem.code, problem.near_miss) == (Severity.WARNING, "unknown-value", "normal")
    assert problem.place == place_of("priority = { enum = ['low', 'normla'] }", "'normla'")


def test_constraints_of_several_rules_that_leave_nothing_together_are_an_error_at_the_later() -> None:
    loaded = load(("mail", "priority = { enum = ['low'] }"), ("mail", "priority = { enum = ['high'] }"))

    (problem,) = loaded.problems
    assert (problem.severity, problem.code) == (Severity.ERROR, "no-value-left")
    assert problem.place is not None
    assert problem.place.line == 9


def test_constraints_of_several_rules_that_overlap_are_no_problem() -> None:
    first, second = "priority = { enum = ['low', 'high'] }", "priority = { enum = ['high'] }"

    assert load(("mail", first), ("mail", second), ("mail", "priority = { not = { const = 'low' } }")).problems == ()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("ops = { pattern = 'x' }", "keyword-not-applicable"),
        ("ops = { items = { properties = { op = { const = 'drop' } } } }", "no-value-left"),
        ("ops = { items = { properties = { kee = { const = 'x' } } } }", None),
        ("ops = { maxItems = 1 }", None),
        ("ops = { items = { properties = { op = { const = 'get' } } } }", None),
    ],
)
def test_constraint_on_what_carries_the_operation_is_held_against_it_too(said: str, code: str | None) -> None:
    assert [problem.code for problem in load(("store", said)).problems] == ([code] if code else [])
