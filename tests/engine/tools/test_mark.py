"""Markers: where they are found, which are refused when the tool is declared, and which values they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NewType

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, HttpUrl, RootModel
from typing_extensions import TypedDict

from gatewright.base.errors import RegistrationError
from gatewright.policy.capability import CapabilityKind
from gatewright.tools import (
    FileParameter,
    HostParameter,
    PathParameter,
    Role,
    SourceParameter,
    TableParameter,
    UrlParameter,
    VariableParameter,
)
from gatewright.tools.parameter import (
    Mark,
    Parameter,
    Step,
    marks_in,
    marks_of_fields,
    replace_texts,
    unavoidable_kinds,
    values_at,
)

Url = Annotated[str, UrlParameter()]
Address = NewType("Address", str)


class Place(BaseModel):
    url: Url
    note: str = ""


class Aliased(BaseModel):
    url: Url = Field(alias="where")


class Several(BaseModel):
    url: Url = Field(validation_alias=AliasChoices("url", "uri"))


class ByBothNames(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    url: Url = Field(alias="where")


class Defaulted(BaseModel):
    url: Url = "https://example.org"


class Optional(BaseModel):
    url: Url | None = None


class Made(BaseModel):
    urls: list[Url] = Field(default_factory=list)


class Endless(BaseModel):
    url: Url
    next: Endless | None = None


class Tree(BaseModel):
    children: list[Tree] = Field(default_factory=list)


class Urls(RootModel[list[Url]]):
    pass


@dataclass
class Plain:
    url: Url


class Table(TypedDict):
    url: Url


class Row(NamedTuple):
    url: Url


@pytest.mark.parametrize(
    ("hint", "at"),
    [
        (Url, ()),
        (Url | None, ()),
        (Annotated[list[str], UrlParameter()], ()),
        (Annotated[HttpUrl, UrlParameter()], ()),
        (Annotated[Path, UrlParameter()], ()),
        (Annotated[Address, UrlParameter()], ()),
        (list[Url], (Step.ITEMS,)),
        (tuple[Url, ...], (Step.ITEMS,)),
        (set[Url] | None, (Step.ITEMS,)),
        (list[list[Url]], (Step.ITEMS, Step.ITEMS)),
        (dict[str, Url], (Step.VALUES,)),
        (Place, ("url",)),
        (list[Place], (Step.ITEMS, "url")),
        (dict[str, list[Place]], (Step.VALUES, Step.ITEMS, "url")),
        (Aliased, ("where",)),
        (Optional, ("url",)),
        (Urls, (Step.ITEMS,)),
    ],
)
def test_marker_is_found_wherever_it_stands(hint: Any, at: tuple[str | Step, ...]) -> None:
    assert marks_in(hint, "it") == (Mark(at, UrlParameter()),)


@pytest.mark.parametrize("hint", [str, list[str], dict[str, int], Any, Tree, Plain.__class__, int | None])
def test_annotation_without_a_marker_has_no_mark(hint: Any) -> None:
    assert marks_in(hint, "it") == ()


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Annotated[int, UrlParameter()], "no text"),
        (Annotated[list[int], UrlParameter()], "no text"),
        (Annotated[dict[str, str], UrlParameter()], "no text"),
        (Annotated[Place, UrlParameter()], "no text"),
        (Annotated[str, UrlParameter], "with brackets"),
        (Annotated[str, UrlParameter(), FileParameter()], "two markers"),
        (Annotated[str, UrlParameter(), UrlParameter(effect="write")], "two markers"),
        (dict[Url, str], "key"),
        (tuple[Url, str], "not looked into"),
        (type[Url], "not looked into"),
        (Plain, "not looked into"),
        (list[Table], "not looked into"),
        (Row, "not looked into"),
        (Several, "several names"),
        (ByBothNames, "several names"),
        (Defaulted, "default"),
        (Made, "default"),
        (Endless, "no end"),
        (list[Annotated[str, SourceParameter()]], "source"),
    ],
)
def test_marker_that_could_be_missed_is_refused(hint: Any, words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        marks_in(hint, "parameter `it`")


@pytest.mark.parametrize(
    "make",
    [
        lambda: UrlParameter(schemes=("file",)),
        lambda: UrlParameter(schemes=()),
        lambda: UrlParameter(effect="both"),  # pyright: ignore[reportArgumentType] what the check is for
        lambda: HostParameter(effect=""),  # pyright: ignore[reportArgumentType] what the check is for
    ],
)
def test_nonsense_in_a_marker_is_refused(make: Any) -> None:
    with pytest.raises(RegistrationError):
        make()


def test_fields_of_a_model_are_known_by_the_name_in_json() -> None:
    assert marks_of_fields(Aliased, "tool") == {"where": (Mark((), UrlParameter()),)}
    with pytest.raises(RegistrationError, match="function"):
        marks_of_fields(Made, "tool")


def test_role_and_marks_follow_from_each_other() -> None:
    by_role = Parameter("p", {}, True, Role.PATH)
    assert by_role.marks == (Mark((), PathParameter()),)
    by_mark = Parameter("p", {}, True, marks=(Mark(("x",), TableParameter()),))
    assert by_mark.role is Role.TABLE
    assert Parameter("p", {}, True).marks == ()


def test_kind_is_required_by_a_parameter_that_cannot_be_left_out() -> None:
    def one(marker: Any, *, required: bool = True, at: tuple[str, ...] = ()) -> Parameter:
        return Parameter("p", {}, required, marks=(Mark(at, marker),))

    assert unavoidable_kinds([one(UrlParameter(effect="write")), one(VariableParameter())]) == {
        CapabilityKind.NET_WRITE,
        CapabilityKind.ENV_READ,
    }
    assert unavoidable_kinds([one(FileParameter(writes=True)), one(FileParameter())]) == {
        CapabilityKind.FS_READ,
        CapabilityKind.FS_WRITE,
    }
    assert unavoidable_kinds([one(UrlParameter(), required=False), one(UrlParameter(), at=("x",))]) == frozenset()
    assert unavoidable_kinds([one(PathParameter())]) == frozenset()


def test_values_are_found_one_by_one_with_their_places() -> None:
    value: Any = {"a": [{"url": "x"}, {"url": ["y", None, ["z"]]}, {"note": 1}, 7]}
    found = list(values_at(value, ("a", Step.ITEMS, "url")))
    assert found == [(("a", 0, "url"), "x"), (("a", 1, "url", 0), "y"), (("a", 1, "url", 2, 0), "z")]
    assert list(values_at({"items": "x"}, ("items",))) == [(("items",), "x")]
    assert list(values_at({"items": "x"}, (Step.ITEMS,))) == []
    assert list(values_at({"k": 3}, (Step.VALUES,))) == [(("k",), 3)]


def test_replacing_leaves_the_given_value_as_it_was() -> None:
    value: Any = {"a": [{"url": "x"}, {"url": ["y"]}], "b": 1}
    new = replace_texts(value, {("a", 0, "url"): "X", ("a", 1, "url", 0): "Y"})
    assert new == {"a": [{"url": "X"}, {"url": ["Y"]}], "b": 1}
    assert value == {"a": [{"url": "x"}, {"url": ["y"]}], "b": 1}
    assert replace_texts("x", {(): "y"}) == "y"
