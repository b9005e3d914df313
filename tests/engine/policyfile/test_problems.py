"""Each problem code with its exact place: what a strict load says about a faulty file, all at once."""

import time

import pytest

from gatewright.base.errors import Place, Severity
from gatewright.policy.rule import AllowedOperations, ContinueLoop, Cooldown, MaxCalls, RequiresConsent
from gatewright.policyfile import parse_policy
from tests.engine.policyfile.catalog import KNOWN, load, policy_of
from tests.support.patience import in_time

HEAD = "gatewright = 1\n"
RULE = '[[agents.a.tool_rules]]\ntool_name = "file"\n'
SOURCE = '[[sources]]\nid = "d"\ntype = "file"\nbase_path = "x"\n'

# (what follows the first line, code, line, column, near miss)
FAULTS = [
    ("x = \n", "syntax", 2, 5, None),
    ("x = [1, 2\n", "syntax", 2, 5, None),
    ('x = "a\0"\n', "syntax", 2, 7, None),
    (f"x = {'[' * 3000}\n", "syntax", 1, 1, None),
    (f"x = {'9' * 5000}\n", "syntax", 2, 5, None),
    (f"x{'.x' * 300} = 1\n", "syntax", 2, 1, None),
    ("name = 'a'\nname = 'b'\n", "duplicate", 3, 1, None),
    ("[agents.a]\n[agents.a]\n", "duplicate", 3, 1, None),
    ("agents = { a = {}, a = {} }\n", "duplicate", 2, 20, None),
    ("name = 3\n", "wrong-type", 2, 8, None),
    ("agents = 3\n", "wrong-type", 2, 10, None),
    ("[agents.a]\ntools = [true]\n", "wrong-type", 3, 10, None),
    ("[agents.a]\ntools = 'file'\n", "wrong-type", 3, 9, None),
    ("[agents.a]\napprovals = { file.delete = 'ask' }\n", "wrong-type", 3, 15, None),
    ("[defualts]\n", "unknown-key", 2, 1, "defaults"),
    ("[agents.a]\ntoolz = []\n", "unknown-key", 3, 1, "tools"),
    (f"[agents.a]\n{RULE}rule_type = 'ExitLoop'\nprio = 1\n", "unknown-key", 6, 1, "priority"),
    (f"[agents.a]\n{RULE}rule_type = {{ type = 'ExitLoop', valeu = 3 }}\n", "unknown-key", 5, 34, "value"),
    ("tool_rules = []\n", "unknown-key", 2, 1, None),
    (f"[agents.a]\n{RULE}rule_type = 'exit_loop'\n", "unknown-variant", 5, 13, "ExitLoop"),
    (f"[agents.a]\n{RULE}rule_type = {{ max_calls = 3 }}\n", "unknown-variant", 5, 13, "MaxCalls"),
    ("[agents.a]\napprovals = { file = 'allows' }\n", "unknown-variant", 3, 22, "allow"),
    ("[defaults]\nunlisted_tools = 'ask'\n", "unknown-variant", 3, 18, None),
    (f"{SOURCE}default_permission = 'readonly'\n", "unknown-variant", 6, 22, "read_only"),
    (f"{SOURCE.replace('file', 'files')}", "unknown-variant", 4, 8, "file"),
    ("[agents.a]\ntools = [\n  'calc',\n  'fiel',\n]\n", "unknown-tool", 5, 3, "file"),
    ("[agents.a]\ntools = ['memo@7']\n", "unknown-tool", 3, 10, "memo"),
    ("[agents.a]\napprovals = { fil = 'ask' }\n", "unknown-tool", 3, 21, "file"),
    ("[tools.clac]\ntimeout = 3\n", "unknown-tool", 2, 1, "calc"),
    ("[tools.'*']\ntimeout = 3\n", "bad-value", 2, 1, None),
    ("[agents.a]\napprovals = { '*' = 'ask' }\n", "bad-value", 3, 15, None),
    (f"[agents.a]\n{RULE}rule_type = {{ AllowedOperations = ['read', 'raed'] }}\n", "unknown-operation", 5, 44, "read"),
    ("[agents.a]\napprovals = { 'file.reed' = 'ask' }\n", "unknown-operation", 3, 29, "read"),
    ("[agents.a]\nsources = ['docz']\n", "unknown-source", 3, 12, None),
    ("[agents.alma]\nsub_agents = ['alba']\n[agents.alfa]\n", "unknown-agent", 3, 15, "alfa"),
    ("[agents.a]\nsub_agents = ['a']\n", "bad-value", 3, 15, None),
    ("[agents.a]\nsub_agents = ['b', 'b']\n[agents.b]\n", "duplicate", 3, 20, None),
    ("[agents.a]\ndelegate = 'all'\n", "unknown-variant", 3, 12, None),
    (f"[agents.a]\ntools=[]\nsources = ['dd']\n{SOURCE}", "unknown-source", 4, 12, None),
    ("[agents.a]\n[agents.A]\n", "duplicate", 3, 1, None),
    ("[agents.a]\ntools = ['memo', 'memo@1']\n", "duplicate", 3, 18, None),
    (f"{SOURCE}{SOURCE}", "duplicate", 7, 6, None),
    (f"{SOURCE}[agents.a]\nsources = ['d', 'd']\n", "duplicate", 7, 17, None),
    (
        f"[agents.a]\n{RULE}rule_type = 'ExitLoop'\nid = 'r'\n{RULE}rule_type = 'ExitLoop'\nid = 'r'\n",
        "duplicate",
        10,
        6,
        None,
    ),
    (f"[agents.a]\n{RULE}rule_type = {{ AllowedOperations = ['read', 'read'] }}\n", "duplicate", 5, 44, None),
    (f"{SOURCE}permission_rules = [{{ pattern = '!x', permission = 'none' }}]\n", "bad-glob", 6, 33, None),
    (f"{SOURCE}[[sources.permission_rules]]\npattern = ''\npermission = 'none'\n", "bad-glob", 7, 11, None),
    (f"{SOURCE}[[sources.permission_rules]]\npattern = 'a['\npermission = 'none'\n", "bad-glob", 7, 11, None),
    (f"{SOURCE}[[sources.permission_rules]]\npattern = '../x'\npermission = 'none'\n", "bad-glob", 7, 11, None),
    (f"[agents.a]\n{RULE}rule_type = {{ Cooldown = '5 minutes' }}\n", "bad-duration", 5, 26, None),
    ("[defaults]\ncheck_formats = 'yes'\n", "wrong-type", 3, 17, None),
    ("[defaults]\ncheck_format = true\n", "unknown-key", 3, 1, "check_formats"),
    ("[defaults]\ntimeout = -1\n", "bad-duration", 3, 11, None),
    ("[defaults]\nmax_output_bytes = 0\n", "bad-value", 3, 20, None),
    (f"[agents.a]\n{RULE}rule_type = 'ExitLoop'\npriority = 256\n", "bad-value", 6, 12, None),
    (f"[agents.a]\n{RULE}rule_type = {{ MaxCalls = -1 }}\n", "bad-value", 5, 26, None),
    (f"[agents.a]\n{RULE}rule_type = 'MaxCalls'\n", "bad-value", 5, 13, None),
    (f"[agents.a]\n{RULE}rule_type = {{ ExitLoop = 1 }}\n", "bad-value", 5, 26, None),
    (f"[agents.a]\n{RULE}rule_type = {{ ExitLoop = 1, MaxCalls = 3 }}\n", "bad-value", 5, 13, None),
    (f"[agents.a]\n{RULE}rule_type = 'ExitLoop'\nmetadata = {{ when = 2020-01-01 }}\n", "bad-value", 6, 12, None),
    ("[agents.a]\ntools = ['*']\n", "bad-value", 3, 10, None),
    ("[agents.' ']\n", "bad-value", 2, 1, None),
    (f"[agents.a]\n{RULE}rule_type = 'ExitLoop'\nconditions = ['calc']\n", "bad-condition", 6, 15, None),
    (f"[agents.a]\n{RULE}", "missing-key", 3, 1, None),
    ("[[sources]]\ntype = 'file'\nbase_path = 'x'\n", "missing-key", 2, 1, None),
    (f"{SOURCE}permission_rules = [{{ pattern = 'x' }}]\n", "missing-key", 6, 21, None),
    (
        "[agents.a]\n[[agents.a.tool_rules]]\ntool_name = 'calc'\nrule_type = { AllowedOperations = ['x'] }\n",
        "operations-on-plain-tool",
        5,
        13,
        None,
    ),
    (
        "[agents.a]\n[[agents.a.tool_rules]]\ntool_name = '*'\nrule_type = { AllowedOperations = ['x'] }\n",
        "operations-on-plain-tool",
        5,
        13,
        None,
    ),
    (
        "[agents.a]\ntools = ['block']\n[[agents.a.tool_rules]]\ntool_name = 'calc'\nrule_type = 'StartConstraint'\n",
        "start-constraint-hidden",
        6,
        13,
        None,
    ),
    (f"[agents.a]\n{RULE}rule_type = {{ AllowedOperations = ['patch'] }}\n", "unknown-operation", 5, 36, None),
    ("[[compositions]]\nname = 'x'\n", "missing-key", 2, 1, None),
    ("[workspace]\nendpoints = { discord = {} }\n", "missing-key", 3, 15, None),
    ("[agents.a]\napprovals = { 'file@1' = 'ask' }\n", "not-supported", 3, 26, None),
    (f"{SOURCE.replace('file', 'folder_changes')}watch = true\n", "bad-value", 6, 9, None),
    (f"{SOURCE}follow_symlinks = true\n", "not-supported", 6, 19, None),
    ("[tools.'file@9']\nscrub = true\n", "unknown-tool", 2, 1, "file"),
    ("[tools.'memo@2']\noperation_tiers = { fnd = 'privileged' }\n", "unknown-operation", 3, 21, "find"),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), FAULTS)
def test_a_fault_is_named_with_its_place(body: str, code: str, line: int, column: int, near: str | None) -> None:
    loaded = load(HEAD + body)

    (problem,) = [problem for problem in loaded.problems if problem.is_error]
    assert loaded.policy is None
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", line, column), near)


def test_every_problem_of_a_file_is_reported_at_once_in_its_order() -> None:
    loaded = load("gatewright = 2\nfoo = 1\n[agents.a]\ntools = ['fiel']\n[defaults]\ntimeout = 'x'\n")

    assert [(p.code, p.place.line if p.place else 0) for p in loaded.problems] == [
        ("bad-value", 1),
        ("unknown-key", 2),
        ("unknown-tool", 4),
        ("bad-duration", 6),
    ]


def test_a_refused_exception_pattern_says_what_to_do() -> None:
    loaded = load(f"{HEAD}{SOURCE}permission_rules = [{{ pattern = '!x', permission = 'none' }}]\n")

    assert "put the exception above" in loaded.problems[0].message


@pytest.mark.parametrize("text", ["", "# nothing\n", "name = 'x'\n", "[agents.a]\n"])
def test_a_file_without_the_version_is_refused(text: str) -> None:
    assert [problem.code for problem in load(text).problems if problem.is_error] == ["missing-key"]


def test_a_huge_file_is_one_problem() -> None:
    assert [p.code for p in load("#" * (8 * 1024 * 1024 + 1)).problems] == ["syntax"]


def test_half_a_surrogate_pair_is_no_utf8() -> None:
    (problem,) = load("gatewright = 1\nname = '\ud800'\n").problems

    assert (problem.code, str(problem.place)) == ("syntax", "policy.toml:2:9")


def test_columns_count_from_behind_a_byte_order_mark_and_lines_end_in_any_way() -> None:
    (first, second) = load("\ufefffoo = 1\r\ngatewright = 1\r\nbar = 2\r\n").problems

    assert (str(first.place), str(second.place)) == ("policy.toml:1:1", "policy.toml:3:1")


def test_near_misses_stay_cheap_when_every_word_is_wrong() -> None:
    words = ", ".join(f"'tool{number}x'" for number in range(5000))

    assert len(load(f"{HEAD}[agents.a]\ntools = [{words}]\n").problems) == 5000


WARNINGS = [
    ("[agents.a]\ntools = ['calc', 'file']\n", "no-source", 3, 1),
    ("[agents.a]\ntools = []\n" + RULE + "rule_type = { Cooldown = 0 }\n", "rule-without-effect", 6, 26),
]


@pytest.mark.parametrize(("body", "code", "line", "column"), WARNINGS)
def test_a_warning_leaves_the_policy_in_force(body: str, code: str, line: int, column: int) -> None:
    loaded = load(HEAD + body)

    (problem,) = loaded.problems
    assert loaded.policy is not None
    assert (problem.severity, problem.code) == (Severity.WARNING, code)
    assert problem.place == Place("policy.toml", line, column)


def test_rules_of_a_tool_that_is_off_wait_and_are_no_problem() -> None:
    loaded = load(f"{HEAD}[agents.a]\ntools = []\n{RULE}rule_type = 'ExitLoop'\n")

    assert loaded.problems == ()
    assert loaded.policy is not None
    assert len(loaded.policy.agents["a"].tool_rules) == 1


SPELLINGS = [
    ("{ MaxCalls = 3 }", MaxCalls(3)),
    ('{ type = "MaxCalls", value = 3 }', MaxCalls(3)),
    ('"ContinueLoop"', ContinueLoop()),
    ('{ type = "ContinueLoop" }', ContinueLoop()),
    ("{ RequiresConsent = {} }", RequiresConsent()),
    ('{ type = "RequiresConsent", value = { scope = "s" } }', RequiresConsent("s")),
    ("{ Cooldown = { secs = 1, nanos = 500000000 } }", Cooldown(1.5)),
    ('{ Cooldown = "2m" }', Cooldown(120)),
    ('{ type = "Cooldown", value = 30 }', Cooldown(30)),
    ('{ AllowedOperations = ["read", "append"] }', AllowedOperations(frozenset({"read", "append"}))),
    ("{ AllowedOperations = [] }", AllowedOperations(frozenset())),
]


@pytest.mark.parametrize(("written", "kind"), SPELLINGS)
def test_each_spelling_of_a_rule_type_is_read(written: str, kind: object) -> None:
    policy = policy_of(f"{HEAD}{SOURCE}[agents.a]\n{RULE}rule_type = {written}\n")

    assert policy.agents["a"].tool_rules[0].rule_type == kind


def test_empty_forms_of_what_is_not_supported_are_nothing() -> None:
    top = f"{HEAD}catalogs = []\npolicy = {{ default = 'allow' }}\n"
    text = f"{top}[agents.a]\ntools = []\ncapabilities = []\n{SOURCE}watch = false\n"

    assert not load(text).problems


def test_the_longest_tool_name_of_an_approvals_key_wins() -> None:
    loaded = load(f"{HEAD}[agents.a]\ntools = []\napprovals = {{ 'memo.deep.put' = 'ask' }}\n")

    assert [problem.code for problem in loaded.problems] == ["unknown-operation"]


def test_an_address_leads_to_its_place_and_an_unknown_one_to_its_parent() -> None:
    rule = "[[sources.permission_rules]]\npattern = 'x'\npermission = 'none'\n"
    text = f"{HEAD}[agents.a]\ntools = [\n 'calc',\n 'block',\n]\n{SOURCE}{rule}"
    places = load(text).places

    assert str(places.place(("agents", "a", "tools", 1))) == "policy.toml:5:2"
    assert str(places.place(("agents", "a", "tools", 9))) == "policy.toml:3:1"
    assert str(places.place(("agents", "a", "tool_rules", 0))) == "policy.toml:2:1"
    assert str(places.place(("sources", "d"))) == "policy.toml:7:1"
    assert str(places.place(("sources", "d", "permission_rules", 0, "permission"))) == "policy.toml:13:1"
    assert str(places.place(("nothing",))) == "policy.toml:1:1"


def test_the_same_file_name_stands_in_every_place() -> None:
    loaded = parse_policy("x", file="team/p.toml", known=KNOWN)

    assert {problem.place.file for problem in loaded.problems if problem.place} == {"team/p.toml"}


def test_near_misses_stay_cheap_among_very_many_names() -> None:
    sources = "".join(f'[[sources]]\nid = "source number {n}"\ntype = "file"\nbase_path = "x"\n' for n in range(5_000))
    wrong = ", ".join(f'"sauce numbers {n}"' for n in range(500))
    began = time.process_time()
    loaded = load(f"{HEAD}{sources}[agents.a]\nsources = [{wrong}]\n")

    assert len([problem for problem in loaded.problems if problem.code == "unknown-source"]) == 500
    assert in_time(time.process_time() - began, 10)


HIDDEN = f"[agents.a]\ntools = ['calc']\nsources = []\n{RULE}rule_type = 'StartConstraint'\n"
MISSED = "[[policy.rules]]\nname = 'r'\neffect = 'deny'\ntools = ['file']\nwhen = { required = ['path'] }\n"


def codes(text: str) -> list[str]:
    return [problem.code for problem in load(HEAD + text).problems]


def test_a_slip_in_one_part_hides_nothing_of_the_others() -> None:
    told = codes(f"{HIDDEN}{MISSED}[agents.b]\ntoolz = []\n[defualts]\n")

    assert sorted(told) == ["deny-may-miss", "start-constraint-hidden", "unknown-key", "unknown-key"]


def test_what_only_follows_from_a_slip_is_left_out() -> None:
    slip = SOURCE.replace("'file'", "'files'").replace('"file"', '"files"')

    told = codes(f"{slip}[agents.a]\ntools = ['file']\nsources = ['d']\n{RULE}rule_type = 'StartConstraint'\n")

    assert told == ["unknown-variant"]
