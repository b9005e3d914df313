"""``@tool`` for async functions and ``@operation`` for methods of a Tool."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar, get_args, overload

from gatewright.base.errors import RegistrationError, SchemaError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.schema import schema_of
from gatewright.schema.walk import Schema
from gatewright.tools.declaration import Determinism, Normalization, ResourceBounds, ResultType, SideEffect
from gatewright.tools.define import MARK, OperationMark, listing_of
from gatewright.tools.result import check_yields, yields
from gatewright.tools.shape import PlainShape, definitions
from gatewright.tools.signature import Binding, Function, bind, return_schema
from gatewright.tools.tool import Tool

Normalizer = Callable[[JsonValue | bytes], bytes]
"""Returns the bytes to hash and keep for a result."""
_Method = TypeVar("_Method", bound=Callable[..., Awaitable[object] | AsyncIterator[object]])


class FunctionTool(Tool, abstract=True):
    """A tool without operations that is one function; ``function`` stays callable as it was written."""

    def __init__(
        self, function: Function, binding: Binding, operations: Callable[[], Iterable[str]] | None, **declared: Any
    ) -> None:
        self.function = function
        self._list_operations = operations
        for name, value in declared.items():
            setattr(self, name, value)
        self._shape = PlainShape(binding)
        self.check()


class NormalizedTool(FunctionTool, abstract=True):
    """A function tool with a function of its own that normalises results."""

    normalizer: Normalizer

    def normalize(self, result: JsonValue | bytes) -> bytes:
        """Return the bytes that the function makes of the result."""
        return self.normalizer(result)


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    version: str = "1.0.0",
    description: str | None = None,
    origin: str = "built-in",
    safety_tier: SafetyTier = SafetyTier.PRIVILEGED,
    side_effects: Collection[SideEffect] = (),
    determinism: Determinism = Determinism.NON_DETERMINISTIC,
    resource_bounds: ResourceBounds | None = None,
    result_type: ResultType | None = None,
    normalization: Normalization | Normalizer | None = None,
    output_schema: Schema | None = None,
    usage_rule: str | None = None,
    examples: tuple[Mapping[str, JsonValue], ...] = (),
    tool_rules: tuple[ToolRule, ...] = (),
    needs_source: bool = False,
    required_capabilities: Collection[str] | None = None,
    texts: Collection[str] = (),
    actions: tuple[Action, ...] = (),
    needs_user: bool = False,
    enforces_bounds: bool = False,
    operations: Callable[[], Iterable[str]] | None = None,
    operation_field: str = "op",
) -> Callable[[Function], FunctionTool]: ...
def tool(function: Function | None = None, /, **declared: Any) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of an async function; name, description and parameter sentences come from it.

    ``result_type``, ``normalization`` and ``output_schema`` come from the return annotation where it says them; a
    function that yields is a stream. A function as ``normalization`` gives the bytes that stand for a result.
    Undeclared, the tier is the strictest; ``required_capabilities`` undeclared are the kinds of its side effects.
    ``operations``: a function that lists what the parameter ``operation_field`` may be (see
    `Tool.with_listed_operations`). Raises RegistrationError for a function that cannot be one, naming the parameter.
    """
    if function is not None:
        return _tool(function, declared)
    return lambda later: _tool(later, declared)


def _tool(function: Function, declared: dict[str, Any]) -> FunctionTool:
    name = getattr(function, "__name__", "") if declared.get("name") is None else declared["name"]
    where = f"tool `{name}`"
    binding = bind(function, where, is_method=False)
    definitions(where, binding.parameters)
    operations = declared.pop("operations", None)
    if operations is not None and not isinstance(listing_of(operations, where), staticmethod):
        raise RegistrationError(f"{where}: `operations` takes nothing")
    field = declared.get("operation_field", Tool.operation_field)
    if operations is not None and field not in {parameter.name for parameter in binding.parameters}:
        raise RegistrationError(f"{where} lists operations and has no parameter `{field}`")
    given = {key: value for key, value in declared.items() if value is not None}
    given |= {"name": name, "description": given.get("description") or binding.docstring.description}
    given["side_effects"] = frozenset(given.get("side_effects", ()))
    kind = given.get("result_type") or (ResultType.STREAM if yields(function) else _result_type(binding.returns, where))
    check_yields(function, kind, where)
    is_binary = kind is ResultType.BINARY or (kind is ResultType.STREAM and bytes in get_args(binding.returns))
    plain = Normalization.BINARY if is_binary else Normalization.JSON
    output = None if kind is ResultType.STREAM else return_schema(binding.returns)
    usual = {"normalization": plain, "output_schema": output}
    made = FunctionTool
    if callable(normalizer := given.get("normalization")):
        made, given["normalizer"], given["normalization"] = NormalizedTool, normalizer, Normalization.CUSTOM
    return made(function, binding, operations, **{**usual, **given, "result_type": kind})


def _result_type(returns: Any, where: str) -> ResultType:
    """Return the kind of result that a return annotation promises."""
    if returns is inspect.Signature.empty:
        raise RegistrationError(f"{where}: `return` has no annotation; give one, or a `result_type`")
    if returns is bytes:
        return ResultType.BINARY
    try:
        kind = schema_of(returns).get("type")
    except SchemaError as error:
        raise RegistrationError(f"{where}: `return`: {error}") from None
    if kind not in ("object", "array", "string"):
        raise RegistrationError(f"{where}: `return` is no object, array, text or bytes; say its `result_type`")
    return ResultType(kind)


@overload
def operation(method: _Method, /) -> _Method: ...
@overload
def operation(
    *,
    name: str | None = None,
    description: str | None = None,
    tier: SafetyTier | None = None,
    actions: Collection[Action] = (),
    usage_rule: str | None = None,
    one_of: Collection[Collection[str]] = (),
    capabilities: Collection[str] | None = None,
    output_schema: Schema | None = None,
) -> Callable[[_Method], _Method]: ...
def operation(method: _Method | None = None, /, **said: Any) -> _Method | Callable[[_Method], _Method]:
    """Mark an async method of a Tool as one of its operations, named like the method unless ``name`` says otherwise.

    ``one_of``: groups of parameters of which exactly one has to be given. ``capabilities``: the kinds that it needs,
    where they are not the tool's. ``output_schema``: of its results, where the return annotation does not say it.
    Raises RegistrationError if it is not async.
    """
    if method is not None:
        return _mark(method, OperationMark())
    mark = OperationMark(**said)
    return lambda later: _mark(later, mark)


def _mark(method: _Method, mark: OperationMark) -> _Method:
    if not (inspect.iscoroutinefunction(method) or yields(method)):
        name = getattr(method, "__name__", str(method))
        raise RegistrationError(f"operation `{mark.name or name}` is not an `async def` method")
    setattr(method, MARK, mark)
    return method
