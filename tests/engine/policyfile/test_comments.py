"""Comments of the author: each stays with what it was written for, however the list around it changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.policy import agentedit, sourceedit
from gatewright.policy.capability import ClockRead, FsRead
from gatewright.policy.document import Agent, PermissionRule, Source
from gatewright.policy.edit import apply, inverse
from gatewright.policy.rule import AllowedOperations, ContinueLoop, Cooldown, MaxCalls, Periodic, PolicyRule, ToolRule
from gatewright.policy.verdict import Permission, Verdict
from gatewright.policyfile import patch_text
from tests.engine.policyfile.catalog import policy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gatewright.policy.document import Policy
    from gatewright.policy.edit import Edit

TEXT = """\
gatewright = 1

# the first agent
[agents.a]
tools = [
  # these write
  "file", # the main one
  # these do sums
  "calc",
  "box",
]
capabilities = [
  # what it may read
  { FsRead = { prefixes = ["notes"] } },
  # the time
  "ClockRead",
]

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["save", "load", "read"] }

# the same blocks
[[agents.a.tool_rules]]
tool_name = "memo"
rule_type = { AllowedOperations = ["put"] }

# of another program
[[agents.a.tool_rules]]
tool_name = "box"
rule_type = { AllowedOperations = ["get"] } # only that

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = "ContinueLoop"

# new here
[agents.b]
description = "a newcomer"
tools = []

# the papers
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
permission_rules = [
  # nobody
  { pattern = "secret/**", permission = "none" }, # at all
  # still warm
  { pattern = "drafts/**", permission = "read_write" },
  # the rest
  { pattern = "**", permission = "read_only" },
]

# no way back
[[policy.rules]]
name = "no deletes"
effect = "deny"
operations = ["delete"]

# slowly
[[policy.rules]]
name = "ask"
effect = "ask"
tools = ["calc"]
"""


def patched(change: Policy, policy: Policy, text: str = TEXT) -> str:
    written = patch_text(text, policy, change)
    assert policy_of(written) == change
    return written


def with_rules(policy: Policy, rules: Sequence[ToolRule]) -> Policy:
    return policy.with_agent(replace(policy.agents["a"], tool_rules=tuple(rules)))


def above(text: str, line: str) -> str:
    """The line directly above the only one that begins like that."""
    lines = text.splitlines()
    (at,) = (number for number, found in enumerate(lines) if found.strip().startswith(line))
    return lines[at - 1].strip()


def test_a_rule_that_goes_takes_its_comment_and_the_next_ones_keep_theirs() -> None:
    policy = policy_of(TEXT)
    first, _, calc, loop = policy.agents["a"].tool_rules
    changed = replace(calc, rule_type=AllowedOperations(frozenset({"get", "put"})))
    more = ToolRule("block", AllowedOperations(frozenset({"info"})))

    text = patched(with_rules(policy, (first, changed, loop, more)), policy)

    assert "# the same blocks" not in text
    assert '# of another program\n[[agents.a.tool_rules]]\ntool_name = "box"\n' in text
    assert '{ AllowedOperations = ["get", "put"] } # only that' in text
    assert text.count("tool_rules") == 4


def test_a_rule_in_the_place_of_another_one_does_not_get_its_comment() -> None:
    policy = policy_of(TEXT)
    first, _, calc, loop = policy.agents["a"].tool_rules

    text = patched(with_rules(policy, (first, ToolRule("block", MaxCalls(3)), calc, loop)), policy)

    assert "# the same blocks" not in text
    assert '\n\n[[agents.a.tool_rules]]\ntool_name = "block"\n' in text


def test_a_rule_that_moves_and_changes_takes_its_comment_along() -> None:
    policy = policy_of(TEXT)
    first, memo, calc, loop = policy.agents["a"].tool_rules
    changed = replace(memo, priority=7)

    text = patched(with_rules(policy, (calc, loop, changed, first)), policy)

    assert '# the same blocks\n[[agents.a.tool_rules]]\ntool_name = "memo"\n' in text
    assert '# of another program\n[[agents.a.tool_rules]]\ntool_name = "box"\n' in text


def test_allowed_operations_keep_the_order_of_the_file() -> None:
    policy = policy_of(TEXT)
    first, _, calc, loop = policy.agents["a"].tool_rules
    fewer = replace(first, rule_type=AllowedOperations(frozenset({"save", "read", "append"})))

    text = patched(with_rules(policy, (fewer, calc, loop)), policy)

    assert 'AllowedOperations = ["save", "read", "append"]' in text


def test_an_agent_that_goes_takes_its_comment_and_a_new_one_does_not_get_it() -> None:
    policy = policy_of(TEXT)
    new = Agent("c", tools=("calc",))

    text = patched(replace(policy, agents={"a": policy.agents["a"], "c": new}), policy)

    assert "# new here" not in text
    assert "# the papers\n[[sources]]" in text


def test_a_renamed_agent_keeps_its_comment() -> None:
    policy = policy_of(TEXT)
    renamed = replace(policy.agents["b"], agent_id="c", tools=("calc",))

    text = patched(replace(policy, agents={"a": policy.agents["a"], "c": renamed}), policy)

    assert "# new here\n[agents.c]\n" in text


def test_levels_in_a_list_keep_their_comments() -> None:
    policy = policy_of(TEXT)
    (docs,) = policy.sources
    secret, drafts, rest = docs.permission_rules
    wider = replace(drafts, permission=Permission.ADMIN)
    new = PermissionRule("x/**", Permission.APPEND)

    text = patched(replace(policy, sources=(replace(docs, permission_rules=(new, wider, rest, secret)),)), policy)

    assert above(text, '{ pattern = "x/**"') == "permission_rules = ["
    assert above(text, '{ pattern = "drafts/**"') == "# still warm"
    assert above(text, '{ pattern = "**"') == "# the rest"
    assert above(text, '{ pattern = "secret/**"') == "# nobody"
    assert '{ pattern = "secret/**", permission = "none" }, # at all\n' in text


def test_another_pattern_for_the_same_level_keeps_the_comment() -> None:
    policy = policy_of(TEXT)
    (docs,) = policy.sources
    secret, drafts, rest = docs.permission_rules
    rules = (secret, replace(drafts, pattern="drafts/*.md"), rest)

    text = patched(replace(policy, sources=(replace(docs, permission_rules=rules),)), policy)

    assert above(text, '{ pattern = "drafts/*.md"') == "# still warm"


def test_a_level_that_goes_takes_its_comment() -> None:
    policy = policy_of(TEXT)
    (docs,) = policy.sources
    rules = (docs.permission_rules[0], docs.permission_rules[2])

    text = patched(replace(policy, sources=(replace(docs, permission_rules=rules),)), policy)

    assert "# still warm" not in text
    assert above(text, '{ pattern = "**"') == "# the rest"


def test_a_word_in_the_place_of_another_one_does_not_get_what_is_said_beside_it() -> None:
    policy = policy_of(TEXT)
    tools = ("memo", "calc", "box")

    text = patched(policy.with_agent(replace(policy.agents["a"], tools=tools)), policy)

    assert "# the main one" not in text
    assert above(text, '"calc"') == "# these do sums"


@pytest.mark.parametrize(("tools", "gone"), [(("calc", "box"), "# these write"), (("file",), "# these do sums")])
def test_the_heading_of_words_goes_with_the_last_of_them(tools: tuple[str, ...], gone: str) -> None:
    policy = policy_of(TEXT)

    text = patched(policy.with_agent(replace(policy.agents["a"], tools=tools)), policy)

    assert gone not in text


def test_the_heading_of_words_stays_with_those_that_stay() -> None:
    policy = policy_of(TEXT)

    text = patched(policy.with_agent(replace(policy.agents["a"], tools=("file", "box"))), policy)

    assert above(text, '"box"') == "# these do sums"


def test_a_grant_that_goes_takes_its_comment() -> None:
    policy = policy_of(TEXT)

    text = patched(policy.with_agent(replace(policy.agents["a"], capabilities=(ClockRead(),))), policy)

    assert "# what it may read" not in text
    assert above(text, '"ClockRead"') == "# the time"


def test_a_grant_in_the_place_of_another_kind_does_not_get_its_comment() -> None:
    policy = policy_of(TEXT)
    grants = (ClockRead(), FsRead(("notes", "drafts")))

    text = patched(policy.with_agent(replace(policy.agents["a"], capabilities=grants)), policy)

    assert above(text, "{ FsRead") == "# what it may read"
    assert above(text, '"ClockRead"') == "# the time"


def test_a_source_in_the_place_of_another_one_does_not_get_its_comment() -> None:
    policy = policy_of(TEXT)
    other = Source("other", "elsewhere")

    text = patched(replace(policy, sources=(other,)), policy)

    assert "# the papers" not in text
    assert "# no way back\n[[policy.rules]]" in text


def test_policy_rules_keep_their_comments_when_one_goes_and_one_is_renamed() -> None:
    policy = policy_of(TEXT)
    renamed = replace(policy.rules[1], name="ask for sums")

    text = patched(replace(policy, rules=(renamed, PolicyRule("new", Verdict.ASK))), policy)

    assert "# no way back" not in text
    assert '# slowly\n[[policy.rules]]\nname = "ask for sums"\n' in text


KINDS = (MaxCalls(1), Cooldown(1.0), Periodic(1.0))
OTHERS = (MaxCalls(2), Cooldown(2.0), Periodic(2.0))
NAMES = ("file", "memo", "block")
RULES = [ToolRule(tool, kind) for tool in NAMES for kind in KINDS]
CHANGED = [ToolRule(tool, kind) for tool in NAMES for kind in OTHERS]


def comment_of(rule: ToolRule) -> str:
    return f"# {rule.tool_name} {rule.kind}"


def by_tables(rules: Sequence[ToolRule]) -> str:
    return "\n".join(f"{comment_of(rule)}\n[[agents.a.tool_rules]]\n{words(rule, chr(10))}\n" for rule in rules)


def by_lines(rules: Sequence[ToolRule]) -> str:
    rows = "".join(f"  {comment_of(rule)}\n  {{ {words(rule, ', ')} }},\n" for rule in rules)
    return f"[agents.a]\ntool_rules = [\n{rows}]\n"


def words(rule: ToolRule, between: str) -> str:
    return f'tool_name = "{rule.tool_name}"{between}rule_type = {{ {rule.kind} = 1 }}'


@given(data=st.data())
@pytest.mark.parametrize("write", [by_tables, by_lines])
def test_a_comment_directly_above_a_rule_stays_above_it_or_goes_with_it(
    write: Callable[[Sequence[ToolRule]], str], data: st.DataObject
) -> None:
    old = data.draw(st.lists(st.integers(0, len(RULES) - 1), unique=True, min_size=1))
    new = data.draw(st.lists(st.integers(0, len(RULES) - 1), unique=True))
    rules = [data.draw(st.sampled_from((RULES[at], CHANGED[at]))) for at in new]
    loop = ToolRule("file", ContinueLoop())
    text = f"gatewright = 1\n\n{write([RULES[at] for at in old])}\n[agents.z]\ntools = []\n"
    policy = policy_of(text)

    written = patched(with_rules(policy, [*rules, loop] if data.draw(st.booleans()) else rules), policy, text)

    told = [line.strip() for line in written.splitlines()]
    assert sorted(line for line in told if line.startswith("#")) == sorted(
        comment_of(RULES[at]) for at in new if at in old
    ) or (write is by_lines and not set(old) & set(new))
    for at, line in enumerate(told):
        if line.startswith("#"):
            head = " ".join(told[at + 1 : at + 4]) if write is by_tables else told[at + 1]
            tool, kind = line.removeprefix("# ").split()
            assert f'tool_name = "{tool}"' in head
            assert f"{kind} =" in head


THEN: list[Callable[[Policy], Edit]] = [
    lambda policy: agentedit.add_agent(policy, "d"),
    lambda policy: agentedit.duplicate_agent(policy, "a", "d"),
    lambda policy: agentedit.remove_agent(policy, "a"),
]


@pytest.mark.parametrize("then", THEN)
def test_a_renamed_agent_keeps_its_comments_when_others_come_and_go(then: Callable[[Policy], Edit]) -> None:
    before = policy_of(TEXT)
    policy = apply(before, agentedit.rename_agent(before, "b", "c"))

    text = patched(apply(policy, then(policy)), before)

    assert above(text, "[agents.c]") == "# new here"


def test_a_level_that_is_moved_and_then_set_keeps_its_comments() -> None:
    before = policy_of(TEXT)
    policy = apply(before, sourceedit.move_rule(before, "docs", 0, 1))

    text = patched(apply(policy, sourceedit.set_level(policy, "docs", 1, Permission.ADMIN)), before)

    assert above(text, '{ pattern = "secret/**"') == "# nobody"
    assert '{ pattern = "secret/**", permission = "admin" }, # at all\n' in text


def test_a_rule_that_is_new_is_written_as_rules_are_written_here() -> None:
    text = TEXT.replace('rule_type = "ContinueLoop"', 'rule_type = { type = "Cooldown", value = "5s" }')
    policy = policy_of(text)
    rules = (*policy.agents["a"].tool_rules, ToolRule("calc", Cooldown(3.0)))

    written = patched(with_rules(policy, rules), policy, text)

    assert 'rule_type = { Cooldown = "3s" }' in written
    assert 'rule_type = { type = "Cooldown", value = "5s" }' in written


def test_a_policy_rule_that_is_renamed_and_changed_much_keeps_its_comment() -> None:
    policy = policy_of(TEXT)
    first, second = policy.rules
    other = replace(first, name="stop", effect=Verdict.ASK, operations=None, tools=("file",), message="no")

    text = patched(replace(policy, rules=(second, other)), policy)

    assert '# no way back\n[[policy.rules]]\nname = "stop"\n' in text


def test_agents_stand_in_the_file_as_they_stand_in_the_policy() -> None:
    policy = policy_of(TEXT)
    edit = agentedit.remove_agent(policy, "a")
    without = apply(policy, edit)
    saved = patched(without, policy)

    again = apply(without, inverse(edit))

    assert list(again.agents) == ["a", "b"]
    assert list(policy_of(patched(again, without, saved)).agents) == ["a", "b"]
