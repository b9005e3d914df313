"""What mends a problem, and what an edit changes of rights, for one policy with something of everything in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from random import Random

import pytest

from gatewright.base.errors import Problem, Severity, Subject
from gatewright.policy.capability import FsRead, FsWrite
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Confine,
    Defaults,
    Delegate,
    PermissionRule,
    PlaceUse,
    Policy,
    ShellSettings,
    Source,
    SourceType,
    ToolSettings,
    Web,
)
from gatewright.policy.edit import Edit, apply, inverse
from gatewright.policy.rightsdiff import (
    AgentDiff,
    ChangeKind,
    PartChange,
    PolicyDiff,
    RightChange,
    RightState,
    policy_diff,
)
from gatewright.policy.rule import ArgumentConstraints, ExclusiveGroups, MaxCalls, PolicyRule, ToolRule
from gatewright.policy.verdict import Endpoints, Permission, Verdict
from gatewright.workspace import Workspace
from gatewright.workspace.refusal import mends
from tests.engine.policy.test_layers import CLOCK

POLICY = """gatewright = 1

[workspace]
roots = { shared = "shared", tmp = "tmp", vault = "vault" }

[agents.a]
tools = ["file", "block", "file_read", "block_edit"]
sources = ["docs"]
capabilities = [{ FsRead = { prefixes = ["nowhere"] } }, { FsWrite = { prefixes = ["."] } }]

[[agents.a.tool_rules]]
tool_name = "block"
rule_type = { ArgumentConstraints = {} }

[[agents.a.tool_rules]]
tool_name = "block"
rule_type = { MaxCalls = 0 }

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "load", "append"] }

[agents.b]
tools = ["file"]
sources = []

[agents.c]
tools = ["web_fetch", "file_read", "shell_exec"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"

[[sources.permission_rules]]
pattern = "*.md"
permission = "read_write"

[[sources.permission_rules]]
pattern = "a.md"
permission = "read_only"

[[sources.permission_rules]]
pattern = "b.md"
permission = "read_write"

[[policy.rules]]
name = "never"
effect = "deny"
when = false

[[policy.rules]]
name = "half"
effect = "deny"
tools = ["block", "file"]
operations = ["status"]

[[policy.rules]]
name = "idle"
effect = "deny"
tools = ["block_edit", "file"]
when = { properties = { nothing = { const = 1 } } }

[[policy.rules]]
name = "ask"
effect = "ask"
tools = ["file"]
when = { properties = { content = { pattern = "x" } } }
"""


def opened(folder: Path) -> Workspace:
    (folder / "docs").mkdir()
    (folder / "other").mkdir()
    (folder / "tmp").mkdir()
    (folder / "vault").mkdir()
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return Workspace.open(folder, state=folder / "state", keys=folder / "keys")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = opened(tmp_path)
    yield made
    made.close()


MENDS = {
    ("rule-without-effect", "agents.a.tool_rules.0"): ["remove the constraint of `block` for `a`"],
    ("never-callable", "agents.a.tool_rules.1"): [],
    ("edits-never-saved", "agents.a.tool_rules.2"): ["turn on `save` of `file` for `a`"],
    ("no-source", "agents.b.tools"): ["turn off `file` for `b`", "attach `docs` to `b`"],
    ("no-root", "agents.c.tools.2"): ["take `shell_exec` from the tools of `c`"],
    ("rule-without-effect", "policy.rules.0.when"): ["remove policy rule `never`"],
    ("rule-without-effect", "policy.rules.1.tools"): ["take `block` from policy rule `half`"],
    ("deny-always", "policy.rules.2.when"): [],
    ("ask-always", "policy.rules.3.when"): [],
    ("ask-when-omitted", "policy.rules.3.when"): ["let policy rule `ask` ask only when its arguments are given"],
    ("missing-path", "workspace.roots.shared"): [],
    ("grant-reaches-nothing", "agents.a.capabilities.0"): ["revoke `FsRead` of `a`"],
    ("rule-shadowed", "sources.docs.permission_rules.1"): [
        "remove rule `a.md` of `docs`",
        "move rule `a.md` of `docs` above rule 1",
    ],
    ("rule-shadowed", "sources.docs.permission_rules.2"): ["remove rule `b.md` of `docs`"],
}


def test_each_problem_that_can_be_mended_is_gone_by_each_of_its_mends(workspace: Workspace) -> None:
    problems = workspace.current_problems()
    found: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        assert problem.subject is not None
        mends = workspace.mends(problem)
        found[problem.code, ".".join(map(str, problem.subject.address[:4]))] = [one.name for one in mends]
        for mend in mends:
            workspace.apply(mend)
            left = [one.code for one in workspace.current_problems()]
            assert left.count(problem.code) < [one.code for one in problems].count(problem.code), mend.name
            workspace.apply(inverse(mend))
            assert workspace.current_problems() == problems
    assert found == MENDS


def together(edits: Sequence[Edit]) -> Edit:
    return Edit("all", tuple(change for edit in edits for change in edit.changes))


def test_any_of_the_problems_are_mended_together_and_come_back_together(workspace: Workspace) -> None:
    problems = workspace.current_problems()
    before, chance = workspace.policy, Random(7)
    mild = {problem: first[0].name for problem in problems if (first := workspace.mends(problem)[:1])}
    for count in (1, 2, 3, 5, len(problems)) * 4:
        some = chance.sample(problems, count)
        found = workspace.mend_all(some)

        assert sorted(edit.name for edit in found) == sorted(mild[problem] for problem in some if problem in mild)
        workspace.apply(together(found))
        left = workspace.current_problems()
        codes = [problem.code for problem in left]
        for problem in some:
            if problem in mild:
                assert codes.count(problem.code) < [one.code for one in problems].count(problem.code), problem
        workspace.apply(inverse(together(found)))
        assert workspace.policy == before
        assert workspace.current_problems() == problems


@pytest.mark.parametrize("count", range(1, 9))
def test_rules_that_stand_in_one_list_are_removed_whichever_of_them_are_chosen(tmp_path: Path, count: int) -> None:
    rule = '[[agents.a.tool_rules]]\ntool_name = "{0}"\nrule_type = {{ {1} }}\n'
    kept, idle = "MaxCalls = {}", "Cooldown = 0"
    chance, lines = Random(count), ['gatewright = 1\n[agents.a]\ntools = ["block", "file_read"]\n']
    for number in range(count):
        pair = [rule.format("block", kept.format(number + 1)), rule.format("file_read", idle)]
        lines += pair[:: chance.choice((1, -1))]
    (tmp_path / "policy.toml").write_text("".join(lines), encoding="utf-8")
    workspace = Workspace.open(tmp_path, state=tmp_path / "state", keys=tmp_path / "keys")
    idles = [one for one in workspace.current_problems() if one.code == "rule-without-effect"]
    assert len(idles) == count

    workspace.apply(together(workspace.mend_all(chance.sample(idles, count))))

    assert [rule.rule_type for rule in workspace.policy.agents["a"].tool_rules] == [
        MaxCalls(number + 1) for number in range(count)
    ]
    workspace.close()


def test_problem_of_another_policy_has_no_mend(workspace: Workspace) -> None:
    problem = workspace.current_problems()[0]
    (mend,) = workspace.mends(problem)
    workspace.apply(mend)
    assert workspace.mends(problem) == ()


LOW, HIGH = Permission.READ_ONLY, Permission.READ_WRITE
A, B = PermissionRule("a", LOW), PermissionRule("b", LOW)
X = Source("x", "x", LOW)
ASK = PolicyRule("r", Verdict.ASK)
MENDED = Policy(
    agents={
        "a": Agent(
            "a",
            tools=("file", "clock", "late"),
            capabilities=(FsRead(("x",)),),
            tool_rules=tuple(
                ToolRule("file", kind)
                for kind in (
                    ExclusiveGroups(()),
                    ExclusiveGroups((("file",),)),
                    ArgumentConstraints({"a": True}),
                    ArgumentConstraints({}, ("a",)),
                )
            ),
        )
    },
    sources=(replace(X, permission_rules=(A,)), *(Source(name, name) for name in "yw")),
)
HERE = ("policy", "rules", 0)
NEED = PolicyRule("r", Verdict.ASK, when={"required": ["b"], "properties": {"a": True}})


@pytest.mark.parametrize(
    ("code", "address", "rule", "names"),
    [
        ("no-source", ("agents", "a"), ASK, ["turn off `file` for `a`", "attach `x` to `a`", "attach `y` to `a`"]),
        ("no-root", ("agents", "a", "tools", 1), ASK, ["take `clock` from the tools of `a`"]),
        ("no-root", ("agents", "a", "tools", 7), ASK, []),
        ("no-root", ("agents", "b", "tools", 0), ASK, []),
        ("grant-reaches-nothing", ("agents", "a", "capabilities", 0), ASK, ["revoke `FsRead` of `a`"]),
        ("grant-reaches-nothing", ("agents", "a", "capabilities", 1), ASK, []),
        ("rule-shadowed", ("sources", "z", "permission_rules", 0), ASK, []),
        ("rule-shadowed", ("sources", "x", "permission_rules", 0), ASK, ["remove rule `a` of `x`"]),
        ("rule-without-effect", ("agents", "a", "tool_rules", 0), ASK, ["remove the groups of `file` for `a`"]),
        ("never-callable", ("agents", "a", "tool_rules", 0), ASK, []),
        ("rule-without-effect", ("agents", "a", "tool_rules", 1), ASK, []),
        ("rule-without-effect", ("agents", "a", "tool_rules", 2), ASK, []),
        ("rule-without-effect", ("agents", "a", "tool_rules", 3), ASK, []),
        ("rule-without-effect", (*HERE, "tools", 0), replace(ASK, tools=("file",)), ["remove policy rule `r`"]),
        ("rule-without-effect", (*HERE, "tools", 0), replace(ASK, tools=("x", "y")), ["take `x` from policy rule `r`"]),
        ("rule-without-effect", (*HERE, "tools"), replace(ASK, tools=("x", "y")), []),
        ("rule-without-effect", (*HERE, "tools", "x"), ASK, ["remove policy rule `r`"]),
        ("rule-without-effect", (*HERE, "agents"), ASK, []),
        ("rule-without-effect", (*HERE, "when"), ASK, ["remove policy rule `r`"]),
        ("ask-when-omitted", HERE, NEED, ["let policy rule `r` ask only when its arguments are given"]),
        ("ask-when-omitted", HERE, replace(NEED, when={"required": ["b"]}), []),
        ("ask-when-omitted", HERE, replace(NEED, when=True), []),
        ("arguments-open", ("agents", "a"), ASK, ["refuse arguments that the schema of `file` does not name"]),
        ("no-such-code", HERE, ASK, []),
    ],
)
def test_mend_is_found_by_the_code_and_the_part_of_the_policy(
    code: str, address: tuple[str | int, ...], rule: PolicyRule, names: list[str]
) -> None:
    policy = replace(MENDED, rules=(rule,))
    problem = Problem(Severity.WARNING, code, "", subject=Subject(address, ("a",), (("file", None),)))
    found = mends(policy, (CLOCK, replace(CLOCK, name="file")), problem)
    assert [edit.name for edit in found] == names
    assert mends(policy, (), replace(problem, subject=None)) == ()


def test_places_that_nobody_accepted_are_given_as_proposed_or_none() -> None:
    server = Catalog("s", CatalogType.MCP, command="c")
    policy = replace(MENDED, catalogs=(server,))
    problem = Problem(Severity.WARNING, "places-not-accepted", "", subject=Subject(("catalogs", "s")))
    found = mends(policy, (), problem, lambda one: {one.catalog_id: PlaceUse.READ})

    assert [edit.name for edit in found] == ["give the server of `s` `s` to read", "give the server of `s` no place"]
    assert [apply(policy, edit).catalogs[0].places for edit in found] == [{"s": PlaceUse.READ}, {}]
    assert [edit.name for edit in mends(policy, (), problem)] == ["give the server of `s` no place"]
    assert mends(replace(policy, catalogs=()), (), problem) == ()


def test_mend_changes_what_it_says_and_nothing_else() -> None:
    def after(code: str, *address: str | int, at: int = 0, policy: Policy = MENDED) -> Policy:
        problem = Problem(Severity.WARNING, code, "", subject=Subject(address, ("a",), (("file", None),)))
        return apply(policy, mends(policy, (CLOCK, replace(CLOCK, name="file")), problem)[at])

    agent = MENDED.agents["a"]
    assert after("no-source", "agents", "a").agents["a"] == replace(agent, tools=("clock", "late"))
    assert after("no-source", "agents", "a", at=2).agents["a"] == replace(agent, sources=("y",))
    assert after("no-root", "agents", "a", "tools", 1).agents["a"] == replace(agent, tools=("file", "late"))
    needing = replace(MENDED, rules=(NEED,))
    (rule,) = after("ask-when-omitted", *HERE, policy=needing).rules
    assert rule == replace(NEED, when={"required": ["a", "b"], "properties": {"a": True}})
    closed = ToolSettings(extra_arguments=Verdict.DENY)
    assert after("arguments-open", "agents").tools == {"file": closed}
    held = replace(MENDED, tools={"file@1": ToolSettings(scrub=False)})
    assert after("arguments-open", "agents", policy=held).tools == {"file@1": replace(closed, scrub=False)}


EDITS = [
    ('base_path = "docs"', 'base_path = "other"'),
    ('default_permission = "read_write"\n', 'default_permission = "append"\nmax_file_bytes = 5000\n'),
    ('pattern = "b.md"\npermission = "read_write"', 'pattern = "c.md"\npermission = "none"'),
    ("MaxCalls = 0", "MaxCalls = 3"),
    ('"load", "append"]', '"load", "delete"]'),
    ('sources = ["docs"]\n', "sources = []\n"),
    ('prefixes = ["."]', 'prefixes = ["docs"]'),
    ('[agents.b]\ntools = ["file"]\nsources = []\n', '[agents.d]\ntools = ["file"]\n'),
    ('effect = "deny"\ntools = ["block_edit"', 'effect = "ask"\ntools = ["block_edit"'),
    ('pattern = "x"', 'pattern = "y"'),
    ('name = "never"\neffect = "deny"', 'name = "yes"\neffect = "allow"'),
    ('name = "half"', 'name = "other"'),
    ('shared = "shared"', 'shared = "docs"'),
    ("[workspace]", '[defaults]\nmax_output_bytes = 5000\n\n[tools.file]\nextra_arguments = "deny"\n\n[workspace]'),
]


@pytest.fixture
def edited(workspace: Workspace) -> PolicyDiff:
    text = POLICY
    for was, became in EDITS:
        assert was in text
        text = text.replace(was, became, 1)
    workspace.apply(workspace.with_text(*workspace.typed_edit("type", POLICY, text)))
    return workspace.unsaved_rights()


def test_all_that_an_edit_changes_beside_agents_is_told_with_what_opens(edited: PolicyDiff) -> None:
    assert [astuple(part) for part in edited.parts] == [
        ("docs: b.md", "read_write", "no rule", True),
        ("docs: c.md", "no rule", "none", False),
        ("docs: every other path", "read_write", "append", False),
        ("docs: base_path", "docs", "other", True),
        ("docs: max_file_bytes", "1048576", "5000", True),
        ("policy rule never", "deny", "none", True),
        ("policy rule half", "deny", "none", True),
        ("policy rule idle", "deny", "ask", True),
        ("policy rule ask", "ask", "changed", True),
        ("policy rule yes", "none", "allow", True),
        ("policy rule other", "none", "deny", False),
        ("[defaults] max_output_bytes", "16384", "5000", True),
        ("settings of file", "none", "set", True),
        ("[workspace] roots", "", "changed", True),
    ]


def rows(agent_id: str, before: RightState, after: RightState, *operations: str) -> list[RightChange]:
    dangers = {"delete": "deletes"}
    return [RightChange(agent_id, "file", name, before, after, dangers.get(name, "")) for name in operations]


def test_what_an_edit_changes_of_agents_is_told_row_by_row(edited: PolicyDiff) -> None:
    off, overruled, asks, on = RightState
    one, new, gone = edited.agents
    assert one == AgentDiff(
        "a",
        (
            *rows("a", on, overruled, "read", "load"),
            *rows("a", on, off, "append"),
            *rows("a", off, overruled, "delete"),
        ),
        (ToolRule("block", MaxCalls(0)),),
        (ToolRule("block", MaxCalls(3)),),
        (("docs",), ()),
        ((FsRead(("nowhere",)), FsWrite((".",))), (FsRead(("nowhere",)), FsWrite(("docs",)))),
    )
    free = ("read", "list", "diff", "load", "reload", "save", "append", "replace", "insert", "create")
    assert sorted(new.rows, key=lambda row: row.after) == [
        *rows("d", off, asks, "delete"),
        *rows("d", off, overruled, "status", "patch"),
        *rows("d", off, on, *free),
    ]
    assert replace(new, rows=()) == AgentDiff("d", is_new=True)
    assert gone == AgentDiff("b", is_gone=True)
    assert [agent.opens for agent in edited.agents] == [True, True, False]
    assert one.counts() == {ChangeKind.OFF: 3, ChangeKind.WRITTEN: 1}


@pytest.mark.parametrize(
    ("field", "before", "after", "told"),
    [
        ("sources", (), (X,), [("source x", "none", "new", True)]),
        ("sources", (X,), (), [("source x", "there", "none", False)]),
        ("sources", (X,), (replace(X, default_permission=HIGH),), [("x: every other path", LOW, HIGH, True)]),
        ("sources", (X,), (replace(X, permission_rules=(A,)),), [("x: a", "no rule", LOW, True)]),
        (
            "sources",
            (replace(X, permission_rules=(A, B)),),
            (replace(X, permission_rules=(B, A)),),
            [("x: order of the rules", "", "changed", True)],
        ),
        (
            "sources",
            (replace(X, permission_rules=(A, B, replace(B, permission=HIGH))),),
            (replace(X, permission_rules=(replace(A, permission=HIGH),)),),
            [("x: b", LOW, "no rule", True), ("x: a", LOW, HIGH, True)],
        ),
        (
            "sources",
            (X,),
            (replace(X, required_tools=(ToolRule("file", MaxCalls(1)),), kind=SourceType.FOLDER_CHANGES),),
            [("x: required_tools", "", "changed", True), ("x: kind", "file", "folder_changes", True)],
        ),
        ("rules", (ASK,), (), [("policy rule r", "ask", "none", True)]),
        ("rules", (), (ASK,), [("policy rule r", "none", "ask", False)]),
        ("rules", (), (replace(ASK, effect=Verdict.ALLOW),), [("policy rule r", "none", "allow", True)]),
        ("rules", (ASK,), (replace(ASK, message="m"),), [("policy rule r", "ask", "changed", True)]),
        (
            "defaults",
            Defaults(timeout_s=3.0),
            Defaults(Verdict.DENY, check_formats=True, approvals={"file": Verdict.ASK}),
            [
                ("[defaults] unlisted_tools", "allow", "deny", True),
                ("[defaults] timeout_s", "", "changed", True),
                ("[defaults] approvals", "", "changed", True),
                ("[defaults] check_formats", "False", "True", True),
            ],
        ),
        (
            "tools",
            {"a": ToolSettings(), "b": ToolSettings(), "c": ToolSettings()},
            {"a": ToolSettings(), "b": ToolSettings(scrub=False), "d": ToolSettings()},
            [
                ("settings of b", "set", "changed", True),
                ("settings of c", "set", "none", True),
                ("settings of d", "none", "set", True),
            ],
        ),
        ("default", Verdict.ALLOW, Verdict.DENY, [("[policy] default", "", "changed", True)]),
        ("catalogs", (), (Catalog("c", CatalogType.HOST),), [("tools of c", "", "added", True)]),
        ("catalogs", (Catalog("c", CatalogType.HOST),), (), [("tools of c", "", "removed", False)]),
        (
            "catalogs",
            (),
            (Catalog("c", CatalogType.MCP, command="c"),),
            [("server c", "", "added; it is used only after you trust it", True)],
        ),
        (
            "catalogs",
            (Catalog("c", CatalogType.MCP, command="c", places={"a": PlaceUse.READ, "b": PlaceUse.WRITE}),),
            (Catalog("c", CatalogType.MCP, command="c", places={"a": PlaceUse.WRITE}, confine=Confine.NONE),),
            [
                ("catalog c: confine", "policy", "none", True),
                ("catalog c: place a", "read", "write", True),
                ("catalog c: place b", "write", "none", False),
            ],
        ),
        (
            "catalogs",
            (Catalog("c", CatalogType.MCP, command="c"),),
            (Catalog("c", CatalogType.MCP, command="d", places={}),),
            [("catalog c: places", "not accepted", "none", True), ("tools of c", "", "changed", True)],
        ),
        (
            "shell",
            ShellSettings(confine=Confine.NONE),
            ShellSettings(),
            [("[workspace] shell: confine", "none", "policy", False)],
        ),
        ("web", Web(), Web(allow_private=True), [("[workspace] web", "", "changed", True)]),
        ("shell", ShellSettings(), ShellSettings(allow=("ls",)), [("[workspace] shell", "", "changed", True)]),
        ("endpoints", Endpoints(), Endpoints(user=True), [("[workspace] endpoints", "", "changed", True)]),
        ("name", "a", "b", []),
        (
            "agents",
            {"a": Agent("a", sub_agents=("c",)), "b": Agent("b", sub_agents=("c",))},
            {"a": Agent("a", sub_agents=("b", "c"), delegate=Delegate.INTERSECT), "b": Agent("b")},
            [
                ("sub-agent c of a", "its own rights", "its own rights, within those of its caller", False),
                ("sub-agent b of a", "no more than its caller", "its own rights, within those of its caller", False),
                ("sub-agent c of b", "its own rights", "no more than its caller", False),
            ],
        ),
        (
            "agents",
            {"a": Agent("a")},
            {"a": Agent("a", sub_agents=("b",))},
            [("sub-agent b of a", "no more than its caller", "its own rights", True)],
        ),
    ],
)
def test_each_part_beside_the_agents_that_differs_is_told(
    field: str, before: object, after: object, told: list[tuple[str, str, str, bool]]
) -> None:
    old, new = (replace(Policy(), **{field: one}) for one in (before, after))  # pyright: ignore[reportArgumentType]
    diff = policy_diff(old, new, lambda _: {}, lambda _: {})
    assert diff == PolicyDiff((), tuple(PartChange(*one) for one in told))
    assert (diff.is_empty, diff.opens) == (not told, any(opens for *_, opens in told))


@pytest.mark.parametrize(
    ("before", "after", "danger", "kind", "opens", "risk"),
    [
        (RightState.OFF, RightState.ON, "", ChangeKind.ON, True, 2),
        (RightState.OVERRULED, RightState.ON, "deletes", ChangeKind.ON, True, 0),
        (RightState.ASKS, RightState.ON, "", ChangeKind.FREE, True, 1),
        (RightState.ASKS, RightState.ON, "privileged", ChangeKind.FREE, True, 0),
        (RightState.OVERRULED, RightState.ASKS, "", ChangeKind.ASKS, True, 2),
        (RightState.OFF, RightState.ASKS, "", ChangeKind.ASKS, True, 2),
        (RightState.ON, RightState.ASKS, "deletes", ChangeKind.ASKS, False, 3),
        (RightState.ON, RightState.OFF, "", ChangeKind.OFF, False, 3),
        (RightState.ASKS, RightState.OVERRULED, "", ChangeKind.OFF, False, 3),
        (RightState.OFF, RightState.OVERRULED, "", ChangeKind.WRITTEN, False, 3),
    ],
)
def test_change_of_a_right_is_named_by_what_becomes_of_it_and_sorted_by_its_risk(
    before: RightState, after: RightState, danger: str, kind: ChangeKind, opens: bool, risk: int
) -> None:
    change = RightChange("a", "file", "read", before, after, danger)
    assert (change.kind, change.opens, change.risk) == (kind, opens, risk)
