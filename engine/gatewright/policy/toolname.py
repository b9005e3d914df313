"""Tool names as the policy writes them: ``name`` or ``name@major``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

ANY_TOOL = "*"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
_DIGITS = 9
"""The longest major: a longer number is a name, since Python would not even read one of thousands of digits."""


def tool_name_fault(name: object) -> str:
    """The fault of a ``name`` that policies and protocols cannot write; empty where they can."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return ""
    return f"`{name}` is no tool name: letters, digits, `_`, `-`, `.`, `/`, up to 128, a letter, digit or `_` first"


class _Versioned(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def major(self) -> int: ...


_Tool = TypeVar("_Tool", bound=_Versioned)


def split_name(written: str) -> tuple[str, int | None]:
    """``("recall", 2)`` for ``recall@2``; the major is None for a bare name or a tail that is no number."""
    name, at, major = written.rpartition("@")
    is_major = at and name and major.isdecimal() and major.isascii() and len(major) <= _DIGITS
    return (name, int(major)) if is_major else (written, None)


def names_tool(written: str, tool_name: str, major: int) -> bool:
    """Whether ``written`` (bare, ``name@major`` or ``*``) stands for that tool."""
    if "@" not in written:
        return written in (tool_name, ANY_TOOL)
    name, wanted = split_name(written)
    return name == tool_name and wanted in {None, major}


def chosen_tools(catalog: Iterable[_Tool], listed: tuple[str, ...] | None) -> dict[str, _Tool]:
    """One major per name, in catalog order: the one that ``listed`` asks for by ``name@major``, else the highest."""
    asked_for = [split_name(written) for written in listed or () if "@" in written]
    wanted = {name: major for name, major in asked_for if major is not None}
    chosen: dict[str, _Tool] = {}
    for facts in catalog:
        held = chosen.get(facts.name)
        asked = wanted.get(facts.name) if held is not None else None
        if held is None or facts.major == asked or (facts.major > held.major and held.major != asked):
            chosen[facts.name] = facts
    return chosen
