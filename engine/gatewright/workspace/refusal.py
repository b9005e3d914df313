"""Says why an edit may not become the policy, and finds edits that remove a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from gatewright.base.errors import Address, EditRefused, NotSupported, Place, Problem, Subject, WeMustFix
from gatewright.policy import agentedit, policyedit, rights, ruleedit, sourceedit
from gatewright.policy.document import Catalog, PlaceUse, Policy, ToolSettings
from gatewright.policy.edit import AgentChange, CatalogChange, Edit, SourceChange, ToolSettingsChange, apply, change_set
from gatewright.policy.glob import check_pattern
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ArgumentConstraints, ExclusiveGroups
from gatewright.policy.shadow import find_shadows
from gatewright.policy.verdict import Verdict, split_name
from gatewright.policyfile.check import has_requirement, hidden_requirements, majors_of
from gatewright.policyfile.reader import Fault, agent_fault
from gatewright.workspace.attachment import root_problems
from gatewright.workspace.policy_reader import base_problems
from gatewright.workspace.policytext import PolicyText
from gatewright.workspace.trust import TrustRecords


def refuse_bad_pattern(edit: Edit) -> None:
    """Refuse a changed source with an invalid glob. Raises EditRefused, like all functions here."""
    for change in edit.changes:
        if isinstance(change, SourceChange) and change.after is not None:
            for rule in change.after.permission_rules:
                if message := check_pattern(rule.pattern):
                    raise EditRefused(message)


def refuse_untrusted(
    before: Policy,
    after: Policy,
    policy_path: Path,
    records: TrustRecords,
    places: Callable[[Address], Place | None],
) -> None:
    """Refuse a new source or root outside the workspace unless the operator trusts it."""
    known = {(source.source_id, source.base_path) for source in before.sources}
    fresh = tuple(source for source in after.folder_sources if (source.source_id, source.base_path) not in known)
    found = base_problems(fresh, policy_path, records, places, trust=False)
    if after.roots != before.roots:
        found = (*found, *root_problems(after.roots, policy_path, records, places, trust=False))
    if refused := next((problem for problem in found if problem.is_error), None):
        raise EditRefused(refused.message)


def refuse_unloadable(text: PolicyText, before: Policy, after: Policy, edit: Edit) -> None:
    """Refuse an edit after which the saved policy would not load, since it names missing things.

    Such edits concern catalogs, settings of tools, compositions, recipients of messages, and tools that the workspace
    loses.
    """
    taken = before.provides - after.provides or before.endpoints != after.endpoints
    taken = taken or before.compositions is not after.compositions
    if not taken and not any(isinstance(change, CatalogChange | ToolSettingsChange) for change in edit.changes):
        return
    try:
        problems = text.read(after).problems
    except (NotSupported, WeMustFix) as error:
        raise EditRefused(str(error)) from None
    refused = next((problem for problem in problems if problem.is_error), None)
    if refused is not None:
        where = f" (line {refused.place.line})" if refused.place else ""
        raise EditRefused(f"{refused.message}{where}")


def refuse_unreadable(edit: Edit) -> None:
    """Refuse new rules and capabilities of an agent that could not be loaded again; unchanged ones are skipped."""
    for change in edit.changes:
        if not isinstance(change, AgentChange) or change.after is None:
            continue
        if message := agent_fault(change.before, change.after):
            raise EditRefused(message)


def refuse_faulty(faults: tuple[Fault, ...]) -> None:
    """Refuse new rules, defaults and workspace settings that could not be loaded again."""
    if faults:
        path, message = faults[0]
        inside = ".".join(map(str, path[3:] if path[:2] == ("policy", "rules") else path))
        raise EditRefused(f"`{inside}`: {message}" if inside else message)


def refuse_hidden_requirement(after: Policy, edit: Edit, facts: Callable[[], tuple[ToolFacts, ...]]) -> None:
    """Refuse to hide a tool that an agent must call; ``facts`` returns the facts of all tools, called only if
    needed.
    """
    changed = change_set(edit)
    everybody = changed.everything or bool(changed.sources)
    agents = [
        agent
        for agent_id, agent in after.agents.items()
        if (everybody or agent_id in changed.agents) and has_requirement(agent)
    ]
    majors = majors_of(facts()) if agents else {}
    for agent in agents:
        for found in hidden_requirements(after, agent, majors):
            raise EditRefused(
                f"{found.what} cannot be hidden from `{agent.agent_id}`, which {found.demand} "
                f"(tool rule {found.index + 1})"
            )


def refuse_orphaned_rule(before: Policy, after: Policy) -> None:
    """Refuse a policy rule, an endpoint or `sub_agents` with a missing agent, which could not be loaded again."""
    if after.rules is before.rules and after.agents.keys() >= before.agents.keys():
        return
    for rule in after.rules:
        if missing := set(rule.agents or ()) - after.agents.keys():
            raise EditRefused(f"the policy rule `{rule.name}` is for agent `{min(missing)}`, which does not exist")
    if missing := after.endpoints.agents - after.agents.keys():
        raise EditRefused(f"`[workspace] endpoints` names agent `{min(missing)}`: take it out there first")
    for agent in after.agents.values():
        if missing := set(agent.sub_agents) - after.agents.keys():
            raise EditRefused(f"`sub_agents` of `{agent.agent_id}` has `{min(missing)}`, which does not exist")


_MOST_SOURCES = 2


Propose = Callable[[Catalog], Mapping[str, PlaceUse]]
"""The places that a server seems to need, read from the disk only for a problem about them."""


def _no_places(_: Catalog) -> Mapping[str, PlaceUse]:
    return {}


def mends(
    policy: Policy, catalog: Sequence[ToolFacts], problem: Problem, propose: Propose = _no_places
) -> tuple[Edit, ...]:
    """The edits that would remove the problem, the mildest first; none if only the author can decide.

    The name of each edit says its effect. A problem of an older policy may have none.
    """
    if problem.subject is None:
        return ()
    try:
        return tuple(one for one in _mends(policy, catalog, problem.code, problem.subject, propose) if not one.is_empty)
    except (EditRefused, IndexError, KeyError, ValueError):  # the policy has changed meanwhile
        return ()


def mends_together(
    policy: Policy, catalog: Sequence[ToolFacts], problems: Sequence[Problem], propose: Propose = _no_places
) -> tuple[Edit, ...]:
    """The mildest edit for each of several problems, each for the policy that the earlier ones leave.

    The last rows of a list come first, so that no edit moves the subject of another. A problem whose subject has
    changed is skipped.
    """
    found: list[Edit] = []
    now = policy
    for problem in sorted(problems, key=_place, reverse=True):
        address = problem.subject.address if problem.subject is not None else ()
        if _row(now, address) == _row(policy, address) and (first := mends(now, catalog, problem, propose)[:1]):
            now = apply(now, first[0])
            found += first
    return tuple(found)


def _place(problem: Problem) -> tuple[tuple[int, str], ...]:
    """The address of a problem, as a sort key of numbers and names."""
    address = problem.subject.address if problem.subject is not None else ()
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in address)


def _row(policy: Policy, address: Address) -> object:
    """The row at a numbered address; None for any other address."""
    rows: Sequence[object] = ()
    match address:
        case ("agents", str(agent_id), "tool_rules" | "capabilities" | "tools" as part, *_):
            rows = getattr(policy.agents.get(agent_id), part, None) or ()
        case ("sources", str(source_id), "permission_rules", *_):
            rows = getattr(policy.source(source_id), "permission_rules", ())
        case ("policy", "rules", *_):
            rows = policy.rules
        case _:
            return None
    at = next((part for part in address if isinstance(part, int)), len(rows))
    return rows[at] if at < len(rows) else None


def _mends(policy: Policy, catalog: Sequence[ToolFacts], code: str, about: Subject, propose: Propose) -> Iterator[Edit]:
    match code, about.address:
        case "rule-shadowed", ("sources", str(source_id), "permission_rules", int(index)):
            yield from _mend_shadow(policy, source_id, index)
        case "rule-without-effect", ("agents", str(agent_id), "tool_rules", int(index), *_):
            rule = policy.agents[agent_id].tool_rules[index]
            kind, position = rule.rule_type, ruleedit.RulePosition(agent_id, index, rule)
            is_part = (isinstance(kind, ArgumentConstraints) and (kind.fields or kind.required)) or (
                isinstance(kind, ExclusiveGroups) and kind.groups
            )
            if not is_part:
                yield ruleedit.remove_rule(policy, position)
        case "rule-without-effect", ("policy", "rules", int(index), *rest):
            yield from _idle(policy, index, tuple(rest))
        case "ask-when-omitted", ("policy", "rules", int(index), *_):
            yield from _require_arguments(policy, index)
        case "edits-never-saved", _:
            yield rights.tick_operations(policy, catalog, about.agents[0], "file", ["save"], on=True)
        case "no-source", ("agents", str(agent_id), *_):
            yield rights.tick_tool(policy, catalog, agent_id, about.tools[0][0], on=False)
            agent = policy.agents[agent_id]
            for source_id in [source.source_id for source in policy.file_sources][:_MOST_SOURCES]:
                after = replace(agent, sources=(*(agent.sources or ()), source_id))
                yield Edit(f"attach `{source_id}` to `{agent_id}`", (AgentChange(agent, after),))
        case "no-root", ("agents", str(agent_id), "tools", int(index)):
            agent = policy.agents[agent_id]
            tools = agent.tools or ()
            after = replace(agent, tools=(*tools[:index], *tools[index + 1 :]))
            yield Edit(f"take `{tools[index]}` from the tools of `{agent_id}`", (AgentChange(agent, after),))
        case "grant-reaches-nothing", ("agents", str(agent_id), "capabilities", int(index)):
            granted = policy.agents[agent_id].capabilities[index]
            yield agentedit.revoke(policy, agentedit.Granted(agent_id, index, granted))
        case "places-not-accepted", ("catalogs", str(catalog_id)):
            if (waiting := policy.catalog(catalog_id)) is not None:
                if places := propose(waiting):
                    yield policyedit.set_places(policy, catalog_id, places)
                yield policyedit.set_places(policy, catalog_id, {})
        case "arguments-open", _:
            yield _refuse_others(policy, about.tools[0][0])
        case _:
            return


def _mend_shadow(policy: Policy, source_id: str, index: int) -> Iterator[Edit]:
    """Remove a rule that decides nothing; if it disagrees with the rules above it, also offer to move it up."""
    source = policy.source(source_id)
    if source is None:
        return
    found = find_shadows(source.permission_rules)
    shadow = next((one for one in found if one.index == index), None)
    yield sourceedit.remove_rule(policy, source_id, index)
    if shadow is not None and not shadow.harmless:
        moved = sourceedit.move_rule(policy, source_id, index, min(shadow.by))
        yield replace(moved, name=f"{moved.name} above rule {min(shadow.by) + 1}")


def _idle(policy: Policy, index: int, rest: Address) -> Iterator[Edit]:
    rule = policy.rules[index]
    tools = rule.tools or ()
    match rest:
        case ("tools", int(position)) if len(tools) > 1:
            after = replace(rule, tools=(*tools[:position], *tools[position + 1 :]))
            edit = policyedit.change_rule(policy, index, after)
            yield replace(edit, name=f"take `{tools[position]}` from policy rule `{rule.name}`")
        case ("tools", _) | ("when",):
            yield policyedit.remove_rules(policy, [index])
        case ("times",):
            edit = policyedit.change_rule(policy, index, replace(rule, times=None))
            yield replace(edit, name=f"take `times` from policy rule `{rule.name}`")
        case _:
            return


def _require_arguments(policy: Policy, index: int) -> Iterator[Edit]:
    rule = policy.rules[index]
    if isinstance(rule.when, Mapping) and isinstance(fields := rule.when.get("properties"), Mapping):
        when = {**rule.when, "required": sorted({*_names(rule.when.get("required")), *map(str, fields)})}
        edit = policyedit.change_rule(policy, index, replace(rule, when=when))
        yield replace(edit, name=f"let policy rule `{rule.name}` ask only when its arguments are given")


def _names(value: object) -> list[str]:
    return [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _refuse_others(policy: Policy, tool: str) -> Edit:
    held = [name for name in policy.tools if split_name(name)[0] == tool]
    name = held[0] if held else tool
    before = policy.tools.get(name)
    after = replace(before or ToolSettings(), extra_arguments=Verdict.DENY)
    change = ToolSettingsChange(name, before, after)
    return Edit(f"refuse arguments that the schema of `{tool}` does not name", (change,))
