"""Conditions of policy rules as terms: what they say in words, in the file, and back."""

import pytest

from gatewright_gui.session.argument import Argument
from gatewright_gui.session.condition import (
    Condition,
    Term,
    condition_of,
    read_value,
    read_when,
    when_of,
    when_text,
    when_words,
)

AMOUNT = Term("amount", "over", 100)
PATH = Term("path", "not in folder", "drafts", or_absent=True)
SAID = [
    (Condition((AMOUNT,)), "amount over 100"),
    (Condition((Term("amount", "at most", 1.5, or_absent=True),)), "amount at most 1.5 (or no amount is given)"),
    (Condition((PATH, AMOUNT)), "path not in drafts/ and amount over 100"),
    (Condition((AMOUNT, Term("in", "is not", "EUR")), is_any=True),
     "amount over 100 or in is not EUR (and in is given)"),
    (Condition((AMOUNT, Term("amount", "under", 200))), "amount over 100 and amount under 200"),
    (Condition((Term("to", "holds", "a"), Term("to", "has at least", 2))), "to holds a and to has at least 2 items"),
    (Condition((Term("a", "is one of", ["x", "y"]), Term("b", "is given"), Term("c", "is not given"))),
     "a is one of x, y and b is given and c is not given"),
    (Condition((Term("a", "matches", "^x"), Term("a", "matches", "y$"))), "a matches ^x and a matches y$"),
    (Condition((Term("done", "is", value=True),)), "done is true"),
    (Condition(), "always"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "words"), SAID)
def test_a_condition_is_read_back_from_the_file_as_it_was_said(condition: Condition, words: str) -> None:
    when = read_when(when_text(when_of(condition)))
    assert condition_of(when) is not None
    assert when_words(when) == words
    assert when_of(condition_of(when) or Condition()) == when


def test_over_a_limit_asks_only_where_it_is_given() -> None:
    assert when_of(Condition((AMOUNT,))) == {
        "properties": {"amount": {"exclusiveMinimum": 100}},
        "required": ["amount"],
    }


@pytest.mark.parametrize(
    "text",
    [
        "{ properties = { to = { items = { enum = ['a'] } } } }",
        "{ properties = { order = { properties = { amount = { minimum = 1 } } } } }",
        "{ anyOf = [{ required = ['a', 'b'] }, { required = ['c'] }] }",
        "{ minProperties = 1 }",
        "false",
    ],
)
def test_what_terms_cannot_say_stays_as_it_stands_in_the_file(text: str) -> None:
    when = read_when(text)
    assert condition_of(when) is None
    assert read_when(when_words(when)) == when


@pytest.mark.parametrize(
    ("relation", "kind", "text", "said"),
    [
        ("over", "number", "much", "is no number"),
        ("has at least", "list", "1.5", "is no whole number"),
        ("in folder", "text", "a/../b", "is no folder"),
        ("is", "truth", "maybe", "neither true nor false"),
        ("is", "text", " ", "say what"),
    ],
)
def test_a_value_that_does_not_fit_its_relation_is_told(relation: str, kind: str, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_value(relation, Argument("x", kind), text)  # pyright: ignore[reportArgumentType]
