"""The kinds that order the calls of a session: what goes before what, and when the loop goes on or ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from gatewright.base.frozen import frozen
from gatewright.base.report import RawPath, Report, shown
from gatewright.base.shape import NAME, several
from gatewright.policy.kinds.kind import Kind, check_names, listed, needs_value, read_names
from gatewright.policy.toolname import ANY_TOOL, split_name


@frozen
class ContinueLoop(Kind):
    """After a successful call the loop goes on."""

    noun = "rule that goes on"
    usage = "After a successful call you keep the turn."

    def edit_name(self, what: str) -> str:
        return f"go on after {what}"


@frozen
class ExitLoop(Kind):
    """After a successful call the loop ends."""

    noun = "rule that ends the loop"
    usage = "A successful call ends your turn."

    def edit_name(self, what: str) -> str:
        return f"end the loop after {what}"


@frozen
class StartConstraint(Kind):
    """Must succeed before any other tool."""

    noun = "start"
    usage = "It has to succeed before any other tool is called."


@frozen
class RequiresPrecedingTools(Kind):
    """The tools of the conditions must have succeeded earlier."""

    noun = "order before"
    names_tools = True

    def told(self, names: Sequence[str]) -> str | None:
        return f"It can be called once {listed(names, 'and')} succeeded in this session." if names else None


@frozen
class RequiresFollowingTools(Kind):
    """Must come before the tools of the conditions."""

    noun = "order after"
    names_tools = True

    def told(self, names: Sequence[str]) -> str | None:
        return f"It cannot be called any more once {listed(names, 'or')} succeeded." if names else None


@frozen
class RequiredBeforeExit(Kind):
    """Must have succeeded before the loop may end."""

    noun = "requirement before the end"
    usage = "It has to succeed before you finish."


@frozen
class RequiredBeforeExitIf(Kind):
    """As RequiredBeforeExit, if the tools of the conditions were called."""

    noun = "requirement before the end"
    names_tools = True

    def told(self, names: Sequence[str]) -> str | None:
        return f"Once {listed(names, 'and')} succeeded, it has to succeed too before you finish." if names else None


@frozen
class ExclusiveGroups(Kind):
    """At most one tool of each group per session."""

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
        return found.checked(path, report) if len(found.groups) == len(groups) else None

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

    def told(self, names: Sequence[str]) -> str | None:
        return f"Only one of {listed(names, 'and')} can be used in a session." if len(names) > 1 else None


def _check_tools(group: tuple[str, ...], path: RawPath, report: Report) -> None:
    seen: dict[str, str] = {}
    for index, written in enumerate(group):
        if written == ANY_TOOL:
            report.error((*path, index), "bad-value", "`*` cannot stand in a group: name its tools")
        elif (held := seen.setdefault(split_name(written)[0], written)) != written:
            message = f"{shown(written)} stands in the group already, as {shown(held)}"
            report.error((*path, index), "duplicate", message)
