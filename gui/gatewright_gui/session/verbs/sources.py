"""Verbs on sources and their ordered levels. Each names what it edits by the row that was seen: it is found by its
identity, wherever it stands now, and where it is gone the edit is refused.
"""

from collections.abc import Callable, Iterable, Sequence

from gatewright.workspace.api import (
    Edit,
    EditRefused,
    Permission,
    PermissionRule,
    Policy,
    Source,
    ToolFacts,
    all_with_settings,
    names_tool,
    place_in,
    sourceedit,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.files import pattern_of


def set_level(document: Document, source: Source, rule: PermissionRule, level: Permission) -> bool:
    """Give a rule another level."""
    return _push(document, lambda policy, _tools: sourceedit.set_level(policy, *_place(policy, source, rule), level))


def set_rule(document: Document, source: Source, rule: PermissionRule, after: PermissionRule) -> bool:
    """Put another rule in the place of one."""
    return _push(document, lambda policy, _tools: sourceedit.set_rule(policy, *_place(policy, source, rule), after))


def set_default_level(document: Document, source: Source, level: Permission) -> bool:
    """Change the level of paths that no rule matches."""
    return _push(
        document, lambda policy, _tools: sourceedit.set_default_level(policy, _now(policy, source).source_id, level)
    )


def add_rule(document: Document, source: Source, rule: PermissionRule, before: PermissionRule | None = None) -> bool:
    """Insert a rule before another one, or as the last one."""
    return _push(document, lambda policy, _tools: rule_edit(policy, source, rule, before))


def rule_edit(policy: Policy, source: Source, rule: PermissionRule, before: PermissionRule | None) -> Edit:
    """The edit that inserts a rule before another one, or as the last one. Raises EditRefused."""
    now = _now(policy, source)
    at = None if before is None else _place(policy, source, before)[1]
    return sourceedit.add_rule(policy, now.source_id, rule, at)


def remove_rules(document: Document, source: Source, rules: Iterable[PermissionRule]) -> bool:
    """Remove several rules."""
    chosen = tuple(rules)

    def make(policy: Policy, _tools: object) -> Edit:
        now = _now(policy, source)
        return sourceedit.remove_rules(policy, now.source_id, [_place(policy, now, rule)[1] for rule in chosen])

    return document.push(make)


def move_rules(
    document: Document, source: Source, rules: Iterable[PermissionRule], before: PermissionRule | None
) -> bool:
    """Move rules, in the order they have, so that they stand right before another one, or last."""
    chosen = tuple(rules)

    def make(policy: Policy, _tools: object) -> Edit:
        now = _now(policy, source)
        places = [_place(policy, now, rule)[1] for rule in chosen]
        to = len(now.permission_rules) if before is None else _place(policy, now, before)[1]
        return sourceedit.move_rules(policy, now.source_id, places, to - sum(place < to for place in places))

    return document.push(make)


def add_source(document: Document, source: Source) -> bool:
    """A new source, the last one."""
    return _push(document, lambda policy, _tools: sourceedit.add_source(policy, source))


def add_refusal(document: Document, source: Source) -> str:
    """Why a new source would be refused; empty when it would not."""
    return document.refusal(lambda policy, _tools: sourceedit.add_source(policy, source))


def change_source(document: Document, source: Source, after: Source) -> bool:
    """Other settings for a source; lists of agents follow another id."""
    return _push(document, lambda policy, _tools: _change(policy, source, after))


def change_refusal(document: Document, source: Source, after: Source) -> str:
    """Why other settings would be refused; empty when they would not."""
    return document.refusal(lambda policy, _tools: _change(policy, source, after))


def remove_source(document: Document, source: Source) -> bool:
    """Take a source out of the policy and from the agents that list it; nothing on disk is touched."""
    return document.push(lambda policy, _tools: sourceedit.remove_source(policy, _now(policy, source).source_id))


def remove_refusal(document: Document, source: Source) -> str:
    """Why a source cannot go; empty when it can."""
    return document.refusal(lambda policy, _tools: sourceedit.remove_source(policy, _now(policy, source).source_id))


def agents_listing(document: Document, source_id: str) -> tuple[str, ...]:
    """The agents that have a list of their sources with this one in it."""
    agents = document.policy.agents.values()
    return tuple(agent.agent_id for agent in agents if agent.sources is not None and source_id in agent.sources)


def give_level(document: Document, source: Source, path: str, level: Permission, rule: PermissionRule | None) -> bool:
    """Give a path, or all that is in a folder, a level. `rule` is the one that decides it now, None for the default.

    A rule that names just this path is changed; otherwise a new one is put above it, or last: no other path changes.
    """
    if rule is not None and _names(rule.pattern, pattern_of(path)):
        return set_level(document, source, rule, level)
    return add_rule(document, source, PermissionRule(pattern_of(path), level), rule)


def _now(policy: Policy, source: Source) -> Source:
    """The source as it is now, whatever its id. Raises EditRefused where it is gone."""
    found = next((one for one in policy.sources if one.identity == source.identity), None)
    if found is None:
        raise EditRefused(tr("source `{source}` is not there any more", source=source.source_id))
    return found


def _place(policy: Policy, source: Source, rule: PermissionRule) -> tuple[str, int]:
    """The id of the source and the place of the rule in it. Raises EditRefused where one is gone."""
    now = _now(policy, source)
    what = tr("rule `{pattern}` of source `{source}`", pattern=rule.pattern, source=now.source_id)
    return now.source_id, place_in(now.permission_rules, rule, what)


def _change(policy: Policy, source: Source, after: Source) -> Edit:
    return sourceedit.change_source(policy, _now(policy, source).source_id, after)


def _names(pattern: str, own: str) -> bool:
    """Tell whether a pattern is one of the ways to write a path's own pattern."""
    folder = own.endswith("/")
    return f"/{pattern.removeprefix('/')}" in ({own, f"{own}**"} if folder else {own})


_NAMED = 3
"""So many tools one sentence names at most."""


def _push(document: Document, make: Callable[[Policy, Sequence[ToolFacts]], Edit]) -> bool:
    before = document.policy
    done = document.push(make)
    if done:
        tell_closed_folders(document, before)
    return done


def tell_closed_folders(document: Document, before: Policy) -> None:
    """Say of places that were not none `before` by which tools of agents the folders above them are denied, too."""
    policy = document.policy
    known = {source.source_id: _places_without_access(source) for source in before.file_sources}
    closed = [
        one.source_id for one in policy.file_sources if _places_without_access(one) - known.get(one.source_id, set())
    ]
    if not closed:
        return
    names = [
        facts.name
        for facts in all_with_settings(policy, tuple(document.catalog))
        if not facts.needs_source and any(op.path_actions for op in facts.operations) and _is_listed(policy, facts)
    ]
    if names:
        named = ", ".join(names[:_NAMED])
        more = len(names) - _NAMED
        tools = tr("{names} and {count:,} more", names=named, count=more) if more > 0 else named
        text = tr(
            "{tools} are denied for folders above what is none in {source}: a folder counts as the strictest in it",
            tools=tools,
            source=", ".join(closed),
        )
        document.say("info", text, can_undo=True)


def _places_without_access(source: Source) -> set[str]:
    """The patterns whose level is none, "" for that of all other paths."""
    default = {""} if source.default_permission is Permission.NONE else set[str]()
    return default | {rule.pattern for rule in source.permission_rules if rule.permission is Permission.NONE}


def _is_listed(policy: Policy, facts: ToolFacts) -> bool:
    """Tell whether some agent has the tool in its list, or has no list."""
    lists = [agent.tools for agent in policy.agents.values()]
    return any(one is None or any(names_tool(name, facts) for name in one) for one in lists)
