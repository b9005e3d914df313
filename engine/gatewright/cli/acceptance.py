"""``catalog list`` and ``accept``: the catalogs of a policy as they stand, and tools of MCP servers accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.frozen import frozen
from gatewright.base.plural import plural
from gatewright.base.problem import near_hint
from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, user_name
from gatewright.cli.output import print_json, print_line, print_passage
from gatewright.policy.document import Catalog
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.pin import Acceptance, Pin
from gatewright.workspace import Workspace
from gatewright.workspace.pins import CatalogState, Waiting, text_difference, waiting

_TIERS = {str(tier).replace("_", ""): tier for tier in SafetyTier}


def list_(policy: PolicyArgument, json: JsonOption = False, state: StateOption = None) -> None:
    """Print each catalog: what it is, whether its server is trusted, which of its tools are held and why."""
    with Workspace.open(policy, state=state) as workspace:
        states = workspace.catalog_states()
    if json:
        print_json([_state_json(one) for one in states])
        return
    for one in states:
        catalog, pin = one.catalog, one.pin
        trust = "" if one.is_trusted is None else ", trusted" if one.is_trusted else ", not trusted"
        print_line(f"{catalog.catalog_id}  {catalog.kind}{trust}: {catalog.runs or catalog.manifest}")
        open_count = len(one.tool_names) - len(one.held)
        drifted: list[str] = []
        if pin is not None:
            rows = (("new", pin.drift.new), ("changed", pin.drift.changed), ("vanished", pin.drift.vanished))
            drifted = [f"{len(names):,} {what} ({', '.join(names)})" for what, names in rows if names]
            drifted += ["other instructions"] if pin.drift.instructions else []
        drift = ": " + ", ".join(drifted) if drifted else ""
        print_line(f"  {plural(open_count, 'tool')}, {len(one.held):,} held{drift}")
        if pin is not None:
            server = f"{pin.listing.name} {pin.listing.version}".strip()
            print_line(f"  digest {pin.digest}" + (f", server {server}" if server else ""))
        elif one.is_trusted is not None:
            print_line("  its tools were never imported")
    if not states:
        print_line("the policy has no catalogs")


def accept(
    policy: PolicyArgument,
    catalog_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="the catalog; none: all of them")] = None,
    names: Annotated[list[str] | None, typer.Argument(metavar="[TOOL]...", help="the tools; none: only show")] = None,
    all_: Annotated[bool, typer.Option("--all", help="all that waits, the server's instructions too")] = False,
    tiers: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="TOOL[.OPERATION]=TIER", help="read_only, side_effecting or privileged"),
    ] = None,
    no_capabilities: Annotated[
        bool, typer.Option("--no-capabilities", help="new tools need no capability, whatever they touch")
    ] = False,
    instructions: Annotated[bool, typer.Option("--instructions", help="the server's instructions too")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="of new tools too all that they say")] = False,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Show what of a server's tools waits to be accepted, with what changed; accept those that are named, or --all."""
    if catalog_id is None and (tiers or instructions):
        raise UsageProblem("say of which catalog: --tier and --instructions go with an ID")
    with Workspace.open(policy, state=state) as workspace:
        pinned = (state.catalog.catalog_id for state in workspace.catalog_states() if state.pin is not None)
        chosen = pinned if catalog_id is None else (catalog_id,)
        asked = _Asked(all_, tuple(names or ()), tuple(tiers or ()), instructions or all_, not no_capabilities)
        found = [_accept_one(workspace, policy, one, asked) for one in chosen]
    if json:
        rows = [_accept_json(one, rows, before, after) for one, rows, before, after in found]
        print_json(rows if catalog_id is None else rows[0])
        return
    for one, rows, before, after in found:
        _print_accept(one, rows, before, after, all_=all_, acts=asked.acts, verbose=verbose)
    if not found:
        print_line("the tools of no server were ever imported")


@frozen
class _Asked:
    """What the options of ``accept`` ask for, of each catalog."""

    everything: bool
    names: tuple[str, ...]
    tiers: tuple[str, ...]
    instructions: bool
    needs_capabilities: bool

    @property
    def acts(self) -> bool:
        """Whether anything is accepted, not only shown."""
        return bool(self.everything or self.names or self.tiers or self.instructions)


def _accept_one(
    workspace: Workspace, policy: Path, catalog_id: str, asked: _Asked
) -> tuple[str, tuple[Waiting, ...], Pin, Pin]:
    """The id, what waited, the pin before and after."""
    pin, catalog = workspace.pin(catalog_id), workspace.policy.catalog(catalog_id)
    if pin is None or catalog is None:
        hint = f"`gatewright catalog import {policy} --id {catalog_id}` asks its server"
        raise UsageProblem(f"the tools of catalog `{catalog_id}` were never imported: {hint}")
    rows = waiting(pin, trusted=catalog.trusted, needs_capabilities=asked.needs_capabilities)
    names = None if asked.everything else tuple(_listed_name(name, catalog, pin) for name in asked.names)
    given = dict(_tier(text, catalog, pin) for text in asked.tiers)
    if not asked.acts:
        return catalog_id, rows, pin, pin
    after = workspace.accept_tools(
        catalog_id,
        names,
        tiers=given,
        needs_capabilities=asked.needs_capabilities,
        instructions=asked.instructions,
        who=user_name(),
    )
    return catalog_id, rows, pin, after


def _listed_name(name: str, catalog: Catalog, pin: Pin) -> str:
    """The server's name of a tool, also where it is given as the policy names it."""
    known = {*pin.listing.definitions, *pin.accepted}
    bare = name.removeprefix(f"{catalog.prefix or catalog.catalog_id}.")
    found = next((one for one in (name, bare) if one in known), None)
    if found is None:
        near = near_hint(bare, sorted(known))
        raise UsageProblem(f"the server of catalog `{catalog.catalog_id}` lists no tool `{name}`{near}")
    return found


def _tier(text: str, catalog: Catalog, pin: Pin) -> tuple[tuple[str, str], SafetyTier]:
    """``TOOL[.OPERATION]=TIER``; of names with dots the longest one that is there counts."""
    whole, equals, written = text.rpartition("=")
    tier = _TIERS.get(written.replace("_", "").casefold())
    if not equals or tier is None:
        options = ", ".join(f"`{one}`" for one in SafetyTier)
        raise UsageProblem(f"--tier `{text}`: say TOOL=TIER or TOOL.OPERATION=TIER, the tier one of {options}")
    known = {*pin.listing.definitions, *pin.accepted}
    for start in dict.fromkeys((whole, whole.removeprefix(f"{catalog.prefix or catalog.catalog_id}."))):
        if start in known:
            return (start, ""), tier
        fitting = [name for name in known if start.startswith(f"{name}.")]
        if fitting:
            name = max(fitting, key=len)
            return (name, start[len(name) + 1 :]), tier
    return (_listed_name(whole, catalog, pin), ""), tier


def _print_accept(
    catalog_id: str, rows: tuple[Waiting, ...], before: Pin, after: Pin, *, all_: bool, acts: bool, verbose: bool
) -> None:
    told = [row for row in rows if not acts or after.accepted.get(row.name) != before.accepted.get(row.name)]
    for row in told:
        counts_as = after.accepted.get(row.name) if acts else row.after
        if verbose or row.change != "new" or counts_as is None:
            _print_waiting(row, counts_as)
        else:
            print_line(f"new {row.name}  {_in_short(counts_as)}")
    if before.instructions != before.listing.instructions and (not acts or after.instructions != before.instructions):
        print_line("instructions of the server")
        _print_lines(text_difference(before.instructions, before.listing.instructions))
    left = len(after.drift.names)
    if acts:
        changed = sum(before.accepted.get(name) != row for name, row in after.accepted.items())
        gone = sum(name not in after.accepted for name in before.accepted)
        wait = "1 waits" if left == 1 else f"{left:,} wait"
        print_line(
            f"accepted {plural(changed, 'tool')}, forgot {plural(gone, 'tool')}; of catalog `{catalog_id}` {wait}"
        )
        if all_ and after.drift.vanished:
            print_line(f"vanished, and the policy still names them: {', '.join(after.drift.vanished)}")
    elif rows or after.drift.instructions:
        wait = "1 tool waits" if left == 1 else f"{left:,} tools wait"
        print_line(f"{wait}: name what to accept, or say --all; --tier TOOL=TIER takes another tier than proposed")
    else:
        print_line(f"nothing of catalog `{catalog_id}` waits to be accepted")


def _print_waiting(row: Waiting, counts_as: Acceptance | None) -> None:
    print_line(f"{row.change} {row.name}")
    if counts_as is not None:
        print_passage(f"  counts as {counts_as.tier}: ", row.why)
        for operation, tier in counts_as.operation_tiers.items():
            print_line(f"    {operation}: {tier}")
        if counts_as.side_effects:
            print_line(f"  touches {', '.join(sorted(counts_as.side_effects))}")
        if counts_as.capabilities:
            print_line(f"  needs {', '.join(sorted(counts_as.capabilities))}: agents without it do not see the tool")
    if row.change == "new":
        print_passage("  ", row.description)
    else:
        _print_lines(row.difference)


def _in_short(counts_as: Acceptance) -> str:
    """The tier, the operations by their tiers where these differ, what it touches."""
    by_tier: dict[str, list[str]] = {}
    for operation, tier in counts_as.operation_tiers.items():
        by_tier.setdefault(str(tier), []).append(operation)
    if len(by_tier) > 1:
        said = "; ".join(f"{tier}: {', '.join(names)}" for tier, names in by_tier.items())
    else:
        names = ", ".join(counts_as.operation_tiers)
        said = f"{counts_as.tier}: {names}" if names else str(counts_as.tier)
    return said + (f"  touches {', '.join(sorted(counts_as.side_effects))}" if counts_as.side_effects else "")


def _print_lines(text: str) -> None:
    for line in text.splitlines():
        print_line(f"  | {line}")


def _state_json(state: CatalogState) -> dict[str, object]:
    catalog, pin = state.catalog, state.pin
    how: dict[str, object] = {"command": catalog.command, "args": list(catalog.args), "env": list(catalog.env)}
    how |= {"cwd": catalog.cwd, "url": catalog.url, "headers_env": dict(catalog.headers_env)}
    how |= {"query_env": dict(catalog.query_env)} if catalog.query_env else {}
    return {
        "id": catalog.catalog_id,
        "type": str(catalog.kind),
        "prefix": catalog.prefix,
        "file": catalog.file,
        **({} if state.is_trusted is None else how),
        "trusted": state.is_trusted,
        "tools": [name for name in state.tool_names if name not in state.held],
        "held": list(state.held),
        "drift": None if pin is None else _drift_json(pin),
        "digest": None if pin is None else pin.digest,
        "server": None if pin is None else {"name": pin.listing.name, "version": pin.listing.version},
    }


def _drift_json(pin: Pin) -> dict[str, object]:
    drift = pin.drift
    rows = {"new": drift.new, "changed": drift.changed, "vanished": drift.vanished}
    return {**{what: list(names) for what, names in rows.items()}, "instructions": drift.instructions}


def _accept_json(catalog_id: str, rows: tuple[Waiting, ...], before: Pin, after: Pin) -> dict[str, object]:
    other = before.instructions != before.listing.instructions
    words = text_difference(before.instructions, before.listing.instructions)
    return {
        "catalog": catalog_id,
        "waiting": [
            {
                "tool": row.name,
                "change": row.change,
                "before": _acceptance_json(row.before),
                "proposed": _acceptance_json(row.after),
                "why": row.why,
                "description": row.description,
                "difference": row.difference,
            }
            for row in rows
        ],
        "instructions": words if other else None,
        "accepted": [name for name, row in after.accepted.items() if before.accepted.get(name) != row],
        "forgotten": [name for name in before.accepted if name not in after.accepted],
        "left": _drift_json(after),
        "digest": after.digest,
    }


def _acceptance_json(row: Acceptance | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        "tier": str(row.tier),
        "operation_tiers": {name: str(tier) for name, tier in row.operation_tiers.items()},
        "side_effects": sorted(row.side_effects),
        "capabilities": sorted(row.capabilities),
    }
