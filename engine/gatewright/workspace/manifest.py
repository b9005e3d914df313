"""The tools of one catalog, read as data: the manifest of a program, or the pin of what was accepted.

Where a manifest lists the tools of a pin, it is read with it: what it says otherwise than was accepted is held.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gatewright.base.errors import JsonRefused, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.problem import Severity
from gatewright.policy.document import Catalog
from gatewright.tools import DefinitionProblem, ToolDefinition, read_definitions
from gatewright.tools.declaration import major_of
from gatewright.tools.pin import Acceptance, Listing, Pin, read_pin, relisted
from gatewright.workspace.location import is_inside

_SHOWN = 80


def parse_json(content: bytes, what: str) -> object:
    """The one JSON value in ``content``; ``what`` names it in messages. Raises WorkspaceError, nothing else.

    Refused beside bad JSON: the same key twice in an object, numbers that are none, nesting that nobody can walk.
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
"""A pin may hold each definition twice: as it is listed and as it was accepted."""
MAX_REPORTED = 50
MAX_NAMED = 5
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))

Key = tuple[str, int]
Finding = tuple[Severity, str, str]
Signature = tuple[int, int, int]
Trusted = Callable[[str, Path], Callable[[bytes], bool] | None]
"""Asked with the id of a catalog and the real path of its manifest: which contents are trusted, None where none is."""


def trust_none(_catalog_id: str, _manifest: Path) -> None:
    """No manifest outside the folder is trusted."""
    return


@frozen
class Entry:
    """One tool as its catalog has it, under its name there. ``acceptance``: what the operator made of one of a pin.

    ``held``: why it is closed; empty where it is not.
    """

    definition: ToolDefinition
    acceptance: Acceptance | None = None
    held: str = ""

    @property
    def key(self) -> Key:
        """Name and major version."""
        return self.definition.name, major_of(self.definition.version, self.definition.name)


@frozen
class Manifest:
    """One manifest, or pin, as it was read: ``content`` None where no file was, or none that can be read.

    ``outside``: its real path where it lies outside the folder of the policy. ``listing``: of a pin, the manifest that
    lists its tools, where it was read with it.
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
        """The reason why what it defines cannot be had, or what its manifest defines; empty without any."""
        read = self.listing or self
        errors = (message for severity, _, message in read.problems if read.is_missing or severity is Severity.ERROR)
        return next(errors, "")

    def changed(self) -> bool:
        """Tell whether the file, or the one that lists its tools, is no longer what was read."""
        return self.is_rewritten() or (self.listing is not None and self.listing.is_rewritten())

    def is_rewritten(self) -> bool:
        """Tell whether the file is no longer what was read, whatever became of the one that lists its tools."""
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
    """The manifest or pin of a catalog; what is wrong with it is among its problems.

    ``folder``: the policy's. ``before``: as it was read before, the same where it has not changed. ``given``: read
    instead of files, by the path in the policy.
    """
    if not catalog.kind.is_pinned:
        return _read_manifest(catalog, folder, before, trusted, given.get(catalog.manifest))
    listing = None
    if catalog.kind.has_manifest and _is_within(folder / catalog.manifest, folder):
        last = before.listing if before is not None else None
        listing = _read_listing(catalog, folder, last, given.get(catalog.manifest))
    return _read_pin(catalog, folder, before, listing, given.get(catalog.file))


def read_listing(catalog: Catalog, folder: Path, before: Manifest | None = None) -> tuple[Listing, Manifest]:
    """The listing of a catalog by its manifest as it is now, wherever that lies, with how it was read.

    Raises WorkspaceError for one that cannot be read.
    """
    manifest = _read_listing(catalog, folder, before, None)
    if manifest.pin is None:
        raise WorkspaceError(manifest.problems[0][2])
    return manifest.pin.listing, manifest


def _read_manifest(
    catalog: Catalog, folder: Path, before: Manifest | None, trusted: Trusted, given: bytes | None
) -> Manifest:
    path, named = folder / catalog.manifest, _named(catalog, catalog.manifest)
    real = _real(path)
    if real is None:
        return _failed(path, "unreadable", f"{named} cannot be read: this is no path")
    outside = None if _is_within(path, folder) else real
    is_trusted = None
    if outside is not None and given is None:
        is_trusted = trusted(catalog.catalog_id, outside)
        if is_trusted is None:
            return _failed(path, "not-trusted", _untrusted(named, outside, "is not trusted yet"))
    try:
        content, signature = (given, None) if given is not None else _content(real, MAX_MANIFEST_BYTES)
        if is_trusted is not None and not is_trusted(content):
            return _failed(path, "not-trusted", _untrusted(named, real, "changed since it was trusted"))
        if before is not None and before.content == content and before.path == path:
            return replace(before, signature=signature)
        return _defined(catalog, Manifest(path, content, signature, outside=outside), parse_json(content, named))
    except FileNotFoundError:
        return _missing(path, f"{named} is missing, so the catalog has no tools")
    except (OSError, ValueError, WorkspaceError) as error:
        return _unread(path, named, error)


def _read_listing(catalog: Catalog, folder: Path, before: Manifest | None, given: bytes | None) -> Manifest:
    """The manifest that lists the tools of a catalog that is pinned: as a pin of which nothing is accepted."""
    path, named = folder / catalog.manifest, _named(catalog, catalog.manifest)
    real = _real(path)
    if real is None:
        return _failed(path, "unreadable", f"{named} cannot be read: this is no path")
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
    """The pin of a catalog; ``listing``: what its manifest lists, None where it is not known."""
    path, named = folder / catalog.file, _named(catalog, catalog.file)
    by_manifest = catalog.kind.has_manifest
    whom = "reads its manifest" if by_manifest else "asks its server"
    ask = f" (`gatewright catalog import POLICY --id {catalog.catalog_id}` {whom})"
    if _real(path) is None:
        return _failed(path, "unreadable", f"{named} cannot be read: this is no path")
    if path.is_symlink() or path.parent.is_symlink():
        return _failed(path, "unreadable", f"{named} cannot be read: it is a link, and a pin is a file{ask}")
    if listing is not None and any(severity is Severity.ERROR for severity, _, _ in listing.problems):
        return Manifest(path, signature=_signature(path), problems=listing.problems, listing=listing)
    try:
        content, signature = (given, None) if given is not None else _content(path, MAX_PIN_BYTES)
    except FileNotFoundError:
        if listing is None or listing.pin is None:
            way = f"`gatewright catalog import POLICY --id {catalog.catalog_id} --trust` trusts and asks"
            never = f"catalog `{catalog.catalog_id}` has no tools, since there is no pin `{catalog.file}`"
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
        pin = pin if listing.pin is None else relisted(pin, listing.pin.listing)
    return _pinned(catalog, manifest, pin)


def _named(catalog: Catalog, file: str) -> str:
    return f"the {'manifest' if file == catalog.manifest else 'pin'} `{file}` of catalog `{catalog.catalog_id}`"


def _missing(path: Path, message: str) -> Manifest:
    return Manifest(path, problems=((Severity.WARNING, "missing-path", message),), is_missing=True)


def _unread(path: Path, named: str, error: OSError | ValueError | WorkspaceError, ask: str = "") -> Manifest:
    """A file that cannot be read, or says nothing; ``ask``: how to have it made anew."""
    if isinstance(error, WorkspaceError):
        return _failed(path, "bad-manifest", f"{error if named in str(error) else f'{named}: {error}'}{ask}")
    why = (error.strerror if isinstance(error, OSError) else None) or error
    return _failed(path, "unreadable", f"{named} cannot be read: {why}")


def _defined(catalog: Catalog, manifest: Manifest, value: object) -> Manifest:
    """The manifest with what it says. Raises WorkspaceError where it says nothing."""
    definitions, refused = read_definitions(value)
    if any(not problem.pointer for problem in refused):
        raise WorkspaceError(refused[0].message)
    entries = tuple(Entry(definition) for definition in definitions)
    return replace(manifest, entries=entries, problems=tuple(_left_out(catalog, refused)))


def _pinned(catalog: Catalog, manifest: Manifest, pin: Pin) -> Manifest:
    """The pin with its tools: those that were accepted, and those that are held."""
    entries: list[Entry] = []
    for name in dict.fromkeys((*pin.listing.definitions, *pin.accepted)):
        accepted, listed = pin.accepted.get(name), pin.listing.read.get(name)
        kept = accepted.definition if accepted is not None else None
        if kept is not None and kept is not pin.listing.definitions.get(name):
            listed = next(iter(read_definitions([kept])[0]), listed)
        if listed is not None:
            entries.append(Entry(listed, accepted, pin.held.get(name, "")))
    held = _held(catalog, pin)
    found = (*manifest.problems, *_left_out(catalog, pin.listing.left_out), *held)
    return replace(manifest, entries=tuple(entries), problems=found, pin=pin)


def _held(catalog: Catalog, pin: Pin) -> Iterator[Finding]:
    """One warning for all that waits to be accepted."""
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


def _left_out(catalog: Catalog, refused: Iterable[DefinitionProblem]) -> list[Finding]:
    where = f"catalog `{catalog.catalog_id}`"
    return few(where, [set_aside(where, problem.name, problem.message, problem.pointer) for problem in refused])


def set_aside(where: str, name: str, why: str, pointer: str) -> Finding:
    """A tool that cannot be used, with the place of what is wrong in the file."""
    which = f"`{name}`" if name else "a tool"
    at = f" at {pointer}" if pointer else ""
    return Severity.WARNING, "tool-set-aside", f"{which} of {where} was set aside{at}: {why}"


def few(where: str, found: list[Finding]) -> list[Finding]:
    """The first of many."""
    if len(found) <= MAX_REPORTED:
        return found
    severity, code, _ = found[0]
    return [*found[:MAX_REPORTED], (severity, code, f"and {len(found) - MAX_REPORTED:,} more tools of {where}")]


def _untrusted(named: str, real: Path, why: str) -> str:
    return f"{named} is outside the workspace, at `{real}`, and {why}: `gatewright check --trust` trusts it"


def _failed(path: Path, code: str, message: str) -> Manifest:
    return Manifest(path, signature=_signature(path), problems=((Severity.ERROR, code, message),))


def _is_within(path: Path, folder: Path) -> bool:
    """Whether ``path`` lies in ``folder`` both as it is written and as it resolves."""
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
    """A regular file at a real path whole, waiting for nobody; no link is followed at its end.

    Raises OSError, WorkspaceError where it is no file or too large.
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
