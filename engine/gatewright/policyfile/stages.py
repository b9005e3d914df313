"""The way from one policy to another in small steps, for edits that meet in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gatewright.policy.document import Agent, Policy, Source, ToolSettings


def stages(before: Policy, after: Policy) -> Iterator[Policy]:
    """Policies on the way, each one change from the one before it; the last one is ``after``."""
    policy = before
    for agent_id in [name for name in policy.agents if name not in after.agents]:
        policy = replace(policy, agents={k: v for k, v in policy.agents.items() if k != agent_id})
        yield policy
    for agent in after.agents.values():
        for step in _agent_stages(policy.agents.get(agent.agent_id), agent):
            policy = policy.with_agent(step)
            yield policy
    for step in _source_stages(policy.sources, after.sources):
        policy = replace(policy, sources=step)
        yield policy
    yield (policy := replace(policy, catalogs=after.catalogs))
    for step in _tool_stages(policy.tools, after.tools):
        policy = replace(policy, tools=step)
        yield policy
    yield (policy := replace(policy, roots=after.roots, web=after.web, endpoints=after.endpoints))
    yield (policy := replace(policy, defaults=after.defaults))
    yield (policy := replace(policy, default=after.default))
    yield (policy := replace(policy, rules=after.rules))
    yield after


def _agent_stages(old: Agent | None, new: Agent) -> Iterator[Agent]:
    if old is None:
        yield new
        return
    yield (old := replace(old, description=new.description))
    yield (old := replace(old, tools=new.tools))
    yield (old := replace(old, sources=new.sources))
    yield (old := replace(old, user_id=new.user_id))
    yield (old := replace(old, approvals=new.approvals))
    yield (old := replace(old, capabilities=new.capabilities))
    yield new


def _tool_stages(old: Mapping[str, ToolSettings], new: Mapping[str, ToolSettings]) -> Iterator[dict[str, ToolSettings]]:
    """One tool after the other, first those that go."""
    rows = dict(old)
    for name in [name for name in old if name not in new]:
        del rows[name]
        yield dict(rows)
    for name, settings in new.items():
        rows[name] = settings
        yield dict(rows)


def _source_stages(old: tuple[Source, ...], new: tuple[Source, ...]) -> Iterator[tuple[Source, ...]]:
    wanted = {source.source_id: source for source in new}
    rows = tuple(source for source in old if source.source_id in wanted)
    yield rows
    for index, source in enumerate(rows):
        after = wanted[source.source_id]
        for step in (replace(source, required_tools=after.required_tools), after):
            rows = (*rows[:index], step, *rows[index + 1 :])
            yield rows
    yield new
