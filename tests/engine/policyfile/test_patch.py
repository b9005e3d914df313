"""What an edit of the app does to an author's file, line by line."""

from collections.abc import Callable
from dataclasses import replace
from difflib import unified_diff
from typing import Any

import pytest

from gatewright.base.errors import NotSupported, WeMustFix
from gatewright.policy import agentedit, rights, sourceedit
from gatewright.policy.capability import AdvancedEdit, Capability, EnvRead, Exec, FsRead, NetRead
from gatewright.policy.document import Catalog, CatalogType, Confine, PermissionRule, PlaceUse, Policy, ToolSettings
from gatewright.policy.edit import Edit, ToolSettingsChange, apply, inverse
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    Cooldown,
    ExclusiveGroups,
    MaxCalls,
    PolicyRule,
    RequiresConsent,
    RuleKind,
    ToolRule,
)
from gatewright.policy.verdict import Permission, SafetyTier, Verdict
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
            '+rule_type = { AllowedOperations = ["read"] }',
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
        [
            "-# drafts first",
            "-[[sources.permission_rules]]",
            '-pattern = "drafts/**"',
            '-permission = "read_write" # rw',
            "-",
        ],
    ),
    (
        lambda policy: sourceedit.set_default_level(policy, "docs", Permission.NONE),
        ['+default_permission = "none"'],
    ),
    (lambda policy: agentedit.add_agent(policy, "new"), ["+[agents.new]", "+tools = []", "+sources = []", "+"]),
    (
        lambda policy: agentedit.remove_agent(policy, "researcher"),
        ["-# --- researcher ---", "-[agents.researcher]", "-tools = []", '-sources = ["docs"]', "-"],
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


LANGUAGE = """\
gatewright = 1

[agents.a]
tools = ["file"]
capabilities = [
  { NetRead = { allowlist = ["a.org", "*.b.org"] } }, # the net
  "ClockRead",
  { Exec = { cpu_limit = 2, mem_limit = 4096 } },
]

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { ArgumentConstraints = { path = { pattern = "^notes/" } } } # notes only
conditions = ["operation:read", "operation:save"] # both
priority = 7

[agents.b]
tools = []
[[agents.b.capabilities]]
NetRead = { allowlist = ["a.org"] } # one

[[agents.b.capabilities]]
ClockRead = {}

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

[[sources.required_tools]]
tool_name = "file"
rule_type = { MaxCalls = 3 } # three

[tools.file]
safety_tier = "privileged" # careful
operation_tiers = { read = "read_only", save = "side_effecting" }

[policy]
default = "ask" # by default

# nobody deletes
[[policy.rules]]
name = "no deletes"
effect = "deny"
agents = ["a", "b"]
operations = ["delete"]
when = { properties = { path = { not = { pattern = "^scratch/" } } } } # outside
"""


def _agent(policy: Policy, agent_id: str, **changes: object) -> Policy:
    return policy.with_agent(replace(policy.agents[agent_id], **changes))


def _rule_of_a(policy: Policy, **changes: object) -> Policy:
    return _agent(policy, "a", tool_rules=(replace(policy.agents["a"].tool_rules[0], **changes),))


def _capability(policy: Policy, agent_id: str, index: int, capability: Capability | None) -> Policy:
    held = list(policy.agents[agent_id].capabilities)
    held[index : index + 1] = [] if capability is None else [capability]
    return _agent(policy, agent_id, capabilities=tuple(held))


def _policy_rule(policy: Policy, **changes: object) -> Policy:
    return replace(policy, rules=(replace(policy.rules[0], **changes),))


def _settings(policy: Policy, **changes: object) -> Policy:
    return replace(policy, tools={"file": replace(policy.tools["file"], **changes)})


LANGUAGE_EDITS: list[tuple[str, Callable[[Policy], Policy], list[str]]] = [
    (
        "a host more",
        lambda policy: _capability(policy, "a", 0, NetRead(("a.org", "*.b.org", "c.org"))),
        [
            '-  { NetRead = { allowlist = ["a.org", "*.b.org"] } }, # the net',
            '+  { NetRead = { allowlist = ["a.org", "*.b.org", "c.org"] } }, # the net',
        ],
    ),
    ("no clock", lambda policy: _capability(policy, "a", 1, None), ['-  "ClockRead",']),
    (
        "more time, in the author's spelling",
        lambda policy: _capability(policy, "a", 2, Exec(180, 8192)),
        [
            "-  { Exec = { cpu_limit = 2, mem_limit = 4096 } },",
            "+  { Exec = { cpu_limit = 180, mem_limit = 8192 } },",
        ],
    ),
    (
        "another kind",
        lambda policy: _capability(policy, "a", 1, FsRead(("notes",))),
        ['-  "ClockRead",', '+  { FsRead = { prefixes = ["notes"] } },'],
    ),
    (
        "a capability more",
        lambda policy: _capability(policy, "a", 3, EnvRead(("LANG",))),
        ['+  { EnvRead = { vars = ["LANG"] } },'],
    ),
    (
        "a host in a table of its own",
        lambda policy: _capability(policy, "b", 0, NetRead(("a.org", "c.org"))),
        ['-NetRead = { allowlist = ["a.org"] } # one', '+NetRead = { allowlist = ["a.org", "c.org"] } # one'],
    ),
    (
        "a table more",
        lambda policy: _capability(policy, "b", 2, AdvancedEdit()),
        ["+[[agents.b.capabilities]]", "+AdvancedEdit = {}", "+"],
    ),
    (
        "a condition less",
        lambda policy: _rule_of_a(policy, conditions=("operation:save",)),
        ['-conditions = ["operation:read", "operation:save"] # both', '+conditions = ["operation:save"] # both'],
    ),
    (
        "no conditions",
        lambda policy: _rule_of_a(policy, conditions=()),
        ['-conditions = ["operation:read", "operation:save"] # both'],
    ),
    ("another priority", lambda policy: _rule_of_a(policy, priority=9), ["-priority = 7", "+priority = 9"]),
    (
        "another constraint",
        lambda policy: _rule_of_a(policy, rule_type=ArgumentConstraints({"path": {"maxLength": 9}})),
        [
            '-rule_type = { ArgumentConstraints = { path = { pattern = "^notes/" } } } # notes only',
            "+rule_type = { ArgumentConstraints = { path = { maxLength = 9 } } } # notes only",
        ],
    ),
    (
        "another limit of a source",
        lambda policy: replace(
            policy, sources=(replace(policy.sources[0], required_tools=(ToolRule("file", MaxCalls(4)),)),)
        ),
        ["-rule_type = { MaxCalls = 3 } # three", "+rule_type = { MaxCalls = 4 } # three"],
    ),
    (
        "another tier of an operation",
        lambda policy: _settings(
            policy, operation_tiers={"read": SafetyTier.READ_ONLY, "save": SafetyTier.PRIVILEGED}, scrub=False
        ),
        [
            '-operation_tiers = { read = "read_only", save = "side_effecting" }',
            '+operation_tiers = { read = "read_only", save = "privileged" }',
            "+scrub = false",
        ],
    ),
    (
        "another default",
        lambda policy: replace(policy, default=Verdict.DENY),
        ['-default = "ask" # by default', '+default = "deny" # by default'],
    ),
    (
        "one agent less in a policy rule",
        lambda policy: _policy_rule(policy, agents=("a",), message="no"),
        ['-agents = ["a", "b"]', '+agents = ["a"]', '+message = "no"'],
    ),
    (
        "no policy rule",
        lambda policy: replace(policy, rules=()),
        [f"-{line}" for line in LANGUAGE.splitlines()[-8:]],
    ),
]


@pytest.mark.parametrize(
    ("make", "wanted"), [row[1:] for row in LANGUAGE_EDITS], ids=[row[0] for row in LANGUAGE_EDITS]
)
def test_an_edit_of_the_language_touches_only_its_own_lines(
    make: Callable[[Policy], Policy], wanted: list[str]
) -> None:
    policy = policy_of(LANGUAGE)
    edited = make(policy)

    patched = patch_text(LANGUAGE, policy, edited)

    assert policy_of(patched) == edited
    assert sorted(changed(LANGUAGE, patched)) == sorted(wanted)


HEAD_OF_A = 'gatewright = 1\n\n[agents.a]\ntools = ["file"]\n\n[[agents.a.tool_rules]]\ntool_name = "file"\n'
RULE_TABLE = "priority = 7\n[agents.a.tool_rules.rule_type"


@pytest.mark.parametrize(
    ("written", "kind", "wanted"),
    [
        ("rule_type = { MaxCalls = 3 } # why", Cooldown(5), 'rule_type = { Cooldown = "5s" } # why'),
        (
            'rule_type = { ExclusiveGroups = [["file", "calc"]] } # why',
            ExclusiveGroups((("file", "calc"), ("file", "block"))),
            'rule_type = { ExclusiveGroups = [["file", "calc"], ["file", "block"]] } # why',
        ),
        ('rule_type = {type="MaxCalls", value=3}', MaxCalls(4), 'rule_type = {type="MaxCalls", value=4}'),
        (
            'rule_type = { type = "MaxCalls", value = 3 }',
            Cooldown(5),
            'rule_type = { type = "Cooldown", value = "5s" }',
        ),
        (
            'rule_type = { type = "AllowedOperations", value = ["read", "save"] } # why',
            AllowedOperations(frozenset({"read"})),
            'rule_type = { type = "AllowedOperations", value = ["read"] } # why',
        ),
        ('rule_type = "ExitLoop" # why', MaxCalls(4), "rule_type = { MaxCalls = 4 } # why"),
        (
            'rule_type = { RequiresConsent = { scope = "x" } } # why',
            RequiresConsent("y"),
            'rule_type = { RequiresConsent = { scope = "y" } } # why',
        ),
        (f"{RULE_TABLE}]\nMaxCalls = 3 # three", MaxCalls(4), f"{RULE_TABLE}]\nMaxCalls = 4 # three"),
        (f"{RULE_TABLE}]\nMaxCalls = 3", Cooldown(4), 'priority = 7\nrule_type = { Cooldown = "4s" }'),
        (
            f'{RULE_TABLE}.RequiresConsent]\nscope = "x"',
            RequiresConsent("y"),
            f'{RULE_TABLE}.RequiresConsent]\nscope = "y"',
        ),
        (
            f'{RULE_TABLE}.ArgumentConstraints.path]\npattern = "^n/"',
            ArgumentConstraints({"content": {"maxLength": 9}}),
            "priority = 7\nrule_type = { ArgumentConstraints = { content = { maxLength = 9 } } }",
        ),
    ],
)
def test_kind_and_value_of_a_rule_change_in_whatever_shape_they_stand(
    written: str, kind: RuleKind, wanted: str
) -> None:
    text = f"{HEAD_OF_A}{written}\n"
    policy = policy_of(text)
    edited = _rule_of_a(policy, rule_type=kind)

    patched = patch_text(text, policy, edited)

    assert policy_of(patched) == edited
    assert patched.replace("\n\n", "\n") == f"{HEAD_OF_A}{wanted}\n".replace("\n\n", "\n")


def test_a_new_agent_and_a_new_source_carry_everything() -> None:
    policy = policy_of(LANGUAGE)
    agent = replace(policy.agents["a"], agent_id="c")
    source = replace(policy.sources[0], source_id="more")
    edited = replace(policy.with_agent(agent), sources=(*policy.sources, source))

    patched = patch_text(LANGUAGE, policy, edited)

    assert policy_of(patched) == edited
    assert all(line.startswith("+") for line in changed(LANGUAGE, patched))


def test_what_patterns_shape_has_no_place_for_is_refused() -> None:
    policy = policy_of(PATTERN, "scribe.toml")
    ruled = replace(policy, rules=(PolicyRule("r", Verdict.DENY),))
    source = replace(policy.sources[0], required_tools=(ToolRule("file", MaxCalls(4)),))

    with pytest.raises(NotSupported, match="capabilities"):
        patch_text(PATTERN, policy, _agent(policy, "scribe", capabilities=(AdvancedEdit(),)))
    with pytest.raises(NotSupported, match="policy rules"):
        patch_text(PATTERN, policy, ruled)
    with pytest.raises(NotSupported, match="required tools"):
        patch_text(PATTERN, policy, replace(policy, sources=(source,)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{ WasmExec = { fuel = 1 } }", "{ WasmExec = { memory = 1073741824 } }"),
        ("{ Exec = { mem_limit = 1142 } }", '{ Exec = { cpu_limit = "30s" } }'),
    ],
)
def test_a_capability_whose_limits_go_and_come_changes_in_its_place(before: str, after: str) -> None:
    text = f"gatewright = 1\n\n[agents.a]  # runs\ntools = []\ncapabilities = [ {before}, 'ClockRead' ]\n"
    wanted = text.replace(before, after)

    assert policy_of(patch_text(text, policy_of(text), policy_of(wanted))) == policy_of(wanted)
    assert policy_of(patch_text(wanted, policy_of(wanted), policy_of(text))) == policy_of(text)


def test_a_key_of_the_last_required_tool_and_a_new_level_of_its_source_come_together() -> None:
    text = (
        "gatewright = 1\n\n[[sources]]\nid = 'docs'\ntype = 'file'\nbase_path = 'docs'\n\n"
        "[[sources.required_tools]]\ntool_name = 'file'\nrule_type = { MaxCalls = 3 }\n"
    )
    before = policy_of(text)
    (source,) = before.sources
    rules = (replace(source.required_tools[0], metadata={"why": "slow"}),)
    levels = (PermissionRule("a/", Permission.NONE),)
    after = replace(before, sources=(replace(source, required_tools=rules, permission_rules=levels),))

    assert policy_of(patch_text(text, before, after)) == after


STRANGERS = """\
gatewright = 1

# what the program itself runs
[[catalogs]]
id = "cal"   # ours
type = "host"
manifest = "calendar.json" # written by it

[[catalogs]]
id = "git"
type = "mcp"
command = "mcp-server-git"
args = [
  "--repository", # the checkout
  ".",
]
env = ["HOME", "PATH"] # nothing else

[agents.a]
tools = ["box"]

# the hub says nothing of its operations
[tools."hub.run@1"] # the old one
operation_field = "action" # found by hand
operations = [
  "go", # forward
  "stop",
]
timeout = 5

[tools.box]
scrub = false
"""


def _tool(name: str, **changes: object) -> Callable[[Policy], Policy]:
    """An edit of the settings of one tool, as the app makes it."""

    def make(policy: Policy) -> Policy:
        before = policy.tools.get(name)
        after = replace(before or ToolSettings(), **changes) if changes else None
        return apply(policy, Edit("t", (ToolSettingsChange(name, before, after),)))

    return make


def _both(first: Callable[[Policy], Policy], second: Callable[[Policy], Policy]) -> Callable[[Policy], Policy]:
    return lambda policy: second(first(policy))


def _catalogs(change: Callable[[tuple[Catalog, ...]], tuple[Catalog, ...]]) -> Callable[[Policy], Policy]:
    return lambda policy: replace(policy, catalogs=change(policy.catalogs))


def _server(**changes: Any) -> Callable[[Policy], Policy]:
    """Another server in the place of the second catalog."""
    return _catalogs(lambda rows: (rows[0], replace(rows[1], **changes)))


STRANGER_EDITS: list[tuple[str, Callable[[Policy], Policy], list[str]]] = [
    ("an operation more", _tool("hub.run@1", operations=("go", "stop", "wait")), ['+  "wait",']),
    ("an operation less", _tool("hub.run@1", operations=("stop",)), ['-  "go", # forward']),
    (
        "another field",
        _tool("hub.run@1", operation_field="note"),
        ['-operation_field = "action" # found by hand', '+operation_field = "note" # found by hand'],
    ),
    ("no field named", _tool("hub.run@1", operation_field=None), ['-operation_field = "action" # found by hand']),
    (
        "no operations at all",
        _tool("hub.run@1", operation_field="", operations=None),
        [
            '-operation_field = "action" # found by hand',
            '+operation_field = "" # found by hand',
            "-operations = [",
            '-  "go", # forward',
            '-  "stop",',
            "-]",
        ],
    ),
    (
        "a declaration more",
        _tool("box", operation_field="op", operations=("get", "put")),
        ['+operation_field = "op"', '+operations = ["get", "put"]'],
    ),
    (
        "a tool more, its name quoted",
        _tool("hub.run@2", operations=("x", 'y"z')),
        ["+", '+[tools."hub.run@2"]', '+operations = ["x", "y\\"z"]'],
    ),
    ("a tool less", _tool("box"), ["-", "-[tools.box]", "-scrub = false"]),
    (
        "another manifest",
        _catalogs(lambda rows: (replace(rows[0], manifest="m.json", trusted=True), rows[1])),
        [
            '-manifest = "calendar.json" # written by it',
            '+manifest = "m.json" # written by it',
            "+trusted = true",
        ],
    ),
    (
        "a catalog more",
        _catalogs(lambda rows: (*rows, Catalog("two", CatalogType.HOST, "two.json"))),
        ["+[[catalogs]]", '+id = "two"', '+type = "host"', '+manifest = "two.json"', "+"],
    ),
    (
        "another argument and one variable less",
        _server(args=("--repository", ".", "-v"), env=("HOME",)),
        ['+  "-v",', '-env = ["HOME", "PATH"] # nothing else', '+env = ["HOME"] # nothing else'],
    ),
    (
        "an address instead of a command",
        _server(command=None, args=(), env=(), url="https://h/mcp", headers_env={"X-Key": "HUB_KEY"}, prefix="git"),
        [
            '-command = "mcp-server-git"',
            "-args = [",
            '-  "--repository", # the checkout',
            '-  ".",',
            "-]",
            '-env = ["HOME", "PATH"] # nothing else',
            '+url = "https://h/mcp"',
            '+headers_env = { X-Key = "HUB_KEY" }',
            '+prefix = "git"',
        ],
    ),
    ("places that were accepted", _server(places={"./x": PlaceUse.READ}), ['+places = { "./x" = "read" }']),
    ("no place, which was accepted", _server(places={}), ["+places = {}"]),
    ("a server that is not confined", _server(confine=Confine.NONE), ['+confine = "none"']),
    (
        "another id for the first catalog",
        _catalogs(lambda rows: (replace(rows[0], catalog_id="days"), rows[1])),
        ['-id = "cal"   # ours', '+id = "days"   # ours'],
    ),
    (
        "no catalog of the program",
        _catalogs(lambda rows: rows[1:]),
        [
            "-# what the program itself runs",
            "-[[catalogs]]",
            '-id = "cal"   # ours',
            '-type = "host"',
            '-manifest = "calendar.json" # written by it',
            "-",
        ],
    ),
]
_STRANGER_IDS = [row[0] for row in STRANGER_EDITS]


@pytest.mark.parametrize(("make", "wanted"), [row[1:] for row in STRANGER_EDITS], ids=_STRANGER_IDS)
def test_an_edit_of_a_declaration_or_a_catalog_touches_only_its_own_lines(
    make: Callable[[Policy], Policy], wanted: list[str]
) -> None:
    policy = policy_of(STRANGERS)
    edited = make(policy)

    patched = patch_text(STRANGERS, policy, edited)

    assert policy_of(patched) == edited
    assert sorted(changed(STRANGERS, patched)) == sorted(wanted)


@pytest.mark.parametrize("name", ["hub.run@2", "memo.deep", "file"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_settings_that_are_added_and_taken_back_leave_the_file_as_it_was(name: str, newline: str) -> None:
    text = STRANGERS.replace("\n", newline)
    policy = policy_of(text)
    edited = _tool(name, timeout_s=3.0, description="d")(policy)

    there = patch_text(text, policy, edited)

    assert there != text
    assert patch_text(there, edited, policy) == text


@pytest.mark.parametrize("make", [row[1] for row in STRANGER_EDITS[:8]], ids=_STRANGER_IDS[:8])
def test_an_edit_and_its_undo_before_a_save_leave_every_byte(make: Callable[[Policy], Policy]) -> None:
    policy = policy_of(STRANGERS)
    edited = make(policy)
    settings = [
        ToolSettingsChange(name, policy.tools.get(name), edited.tools.get(name))
        for name in {**policy.tools, **edited.tools}
        if policy.tools.get(name) != edited.tools.get(name)
    ]
    edit = Edit("e", tuple(settings))
    assert not edit.is_empty
    undone = apply(apply(policy, edit), inverse(edit))

    assert patch_text(STRANGERS, policy, undone) == STRANGERS


@pytest.mark.parametrize(
    "written",
    [
        "tools.box.scrub = false\ntools.file.scrub = false\n",
        "tools = { box = { scrub = false }, file = { scrub = false } }\n",
        "[tools]\nbox = { scrub = false }\nfile.scrub = false\n",
        "[tools]\n[tools.box]\nscrub = false\n[tools.file]\nscrub = false\n",
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        _tool("box", scrub=True),
        _tool("box", operations=("get", "put", "drop")),
        _tool("box"),
        _tool("hub.run@1", operation_field="mode"),
        _both(_tool("box"), _tool("hub.run@1", operation_field="mode")),
        _both(_tool("box"), _tool("file")),
    ],
    ids=["emptied", "declared", "gone", "new", "one-goes-one-comes", "all-gone"],
)
def test_settings_of_tools_are_edited_in_whatever_shape_they_stand(
    written: str, make: Callable[[Policy], Policy]
) -> None:
    text = f"gatewright = 1\n{written}"
    policy = policy_of(text)
    edited = make(policy)

    assert policy_of(patch_text(text, policy, edited)) == edited


def test_patterns_shape_has_no_place_for_a_catalog() -> None:
    policy = policy_of(PATTERN, "scribe.toml")

    with pytest.raises(NotSupported, match="catalogs"):
        patch_text(PATTERN, policy, replace(policy, catalogs=(Catalog("c", CatalogType.HOST, "m.json"),)))
