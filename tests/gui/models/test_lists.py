from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.base.errors import Place, Problem, Severity
from gatewright.policy.document import Agent
from gatewright_gui.pages.access.agents import AGENT_ID, DESCRIPTION, AgentListModel
from gatewright_gui.pages.access.tools.why import Step
from gatewright_gui.pages.access.tools.why_pane import StepModel
from gatewright_gui.pages.policy_file.problems import PLACE, ProblemModel
from gatewright_gui.qt.table_model import ROW

FATAL = QAbstractItemModelTester.FailureReportingMode.Fatal
ANN, BEN, CAT = Agent("ann", "First"), Agent("ben"), Agent("cat")


def test_agents_that_stay_keep_their_rows(qapp: object) -> None:
    model = AgentListModel(lambda _old, _new: True)
    tester = QAbstractItemModelTester(model, FATAL)
    model.set_rows([ANN, CAT])
    cat = QPersistentModelIndex(model.index(1, 0))

    model.set_rows([ANN, BEN, CAT])
    assert cat.row() == 2
    model.set_rows([BEN, CAT])
    assert cat.row() == 1
    model.set_rows([Agent("bea"), CAT])

    assert model.index(0, 0).data(AGENT_ID) == "bea"
    assert cat.data(AGENT_ID) == "cat"
    assert tester.model() is model


def test_renaming_asks_the_verb_and_changes_nothing_itself(qapp: object) -> None:
    asked: list[tuple[str, str]] = []
    model = AgentListModel(lambda old, new: bool(asked.append((old, new))))
    model.set_rows([ANN])

    assert not model.setData(model.index(0, 0), " anna ", Qt.ItemDataRole.EditRole)

    assert asked == [("ann", "anna")]
    assert model.index(0, 0).data() == "ann"
    assert model.index(0, 0).data(DESCRIPTION) == "First"


def test_errors_come_before_warnings_in_the_order_of_the_file(qapp: object) -> None:
    model = ProblemModel()
    tester = QAbstractItemModelTester(model, FATAL)
    late = Problem(Severity.ERROR, "late", "b", Place("some/policy.toml", 9))
    early = Problem(Severity.ERROR, "early", "a", Place("some/policy.toml", 2, 5), near_miss="aa")
    warning = Problem(Severity.WARNING, "mild", "c")

    model.set_problems([warning, late, early])

    rows = range(model.rowCount())
    assert [model.rows[row].problem.code for row in rows] == ["early", "late", "mild"]
    assert [row.problem.is_error for row in model.rows] == [True, True, False]
    assert model.index(0, PLACE).data() == "policy.toml:2"
    assert model.index(0, 0).data() == "a (did you mean `aa`?)"
    assert model.counts == (2, 1)
    assert tester.model() is model


def many(severity: Severity, code: str, count: int) -> list[Problem]:
    return [Problem(severity, code, f"the {code} of `t{at}`", Place("policy.toml", 5 + at)) for at in range(count)]


def test_problems_of_one_kind_stand_below_a_heading_that_folds_them(qapp: object) -> None:
    model = ProblemModel()
    tester = QAbstractItemModelTester(model, FATAL)
    warnings, errors = many(Severity.WARNING, "mild", 4), many(Severity.ERROR, "grave", 104)
    one = Problem(Severity.ERROR, "single", "all alone", Place("policy.toml", 1))
    model.set_problems([*warnings, *errors, one])

    assert [model.index(row, 0).data() for row in range(3)] == [
        "all alone",
        "104 × the grave of …",
        "4 × the mild of …",
    ]
    assert model.rowCount() == 7, "few are open, many are folded"
    assert model.counts == (105, 4), "what is folded counts"
    heading = model.rows[1]
    model.turn(heading)
    assert model.rowCount() == 7 + 104
    assert [row.problem.is_error for row in model.rows] == sorted(row.problem.is_error for row in model.rows)[::-1]
    model.turn(heading)
    model.turn(model.rows[2])
    assert model.rowCount() == 3
    model.search("GRAVE `t77`")
    assert [row.problem for row in model.rows] == [errors[77]]
    model.search("mild `t1`")
    assert [row.problem for row in model.rows] == [warnings[1]]
    model.search("nothing of the kind")
    assert model.rowCount() == 0
    assert model.counts == (105, 4)
    assert tester.model() is model


def test_a_cause_that_is_a_warning_stands_below_the_errors(qapp: object) -> None:
    model = ProblemModel()
    cause = Problem(Severity.WARNING, "not-trusted", "the catalog `x` is not trusted", Place("policy.toml", 1))
    unknown = Problem(Severity.ERROR, "unknown-tool", "no tool is named `x.y`", Place("policy.toml", 9))
    mild = Problem(Severity.WARNING, "mild", "c", Place("policy.toml", 0))
    model.set_problems([cause, mild, unknown])
    assert [row.problem for row in model.rows] == [unknown, cause, mild]


def test_steps_get_their_lines_when_they_are_known(qapp: object) -> None:
    model = StepModel()
    tester = QAbstractItemModelTester(model, FATAL)
    address = ("agents", "a", "tool_rules", 0)

    model.set_steps((Step("stop", "not allowed", address), Step("ask", "asks by its tier")))
    assert model.row_at(0) == Step("stop", "not allowed", address)
    model.set_lines({address: 7}, "policy.toml")

    assert model.index(0, 0).data(ROW) == Step("stop", "not allowed", address, line=7, file="policy.toml")
    assert str(model.index(0, 0).data()) == "Not allowed, line 7"
    assert str(model.index(1, 0).data()) == "Asks by its tier"
    assert model.addresses == (address,)
    assert tester.model() is model
