"""``[[compositions]]`` as values: tools made of calls of other tools, and the references between their steps.

A reference is a whole text: `$input`, `$input.path`, `$steps.N` or `$steps.N.path` (N from 0). The value that it names
takes its place, whatever its type. A text that begins with `$$` stands for one with a single `$`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from gatewright.base.errors import RawPath
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import new_identity

MAX_STEPS = 16
MAX_DEPTH = 4
"""The deepest nesting of compositions."""
ORIGIN = "composition"
"""The origin of composed tools; no catalog may have this name."""
INPUT, STEPS = "input", "steps"
NO_INPUT: Mapping[str, JsonValue] = {"type": "object", "properties": {}, "additionalProperties": False}
"""The schema of an input without arguments."""

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
    *("ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
)
_REFERENCE = re.compile(r"\$(?P<root>[A-Za-z_]\w*)(?P<path>(?:\.[^.\s]+)*)", re.ASCII)
_NUMBER = re.compile(r"0|[1-9]\d{0,5}", re.ASCII)
_MISSING = object()


@frozen
class CompositionStep:
    """One call: the bare name of the tool, its arguments with references, and its condition.

    ``when`` is a JSON Schema over the object of `input` and `steps`; None means that the step always runs.
    """

    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], hash=False)
    when: Mapping[str, JsonValue] | bool | None = field(default=None, hash=False)
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def is_unconditional(self) -> bool:
        """True if the step always runs."""
        return self.when is None or self.when is True or self.when == {}


@frozen
class Composition:
    """One row of ``[[compositions]]``; ``input`` is the JSON Schema of the caller's arguments, which are an object."""

    name: str
    description: str = ""
    input: Mapping[str, JsonValue] = field(default_factory=lambda: dict(NO_INPUT), hash=False)
    steps: tuple[CompositionStep, ...] = ()
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if "type" not in self.input:
            object.__setattr__(self, "input", {"type": "object", **self.input})


@frozen
class Reference:
    """A reference to the input (``step`` None) or to the result of an earlier step, with the path below it."""

    step: int | None
    path: tuple[str, ...]

    def __str__(self) -> str:
        """The reference as a policy spells it."""
        return "$" + ".".join((INPUT, *self.path) if self.step is None else (STEPS, str(self.step), *self.path))


class BadReference(ValueError):
    """A text that begins like a reference but is not one; the message says why."""


class NoValue(LookupError):
    """A reference leads to a missing value."""

    def __init__(self, reference: Reference) -> None:
        super().__init__(reference)
        self.reference = reference


def ordinal(step: int) -> str:
    """The number of a step, from 0, as a word: ``first``."""
    return _ORDINALS[step] if step < MAX_STEPS else f"{step + 1}th"


def reference_of(text: str) -> Reference | None:
    """Read ``text`` as a reference; None for any other text. Raises BadReference for a malformed one."""
    if not text.startswith("$") or not (text[1:2].isalpha() or text[1:2] == "_"):
        return None
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise BadReference("a reference is a whole value, `$input.path` or `$steps.0.path`, not part of a text")
    root, path = found["root"], tuple(found["path"].split(".")[1:])
    if root == INPUT:
        return Reference(None, path)
    if root != STEPS:
        raise BadReference(f"a reference begins with `$input` or `$steps`, not `${root}`")
    if not path or not _NUMBER.fullmatch(path[0]):
        raise BadReference("a result is named by the number of its step, from 0: `$steps.0`")
    return Reference(int(path[0]), path[1:])


def texts_in(value: JsonValue) -> Iterator[tuple[RawPath, str]]:
    """Every text in a template with its place, except keys."""
    stack: list[tuple[RawPath, JsonValue]] = [((), value)]
    while stack:
        place, one = stack.pop()
        if isinstance(one, str):
            yield place, one
        elif isinstance(one, dict):
            stack += [((*place, key), held) for key, held in reversed(one.items())]
        elif isinstance(one, list):
            stack += [((*place, index), held) for index, held in reversed(list(enumerate(one)))]


def references_in(value: JsonValue) -> list[Reference]:
    """Every reference in a template."""
    return [found for _, text in texts_in(value) if (found := reference_of(text)) is not None]


def with_references(value: JsonValue, change: Callable[[Reference], Reference]) -> JsonValue:
    """Replace every reference in a template by the value that ``change`` returns."""
    if isinstance(value, dict):
        return {key: with_references(held, change) for key, held in value.items()}
    if isinstance(value, list):
        return [with_references(held, change) for held in value]
    found = reference_of(value) if isinstance(value, str) else None
    return value if found is None else str(change(found))


def fill_in(
    arguments: Mapping[str, JsonValue], given: JsonValue, results: Sequence[JsonValue], ran: Sequence[bool]
) -> dict[str, JsonValue]:
    """Replace all references by their values; texts within those values stay as they are.

    A member that refers to an omitted part of the input is dropped. Raises NoValue for such a reference in a list, for
    a missing part of a result, and for the result of a step that did not run (``ran``).
    """

    def value_of(template: JsonValue) -> object:
        if isinstance(template, dict):
            members = ((key, value_of(held)) for key, held in template.items())
            return {key: held for key, held in members if held is not _MISSING}
        if isinstance(template, list):
            return [found(held) for held in template]
        if not isinstance(template, str):
            return template
        reference = reference_of(template)
        if reference is None:
            return template[1:] if template.startswith("$$") else template
        if reference.step is None:
            return _at(given, reference.path)
        held = _at(results[reference.step], reference.path) if ran[reference.step] else _MISSING
        if held is _MISSING:
            raise NoValue(reference)
        return held

    def found(template: JsonValue) -> object:
        value = value_of(template)
        if value is _MISSING:
            raise NoValue(Reference(None, ()))
        return value

    return {key: held for key, template in arguments.items() if (held := value_of(template)) is not _MISSING}  # pyright: ignore[reportReturnType]


def _at(value: JsonValue, path: Sequence[str]) -> object:
    """The value at a path, or `_MISSING`."""
    for name in path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _NUMBER.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def step_operations(facts: ToolFacts, step: CompositionStep) -> tuple[OperationFacts, ...]:
    """The operations of a tool that a step may call; empty if the step names an unknown operation."""
    names = set(facts.operation_names)
    if not names or facts.selection is None:
        return facts.operations
    for name in facts.selection.fields:
        literal = step.arguments.get(name)
        if literal is not None and not references_in(literal):
            names -= facts.selection.refused(name, {"const": fill_in({name: literal}, {}, (), ())[name]})
    return tuple(row for row in facts.operations if row.name in names)
