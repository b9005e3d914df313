"""``catalog places``: what a process or module gets, shown, proposed and accepted; and the option that names it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from gatewright.base.problem import near_hint
from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.policy.document import Catalog, PlaceUse
from gatewright.policy.policyedit import USE_WORDS, set_places
from gatewright.workspace import Workspace

PlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--place", metavar="PLACE=USE", help="a source or folder that its process gets: read, write or snapshot"
    ),
]
_USES = {str(use): use for use in PlaceUse}


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
            if was_trusted:  # by whoever accepts the folders outside now
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
    """The places that options name. Raises UsageProblem."""
    found: dict[str, PlaceUse] = {}
    for text in given:
        name, equals, written = text.rpartition("=")
        use = _USES.get(written)
        if not equals or use is None:
            raise UsageProblem(f"--place `{text}`: say PLACE=read, PLACE=write or PLACE=snapshot")
        if name in found:
            raise UsageProblem(f"--place names `{name}` twice")
        found[name] = use
    return found


def place_words(given: Mapping[str, PlaceUse]) -> str:
    """Places in words."""
    return ", ".join(f"`{place}` to {USE_WORDS[use]}" for place, use in given.items()) or "no place"


def runner_words(catalog: Catalog) -> str:
    """The process or module that gets the places of a catalog."""
    return f"the {'module' if catalog.module else 'process'} of `{catalog.catalog_id}`"


def places_json(given: Mapping[str, PlaceUse]) -> dict[str, str]:
    """The same for scripts."""
    return {place: str(use) for place, use in given.items()}


def _server(workspace: Workspace, catalog_id: str) -> Catalog:
    catalog = workspace.policy.catalog(catalog_id)
    if catalog is None:
        near = near_hint(catalog_id, [one.catalog_id for one in workspace.policy.catalogs], listed=True)
        raise UsageProblem(f"no catalog `{catalog_id}`{near}")
    if catalog.command is None and not catalog.module:
        raise UsageProblem(f"nothing is run here for catalog `{catalog_id}`: no process of its own, and no module")
    return catalog
