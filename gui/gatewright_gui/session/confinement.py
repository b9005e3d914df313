"""The reach of a process of its own, as the app tells it: the server of a catalog, or (None) shell commands."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from gatewright.workspace.api import (
    Agent,
    Catalog,
    CatalogType,
    Confine,
    Confinement,
    GatewrightError,
    Place,
    PlaceUse,
    ProcessBounds,
    RoomViews,
    ShellBackend,
    Tree,
    frozen,
    is_folder_place,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.operations import lists_tool

Tone = Literal["allow", "ask", "deny", "muted"]
_ICONS: dict[Tone, str] = {"allow": "shield-check", "ask": "shield-x", "deny": "ban", "muted": "info"}


@frozen
class Standing:
    """Tells whether it is confined. `can_unconfine`: a person may take that away, `can_confine`: bring it back."""

    tone: Tone
    words: str
    can_confine: bool = False
    can_unconfine: bool = False

    @property
    def icon(self) -> str:
        """The icon of its tone."""
        return _ICONS[self.tone]


def standing_of(document: Document, catalog_id: str | None, why_not: str = "") -> Standing:
    """Tell how what a server or a shell command does by itself is held, as the policy is edited now.

    `why_not`: why nothing can be confined on this system, or why a module cannot be given its places.
    """
    policy = document.policy
    if catalog_id is None:
        return _of_shell(policy.shell.backend, policy.shell.confine, why_not)
    catalog = policy.catalog(catalog_id)
    if catalog is not None and catalog.module:
        if why_not:
            return Standing("deny", tr("Not run: {why}.", why=why_not))
        told = tr("A module runs its tools: it gets the places of its catalog, and nothing else of this computer.")
        return Standing("allow", told)
    if catalog is None or catalog.command is None:
        where = catalog.url if catalog is not None else None
        away = tr("It runs elsewhere: calls go to {url}. Nothing of it runs on this computer.", url=where)
        return Standing("muted", away if where else tr("Another program runs its tools: nothing is started for it."))
    if not catalog.is_confined:
        told = tr(
            "Not confined: it may read and change every file that you may, your home folder and keys too, and reach"
            " every host."
        )
        return Standing("ask", told, can_confine=True)
    if catalog.waits_for_places:
        told = tr("Held: nobody said yet which folders it gets. Until then no agent sees its tools.")
        return Standing("deny", told, can_unconfine=True)
    if why_not:
        return Standing(
            "deny", tr("Not started, since nothing can be confined here: {why}.", why=why_not), can_unconfine=True
        )
    told = tr("Confined: it gets its places and nothing else of your files, and reaches no other host.")
    return Standing("allow", told, can_unconfine=True)


def _of_shell(backend: ShellBackend, confine: Confine, why_not: str) -> Standing:
    is_free = confine is Confine.NONE
    if backend is ShellBackend.DISABLED:
        return Standing("muted", tr("Shell commands are not run."), can_confine=is_free, can_unconfine=not is_free)
    if is_free:
        told = tr(
            "Not confined: what a command starts may read and change every file that you may, your home folder and keys"
            " too, and reach every host."
        )
        return Standing("ask", told, can_confine=True)
    if why_not:
        return Standing(
            "deny", tr("Not run, since nothing can be confined here: {why}.", why=why_not), can_unconfine=True
        )
    told = tr(
        "Confined: what a command starts gets what its agent is granted, and nothing else of your files or hosts."
    )
    return Standing("allow", told, can_unconfine=True)


USE_WORDS: Mapping[PlaceUse, str] = {
    PlaceUse.READ: mark("read"),
    PlaceUse.WRITE: mark("change"),
    PlaceUse.SNAPSHOT: mark("copy"),
}
_WIDER = (PlaceUse.READ, PlaceUse.SNAPSHOT, PlaceUse.WRITE)


@frozen
class RoomPlace:
    """A place of a process: a source by its id or a folder as written, what it may do there, where that stands.

    `agents`: for which of those that are asked about, where not for all.
    """

    written: str
    use: PlaceUse
    path: str
    agents: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The name to call it by in a list."""
        name = self.written if is_folder_place(self.written) else tr("source {source}", source=self.written)
        return tr("{place} (for {agents})", place=name, agents=", ".join(self.agents)) if self.agents else name

    @property
    def warning(self) -> str:
        """The warning about a place that is far too much; empty for any other."""
        home = os.path.realpath(Path.home())
        if self.path == "/":
            return tr(
                "{place} is the whole disk: your keys, passwords and every other project too.", place=self.written
            )
        if self.path == home or home.startswith(f"{self.path}/"):
            return tr(
                "{place} holds your home folder: your keys, passwords and every other project.", place=self.written
            )
        return ""


@dataclass(frozen=True)
class Room:
    """The part of the disk that exists for the server of a catalog, or for the shell commands of an agent."""

    name: str
    confinement: Confinement
    places: tuple[RoomPlace, ...]

    @cached_property
    def views(self) -> RoomViews:
        """The process's view of any path, by its name alone. Raises GatewrightError for rules that cannot hold."""
        return RoomViews(self.confinement)


def trial_room(document: Document, catalog: Catalog, places: Mapping[str, PlaceUse]) -> Room:
    """The room of a server as it would be with these places, whoever it serves."""
    rows = tuple(RoomPlace(written, use, place_path(document, written)) for written, use in places.items())
    held = next(iter(confinements(document, catalog.catalog_id, document.policy.agents).values()), None)
    shared = held if held is not None else _without_agent(document)
    return Room(catalog.catalog_id, replace(shared, places=_places(rows)), rows)


def room_of(document: Document, name: str, found: Mapping[str, Confinement]) -> Room:
    """The room of one agent, or of several together: what any of them gets, and for whom. `found`: at least one."""
    agents: dict[tuple[str, PlaceUse], list[str]] = {}
    for agent_id, held in found.items():
        for place in held.places:
            agents.setdefault((place.path, place.use), []).append(agent_id)
    sources = {place_path(document, source.source_id): source.source_id for source in document.policy.file_sources}
    rows = tuple(
        RoomPlace(sources.get(path, path), use, path, () if len(whose) == len(found) else tuple(whose))
        for (path, use), whose in agents.items()
    )
    return Room(name, replace(next(iter(found.values())), places=_places(rows)), rows)


def confinements(document: Document, catalog_id: str | None, agents: Iterable[str]) -> dict[str, Confinement]:
    """The confinements of a server, or (None) of shell commands, by agent; empty where nothing is confined."""
    found: dict[str, Confinement] = {}
    for agent_id in agents:
        try:
            held = document.workspace.confinement(agent_id, catalog_id)
        except GatewrightError:  # it is gone meanwhile
            continue
        if held is not None:
            found[agent_id] = held
    return found


def why_not_run(document: Document, catalog_id: str | None, agents: Iterable[str]) -> str:
    """Why it is not run here: nothing can be confined on this system, or a module cannot be given its places. Takes
    its time, as it looks at the disk; empty where nothing is in the way.
    """
    workspace = document.workspace
    catalog = workspace.policy.catalog(catalog_id) if catalog_id is not None else None
    if catalog is None or not catalog.module:
        return workspace.why_not_confined()
    with suppress(GatewrightError):  # it is gone meanwhile
        return next(filter(None, (workspace.why_not_given(one, catalog.catalog_id) for one in agents)), "")
    return ""


def agents_of(document: Document, catalog_id: str | None) -> tuple[str, ...]:
    """The agents that have a tool of the catalog, or (None) `shell_exec`; without any all of them."""
    tools = [
        facts
        for facts in document.catalog
        if (facts.origin == catalog_id if catalog_id is not None else facts.name == "shell_exec")
    ]

    def has_one(agent: Agent) -> bool:
        return any(lists_tool(agent.tools, facts) for facts in tools)

    having = tuple(agent.agent_id for agent in document.agents if has_one(agent))
    return having or tuple(document.policy.agents)


def place_path(document: Document, written: str) -> str:
    """The path where a place stands, without links: the folder of a source, or a folder from that of the policy on."""
    source = None if is_folder_place(written) else document.policy.source(written)
    return os.path.realpath(document.workspace.folder / (written if source is None else source.base_path))


def place_name(document: Document, path: Path) -> str:
    """The name of a folder as a place: the source that it is, else from the policy's folder on where it is in it."""
    real = os.path.realpath(path)
    for source in document.policy.file_sources:
        if place_path(document, source.source_id) == real:
            return source.source_id
    top = os.path.realpath(document.workspace.folder)
    if real == top:
        return "."
    return f"./{os.path.relpath(real, top)}" if real.startswith(f"{top}/") else real


def _without_agent(document: Document) -> Confinement:
    policy, workspace = document.policy, document.workspace
    trees = [
        Tree(place_path(document, source.source_id), source.default_permission, source.permission_rules)
        for source in policy.file_sources
    ]
    closed = (str(workspace.state_folder), str(workspace.key_folder))
    return Confinement(trees=tuple(trees), closed=closed, fixed=(str(workspace.policy_path),))


def _places(rows: Sequence[RoomPlace]) -> tuple[Place, ...]:
    """Each path once; of two uses of one the wider."""
    found: dict[str, PlaceUse] = {}
    for row in rows:
        found[row.path] = max(found.get(row.path, row.use), row.use, key=_WIDER.index)
    return tuple(Place(path, use) for path, use in sorted(found.items()))


# what else it gets


@frozen
class Fact:
    """One line of what a process gets beside files. `name` is empty where it goes on with that of the line above."""

    name: str
    value: str


def facts_of(found: Mapping[str, Confinement], catalog: Catalog | None = None) -> tuple[Fact, ...]:
    """Hosts, programs, names of variables and bounds; what not all of several agents get is said with who does.

    `catalog`: whose tools it runs; None for shell commands.
    """
    held = tuple(found.values())
    is_module = catalog is not None and bool(catalog.module)
    is_new_each_time = catalog is not None and catalog.kind is not CatalogType.MCP
    if not held:
        return ()
    hosts = _values_by_agent(found, lambda one: one.hosts)
    hosts = [tr("every host that is not private") if host == "*" else host for host in hosts]
    if hosts and any(one.allow_private for one in held):
        hosts.append(tr("private addresses too, such as this computer"))
    windows = {place.path for one in held for place in one.windows}
    told: list[tuple[str, list[str]]] = [
        (tr("Reaches"), hosts or [tr("no host")]),
        (
            tr("Runs"),
            [tr("no program: the module runs within this one")]
            if is_module
            else [tr("the programs of the system"), *_values_by_agent(found, lambda one: one.programs)],
        ),
        (tr("Variables"), _values_by_agent(found, lambda one: tuple(one.environment)) or [tr("none of yours")]),
        (
            tr("Bounds"),
            [tr("of each call, by the definition of its tool and the grants of its agent")]
            if is_new_each_time
            else _bounds(held[0].bounds),
        ),
        (tr("Begins in"), _values_by_agent(found, lambda one: (one.folder,))),
        (tr("Never sees"), _values_by_agent(found, lambda one: one.closed)),
        (tr("Never changes"), _values_by_agent(found, lambda one: one.fixed)),
        (
            tr("Sees for a moment"),
            [tr("a hidden name that appears anew in {folder}", folder=one) for one in sorted(windows)],
        ),
    ]
    return tuple(Fact(name if not at else "", value) for name, values in told for at, value in enumerate(values))


def _values_by_agent(found: Mapping[str, Confinement], get: Callable[[Confinement], Sequence[str]]) -> list[str]:
    whose: dict[str, list[str]] = {}
    for agent_id, held in found.items():
        for value in get(held):
            whose.setdefault(value, []).append(agent_id)
    return [
        value if len(agents) == len(found) else tr("{place} (for {agents})", place=value, agents=", ".join(agents))
        for value, agents in whose.items()
    ]


def _bounds(bounds: ProcessBounds) -> list[str]:
    told = [
        tr("{count} s of a processor", count=f"{bounds.cpu_s:g}") if bounds.cpu_s is not None else "",
        tr("{size} MiB of memory", size=f"{bounds.memory_bytes / 2**20:,.0f}")
        if bounds.memory_bytes is not None
        else "",
        counted(bounds.processes, "process", "processes") if bounds.processes is not None else "",
        counted(bounds.files, "open file", "open files") if bounds.files is not None else "",
        tr("{size} MiB in a file", size=f"{bounds.file_bytes / 2**20:,.0f}") if bounds.file_bytes is not None else "",
    ]
    return [", ".join(filter(None, told))] if any(told) else [tr("none")]
