"""The policy document as one immutable value.

It exceeds 450 lines because the whole of what a policy can say stands in it, table by table.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import cast

from gatewright.base.frozen import frozen
from gatewright.base.word import Word
from gatewright.policy.composition import Composition
from gatewright.policy.kinds.capability import Capability
from gatewright.policy.rule import PolicyRule, ToolRule, new_identity
from gatewright.policy.scope import Endpoints, need_of
from gatewright.policy.verdict import PathUse, Permission, SafetyTier, Verdict

DEFAULT_MAX_OUTPUT_BYTES = 16_384
DEFAULT_MAX_FILE_BYTES = 1_048_576


@frozen
class Defaults:
    """``[defaults]``: what agents and tools get where nothing else is said. ``timeout_s`` None: each tool's own.

    ``check_formats``: arguments must be what a known `format` of the shown schema says.
    """

    unlisted_tools: Verdict = Verdict.ALLOW
    new_tools: str = "hold"
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    timeout_s: float | None = None
    approvals: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict], hash=False)
    check_formats: bool = False


@frozen
class Agent:
    """``[agents.ID]``. ``tools`` and ``sources`` are complete lists when present, None when absent.

    ``approvals``: keys are a tier, ``tool`` or ``tool.operation``.
    """

    agent_id: str
    description: str = ""
    tools: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    approvals: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict], hash=False)
    user_id: str | None = None
    tool_rules: tuple[ToolRule, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _settle(self, "tools", "sources", "tool_rules", "capabilities")


def _settle(value: object, *names: str) -> None:
    """Have tuples where a program gave other collections. Raises TypeError for one text in the place of several."""
    for name in names:
        given = getattr(value, name)
        if given is not None and type(given) is not tuple:
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise TypeError(f"`{name}` of {type(value).__name__} takes several, as a tuple, not {given!r:.80}")
            object.__setattr__(value, name, tuple(cast("Iterable[object]", given)))


@frozen
class PermissionRule:
    """One ``permission_rules`` row: a gitignore pattern (no ``!``) and the level it gives."""

    pattern: str
    permission: Permission
    comment: str | None = None
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)


class SourceType(StrEnum):
    """The kind of a source: files that agents work with, a stream of the changes below a folder, or what the program
    that opens the policy adds under that id: texts by key, a stream of its own, or both.
    """

    FILE = "file"
    FOLDER_CHANGES = "folder_changes"
    HOST = "host"


@frozen
class Source:
    """``[[sources]]``; ``base_path`` is as written (relative to the policy file), "" for one of a program.

    ``required_tools`` are tool rules that bind only the calls that go to this source. ``watch``: changes from outside
    are taken into blocks as they happen, while somebody watches. A stream of changes has levels alone: of a path whose
    level is none it tells nothing.
    """

    source_id: str
    base_path: str
    default_permission: Permission = Permission.READ_ONLY
    permission_rules: tuple[PermissionRule, ...] = ()
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    required_tools: tuple[ToolRule, ...] = ()
    watch: bool = False
    kind: SourceType = SourceType.FILE
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def levels(self) -> frozenset[Permission]:
        """Every level that some path of the source may have by its rules or default."""
        return frozenset({self.default_permission, *(rule.permission for rule in self.permission_rules)})


class OutputCheck(StrEnum):
    """What becomes of a result that does not fit the tool's output schema."""

    STRICT = "strict"
    WARN = "warn"
    OFF = "off"


@frozen
class ToolSettings:
    """``[tools.NAME]``: what the operator overrides of a tool. None: as the tool says.

    ``safety_tier`` holds for the operations that ``operation_tiers`` does not name. ``operation_field``: the field of a
    stranger's schema that selects operations, empty for none; ``operations``: what a free text there may be.
    ``extra_arguments``: whether a call may give arguments that the schema does not name; None: not where it is
    constrained. ``paths``: which arguments (``edits[].path``) are paths on disk, and what is done there.
    ``output``: what becomes of a result that misfits its schema.
    """

    timeout_s: float | None = None
    safety_tier: SafetyTier | None = None
    operation_tiers: Mapping[str, SafetyTier] = field(default_factory=dict[str, SafetyTier], hash=False)
    scrub: bool = True
    description: str | None = None
    operation_field: str | None = None
    operations: tuple[str, ...] | None = None
    extra_arguments: Verdict | None = None
    paths: Mapping[str, PathUse] = field(default_factory=dict[str, PathUse], hash=False)
    output: OutputCheck | None = None

    @property
    def declares(self) -> bool:
        """Whether it says which field of the tool's schema selects operations, or what they are."""
        return self.operation_field is not None or self.operations is not None


PINS = "catalogs"
"""The folder beside the policy file that holds the pins of catalogs."""


class CatalogType(StrEnum):
    """Who runs the tools of a catalog: an MCP server, or (``host``) the program that loads the policy.

    We run those of the others, each by its definition in a manifest: a request over HTTP, a process for each call, or
    a WASM module.
    """

    MCP = "mcp"
    HTTP = "http"
    SUBPROCESS = "subprocess"
    WASM = "wasm"
    HOST = "host"

    @property
    def is_pinned(self) -> bool:
        """True where its tools are accepted one by one, and what runs them is trusted first."""
        return self is not CatalogType.HOST

    @property
    def has_manifest(self) -> bool:
        """True where a file defines its tools, and no server says which it has."""
        return self is not CatalogType.MCP


class Confine(Word):
    """``confine`` of a catalog or the shell: what the policy says holds in the kernel, or no more than for the user."""

    POLICY = "policy"
    NONE = "none"


class PlaceUse(Word):
    """The use of a place by a process. snapshot: in a private copy, of which the gate writes back what it judged."""

    READ = "read"
    WRITE = "write"
    SNAPSHOT = "snapshot"


def is_folder_place(place: str) -> bool:
    """Tell whether a key of ``places`` is a path (`/...`, `./...`, `../...`, `C:/...`), not the id of a source."""
    drive = place[:1].isascii() and place[:1].isalpha() and place[1:3] in {":/", ":\\"}
    return drive or place in {".", ".."} or place.startswith(("/", "./", "../", "\\", ".\\", "..\\"))


@frozen
class Catalog:
    """``[[catalogs]]``: tools that come from outside; ``trusted``: whether what they say of their tiers counts.

    ``prefix``: its tools are named ``prefix.name``. ``manifest``: what defines them where no server does, relative to
    the policy file. An MCP server is a ``command`` with ``args``, started in ``cwd`` with the environment variables
    that ``env`` names, or a ``url`` with the headers of ``headers_env``, each from the variable named there. So are the
    process that is started for each call of a tool, and the address below which tools are requested over HTTP, whose
    queries have the fields of ``query_env``, too;
    ``module``: the WASM module that runs them. A command is a process of its own: ``confine`` says what holds for it,
    ``places`` which sources (by id) and folders (as written) it gets, None before anybody accepted what.
    """

    catalog_id: str
    kind: CatalogType
    manifest: str = ""
    trusted: bool = False
    prefix: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    cwd: str | None = None
    url: str | None = None
    headers_env: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    query_env: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    module: str = ""
    confine: Confine = Confine.POLICY
    places: Mapping[str, PlaceUse] | None = field(default=None, hash=False)
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def file(self) -> str:
        """The file of the tools that count, relative to the policy file: the pin, else the manifest."""
        return f"{PINS}/{self.catalog_id}.json" if self.kind.is_pinned else self.manifest

    @property
    def files(self) -> tuple[str, ...]:
        """All that says which tools it has, relative to the policy file."""
        return tuple(dict.fromkeys((self.file, *([self.manifest] if self.manifest else []))))

    @property
    def is_confined(self) -> bool:
        """True where a process of its own serves it, for which the policy holds in the kernel."""
        return self.command is not None and self.confine is Confine.POLICY

    @property
    def takes_places(self) -> bool:
        """True where what runs its tools gets places, and nothing else of the disk: a confined process, or a module."""
        return self.is_confined or bool(self.module)

    @property
    def place_folders(self) -> list[str]:
        """Its places that are no sources, as written."""
        return [place for place in self.places or () if is_folder_place(place)]

    @property
    def waits_for_places(self) -> bool:
        """True while nobody accepted what its process gets: until then it is not started, nor are its tools seen."""
        return self.is_confined and self.places is None

    @property
    def runs(self) -> str:
        """The program of its tools: a command as it is typed in a shell, an address, a module; empty for a manifest."""
        return self.url or self.module or ("" if self.command is None else shlex.join((self.command, *self.args)))


ROOT_NAMES = ("shared", "tmp", "vault")
"""The roots that the tools of files know; the first one is where a path without a root's name begins."""


SHELL = "shell"
"""What a tool needs that runs shell commands."""


@frozen
class Roots:
    """``[workspace] roots``: folders as written (relative to the policy file); None: there is no such root.

    Tools read and write below ``shared`` and ``tmp``; out of ``vault`` files can only be copied.
    """

    shared: str | None = None
    tmp: str | None = None
    vault: str | None = None

    def folder(self, name: str) -> str | None:
        """The folder of the root with that name, or None."""
        return {"shared": self.shared, "tmp": self.tmp, "vault": self.vault}.get(name)

    @property
    def folders(self) -> Mapping[str, str]:
        """Root to folder, those that there are, in the order of their names."""
        return {name: folder for name in ROOT_NAMES if (folder := self.folder(name)) is not None}


class SearchEngine(StrEnum):
    """Who can be asked to search the web."""

    DUCKDUCKGO = "duckduckgo"
    SEARXNG = "searxng"
    GOOGLE = "google"


@frozen
class SearchProvider:
    """One entry of ``search``: whom to ask, and where, if not at its usual address.

    ``api_key_env`` and ``engine_id_env`` name the environment variables with what Google wants to be given.
    """

    engine: SearchEngine
    url: str | None = None
    api_key_env: str | None = None
    engine_id_env: str | None = None


@frozen
class Web:
    """``[workspace] web``: what the web tools may reach, and who is asked to search, in that order.

    ``allow_private``: arguments may name addresses of private networks and of this machine.
    """

    allow_private: bool = False
    search: tuple[SearchProvider, ...] = (SearchProvider(SearchEngine.DUCKDUCKGO),)


@frozen
class MemoryWeights:
    """``[workspace] memory``: how much a note counts by what it means, and by its words; 1 together."""

    vector: float = 0.7
    text: float = 0.3


class ShellBackend(StrEnum):
    """Who runs shell commands: nobody, a shell for each command, or one that lives as long as a session."""

    DISABLED = "disabled"
    HOST = "host"
    SESSION = "session"


@frozen
class ShellSettings:
    """``[workspace] shell``: what a shell command may start.

    ``allow`` and ``deny`` are names of programs (``*``: every one that is not there to run others), in ``allow`` also
    ``program option`` and ``NAME=``, a variable that may be set. ``deny`` beats ``allow``. ``confine``: what holds for
    the process that runs it.
    """

    backend: ShellBackend = ShellBackend.DISABLED
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow_substitution: bool = False
    confine: Confine = Confine.POLICY


class Dialect(StrEnum):
    """The shape of the file: ours, or one agent's file as Pattern reads it."""

    GATEWRIGHT = "gatewright"
    PATTERN = "pattern"


@frozen
class Policy:
    """The whole policy. ``agents`` and ``tools`` keep the order of the file; keys are the ids and names.

    ``default`` is what ``[policy]`` says to a call that none of ``rules`` matches.
    """

    name: str | None = None
    description: str | None = None
    defaults: Defaults = field(default_factory=Defaults)
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent], hash=False)
    sources: tuple[Source, ...] = ()
    tools: Mapping[str, ToolSettings] = field(default_factory=dict[str, ToolSettings], hash=False)
    dialect: Dialect = Dialect.GATEWRIGHT
    default: Verdict = Verdict.ALLOW
    rules: tuple[PolicyRule, ...] = ()
    catalogs: tuple[Catalog, ...] = ()
    roots: Roots = field(default_factory=Roots)
    web: Web = field(default_factory=Web)
    shell: ShellSettings = field(default_factory=ShellSettings)
    endpoints: Endpoints = field(default_factory=Endpoints)
    compositions: tuple[Composition, ...] = ()
    memory: MemoryWeights = field(default_factory=MemoryWeights)
    closed: tuple[str, ...] = ()
    """Files and folders that no tool of any kind touches, as written: relative to the policy file, or ``~/...``."""
    written: Written | None = field(default=None, compare=False, repr=False)
    """The text that the one of this policy is an edit of, as somebody typed it or as it was before a save that was
    undone; None: what was last saved.
    """

    def __post_init__(self) -> None:
        _settle(self, "sources", "rules", "catalogs", "compositions", "closed")
        agents = cast("object", self.agents)
        if not isinstance(agents, Mapping):  # a program may give the agents alone
            _settle(self, "agents")
            found = cast("tuple[Agent, ...]", cast("object", self.agents))
            if not all(isinstance(agent, Agent) for agent in found):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError("`agents` of Policy takes agents, or agents by their ids")
            object.__setattr__(self, "agents", {agent.agent_id: agent for agent in found})

    @property
    def provides(self) -> frozenset[str]:
        """What ``[workspace]`` has for tools that need it: the names of its roots, ``shell``, and its endpoints."""
        shell = () if self.shell.backend is ShellBackend.DISABLED else (SHELL,)
        return frozenset((*self.roots.folders, *shell, *map(need_of, self.endpoints.targets)))

    @property
    def recipients(self) -> dict[str, tuple[str, ...]]:
        """For each target of messages whom one may go to, where that is limited."""
        return self.endpoints.recipients(self.agents)

    def source(self, source_id: str) -> Source | None:
        """The source with that id, or None."""
        return next((source for source in self.sources if source.source_id == source_id), None)

    def catalog(self, catalog_id: str) -> Catalog | None:
        """The catalog with that id, or None."""
        return next((catalog for catalog in self.catalogs if catalog.catalog_id == catalog_id), None)

    @property
    def file_sources(self) -> tuple[Source, ...]:
        """The sources of files, in file order."""
        return tuple([source for source in self.sources if source.kind is SourceType.FILE])

    @property
    def folder_sources(self) -> tuple[Source, ...]:
        """The sources and streams that have a folder, in file order."""
        return tuple([source for source in self.sources if source.kind is not SourceType.HOST])

    def sources_of(self, agent: Agent) -> tuple[Source, ...]:
        """The sources of files that the agent may use, in file order."""
        return tuple(
            [source for source in self.file_sources if agent.sources is None or source.source_id in agent.sources]
        )

    def streams_of(self, agent: Agent) -> tuple[Source, ...]:
        """The streams and the sources of programs that the agent may use, in file order."""
        streams = (source for source in self.sources if source.kind is not SourceType.FILE)
        return tuple(one for one in streams if agent.sources is None or one.source_id in agent.sources)

    def own_sources_of(self, agent: Agent) -> tuple[Source, ...]:
        """The sources of programs that the agent may use, in file order."""
        return tuple([source for source in self.streams_of(agent) if source.kind is SourceType.HOST])

    def places_of(self, agent: Agent) -> tuple[Source, ...]:
        """The sources in which calls of the agent may name places: those of files, then those of programs."""
        return (*self.sources_of(agent), *self.own_sources_of(agent))

    def is_same(self, other: Policy) -> bool:
        """Whether it says the same, with its agents in the same order."""
        return self is other or (self == other and list(self.agents) == list(other.agents))

    def with_agent(self, agent: Agent) -> Policy:
        """The policy with that agent put in, or replaced where it stands."""
        return replace(self, agents={**self.agents, agent.agent_id: agent})


@frozen
class Written:
    """A whole text of a policy file and the policy that it says."""

    text: str
    policy: Policy
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)
