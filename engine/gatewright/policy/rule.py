"""Rules as values, each a row with a lasting identity, and the kinds of them about the calls of a session.

A tool rule has a kind with its value, a tool, and operations; a kind's class name is its spelling in the policy file.
The kinds here are about the calls of a session: how many, how often, in what order, when the loop goes on or ends;
those about one call stand in `policy/callrule.py`. Durations are seconds. Among the policy rules that match a call the
strictest effect wins: deny before ask before allow, before the default. `dataclasses.replace` and pickling carry a
row's identity along; equal rows may differ in it. The module exceeds 450 lines because each kind of rule is a class.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import ClassVar, Protocol, Self, cast, get_args

from gatewright.base.amount import duration_words, plain_duration
from gatewright.base.errors import EditRefused, RawPath, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.row import (
    DURATION,
    NAME,
    Raw,
    Row,
    json_table,
    name_error,
    one_of,
    option,
    seconds_of,
    several,
    table,
    whole,
    whole_number,
)
from gatewright.policy.callrule import (
    ABSENT,
    AllowedOperations,
    ArgumentConstraints,
    Kind,
    Needed,
    RequiresConsent,
    check_names,
    join_names,
    needs_value,
    read_names,
)
from gatewright.policy.times import Times
from gatewright.policy.verdict import ANY_TOOL, Mode, Verdict, split_name


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


class Identified(Protocol):
    """A value with an identity."""

    @property
    def identity(self) -> int:
        """The number that identifies the row through edits."""
        ...


new_identity = count(os.getpid() << 40).__next__
"""A number that is unique in this process and among the numbers that other processes pass on."""


def place_in(rows: Sequence[Identified], row: Identified, what: str) -> int:
    """The place of a row among others, found by its identity; ``what`` names the row in the error.

    Raises EditRefused if the rows lack it: somebody removed it, or it belongs to another policy.
    """
    for at, one in enumerate(rows):
        if one.identity == row.identity:
            return at
    raise EditRefused(f"{what} no longer exists")


@frozen
class PolicyRule:
    """One rule of ``[policy]``. ``agents``, ``tools``, ``operations`` None: all. ``when``: a JSON Schema over the
    canonical arguments; None: always. ``times`` None: at any time.

    ``message`` is for the operator and, on a denial, for the model too. ``mode``: observe until ``observe_until_s``
    (seconds since 1970) notes its denials and asks instead of enforcing them.
    """

    name: str
    effect: Verdict
    agents: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    when: Mapping[str, JsonValue] | bool | None = field(default=None, hash=False)
    message: str | None = None
    times: Times | None = None
    mode: Mode = Mode.ENFORCE
    observe_until_s: float | None = None
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def is_unconditional(self) -> bool:
        """True if the rule holds whatever the arguments are."""
        return self.when is None or self.when is True or self.when == {}


DEFAULT_PRIORITY = 5
MAX_PRIORITY = 255
OPERATION_CONDITION = "operation:"

RuleKind = (
    AllowedOperations
    | ContinueLoop
    | ExitLoop
    | StartConstraint
    | RequiresPrecedingTools
    | RequiresFollowingTools
    | ExclusiveGroups
    | RequiredBeforeExit
    | RequiredBeforeExitIf
    | MaxCalls
    | Cooldown
    | RateLimit
    | Periodic
    | RequiresConsent
    | ArgumentConstraints
    | AfterOutside
    | Needed
)

RULE_KINDS: dict[str, type[RuleKind]] = {kind.__name__: kind for kind in get_args(RuleKind)}


@frozen
class ToolRule:
    """One rule on one tool. ``tool_name`` may be ``*`` or ``name@major``; a higher ``priority`` is reported first."""

    tool_name: str
    rule_type: RuleKind
    conditions: tuple[str, ...] = ()
    priority: int = DEFAULT_PRIORITY
    rule_id: str | None = None
    metadata: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def kind(self) -> str:
        """The spelling of the kind in the policy file."""
        return type(self.rule_type).__name__

    @property
    def operations(self) -> frozenset[str] | None:
        """The operations that the conditions name; None if they name none, so that the rule is for all."""
        prefix = OPERATION_CONDITION
        named = frozenset(text.removeprefix(prefix) for text in self.conditions if text.startswith(prefix))
        return named or None

    def binds(self, operation: str) -> bool:
        """True if the rule applies to calls of that operation."""
        return self.operations is None or operation in self.operations

    def check(self, report: Report) -> None:
        """Report faults that make it invalid in any file, whatever tools exist."""
        for key, text in (("tool_name", self.tool_name), ("id", self.rule_id)):
            if text is not None and (why := name_error(text)):
                report.error((key,), "bad-value", f"`{key}` {why}")
        self.rule_type.check(("rule_type", self.kind), report)
        whole_number(self.priority, ("priority",), report, "`priority`", 0, MAX_PRIORITY)
        for index, code, message in condition_faults(self.conditions, self.tool_name, self.rule_type):
            report.error(("conditions",) if index is None else ("conditions", index), code, message)
        if self.metadata is not None:
            json_table(dict(self.metadata), ("metadata",), report)


def condition_faults(
    conditions: Sequence[str], tool_name: str | None, kind: RuleKind | None
) -> Iterator[tuple[int | None, str, str]]:
    """The faults of conditions, whatever tools exist: the index (None for all together), a code, a message.

    ``tool_name`` or ``kind`` is None if unreadable in this rule.
    """
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if why := name_error(condition.removeprefix(OPERATION_CONDITION)):
            yield index, "bad-condition", f"{shown(condition)} is no condition here: the name {why}"
        elif condition in seen:
            yield index, "duplicate", f"{shown(condition)} stands here twice"
        elif condition.startswith(OPERATION_CONDITION):
            if tool_name == ANY_TOOL:
                message = f"{shown(condition)} names an operation of one tool: it cannot stand with `*`"
                yield index, "operations-on-plain-tool", message
        elif kind is not None and not kind.names_tools:
            message = f"{shown(condition)} is no condition here: `{type(kind).__name__}` takes only `operation:NAME`"
            yield index, "bad-condition", message
        elif kind is not None and condition == ANY_TOOL:
            message = f"`*` is no condition: name the tools that `{type(kind).__name__}` speaks of"
            yield index, "bad-condition", message
        seen.add(condition)
    if kind is not None and kind.names_tools and all(text.startswith(OPERATION_CONDITION) for text in conditions):
        example = "such as `tool` or `tool.operation`"
        yield None, "bad-condition", f"`{type(kind).__name__}` means nothing without a tool in `conditions`, {example}"
