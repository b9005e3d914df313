"""Reading ``capabilities``: ``"ClockRead"`` or ``{ NetRead = { allowlist = [...] } }``. It grants nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

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
from gatewright.policy.prefix import check_prefix
from gatewright.policyfile.report import shown
from gatewright.policyfile.row import Raw, Row, kind_of, name_error
from gatewright.policyfile.size import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewright.policyfile.report import Report
    from gatewright.policyfile.scan import RawPath

KINDS = {str(kind): kind for kind in CapabilityKind}
PLAIN: dict[str, Capability] = {"ClockRead": ClockRead(), "AdvancedEdit": AdvancedEdit()}
ONCE = (Exec, WasmExec, ClockRead, AdvancedEdit)
"""Two of a kind cannot be put together; lists can: their union is granted."""


def read_capabilities(row: Row) -> tuple[Capability, ...]:
    """The capabilities of one agent; one that cannot be built is left out (an error)."""
    found: list[Capability] = []
    for index, value in enumerate(row.items("capabilities")):
        path = row.at("capabilities", index)
        capability = _capability(value, path, row.report)
        if capability is None:
            continue
        if capability in found or (isinstance(capability, ONCE) and type(capability) in map(type, found)):
            row.report.error(path, "duplicate", f"`{type(capability).__name__}` is granted already")
        found.append(capability)
    return tuple(found)


def _capability(value: object, path: RawPath, report: Report) -> Capability | None:
    if isinstance(value, str):
        return _named(value, path, report)
    if not isinstance(value, dict):
        report.error(path, "wrong-type", f"a capability must be text or a table, not {kind_of(value)}")
        return None
    raw = cast("Raw", value)
    if len(raw) != 1:
        example = "`{ NetRead = { allowlist = [...] } }`"
        report.error(path, "bad-value", f"a capability is one table with exactly one kind, such as {example}")
        return None
    name, payload = next(iter(raw.items()))
    return _tagged(name, payload, (*path, name), report)


def _named(name: str, path: RawPath, report: Report) -> Capability | None:
    if name in PLAIN:
        return PLAIN[name]
    if name in {"Exec", "WasmExec"}:
        return Exec() if name == "Exec" else WasmExec()
    if name in KINDS:
        report.error(path, "bad-value", f"`{name}` needs a value, such as `{_EXAMPLES[name]}`")
    else:
        _unknown(name, path, report)
    return None


def _tagged(name: str, payload: object, path: RawPath, report: Report) -> Capability | None:
    if name not in KINDS:
        _unknown(name, path, report)
        return None
    row = Row({name: payload}, path[:-1], report).table(name)
    if row is None:
        return None
    if name in PLAIN:
        row.only((), f"`{name}`")
        return PLAIN[name]
    return _READERS[name](row)


def _unknown(name: str, path: RawPath, report: Report) -> None:
    near = report.near(name, KINDS)
    report.error(path, "unknown-variant", f"no kind of capability is named {shown(name)}", near=near, at_value=False)


def _texts(row: Row, key: str, check: Callable[[str], str | None], code: str) -> tuple[str, ...]:
    """The texts of the one list that a kind has: at least one, each once, each checked."""
    what = f"`{row.path[-1]}`"
    row.only((key,), what)
    if not row.require(key, what):
        return ()
    found = [text for _, text in row.texts(key)]
    if row.raw[key] == []:
        row.fault(key, "bad-value", f"an empty `{key}` grants nothing: name what is granted, or leave {what} out")
    for index, text in row.texts(key):
        if why := check(text):
            row.report.error(row.at(key, index), code, f"{shown(text)}: {why}")
        elif text in found[:index]:
            row.report.error(row.at(key, index), "duplicate", f"{shown(text)} stands here twice")
    return tuple(found)


def _prefix_fault(text: str) -> str | None:
    if any(char < " " or char == "\x7f" for char in text):
        return "a prefix may not hold control characters"
    if ".." in text.split("/"):
        return "a prefix may not go up by `..`: name the folder itself"
    return check_prefix(text)


def _name_fault(text: str) -> str | None:
    why = name_error(text)
    return f"a name {why}" if why else None


def _hosts(row: Row) -> tuple[str, ...]:
    from gatewright.policy.hostpattern import check_host_pattern

    return _texts(row, "allowlist", check_host_pattern, "bad-host")


def _prefixes(row: Row) -> tuple[str, ...]:
    return _texts(row, "prefixes", _prefix_fault, "bad-prefix")


def _tables(row: Row) -> tuple[str, ...]:
    return _texts(row, "tables", _name_fault, "bad-value")


def _variables(row: Row) -> tuple[str, ...]:
    return _texts(row, "vars", _name_fault, "bad-value")


def _exec(row: Row) -> Capability:
    row.only(("cpu_limit", "mem_limit"), "`Exec`")
    cpu_limit = row.duration("cpu_limit")
    if cpu_limit == 0:
        row.fault("cpu_limit", "bad-value", "`cpu_limit` must be longer than nothing")
    return Exec(cpu_limit, _size(row, "mem_limit"))


def _wasm(row: Row) -> Capability:
    row.only(("fuel", "memory"), "`WasmExec`")
    return WasmExec(row.integer("fuel", 1), _size(row, "memory"))


def _size(row: Row, key: str) -> int | None:
    if key not in row.raw:
        return None
    try:
        return parse_size(row.raw[key])
    except ValueError as error:
        row.fault(key, "bad-value", str(error))
        return None


_READERS: dict[str, Callable[[Row], Capability]] = {
    "NetRead": lambda row: NetRead(_hosts(row)),
    "NetWrite": lambda row: NetWrite(_hosts(row)),
    "FsRead": lambda row: FsRead(_prefixes(row)),
    "FsWrite": lambda row: FsWrite(_prefixes(row)),
    "DbRead": lambda row: DbRead(_tables(row)),
    "DbWrite": lambda row: DbWrite(_tables(row)),
    "EnvRead": lambda row: EnvRead(_variables(row)),
    "Exec": _exec,
    "WasmExec": _wasm,
}
_EXAMPLES = {
    **dict.fromkeys(("NetRead", "NetWrite"), '{ allowlist = ["*.example.org"] }'),
    **dict.fromkeys(("FsRead", "FsWrite"), '{ prefixes = ["notes"] }'),
    **dict.fromkeys(("DbRead", "DbWrite"), '{ tables = ["notes"] }'),
    "EnvRead": '{ vars = ["LANG"] }',
}
