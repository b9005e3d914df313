"""The rows of Activity without a view: only what is looked at is asked for, and what is shown stays in place."""

from array import array

import pytest
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from gatewright_gui.pages.activity.rows import CALL, TIME, VERDICT, ActivityModel
from gatewright_gui.session.audit import NOTHING_FOUND, Found, LoggedCall
from tests.gui.session.opened import turn_until

pytestmark = pytest.mark.usefixtures("qapp")
STRICT = QAbstractItemModelTester.FailureReportingMode.Fatal


def call_of(number: int, *, ended: str = "ToolCompleted") -> LoggedCall:
    names = f"call-{number}", "archivist", "session", "file", "read"
    return LoggedCall(number, number + 2, 1_790_000_000.0, "ToolInvoked", *names, "allow", "fine", "", ended, 0.4)


def found_of(numbers: range, changed: int = 0) -> Found:
    return Found(array("q", sorted(numbers, reverse=True)), changed, 1, 1)


class Asking:
    """A model that is brought what it asks for."""

    def __init__(self, qtbot: QtBot) -> None:
        self.model = ActivityModel()
        self.tester = QAbstractItemModelTester(self.model, STRICT)
        self.asked: list[tuple[int, ...]] = []
        self.model.wanted.connect(self.asked.append)

    def look(self, row: int) -> str:
        """What a row says, once it was brought."""
        index = self.model.index(row, CALL)
        if index.data() is None:
            before = len(self.asked)
            turn_until(lambda: len(self.asked) > before, "the row to be asked for")
            self.model.take([call_of(number) for number in self.asked[-1]])
        return str(index.data())


def test_only_rows_that_are_looked_at_are_asked_for(qtbot: QtBot) -> None:
    asking = Asking(qtbot)
    asking.model.set_found(found_of(range(1, 5_001)))

    assert asking.model.rowCount() == 5_000
    assert asking.model.index(2_500, TIME).data() == "…"
    assert asking.look(2_500) == "file.read"
    assert 2_500 in asking.asked[-1]  # row 2,500 is call 2,500
    assert sum(map(len, asking.asked)) < 1_000
    assert asking.model.find(5_000) == 0
    assert asking.model.find(5_001) == -1


def test_new_calls_come_on_top_and_older_ones_below_without_a_reset(qtbot: QtBot) -> None:
    asking, resets = Asking(qtbot), list[str]()
    asking.model.set_found(found_of(range(500, 600)))
    asking.model.modelReset.connect(lambda: resets.append("reset"))
    asking.look(5)
    asking.model.set_found(found_of(range(500, 603), changed=600))
    asking.model.set_found(found_of(range(400, 603)))

    assert asking.model.rowCount() == 203
    assert [asking.model.key_at(row) for row in (0, 202)] == [602, 400]
    assert not resets
    asking.model.set_found(found_of(range(410, 420)))
    assert resets == ["reset"]
    asking.model.set_found(NOTHING_FOUND)
    assert asking.model.rowCount() == 0


def test_call_that_went_on_is_read_again(qtbot: QtBot) -> None:
    asking = Asking(qtbot)
    asking.model.set_found(found_of(range(1, 3)))
    asking.model.take([call_of(2, ended=""), call_of(1)])
    before = asking.model.index(0, VERDICT).data()
    asking.model.set_found(found_of(range(1, 3), changed=2))

    assert before == "allowed, no end"
    assert asking.model.index(0, VERDICT).data() == before, "it stays until it is read"
    assert [asking.model.is_read(number) for number in (2, 1)] == [False, True]
    turn_until(lambda: asking.asked, "the row to be asked for")
    asking.model.take([call_of(number) for number in asking.asked[-1]])
    assert asking.model.is_read(2)
    assert asking.model.index(0, VERDICT).data() == "allowed"
    assert asking.asked[-1] == (2, 1)
