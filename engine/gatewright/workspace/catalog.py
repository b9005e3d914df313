"""Tools that a policy gets from its catalogs: by the manifests of a program, and by the pins of all others.

Each file is read once for each reading of the policy, as data: nothing of it is executed, and no server is started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from gatewright.base.errors import RegistrationError, SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.problem import Severity
from gatewright.builtins import file_tool
from gatewright.policy.document import Catalog, CatalogType, Policy, ToolSettings
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.right import ToolFacts
from gatewright.policy.rulematch import settings_of
from gatewright.policyfile import KnownTools
from gatewright.policyfile.names import CatalogFacts
from gatewright.record.process import fork_safe_lock
from gatewright.tools import DefinedTool, Tool, ToolDefinition, read_definitions
from gatewright.tools.composed import ComposedTool, compose
from gatewright.tools.declaration import check_tool_name
from gatewright.tools.defined import RunTool
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

if TYPE_CHECKING:
    from gatewright.tools import ToolRegistry


MakeRunner = Callable[[Catalog, ToolDefinition], Runner | None]
"""Makes what executes a tool of a catalog; None where nobody here does. Raises RegistrationError."""
_KINDS: Mapping[CatalogType, type[DefinedTool]] = {CatalogType.MCP: ServerTool, CatalogType.HOST: DefinedTool}
_UNCHECKED = "is neither shown nor checked"
_TAKEN = "one of the program's own tools bears the name, and a bare name means the highest version"


@frozen
class _Named:
    """What one catalog gives among the others of its policy: tools under the names that they have here."""

    tools: tuple[DefinedTool, ...] = ()
    problems: tuple[Finding, ...] = ()


@frozen
class _Made:
    """A tool and what it was made of."""

    entry: Entry
    trusted: bool
    url: str | None
    tool: DefinedTool


@frozen
class _Wanted:
    """How many catalogs have a tool of a name: of those that count, and of all."""

    counting: Counter[str]
    every: Counter[str]

    def shares(self, name: str, entry: Entry) -> bool:
        """Whether the tool, which has that name, has to be told apart from another."""
        return (self.counting if _counts(entry) else self.every)[name] > 1


class CatalogBook:
    """The catalogs of one reading of a policy, each with its manifest or pin; any thread may call any method.

    ``own`` are the tools that are here already, ``known`` what a policy may name without a catalog, ``builtins`` the
    names of ours. ``before``: the book of the reading before, whose tools stay the same objects where nothing of them
    changed. ``trusted``: which manifests outside the folder may be read, and what they may say. ``given``: what is read
    instead of files, by the path that the policy writes.
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
        self.known = replace(known, declare=self.declare, catalogs=self.facts, compose=_composed_facts)

    def facts(self, catalogs: tuple[Catalog, ...]) -> tuple[CatalogFacts, ...]:
        """What a policy may name of each catalog, and what is wrong with its manifest or pin."""
        manifests, named = [self.manifest(catalog) for catalog in catalogs], self._named(catalogs)
        return tuple(
            CatalogFacts(
                tuple(tool.facts() for tool in one.tools), (*manifest.problems, *one.problems), manifest.is_missing
            )
            for manifest, one in zip(manifests, named, strict=True)
        )

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
        """The manifest or pin of a catalog, read when it is first asked for."""
        with self._lock:
            if catalog not in self.read:
                before = self._before.get(catalog)
                manifest = read_manifest(catalog, self._folder, before, trusted=self._trusted, given=self._given)
                self.read = {**self.read, catalog: manifest}
            return self.read[catalog]

    def tools(self, catalogs: tuple[Catalog, ...]) -> tuple[DefinedTool, ...]:
        """The tools of the catalogs, no two with one name and major version."""
        return tuple(tool for named in self._named(catalogs) for tool in named.tools)

    def paths(self, catalogs: Iterable[Catalog]) -> tuple[Path, ...]:
        """Where the manifests and pins are, as the policy writes it."""
        return tuple(self._folder / file for catalog in catalogs for file in catalog.files)

    def contents(self, catalogs: Iterable[Catalog], *, outside: bool = False) -> dict[str, bytes]:
        """What the files in the folder (or those ``outside``) held when they were read, by the path as written."""
        read = {one.file: self.manifest(one) for one in catalogs}
        listed = {one.manifest: listing for one in catalogs if (listing := self.manifest(one).listing) is not None}
        return {
            name: manifest.content
            for name, manifest in (*read.items(), *listed.items())
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
        """Whether one of the files on disk is no longer what was read."""
        return any(self.manifest(catalog).changed() for catalog in catalogs)

    def _tool(self, key: Key) -> Tool | None:
        if key in self._own or key in self._reserved:
            return self._own.get(key)
        return next((tool for named in self._last[1] for tool in named.tools if (tool.name, tool.major) == key), None)

    def _named(self, catalogs: tuple[Catalog, ...]) -> tuple[_Named, ...]:
        """The tools of all these catalogs under their names here, no two of them with one."""
        read = [(catalog, self.manifest(catalog)) for catalog in catalogs]
        with self._lock:
            if self._last[0] != catalogs or len(self._last[1]) != len(catalogs):
                plain = _Wanted(_count_names(read, _plain_name), _count_names(read, _plain_name, everything=True))
                names = _count_names(read, lambda catalog, entry: self._name(catalog, entry, plain))
                named = tuple(self._named_one(catalog, manifest, plain, names) for catalog, manifest in read)
                self._last = catalogs, named
            return self._last[1]

    def _named_one(self, catalog: Catalog, manifest: Manifest, plain: _Wanted, names: Counter[str]) -> _Named:
        """``plain``, ``names``: how many catalogs want a name, before and after those that are shared were told apart.

        A name that two still want is nobody's: what the policy says of the one must not come to mean the other.
        """
        where = f"catalog `{catalog.catalog_id}`"
        aside: list[Finding] = []
        drifted: list[Finding] = []
        tools: list[DefinedTool] = []
        instructions = manifest.pin.instructions if manifest.pin is not None else ""
        for entry in manifest.entries:
            own, is_bare = self._own.get(entry.key), catalog.kind is CatalogType.HOST and catalog.prefix is None
            is_same = is_bare and own is not None and _is_same(own, entry.definition)
            is_the_programs = entry.definition.name in self._program and (
                own is not None or entry.key in self._reserved
            )
            if is_bare and (is_same or is_the_programs):  # the program itself has the tool
                if own is not None and not is_same:
                    text = (
                        f"`{entry.definition.name}` is not what the manifest of {where} says; the program's own counts"
                    )
                    drifted.append((Severity.WARNING, "manifest-drift", f"{text}: write the manifest anew"))
                continue
            try:
                name = self._name(catalog, entry, plain)
                if names[name] > _counts(entry) or name in self._program | self._builtins:
                    raise RegistrationError(f"the name `{name}` is another's too: give the catalog another `prefix`")
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
        return _Named(tuple(tools), problems)

    def _name(self, catalog: Catalog, entry: Entry, plain: _Wanted) -> str:
        """The name here: the catalog's id stands before one that is ours too, or another catalog's.

        Raises RegistrationError for what no policy can write, and for a version of a tool of the program.
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
        """The tool under its name here: the one of before, where it is the same. Raises RegistrationError."""
        key = catalog.catalog_id, (name, entry.key[1])
        kept = self._made.get(key)
        if kept is not None and kept.url != catalog.url:
            kept = None  # a tool is judged by where it goes
        if kept is not None and kept.entry is entry and kept.trusted == catalog.trusted:
            return kept.tool
        accepted, definition = entry.acceptance, replace(entry.definition, name=name)
        if accepted is not None:
            definition = replace(definition, safety_tier=accepted.tier, operation_tiers=accepted.operation_tiers)
        kind, own = _KINDS.get(catalog.kind, RunTool), dict[str, str]()
        if catalog.kind is CatalogType.HTTP:
            from gatewright.tools.http_tool import HttpTool

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
                tool = kept.tool  # whatever was compiled of it holds
        self._made[key] = _Made(entry, catalog.trusted, catalog.url, tool)
        return tool


class RegisteredTools:
    """Tools in a registry that come and go with the policy in force."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._held: dict[Key, tuple[Tool, Callable[[], None]]] = {}

    @property
    def held(self) -> tuple[Tool, ...]:
        """The tools that are there."""
        return tuple(tool for tool, _ in self._held.values())

    def follow(self, tools: Iterable[Tool]) -> None:
        """Have exactly ``tools`` registered; those that are there already stay untouched."""
        wanted = {(tool.name, tool.major): tool for tool in tools}
        for key, (tool, withdraw) in list(self._held.items()):
            if wanted.get(key) is not tool:
                withdraw()
                del self._held[key]
        for key, tool in wanted.items():
            if key not in self._held:
                self._held[key] = (tool, self._registry.register(tool))


def _composed_facts(policy: Policy, facts: tuple[ToolFacts, ...]) -> tuple[ToolFacts, ...]:
    return tuple(tool.facts() for tool in compose(policy, facts))


class ComposedTools:
    """The tools of compositions in a registry, made anew where they or what they call changed."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry, self._registered = registry, RegisteredTools(registry)
        self._made: dict[str, ComposedTool] = {}

    def follow(self, policy: Policy, book: CatalogBook, change: Callable[[], None]) -> None:
        """Have exactly the tools of the policy's compositions registered; ``change`` registers the others first.

        A tool that a policy may name and that is not there now counts too: the step that calls it is denied till then.
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
        return compose(policy, book.declared_all(policy, (*there, *absent)), (*self._registry.tools(), file_tool()))


def as_it_came(tool: Tool) -> Tool:
    """The tool without the operations that a policy or a manifest declares of it; its author's own stay."""
    return tool if tool.declares_operations else tool.declared("", None)


def _plain_name(catalog: Catalog, entry: Entry) -> str:
    """The name that a tool would bear if no other had it."""
    name = entry.definition.name
    return name if catalog.prefix is None else f"{catalog.prefix}.{name}"


def _count_names(
    read: Iterable[tuple[Catalog, Manifest]],
    name_of: Callable[[Catalog, Entry], str],
    *,
    everything: bool = False,
) -> Counter[str]:
    """How many catalogs have a tool of each name, of those that count, or of all."""
    found: Counter[str] = Counter()
    for catalog, manifest in read:
        names: set[str] = set()
        for entry in manifest.entries if everything else filter(_counts, manifest.entries):
            with suppress(RegistrationError):
                names.add(name_of(catalog, entry))
        found.update(names)
    return found


def _counts(entry: Entry) -> bool:
    """Tell whether it may keep a bare name from others: nobody can do so by listing a tool that was not accepted."""
    return not entry.held or entry.acceptance is not None


def _is_same(own: Tool, definition: ToolDefinition) -> bool:
    from gatewright.tools.registry import manifest_of

    return read_definitions(manifest_of([own]))[0] == (definition,)
