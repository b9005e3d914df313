"""The rows of a conversation, with clocks that the test moves."""

from PySide6.QtTest import QAbstractItemModelTester

from gatewright_gui.pages.trial.conversation import HOLDS, STATE, ConversationModel
from gatewright_gui.session.conversation import Fact, SessionState
from gatewright_gui.session.question import Standing, span

FATAL = QAbstractItemModelTester.FailureReportingMode.Fatal


def state(*facts: Fact, standing: tuple[Standing, ...] = ()) -> SessionState:
    return SessionState("a", True, "open", (), "s1", True, facts, (), standing)


def test_pause_and_remembered_answer_count_down(qapp: object) -> None:
    now = [10.0]
    model = ConversationModel(None, lambda: now[0], lambda: now[0])
    tester = QAbstractItemModelTester(model, FATAL)
    pause = Fact("pause", "file", "4 s from start to start", True, 4.0, 10.0)
    model.set_state(state(pause, standing=(Standing("g", True, "file in any session", "ann", 1.0, 310.0),)))

    assert model.index(2, STATE).data() == "4.0 s to wait \u00b7 4 s from start to start"
    assert model.index(1, STATE).data() == "allowed for 5 min, by ann"
    assert model.counts_down
    now[0] = 13.5
    assert model.index(2, STATE).data().startswith("0.5 s to wait")
    assert model.index(2, STATE).data(HOLDS)
    now[0] = 400.0
    assert model.index(2, STATE).data().startswith("ready")
    assert not model.index(2, STATE).data(HOLDS)
    assert model.index(1, STATE).data() == "allowed no more, by ann"
    assert tester.model() is model


def test_state_that_was_not_looked_up_keeps_the_rows_of_its_conversation(qapp: object) -> None:
    model = ConversationModel()
    model.set_state(state(Fact("cap", "file", "3 of 4 calls left")))
    model.set_state(SessionState("a", True, "open", (), "s1"))
    assert model.rowCount() == 2
    model.set_state(SessionState("a", True, "start", (), "s2"))
    assert model.rowCount() == 1
    model.set_state(None)
    assert model.rowCount() == 0


def test_times_are_said_in_the_unit_that_fits() -> None:
    assert [span(s) for s in (0.2, 8, 89, 300, 7500, 7200, 400_000)] == [
        "now", "8 s", "89 s", "5 min", "2 h 5 min", "2 h", "5 d",
    ]  # fmt: skip
