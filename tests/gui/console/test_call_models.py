"""Stages and history, by themselves."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.policy.verdict import Verdict
from gatewright.workspace.api import STAGES
from gatewright_gui.pages.trial import history_model as callhistory
from gatewright_gui.pages.trial import stages
from gatewright_gui.pages.trial.history_model import CallHistoryModel
from gatewright_gui.pages.trial.stages import StageModel, duration
from gatewright_gui.session.calls import STAGE_NAMES, CallRecord, CallRequest, StageRow
from gatewright_gui.session.console import DECIDING_NAMES

FATAL = QAbstractItemModelTester.FailureReportingMode.Fatal


def row(name: str, verdict: Verdict = Verdict.ALLOW) -> StageRow:
    return StageRow(name, verdict, f"{name} said so", 12.0)


def test_stages_not_reached_are_told_from_those_at_work(qapp: object) -> None:
    model = StageModel()
    tester = QAbstractItemModelTester(model, FATAL)
    assert {model.state_at(at) for at in range(model.rowCount())} == {"waiting"}
    model.start_over(running=True)
    model.pass_stage(row(STAGE_NAMES[0]))
    assert [str(model.state_at(at)) for at in range(3)] == ["allow", "working", "waiting"]
    model.hold(held=True)
    assert model.state_at(1) == "waiting"
    model.finish([row(STAGE_NAMES[0]), row(STAGE_NAMES[1], Verdict.DENY)])
    assert [str(model.state_at(at)) for at in range(3)] == ["allow", "deny", "skipped"]
    assert model.index(2, stages.VERDICT).data() == "not reached"
    assert tester.model() is model


def test_stages_are_told_by_what_they_do_and_named_in_the_tip(qapp: object) -> None:
    assert tuple(stage.name for stage in STAGES) == STAGE_NAMES
    model = stages.StageModel()
    rows = [model.index(row, stages.STAGE) for row in range(model.rowCount())]
    assert len({index.data() for index in rows}.difference(stages.STAGE_NAMES)) == len(stages.STAGE_NAMES)
    tips = [index.data(Qt.ItemDataRole.ToolTipRole) for index in rows]
    assert tips == [f"Stage {name}" for name in stages.STAGE_NAMES]


def test_stage_that_lets_a_question_pass_is_shown_as_the_one_that_waits(qapp: object) -> None:
    model = StageModel()
    at = STAGE_NAMES.index(stages.APPROVAL)
    model.start_over(running=True)
    for name in DECIDING_NAMES:
        model.pass_stage(row(name))
    model.hold(held=True)
    assert (model.state_at(at), model.index(at, stages.REASON).data()) == ("ask", "waits for an answer")
    model.hold(held=False)
    assert model.state_at(at) == "allow"
    model.finish([row(name) for name in DECIDING_NAMES], to_the_end=False, asks=True)
    assert model.index(at, stages.VERDICT).data() == "asks"


def test_second_round_after_an_approval_opens_the_stages_again(qapp: object) -> None:
    model = StageModel()
    model.start_over(running=True)
    for name in DECIDING_NAMES:
        model.pass_stage(row(name))
    model.pass_stage(row(DECIDING_NAMES[0]))
    assert model.state_at(1) == "working"


def test_decision_does_not_wait_for_stages_that_act(qapp: object) -> None:
    model = StageModel()
    model.start_over(running=True, to_the_end=False)
    assert model.state_at(len(DECIDING_NAMES)) == "skipped"


@pytest.mark.parametrize(("us", "text"), [(87.2, "87 µs"), (1_300, "1.3 ms"), (2_400_000, "2.4 s")])
def test_times_say_their_unit(us: float, text: str) -> None:
    assert duration(us) == text


def record(number: int, operation: str = "read") -> CallRecord:
    request = CallRequest("archivist", "file", "{}")
    when = 1_700_000_000.0 + number
    verdict = (Verdict.ALLOW, "approval", "allowed", "", None, None)
    return CallRecord(number, "run", when, request, operation, *verdict, (), "timed_out")


def test_history_is_newest_first_and_keeps_its_rows(qapp: object) -> None:
    model = CallHistoryModel()
    tester = QAbstractItemModelTester(model, FATAL)
    records = [record(1), record(2, "")]
    model.set_rows(records[:1])
    model.set_rows(reversed(records))
    assert [model.index(at, callhistory.CALL).data() for at in range(2)] == ["file", "file.read"]
    assert model.index(0, callhistory.VERDICT).data() == "timed out"
    model.set_rows([])
    assert model.rowCount() == 0
    assert tester.model() is model
