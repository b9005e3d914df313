"""``catalog:ID`` for all tools of a catalog: a policy with it decides like one that writes their names out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gatewright.base.errors import EditRefused, PolicyInvalid
from gatewright.policy import agentedit, policyedit, rights
from gatewright.policy.edit import AgentChange, Edit, inverse
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict
from gatewright.tools import ResultType, Tool, tool
from gatewright.tools.pin import Listing, Pin, accept, relist, write_pin
from gatewright.workspace import Workspace
from tests.support.git_tools import BRANCH, LOG

CATALOGS = {"git": ("git_log", "branch"), "my.desk": ("desk.ticket", "desk.shelf"), "git.x": ("other",)}
NAMES = ("file", "web_fetch", *(name for names in CATALOGS.values() for name in names))
SERVERS = "".join(
    f'\n[[catalogs]]\nid = "{one}"\ntype = "mcp"\ncommand = "server"\nconfine = "none"\n' for one in ("git", "git.x")
)
DESK = '\n[[catalogs]]\nid = "my.desk"\ntype = "host"\nmanifest = "desk.json"\nprefix = "desk"\n'
HEAD = f"gatewright = 1\n{SERVERS}{DESK}"
AGENT = '\n[agents.a]\ntools = ["catalog:git", "file"]\n'
SEEDS = int(os.environ.get("GATEWRIGHT_SELECTED_POLICIES", "8"))


def listing(*tools: Mapping[str, Any]) -> Listing:
    return Listing.of(list(tools), name="git", version="1.0")


def named(name: str, *operations: str) -> dict[str, Any]:
    fields = {"action": {"type": "string", "enum": list(operations)}} if operations else {"id": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"name": name, "description": f"Works with {name}.", "inputSchema": schema}


def put(folder: Path, pin: Pin, name: str = "git") -> None:
    (folder / "catalogs" / f"{name}.json").write_bytes(write_pin(pin))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "catalogs").mkdir(parents=True)
    put(folder, accept(Pin(listing(LOG, BRANCH)), None))
    put(folder, accept(Pin(listing(named("other"))), None), "git.x")
    tools = [named("ticket", "open", "close"), named("shelf")]
    (folder / "desk.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")
    return folder


@pytest.fixture
def opened(folder: Path) -> Iterator[Callable[..., Workspace]]:
    held: list[Workspace] = []

    def made(policy: str = HEAD + AGENT, *tools: Tool) -> Workspace:
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
        held.append(Workspace.open(folder, tools=tools, keys=folder.parent / "keys", trust=True))
        return held[-1]

    yield made
    for workspace in held:
        workspace.close()


def shown(workspace: Workspace, agent: str = "a") -> dict[str, Any]:
    return {listed["name"]: listed["inputSchema"] for listed in workspace.view(agent).tools("mcp")}


def verdicts(workspace: Workspace) -> dict[str, Verdict]:
    """The verdict on each operation of each tool for each agent."""
    return {
        f"{agent_id}: {facts.name}.{operation.name}": workspace.gate.snapshot()
        .operation(agent_id, facts.name, operation.name)
        .verdict
        for agent_id in workspace.policy.agents
        for facts in workspace.catalog
        if facts.name in NAMES
        for operation in facts.operations
    }


def problems(policy: str, opened: Callable[..., Workspace]) -> list[tuple[str, str, int, str | None]]:
    with pytest.raises(PolicyInvalid) as refused:
        opened(policy)
    found = [one for one in refused.value.problems if one.is_error]
    return [(one.code, one.message, one.place.line if one.place else 0, one.near_miss) for one in found]


# the same as with names


def written_out(words: Sequence[str]) -> list[str]:
    found = (CATALOGS.get(one.removeprefix("catalog:"), (one,)) if ":" in one else (one,) for one in words)
    return list(dict.fromkeys(name for names in found for name in names))


def approvals_out(own: Mapping[str, str], wider: Mapping[str, str]) -> dict[str, str]:
    """The keys by tool; a tool's own key, here or in the defaults, is more specific than its catalog's."""
    found = {key: verdict for key, verdict in own.items() if ":" not in key}
    for key in own.keys() - found.keys():
        for name in CATALOGS[key.removeprefix("catalog:")]:
            if name not in wider:
                found.setdefault(name, own[key])
    return found


def twins(random: Random) -> tuple[str, str]:
    """One policy with selectors and one with names."""
    selectors = [f"catalog:{one}" for one in CATALOGS]
    effects = [str(verdict) for verdict in Verdict]

    def some(words: Sequence[str], most: int = 3) -> list[str]:
        return random.sample(list(words), random.randint(1, most))

    def approvals() -> dict[str, str]:
        keys = [*selectors, "git_log", "branch", "branch.delete", "desk.ticket.open", "read_only", "privileged"]
        return {key: random.choice(effects) for key in some(keys, 5)}

    by_selector, by_name = [HEAD], [HEAD]

    def add(template: str, one: Sequence[str], other: Sequence[str]) -> None:
        by_selector.append(template.replace("TOOLS", json.dumps(list(one))))
        by_name.append(template.replace("TOOLS", json.dumps(list(other))))

    defaults = approvals() if random.random() < 0.5 else {}
    for side, keys in ((by_selector, defaults), (by_name, approvals_out(defaults, {}))):
        side.append(
            "\n[defaults.approvals]\n" + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in keys.items())
        )
    for agent_id in ("a", "b"):
        tools = some([*selectors, *NAMES], 4)
        add(f"\n[agents.{agent_id}]\ntools = TOOLS\n", tools, written_out(tools))
        own = approvals()
        for side, keys in ((by_selector, own), (by_name, approvals_out(own, defaults))):
            side.append(
                f"[agents.{agent_id}.approvals]\n"
                + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in keys.items())
            )
    for number in range(random.randint(0, 3)):
        tools = some([*selectors, *NAMES])
        more = random.choice(['operations = ["delete"]\n', 'agents = ["a"]\n', "when = { minProperties = 1 }\n", ""])
        if "delete" in more:
            tools = ["catalog:git", *tools]
        rule = f'\n[[policy.rules]]\nname = "r{number}"\neffect = "{random.choice(effects)}"\ntools = TOOLS\n{more}'
        add(rule, list(dict.fromkeys(tools)), written_out(tools))
    return "".join(by_selector), "".join(by_name)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_policy_decides_and_shows_the_same_as_with_the_names_of_the_tools(seed: int, opened: Any, folder: Path) -> None:
    selecting, naming = twins(Random(seed))
    by_name = opened(naming)
    wanted, views = verdicts(by_name), [shown(by_name, one) for one in ("a", "b")]
    by_selector = opened()
    (folder / "policy.toml").write_text(selecting, encoding="utf-8")
    by_selector.reload()
    for workspace in (by_selector, opened(selecting)):
        assert [one for one in workspace.problems if one.is_error] == []
        assert verdicts(workspace) == wanted
        assert [shown(workspace, one) for one in ("a", "b")] == views
        assert workspace.selfcheck().differences == ()
        for tool_name, arguments in (
            ("git_log", {"repo": "."}),
            ("branch", {"action": "delete"}),
            ("other", {"id": "1"}),
        ):
            pair = [one.decide("a", tool_name, arguments) for one in (workspace, by_name)]
            assert pair[0].verdict is pair[1].verdict
            assert pair[0].model_message == pair[1].model_message


def test_most_specific_key_of_approvals_wins(opened: Any) -> None:
    keys = '[agents.a.approvals]\n"catalog:git" = "deny"\nbranch = "ask"\n"branch.list" = "allow"\n'
    found = verdicts(opened(HEAD + AGENT + keys))
    assert found["a: git_log."] is Verdict.DENY
    assert (found["a: branch.delete"], found["a: branch.list"]) == (Verdict.ASK, Verdict.ALLOW)
    assert found["a: other."] is Verdict.DENY  # not listed: another catalog's id begins the same


def test_reason_names_the_catalogs_key_with_its_place(opened: Any) -> None:
    workspace = opened(HEAD + AGENT + '[agents.a.approvals]\n"catalog:git" = "ask"\n')
    decision = workspace.decide("a", "git_log", {"repo": "."})
    assert (decision.verdict, decision.code) == (Verdict.ASK, "approval-needed")
    assert "by the approvals key `catalog:git`" in decision.reason


# what a text may say


@pytest.mark.parametrize(
    "part",
    [
        '\n[agents.b]\ntools = ["catalog:gti"]\n',
        '\n[agents.b.approvals]\n"catalog:gti" = "ask"\n',
        '\n[defaults.approvals]\n"catalog:gti" = "ask"\n',
        '\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["catalog:gti"]\n',
    ],
)
def test_unknown_catalog_is_an_error_at_its_place(part: str, opened: Any) -> None:
    line = (HEAD + AGENT + part).split("catalog:gti")[0].count("\n") + 1
    message = "no catalog is named `gti`"
    assert problems(HEAD + AGENT + part, opened) == [("unknown-catalog", message, line, "catalog:git")]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ('\n[[agents.a.tool_rules]]\ntool_name = "catalog:git"\nrule_type = { MaxCalls = 1 }\n', "bad-value"),
        ('\n[tools."catalog:git"]\nscrub = false\n', "bad-value"),
        ('\n[agents.b]\ntools = ["catalog:git", "catalog:git"]\n', "duplicate"),
        ('\n[agents.b]\ntools = ["catalog:composition"]\n', "unknown-catalog"),
        ('\n[agents.b]\ntools = ["catalog:built-in"]\n', "unknown-catalog"),
        ('\n[agents.b]\ntools = ["Catalog:git"]\n', "unknown-tool"),
        ('\n[agents.b.approvals]\n"catalog:git.branch" = "ask"\n', "unknown-catalog"),
        ('\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["catalog:git"]\noperations = ["purge"]\n',
         "unknown-operation"),
    ],
)  # fmt: skip
def test_selector_stands_only_where_whole_catalogs_make_sense(part: str, code: str, opened: Any) -> None:
    assert [found[0] for found in problems(HEAD + AGENT + part, opened)] == [code]


def test_catalog_whose_tools_nobody_has_seen_yet_may_be_named(folder: Path, opened: Any) -> None:
    (folder / "catalogs" / "git.json").unlink()
    rule = '\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["catalog:git"]\noperations = ["delete"]\n'
    workspace = opened(HEAD + AGENT + '[agents.a.approvals]\n"catalog:git" = "ask"\n' + rule)
    assert [one.code for one in workspace.problems if one.is_error] == []
    put(folder, accept(Pin(listing(LOG, BRANCH)), None))
    workspace.reload()
    found = verdicts(workspace)
    assert (found["a: git_log."], found["a: branch.delete"]) == (Verdict.ASK, Verdict.DENY)


# tools that come later


def test_later_tool_is_held_until_it_is_accepted_and_then_as_the_catalog(folder: Path, opened: Any) -> None:
    rule = '\n[[policy.rules]]\nname = "r"\neffect = "ask"\ntools = ["catalog:git"]\n'
    workspace = opened(HEAD + AGENT + rule)
    before = accept(Pin(listing(LOG, BRANCH)), None)
    later = relist(before, listing(LOG, BRANCH, named("stash")))
    put(folder, later)
    workspace.reload()
    assert "stash" not in shown(workspace)
    assert workspace.decide("a", "stash", {"id": "1"}).code == "tool-held"
    put(folder, accept(later, None))
    workspace.reload()
    assert "stash" in shown(workspace)
    decision = workspace.decide("a", "stash", {"id": "1"})
    assert (decision.verdict, decision.code) == (Verdict.ASK, "policy-ask")
    assert workspace.selfcheck().differences == ()


@tool(result_type=ResultType.STRING)
async def ticket(id: str) -> str:  # noqa: A002
    """Tell about a ticket.

    Args:
        id: Which ticket.
    """
    return f"ticket {id}"


def test_tool_that_the_program_has_itself_belongs_to_the_catalog_that_lists_it(opened: Any) -> None:
    own = HEAD.replace('prefix = "desk"\n', "") + '\n[agents.a]\ntools = ["catalog:my.desk"]\n'
    denied = '\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["catalog:my.desk"]\n'
    workspace = opened(own, ticket)
    assert "ticket" in shown(workspace)
    assert {facts.name: facts.origin for facts in workspace.catalog}["ticket"] == "my.desk"
    assert opened(own + denied, ticket).decide("a", "ticket", {"id": "1"}).code == "policy-deny"
    late = opened(own + denied)
    withdraw = late.tools.add(ticket)
    assert late.decide("a", "ticket", {"id": "1"}).code == "policy-deny"
    assert late.selfcheck().differences == ()
    withdraw()


# edits


def test_edits_with_a_catalog_reach_its_tools_at_once(opened: Any) -> None:
    workspace = opened(HEAD + '\n[agents.a]\ntools = ["file"]\n')
    git = ("a: git_log.", "a: branch.list", "a: branch.delete")

    def apply(edit: Edit) -> list[Verdict]:
        verdicts(workspace)  # whatever is not renewed would keep these
        workspace.apply(edit)
        assert workspace.selfcheck().differences == ()
        return [verdicts(workspace)[key] for key in git]

    def as_agent(**said: Any) -> Edit:
        agent = workspace.policy.agents["a"]
        return Edit("change", (AgentChange(agent, replace(agent, **said)),))

    allow, ask, deny = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
    assert apply(as_agent(tools=("catalog:git",))) == [allow, allow, ask]
    assert apply(as_agent(approvals={"catalog:git": ask})) == [ask, ask, ask]
    rule = PolicyRule("r", deny, tools=("catalog:git",), operations=("delete",))
    assert apply(policyedit.add_rule(workspace.policy, rule)) == [ask, ask, deny]
    assert apply(policyedit.remove_rules(workspace.policy, [0])) == [ask, ask, ask]
    assert apply(as_agent(approvals={})) == [allow, allow, ask]
    assert apply(as_agent(tools=("file",))) == [deny, deny, deny]


def test_turning_one_tool_off_writes_the_others_by_name(opened: Any) -> None:
    workspace = opened()
    before = verdicts(workspace)
    edit = rights.tick_tool(workspace.policy, workspace.catalog, "a", "git_log", on=False)
    workspace.apply(edit)
    assert workspace.policy.agents["a"].tools == ("branch", "file")
    found = verdicts(workspace)
    assert {key for key in found if found[key] is not before[key]} == {"a: git_log."}
    workspace.save()
    assert 'tools = ["branch", "file"]' in workspace.text()
    workspace.apply(rights.tick_tool(workspace.policy, workspace.catalog, "a", "git_log", on=True))
    assert verdicts(workspace) == before
    workspace.apply(inverse(rights.tick_tool(workspace.policy, workspace.catalog, "a", "git_log", on=True)))


def test_undo_brings_the_catalog_back(opened: Any) -> None:
    workspace = opened()
    text = workspace.text()
    edit = rights.tick_many(workspace.policy, workspace.catalog, "a", {"git_log": ("",), "branch": ("list",)}, on=False)
    workspace.apply(edit)
    assert workspace.policy.agents["a"].tools == ("branch", "file")
    workspace.apply(inverse(edit))
    assert workspace.text() == text


def test_operation_that_is_turned_off_leaves_the_catalog_listed(opened: Any) -> None:
    workspace = opened()
    workspace.apply(rights.tick_operations(workspace.policy, workspace.catalog, "a", "branch", ["delete"], on=False))
    assert workspace.policy.agents["a"].tools == ("catalog:git", "file")
    assert verdicts(workspace)["a: branch.delete"] is Verdict.DENY


def test_removed_catalog_takes_its_mentions_with_it(opened: Any) -> None:
    more = '[agents.a.approvals]\n"catalog:git" = "ask"\n"catalog:git.x" = "ask"\n'
    more += "".join(
        f'\n[[policy.rules]]\nname = "{name}"\neffect = "deny"\ntools = {json.dumps(tools)}\n'
        for name, tools in (("alone", ["catalog:git"]), ("both", ["catalog:git", "catalog:git.x"]))
    )
    workspace = opened(HEAD + AGENT + more)
    edit = policyedit.remove_catalog(workspace.policy, "git", CATALOGS["git"])
    workspace.apply(edit)
    agent = workspace.policy.agents["a"]
    assert (agent.tools, dict(agent.approvals)) == (("file",), {"catalog:git.x": Verdict.ASK})
    assert [(rule.name, rule.tools) for rule in workspace.policy.rules] == [("both", ("catalog:git.x",))]
    workspace.apply(inverse(edit))
    assert workspace.text() == HEAD + AGENT + more


def test_approvals_key_for_a_catalog_can_be_set_if_there_is_one(opened: Any) -> None:
    workspace = opened()

    def edit(key: str) -> Edit:
        return agentedit.set_approval(workspace.policy, workspace.catalog, "a", key, Verdict.ASK)

    assert "catalog:my.desk" in agentedit.approval_keys(workspace.policy, workspace.catalog)
    workspace.apply(edit("catalog:git"))
    assert verdicts(workspace)["a: git_log."] is Verdict.ASK
    with pytest.raises(EditRefused, match="did you mean `catalog:git`"):
        edit("catalog:gitt")


def test_file_for_pattern_has_the_names_and_says_what_is_lost(opened: Any) -> None:
    text = opened().export_texts("pattern", "a")["a.toml"]
    assert 'tools = ["branch", "git_log", "file"]' in text
    assert "# Lost here: the tools that git lists later, which catalog:git gives here." in text
