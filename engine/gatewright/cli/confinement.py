"""``confinement``: what exists for the processes that an agent's calls start, as the kernel is to hold it."""

from __future__ import annotations

from typing import Annotated

import typer

from gatewright.adapters.seatbelt import seatbelt_profile
from gatewright.base.frozen import frozen
from gatewright.base.problem import near_hint
from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import AgentOption, JsonOption, PolicyArgument, StateOption, require_agent
from gatewright.cli.output import print_json, print_line
from gatewright.policy.document import CatalogType, PlaceUse, ShellBackend
from gatewright.policy.scope import covers
from gatewright.policy.target import Confinement, Place, ProcessBounds, Tree, View, view_of
from gatewright.sources.roommount import RoomPlan
from gatewright.workspace import Workspace

_USES = {PlaceUse.READ: "to read", PlaceUse.WRITE: "to change", PlaceUse.SNAPSHOT: "to change in a copy"}
_SEEN = {View.ABSENT: "is not there", View.READ: "to read", View.WRITE: "to change and delete"}
_WINDOW = "a name that its levels close is hidden once it appears, and seen for that moment"
_UNTRUSTED = "a place outside the workspace is not trusted"
_TRUST = "`gatewright check POLICY --trust` trusts it, `gatewright catalog places` gives the server others"
_RUNS = {CatalogType.MCP: "server", CatalogType.SUBPROCESS: "command of", CatalogType.WASM: "module of"}
_EACH_CALL = "of each call, what the definition of its tool and the grants of the agent say"
_BEYOND = (
    "The kernel holds this. Rules, conditions and approvals are held by reading the call: what a program then does "
    "within its places is not asked about."
)


@frozen
class _Process:
    """Shell commands, or what runs the tools of a catalog, and why nothing holds for it; ``held``: why it does not run.

    ``untrusted``: the places outside that nobody trusted, as written. ``kind``: of its catalog, if any.
    """

    name: str
    held: str
    confinement: Confinement | None
    untrusted: tuple[str, ...] = ()
    kind: CatalogType | None = None

    @property
    def runs_each_call(self) -> bool:
        """True where it is started anew for each call, within bounds that depend on the tool."""
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

    def told(name: str, values: list[str], otherwise: str = "") -> None:
        for index, value in enumerate(values or [otherwise] if values or otherwise else []):
            lines.append(f"  {name if index == 0 else '':<11}{value}")

    told("place", [line for place in held.places for line in _place_lines(held, place)], "none")
    told("untrusted", [f"{place}  outside the workspace: {_TRUST}" for place in process.untrusted])
    told("never", list(held.closed))
    told("unchanged", list(held.fixed))
    is_module = process.kind is CatalogType.WASM
    told("programs", ["none"] if is_module else ["the system's", *held.programs])
    told("hosts", [*held.hosts, *(["private addresses too"] if held.hosts and held.allow_private else [])], "none")
    told("variables", list(held.environment), "none of yours")
    told("bounds", [_EACH_CALL if process.runs_each_call else _bounds(held.bounds)])
    told("begins in", [held.folder])
    return [*lines, ""]


def _place_lines(held: Confinement, place: Place) -> list[str]:
    """The place, and what levels make of what is in it."""
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
    """The views that a process has in a tree, by pattern; the first one that matches counts."""
    use = PlaceUse.READ if place.use is PlaceUse.READ else PlaceUse.WRITE
    rows = [(rule.pattern, rule.permission) for rule in tree.rules]
    return [(pattern, view_of(level, use)) for pattern, level in (*rows, ("every other path", tree.default))]


def _bounds(bounds: ProcessBounds) -> str:
    told = [
        f"{bounds.cpu_s:g} s of a processor" if bounds.cpu_s is not None else "",
        f"{bounds.memory_bytes:,} bytes of memory" if bounds.memory_bytes is not None else "",
        f"{bounds.processes:,} processes" if bounds.processes is not None else "",
        f"{bounds.files:,} open files" if bounds.files is not None else "",
        f"{bounds.file_bytes:,} bytes in a file" if bounds.file_bytes is not None else "",
    ]
    return ", ".join(filter(None, told)) or "none"


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
