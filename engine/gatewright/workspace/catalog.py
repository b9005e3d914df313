"""A policy's tools from its catalogs: by the manifests of a program, and by the pins of all others.

Each reading of the policy reads each file once, as data, without starting a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from gatewright.base.errors import RegistrationError, SchemaError, Severity
from gatewright.base.frozen import frozen
from gatewright.builtins import file_tool
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import Catalog, CatalogType, Policy, ToolSettings
from gatewright.policy.right import ToolFacts, of_origin
from gatewright.policy.rulematch import settings_of
from gatewright.policyfile import KnownTools
from gatewright.policyfile.names import CatalogFacts
from gatewright.record.process import fork_safe_lock
from gatewright.tools import DefinedTool, Tool, ToolDefinition, ToolRegistry, read_definitions
from gatewright.tools.declaration import check_tool_name
from gatewright.tools.defined import ComposedTool, RunTool, compose
from gatewright.tools.host_tool import HostTool
from gatewright.tools.registry import manifest_of
from gatewright.tools.schemashape import Runner
from gatewright.tools.server_tool import ServerTool
from gatewright.workspace.manifest import (
    Entry,
    Finding,
    Key,
    Manifest,
    Trusted,
    few,
    read_manifest,
    set_aside,
    trust_none,
)

MakeRunner = Callable[[Catalog, ToolDefinition], Runner | None]
"""Makes the runner for a catalog's tool; None if another program runs the tool. Raises RegistrationError."""
_KINDS: Mapping[CatalogType, type[DefinedTool]] = {CatalogType.MCP: ServerTool, CatalogType.HOST: HostTool}
_UNCHECKED = "is neither shown nor checked"
_TAKEN = "the program's own tool has this name, and a bare name means the highest version"


@frozen
class _Named:
    """The tools of one catalog under their names in this policy; ``own``: those that the program has itself."""

    tools: tuple[DefinedTool, ...] = ()
    problems: tuple[Finding, ...] = ()
    own: frozenset[Key] = frozenset()


@frozen
class _Made:
    """A tool with the values that it was made from."""

    entry: Entry
    trusted: bool
    url: str | None
    tool: DefinedTool


@frozen
class _Wanted:
    """The number of catalogs with a tool of each name: of those that count, and of all."""

    counting: Counter[str]
    every: Counter[str]

    def shares(self, name: str, entry: Entry) -> bool:
        """Tell whether another tool wants the same name."""
        return (self.counting if _counts(entry) else self.every)[name] > 1


class CatalogBook:
    """The catalogs of one reading of a policy, each with its manifest or pin; any thread may call any method.

    ``own``: the tools that exist already; ``known``: those that a policy may name without a catalog; ``builtins``: the
    names of ours. ``before``: the book of the previous reading, whose unchanged tools stay the same objects.
    ``trusted``: the trusted manifests outside the folder, with their contents. ``given``: contents to use instead of
    files, by the path in the policy.
    """

    def __init__(
        self,
        folder: Path,
        known: KnownTools,
        own: Iterable[Tool] = (),
        before: CatalogBook | None = None,
        *,
        builtins: Iterable[str] = (),
        trusted: Trusted = trust_none,
        given: Mapping[str, bytes] = MappingProxyType({}),
        runner: MakeRunner | None = None,
    ) -> None:
        self._folder, self._trusted, self._given, self._runner = folder, trusted, given, runner
        self._own: Mapping[Key, Tool] = {(tool.name, tool.major): tool for tool in own}
        self._reserved = frozenset((facts.name, facts.major) for facts in known.facts)
        self._builtins = frozenset(builtins) | {one.facts.name for one in known.rooted}
        self._program = frozenset(name for name, _ in (*self._own, *self._reserved)) - self._builtins
        self._declare_others = known.declare
        self._before = dict(before.read) if before is not None else {}
        self._lock = fork_safe_lock()
        self.read: dict[Catalog, Manifest] = {}
        self._made: dict[tuple[str, Key], _Made] = dict(before._made) if before is not None else {}
        self._last: tuple[tuple[Catalog, ...], tuple[_Named, ...]] = (), ()
        self.known = replace(known, declare=self.declare, catalogs=self.facts, compose=_compose_facts)

    def facts(self, catalogs: tuple[Catalog, ...]) -> tuple[CatalogFacts, ...]:
        """List for each catalog the names that a policy may use, and the faults of its manifest or pin."""
        manifests, named = [self.manifest(catalog) for catalog in catalogs], self._name_all(catalogs)
        return tuple(
            CatalogFacts(
                tuple(tool.facts() for tool in one.tools),
                (*manifest.problems, *one.problems),
                manifest.is_missing,
                one.own,
            )
            for manifest, one in zip(manifests, named, strict=True)
        )

    def declare(self, facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
        """Read a tool's facts with the field, or the operations, that a policy names. Raises SchemaError."""
        tool = self._tool((facts.name, facts.major))
        if tool is not None:
            return of_origin(tool.with_operations(field, operations).facts(), facts.origin)
        if self._declare_others is not None:
            return self._declare_others(facts, field, operations)
        raise SchemaError(f"the schema of `{facts.name}` is not available")

    def declare_all(self, policy: Policy, facts: Iterable[ToolFacts]) -> tuple[ToolFacts, ...]:
        """Read the facts of tools with a policy's declarations. Raises SchemaError for impossible ones."""
        return tuple(self._declare(settings_of(policy, one.name, one.major), one) for one in facts)

    def _declare(self, settings: ToolSettings | None, facts: ToolFacts) -> ToolFacts:
        if settings is None or not settings.declares:
            return facts
        return self.declare(facts, settings.operation_field, settings.operations)

    def manifest(self, catalog: Catalog) -> Manifest:
        """Return the manifest or pin of a catalog, read at its first use."""
        with self._lock:
            if catalog not in self.read:
                before = self._before.get(catalog)
                manifest = read_manifest(catalog, self._folder, before, trusted=self._trusted, given=self._given)
                self.read = {**self.read, catalog: manifest}
            return self.read[catalog]

    def tools(self, catalogs: tuple[Catalog, ...]) -> tuple[DefinedTool, ...]:
        """Return the catalogs' tools; no two share a name and major version."""
        return tuple(tool for named in self._name_all(catalogs) for tool in named.tools)

    def origins(self, catalogs: tuple[Catalog, ...]) -> dict[Key, str]:
        """Return the catalog of each of the program's own tools that a catalog lists."""
        pairs = zip(catalogs, self._name_all(catalogs), strict=True)
        return {key: catalog.catalog_id for catalog, named in pairs for key in named.own}

    def paths(self, catalogs: Iterable[Catalog]) -> tuple[Path, ...]:
        """Return the paths of the manifests and pins, as the policy writes them."""
        return tuple(self._folder / file for catalog in catalogs for file in catalog.files)

    def contents(self, catalogs: Iterable[Catalog], *, outside: bool = False) -> dict[str, bytes]:
        """Return the contents of the files in the folder (or those ``outside``) when they were read, by the path as
        written.
        """
        read = {one.file: self.manifest(one) for one in catalogs}
        listed = {one.manifest: listing for one in catalogs if (listing := self.manifest(one).listing) is not None}
        return {
            name: manifest.content
            for name, manifest in (*read.items(), *listed.items())
            if manifest.content is not None and (manifest.outside is not None) == outside
        }

    def outside(self, catalogs: Iterable[Catalog]) -> list[tuple[str, Path, bytes]]:
        """List the catalogs with a manifest outside the folder: id, real path, and content when it was read."""
        read = ((one.catalog_id, self.manifest(one)) for one in catalogs)
        return [
            (catalog_id, manifest.outside, manifest.content)
            for catalog_id, manifest in read
            if manifest.outside is not None and manifest.content is not None
        ]

    def is_outdated(self, catalogs: Iterable[Catalog]) -> bool:
        """Tell whether a file on disk has changed since the reading."""
        return any(self.manifest(catalog).is_outdated() for catalog in catalogs)

    def _tool(self, key: Key) -> Tool | None:
        if key in self._own or key in self._reserved:
            return self._own.get(key)
        return next((tool for named in self._last[1] for tool in named.tools if (tool.name, tool.major) == key), None)

    def _name_all(self, catalogs: tuple[Catalog, ...]) -> tuple[_Named, ...]:
        """Give the tools of all these catalogs names that no two share."""
        read = [(catalog, self.manifest(catalog)) for catalog in catalogs]
        with self._lock:
            if self._last[0] != catalogs or len(self._last[1]) != len(catalogs):
                plain = _Wanted(_count_names(read, _plain_name), _count_names(read, _plain_name, everything=True))
                names = _count_names(read, lambda catalog, entry: self._name(catalog, entry, plain))
                named = tuple(self._name_tools(catalog, manifest, plain, names) for catalog, manifest in read)
                self._last = catalogs, named
            return self._last[1]

    def _name_tools(self, catalog: Catalog, manifest: Manifest, plain: _Wanted, names: Counter[str]) -> _Named:
        """Name one catalog's tools; ``plain``, ``names``: how many want each name, before and after shared names are
        changed.

        A name that two tools still want goes to neither, since the policy's words about one must never come to mean the
        other.
        """
        where = f"catalog `{catalog.catalog_id}`"
        aside: list[Finding] = []
        drifted: list[Finding] = []
        tools: list[DefinedTool] = []
        owned: set[Key] = set()
        instructions = manifest.pin.instructions if manifest.pin is not None else ""
        for entry in manifest.entries:
            own, is_bare = self._own.get(entry.key), catalog.kind is CatalogType.HOST and catalog.prefix is None
            is_same = is_bare and own is not None and _is_same(own, entry.definition)
            is_the_programs = entry.definition.name in self._program and (
                own is not None or entry.key in self._reserved
            )
            if is_bare and (is_same or is_the_programs):  # the program has this tool itself
                owned |= {entry.key} if is_the_programs else set()
                if own is not None and not is_same:
                    text = f"`{entry.definition.name}` differs from the manifest of {where}; the program's own counts"
                    drifted.append((Severity.WARNING, "manifest-drift", f"{text}: write the manifest anew"))
                continue
            try:
                name = self._name(catalog, entry, plain)
                if names[name] > _counts(entry) or name in self._program | self._builtins:
                    raise RegistrationError(f"the name `{name}` is taken: give the catalog another `prefix`")
                names[name] += not _counts(entry)
                tools.append(self._tool_of(catalog, entry, name, instructions))
            except (RegistrationError, RecursionError) as error:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
                aside.append(set_aside(where, entry.definition.name, why, ""))
        unchecked = [
            (
                Severity.WARNING,
                "output-not-checked",
                f"the output schema of `{tool.name}` of {where} {tool.unchecked_output}",
            )
            for tool in tools
            if tool.unchecked_output
        ]
        loose = [
            (
                Severity.WARNING,
                "pattern-not-checked",
                f"`{tool.name}` of {where}: the pattern at `{pointer}` {_UNCHECKED}: {why}",
            )
            for tool in tools
            for pointer, why in tool.unchecked_arguments
        ]
        problems = (*few(where, aside), *few(where, drifted), *few(where, unchecked), *few(where, loose))
        return _Named(tuple(tools), problems, frozenset(owned))

    def _name(self, catalog: Catalog, entry: Entry, plain: _Wanted) -> str:
        """Return the name in this policy; the catalog's id precedes a name that one of ours or another catalog has.

        Raises RegistrationError for a name that no policy can write, and for a version that the program's tool lacks.
        """
        name = _plain_name(catalog, entry)
        if catalog.prefix is not None:
            pass
        elif name in self._program and not catalog.kind.is_pinned:
            raise RegistrationError(_TAKEN)
        elif name in self._builtins or name in self._program or plain.shares(name, entry):
            name = f"{catalog.catalog_id}.{name}"
        check_tool_name(name)
        return name

    def _tool_of(self, catalog: Catalog, entry: Entry, name: str, instructions: str) -> DefinedTool:
        """Return the tool under its name; an unchanged tool stays the same object. Raises RegistrationError."""
        key = catalog.catalog_id, (name, entry.key[1])
        kept = self._made.get(key)
        if kept is not None and kept.url != catalog.url:
            kept = None  # the address decides about a tool
        if kept is not None and kept.entry is entry and kept.trusted == catalog.trusted:
            return kept.tool
        accepted, definition = entry.acceptance, replace(entry.definition, name=name)
        if accepted is not None:
            definition = replace(definition, safety_tier=accepted.tier, operation_tiers=accepted.operation_tiers)
        kind, own = _KINDS.get(catalog.kind, RunTool), dict[str, str]()
        if catalog.kind is CatalogType.HTTP:
            from gatewright.tools.server_tool import HttpTool

            kind, own = HttpTool, {"url": catalog.url or ""}
        needed = accepted.capabilities if accepted else frozenset[CapabilityKind]()
        if catalog.kind is CatalogType.WASM:
            needed |= {CapabilityKind.WASM_EXEC}
        tool = kind(
            definition,
            **own,
            origin=catalog.catalog_id,
            trusted=accepted is not None or (catalog.trusted and not catalog.kind.is_pinned),
            runner=None if self._runner is None else self._runner(catalog, entry.definition),
            listed_name=entry.definition.name,
            held=entry.held,
            instructions=instructions,
            side_effects=accepted.side_effects if accepted else frozenset(),
            capabilities=needed,
        )
        tool.check()
        same = kept.tool if kept is not None and type(kept.tool) is kind else None
        if kept is not None and same is not None and (same.digest, same.definition) == (tool.digest, definition):
            said = tool.side_effects, tool.instructions, tool.facts()
            if said == (kept.tool.side_effects, kept.tool.instructions, kept.tool.facts()):
                tool = kept.tool  # its compiled parts are still valid
        self._made[key] = _Made(entry, catalog.trusted, catalog.url, tool)
        return tool


class RegisteredTools:
    """A registry's tools that come and go with the policy in force."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._held: dict[Key, tuple[Tool, Callable[[], None]]] = {}

    @property
    def held(self) -> tuple[Tool, ...]:
        """The tools registered here."""
        return tuple(tool for tool, _ in self._held.values())

    def follow(self, tools: Iterable[Tool]) -> None:
        """Register exactly ``tools``; those registered already stay."""
        wanted = {(tool.name, tool.major): tool for tool in tools}
        for key, (tool, withdraw) in list(self._held.items()):
            if wanted.get(key) is not tool:
                withdraw()
                del self._held[key]
        for key, tool in wanted.items():
            if key not in self._held:
                self._held[key] = (tool, self._registry.register(tool))


def _compose_facts(policy: Policy, facts: tuple[ToolFacts, ...]) -> tuple[ToolFacts, ...]:
    return tuple(tool.facts() for tool in compose(policy, facts))


class ComposedTools:
    """A registry's composed tools, made anew when they or the tools that they call change."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry, self._registered = registry, RegisteredTools(registry)
        self._made: dict[str, ComposedTool] = {}

    def follow(self, policy: Policy, book: CatalogBook, change: Callable[[], None]) -> None:
        """Register exactly the tools of the policy's compositions; ``change`` registers the others first.

        A step may call a tool that a policy can name but that is missing now: until it comes, the gate denies the step.
        """
        self._registered.follow(())
        change()
        made: dict[str, ComposedTool] = {}
        for tool in self._compose(policy, book) if policy.compositions else ():
            held = self._made.get(tool.name)
            is_same = held is not None and (held.composition, held.reach) == (tool.composition, tool.reach)
            made[tool.name] = held if held is not None and is_same and held.digest == tool.digest else tool
        self._made = made
        self._registered.follow(made.values())

    def _compose(self, policy: Policy, book: CatalogBook) -> tuple[ComposedTool, ...]:
        there = self._registry.facts()
        names = {one.name for one in there}
        absent = (one for one in book.known.with_rooted().facts if one.name not in names)
        return compose(policy, book.declare_all(policy, (*there, *absent)), (*self._registry.tools(), file_tool()))


def as_it_came(tool: Tool) -> Tool:
    """Return the tool without operations that a policy or manifest declares; operations that its author declared
    stay.
    """
    return tool if tool.declares_operations else tool.with_operations("", None)


def _plain_name(catalog: Catalog, entry: Entry) -> str:
    """Return the name that a tool would have if no other tool wanted it."""
    name = entry.definition.name
    return name if catalog.prefix is None else f"{catalog.prefix}.{name}"


def _count_names(
    read: Iterable[tuple[Catalog, Manifest]],
    name_of: Callable[[Catalog, Entry], str],
    *,
    everything: bool = False,
) -> Counter[str]:
    """Count the catalogs with a tool of each name: those that count, or all."""
    found: Counter[str] = Counter()
    for catalog, manifest in read:
        names: set[str] = set()
        for entry in manifest.entries if everything else filter(_counts, manifest.entries):
            with suppress(RegistrationError):
                names.add(name_of(catalog, entry))
        found.update(names)
    return found


def _counts(entry: Entry) -> bool:
    """Tell whether a tool may take a bare name from others, which a tool that nobody accepted may not."""
    return not entry.held or entry.acceptance is not None


def _is_same(own: Tool, definition: ToolDefinition) -> bool:
    return read_definitions(manifest_of([own]))[0] == (definition,)
