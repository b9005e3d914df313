from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.schema import Schema, survey
from gatewright_gui.pages.access.tools.declaration import ChoiceModel, OperationListModel, choices_of, row_in_force
from gatewright_gui.session.verbs.operations import AS_THE_SCHEMA_SAYS, NO_OPERATIONS, Declaration

ISSUES: Schema = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["open", "close", "list"]},
        "state": {"type": "string", "enum": ["any", "mine"]},
    },
    "required": ["action"],
}
CALENDAR: Schema = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "One of: add_event, move_event or list_events."},
        "when": {"type": "string"},
    },
    "required": ["command"],
}
FREE = survey(CALENDAR, "Keeps dates")


def test_choices_begin_with_the_schema_and_end_with_no_operations() -> None:
    choices = choices_of(survey(ISSUES), AS_THE_SCHEMA_SAYS)

    assert choices[0].declaration(()) == AS_THE_SCHEMA_SAYS
    assert "action" in choices[0].title
    assert Declaration("action") in [choice.declaration(()) for choice in choices]
    assert choices[-1].declaration(()) == NO_OPERATIONS


def test_free_text_is_chosen_when_one_came_to_declare_and_its_suggestions_are_not_ticked(qapp: object) -> None:
    choices = choices_of(FREE, AS_THE_SCHEMA_SAYS)
    row = row_in_force(choices, AS_THE_SCHEMA_SAYS, wants_free=True)
    model = OperationListModel()
    model.show(choices[row], ())

    assert choices[row].field == "command"
    assert set(choices[row].suggested) == {"add_event", "move_event", "list_events"}
    assert model.names == ()


def test_what_is_declared_is_chosen_and_ticked_even_where_nobody_suggests_it(qapp: object) -> None:
    now = Declaration("command", ("add_event", "purge"))
    choices = choices_of(FREE, now)
    row = row_in_force(choices, now, wants_free=False)
    model = OperationListModel()
    model.show(choices[row], now.operations or ())

    assert model.names == ("add_event", "purge")
    assert choices[row].declaration(model.names) == now


def test_names_are_ticked_added_and_taken_away(qapp: object) -> None:
    choices = choices_of(FREE, AS_THE_SCHEMA_SAYS)
    model = OperationListModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.show(choices[row_in_force(choices, AS_THE_SCHEMA_SAYS, wants_free=True)], ())

    assert model.setData(model.index(0, 0), Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)
    assert model.add("purge") == ""
    assert model.add("purge") == "`purge` is there already"
    assert model.add(" purge") == "` purge` has blanks around it"
    assert model.add("") == "an operation needs a name"
    assert model.names[-1] == "purge"
    assert model.remove(model.rowCount() - 1)
    assert "purge" not in model.names
    assert tester.model() is model


def test_closed_list_is_shown_and_cannot_be_ticked(qapp: object) -> None:
    choices = choices_of(survey(ISSUES), AS_THE_SCHEMA_SAYS)
    model = OperationListModel()
    model.show(choices[0], ())

    assert model.names == ("open", "close", "list")
    assert not model.setData(model.index(0, 0), Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
    assert not model.remove(0)


def test_choices_keep_the_rules_of_item_models(qapp: object) -> None:
    model = ChoiceModel(None, choices_of(FREE, AS_THE_SCHEMA_SAYS))
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)

    assert tester.model() is model
    assert "one box" in str(model.index(model.rowCount() - 1, 0).data())
