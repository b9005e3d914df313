"""The denials and asks that are only noted, since an agent, a policy rule or a catalog is observed, in words.

The rights of the document are those in force: what is observed hides nothing there. Beside them stand the rights as
they would be if all of it were enforced, and the difference is told here.
"""

import time
from collections.abc import Iterator, Sequence

from gatewright.workspace.api import (
    Address,
    Agent,
    ArgumentConstraints,
    Capability,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    Layer,
    MaxCalls,
    Observed,
    ObservedKind,
    OperationRight,
    Policy,
    PolicyRule,
    RateLimit,
    Reason,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    StartConstraint,
    ToolFacts,
    ToolRight,
    ToolRule,
    Verdict,
    frozen,
    names_tool,
    observed_parts,
    strictest,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.calls import visible

_DENYING = (
    *(ArgumentConstraints, MaxCalls, Cooldown, RateLimit, StartConstraint, ExclusiveGroups, ExitLoop),
    *(RequiresPrecedingTools, RequiresFollowingTools),
)
"""Kinds of rules that deny some calls, and that are only noted where all of a tool is observed."""
_BY = {
    Layer.TOOLS: mark("the list of tools"),
    Layer.RULE: mark("a tool rule"),
    Layer.CAPABILITY: mark("a missing grant"),
    Layer.SOURCE: mark("the level of a source"),
    Layer.POLICY: mark("a policy rule"),
    Layer.APPROVALS: mark("an approval"),
}
_WOULD = {Verdict.DENY: mark("would be denied"), Verdict.ASK: mark("would ask first")}
_WOULD_BY = {Verdict.DENY: mark("would be denied by {what}"), Verdict.ASK: mark("would ask first, by {what}")}
_SOME_WOULD = {Verdict.DENY: mark("some calls would be denied"), Verdict.ASK: mark("some calls would ask first")}


_KINDS = {"agent": mark("agent {name}"), "rule": mark("policy rule {name}"), "catalog": mark("catalog {name}")}


def part_words(part: Observed) -> str:
    """The kind and the name of a part of the policy that is observed."""
    return tr(_KINDS[str(part.kind)], name=visible(part.name))


@frozen
class Noted:
    """The verdict that enforcing would give to an operation, or to a tool with all of them.

    ``is_some``: to some calls, or some operations, only. ``reasons``: those of that verdict, the deciding one first;
    none where it depends on the call.
    """

    verdict: Verdict
    is_some: bool
    reasons: tuple[Reason, ...] = ()

    @property
    def words(self) -> str:
        """The verdict and what it comes from, such as ``would be denied by a policy rule``."""
        if self.is_some:
            return tr(_SOME_WOULD[self.verdict])
        if not self.reasons:
            return tr(_WOULD[self.verdict])
        return tr(_WOULD_BY[self.verdict], what=tr(_BY[self.reasons[0].layer]))

    @property
    def sentence(self) -> str:
        """That it is not enforced, and what would be, for Why."""
        why = self.reasons[0].text.replace("`", "") if self.reasons else ""
        if why and not self.is_some:
            return tr("Only observed, not enforced: it {words}, because {reason}.", words=self._would, reason=why)
        return tr("Only observed, not enforced: {words}.", words=self.words)

    @property
    def _would(self) -> str:
        return tr(_WOULD[self.verdict])


def _is_stricter(one: Verdict, other: Verdict) -> bool:
    return one is not other and strictest(one, other) is one


def note_row(shown: OperationRight, enforced: OperationRight) -> Noted | None:
    """The difference that enforcing would make to an operation; None for none."""
    if _is_stricter(enforced.verdict, shown.verdict):
        found = [one for one in enforced.reasons if one.verdict is enforced.verdict and one not in shown.reasons]
        return Noted(enforced.verdict, is_some=False, reasons=tuple(found))
    some = set((enforced.depends | enforced.by_text) - (shown.depends | shown.by_text))
    some |= {_limit_verdict(one) for one in enforced.limits if one not in shown.limits}
    some = {one for one in some if _is_stricter(one, shown.verdict)}
    return Noted(strictest(*some), is_some=True) if some else None


def _limit_verdict(limit: ToolRule | PolicyRule | Capability) -> Verdict:
    """The strictest verdict that a limit gives, of what observing passes."""
    if isinstance(limit, PolicyRule):
        return limit.effect
    if isinstance(limit, ToolRule):
        return Verdict.DENY if isinstance(limit.rule_type, _DENYING) else Verdict.ALLOW
    return Verdict.DENY


def note_rows(shown: ToolRight, enforced: ToolRight | None) -> tuple[Noted | None, ...]:
    """The difference to each operation of a tool, in its order; empty where it makes none."""
    if enforced is None or shown is enforced or shown.facts.operation_names != enforced.facts.operation_names:
        return ()
    found = tuple(map(note_row, shown.operations, enforced.operations))
    return found if any(found) else ()


def note_tool(rows: Sequence[Noted | None]) -> Noted | None:
    """The difference to a tool with all its operations."""
    held = [one for one in rows if one is not None]
    if not held:
        return None
    verdict = strictest(*(one.verdict for one in held))
    is_some = len(held) < len(rows) or any(one.is_some or one.verdict is not verdict for one in held)
    reasons = dict.fromkeys(reason for one in held if one.verdict is verdict for reason in one.reasons)
    return Noted(verdict, is_some, tuple(reasons))


def observations_here(policy: Policy, agent: Agent, facts: ToolFacts) -> Iterator[tuple[Observed, Address]]:
    """The observed parts of the policy that calls of a tool by the agent pass under, each with its place."""
    rows = {rule.name: (at, rule) for at, rule in enumerate(policy.rules)}
    for part in observed_parts(policy, time.time()):
        if part.kind is ObservedKind.AGENT and part.name == agent.agent_id:
            yield part, ("agents", agent.agent_id, "mode")
        elif part.kind is ObservedKind.CATALOG and part.name == facts.origin:
            yield part, ("catalogs", part.name, "mode")
        elif part.kind is ObservedKind.RULE:
            at, rule = rows[part.name]
            is_for = rule.tools is None or any(names_tool(name, facts) for name in rule.tools)
            if is_for and (rule.agents is None or agent.agent_id in rule.agents):
                yield part, ("policy", "rules", at)
