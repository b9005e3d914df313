"""Policy rules and the fields of a policy, edited as the app does it: named, refused where they could not be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.base.errors import EditRefused
from gatewright.policy import policyedit
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Defaults,
    Dialect,
    PermissionRule,
    Policy,
    Roots,
    SearchEngine,
    SearchProvider,
    ShellBackend,
    ShellSettings,
    Source,
    SourceType,
    ToolSettings,
    Web,
)
from gatewright.policy.edit import ChangeSet, Edit, Field, FieldChange, apply, inverse
from gatewright.policy.glob import Explanation
from gatewright.policy.right import Layer, ToolFacts
from gatewright.policy.rights import Preset
from gatewright.policy.rightsdiff import AgentDiff, RightChange, RightState
from gatewright.policy.rule import RULE_KINDS, MaxCalls, PolicyRule, ToolRule
from gatewright.policy.verdict import (
    Action,
    AgentEndpoint,
    BlueskyEndpoint,
    DiscordEndpoint,
    Endpoints,
    PathUse,
    Permission,
    SafetyTier,
    Verdict,
)
from gatewright.workspace import Workspace

POLICY = """\
gatewright = 1

[agents.clerk]
tools = ["file_read"]

[[policy.rules]]       # first
name = "one"
effect = "ask"
tools = ["file_read"]  # what it reads

[[policy.rules]]
name = "two"
effect = "deny"

[workspace]
roots = { shared = "files" }  # theirs
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "ws"
    (folder / "files").mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    with Workspace.open(folder, keys=tmp_path / "keys") as opened:
        yield opened


def rules(workspace: Workspace) -> list[str]:
    return [rule.name for rule in workspace.policy.rules]


def test_rules_are_added_changed_moved_and_removed_with_names_and_taken_back(workspace: Workspace) -> None:
    added = policyedit.add_rule(workspace.policy, PolicyRule("three", Verdict.ASK, agents=("clerk",)), 1)
    workspace.apply(added)
    moved = policyedit.move_rules(workspace.policy, (0,), 2)
    workspace.apply(moved)
    assert rules(workspace) == ["three", "two", "one"]
    assert workspace.text().index("# first") > workspace.text().index('"two"')
    one = workspace.policy.rules[2]
    changed = policyedit.change_rule(workspace.policy, 2, replace(one, message="ask the desk"))
    workspace.apply(changed)
    assert 'tools = ["file_read"]  # what it reads\nmessage = "ask the desk"' in workspace.text()
    renamed = policyedit.change_rule(workspace.policy, 2, replace(workspace.policy.rules[2], name="uno"))
    removed = policyedit.remove_rules(workspace.policy, (0, 1))
    assert [edit.name for edit in (added, moved, changed, renamed, removed)] == [
        "add policy rule `three`",
        "move policy rule `one`",
        "change policy rule `one`",
        "rename policy rule `one` to `uno`",
        "remove 2 policy rules",
    ]
    for edit in (changed, moved, added):
        workspace.apply(inverse(edit))
    assert workspace.text() == POLICY


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        (PolicyRule("one", Verdict.DENY), "`name`: a policy rule is named `one` already"),
        (PolicyRule("x", Verdict.DENY, agents=("nobody",)), "which does not exist"),
        (PolicyRule("x", Verdict.DENY, tools=("file_raed",)), "`tools.0`: no tool is named `file_raed`"),
        (PolicyRule("x", Verdict.DENY, operations=()), "`operations`: an empty `operations` matches nothing"),
        (
            PolicyRule("x", Verdict.DENY, when={"properties": {"path": {"minimun": 1}}}),
            "`when.properties.path.minimun`",
        ),
    ],
)
def test_a_rule_that_could_not_be_loaded_again_is_refused_with_its_place(
    workspace: Workspace, rule: PolicyRule, place: str
) -> None:
    edit = policyedit.add_rule(workspace.policy, rule)
    assert workspace.faults(edit)
    with pytest.raises(EditRefused) as refused:
        workspace.apply(edit)
    assert place in str(refused.value)
    assert workspace.text() == POLICY


def test_fields_are_set_in_place_and_take_effect_at_once(workspace: Workspace) -> None:
    policy = workspace.policy
    edits = [
        policyedit.set_field(policy, "roots", replace(policy.roots, tmp="scratch")),
        policyedit.set_field(policy, "shell", ShellSettings(ShellBackend.HOST, ("ls",))),
        policyedit.set_field(policy, "web", Web(allow_private=True)),
        policyedit.set_field(policy, "endpoints", Endpoints(discord=DiscordEndpoint("D_TOKEN"))),
        policyedit.set_field(policy, "default", Verdict.ASK),
        policyedit.set_field(policy, "defaults", replace(policy.defaults, max_output_bytes=99)),
    ]
    for edit in edits:
        workspace.apply(edit)
    assert [edit.name for edit in edits] == [
        "set `roots.tmp` to `scratch`",
        "change `shell`",
        "set `web.allow_private` to `on`",
        "change `endpoints.discord`",
        "set `default` to `ask`",
        "set `defaults.max_output_bytes` to `99`",
    ]
    assert 'roots = { shared = "files", tmp = "scratch" }  # theirs' in workspace.text()
    assert {"shell_exec", "send_message"} <= {facts.name for facts in workspace.catalog}
    for edit in reversed(edits):
        workspace.apply(inverse(edit))
    assert workspace.text() == POLICY


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("roots", Roots("files", "files/tmp"), "may not lie in each other"),
        ("roots", Roots("/srv/elsewhere"), "is not trusted yet"),
        ("shell", ShellSettings(allow=("rm\n",)), "`workspace.shell.allow"),
        ("endpoints", Endpoints(discord=DiscordEndpoint("the secret")), "`workspace.endpoints.discord.token_env`"),
        ("defaults", Defaults(max_output_bytes=0), "`defaults.max_output_bytes`"),
    ],
)
def test_a_field_that_could_not_be_loaded_again_is_refused_with_its_place(
    workspace: Workspace, field: Field, value: object, said: str
) -> None:
    with pytest.raises(EditRefused) as refused:
        workspace.apply(policyedit.set_field(workspace.policy, field, value))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("endpoints", "target", "said"),
    [
        (
            Endpoints(discord=DiscordEndpoint("T", None, "https://d")),
            "discord",
            "with the token in T, for every channel",
        ),
        (
            Endpoints(discord=DiscordEndpoint("T", ("7", "8"), "https://d")),
            "discord",
            "with the token in T, for the channels 7, 8",
        ),
        (
            Endpoints(bluesky=BlueskyEndpoint("me", "P", None, "https://b")),
            "bluesky",
            "as me, with the app password in P, for every account",
        ),
        (
            Endpoints(bluesky=BlueskyEndpoint("me", "P", ("x",), "https://b")),
            "bluesky",
            "as me, with the app password in P, for the accounts x",
        ),
    ],
)
def test_whoever_trusts_an_endpoint_is_told_where_it_leads_and_for_whom(
    endpoints: Endpoints, target: str, said: str
) -> None:
    where, _, how = endpoints.definition(target).partition("\n")
    assert (where, how) == (endpoints.outside[target], said)
    assert [endpoints.definition(other) for other in ("discord", "bluesky", "user") if other != target] == ["", ""]


@pytest.mark.parametrize(
    ("field", "before", "after", "name"),
    [
        ("name", None, "it", "set `name` to `it`"),
        ("name", "it", None, "remove `name`"),
        ("description", "", "x" * 60, f"set `description` to `{'x' * 60}`"),
        ("description", "", "x" * 61, "change `description`"),
        ("description", "", "a\nb", "change `description`"),
        ("roots", Roots("a"), Roots(), "remove `roots.shared`"),
        ("roots", Roots("a"), Roots("b", "c"), "change `roots`"),
        ("shell", ShellSettings(), ShellSettings(allow=("ls", "cat")), "set `shell.allow` to `ls, cat`"),
        ("web", Web(allow_private=True), Web(), "set `web.allow_private` to `off`"),
        ("web", Web(), Web(search=()), "change `web.search`"),
        ("web", Web(search=()), Web(), "change `web.search`"),
        ("endpoints", Endpoints(), Endpoints(groups={"g": ("a",)}), "change `endpoints.groups`"),
        (
            "endpoints",
            Endpoints(discord=DiscordEndpoint("A")),
            Endpoints(discord=DiscordEndpoint("B")),
            "set `endpoints.discord.token_env` to `B`",
        ),
    ],
)
def test_field_that_is_set_is_named_by_what_differs(field: Field, before: object, after: object, name: str) -> None:
    policy = replace(Policy(), **{field: before})  # pyright: ignore[reportArgumentType]
    edit = policyedit.set_field(policy, field, after)
    assert edit == Edit(name, (FieldChange(field, before, after),))


def test_policy_rules_are_put_moved_and_removed_where_it_is_said() -> None:
    rules = tuple(PolicyRule(name, Verdict.ASK) for name in "abc")
    policy, new = Policy(rules=rules), PolicyRule("x", Verdict.DENY)
    edits = [
        policyedit.add_rule(policy, new, 0),
        policyedit.put_rule(policy, None, new),
        policyedit.put_rule(policy, 1, new),
        policyedit.put_rule(policy, 1, replace(rules[1], name="x")),
        policyedit.move_rules(policy, (0, 1), 9),
        policyedit.remove_rules(policy, (2,)),
    ]
    assert [(edit.name, "".join(rule.name for rule in apply(policy, edit).rules)) for edit in edits] == [
        ("add policy rule `x`", "xabc"),
        ("add policy rule `x`", "abcx"),
        ("change policy rule `b`", "axc"),
        ("rename policy rule `b` to `x`", "axc"),
        ("move 2 policy rules", "cab"),
        ("remove policy rule `c`", "ab"),
    ]
    assert apply(policy, edits[2]).rules[1].identity == rules[1].identity
    for index, said in ((3, "the policy has no rule 4"), (-1, "the policy has no rule 0")):
        with pytest.raises(EditRefused) as refused:
            policyedit.remove_rules(policy, (index,))
        assert str(refused.value) == said


def test_policy_says_what_its_workspace_provides_and_who_may_use_which_source() -> None:
    kinds = (SourceType.FILE, SourceType.FOLDER_CHANGES) * 2
    sources = tuple(Source(name, name, kind=kind) for name, kind in zip("abcd", kinds, strict=True))
    some, every = Agent("some", sources=("a", "b")), Agent("every")
    roots = Roots("s", vault="v")
    policy = Policy(
        sources=sources,
        roots=roots,
        shell=ShellSettings(ShellBackend.HOST),
        endpoints=Endpoints(user=True, agent=AgentEndpoint()),
        agents={"some": some, "every": every},
    )

    assert Policy().provides == frozenset()
    assert policy.provides == {"shared", "vault", "shell", "endpoint user", "endpoint agent"}
    assert (roots.folders, roots.folder("tmp"), roots.folder("x")) == ({"shared": "s", "vault": "v"}, None, None)
    told = [[one.source_id for one in rows] for rows in (policy.file_sources, policy.sources_of(some))]
    assert told == [["a", "c"], ["a"]]
    told = [
        [one.source_id for one in ask(one)] for ask in (policy.sources_of, policy.streams_of) for one in (some, every)
    ]
    assert told == [["a"], ["a", "c"], ["b"], ["b", "d"]]
    assert (policy.source("c"), policy.source("x"), policy.catalog("x")) == (sources[2], None, None)
    turned = replace(policy, agents={"every": every, "some": some})
    assert (policy.is_same(replace(policy)), policy == turned, policy.is_same(turned)) == (True, True, False)
    assert policy.recipients == {"agent": ("some", "every")}
    levels = replace(sources[0], permission_rules=(PermissionRule("x", Permission.ADMIN),)).levels
    assert levels == {Permission.READ_ONLY, Permission.ADMIN}


def test_endpoints_say_which_targets_there_are_and_whom_each_may_reach() -> None:
    every = Endpoints(
        True, AgentEndpoint(("a",)), {"g": ("b", "c")}, DiscordEndpoint("T", ("7",)), BlueskyEndpoint("m", "P", ("x",))
    )
    open_ones = Endpoints(agent=AgentEndpoint(), discord=DiscordEndpoint("T"), bluesky=BlueskyEndpoint("m", "P"))
    assert [one.targets for one in (Endpoints(), every, open_ones)] == [
        (),
        ("user", "agent", "group", "discord", "bluesky"),
        ("agent", "discord", "bluesky"),
    ]
    assert every.outside == {"discord": "https://discord.com/api/v10", "bluesky": "https://bsky.social"}
    assert [one.agents for one in (Endpoints(), every, open_ones)] == [frozenset(), {"a", "b", "c"}, frozenset()]
    agents = {"a": 1, "z": 2}
    assert every.recipients(agents) == {"agent": ("a",), "group": ("g",), "discord": ("7",), "bluesky": ("x",)}
    assert (open_ones.recipients(agents), Endpoints().recipients(agents)) == ({"agent": ("a", "z")}, {})


def test_words_that_stand_in_files_and_logs_stay_as_they_are() -> None:
    assert [str(word) for word in Preset] == ["everything", "standard", "read only", "nothing"]
    assert [name for name, kind in RULE_KINDS.items() if kind.fits_source] == [
        *(
            "AllowedOperations",
            "MaxCalls",
            "Cooldown",
            "RateLimit",
            "RequiresConsent",
            "ArgumentConstraints",
            "AfterOutside",
            "Needed",
        ),
    ]
    written = (*CatalogType, *ShellBackend, *SearchEngine, *SourceType, *Dialect, *Verdict, *Permission, *Action)
    assert [str(word) for word in (*written, *PathUse, *SafetyTier, *Layer, *CapabilityKind)] == [
        *("mcp", "http", "subprocess", "wasm", "host"),
        *("disabled", "host", "session"),
        *("duckduckgo", "searxng", "google"),
        *("file", "folder_changes", "host"),
        *("gatewright", "pattern"),
        *("allow", "ask", "deny"),
        *("none", "read_only", "ask", "partner", "human", "append", "read_write", "admin"),
        *("read", "append", "overwrite", "delete"),
        *("read", "write", "delete", "none"),
        *("read_only", "side_effecting", "privileged"),
        *("tools", "rule", "approvals", "source", "capability", "policy"),
        *("NetRead", "NetWrite", "FsRead", "FsWrite", "DbRead", "DbWrite", "Exec", "WasmExec"),
        *("ClockRead", "EnvRead", "AdvancedEdit"),
    ]


def test_what_is_not_said_is_as_it_always_was() -> None:
    duck = SearchProvider(SearchEngine.DUCKDUCKGO, None, None, None)
    disabled = ShellSettings(ShellBackend.DISABLED, (), (), allow_substitution=False)
    assert Policy() == Policy(
        None,
        None,
        Defaults(Verdict.ALLOW, "hold", 16_384, None, {}, check_formats=False),
        {},
        (),
        {},
        Dialect.GATEWRIGHT,
        Verdict.ALLOW,
        (),
        (),
        Roots(None, None, None),
        Web(allow_private=False, search=(duck,)),
        disabled,
        Endpoints(False, None, {}, None, None),
    )
    assert Source("s", "x") == Source("s", "x", Permission.READ_ONLY, (), 1_048_576, (), False, SourceType.FILE)
    assert ToolSettings() == ToolSettings(None, None, {}, True, None, None, None, None, {})
    assert (ToolSettings().declares, ToolSettings(operation_field="op").declares) == (False, True)
    assert ToolSettings(operations=("a",)).declares
    catalog = Catalog("c", CatalogType.MCP)
    assert catalog == Catalog("c", CatalogType.MCP, "", False, None, None, (), (), None, None, {})
    assert Agent("a") == Agent("a", "", None, None, {}, None, (), ())
    assert PolicyRule("r", Verdict.ASK) == PolicyRule("r", Verdict.ASK, None, None, None, None, None)
    assert ToolRule("t", MaxCalls(1)) == ToolRule("t", MaxCalls(1), (), 5, None, None)
    facts = ToolFacts("t", 1, (), SafetyTier.READ_ONLY)
    rest = ("built-in", False, "", (), None, None, None, "", False)
    assert facts == ToolFacts("t", 1, (), SafetyTier.READ_ONLY, *rest)
    assert RightChange("a", "t", "", RightState.OFF, RightState.ON).danger == ""
    assert AgentDiff("a") == AgentDiff("a", (), (), (), None, None, False, False)
    assert Explanation(Permission.NONE) == Explanation(Permission.NONE, None, None, False)
    assert ChangeSet(frozenset(), frozenset()) == ChangeSet(frozenset(), frozenset(), False)
