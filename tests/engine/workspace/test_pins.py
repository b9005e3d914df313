"""Catalogs of type mcp: pinned tools are shown and decided offline; what was not accepted is closed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright.policy import agentedit
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import ResultType, tool
from gatewright.tools.pin import Listing, Pin, accept, relist, write_pin
from gatewright.workspace import Workspace, audit_log
from tests.support.git_tools import BRANCH, LOG

SERVER = '\n[[catalogs]]\nid = "git"\ntype = "mcp"\ncommand = "mcp-server-git"\nconfine = "none"\n'
POLICY = f'gatewright = 1\n\n[agents.a]\ntools = ["git_log", "branch"]\n{SERVER}'


def pin_of(*tools: Any) -> Pin:
    return Pin(Listing.of(list(tools), name="git", version="1.0"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "catalogs").mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    put(folder, accept(pin_of(LOG, BRANCH), None))
    return folder


@pytest.fixture
def opened(folder: Path) -> Iterator[Any]:
    held: list[Workspace] = []

    def made(*, trust: bool = True) -> Workspace:
        held.append(Workspace.open(folder, keys=folder.parent / "keys", trust=trust))
        return held[-1]

    yield made
    for workspace in held:
        workspace.close()


def put(folder: Path, pin: Pin, name: str = "git") -> None:
    (folder / "catalogs" / f"{name}.json").write_bytes(write_pin(pin))


def shown(workspace: Workspace, agent: str = "a") -> dict[str, Any]:
    return {listed["name"]: listed for listed in workspace.view(agent).tools("mcp")}


def codes(workspace: Workspace) -> list[str]:
    return [problem.code for problem in workspace.problems]


def changed(tool: dict[str, Any], **said: Any) -> dict[str, Any]:
    return {**deepcopy(tool), **said}


def test_accepted_tools_are_shown_decided_and_counted_with_the_tiers_of_the_pin(opened: Any) -> None:
    workspace = opened()
    assert set(shown(workspace)) == {"git_log", "branch"}
    assert workspace.decide("a", "git_log", {"repo": "."}).verdict is Verdict.ALLOW
    assert workspace.decide("a", "branch", {"action": "list"}).verdict is Verdict.ALLOW
    assert workspace.decide("a", "branch", {"action": "delete"}).verdict is Verdict.ASK
    assert {facts.name: facts.tier for facts in workspace.catalog}["git_log"] is SafetyTier.READ_ONLY
    assert workspace.selfcheck().differences == ()
    assert codes(workspace) == []


def test_operators_tiers_in_the_policy_win_over_those_of_the_pin(folder: Path, opened: Any) -> None:
    settings = '\n[tools.git_log]\nsafety_tier = "privileged"\n\n[tools.branch.operation_tiers]\ndelete = "read_only"\n'
    (folder / "policy.toml").write_text(POLICY + settings, encoding="utf-8")
    workspace = opened()
    assert workspace.decide("a", "git_log", {}).verdict is Verdict.ASK
    assert workspace.decide("a", "branch", {"action": "delete"}).verdict is Verdict.ALLOW


def test_tool_that_needs_a_capability_is_shown_to_whoever_has_it(folder: Path, opened: Any) -> None:
    put(folder, accept(pin_of(changed(LOG, annotations={"readOnlyHint": True, "openWorldHint": True}), BRANCH), None))
    workspace = opened()
    assert set(shown(workspace)) == {"branch"}
    assert "NetRead" in workspace.decide("a", "git_log", {}).reason
    grant = '"branch"]\ncapabilities = [{ NetRead = { allowlist = ["*"] } }]'
    (folder / "policy.toml").write_text(POLICY.replace('"branch"]', grant), encoding="utf-8")
    workspace.reload()
    assert set(shown(workspace)) == {"git_log", "branch"}


HELD = [
    ("new", pin_of(LOG, BRANCH), {"git_log", "branch"}, "2 never accepted (`git_log`, `branch`)"),
    (
        "changed",
        relist(accept(pin_of(LOG, BRANCH), None), Listing.of([changed(LOG, description="Sends it."), BRANCH])),
        {"git_log"},
        "1 changed since (`git_log`)",
    ),
    (
        "vanished",
        relist(accept(pin_of(LOG, BRANCH), None), Listing.of([LOG])),
        {"branch"},
        "1 not listed any more (`branch`)",
    ),
]


@pytest.mark.parametrize(("pin", "closed", "told"), [row[1:] for row in HELD], ids=[row[0] for row in HELD])
def test_held_tool_is_known_and_neither_shown_nor_callable(
    folder: Path, opened: Any, pin: Pin, closed: set[str], told: str
) -> None:
    put(folder, pin)
    workspace = opened()
    assert set(shown(workspace)) == {"git_log", "branch"} - closed
    for name in closed:
        decision = workspace.decide("a", name, {"action": "list"})
        assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "lookup", "tool-held")
        assert name not in (decision.model_message or "")
        assert workspace.rights("a")[name].reasons[0].address == ("catalogs", "git")
    (problem,) = workspace.problems
    assert (problem.code, problem.is_error, problem.place and problem.place.line) == ("tools-held", False, 7)
    assert told in problem.message
    assert "`gatewright catalog accept POLICY git`" in problem.message
    assert workspace.selfcheck().differences == ()


def test_held_tool_is_closed_to_an_agent_that_lists_no_tools_as_well(folder: Path, opened: Any) -> None:
    (folder / "policy.toml").write_text(POLICY.replace('tools = ["git_log", "branch"]', ""), encoding="utf-8")
    put(folder, accept(pin_of(LOG, BRANCH), ["git_log"]))
    workspace = opened()
    assert {"git_log"} == set(shown(workspace)) & {"git_log", "branch"}


def test_policy_that_limits_an_operation_which_a_drifted_tool_lost_still_loads(folder: Path, opened: Any) -> None:
    rule = '\n[[agents.a.tool_rules]]\ntool_name = "branch"\nrule_type = { AllowedOperations = ["delete"] }\n'
    (folder / "policy.toml").write_text(POLICY + rule, encoding="utf-8")
    other = deepcopy(BRANCH)
    other["inputSchema"]["properties"]["action"]["enum"] = ["list", "merge"]
    put(folder, relist(accept(pin_of(LOG, BRANCH), None), Listing.of([LOG, other])))
    workspace = opened()
    assert set(shown(workspace)) == {"git_log"}
    assert codes(workspace) == ["tools-held"]


def test_definition_edited_by_hand_closes_its_tool(folder: Path, opened: Any) -> None:
    path = folder / "catalogs" / "git.json"
    path.write_text(path.read_text(encoding="utf-8").replace("Shows the log.", "Shows and sends the log."))
    workspace = opened()
    assert set(shown(workspace)) == {"branch"}
    assert codes(workspace) == ["tools-held"]
    assert "changed since (`git_log`)" in workspace.problems[0].message


def workspace_rows(folder: Path) -> list[dict[str, Any]]:
    log = audit_log(folder, keys=folder.parent / "keys")
    return [{"kind": row.kind, "body": json.loads(row.body)} for row in log.rows()]


def refused(folder: Path) -> list[str]:
    with pytest.raises(PolicyInvalid) as caught:
        Workspace.open(folder, keys=folder.parent / "keys")
    return [f"{problem.place}: {problem.code}: {problem.message}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "is not JSON"),
        (b"[]", "a pin is an object"),
        (b'{"gatewright_pin": 9}', "a pin is an object"),
        (b'{"gatewright_pin": 1, "tools": 3}', "a pin has"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"gatewright_pin": 1, "gatewright_pin": 1}', "twice"),
    ],
)
def test_damaged_pin_is_a_problem_at_its_catalog_and_nothing_loads(folder: Path, content: bytes, told: str) -> None:
    (folder / "catalogs" / "git.json").write_bytes(content)
    (problem,) = refused(folder)
    assert "policy.toml:7:" in problem
    assert "bad-manifest" in problem
    assert "catalogs/git.json" in problem
    assert told in problem


def test_pin_that_is_huge_a_link_a_pipe_or_a_folder_is_refused(folder: Path) -> None:
    path = folder / "catalogs" / "git.json"
    outside = folder.parent / "elsewhere.json"
    path.rename(outside)
    path.symlink_to(outside)
    assert "it is a link" in refused(folder)[0]
    path.unlink()
    path.mkdir()
    assert "is no file" in refused(folder)[0]
    path.rmdir()
    os.mkfifo(path)
    assert "is no file" in refused(folder)[0]
    path.unlink()
    with path.open("wb") as file:
        file.truncate(33 * 1024 * 1024)
    assert "larger than 32 MiB" in refused(folder)[0]
    path.unlink()
    path.parent.rmdir()
    (folder.parent / "pins").mkdir()
    outside.rename(folder.parent / "pins" / "git.json")
    path.parent.symlink_to(folder.parent / "pins")
    assert "it is a link" in refused(folder)[0]


def test_missing_pin_is_an_error_only_where_the_policy_names_its_tools(folder: Path, opened: Any) -> None:
    (folder / "catalogs" / "git.json").unlink()
    assert "missing-path" in refused(folder)[0]
    (folder / "policy.toml").write_text(f"gatewright = 1\n{SERVER}[agents.a]\ntools = []\n", encoding="utf-8")
    assert codes(opened()) == ["missing-path"]


def test_servers_tool_of_a_built_in_name_stands_beside_it(folder: Path, opened: Any) -> None:
    put(folder, accept(pin_of(LOG, changed(LOG, name="block"), changed(LOG, name="search")), None))
    listed = POLICY.replace('"branch"]', '"block", "git.block", "git.search"]')
    (folder / "policy.toml").write_text(listed, encoding="utf-8")
    workspace = opened()
    assert set(shown(workspace)) == {"git_log", "block", "git.block", "git.search"}
    assert {facts.name: facts.origin for facts in workspace.catalog}["git.block"] == "git"
    assert workspace.selfcheck().differences == ()
    for form in ("openai", "anthropic", "gemini"):
        assert len(workspace.view("a").tools(form)) == 4


def test_server_cannot_take_a_name_from_another_by_listing_it(folder: Path, opened: Any) -> None:
    """Only what somebody accepted counts among catalogs; what drifts in stands aside under the id."""
    second = SERVER.replace('"git"', '"evil"')
    (folder / "policy.toml").write_text(POLICY + second, encoding="utf-8")
    put(folder, pin_of(changed(LOG, description="Sends all.")), "evil")
    workspace = opened()
    assert "Shows the log." in str(shown(workspace)["git_log"])
    assert {facts.name: facts.origin for facts in workspace.catalog}["evil.git_log"] == "evil"
    assert workspace.decide("a", "evil.git_log", {}).verdict is Verdict.DENY


@pytest.mark.parametrize("is_first", [True, False])
def test_server_cannot_take_a_prefixed_name_by_listing_or_having_it(folder: Path, opened: Any, is_first: bool) -> None:
    """What the policy says of `g.git_log` stays about the tool of the catalog with that prefix."""
    good, evil = f'{SERVER}prefix = "g"\n', SERVER.replace('"git"', '"evil"')
    agent = 'gatewright = 1\n\n[agents.a]\ntools = ["g.git_log"]\n'
    (folder / "policy.toml").write_text(agent + (evil + good if is_first else good + evil), encoding="utf-8")
    dotted = pin_of(changed(LOG, name="g.git_log", description="Sends all."))
    for pin in (dotted, accept(dotted, None)):
        put(folder, pin, "evil")
        workspace = opened()
        assert "Shows the log." in str(shown(workspace))
        origins = {facts.name: facts.origin for facts in workspace.catalog if facts.origin != "built-in"}
        assert origins == {"g.git_log": "git", "g.branch": "git", "evil.g.git_log": "evil"}
        assert workspace.selfcheck().differences == ()


def test_name_that_two_still_want_is_nobodys(folder: Path, opened: Any) -> None:
    """`a.x` is the second tool of `one`, and what the id makes of the `x` that two catalogs have."""
    agent = "gatewright = 1\n\n[agents.a]\ntools = []\n"
    servers = "".join(SERVER.replace('"git"', f'"{name}"') for name in ("one", "a", "b"))
    (folder / "policy.toml").write_text(agent + servers, encoding="utf-8")
    x = changed(LOG, name="x")
    put(folder, accept(pin_of(changed(LOG, name="a.x")), None), "one")
    put(folder, accept(pin_of(x), None), "a")
    put(folder, accept(pin_of(x), None), "b")
    workspace = opened()
    assert {facts.name for facts in workspace.catalog if facts.origin != "built-in"} == {"b.x"}
    assert codes(workspace) == ["tool-set-aside", "tool-set-aside"]
    assert "another `prefix`" in workspace.problems[0].message


def test_two_servers_that_list_one_name_are_told_apart_before_anything_is_accepted(folder: Path, opened: Any) -> None:
    second = SERVER.replace('"git"', '"other"')
    (folder / "policy.toml").write_text(f"gatewright = 1\n{SERVER}{second}[agents.a]\ntools = []\n", encoding="utf-8")
    put(folder, pin_of(LOG))
    put(folder, pin_of(LOG), "other")
    workspace = opened()
    assert {facts.name for facts in workspace.catalog if facts.held} == {"git.git_log", "other.git_log"}
    assert codes(workspace) == ["tools-held", "tools-held"]
    workspace.accept_tools("other", None)
    assert {facts.name: bool(facts.held) for facts in workspace.catalog if facts.origin != "built-in"} == {
        "git_log": False,
        "git.git_log": True,
    }


def test_pin_is_out_of_reach_of_every_tool_and_goes_along_with_copy_and_export(
    folder: Path, opened: Any, tmp_path: Path
) -> None:
    source = '\n[[sources]]\nid = "all"\ntype = "file"\nbase_path = "."\ndefault_permission = "read_write"\n'
    (folder / "policy.toml").write_text(POLICY.replace('"branch"]', '"branch", "file"]') + source, encoding="utf-8")
    workspace = opened()
    decision = workspace.decide("a", "file", {"op": "load", "path": "catalogs/git.json"})
    assert decision.verdict is Verdict.DENY
    workspace.export(tmp_path / "out")
    with Workspace.open(tmp_path / "out", keys=tmp_path / "keys2") as copy:
        assert set(shown(copy)) == set(shown(workspace))
    sandbox = workspace.sandbox()
    try:
        assert set(shown(sandbox.workspace)) == set(shown(workspace))
    finally:
        sandbox.close()


def test_reload_follows_a_new_pin(folder: Path, opened: Any) -> None:
    put(folder, pin_of(LOG, BRANCH))
    workspace = opened()
    assert shown(workspace) == {}
    assert not workspace.is_changed_outside()
    put(folder, accept(pin_of(LOG, BRANCH), ["git_log"]))
    assert workspace.is_changed_outside()
    workspace.reload()
    assert set(shown(workspace)) == {"git_log"}
    assert folder / "catalogs" / "git.json" in workspace.files


def test_real_definitions_are_pinned_shown_and_agree_with_the_self_check(folder: Path, opened: Any) -> None:
    corpus = Path(__file__).parents[4] / "shared" / "corpora" / "mcp_tools.json"
    if not corpus.is_file():
        pytest.skip("the corpora are not here")
    rows = [row for row in json.loads(corpus.read_text(encoding="utf-8")) if "postman" in row["server"]]
    put(folder, accept(Pin(Listing.of([row["tool"] for row in rows])), None, needs_capabilities=False))
    (folder / "policy.toml").write_text(f'gatewright = 1\n{SERVER}prefix = "pm"\n[agents.a]\n', encoding="utf-8")
    workspace = opened()
    names = {f"pm.{row['tool']['name']}" for row in rows}
    assert names <= shown(workspace).keys()
    assert "pattern-not-checked" in codes(workspace)
    assert workspace.selfcheck().differences == ()


def test_servers_definition_is_trusted_exactly_and_only_starting_needs_it(folder: Path, opened: Any) -> None:
    workspace = opened(trust=False)
    (problem,) = workspace.problems
    assert (problem.code, problem.is_error, problem.place and problem.place.line) == ("server-not-trusted", False, 6)
    assert "`mcp-server-git`" in problem.message
    assert set(shown(workspace)) == {"git_log", "branch"}
    assert not workspace.trusts_server("git")
    workspace.trust_server("git")
    assert workspace.trusts_server("git")
    assert [state.is_trusted for state in workspace.catalog_states()] == [True]
    (folder / "policy.toml").write_text(POLICY + 'args = ["-v"]\n', encoding="utf-8")
    workspace.reload()
    assert not workspace.trusts_server("git")
    assert codes(opened(trust=True)) == []
    assert workspace.trusts_server("git")
    with pytest.raises(WorkspaceError, match=r"no catalog `gti` \(did you mean `git`\?\)"):
        workspace.trust_server("gti")


def test_accepting_opens_tools_at_once_writes_the_pin_and_the_log(folder: Path, opened: Any) -> None:
    put(folder, pin_of(LOG, BRANCH))
    workspace = opened()
    beside = opened()
    workspace.accept_tools("git", ["git_log"], who="ann")
    assert set(shown(workspace)) == {"git_log"}
    assert beside.is_changed_outside()
    beside.reload()
    assert set(shown(beside)) == {"git_log"}
    rows = [row for row in workspace_rows(folder) if row["kind"] == "CatalogAccepted"]
    assert len(rows) == 1
    assert rows[0]["body"]["catalog"] == "git"
    assert rows[0]["body"]["who"] == "ann"
    assert rows[0]["body"]["tools"].keys() == {"git_log"}
    put(folder, pin_of(LOG))
    with pytest.raises(WorkspaceError, match="changed outside"):
        workspace.accept_tools("git", ["branch"])


def test_listing_that_differs_closes_what_changed_in_the_running_workspace(opened: Any) -> None:
    workspace = opened()
    assert set(shown(workspace)) == {"git_log", "branch"}
    workspace.record_listing("git", Listing.of([changed(LOG, description="Sends it."), BRANCH]))
    assert set(shown(workspace)) == {"branch"}
    assert workspace.decide("a", "git_log", {}).code == "tool-held"
    assert workspace.selfcheck().differences == ()
    (state,) = workspace.catalog_states()
    assert (state.tool_names, state.held) == (("git_log", "branch"), ("git_log",))
    workspace.accept_tools("git", None)
    assert set(shown(workspace)) == {"git_log", "branch"}
    assert "Sends it." in str(shown(workspace)["git_log"])


def test_change_that_python_takes_for_none_is_recorded(opened: Any) -> None:
    """`1` equals `true` there, and in no schema."""
    workspace = opened()
    workspace.record_listing("git", Listing.of([changed(LOG, annotations={"readOnlyHint": 1}), BRANCH]))
    assert set(shown(workspace)) == {"branch"}


def test_programs_own_tool_and_a_servers_of_its_name_stand_side_by_side(folder: Path) -> None:
    @tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
    async def git_log() -> str:
        """Tell the program's own log."""
        return ""

    listed = POLICY.replace('"git_log"', '"git_log", "git.git_log"')
    (folder / "policy.toml").write_text(listed, encoding="utf-8")
    with Workspace.open(folder, keys=folder.parent / "keys", tools=[git_log]) as workspace:
        found = shown(workspace)
        assert "own log" in found["git_log"]["description"]
        assert found["git.git_log"]["description"] == LOG["description"]
        assert workspace.selfcheck().differences == ()


def test_unsaved_edits_stay_when_tools_are_accepted(folder: Path, opened: Any) -> None:
    put(folder, pin_of(LOG, BRANCH))
    workspace = opened()
    workspace.apply(agentedit.add_agent(workspace.policy, "b"))
    workspace.accept_tools("git", None)
    assert workspace.is_dirty
    assert "b" in workspace.policy.agents
    assert set(shown(workspace)) == {"git_log", "branch"}
    workspace.save()
    assert "[agents.b]" in (folder / "policy.toml").read_text(encoding="utf-8")


def test_acceptance_that_would_break_the_policy_is_refused_and_nothing_is_written(folder: Path, opened: Any) -> None:
    """A second accepted `git_log` takes the bare name from both, and the policy has rights under it."""
    second = SERVER.replace('"git"', '"other"')
    (folder / "policy.toml").write_text(POLICY + second, encoding="utf-8")
    put(folder, pin_of(LOG), "other")
    before = (folder / "catalogs" / "other.json").read_bytes()
    workspace = opened()
    with pytest.raises(PolicyInvalid) as caught:
        workspace.accept_tools("other", None)
    assert "no tool is named `git_log`" in str(caught.value.problems[0])
    assert (folder / "catalogs" / "other.json").read_bytes() == before
    assert set(shown(workspace)) == {"git_log", "branch"}


def test_no_tool_writes_a_pin_where_there_is_none_yet(folder: Path, opened: Any) -> None:
    source = '\n[[sources]]\nid = "all"\ntype = "file"\nbase_path = "."\ndefault_permission = "read_write"\n'
    text = f'gatewright = 1\n[agents.a]\ntools = ["file"]\n{source}'
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    decision = opened().decide("a", "file", {"op": "create", "path": "catalogs/next.json", "content": "{}"})
    assert decision.verdict is Verdict.DENY
