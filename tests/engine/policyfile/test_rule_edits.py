"""Limits, constraints, capabilities and approvals edited one by one: what each edit does to an author's file."""

from collections.abc import Callable
from difflib import unified_diff

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import EditRefused
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.agentedit import (
    Granted,
    change_capability,
    grant,
    remove_approval,
    rename_approval,
    revoke,
    set_approval,
)
from gatewright.policy.capability import Capability, EnvRead, Exec, FsRead, NetRead
from gatewright.policy.document import Policy
from gatewright.policy.edit import Edit, apply, inverse
from gatewright.policy.rights import tick_tool
from gatewright.policy.rule import Cooldown, MaxCalls, RateLimit, RequiresConsent
from gatewright.policy.ruleedit import (
    Limit,
    RulePosition,
    bind_rule,
    change_constraint,
    change_rule,
    remove_constraint,
    remove_rule,
    set_constraint,
    set_limit,
)
from gatewright.policy.verdict import Verdict
from gatewright.policyfile import patch_text, render_policy
from tests.engine.policyfile.catalog import FACTS, FILE_OPERATIONS, policies, policy_of

TEXT = """\
gatewright = 1

# --- archivist ---
[agents.archivist]
tools = ["file", "calc"]
approvals = { "file.delete" = "ask", read_only="allow" } # care
capabilities = [
  "ClockRead", # for the date
  { NetRead = { allowlist = ["a.org"] } }, # the net
]

# not more
[[agents.archivist.tool_rules]]
tool_name = "file" # the tool
rule_type = { MaxCalls = 40 } # forty
priority = 7
id = "calls"

[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { RateLimit = { calls = 30, per = "1m" } } # slowly
conditions = ["operation:read"]

# where to
[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { ArgumentConstraints = { path = { pattern = '^notes/' }, content = { maxLength = 9 } } } # keep

[[agents.archivist.tool_rules]]
tool_name = "*"
rule_type = { Cooldown = "100ms" }

# --- reader ---
[agents.reader]
tools = ["file"]

[agents.reader.approvals]
# tiers
privileged = "deny" # never
# end
"""


def standing(policy: Policy, index: int, agent_id: str = "archivist") -> RulePosition:
    return RulePosition(agent_id, index, policy.agents[agent_id].tool_rules[index])


def granted(policy: Policy, index: int) -> Granted:
    return Granted("archivist", index, policy.agents["archivist"].capabilities[index])


def limit(kind: Limit, *operations: str, agent: str = "archivist") -> Callable[[Policy], Edit]:
    return lambda policy: set_limit(policy, FACTS, agent, "file", kind, operations or None)


NOTES, NINE = "path = { pattern = '^notes/' }", "content = { maxLength = 9 }"


def constrained(*fields: str, sign: str = "+") -> str:
    return f"{sign}rule_type = {{ ArgumentConstraints = {{ {', '.join(fields)} }} }} # keep"


WAS = constrained(NOTES, NINE, sign="-")
EDITS: list[tuple[Callable[[Policy], Edit], str, list[str]]] = [
    (
        limit(MaxCalls(5)),
        "limit `file` to 5 calls for `archivist`",
        ["-rule_type = { MaxCalls = 40 } # forty", "+rule_type = { MaxCalls = 5 } # forty"],
    ),
    (
        limit(MaxCalls(1), "append", "save"),
        "limit `file.save`, `file.append` to 1 call for `archivist`",
        [
            "+[[agents.archivist.tool_rules]]",
            '+tool_name = "file"',
            "+rule_type = { MaxCalls = 1 }",
            '+conditions = ["operation:save", "operation:append"]',
            "+",
        ],
    ),
    (
        limit(RateLimit(30, 120.0), "read"),
        "limit `file.read` to 30 calls per 2 min for `archivist`",
        [
            '-rule_type = { RateLimit = { calls = 30, per = "1m" } } # slowly',
            '+rule_type = { RateLimit = { calls = 30, per = "2m" } } # slowly',
        ],
    ),
    (
        limit(Cooldown(1.5), agent="reader"),
        "pause 1.5 s between calls of `file` for `reader`",
        ["+", "+[[agents.reader.tool_rules]]", '+tool_name = "file"', '+rule_type = { Cooldown = "1.5s" }'],
    ),
    (
        lambda policy: change_rule(policy, standing(policy, 0), MaxCalls(7)),
        "limit `file` to 7 calls for `archivist`",
        ["-rule_type = { MaxCalls = 40 } # forty", "+rule_type = { MaxCalls = 7 } # forty"],
    ),
    (
        lambda policy: bind_rule(policy, FACTS, standing(policy, 1), ("list", "read")),
        "rate of `archivist` is for `file.read`, `file.list`",
        ['-conditions = ["operation:read"]', '+conditions = ["operation:read", "operation:list"]'],
    ),
    (
        lambda policy: bind_rule(policy, FACTS, standing(policy, 1), None),
        "rate of `archivist` is for all operations of `file`",
        ['-conditions = ["operation:read"]'],
    ),
    (
        lambda policy: bind_rule(policy, FACTS, standing(policy, 2), ("append",), "content"),
        "constraint of `content` of `archivist` is for `file.append`",
        [
            WAS,
            constrained(NOTES),
            "+",
            "+[[agents.archivist.tool_rules]]",
            '+tool_name = "file"',
            "+rule_type = { ArgumentConstraints = { content = { maxLength = 9 } } }",
            '+conditions = ["operation:append"]',
        ],
    ),
    (
        lambda policy: remove_rule(policy, standing(policy, 1)),
        "remove the rate of `file.read` for `archivist`",
        [
            "-[[agents.archivist.tool_rules]]",
            '-tool_name = "file"',
            '-rule_type = { RateLimit = { calls = 30, per = "1m" } } # slowly',
            '-conditions = ["operation:read"]',
            "-",
        ],
    ),
    (
        lambda policy: change_constraint(policy, FACTS, standing(policy, 2), "path", "path", {"pattern": "^drafts/"}),
        "constrain `path` of `file` for `archivist`",
        [
            WAS,
            constrained('path = { pattern = "^drafts/" }', NINE),
        ],
    ),
    (
        lambda policy: set_constraint(policy, FACTS, "archivist", "file", "source", {"const": "docs"}),
        "constrain `source` of `file` for `archivist`",
        [
            WAS,
            constrained(NOTES, NINE, 'source = { const = "docs" }'),
        ],
    ),
    (
        lambda policy: change_constraint(policy, FACTS, standing(policy, 2), "content", "content", {"maxLength": 5}),
        "constrain `content` of `file` for `archivist`",
        [
            WAS,
            constrained(NOTES, "content = { maxLength = 5 }"),
        ],
    ),
    (
        lambda policy: remove_constraint(policy, standing(policy, 2), "path"),
        "remove the constraint of `path` of `file` for `archivist`",
        [
            WAS,
            constrained(NINE),
        ],
    ),
    (
        lambda policy: set_constraint(policy, FACTS, "archivist", "file", "source", None, required=True),
        "require `source` of `file` for `archivist`",
        [WAS, constrained(NOTES, NINE, 'required = ["source"]')],
    ),
    (
        lambda policy: change_constraint(
            policy, FACTS, standing(policy, 2), "path", "path", {"pattern": "^notes/"}, required=True
        ),
        "constrain `path` of `file` for `archivist`",
        [WAS, constrained(NOTES, NINE, 'required = ["path"]')],
    ),
    (
        lambda policy: grant(policy, "archivist", NetRead(("b.org",))),
        "widen `NetRead` of `archivist`",
        [
            '-  { NetRead = { allowlist = ["a.org"] } }, # the net',
            '+  { NetRead = { allowlist = ["a.org", "b.org"] } }, # the net',
        ],
    ),
    (
        lambda policy: grant(policy, "archivist", Exec(2.0)),
        "grant `Exec` to `archivist`",
        ['+  { Exec = { cpu_limit = "2s" } },'],
    ),
    (
        lambda policy: grant(policy, "reader", FsRead(("notes",))),
        "grant `FsRead` to `reader`",
        ['+capabilities = [{ FsRead = { prefixes = ["notes"] } }]'],
    ),
    (
        lambda policy: change_capability(policy, granted(policy, 1), NetRead(("*.c.org",))),
        "change `NetRead` of `archivist`",
        [
            '-  { NetRead = { allowlist = ["a.org"] } }, # the net',
            '+  { NetRead = { allowlist = ["*.c.org"] } }, # the net',
        ],
    ),
    (
        lambda policy: revoke(policy, granted(policy, 0)),
        "revoke `ClockRead` of `archivist`",
        ['-  "ClockRead", # for the date'],
    ),
    (
        lambda policy: set_approval(policy, FACTS, "archivist", "read_only", Verdict.DENY),
        "turn off `read_only` for `archivist` by approvals",
        [
            '-approvals = { "file.delete" = "ask", read_only="allow" } # care',
            '+approvals = { "file.delete" = "ask", read_only="deny" } # care',
        ],
    ),
    (
        lambda policy: set_approval(policy, FACTS, "reader", "file.save", Verdict.ASK),
        "ask first for `file.save` for `reader` by approvals",
        ['+"file.save" = "ask"'],
    ),
    (
        lambda policy: remove_approval(policy, "archivist", "file.delete"),
        "remove the approvals key `file.delete` of `archivist`",
        [
            '-approvals = { "file.delete" = "ask", read_only="allow" } # care',
            '+approvals = { read_only="allow" } # care',
        ],
    ),
]


def changed_lines(before: str, after: str) -> list[str]:
    lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize(("make", "name", "wanted"), EDITS, ids=[name for _, name, _ in EDITS])
def test_an_edit_touches_only_its_own_lines(make: Callable[[Policy], Edit], name: str, wanted: list[str]) -> None:
    policy = policy_of(TEXT)
    edit = make(policy)
    after = apply(policy, edit)

    text = patch_text(TEXT, policy, after)

    assert edit.name == name
    assert changed_lines(TEXT, text) == wanted
    assert policy_of(text) == after
    assert apply(after, inverse(edit)) == policy
    assert patch_text(TEXT, policy, apply(after, inverse(edit))) == TEXT


def test_a_renamed_approvals_key_keeps_its_verdict_and_the_rest() -> None:
    policy = policy_of(TEXT)
    after = apply(policy, rename_approval(policy, FACTS, "archivist", "file.delete", "calc"))

    assert dict(after.agents["archivist"].approvals) == {"calc": Verdict.ASK, "read_only": Verdict.ALLOW}
    assert policy_of(patch_text(TEXT, policy, after)) == after


def test_constraints_written_as_tables_keep_the_comments_of_the_others() -> None:
    text = (
        'gatewright = 1\n[agents.a]\ntools = ["file"]\n[[agents.a.tool_rules]]\ntool_name = "file"\n'
        "[agents.a.tool_rules.rule_type.ArgumentConstraints]\n# notes only\n"
        "path = { pattern = '^notes/' } # kept\ncontent = { maxLength = 9 }\n"
    )
    policy = policy_of(text)
    change = change_constraint(policy, FACTS, standing(policy, 0, "a"), "content", "content", {"maxLength": 5})
    after = apply(policy, change)

    patched = patch_text(text, policy, after)

    assert changed_lines(text, patched) == ["-content = { maxLength = 9 }", "+content = { maxLength = 5 }"]
    assert policy_of(patched) == after


ASKING = """\
gatewright = 1
[agents.a]
tools = ["file"]
[[agents.a.tool_rules]]
tool_name = "file"
[agents.a.tool_rules.rule_type.ArgumentConstraints]
required = [
  "path", # where to
  # from where
  "source",
] # both
path = { pattern = '^notes/' } # kept
"""


ASKED: list[tuple[Callable[[Policy], Edit], list[str]]] = [
    (
        lambda policy: change_constraint(
            policy, FACTS, standing(policy, 0, "a"), "path", "path", {"pattern": "^notes/"}
        ),
        ['-  "path", # where to'],
    ),
    (
        lambda policy: change_constraint(policy, FACTS, standing(policy, 0, "a"), "path", "path", None, required=True),
        ["-path = { pattern = '^notes/' } # kept"],
    ),
    (
        lambda policy: set_constraint(policy, FACTS, "a", "file", "content", {"maxLength": 5}, required=True),
        ['+  "content",', "+content = { maxLength = 5 }"],
    ),
    (
        lambda policy: change_constraint(
            policy, FACTS, standing(policy, 0, "a"), "source", "content", {"maxLength": 5}, required=True
        ),
        ["-  # from where", '-  "source",', '+  "content",', "+content = { maxLength = 5 }"],
    ),
    (
        lambda policy: remove_constraint(policy, standing(policy, 0, "a"), "source"),
        ["-  # from where", '-  "source",'],
    ),
]


@pytest.mark.parametrize(("make", "wanted"), ASKED)
def test_arguments_that_must_be_given_are_edited_one_by_one_with_the_comments_kept(
    make: Callable[[Policy], Edit], wanted: list[str]
) -> None:
    policy = policy_of(ASKING)
    after = apply(policy, make(policy))

    text = patch_text(ASKING, policy, after)

    assert changed_lines(ASKING, text) == wanted
    assert policy_of(text) == after
    assert policy_of(patch_text(text, after, policy)) == policy


DOTTED = """\
gatewright = 1
agents.a.tools = ["file", # one
  "calc"  # two
  # three
]
agents.a.tool_rules = [
  # first
  { tool_name = "file", rule_type.MaxCalls = 3 }, # max
  { tool_name = "file", rule_type.ArgumentConstraints.path.pattern = "^x", priority = 3 } # x
]
"""


TO_INLINE: list[tuple[Callable[[Policy], Edit], list[str]]] = [
    (
        lambda policy: set_constraint(policy, FACTS, "a", "file", "content", {"maxLength": 9}),
        [
            '-  { tool_name = "file", rule_type.ArgumentConstraints.path.pattern = "^x", priority = 3 } # x',
            (
                '+  { tool_name = "file", rule_type = { ArgumentConstraints = { path = { pattern = "^x" }, '
                "content = { maxLength = 9 } } }, priority = 3 } # x"
            ),
        ],
    ),
    (
        lambda policy: bind_rule(policy, FACTS, standing(policy, 0, "a"), ("read",)),
        [
            '-  { tool_name = "file", rule_type.MaxCalls = 3 }, # max',
            '+  { tool_name = "file", rule_type = { MaxCalls = 3 }, conditions = ["operation:read"] }, # max',
        ],
    ),
    (
        lambda policy: change_rule(policy, standing(policy, 0, "a"), MaxCalls(4)),
        [
            '-  { tool_name = "file", rule_type.MaxCalls = 3 }, # max',
            '+  { tool_name = "file", rule_type.MaxCalls = 4 }, # max',
        ],
    ),
    (lambda policy: tick_tool(policy, FACTS, "a", "calc", on=False), ['-  "calc"  # two']),
]


@pytest.mark.parametrize(("make", "wanted"), TO_INLINE)
def test_inline_tables_with_dotted_keys_and_comments_in_lists_can_be_edited(
    make: Callable[[Policy], Edit], wanted: list[str]
) -> None:
    policy = policy_of(DOTTED)
    after = apply(policy, make(policy))

    text = patch_text(DOTTED, policy, after)

    assert changed_lines(DOTTED, text) == wanted
    assert policy_of(text) == after


PROPERTY = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
_LIMITS: st.SearchStrategy[Limit] = st.one_of(
    st.builds(MaxCalls, st.integers(1, 999)),
    st.builds(Cooldown, st.integers(1, 99_999).map(lambda ms: ms / 1000)),
    st.builds(RateLimit, st.integers(1, 999), st.integers(1, 9999).map(float)),
    st.builds(RequiresConsent, st.none() | st.just("scope")),
)
_OPERATIONS = st.none() | st.lists(st.sampled_from(FILE_OPERATIONS), min_size=1, unique=True).map(tuple)
_GRANTS: st.SearchStrategy[Capability] = st.sampled_from([NetRead(("x.org",)), FsRead(("a", "b")), EnvRead(("LANG",))])


def _constrain(policy: Policy, agent_id: str, schema: JsonValue, operations: tuple[str, ...] | None) -> Edit:
    """Of the path, which may be constrained already."""
    try:
        return set_constraint(policy, FACTS, agent_id, "file", "path", schema, operations)
    except EditRefused:
        return set_limit(policy, FACTS, agent_id, "file", MaxCalls(1), operations)


@st.composite
def some_edit(draw: st.DrawFn, policy: Policy) -> Edit:
    """One of this module's edits, on whatever the policy has."""
    agent = draw(st.sampled_from(list(policy.agents.values())))
    makers: list[Callable[[], Edit]] = [
        lambda: set_limit(policy, FACTS, agent.agent_id, "file", draw(_LIMITS), draw(_OPERATIONS)),
        lambda: _constrain(policy, agent.agent_id, {"maxLength": draw(st.integers(1, 9))}, draw(_OPERATIONS)),
        lambda: set_approval(policy, FACTS, agent.agent_id, "file.read", draw(st.sampled_from(Verdict))),
    ]
    if agent.tool_rules:
        index = draw(st.integers(0, len(agent.tool_rules) - 1))
        makers.append(lambda: remove_rule(policy, RulePosition(agent.agent_id, index, agent.tool_rules[index])))
    if agent.capabilities:
        makers.append(lambda: revoke(policy, Granted(agent.agent_id, 0, agent.capabilities[0])))
    else:
        makers.append(lambda: grant(policy, agent.agent_id, draw(_GRANTS)))
    if agent.approvals:
        makers.append(lambda: remove_approval(policy, agent.agent_id, next(iter(agent.approvals))))
    return draw(st.sampled_from(makers))()


@PROPERTY
@given(st.data())
def test_every_edit_is_undone_by_its_inverse_and_read_back_as_it_was_made(data: st.DataObject) -> None:
    before = data.draw(policies().filter(lambda policy: bool(policy.agents)))
    edit = data.draw(some_edit(before))
    text = render_policy(before)

    after = apply(before, edit)

    assert apply(after, inverse(edit)) == before
    assert policy_of(patch_text(text, before, after)) == after
