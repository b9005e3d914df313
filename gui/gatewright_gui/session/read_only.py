"""What only reads, by its tier, and on whose word that rests. The worker process works it out."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import cast

from gatewright.workspace.api import (
    CatalogState,
    OperationRight,
    Policy,
    SafetyTier,
    ToolFacts,
    ToolRight,
    Verdict,
    Workspace,
    frozen,
    settings_of,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.calls import visible
from gatewright_gui.session.readings import BUILT_IN, COMPOSITION

READ_ONLY = SafetyTier.READ_ONLY


class Basis(StrEnum):
    """The basis of the tier of an operation."""

    HINT = "hint"
    ACCEPTED = "accepted"
    MANIFEST = "manifest"
    SETTING = "setting"
    STEPS = "steps"
    BUILT_IN = "built-in"


@frozen
class Reads:
    """An operation of the tier read_only; ``asks``: why it asks first nevertheless for the agent that is looked at."""

    tool: str
    operation: str
    origin: str
    basis: Basis
    asks: str = ""


def read_only_rows(workspace: Workspace, agent_id: str | None = None) -> tuple[Reads, ...]:
    """Every operation that only reads, but for held tools; with the questions of an agent, if one is looked at."""
    policy = workspace.policy
    states = {one.catalog.catalog_id: one for one in workspace.catalog_states()}
    rights: Mapping[str, ToolRight] = {}
    if agent_id is not None and agent_id in policy.agents:
        rights = workspace.rights(agent_id)
    found: list[Reads] = []
    for facts in workspace.catalog:
        right = rights.get(facts.name)
        asks = {row.operation: _asks(row) for row in right.operations} if right is not None else {}
        for name, basis in _bases(policy, facts, states.get(facts.origin)):
            found.append(Reads(facts.name, name, facts.origin, basis, asks.get(name, "")))
    order = list(Basis)
    return tuple(sorted(found, key=lambda row: order.index(row.basis)))


def _bases(policy: Policy, facts: ToolFacts, state: CatalogState | None) -> Iterator[tuple[str, Basis]]:
    names = [row.name for row in facts.operations if row.tier is READ_ONLY and not facts.held]
    settings = settings_of(policy, facts.name, facts.major) if names else None
    basis = _basis(facts, state) if names else Basis.BUILT_IN
    for name in names:
        is_set = settings is not None and (settings.safety_tier is not None or name in settings.operation_tiers)
        yield name, Basis.SETTING if is_set else basis


def _basis(facts: ToolFacts, state: CatalogState | None) -> Basis:
    """The basis of the tool's own tiers, where the policy sets none."""
    if state is None:
        return {BUILT_IN: Basis.BUILT_IN, COMPOSITION: Basis.STEPS}.get(facts.origin, Basis.MANIFEST)
    if state.pin is None:
        return Basis.MANIFEST
    if not state.catalog.trusted:
        return Basis.ACCEPTED
    listed = dict(zip(state.tool_names, state.listed_names, strict=True)).get(facts.name, "")
    hints = (state.pin.definition(listed) or {}).get("annotations")
    says = isinstance(hints, dict) and cast("dict[str, object]", hints).get("readOnlyHint") is True
    return Basis.HINT if says else Basis.ACCEPTED


def _asks(row: OperationRight) -> str:
    """Why the operation asks; empty where it does not, or where the tier itself asks."""
    if row.verdict is Verdict.ASK:
        said = next(reason for reason in row.reasons if reason.verdict is Verdict.ASK)
        return "" if said.address is not None and said.address[-1] == str(READ_ONLY) else said.text.replace("`", "")
    return tr("some calls ask first") if row.asks_for_some else ""


_WORDS = {
    Basis.BUILT_IN: mark("built in"),
    Basis.STEPS: mark("compositions whose steps only read"),
    Basis.ACCEPTED: mark("by tiers that you accepted"),
    Basis.HINT: mark("by hints of trusted servers"),
    Basis.MANIFEST: mark("by manifests of programs"),
    Basis.SETTING: mark("by your settings of tools"),
}


def basis_words(basis: Basis) -> str:
    """The basis of a tier, as a list of such says it."""
    return tr(_WORDS[basis])


def count_words(rows: Sequence[Reads]) -> str:
    """Words for how many operations only read, and how many of them on whose word."""
    total = counted(len(rows), "operation only reads", "operations only read")
    parts: list[str] = []
    for basis in Basis:
        held = [row for row in rows if row.basis is basis]
        servers = sorted({row.origin for row in held}) if basis is Basis.HINT else []
        words = f"{basis_words(basis)} ({', '.join(map(visible, servers))})" if servers else basis_words(basis)
        parts += [f"{len(held):,} {words}"] if held else []
    return f"{total}: {', '.join(parts)}." if parts else f"{total}."
