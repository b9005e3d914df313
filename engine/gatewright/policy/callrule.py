"""Rules about one call: permitted operations, permitted arguments, required consent.

`Kind`, the base of all rules, reads, checks, writes and names its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Self, cast

from gatewright.base.errors import RawPath, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, nulls_in
from gatewright.base.pattern import IN_FOLDER, with_folder, with_pattern
from gatewright.base.row import (
    JSON_SCHEMA,
    NAME,
    TEXT,
    Raw,
    Row,
    Shape,
    describe,
    json_table,
    name_error,
    several,
    table,
    words_of,
)

NAMES = several(NAME)
ABSENT = object()
"""Stands for a missing value."""


class Kind:
    """The value of a rule's ``rule_type``; the base class serves kinds without a value."""

    __slots__ = ()
    noun: ClassVar[str]
    """The everyday name for a rule of the kind."""
    names_tools: ClassVar[bool] = False
    """True if its conditions name other tools, without which the rule means nothing."""
    fits_source: ClassVar[bool] = False
    """True if it can limit the calls to one source; the other kinds limit a whole session."""

    shape: ClassVar[Shape | None] = None
    """The shape of its value; None for a kind without a value."""
    usage: ClassVar[str | None] = None
    """Its meaning in words for the model, if the same for every rule of the kind."""

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        """Read the value ``payload`` (``ABSENT`` for none) at ``path`` and report every fault; None for a value of the
        wrong shape.
        """
        if payload is ABSENT:
            return cls()
        name = cls.__name__
        report.error(path, "bad-value", f'`{name}` takes no value: write `rule_type = "{name}"`')
        return None

    def plain(self) -> object:
        """Its value as the file has it; None without one."""
        return None

    def check(self, path: RawPath, report: Report) -> None:
        """Report faults of the value at ``path``."""

    def edit_name(self, what: str) -> str:
        """The undo menu's name for the edit that sets the value for ``what``."""
        return f"change the {self.noun} of {what}"

    def usage_words(self, names: Sequence[str]) -> str | None:
        """The meaning of a rule of the kind in words for the model; None if it needs none.

        ``names``: the names in the rule that the model may see: operations, a group, else the tools of the conditions.
        """
        return self.usage

    def validate(self, path: RawPath, report: Report) -> Self:
        """Report faults, and return the rule's value itself."""
        self.check(path, report)
        return self


def join_names(names: Sequence[str], word: str) -> str:
    """Join one or more names in backticks, with ``word`` before the last."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"


def needs_value(path: RawPath, report: Report, name: str, example: str) -> None:
    """Report a value that is missing or has the wrong shape."""
    report.error(path, "bad-value", f"`{name}` needs a value, such as `{example}`")


def read_names(payload: object, path: RawPath, report: Report, what: str, example: str) -> tuple[str, ...] | None:
    """Read a list of names without checking them; None after an error."""
    if isinstance(payload, list):
        return words_of(cast("list[object]", payload), path, report, f"`{what}`")
    needs_value(path, report, what, example)
    return None


def check_names(names: Iterable[str], path: RawPath, report: Report) -> None:
    """Report malformed and repeated names."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if why := name_error(name):
            report.error((*path, index), "bad-value", f"a name {why}")
        elif name in seen:
            report.error((*path, index), "duplicate", f"{shown(name)} stands here twice")
        seen.add(name)


@frozen
class AllowedOperations(Kind):
    """Permits only these operations; several rules intersect."""

    operations: frozenset[str]
    noun = "list of operations"
    shape = NAMES
    fits_source = True

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        names = read_names(payload, path, report, "AllowedOperations", '["read", "list"]')
        if names is None:
            return None
        check_names(names, path, report)
        return cls(frozenset(names))

    def plain(self) -> object:
        return sorted(self.operations)

    def check(self, path: RawPath, report: Report) -> None:
        check_names(sorted(self.operations), path, report)

    def usage_words(self, names: Sequence[str]) -> str | None:
        return f"Operations open to you: {join_names(names, 'and')}." if names else None


@frozen
class RequiresConsent(Kind):
    """Asks unless a standing grant covers the call."""

    scope: str | None = None
    noun = "consent"
    shape = table({"scope": NAME})
    fits_source = True

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if payload is ABSENT:
            return cls()
        if not isinstance(payload, dict):
            needs_value(path, report, "RequiresConsent", '{} or { scope = "writing" }')
            return None
        row = Row(cast("Raw", payload), path, report)
        row.only(("scope",), "`RequiresConsent`")
        return cls(row.text("scope")).validate(path, report)

    def plain(self) -> object:
        return {} if self.scope is None else {"scope": self.scope}

    def check(self, path: RawPath, report: Report) -> None:
        if self.scope is not None and (why := name_error(self.scope)):
            report.error((*path, "scope"), "bad-value", f"`scope` {why}")

    def edit_name(self, what: str) -> str:
        return f"consent for {what}{f' (scope {self.scope})' if self.scope else ''}"

    def usage_words(self, names: Sequence[str]) -> str:
        return f"A person has to agree first{f' (scope `{self.scope}`)' if self.scope else ''}."


@frozen
class ArgumentConstraints(Kind):
    """Requires the fields of every call to satisfy these schemas; ``required`` lists fields that a call must give.

    ``in_folder = "notes/"`` in a schema requires a path in that folder; the rule stores it as a pattern.
    """

    fields: Mapping[str, JsonValue] = field(hash=False)
    required: tuple[str, ...] = ()
    noun = "constraint"
    shape: ClassVar = {
        "type": "object",
        "properties": {"required": {"anyOf": [NAMES, JSON_SCHEMA]}},
        "additionalProperties": {
            **JSON_SCHEMA,
            "properties": {IN_FOLDER: describe(TEXT, "The folder that must contain the path, such as `notes/`")},
        },
    }
    fits_source = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", {name: with_pattern(schema) for name, schema in self.fields.items()})

    @property
    def arguments(self) -> tuple[str, ...]:
        """Every argument that the rule constrains, each once."""
        return tuple(dict.fromkeys((*self.fields, *self.required)))

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if not isinstance(payload, dict):
            needs_value(path, report, "ArgumentConstraints", '{ path = { pattern = "^notes/" } }')
            return None
        said = json_table(cast("Raw", payload), path, report)
        if said is None:
            return None
        fields, required = dict(said), None
        if isinstance(said.get("required"), list):  # a table, by contrast, constrains an argument of that name
            required = read_names(fields.pop("required"), (*path, "required"), report, "required", '["path"]')
        return cls(fields, required or ()).validate(path, report)

    def plain(self) -> dict[str, object]:
        fields: dict[str, object] = {name: with_folder(schema) for name, schema in self.fields.items()}
        return {**fields, "required": list(self.required)} if self.required else fields

    def check(self, path: RawPath, report: Report) -> None:
        check_names(self.required, (*path, "required"), report)
        if json_table(dict(self.fields), path, report) is None:
            return
        if self.required and "required" in self.fields:
            message = "an argument named `required` needs a rule of its own for its schema"
            report.error(path, "bad-value", message)
        for name, schema in self.fields.items():
            if not isinstance(schema, dict | bool):
                report.error((*path, name), "bad-value", f"the constraint of {shown(name)} must be a JSON Schema")
            elif (null := next(nulls_in(schema), None)) is not None:
                report.error((*path, name, *null), "bad-value", "a policy file cannot hold null")
        if not self.arguments:
            report.warning(path, "rule-without-effect", "`ArgumentConstraints` names no field: the rule has no effect")

    def usage_words(self, names: Sequence[str]) -> str:
        what = "Some argument values are limited" if self.fields else "Some optional arguments are mandatory"
        return f"{what}; a refusal says which."


@frozen
class Needed(Kind):
    """Marks a tool that a source needs."""

    noun = "need"
    fits_source = True
