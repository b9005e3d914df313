"""Roots in a whole workspace: which tools come and go with them, trust, reload, copies, exports, names of others."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from gatewright.base.errors import PolicyInvalid
from gatewright.builtins import root_tools
from gatewright.gate import Status
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import ResultType, tool
from gatewright.workspace import Workspace
from tests.engine.builtins.rootbench import EVERYTHING, ROOTS, TOOLS, RootBench, opened, policy_text
from tests.engine.sources.folding import fold_below

SHARED = '[workspace]\nroots = { shared = "shared" }\n'


@tool(name="read_file", safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def own_read_file(path: str) -> str:
    """Give the path back.

    Args:
        path: The path.
    """
    return f"own {path}"


def shown(workspace: Workspace) -> set[str]:
    return {str(one["name"]) for one in workspace.view("a").tools("mcp")}


def codes(workspace: Workspace) -> set[str]:
    return {problem.code for problem in workspace.problems}


@pytest.mark.parametrize(
    ("roots", "missing"),
    [
        (ROOTS, set[str]()),
        (SHARED, {"vault_copyto"}),
        ('[workspace.roots]\ntmp = "tmp"\n', {"vault_copyto"}),
        ('[workspace]\nroots = { vault = "vault" }\n', set(TOOLS)),
        ("[workspace]\nroots = {}\n", set(TOOLS)),
        ("", set(TOOLS)),
    ],
)
def test_tools_are_there_with_their_roots_and_the_operator_is_told_why_not(
    tmp_path: Path, roots: str, missing: set[str]
) -> None:
    bench = opened(tmp_path, policy_text(roots=roots))
    assert shown(bench.workspace) == set(TOOLS) - missing
    for name in missing:
        decision = bench.decide(name, path="x")
        assert (decision.stage, decision.code) == ("lookup", "not-available")
        assert "[workspace] roots" in decision.reason
        assert "roots" not in (decision.model_message or "")
    assert codes(bench.workspace) == ({"no-root"} if missing else set())
    assert bench.workspace.selfcheck().differences == ()
    bench.workspace.close()


def test_every_operation_is_previewed_with_its_tier_and_time(bench: RootBench) -> None:
    facts = {one.name: one for one in bench.workspace.catalog if one.name in TOOLS}
    readers = {"file_read", "file_search", "file_list", "read_file"}
    assert {name for name, one in facts.items() if one.tier is SafetyTier.READ_ONLY} == readers
    assert {one.tier for name, one in facts.items() if name not in readers} == {SafetyTier.SIDE_EFFECTING}
    times = {"file_read": 10, "read_file": 10, "file_list": 10, "file_search": 20, "vault_copyto": 30}
    found = {one.name: one.resource_bounds.timeout_s for one in root_tools() if one.name in TOOLS}
    assert found == {name: times.get(name, 15) for name in TOOLS}
    checked = bench.workspace.selfcheck()
    assert (checked.differences, checked.no_witness) == ((), ())


async def test_reload_brings_and_takes_the_tools_and_moves_the_folders(bench: RootBench) -> None:
    bench.write("shared/a", "one")
    bench.write("other/a", "two")
    assert (await bench.data("file_read", path="a"))["content"] == "one"
    bench.write("policy.toml", policy_text(roots='[workspace]\nroots = { shared = "other" }\n'))
    assert {problem.code for problem in bench.workspace.reload()} == {"no-root"}
    assert (await bench.data("file_read", path="a"))["content"] == "two"
    assert shown(bench.workspace) == set(TOOLS) - {"vault_copyto"}
    bench.write("policy.toml", policy_text(roots=""))
    bench.workspace.reload()
    assert shown(bench.workspace) == set()
    bench.write("policy.toml", policy_text())
    bench.workspace.reload()
    assert shown(bench.workspace) == set(TOOLS)


def test_folder_outside_the_workspace_has_to_be_trusted_for_exactly_that_root(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "further").mkdir()
    text = policy_text(
        roots='[workspace]\nroots = { shared = "../far" }\n',
        capabilities='capabilities = [{ FsRead = { prefixes = ["/"] } }]\n',
    )
    with pytest.raises(PolicyInvalid, match="root `shared` reaches outside"):
        opened(tmp_path, text)
    folder, keys = tmp_path / "ws", tmp_path / "keys"
    with closing(Workspace.open(folder, keys=keys, trust=True)) as workspace:
        assert workspace.decide("a", "file_read", {"path": "a"}).verdict is Verdict.ALLOW
    with closing(Workspace.open(folder, keys=keys)):
        pass
    for roots in ('{ tmp = "../far" }', '{ shared = "../further" }'):
        (folder / "policy.toml").write_text(text.replace('{ shared = "../far" }', roots))
        with pytest.raises(PolicyInvalid, match="not trusted"):
            Workspace.open(folder, keys=keys)


def test_link_to_a_folder_outside_is_outside(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/link").symlink_to("../far")
    with pytest.raises(PolicyInvalid, match="not trusted"):
        opened(tmp_path, policy_text(roots='[workspace]\nroots = { shared = "link" }\n'))


def test_two_roots_on_one_folder_are_refused_even_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "ws/shared/in").mkdir(parents=True)
    (tmp_path / "ws/link").symlink_to("shared/in")
    with pytest.raises(PolicyInvalid, match="may not lie in each other"):
        opened(tmp_path, policy_text(roots='[workspace]\nroots = { shared = "shared", vault = "link" }\n'))


def test_two_roots_on_one_folder_are_refused_in_two_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ws/shared").mkdir(parents=True)
    fold_below(tmp_path / "ws", monkeypatch)
    (tmp_path / "ws/policy.toml").write_text(
        policy_text(roots='[workspace]\nroots = { shared = "Shared", vault = "sHared" }\n')
    )
    with pytest.raises(PolicyInvalid, match="may not lie in each other"):
        Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")


async def test_missing_folder_is_a_warning_and_a_clear_refusal(tmp_path: Path) -> None:
    bench = opened(tmp_path, policy_text(roots='[workspace]\nroots = { shared = "later" }\n'))
    assert "missing-path" in codes(bench.workspace)
    assert await bench.code("file_list") == "root-missing"
    assert await bench.code("file_write", path="a", content="x") == "root-missing"
    (bench.folder / "later").mkdir()
    assert (await bench.data("file_list"))["entries"] == []
    bench.workspace.close()


async def test_disposable_copy_has_its_own_roots(bench: RootBench) -> None:
    bench.write("shared/a", "x")
    copy = bench.workspace.sandbox()
    try:
        outcome = await copy.workspace.call("a", "file_write", {"path": "a", "content": "changed"})
        assert outcome.status is Status.ALLOWED, outcome.output
        assert (copy.folder / "shared/a").read_text() == "changed"
    finally:
        copy.close()
    assert bench.text("shared/a") == "x"


def test_export_loads_where_it_is(bench: RootBench, tmp_path: Path) -> None:
    bench.workspace.export(tmp_path / "out")
    with closing(Workspace.open(tmp_path / "out", keys=tmp_path / "keys2")) as workspace:
        assert workspace.problems == ()
        assert shown(workspace) == set(TOOLS)


async def test_tool_of_the_program_comes_before_ours_of_the_same_name_and_one_of_a_catalog_does_not(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "ws"
    (folder / "shared").mkdir(parents=True)
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    manifest = {"tools": [{"name": "file_list", "description": "Elsewhere.", "inputSchema": schema}]}
    (folder / "files.json").write_text(json.dumps(manifest))
    catalog = '[[catalogs]]\nid = "far"\ntype = "host"\nmanifest = "files.json"\n'
    (folder / "policy.toml").write_text(policy_text(roots=SHARED, more=catalog))
    with closing(Workspace.open(folder, tools=[own_read_file], keys=tmp_path / "keys")) as workspace:
        assert (await workspace.call("a", "read_file", {"path": "x"})).output == "own x"
        assert {one.name: one.origin for one in workspace.catalog}["file_list"] == "built-in"
        assert {one.name: one.origin for one in workspace.catalog}["far.file_list"] == "far"
        (folder / "policy.toml").write_text(policy_text(roots=SHARED))
        workspace.reload()
        assert "far.file_list" not in {one.name for one in workspace.catalog}
        assert {one.name: one.origin for one in workspace.catalog}["file_list"] == "built-in"
        assert workspace.selfcheck().differences == ()


def test_limits_and_constraints_of_these_tools_load_and_hold(tmp_path: Path) -> None:
    rules = """
[[agents.a.tool_rules]]
tool_name = "file_read"
rule_type = { ArgumentConstraints = { path = { pattern = "^shared/open/" } } }
"""
    bench = opened(tmp_path, policy_text(capabilities=EVERYTHING, more=rules))
    assert bench.decide("file_read", path="shared/open/a").verdict is Verdict.ALLOW
    assert bench.decide("file_read", path="shared/open/../b").verdict is Verdict.DENY
    bench.workspace.close()
