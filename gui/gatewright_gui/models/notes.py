"""What limits a row of the tree without hiding it: rules with a condition, limits, settings. It decides nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from gatewright.base.problem import Address
from gatewright.policy.document import Agent, Policy
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.rule import RequiresConsent
from gatewright.policy.toolname import names_tool
from gatewright.policy.verdict import Verdict
from gatewright.tools.usage import duration_words
from gatewright_gui.models.limits import PlacedRule, rules_on, sentence
from gatewright_gui.session.readings import Reading

_SAYS = {Verdict.DENY: "is denied", Verdict.ASK: "asks first", Verdict.ALLOW: "is allowed"}


@dataclass(frozen=True, slots=True)
class Note:
    """One limit that depends on the call, or a word on the tool. `address`: where it stands; None: the tool's own."""

    layer: str
    text: str
    address: Address | None = None


def notes_of(policy: Policy, agent: Agent, right: ToolRight, operation: str | None) -> tuple[Note, ...]:
    """Every limit on an operation of a tool, or on the tool with all of them, in the order of the stages."""
    facts = right.facts
    names = (operation,) if operation is not None else tuple(op.operation for op in right.operations)
    found = (
        *_would_ask(right, operation),
        *_rules(policy, agent, facts, names),
        *_policy(policy, agent, facts, names),
        *_settings(policy, facts, operation),
    )
    return tuple(dict.fromkeys(found))


def _would_ask(right: ToolRight, operation: str | None) -> Iterator[Note]:
    """What an operation that is off would ask for, were it on; it does not ask now."""
    row = next((row for row in right.operations if row.operation == operation), None)
    if row is None or not row.is_hidden:
        return
    for reason in row.reasons:
        if reason.verdict is Verdict.ASK:
            yield Note("if it were on", reason.text, reason.address)


def reading_notes(policy: Policy, facts: ToolFacts, reading: Reading | None) -> tuple[Note, ...]:
    """How the operations of a stranger's tool were found, where that is worth a word."""
    if reading is None:
        return ()
    key = next((k for k in (f"{facts.name}@{facts.major}", facts.name) if k in policy.tools), facts.name)
    address: Address | None = ("tools", key) if reading.kind == "declared" else None
    return tuple(Note("operations", text, address) for text in reading.said)


def _rules(policy: Policy, agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> Iterator[Note]:
    for placed in rules_on(agent, policy.sources_of(agent), facts):
        if any(placed.rule.binds(name) for name in names) and (text := _said(placed)):
            layer = "source rule" if placed.source_id else "tool rule" if placed.address else "the tool's own"
            yield Note(layer, text, placed.address)


def _said(placed: PlacedRule) -> str:
    """In words; the consent of a source depends on the file, so that no reason of the row says it."""
    kind = placed.rule.rule_type
    if placed.source_id is not None and isinstance(kind, RequiresConsent):
        return f"for calls that go to {placed.source_id}: asks first{f' (scope {kind.scope})' if kind.scope else ''}"
    return sentence(placed)


def _policy(policy: Policy, agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> Iterator[Note]:
    for index, rule in enumerate(policy.rules):
        if not rule.is_unconditional and rule.when is not False and _may_match(rule, agent, facts, names):
            said = f": {rule.message}" if rule.message else ""
            text = f"policy rule {rule.name}: a call {_SAYS[rule.effect]} only if its condition fits{said}"
            yield Note("policy", text, ("policy", "rules", index))


def _may_match(rule: PolicyRule, agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> bool:
    if rule.agents is not None and agent.agent_id not in rule.agents:
        return False
    if rule.tools is not None and not any(names_tool(name, facts.name, facts.major) for name in rule.tools):
        return False
    return rule.operations is None or any(name in rule.operations for name in names)


def _settings(policy: Policy, facts: ToolFacts, operation: str | None) -> Iterator[Note]:
    key = next((k for k in (f"{facts.name}@{facts.major}", facts.name) if k in policy.tools), None)
    if key is None:
        return
    settings = policy.tools[key]
    tier = settings.operation_tiers.get(operation or "")
    if tier is not None:
        yield Note("tools", f"its tier is {tier} by [tools.{key}]", ("tools", key, "operation_tiers"))
    elif settings.safety_tier is not None:
        yield Note("tools", f"its tier is {settings.safety_tier} by [tools.{key}]", ("tools", key, "safety_tier"))
    if settings.timeout_s is not None:
        text = f"a call ends after {duration_words(settings.timeout_s)} by [tools.{key}]"
        yield Note("tools", text, ("tools", key, "timeout"))
    if not settings.scrub:
        yield Note("tools", f"secrets stay in its results by [tools.{key}]", ("tools", key, "scrub"))
