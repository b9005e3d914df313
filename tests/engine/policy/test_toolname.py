"""Tool names with and without a major version."""

from __future__ import annotations

import pytest

from gatewright.policy.right import ToolFacts
from gatewright.policy.verdict import SafetyTier, bare_names, names_tool, pick_tools, split_name


def _tool(name: str, major: int = 1, origin: str = "built-in") -> ToolFacts:
    return ToolFacts(name, major, (), SafetyTier.READ_ONLY, origin)


@pytest.mark.parametrize(
    ("written", "name", "major"),
    [
        ("recall", "recall", None),
        ("recall@2", "recall", 2),
        ("a@b@03", "a@b", 3),
        ("recall@123456789", "recall", 123_456_789),
        ("recall@1234567890", "recall@1234567890", None),
        ("recall@", "recall@", None),
        ("recall@two", "recall@two", None),
        ("recall@²", "recall@²", None),
        ("recall@٣", "recall@٣", None),
        ("@2", "@2", None),
        ("catalog:x@2", "catalog:x@2", None),
    ],
)
def test_name_is_split_from_a_major_that_is_one(written: str, name: str, major: int | None) -> None:
    assert split_name(written) == (name, major)


@pytest.mark.parametrize(
    ("written", "is_named"),
    [("a", True), ("*", True), ("a@2", True), ("a@1", False), ("b", False), ("b@2", False), ("*@2", False)],
)
def test_name_stands_for_a_tool_by_its_major_or_for_all_of_them(written: str, is_named: bool) -> None:
    assert names_tool(written, _tool("a", 2)) is is_named
    assert names_tool("a@x", _tool("a@x"))


@pytest.mark.parametrize(
    ("written", "origin", "is_named"),
    [
        ("catalog:x", "x", True),
        ("catalog:x", "X", False),
        ("catalog:x", "x.y", False),
        ("catalog:x@2", "x@2", True),
        ("catalog:x@2", "x", False),
        ("catalog:a", "x", False),
    ],
)
def test_catalog_stands_for_its_tools_and_for_no_tool_of_that_name(written: str, origin: str, is_named: bool) -> None:
    assert names_tool(written, _tool("a", 2, origin)) is is_named
    assert not names_tool(written, _tool(written, 2, "another"))


def test_bare_names_are_those_of_the_tools_that_are_meant() -> None:
    catalog = (_tool("a", 1, "x"), _tool("b", 1, "x"), _tool("b", 2, "x"), _tool("c", 1, "y"))
    assert bare_names(("c@1", "gone", "catalog:x"), catalog) == {"a", "b", "c", "gone"}
    assert bare_names(("catalog:z",), catalog) == frozenset()


@pytest.mark.parametrize(
    ("majors", "listed", "chosen"),
    [
        ((1, 2, 3), None, 3),
        ((3, 2, 1), (), 3),
        ((1, 2, 3), ("a",), 3),
        ((1, 2, 3), ("a@2",), 2),
        ((2, 3, 1), ("a@2",), 2),
        ((3, 1), ("a@2",), 3),
        ((1, 3), ("a@1", "a@x"), 1),
        ((1, 3), ("b@1",), 3),
    ],
)
def test_of_several_majors_the_listed_one_is_chosen_or_the_highest(
    majors: tuple[int, ...], listed: tuple[str, ...] | None, chosen: int
) -> None:
    catalog = [ToolFacts("a", major, (), SafetyTier.READ_ONLY) for major in majors]
    other = ToolFacts("b", 7, (), SafetyTier.READ_ONLY)
    found = pick_tools((*catalog, other), listed)
    assert [(name, facts.major) for name, facts in found.items()] == [("a", chosen), ("b", 7)]
