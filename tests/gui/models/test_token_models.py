from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright_gui.pages.access.preview.lint_pane import LintModel
from gatewright_gui.pages.access.preview.token_table import TokenColumn, TokenModel, rule_words, total_words
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.session.preview import LintRow
from gatewright_gui.session.tokens import TokenReport, TokenRow

REPORT = TokenReport(
    "a",
    "mcp",
    (TokenRow("big", 1200, 2000), TokenRow("gone", 0, 300, is_shown=False), TokenRow("all", 50, 50)),
    False,
    "e",
)
LINT_ROW = LintRow("looser", "mail", "other-keys", "/properties/to", "no `to` there", "the gate checks it", 7)


def cell(model: TokenModel, row: int, column: TokenColumn) -> str:
    return str(model.index(row, column).data())


def test_token_table_keeps_the_rules_of_item_models(qapp: object) -> None:
    model = TokenModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_report(REPORT)
    model.set_report(TokenReport("a", "mcp", REPORT.rows[:1], exact=True, encoding="e"))
    model.set_report(None)

    assert tester.model() is model
    assert model.rowCount() == 0


def test_token_table_says_tokens_estimates_and_savings(qapp: object) -> None:
    model = TokenModel()
    model.set_report(REPORT)

    assert [cell(model, 0, column) for column in TokenColumn] == ["all tools", "~1,250", "~2,350", "47 %"]
    assert [cell(model, 1, column) for column in TokenColumn] == ["big", "~1,200", "~2,000", "40 %"]
    assert cell(model, 2, TokenColumn.TOKENS) == "hidden"
    assert cell(model, 3, TokenColumn.SAVED) == "0 %"


def test_sorting_keeps_the_sum_on_top_and_what_is_chosen_when_numbers_change_the_order(qapp: object) -> None:
    model = TokenModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_report(REPORT)
    model.sort(TokenColumn.TOKENS, Qt.SortOrder.DescendingOrder)
    chosen, resets = QPersistentModelIndex(model.index(2, 0)), list[int]()
    model.modelReset.connect(lambda: resets.append(1))
    assert [cell(model, row, TokenColumn.TOOL) for row in range(4)] == ["all tools", "big", "all", "gone"]

    rows = (TokenRow("big", 10, 2000), *REPORT.rows[1:])
    model.set_report(TokenReport("a", "mcp", rows, exact=True, encoding="e"))
    assert [cell(model, row, TokenColumn.TOOL) for row in range(4)] == ["all tools", "all", "big", "gone"]
    assert (chosen.row(), chosen.data()) == (1, "all")
    model.sort(-1)
    assert [cell(model, row, TokenColumn.TOOL) for row in range(4)] == ["all tools", "big", "gone", "all"]
    assert chosen.data() == "all"
    assert not resets
    assert tester.model() is model


def test_words_of_a_sum_say_the_saving_and_the_rule() -> None:
    assert total_words(REPORT.total, REPORT) == "~1,250 of ~2,350 tokens, 47 % less"
    assert total_words(TokenRow("x", 1, 1), REPORT) == "~1 token, no reduction"
    assert total_words(TokenRow("x", 12, 10), REPORT) == "~12 of ~10 tokens, 20 % more"
    assert rule_words(REPORT) == "estimate, e"


def test_lints_keep_the_rules_of_item_models_and_say_all_they_know(qapp: object) -> None:
    model = LintModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_rows([LINT_ROW])

    assert tester.model() is model
    assert model.index(0, 0).data() == "not enforced, mail /properties/to: no to there; the gate checks it"
    assert model.index(0, 0).data(ROW) == LINT_ROW


def test_lint_that_only_moved_keeps_its_row(qapp: object) -> None:
    model, resets = LintModel(), list[int]()
    model.set_rows([LINT_ROW])
    model.modelReset.connect(lambda: resets.append(1))
    moved = LintRow("looser", "mail", "other-keys", "/properties/to", "no `to` there", "the gate checks it", 9)
    model.set_rows([moved])

    assert not resets
    assert model.rows == (moved,)
