"""The kinds of tool rules, each a class that reads, checks, writes and names its value.

A kind's class name is its spelling in the policy file. First those about one call: permitted operations, permitted
arguments, required consent; then those about the calls of a session: how many, how often, in what order, when the loop
goes on or ends. Durations are seconds. The module exceeds 450 lines because each kind is a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Self, cast

from gatewright.base.amount import duration_words, plain_duration
from gatewright.base.errors import RawPath, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, nulls_in
from gatewright.base.pattern import IN_FOLDER, with_folder, with_pattern
from gatewright.base.row import (
    DURATION,
    JSON_SCHEMA,
    NAME,
    TEXT,
    Raw,
    Row,
    Shape,
    describe,
    json_table,
    name_error,
    one_of,
    option,
    seconds_of,
    several,
    table,
    whole,
    whole_number,
    words_of,
)
from gatewright.policy.verdict import ANY_TOOL, Verdict, split_name

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


def consent_words(called: str, scope: str | None) -> str:
    """Say that such a call asks, and with which others one answer can be shared."""
    return f"a person must allow {called}{f' (consent group: {scope})' if scope else ''}"


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


@frozen
class _Seconds(Kind):
    seconds: float
    shape = DURATION

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if payload is ABSENT:
            needs_value(path, report, cls.__name__, '"30s"')
            return None
        seconds = seconds_of(payload, path, report)
        return None if seconds is None else cls(seconds).validate(path, report)

    def plain(self) -> object:
        return plain_duration(self.seconds)


@frozen
class MaxCalls(Kind):
    """Permits at most ``calls`` per session."""

    calls: int
    noun = "limit of calls"
    shape = whole(0)
    fits_source = True

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if payload is ABSENT:
            needs_value(path, report, "MaxCalls", "3")
            return None
        calls = whole_number(payload, path, report, "`MaxCalls`")
        return None if calls is None else cls(calls).validate(path, report)

    def plain(self) -> object:
        return self.calls

    def check(self, path: RawPath, report: Report) -> None:
        if whole_number(self.calls, path, report, "`MaxCalls`", 0) == 0:
            message = "`MaxCalls = 0` denies every call, yet the model still sees the tool: turn it off instead"
            report.warning(path, "never-callable", message, at_value=True)

    def edit_name(self, what: str) -> str:
        return f"limit {what} to {_calls(f'{self.calls:,}')}"

    def usage_words(self, names: Sequence[str]) -> str:
        return f"At most {_calls(str(self.calls))} per session."


@frozen
class Cooldown(_Seconds):
    """Requires at least ``seconds`` from start to start."""

    noun = "pause"
    fits_source = True

    def check(self, path: RawPath, report: Report) -> None:
        if seconds_of(self.seconds, path, report) == 0:
            message = "`Cooldown = 0` delays nothing: the rule has no effect"
            report.warning(path, "rule-without-effect", message, at_value=True)

    def edit_name(self, what: str) -> str:
        return f"pause {duration_words(self.seconds)} between calls of {what}"

    def usage_words(self, names: Sequence[str]) -> str:
        return f"Calls have to start at least {duration_words(self.seconds)} apart."


@frozen
class RateLimit(Kind):
    """Permits at most ``calls`` starts within any ``per_s`` seconds, across sessions and processes."""

    calls: int
    per_s: float
    noun = "rate"
    fits_source = True
    keys: ClassVar = {"calls": whole(1), "per": DURATION}
    shape = table(keys, "calls", "per")

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if not isinstance(payload, dict):
            needs_value(path, report, "RateLimit", '{ calls = 10, per = "1m" }')
            return None
        row = Row(cast("Raw", payload), path, report)
        row.only(cls.keys, "`RateLimit`")
        if not (row.require("calls", "`RateLimit`") and row.require("per", "`RateLimit`")):
            return None
        calls, per_s = row.integer("calls"), row.duration("per")
        return None if calls is None or per_s is None else cls(calls, per_s).validate(path, report)

    def plain(self) -> object:
        return {"calls": self.calls, "per": plain_duration(self.per_s)}

    def check(self, path: RawPath, report: Report) -> None:
        whole_number(self.calls, (*path, "calls"), report, "`calls`", 1)
        if seconds_of(self.per_s, (*path, "per"), report) == 0:
            report.error((*path, "per"), "bad-value", "`per` must be longer than nothing")

    def edit_name(self, what: str) -> str:
        return f"limit {what} to {_calls(f'{self.calls:,}')} per {duration_words(self.per_s)}"

    def usage_words(self, names: Sequence[str]) -> str:
        return f"At most {_calls(str(self.calls))} per {duration_words(self.per_s)}."


@frozen
class Periodic(_Seconds):
    """Reminds the model every ``seconds``."""

    noun = "reminder"

    def check(self, path: RawPath, report: Report) -> None:
        if seconds_of(self.seconds, path, report) == 0:
            report.error(path, "bad-value", "`Periodic` must be longer than nothing")

    def edit_name(self, what: str) -> str:
        return f"remind of {what} every {duration_words(self.seconds)}"

    def usage_words(self, names: Sequence[str]) -> str:
        return f"It is due every {duration_words(self.seconds)}."


def _calls(number: str) -> str:
    return f"{number} call{'' if number == '1' else 's'}"


@frozen
class ContinueLoop(Kind):
    """Continues the loop after a successful call."""

    noun = "rule that goes on"
    usage = "After a successful call you keep the turn."

    def edit_name(self, what: str) -> str:
        return f"go on after {what}"


@frozen
class ExitLoop(Kind):
    """Ends the loop after a successful call."""

    noun = "rule that ends the loop"
    usage = "A successful call ends your turn."

    def edit_name(self, what: str) -> str:
        return f"end the loop after {what}"


@frozen
class StartConstraint(Kind):
    """Requires a successful call before any other tool."""

    noun = "start"
    usage = "It has to succeed before any other tool is called."


@frozen
class RequiresPrecedingTools(Kind):
    """Requires earlier successful calls of the tools in its conditions."""

    noun = "order before"
    names_tools = True

    def usage_words(self, names: Sequence[str]) -> str | None:
        return f"It can be called once {join_names(names, 'and')} succeeded in this session." if names else None


@frozen
class RequiresFollowingTools(Kind):
    """Requires the call to come before those of the tools in its conditions."""

    noun = "order after"
    names_tools = True

    def usage_words(self, names: Sequence[str]) -> str | None:
        return f"It cannot be called any more once {join_names(names, 'or')} succeeded." if names else None


@frozen
class RequiredBeforeExit(Kind):
    """Requires a successful call before the loop may end."""

    noun = "requirement before the end"
    usage = "It has to succeed before you finish."


@frozen
class RequiredBeforeExitIf(Kind):
    """Requires a successful call before the loop may end, once the tools in its conditions succeeded."""

    noun = "requirement before the end"
    names_tools = True

    def usage_words(self, names: Sequence[str]) -> str | None:
        return f"Once {join_names(names, 'and')} succeeded, it has to succeed too before you finish." if names else None


@frozen
class AfterOutside(Kind):
    """Ask or deny once the session got a result of an outside tool."""

    effect: Verdict
    noun = "rule after outside results"
    fits_source = True
    options: ClassVar = {str(one): one for one in (Verdict.ASK, Verdict.DENY)}
    shape = one_of(options)

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if payload is ABSENT:
            needs_value(path, report, "AfterOutside", '"ask"')
            return None
        effect = option(payload, path, report, "`AfterOutside`", cls.options)
        return None if effect is None else cls(effect)

    def plain(self) -> object:
        return str(self.effect)

    def check(self, path: RawPath, report: Report) -> None:
        option(str(self.effect), path, report, "`AfterOutside`", self.options)

    def edit_name(self, what: str) -> str:
        return f"{'deny' if self.effect is Verdict.DENY else 'ask before'} {what} after outside results"

    def usage_words(self, names: Sequence[str]) -> str:
        if self.effect is Verdict.DENY:
            return "It cannot be called any more once a result from outside came in."
        return "Once a result from outside came in, a person has to agree first."


@frozen
class ExclusiveGroups(Kind):
    """Permits at most one tool of each group per session."""

    groups: tuple[tuple[str, ...], ...]
    noun = "groups"
    shape = several(several(NAME, 1))

    @classmethod
    def read(cls, payload: object, path: RawPath, report: Report) -> Self | None:
        if not isinstance(payload, list):
            needs_value(path, report, "ExclusiveGroups", '[["a", "b"], ["c", "d"]]')
            return None
        written = enumerate(cast("list[object]", payload))
        groups = [read_names(group, (*path, at), report, "a group", '["a", "b"]') for at, group in written]
        found = cls(tuple(group for group in groups if group is not None))
        return found.validate(path, report) if len(found.groups) == len(groups) else None

    def plain(self) -> object:
        return [list(group) for group in self.groups]

    def check(self, path: RawPath, report: Report) -> None:
        if not self.groups:
            report.warning(path, "rule-without-effect", "`ExclusiveGroups` holds no group: the rule has no effect")
        for index, group in enumerate(self.groups):
            place = (*path, index)
            check_names(group, place, report)
            _check_tools(group, place, report)
            if not group:
                report.error(place, "bad-value", "a group names at least two tools")
            elif len(group) == 1:
                message = f"a group of one tool excludes nothing: {shown(group[0])} stands alone"
                report.warning(place, "rule-without-effect", message)

    def usage_words(self, names: Sequence[str]) -> str | None:
        return f"Only one of {join_names(names, 'and')} can be used in a session." if len(names) > 1 else None


def _check_tools(group: tuple[str, ...], path: RawPath, report: Report) -> None:
    seen: dict[str, str] = {}
    for index, written in enumerate(group):
        if written == ANY_TOOL:
            report.error((*path, index), "bad-value", "`*` cannot stand in a group: name its tools")
        elif (held := seen.setdefault(split_name(written)[0], written)) != written:
            message = f"{shown(written)} stands in the group already, as {shown(held)}"
            report.error((*path, index), "duplicate", message)
