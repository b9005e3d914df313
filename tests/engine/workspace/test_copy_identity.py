"""A call is decided in a disposable copy exactly as in its original, by whatever name it calls what it is about."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.agentedit import describe_agent
from gatewright.policy.verdict import SafetyTier
from gatewright.sources.ground import Ground
from gatewright.tools import FileParameter, Normalization, ResultType, SideEffect, tool
from gatewright.workspace import Status, Workspace, create_workspace, example_names
from gatewright.workspace.sandbox import NOWHERE

Call = tuple[str, str, Mapping[str, JsonValue]]


def names_in(workspace: Workspace) -> list[str]:
    """All ways to call something: paths, labels and ids, of what is there, of what is not, and of what is closed."""
    folder, found = workspace.folder, ["not-there.md", "../", "..", ".", "/", "", "~", "file:14d85b0e:README.md"]
    for source_id in workspace.sources.ids:
        source = workspace.sources.get(source_id)
        assert source is not None
        base = Path(source.base)
        inside = sorted(path for path in base.rglob("*") if not path.is_symlink())[:12]
        for path in (*inside, base / "later" / "new.md"):
            relative = path.relative_to(base).as_posix()
            found += [relative, str(path), source.label(relative), f"{base}/../{base.name}/{relative}"]
        found += [str(base), f"{base}/", f"file://{base}/a.md", f"{base}/*"]
    for root in workspace.root_folders():
        found += [f"{root}/a.txt", f"/{root}/a.txt", str(folder / root / "a.txt")]
    found += [str(folder), str(folder.parent), str(workspace.policy_path), str(workspace.state_folder / "audit.sqlite")]
    found += [path.relative_to(folder).as_posix() for path in (workspace.policy_path, workspace.state_folder)]
    found += [block.label for block in workspace.blocks().list()]
    return found


def changed(value: JsonValue, name: str) -> Iterator[JsonValue]:
    """The value with one of its texts replaced by ``name``, for each."""
    if isinstance(value, str):
        yield name
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: other} for other in changed(item, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in changed(item, name))


def calls_of(workspace: Workspace, names: list[str]) -> Iterator[Call]:
    """Each example of each operation of each agent, and the same with every text another name, in turn."""
    at = 0
    for agent_id in workspace.policy.agents:
        agent = workspace.gate.snapshot().agent(agent_id)
        plans = [agent.plan(tool.name) for tool in workspace.catalog] if agent is not None else []
        for plan in filter(None, plans):
            for example in plan.examples:
                yield agent_id, plan.tool.name, example
                for _ in range(6):
                    at += 1
                    for other in changed(dict(example), names[at % len(names)]):
                        assert isinstance(other, dict)
                        yield agent_id, plan.tool.name, other


def said(workspace: Workspace, call: Call) -> object:
    decision = workspace.decide(*call)
    assert decision.code != "internal-error", decision.reason
    return decision.to_json(), decision.arguments, decision.facts


@pytest.mark.parametrize("name", ["demo", *example_names()])
def test_every_name_means_in_the_copy_what_it_means_in_the_original(name: str, tmp_path: Path) -> None:
    with Workspace.open(create_workspace(tmp_path / name, name)) as workspace, closing(workspace.sandbox()) as sandbox:
        names = names_in(workspace)
        for call in calls_of(workspace, names):
            assert said(sandbox.workspace, call) == said(workspace, call), call


async def test_the_block_of_a_file_is_called_in_the_copy_as_in_the_original(tmp_path: Path) -> None:
    with Workspace.open(create_workspace(tmp_path / "demo", "demo")) as workspace:
        loaded = await workspace.call("archivist", "file", {"op": "load", "path": "README.md"})
        assert loaded.status is Status.ALLOWED
        source = workspace.sources.get("archive")
        assert source is not None
        label = source.label("README.md")
        with closing(workspace.sandbox()) as sandbox:
            info = await sandbox.workspace.call("archivist", "block", {"op": "info", "label": label})
            assert info.status is Status.ALLOWED, info.output
            other = sandbox.workspace.sources.get("archive")
            assert other is not None
            assert (other.label("README.md"), other.base) == (label, source.base)


def test_rows_that_were_edited_stand_in_the_copy_on_the_lines_of_the_original(tmp_path: Path) -> None:
    with Workspace.open(create_workspace(tmp_path / "demo", "demo")) as workspace:
        workspace.apply(describe_agent(workspace.policy, "archivist", "one line\nand many more"))
        call = ("archivist", "file", {"op": "delete", "path": "README.md"})
        with closing(workspace.sandbox()) as sandbox:
            assert said(sandbox.workspace, call) == said(workspace, call)


POLICY = """gatewright = 1

[agents.a]
tools = ["touch", "file"]
sources = ["docs"]
approvals = { side_effecting = "allow" }
capabilities = [{ FsWrite = { prefixes = [".", "OUTSIDE"] } }, { FsRead = { prefixes = ["."] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "link"
default_permission = "admin"
"""


@tool(
    safety_tier=SafetyTier.SIDE_EFFECTING,
    result_type=ResultType.STRING,
    normalization=Normalization.JSON,
    side_effects=frozenset({SideEffect.FS_WRITE}),
)
async def touch(path: Annotated[str, FileParameter(writes=True)]) -> str:
    """Write a file.

    Args:
        path: Where it is.
    """
    Path(path).write_text("touched")
    return path


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A workspace whose source is reached by a link, with links to inside and outside."""
    folder, outside = tmp_path / "ws", tmp_path / "outside"
    (folder / "real" / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept.md").write_text("kept")
    (folder / "link").symlink_to("real")
    (folder / "real" / "a.md").write_text("one")
    (folder / "real" / "out").symlink_to(outside)
    (folder / "real" / "in").symlink_to(folder / "real" / "sub")
    (folder / "real" / "up").symlink_to("../real/sub")
    (tmp_path / "way").symlink_to(folder)
    (folder / "policy.toml").write_text(POLICY.replace("OUTSIDE", str(outside)))
    return folder


PARTS = ["real", "link", "a.md", "out", "in", "up", "sub", "..", ".", "kept.md", "new.md", "policy.toml", ".gatewright"]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["", "WS/", "WAY/", "OUT/"]), st.lists(st.sampled_from(PARTS), min_size=1, max_size=5))
def test_links_and_detours_lead_by_name_where_they_lead_in_the_original(
    linked: Path, start: str, parts: list[str]
) -> None:
    start = start.replace("WS", str(linked)).replace("WAY", str(linked.parent / "way"))
    path = start.replace("OUT", str(linked.parent / "outside")) + "/".join(parts)
    with _workspace(linked) as workspace, closing(workspace.sandbox()) as sandbox:
        ground = Ground(str(linked), str(sandbox.folder), str(sandbox.folder.parent / NOWHERE))
        absolute = path if path.startswith("/") else f"{linked}/{path}"
        if "/link" not in absolute:  # a link beside the sources is not copied
            assert ground.real(absolute) == os.path.realpath(absolute)
        for name in ("touch", "file"):
            arguments = {"path": path} | ({"op": "read"} if name == "file" else {})
            if "/link" not in absolute or name == "file":
                assert said(sandbox.workspace, ("a", name, arguments)) == said(workspace, ("a", name, arguments)), path


async def test_a_tool_of_the_program_reaches_the_files_of_the_copy_and_nothing_by_a_link_out(linked: Path) -> None:
    with _workspace(linked) as workspace, closing(workspace.sandbox()) as sandbox:
        copy = sandbox.workspace
        for path in ("real/a.md", str(linked / "real" / "a.md"), str(linked.parent / "way/real/in/new.md")):
            assert (await copy.call("a", "touch", {"path": path})).status is Status.ALLOWED, path
        assert (await copy.call("a", "touch", {"path": "real/out/kept.md"})).status is Status.FAILED
        assert (sandbox.folder / "real" / "a.md").read_text() == "touched"
        assert (sandbox.folder / "real" / "sub" / "new.md").read_text() == "touched"
        assert (linked / "real" / "a.md").read_text() == "one"
        assert not (linked / "real" / "sub" / "new.md").exists()
        assert (linked.parent / "outside" / "kept.md").read_text() == "kept"


def test_nothing_of_a_copys_policy_is_written(linked: Path) -> None:
    with _workspace(linked) as workspace, closing(workspace.sandbox()) as sandbox:
        copy, before = sandbox.workspace, (linked / "policy.toml").read_bytes()
        copy.apply(describe_agent(copy.policy, "a", "edited in the copy"))
        with pytest.raises(WorkspaceError, match="disposable copy"):
            copy.save()
        with pytest.raises(WorkspaceError, match="disposable copy"):
            copy.write_again()
        assert (linked / "policy.toml").read_bytes() == before


def _workspace(folder: Path) -> Workspace:
    return Workspace.open(folder, tools=[touch])
