"""What an edit of the app does to an author's file, line by line."""

from collections.abc import Callable
from dataclasses import replace
from difflib import unified_diff

import pytest

from gatewright.base.errors import NotSupported, WeMustFix
from gatewright.policy import agentedit, rights, sourceedit
from gatewright.policy.document import PermissionRule, Policy
from gatewright.policy.edit import Edit, apply
from gatewright.policy.permission import Permission
from gatewright.policyfile import patch_text
from tests.engine.policyfile.catalog import FACTS, policy_of

TEXT = """\
# The policy of the notes team
gatewright = 1   # version

# --- archivist ---
[agents.archivist]
description = 'Files notes'   # quoted so
tools = [
  "file",   # the main one
  "memo@2",
  "calc"
]
approvals = { "file.delete" = "ask", read_only="allow" } # care

[[agents.archivist.tool_rules]]
# why: only these
tool_name = "file"
rule_type = { type = "AllowedOperations", value = ["load", "append", "save"] } # keep

# about the pause
[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { Cooldown = { secs = 1, nanos = 500000000 } }

# --- researcher ---
[agents.researcher]
tools = []
sources = ["docs"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

# drafts first
[[sources.permission_rules]]
pattern = "drafts/**"
permission = "read_write" # rw

[[sources.permission_rules]]
pattern = "secret/**"
permission = "none"

[[sources]]
id = "inline"
type = "file"
base_path = "x"
permission_rules = [
    { pattern = "a", permission = "admin" }, # one
    { pattern = "b", permission = "admin" },
]
# end
"""


def tick(agent: str, *names: str, on: bool) -> Callable[[Policy], Edit]:
    return lambda policy: rights.tick_operations(policy, FACTS, agent, "file", names, on=on)


def tool(agent: str, name: str, *, on: bool) -> Callable[[Policy], Edit]:
    return lambda policy: rights.tick_tool(policy, FACTS, agent, name, on=on)


RULE = PermissionRule("x", Permission.ADMIN)
NEW_RULE = ["+[[sources.permission_rules]]", '+pattern = "x"', '+permission = "admin"', "+"]
EDITS: list[tuple[Callable[[Policy], Edit], list[str]]] = [
    (
        tick("archivist", "append", on=False),
        [
            '-rule_type = { type = "AllowedOperations", value = ["load", "append", "save"] } # keep',
            '+rule_type = { type = "AllowedOperations", value = ["load", "save"] } # keep',
        ],
    ),
    (tool("archivist", "memo", on=False), ['-  "memo@2",']),
    (tool("archivist", "calc", on=False), ['-  "memo@2",', '-  "calc"', '+  "memo@2"']),
    (tool("archivist", "block", on=True), ['-  "calc"', '+  "calc",', '+  "block"']),
    (
        lambda policy: rights.ask_first(policy, FACTS, "archivist", "calc", "", on=True),
        [
            '-approvals = { "file.delete" = "ask", read_only="allow" } # care',
            '+approvals = { "file.delete" = "ask", read_only="allow", calc = "ask" } # care',
        ],
    ),
    (
        lambda policy: rights.ask_first(policy, FACTS, "researcher", "file", "delete", on=True),
        ['+approvals = { "file.delete" = "ask" }'],
    ),
    (
        tick("researcher", "read", on=True),
        [
            "-tools = []",
            '+tools = ["file"]',
            "+",
            "+[[agents.researcher.tool_rules]]",
            '+tool_name = "file"',
            '+rule_type = { type = "AllowedOperations", value = ["read"] }',
        ],
    ),
    (lambda policy: sourceedit.add_rule(policy, "docs", RULE, 0), NEW_RULE),
    (lambda policy: sourceedit.add_rule(policy, "docs", RULE), NEW_RULE),
    (
        lambda policy: sourceedit.add_rule(policy, "inline", RULE, 1),
        ['+    { pattern = "x", permission = "admin" },'],
    ),
    (
        lambda policy: sourceedit.set_level(policy, "docs", 0, Permission.APPEND),
        ['-permission = "read_write" # rw', '+permission = "append" # rw'],
    ),
    (
        lambda policy: sourceedit.remove_rule(policy, "docs", 0),
        ["-[[sources.permission_rules]]", '-pattern = "drafts/**"', '-permission = "read_write" # rw'],
    ),
    (
        lambda policy: sourceedit.set_default_level(policy, "docs", Permission.NONE),
        ['+default_permission = "none"'],
    ),
    (lambda policy: agentedit.add_agent(policy, "new"), ["+[agents.new]", "+tools = []", "+sources = []", "+"]),
    (
        lambda policy: agentedit.remove_agent(policy, "researcher"),
        ["-[agents.researcher]", "-tools = []", '-sources = ["docs"]'],
    ),
    (
        lambda policy: agentedit.rename_agent(policy, "archivist", "filer"),
        [
            "-[agents.archivist]",
            "+[agents.filer]",
            "-[[agents.archivist.tool_rules]]",
            "+[[agents.filer.tool_rules]]",
            "-[[agents.archivist.tool_rules]]",
            "+[[agents.filer.tool_rules]]",
        ],
    ),
]


def changed(before: str, after: str) -> list[str]:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return [line for line in lines if not line.startswith("@@")]


@pytest.mark.parametrize(("make", "wanted"), EDITS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_edit_touches_only_its_own_lines(make: Callable[[Policy], Edit], wanted: list[str], ending: str) -> None:
    text = "\ufeff" + TEXT.replace("\n", ending)
    policy = policy_of(text)
    edited = apply(policy, make(policy))

    patched = patch_text(text, policy, edited)

    assert sorted(changed(text, patched)) == sorted(wanted)
    assert policy_of(patched) == edited
    assert patched.startswith("\ufeff# The policy")
    assert patched.count("\n") == patched.count(ending)


INVERTIBLE = [EDITS[i][0] for i in (3, 4, 5, 7, 8, 9, 10, 13, 15)]


@pytest.mark.parametrize("make", INVERTIBLE)
def test_an_edit_taken_back_restores_every_byte(make: Callable[[Policy], Edit]) -> None:
    policy = policy_of(TEXT)
    edited = apply(policy, make(policy))

    assert patch_text(patch_text(TEXT, policy, edited), edited, policy) == TEXT


def test_a_moved_rule_takes_its_words_along() -> None:
    policy = policy_of(TEXT)
    edited = apply(policy, sourceedit.move_rule(policy, "docs", 0, 1))

    patched = patch_text(TEXT, policy, edited)

    assert (
        '# drafts first\n[[sources.permission_rules]]\npattern = "drafts/**"\npermission = "read_write" # rw\n'
        in patched
    )
    assert patched.index("secret/**") < patched.index("drafts/**")
    assert patch_text(patched, edited, policy) == TEXT


def test_a_duration_keeps_the_authors_spelling() -> None:
    policy = policy_of(TEXT)
    agent = policy.agents["archivist"]
    slower = replace(agent.tool_rules[1].rule_type, seconds=2.25)
    rules = (agent.tool_rules[0], replace(agent.tool_rules[1], rule_type=slower))

    patched = patch_text(TEXT, policy, policy.with_agent(replace(agent, tool_rules=rules)))

    assert changed(TEXT, patched) == [
        "-rule_type = { Cooldown = { secs = 1, nanos = 500000000 } }",
        "+rule_type = { Cooldown = { secs = 2, nanos = 250000000 } }",
    ]


def test_a_text_that_says_something_else_is_never_patched() -> None:
    policy = policy_of(TEXT)
    edited = apply(policy, agentedit.add_agent(policy, "new"))

    with pytest.raises(WeMustFix):
        patch_text(TEXT.replace("Files notes", "Loses notes"), policy, edited)


def test_a_file_without_a_last_line_break_takes_an_agent() -> None:
    text = "gatewright = 1"
    policy = policy_of(text)

    patched = patch_text(text, policy, apply(policy, agentedit.add_agent(policy, "new")))

    assert patched == "gatewright = 1\n\n[agents.new]\ntools = []\nsources = []"


PATTERN = """\
system_prompt = "you file"
tools = []

[[tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "append"] }
priority = 0

[data_sources.notes]
type = "file"
paths = ["./notes"]

[[data_sources.notes.permission_rules]]
pattern = "drafts/**"
"""


def test_a_file_in_patterns_shape_is_edited_in_that_shape() -> None:
    policy = policy_of(PATTERN, "scribe.toml")
    agent = policy.agents["scribe"]
    edited = policy.with_agent(replace(agent, tools=("file",)))
    edited = apply(edited, sourceedit.set_level(edited, "notes", 0, Permission.APPEND))
    edited = apply(edited, rights.tick_operations(edited, FACTS, "scribe", "file", ["append"], on=False))

    patched = patch_text(PATTERN, policy, edited)

    assert policy_of(patched, "scribe.toml") == edited
    assert changed(PATTERN, patched) == [
        "-tools = []",
        '+tools = ["file"]',
        '-rule_type = { AllowedOperations = ["read", "append"] }',
        '+rule_type = { AllowedOperations = ["read"] }',
        '+permission = "append"',
    ]


def test_what_patterns_shape_cannot_say_is_refused() -> None:
    policy = policy_of(PATTERN, "scribe.toml")

    with pytest.raises(NotSupported, match="an empty list means all"):
        patch_text(PATTERN, policy, policy.with_agent(replace(policy.agents["scribe"], tools=())))
    with pytest.raises(NotSupported, match="one agent"):
        patch_text(PATTERN, policy, apply(policy, agentedit.add_agent(policy, "new")))


def test_a_rename_and_a_move_at_once_are_both_written() -> None:
    policy = policy_of(TEXT)
    agent = policy.agents["archivist"]
    moved = replace(agent, agent_id="filer", tool_rules=agent.tool_rules[::-1])
    edited = replace(policy, agents={"filer": moved, "researcher": policy.agents["researcher"]})

    patched = patch_text(TEXT, policy, edited)

    assert policy_of(patched) == edited
    assert "# about the pause\n[[agents.filer.tool_rules]]\n" in patched


IMPLICIT = """\
gatewright = 1

# the only rule
[[agents.a.tool_rules]]
tool_name = "file"
rule_type = "ExitLoop"
"""


def test_an_agent_that_stands_in_its_rules_only_stays_when_they_go() -> None:
    policy = policy_of(IMPLICIT)
    edited = policy.with_agent(replace(policy.agents["a"], tool_rules=()))

    assert policy_of(patch_text(IMPLICIT, policy, edited)) == edited


def test_an_agent_that_stands_in_its_rules_only_gets_a_table_for_its_keys() -> None:
    policy = policy_of(IMPLICIT)
    edited = policy.with_agent(replace(policy.agents["a"], tools=("calc",), description="d"))

    patched = patch_text(IMPLICIT, policy, edited)

    table = '[agents.a]\ndescription = "d"\ntools = ["calc"]\n'
    assert patched == IMPLICIT.replace("# the only", f"{table}\n# the only")
