"""The policy document as one immutable value.

It exceeds 450 lines because it holds all that a policy can say, table by table.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import cast

from gatewright.base.frozen import frozen
from gatewright.policy.capability import Capability
from gatewright.policy.composition import Composition
from gatewright.policy.rule import PolicyRule, ToolRule, new_identity
from gatewright.policy.verdict import (
    Endpoints,
    Mode,
    PathUse,
    Permission,
    SafetyTier,
    Verdict,
    Word,
    need_of,
    selector_of,
)

DEFAULT_MAX_OUTPUT_BYTES = 16_384
DEFAULT_MAX_FILE_BYTES = 1_048_576


@frozen
class Defaults:
    """``[defaults]`` for agents and tools. ``timeout_s`` None: each tool has its own.

    ``check_formats``: check arguments against the known `format`s of the schema that the model sees.
    """

    unlisted_tools: Verdict = Verdict.ALLOW
    new_tools: str = "hold"
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    timeout_s: float | None = None
    approvals: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict], hash=False)
    check_formats: bool = False


class Delegate(StrEnum):
    """The rights of the sub-agents that an agent names: their own, or of these only what it may do itself."""

    OWN = "own"
    INTERSECT = "intersect"


@frozen
class Agent:
    """``[agents.ID]``. ``tools`` and ``sources`` are complete lists, None if absent. ``sub_agents``: those that may
    have more rights than it when it starts them.

    A key of ``approvals`` is a tier, ``tool`` or ``tool.operation``. The mode *observe* notes denials and asks until
    ``observe_until_s`` (seconds since 1970) instead of enforcing them.
    """

    agent_id: str
    description: str = ""
    tools: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    approvals: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict], hash=False)
    user_id: str | None = None
    tool_rules: tuple[ToolRule, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    mode: Mode = Mode.ENFORCE
    observe_until_s: float | None = None
    sub_agents: tuple[str, ...] = ()
    delegate: Delegate = Delegate.OWN
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _make_tuples(self, "tools", "sources", "tool_rules", "capabilities", "sub_agents")


def _make_tuples(value: object, *names: str) -> None:
    """Turn other collections into tuples. Raises TypeError for one text where several belong."""
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
    """The kind of a source: files for agents, a stream of the changes below a folder, or a source that a host program
    adds under that id, with texts by key, a stream of its own, or both.
    """

    FILE = "file"
    FOLDER_CHANGES = "folder_changes"
    HOST = "host"


@frozen
class Source:
    """``[[sources]]``; ``base_path`` as written (relative to the policy file), "" for a program's source.

    ``required_tools`` bind only calls that go to this source. ``watch``: blocks follow changes from outside at once. A
    stream of changes uses only the levels, and leaves out paths of level none.
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
        """Every level that its rules or its default give."""
        return frozenset({self.default_permission, *(rule.permission for rule in self.permission_rules)})


class OutputCheck(StrEnum):
    """The ways to treat a result that misfits the tool's output schema."""

    STRICT = "strict"
    WARN = "warn"
    OFF = "off"


class Trust(StrEnum):
    """The author of a tool's results: somebody whom the operator trusts, or anybody outside."""

    OWN = "own"
    OUTSIDE = "outside"


@frozen
class ToolSettings:
    """``[tools.NAME]``: the operator's own settings for a tool. None: the tool decides.

    ``safety_tier`` applies to operations that ``operation_tiers`` lacks. ``operation_field``: the field of a foreign
    schema that selects operations, empty for none; ``operations``: its values, if the schema takes any text.
    ``extra_arguments``: the verdict on arguments that the schema does not name; None: denied on a tool with
    constraints. ``paths``: the arguments (``edits[].path``) that are paths on disk, and their use. ``output``: what
    happens to a result that misfits its schema. ``trust``: the author of its results.
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
    trust: Trust | None = None

    @property
    def declares(self) -> bool:
        """True if the settings name the field that selects operations, or the operations themselves."""
        return self.operation_field is not None or self.operations is not None


PINS = "catalogs"
"""The folder beside the policy file that holds the pins of catalogs."""


class CatalogType(StrEnum):
    """The runner of a catalog's tools: an MCP server, the program that loads the policy (``host``), or Gatewright.

    Gatewright runs the tools that a manifest defines: by an HTTP request, a process for each call, or a WASM module.
    """

    MCP = "mcp"
    HTTP = "http"
    SUBPROCESS = "subprocess"
    WASM = "wasm"
    HOST = "host"

    @property
    def is_pinned(self) -> bool:
        """True if people accept its tools one by one, after trusting its command or address."""
        return self is not CatalogType.HOST

    @property
    def has_manifest(self) -> bool:
        """True if a file defines its tools, rather than a server."""
        return self is not CatalogType.MCP


class Confine(Word):
    """``confine`` of a catalog or the shell: the kernel enforces the policy, or the process has all rights of the
    user.
    """

    POLICY = "policy"
    NONE = "none"


class PlaceUse(Word):
    """The use of a place by a process.

    snapshot: the process changes a private copy; the gate judges the changes and writes them back.
    """

    READ = "read"
    WRITE = "write"
    SNAPSHOT = "snapshot"


def is_folder_place(place: str) -> bool:
    """Tell whether a key of ``places`` is a path (`/...`, `./...`, `../...`, `C:/...`), not the id of a source."""
    drive = place[:1].isascii() and place[:1].isalpha() and place[1:3] in {":/", ":\\"}
    return drive or place in {".", ".."} or place.startswith(("/", "./", "../", "\\", ".\\", "..\\"))


@frozen
class Catalog:
    """``[[catalogs]]``: tools from outside. If it is ``trusted``, their own tiers count.

    Its tools get names like ``prefix.name``. ``manifest`` is the file that defines them if no server does, relative to
    the policy file. An MCP server is either a ``command`` with ``args``, started in ``cwd`` with the environment
    variables that ``env`` names, or a ``url`` with the headers of ``headers_env``, whose values come from the variables
    named there. The same keys describe a process for each call, or the base address of HTTP requests, which take query
    fields from ``query_env`` too. ``module`` is the WASM module that runs the tools. A command starts a process:
    ``confine`` says whether the kernel enforces the policy on it, ``places`` lists the sources (by id) and folders (as
    written) that it gets, and is None until somebody accepts them. ``mode`` is like an agent's, for all calls of the
    catalog's tools.
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
    mode: Mode = Mode.ENFORCE
    observe_until_s: float | None = None
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def file(self) -> str:
        """The file with its valid tools, relative to the policy file: the pin, else the manifest."""
        return f"{PINS}/{self.catalog_id}.json" if self.kind.is_pinned else self.manifest

    @property
    def files(self) -> tuple[str, ...]:
        """All files that define its tools, relative to the policy file."""
        return tuple(dict.fromkeys((self.file, *([self.manifest] if self.manifest else []))))

    @property
    def is_confined(self) -> bool:
        """True if its process runs confined by the kernel."""
        return self.command is not None and self.confine is Confine.POLICY

    @property
    def takes_places(self) -> bool:
        """True if its runner gets only given places of the disk, as a confined process or a module does."""
        return self.is_confined or bool(self.module)

    @property
    def place_folders(self) -> list[str]:
        """Those of its places that are folders, as written."""
        return [place for place in self.places or () if is_folder_place(place)]

    @property
    def waits_for_places(self) -> bool:
        """True until somebody accepts the places of its process: before that it does not start and has no tools."""
        return self.is_confined and self.places is None

    @property
    def runs(self) -> str:
        """The command, address or module that runs its tools; empty for a manifest alone."""
        return self.url or self.module or ("" if self.command is None else shlex.join((self.command, *self.args)))


ROOT_NAMES = ("shared", "tmp", "vault")
"""The roots that file tools know; a path without a root's name starts in the first."""


SHELL = "shell"
"""The need of tools that run shell commands."""


@frozen
class Roots:
    """``[workspace] roots``: folders as written (relative to the policy file); None for a root that is not set.

    Tools read and write below ``shared`` and ``tmp``; from ``vault`` they can only copy files.
    """

    shared: str | None = None
    tmp: str | None = None
    vault: str | None = None

    def folder(self, name: str) -> str | None:
        """The folder of the root with that name, or None."""
        return {"shared": self.shared, "tmp": self.tmp, "vault": self.vault}.get(name)

    @property
    def folders(self) -> Mapping[str, str]:
        """The folder of each root that is set, in the order of the names."""
        return {name: folder for name in ROOT_NAMES if (folder := self.folder(name)) is not None}


class SearchEngine(StrEnum):
    """The engines that can search the web."""

    DUCKDUCKGO = "duckduckgo"
    SEARXNG = "searxng"
    GOOGLE = "google"


@frozen
class SearchProvider:
    """One entry of ``search``: an engine, with its address unless it is the usual one.

    ``api_key_env`` and ``engine_id_env`` name the environment variables with Google's credentials.
    """

    engine: SearchEngine
    url: str | None = None
    api_key_env: str | None = None
    engine_id_env: str | None = None


@frozen
class Web:
    """``[workspace] web``: what the web tools can reach, and the search engines in the order to try them.

    ``allow_private``: arguments may name addresses of private networks and of this machine.
    """

    allow_private: bool = False
    search: tuple[SearchProvider, ...] = (SearchProvider(SearchEngine.DUCKDUCKGO),)


@frozen
class MemoryWeights:
    """``[workspace] memory``: the weights of meaning and words in the search for notes, which add up to 1."""

    vector: float = 0.7
    text: float = 0.3


@frozen
class Questions:
    """``[workspace] questions``: the times after which a question of a suspended call expires, and is due again.

    ``answer_by``: the addresses (``mailto:ADDRESS``, ``slack:VARIABLE``) that may answer by a link. ``link_base``: the
    URL where links begin.
    """

    wait_s: float = 7 * 86_400.0
    remind_s: float = 86_400.0
    answer_by: tuple[str, ...] = ()
    link_base: str | None = None


class ShellBackend(StrEnum):
    """The runner of shell commands: none, a new shell for each command, or one shell for each session."""

    DISABLED = "disabled"
    HOST = "host"
    SESSION = "session"


@frozen
class ShellSettings:
    """``[workspace] shell``: the commands that may start.

    ``allow``, ``ask`` and ``deny`` list programs, alone or with their first words (``*``: all except those that run
    other programs); ``allow`` also takes ``NAME=`` for a variable that a command may set. ``deny`` beats ``ask``, which
    beats ``allow``. ``confine``: the confinement of the process.
    """

    backend: ShellBackend = ShellBackend.DISABLED
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow_substitution: bool = False
    confine: Confine = Confine.POLICY
    ask: tuple[str, ...] = ()


class Dialect(StrEnum):
    """The dialect of the file: ours, or one agent's file as Pattern reads it."""

    GATEWRIGHT = "gatewright"
    PATTERN = "pattern"


@frozen
class Policy:
    """The whole policy. ``agents`` and ``tools`` keep the order of the file; keys are the ids and names.

    ``default`` is the verdict of ``[policy]`` on a call that matches none of ``rules``.
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
    questions: Questions = field(default_factory=Questions)
    closed: tuple[str, ...] = ()
    """Files and folders that no tool touches, as written: relative to the policy file, or ``~/...``."""
    written: Written | None = field(default=None, compare=False, repr=False)
    """The text that was edited to get the policy's: a typed text, or the text before a save that was undone.

    None means the last saved text.
    """

    def __post_init__(self) -> None:
        _make_tuples(self, "sources", "rules", "catalogs", "compositions", "closed")
        agents = cast("object", self.agents)
        if not isinstance(agents, Mapping):  # a program may pass a list of agents
            _make_tuples(self, "agents")
            found = cast("tuple[Agent, ...]", cast("object", self.agents))
            if not all(isinstance(agent, Agent) for agent in found):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError("`agents` of Policy takes agents, or agents by their ids")
            object.__setattr__(self, "agents", {agent.agent_id: agent for agent in found})

    @property
    def provides(self) -> frozenset[str]:
        """The needs of tools that ``[workspace]`` meets: names of roots, ``shell``, and its endpoints."""
        shell = () if self.shell.backend is ShellBackend.DISABLED else (SHELL,)
        return frozenset((*self.roots.folders, *shell, *map(need_of, self.endpoints.targets)))

    @property
    def recipients(self) -> dict[str, tuple[str, ...]]:
        """The permitted recipients of each message target that limits them."""
        return self.endpoints.recipients(self.agents)

    def source(self, source_id: str) -> Source | None:
        """The source with that id, or None."""
        return next((source for source in self.sources if source.source_id == source_id), None)

    def catalog(self, catalog_id: str) -> Catalog | None:
        """The catalog with that id, or None."""
        return next((catalog for catalog in self.catalogs if catalog.catalog_id == catalog_id), None)

    @property
    def selectors(self) -> tuple[str, ...]:
        """``catalog:ID`` for each catalog, in file order."""
        return tuple([selector_of(catalog.catalog_id) for catalog in self.catalogs])

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
        """The sources in which calls of the agent may name places: sources of files, then those of programs."""
        return (*self.sources_of(agent), *self.own_sources_of(agent))

    def is_same(self, other: Policy) -> bool:
        """True if both say the same, with agents in the same order."""
        return self is other or (self == other and list(self.agents) == list(other.agents))

    def with_agent(self, agent: Agent) -> Policy:
        """Replace an agent in its place, or append it."""
        return replace(self, agents={**self.agents, agent.agent_id: agent})


@frozen
class Written:
    """The whole text of a policy file, and the policy that it describes."""

    text: str
    policy: Policy
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)
