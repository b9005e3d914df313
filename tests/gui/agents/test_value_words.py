"""What a verdict by value says: the short words of the chip, and the sentence of its tooltip."""

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import ArgumentConstraints, PolicyRule, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright_gui.pages.access.tools.tool_tree import Column
from gatewright_gui.session.value_words import value_words
from gatewright_gui.window.main_window import MainWindow
from tests.gui.agents.test_agents_page import TIP, choose
from tests.gui.session.opened import cell, settled
from tests.support.rights import rights_by_layers

PAY = OperationFacts("", SafetyTier.READ_ONLY, parameters=("amount", "to", "note"), required=("amount", "to"))
TOOL = ToolFacts("pay", 1, (PAY,), SafetyTier.READ_ONLY)
Rules = tuple[PolicyRule, ...]


def rule(effect: Verdict, field: str, schema: JsonValue) -> PolicyRule:
    return PolicyRule("one", effect, tools=("pay",), when={"properties": {field: schema}})


def said(rules: Rules = (), default: Verdict = Verdict.ALLOW, **fields: JsonValue) -> tuple[str, ...]:
    limits = (ToolRule("pay", ArgumentConstraints(fields)),) if fields else ()
    policy = Policy(agents={"a": Agent("a", tool_rules=limits)}, rules=rules, default=default)
    words = value_words(PAY, rights_by_layers(policy, "a", (TOOL,))["pay"].operations[0])
    return (words.short, *words.sentences)


ASK, DENY, ALLOW = Verdict.ASK, Verdict.DENY, Verdict.ALLOW


@pytest.mark.parametrize(
    ("effect", "field", "schema", "short", "sentence"),
    [
        (ASK, "amount", {"exclusiveMinimum": 100}, "up to 100", "amount: allow up to 100, then ask first"),
        (DENY, "amount", {"minimum": 2.5}, "below 2.5", "amount: allow below 2.5, then deny"),
        (ASK, "amount", {"not": {"maximum": 9}}, "up to 9", "amount: allow up to 9, then ask first"),
        (ASK, "amount", {"maximum": 9}, "by amount", "amount: ask first if at most 9, else allow"),
        (DENY, "to", {"enum": ["x", "y"]}, "not x, y", "to: deny if it is one of x, y, else allow"),
        (DENY, "to", {"not": {"const": "x"}}, "only x", "to: allow if it is x, else deny"),
        (ASK, "to", {"pattern": "^a"}, "by to", "to: ask first if it matches ^a, else allow"),
        (ASK, "note", {"const": "x"}, "not x", "note: ask first if it is x, else allow, ask first without it"),
    ],
)
def test_condition_of_a_policy_rule_on_one_argument_is_said_in_words(
    effect: Verdict, field: str, schema: JsonValue, short: str, sentence: str
) -> None:
    assert said((rule(effect, field, schema),)) == (short, sentence)


def test_several_numbers_are_one_ladder_and_what_is_milder_above_a_stricter_one_is_left_out() -> None:
    ask, deny = rule(ASK, "amount", {"exclusiveMinimum": 100}), rule(DENY, "amount", {"minimum": 1000})
    milder = rule(ASK, "amount", {"minimum": 5000})

    assert said((deny, ask, milder)) == ("up to 100", "amount: allow up to 100, then ask first, deny from 1,000")


def test_constraint_denies_what_does_not_fit() -> None:
    assert said(amount={"maximum": 5}) == ("up to 5", "amount: allow up to 5, then deny")
    assert said(to={"enum": ["x", "y"]}) == ("only x, y", "to: allow if it is one of x, y, else deny")
    assert said(to={"in_folder": "notes/"}) == ("only in notes/", "to: allow only in notes/, else deny")
    assert said(amount={"minimum": 1, "maximum": 5}) == (
        "by amount",
        "amount: allow if at least 1, at most 5, else deny",
    )


def test_rule_that_allows_leaves_the_rest_to_the_default() -> None:
    allow = rule(ALLOW, "amount", {"maximum": 100})

    assert said((allow,), ASK) == ("up to 100", "amount: allow up to 100, then ask first")


def test_more_than_one_argument_or_what_has_no_words_leaves_the_chip_as_it_is() -> None:
    two = PolicyRule("two", ASK, when={"properties": {"amount": {"minimum": 1}, "to": {"const": "x"}}})

    assert said((two,)) == ("",)
    assert said((two, rule(ASK, "amount", {"minimum": 5}))) == ("", "amount: allow below 5, then ask first")
    assert said(amount={"maximum": 5}, to={"const": "x"})[0] == ""


async def test_fact_of_a_tool_says_up_to_which_value_it_is_allowed(window: MainWindow) -> None:
    policy = window.document.workspace.policy_path
    large = "when = { properties = { limit = { exclusiveMinimum = 20 } } }"
    text = f'[[policy.rules]]\nname = "large"\neffect = "ask"\ntools = ["search"]\n{large}\n'
    policy.write_text(f"{policy.read_text('utf-8')}\n{text}", "utf-8")
    window.reload()
    await settled(window)
    await choose(window, "operator")
    verdict = cell(window, "search", None, Column.FACT)

    assert verdict.data() == "up to 20"
    assert verdict.data(TIP) == "depends on the values: limit: allow up to 20, then ask first"
