"""Tools that a policy gets from manifests: shown and gated here, run by the program that has them.

A manifest is read once for each reading of the policy, as data; nothing of it is executed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from gatewright.base.errors import RegistrationError, SchemaError, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.problem import Severity
from gatewright.policy.document import CatalogType
from gatewright.policy.setting import settings_of
from gatewright.policyfile.known import CatalogFacts
from gatewright.record import fork_safe_lock
from gatewright.tools import DefinedTool, read_definitions
from gatewright.tools.naming import major_of
from gatewright.workspace.jsonfile import parse_json
from gatewright.workspace.location import is_inside

if TYPE_CHECKING:
    from gatewright.policy.document import Catalog, Policy, ToolSettings
    from gatewright.policy.right import ToolFacts
    from gatewright.policyfile import KnownTools
    from gatewright.tools import DefinitionProblem, Tool, ToolDefinition, ToolRegistry

MAX_MANIFEST_BYTES = 8 * 1024 * 1024
MAX_REPORTED = 50
_TAKEN = "a built-in tool, or one of the program's own, bears the name, and a bare name means the highest version"
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))

Key = tuple[str, int]
Finding = tuple[Severity, str, str]
Signature = tuple[int, int, int]
Trusted = Callable[[str, Path], Callable[[bytes], bool] | None]
"""Asked with the id of a catalog and the real path of its manifest: which contents are trusted, None where none is."""


def _trust_none(_catalog_id: str, _manifest: Path) -> None:
    return None


@frozen
class Manifest:
    """One manifest as it was read: ``content`` None where there was no file, or none that could be read.

    ``tools`` holds those that a program's own ones do not replace, ``facts`` what a policy needs to know of them.
    ``outside``: its real path where it lies outside the folder of the policy.
    """

    path: Path
    content: bytes | None = None
    signature: Signature | None = None
    tools: tuple[DefinedTool, ...] = ()
    facts: tuple[ToolFacts, ...] = ()
    problems: tuple[Finding, ...] = ()
    is_missing: bool = False
    outside: Path | None = None

    def changed(self) -> bool:
        """Whether the file is no longer what was read."""
        now = _signature(self.path)
        if now == self.signature or (self.signature is None and self.content is not None):
            return False
        try:
            return self.content is None or _content(_real(self.path) or self.path)[0] != self.content
        except (OSError, WorkspaceError):
            return True


class CatalogBook:
    """The catalogs of one reading of a policy, each with its manifest; every method may be called from any thread.

    ``own`` are the tools that are here already, and win; ``known`` what a policy may name without a catalog.
    ``before``: the book of the reading before, whose tools stay the same objects where nothing about them changed.
    ``trusted``: which manifests outside the folder may be read, and what they may say. ``given``: what is read instead
    of such manifests, by the path that the policy writes.
    """

    def __init__(
        self,
        folder: Path,
        known: KnownTools,
        own: Iterable[Tool] = (),
        before: CatalogBook | None = None,
        *,
        trusted: Trusted = _trust_none,
        given: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self._folder, self._trusted, self._given = folder, trusted, given
        self._own: Mapping[Key, Tool] = {(tool.name, tool.major): tool for tool in own}
        self._reserved = frozenset((facts.name, facts.major) for facts in known.facts)
        ours = (one.facts.name for one in known.rooted)
        self._names = frozenset((*(name for name, _ in (*self._own, *self._reserved)), *ours))
        self._declare_others = known.declare
        self._before = dict(before.read) if before is not None else {}
        self._lock = fork_safe_lock()
        self.read: dict[Catalog, Manifest] = {}
        self.known = replace(known, declare=self.declare, catalogs=self.facts)

    def facts(self, catalog: Catalog) -> CatalogFacts:
        """What a policy may name of the catalog, and what is wrong with its manifest."""
        manifest = self.manifest(catalog)
        return CatalogFacts(manifest.facts, manifest.problems, manifest.is_missing)

    def declare(self, facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
        """The facts of a tool read with the field, or the operations, that a policy names. Raises SchemaError."""
        tool = self._tool((facts.name, facts.major))
        if tool is not None:
            return tool.declared(field, operations).facts()
        if self._declare_others is not None:
            return self._declare_others(facts, field, operations)
        raise SchemaError(f"the schema of `{facts.name}` is not at hand")

    def declared_all(self, policy: Policy, facts: Iterable[ToolFacts]) -> tuple[ToolFacts, ...]:
        """The facts of tools, read as a policy declares them. Raises SchemaError where one cannot be read so."""
        return tuple(self._declared(settings_of(policy, one.name, one.major), one) for one in facts)

    def _declared(self, settings: ToolSettings | None, facts: ToolFacts) -> ToolFacts:
        if settings is None or not settings.declares:
            return facts
        return self.declare(facts, settings.operation_field, settings.operations)

    def manifest(self, catalog: Catalog) -> Manifest:
        """The manifest of a catalog, read when it is first asked for."""
        with self._lock:
            if catalog not in self.read:
                self.read = {**self.read, catalog: self._read(catalog)}
            return self.read[catalog]

    def tools(self, catalogs: Iterable[Catalog]) -> tuple[DefinedTool, ...]:
        """The tools of the catalogs; of equal ones the first."""
        found: dict[Key, DefinedTool] = {}
        for catalog in catalogs:
            for tool in self.manifest(catalog).tools:
                found.setdefault((tool.name, tool.major), tool)
        return tuple(found.values())

    def paths(self, catalogs: Iterable[Catalog]) -> tuple[Path, ...]:
        """Where the manifests are, as the policy writes it."""
        return tuple(self._folder / catalog.file for catalog in catalogs)

    def contents(self, catalogs: Iterable[Catalog], *, outside: bool = False) -> dict[str, bytes]:
        """What the manifests in the folder (or those ``outside``) held when they were read, by the path as written."""
        read = {one.file: self.manifest(one) for one in catalogs}
        return {
            name: manifest.content
            for name, manifest in read.items()
            if manifest.content is not None and (manifest.outside is not None) == outside
        }

    def outside(self, catalogs: Iterable[Catalog]) -> list[tuple[str, Path, bytes]]:
        """The id of each catalog whose manifest lies outside the folder, its real path, and what it held when read."""
        read = ((one.catalog_id, self.manifest(one)) for one in catalogs)
        return [
            (catalog_id, manifest.outside, manifest.content)
            for catalog_id, manifest in read
            if manifest.outside is not None and manifest.content is not None
        ]

    def changed(self, catalogs: Iterable[Catalog]) -> bool:
        """Whether one of the manifests on disk is no longer what was read."""
        return any(self.manifest(catalog).changed() for catalog in catalogs)

    def _tool(self, key: Key) -> Tool | None:
        if key in self._own or key in self._reserved:
            return self._own.get(key)
        read = (tool for manifest in self.read.values() for tool in manifest.tools)
        return next((tool for tool in read if (tool.name, tool.major) == key), None)

    def _read(self, catalog: Catalog) -> Manifest:
        path = self._folder / catalog.file
        if catalog.kind is CatalogType.MCP:
            message = f"the tools of catalog `{catalog.catalog_id}` were not imported yet, so it has none"
            return Manifest(path, problems=((Severity.WARNING, "missing-path", message),), is_missing=True)
        named = f"the manifest `{catalog.manifest}` of catalog `{catalog.catalog_id}`"
        real = _real(path)
        if real is None:
            return _failed(path, "unreadable", f"{named} cannot be read: this is no path")
        outside = None if _is_within(path, self._folder) else real
        given = self._given.get(catalog.manifest)
        is_trusted = None
        if outside is not None and given is None:
            is_trusted = self._trusted(catalog.catalog_id, outside)
            if is_trusted is None:
                return _failed(path, "not-trusted", _untrusted(named, outside, "is not trusted yet"))
        try:
            content, signature = (given, None) if given is not None else _content(real)
            if is_trusted is not None and not is_trusted(content):
                return _failed(path, "not-trusted", _untrusted(named, real, "changed since it was trusted"))
            before = self._before.get(catalog)
            if before is not None and before.content == content and before.path == path:
                return replace(before, signature=signature)
            definitions, refused = read_definitions(parse_json(content, named))
        except FileNotFoundError:
            message = f"{named} is missing, so the catalog has no tools"
            return Manifest(path, problems=((Severity.WARNING, "missing-path", message),), is_missing=True)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or error
            return _failed(path, "unreadable", f"{named} cannot be read: {why}")
        except WorkspaceError as error:
            return _failed(path, "bad-manifest", str(error))
        if any(not problem.pointer for problem in refused):
            return _failed(path, "bad-manifest", f"{named}: {refused[0].message}")
        return self._made(catalog, Manifest(path, content, signature, outside=outside), definitions, refused)

    def _made(
        self,
        catalog: Catalog,
        manifest: Manifest,
        definitions: Iterable[ToolDefinition],
        refused: Iterable[DefinitionProblem],
    ) -> Manifest:
        kept = {(tool.name, tool.major): tool for tool in self._before.get(catalog, manifest).tools}
        where = f"catalog `{catalog.catalog_id}`"
        aside = [_set_aside(where, problem.name, problem.message, problem.pointer) for problem in refused]
        drifted: list[Finding] = []
        tools: list[DefinedTool] = []
        for definition in definitions:
            if catalog.prefix is not None:
                definition = replace(definition, name=f"{catalog.prefix}.{definition.name}")  # noqa: PLW2901
            key = (definition.name, major_of(definition.version, definition.name))
            if key in self._own or key in self._reserved:
                drifted += self._drift(where, definition, self._own.get(key))
                continue
            if definition.name in self._names:
                aside.append(_set_aside(where, definition.name, _TAKEN, ""))
                continue
            try:
                tools.append(_tool_of(catalog, definition, kept.get(key)))
            except (RegistrationError, RecursionError) as error:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
                aside.append(_set_aside(where, definition.name, why, ""))
        problems = (*_few(where, aside), *_few(where, drifted), *_few(where, _unchecked(where, tools)))
        return replace(manifest, tools=tuple(tools), facts=tuple(tool.facts() for tool in tools), problems=problems)

    def _drift(self, where: str, definition: ToolDefinition, own: Tool | None) -> list[Finding]:
        """What is to be said where the program itself has the tool."""
        from gatewright.tools.manifest import manifest_of

        if own is None or read_definitions(manifest_of([own]))[0] == (definition,):
            return []
        message = f"`{definition.name}` is not what the manifest of {where} says; the program's own counts"
        return [(Severity.WARNING, "manifest-drift", f"{message}: write the manifest anew")]


class HostTools:
    """The tools of catalogs in a registry: they come and go with the policy in force."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._held: dict[Key, tuple[DefinedTool, Callable[[], None]]] = {}

    def follow(self, tools: Iterable[DefinedTool]) -> None:
        """Have exactly ``tools`` registered; those that are there already stay untouched."""
        wanted = {(tool.name, tool.major): tool for tool in tools}
        for key, (tool, withdraw) in list(self._held.items()):
            if wanted.get(key) is not tool:
                withdraw()
                del self._held[key]
        for key, tool in wanted.items():
            if key not in self._held:
                self._held[key] = (tool, self._registry.register(tool))


def as_it_came(tool: Tool) -> Tool:
    """The tool without the operations that a policy or a manifest declares of it; its author's own stay."""
    return tool if tool.declares_operations else tool.declared("", None)


def _tool_of(catalog: Catalog, definition: ToolDefinition, kept: DefinedTool | None) -> DefinedTool:
    """The tool of a definition: the one of before, where it is the same. Raises RegistrationError."""
    tool = DefinedTool(definition, origin=catalog.catalog_id, trusted=catalog.trusted)
    tool.check()
    same = kept is not None and kept.definition == definition and kept.digest == tool.digest
    return kept if kept is not None and same else tool


def _set_aside(where: str, name: str, why: str, pointer: str) -> Finding:
    which = f"`{name}`" if name else "a tool"
    at = f" at {pointer}" if pointer else ""
    return Severity.WARNING, "tool-set-aside", f"{which} of {where} was set aside{at}: {why}"


def _unchecked(where: str, tools: Iterable[DefinedTool]) -> list[Finding]:
    why = "has patterns that cannot run in linear time; results are checked without them"
    return [
        (Severity.WARNING, "output-not-checked", f"the output schema of `{tool.name}` of {where} {why}")
        for tool in tools
        if tool.has_unchecked_output
    ]


def _few(where: str, found: list[Finding]) -> list[Finding]:
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


def _content(path: Path) -> tuple[bytes, Signature]:
    """A regular file at a real path whole, waiting for nobody; no link is followed at its end.

    Raises OSError, WorkspaceError where it is no file or too large.
    """
    descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise WorkspaceError(f"the manifest `{path.name}` is no file")
        if status.st_size > MAX_MANIFEST_BYTES:
            raise _too_large(path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_MANIFEST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_MANIFEST_BYTES:
        raise _too_large(path)
    return content, (status.st_ino, status.st_size, status.st_mtime_ns)


def _too_large(path: Path) -> WorkspaceError:
    return WorkspaceError(f"the manifest `{path.name}` is larger than {MAX_MANIFEST_BYTES // 1024 // 1024} MiB")
