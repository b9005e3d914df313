"""Reasons that keep an edit from becoming the policy, beyond the checks of the edit itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gatewright.base.errors import EditRefused, NotSupported, WeMustFix
from gatewright.base.problem import Address, Place
from gatewright.policy.document import Policy
from gatewright.policy.edit import AgentChange, CatalogChange, Edit, SourceChange, ToolSettingsChange, change_set
from gatewright.policy.glob import check_pattern
from gatewright.policy.right import ToolFacts
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
    """Refuse a new source or root outside the workspace without the operator's trust."""
    known = {(source.source_id, source.base_path) for source in before.sources}
    fresh = tuple(source for source in after.folder_sources if (source.source_id, source.base_path) not in known)
    found = base_problems(fresh, policy_path, records, places, trust=False)
    if after.roots != before.roots:
        found = (*found, *root_problems(after.roots, policy_path, records, places, trust=False))
    if refused := next((problem for problem in found if problem.is_error), None):
        raise EditRefused(refused.message)


def refuse_unloadable(text: PolicyText, before: Policy, after: Policy, edit: Edit) -> None:
    """Refuse an edit of nameable things after which the saved policy would not load.

    These are catalogs, settings of tools, compositions, recipients of messages, and the tools that the workspace loses.
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
    """Refuse new rules and capabilities of an agent that could not be loaded again; look only at changes."""
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
    """Refuse to hide a tool that an agent must call; ``facts`` returns those of all tools, called only if needed."""
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
    """Refuse a policy rule or an endpoint for a missing agent, which could not be loaded again."""
    if after.rules is before.rules and after.agents.keys() >= before.agents.keys():
        return
    for rule in after.rules:
        if missing := set(rule.agents or ()) - after.agents.keys():
            raise EditRefused(f"the policy rule `{rule.name}` is for agent `{min(missing)}`, which does not exist")
    if missing := after.endpoints.agents - after.agents.keys():
        raise EditRefused(f"`[workspace] endpoints` names agent `{min(missing)}`: take it out there first")
