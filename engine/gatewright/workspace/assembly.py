"""Putting a policy, the tools, the sources and the gate together. It applies no edits and opens no window."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from gatewright.base.clock import SystemClock
from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.problem import Problem, Severity, Subject
from gatewright.builtins import builtin_tools, file_tool
from gatewright.gate import ApprovalStore, AuditLog, Gate, PermissionBroker, RateBook, key_folder, state_folder
from gatewright.gate.rates import FILE_NAME as RATES_FILE
from gatewright.memory import AgentBlocks, BlockStore, Shelf, owner_of
from gatewright.policy.document import PINS, CatalogType
from gatewright.policyfile import KnownTools, LoadedPolicy, parse_policy, read_policy_text
from gatewright.record import PrivateFolder
from gatewright.sources import Protection, SourceManager
from gatewright.sources.rootfolder import RootFolders
from gatewright.tools import ToolRegistry
from gatewright.workspace.catalog import CatalogBook, HostTools
from gatewright.workspace.fileblocks import SourceTexts, agent_blocks
from gatewright.workspace.location import is_inside, policy_path_of, resolved
from gatewright.workspace.roots import RootTools, absences, declare_rooted, root_problems, rooted
from gatewright.workspace.trust import TrustRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from gatewright.base.clock import Clock
    from gatewright.base.problem import Address, Place
    from gatewright.gate.approval import ApprovalLimits
    from gatewright.gate.decision import Places
    from gatewright.memory import BlockService
    from gatewright.policy.document import Policy, Source
    from gatewright.sources.basefolder import BaseFolder
    from gatewright.tools import DefinedTool, Tool
    from gatewright.tools.schemashape import Runner
    from gatewright.workspace.attachment import Attachments


SERVER_NOT_TRUSTED = "server-not-trusted"
_NO_SOURCE = {"file": "`file` comes with the first source, and the policy has none"}


@frozen
class Folders:
    """Where audit and blocks live (``state``), and keys, anchors and trust (``keys``)."""

    state: Path
    keys: Path

    @classmethod
    def of(cls, policy_path: Path, *, state: Path | None, keys: Path | None) -> Folders:
        """The explicit ones, else those of the environment, else beside the policy and in the user's data folder."""
        return cls(state_folder(policy_path, state), key_folder(keys))

    def require_real(self) -> None:
        """Raises WorkspaceError when the state folder leads somewhere else."""
        try:
            PrivateFolder(self.state).require_real()
        except OSError as error:
            hint = "name the folder that is meant with --state or GATEWRIGHT_STATE"
            raise WorkspaceError(f"the state folder `{self.state}` cannot be used: {error.strerror}; {hint}") from None


class GrowingProtection(Protection):
    """What no tool may touch; a reload may add to it, never take away."""

    def cover(self, paths: Iterable[Path]) -> None:
        """Protect these too, whether they are there or not."""
        fresh = [path for path in map(os.path.abspath, paths) if path not in self._paths]
        if fresh:
            super().__init__((*self._paths, *fresh))


@frozen
class Parts:
    """What one open workspace is made of, beside its policy; it stays the same when the policy is read again."""

    registry: ToolRegistry
    host: HostTools
    rooted: RootTools
    protection: GrowingProtection
    blocks: BlockStore
    shelf: Shelf
    sources: SourceManager
    audit: AuditLog
    rates: RateBook
    broker: PermissionBroker
    gate: Gate

    def roots(self, folders: Mapping[str, BaseFolder], folder: Path) -> RootFolders:
        """The roots with these folders, under the levels of the sources that run now."""
        return _roots(folders, folder, self.sources, self.protection, self.blocks)

    def follow(self, policy: Policy, given: tuple[DefinedTool, ...]) -> None:
        """Have exactly the tools that a policy brings along: ``given`` by its catalogs, and those of its roots."""
        self.rooted.follow(policy.roots, given, lambda: self.host.follow(given))

    def agent_blocks(self) -> AgentBlocks:
        """The blocks of all agents, under the levels of the sources that run now."""
        return agent_blocks(self.shelf, self.sources.pinned())

    def blocks_of(self, agent_id: str) -> BlockService:
        """The operator's hand on the blocks of one agent and the shared ones; "": on the shared ones alone."""
        from gatewright.memory import BlockService

        owner = owner_of(agent_id) if agent_id else ""
        texts = SourceTexts(self.sources)
        return BlockService(self.blocks, owner=owner, levels=texts.level, operator=True, shelf=self.shelf, files=texts)

    def close(self) -> None:
        """Let go of every file."""
        self.broker.close()
        self.audit.close()
        self.rates.close()
        self.blocks.close()


def audit_log(path: Path, *, state: Path | None = None, keys: Path | None = None) -> AuditLog:
    """The audit log that belongs to a policy file or its folder; the policy itself need not be valid."""
    folders = Folders.of(policy_path_of(path), state=state, keys=keys)
    return AuditLog(folders.state, folders.keys)


def permission_broker(
    path: Path, *, state: Path | None = None, keys: Path | None = None, clock: Clock | None = None
) -> PermissionBroker:
    """The broker that belongs to a policy file or its folder; the policy itself need not be valid."""
    folders = Folders.of(policy_path_of(path), state=state, keys=keys)
    clock = clock or SystemClock()
    return broker_of(folders, clock, AuditLog(folders.state, folders.keys, clock=clock))


def broker_of(
    folders: Folders, clock: Clock, audit: AuditLog, limits: ApprovalLimits | None = None
) -> PermissionBroker:
    """The questions and standing approvals in the state folder; revocations go to the log."""
    store = ApprovalStore(folders.state, folders.keys, clock=clock)
    return PermissionBroker(store, clock, limits=limits, audit=audit)


def catalog_book(
    policy_path: Path,
    tools: Iterable[Tool] = (),
    before: CatalogBook | None = None,
    *,
    records: TrustRecords | None = None,
    trust: Callable[[], bool] = bool,
    given: Mapping[str, bytes] = MappingProxyType({}),
    runner: Callable[[str, str], Runner] | None = None,
) -> CatalogBook:
    """What a policy file may name: the built-ins, ``tools``, and what the policy's own catalogs give.

    Manifests outside its folder are read where ``records`` (the user's own, if None) or ``trust`` say so; of those in
    ``given`` that is taken instead. ``runner``: what executes a tool of a server, by the id of its catalog and the name
    that the server knows; without it such tools are only decided. What is planned is refused as not supported. Raises
    AlreadyRegistered for one of ``tools`` that has the name and major version of another.
    """

    def trusted(catalog_id: str, manifest: Path) -> Callable[[bytes], bool] | None:
        if trust():
            return lambda _: True
        return (records or TrustRecords(key_folder(None))).trusted_manifest(policy_path, catalog_id, manifest)

    registry, ours = ToolRegistry(), (*builtin_tools(), file_tool())
    for tool in (*ours, *tools):
        registry.register(tool)
    known = KnownTools(registry.facts(), declare=declare_rooted, rooted=rooted())
    names = (tool.name for tool in ours)
    return CatalogBook(
        policy_path.parent, known, registry.tools(), before, builtins=names, trusted=trusted, given=given, runner=runner
    )


def load(policy_path: Path, known: KnownTools) -> LoadedPolicy:
    """What came of the policy file, whatever is wrong with it. Raises WorkspaceError when it cannot be read."""
    return parse_policy(read_policy_text(policy_path), file=str(policy_path), known=known)


def load_valid(policy_path: Path, known: KnownTools | None = None) -> tuple[LoadedPolicy, Policy]:
    """The policy file, strictly; ``known``: the tools that it may name (default: the built-in ones).

    Those of its catalogs come on top, where ``known`` does not read any itself. Raises WorkspaceError when it cannot
    be read, PolicyInvalid when it has errors.
    """
    if known is None:
        known = catalog_book(policy_path).known
    elif known.catalogs is None:
        known = CatalogBook(policy_path.parent, known).known
    loaded = load(policy_path, known)
    if loaded.policy is None:
        raise PolicyInvalid(loaded.problems)
    return loaded, loaded.policy


def base_problems(
    sources: Sequence[Source],
    policy_path: Path,
    records: TrustRecords,
    places: Callable[[Address], Place | None],
    *,
    trust: bool,
) -> tuple[Problem, ...]:
    """Errors for source folders outside the workspace that were not trusted, warnings for those that are missing."""
    found: list[Problem] = []
    for source in sources:
        address: Address = ("sources", source.source_id, "base_path")
        problem = _base_problem(source, policy_path, records, trust=trust)
        if problem:
            severity, code, message = problem
            found.append(Problem(severity, code, message, places(address), subject=Subject(address)))
    return tuple(found)


def folder_problems(
    loaded: LoadedPolicy, policy_path: Path, records: TrustRecords, *, trust: bool
) -> tuple[Problem, ...]:
    """What is wrong with the folders of sources and roots; of a policy with errors as far as it was built.

    ``trust``: those outside are trusted from now on, if nothing else is wrong.
    """
    if loaded.reading is None:
        return ()
    policy, places = loaded.reading.policy, loaded.places.place
    given = trust and loaded.policy is not None
    found = (
        *base_problems(policy.sources, policy_path, records, places, trust=given),
        *root_problems(policy.roots, policy_path, records, places, trust=given),
    )
    return tuple(problem for problem in found if given or not trust or problem.code != "not-trusted")


def server_problems(
    policy: Policy, policy_path: Path, records: TrustRecords, places: Callable[[Address], Place | None]
) -> tuple[Problem, ...]:
    """A warning for each MCP server that may not be started yet: all but its calls works without it."""
    found: list[Problem] = []
    for catalog in policy.catalogs:
        if catalog.kind is CatalogType.MCP and not records.trusts_server(policy_path, catalog):
            address: Address = ("catalogs", catalog.catalog_id)
            what = f"`{' '.join((catalog.command, *catalog.args))}`" if catalog.command else f"`{catalog.url}`"
            text = f"the server of catalog `{catalog.catalog_id}` is not used before it is trusted: {what}"
            text += "; `gatewright check --trust` trusts it"
            found.append(Problem(Severity.WARNING, SERVER_NOT_TRUSTED, text, places(address), subject=Subject(address)))
    return tuple(found)


def assemble(
    policy: Policy,
    policy_path: Path,
    folders: Folders,
    clock: Clock,
    places: Places,
    tools: Iterable[Tool],
    book: CatalogBook,
    attachments: Attachments,
    *,
    durable: bool,
    limits: ApprovalLimits | None,
) -> Parts:
    """Registry, sources and gate for a policy; starts no process, connects nowhere, writes nothing."""
    registry = ToolRegistry()
    for tool in (*builtin_tools(), *tools):
        registry.register(tool)
    host, rooted_tools, given = HostTools(registry), RootTools(registry, tools), book.tools(policy.catalogs)
    rooted_tools.follow(policy.roots, given, lambda: host.follow(given))
    blocks = BlockStore(folders.state / "memory.sqlite", clock=clock)
    shelf = Shelf(blocks)
    ours = (policy_path, policy_path.parent / PINS, folders.state, folders.keys)
    protection = GrowingProtection((*ours, *book.paths(policy.catalogs)))
    sources = SourceManager(lambda: registry.register(file_tool()), blocks, protection)
    attachments.follow(policy)
    sources.follow(attachments.sources(policy))
    audit = AuditLog(folders.state, folders.keys, clock=clock, durable=durable)
    rates = RateBook(folders.state / RATES_FILE)
    broker = broker_of(folders, clock, audit, limits)
    gate = Gate(
        policy,
        registry,
        sources=sources.pinned(),
        audit=audit,
        clock=clock,
        places=places,
        absent=_NO_SOURCE | absences(),
        rates=rates,
        grants=broker.grants,
        folder=str(policy_path.parent),
        file=str(policy_path),
        roots=_roots(attachments.roots(), policy_path.parent, sources, protection, blocks),
        blocks=agent_blocks(shelf, sources.pinned()),
    )
    return Parts(registry, host, rooted_tools, protection, blocks, shelf, sources, audit, rates, broker, gate)


def _roots(
    folders: Mapping[str, BaseFolder], folder: Path, sources: SourceManager, protection: Protection, blocks: BlockStore
) -> RootFolders:
    return RootFolders(folders, str(folder), sources.pinned(), protection, blocks.exclusive)


def _base_problem(
    source: Source, policy_path: Path, records: TrustRecords, *, trust: bool
) -> tuple[Severity, str, str] | None:
    try:
        base = resolved(source.base_path, policy_path.parent)
    except WorkspaceError as error:
        return Severity.WARNING, "unreadable", f"source `{source.source_id}`: {error}"
    if not is_inside(base, policy_path.parent):
        if trust:
            records.trust_source(policy_path, source.source_id, base)
        elif not records.trusts_source(policy_path, source.source_id, base):
            message = f"source `{source.source_id}` reaches outside the workspace, to `{base}`, and is not trusted yet"
            return Severity.ERROR, "not-trusted", f"{message}: `gatewright check --trust` trusts it"
    if not base.exists():
        return Severity.WARNING, "missing-path", f"the folder `{source.base_path}` of `{source.source_id}` is missing"
    if not base.is_dir():
        return Severity.WARNING, "not-a-folder", f"`{source.base_path}` of `{source.source_id}` is not a folder"
    if not os.access(base, os.R_OK | os.X_OK):
        return Severity.WARNING, "unreadable", f"the folder `{source.base_path}` of `{source.source_id}` is unreadable"
    return None
