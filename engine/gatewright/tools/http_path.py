"""The address of a request as a template: components of its path, fields of its query, form and cookies.

Slots follow RFC 6570: `{id}`, a list or an object with commas; `{.id}` and `{;id}`, a label and a matrix; `{id*}`,
exploded. A value stays within its component, whatever it is; `{+id}` fills one or more components, with slashes
between. A component is never empty, `.` or `..`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import quote

from gatewright.arguments.url import MAX_URL_CHARS
from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.operation import ArgumentIssue

SLOT = re.compile(r"\{([^{}/]{1,130})\}")
_WRITTEN = late_regex(r"([+;.]?)([^+;.*?&#][^*]{0,127})(\*?)")
_LITERAL = late_regex(r"[A-Za-z0-9._~!$&'()*+,;=:@-]*")
_BREAKS = late_regex(r"[/\\\x00-\x1f\x7f]")
_COMPONENT = "this fills one part of an address: not empty, no `.` or `..`, and without slashes and control characters"
_SPAN = "this fills parts of an address with `/` between them: none is empty, `.` or `..`, or has control characters"
_OTHER = "this value makes another request of it; use another value"
_FREE, _SPANNING = 2, 3


@frozen
class Slot:
    """The place of an argument within a component; ``operator`` is that of RFC 6570, or empty."""

    argument: str
    operator: str = ""
    explode: bool = False


Component: TypeAlias = tuple[str | Slot, ...]


@frozen
class PathTemplate:
    """The components of a path, each made of texts and slots. ``text``: as written."""

    components: tuple[Component, ...]
    text: str = ""

    def issues(self, arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
        """Yield the arguments that do not fit their slots."""
        for parts in self.components:
            slots = [part for part in parts if isinstance(part, Slot)]
            bad = [slot for slot in slots if not _fits(arguments.get(slot.argument), slot)]
            if not bad and slots and not {"", ".", ".."}.isdisjoint(_text_of(parts, arguments).split("/")):
                bad = slots
            yield from (
                ArgumentIssue(f"/{slot.argument}", _SPAN if slot.operator == "+" else _COMPONENT) for slot in bad
            )

    def confusions(self, arguments: Mapping[str, object], others: Sequence[PathTemplate]) -> Iterator[ArgumentIssue]:
        """Yield the arguments that would turn the path into that of another request with a more exact template."""
        filled = [_text_of(parts, arguments).split("/") for parts in self.components]
        texts = [text.casefold() for parts in filled for text in parts]
        own = [
            rank for parts, held in zip(self.components, filled, strict=True) for rank in _ranks_of(parts, len(held))
        ]
        if any(other.takes(texts, own) for other in others):
            names = (part.argument for parts in self.components for part in parts if isinstance(part, Slot))
            yield from (ArgumentIssue(f"/{name}", _OTHER) for name in dict.fromkeys(names))

    def fill(self, arguments: Mapping[str, object]) -> str:
        """Return the path without its first slash."""
        return "/".join(_text_of(parts, arguments) for parts in self.components)

    def takes(self, texts: Sequence[str], ranks: Sequence[int]) -> bool:
        """Tell whether the path ``texts`` of a request with ``ranks`` fits this template and the template is more
        exact.
        """
        own = self.spread(len(texts))
        return (
            own is not None
            and any(_rank(mine) < rank for mine, rank in zip(own, ranks, strict=True))
            and all(_is_of(text, mine) for text, mine in zip(texts, own, strict=True))
        )

    def may_become(self, other: PathTemplate) -> bool:
        """Tell whether arguments could turn this into a path of ``other``, which is more exact about it."""
        spans = self.is_spanning, other.is_spanning
        least = max(len(self.components), len(other.components))
        return any(self._meets(other, count) for count in range(least, least + 1 + all(spans)))

    def spread(self, count: int) -> tuple[Component, ...] | None:
        """Return the components if the path can have ``count`` of them; one that spans several is repeated."""
        more = count - len(self.components)
        if more == 0:
            return self.components
        at = next((at for at, parts in enumerate(self.components) if _rank(parts) == _SPANNING), None)
        if more < 0 or at is None:
            return None
        return (*self.components[:at], *(self.components[at],) * (more + 1), *self.components[at + 1 :])

    @property
    def has_slots(self) -> bool:
        """True if an argument fills a part of the path."""
        return any(map(_rank, self.components))

    @property
    def first(self) -> str | None:
        """The first component, if it is fixed."""
        return _ends(self.components[0])[0] if _rank(self.components[0]) == 0 else None

    @property
    def is_spanning(self) -> bool:
        """True if a value may have several components."""
        return any(_rank(parts) == _SPANNING for parts in self.components)

    def _meets(self, other: PathTemplate, count: int) -> bool:
        mine, theirs = self.spread(count), other.spread(count)
        if mine is None or theirs is None:
            return False
        return all(map(_are_alike, mine, theirs)) and any(
            _rank(their) < _rank(own) for own, their in zip(mine, theirs, strict=True)
        )


def read_path(value: object, place: str) -> PathTemplate:
    """Read a template from a text. Raises RegistrationError."""
    if not isinstance(value, str) or not value.startswith("/") or len(value) > MAX_URL_CHARS:
        raise wrong(place, "must be a path that begins with `/`, such as `/items/{item}`")
    found: list[Component] = []
    for component in value[1:].split("/"):
        pieces = SLOT.split(component)
        parts = tuple(_slot(piece, place) if index % 2 else piece for index, piece in enumerate(pieces))
        if not all(isinstance(part, Slot) or _LITERAL.fullmatch(part) for part in parts):
            raise wrong(place, "holds what no path can, outside of `{name}`")
        if component in {".", ".."}:
            raise wrong(place, "may not hold `.` or `..`")
        kept = tuple(part for part in parts if part)
        if len(kept) > 1 and any(isinstance(part, Slot) and part.operator == "+" for part in kept):
            raise wrong(place, "has `{+name}` for whole parts only, with nothing beside it")
        found.append(kept)
    if sum(_rank(parts) == _SPANNING for parts in found) > 1:
        raise wrong(place, "has more than one `{+name}`")
    return PathTemplate(tuple(found), value)


def wrong(place: str, why: str) -> RegistrationError:
    """Return the error for a fault in a definition, with its place."""
    return RegistrationError(f"`{place}` {why}")


def plain_text(value: object) -> str:
    """Write a text, number or boolean as in an address; None for any other value."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else ""


def flat_texts(value: object) -> list[str] | None:
    """Return the values of a list, or the keys and values of an object in turn, as in an address.

    None for any other value, and for nested ones.
    """
    rows, table = as_list(value), as_object(value)
    if table is not None:
        rows = [one for pair in table.items() for one in pair]
    if rows is None or any(isinstance(row, list | dict) or row is None for row in rows):
        return None
    return [plain_text(row) for row in rows]


def _slot(text: str, place: str) -> Slot:
    found = _WRITTEN.fullmatch(text)
    if found is None or (found[1] == "+" and found[3]):
        raise wrong(place, f"has no slot `{{{text[:64]}}}`: write `{{name}}`")
    return Slot(found[2], found[1], bool(found[3]))


def _fits(value: object, slot: Slot) -> bool:
    """Tell whether a value can stand in its slot: each text of it fills something and stays inside."""
    texts = flat_texts(value) or [plain_text(value)]
    if slot.operator != "+":
        return all(texts) and not any(map(_BREAKS.search, texts))
    pieces = plain_text(value).split("/")
    return all(pieces) and not any(piece in {".", ".."} or _BREAKS.search(piece) for piece in pieces)


def _text_of(parts: Component, arguments: Mapping[str, object]) -> str:
    return "".join(_value(arguments.get(part.argument), part) if isinstance(part, Slot) else part for part in parts)


def _value(value: object, slot: Slot) -> str:
    """Expand a value as RFC 6570 does, each of its texts percent-encoded."""
    if slot.operator == "+":
        return quote(plain_text(value), "/")
    texts = [quote(text, "") for text in flat_texts(value) or [plain_text(value)]]
    if slot.explode and isinstance(value, dict):
        texts = [f"{key}={one}" for key, one in zip(texts[::2], texts[1::2], strict=True)]
    elif slot.explode and slot.operator == ";":
        texts = [f"{quote(slot.argument, '')}={one}" for one in texts]
    elif slot.operator == ";":
        return f";{quote(slot.argument, '')}={','.join(texts)}"
    joint = (slot.operator or ",") if slot.explode else ","
    return slot.operator + joint.join(texts)


def _rank(parts: Component) -> int:
    """Rank how open a component is: 0 fixed, 1 a part, 2 all of it except punctuation, 3 several components."""
    slots = [part for part in parts if isinstance(part, Slot)]
    if not slots:
        return 0
    if slots[0].operator == "+":
        return _SPANNING
    return 1 if any(isinstance(part, str) and any(map(str.isalnum, part)) for part in parts) else _FREE


def _ranks_of(parts: Component, count: int) -> list[int]:
    rank = _rank(parts)
    return [min(rank, _FREE)] if count == 1 else [rank] * count


def _ends(parts: Component) -> tuple[str, str]:
    """Return the fixed texts at the component's beginning and end."""
    first, last = (parts[0], parts[-1]) if parts else ("", "")
    texts = (first if isinstance(first, str) else "", last if isinstance(last, str) else "")
    return texts[0].casefold(), texts[1].casefold()


def _is_of(text: str, parts: Component) -> bool:
    begin, end = _ends(parts)
    return text == begin if _rank(parts) == 0 else text.startswith(begin) and text.endswith(end)


def _are_alike(one: Component, other: Component) -> bool:
    """Tell whether a text may fit both components."""
    (begin, end), (start, stop) = _ends(one), _ends(other)
    if _rank(one) == 0 or _rank(other) == 0:
        return _is_of(begin, other) if _rank(one) == 0 else _is_of(start, one)
    heads = begin.startswith(start) or start.startswith(begin)
    return heads and (end.endswith(stop) or stop.endswith(end))


MAX_FIELDS = 500
Escape = Callable[[str, str], str]
_RESERVED = "/:?@!$'()*,;"
"""Characters that RFC 3986 reserves and a value may still contain: they end neither the value nor the query."""
_SPREAD = "its keys stand beside the other arguments: none may be called like one of those, or be empty"


class Style(StrEnum):
    """The spelling of a list or an object in a query or a form.

    repeat: one field for each element; comma, space, pipe: one text; brackets: `name[key]=value`; spread: each key is a
    field of its own; json: as JSON.
    """

    REPEAT = "repeat"
    COMMA = "comma"
    SPACE = "space"
    PIPE = "pipe"
    BRACKETS = "brackets"
    SPREAD = "spread"
    JSON = "json"


_SEPARATORS = {Style.COMMA: ",", Style.SPACE: " ", Style.PIPE: "|"}


@frozen
class Field:
    """The name of a value at the server, and the argument that holds it.

    ``reserved``: reserved characters of an address stay as they are. ``file``: the value is a file, in a form of parts;
    ``media_type``: the type of its part.
    """

    name: str
    argument: str
    style: Style = Style.REPEAT
    reserved: bool = False
    file: bool = False
    media_type: str = ""


def read_fields(value: object, place: str, *, parts: bool = False) -> tuple[Field, ...]:
    """Read a list of names, which are also those of the arguments, or an object from names to arguments.

    ``parts``: the fields belong to a form of parts and may be files. Raises RegistrationError.
    """
    rows = as_list(value)
    table = dict.fromkeys(map(str, rows)) if rows is not None else as_object(value)
    if table is None or len(table) > MAX_FIELDS:
        raise wrong(place, f"must be a list of names, or an object from names to arguments, of up to {MAX_FIELDS}")
    return tuple(_field(name, given, f"{place}/{name[:64]}", parts=parts) for name, given in table.items())


def pairs(fields: Sequence[Field], arguments: Mapping[str, JsonValue], escape: Escape) -> Iterator[str]:
    """Yield the fields that arguments fill, each as `name=value`."""
    for field in fields:
        value = arguments.get(field.argument)
        if value is None:
            continue
        name, safe = escape(field.name, ""), _RESERVED if field.reserved else ""
        separator = _SEPARATORS.get(field.style)
        if field.style is Style.BRACKETS:
            yield from _brackets(name, value, escape)
        elif field.style is Style.JSON:
            yield f"{name}={escape(json.dumps(value, ensure_ascii=False), safe)}"
        elif field.style is Style.SPREAD and isinstance(value, dict):
            for key, one in value.items():
                yield from (f"{escape(key, '')}={escape(plain(row), safe)}" for row in _each(one))
        elif separator is not None and isinstance(value, dict | list):
            flat = value if isinstance(value, list) else [one for pair in value.items() for one in pair]
            joint = separator if field.style is Style.COMMA else escape(separator, "")
            yield f"{name}={joint.join(escape(plain(one), safe) for one in flat)}"
        else:
            rows = _each(value) if field.style is Style.REPEAT else [value]
            yield from (f"{name}={escape(plain(one), safe)}" for one in rows)


def spread_issues(fields: Sequence[Field], arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
    """Yield the objects with keys that would fill fields of other arguments."""
    if not any(field.style is Style.SPREAD for field in fields):
        return
    taken = {field.name for field in fields if field.style is not Style.SPREAD} | {""}
    for field in fields:
        if field.style is Style.SPREAD and (table := as_object(arguments.get(field.argument))):
            if taken & {key.partition("[")[0] for key in table}:
                yield ArgumentIssue(f"/{field.argument}", _SPREAD)
            taken |= table.keys()


def plain(value: JsonValue) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _each(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _field(name: str, given: object, place: str, *, parts: bool) -> Field:
    if given is None or isinstance(given, str):
        return Field(name, given or name)
    table = as_object(given)
    known = {"argument", "style", "reserved"} if not parts else {"argument", "style", "file", "type"}
    if table is None or table.keys() - known:
        raise wrong(place, f"must be the name of an argument, or an object with {', '.join(sorted(known))}")
    argument, style = table.get("argument", name), table.get("style", Style.REPEAT)
    found = next((one for one in Style if one == style), None)
    media_type = table.get("type", "")
    if not isinstance(argument, str) or found is None:
        raise wrong(place, f"needs the name of an argument, and a style out of {', '.join(Style)}")
    if not isinstance(media_type, str) or (media_type and not is_media_type(media_type)):
        raise wrong(f"{place}/type", "must be a media type, such as `image/png`")
    flags = [table.get(key, False) for key in ("reserved", "file")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise wrong(place, "has `reserved` and `file` as true or false")
    return Field(name, argument, found, flags[0] is True, flags[1] is True, media_type)


def is_media_type(text: str) -> bool:
    """Tell whether a text can be the media type of a body, with parameters."""
    kind, slash, sub = text.partition(";")[0].strip().partition("/")
    words = kind and sub and "*" not in text and all(char.isalnum() or char in "!#$&^_.+-" for char in kind + sub)
    return bool(slash and words) and len(text) <= 200 and text.isascii() and text.isprintable()


def _brackets(name: str, value: JsonValue, escape: Escape) -> Iterator[str]:
    """Yield `name[key]=value` for each value, at any depth; without recursion, since a model chooses the depth."""
    stack: list[tuple[str, JsonValue]] = [(name, value)]
    while stack:
        name, value = stack.pop()
        inner = list(value.items()) if isinstance(value, dict) else None
        if isinstance(value, list):
            inner = [(str(index), one) for index, one in enumerate(value)]
        if inner is None:
            if value is not None:
                yield f"{name}={escape(plain(value), '')}"
            continue
        stack.extend((f"{name}[{escape(key, '')}]", one) for key, one in reversed(inner))
