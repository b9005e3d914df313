"""The tools of a program: ``@tool`` and ``@operation`` make them of functions, the registry holds them by name and
major version.

Writers take turns; readers look at a snapshot that never changes.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args, overload

from gatewright.base.errors import AlreadyRegistered, RegistrationError, SchemaError
from gatewright.base.file import write_atomically
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.policy.right import ToolFacts, of_origin
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.record.process import fork_safe_lock
from gatewright.schema import schema_of
from gatewright.schema.walk import Schema
from gatewright.tools.declaration import Determinism, Normalization, ResourceBounds, ResultType, SideEffect
from gatewright.tools.define import MARK, OperationMark, listing_of
from gatewright.tools.definition import EXTRAS
from gatewright.tools.result import check_yields, yields
from gatewright.tools.schemashape import definition_shape
from gatewright.tools.shape import PlainShape, definitions
from gatewright.tools.signature import Binding, Function, bind, return_schema
from gatewright.tools.tool import Tool

Normalizer = Callable[[JsonValue | bytes], bytes]
"""Returns the bytes of a result to hash and store."""
_Method = TypeVar("_Method", bound=Callable[..., Awaitable[object] | AsyncIterator[object]])


class FunctionTool(Tool, abstract=True):
    """A tool without operations that is one function; ``function`` stays callable as before."""

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

    The return annotation gives ``result_type``, ``normalization`` and ``output_schema`` unless they are declared; a
    function that yields is a stream. If ``normalization`` is a function, it returns the bytes that stand for a result.
    By default the tier is the strictest, and ``required_capabilities`` are the kinds of the side effects.
    ``operations``: a function that lists what the parameter ``operation_field`` may be (see
    `Tool.with_listed_operations`). Raises RegistrationError, with the parameter's name, for a function that cannot be a
    tool.
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
    """Return the kind of result that a return annotation implies."""
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

    ``one_of``: groups of parameters; a call gives exactly one of each group. ``capabilities``: the kinds that it needs,
    by default the tool's. ``output_schema``: the schema of its results, by default from the return annotation. Raises
    RegistrationError if it is not async.
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


Key = tuple[str, int]


@dataclass(frozen=True)
class _Snapshot:
    """The tools of one revision; the first listing sorts them, since tools often arrive one by one.

    ``origins``: where tools belong for policies, besides what they say themselves.
    """

    tools: dict[Key, Tool] = field(default_factory=dict[Key, Tool])
    origins: Mapping[Key, str] = field(default_factory=dict[Key, str])

    @once
    def in_order(self) -> tuple[Tool, ...]:
        """The tools by name and major."""
        return tuple(self.tools[key] for key in sorted(self.tools))

    @once
    def lists_operations(self) -> bool:
        """True if a function lists the operations of any tool."""
        return any(tool.lists_operations for tool in self.tools.values())

    @once
    def facts(self) -> tuple[ToolFacts, ...]:
        """The facts for policies, in the same order."""
        found = self.origins
        return tuple(of_origin(one.facts(), found.get((one.name, one.major), one.origin)) for one in self.in_order)


class _Once:
    """An action that runs only the first time, even if two threads call it."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._left = [action]

    def __call__(self) -> None:
        try:
            action = self._left.pop()  # atomic: only one thread gets the action
        except IndexError:
            return
        action()


class ToolRegistry:
    """Tools in the order of name and major.

    ``revision`` grows after every change: whoever reads the revision and then the tools has at least the tools of that
    revision.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._snapshot = _Snapshot()
        self.revision = 0

    def register(self, tool: Tool) -> Callable[[], None]:
        """Add ``tool``, and return the function that withdraws it, which may run more than once.

        Raises AlreadyRegistered for the same name and major, RegistrationError for an incomplete declaration.
        """
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(f"`{type(tool).__name__}` is no tool")
        tool.check()
        key = (tool.name, tool.major)
        tool = tool.with_listed_operations()
        with self._lock:
            if key in self._snapshot.tools:
                raise AlreadyRegistered(f"tool `{tool.name}` with major version {tool.major} is registered already")
            self._replace({**self._snapshot.tools, key: tool})
        return _Once(lambda: self._withdraw(key))

    def assign(self, origins: Mapping[Key, str]) -> None:
        """Count tools, there or to come, as those of the catalogs that list them; it replaces earlier origins."""
        with self._lock:
            if self._snapshot.origins != origins:
                self._snapshot = _Snapshot(self._snapshot.tools, dict(origins))
                self.revision += 1

    def list_operations(self) -> None:
        """Ask every tool with listed operations again; a tool whose list changed counts as registered anew."""
        if not self._snapshot.lists_operations:
            return
        before = self._snapshot.tools
        asked = {key: tool.with_listed_operations() for key, tool in before.items()}
        if all(asked[key] is tool for key, tool in before.items()):
            return
        with self._lock:
            now = self._snapshot.tools
            self._replace({key: asked[key] if tool is before.get(key) else tool for key, tool in now.items()})

    def get(self, name: str, major: int | None = None) -> Tool | None:
        """Return the tool with that name and major, by default the highest major; None without one."""
        tools = self._snapshot.tools
        if major is not None:
            return tools.get((name, major))
        majors = [found for held, found in tools if held == name]
        return tools[name, max(majors)] if majors else None

    def tools(self) -> tuple[Tool, ...]:
        """All tools, by name and major."""
        return self._snapshot.in_order

    def keys(self) -> frozenset[Key]:
        """Name and major version of every tool."""
        return frozenset(self._snapshot.tools)

    def facts(self) -> tuple[ToolFacts, ...]:
        """Return the facts of all tools for policies, in the same order; computed once per revision."""
        return self._snapshot.facts

    def manifest(self) -> dict[str, object]:
        """Return the definitions of all tools, in the same order, as JSON values; `read_definitions` reads them
        back.
        """
        return manifest_of(self.tools())

    def write_manifest(self, path: str | Path) -> None:
        """Write the manifest to ``path``, whole or not at all. Raises OSError."""
        write_manifest(self.tools(), Path(path))

    def _withdraw(self, key: Key) -> None:
        with self._lock:
            self._replace({held: other for held, other in self._snapshot.tools.items() if held != key})

    def _replace(self, tools: dict[Key, Tool]) -> None:
        self._snapshot = _Snapshot(tools, self._snapshot.origins)
        self.revision += 1


def manifest_of(tools: Iterable[Tool]) -> dict[str, object]:
    """Return JSON values that `read_definitions` reads back as the same tools, in the given order."""
    return {"tools": [definition_of(tool) for tool in tools]}


def write_manifest(tools: Iterable[Tool], path: Path) -> None:
    """Replace the file at ``path`` by the manifest of ``tools``, whole or not at all. Raises OSError."""
    text = json.dumps(manifest_of(tools), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def definition_of(tool: Tool) -> Schema:
    """Return one tool as MCP lists it, with our own part under ``_meta``."""
    written: Schema = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    written["inputSchema"] = deepcopy(tool.input_schema())
    if tool.output_schema is not None:
        written["outputSchema"] = deepcopy(tool.output_schema)
    return {**written, "_meta": {EXTRAS: _extras(tool)}}


def _extras(tool: Tool) -> Schema:
    said: Schema = {"version": tool.version, "safety_tier": str(tool.safety_tier)}
    if tool.destroys is not None:
        said["destroys"] = tool.destroys
    if tool.has_operations:
        said["operation_tiers"] = {spec.name: str(spec.tier) for spec in tool.operations}
    if not tool.declares_operations and _is_discovered(tool):
        return said
    names = [spec.name for spec in tool.operations]
    declared = {"operation_field": tool.operation_field, "operations": names} if names else {"operation_field": ""}
    return {**said, **declared}


def _is_discovered(tool: Tool) -> bool:
    """Tell whether discovery alone reads the schema the same way."""
    try:
        shape = definition_shape(tool.input_schema(), tool.safety_tier, {}, None)
    except SchemaError:
        return False
    found, own = shape.found, tool.operation_set
    if found is None or own is None:
        return found is own
    return (found.names, found.places, found.default) == (own.names, own.places, own.default)
