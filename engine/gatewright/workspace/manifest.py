"""What one catalog says its tools are: the manifest of a program, or the pin of an MCP server, read as data."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.problem import Severity
from gatewright.policy.document import Catalog, CatalogType
from gatewright.tools import DefinitionProblem, ToolDefinition, read_definitions
from gatewright.tools.naming import major_of
from gatewright.tools.pin import Acceptance, Pin, read_pin
from gatewright.workspace.jsonfile import parse_json
from gatewright.workspace.location import is_inside

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
    """One tool as its catalog has it, under its name there. ``acceptance``: what the operator made of a server's tool.

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
    """One manifest, or pin of a server, as it was read: ``content`` None where no file was, or none that can be read.

    ``outside``: its real path where it lies outside the folder of the policy.
    """

    path: Path
    content: bytes | None = None
    signature: Signature | None = None
    entries: tuple[Entry, ...] = ()
    problems: tuple[Finding, ...] = ()
    is_missing: bool = False
    outside: Path | None = None
    pin: Pin | None = None

    def changed(self) -> bool:
        """Whether the file is no longer what was read."""
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
    given: bytes | None = None,
) -> Manifest:
    """The manifest or pin of a catalog; what is wrong with it is among its problems.

    ``folder``: the policy's. ``before``: as it was read before, the same where it has not changed. ``given``: read
    instead of the file.
    """
    path = folder / catalog.file
    is_server = catalog.kind is CatalogType.MCP
    named = f"the {'pin' if is_server else 'manifest'} `{catalog.file}` of catalog `{catalog.catalog_id}`"
    ask = f" (`gatewright catalog import POLICY --id {catalog.catalog_id}` asks its server)"
    real = _real(path)
    if real is None:
        return _failed(path, "unreadable", f"{named} cannot be read: this is no path")
    if is_server and (path.is_symlink() or path.parent.is_symlink()):
        return _failed(path, "unreadable", f"{named} cannot be read: it is a link, and a pin is a file{ask}")
    outside = None if _is_within(path, folder) else real
    is_trusted = None
    if outside is not None and given is None:
        is_trusted = trusted(catalog.catalog_id, outside)
        if is_trusted is None:
            return _failed(path, "not-trusted", _untrusted(named, outside, "is not trusted yet"))
    try:
        most = MAX_PIN_BYTES if is_server else MAX_MANIFEST_BYTES
        content, signature = (given, None) if given is not None else _content(real, most)
        if is_trusted is not None and not is_trusted(content):
            return _failed(path, "not-trusted", _untrusted(named, real, "changed since it was trusted"))
        if before is not None and before.content == content and before.path == path:
            return replace(before, signature=signature)
        value = parse_json(content, named)
        manifest = Manifest(path, content, signature, outside=outside)
        return _pinned(catalog, manifest, read_pin(value)) if is_server else _defined(catalog, manifest, value)
    except FileNotFoundError:
        way = f"`gatewright catalog import POLICY --id {catalog.catalog_id} --trust` trusts and asks `{catalog.runs}`"
        never = f"catalog `{catalog.catalog_id}` has no tools, since there is no pin `{catalog.file}`: {way}"
        message = never if is_server else f"{named} is missing, so the catalog has no tools"
        return Manifest(path, problems=((Severity.WARNING, "missing-path", message),), is_missing=True)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        return _failed(path, "unreadable", f"{named} cannot be read: {why}")
    except WorkspaceError as error:
        why = str(error) if named in str(error) else f"{named}: {error}"
        return _failed(path, "bad-manifest", f"{why}{ask if is_server else ''}")


def _defined(catalog: Catalog, manifest: Manifest, value: object) -> Manifest:
    """The manifest with what it says. Raises WorkspaceError where it says nothing."""
    definitions, refused = read_definitions(value)
    if any(not problem.pointer for problem in refused):
        raise WorkspaceError(refused[0].message)
    entries = tuple(Entry(definition) for definition in definitions)
    return replace(manifest, entries=entries, problems=tuple(_left_out(catalog, refused)))


def _pinned(catalog: Catalog, manifest: Manifest, pin: Pin) -> Manifest:
    """The pin of a server with its tools: those that were accepted, and those that are held."""
    entries: list[Entry] = []
    for name in dict.fromkeys((*pin.listing.definitions, *pin.accepted)):
        accepted, listed = pin.accepted.get(name), pin.listing.read.get(name)
        kept = accepted.definition if accepted is not None else None
        if kept is not None and kept is not pin.listing.definitions.get(name):
            listed = next(iter(read_definitions([kept])[0]), listed)
        if listed is not None:
            entries.append(Entry(listed, accepted, pin.held.get(name, "")))
    held = _held(catalog, pin)
    return replace(
        manifest, entries=tuple(entries), problems=(*_left_out(catalog, pin.listing.left_out), *held), pin=pin
    )


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
