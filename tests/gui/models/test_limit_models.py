"""Rows of limits and of grants, their values as text, and the small form: without a view."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.pattern import folder_pattern
from gatewright.policy.document import Agent
from gatewright.policy.rule import ArgumentConstraints, Cooldown, MaxCalls, RateLimit, RuleKind, ToolRule
from gatewright_gui.pages.access.tools.agent_rules import AgentRow, AgentRulesModel, RowKind, agent_rows
from gatewright_gui.pages.access.tools.constraint import ConstraintForm, form_of, json_fault, schema_of
from gatewright_gui.pages.access.tools.limit_list import Column, LimitListModel
from gatewright_gui.pages.access.tools.limits import (
    LimitRow,
    Owner,
    limit_fault,
    limit_rows,
    limit_text,
    read_limit,
    value_of,
)
from gatewright_gui.session.condition import constraint_words
from tests.gui.models.values import CATALOG, LIMITED, NOTES, POLICY

FATAL = QAbstractItemModelTester.FailureReportingMode.Fatal


class Verbs:
    """Remembers what was asked for; refuses on demand."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.agrees = True

    def change(self, row: LimitRow, kind: RuleKind) -> bool:
        self.asked.append((row.is_draft, kind))
        return self.agrees

    def bind(self, row: LimitRow, operations: frozenset[str] | None) -> bool:
        self.asked.append((row.kind, operations))
        return self.agrees

    def scope(self, row: AgentRow, text: str) -> bool:
        self.asked.append((row.what, text))
        return self.agrees

    def verdict(self, key: str, verdict: object) -> bool:
        self.asked.append((key, verdict))
        return self.agrees

    def rename(self, row: AgentRow, key: str) -> bool:
        self.asked.append((row.kind, key))
        return self.agrees

    def delegate(self, delegate: object) -> bool:
        self.asked.append(delegate)
        return self.agrees


def test_a_new_row_lives_until_it_is_written_or_dropped(qapp: object) -> None:
    verbs = Verbs()
    model = LimitListModel(verbs)
    tester = QAbstractItemModelTester(model, FATAL)
    model.set_rows(limit_rows(POLICY, LIMITED, NOTES, None))
    before = model.rowCount()

    at = model.begin(Cooldown(1.0), None, has_operations=True)
    assert (model.rowCount(), model.rows[at].is_draft) == (before + 1, True)
    model.drop_draft()
    assert model.rowCount() == before
    at = model.begin(Cooldown(1.0), None, has_operations=True)
    verbs.agrees = False
    assert not model.setData(model.index(at, Column.VALUE), "2 s")
    model.set_rows(limit_rows(POLICY, LIMITED, NOTES, None))
    assert model.rows[at].is_draft, "a refused row is still being made"
    verbs.agrees = True
    assert model.setData(model.index(at, Column.VALUE), "2 s")
    assert verbs.asked == [(True, Cooldown(2.0)), (True, Cooldown(2.0))]
    agent = Agent("limited", tools=("notes",), tool_rules=(*LIMITED.tool_rules, ToolRule("notes", Cooldown(2.0))))
    model.set_rows(limit_rows(POLICY, agent, NOTES, None))
    assert model.rowCount() == before + 1
    assert not model.rows[at].is_draft
    assert tester.model() is model


def test_only_rules_for_the_row_are_shown_and_only_own_ones_are_editable(qapp: object) -> None:
    everywhere = ToolRule("*", MaxCalls(3))
    agent = Agent("limited", tools=("notes",), tool_rules=(everywhere, *LIMITED.tool_rules))
    model = LimitListModel(Verbs())
    model.set_rows(limit_rows(POLICY, agent, NOTES, "find"))

    assert [(row.owner, row.kind) for row in model.rows] == [
        (Owner.OWN, MaxCalls(1200)),
        (Owner.EVERYWHERE, MaxCalls(3)),
    ]
    editable = [bool(model.index(at, Column.VALUE).flags() & Qt.ItemFlag.ItemIsEditable) for at in range(2)]
    assert editable == [True, False]


def test_rows_of_an_agent_keep_headings_out_of_reach(qapp: object) -> None:
    verbs = Verbs()
    model = AgentRulesModel(verbs)
    tester = QAbstractItemModelTester(model, FATAL)
    model.set_rows(agent_rows(POLICY, LIMITED, CATALOG, {}))

    assert [row.what for row in model.rows] == ["When it asks first", "read_only", "side_effecting", "privileged"]
    assert model.index(0, 0).flags() == Qt.ItemFlag.NoItemFlags
    assert model.begin(RowKind.NEW_GRANT, "FsRead") == 0  # a part without a row has no heading
    assert model.begin(RowKind.NEW_CHILD, "") == 4
    at = model.begin(RowKind.NEW_KEY, "")
    assert (at, model.rows[at].kind) == (4, RowKind.NEW_KEY)
    assert model.setData(model.index(at, 0), "notes.find")
    assert verbs.asked == [(RowKind.NEW_KEY, "notes.find")]
    model.set_rows(())
    assert tester.model() is model


@pytest.mark.parametrize(
    ("kind", "text"),
    [(MaxCalls(5), "5"), (Cooldown(0.1), "100 ms"), (RateLimit(30, 60.0), "30 per 1 min")],
)
def test_a_value_is_typed_as_it_is_shown(kind: RuleKind, text: str) -> None:
    assert limit_text(kind) == text
    assert read_limit(kind, text) == kind


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (MaxCalls(1), "0", "from 1 to"),
        (Cooldown(1.0), "0", "longer than nothing"),
        (RateLimit(1, 1.0), "often", "30 per 1 min"),
        (RateLimit(1, 1.0), "3 per moon", "no unit"),
    ],
)
def test_what_cannot_be_a_limit_is_said(kind: RuleKind, text: str, said: str) -> None:
    assert said in limit_fault(kind, text)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"pattern": "^notes/", "maxLength": 40}, "matches ^notes/, is at most 40 characters"),
        ({"enum": ["a", "b"]}, "is one of a, b"),
        ({"const": "a"}, "is a"),
        ({"const": True}, "is true"),
        ({"minimum": 1, "maximum": 9.5}, "at least 1, at most 9.5"),
        ({"multipleOf": 5}, "is a multiple of 5"),
        ({"maxItems": 3}, "has at most 3 items"),
        ({"items": {"pattern": folder_pattern("a")}, "maxItems": 3}, "each only in a/, has at most 3 items"),
    ],
)
def test_the_form_says_what_the_schema_says(schema: JsonValue, words: str) -> None:
    form = form_of(schema)
    assert form is not None
    assert schema_of(form) == schema
    assert constraint_words(schema) == words


@pytest.mark.parametrize("schema", [{"not": {"const": "x"}}, {"enum": [1, 2]}, {"const": 1}, True, {"maxLength": 1.5}])
def test_what_the_form_cannot_say_stays_json(schema: JsonValue) -> None:
    assert form_of(schema) is None


def test_each_argument_that_a_rule_constrains_or_asks_for_has_a_row_that_says_both() -> None:
    rule = ToolRule("notes", ArgumentConstraints({"page": {"maxLength": 9}, "text": {"const": "x"}}, ("page", "words")))
    agent = Agent("a", tool_rules=(rule,))
    rows = limit_rows(POLICY, agent, NOTES, None)

    assert [(row.field, value_of(row)) for row in rows] == [
        ("page", "must be given, is at most 9 characters"),
        ("text", "is x"),
        ("words", "must be given"),
    ]
    assert rows[0].text == "only with page, words given, only if the values of page, text fit what the rule says"


def test_json_faults_have_a_place() -> None:
    assert json_fault('{\n "a": }').startswith("line 2, column ")
    assert json_fault("[]") == "a constraint is a JSON object, or true or false"
    assert json_fault("{}") == ""
    assert schema_of(ConstraintForm()) == {}
