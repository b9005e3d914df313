"""Constraints against the arguments of one call: which of them it breaks, in both sets of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from gatewright.base.folder import folder_words, texts_in_folders
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.condition import Constraint
from gatewright.compile.finding import Finding
from gatewright.compile.rule_test import BoundRule
from gatewright.gate.call import CallState
from gatewright.gate.named import leads_out
from gatewright.gate.rulewords import denial
from gatewright.gate.violation import ConstraintViolation
from gatewright.policy.rule import ArgumentConstraints
from gatewright.schema.contradiction import is_off
from gatewright.schema.walk import pointer_text
from gatewright.tools.parameter import Role

Found = tuple["BoundRule", Finding]
SAID = "the arguments are limited:\n"
MUST_BE_GIVEN = "must be given"
_CANONICAL = frozenset({Role.PATH, Role.FILE})


def broken_fields(
    state: CallState, one: Constraint, arguments: Mapping[str, JsonValue], names: frozenset[str] | None = None
) -> list[Found]:
    """The fields left out that must be given, and those whose value, or whose default, is not among those allowed.

    ``names``: the fields to look at; None: all that the constraint names.
    """
    found = [
        (one.bound, _finding(state, one, name, (f"{pointer_text((name,))}: {MUST_BE_GIVEN}",)))
        for name in _missing(state, one, arguments)
        if names is None or name in names
    ]
    for name, checker in one.fields:
        if names is not None and name not in names:
            continue
        values = (arguments[name],) if name in arguments else tuple(_defaults(state, one, name))
        errors = next((errors for value in values if (errors := checker.errors(value))), None)
        where = tuple(f"{pointer_text((name,))}{error.pointer}: {error.message}" for error in errors or ())
        if not errors and (left := next((folder for value in values for folder in _left(state, one, name, value)), "")):
            where = (f"{pointer_text((name,))}: {folder_words(left)}",)
        if where:
            found.append((one.bound, _finding(state, one, name, where)))
    return found


def _left(state: CallState, one: Constraint, name: str, value: JsonValue) -> Iterator[str]:
    """The folders that paths of a stranger's tool are asked to be in and lead out of by a link.

    What its author marked as a path is canonical by now.
    """
    kind = one.bound.rule.rule_type
    if isinstance(kind, ArgumentConstraints) and all(
        one.name != name or one.role not in _CANONICAL for one in state.chosen.roles
    ):
        for folder, text in texts_in_folders(kind.fields.get(name), value):
            if leads_out(state, folder, text):
                yield folder


def _missing(state: CallState, one: Constraint, arguments: Mapping[str, JsonValue]) -> list[str]:
    """What an operation of the call takes, the rule asks for, and the call leaves out."""
    kind, facts = one.bound.rule.rule_type, state.plan.right.facts
    if not isinstance(kind, ArgumentConstraints) or arguments.keys() >= set(kind.required):
        return []
    called = {part.name for part in state.chosen.each}
    asked = (facts.asked_by(one.bound.rule, row) for row in facts.operations if row.name in called)
    return [name for name in dict.fromkeys(chain.from_iterable(asked)) if name not in arguments]


def _defaults(state: CallState, one: Constraint, name: str) -> Iterator[JsonValue]:
    """What stands for the field left out, by each operation of the call that the constraint binds."""
    kind = one.bound.rule.rule_type
    if isinstance(kind, ArgumentConstraints) and is_off(kind.fields.get(name)):
        return
    for part in state.chosen.each:
        if one.bound.binds(part.name):
            yield from state.plan.tool.defaults(part.name, name)


def _finding(state: CallState, one: Constraint, name: str, where: tuple[str, ...]) -> Finding:
    lines = "\n".join(where)
    violation = ConstraintViolation(state.tool_name, name, where)
    return denial("argument-constraint", lines, one.bound, said(_for_model(state, name, where)), violation)


def said(lines: Iterable[str]) -> str:
    """The words for the model around what is wrong, line by line."""
    return SAID + "\n".join(dict.fromkeys(lines))


def _for_model(state: CallState, name: str, where: tuple[str, ...]) -> Iterator[str]:
    """The same; what carries the operation may be limited in words that name a hidden one."""
    selector, redactor = state.plan.tool.selector, state.plan.redactor
    carries = selector is not None and name in selector.fields
    for line in where:
        yield (
            f"{line.split(': ', 1)[0]}: is not allowed; try another value"
            if carries and redactor.kept(line) != line
            else line
        )
