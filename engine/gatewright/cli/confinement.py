"""``confinement``, ``catalog places`` and ``run``: shows what a process may reach, and runs a program within such
limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.errors import ToolFailure, near_hint
from gatewright.base.frozen import frozen
from gatewright.cli.output import (
    AgentOption,
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    require_agent,
)
from gatewright.policy.document import Catalog, CatalogType, PlaceUse, ShellBackend
from gatewright.policy.policyedit import USE_WORDS, set_places
from gatewright.policy.target import Confinement, Place, ProcessBounds, Tree, View, view_of
from gatewright.policy.verdict import covers
from gatewright.sources.roomplan import seatbelt_profile
from gatewright.sources.roomview import RoomPlan
from gatewright.workspace import Workspace

PlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--place", metavar="PLACE=USE", help="a source or folder that its process gets: read, write or snapshot"
    ),
]
_WRITTEN_USES = {str(use): use for use in PlaceUse}


def places(
    policy: PolicyArgument,
    catalog_id: Annotated[str, typer.Argument(metavar="ID", help="the catalog")],
    accept: Annotated[bool, typer.Option("--accept", help="write what is proposed, or each --place")] = False,
    place: PlaceOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Show which sources and folders the process or module of a catalog gets, or would by its command; --accept writes.

    Its tools are held until its places were accepted once. What --place does not name it does not get; a server that
    needs none gets --accept alone, or no --place.
    """
    if place and not accept:
        raise UsageProblem("--place goes with --accept")
    with Workspace.open(policy, state=state) as workspace:
        catalog = _server(workspace, catalog_id)
        proposed = workspace.proposed_places(catalog) if place is None else places_of(place)
        if accept:
            was_trusted = workspace.trusts_server(catalog_id)
            workspace.apply(set_places(workspace.policy, catalog_id, proposed))
            workspace.save()
            if was_trusted:  # together with the folders outside, which this person now accepts
                workspace.trust_server(catalog_id)
            catalog = _server(workspace, catalog_id)
        is_trusted = workspace.trusts_server(catalog_id)
    held, who = catalog.places, runner_words(catalog)
    if json:
        print_json(
            {
                "catalog": catalog_id,
                "confined": catalog.takes_places,
                "places": None if held is None else places_json(held),
                "proposed": places_json(proposed),
                "trusted": is_trusted,
            }
        )
        return
    if held is not None:
        print_line(f"{who} gets {place_words(held)}")
    elif catalog.module:
        print_line(f"{who} gets no place")
    if catalog.command is not None and held != proposed and not accept:
        print_line(f"its command names {place_words(proposed)}: --accept gives it that")
    if not catalog.takes_places:
        print_error('gatewright: `confine = "none"`: it may do all that you may, whatever its places')


def places_of(given: Iterable[str]) -> dict[str, PlaceUse]:
    """Read the places that options name. Raises UsageProblem."""
    found: dict[str, PlaceUse] = {}
    for text in given:
        name, equals, written = text.rpartition("=")
        use = _WRITTEN_USES.get(written)
        if not equals or use is None:
            raise UsageProblem(f"--place `{text}`: say PLACE=read, PLACE=write or PLACE=snapshot")
        if name in found:
            raise UsageProblem(f"--place names `{name}` twice")
        found[name] = use
    return found


def place_words(given: Mapping[str, PlaceUse]) -> str:
    """Write places as words."""
    return ", ".join(f"`{place}` to {USE_WORDS[use]}" for place, use in given.items()) or "no place"


def runner_words(catalog: Catalog) -> str:
    """Name the process or module that gets the places of a catalog."""
    return f"the {'module' if catalog.module else 'process'} of `{catalog.catalog_id}`"


def places_json(given: Mapping[str, PlaceUse]) -> dict[str, str]:
    """Return the places for scripts."""
    return {place: str(use) for place, use in given.items()}


def _server(workspace: Workspace, catalog_id: str) -> Catalog:
    catalog = workspace.policy.catalog(catalog_id)
    if catalog is None:
        near = near_hint(catalog_id, [one.catalog_id for one in workspace.policy.catalogs], listed=True)
        raise UsageProblem(f"no catalog `{catalog_id}`{near}")
    if catalog.command is None and not catalog.module:
        raise UsageProblem(f"nothing is run here for catalog `{catalog_id}`: no process of its own, and no module")
    return catalog


_USES = {PlaceUse.READ: "to read", PlaceUse.WRITE: "to change", PlaceUse.SNAPSHOT: "to change in a copy"}
_SEEN = {View.ABSENT: "is not there", View.READ: "to read", View.WRITE: "to change and delete"}
_WINDOW = "a name that its levels close is hidden once it appears, and seen for that moment"
_UNTRUSTED = "a place outside the workspace is not trusted"
_TRUST = "`gatewright check POLICY --trust` trusts it, `gatewright catalog places` gives the server others"
_RUNS = {CatalogType.MCP: "server", CatalogType.SUBPROCESS: "command of", CatalogType.WASM: "module of"}
_EACH_CALL = "of each call, what the definition of its tool and the grants of the agent say"
_BEYOND = (
    "The kernel enforces this. Rules, conditions and approvals only read the call: what a program then does "
    "within its places is not asked about."
)


@frozen
class _Process:
    """Shell commands, or what runs the tools of a catalog, and why it is not confined; ``held``: why it does not run.

    ``untrusted``: the places outside that nobody trusted, as written. ``kind``: of its catalog, if any.
    """

    name: str
    held: str
    confinement: Confinement | None
    untrusted: tuple[str, ...] = ()
    kind: CatalogType | None = None

    @property
    def runs_each_call(self) -> bool:
        """True if each call starts it anew, within limits that depend on the tool."""
        return self.kind in {CatalogType.SUBPROCESS, CatalogType.WASM}


def confinement(
    policy: PolicyArgument,
    agent: AgentOption,
    catalog: Annotated[
        str | None, typer.Option("--catalog", metavar="ID", help="what runs the tools of this catalog alone")
    ] = None,
    seatbelt: Annotated[
        bool, typer.Option("--seatbelt", help="as profiles for `sandbox-exec -p` of macOS, which nobody tried yet")
    ] = False,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print what shell commands, servers and the tools of a command or a module may read, change, run and connect to
    when they work for an agent.

    Nothing is started.
    """
    with Workspace.open(policy, state=state) as workspace:
        agent_id = require_agent(workspace, agent)
        found = _processes(workspace, agent_id, catalog)
        why_not = workspace.why_not_confined()
    if json:
        rows = [_json(one) for one in found]
        print_json({"agent": agent_id, "available": not why_not, "why_not": why_not, "processes": rows})
        return
    if seatbelt:
        for one in found:
            is_module = one.kind is CatalogType.WASM
            how = ": a module is no process" if is_module else "" if one.confinement is not None else ": not confined"
            print_line(f"; {one.name}{how}")
            if one.confinement is not None and not is_module:
                for line in seatbelt_profile(one.confinement, RoomPlan()).splitlines():
                    print_line(line)
        return
    for one in found:
        for line in _lines(one):
            print_line(line)
    if not found:
        print_line(f"no process of its own works for agent `{agent_id}`")
    elif any(one.confinement is not None and one.kind is not CatalogType.WASM for one in found):
        print_line(_BEYOND)
        if why_not:
            print_line(f"This cannot be had here, so none of it is started: {why_not}")


def _processes(workspace: Workspace, agent_id: str, catalog_id: str | None) -> list[_Process]:
    policy, found = workspace.policy, list[_Process]()
    if catalog_id is None and policy.shell.backend is not ShellBackend.DISABLED:
        found.append(_Process("shell commands", "", workspace.confinement(agent_id)))
    for one in policy.catalogs:
        if catalog_id in {None, one.catalog_id} and (one.command is not None or one.module):
            held = "its places were not accepted yet" if one.waits_for_places else ""
            untrusted = workspace.untrusted_places(one.catalog_id) if one.takes_places else ()
            held = held or (_UNTRUSTED if untrusted else "")
            held = held or workspace.why_not_given(agent_id, one.catalog_id)
            confinement = workspace.confinement(agent_id, one.catalog_id)
            name = f"{_RUNS[one.kind]} {one.catalog_id}"
            found.append(_Process(name, held, confinement, untrusted, one.kind))
    if catalog_id is not None and not found:
        if policy.catalog(catalog_id) is None:
            near = near_hint(catalog_id, [one.catalog_id for one in policy.catalogs], listed=True)
            raise UsageProblem(f"no catalog `{catalog_id}`{near}")
        raise UsageProblem(f"nothing is run here for catalog `{catalog_id}`: no process of its own, and no module")
    return found


def _lines(process: _Process) -> list[str]:
    held = process.confinement
    if held is None:
        return [f'{process.name}: not confined, `confine = "none"`: it may do all that you may', ""]
    lines = [f"{process.name}:" + (f" held, since {process.held}" if process.held else "")]

    def describe(name: str, values: list[str], otherwise: str = "") -> None:
        for index, value in enumerate(values or [otherwise] if values or otherwise else []):
            lines.append(f"  {name if index == 0 else '':<11}{value}")

    describe("place", [line for place in held.places for line in _place_lines(held, place)], "none")
    describe("untrusted", [f"{place}  outside the workspace: {_TRUST}" for place in process.untrusted])
    describe("never", list(held.closed))
    describe("unchanged", list(held.fixed))
    is_module = process.kind is CatalogType.WASM
    describe("programs", ["none"] if is_module else ["the system's", *held.programs])
    describe("hosts", [*held.hosts, *(["private addresses too"] if held.hosts and held.allow_private else [])], "none")
    describe("variables", list(held.environment), "none of yours")
    describe("bounds", [_EACH_CALL if process.runs_each_call else _bounds(held.bounds)])
    describe("begins in", [held.folder])
    return [*lines, ""]


def _place_lines(held: Confinement, place: Place) -> list[str]:
    """Describe the place, and the effect of levels on its content."""
    lines = [f"{place.path}  {_USES[place.use]}"]
    for tree in _trees_over(held, place):
        lines += [] if tree.base == place.path else [f"  by the levels of {tree.base}:"]
        lines += [f"  {pattern}  {_SEEN[view]}" for pattern, view in _views(tree, place)]
    if place in held.windows:
        lines.append(f"  {_WINDOW}")
    return lines


def _trees_over(held: Confinement, place: Place) -> list[Tree]:
    return [tree for tree in held.trees if covers(tree.base, place.path) or covers(place.path, tree.base)]


def _views(tree: Tree, place: Place) -> list[tuple[str, View]]:
    """Return what a process sees in a tree, by pattern; the first match counts."""
    use = PlaceUse.READ if place.use is PlaceUse.READ else PlaceUse.WRITE
    rows = [(rule.pattern, rule.permission) for rule in tree.rules]
    return [(pattern, view_of(level, use)) for pattern, level in (*rows, ("every other path", tree.default))]


def _bounds(bounds: ProcessBounds) -> str:
    describe = [
        f"{bounds.cpu_s:g} s of a processor" if bounds.cpu_s is not None else "",
        f"{bounds.memory_bytes:,} bytes of memory" if bounds.memory_bytes is not None else "",
        f"{bounds.processes:,} processes" if bounds.processes is not None else "",
        f"{bounds.files:,} open files" if bounds.files is not None else "",
        f"{bounds.file_bytes:,} bytes in a file" if bounds.file_bytes is not None else "",
    ]
    return ", ".join(filter(None, describe)) or "none"


def _json(process: _Process) -> dict[str, object]:
    held = process.confinement
    if held is None:
        return {"process": process.name, "confined": False}
    return {
        "process": process.name,
        "confined": True,
        "held": process.held or None,
        "untrusted": list(process.untrusted),
        "places": [
            {
                "path": place.path,
                "use": str(place.use),
                "window": place in held.windows,
                "levels": [
                    {"base": tree.base, "pattern": pattern, "view": str(view)}
                    for tree in _trees_over(held, place)
                    for pattern, view in _views(tree, place)
                ],
            }
            for place in held.places
        ],
        "closed": list(held.closed),
        "fixed": list(held.fixed),
        "system_programs": process.kind is not CatalogType.WASM,
        "programs": list(held.programs),
        "hosts": list(held.hosts),
        "allow_private": held.allow_private,
        "variables": list(held.environment),
        "each_call": process.runs_each_call,
        "bounds": {
            "cpu_s": held.bounds.cpu_s,
            "memory_bytes": held.bounds.memory_bytes,
            "processes": held.bounds.processes,
            "files": held.bounds.files,
            "file_bytes": held.bounds.file_bytes,
        },
        "folder": held.folder,
    }


def run(
    policy: PolicyArgument,
    agent: AgentOption,
    words: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="what is run, from this folder")],
    place: PlaceOption = None,
    state: StateOption = None,
) -> None:
    """Run a program that sees and reaches no more than shell commands of an agent, and --place, whatever it does.

    It gets the root `shared` and what FsRead and FsWrite grant, with the levels of the sources, and the hosts of
    NetRead and NetWrite. After its end its changes in a place given as `snapshot` are written back, as far as levels
    permit that without asking; a list says which were. Its exit code is the program's.
    """
    given = {} if place is None else places_of(place)
    with Workspace.open(policy, state=state) as workspace:
        agent_id = require_agent(workspace, agent)
        try:
            code = asyncio.run(workspace.run_program(agent_id, words, Path.cwd(), given, _tell))
        except ToolFailure as failure:
            print_error(f"gatewright: `{words[0]}` was not started: {failure}: {failure.detail}".rstrip(": "))
            raise typer.Exit(Exit.DENIED) from None
    raise typer.Exit(code)


def _tell(words: str) -> None:
    print_error(f"gatewright: {words}")
