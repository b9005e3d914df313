"""Observe mode: agents, policy rules and catalogs whose denials and asks are noted in the log and not enforced.

It ends by itself at a stated moment, at most 30 days ahead; a part without such a moment is enforced. A part that is
observed passes only what these stages say: rules, capability, policy, permission, approval.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from gatewright.base.amount import iso_utc, plural
from gatewright.base.errors import EditRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Agent, Catalog, Policy
from gatewright.policy.edit import AgentChange, CatalogChange, Change, Edit, FieldChange
from gatewright.policy.rule import PolicyRule, Span
from gatewright.policy.rulematch import present
from gatewright.policy.verdict import Mode, Verdict, Word

MOST_OBSERVE_S = 30 * 86_400.0
_Part = TypeVar("_Part", Agent, PolicyRule, Catalog)


_PASSING = {
    stage: frozenset(codes.split())
    for stage, codes in {
        "rules": "start-required preceding-required too-late exclusive-group exit-requirements-pending max-calls "
        "cooldown rate-limit argument-constraint",
        "capability": "capability-not-granted capability-unjudgeable host-not-granted path-not-granted "
        "table-not-granted variable-not-granted",
        "policy": "policy-deny policy-ask policy-default",
        "permission": "level-none level-denies level-asks source-operation-not-allowed tool-asks",
        "approval": "approval-needed requires-consent approval-refused",
    }.items()
}


def passes_code(stage: str, code: str) -> bool:
    """Tell whether observe mode passes a finding; any other means that a call is impossible, protected or unclear."""
    return code in _PASSING.get(stage, ())


class ObservedKind(Word):
    """The kind of a part of the policy that may be observed."""

    AGENT = "agent"
    RULE = "rule"
    CATALOG = "catalog"


@frozen
class Observed:
    """A part of the policy that is observed: the id of an agent or catalog or the name of a rule, and until when."""

    kind: ObservedKind
    name: str
    until_s: float

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: kind, name, until."""
        return {"kind": str(self.kind), "name": self.name, "until": iso_utc(self.until_s)}


def is_observed(part: Agent | PolicyRule | Catalog, wall_s: float) -> bool:
    """Tell whether the part is observed at that instant."""
    until_s = part.observe_until_s
    return part.mode is Mode.OBSERVE and until_s is not None and 0 < until_s - wall_s <= MOST_OBSERVE_S


def observed_parts(policy: Policy, wall_s: float) -> tuple[Observed, ...]:
    """All that is observed at that instant."""
    return tuple(
        Observed(kind, name, part.observe_until_s or 0.0)
        for kind, name, part in _parts(policy)
        if is_observed(part, wall_s)
    )


def concerns(policy: Policy, agent: Agent) -> bool:
    """Tell whether something that says `observe` concerns calls of the agent."""
    by_rule = any(
        rule.mode is Mode.OBSERVE and (rule.agents is None or agent.agent_id in rule.agents) for rule in policy.rules
    )
    return agent.mode is Mode.OBSERVE or by_rule or any(one.mode is Mode.OBSERVE for one in policy.catalogs)


def has_observed(policy: Policy) -> bool:
    """Tell whether some part of the policy says `observe`."""
    return any(True for _ in _parts(policy))


def in_force(policy: Policy, wall_s: float) -> tuple[Policy, Span | None]:
    """The policy that is in force at the instant, and for how long it stays so; None: nothing in it has a time.

    A rule outside its times applies to no agent; only what is observed then says `observe`.
    """
    if not has_observed(policy):
        return present(policy, wall_s)
    now, span = present(_with_observed(policy, wall_s), wall_s)
    ends = [end for end in (_next_change(policy, wall_s), span and span.until_s) if end is not None]
    return now, Span(wall_s, min(ends, default=None))


def _next_change(policy: Policy, wall_s: float) -> float | None:
    """The next instant at which some part begins or ends to be observed; None: never."""
    ends = [part.observe_until_s for _, _, part in _parts(policy) if part.observe_until_s is not None]
    later = [at for end in ends for at in (end - MOST_OBSERVE_S, end) if at > wall_s]
    return min(later, default=None)


def _with_observed(policy: Policy, wall_s: float) -> Policy:
    """The policy whose parts say `observe` only if they are observed at that instant; itself if that is so already."""
    if all(is_observed(part, wall_s) for _, _, part in _parts(policy)):
        return policy
    return replace(
        policy,
        agents={agent_id: _at(agent, wall_s) for agent_id, agent in policy.agents.items()},
        rules=tuple(_at(rule, wall_s) for rule in policy.rules),
        catalogs=tuple(_at(catalog, wall_s) for catalog in policy.catalogs),
    )


def _at(part: _Part, wall_s: float) -> _Part:
    is_over = part.mode is Mode.OBSERVE and not is_observed(part, wall_s)
    return replace(part, mode=Mode.ENFORCE) if is_over else part


def without_observed_rules(policy: Policy) -> Policy:
    """The policy without the objections of its observed rules, which keep their places.

    An ask counts as an allow, since with another default it is what opens the call; a denial matches no call.
    """
    if all(rule.mode is Mode.ENFORCE for rule in policy.rules):
        return policy
    return replace(policy, rules=tuple(without_objection(rule) for rule in policy.rules))


def without_objection(rule: PolicyRule) -> PolicyRule:
    """The rule as it acts while it is observed; itself if it is enforced."""
    if rule.mode is Mode.ENFORCE:
        return rule
    return replace(rule, when=False) if rule.effect is Verdict.DENY else replace(rule, effect=Verdict.ALLOW)


def set_observed(policy: Policy, parts: Sequence[Observed], until_s: float | None) -> Edit:
    """Observe these parts until a moment; None: enforce them. Raises EditRefused for a part that no longer exists."""
    mode = Mode.ENFORCE if until_s is None else Mode.OBSERVE
    changes: list[Change] = []
    rules = list(policy.rules)
    for one in parts:
        rows = {rule.name: at for at, rule in enumerate(rules)}
        agent = policy.agents.get(one.name) if one.kind is ObservedKind.AGENT else None
        catalog = policy.catalog(one.name) if one.kind is ObservedKind.CATALOG else None
        if agent is not None:
            changes.append(AgentChange(agent, replace(agent, mode=mode, observe_until_s=until_s)))
        elif catalog is not None:
            changes.append(CatalogChange(catalog, replace(catalog, mode=mode, observe_until_s=until_s)))
        elif one.kind is ObservedKind.RULE and one.name in rows:
            at = rows[one.name]
            rules[at] = replace(rules[at], mode=mode, observe_until_s=until_s)
        else:
            raise EditRefused(f"{one.kind} `{one.name}` no longer exists")
    if tuple(rules) != policy.rules:
        changes.append(FieldChange("rules", policy.rules, tuple(rules)))
    what = f"{parts[0].kind} `{parts[0].name}`" if len(parts) == 1 else f"{len(parts)} parts of the policy"
    return Edit(f"{'enforce' if until_s is None else 'observe'} {what}", tuple(changes))


def _parts(policy: Policy) -> Iterator[tuple[ObservedKind, str, Agent | PolicyRule | Catalog]]:
    """Every part that says `observe`."""
    for kind, parts in (
        (ObservedKind.AGENT, policy.agents.items()),
        (ObservedKind.RULE, ((rule.name, rule) for rule in policy.rules)),
        (ObservedKind.CATALOG, ((catalog.catalog_id, catalog) for catalog in policy.catalogs)),
    ):
        yield from ((kind, name, part) for name, part in parts if part.mode is Mode.OBSERVE)


@frozen
class NotedCount:
    """The number of calls that observe mode passed, by the verdict that enforcing would have given, and its cause.

    ``rule``: the deciding rule or place of the policy, empty for none.
    """

    verdict: str
    stage: str
    rule: str
    count: int

    @property
    def key(self) -> str:
        """The filter that finds these calls (`AuditFilter.noted`)."""
        return self.verdict + json.dumps([self.stage, self.rule], ensure_ascii=False, separators=(",", ":"))

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: verdict, stage, rule, count."""
        return {"verdict": self.verdict, "stage": self.stage, "rule": self.rule or None, "count": self.count}


@frozen
class Comparison:
    """The calls under observe mode as enforcing would have decided them: ``calls`` in all, and ``rows`` by cause."""

    calls: int
    rows: tuple[NotedCount, ...] = ()

    def count(self, verdict: str) -> int:
        """The number of passed calls with that verdict."""
        return sum(row.count for row in self.rows if row.verdict == verdict)

    def __str__(self) -> str:
        denied, asked = self.count("deny"), self.count("ask")
        said = f"of {plural(self.calls, 'call')} {denied:,} would have been denied"
        return f"{said}, {asked:,} asked first" if asked else said

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: calls, denied, asked, rows."""
        rows: list[JsonValue] = [row.to_json() for row in self.rows]
        return {"calls": self.calls, "denied": self.count("deny"), "asked": self.count("ask"), "rows": rows}
