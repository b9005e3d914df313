"""The sources of a workspace: opens their folders, answers for their paths and blocks, watches them.

An edit keeps a source on its open folder. Only a new reading of the policy resolves the paths again, and then refuses
untrusted ones that lead out of the workspace, whatever else the policy says. It also makes the tools on roots. For
sources with ``watch = true``, a change outside goes into blocks if that loses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakSet

from gatewright import blocks
from gatewright.base.errors import Address, Place, Problem, SchemaError, Severity, Subject, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.builtins import MessagePort, RootTool, SendMessageTool, ShellExecTool, ShellPort, root_tools, why_absent
from gatewright.memory.agentblocks import AgentBlocks
from gatewright.memory.block_store import Shelf
from gatewright.memory.blocktable import BlockRecord
from gatewright.policy.document import Policy, Roots, Source, SourceType
from gatewright.policy.glob import PermissionRules
from gatewright.policy.right import ToolFacts
from gatewright.policy.verdict import Permission
from gatewright.policyfile.names import Rooted
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.filetext import encode_text, in_line_ending_of
from gatewright.sources.ground import Ground, is_inside, resolve_base
from gatewright.sources.held import is_base_label
from gatewright.sources.manager import SourceManager
from gatewright.sources.watch import Noticed, SourceWatching
from gatewright.tools import Tool, ToolRegistry
from gatewright.tools.parameter import FileParameter, marks_of_fields
from gatewright.workspace.catalog import RegisteredTools
from gatewright.workspace.trust import FolderKind, TrustRecords

if TYPE_CHECKING:
    from gatewright.sources.watch import FolderNews, FolderWatch


Key = tuple[FolderKind, str, str]
"""Kind, name, and the path as the policy writes it."""


class Attachments:
    """The folders of one policy file. Call `follow` first; only one thread at a time may use it.

    ``ground``: the real places of names on disk; ``known``: the names of folders that another workspace opened there.
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
        """An object that is replaced whenever a folder may have changed."""

    @property
    def names(self) -> dict[Key, str]:
        """Return the names of the open folders."""
        return {key: folder.path for key, folder in self._held.items()}

    def follow(self, policy: Policy, *, afresh: bool = False) -> bool:
        """Open the folders of this policy; ``afresh``: resolve all paths again. True if any folder changed."""
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
        """Return the file sources of the policy, each with its folder."""
        return [pair for pair in self._with_folders(policy) if pair[0].kind is SourceType.FILE]

    def source_paths(self, policy: Policy) -> dict[str, str]:
        """Return the paths of the usable file sources, by id."""
        return {source.source_id: folder.path for source, folder in self.sources(policy) if not folder.refused}

    def streams(self, policy: Policy) -> list[tuple[Source, BaseFolder]]:
        """Return the policy's streams of changes, each with its folder."""
        return [pair for pair in self._with_folders(policy) if pair[0].kind is SourceType.FOLDER_CHANGES]

    def _with_folders(self, policy: Policy) -> list[tuple[Source, BaseFolder]]:
        return [(one, self._held["source", one.source_id, one.base_path]) for one in policy.folder_sources]

    def roots(self) -> dict[str, BaseFolder]:
        """Return the folders of its roots, by name."""
        return {name: folder for (kind, name, _), folder in self._held.items() if kind == "root"}

    def places(self, catalog_id: str) -> dict[str, str]:
        """Return a server's usable places other than sources, as written, with their real paths."""
        return {
            written: folder.path
            for (_, name, written), folder in self._places.items()
            if name == catalog_id and not folder.refused
        }

    def folders(self) -> tuple[BaseFolder, ...]:
        """Return all open folders."""
        return tuple(self._held.values())

    def _folder(self, key: Key, *, afresh: bool) -> BaseFolder:
        held = self._held.get(key) or self._places.get(key)
        kind, name, written = key
        # somebody may have trusted it since
        if held is not None and not afresh and not (kind == "place" and held.refused):
            return held
        if (known := self._known.get(key)) is not None:
            return BaseFolder(known, place=self._ground.place(known))
        try:
            path = resolve_base(written, self._policy_path.parent)
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
    """Find the fault of a source's or root's folder, as severity, code and words; ``trust``: somebody trusts it now."""
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
    """Return the real folder of each root."""
    return {name: resolve_base(written, folder) for name, written in roots.folders.items()}


def tools_on_roots() -> tuple[Rooted, ...]:
    """List the tools that policies may name once their roots exist."""
    return tuple(Rooted(tool.facts(), tool.needs) for tool in root_tools())


def declare_rooted(facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
    """Read the facts of a tool on roots with operations that a policy declares. Raises SchemaError."""
    tool = next((tool for tool in root_tools() if (tool.name, tool.major) == (facts.name, facts.major)), None)
    if tool is None:
        raise SchemaError(f"the schema of `{facts.name}` is not available")
    return tool.with_operations(field, operations).facts()


def absences() -> dict[str, str]:
    """Return for each of the tools the reason why it may be missing."""
    return {tool.name: why_absent(tool.name, tool.needs) for tool in root_tools()}


@cache
def roots_by_tool() -> Mapping[str, tuple[str, ...]]:
    """Return for each tool the roots in which its paths lie."""
    return {
        tool.name: tuple(dict.fromkeys(root for marker in file_markers(tool) for root in marker.roots))
        for tool in root_tools()
    }


def file_markers(tool: RootTool) -> list[FileParameter]:
    """Return the marks of its parameters that name files."""
    marks = marks_of_fields(tool.input_model, f"tool `{tool.name}`").values()
    return [mark.marker for found in marks for mark in found if isinstance(mark.marker, FileParameter)]


class RootTools:
    """The tools in a registry that depend on ``[workspace]``. A tool of a program or catalog with the same name
    replaces ours.

    ``shell`` and ``messages``: execute commands and send messages.
    """

    def __init__(self, registry: ToolRegistry, shell: ShellPort | None, messages: MessagePort | None) -> None:
        self._registered, self._messages = RegisteredTools(registry), messages
        self._tools = tuple(ShellExecTool(shell) if tool.name == ShellExecTool.name else tool for tool in root_tools())
        self._there: dict[RootKey, RootTool] = {}
        self._sender: tuple[object, RootTool] = (), SendMessageTool()

    def follow(self, policy: Policy, taken: Collection[Tool], change: Callable[[], None]) -> None:
        """Register exactly the tools that the policy provides for; ``change`` registers those of others, named
        ``taken``, in between.
        """
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
    """Report roots that contain each other, or lie outside untrusted, as errors; missing ones as warnings."""
    folders, found = root_folders(roots, policy_path.parent), list[Problem]()
    before: dict[str, Path] = {}
    for name, folder in folders.items():
        # links may make two of them one folder, or put one into the other
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


@frozen
class PathRow:
    """The level of one path by the rules of a source; ``index`` counts rules from 0, None means the default."""

    path: str
    permission: Permission
    outside: bool
    index: int | None
    pattern: str | None

    def to_json(self) -> dict[str, object]:
        """Shape: path, permission, outside, rule {index, pattern} or None."""
        rule = None if self.index is None else {"index": self.index, "pattern": self.pattern}
        return {"path": self.path, "permission": str(self.permission), "outside": self.outside, "rule": rule}


def path_rows(source: Source, base: Path, sources: SourceManager, paths: Iterable[str]) -> Iterator[PathRow]:
    """Yield the level of paths by a source's rules, with its real folder ``base``; protected files have none."""
    rules = PermissionRules(source.permission_rules, source.default_permission)
    for path in paths:
        found = rules.explain(path)
        if not found.outside and sources.protects(base / path):
            yield PathRow(path, sources.PROTECTED_LEVEL, outside=False, index=None, pattern=None)
        else:
            yield PathRow(path, found.permission, found.outside, found.index, found.pattern)


class SourceTexts:
    """The rules of ``sources`` for texts of their blocks."""

    def __init__(self, sources: SourceManager) -> None:
        self._sources = sources

    def level(self, record: BlockRecord) -> Permission:
        """Return the level of the file; none unless a running source has it."""
        return self._sources.level_of_label(record.label).permission

    def fit_line_ends(self, text: str, edit: blocks.Edit) -> blocks.Edit:
        """Give the edit the text's line ends, like the sources themselves."""
        match edit:
            case blocks.Append(content=str() as content):
                return replace(edit, content=in_line_ending_of(text, content))
            case blocks.Replace(old=old, regex=False):
                old = old if old in text else in_line_ending_of(text, old)
                return replace(edit, old=old, new=in_line_ending_of(text, edit.new))
            case _:
                return edit

    def check(self, record: BlockRecord, text: str) -> None:
        """Raise ToolFailure for an invalid text, and for one that is too large for the source."""
        source = self._sources.get(record.source_id)
        if source is None:
            raise ToolFailure("the source of this file is not attached any more", code="no-source")
        encode_text(text, source.source.max_file_bytes)

    def is_inner(self, record: BlockRecord) -> bool:
        """Tell whether the block is the base of another block: the last text that it and its file had in common."""
        return is_base_label(record.label)


def agent_blocks(shelf: Shelf, sources: SourceManager) -> AgentBlocks:
    """Return the blocks of all agents under the levels of these sources."""
    texts = SourceTexts(sources)
    return AgentBlocks(shelf, levels=texts.level, files=texts)


class SourceWatches:
    """All watches of one workspace: at most one over its sources, and any number over single folders."""

    def __init__(self, sources: SourceManager, policy: Callable[[], Policy]) -> None:
        self._sources, self._policy = sources, policy
        self._watching: SourceWatching | None = None
        self._folders: WeakSet[FolderWatch] = WeakSet()

    def watch(self, notify: Callable[[Noticed], None], debounce_ms: int) -> SourceWatching:
        """Watch the sources with ``watch = true``; a second watch replaces the first."""
        before = self._watching
        self._watching = SourceWatching(self._sources, self._watch_ids, notify, debounce_ms=debounce_ms)
        if before is not None:
            before.close()
        self._watching.follow()
        return self._watching

    def _watch_ids(self) -> list[str]:
        return [source.source_id for source in self._policy().sources if source.watch]

    def watch_folder(self, source_id: str, notify: Callable[[FolderNews], None]) -> FolderWatch:
        """Watch the folder of a source. Raises WorkspaceError if it is not attached."""
        from gatewright.sources.watch import FolderWatch

        source = self._sources.get(source_id)
        if source is None:
            raise WorkspaceError(f"source `{source_id}` is not attached")
        made = FolderWatch(source.folder, notify)
        self._folders.add(made)
        return made

    def follow(self) -> None:
        """Watch according to the policy in force."""
        if self._watching is not None:
            self._watching.follow()

    def close(self) -> None:
        """Stop all watches."""
        for folder_watch in self._folders:
            folder_watch.stop()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
