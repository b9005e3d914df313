import json

from hypothesis import given
from hypothesis import strategies as st

from gatewright_gui.session.jsonplace import line_of, schema_steps, steps_of

TOOL = {
    "name": "mail",
    "empty": {},
    "function": {"parameters": {"type": "object", "properties": {"a/b": {"enum": [1, 2]}, "to": {"type": "string"}}}},
}


def line(value: object, *steps: str) -> str:
    return json.dumps(value, indent=2).splitlines()[line_of(value, steps) - 1].strip()


def test_line_is_where_the_part_begins() -> None:
    assert line(TOOL, "name").startswith('"name"')
    assert line(TOOL, "function", "parameters", "properties", "to").startswith('"to"')
    assert line([TOOL, TOOL], "1", "function").startswith('"function"')
    assert line_of([TOOL, TOOL], ("1", "function")) > line_of([TOOL, TOOL], ("0", "function"))


def test_part_that_is_not_there_leads_to_the_nearest_one_around_it() -> None:
    assert line(TOOL, "function", "parameters", "additionalProperties").startswith('"parameters"')


def test_pointer_and_schema_place_are_read() -> None:
    steps = (*schema_steps(TOOL), *steps_of("/properties/a~1b/enum/1"))

    assert steps == ("function", "parameters", "properties", "a/b", "enum", "1")
    assert line(TOOL, *steps) == "2"


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), values, min_size=1, max_size=5))
def test_every_key_stands_on_its_line(value: dict[str, object]) -> None:
    lines = json.dumps(value, indent=2).splitlines()

    for key in value:
        assert lines[line_of(value, (key,)) - 1].startswith(f"  {json.dumps(key)}:")
