"""Plain values as TOML text, as tomlkit spells them; inline tables have spaces inside their braces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import tomlkit
from tomlkit.items import SingleKey

from gatewright.base.errors import NotSupported
from gatewright.base.report import RawPath


def key_text(key: str) -> str:
    """A key, quoted where it must be."""
    return SingleKey(_encodable(key)).as_string()


def dotted(path: RawPath) -> str:
    """The dotted key of a path; positions in lists are left out, as headers do."""
    return ".".join(key_text(part) for part in path if isinstance(part, str))


def header(path: RawPath) -> str:
    """``[path]``, or ``[[path]]`` when the path ends in a position."""
    return f"[[{dotted(path)}]]" if path and isinstance(path[-1], int) else f"[{dotted(path)}]"


def literal(value: object) -> str:
    """A value on one line. Raises NotSupported for what TOML cannot say."""
    match value:
        case str():
            return text_literal(value)
        case bool() | int() | float():
            return tomlkit.item(value).as_string()
        case dict():
            table = cast("Mapping[str, object]", value)
            return (
                "{ " + ", ".join(f"{key_text(key)} = {literal(one)}" for key, one in table.items()) + " }"
                if table
                else "{}"
            )
        case list() | tuple():
            return f"[{', '.join(map(literal, cast('Iterable[object]', value)))}]"
        case _:
            raise NotSupported(f"a policy file cannot hold a value of type `{type(value).__name__}`")


def text_literal(text: str) -> str:
    """Text in quotes; single ones where that avoids doubled backslashes."""
    plain = "\\" in text and "'" not in text and not any(char < " " or char == "\x7f" for char in text)
    return tomlkit.string(_encodable(text), literal=plain).as_string()


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotSupported("a policy file cannot hold half of a surrogate pair") from None
    return text
