"""Every kind of tool rule and its conditions as a file says them, and what is wrong with a wrong one."""

import pytest

from gatewright.base.errors import Place, Report, Severity
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.rule import (
    AfterOutside,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Needed,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    RuleKind,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.verdict import Verdict
from tests.engine.policyfile.catalog import load, policy_of
from tests.engine.policyfile.test_policy_rules import EXPONENTIAL

HEAD = "gatewright = 1\n"
SOURCE = '[[sources]]\nid = "d"\ntype = "file"\nbase_path = "x"\n'
RULE = '[agents.a]\n[[agents.a.tool_rules]]\ntool_name = "file"\n'
CALC = '[agents.a]\n[[agents.a.tool_rules]]\ntool_name = "calc"\n'
ANY = '[agents.a]\n[[agents.a.tool_rules]]\ntool_name = "*"\n'
PRECEDING = f"{RULE}rule_type = 'RequiresPrecedingTools'\nconditions = "
OUTSIDE = "[tools.calc]\ntrust = 'outside'\n"
EXIT = "[agents.a]\ntools = ['calc', 'file']\n[[agents.a.tool_rules]]\ntool_name = 'file'\n"


SPELLINGS = [
    ("{ RateLimit = { calls = 10, per = '1m' } }", (), RateLimit(10, 60)),
    ("{ Periodic = '5m' }", (), Periodic(300)),
    ("{ ExclusiveGroups = [['file', 'memo@2'], ['file', 'memo.deep']] }", (),
     ExclusiveGroups((("file", "memo@2"), ("file", "memo.deep")))),
    ("'RequiredBeforeExit'", ("operation:save",), RequiredBeforeExit()),
    ("'StartConstraint'", ("operation:load", "operation:read"), StartConstraint()),
    ("'RequiredBeforeExitIf'", ("memo@2.find", "calc"), RequiredBeforeExitIf()),
    ("'RequiresPrecedingTools'", ("memo.deep.find",), RequiresPrecedingTools()),
    ("{ type = 'RequiresFollowingTools' }", ("memo.deep", "operation:save"), RequiresFollowingTools()),
    ("{ ArgumentConstraints = { path = { pattern = '^notes/' }, source = false } }", (),
     ArgumentConstraints({"path": {"pattern": "^notes/"}, "source": False})),
    ("{ type = 'ArgumentConstraints', value = { path = { maxLength = 9 } } }", (),
     ArgumentConstraints({"path": {"maxLength": 9}})),
    ("{ ArgumentConstraints = { required = ['path', 'content'], path = { maxLength = 9 } } }", (),
     ArgumentConstraints({"path": {"maxLength": 9}}, ("path", "content"))),
    ("{ type = 'ArgumentConstraints', value = { required = ['path'] } }", ("operation:list",),
     ArgumentConstraints({}, ("path",))),
    ("'Needed'", ("operation:read",), Needed()),
    ("{ AfterOutside = 'ask' }", ("operation:save",), AfterOutside(Verdict.ASK)),
    ("{ type = 'AfterOutside', value = 'deny' }", (), AfterOutside(Verdict.DENY)),
]  # fmt: skip


@pytest.mark.parametrize(("written", "conditions", "kind"), SPELLINGS)
def test_each_kind_is_read_with_its_conditions(written: str, conditions: tuple[str, ...], kind: object) -> None:
    text = f"{HEAD}{SOURCE}{RULE}rule_type = {written}\nconditions = {list(conditions)}\n{OUTSIDE}"
    loaded = load(text)

    assert not loaded.problems
    (rule,) = policy_of(text).agents["a"].tool_rules
    assert (rule.rule_type, rule.conditions) == (kind, conditions)


LIMITED, GIVEN = (
    f"{what}; a refusal says which."
    for what in ("Some argument values are limited", "Some optional arguments are mandatory")
)
TEXT: dict[str, JsonValue] = {"type": "string"}


@pytest.mark.parametrize(
    ("kind", "plain", "edit_name", "told"),
    [
        (
            AllowedOperations(frozenset("ba")),
            ["a", "b"],
            "change the list of operations of x",
            "Operations open to you: `a`, `b` and `c`.",
        ),
        (MaxCalls(1), 1, "limit x to 1 call", "At most 1 call per session."),
        (MaxCalls(2000), 2000, "limit x to 2,000 calls", "At most 2000 calls per session."),
        (
            Cooldown(90.0),
            "90s",
            "pause 1 min 30 s between calls of x",
            "Calls have to start at least 1 min 30 s apart.",
        ),
        (RateLimit(1, 60.0), {"calls": 1, "per": "1m"}, "limit x to 1 call per 1 min", "At most 1 call per 1 min."),
        (
            RateLimit(2000, 0.5),
            {"calls": 2000, "per": "0.5s"},
            "limit x to 2,000 calls per 500 ms",
            "At most 2000 calls per 500 ms.",
        ),
        (Periodic(300.0), "5m", "remind of x every 5 min", "It is due every 5 min."),
        (RequiresConsent(), {}, "consent for x", "A person has to agree first."),
        (
            RequiresConsent("money"),
            {"scope": "money"},
            "consent for x (scope money)",
            "A person has to agree first (scope `money`).",
        ),
        (ArgumentConstraints({"a": True}), {"a": True}, "change the constraint of x", LIMITED),
        (ArgumentConstraints({}, ("a",)), {"required": ["a"]}, "change the constraint of x", GIVEN),
        (
            ArgumentConstraints({"a": TEXT}, ("a",)),
            {"a": TEXT, "required": ["a"]},
            "change the constraint of x",
            LIMITED,
        ),
        (
            AfterOutside(Verdict.ASK),
            "ask",
            "ask before x after outside results",
            "Once a result from outside came in, a person has to agree first.",
        ),
        (
            AfterOutside(Verdict.DENY),
            "deny",
            "deny x after outside results",
            "It cannot be called any more once a result from outside came in.",
        ),
        (Needed(), None, "change the need of x", None),
        (ContinueLoop(), None, "go on after x", "After a successful call you keep the turn."),
        (ExitLoop(), None, "end the loop after x", "A successful call ends your turn."),
        (StartConstraint(), None, "change the start of x", "It has to succeed before any other tool is called."),
        (
            RequiresPrecedingTools(),
            None,
            "change the order before of x",
            "It can be called once `a`, `b` and `c` succeeded in this session.",
        ),
        (
            RequiresFollowingTools(),
            None,
            "change the order after of x",
            "It cannot be called any more once `a`, `b` or `c` succeeded.",
        ),
        (
            RequiredBeforeExit(),
            None,
            "change the requirement before the end of x",
            "It has to succeed before you finish.",
        ),
        (
            RequiredBeforeExitIf(),
            None,
            "change the requirement before the end of x",
            "Once `a`, `b` and `c` succeeded, it has to succeed too before you finish.",
        ),
        (
            ExclusiveGroups((("a", "b"), ("c",))),
            [["a", "b"], ["c"]],
            "change the groups of x",
            "Only one of `a`, `b` and `c` can be used in a session.",
        ),
    ],
)
def test_each_kind_is_written_named_and_told_to_the_model(
    kind: RuleKind, plain: object, edit_name: str, told: str | None
) -> None:
    assert (kind.plain(), kind.edit_name("x"), kind.usage_words(("a", "b", "c"))) == (plain, edit_name, told)
    names_others = kind.names_tools or isinstance(kind, AllowedOperations | ExclusiveGroups)
    assert kind.usage_words(()) == (None if names_others else told)
    one = (
        None
        if isinstance(kind, ExclusiveGroups)
        else told and told.replace("`a`, `b` and `c`", "`a`").replace("`a`, `b` or `c`", "`a`")
    )
    assert kind.usage_words(("a",)) == one


TIME = 'a duration is seconds (`30`), text with a unit (`"1.5s"`, `"2m"`, `"1h"`) or `{ secs, nanos }`'
ZERO = "`MaxCalls = 0` denies every call, yet the model still sees the tool: turn it off instead"
IDLE = "`Cooldown = 0` delays nothing: the rule has no effect"
ONLY_OPERATIONS = "`x` is no condition here: `MaxCalls` takes only `operation:NAME`"


@pytest.mark.parametrize(
    ("rule", "faults"),
    [
        (
            ToolRule("", MaxCalls(-1), priority=255),
            [
                "error tool_name bad-value: `tool_name` may not be blank",
                "error rule_type.MaxCalls bad-value: `MaxCalls` must be 0 or more",
            ],
        ),
        (
            ToolRule("a", MaxCalls(0), ("x",), -1, ""),
            [
                "error id bad-value: `id` may not be blank",
                f"warning rule_type.MaxCalls never-callable: {ZERO}",
                "error priority bad-value: `priority` must be 0 to 255",
                f"error conditions.0 bad-condition: {ONLY_OPERATIONS}",
            ],
        ),
        (
            ToolRule("a", Cooldown(-1.0), priority=256),
            [
                f"error rule_type.Cooldown bad-duration: {TIME}",
                "error priority bad-value: `priority` must be 0 to 255",
            ],
        ),
        (
            ToolRule("a", Cooldown(0.0), priority=0),
            [f"warning rule_type.Cooldown rule-without-effect: {IDLE}"],
        ),
        (
            ToolRule("a", Periodic(0.0)),
            ["error rule_type.Periodic bad-value: `Periodic` must be longer than nothing"],
        ),
        (
            ToolRule("a", RateLimit(0, 0.0)),
            [
                "error rule_type.RateLimit.calls bad-value: `calls` must be 1 or more",
                "error rule_type.RateLimit.per bad-value: `per` must be longer than nothing",
            ],
        ),
        (
            ToolRule("a", RequiresConsent(" x")),
            ["error rule_type.RequiresConsent.scope bad-value: `scope` may not begin or end with a space"],
        ),
        (
            ToolRule("a", ArgumentConstraints({"x": 3, "y": {"const": [1, None]}})),
            [
                "error rule_type.ArgumentConstraints.x bad-value: the constraint of `x` must be a JSON Schema",
                "error rule_type.ArgumentConstraints.y.const.1 bad-value: a policy file cannot hold null",
            ],
        ),
        (
            ToolRule("a", ArgumentConstraints({})),
            [
                (
                    "warning rule_type.ArgumentConstraints rule-without-effect: "
                    "`ArgumentConstraints` names no field: the rule has no effect"
                )
            ],
        ),
        (
            ToolRule("a", ArgumentConstraints({}, ("a", "a"))),
            ["error rule_type.ArgumentConstraints.required.1 duplicate: `a` stands here twice"],
        ),
        (
            ToolRule("*", MaxCalls(1), ("operation:a", "operation:a", "operation:")),
            [
                (
                    "error conditions.0 operations-on-plain-tool: "
                    "`operation:a` names an operation of one tool: it cannot stand with `*`"
                ),
                "error conditions.1 duplicate: `operation:a` stands here twice",
                "error conditions.2 bad-condition: `operation:` is no condition here: the name may not be blank",
            ],
        ),
        (
            ToolRule("a", RequiresPrecedingTools(), ("operation:a", "*")),
            [
                (
                    "error conditions.1 bad-condition: "
                    "`*` is no condition: name the tools that `RequiresPrecedingTools` speaks of"
                )
            ],
        ),
        (
            ToolRule("a", RequiresPrecedingTools(), ("operation:a",)),
            [
                (
                    "error conditions bad-condition: `RequiresPrecedingTools` means nothing "
                    "without a tool in `conditions`, such as `tool` or `tool.operation`"
                )
            ],
        ),
        (
            ToolRule("a", AllowedOperations(frozenset({" "}))),
            ["error rule_type.AllowedOperations.0 bad-value: a name may not be blank"],
        ),
        (
            ToolRule("a", ExclusiveGroups(())),
            [
                (
                    "warning rule_type.ExclusiveGroups rule-without-effect: "
                    "`ExclusiveGroups` holds no group: the rule has no effect"
                )
            ],
        ),
        (
            ToolRule("a", ExclusiveGroups(((), ("a",), ("a", "a@2", "*")))),
            [
                "error rule_type.ExclusiveGroups.0 bad-value: a group names at least two tools",
                (
                    "warning rule_type.ExclusiveGroups.1 rule-without-effect: "
                    "a group of one tool excludes nothing: `a` stands alone"
                ),
                "error rule_type.ExclusiveGroups.2.1 duplicate: `a@2` stands in the group already, as `a`",
                "error rule_type.ExclusiveGroups.2.2 bad-value: `*` cannot stand in a group: name its tools",
            ],
        ),
        (
            ToolRule("a", MaxCalls(1), metadata={"k": float("nan")}),
            ["error metadata bad-value: this table must be valid JSON: a number is not finite"],
        ),
    ],
)
def test_what_is_wrong_with_a_rule_made_in_code_is_told(rule: ToolRule, faults: list[str]) -> None:
    report = Report()
    rule.check(report)
    found = [f"{one.severity} {'.'.join(map(str, one.path))} {one.code}: {one.message}" for one in report.findings]
    assert found == faults


def test_the_same_kinds_are_read_in_a_file_of_patterns_shape() -> None:
    kinds = [text for text in SPELLINGS if not text[0].startswith("{ type")]
    rules = "".join(
        f"[[tool_rules]]\ntool_name = 'file'\nrule_type = {w}\nconditions = {list(c)}\n" for w, c, _ in kinds
    )
    policy = policy_of(f"{rules}{SOURCE}", "scribe.toml")

    assert [rule.rule_type for rule in policy.agents["scribe"].tool_rules] == [kind for _, _, kind in kinds]


# (what follows the first line, code, line, column, near miss)
FAULTS = [
    (f"{RULE}rule_type = 'ExitLop'\nconditions = ['calc', '*']\n", "unknown-variant", 5, 13, "ExitLoop"),
    (f"{RULE}rule_type = 'ExitLoop'\nconditions = ['operation:raed']\n", "unknown-operation", 6, 15, "read"),
    (f"{RULE}rule_type = 'ExitLoop'\nconditions = ['operation:patch']\n", "unknown-operation", 6, 15, None),
    (f"{RULE}rule_type = 'ExitLoop'\nconditions = ['operation:']\n", "bad-condition", 6, 15, None),
    (f"{RULE}rule_type = 'ExitLoop'\nconditions = ['calc']\n", "bad-condition", 6, 15, None),
    (f"{RULE}rule_type = 'Needed'\nconditions = ['operation:read', 'operation:read']\n", "duplicate", 6, 33, None),
    (f"{CALC}rule_type = 'ExitLoop'\nconditions = ['operation:read']\n", "operations-on-plain-tool", 6, 15, None),
    (f"{ANY}rule_type = 'ExitLoop'\nconditions = ['operation:read']\n", "operations-on-plain-tool", 6, 15, None),
    (f"{RULE}rule_type = 'RequiresPrecedingTools'\n", "bad-condition", 5, 13, None),
    (f"{PRECEDING}[]\n", "bad-condition", 6, 14, None),
    (f"{PRECEDING}['operation:read']\n", "bad-condition", 6, 14, None),
    (f"{PRECEDING}['*']\n", "bad-condition", 6, 15, None),
    (f"{PRECEDING}['calc', 'clac']\n", "unknown-tool", 6, 23, "calc"),
    (f"{PRECEDING}['memo@9.find']\n", "unknown-tool", 6, 15, "memo"),
    (f"{PRECEDING}['memo@2.fnd']\n", "unknown-operation", 6, 15, "find"),
    (f"{PRECEDING}['memo.deep.put']\n", "unknown-operation", 6, 15, None),
    (f"{PRECEDING}['file.']\n", "unknown-operation", 6, 15, None),
    (f"{PRECEDING}['calc.read']\n", "unknown-operation", 6, 15, None),
    (f"{ANY}rule_type = 'StartConstraint'\n", "bad-value", 4, 13, None),
    (f"{RULE}rule_type = 'AfterOutside'\n", "bad-value", 5, 13, None),
    (f"{RULE}rule_type = {{ AfterOutside = 'allow' }}\n", "unknown-variant", 5, 30, None),
    (f"{RULE}rule_type = {{ AfterOutside = 'denny' }}\n", "unknown-variant", 5, 30, "deny"),
    (f"{RULE}rule_type = {{ AfterOutside = 2 }}\n", "wrong-type", 5, 30, None),
    (f"{RULE}rule_type = {{ ExclusiveGroups = [['file', 'clac']] }}\n", "unknown-tool", 5, 43, "calc"),
    (f"{RULE}rule_type = {{ ExclusiveGroups = [['file', 'calc'], []] }}\n", "bad-value", 5, 52, None),
    (f"{RULE}rule_type = {{ ExclusiveGroups = [['file', 'memo', 'memo@1']] }}\n", "duplicate", 5, 51, None),
    (f"{RULE}rule_type = {{ ExclusiveGroups = [['file', '*']] }}\n", "bad-value", 5, 43, None),
    (f"{RULE}rule_type = {{ RateLimit = {{ calls = 0, per = '1m' }} }}\n", "bad-value", 5, 37, None),
    (f"{RULE}rule_type = {{ RateLimit = {{ calls = 1, per = 0 }} }}\n", "bad-value", 5, 46, None),
    (f"{RULE}rule_type = {{ RateLimit = {{ calls = 1 }} }}\n", "missing-key", 5, 15, None),
    (f"{RULE}rule_type = {{ Periodic = 0 }}\n", "bad-value", 5, 26, None),
    (f"{RULE}rule_type = {{ RequiresConsent = {{ scope = ' x' }} }}\n", "bad-value", 5, 43, None),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = 3 }} }}\n", "bad-value", 5, 46, None),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ required = ['pth'] }} }}\n", "unknown-field", 5, 51, "path"),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ required = ['path', 'path'] }} }}\n", "duplicate", 5, 59, None),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ required = [3] }} }}\n", "wrong-type", 5, 51, None),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ type = 'strng' }} }} }}\n", "bad-schema", 5, 55, None),
    (
        f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ patern = 'x' }} }} }}\n",
        "unknown-keyword",
        5,
        48,
        "pattern",
    ),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ format = 'uri' }} }} }}\n", "not-checked", 5, 48, None),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ pattern = '[' }} }} }}\n", "bad-pattern", 5, 58, None),
    (
        f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ anyOf = [{{ pattern = '^(a)\\1' }}] }} }} }}\n",
        "pattern-not-linear",
        5,
        69,
        None,
    ),
    (
        f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ patternProperties = {{ '(?=a)' = true }} }} }} }}\n",
        "pattern-not-linear",
        5,
        70,
        None,
    ),
    (
        f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ '$ref' = 'other.json' }} }} }}\n",
        "bad-schema",
        5,
        46,
        None,
    ),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {EXPONENTIAL} }} }}\n", "bad-schema", 5, 46, None),
    (
        f"{RULE}rule_type = {{ ArgumentConstraints = {{ path = {{ '$schema' = 'http://x/y' }} }} }}\n",
        "bad-schema",
        5,
        60,
        None,
    ),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), FAULTS)
def test_a_fault_of_a_rule_is_named_with_its_place(
    body: str, code: str, line: int, column: int, near: str | None
) -> None:
    loaded = load(HEAD + body)

    (problem,) = [problem for problem in loaded.problems if problem.is_error]
    assert loaded.policy is None
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", line, column), near)


ONLY_READ = (
    f"{EXIT}rule_type = {{ AllowedOperations = ['read', 'list'] }}\n[[agents.a.tool_rules]]\ntool_name = 'file'\n"
)


@pytest.mark.parametrize(("said", "near"), [("pth = {}", "path"), ("content = {}", None)])
def test_a_constraint_on_an_argument_that_is_not_there_is_an_error(said: str, near: str | None) -> None:
    rule = f"rule_type = {{ ArgumentConstraints = {{ {said} }} }}\nconditions = ['operation:read']\n"
    loaded = load(HEAD + SOURCE + RULE + rule)

    (problem,) = loaded.problems
    assert loaded.policy is None
    assert (problem.code, problem.near_miss, problem.place) == ("unknown-field", near, Place("policy.toml", 9, 39))


HIDDEN = [
    (EXIT.replace("'file']", "'memo']") + "rule_type = 'StartConstraint'\n", "start-constraint-hidden", 10),
    (EXIT.replace("'file']", "'memo']") + "rule_type = 'RequiredBeforeExit'\n", "exit-requirement-hidden", 10),
    (
        EXIT.replace("'file']", "'memo']") + "rule_type = 'RequiredBeforeExitIf'\nconditions = ['calc']\n",
        "exit-requirement-hidden",
        10,
    ),
    (f"{ONLY_READ}rule_type = 'StartConstraint'\nconditions = ['operation:save']\n", "start-constraint-hidden", 13),
    (f"{ONLY_READ}rule_type = 'RequiredBeforeExit'\nconditions = ['operation:save']\n", "exit-requirement-hidden", 13),
]


@pytest.mark.parametrize(("body", "code", "line"), HIDDEN)
def test_a_requirement_that_the_agent_could_never_meet_is_an_error(body: str, code: str, line: int) -> None:
    loaded = load(HEAD + SOURCE + body)

    (problem,) = [problem for problem in loaded.problems if problem.is_error]
    assert (problem.code, problem.place and problem.place.line) == (code, line)
    assert "`file" in problem.message


def test_a_requirement_stands_while_one_of_its_operations_is_shown() -> None:
    text = f"{ONLY_READ}rule_type = 'RequiredBeforeExit'\nconditions = ['operation:save', 'operation:list']\n"

    assert not load(HEAD + SOURCE + text).problems


def test_a_requirement_may_stand_on_a_tool_that_a_rule_hides_at_times_alone() -> None:
    rule = "[[policy.rules]]\nname = 'r'\neffect = 'deny'\ntools = ['file']\n"
    text = HEAD + SOURCE + RULE + "rule_type = 'RequiredBeforeExit'\n" + rule

    assert [problem.code for problem in load(text).problems] == ["exit-requirement-hidden"]
    assert not load(text + "times = { hours = '08:00-18:00', zone = 'UTC' }\n").problems


TWICE = "[[agents.a.tool_rules]]\ntool_name = 'file'\nrule_type = { AllowedOperations = ['save'] }\n"
WARNINGS = [
    (f"{RULE}rule_type = {{ AllowedOperations = ['read'] }}\n{TWICE}", "tool-not-shown", 12, 13, None),
    (f"{RULE}rule_type = {{ ExclusiveGroups = [['file']] }}\n", "rule-without-effect", 9, 34, None),
    (f"{RULE}rule_type = {{ ExclusiveGroups = [] }}\n", "rule-without-effect", 9, 15, None),
    (f"{RULE}rule_type = {{ Cooldown = 0 }}\n", "rule-without-effect", 9, 26, None),
    (f"{RULE}rule_type = {{ MaxCalls = 0 }}\n", "never-callable", 9, 26, None),
    (f"{RULE}rule_type = {{ ArgumentConstraints = {{}} }}\n", "rule-without-effect", 9, 15, None),
    (
        f"{EXIT}rule_type = 'RequiresPrecedingTools'\nconditions = ['calc', 'memo.put']\n",
        "condition-hidden",
        11,
        23,
        None,
    ),
    (f"{EXIT}rule_type = 'RequiredBeforeExitIf'\nconditions = ['memo']\n", "condition-hidden", 11, 15, None),
    (f"{EXIT}rule_type = {{ AfterOutside = 'ask' }}\n", "nothing-outside", 10, 13, None),
    (
        f"{EXIT}rule_type = {{ AfterOutside = 'ask' }}\n{OUTSIDE.replace('calc', 'memo')}",
        "nothing-outside",
        10,
        13,
        None,
    ),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), WARNINGS)
def test_a_rule_that_does_nothing_or_too_much_is_a_warning(
    body: str, code: str, line: int, column: int, near: str | None
) -> None:
    loaded = load(HEAD + SOURCE + body)

    (problem,) = loaded.problems
    assert loaded.policy is not None
    assert (problem.severity, problem.code, problem.near_miss) == (Severity.WARNING, code, near)
    assert problem.place == Place("policy.toml", line, column)


def test_operations_limited_one_by_one_still_leave_the_rest_of_the_tool() -> None:
    rule = f"{RULE}rule_type = {{ AllowedOperations = ['read'] }}\nconditions = ['operation:save']\n"

    assert not load(f"{HEAD}{SOURCE}{rule}").problems
