"""The tools that the tests of this folder register, and policies made of them. It knows no file."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from gatewright.policy.document import Agent, Defaults, PermissionRule, Policy, Source, ToolSettings
from gatewright.policy.permission import Permission
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import (
    AllowedOperations,
    ContinueLoop,
    Cooldown,
    ExitLoop,
    MaxCalls,
    Needed,
    RequiresConsent,
    RuleKind,
    ToolRule,
)
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict
from gatewright.policyfile import KnownTools, LoadedPolicy, parse_policy

FILE_OPERATIONS = ("read", "list", "load", "save", "append", "replace", "create", "delete")


def operations(*names: str) -> tuple[OperationFacts, ...]:
    return tuple(OperationFacts(name, SafetyTier.SIDE_EFFECTING) for name in names)


FACTS = (
    ToolFacts("file", 1, operations(*FILE_OPERATIONS), SafetyTier.SIDE_EFFECTING, needs_source=True),
    ToolFacts("block", 1, operations("info"), SafetyTier.READ_ONLY),
    ToolFacts("memo", 1, operations("put"), SafetyTier.SIDE_EFFECTING),
    ToolFacts("memo", 2, operations("put", "find"), SafetyTier.SIDE_EFFECTING),
    ToolFacts("calc", 1, (OperationFacts("", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY),
    ToolFacts("memo.deep", 1, operations("find"), SafetyTier.READ_ONLY),
)
KNOWN = KnownTools(FACTS)


def load(text: str, file: str = "policy.toml") -> LoadedPolicy:
    return parse_policy(text, file=file, known=KNOWN)


def policy_of(text: str, file: str = "policy.toml") -> Policy:
    loaded = load(text, file)
    assert loaded.policy is not None, "\n".join(map(str, loaded.problems))
    return loaded.policy


_words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn"]), min_size=1, max_size=8
)
_ids = st.one_of(st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True), _words)
_free = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_verdicts = st.sampled_from(Verdict)
_seconds = st.one_of(st.integers(0, 10_000), st.floats(0, 100_000, allow_nan=False)).map(float)
_levels = st.sampled_from(Permission)
_json = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), _free),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_free, inner, max_size=3)),
    max_leaves=5,
)
_limits: st.SearchStrategy[RuleKind] = st.one_of(
    st.builds(MaxCalls, st.integers(0, 2**63 - 1)),
    st.builds(Cooldown, _seconds),
    st.builds(RequiresConsent, st.none() | _ids),
    st.sampled_from([ContinueLoop(), ExitLoop(), Needed()]),
)


def _rule(tool_name: str, kind: RuleKind) -> st.SearchStrategy[ToolRule]:
    return st.builds(
        ToolRule,
        st.just(tool_name),
        st.just(kind),
        priority=st.integers(0, 255),
        metadata=st.none() | st.dictionaries(_free, _json, max_size=3),
    )


_allowed = st.frozensets(st.sampled_from(FILE_OPERATIONS)).map(AllowedOperations)
_rules = st.one_of(
    st.tuples(st.sampled_from(["file", "calc", "block", "*", "memo@2"]), _limits),
    st.tuples(st.sampled_from(["file", "file@1"]), _allowed),
).flatmap(lambda pair: _rule(*pair))
_tools = st.none() | st.lists(st.sampled_from(["file", "block", "memo@1", "calc", "memo.deep"]), unique=True).map(tuple)
_approval_keys = st.sampled_from(
    ["read_only", "side_effecting", "privileged", "file", "file.delete", "memo.deep", "memo.deep.find", "memo.find"]
)
_approvals = st.dictionaries(_approval_keys, _verdicts, max_size=4)
_patterns = st.sampled_from(
    ["drafts/**", "*.md", "a b/", r"\#x", r"sp\ ", "[a-z]?", "**/secret", "ü/'q'", '"q"', "x/**/y"]
)
_permission_rules = st.builds(PermissionRule, _patterns, _levels, st.none() | _free)


@st.composite
def _agents(draw: st.DrawFn, agent_id: str, source_ids: list[str]) -> Agent:
    rules = draw(st.lists(_rules, max_size=4))
    named = [replace(rule, rule_id=f"r{number}") if draw(st.booleans()) else rule for number, rule in enumerate(rules)]
    listed = st.lists(st.sampled_from(source_ids), unique=True).map(tuple) if source_ids else st.just(())
    return Agent(
        agent_id,
        draw(_free),
        draw(_tools),
        draw(st.none() | listed),
        draw(_approvals),
        draw(st.none() | _ids),
        tuple(named),
    )


_sizes = st.integers(1, 2**40)


def sources(source_id: str) -> st.SearchStrategy[Source]:
    bases = st.sampled_from(["docs", "/srv/x", "a b", "ü", "..\\x", "./y"])
    return st.builds(
        Source, st.just(source_id), bases, _levels, st.lists(_permission_rules, max_size=4).map(tuple), _sizes
    )


_defaults = st.builds(
    Defaults,
    st.sampled_from([Verdict.ALLOW, Verdict.DENY]),
    st.sampled_from(["hold", "allow"]),
    _sizes,
    st.none() | _seconds.filter(lambda seconds: seconds > 0),
    _approvals,
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    source_ids = draw(st.lists(_ids, max_size=3, unique_by=str.casefold))
    agent_ids = draw(st.lists(_ids, max_size=3, unique_by=str.casefold))
    return Policy(
        name=draw(st.none() | _free),
        description=draw(st.none() | _free),
        defaults=draw(st.one_of(st.just(Defaults()), _defaults)),
        agents={agent_id: draw(_agents(agent_id, source_ids)) for agent_id in agent_ids},
        sources=tuple(draw(sources(source_id)) for source_id in source_ids),
        tools=draw(
            st.dictionaries(
                st.sampled_from(["file", "memo.deep"]),
                st.builds(ToolSettings, st.none() | _seconds.filter(lambda seconds: seconds > 0)),
                max_size=2,
            )
        ),
    )


@st.composite
def edits(draw: st.DrawFn, policy: Policy) -> Policy:
    """The policy after some small edits, such as the app makes."""
    for _ in range(draw(st.integers(1, 3))):
        policy = draw(_edited(policy))
    return policy


@st.composite
def _edited(draw: st.DrawFn, policy: Policy) -> Policy:
    other = draw(policies())
    source_ids = [source.source_id for source in policy.sources]
    choices = ["defaults", "add-agent", "tools-table"]
    choices += ["agent", "agent-rules", "agent-part", "remove-agent", "rename-agent"] if policy.agents else []
    choices += ["source", "move-rules", "remove-source", "reorder-sources"] if policy.sources else []
    what = draw(st.sampled_from(choices))
    if what == "defaults":
        return replace(policy, defaults=other.defaults, name=other.name)
    if what == "tools-table":
        return replace(policy, tools=other.tools)
    if what == "add-agent":
        agent_id = draw(_ids.filter(lambda name: name.casefold() not in {a.casefold() for a in policy.agents}))
        return policy.with_agent(draw(_agents(agent_id, source_ids)))
    if what in {"source", "move-rules", "remove-source", "reorder-sources"}:
        return _source_edit(draw, policy, what)
    agent = draw(st.sampled_from(list(policy.agents.values())))
    if what == "agent":
        return policy.with_agent(draw(_agents(agent.agent_id, source_ids)))
    if what == "agent-part":
        new = draw(_agents(agent.agent_id, source_ids))
        part = draw(st.sampled_from(["description", "tools", "sources", "approvals", "user_id"]))
        return policy.with_agent(replace(agent, **{part: getattr(new, part)}))
    if what == "agent-rules":
        rules = list(agent.tool_rules)
        new_rules = [replace(rule, rule_id=None) for rule in draw(st.lists(_rules, max_size=2))]
        at = draw(st.integers(0, len(rules)))
        rules[at : at + draw(st.integers(0, 2))] = new_rules
        return policy.with_agent(replace(agent, tool_rules=tuple(rules)))
    rows = list(policy.agents.values())
    if what == "remove-agent":
        rows = [row for row in rows if row is not agent]
    else:
        name = draw(_ids.filter(lambda name: name.casefold() not in {a.casefold() for a in policy.agents}))
        rows = [replace(row, agent_id=name) if row is agent else row for row in rows]
    return replace(policy, agents={row.agent_id: row for row in rows})


def _with_source(policy: Policy, source: Source) -> Policy:
    rows = tuple(source if row.source_id == source.source_id else row for row in policy.sources)
    return replace(policy, sources=rows)


def _source_edit(draw: st.DrawFn, policy: Policy, what: str) -> Policy:
    source = draw(st.sampled_from(policy.sources))
    if what == "source":
        return _with_source(policy, draw(sources(source.source_id)))
    if what == "move-rules":
        rules = tuple(draw(st.permutations(source.permission_rules)))
        return _with_source(policy, replace(source, permission_rules=rules))
    if what == "reorder-sources":
        return replace(policy, sources=tuple(draw(st.permutations(policy.sources))))
    agents = {
        name: replace(agent, sources=tuple(s for s in agent.sources if s != source.source_id))
        if agent.sources is not None
        else agent
        for name, agent in policy.agents.items()
    }
    kept = tuple(s for s in policy.sources if s is not source)
    return replace(policy, agents=agents, sources=kept)
