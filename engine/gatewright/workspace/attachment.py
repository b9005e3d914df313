"""The folders that the sources, roots and places of a workspace are opened on, kept from one policy to the next.

An edit leaves a source on the folder that it was opened on. Only when the policy is read again are paths followed anew,
and what leads out of the workspace and is not trusted is refused then, whatever else the policy says.

It reads no policy text and decides no call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from gatewright.base.errors import SchemaError, WorkspaceError
from gatewright.base.problem import Address, Place, Problem, Severity, Subject
from gatewright.builtins import MessagePort, RootTool, SendMessageTool, ShellExecTool, ShellPort, root_tools, why_absent
from gatewright.policy.document import Policy, Roots, Source, SourceType
from gatewright.policy.right import ToolFacts
from gatewright.policyfile.names import Rooted
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.ground import Ground
from gatewright.tools import Tool
from gatewright.tools.parameter import FileParameter
from gatewright.workspace.catalog import RegisteredTools
from gatewright.workspace.location import is_inside, resolved
from gatewright.workspace.trust import FolderKind, TrustRecords

if TYPE_CHECKING:
    from gatewright.tools import ToolRegistry


Key = tuple[FolderKind, str, str]
"""Kind, name, and the path as the policy writes it."""


class Attachments:
    """What one policy file attaches. Call `follow` first; not from two threads at once.

    ``ground``: where names stand on disk; ``known``: what the folders are called that another workspace opened there.
    """

    def __init__(
        self,
        policy_path: Path,
        records: TrustRecords,
        ground: Ground | None = None,
        known: Mapping[Key, str] = MappingProxyType({}),
    ) -> None:
        self._policy_path = policy_path
        self._records = records
        self._ground, self._known = ground or Ground(), known
        self._held: dict[Key, BaseFolder] = {}
        self._places: dict[Key, BaseFolder] = {}
        self.mark: object = object()
        """Another object once a folder is another one, or may be."""

    @property
    def names(self) -> dict[Key, str]:
        """What the folders are called that are held now."""
        return {key: folder.path for key, folder in self._held.items()}

    def follow(self, policy: Policy, *, afresh: bool = False) -> bool:
        """Hold the folders of this policy; ``afresh``: look where the paths lead now. Whether anything is another."""
        sources: list[Key] = [("source", source.source_id, source.base_path) for source in policy.folder_sources]
        roots: list[Key] = [("root", name, written) for name, written in policy.roots.folders.items()]
        before, self._held = self._held, {key: self._folder(key, afresh=afresh) for key in (*sources, *roots)}
        places: list[Key] = [
            ("place", one.catalog_id, written) for one in policy.catalogs for written in one.place_folders
        ]
        were, self._places = self._places, {key: self._folder(key, afresh=afresh) for key in places}
        is_another = before != self._held or were != self._places
        if is_another:
            self.mark = object()
        return is_another

    def sources(self, policy: Policy) -> list[tuple[Source, BaseFolder]]:
        """The sources of files of the policy that is followed, each with its folder."""
        return [pair for pair in self._opened(policy) if pair[0].kind is SourceType.FILE]

    def source_paths(self, policy: Policy) -> dict[str, str]:
        """The paths of the sources of files that may be used, by id."""
        return {source.source_id: folder.path for source, folder in self.sources(policy) if not folder.refused}

    def streams(self, policy: Policy) -> list[tuple[Source, BaseFolder]]:
        """Its streams of changes, each with its folder."""
        return [pair for pair in self._opened(policy) if pair[0].kind is SourceType.FOLDER_CHANGES]

    def _opened(self, policy: Policy) -> list[tuple[Source, BaseFolder]]:
        return [(one, self._held["source", one.source_id, one.base_path]) for one in policy.folder_sources]

    def roots(self) -> dict[str, BaseFolder]:
        """The folders of its roots, by name."""
        return {name: folder for (kind, name, _), folder in self._held.items() if kind == "root"}

    def places(self, catalog_id: str) -> dict[str, str]:
        """The places of a server that are no sources, as written, and where they stand; none that may not be used."""
        return {
            written: folder.path
            for (_, name, written), folder in self._places.items()
            if name == catalog_id and not folder.refused
        }

    def folders(self) -> tuple[BaseFolder, ...]:
        """All of them."""
        return tuple(self._held.values())

    def _folder(self, key: Key, *, afresh: bool) -> BaseFolder:
        held = self._held.get(key) or self._places.get(key)
        kind, name, written = key
        if held is not None and not afresh and not (kind == "place" and held.refused):  # it may be trusted by now
            return held
        if (known := self._known.get(key)) is not None:
            return BaseFolder(known, place=self._ground.place(known))
        try:
            path = resolved(written, self._policy_path.parent)
        except WorkspaceError as error:
            return BaseFolder(str(self._policy_path.parent / written), str(error))
        base = self._policy_path.parent
        is_trusted = is_inside(path, base) or self._records.trusts_folder(kind, self._policy_path, name, path)
        refused = "" if is_trusted else f"the folder of this {kind} is outside, and not trusted"
        if held is not None and (held.path, held.refused) == (str(path), refused) and (held.stands or refused):
            return held
        return BaseFolder(str(path), refused, place=self._ground.place(str(path)))


def folder_problem(
    kind: FolderKind, name: str, written: str, folder: Path, policy_path: Path, records: TrustRecords, *, trust: bool
) -> tuple[Severity, str, str] | None:
    """What is wrong with the folder of a source or root, as severity, code and words; ``trust``: it is trusted now."""
    if not is_inside(folder, policy_path.parent):
        if trust:
            records.trust_folder(kind, policy_path, name, folder)
        elif not records.trusts_folder(kind, policy_path, name, folder):
            message = f"{kind} `{name}` reaches outside the workspace, to `{folder}`, and is not trusted yet"
            return Severity.ERROR, "not-trusted", f"{message}: `gatewright check --trust` trusts it"
    whose = f"`{name}`" if kind == "source" else f"root `{name}`"
    if not folder.exists():
        return Severity.WARNING, "missing-path", f"the folder `{written}` of {whose} is missing"
    if not folder.is_dir():
        return Severity.WARNING, "not-a-folder", f"`{written}` of {whose} is not a folder"
    if not os.access(folder, os.R_OK | os.X_OK):
        return Severity.WARNING, "unreadable", f"the folder `{written}` of {whose} is unreadable"
    return None


RootKey = tuple[str, int]


def root_folders(roots: Roots, folder: Path) -> dict[str, Path]:
    """The real folder of each root."""
    return {name: resolved(written, folder) for name, written in roots.folders.items()}


def rooted() -> tuple[Rooted, ...]:
    """What policies may name where the roots are there."""
    return tuple(Rooted(tool.facts(), tool.needs) for tool in root_tools())


def declare_rooted(facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
    """The facts of one of these tools read with operations that a policy declares. Raises SchemaError."""
    tool = next((tool for tool in root_tools() if (tool.name, tool.major) == (facts.name, facts.major)), None)
    if tool is None:
        raise SchemaError(f"the schema of `{facts.name}` is not at hand")
    return tool.declared(field, operations).facts()


def absences() -> dict[str, str]:
    """Why each of the tools may not be there."""
    return {tool.name: why_absent(tool.name, tool.needs) for tool in root_tools()}


@cache
def roots_by_tool() -> Mapping[str, tuple[str, ...]]:
    """The roots that each of these tools takes paths in."""
    return {
        tool.name: tuple(dict.fromkeys(root for marker in file_markers(tool) for root in marker.roots))
        for tool in root_tools()
    }


def file_markers(tool: RootTool) -> list[FileParameter]:
    """What its parameters say of the files that they name."""
    return [mark.marker for one in tool.parameters() for mark in one.marks if isinstance(mark.marker, FileParameter)]


class RootTools:
    """The tools that need something of ``[workspace]``, in a registry. One of a program or a catalog with the same name
    comes before ours. ``shell`` and ``messages``: what executes commands, what sends messages.
    """

    def __init__(self, registry: ToolRegistry, shell: ShellPort | None, messages: MessagePort | None) -> None:
        self._registered, self._messages = RegisteredTools(registry), messages
        self._tools = tuple(ShellExecTool(shell) if tool.name == ShellExecTool.name else tool for tool in root_tools())
        self._there: dict[RootKey, RootTool] = {}
        self._sender: tuple[object, RootTool] = (), SendMessageTool()

    def follow(self, policy: Policy, taken: Collection[Tool], change: Callable[[], None]) -> None:
        """Have exactly the tools registered that the policy provides for; ``change`` registers ``taken`` meanwhile."""
        names = {(tool.name, tool.major) for tool in taken}
        reached = policy.endpoints, policy.recipients
        if self._sender[0] != reached:
            self._sender = reached, SendMessageTool(policy, self._messages)
        sender, provided, before = self._sender[1], policy.provides, self._there
        tools = [sender if isinstance(tool, SendMessageTool) else tool for tool in self._tools]
        self._there = {
            key: tool for tool in tools if (key := (tool.name, tool.major)) not in names and tool.is_there(provided)
        }
        self._registered.follow(tool for key, tool in before.items() if self._there.get(key) is tool)
        change()
        self._registered.follow(self._there.values())


def root_problems(
    roots: Roots,
    policy_path: Path,
    records: TrustRecords,
    places: Callable[[Address], Place | None],
    *,
    trust: bool,
) -> tuple[Problem, ...]:
    """Errors for folders that lie in each other, or outside and not trusted; warnings for missing ones."""
    folders, found = root_folders(roots, policy_path.parent), list[Problem]()
    before: dict[str, Path] = {}
    for name, folder in folders.items():
        # two may be one folder on disk, or one in the other, through links
        other = next((one for one, held in before.items() if is_inside(folder, held) or is_inside(held, folder)), None)
        before[name] = folder
        if other is not None:
            text = f"the roots `{other}` and `{name}` may not lie in each other: `{before[other]}` and `{folder}`"
            problem = Severity.ERROR, "roots-overlap", text
        else:
            problem = folder_problem("root", name, roots.folders[name], folder, policy_path, records, trust=trust)
        if problem is not None:
            severity, code, message = problem
            address: Address = ("workspace", "roots", name)
            found.append(Problem(severity, code, message, places(address), subject=Subject(address)))
    return tuple(found)
