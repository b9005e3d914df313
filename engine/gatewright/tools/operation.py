"""The operations of a tool: the values, the readings of a schema that find them, the faults of arguments.

`discover_operations` finds operations; a policy declares them by naming the field or the operations. A declaration
narrows a closed list; it also closes a field that takes any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from gatewright.base.errors import SchemaError, near_hint
from gatewright.base.frozen import frozen
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.right import OperationFacts, PathArgument
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.schema import OperationSet, discover_operations, filter_with_lints
from gatewright.schema.filter import FilterResult, any_of_outputs
from gatewright.schema.operation import choice_of, path_text
from gatewright.schema.walk import Schema, as_object, names_required, objects, properties_of
from gatewright.tools.declaration import kinds_from_parameters
from gatewright.tools.parameter import (
    CommandParameter,
    FileParameter,
    Mark,
    Parameter,
    PathParameter,
    Role,
    unavoidable_kinds,
)


@frozen
class ArgumentIssue:
    """One argument to correct: its RFC 6901 pointer, and words that a model can act on."""

    pointer: str
    message: str


@frozen
class OperationSpec:
    """One operation. ``actions``: the possible actions on a file or block. ``one_of``: groups of parameters; a call
    gives exactly one of each group.

    ``capabilities``: the kinds that it needs; None means those of the tool. ``output_schema``: the schema of its own
    results. ``taken``: the names of its parameters; ``required``: of those that every call must give.
    """

    name: str
    description: str
    tier: SafetyTier
    actions: tuple[Action, ...] = ()
    usage_rule: str | None = None
    parameters: tuple[Parameter, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    capabilities: frozenset[CapabilityKind] | None = None
    output_schema: Schema | None = field(default=None, hash=False)
    taken: frozenset[str] = field(init=False, compare=False, repr=False)
    required: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "taken", frozenset(one.name for one in self.parameters))
        object.__setattr__(self, "required", tuple(one.name for one in self.parameters if one.required))

    def facts(
        self,
        capabilities: frozenset[CapabilityKind] = frozenset(),
        paths: tuple[PathArgument, ...] = (),
        *,
        holds_texts: bool = False,
        takes_others: bool = False,
        deletes: bool = False,
    ) -> OperationFacts:
        """Return the facts for policies; ``capabilities`` are the tool's, for an operation that declares none."""
        markers = [mark.marker for parameter in self.parameters for mark in parameter.marks]
        files = [marker for marker in markers if isinstance(marker, FileParameter)]
        commands = any(isinstance(marker, CommandParameter) for marker in markers)
        done = frozenset(Action.OVERWRITE if marker.writes else Action.READ for marker in files)
        if commands:
            done |= {Action.READ, Action.OVERWRITE}
        elif files and self.actions:
            done = frozenset(self.actions)
        return OperationFacts(
            self.name,
            self.tier,
            self.actions,
            self.description,
            (capabilities if self.capabilities is None else self.capabilities) | unavoidable_kinds(self.parameters),
            tuple(parameter.name for parameter in self.parameters),
            self.required,
            kinds_from_parameters(self.parameters),
            {parameter.name: parameter.whole_schema for parameter in self.parameters},
            frozenset(parameter.name for parameter in self.parameters if parameter.has_default),
            paths,
            places=frozenset(parameter.name for parameter in self.parameters if parameter.role is Role.PATH),
            labels=frozenset(parameter.name for parameter in self.parameters if parameter.role is Role.LABEL),
            makes=any(isinstance(marker, PathParameter) and marker.makes for marker in markers),
            disk_actions=done,
            roots=frozenset(root for marker in files for root in marker.roots),
            commands=commands,
            holds_texts=holds_texts,
            takes_others=takes_others,
            deletes=deletes,
        )


def any_output(schemas: Iterable[Schema | None]) -> Schema | None:
    """Return the schema of any operation's results, by those of each; None if one of the operations has none."""
    said = list(schemas)
    known = [one for one in said if one is not None]
    return any_of_outputs(known) if known and len(known) == len(said) else None


_UNIONS = ("allOf", "anyOf", "oneOf")
_Held = frozenset[str] | None
"""The operations for which a branch applies; None means all."""


def parameters_in(schema: Schema, marks: Mapping[str, tuple[Mark, ...]]) -> tuple[Parameter, ...]:
    """Return the root's own properties, in its order, with their ``marks``."""
    required = frozenset(names_required(schema))
    rows = properties_of(schema).items()
    return tuple(parameter_of(name, value, name in required, marks.get(name, ())) for name, value in rows)


def parameter_of(name: str, value: object, required: bool, marks: tuple[Mark, ...] = ()) -> Parameter:
    """Return the parameter whose schema is ``value``."""
    own = as_object(value) or {}
    said = own.get("description")
    return Parameter(
        name,
        {key: held for key, held in own.items() if key != "description"},
        required,
        description=said if isinstance(said, str) else "",
        default=own.get("default"),
        marks=marks,
        has_default="default" in own,
    )


class Branches:
    """An inlined schema and its branches, each with the operations that ``field`` may name in it."""

    def __init__(self, schema: Schema, field: str) -> None:
        self._common: list[Schema] = []
        self._own: dict[str, list[Schema]] = {}
        for node, held in _applying(schema, field):
            if held is None:
                self._common.append(node)
            for name in held or ():
                self._own.setdefault(name, []).append(node)

    def parameter(self, name: str, operation: str, *, required: bool) -> Parameter:
        """Return the parameter from the first branch of ``operation`` that declares it, else from any branch."""
        for node in (*self._own.get(operation, ()), *self._common):
            if name in properties_of(node):
                return parameter_of(name, properties_of(node)[name], required)
        return Parameter(name, {}, required)


def _applying(schema: Schema, field: str) -> Iterator[tuple[Schema, _Held]]:
    stack: list[tuple[Schema, _Held]] = [(schema, None)]
    while stack:
        node, outer = stack.pop()
        held = _both(outer, _names(node, field)) if node is not schema else None
        yield node, held
        below = [(branch, held) for keyword in _UNIONS for branch in objects(node.get(keyword))]
        stack += reversed([*below, *_conditional(node, field, held)])


def _conditional(node: Schema, field: str, held: _Held) -> list[tuple[Schema, _Held]]:
    """Return the part that an `if` decides; for the opposite case nothing is known."""
    condition = as_object(node.get("if"))
    names = None if condition is None else _names(condition, field)
    rows = (("then", _both(held, names)), ("else", held))
    return [(branch, own) for keyword, own in rows if (branch := as_object(node.get(keyword))) is not None]


def _both(first: _Held, second: _Held) -> _Held:
    if first is None or second is None:
        return first if second is None else second
    return first & second


def _names(node: Schema, field: str) -> _Held:
    choice = choice_of(properties_of(node).get(field))
    return frozenset(choice.names) if choice is not None else None


MAX_OPERATIONS = 1_000
"""The most operations that a list may have; a longer list is too long to choose from."""
MAX_NAME = 1_000
"""The longest name of an operation; saved sessions, rules and approvals hold no longer one."""
_OFF = "low"


@frozen
class Reading:
    """One reading of ``schema``. ``asked``: the field that discovery needs to find it again.

    ``names``: the operations that count, in their order. ``is_free``: the schema takes any text for them.
    """

    schema: Schema = field(hash=False)
    inlined: Schema = field(hash=False)
    found: OperationSet = field(hash=False)
    names: tuple[str, ...]
    asked: str | None = None
    is_free: bool = False

    def filter_to(self, shown: frozenset[str]) -> FilterResult:
        """Return the schema with the ``shown`` operations only. Raises SchemaError."""
        if self.is_free:
            return filter_with_lints(self.schema, shown, field=self.asked, operations=self.names)
        if shown.issuperset(self.found.names):
            return FilterResult(self.schema, (), self.found)
        return filter_with_lints(self.schema, shown, found=self.found)


def discover_reading(schema: Schema, inlined: Schema) -> Reading | None:
    """Return the reading that discovery is sure enough about. Raises SchemaError."""
    found = discover_operations(inlined)
    if found is None or found.confidence == _OFF or len(found.names) > MAX_OPERATIONS:
        return None
    reading = _reading(schema, inlined, found)
    return None if reading is None else _check_bounds(reading)


def read_declaration(schema: Schema, inlined: Schema, asked: str | None, operations: tuple[str, ...] | None) -> Reading:
    """Return the reading that a policy declares by the field ``asked``, by ``operations``, or by both.

    Raises SchemaError.
    """
    wanted = None if operations is None else tuple(dict.fromkeys(operations))
    closed = _read_closed_list(schema, inlined, asked)
    if wanted is None:
        if closed is None:
            raise SchemaError(_no_operations(inlined, asked))
        return _check_bounds(closed)
    if not wanted or not all(wanted):
        raise SchemaError("the declared operations hold no name" if not wanted else "an operation without name")
    if closed is not None and (asked is not None or not frozenset(wanted).isdisjoint(closed.names)):
        return _check_bounds(_narrow(closed, wanted))
    found = discover_operations(inlined, field=asked, operations=wanted)
    if found is None:
        raise SchemaError(_no_operations(inlined, asked))
    return _check_bounds(Reading(schema, inlined, found, found.names, found.field, is_free=True))


def _check_bounds(reading: Reading) -> Reading:
    if len(reading.names) > MAX_OPERATIONS:
        raise SchemaError(f"`{reading.found.field}` lists more than {MAX_OPERATIONS:,} operations")
    if any(len(name) > MAX_NAME for name in reading.names):
        raise SchemaError(f"`{reading.found.field}` lists an operation with a name of over {MAX_NAME:,} characters")
    return reading


def _read_closed_list(schema: Schema, inlined: Schema, asked: str | None) -> Reading | None:
    """Read the closed list of the field ``asked``, in all places that hold it."""
    found = discover_operations(inlined)
    if asked is not None and (found is None or not found.also or asked not in map(path_text, found.places)):
        found = discover_operations(inlined, field=asked)
        return None if found is None else _reading(schema, inlined, found, asked)
    return None if found is None else _reading(schema, inlined, found)


def _reading(schema: Schema, inlined: Schema, found: OperationSet, asked: str | None = None) -> Reading | None:
    """Build a reading; it drops the empty text, which no policy can name."""
    names = tuple(name for name in found.names if name)
    return Reading(schema, inlined, found, names, asked) if names else None


def _narrow(closed: Reading, wanted: tuple[str, ...]) -> Reading:
    names = closed.found.names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise SchemaError(f"`{closed.found.field}` takes no `{unknown[0]}`{near_hint(unknown[0], names)}")
    return Reading(closed.schema, closed.inlined, closed.found, wanted, closed.asked)


def _no_operations(inlined: Schema, asked: str | None) -> str:
    if asked is None:
        return "the schema offers no operations"
    if asked in properties_of(inlined):
        return f"`{asked}` lists no operations; declare them"
    return f"the schema has no field `{asked}`{near_hint(asked, properties_of(inlined))}"
