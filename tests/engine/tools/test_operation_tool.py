"""Tools whose operations are methods: what is read from the class, what is refused, how they are called."""

import json
from typing import Annotated, Any

import pytest
from pydantic import Field

from gatewright import Gate, ToolRegistry
from gatewright.base.errors import RegistrationError, ToolFailure, WeMustFix
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, MaxCalls, ToolRule
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.schema import SchemaChecker
from gatewright.tools import Normalization, PathParameter, ResultType, Role, Tool, ToolExecutionContext, operation
from tests.engine.tools.declared import CONTEXT, ObjectTool


class Notes(ObjectTool):
    name = "notes"
    description = "Keeps notes. Use `erase` with care."
    safety_tier = SafetyTier.SIDE_EFFECTING
    usage_rule = "Keep notes short. Prefer `find` over guessing."

    def __init__(self) -> None:
        self.kept: list[str] = []

    @operation(actions=(Action.APPEND,), usage_rule="Call `write` once per thought.")
    async def write(self, text: str, tag: str | None = None) -> JsonValue:
        """Write a note.

        Args:
            text: What to keep.
        """
        self.kept.append(f"{text} #{tag}" if tag else text)
        return {"count": len(self.kept)}

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,))
    async def find(self, context: ToolExecutionContext, text: str, limit: Annotated[int, Field(ge=1)] = 5) -> JsonValue:
        """Find notes, as opposed to `erase`."""
        found: list[JsonValue] = [note for note in self.kept if text in note]
        return {"found": found[:limit], "by": context.agent_id}

    @operation(tier=SafetyTier.PRIVILEGED, actions=(Action.OVERWRITE, Action.DELETE), usage_rule="Ask before `erase`.")
    async def erase(self) -> JsonValue:
        """Erase all notes."""
        self.kept.clear()
        return {}


def test_operations_are_the_marked_methods_in_their_order() -> None:
    notes = Notes()

    assert [(spec.name, spec.tier) for spec in notes.operations] == [
        ("write", SafetyTier.SIDE_EFFECTING),
        ("find", SafetyTier.READ_ONLY),
        ("erase", SafetyTier.PRIVILEGED),
    ]
    assert notes.facts().tier is SafetyTier.PRIVILEGED
    assert [parameter.name for parameter in notes.parameters("find")] == ["text", "limit"]
    assert notes.parameters("unknown") == ()


def test_schema_is_one_flat_object_for_the_shown_operations() -> None:
    schema = Notes().schema_for(frozenset({"write", "find"}))

    assert schema is not None
    assert schema["properties"]["op"]["enum"] == ["find", "write"]
    assert schema["required"] == ["op", "text"]
    assert schema["properties"]["limit"] == {"minimum": 1, "type": "integer", "default": 5}
    assert schema["properties"]["tag"] == {"type": "string"}
    assert schema["additionalProperties"] is False
    assert "erase" not in json.dumps(schema)


def test_operation_lines_say_what_each_needs() -> None:
    schema = Notes().input_schema()

    assert schema["properties"]["op"]["description"].split("\n") == [
        "What to do.",
        "- erase: Erase all notes.",
        "- find (text; optional: limit): Find notes, as opposed to `erase`.",
        "- write (text; optional: tag): Write a note.",
    ]
    assert schema["required"] == ["op"]


def test_texts_lose_hidden_operations() -> None:
    notes = Notes()
    shown = frozenset({"write"})

    assert notes.description_for(shown) == "Keeps notes."
    assert notes.usage_rule_for(shown) == "Keep notes short. Call `write` once per thought."
    assert notes.description_for(frozenset({"write", "find", "erase"})) == notes.description


def test_usage_rules_of_shown_operations_follow_alphabetically() -> None:
    rule = Notes().usage_rule_for(frozenset({"write", "find", "erase"}))

    assert rule == ("Keep notes short. Prefer `find` over guessing. Ask before `erase`. Call `write` once per thought.")


async def test_execute_runs_the_method_with_its_own_types() -> None:
    notes = Notes()
    await notes.execute("write", {"op": "write", "text": "milk", "tag": "shop"}, CONTEXT)
    await notes.execute("write", {"text": "more milk"}, CONTEXT)

    result = await notes.execute("find", {"op": "find", "text": "milk", "limit": 1}, CONTEXT)

    assert result == {"found": ["milk #shop"], "by": "tester"}


async def test_value_beyond_its_bounds_is_a_failure() -> None:
    with pytest.raises(ToolFailure, match="`limit`: input should be greater than or equal to 1"):
        await Notes().execute("find", {"text": "a", "limit": 0}, CONTEXT)


async def test_unknown_operation_is_our_mistake_not_the_models() -> None:
    with pytest.raises(WeMustFix):
        await Notes().execute("burn", {}, CONTEXT)


def test_operation_is_the_exact_text_of_its_field() -> None:
    notes = Notes()

    assert notes.operations_of({"op": " Write"}) == (" Write",)
    assert notes.operations_of({"op": 1}) is None
    assert notes.operations_of({}) is None


def test_several_actions_are_assessed_as_the_gravest() -> None:
    assert Notes().assess("erase", {}, CONTEXT).action is Action.DELETE
    assert Notes().assess("find", {}, CONTEXT).action is Action.READ
    assert Notes().assess("burn", {}, CONTEXT).action is None


def test_marker_gives_the_role_also_when_the_parameter_is_optional() -> None:
    class Viewer(ObjectTool):
        name = "viewer"

        @operation
        async def view(self, path: Annotated[str, PathParameter()] | None = None) -> JsonValue:
            """View it."""
            return {"path": path}

    (parameter,) = Viewer().parameters("view")
    assert (parameter.role, parameter.schema, parameter.required) == (Role.PATH, {"type": "string"}, False)


def test_subclass_adds_to_the_operations_it_inherits() -> None:
    class MoreNotes(Notes):
        name = "more_notes"

        @operation
        async def count(self) -> JsonValue:
            """Count them."""
            return {"count": len(self.kept)}

    assert [spec.name for spec in MoreNotes().operations] == ["write", "find", "erase", "count"]
    assert [spec.name for spec in Notes().operations] == ["write", "find", "erase"]


def test_tool_may_keep_facts_of_its_own() -> None:
    class Recall(Notes):
        name = "recall_facts"

        def __init__(self) -> None:
            super().__init__()
            self._facts = {"tea": "hot"}

    assert Recall().facts().name == "recall_facts"


def refused(members: dict[str, Any], base: type[Tool] = ObjectTool) -> str:
    """What defining a class with these members is refused with."""
    with pytest.raises(RegistrationError) as error:
        type("Bad", (base,), members)
    return str(error.value)


def good() -> Any:
    """A method that is fine, a fresh one each time, since the decorator marks what it is given."""

    async def method(self: Tool, text: str) -> JsonValue:
        """Do it."""
        return {"text": text, "tool": self.name}

    return method


def test_class_without_name_is_refused() -> None:
    assert refused({"good": operation(good())}) == "`Bad` declares no `name`"


def test_class_without_operations_is_refused() -> None:
    assert "has no operations" in refused({"name": "bad", "good": good()})


def test_class_without_description_is_refused() -> None:
    assert refused({"name": "bad", "description": ""}) == "tool `bad` has no `description`"


def test_class_docstring_is_the_description_where_none_is_declared() -> None:
    class Documented(Tool):
        """Does what it says."""

        name = "documented"
        result_type = ResultType.OBJECT
        normalization = Normalization.JSON

        @operation
        async def go(self) -> JsonValue:
            """Go."""
            return {}

    assert Documented.description == "Does what it says."


def test_missing_result_type_and_normalization_are_named() -> None:
    assert refused({"name": "bad", "result_type": None}) == "tool `bad` declares no `result_type`"
    assert refused({"name": "bad", "normalization": None}) == "tool `bad` declares no `normalization`"


def test_normalization_has_to_fit_the_result_type() -> None:
    assert "does not fit" in refused({"name": "bad", "result_type": ResultType.BINARY})
    assert "does not fit" in refused({"name": "bad", "normalization": Normalization.BINARY})
    assert "needs a method `normalize`" in refused({"name": "bad", "normalization": Normalization.CUSTOM})


def test_own_rules_bind_the_tool_itself_only() -> None:
    rules = (ToolRule("other", MaxCalls(1)),)

    assert refused({"name": "bad", "tool_rules": rules}) == "tool `bad`: its `tool_rules` hold a rule for `other`"


def test_operation_that_is_not_async_is_refused_at_its_method() -> None:
    def slow(self: Tool) -> None:
        del self

    with pytest.raises(RegistrationError, match="operation `slow` is not an `async def` method"):
        operation(slow)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_operation_without_self_is_refused() -> None:
    async def lost() -> None:
        """Do it."""

    assert "operation `lost` of tool `bad` takes no `self`" in refused({"name": "bad", "lost": operation(lost)})


def test_operation_whose_result_has_an_annotation_that_names_nothing_is_refused() -> None:
    async def lost(self: Tool) -> None:
        """Do it."""

    lost.__annotations__["return"] = "Nowhere"

    wanted = "operation `lost` of tool `bad`: `return` has an annotation that cannot be resolved"
    assert wanted in refused({"name": "bad", "lost": operation(lost)})


def test_operation_without_description_is_refused() -> None:
    async def mute(self: Tool) -> None:
        del self

    assert refused({"name": "bad", "mute": operation(mute)}) == "operation `mute` of tool `bad` has no description"


@pytest.mark.parametrize("name", ["", "two words", "a" * 65, "*"])
def test_operation_name_that_a_policy_cannot_write_is_refused(name: str) -> None:
    assert "is no operation name" in refused({"name": "bad", "good": operation(name=name)(good())})


def test_parameter_with_two_types_is_refused() -> None:
    async def other(self: Tool, text: int) -> None:
        """Do the other."""
        del self, text

    message = refused({"name": "bad", "good": operation(good()), "other": operation(other)})
    assert message == "tool `bad`: parameter `text` has different types in two operations"


def test_parameter_with_two_roles_is_refused() -> None:
    async def other(self: Tool, text: Annotated[str, PathParameter()]) -> None:
        """Do the other."""
        del self, text

    message = refused({"name": "bad", "good": operation(good()), "other": operation(other)})
    assert message == "tool `bad`: parameter `text` has different types in two operations"


def test_parameter_named_like_the_operation_field_is_refused() -> None:
    members = {"name": "bad", "operation_field": "text", "good": operation(good())}

    assert refused(members) == "tool `bad`: parameter `text` is the operation field"


def test_operation_that_hides_a_method_of_every_tool_is_refused() -> None:
    assert "method `execute` hides one of every tool" in refused({"name": "bad", "execute": operation(good())})


@pytest.mark.parametrize(
    "computed", [good(), property(good()), ("good",)], ids=["async method", "property", "attribute"]
)
def test_operations_that_are_no_plain_function_are_refused_with_what_to_do_instead(computed: object) -> None:
    why = refused({"name": "bad", "good": operation(good()), "operations": computed})

    assert why.startswith("tool `bad`: `operations` is a plain function that lists their names, or is not set")


def test_two_methods_for_one_operation_are_refused() -> None:
    members = {"name": "bad", "one": operation(name="do")(good()), "two": operation(name="do")(good())}

    assert refused(members) == "tool `bad` has two operations named `do`"


def test_inherited_operation_cannot_vanish_unmarked() -> None:
    async def write(self: Tool) -> None:
        """Write differently."""
        del self

    assert "`write` replaces an operation without being one" in refused({"name": "bad", "write": write}, Notes)


def test_choice_among_required_parameters_is_refused() -> None:
    members = {"name": "bad", "good": operation(one_of=(("text", "label"),))(good())}

    assert "`text` in `one_of` has to have a default" in refused(members)


def test_shown_schema_accepts_the_shown_operations_only() -> None:
    schema = Notes().schema_for(frozenset({"find"}))
    assert schema is not None
    checker = SchemaChecker(schema)

    assert checker.is_valid({"op": "find", "text": "a"})
    assert not checker.is_valid({"op": "erase"})
    assert not checker.is_valid({"op": "find", "text": "a", "tag": "b"})


EXAMPLES: tuple[dict[str, Any], ...] = ({"op": "write", "text": "tea"}, {"op": "find", "text": "tea", "limit": 2})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"op": "find", "text": "tea", "limit": 0}, "example 3 is no call of it at `/limit`: "),
        ({"op": "find"}, "example 3 is no call of it at `/text`: `find` needs `text`"),
        ({"op": "write", "text": "tea", "limit": 1}, "example 3 is no call of it at `/limit`: `write` does not take"),
        ({"op": "look"}, "example 3 is no call of it at `/op`: must be one of"),
    ],
)
def test_example_that_is_no_call_is_refused_with_its_place_when_the_class_is_defined(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(RegistrationError, match=said):
        type("Bad", (Notes,), {"name": "bad", "examples": (*EXAMPLES, wrong)})


def test_examples_are_offered_as_far_as_the_agent_may_call_them_and_never_told_to_the_model() -> None:
    class Tried(Notes):
        name = "tried"
        description = "Keeps notes."
        examples = (*EXAMPLES, {"op": "find", "text": "a long query", "limit": 50})

    limit: dict[str, JsonValue] = {"limit": {"type": "integer", "maximum": 9}}
    rules = (AllowedOperations(frozenset({"find"})), ArgumentConstraints(limit))
    reader = Agent("reader", tool_rules=tuple(ToolRule("tried", kind) for kind in rules))
    registry = ToolRegistry()
    registry.register(Tried())
    gate = Gate(Policy(agents={"whole": Agent("whole"), "reader": reader}), registry)

    def examples(agent_id: str) -> tuple[Any, ...]:
        agent = gate.snapshot().agent(agent_id)
        plan = agent.plan("tried") if agent is not None else None
        return plan.examples if plan is not None else ()

    assert examples("whole") == Tried.examples
    assert examples("reader") == EXAMPLES[1:]
    assert "tea" not in json.dumps(gate.view("whole").tools("mcp"))


def test_actions_and_groups_of_parameters_may_be_lists() -> None:
    class Listed(ObjectTool):
        name = "listed"
        description = "Reads."
        needs_source = True

        @operation(actions=[Action.READ], one_of=[["path", "text"]])
        async def read(self, path: Annotated[str, PathParameter()] = "a", text: str = "") -> JsonValue:
            """Read."""
            return {"path": path, "text": text}

    registry = ToolRegistry()
    registry.register(Listed())
    gate = Gate(Policy(agents={"a": Agent("a", sources=("docs",))}, sources=(Source("docs", "docs"),)), registry)

    assert [str(right.verdict) for right in gate.view("a").rights["listed"].operations] == ["ask"]
