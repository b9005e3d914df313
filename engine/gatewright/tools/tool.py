"""A tool: its declaration, its operations, and its execution.

A subclass marks methods with ``@operation``, or sets ``input_model`` and has ``run``; its faults raise when Python
defines the class. ``abstract=True`` leaves both to its subclasses or to ``__init__``; ``late=True`` reads the
operations of the class and its subclasses at their first use, as for the built-in tools, since a start needs few of
them. It has more than 450 lines because policy, gate and program see every tool through this one class.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from types import MappingProxyType
from typing import Any, cast

from gatewright.arguments.url import UrlRefused, UrlTarget
from gatewright.base.errors import GatewrightError, RegistrationError, SchemaError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.jsonvalue import digest as digest_of
from gatewright.base.late import aio, in_own_thread, once
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import OutputCheck
from gatewright.policy.right import OperationFacts, PathArgument, ToolFacts
from gatewright.policy.rule import ToolRule
from gatewright.policy.rulematch import mismatch
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import Action, PathUse, SafetyTier, Verdict
from gatewright.schema import (
    OperationSet,
    PathCandidate,
    deed_of,
    discover_paths,
    holds_text,
    inline_references,
    text_places,
)
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import with_closed_arguments
from gatewright.schema.filter import output_without
from gatewright.schema.operation import steps_of
from gatewright.schema.selector import Selector, selector_of
from gatewright.schema.walk import Schema
from gatewright.tools.context import ToolExecutionContext, WebPort
from gatewright.tools.declaration import Declaration, Normalization, ResultType, kinds_of, kinds_of_effects, major_of
from gatewright.tools.define import (
    check_declaration,
    check_examples,
    check_texts,
    listing_of,
    marked_outputs,
    outputs_of,
    shape_of,
)
from gatewright.tools.operation import ArgumentIssue, OperationSpec, any_output
from gatewright.tools.parameter import NamedPath, Parameter
from gatewright.tools.result import ForeignResult, check_result, collect, normal_bytes, plain_result, unread
from gatewright.tools.schemashape import InputShape, SelectedShape, check_listed_names, limit_shape, select
from gatewright.tools.shape import PLAIN, MethodShape, ModelShape, PlainShape

Scrub = Callable[[JsonValue], tuple[JsonValue, int]]
"""Removes the secrets from a value, and counts them."""

__all__ = ["ArgumentIssue", "OperationSpec", "Tool"]

_TIERS, _ACTIONS = tuple(SafetyTier), tuple(Action)


class Tool(Declaration):
    """Every tool: its declaration, its texts for policy and model, and its execution."""

    _shape: InputShape
    _list_operations: Any = None
    _declared_by: Tool | None = None
    _listed: tuple[str, ...] = ()
    _last_list: tuple[tuple[str, ...], InputShape] | None = None
    operations_problem: str = ""
    output_check: OutputCheck = OutputCheck.STRICT
    """What happens to a result that misfits its output schema, unless the policy decides."""
    unchecked_arguments: tuple[tuple[str, str], ...] = ()
    """Patterns in the tool's schema that no model sees and nobody checks: a pointer to each, and the reason."""
    _tiers: Mapping[str, SafetyTier] = MappingProxyType({})
    _output_is_read: bool = False
    _is_late: bool = False

    def __init_subclass__(cls, *, abstract: bool = False, late: bool | None = None, **rest: Any) -> None:
        """Check the declaration and read its operations. Raises RegistrationError."""
        super().__init_subclass__(**rest)
        cls._is_late = cls._is_late if late is None else late
        if "operations" in cls.__dict__:
            cls._list_operations = listing_of(cls.__dict__["operations"], f"tool `{cls.name or cls.__name__}`")
            type.__delattr__(cls, "operations")  # the names that the function lists take its place
        if abstract:
            return
        if not cls.description:
            cls.description = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
        check_declaration(cls, Tool)
        if cls._output_is_read:  # its own methods may differ from those of the class that it was made from
            cls.output_schema, cls._output_is_read = None, False
        if cls._is_late:
            if cls.output_schema is None:
                cls.output_schema = marked_outputs(cls, Tool)
                cls._output_is_read = cls.output_schema is not None
            cls._shape = cast("Any", _LateShape(cls._read_late))
            return
        cls._shape = shape_of(cls, Tool)
        if cls.output_schema is None:
            cls.output_schema = outputs_of(cls, cls._shape)
            cls._output_is_read = cls.output_schema is not None
        cls.operation_field = cls._shape.operation_field or cls.operation_field
        if cls._list_operations is not None and not cls._shape.operations:
            raise RegistrationError(f"tool `{cls.name}` has a function `operations` and no operations to choose from")
        check_texts(cls, cls._shape)
        check_examples(cls, cls._shape)

    @classmethod
    def _read_late(cls) -> InputShape:
        shape = shape_of(cls, Tool)
        if shape.operation_field not in (None, cls.operation_field):
            raise RegistrationError(f"tool `{cls.name}` is read late and declares no `operation_field`")
        cls._shape = shape
        return shape

    @property
    def _is_as_shipped(self) -> bool:
        """True for a tool of the program whose operations are those of its class."""
        return self._is_late and "_shape" not in self.__dict__

    @property
    def major(self) -> int:
        """The number that separates incompatible versions."""
        return major_of(self.version, self.name)

    @property
    def operations(self) -> tuple[OperationSpec, ...]:
        """The operations in their declared order; empty for a tool without operations."""
        return self._shape.operations

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """Return every operation that ``arguments`` call, exactly as written, known or not, once for each time it is
        named.

        ``("",)`` for a tool without operations; empty for an empty batch; None if nobody can tell.
        """
        return self._shape.operations_of(arguments)

    @property
    def declares_operations(self) -> bool:
        """True if its author declared the operations, so that no policy may find others in its schema."""
        own = isinstance(self._shape, MethodShape) or (isinstance(self._shape, ModelShape) and self.has_operations)
        return own or self._list_operations is not None

    @property
    def actor(self) -> Tool:
        """The object that holds the tool's state and does its work, usually the tool itself.

        If a function lists the operations, each list makes a new tool, and all of them share one state.
        """
        return self if self._declared_by is None or isinstance(self._shape, SelectedShape) else self._declared_by

    @property
    def lists_operations(self) -> bool:
        """True if its author's function ``operations`` lists them."""
        return (self._declared_by or self)._list_operations is not None

    def with_listed_operations(self) -> Tool:
        """Return the tool with the current list of its function ``operations``; the same tool if nothing changed.

        If the function raises, or its list is unusable, the operations stay and ``operations_problem`` holds the
        reason: the gate then closes the tool.
        """
        whole = self._declared_by or self
        if whole._list_operations is None:
            return self
        problem = ""
        try:
            names = check_listed_names(whole._list_operations(), self.name)
            whole._last_list = names, limit_shape(whole._shape, whole.operation_field, names, whole.safety_tier)
        except GatewrightError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 somebody else's function; whatever it raises closes the tool
            problem = f"its function `operations` raised {type(error).__name__}"
        names, shape = whole._last_list or ((), whole._shape)
        if self._declared_by is not None and (names, problem) == (self._listed, self.operations_problem):
            return self
        other = self._read_as(shape)
        other._declared_by, other._listed, other.operations_problem = whole, names, problem
        return other

    @property
    def has_operations(self) -> bool:
        """True if a field of the arguments selects the operation."""
        return bool(self._shape.operations)

    @property
    def operation_set(self) -> OperationSet | None:
        """The place of the operation in the schema; None if methods declare the operations, or without operations."""
        return self._shape.found

    @once
    def selector(self) -> Selector | None:
        """The place of the operation in the arguments; None for a tool without operations."""
        if not self.has_operations:
            return None
        names = tuple(spec.name for spec in self.operations)
        if self.operation_set is None:
            schema: Schema = {"properties": {self.operation_field: {"type": "string", "enum": list(names)}}}
        else:
            schema = self.input_schema()
        return selector_of(self.operation_field, names, self.operation_set, schema)

    def with_operations(self, field: str | None, operations: tuple[str, ...] | None) -> Tool:
        """Return this tool with the operation field, or the list of operations, that a policy names.

        An empty ``field`` means that no field selects operations. Raises SchemaError if the schema lacks the field, and
        for a tool whose author declared its operations.
        """
        if field is None and operations is None:
            return self
        if self.declares_operations:
            raise SchemaError(f"`{self.name}` declares its own operations")
        return self._read_as(select(self._shape, field, operations, self.safety_tier, self._tiers))

    def _read_as(self, shape: InputShape) -> Tool:
        other = copy(self)
        for name in [name for name in other.__dict__ if isinstance(getattr(type(self), name, None), once)]:
            del other.__dict__[name]
        other._shape = shape
        other.operation_field = shape.operation_field or type(self).operation_field
        return other

    def of_source(self, source_id: str, rules: tuple[ToolRule, ...] = ()) -> Tool:
        """Return this tool as one that a program's source brings, with ``rules`` besides its own.

        Its paths become keys in that source, which have the source's levels.
        """
        other = self._read_as(self._shape)
        other.source, other.needs_source, other._declared_by = source_id, True, self.actor
        other.tool_rules = (*self.tool_rules, *rules)
        return other

    def parameters(self, operation: str = PLAIN) -> tuple[Parameter, ...]:
        """Return the parameters of ``operation``; empty for an unknown one."""
        return self._shape.parameters(operation)

    def defaults(self, operation: str, name: str) -> list[JsonValue]:
        """Return the values that stand for an omitted argument of the operation: none, or each declared default."""
        found = [one.default for one in self.parameters(operation) if one.name == name and one.has_default]
        selects = self.selector is not None and name in self.selector.fields
        return found if found or self.selector is None or not selects else self.selector.defaults(name)

    def facts(self) -> ToolFacts:
        """Return the facts for policies; its tier is the highest of its operations."""
        return self._policy_facts

    @once
    def _policy_facts(self) -> ToolFacts:
        specs = self.operations or (
            OperationSpec(PLAIN, self.description, self.safety_tier, tuple(self.actions), parameters=self.parameters()),
        )
        every = [one for name in (PLAIN, *self._names) for one in self.parameters(name)]
        marked = {one.name for one in every if one.marks}
        whole = {one.name for one in every if any(not mark.at for mark in one.marks)}.union(self.texts)
        extra: Verdict | None = Verdict.ALLOW
        paths: list[PathCandidate] = []
        texts: tuple[str, ...] | None = None
        schema = self.input_schema()
        with suppress(SchemaError):  # a part that cannot be read may accept other arguments
            closed, open_why = with_closed_arguments(schema)
            extra = Verdict.ALLOW if open_why else Verdict.DENY if closed is schema else None
            schema = inline_references(schema)  # computed once for all that read it
            paths = [
                one
                for one in discover_paths(schema, tool=self.name, description=self.description)
                if steps_of(one.argument)[0] not in marked
            ]
            found = text_places(schema)
            if found or self.operations or self.parameters():
                texts = tuple(one for one in found if steps_of(one)[0] not in marked)
        kinds, rows = self.capabilities, list[OperationFacts]()
        in_any = not isinstance(self._shape, MethodShape) and holds_text(schema, whole)
        for spec in specs:
            uses = ((one, one.use(spec.name)) for one in paths)
            likely = tuple(
                PathArgument(one.argument, PathUse(use) if use else None, one.confidence) for one, use in uses
            )
            held = in_any or (
                isinstance(self._shape, MethodShape)
                and any(holds_text({"properties": {one.name: one.whole_schema}}, whole) for one in spec.parameters)
            )
            rows.append(
                spec.facts(
                    kinds, likely, holds_texts=held, takes_others=extra is not Verdict.DENY, deletes=self._deletes(spec)
                )
            )
        return ToolFacts(
            self.name,
            self.major,
            tuple(rows),
            max((row.tier for row in rows), key=_TIERS.index),
            self.origin,
            self.needs_source,
            self.description,
            self.tool_rules,
            self.selector,
            extra,
            texts,
            self.held,
            self.outmoded,
            self.source,
            self.outside,
        )

    def _deletes(self, spec: OperationSpec) -> bool:
        """Tell whether an operation deletes, by its hints, else by its name."""
        if spec.actions or self.destroys is False:
            return False
        own = deed_of(spec.name) if spec.name else None
        if own is None:
            return self.destroys is True or deed_of(self.name) == "delete"
        return own == "delete" or (self.destroys is True and own != "read")

    @property
    def capabilities(self) -> frozenset[CapabilityKind]:
        """The kinds of capability for every operation that declares none."""
        declared = self.required_capabilities
        return kinds_of_effects(self.side_effects) if declared is None else kinds_of(declared, f"tool `{self.name}`")

    @once
    def digest(self) -> str:
        """SHA-256 of what policies and models see of the tool, 64 hexadecimal digits; computed once.

        It covers the canonical JSON of name, version, description, both schemas, the operations with their tiers and
        field, and the instructions for its executor, if its definition has any.
        """
        rows: list[JsonValue] = [{"name": spec.name, "tier": str(spec.tier)} for spec in self.operations]
        return digest_of(
            {
                "name": self.name,
                "version": self.version,
                "description": self.description,
                "input_schema": self.input_schema(),
                "output_schema": self.output_schema,
                "operation_field": self._shape.operation_field,
                "operations": rows or [{"name": PLAIN, "tier": str(self.safety_tier)}],
                **({"run": self.recipe} if self.recipe is not None else {}),
            }
        )

    @property
    def _names(self) -> frozenset[str]:
        return frozenset(spec.name for spec in self.operations) or frozenset({PLAIN})

    def input_schema(self) -> Schema:
        """Return the schema of everything that the tool can do."""
        schema = self._shape.schema_for(self._names)
        return schema if schema is not None else {"type": "object", "properties": {}, "additionalProperties": False}

    @property
    def schema_may_fail(self) -> bool:
        """True if some set of shown operations could lack a usable schema; never for declared parameters."""
        return type(self).schema_for is not Tool.schema_for or not isinstance(self._shape, (PlainShape, MethodShape))

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Return the schema for the ``shown`` operations (``{""}`` for a tool without operations); None without any."""
        return self._shape.schema_for(shown)

    def description_for(self, shown: frozenset[str], text: str | None = None) -> str:
        """Return the description, or ``text`` instead, without the names of hidden operations."""
        return self._shape.clean(self.description if text is None else text, shown)

    def usage_rule_for(self, shown: frozenset[str]) -> str | None:
        """Return the tool's own usage rule and those of the shown operations, alphabetically; None without any."""
        rows = sorted((spec for spec in self.operations if spec.name in shown), key=lambda spec: spec.name)
        texts = [self.usage_rule, *(spec.usage_rule for spec in rows)]
        return " ".join(cleaned for text in texts if text and (cleaned := self._shape.clean(text, shown))) or None

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing and superfluous arguments of ``operation``."""
        return self._shape.missing(operation, arguments)

    @property
    def obstacle(self) -> str:
        """Return the reason why this system cannot execute any call, with the remedy; empty without an obstacle."""
        return ""

    @property
    def caveat(self) -> str:
        """Return words about the place of execution for the trace of a call; empty if it needs none."""
        return ""

    def assess(
        self,
        operation: str,
        arguments: Mapping[str, JsonValue],  # noqa: ARG002
        context: ToolExecutionContext,  # noqa: ARG002
    ) -> Assessment:
        """Return the effect of the call, without doing it.

        Of several possible actions it names the one that needs the highest level.
        """
        return self._usual(operation)

    def assessment_of(self, operation: str) -> Assessment | None:
        """Return the effect of every call of the operation; None if `assess` must decide it for each call."""
        has_own = type(self).assess is not Tool.assess
        return None if has_own and (self.assessed is None or operation in self.assessed) else self._usual(operation)

    def _usual(self, operation: str) -> Assessment:
        actions = next((spec.actions for spec in self.operations if spec.name == operation), ())
        actions = actions or self.actions
        return Assessment(max(actions, key=_ACTIONS.index, default=None))

    def paths_in(self, arguments: Mapping[str, JsonValue]) -> Iterable[NamedPath]:  # noqa: ARG002
        """Return the paths that arguments name in a way of their own. Raises ToolFailure if one cannot be told."""
        return ()

    def endings_in(self, arguments: Mapping[str, JsonValue]) -> tuple[str, ...] | None:  # noqa: ARG002
        """Return the endings of the names of those files in a folder that the call reads; None: of all."""
        return None

    def web_targets(self, operation: str, web: WebPort | None) -> tuple[UrlTarget | UrlRefused, ...]:  # noqa: ARG002
        """Return the web addresses that every call of ``operation`` reaches, whatever its arguments.

        The agent's capabilities must cover them. A forbidden address denies the call.
        """
        return ()

    async def execute(
        self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext
    ) -> JsonValue | bytes:
        """Execute the call; ``operation`` is ``""`` for a tool without operations. Raises ToolFailure for the model to
        read.

        The pieces of a stream become one result. A thread reads a value that has code of its own (a model, a list or
        mapping of another class).
        """
        result = await self._shape.run(self, operation, arguments, context)
        if self.result_type is ResultType.STREAM and isinstance(result, AsyncGenerator):
            result = await collect(cast("AsyncGenerator[object]", result), self.normalization, context.on_piece)
        with suppress(ForeignResult):
            return plain_result(result, self.normalization)
        try:
            return await in_own_thread(check_result, result, self.normalization)
        except aio.CancelledError:
            if not context.cancelled:
                raise
            raise unread() from None

    def output_part(self, result: JsonValue) -> JsonValue:
        """Return the part of a result that the output schema describes, usually all of it."""
        return result

    def scrub_result(self, result: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
        """Remove the secrets from the result, usually from all of it, and count them."""
        return scrub(result)

    def text_for_model(self, result: JsonValue) -> str | None:  # noqa: ARG002
        """Return the text of a result for the model; None means the text itself, or its canonical JSON."""
        return None

    def normalize(self, result: JsonValue | bytes) -> bytes:
        """Return the bytes that stand for ``result``; a tool with custom normalisation overrides this."""

        if self.normalization is Normalization.CUSTOM:
            raise ToolFailure(f"`{self.name}` does not say how its results are normalised", code="bad-result")
        return normal_bytes(result)

    def model_output(self, shown: frozenset[str]) -> Schema | None:
        """Return the schema of the results of the ``shown`` operations, without a word of the others; or None."""
        if self.normalization is not Normalization.JSON:
            return None
        whole = any_output(spec.output_schema for spec in self.operations if spec.name in shown) or self.output_schema
        shape = self._shape
        hidden = shape.filter_to(shown).hidden if isinstance(shape, SelectedShape) else self._names - shown
        schema = None if whole is None else output_without(whole, hidden)
        return schema if schema is not None and schema.get("type") == "object" else None

    def output_checker_of(self, operation: str) -> SchemaChecker | None:
        """Return the schema of the operation's results, compiled once; the tool's if it has none of its own."""
        return self._output_checkers.get(operation) or self.output_checker

    @once
    def _output_checkers(self) -> dict[str, SchemaChecker]:
        said = ((spec.name, spec.output_schema) for spec in self.operations)
        return {name: SchemaChecker(schema) for name, schema in said if schema is not None}

    @once
    def output_checker(self) -> SchemaChecker | None:
        """The output schema, compiled once; None if the tool declares none. Raises SchemaError."""
        return None if self.output_schema is None else SchemaChecker(self.output_schema)

    def check(self) -> None:
        """Raise RegistrationError for a declaration that cannot be registered."""
        check_declaration(self, Tool)
        if self._is_as_shipped:
            return  # the program's tests check it
        if not hasattr(self, "_shape"):
            raise RegistrationError(f"tool `{self.name}` has no operations and no function")
        try:
            _ = self.output_checker, {} if self._output_is_read else self._output_checkers
        except SchemaError as error:
            raise RegistrationError(f"tool `{self.name}`: its `output_schema` cannot be used: {error}") from None
        check_texts(self, self._shape)
        # all other tools were checked with their class
        if "examples" in self.__dict__ or not hasattr(type(self), "_shape"):
            check_examples(self, self._shape)
        for rule in self.tool_rules:
            if (why := mismatch(self.facts(), rule)) is not None:
                raise RegistrationError(f"tool `{self.name}`: one of its `tool_rules` does not fit it: {why}")


class _LateShape:
    """The operations of a class of tools until their first use, which reads them and puts them in this place."""

    def __init__(self, read: Callable[[], InputShape]) -> None:
        self._read = read

    def __get__(self, tool: Tool | None, owner: type[Tool]) -> InputShape:
        return self._read()
