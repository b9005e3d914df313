"""Where tools come from, in words."""

from gatewright_gui.session.tool_groups import by_origin, group_of


def test_compositions_are_a_group_of_their_own() -> None:
    group = group_of("composition")
    assert (group.title, group.words) == ("Compositions", "Compositions")
    assert list(by_origin(["composition", "built-in"], str)) == ["built-in", "composition"]
