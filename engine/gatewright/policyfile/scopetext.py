"""A capability's scope as one line of text: how the app shows it and how one types it. It grants nothing.

Lists are separated by commas; a name with a comma stands in double quotes. Limits are words with a value, such as
``cpu 2 s, memory 64 MiB``; an empty text says nothing of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gatewright.base.durationwords import duration_words, parse_duration_words
from gatewright.base.errors import EditRefused
from gatewright.policy.capability import (
    AdvancedEdit,
    Capability,
    CapabilityKind,
    ClockRead,
    DbRead,
    DbWrite,
    EnvRead,
    Exec,
    FsRead,
    FsWrite,
    NetRead,
    NetWrite,
    WasmExec,
)
from gatewright.policy.capabilityedit import scope_of
from gatewright.policyfile.editfault import capability_fault
from gatewright.policyfile.size import format_size, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewright.policy.document import Policy

_ITEM = re.compile(r'\s*(?:"([^"]*)"|([^,"]*))\s*(?:,|$)')
_LISTS: dict[CapabilityKind, Callable[[tuple[str, ...]], Capability]] = {
    CapabilityKind.NET_READ: NetRead,
    CapabilityKind.NET_WRITE: NetWrite,
    CapabilityKind.FS_READ: FsRead,
    CapabilityKind.FS_WRITE: FsWrite,
    CapabilityKind.DB_READ: DbRead,
    CapabilityKind.DB_WRITE: DbWrite,
    CapabilityKind.ENV_READ: EnvRead,
}
_EXAMPLES = {
    **dict.fromkeys((CapabilityKind.NET_READ, CapabilityKind.NET_WRITE), "*.example.org, api.example.com:8443"),
    **dict.fromkeys((CapabilityKind.FS_READ, CapabilityKind.FS_WRITE), "notes, drafts/2024"),
    **dict.fromkeys((CapabilityKind.DB_READ, CapabilityKind.DB_WRITE), "notes, tags"),
    CapabilityKind.ENV_READ: "LANG, HOME",
    CapabilityKind.EXEC: "cpu 2 s, memory 64 MiB",
    CapabilityKind.WASM_EXEC: "fuel 1000000, memory 64 MiB",
}


def scope_example(kind: CapabilityKind, policy: Policy | None = None) -> str:
    """What one may type for a kind; empty for a kind without a scope. Folders are those that the policy names."""
    folders = _folders(kind, policy) if policy is not None else ()
    return ", ".join(folders) or _EXAMPLES.get(kind, "")


def _folders(kind: CapabilityKind, policy: Policy) -> tuple[str, ...]:
    """The folders of the roots that tools read and write in, else those of the sources."""
    if kind not in {CapabilityKind.FS_READ, CapabilityKind.FS_WRITE}:
        return ()
    roots = [folder for name, folder in policy.roots.folders.items() if name != "vault"]
    return tuple(dict.fromkeys(roots or [source.base_path for source in policy.sources]))


def scope_text(capability: Capability) -> str:
    """The scope as it can be typed again; empty for none."""
    scope = scope_of(capability)
    if scope is not None:
        return ", ".join(f'"{word}"' if "," in word or word != word.strip() else word for word in scope)
    match capability:
        case Exec(cpu_limit, mem_limit):
            cpu = "" if cpu_limit is None else f"cpu {duration_words(cpu_limit)}"
            return _and(cpu, _memory(mem_limit))
        case WasmExec(fuel, memory):
            return _and("" if fuel is None else f"fuel {fuel}", _memory(memory))
        case _:
            return ""


def read_scope(kind: CapabilityKind, text: str) -> Capability:
    """The capability that ``text`` says. Raises EditRefused naming what cannot be read."""
    capability = _read(kind, text)
    if fault := capability_fault((capability,)):
        raise EditRefused(fault)
    return capability


def _read(kind: CapabilityKind, text: str) -> Capability:
    match kind:
        case CapabilityKind.EXEC:
            found = _limits(text, ("cpu", "memory"))
            return Exec(_cpu(found), _size(found))
        case CapabilityKind.WASM_EXEC:
            found = _limits(text, ("fuel", "memory"))
            return WasmExec(_fuel(found["fuel"]) if "fuel" in found else None, _size(found))
        case CapabilityKind.CLOCK_READ | CapabilityKind.ADVANCED_EDIT:
            if text.strip():
                raise EditRefused(f"`{kind}` has no scope")
            return ClockRead() if kind is CapabilityKind.CLOCK_READ else AdvancedEdit()
        case _:
            return _LISTS[kind](_words(text))


def _words(text: str) -> tuple[str, ...]:
    """The items between commas; an empty text has none."""
    found: list[str] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise EditRefused(f"column {at + 1}: names are separated by commas, one with a comma stands in quotes")
        found.append(item[1] if item[1] is not None else item[2].strip())
        at = item.end()
    return tuple(word for word in found if word)


def _limits(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """Value by name; each at most once."""
    found: dict[str, str] = {}
    for part in _words(text):
        name, _, value = part.partition(" ")
        if name not in names or not value.strip():
            raise EditRefused(f"`{part}`: say {' or '.join(f'`{one}`' for one in names)} and a value")
        if name in found:
            raise EditRefused(f"`{name}` stands here twice")
        found[name] = value.strip()
    return found


def _cpu(found: dict[str, str]) -> float | None:
    try:
        return parse_duration_words(found["cpu"]) if "cpu" in found else None
    except (ValueError, OverflowError) as error:
        raise EditRefused(str(error)) from None


def _size(found: dict[str, str]) -> int | None:
    if "memory" not in found:
        return None
    text = found["memory"]
    return _checked(lambda: parse_size(int(text) if text.isdecimal() else text))


def _fuel(text: str) -> int:
    plain = text.replace(",", "").replace("_", "")
    if not plain.isdecimal() or len(plain) > 18 or int(plain) < 1:
        raise EditRefused(f"`{text}`: fuel is a whole number of units, at least 1")
    return int(plain)


def _checked(read: Callable[[], int]) -> int:
    try:
        return read()
    except ValueError as error:
        raise EditRefused(str(error)) from None


def _and(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _memory(size: int | None) -> str:
    return "" if size is None else f"memory {format_size(size)}"
