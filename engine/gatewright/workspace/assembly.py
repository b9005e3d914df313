"""Putting a policy, the tools, the sources and the gate together. It applies no edits and opens no window."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewright.base.errors import PolicyInvalid
from gatewright.base.problem import Problem, Severity
from gatewright.builtins import builtin_tools, file_tool
from gatewright.gate import AuditLog, Gate, key_folder, state_folder
from gatewright.memory import BlockStore
from gatewright.policyfile import KnownTools, LoadedPolicy, parse_policy, read_policy_text
from gatewright.sources import Protection, SourceManager
from gatewright.tools import ToolRegistry
from gatewright.workspace.location import is_inside, policy_path_of, resolved
from gatewright.workspace.trust import TrustRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gatewright.base.clock import Clock
    from gatewright.base.problem import Address, Place
    from gatewright.policy.document import Policy, Source


_ABSENT = {"file": "`file` comes with the first source, and the policy has none"}


@dataclass(frozen=True, slots=True)
class Folders:
    """Where audit and blocks live (``state``), and keys, anchors and trust (``keys``)."""

    state: Path
    keys: Path

    @classmethod
    def of(cls, policy_path: Path, *, state: Path | None, keys: Path | None) -> Folders:
        """The explicit ones, else those of the environment, else beside the policy and in the user's data folder."""
        return cls(state_folder(policy_path, state), key_folder(keys))


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that one open workspace is made of."""

    loaded: LoadedPolicy
    policy: Policy
    registry: ToolRegistry
    blocks: BlockStore
    sources: SourceManager
    audit: AuditLog
    gate: Gate


def audit_log(path: Path, *, state: Path | None = None, keys: Path | None = None) -> AuditLog:
    """The audit log that belongs to a policy file or its folder; the policy itself need not be valid."""
    folders = Folders.of(policy_path_of(path), state=state, keys=keys)
    return AuditLog(folders.state, folders.keys)


def known_tools() -> KnownTools:
    """What policies may name: the built-ins with their operations; what is planned is refused as not supported."""
    facts = tuple(tool.facts() for tool in (*builtin_tools(), file_tool()))
    return KnownTools(facts)


def load_valid(policy_path: Path, known: KnownTools | None = None) -> tuple[LoadedPolicy, Policy]:
    """The policy file, strictly; ``known``: the tools that it may name (default: the built-in ones).

    Raises WorkspaceError when it cannot be read, PolicyInvalid when it has errors.
    """
    loaded = parse_policy(read_policy_text(policy_path), file=str(policy_path), known=known or known_tools())
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
            found.append(Problem(severity, code, message, places(address)))
    return tuple(found)


def assemble(
    loaded: LoadedPolicy,
    policy: Policy,
    policy_path: Path,
    folders: Folders,
    clock: Clock,
    places: Callable[[Address], Place | None],
) -> Parts:
    """Registry, sources and gate for a loaded policy; starts no process, connects nowhere, writes nothing."""
    registry = ToolRegistry()
    for tool in builtin_tools():
        registry.register(tool)
    blocks = BlockStore(folders.state / "memory.sqlite")
    protection = Protection((policy_path, folders.state, folders.keys))
    sources = SourceManager(lambda: registry.register(file_tool()), blocks, protection)
    for source in policy.sources:
        sources.start(source, resolved(source.base_path, policy_path.parent))
    audit = AuditLog(folders.state, folders.keys, clock=clock)
    gate = Gate(policy, registry, sources=sources, audit=audit, clock=clock, places=places, absent=_ABSENT)
    return Parts(loaded, policy, registry, blocks, sources, audit, gate)


def _base_problem(
    source: Source, policy_path: Path, records: TrustRecords, *, trust: bool
) -> tuple[Severity, str, str] | None:
    base = resolved(source.base_path, policy_path.parent)
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
