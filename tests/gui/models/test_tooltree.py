from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.policy.document import Agent
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright_gui.pages.access.tools.row_state import Asking, RowState, Switch
from gatewright_gui.pages.access.tools.tool_filter import ToolFilterModel
from gatewright_gui.pages.access.tools.tool_fit import Filters, State
from gatewright_gui.pages.access.tools.tool_tree import (
    ASKING,
    COUNT,
    MEND,
    REASONS,
    STATE,
    SWITCH,
    VERDICT,
    Column,
    Mend,
    Tally,
    ToolTreeModel,
)
from tests.gui.models.values import CATALOG, FREE, LIMITED, rights_of

CHECK, TIP = Qt.ItemDataRole.CheckStateRole, Qt.ItemDataRole.ToolTipRole
ON, OFF, PART = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked


class Asked:
    """Keeps what the boxes asked for."""

    def __init__(self) -> None:
        self.tools: list[tuple[str, bool]] = []
        self.operations: list[tuple[str, str, bool]] = []
        self.many: list[tuple[dict[str, tuple[str, ...]], bool]] = []

    def tick_many(self, operations: Mapping[str, Sequence[str]], on: bool) -> bool:
        self.many.append(({tool: tuple(names) for tool, names in operations.items()}, on))
        return True

    def tick_tool(self, tool: str, on: bool) -> bool:
        self.tools.append((tool, on))
        return True

    def tick_operation(self, tool: str, operation: str, on: bool) -> bool:
        self.operations.append((tool, operation, on))
        return True


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def tree(asked: Asked, qapp: object) -> ToolTreeModel:
    made = ToolTreeModel(asked)
    made.set_agent(LIMITED, rights_of(LIMITED))
    return made


def test_tree_keeps_the_rules_of_item_models_through_changes(tree: ToolTreeModel) -> None:
    tester = QAbstractItemModelTester(tree, QAbstractItemModelTester.FailureReportingMode.Fatal)
    tree.set_agent(FREE, rights_of(FREE))
    tree.set_agent(None, {})
    tree.set_agent(LIMITED, rights_of(LIMITED))

    assert tester.model() is tree
    assert tree.rowCount() == len(CATALOG)


def test_boxes_show_ticked_unticked_and_mixed(tree: ToolTreeModel) -> None:
    assert tree.index_of("notes", None).data(CHECK) == PART
    assert tree.index_of("notes", "find").data(CHECK) == ON
    assert tree.index_of("notes", "burn").data(CHECK) == OFF
    assert tree.index_of("clock", None).data(CHECK) == OFF


def test_tool_without_operations_cannot_be_opened(tree: ToolTreeModel) -> None:
    assert not tree.hasChildren(tree.index_of("clock", None))
    assert tree.hasChildren(tree.index_of("notes", None))


@pytest.mark.parametrize("wished", [ON, OFF, PART])
def test_mixed_tool_is_turned_off_whatever_was_wished(tree: ToolTreeModel, asked: Asked, wished: Qt.CheckState) -> None:
    tree.setData(tree.index_of("notes", None), wished, CHECK)

    assert asked.tools == [("notes", False)]


def test_empty_tool_is_turned_on_and_full_tool_off(tree: ToolTreeModel, asked: Asked) -> None:
    tree.setData(tree.index_of("clock", None), ON, CHECK)
    tree.set_agent(FREE, rights_of(FREE))
    tree.setData(tree.index_of("notes", None), OFF, CHECK)

    assert asked.tools == [("clock", True), ("notes", False)]


def test_operation_asks_its_own_verb(tree: ToolTreeModel, asked: Asked) -> None:
    assert tree.setData(tree.index_of("notes", "burn"), ON, CHECK)
    assert not tree.setData(tree.index_of("notes", "burn").siblingAtColumn(Column.FACT), ON, CHECK)

    assert asked.operations == [("notes", "burn", True)]
    assert tree.index_of("notes", "burn").data(CHECK) == OFF


def test_ticked_operation_that_another_layer_turns_off_says_which(tree: ToolTreeModel) -> None:
    peek = tree.index_of("disk", "peek")

    assert peek.data(CHECK) == ON
    assert RowState(peek.data(STATE)) is RowState.OVERRULED
    assert peek.siblingAtColumn(Column.FACT).data() == "no effect: needs a source"
    assert Mend(peek.data(MEND)) is Mend.SOURCE
    assert [reason.code for reason in peek.data(REASONS)] == ["no-source"]
    assert RowState(tree.index_of("disk", None).data(STATE)) is RowState.OVERRULED


def test_verdicts_and_switches_of_rows(tree: ToolTreeModel) -> None:
    tree.set_agent(FREE, rights_of(FREE))
    switches = {name: Switch(tree.index_of("notes", name).data(SWITCH)) for name in ("find", "burn")}

    assert switches == {"find": Switch.ON, "burn": Switch.ASK}
    assert Switch(tree.index_of("notes", None).data(SWITCH)) is Switch.MIXED
    assert Verdict(tree.index_of("notes", None).data(VERDICT)) is Verdict.ASK
    assert Asking(tree.index_of("notes", "burn").data(ASKING)) is Asking.YES
    assert Asking(tree.index_of("notes", None).data(ASKING)) is Asking.SOME


def test_counts_leave_out_what_is_overruled(tree: ToolTreeModel) -> None:
    assert tree.tally == Tally(can=1, asks=1, cannot=3, idle=1)
    assert tree.index_of("notes", None).data(COUNT) == "2 of 3"
    assert tree.index_of("disk", None).data(COUNT) == "0 of 1"


def test_limits_are_told_where_they_hold(tree: ToolTreeModel) -> None:
    def limits(operation: str | None) -> str:
        index = tree.index_of("notes", operation)
        return str(index.data(TIP) if operation is None else index.siblingAtColumn(Column.FACT).data())

    assert "max 1,200" in limits(None).splitlines()
    assert limits("write") == "asks first"
    assert limits("find") == ""


def test_change_of_one_operation_refreshes_its_tool_only(tree: ToolTreeModel) -> None:
    kept = QPersistentModelIndex(tree.index_of("notes", "burn"))
    changed: list[str] = []

    def note(first: QModelIndex, _last: QModelIndex) -> None:
        changed.append(str(first.data()))

    tree.dataChanged.connect(note)
    rule = ToolRule("notes", AllowedOperations(frozenset({"find"})))
    narrowed: Agent = replace(LIMITED, tool_rules=(rule, *LIMITED.tool_rules[1:]))
    before = rights_of(LIMITED)
    after = rights_of(narrowed)
    tree.set_agent(replace(narrowed, tool_rules=LIMITED.tool_rules), {**before, "notes": after["notes"]})

    assert changed == ["notes", "find"]
    assert kept.isValid()


def names(rows: ToolFilterModel) -> dict[str, list[str]]:
    tops = [rows.index(row, 0) for row in range(rows.rowCount())]
    return {str(top.data()): [str(rows.index(row, 0, top).data()) for row in range(rows.rowCount(top))] for top in tops}


@pytest.mark.parametrize(
    ("show", "wanted"),
    [
        (State.ON, {"notes": ["find"]}),
        (State.OFF, {"notes": ["burn"], "clock": [], "disk": ["peek"]}),
        (State.ASKS, {"notes": ["write"]}),
        (State.OVERRULED, {"disk": ["peek"]}),
    ],
)
def test_chips_show_rows_in_one_state(tree: ToolTreeModel, show: State, wanted: dict[str, list[str]]) -> None:
    rows = ToolFilterModel(tree)
    tester = QAbstractItemModelTester(rows, QAbstractItemModelTester.FailureReportingMode.Fatal)

    rows.set_filters(Filters(states=frozenset({show})))

    assert names(rows) == wanted
    assert tester.model() is rows


def test_search_looks_at_names_and_descriptions(tree: ToolTreeModel) -> None:
    rows = ToolFilterModel(tree)
    rows.set_search("removes GOOD")
    assert names(rows) == {"notes": ["burn"]}
    rows.set_search("book")
    assert names(rows) == {"notes": ["find", "write", "burn"]}
    rows.set_search("nothing like it")
    assert names(rows) == {}
    assert rows.operations_that_fit() == {}


def test_row_that_stops_fitting_stays_until_the_filter_is_set_again(tree: ToolTreeModel) -> None:
    rows = ToolFilterModel(tree)
    rows.set_filters(Filters(states=frozenset({State.ON, State.ASKS})))
    rule = ToolRule("notes", AllowedOperations(frozenset({"find"})))
    narrowed = replace(LIMITED, tool_rules=(rule,))
    assert names(rows) == {"notes": ["find", "write"]}

    tree.set_agent(narrowed, rights_of(narrowed))

    assert names(rows) == {"notes": ["find", "write"]}
    rows.set_filters(Filters(states=frozenset({State.ON})))
    assert names(rows) == {"notes": ["find"]}


def test_current_row_follows_its_operation_through_a_filter_and_goes_with_it(tree: ToolTreeModel) -> None:
    rows = ToolFilterModel(tree)
    tester = QAbstractItemModelTester(rows, QAbstractItemModelTester.FailureReportingMode.Fatal)
    kept = QPersistentModelIndex(rows.mapFromSource(tree.index_of("notes", "burn")))
    lost = QPersistentModelIndex(rows.mapFromSource(tree.index_of("clock", None)))

    rows.set_search("burn")

    assert (kept.row(), str(kept.data())) == (0, "burn")
    assert not lost.isValid()
    assert rows.mapToSource(rows.index(0, 0, rows.index(0, 0))) == tree.index_of("notes", "burn")
    assert tester.model() is rows


def test_change_of_a_row_that_the_filter_hides_is_not_passed_on(tree: ToolTreeModel) -> None:
    rows = ToolFilterModel(tree)
    rows.set_search("clock")
    changed: list[str] = []

    def note(first: QModelIndex, _last: QModelIndex) -> None:
        changed.append(str(first.siblingAtColumn(0).data()))

    rows.dataChanged.connect(note)
    tree.set_tokens({"notes": 4}, exact=True)
    tree.set_tokens({"notes": 4, "clock": 7}, exact=True)

    assert changed == ["clock"]
