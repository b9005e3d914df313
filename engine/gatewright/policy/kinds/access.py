"""Rules about one call: which operations of a tool, with which arguments, after whose consent.

A `Kind`, the base of all rules, answers how its value is read, what is wrong with it, how it is written and called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Self, cast

from gatewright.base.folder import IN_FOLDER, with_folder, with_pattern
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, nulls_in
from gatewright.base.problem import RawPath, Report, shown
from gatewright.base.row import Raw, Row, json_table, name_error, words_of
from gatewright.base.shape import JSON_SCHEMA, NAME, TEXT, Shape, several, table, told

NAMES = several(NAME)
ABSENT = object()
"""In place of a value where a kind stands without one."""


class Kind:
    """The value of a rule's ``rule_type``. As it stands here, of a kind that takes none."""

    __slots__ = ()
    noun: ClassVar[str]
    """What people call a rule of the kind."""
    names_tools: ClassVar[bool] = False
    """Whether its conditions name other tools; it says nothing without one."""
    fits_source: ClassVar[bool] = False
    """Whether it may bind the calls that go to one source; the others are about a whole session."""

    shape: ClassVar[Shape | None] = None
    """What its value looks like; None: it takes none."""
    usage: ClassVar[str | None] = None
    """What it means, said to the model, where that is the same for every rule of the kind."""

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        """The kind with the value ``payload`` (``ABSENT`` for none), which stands at ``path``, every fault reported.

        None where it has not the shape of one.
        """
        if payload is ABSENT:
            return cls()
        name = cls.__name__
        report.error(path, "bad-value", f'`{name}` takes no value: write `rule_type = "{name}"`')
        return None

    def plain(self) -> object:
        """Its value as the file has it; None when it has none."""
        return None

    def check(self, path: RawPath, report: Report) -> None:
        """Report what is wrong with the value, which stands at ``path``."""

    def edit_name(self, what: str) -> str:
        """What an edit does that sets it for ``what``, in the undo menu."""
        return f"change the {self.noun} of {what}"

    def told(self, names: Sequence[str]) -> str | None:
        """What a rule of the kind means, said to the model; None: nothing to tell.

        ``names``: what it names, as far as the model sees that: operations, a group, else the tools of the conditions.
        """
        return self.usage

    def checked(self, path: RawPath, report: Report) -> Self:
        """The same, with what is wrong reported."""
        self.check(path, report)
        return self


def listed(names: Sequence[str], word: str) -> str:
    """At least one name in backticks, ``word`` before the last."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"


def needs_value(path: RawPath, report: Report, name: str, example: str) -> None:
    """Report that there is no value of the right shape."""
    report.error(path, "bad-value", f"`{name}` needs a value, such as `{example}`")


def read_names(payload: object, path: RawPath, report: Report, what: str, example: str) -> tuple[str, ...] | None:
    """A list of names, not checked yet; None after an error."""
    if isinstance(payload, list):
        return words_of(cast("list[object]", payload), path, report, f"`{what}`")
    needs_value(path, report, what, example)
    return None


def check_names(names: Iterable[str], path: RawPath, report: Report) -> None:
    """Report what is no name, and what stands twice."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if why := name_error(name):
            report.error((*path, index), "bad-value", f"a name {why}")
        elif name in seen:
            report.error((*path, index), "duplicate", f"{shown(name)} stands here twice")
        seen.add(name)


@frozen
class AllowedOperations(Kind):
    """Only these operations; several rules intersect."""

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

    def told(self, names: Sequence[str]) -> str | None:
        return f"Operations open to you: {listed(names, 'and')}." if names else None


@frozen
class RequiresConsent(Kind):
    """Ask unless a standing grant covers it."""

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
        return cls(row.text("scope")).checked(path, report)

    def plain(self) -> object:
        return {} if self.scope is None else {"scope": self.scope}

    def check(self, path: RawPath, report: Report) -> None:
        if self.scope is not None and (why := name_error(self.scope)):
            report.error((*path, "scope"), "bad-value", f"`scope` {why}")

    def edit_name(self, what: str) -> str:
        return f"consent for {what}{f' (scope {self.scope})' if self.scope else ''}"

    def told(self, names: Sequence[str]) -> str:
        return f"A person has to agree first{f' (scope `{self.scope}`)' if self.scope else ''}."


@frozen
class ArgumentConstraints(Kind):
    """Every call's fields must satisfy these schemas; ``required``: the fields that a call must give.

    ``in_folder = "notes/"`` in a schema asks for a path in that folder; it is held as the pattern of such paths.
    """

    fields: Mapping[str, JsonValue] = field(hash=False)
    required: tuple[str, ...] = ()
    noun = "constraint"
    shape: ClassVar = {
        "type": "object",
        "properties": {"required": {"anyOf": [NAMES, JSON_SCHEMA]}},
        "additionalProperties": {
            **JSON_SCHEMA,
            "properties": {IN_FOLDER: told(TEXT, "The folder that the path has to lie in, such as `notes/`")},
        },
    }
    fits_source = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", {name: with_pattern(schema) for name, schema in self.fields.items()})

    @property
    def arguments(self) -> tuple[str, ...]:
        """Every argument that the rule says something of, each once."""
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
        if isinstance(said.get("required"), list):  # a table there is about an argument of that name
            required = read_names(fields.pop("required"), (*path, "required"), report, "required", '["path"]')
        return cls(fields, required or ()).checked(path, report)

    def plain(self) -> dict[str, object]:
        fields: dict[str, object] = {name: with_folder(schema) for name, schema in self.fields.items()}
        return {**fields, "required": list(self.required)} if self.required else fields

    def check(self, path: RawPath, report: Report) -> None:
        check_names(self.required, (*path, "required"), report)
        if json_table(dict(self.fields), path, report) is None:
            return
        if self.required and "required" in self.fields:
            message = "what an argument named `required` may be stands in a rule of its own"
            report.error(path, "bad-value", message)
        for name, schema in self.fields.items():
            if not isinstance(schema, dict | bool):
                report.error((*path, name), "bad-value", f"the constraint of {shown(name)} must be a JSON Schema")
            elif (null := next(nulls_in(schema), None)) is not None:
                report.error((*path, name, *null), "bad-value", "a policy file cannot hold null")
        if not self.arguments:
            report.warning(path, "rule-without-effect", "`ArgumentConstraints` names no field: the rule has no effect")

    def told(self, names: Sequence[str]) -> str:
        what = "Some argument values are limited" if self.fields else "Some optional arguments have to be given"
        return f"{what}; a refusal says which."


@frozen
class Needed(Kind):
    """Marks a tool that a source needs."""

    noun = "need"
    fits_source = True
