"""Reads the tools of one catalog as data: the manifest of a program, or the pin of accepted tools.

A manifest that lists the tools of a pin is read with the pin: a tool that differs from the accepted one is held.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gatewright.base.errors import JsonRefused, Severity, WorkspaceError, near_hint
from gatewright.base.frozen import frozen
from gatewright.policy.document import PINS, Catalog, CatalogType
from gatewright.schema.walk import Schema, as_list, as_object
from gatewright.sources.ground import is_inside
from gatewright.tools import DefinitionProblem, ToolDefinition, read_definitions
from gatewright.tools.declaration import major_of
from gatewright.tools.pin import Acceptance, Listing, Pin, read_pin, relist

_SHOWN = 80
_TOOLS = ".tools.json"


def parse_json(content: bytes, what: str) -> object:
    """Parse the one JSON value in ``content``; ``what`` names it in messages. Raises only WorkspaceError.

    It refuses bad JSON, repeated keys in an object, numbers beyond JSON, and nesting too deep to walk.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkspaceError(f"{what} is not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        said = error.msg.removesuffix(" at")
        raise WorkspaceError(f"{what} is not JSON: {said} at {where}") from None
    except JsonRefused as error:
        raise WorkspaceError(f"{what} is not usable JSON: {error}") from None
    except RecursionError:
        raise WorkspaceError(f"{what} is nested too deeply") from None
    except ValueError:
        raise WorkspaceError(f"{what} is not usable JSON: an integer has too many digits") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise JsonRefused("duplicate-key", f"an object has the key `{key[:_SHOWN]}` twice")
        table[key] = value
    return table


def _constant(name: str) -> float:
    raise JsonRefused("not-finite", f"{name} is no JSON number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonRefused("not-finite", f"the number `{text[:_SHOWN]}` is too large")
    return number


MAX_MANIFEST_BYTES = 8 * 1024 * 1024
MAX_PIN_BYTES = 32 * 1024 * 1024
"""The most bytes of a pin, which may contain each definition twice: as listed and as accepted."""
MAX_REPORTED = 50
MAX_NAMED = 5
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))

Key = tuple[str, int]
Finding = tuple[Severity, str, str]
Signature = tuple[int, int, int]
Trusted = Callable[[str, Path], Callable[[bytes], bool] | None]
"""Returns the trusted contents for a catalog's id and its manifest's real path, None without any."""


def trust_none(_catalog_id: str, _manifest: Path) -> None:
    """Trust no manifest outside the folder."""
    return


@frozen
class Entry:
    """One tool under its name in the catalog.

    ``acceptance``: the operator's decision about a tool of a pin. ``held``: why it is held; empty if in use.
    """

    definition: ToolDefinition
    acceptance: Acceptance | None = None
    held: str = ""

    @property
    def key(self) -> Key:
        """The name and major version."""
        return self.definition.name, major_of(self.definition.version, self.definition.name)


@frozen
class Manifest:
    """One manifest or pin as read; ``content`` is None for a missing or unreadable file.

    ``outside``: its real path if it lies outside the policy's folder. ``listing``: for a pin, the manifest that lists
    its tools, if read with it.
    """

    path: Path
    content: bytes | None = None
    signature: Signature | None = None
    entries: tuple[Entry, ...] = ()
    problems: tuple[Finding, ...] = ()
    is_missing: bool = False
    outside: Path | None = None
    pin: Pin | None = None
    listing: Manifest | None = None

    @property
    def fault(self) -> str:
        """Why its definitions, or those of its listing, are unavailable; empty if they are available."""
        read = self.listing or self
        errors = (message for severity, _, message in read.problems if read.is_missing or severity is Severity.ERROR)
        return next(errors, "")

    def is_outdated(self) -> bool:
        """Tell whether the file, or the one that lists its tools, has changed since the reading."""
        return self.is_rewritten() or (self.listing is not None and self.listing.is_rewritten())

    def is_rewritten(self) -> bool:
        """Tell whether the file itself has changed since the reading."""
        now = _signature(self.path)
        if now == self.signature or (self.signature is None and self.content is not None):
            return False
        try:
            return self.content is None or _content(_real(self.path) or self.path, MAX_PIN_BYTES)[0] != self.content
        except (OSError, WorkspaceError):
            return True


def read_manifest(
    catalog: Catalog,
    folder: Path,
    before: Manifest | None = None,
    *,
    trusted: Trusted = trust_none,
    given: Mapping[str, bytes] = MappingProxyType({}),
) -> Manifest:
    """Read the manifest or pin of a catalog; its faults are among its problems.

    ``folder``: the policy's. ``before``: the former reading, returned if unchanged. ``given``: contents to read instead
    of files, by the path in the policy.
    """
    if not catalog.kind.is_pinned:
        return _read_manifest(catalog, folder, before, trusted, given.get(catalog.manifest))
    listing = None
    if catalog.kind.has_manifest and _is_within(folder / catalog.manifest, folder):
        last = before.listing if before is not None else None
        listing = _read_listing(catalog, folder, last, given.get(catalog.manifest))
    return _read_pin(catalog, folder, before, listing, given.get(catalog.file))


def read_listing(catalog: Catalog, folder: Path, before: Manifest | None = None) -> tuple[Listing, Manifest]:
    """Read the tools that a catalog lists from its present manifest, wherever it lies, and the manifest itself.

    Raises WorkspaceError for an unreadable one.
    """
    manifest = _read_listing(catalog, folder, before, None)
    if manifest.pin is None:
        raise WorkspaceError(manifest.problems[0][2])
    return manifest.pin.listing, manifest


def shipped_host(host_id: str) -> tuple[Catalog, Schema]:
    """Return the catalog of a coding agent's built-in tools, and our manifest of them. Raises WorkspaceError."""
    shipped = (entry for entry in (files("gatewright_resources") / "hosts").iterdir() if entry.name.endswith(_TOOLS))
    there = {entry.name.removesuffix(_TOOLS): entry for entry in shipped}
    if host_id not in there:
        raise WorkspaceError(f"no coding agent `{host_id}` is known{near_hint(host_id, there)}")
    manifest = as_object(parse_json(there[host_id].read_bytes(), "the manifest")) or {}
    file, prefix = f"{PINS}/{host_id}{_TOOLS}", str(manifest["prefix"])
    return Catalog(host_id, CatalogType.HOST, file, trusted=True, prefix=prefix), manifest


def manifest_at(path: Path) -> Schema:
    """Return a manifest with a list of tools; empty if nothing is there. Raises WorkspaceError for anything else."""
    try:
        value = parse_json(_content(path, MAX_MANIFEST_BYTES)[0], f"`{path.name}`")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise WorkspaceError(f"`{path.name}` cannot be read: {error.strerror or error}") from None
    return {"tools": as_list(value) or []} if as_object(value) is None else as_object(value) or {}


def manifest_text(manifest: Schema) -> bytes:
    """Return the text of a manifest's file."""
    return f"{json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _read_manifest(
    catalog: Catalog, folder: Path, before: Manifest | None, trusted: Trusted, given: bytes | None
) -> Manifest:
    path, named = folder / catalog.manifest, _words_for(catalog, catalog.manifest)
    real = _real(path)
    if real is None:
        return _fail(path, "unreadable", f"{named} cannot be read: this is no path")
    outside = None if _is_within(path, folder) else real
    is_trusted = None
    if outside is not None and given is None:
        is_trusted = trusted(catalog.catalog_id, outside)
        if is_trusted is None:
            return _fail(path, "not-trusted", _distrust(named, outside, "is not trusted yet"))
    try:
        content, signature = (given, None) if given is not None else _content(real, MAX_MANIFEST_BYTES)
        if is_trusted is not None and not is_trusted(content):
            return _fail(path, "not-trusted", _distrust(named, real, "changed since it was trusted"))
        if before is not None and before.content == content and before.path == path:
            return replace(before, signature=signature)
        return _with_tools(catalog, Manifest(path, content, signature, outside=outside), parse_json(content, named))
    except FileNotFoundError:
        return _missing(path, f"{named} is missing, so the catalog has no tools")
    except (OSError, ValueError, WorkspaceError) as error:
        return _unread(path, named, error)


def _read_listing(catalog: Catalog, folder: Path, before: Manifest | None, given: bytes | None) -> Manifest:
    """Read the manifest that lists the tools of a pinned catalog: like a pin without accepted tools."""
    path, named = folder / catalog.manifest, _words_for(catalog, catalog.manifest)
    real = _real(path)
    if real is None:
        return _fail(path, "unreadable", f"{named} cannot be read: this is no path")
    try:
        content, signature = (given, None) if given is not None else _content(real, MAX_MANIFEST_BYTES)
        if before is not None and before.content == content and before.path == path and before.pin is not None:
            return replace(before, signature=signature)
        return Manifest(path, content, signature, pin=Pin(Listing.of_manifest(parse_json(content, named))))
    except FileNotFoundError:
        return _missing(path, f"{named} is missing, so its tools cannot be called")
    except (OSError, ValueError, WorkspaceError) as error:
        return _unread(path, named, error)


def _read_pin(
    catalog: Catalog, folder: Path, before: Manifest | None, listing: Manifest | None, given: bytes | None
) -> Manifest:
    """Read the pin of a catalog; ``listing``: the list of its manifest, None if unknown."""
    path, named = folder / catalog.file, _words_for(catalog, catalog.file)
    by_manifest = catalog.kind.has_manifest
    whom = "reads its manifest" if by_manifest else "asks its server"
    ask = f" (`gatewright catalog import POLICY --id {catalog.catalog_id}` {whom})"
    if _real(path) is None:
        return _fail(path, "unreadable", f"{named} cannot be read: this is no path")
    if path.is_symlink() or path.parent.is_symlink():
        return _fail(path, "unreadable", f"{named} cannot be read: it is a link, and a pin is a file{ask}")
    if listing is not None and any(severity is Severity.ERROR for severity, _, _ in listing.problems):
        return Manifest(path, signature=_signature(path), problems=listing.problems, listing=listing)
    try:
        content, signature = (given, None) if given is not None else _content(path, MAX_PIN_BYTES)
    except FileNotFoundError:
        if listing is None or listing.pin is None:
            way = f"`gatewright catalog import POLICY --id {catalog.catalog_id} --trust` trusts and asks"
            never = f"catalog `{catalog.catalog_id}` has no tools, since its pin `{catalog.file}` is missing"
            return replace(_missing(path, f"{never}: {way} `{catalog.runs}`"), listing=listing)
        content, signature = None, None
    except (OSError, ValueError, WorkspaceError) as error:
        return _unread(path, named, error, ask)
    if before is not None and (before.content, before.path) == (content, path) and before.listing == listing:
        return replace(before, signature=signature, listing=listing)
    try:
        pin = Pin() if content is None else read_pin(parse_json(content, named))
    except (ValueError, WorkspaceError) as error:
        return _unread(path, named, error, ask)
    manifest = Manifest(path, content, signature, listing=listing)
    if listing is not None:
        manifest = replace(manifest, problems=listing.problems)
        pin = pin if listing.pin is None else relist(pin, listing.pin.listing)
    return _with_pin(catalog, manifest, pin)


def _words_for(catalog: Catalog, file: str) -> str:
    return f"the {'manifest' if file == catalog.manifest else 'pin'} `{file}` of catalog `{catalog.catalog_id}`"


def _missing(path: Path, message: str) -> Manifest:
    return Manifest(path, problems=((Severity.WARNING, "missing-path", message),), is_missing=True)


def _unread(path: Path, named: str, error: OSError | ValueError | WorkspaceError, ask: str = "") -> Manifest:
    """Report an unreadable or empty file; ``ask`` says how to make it again."""
    if isinstance(error, WorkspaceError):
        return _fail(path, "bad-manifest", f"{error if named in str(error) else f'{named}: {error}'}{ask}")
    why = (error.strerror if isinstance(error, OSError) else None) or error
    return _fail(path, "unreadable", f"{named} cannot be read: {why}")


def _with_tools(catalog: Catalog, manifest: Manifest, value: object) -> Manifest:
    """Return the manifest with its tools. Raises WorkspaceError without any."""
    definitions, refused = read_definitions(value)
    if any(not problem.pointer for problem in refused):
        raise WorkspaceError(refused[0].message)
    entries = tuple(Entry(definition) for definition in definitions)
    return replace(manifest, entries=entries, problems=tuple(_report_refused(catalog, refused)))


def _with_pin(catalog: Catalog, manifest: Manifest, pin: Pin) -> Manifest:
    """Return the pin with its tools, accepted and held."""
    entries: list[Entry] = []
    for name in dict.fromkeys((*pin.listing.definitions, *pin.accepted)):
        accepted, listed = pin.accepted.get(name), pin.listing.read.get(name)
        kept = accepted.definition if accepted is not None else None
        if kept is not None and kept is not pin.listing.definitions.get(name):
            listed = next(iter(read_definitions([kept])[0]), listed)
        if listed is not None:
            entries.append(Entry(listed, accepted, pin.held.get(name, "")))
    held = _report_held(catalog, pin)
    found = (*manifest.problems, *_report_refused(catalog, pin.listing.left_out), *held)
    return replace(manifest, entries=tuple(entries), problems=found, pin=pin)


def _report_held(catalog: Catalog, pin: Pin) -> Iterator[Finding]:
    """Report all waiting tools in one warning."""
    waits: list[str] = []
    for words, names in (
        ("never accepted", pin.drift.new),
        ("changed since", pin.drift.changed),
        ("not listed any more", pin.drift.vanished),
    ):
        more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        if names:
            waits.append(f"{len(names):,} {words} ({', '.join(f'`{name}`' for name in names[:MAX_NAMED])}{more})")
    if waits:
        hint = f"`gatewright catalog accept POLICY {catalog.catalog_id}` shows and accepts them"
        text = f"tools of catalog `{catalog.catalog_id}` are held, no agent sees them: {', '.join(waits)}; {hint}"
        yield Severity.WARNING, "tools-held", text


def _report_refused(catalog: Catalog, refused: Iterable[DefinitionProblem]) -> list[Finding]:
    where = f"catalog `{catalog.catalog_id}`"
    return few(where, [set_aside(where, problem.name, problem.message, problem.pointer) for problem in refused])


def set_aside(where: str, name: str, why: str, pointer: str) -> Finding:
    """Report an unusable tool, with the place of its fault in the file."""
    which = f"`{name}`" if name else "a tool"
    at = f" at {pointer}" if pointer else ""
    return Severity.WARNING, "tool-set-aside", f"{which} of {where} was set aside{at}: {why}"


def few(where: str, found: list[Finding]) -> list[Finding]:
    """Return the first of many findings."""
    if len(found) <= MAX_REPORTED:
        return found
    severity, code, _ = found[0]
    return [*found[:MAX_REPORTED], (severity, code, f"and {len(found) - MAX_REPORTED:,} more tools of {where}")]


def _distrust(named: str, real: Path, why: str) -> str:
    return f"{named} is outside the workspace, at `{real}`, and {why}: `gatewright check --trust` trusts it"


def _fail(path: Path, code: str, message: str) -> Manifest:
    return Manifest(path, signature=_signature(path), problems=((Severity.ERROR, code, message),))


def _is_within(path: Path, folder: Path) -> bool:
    """Tell whether ``path`` lies in ``folder``, both as written and after resolving links."""
    written = Path(os.path.normpath(path))
    try:
        return written.is_relative_to(os.path.normpath(folder)) and is_inside(Path(os.path.realpath(path)), folder)
    except (OSError, ValueError):
        return False


def _real(path: Path) -> Path | None:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return None


def _signature(path: Path) -> Signature | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _content(path: Path, most: int) -> tuple[bytes, Signature]:
    """Read a regular file at a real path whole, without waiting and without following a last link.

    Raises OSError, WorkspaceError for anything but a file, and for one that is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise WorkspaceError(f"`{path.name}` is no file")
        if status.st_size > most:
            raise _too_large(path, most)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise _too_large(path, most)
    return content, (status.st_ino, status.st_size, status.st_mtime_ns)


def _too_large(path: Path, most: int) -> WorkspaceError:
    return WorkspaceError(f"the file `{path.name}` is larger than {most // 1024 // 1024} MiB")
