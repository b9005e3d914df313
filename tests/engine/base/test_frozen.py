"""Frozen values: made, compared, hashed, printed, copied and pickled as frozen slotted dataclasses are."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from gatewright.base.frozen import frozen

_T = TypeVar("_T")


@frozen
class Point:
    """A place."""

    limit: ClassVar[int] = 9
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list[str], hash=False)
    note: str = field(default="", compare=False, repr=False, kw_only=True)
    total: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


@dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list[str], hash=False)
    note: str = field(default="", compare=False, repr=False, kw_only=True)


@frozen
class Named(Point):
    name: str = "a"


@frozen
class Alike(Point):
    pass


@frozen
class Nothing:
    pass


@frozen
class Unused:
    x: int
    y: int = 2


@frozen
class Box(Generic[_T]):
    content: _T


@frozen
class Always:
    x: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "always"


def test_a_value_holds_what_it_was_given_or_its_defaults() -> None:
    point = Point(1, names=["a"], note="n")
    assert (point.x, point.y, point.names, point.note, point.total) == (1, 2, ["a"], "n", 3)
    assert Point(1).names is not Point(1).names
    assert (Point.__doc__, Point.limit) == ("A place.", 9)


@pytest.mark.parametrize("kind", [Point, Standard])
def test_what_a_class_cannot_take_is_refused_as_by_a_dataclass(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        kind(1, 2, ["a"], "by place")
    with pytest.raises(TypeError):
        kind(1, z=3)


@pytest.mark.parametrize("kind", [Point, Standard])
def test_no_field_can_be_set_deleted_or_added(kind: Any) -> None:
    point = kind(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 3
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises((FrozenInstanceError, TypeError)):
        point.z = 3
    assert not hasattr(point, "__dict__")
    assert point.x == 1


def test_values_are_equal_by_the_fields_that_count_and_within_one_class() -> None:
    assert Point(1) == Point(1, note="other")
    assert hash(Point(1, names=["a"])) == hash(Point(1))
    assert Point(1) != Point(1, 3)
    assert Point(1) != Alike(1)
    assert Point(1) != Standard(1)
    assert Nothing() == Nothing()
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_what_a_class_says_itself_stays() -> None:
    assert Always(1) == Always(2)
    assert (hash(Always(1)), repr(Always(1))) == (7, "always")


def test_a_value_is_printed_with_the_fields_that_are_to_be_seen() -> None:
    assert repr(Point(1, note="n")) == "Point(x=1, y=2, names=[], total=3)"


def test_a_class_of_values_takes_over_the_fields_of_its_base() -> None:
    named = Named(1, name="b")
    assert (named.x, named.total, named.name) == (1, 3, "b")
    assert isinstance(named, Point)
    assert Alike(1, 5).total == 6


def test_a_generic_value_can_be_made_with_and_without_its_parameter() -> None:
    assert Box(1) == Box[int](1)


def test_the_first_value_of_a_class_may_be_made_with_every_field_by_its_name() -> None:
    @frozen
    class Named:
        kind: str
        args: int
        named: int
        made: int

    assert repr(Named(kind="a", args=1, named=2, made=3)).endswith("Named(kind='a', args=1, named=2, made=3)")


def test_what_a_class_takes_can_be_asked_before_it_made_a_value() -> None:
    assert str(inspect.signature(Unused)).startswith("(x, y=")
    assert Unused(1, 2).y == 2


def test_values_are_matched_by_place() -> None:
    match Point(1, 5):
        case Point(x, y):
            assert (x, y) == (1, 5)


def test_the_functions_of_dataclasses_take_values() -> None:
    changed = replace(Named(1, note="n"), y=7)
    assert (changed, changed.note, changed.total) == (Named(1, 7), "n", 8)
    assert [one.name for one in fields(Named)] == ["x", "y", "names", "note", "total", "name"]
    assert asdict(Alike(1)) == {"x": 1, "y": 2, "names": [], "note": "", "total": 3}
    assert is_dataclass(Point)
    assert [one.type for one in fields(Alike)] == ["int", "int", "list[str]", "str", "int"]
    assert [one.compare for one in fields(Point)] == [True, True, True, False, False]


def test_a_value_is_copied_and_pickled_with_everything_it_holds() -> None:
    named = Named(1, names=["a"], note="n", name="b")
    for other in (copy.copy(named), copy.deepcopy(named), pickle.loads(pickle.dumps(named))):
        assert (other, other.note, other.total) == (named, "n", 3)
    assert copy.deepcopy(named).names is not named.names


def test_values_come_out_of_a_pickle_in_a_process_that_has_made_none() -> None:
    asked = "one, same, other = pickle.loads(sys.stdin.buffer.read())"
    asked += "; print(one == same, one != other, hash(one) == hash(same))"
    given = pickle.dumps((Point(1, note="n"), Point(1), Point(2)))
    told = subprocess.run(
        [sys.executable, "-c", f"import pickle, sys; {asked}"],
        check=False,
        input=given,
        capture_output=True,
        cwd=Path(__file__).parents[3],
    )
    assert told.stdout.split() == [b"True"] * 3, told.stderr
