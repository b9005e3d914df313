"""Capabilities: the kinds of things that an agent may touch, each with its scope; each reads, checks and writes itself.

A kind's class name is its spelling in the policy file. Without a capability of a kind, an agent may not use tools that
need that kind. Scopes stay as the file has them: hosts as patterns, prefixes relative to the policy file or absolute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self, get_args

from gatewright.base.amount import duration_words, format_size, parse_duration_words, parse_size, plain_duration
from gatewright.base.errors import EditRefused, RawPath, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.base.row import (
    DURATION,
    NAME,
    SIZE,
    Row,
    Shape,
    name_error,
    seconds_of,
    several,
    size_of,
    whole,
    whole_number,
)
from gatewright.policy.verdict import Word, check_host_pattern, check_prefix, is_every_host

_LIST = several(NAME, 1)


class CapabilityKind(Word):
    """The kinds, spelt as in the policy file and in a tool's ``required_capabilities``."""

    NET_READ = "NetRead"
    NET_WRITE = "NetWrite"
    FS_READ = "FsRead"
    FS_WRITE = "FsWrite"
    DB_READ = "DbRead"
    DB_WRITE = "DbWrite"
    EXEC = "Exec"
    WASM_EXEC = "WasmExec"
    CLOCK_READ = "ClockRead"
    ENV_READ = "EnvRead"
    ADVANCED_EDIT = "AdvancedEdit"


class _Capability:
    """The interface of all kinds; the base class serves kinds without a scope."""

    __slots__ = ()
    keys: ClassVar[dict[str, Shape]] = {}
    """The keys of its table in the file, with their shapes."""
    example: ClassVar[str] = ""
    """An example table, for kinds that need one."""
    typed_example: ClassVar[str] = ""
    """An example of a scope to type; empty for a kind without one."""

    @property
    def scope(self) -> tuple[str, ...] | None:
        """The hosts, prefixes, tables or names in its scope; None for a kind without a list."""
        return None

    @property
    def is_whole(self) -> bool:
        """True if its scope covers everything of its kind."""
        return True

    @property
    def text(self) -> str:
        """The scope as one line that a person can type again; empty without a scope."""
        return ""

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The capability with the scope that a person typed. Raises EditRefused, which names the wrong part."""
        if text.strip():
            raise EditRefused(f"`{cls.__name__}` has no scope")
        return cls()

    @classmethod
    def read(cls, row: Row) -> Self | None:
        """Read the table ``row``; None if its shape is wrong."""
        return cls()

    def plain(self) -> dict[str, object]:
        """Its limits, by the keys of the file; empty without limits."""
        return {}

    def check(self, path: RawPath, report: Report) -> None:
        """Report faults of the scope; ``path`` leads to the capability's table."""


class _Listed(_Capability):
    """A capability whose scope is one list: one entry or more, each once and well formed."""

    __slots__ = ()
    code: ClassVar[str] = "bad-value"

    if TYPE_CHECKING:

        def __init__(self, scope: tuple[str, ...]) -> None: ...

    @property
    def scope(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        return "*" in self.scope

    @property
    def text(self) -> str:
        return ", ".join(f'"{word}"' if "," in word or word != word.strip() else word for word in self.scope)

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(split_words(text))

    @classmethod
    def read(cls, row: Row) -> Self | None:
        (key,) = cls.keys
        words = row.words(key) if row.require(key, f"`{cls.__name__}`") else None
        return None if words is None else cls(words)

    def plain(self) -> dict[str, object]:
        (key,) = self.keys
        return {key: list(self.scope)}

    def check(self, path: RawPath, report: Report) -> None:
        (key,), kind = self.keys, type(self).__name__
        if not self.scope:
            message = f"an empty `{key}` grants nothing: list what to grant, or leave `{kind}` out"
            report.error((*path, key), "bad-value", message)
        for index, text in enumerate(self.scope):
            place = (*path, key, index)
            if why := self.fault_of(text):
                report.error(place, self.code, f"{shown(text)}: {why}")
            elif text in self.scope[:index]:
                report.error(place, "duplicate", f"{shown(text)} stands here twice")

    @staticmethod
    def fault_of(text: str) -> str | None:
        """The fault of one entry of the list, or None."""
        why = name_error(text)
        return f"a name {why}" if why else None


@frozen
class _Net(_Listed):
    allowlist: tuple[str, ...]
    keys: ClassVar = {"allowlist": _LIST}
    example = '{ allowlist = ["*.example.org"] }'
    typed_example = "*.example.org, api.example.com:8443"
    code = "bad-host"

    @property
    def scope(self) -> tuple[str, ...]:
        return self.allowlist

    @property
    def is_whole(self) -> bool:
        return any(map(is_every_host, self.allowlist))

    @staticmethod
    def fault_of(text: str) -> str | None:
        return check_host_pattern(text)


@frozen
class NetRead(_Net):
    """Read from hosts that match a pattern of ``allowlist``."""


@frozen
class NetWrite(_Net):
    """Send to hosts that match a pattern of ``allowlist``."""


@frozen
class _Fs(_Listed):
    prefixes: tuple[str, ...]
    keys: ClassVar = {"prefixes": _LIST}
    example = '{ prefixes = ["notes"] }'
    typed_example = "notes, drafts/2024"
    code = "bad-prefix"

    @property
    def scope(self) -> tuple[str, ...]:
        return self.prefixes

    @property
    def is_whole(self) -> bool:
        return "/" in self.prefixes

    @staticmethod
    def fault_of(text: str) -> str | None:
        if any(char < " " or char == "\x7f" for char in text):
            return "a prefix may not hold control characters"
        if ".." in text.split("/"):
            return "a prefix may not contain `..`: name the folder itself"
        return check_prefix(text)


@frozen
class FsRead(_Fs):
    """Read at or below one of ``prefixes``, by whole components."""


@frozen
class FsWrite(_Fs):
    """Write at or below one of ``prefixes``, by whole components."""


@frozen
class _Db(_Listed):
    tables: tuple[str, ...]
    keys: ClassVar = {"tables": _LIST}
    example = '{ tables = ["notes"] }'
    typed_example = "notes, tags"

    @property
    def scope(self) -> tuple[str, ...]:
        return self.tables


@frozen
class DbRead(_Db):
    """Read the ``tables``, by exact name; ``*`` means all."""


@frozen
class DbWrite(_Db):
    """Write the ``tables``, by exact name; ``*`` means all."""


@frozen
class Exec(_Capability):
    """Start processes with at most ``cpu_limit`` seconds and ``mem_limit`` bytes each; None: the tool's own limit."""

    cpu_limit: float | None = None
    mem_limit: int | None = None
    keys: ClassVar = {"cpu_limit": DURATION, "mem_limit": SIZE}
    typed_example = "cpu 2 s, memory 64 MiB"

    @property
    def text(self) -> str:
        cpu = "" if self.cpu_limit is None else f"cpu {duration_words(self.cpu_limit)}"
        return ", ".join(filter(None, (cpu, memory_text(self.mem_limit))))

    @classmethod
    def from_text(cls, text: str) -> Self:
        found = read_limits(text, ("cpu", "memory"))
        try:
            cpu_limit = parse_duration_words(found["cpu"]) if "cpu" in found else None
        except (ValueError, OverflowError) as error:
            raise EditRefused(str(error)) from None
        return cls(cpu_limit, memory_limit(found))

    @classmethod
    def read(cls, row: Row) -> Self:
        return cls(row.duration("cpu_limit"), row.size("mem_limit"))

    def plain(self) -> dict[str, object]:
        cpu_limit = None if self.cpu_limit is None else plain_duration(self.cpu_limit)
        return _present({"cpu_limit": cpu_limit, "mem_limit": _plain_size(self.mem_limit)})

    def check(self, path: RawPath, report: Report) -> None:
        place = (*path, "cpu_limit")
        if self.cpu_limit is not None and seconds_of(self.cpu_limit, place, report) == 0:
            report.error(place, "bad-value", "`cpu_limit` must be longer than nothing")
        if self.mem_limit is not None:
            size_of(self.mem_limit, (*path, "mem_limit"), report)


@frozen
class WasmExec(_Capability):
    """Run WASM modules with at most ``fuel`` units and ``memory`` bytes each; None: the tool's own limit."""

    fuel: int | None = None
    memory: int | None = None
    keys: ClassVar = {"fuel": whole(1), "memory": SIZE}
    typed_example = "fuel 1000000, memory 64 MiB"

    @property
    def text(self) -> str:
        fuel = "" if self.fuel is None else f"fuel {self.fuel}"
        return ", ".join(filter(None, (fuel, memory_text(self.memory))))

    @classmethod
    def from_text(cls, text: str) -> Self:
        found = read_limits(text, ("fuel", "memory"))
        fuel = found.get("fuel", "1").replace(",", "").replace("_", "")
        if not fuel.isdecimal() or len(fuel) > 18 or int(fuel) < 1:
            raise EditRefused(f"`{found['fuel']}`: fuel is a whole number of units, at least 1")
        return cls(int(fuel) if "fuel" in found else None, memory_limit(found))

    @classmethod
    def read(cls, row: Row) -> Self:
        return cls(row.integer("fuel"), row.size("memory"))

    def plain(self) -> dict[str, object]:
        return _present({"fuel": self.fuel, "memory": _plain_size(self.memory)})

    def check(self, path: RawPath, report: Report) -> None:
        if self.fuel is not None:
            whole_number(self.fuel, (*path, "fuel"), report, "`fuel`", 1)
        if self.memory is not None:
            size_of(self.memory, (*path, "memory"), report)


@frozen
class ClockRead(_Capability):
    """Read the clock."""


@frozen
class EnvRead(_Listed):
    """Read the environment variables ``names`` (``vars`` in the file), by exact name; ``*`` means all."""

    names: tuple[str, ...]
    keys: ClassVar = {"vars": _LIST}
    example = '{ vars = ["LANG"] }'
    typed_example = "LANG, HOME"

    @property
    def scope(self) -> tuple[str, ...]:
        return self.names


@frozen
class AdvancedEdit(_Capability):
    """Edit by patch."""


Capability = (
    NetRead | NetWrite | FsRead | FsWrite | DbRead | DbWrite | Exec | WasmExec | ClockRead | EnvRead | AdvancedEdit
)
ListedCapability = NetRead | NetWrite | FsRead | FsWrite | DbRead | DbWrite | EnvRead
CAPABILITIES: dict[CapabilityKind, type[Capability]] = {
    CapabilityKind(kind.__name__): kind for kind in get_args(Capability)
}
SCOPED = frozenset(CapabilityKind(kind.__name__) for kind in get_args(ListedCapability))
"""The kinds whose grants have a scope."""


def kind_of(capability: Capability) -> CapabilityKind:
    """The kind of a capability."""
    return CapabilityKind(type(capability).__name__)


def plain_capability(capability: Capability) -> object:
    """One entry of ``capabilities`` in the file: the kind's name, or ``{ KIND = { ... } }``."""
    name, scope = type(capability).__name__, capability.plain()
    return {name: scope} if scope else name


def check_capabilities(placed: Iterable[tuple[Capability, RawPath]], report: Report) -> None:
    """Report faults of an agent's capabilities, each with the place of its entry.

    Two grants of a kind are a fault, except of lists, whose union counts.
    """
    held: list[Capability] = []
    for capability, path in placed:
        name = type(capability).__name__
        capability.check((*path, name), report)
        if capability in held or (capability.scope is None and type(capability) in map(type, held)):
            report.error(path, "duplicate", f"`{name}` is granted already")
        held.append(capability)


def _plain_size(size: int | None) -> str | int | None:
    return None if size is None else format_size(size)


def _present(limits: dict[str, object]) -> dict[str, object]:
    return {key: limit for key, limit in limits.items() if limit is not None}


_ITEM = late_regex(r'\s*(?:"([^"]*)"|([^,"]*))\s*(?:,|$)')


def split_words(text: str) -> tuple[str, ...]:
    """Split a text at its commas, quotes respected; an empty text has no items."""
    found: list[str] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise EditRefused(f"column {at + 1}: separate names by commas, and put a name with a comma in quotes")
        found.append(item[1] if item[1] is not None else item[2].strip())
        at = item.end()
    return tuple(word for word in found if word)


def read_limits(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """Read values by name; each name at most once."""
    found: dict[str, str] = {}
    for part in split_words(text):
        name, _, value = part.partition(" ")
        if name not in names or not value.strip():
            raise EditRefused(f"`{part}`: say {' or '.join(f'`{one}`' for one in names)} and a value")
        if name in found:
            raise EditRefused(f"`{name}` stands here twice")
        found[name] = value.strip()
    return found


def memory_limit(limits: dict[str, str]) -> int | None:
    """The bytes after `memory`, if present."""
    text = limits.get("memory")
    try:
        return None if text is None else parse_size(int(text) if text.isdecimal() else text)
    except ValueError as error:
        raise EditRefused(str(error)) from None


def memory_text(size: int | None) -> str:
    """A limit of memory in the form that a person types; empty for none."""
    return "" if size is None else f"memory {format_size(size)}"
