"""What limits a row of the tree without hiding it: rules with a condition, limits, settings. It decides nothing."""

import time
from collections.abc import Iterable, Iterator, Sequence

from gatewright.workspace.api import (
    ANY_TOOL,
    Action,
    Address,
    Agent,
    AllowedOperations,
    OutputCheck,
    Policy,
    Problem,
    RequiresConsent,
    SafetyTier,
    Source,
    ToolFacts,
    ToolRight,
    Verdict,
    duration_words,
    frozen,
    kind_of,
    names_tool,
    verdict_for,
)
from gatewright_gui.pages.access.tools.limits import PlacedRule, rules_on, sentence
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.observed import Noted, observations_here, part_words
from gatewright_gui.session.readings import Reading

PROBLEM = mark("problem")
OBSERVED = mark("observed")
NAMES_SHOWN = 6
RULES_SHOWN = 6
"""So many rules of a source one sentence names at most."""

ACTION_WORDS = {
    Action.READ: mark("read"),
    Action.APPEND: mark("append"),
    Action.OVERWRITE: mark("overwrite"),
    Action.DELETE: mark("delete"),
}
_SAYS = {
    Verdict.DENY: mark("policy rule {rule}: a call is denied only if its condition fits"),
    Verdict.ASK: mark("policy rule {rule}: a call asks first only if its condition fits"),
    Verdict.ALLOW: mark("policy rule {rule}: a call is allowed only if its condition fits"),
}
_OUTPUT = {
    OutputCheck.STRICT: mark("a result that does not fit its schema is refused by [tools.{key}]"),
    OutputCheck.WARN: mark("a result that does not fit its schema is taken, and the log says so, by [tools.{key}]"),
    OutputCheck.OFF: mark("results may be anything, whatever its schema says, by [tools.{key}]"),
}


@frozen
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
        *_in_part(right, operation),
        *_waiting(agent, right, names),
        *_would_ask(right, operation),
        *_scopes(agent, facts, names),
        *_paths(policy, agent, facts, names),
        *_rules(policy, agent, facts, names),
        *_policy(policy, agent, facts, names),
        *_settings(policy, facts, operation),
    )
    return tuple(dict.fromkeys(found))


def observation_notes(policy: Policy, agent: Agent, facts: ToolFacts, noted: Noted | None) -> tuple[Note, ...]:
    """Say which part of a tool is only observed, until when, and what enforcing would say."""
    found = [
        Note(
            OBSERVED,
            tr(
                "{part} is only observed until {until}: what it denies or asks is noted, not enforced",
                part=part_words(part),
                until=time.strftime("%Y-%m-%d %H:%M", time.localtime(part.until_s)),
            ),
            address,
        )
        for part, address in observations_here(policy, agent, facts)
    ]
    would = noted.reasons if noted is not None else ()
    found += [Note(OBSERVED, tr("enforcing would say: {reason}", reason=one.text), one.address) for one in would]
    return tuple(found)


def _in_part(right: ToolRight, operation: str | None) -> Iterator[Note]:
    """Why a tool is on in part though it is ticked whole: what is ticked and off, by which layer."""
    if operation is not None:
        return
    by_layer: dict[str, list[str]] = {}
    for row in right.operations:
        if row.is_overruled and row.operation:
            layer = next(reason.layer for reason in row.reasons if reason.verdict is Verdict.DENY)
            by_layer.setdefault(str(layer), []).append(row.operation)
    if by_layer and right.shown:
        parts = [
            tr("{operations} off by {layer}", operations=_some(names), layer=tr(layer))
            for layer, names in by_layer.items()
        ]
        text = tr(
            "the model sees {count} of {every}: ticked, yet {parts}",
            count=len(right.shown),
            every=len(right.operations),
            parts="; ".join(parts),
        )
        yield Note(mark("in part"), text)


def _waiting(agent: Agent, right: ToolRight, names: tuple[str, ...]) -> Iterator[Note]:
    """The rules of a tool that is not listed: they wait for it."""
    if right.listed:
        return
    for index, rule in enumerate(agent.tool_rules):
        if rule.tool_name != ANY_TOOL and names_tool(rule.tool_name, right.facts):
            kind = rule.rule_type
            if isinstance(kind, AllowedOperations):
                order = [op.operation for op in right.operations if op.operation in kind.operations]
                one = mark("tool rule {number} lists {operations}; ticking the tool brings that back")
                many = mark("tool rule {number} lists {operations}; ticking the tool brings these back")
                said = tr(one if len(order) == 1 else many, number=index + 1, operations=_some(order))
            elif any(rule.binds(name) for name in names):
                said = tr("tool rule {number} holds again as soon as the tool is ticked", number=index + 1)
            else:
                continue
            yield Note(mark("waits"), said, ("agents", agent.agent_id, "tool_rules", index))


def _some(names: Sequence[str]) -> str:
    named = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return tr("{names} and {count} more", names=named, count=more) if more > 0 else named


def _would_ask(right: ToolRight, operation: str | None) -> Iterator[Note]:
    """Notes on what an operation that is off would ask for, were it on; it does not ask now."""
    row = next((row for row in right.operations if row.operation == operation), None)
    if row is None or not row.is_hidden:
        return
    for reason in row.reasons:
        if reason.verdict is Verdict.ASK:
            yield Note(mark("if it were on"), reason.text, reason.address)


def _scopes(agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> Iterator[Note]:
    """Notes on how far the grants go that the operations need, where a list bounds them."""
    needed = {kind for op in facts.operations if op.name in names for kind in op.capabilities}
    for index, capability in enumerate(agent.capabilities):
        scope = capability.scope
        if scope and kind_of(capability) in needed:
            reach = ", ".join(f"`{one}`" for one in scope)
            text = tr("{capability} reaches no further than {scope}", capability=kind_of(capability), scope=reach)
            yield Note(mark("capability"), text, ("agents", agent.agent_id, "capabilities", index))


def _paths(policy: Policy, agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> Iterator[Note]:
    """Notes on what the levels of a source say to a single operation, and to each argument that counts as a path."""
    op = next((op for op in facts.operations if op.name in names), None)
    if op is None or len(names) != 1:
        return
    unknown = Action.READ if op.tier is SafetyTier.READ_ONLY else Action.OVERWRITE
    for one in op.paths:
        action = unknown if one.use is None else one.use.action
        for source in policy.file_sources if one.counts else ():
            if text := _by_path(source, (action,)):
                said = tr(
                    "`{argument}` is a path ({action}, {how_known}); {verdicts}",
                    argument=one.argument,
                    action=tr(ACTION_WORDS[action]),
                    how_known=tr("declared") if one.confidence == "declared" else tr("as found"),
                    verdicts=text,
                )
                yield Note(mark("path"), said, ("sources", source.source_id, "default_permission"))
    for source in policy.sources_of(agent) if facts.needs_source and op.actions else ():
        if text := _by_path(source, op.actions):
            yield Note(mark("source"), text, ("sources", source.source_id, "default_permission"))


def _by_path(source: Source, actions: Sequence[Action]) -> str:
    """The words of each rule in order, the first that matches decides; empty where all say the same."""
    said = {
        level: tr(" or ").join(dict.fromkeys(tr(verdict_for(level, action)) for action in actions))
        for level in source.levels
    }
    if len(set(said.values())) < 2:
        return ""
    rules = source.permission_rules
    parts = [f"`{rule.pattern}` {said[rule.permission]}" for rule in rules[:RULES_SHOWN]]
    if len(rules) > RULES_SHOWN:
        parts.append(tr("{count:,} more rules", count=len(rules) - RULES_SHOWN))
    return tr(
        "in {source} it depends on the file: {rules}, elsewhere {verdict}",
        source=source.source_id,
        rules=", ".join(parts),
        verdict=said[source.default_permission],
    )


def problem_notes(
    problems: Iterable[Problem], agent_id: str, right: ToolRight, operation: str | None
) -> tuple[Note, ...]:
    """Notes on what is wrong with what the model sees of a tool; what is off has its reasons."""
    if right.is_hidden:
        return ()
    return tuple(
        Note(PROBLEM, problem.message, problem.subject.address)
        for problem in problems
        if problem.subject is not None
        and agent_id in problem.subject.agents
        and any(
            tool == right.facts.name and (operation is None or name in {None, operation})
            for tool, name in problem.subject.tools
        )
    )


def reading_notes(policy: Policy, facts: ToolFacts, reading: Reading | None) -> tuple[Note, ...]:
    """Notes on how the operations of a stranger's tool were found, where that is worth a word."""
    if reading is None:
        return ()
    key = next((k for k in (f"{facts.name}@{facts.major}", facts.name) if k in policy.tools), facts.name)
    address: Address | None = ("tools", key) if reading.kind == "declared" else None
    return tuple(Note(mark("operations"), text, address) for text in reading.said)


def _rules(policy: Policy, agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> Iterator[Note]:
    for placed in rules_on(agent, policy.sources_of(agent), facts):
        if any(placed.rule.binds(name) for name in names) and (text := _rule_words(placed)):
            own = mark("tool rule") if placed.address else mark("the tool's own")
            layer = mark("source rule") if placed.source_id else own
            yield Note(layer, text, placed.address)


def _rule_words(placed: PlacedRule) -> str:
    """In words; the consent of a source depends on the file, so that no reason of the row says it."""
    kind = placed.rule.rule_type
    if placed.source_id is not None and isinstance(kind, RequiresConsent):
        asks = tr("asks first (consent group: {group})", group=kind.scope) if kind.scope else tr("asks first")
        return tr("for calls that go to {source}: {sentence}", source=placed.source_id, sentence=asks)
    return sentence(placed)


def _policy(policy: Policy, agent: Agent, facts: ToolFacts, names: tuple[str, ...]) -> Iterator[Note]:
    """The policy rules that may match, where that depends on a condition."""
    for index, rule in enumerate(policy.rules):
        is_for = (
            (rule.agents is None or agent.agent_id in rule.agents)
            and (rule.tools is None or any(names_tool(name, facts) for name in rule.tools))
            and (rule.operations is None or any(name in rule.operations for name in names))
        )
        if is_for and not rule.is_unconditional and rule.when is not False:
            text = tr(_SAYS[rule.effect], rule=rule.name)
            said = f"{text}: {rule.message}" if rule.message else text
            yield Note(mark("policy"), said, ("policy", "rules", index))


def _settings(policy: Policy, facts: ToolFacts, operation: str | None) -> Iterator[Note]:
    key = next((k for k in (f"{facts.name}@{facts.major}", facts.name) if k in policy.tools), None)
    if key is None:
        return
    settings = policy.tools[key]
    by_operation = settings.operation_tiers.get(operation or "")
    tier, at = (by_operation, "operation_tiers") if by_operation is not None else (settings.safety_tier, "safety_tier")
    if tier is not None:
        yield Note("tools", tr("its tier is {tier} by [tools.{key}]", tier=tier, key=key), ("tools", key, at))
    if settings.timeout_s is not None:
        text = tr("a call ends after {time} by [tools.{key}]", time=duration_words(settings.timeout_s), key=key)
        yield Note("tools", text, ("tools", key, "timeout"))
    if not settings.scrub:
        yield Note("tools", tr("secrets stay in its results by [tools.{key}]", key=key), ("tools", key, "scrub"))
    if settings.output is not None:
        yield Note("tools", tr(_OUTPUT[settings.output], key=key), ("tools", key, "output"))
