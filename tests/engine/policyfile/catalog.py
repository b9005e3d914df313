"""The tools that the tests of this folder register, and policies made of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from gatewright.base.errors import SchemaError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import is_visible
from gatewright.policy.capability import (
    AdvancedEdit,
    Capability,
    ClockRead,
    DbRead,
    DbWrite,
    EnvRead,
    Exec,
    FsRead,
    FsWrite,
    NetRead,
    NetWrite,
    WasmExec,
)
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Confine,
    Defaults,
    PermissionRule,
    PlaceUse,
    Policy,
    Source,
    ToolSettings,
    Trust,
)
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import (
    AfterOutside,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Needed,
    Periodic,
    PolicyRule,
    RateLimit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    RuleKind,
    Times,
    ToolRule,
)
from gatewright.policy.verdict import PathUse, Permission, SafetyTier, Verdict, split_name
from gatewright.policyfile import CatalogFacts, KnownTools, LoadedPolicy, parse_policy
from gatewright.tools.defined import DefinedTool, compose
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.tool import Tool

FILE_OPERATIONS = ("read", "list", "load", "save", "append", "replace", "create", "delete")


def operations(*names: str) -> tuple[OperationFacts, ...]:
    return tuple(OperationFacts(name, SafetyTier.SIDE_EFFECTING) for name in names)


def _file_operation(name: str) -> OperationFacts:
    """``path`` may be left out of ``list`` only; ``content`` is for those that write."""
    parameters = ("op", "path", "source") + (("content",) if name in {"append", "create"} else ())
    required = parameters[:1] if name == "list" else (*parameters[:2], *parameters[3:])
    return OperationFacts(name, SafetyTier.SIDE_EFFECTING, parameters=parameters, required=required)


FILE = tuple(map(_file_operation, FILE_OPERATIONS))
FACTS = (
    ToolFacts("file", 1, FILE, SafetyTier.SIDE_EFFECTING, needs_source=True),
    ToolFacts("block", 1, operations("info"), SafetyTier.READ_ONLY),
    ToolFacts("memo", 1, operations("put"), SafetyTier.SIDE_EFFECTING),
    ToolFacts("memo", 2, operations("put", "find"), SafetyTier.SIDE_EFFECTING),
    ToolFacts("calc", 1, (OperationFacts("", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY),
    ToolFacts("memo.deep", 1, operations("find"), SafetyTier.READ_ONLY),
)
BARE = KnownTools(FACTS)
"""Without ports: no catalogs, no declarations."""


def stranger(name: str, version: str = "1.0.0", origin: str = "strangers", **fields: list[str] | None) -> DefinedTool:
    """A tool known by its definition: each field is a text, closed to a list where one is given."""
    properties: dict[str, object] = {
        field: {"type": "string"} if values is None else {"type": "string", "enum": values}
        for field, values in fields.items()
    }
    schema: dict[str, object] = {"type": "object", "properties": properties, "required": [next(iter(fields))]}
    return DefinedTool(ToolDefinition(name, f"The tool {name}.", schema, version=version), origin=origin)


STRANGERS = (
    stranger("hub.run", action=None, mode=["dry", "wet"], note=None),
    stranger("hub.run", "2.0.0", action=None, shade=["a", "b"]),
    stranger("box", op=["get", "put", "drop"], key=None),
)
CALENDAR = (stranger("calendar", origin="calendar", verb=None, day=None),)


def known_with(*tools: Tool, manifests: dict[str, CatalogFacts] | None = None) -> KnownTools:
    """The tools of this folder and ``tools``, with both ports; manifests that are not named give nothing."""
    given = {(facts.name, facts.major) for catalog in (manifests or {}).values() for facts in catalog.facts}
    by_key = {(tool.name, tool.major): tool for tool in (*CALENDAR, *tools)}
    assert given <= {*by_key, *((facts.name, facts.major) for facts in FACTS)}

    def declare(facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
        if (tool := by_key.get((facts.name, facts.major))) is None:
            raise SchemaError(f"`{facts.name}` declares its own operations")
        return tool.with_operations(field, operations).facts()

    def catalogs(catalogs: tuple[Catalog, ...]) -> tuple[CatalogFacts, ...]:
        return tuple((manifests or {}).get(catalog.manifest, CatalogFacts()) for catalog in catalogs)

    own = tuple(tool.facts() for tool in tools if (tool.name, tool.major) not in given)

    def made(policy: Policy, facts: tuple[ToolFacts, ...]) -> tuple[ToolFacts, ...]:
        return tuple(tool.facts() for tool in compose(policy, facts))

    return KnownTools((*FACTS, *own), declare=declare, catalogs=catalogs, compose=made)


KNOWN = known_with(*STRANGERS, manifests={"calendar.json": CatalogFacts(tuple(tool.facts() for tool in CALENDAR))})


def load(text: str, file: str = "policy.toml", known: KnownTools = KNOWN) -> LoadedPolicy:
    return parse_policy(text, file=file, known=known)


def policy_of(text: str, file: str = "policy.toml") -> Policy:
    loaded = load(text, file)
    assert loaded.policy is not None, "\n".join(map(str, loaded.problems))
    return loaded.policy


_words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn"]), min_size=1, max_size=8
)
_ids = st.one_of(st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True), _words.filter(is_visible))
_free = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_verdicts = st.sampled_from(Verdict)
_seconds = st.one_of(st.integers(0, 10_000), st.floats(0, 100_000, allow_nan=False)).map(float)
_levels = st.sampled_from(Permission)
_json: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), _free),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_free, inner, max_size=3)),
    max_leaves=5,
)
_limits: st.SearchStrategy[RuleKind] = st.one_of(
    st.builds(MaxCalls, st.integers(0, 2**63 - 1)),
    st.builds(Cooldown, _seconds),
    st.builds(RequiresConsent, st.none() | _ids),
    st.builds(RateLimit, st.integers(1, 2**63 - 1), _seconds.filter(lambda seconds: seconds > 0)),
    st.sampled_from([Needed(), AfterOutside(Verdict.ASK), AfterOutside(Verdict.DENY)]),
)
_kinds: st.SearchStrategy[RuleKind] = st.one_of(
    _limits,
    st.builds(Periodic, _seconds.filter(lambda seconds: seconds > 0)),
    st.permutations(["file", "calc", "memo@1", "memo.deep"]).map(
        lambda names: ExclusiveGroups((tuple(names[:2]), tuple(names[1:])))
    ),
    st.sampled_from([ContinueLoop(), ExitLoop()]),
)


def _pattern(text: str, low: int) -> JsonValue:
    return {"pattern": f"^{re.escape(text)}", "minLength": low}


def _choice(values: list[JsonValue]) -> JsonValue:
    return {"enum": values, "not": {"const": "x"}}


def _object(name: str) -> JsonValue:
    return {"type": "object", "properties": {name: {"maximum": 1.5}}, "required": [name]}


_schemas: st.SearchStrategy[JsonValue] = st.one_of(
    st.just(True),
    st.builds(_pattern, _words, st.integers(0, 9)),
    st.builds(_choice, st.lists(_json, max_size=3)),
    st.builds(_object, _free),
)


def _on_file_fields(fields: dict[str, JsonValue], source: dict[str, JsonValue], required: tuple[str, ...]) -> RuleKind:
    return ArgumentConstraints({**fields, **source}, required)


_constraints = st.builds(
    _on_file_fields,
    st.dictionaries(st.sampled_from(["path", "op"]), _schemas),
    st.dictionaries(st.just("source"), st.booleans() | _schemas),
    st.sampled_from([(), (), ("path",), ("op", "path")]),
)
_anything = st.dictionaries(_free | st.just("required"), st.booleans() | _schemas, max_size=3).map(ArgumentConstraints)
_others = st.lists(
    st.sampled_from(["calc", "memo@2", "memo.put", "memo@2.find", "memo.deep.find"]),
    min_size=1,
    max_size=3,
    unique=True,
).map(tuple)
_ordering: st.SearchStrategy[RuleKind] = st.sampled_from(
    [RequiresPrecedingTools(), RequiresFollowingTools(), RequiredBeforeExitIf()]
)
_on_file = st.lists(
    st.sampled_from(FILE_OPERATIONS).map(lambda name: f"operation:{name}"), max_size=3, unique=True
).map(tuple)


# No strategy is made while another draws: hypothesis checks each new one, which takes longer than to draw from it.
_priorities = st.integers(0, 255)
_metadata = st.none() | st.dictionaries(_free, _json, max_size=3)
_Parts = tuple[str, RuleKind, st.SearchStrategy[tuple[str, ...]]]


@st.composite
def _rule(draw: st.DrawFn, parts: st.SearchStrategy[_Parts]) -> ToolRule:
    name, kind, conditions = draw(parts)
    return ToolRule(name, kind, draw(conditions), priority=draw(_priorities), metadata=draw(_metadata))


_allowed = st.frozensets(st.sampled_from(FILE_OPERATIONS)).map(AllowedOperations)
_anywhere = st.tuples(st.sampled_from(["calc", "block", "*", "memo@2"]), _kinds | _anything, st.just(st.just(())))
_for_file = st.tuples(st.sampled_from(["file", "file@1"]), st.one_of(_kinds, _allowed, _constraints), st.just(_on_file))
_preceding = st.tuples(
    st.just("block"), _ordering.filter(lambda k: not isinstance(k, RequiredBeforeExitIf)), st.just(_others)
)
_rules = _rule(st.one_of(_anywhere, _for_file, _preceding))
_few_rules, _two_rules = st.lists(_rules, max_size=4), st.lists(_rules, max_size=2)
_required = _rule(
    st.tuples(st.sampled_from(["file", "file@1"]), st.one_of(_limits, _allowed, _constraints), st.just(_on_file))
)


def _scopes(texts: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(texts), min_size=1, max_size=3, unique=True).map(tuple)


_limits_s = st.none() | _seconds.filter(lambda seconds: seconds > 0)
_bytes = st.none() | st.integers(1, 2**40) | st.sampled_from([1024, 64_000_000, 2**30])
_capabilities: st.SearchStrategy[tuple[Capability, ...]] = st.lists(
    st.one_of(
        st.builds(NetRead, _scopes(["*", "*.example.org", "x.com:443"])),
        st.builds(NetWrite, _scopes(["example.org", "10.0.0.1"])),
        st.builds(FsRead, _scopes([".", "notes", "/srv/data"])),
        st.builds(FsWrite, _scopes(["notes", "a b/ü"])),
        st.builds(DbRead, _scopes(["*", "notes", 'it"s'])),
        st.builds(DbWrite, _scopes(["notes", "log"])),
        st.builds(EnvRead, _scopes(["LANG", "HOME"])),
        st.builds(Exec, _limits_s, _bytes),
        st.builds(WasmExec, st.none() | st.integers(1, 2**63 - 1), _bytes),
        st.sampled_from([ClockRead(), AdvancedEdit()]),
    ),
    max_size=4,
    unique_by=lambda capability: (
        type(capability).__name__ if isinstance(capability, Exec | WasmExec) else repr(capability)
    ),
).map(tuple)
_tiers = st.sampled_from(SafetyTier)
_settings = st.builds(
    ToolSettings,
    _limits_s,
    st.none() | _tiers,
    st.just({}),
    st.booleans(),
    st.none() | _free.filter(lambda text: bool(text.strip())),
    extra_arguments=st.sampled_from([None, Verdict.ALLOW, Verdict.DENY]),
    trust=st.none() | st.sampled_from(Trust),
)


def _tiered(settings: ToolSettings, tiers: dict[str, SafetyTier], paths: dict[str, PathUse]) -> ToolSettings:
    return replace(settings, operation_tiers=tiers, paths=paths)


_paths = st.dictionaries(_free | st.sampled_from(["path", "edits[].path"]), st.sampled_from(PathUse), max_size=3)
_file_settings = st.builds(
    _tiered, _settings, st.dictionaries(st.sampled_from(FILE_OPERATIONS), _tiers, max_size=3), _paths
)
_operations = st.lists(_words.filter(is_visible), min_size=1, max_size=4, unique=True).map(tuple)
_declarations = st.one_of(
    st.builds(ToolSettings, operation_field=st.sampled_from(["", "mode"])),
    st.builds(ToolSettings, operation_field=st.sampled_from([None, "action", "note"]), operations=_operations),
)


@st.composite
def _declared(draw: st.DrawFn) -> ToolSettings:
    """Settings that declare operations, with tiers for some of them."""
    said, rest = draw(_declarations), draw(_settings)
    named = said.operations or (("dry", "wet") if said.operation_field == "mode" else ())
    tiers = draw(st.dictionaries(st.sampled_from(named), _tiers, max_size=2)) if named else {}
    return replace(rest, operation_field=said.operation_field, operations=said.operations, operation_tiers=tiers)


_boxed = st.sampled_from([("get",), ("put", "get"), ("drop",), ("get", "put", "drop")])
_narrowed = st.builds(
    ToolSettings, _limits_s, operation_field=st.sampled_from([None, "op"]), operations=st.none() | _boxed
)
_tool_settings = {
    "memo.deep": _settings,
    "memo@2": _settings,
    "file": _file_settings,
    "hub.run@1": _declared(),
    "hub.run@2": _settings,
    "box": _narrowed,
}
_tools = st.none() | st.lists(st.sampled_from(["file", "block", "memo@1", "calc", "memo.deep"]), unique=True).map(tuple)
_approval_keys = st.sampled_from(
    ["read_only", "side_effecting", "privileged", "file", "file.delete", "memo.deep", "memo.deep.find", "memo.find"]
)
_approvals = st.dictionaries(_approval_keys, _verdicts, max_size=4)
_patterns = st.sampled_from(
    ["drafts/**", "*.md", "a b/", r"\#x", r"sp\ ", "[a-z]?", "**/secret", "ü/'q'", '"q"', "x/**/y"]
)
_permission_rules = st.builds(PermissionRule, _patterns, _levels, st.none() | _free)
_flags = st.booleans()
_free_or_none = st.none() | _free
_ids_or_none = st.none() | _ids
_few_ids = st.lists(_ids, max_size=3, unique_by=str.casefold)


@st.composite
def _agents(draw: st.DrawFn, agent_id: str, source_ids: list[str]) -> Agent:
    rules = draw(_few_rules)
    named = [replace(rule, rule_id=f"r{number}") if draw(_flags) else rule for number, rule in enumerate(rules)]
    listed = draw(st.lists(st.sampled_from(source_ids), unique=True)) if source_ids else []
    return Agent(
        agent_id,
        draw(_free),
        draw(_tools),
        tuple(listed) if draw(_flags) else None,
        draw(_approvals),
        draw(_ids_or_none),
        tuple(named),
        draw(_capabilities),
    )


_sizes = st.integers(1, 2**40)


_sources = st.builds(
    Source,
    st.just("source"),
    st.sampled_from(["docs", "/srv/x", "a b", "ü", "..\\x", "./y"]),
    _levels,
    st.lists(_permission_rules, max_size=4).map(tuple),
    _sizes,
    st.lists(_required, max_size=3).map(tuple),
)


_times = st.builds(
    Times,
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.sampled_from([None, "08:00-18:00", "22:00-06:00", "00:00-24:00"]),
    st.sampled_from([None, ("mon",), ("mon", "sat", "sun")]),
)


@st.composite
def sources(draw: st.DrawFn, source_id: str) -> Source:
    return replace(draw(_sources), source_id=source_id)


_rules_of_all = st.lists(
    st.builds(
        PolicyRule,
        _ids,
        _verdicts,
        st.none(),
        st.none()
        | _scopes(["file", "memo@2", "memo.deep"]).map(lambda names: ("file", *(n for n in names if n != "file"))),
        st.none() | _scopes(list(FILE_OPERATIONS)),
        st.none() | st.just(True) | st.dictionaries(st.just("properties"), st.dictionaries(_free, _schemas)),
        _free_or_none,
        st.none() | _times,
    ),
    max_size=3,
    unique_by=lambda rule: rule.name,
).map(tuple)


@st.composite
def _policy_rules(draw: st.DrawFn, agent_ids: list[str]) -> tuple[PolicyRule, ...]:
    rules = draw(_rules_of_all)
    if not agent_ids or not rules:
        return rules
    agents = _scopes(agent_ids)
    return tuple(replace(rule, agents=draw(agents)) if draw(_flags) else rule for rule in rules)


_defaults = st.builds(
    Defaults,
    st.sampled_from([Verdict.ALLOW, Verdict.DENY]),
    st.sampled_from(["hold", "allow"]),
    _sizes,
    st.none() | _seconds.filter(lambda seconds: seconds > 0),
    _approvals,
    st.booleans(),
)


_manifests = st.sampled_from(["a.json", "tools/b c.json", 'ü"q.json'])
_variables = st.sampled_from(["HOME", "API_KEY", "_x1"])
_places = st.none() | st.dictionaries(st.sampled_from(["./notes", "/srv/ü b"]), st.sampled_from(PlaceUse))
_process = {
    "command": _words.filter(lambda word: is_visible(word) and not word.startswith("~")),
    "args": st.lists(_words.filter(is_visible) | st.just(""), max_size=4).map(tuple),
    "env": st.lists(_variables, max_size=3, unique=True).map(tuple),
    "cwd": st.none() | st.just("work/ü"),
    "confine": st.sampled_from(Confine),
    "places": _places,
}
_address = {
    "url": st.sampled_from(["https://host.example/mcp", "http://127.0.0.1:8000/a?b=c"]),
    "headers_env": st.dictionaries(st.sampled_from(["Authorization", "X-Key"]), _variables),
}
_query = st.dictionaries(st.sampled_from(["key", "api.key"]), _variables)
_module = {"module": st.sampled_from(["m.wasm", "a b/ü.wasm"]), "places": _places}


def _catalog(kind: CatalogType, fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Catalog]:
    return st.builds(Catalog, kind=st.just(kind), catalog_id=st.just("catalog"), trusted=_flags, **fields)


_host = _catalog(CatalogType.HOST, {"manifest": _manifests})
_any_catalog = st.one_of(
    _host,
    _catalog(CatalogType.MCP, _process),
    _catalog(CatalogType.MCP, _address),
    _catalog(CatalogType.HTTP, {"manifest": _manifests, "query_env": _query, **_address}),
    _catalog(CatalogType.SUBPROCESS, {"manifest": _manifests, **_process}),
    _catalog(CatalogType.WASM, {"manifest": _manifests, **_module}),
)


@st.composite
def catalogs(draw: st.DrawFn, catalog_id: str) -> Catalog:
    is_plain = re.fullmatch("[a-z][a-z0-9_-]*", catalog_id) is not None
    prefix = catalog_id if is_plain and draw(_flags) else None
    return replace(draw(_any_catalog if is_plain else _host), catalog_id=catalog_id, prefix=prefix)


_some_defaults = st.just(Defaults()) | _defaults
_tools_table = st.fixed_dictionaries({}, optional=_tool_settings)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    source_ids = draw(_few_ids)
    agent_ids = draw(_few_ids)
    return Policy(
        name=draw(_free_or_none),
        description=draw(_free_or_none),
        defaults=draw(_some_defaults),
        agents={agent_id: draw(_agents(agent_id, source_ids)) for agent_id in agent_ids},
        sources=tuple(draw(sources(source_id)) for source_id in source_ids),
        tools=draw(_tools_table),
        default=draw(_verdicts),
        rules=draw(_policy_rules(agent_ids)),
        catalogs=tuple(draw(catalogs(catalog_id)) for catalog_id in draw(_few_ids)),
    )


@st.composite
def edits(draw: st.DrawFn, policy: Policy) -> Policy:
    """The policy after some small edits, such as the app makes."""
    for _ in range(draw(st.integers(1, 3))):
        policy = draw(_edited(policy))
    return policy


@st.composite
def _edited(draw: st.DrawFn, policy: Policy) -> Policy:
    source_ids = [source.source_id for source in policy.sources]
    choices = ["defaults", "add-agent", "tools-table", "one-tool", "policy", "catalogs"]
    choices += (
        ["agent", "agent-rules", "rule-part", "agent-part", "remove-agent", "rename-agent"] if policy.agents else []
    )
    choices += ["source", "move-rules", "remove-source", "reorder-sources"] if policy.sources else []
    what = draw(st.sampled_from(choices))
    if what == "defaults":
        return replace(policy, defaults=draw(_some_defaults), name=draw(_free_or_none))
    if what == "tools-table":
        return replace(policy, tools=draw(_tools_table))
    if what == "one-tool":
        return _one_tool(draw, policy)
    if what == "catalogs":
        return replace(policy, catalogs=draw(_changed_catalogs(policy.catalogs)))
    if what == "policy":
        rules = draw(st.permutations([*policy.rules, *draw(_policy_rules([]))]))
        return replace(policy, default=draw(_verdicts), rules=tuple({rule.name: rule for rule in rules}.values()))
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
        part = draw(st.sampled_from(["description", "tools", "sources", "approvals", "user_id", "capabilities"]))
        return policy.with_agent(replace(agent, **{part: getattr(new, part)}))
    if what == "rule-part" and agent.tool_rules:
        return policy.with_agent(draw(_with_changed_rule(agent)))
    if what == "agent-rules":
        rules = list(agent.tool_rules)
        new_rules = [replace(rule, rule_id=None) for rule in draw(_two_rules)]
        at = draw(st.integers(0, len(rules)))
        rules[at : at + draw(st.integers(0, 2))] = new_rules
        return policy.with_agent(replace(agent, tool_rules=tuple(rules)))
    rows = list(policy.agents.values())
    if what == "remove-agent":
        policy = _without(policy, agent.agent_id)
        rows = list(policy.agents.values())
    elif what == "rename-agent":
        name = draw(_ids.filter(lambda name: name.casefold() not in {a.casefold() for a in policy.agents}))
        policy = replace(policy, rules=tuple(_renamed(rule, agent.agent_id, name) for rule in policy.rules))
        rows = [replace(row, agent_id=name) if row is agent else row for row in rows]
    return replace(policy, agents={row.agent_id: row for row in rows})


def _one_tool(draw: st.DrawFn, policy: Policy) -> Policy:
    """Change the settings of one tool as an edit does: replace them in their place, append them, or remove them."""
    name = draw(st.sampled_from(list(_tool_settings)))
    if name in policy.tools and draw(_flags):
        return replace(policy, tools={held: row for held, row in policy.tools.items() if held != name})
    return replace(policy, tools={**policy.tools, name: draw(_tool_settings[name])})


@st.composite
def _changed_catalogs(draw: st.DrawFn, before: tuple[Catalog, ...]) -> tuple[Catalog, ...]:
    kept = [draw(catalogs(row.catalog_id)) if draw(_flags) else row for row in before if draw(_flags)]
    taken = {row.catalog_id.casefold() for row in before}
    more = [draw(catalogs(name)) for name in draw(_few_ids) if name.casefold() not in taken]
    return tuple(draw(st.permutations([*kept, *more])))


@st.composite
def _with_changed_rule(draw: st.DrawFn, agent: Agent) -> Agent:
    """The agent with other conditions, another priority or another payload of one rule."""
    index = draw(st.integers(0, len(agent.tool_rules) - 1))
    rule = replace(agent.tool_rules[index], priority=draw(_priorities))
    if split_name(rule.tool_name)[0] == "file":
        rule = replace(rule, conditions=draw(_on_file))
        if isinstance(rule.rule_type, ArgumentConstraints):
            rule = replace(rule, rule_type=draw(_constraints))
    return replace(agent, tool_rules=(*agent.tool_rules[:index], rule, *agent.tool_rules[index + 1 :]))


def _renamed(rule: PolicyRule, old: str, new: str) -> PolicyRule:
    agents = tuple(new if name == old else name for name in rule.agents) if rule.agents is not None else None
    return replace(rule, agents=agents)


def _without(policy: Policy, agent_id: str) -> Policy:
    """The policy without that agent, whom no policy rule may name then."""
    agents = {name: agent for name, agent in policy.agents.items() if name != agent_id}
    rules = tuple(rule for rule in policy.rules if agent_id not in (rule.agents or ()))
    return replace(policy, agents=agents, rules=rules)


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
