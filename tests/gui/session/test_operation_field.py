from gatewright.schema import Schema, survey
from gatewright_gui.pages.access.tools.declaration import choices_of
from gatewright_gui.session.operation_field import with_other_fields
from gatewright_gui.session.verbs.operations import AS_THE_SCHEMA_SAYS, Declaration

SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["open", "close"]},
        "theme": {"$ref": "#/$defs/theme"},
        "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "size": {"type": "integer"},
        "parts": {"type": "object"},
    },
    "required": ["action"],
    "$defs": {"theme": {"enum": ["dark", "light"]}},
}


def test_every_list_and_text_of_a_schema_can_be_chosen_and_nothing_else() -> None:
    full = with_other_fields(survey(SCHEMA), SCHEMA)
    fields = [choice.field for choice in choices_of(full, AS_THE_SCHEMA_SAYS)]

    assert fields == [None, "action", "theme", "title", ""]


def test_what_the_engine_found_stays_what_is_found() -> None:
    found = survey(SCHEMA)
    full = with_other_fields(found, SCHEMA)

    assert full.found == found.found
    assert full.readings[: len(found.readings)] == found.readings


def test_list_that_is_not_taken_by_itself_says_so_and_text_takes_the_names_that_are_ticked() -> None:
    full = with_other_fields(survey(SCHEMA), SCHEMA)
    by_field = {choice.field: choice for choice in choices_of(full, AS_THE_SCHEMA_SAYS)}

    assert "2 operations, not taken for operations" in by_field["theme"].note
    assert by_field["theme"].declaration(()) == Declaration("theme")
    assert by_field["title"].declaration(("a",)) == Declaration("title", ("a",))
