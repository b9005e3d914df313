"""What a finding is about: the part of the policy, the agents, the tools. Its words are checked elsewhere."""

import pytest

from gatewright.base.errors import Address, Problem, Subject, ToolPart
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.rule import MaxCalls, PolicyRule, ToolRule
from gatewright.policy.rulematch import subject_of
from gatewright.policy.verdict import Verdict
from tests.engine.policyfile.catalog import load

HEAD = "gatewright = 1\n"
APPENDS = "[[agents.a.tool_rules]]\ntool_name = 'file'\nrule_type = { AllowedOperations = ['append'] }\n"
SOURCE = '[[sources]]\nid = "other"\ntype = "file"\nbase_path = "y"\n[[sources]]\nid = "d"\ntype = "file"\n'
RULE = '[[agents.a.tool_rules]]\ntool_name = "file"\n'
DENY = '[[policy.rules]]\nname = "r"\neffect = "deny"\n'

# (what follows the first line, code of the finding, what it is about)
SUBJECTS = [
    (
        f"[agents.a]\ntools = []\n{RULE}rule_type = {{ Cooldown = 0 }}\n",
        "rule-without-effect",
        Subject(("agents", "a", "tool_rules", 0, "rule_type", "Cooldown"), ("a",), (("file", None),)),
    ),
    (
        f"[agents.a]\ntools = []\n{RULE}rule_type = {{ Cooldown = 0 }}\nconditions = ['operation:read']\n",
        "rule-without-effect",
        Subject(("agents", "a", "tool_rules", 0, "rule_type", "Cooldown"), ("a",), (("file", "read"),)),
    ),
    (
        "[agents.a]\ntools = ['calc', 'file']\n",
        "no-source",
        Subject(("agents", "a", "tools"), ("a",), (("file", None),)),
    ),
    ("[agents.a]\n[agents.b]\ntools = []\n", "no-source", Subject(("agents", "a"), ("a",), (("file", None),))),
    (
        f"[agents.a]\n{SOURCE}base_path = 'x'\n{APPENDS}",
        "edits-never-saved",
        Subject(("agents", "a", "tool_rules", 0, "rule_type"), ("a",), (("file", "save"),)),
    ),
    (
        f"{DENY}agents = ['a']\ntools = ['memo@1', 'block']\noperations = ['info']\n[agents.a]\ntools = []\n",
        "rule-without-effect",
        Subject(("policy", "rules", 0, "tools", 0), ("a",), (("memo", None),)),
    ),
    (
        f"{DENY}operations = ['read', 'list']\nwhen = {{ required = ['path'] }}\n",
        "deny-may-miss",
        Subject(("policy", "rules", 0, "when"), (), (("file", None),)),
    ),
    ("[tools.clac]\ntimeout = 3\n", "unknown-tool", Subject(("tools", "clac"), (), (("clac", None),))),
    (
        f"{SOURCE}base_path = 'x'\ndefault_permission = 'readonly'\n",
        "unknown-variant",
        Subject(("sources",)),
    ),
    (
        "[[catalogs]]\nid = 'k'\ntype = 'host'\nmanifesto = 'x'\n",
        "unknown-key",
        Subject(("catalogs",)),
    ),
]


def found(text: str, code: str, file: str = "policy.toml") -> Problem:
    return next(problem for problem in load(text, file).problems if problem.code == code)


@pytest.mark.parametrize(("body", "code", "subject"), SUBJECTS)
def test_a_finding_says_what_it_is_about(body: str, code: str, subject: Subject) -> None:
    assert found(HEAD + body, code).subject == subject


def test_a_finding_on_the_text_as_a_whole_is_about_no_part() -> None:
    assert found("gatewright = 1\nx = \n", "syntax").subject is None
    assert found("name = 'x'\n", "missing-key").subject is None


def test_a_finding_in_a_file_of_one_agent_is_about_that_agent() -> None:
    file = '[[tool_rules]]\ntool_name = "file"\nrule_type = { AllowedOperations = ["append"] }\n'
    notes = '[data_sources.notes]\ntype = "file"\npaths = ["a", "b"]\n'
    unsaved = found(file + notes, "edits-never-saved", "team/archivist.toml")
    assert unsaved.subject == Subject(
        ("agents", "archivist", "tool_rules", 0, "rule_type"), ("archivist",), (("file", "save"),)
    )
    foreign = found(f"{file}{notes}recursive = true\n", "pattern-key")
    assert foreign.subject is None


def test_an_error_names_no_tool_by_an_index_that_may_have_moved() -> None:
    """The rule before it could not be read, so that the rules that were read stand one further up."""
    broken = "[[agents.a.tool_rules]]\ntool_name = 'calc'\n"
    text = f"{HEAD}[agents.a]\ntools = ['calc']\n{broken}{RULE}rule_type = {{ Cooldown = 0 }}\n"
    subject = found(text, "rule-without-effect").subject
    assert subject is not None
    assert subject.agents == ("a",)
    assert subject.tools == ()


RULES = (
    ToolRule("x@2", MaxCalls(1), ("operation:go", "y")),
    ToolRule("x", MaxCalls(1), ("operation:go", "operation:stop")),
    ToolRule("*", MaxCalls(1), ("operation:go",)),
)
ASK = PolicyRule("r", Verdict.ASK, agents=("a", "b"), tools=("x@1", "x@2", "y"), operations=("go",))
POLICY = Policy(
    agents={"a": Agent("a", tools=("x@2", "y"), tool_rules=RULES), "b": Agent("b")},
    sources=(Source("d", "d", required_tools=RULES),),
    rules=(ASK, PolicyRule("s", Verdict.ASK)),
)


@pytest.mark.parametrize(
    ("address", "agents", "tools"),
    [
        (("agents", "a"), ("a",), ()),
        (("agents", "z", "tools", 0), ("z",), ()),
        (("agents", "a", "tools", 1), ("a",), (("y", None),)),
        (("agents", "a", "tools", 0, "more"), ("a",), (("x", None),)),
        (("agents", "a", "tools", 2), ("a",), ()),
        (("agents", "b", "tools", 0), ("b",), ()),
        (("agents", "a", "tool_rules", 0, "id"), ("a",), (("x", "go"),)),
        (("agents", "a", "tool_rules", 1), ("a",), (("x", None),)),
        (("agents", "a", "tool_rules", 2), ("a",), ()),
        (("agents", "a", "tool_rules", 3), ("a",), ()),
        (("sources", "d", "required_tools", 0), (), (("x", "go"),)),
        (("sources", "d", "required_tools", 3), (), ()),
        (("sources", "z", "required_tools", 0), (), ()),
        (("policy", "rules", 0), ("a", "b"), (("x", "go"), ("y", "go"))),
        (("policy", "rules", 0, "tools", 2), ("a", "b"), (("y", None),)),
        (("policy", "rules", 0, "tools", 3), ("a", "b"), (("x", "go"), ("y", "go"))),
        (("policy", "rules", 1, "tools", 0), (), ()),
        (("policy", "rules", 2), (), ()),
        (("tools", "x@2", "paths"), (), (("x", None),)),
        (("defaults", "approvals"), (), ()),
    ],
)
def test_a_part_of_the_policy_is_about_its_agents_and_tools(
    address: Address, agents: tuple[str, ...], tools: tuple[ToolPart, ...]
) -> None:
    assert subject_of(POLICY, address) == Subject(address, agents, tools)


def test_a_subject_says_the_same_in_json() -> None:
    problem = found(f"{HEAD}[agents.a]\ntools = ['calc', 'file']\n", "no-source")
    tools = [{"tool": "file", "operation": None}]
    assert problem.to_json()["subject"] == {"address": ["agents", "a", "tools"], "agents": ["a"], "tools": tools}
