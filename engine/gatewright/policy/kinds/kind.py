"""What every kind of tool rule answers: how its value is read, what is wrong with it, how it is written and called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self, cast

from gatewright.base.report import RawPath, Report, shown
from gatewright.base.row import name_error, words_of
from gatewright.base.shape import NAME, Shape, several

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
