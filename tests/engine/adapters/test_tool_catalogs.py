"""Tools that a manifest defines and that are run here: held, accepted, pinned and trusted, whoever runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright.cli.main import main
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.engine.adapters.toolcatalog import ADD, KEYS, RUNS, opened, write_manifest, write_policy
from tests.support.git_tools import LOG

Opened = Any


@pytest.fixture(params=sorted(KEYS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def folder(tmp_path: Path, kind: str) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "tool.py").write_text("", "utf-8")
    (folder / "tool.wasm").write_bytes(b"\0asm\1\0\0\0")
    write_manifest(folder, [{**ADD, "run": RUNS[kind]}])
    write_policy(folder, kind)
    return folder


@pytest.fixture
def workspaces(folder: Path) -> Iterator[Opened]:
    held: list[Workspace] = []

    def made(*, trust: bool = True) -> Workspace:
        held.append(opened(folder, trust=trust))
        return held[-1]

    yield made
    for workspace in held:
        workspace.close()


def names(workspace: Workspace) -> list[str]:
    return [str(tool["name"]) for tool in workspace.view("a").tools("mcp")]


def codes(workspace: Workspace) -> set[str]:
    return {problem.code for problem in workspace.problems}


def test_listed_tools_are_held_until_they_are_accepted(workspaces: Opened, folder: Path) -> None:
    workspace = workspaces()
    assert names(workspace) == []
    assert workspace.decide("a", "sum", {"a": 1, "b": 2}).stage == "lookup"
    assert "tools-held" in codes(workspace)
    workspace.accept_tools("calc", None)
    assert names(workspace) == ["sum"]
    pinned = json.loads((folder / "catalogs" / "calc.json").read_text("utf-8"))
    assert list(pinned["accepted"]) == ["sum"]
    assert pinned["server"]["name"] == "calc"
    assert names(workspaces()) == ["sum"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("description", "Adds two numbers, and tells me."),
        ("run", {"path": "/total"}),
        ("outputSchema", {"type": "object"}),
        ("annotations", {"readOnlyHint": False}),
        ("_meta", {"gatewright": {"safety_tier": "read_only"}}),
    ],
)
def test_whatever_a_manifest_says_otherwise_than_was_accepted_holds_the_tool(
    workspaces: Opened, folder: Path, kind: str, key: str, value: object
) -> None:
    first = workspaces()
    first.accept_tools("calc", None)
    write_manifest(folder, [{**ADD, "run": RUNS[kind], key: value}])
    assert first.is_changed_outside()
    first.reload()
    assert names(first) == names(workspaces()) == []
    write_manifest(folder, [{**ADD, "run": RUNS[kind]}])
    first.reload()
    assert names(first) == ["sum"]


async def test_manifest_that_changed_since_the_policy_was_read_runs_nothing(workspaces: Opened, folder: Path) -> None:
    workspace = workspaces()
    workspace.accept_tools("calc", None)
    write_manifest(folder, [{**ADD, "description": "Another."}])
    outcome = await workspace.call("a", "sum", {"a": 1, "b": 2})
    assert outcome.code in {"held", "not-supported"}
    assert outcome.output is None or "3" not in outcome.output


def test_nothing_is_trusted_before_somebody_says_so(workspaces: Opened, folder: Path, kind: str) -> None:
    workspace = workspaces(trust=False)
    assert "server-not-trusted" in codes(workspace)
    assert not workspace.trusts_server("calc")
    workspace.trust_server("calc")
    assert workspace.trusts_server("calc")
    changed = {
        "http": 'url = "http://127.0.0.1:9/other"\n',
        "subprocess": 'command = "python3"\nargs = ["tool.py", "x"]\nplaces = { "./tool.py" = "read" }\n',
        "wasm": 'module = "tool.wasm"\n',
    }[kind]
    (folder / "tool.wasm").write_bytes(b"\0asm\1\0\0\0\0\0")
    write_policy(folder, kind, keys=changed)
    again = workspaces(trust=False)
    assert not again.trusts_server("calc")


def test_two_types_with_one_definition_are_not_trusted_together(workspaces: Opened, folder: Path, kind: str) -> None:
    workspaces(trust=True)
    if kind == "wasm":
        return
    text = (folder / "policy.toml").read_text("utf-8")
    text = text.replace(f'type = "{kind}"\nmanifest = "tools.json"', 'type = "mcp"')
    (folder / "policy.toml").write_text(text.replace('tools = ["sum"]', "tools = []"), "utf-8")
    assert not workspaces(trust=False).trusts_server("calc")


def test_opening_reads_no_manifest_outside_the_folder(tmp_path: Path, workspaces: Opened, folder: Path) -> None:
    (folder / "tools.json").rename(tmp_path / "tools.json")
    write_policy(folder, "subprocess", tools=[])
    text = (folder / "policy.toml").read_text("utf-8")
    (folder / "policy.toml").write_text(text.replace('"tools.json"', '"../tools.json"'), "utf-8")
    workspace = workspaces(trust=False)
    assert workspace.pin("calc") is None
    assert "missing-path" in codes(workspace)


async def test_manifest_outside_is_read_once_it_is_trusted(
    tmp_path: Path, workspaces: Opened, folder: Path, kind: str
) -> None:
    (folder / "tools.json").rename(tmp_path / "tools.json")
    write_policy(folder, kind, tools=[])
    text = (folder / "policy.toml").read_text("utf-8")
    (folder / "policy.toml").write_text(text.replace('"tools.json"', '"../tools.json"'), "utf-8")
    workspace = workspaces(trust=False)
    with pytest.raises(WorkspaceError, match="not trusted"):
        await workspace.catalog_tools.refresh("calc")
    workspace.trust_server("calc")
    pin = await workspace.catalog_tools.refresh("calc")
    assert pin.drift.new == ("sum",)
    assert (folder / "catalogs" / "calc.json").is_file()
    workspace.accept_tools("calc", None)
    assert [tool for state in workspace.catalog_states() for tool in state.tool_names] == ["sum"]


def test_manifest_is_protected_like_the_policy(workspaces: Opened, folder: Path) -> None:
    workspace = workspaces()
    assert {folder / "tools.json", folder / "catalogs" / "calc.json"} <= set(workspace.files)


def test_manifest_goes_along_with_an_export(workspaces: Opened, folder: Path, tmp_path: Path) -> None:
    workspace = workspaces()
    workspace.accept_tools("calc", None)
    workspace.export(tmp_path / "out")
    assert (tmp_path / "out" / "tools.json").read_bytes() == (folder / "tools.json").read_bytes()
    with opened(tmp_path / "out") as copy:
        assert names(copy) == ["sum"]


HOSTILE = [
    "",
    "null",
    "3",
    '"tools"',
    "[" * 100_000,
    '{"tools": 3}',
    '{"tools": [], "name": 3}',
    '{"tools": {"a": 1}}',
    "\ufeff",
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12] for text in HOSTILE])
def test_manifest_that_is_none_is_an_error_with_its_name(workspaces: Opened, folder: Path, text: str) -> None:
    (folder / "tools.json").write_text(text, "utf-8")
    with pytest.raises(PolicyInvalid) as error:
        workspaces()
    assert {"bad-manifest", "unreadable"} & {problem.code for problem in error.value.problems}


def test_manifest_that_is_no_text_or_too_large_is_an_error(workspaces: Opened, folder: Path) -> None:
    for content in (b"\xff\xfe{", b"[" + b" " * (9 << 20) + b"]"):
        (folder / "tools.json").write_bytes(content)
        with pytest.raises(PolicyInvalid):
            workspaces()


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60)
@given(key=st.sampled_from([*ADD, "outputSchema", "_meta", "title"]), value=_JSON)
def test_no_value_of_a_definition_breaks_the_opening(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    folder = tmp_path_factory.mktemp("ws")
    row = {**deepcopy(dict(ADD)), key: value}
    (folder / "tools.json").write_text(json.dumps([row, LOG]), "utf-8")
    write_policy(folder, "subprocess", tools=["git_log"])
    with Workspace.open(folder, keys=folder / ".." / "keys") as workspace:
        workspace.accept_tools("calc", None)
        assert names(workspace) == ["git_log"]


def test_import_and_accept_on_the_command_line(folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    def ran(*words: str) -> tuple[int, str, str]:
        status = main([*words[:2], str(folder), *words[2:]])
        out, err = capsys.readouterr()
        return status, out, err

    write_policy(folder, kind, tools=[])
    status, _, err = ran("catalog", "import", "--id", "calc")
    assert (status, "--trust" in err) == (1, True)
    status, out, err = ran("catalog", "import", "--id", "calc", "--trust")
    assert status == 0, err
    assert "calc: calc 1 lists 1 tool\n  new       sum  read_only" in out
    assert ran("catalog", "accept", "calc", "--all")[0] == 0
    (listed,) = json.loads(ran("catalog", "list", "--json")[1])
    assert (listed["id"], listed["tools"], listed["held"]) == ("calc", ["sum"], [])


def test_a_policy_without_the_pin_still_opens(workspaces: Opened, folder: Path) -> None:
    workspace = workspaces()
    workspace.accept_tools("calc", None)
    (folder / "catalogs" / "calc.json").unlink()
    assert names(workspaces()) == []
    assert workspaces().decide("a", "sum", {"a": 1, "b": 2}).verdict is Verdict.DENY
