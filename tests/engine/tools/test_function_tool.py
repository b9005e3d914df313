"""`@tool` on async functions: what is read from them, what is refused, how they are called."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Generic, Literal, TypeVar, cast

import pytest
from pydantic import BaseModel, Field

from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import SchemaChecker
from gatewright.tools import (
    Normalization,
    ResourceBounds,
    ResultType,
    SideEffect,
    Tool,
    ToolExecutionContext,
    operation,
    tool,
)
from tests.engine.tools.declared import CONTEXT

T = TypeVar("T")
PLAIN = frozenset({""})


class Line(BaseModel):
    """One line of an order."""

    article: str
    amount: Annotated[int, Field(ge=1)] = 1


class Branch(BaseModel):
    name: str
    branches: list["Branch"] = []


@tool
async def count_words(text: str, at_least: int = 1, language: Literal["de", "en"] | None = None) -> dict[str, int]:
    """Count the words of a text.

    Short words may be left out.

    Args:
        text: What to count in,
            over as many lines as it takes.
        at_least (int): Letters that a word needs.
    """
    del language
    return {"count": sum(len(word) >= at_least for word in text.split())}


def test_name_description_and_sentences_come_from_the_function() -> None:
    assert count_words.name == "count_words"
    assert count_words.description == "Count the words of a text.\n\nShort words may be left out."
    assert count_words.input_schema() == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to count in, over as many lines as it takes."},
            "at_least": {"type": "integer", "description": "Letters that a word needs.", "default": 1},
            "language": {"enum": ["de", "en"], "type": "string"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_plain_tool_has_one_nameless_operation_for_the_policy() -> None:
    facts = count_words.facts()

    assert count_words.operations == ()
    assert not facts.has_operations
    assert [row.name for row in facts.operations] == [""]
    assert count_words.schema_for(PLAIN) == count_words.input_schema()
    assert count_words.schema_for(frozenset()) is None
    assert count_words.operations_of({"op": "anything"}) == ("",)


def test_undeclared_tier_is_the_strictest() -> None:
    assert count_words.facts().tier is SafetyTier.PRIVILEGED


async def test_execute_fills_defaults_and_gives_json() -> None:
    assert await count_words.execute("", {"text": "a bb ccc"}, CONTEXT) == {"count": 3}
    assert await count_words.execute("", {"text": "a bb ccc", "at_least": 2}, CONTEXT) == {"count": 2}


async def test_argument_of_the_wrong_type_is_a_failure_that_repeats_nothing() -> None:
    with pytest.raises(ToolFailure) as failed:
        await count_words.execute("", {"text": "a", "at_least": "SECRET"}, CONTEXT)

    assert str(failed.value).startswith("`at_least`: input should be a valid integer")
    assert "SECRET" not in str(failed.value)


async def test_unknown_argument_is_a_failure() -> None:
    with pytest.raises(ToolFailure, match="`other` is not taken here"):
        await count_words.execute("", {"text": "a", "other": 1}, CONTEXT)


def test_missing_and_unknown_arguments_are_issues() -> None:
    issues = count_words.missing_arguments("", {"other/~": 1})

    assert [(issue.pointer, issue.message) for issue in issues] == [
        ("/text", "the call needs `text`"),
        ("/other~1~0", "the call does not take this argument"),
    ]


async def test_values_arrive_in_the_types_of_the_function() -> None:
    @tool
    async def order(lines: list[Line], kinds: set[str]) -> dict[str, Any]:
        """Order things."""
        return {"amounts": [line.amount for line in lines], "kinds": sorted(kinds), "lines": lines}

    schema = order.input_schema()
    assert "$ref" not in str(schema)
    assert SchemaChecker(schema).is_valid({"lines": [{"article": "a"}], "kinds": []})
    assert not SchemaChecker(schema).is_valid({"lines": [{"article": "a", "amount": 0}], "kinds": []})
    result = await order.execute("", {"lines": [{"article": "a"}], "kinds": ["y", "x"]}, CONTEXT)
    assert result == {"amounts": [1], "kinds": ["x", "y"], "lines": [{"article": "a", "amount": 1}]}


async def test_context_is_handed_over_and_not_shown() -> None:
    @tool
    async def who(context: ToolExecutionContext, greeting: str = "hello") -> str:
        """Say who calls."""
        return f"{greeting} {context.agent_id}"

    assert list(who.input_schema()["properties"]) == ["greeting"]
    assert await who.execute("", {}, CONTEXT) == "hello tester"


def test_recursive_type_keeps_its_definitions_at_the_root() -> None:
    @tool
    async def plant(tree: Branch) -> str:
        """Plant a tree."""
        return tree.name

    checker = SchemaChecker(plant.input_schema())
    assert checker.is_valid({"tree": {"name": "a", "branches": [{"name": "b"}]}})
    assert not checker.is_valid({"tree": {"name": "a", "branches": [{"name": 1}]}})


def test_declarations_are_kept() -> None:
    @tool(
        name="fetch.page",
        version="2.1.0",
        description="Fetch a page.",
        safety_tier=SafetyTier.SIDE_EFFECTING,
        side_effects=[SideEffect.NET_READ],
        resource_bounds=ResourceBounds(timeout_s=5),
        origin="host",
    )
    async def fetch(url: str) -> bytes:
        return url.encode()

    assert (fetch.name, fetch.major, fetch.description) == ("fetch.page", 2, "Fetch a page.")
    assert fetch.side_effects == {SideEffect.NET_READ}
    assert (fetch.result_type, fetch.normalization) == (ResultType.BINARY, Normalization.BINARY)
    assert (fetch.facts().origin, fetch.facts().tier) == ("host", SafetyTier.SIDE_EFFECTING)
    assert fetch.resource_bounds.timeout_s == 5


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (str, ResultType.STRING),
        (bytes, ResultType.BINARY),
        (list[int], ResultType.ARRAY),
        (dict[str, int], ResultType.OBJECT),
        (Line, ResultType.OBJECT),
    ],
)
def test_result_type_comes_from_the_return_annotation(hint: Any, kind: ResultType) -> None:
    async def made() -> Any:
        """Make it."""

    made.__annotations__["return"] = hint

    assert tool(made).result_type is kind


def function(name: str, source: str) -> Callable[..., Any]:
    """A function as an author might write it, wrong ones included, which type checkers would not let stand here."""
    names: dict[str, Any] = {"T": T, "Annotated": Annotated, "Callable": Callable, "Context": ToolExecutionContext}
    exec(source, names)
    return cast("Callable[..., Any]", names[name])


DOC = '\n    """Do it."""\n'
BAD = {
    "not async": ("def f(a: str) -> str:" + DOC, "tool `f` is not an `async def` function"),
    "self": ("async def f(self, a: str) -> str:" + DOC, "parameter `self` belongs to a class"),
    "args": ("async def f(*rest: str) -> str:" + DOC, "parameter `*rest` has no fixed name"),
    "kwargs": ("async def f(**rest: str) -> str:" + DOC, "parameter `**rest` has no fixed name"),
    "positional": ("async def f(a: str, /) -> str:" + DOC, "parameter `a` cannot be given by name"),
    "unannotated": ("async def f(a: str, b) -> str:" + DOC, "parameter `b` has no annotation"),
    "unresolved": ("async def f(a: 'Nowhere') -> str:" + DOC, "parameter `a` has an annotation that cannot be"),
    "generic": ("async def f(a: list[T]) -> str:" + DOC, "parameter `a` is generic"),
    "bare generic": ("async def f(a: T) -> str:" + DOC, "parameter `a` is generic"),
    "no schema": ("async def f(a: Callable[[int], int]) -> str:" + DOC, "parameter `a`: `Callable` has no JSON Schema"),
    "no schema class": ("class X: pass\nasync def f(a: X) -> str:" + DOC, "parameter `a`: `X` has no JSON Schema"),
    "underscore": ("async def f(_a: str) -> str:" + DOC, "parameter `_a` begins with an underscore"),
    "default": ("async def f(a: int = 'x') -> str:" + DOC, "parameter `a` has a default that its own type refuses"),
    "contexts": ("async def f(a: Context, b: Context) -> str:" + DOC, "parameter `b` is a second execution context"),
    "no description": ("async def f(a: str) -> str: ...", "tool `f` has no `description`"),
    "no return": ("async def f(a: str):" + DOC, "`return` has no annotation"),
    "scalar": ("async def f(a: str) -> int:" + DOC, "`return` is no object, array, text or bytes"),
    "name": ("async def ä(a: str) -> str:" + DOC, "`ä` is no tool name"),
    "docstring": (
        'async def f(text: str) -> str:\n    """Do it.\n\n    Args:\n        texts: A text.\n    """',
        "the docstring describes `texts`, which is no parameter (did you mean `text`?)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_function_that_cannot_be_a_tool_is_refused_where_it_is_defined(case: str) -> None:
    source, message = BAD[case]
    name = "ä" if case == "name" else "f"

    with pytest.raises(RegistrationError) as refused:
        tool(function(name, source))

    assert message in str(refused.value)


def test_generic_class_is_refused_in_a_parameter() -> None:
    class Box(BaseModel, Generic[T]):
        held: T

    async def put(box: Any) -> str:
        """Put it away."""
        return str(box)

    put.__annotations__["box"] = cast("Any", Box)

    with pytest.raises(RegistrationError, match="parameter `box` is generic"):
        tool(put)


@pytest.mark.parametrize("version", ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0 ", "١.0.0"])
def test_version_that_is_not_semantic_is_refused(version: str) -> None:
    async def f() -> str:
        """Do it."""
        return ""

    with pytest.raises(RegistrationError, match=r"is not of the form `1\.2\.3`"):
        tool(version=version)(f)


@pytest.mark.parametrize("name", ["", "a@2", "*", "a b", "-a", "a" * 129, "a\n"])
def test_name_that_a_policy_cannot_write_is_refused(name: str) -> None:
    async def f() -> str:
        """Do it."""
        return ""

    f.__name__ = name
    with pytest.raises(RegistrationError, match="name"):
        tool(f)


def test_function_that_yields_is_a_stream_and_no_other_function_is() -> None:
    async def follow() -> AsyncIterator[bytes]:
        """Follow it."""
        yield b""

    async def whole() -> bytes:
        """Give all of it."""
        return b""

    made = tool(follow)
    assert (made.result_type, made.normalization) == (ResultType.STREAM, Normalization.BINARY)
    with pytest.raises(RegistrationError, match="`whole` yields nothing, and the `result_type` of the tool is stream"):
        tool(result_type=ResultType.STREAM)(whole)
    with pytest.raises(RegistrationError, match="`follow` yields, and the `result_type` of the tool is not stream"):
        tool(result_type=ResultType.STRING)(follow)


@pytest.mark.parametrize("bad", [0, -1, float("inf"), float("nan")])
def test_bound_that_bounds_nothing_is_refused(bad: float) -> None:
    with pytest.raises(RegistrationError, match="`timeout_s`"):
        ResourceBounds(timeout_s=bad)


def test_operation_that_yields_in_a_tool_that_is_no_stream_is_told_so() -> None:
    async def follow(self: object) -> AsyncIterator[str]:
        """Follow it."""
        yield str(self)

    declared = {"name": "tail", "description": "Follows.", "normalization": Normalization.JSON}
    rest = {**declared, "result_type": ResultType.STRING, "follow": operation(follow)}
    with pytest.raises(RegistrationError, match="operation `follow` of tool `tail` yields, and the `result_type`"):
        type("Tail", (Tool,), rest)


def test_example_of_a_function_that_is_no_call_is_refused_with_its_place() -> None:
    async def count(text: str, at_least: int = 1) -> dict[str, int]:
        """Count the words."""
        return {"count": len(text) * at_least}

    made = tool(examples=({"text": "two words"},))(count)
    assert made.examples == ({"text": "two words"},)
    with pytest.raises(RegistrationError, match="tool `count`: example 2 is no call of it at `/at_least`"):
        tool(examples=({"text": "two"}, {"text": "two", "at_least": "x"}))(count)
