"""Catalogs of type host: tools that a workspace shows and gates, and another program runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright import load_policy
from gatewright.base.errors import EditRefused, PolicyInvalid
from gatewright.policy import policyedit
from gatewright.policy.document import Catalog, CatalogType, ToolSettings
from gatewright.policy.edit import CatalogChange, ChangeSet, Edit, ToolSettingsChange, inverse
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import ResultType, Tool, ToolRegistry, tool
from gatewright.workspace import Status, Workspace

HEAD = "gatewright = 1\n"
CATALOG = '\n[[catalogs]]\nid = "desk"\ntype = "host"\nmanifest = "desk.json"\n'
AGENT = '\n[agents.a]\ntools = ["ticket", "shelf"]\n'
RULE = '\n[[agents.a.tool_rules]]\ntool_name = "ticket"\nrule_type = { AllowedOperations = ["open"] }\n'
POLICY = HEAD + CATALOG + AGENT + RULE
TICKET: dict[str, Any] = {
    "name": "ticket",
    "description": "Works on tickets.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["open", "close", "purge"]},
            "id": {"type": "string"},
        },
        "required": ["action"],
    },
}
SHELF: dict[str, Any] = {
    "name": "shelf",
    "description": "Moves books.",
    "inputSchema": {
        "type": "object",
        "properties": {"operation": {"type": "string", "description": "What to do: get, update, or burn."}},
        "required": ["operation"],
    },
}


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def ticket(id: str) -> str:  # noqa: A002
    """Tell about a ticket.

    Args:
        id: Which ticket.
    """
    return f"ticket {id}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    write(tmp_path / "ws", POLICY, [TICKET, SHELF])
    return tmp_path / "ws"


@pytest.fixture
def opened(folder: Path) -> Iterator[Any]:
    held: list[Workspace] = []

    def made(*tools: Tool) -> Workspace:
        held.append(Workspace.open(folder, tools=tools, keys=folder.parent / "keys"))
        return held[-1]

    yield made
    for workspace in held:
        workspace.close()


def write(folder: Path, policy: str | None = None, tools: Sequence[object] | None = None) -> None:
    if policy is not None:
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
    if tools is not None:
        (folder / "desk.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")


def shown(workspace: Workspace) -> dict[str, Any]:
    return {listed["name"]: listed["inputSchema"] for listed in workspace.view("a").tools("mcp")}


def codes(workspace: Workspace) -> list[str]:
    return [problem.code for problem in workspace.problems]


def refused(folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        Workspace.open(folder, keys=folder.parent / "keys")
    return [(problem.code, problem.message) for problem in caught.value.problems if problem.is_error]


def declare(workspace: Workspace, name: str, **settings: Any) -> Edit:
    before = workspace.policy.tools.get(name)
    return Edit(f"Declare operations of {name}", (ToolSettingsChange(name, before, ToolSettings(**settings)),))


def test_tools_of_a_manifest_are_shown_filtered_and_gated(opened: Any) -> None:
    workspace = opened()
    assert shown(workspace)["ticket"]["properties"]["action"]["enum"] == ["open"]
    assert workspace.decide("a", "ticket", {"action": "purge"}).code == "operation-not-allowed"
    facts = {facts.name: facts for facts in workspace.catalog}
    assert facts["ticket"].origin == "desk"
    assert facts["ticket"].operation_names == ("open", "close", "purge")
    assert facts["ticket"].tier is SafetyTier.PRIVILEGED
    assert workspace.selfcheck().differences == ()


async def test_call_of_a_manifests_tool_is_never_executed_here(opened: Any) -> None:
    workspace = opened()
    assert not workspace.is_executable("ticket")
    assert workspace.is_executable("block")
    workspace.apply(declare(workspace, "ticket", safety_tier=SafetyTier.READ_ONLY))
    outcome = await workspace.call("a", "ticket", {"action": "open"})
    assert outcome.status is Status.FAILED
    assert "cannot be executed here" in outcome.output + outcome.detail


def test_tiers_of_a_manifest_count_only_where_the_catalog_is_trusted(folder: Path, opened: Any) -> None:
    tiers = {"safety_tier": "read_only", "operation_tiers": {"purge": "privileged"}}
    write(folder, tools=[{**TICKET, "_meta": {"gatewright": tiers}}, SHELF])
    assert opened().decide("a", "ticket", {"action": "open"}).verdict == "ask"
    write(folder, POLICY.replace('"desk.json"\n', '"desk.json"\ntrusted = true\n'))
    assert opened().decide("a", "ticket", {"action": "open"}).verdict == "allow"


def test_missing_manifest_is_a_warning_unless_the_policy_names_its_tools(folder: Path, opened: Any) -> None:
    (folder / "desk.json").unlink()
    ((code, message),) = refused(folder)
    assert code == "missing-path"
    assert "nothing known is named `ticket`, nor are 1 more" in message
    write(folder, HEAD + CATALOG)
    assert codes(opened()) == ["missing-path"]


def test_manifest_that_cannot_be_read_is_the_only_cause_told(folder: Path) -> None:
    rules = '\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["ticket"]\noperations = ["purge"]\n'
    write(folder, POLICY + rules + '\n[tools.shelf]\ntimeout = 3\n\n[defaults]\napprovals = { ticket = "ask" }\n')
    (folder / "desk.json").write_text("{", encoding="utf-8")

    assert [code for code, _ in refused(folder)] == ["bad-manifest"]


def test_manifest_that_is_no_json_is_refused_with_its_place(folder: Path) -> None:
    (folder / "desk.json").write_text('{"tools": [\n  {"name": }]}', encoding="utf-8")
    assert ("bad-manifest", True) in [(code, "line 2 column" in message) for code, message in refused(folder)]


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"tools": 5}',
        b"7",
        b'{"tools": [], "tools": []}',
        b"[1e999]",
        b"[" + b"9" * 9999,
    ],
    ids=["not-utf8", "deep", "no-list", "no-object", "same-key", "infinite", "long-integer"],
)
def test_manifest_that_cannot_be_used_is_a_problem_and_nothing_else(folder: Path, content: bytes) -> None:
    (folder / "desk.json").write_bytes(content)
    assert "bad-manifest" in [code for code, _ in refused(folder)]


def test_manifest_that_is_too_large_is_refused(folder: Path) -> None:
    with (folder / "desk.json").open("wb") as file:
        file.truncate(9 * 1024 * 1024)
    assert any("larger than 8 MiB" in message for _, message in refused(folder))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_manifest_that_is_a_pipe_or_a_folder_is_refused_at_once(folder: Path) -> None:
    (folder / "desk.json").unlink()
    os.mkfifo(folder / "desk.json")
    assert any("is no file" in message for _, message in refused(folder))
    (folder / "desk.json").unlink()
    (folder / "desk.json").mkdir()
    assert any("is no file" in message for _, message in refused(folder))


def test_manifest_outside_the_workspace_is_not_read(folder: Path) -> None:
    outside = folder.parent / "outside.json"
    outside.write_text(json.dumps([TICKET]), encoding="utf-8")
    write(folder, POLICY.replace("desk.json", "../outside.json"))
    assert refused(folder)[0][0] == "not-trusted"
    write(folder, POLICY)
    (folder / "desk.json").unlink()
    (folder / "desk.json").symlink_to(outside)
    code, message = refused(folder)[0]
    assert code == "not-trusted"
    assert str(outside) in message
    assert "`gatewright check --trust` trusts it" in message


@pytest.mark.parametrize("absolute", [False, True])
def test_manifest_outside_the_workspace_works_with_trust_in_exactly_that_file(folder: Path, absolute: bool) -> None:
    outside, keys = folder.parent / "outside.json", folder.parent / "keys"
    outside.write_text(json.dumps([TICKET, SHELF]), encoding="utf-8")
    named = str(outside) if absolute else "../outside.json"
    text = POLICY.replace("desk.json", named)
    write(folder, text + "[agents.b]\ntoolz = []\n")
    with pytest.raises(PolicyInvalid, match="unknown key"):
        Workspace.open(folder, keys=keys, trust=True)
    write(folder, text)
    with pytest.raises(PolicyInvalid) as refusal:
        Workspace.open(folder, keys=keys)
    assert [problem.code for problem in refusal.value.problems] == ["not-trusted"]

    Workspace.open(folder, keys=keys, trust=True).close()

    workspace = Workspace.open(folder, keys=keys)
    assert workspace.decide("a", "ticket", {"action": "open"}).verdict == "ask"
    assert workspace.reload() == ()
    outside.write_text(json.dumps([TICKET]), encoding="utf-8")
    assert workspace.is_changed_outside()
    copy = workspace.sandbox()
    assert copy.workspace.decide("a", "shelf", {"operation": "get"}).verdict == "ask"
    assert not copy.workspace.is_changed_outside()
    copy.close()
    workspace.export(folder.parent / "out")
    assert [path.name for path in (folder.parent / "out").iterdir()] == ["policy.toml"]
    (folder.parent / "third.json").write_text(json.dumps([TICKET, SHELF]), encoding="utf-8")
    write(folder, text.replace("outside.json", "third.json"))
    assert [problem.code for problem in workspace.reload()] == ["not-trusted"]


@pytest.mark.parametrize("by_link", [False, True], ids=["written", "hard link"])
def test_trust_in_a_manifest_ends_when_it_says_something_else(folder: Path, by_link: bool) -> None:
    outside, keys = folder.parent / "outside.json", folder.parent / "keys"
    trusted, later = json.dumps([TICKET]), json.dumps([{**TICKET, "description": "Opens tickets. Or not."}])
    outside.write_text(trusted, encoding="utf-8")
    write(folder, POLICY.replace("desk.json", "../outside.json").replace(', "shelf"', ""))
    Workspace.open(folder, keys=keys, trust=True).close()
    running = Workspace.open(folder, keys=keys)

    outside.unlink()
    if by_link:
        (folder.parent / "other.json").write_text(later, encoding="utf-8")
        outside.hardlink_to(folder.parent / "other.json")
    else:
        outside.write_text(later, encoding="utf-8")

    with pytest.raises(PolicyInvalid) as refusal:
        Workspace.open(folder, keys=keys)
    assert [problem.code for problem in refusal.value.problems] == ["not-trusted"]
    assert f"at `{outside}`, and changed since it was trusted" in refusal.value.problems[0].message
    assert [problem.code for problem in running.reload()] == ["not-trusted"]
    assert "Or not." not in str(running.view("a").tools("mcp"))

    outside.unlink()
    outside.write_text(trusted, encoding="utf-8")
    assert running.reload() == ()
    outside.write_text(later, encoding="utf-8")
    Workspace.open(folder, keys=keys, trust=True).close()
    assert running.reload() == ()
    assert "Or not." in str(running.view("a").tools("mcp"))
    outside.write_text(trusted, encoding="utf-8")
    assert [problem.code for problem in running.reload()] == ["not-trusted"], "only what was trusted last counts"


def test_saving_over_what_another_wrote_reads_no_manifest_that_is_not_trusted(folder: Path) -> None:
    outside = folder.parent / "outside.json"
    os.mkfifo(outside)
    workspace = Workspace.open(folder, keys=folder.parent / "keys", trust=True)
    write(folder, POLICY.replace("desk.json", "../outside.json"))

    workspace.save(overwrite=True)

    assert "outside.json" not in (folder / "policy.toml").read_text(encoding="utf-8")


def test_pattern_of_an_output_schema_that_is_not_linear_is_a_warning_and_the_tool_lives(
    folder: Path, opened: Any
) -> None:
    text = {"type": "string", "pattern": "(?<=a)b"}
    output = {"type": "object", "properties": {"x": text, "n": {"type": "integer"}, "y": {"not": text}}}
    write(folder, tools=[{**TICKET, "outputSchema": output}, SHELF])
    workspace = opened()

    assert set(shown(workspace)) == {"ticket", "shelf"}
    assert [("`ticket`" in problem.message, problem.code) for problem in workspace.problems] == [
        (True, "output-not-checked")
    ]


def test_pattern_of_an_argument_that_cannot_run_is_a_warning_with_its_place_and_the_tool_lives(
    folder: Path, opened: Any
) -> None:
    odd = {"x": {"type": "string", "pattern": "(?<=a)b"}, "y": {"type": "string", "pattern": "^.{1,1000}$"}}
    write(folder, tools=[TICKET, {"name": "odd", "inputSchema": {"type": "object", "properties": odd}}, SHELF])
    workspace = opened()

    assert set(shown(workspace)) >= {"ticket", "shelf"}
    (problem,) = [problem for problem in workspace.problems if problem.code == "pattern-not-checked"]
    assert "`odd`" in problem.message
    assert "`/properties/x/pattern`" in problem.message
    assert "look-around" in problem.message


@pytest.mark.parametrize(
    "output",
    [
        {"type": "strin"},
        {"type": "array", "items": {}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/gone"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"},
        {"type": "object", "required": "x"},
        [],
        "an object",
    ],
)
def test_a_broken_output_schema_costs_only_its_check(folder: Path, opened: Any, output: object) -> None:
    write(folder, tools=[{**TICKET, "outputSchema": output}, SHELF])
    workspace = opened()

    assert set(shown(workspace)) == {"ticket", "shelf"}
    (problem,) = workspace.problems
    assert problem.code == "output-not-checked"
    assert "`ticket`" in problem.message
    assert "/outputSchema" in problem.message


def test_bad_tool_is_set_aside_with_its_pointer_and_the_rest_stays(folder: Path, opened: Any) -> None:
    wrong = {"type": "object", "properties": {"x": {"type": "strin"}}}
    bad = [{"name": "odd", "inputSchema": wrong}, {"name": "bare"}, 5]
    write(folder, tools=[TICKET, *bad, SHELF])
    workspace = opened()
    assert set(shown(workspace)) == {"ticket", "shelf"}
    told = [problem.message for problem in workspace.problems if problem.code == "tool-set-aside"]
    assert len(told) == 3
    assert "`odd`" in told[0]
    assert "/tools/1/inputSchema/properties/x/type" in told[0]
    assert "/tools/3" in told[2]


def test_many_bad_tools_are_told_in_few_warnings(folder: Path, opened: Any) -> None:
    write(folder, tools=[TICKET, SHELF, *({"name": f"bad{number}"} for number in range(400))])
    assert len(opened().problems) < 60


def test_own_tool_wins_and_a_manifest_that_differs_is_told(folder: Path, opened: Any) -> None:
    write(folder, POLICY.replace(RULE, ""))
    workspace = opened(ticket)
    assert "action" not in shown(workspace)["ticket"]["properties"]
    assert workspace.is_executable("ticket")
    assert codes(workspace) == ["manifest-drift"]


def test_manifest_that_the_program_wrote_itself_has_not_drifted(folder: Path, opened: Any) -> None:
    registry = ToolRegistry()
    registry.register(ticket)
    registry.write_manifest(folder / "desk.json")
    write(folder, HEAD + CATALOG + '\n[agents.a]\ntools = ["ticket"]\n')
    assert codes(opened(ticket)) == []
    assert set(shown(opened())) == {"ticket"}


def test_tool_of_a_manifest_never_takes_the_name_of_a_built_in_one(folder: Path, opened: Any) -> None:
    write(folder, POLICY + '\n[[sources]]\nid = "d"\ntype = "file"\nbase_path = "d"\n')
    (folder / "d").mkdir()
    write(folder, tools=[TICKET, SHELF, {"name": "file", "inputSchema": {"type": "object"}}])
    workspace = opened()
    assert {facts.origin for facts in workspace.catalog if facts.name == "file"} == {"built-in"}
    assert {facts.origin for facts in workspace.catalog if facts.name == "desk.file"} == {"desk"}
    assert codes(workspace) == []
    assert workspace.selfcheck().differences == ()


@pytest.mark.parametrize("version", ["2.0.0", "0.9.0"])
def test_no_version_of_a_manifests_tool_takes_the_bare_name_of_one_that_is_here(
    folder: Path, opened: Any, version: str
) -> None:
    agent = AGENT.replace('"shelf"]', '"shelf", "file"]')
    write(folder, HEAD + CATALOG + agent + '\n[[sources]]\nid = "d"\ntype = "file"\nbase_path = "d"\n')
    (folder / "d").mkdir()
    said = {"_meta": {"gatewright": {"version": version}}}
    write(folder, tools=[TICKET | said, SHELF, {"name": "file", "inputSchema": {"type": "object"}, **said}])

    workspace = opened(ticket)

    assert {facts.name: facts.origin for facts in workspace.catalog if facts.name in ("file", "ticket")} == {
        "file": "built-in",
        "ticket": ticket.origin,
    }
    assert {(facts.name, facts.origin) for facts in workspace.catalog} >= {("desk.file", "desk")}
    assert codes(workspace) == ["tool-set-aside", "name-of-two"]
    assert "has this name" in workspace.problems[0].message
    assert workspace.view("a").rights["file"].facts.major == 1


def test_reload_follows_the_manifest_and_keeps_what_stayed(folder: Path, opened: Any) -> None:
    workspace = opened()
    kept = workspace._parts.registry.get("shelf")
    assert not workspace.is_changed_outside()
    changed = json.loads(json.dumps(TICKET).replace('"purge"', '"merge"'))
    write(folder, tools=[changed, SHELF])
    assert workspace.is_changed_outside()
    assert workspace.reload() == ()
    assert not workspace.is_changed_outside()
    facts = {facts.name: facts.operation_names for facts in workspace.catalog}
    assert facts["ticket"] == ("open", "close", "merge")
    assert workspace._parts.registry.get("shelf") is kept
    write(folder, POLICY.replace(RULE, "").replace(', "shelf"', ""), [changed])
    workspace.reload()
    assert set(shown(workspace)) == {"ticket"}
    assert workspace.survey("shelf") is None


def test_policy_and_tools_change_for_the_gate_in_one_step(folder: Path, opened: Any) -> None:
    """A policy that allows everything never meets the other manifest's tool, whoever looks while they change."""
    sides = (
        (HEAD + CATALOG + "\n[agents.a]\n", [TICKET], "ticket"),
        (HEAD + CATALOG + "\n[agents.a]\ntools = []\n", [SHELF], "shelf"),
    )
    write(folder, *sides[0][:2])
    workspace = opened()
    assert workspace.gate.check("a", "ticket", "purge").verdict == "ask"
    seen: set[tuple[bool, frozenset[str]]] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            snapshot = workspace.gate.snapshot()
            names = frozenset(facts.name for facts in snapshot.facts if facts.origin == "desk")
            seen.add((snapshot.policy.agents["a"].tools is None, names))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for turn in range(1, 41):
            write(folder, *sides[turn % 2][:2])
            assert not any(problem.is_error for problem in workspace.reload())
    finally:
        over.set()
        watcher.join()
    assert seen <= {(True, frozenset({"ticket"})), (False, frozenset({"shelf"}))}
    assert seen


def test_broken_manifest_keeps_the_last_good_one_and_raises_the_alarm(folder: Path, opened: Any) -> None:
    workspace = opened()
    (folder / "desk.json").write_text("{", encoding="utf-8")
    assert next(problem.code for problem in workspace.reload() if problem.is_error) == "bad-manifest"
    assert workspace.alarm is not None
    assert set(shown(workspace)) == {"ticket", "shelf"}
    write(folder, tools=[TICKET, SHELF])
    assert workspace.reload() == ()
    assert workspace.alarm is None


def test_declared_operations_become_operations_and_undo_takes_them_back(folder: Path, opened: Any) -> None:
    workspace = opened()
    assert workspace.survey("shelf").free[0].suggested == ("get", "update", "burn")
    edit = declare(workspace, "shelf", operation_field="operation", operations=("get", "update"))
    workspace.apply(edit)
    facts = {facts.name: facts.operation_names for facts in workspace.catalog}
    assert facts["shelf"] == ("get", "update")
    assert shown(workspace)["shelf"]["properties"]["operation"]["enum"] == ["get", "update"]
    assert workspace.decide("a", "shelf", {"operation": "burn"}).verdict == "deny"
    assert "enum" not in workspace.tool_schema("shelf")["properties"]["operation"]
    workspace.save()
    assert 'operations = ["get", "update"]' in (folder / "policy.toml").read_text(encoding="utf-8")
    assert workspace.reload() == ()
    workspace.apply(inverse(edit))
    assert {facts.name: facts.has_operations for facts in workspace.catalog}["shelf"] is False
    assert "enum" not in shown(workspace)["shelf"]["properties"]["operation"]


def test_declaration_under_which_a_rule_could_not_be_loaded_is_refused_with_its_line(opened: Any) -> None:
    workspace = opened()
    before = workspace.policy
    for settings in ({"operation_field": ""}, {"operation_field": "id"}, {"operations": ("close",)}):
        with pytest.raises(EditRefused, match=r"line \d+"):
            workspace.apply(declare(workspace, "ticket", **settings))
    assert workspace.policy is before
    with pytest.raises(EditRefused, match="block"):
        workspace.apply(declare(workspace, "block", operation_field="op"))


def test_copy_of_the_workspace_holds_the_manifest_as_it_was_read(folder: Path, opened: Any) -> None:
    workspace = opened()
    (folder / "desk.json").write_text("{", encoding="utf-8")
    copy = workspace.sandbox()
    try:
        assert set(shown(copy.workspace)) == {"ticket", "shelf"}
        assert copy.workspace.decide("a", "ticket", {"action": "purge"}).verdict == "deny"
    finally:
        copy.close()


def test_export_loads_by_itself(folder: Path, opened: Any, tmp_path: Path) -> None:
    (folder / "lists").mkdir()
    (folder / "desk.json").rename(folder / "lists/desk.json")
    write(folder, POLICY.replace("desk.json", "lists/desk.json"))
    written = opened().export(tmp_path / "out")
    assert tmp_path / "out/lists/desk.json" in written
    policy = load_policy(tmp_path / "out/policy.toml")
    assert policy.agents["a"].tools == ("ticket", "shelf")


def test_copy_and_export_never_write_through_a_link(folder: Path, opened: Any, tmp_path: Path) -> None:
    real = folder / "real"
    real.mkdir()
    (folder / "desk.json").rename(real / "desk.json")
    (folder / "link").symlink_to(real, target_is_directory=True)
    write(folder, POLICY.replace("desk.json", "link/desk.json"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/link").symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(Exception, match="outside"):
        opened().export(tmp_path / "out")
    assert list(elsewhere.iterdir()) == []


def test_manifest_is_out_of_reach_of_every_tool(folder: Path, opened: Any) -> None:
    (folder / "docs").mkdir()
    (folder / "desk.json").rename(folder / "docs/desk.json")
    source = '\n[[sources]]\nid = "d"\ntype = "file"\nbase_path = "docs"\ndefault_permission = "admin"\n'
    agent = '\n[agents.a]\ntools = ["file", "ticket"]\n'
    write(folder, HEAD + CATALOG.replace("desk.json", "docs/desk.json") + agent + source)
    workspace = opened()
    assert workspace.explain_paths("d", ["desk.json"])[0].permission == "none"
    assert workspace.decide("a", "file", {"op": "read", "path": "desk.json"}).verdict == "deny"
    os.link(folder / "docs/desk.json", folder / "docs/other.json")
    assert workspace.decide("a", "file", {"op": "read", "path": "other.json"}).verdict == "deny"
    (folder / "docs/late.json").write_text(json.dumps([{**SHELF, "name": "attic"}]), encoding="utf-8")
    assert workspace.decide("a", "file", {"op": "read", "path": "late.json"}).verdict == "allow"
    late = '\n[[catalogs]]\nid = "late"\ntype = "host"\nmanifest = "docs/late.json"\n'
    write(folder, (folder / "policy.toml").read_text(encoding="utf-8") + late)
    assert workspace.reload() == ()
    assert workspace.decide("a", "file", {"op": "read", "path": "late.json"}).verdict == "deny"


def test_library_reads_the_catalogs_of_the_policys_folder(folder: Path) -> None:
    policy = load_policy(folder / "policy.toml")
    assert policy.catalogs[0].catalog_id == "desk"
    with pytest.raises(PolicyInvalid, match="has no operations"):
        load_policy(folder / "policy.toml", tools=[ticket])


def test_server_whose_tools_were_not_imported_is_a_warning_and_has_none(folder: Path, opened: Any) -> None:
    write(folder, f'{POLICY}\n[[catalogs]]\nid = "git"\ntype = "mcp"\ncommand = "mcp-server-git"\nconfine = "none"\n')
    workspace = opened()
    told = [(problem.code, problem.place.line) for problem in workspace.problems if problem.place]
    assert told == [("missing-path", 16)]
    way = "`gatewright catalog import POLICY --id git --trust` trusts and asks `mcp-server-git`"
    assert way in workspace.problems[0].message
    assert [problem.code for problem in workspace.current_problems()] == ["missing-path"]
    assert set(shown(workspace)) == {"ticket", "shelf"}
    assert workspace.selfcheck().differences == ()


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0"])
def test_tools_of_one_name_in_two_catalogs_are_told_apart_by_the_ids(folder: Path, opened: Any, version: str) -> None:
    second = CATALOG.replace("desk", "store")
    other = TICKET | {"description": "Of the store.", "_meta": {"gatewright": {"version": version}}}
    (folder / "store.json").write_text(json.dumps([other]), encoding="utf-8")
    agent = '\n[agents.a]\ntools = ["desk.ticket", "shelf"]\n[agents.b]\ntools = ["store.ticket"]\n'
    write(folder, HEAD + CATALOG + second + agent + RULE.replace('"ticket"', '"desk.ticket"'))
    workspace = opened()
    assert set(shown(workspace)) == {"desk.ticket", "shelf"}
    (listed,) = workspace.view("b").tools("openai")
    assert "Of the store." in str(listed)
    assert workspace.decide("a", "store.ticket", {"action": "open"}).code == "tool-not-listed"
    assert workspace.selfcheck().differences == ()
    write(folder, HEAD + CATALOG + second + AGENT)
    several = "no tool is named `ticket`: 2 servers have it: choose one of `desk.ticket`, `store.ticket`"
    assert ("unknown-tool", several) in refused(folder)


def test_prefix_stands_before_the_names_of_a_catalogs_tools(folder: Path, opened: Any) -> None:
    named = POLICY.replace('"ticket"', '"d.ticket"').replace('"shelf"', '"d.shelf"')
    write(folder, named.replace('manifest = "desk.json"', 'manifest = "desk.json"\nprefix = "d"'))
    workspace = opened()
    assert shown(workspace)["d.ticket"]["properties"]["action"]["enum"] == ["open"]
    assert workspace.decide("a", "d.ticket", {"action": "open"}).verdict is Verdict.ASK
    assert workspace.decide("a", "ticket", {"action": "open"}).code == "unknown-tool"
    assert workspace.selfcheck().differences == ()


def test_catalog_added_changed_and_removed_is_undone_and_saved(folder: Path, opened: Any) -> None:
    workspace = opened()
    before = workspace.saved_text
    edits: list[Edit] = []

    def do(edit: Edit) -> None:
        workspace.apply(edit)
        edits.append(edit)

    second = Catalog("two", CatalogType.HOST, "two.json", prefix="two")
    (folder / "two.json").write_text(json.dumps([TICKET]), encoding="utf-8")
    do(policyedit.add_catalog(workspace.policy, second))
    assert {facts.name for facts in workspace.catalog} >= {"ticket", "two.ticket"}
    do(Edit("change", (CatalogChange(second, replace(second, prefix="three")),)))
    assert "three.ticket" in {facts.name for facts in workspace.catalog}
    assert "two.ticket" not in {facts.name for facts in workspace.catalog}
    with pytest.raises(EditRefused, match="no tool is named `ticket`"):
        workspace.check(policyedit.remove_catalog(workspace.policy, "desk"))
    do(policyedit.remove_catalog(workspace.policy, "desk", ("ticket", "shelf")))
    assert workspace.policy.agents["a"].tools == ()
    assert "ticket" not in {facts.name for facts in workspace.catalog}
    workspace.save()
    assert load_policy(folder / "policy.toml") == workspace.policy
    for edit in reversed(edits):
        workspace.apply(inverse(edit))
    assert shown(workspace)["ticket"]["properties"]["action"]["enum"] == ["open"]
    workspace.save()
    assert workspace.saved_text == before


def test_change_set_of_a_declaration_concerns_everybody(opened: Any) -> None:
    workspace = opened()
    changed = workspace.apply(declare(workspace, "shelf", operations=("get",)))
    assert changed == ChangeSet(frozenset(), frozenset(), everything=True)


NAMED = {
    "tools": '\n[agents.a]\ntools = ["{}"]\n',
    "rule": '\n[agents.a]\n\n[[agents.a.tool_rules]]\ntool_name = "{}"\nrule_type = {{ MaxCalls = 3 }}\n',
    "approval": '\n[agents.a]\napprovals = {{ "{}" = "ask" }}\n',
    "default": '\n[agents.a]\n\n[defaults]\napprovals = {{ "{}" = "ask" }}\n',
    "policy": '\n[agents.a]\n\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["{}"]\n',
}


@pytest.mark.parametrize("prefix", ["", "there"])
@pytest.mark.parametrize("where", NAMED)
@pytest.mark.parametrize("name", ["search", "block", "context", "file"])
def test_a_bare_name_that_means_a_built_in_although_a_catalog_has_it_too_is_a_warning(
    folder: Path, opened: Any, name: str, where: str, prefix: str
) -> None:
    catalog = CATALOG + (f'prefix = "{prefix}"\n' if prefix else "")
    source = '\n[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "."\n'
    text = HEAD + catalog + source + NAMED[where].format(name)
    write(folder, text, tools=[{**SHELF, "name": name}])
    (problem,) = [problem for problem in opened().problems if problem.code == "name-of-two"]

    assert f"`{name}` means the built-in tool" in problem.message
    assert f"`{prefix or 'desk'}.{name}`" in problem.message
    assert problem.place is not None
    assert problem.place.line > len((HEAD + catalog + source).splitlines())


def test_a_policy_that_names_the_tool_of_the_catalog_knows_it(folder: Path, opened: Any) -> None:
    write(folder, HEAD + CATALOG + '\n[agents.a]\ntools = ["search", "desk.search"]\n', [{**SHELF, "name": "search"}])

    assert codes(opened()) == []


def test_a_catalog_with_names_of_its_own_is_no_warning(folder: Path, opened: Any) -> None:
    write(folder, HEAD + CATALOG + '\n[agents.a]\ntools = ["search", "shelf"]\n')

    assert codes(opened()) == []
