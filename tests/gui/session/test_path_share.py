"""How many files an operation may touch, counted the same however its constraint on the path is spelt."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace import Workspace
from gatewright_gui.session.path_share import Share, path_shares

POLICY = """\
gatewright = 1

[agents.a]
tools = ["file"]

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = {{ ArgumentConstraints = {{ path = {said} }} }}

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"
"""


@pytest.mark.parametrize(
    "said",
    [
        '{ pattern = "^notes/" }',
        '{ in_folder = "notes/" }',
        '{ "$defs" = { k = { pattern = "^notes/" } }, "$ref" = "#/$defs/k" }',
        '{ definitions = { k = { in_folder = "notes" } }, allOf = [{ "$ref" = "#/definitions/k" }] }',
        '{ "$defs" = { k = { "$anchor" = "here", pattern = "^notes/" } }, "$ref" = "#here" }',
        '{ not = { pattern = "^other/" } }',
    ],
)
def test_files_are_counted_by_what_a_constraint_means(tmp_path: Path, said: str) -> None:
    for name in ("notes/a.md", "notes/b.md", "other/c.md"):
        (tmp_path / "ws" / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ws" / "docs" / name).write_text("x")
    (tmp_path / "ws" / "policy.toml").write_text(POLICY.format(said=said))

    with closing(Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")) as workspace:
        assert path_shares(workspace, "a")["file", "read"] == Share(deny=1, ask=0, allow=2)


SERVER = """\
gatewright = 1

[agents.a]
tools = ["peek"]

[[catalogs]]
id = "files"
type = "mcp"
command = "server"
args = {args}
{cwd}confine = "none"

[tools.peek]
paths = {{ path = "read" }}

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_only"
permission_rules = [{{ pattern = "other/**", permission = "none" }}]
"""
FOLDERS = ("docs", "docs/notes", "docs/notes/deep", "docs/notes2", "docs/other", "elsewhere")
FILES = tuple(f"{folder}/{name}" for folder in FOLDERS for name in ("a.md", "b.md"))
PEEK = {"name": "peek", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files and the pin of a server that looks at files."""
    folder = tmp_path_factory.mktemp("served") / "ws"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "catalogs").mkdir()
    pin = accept(Pin(Listing.of([PEEK], name="files", version="1")), None)
    (folder / "catalogs" / "files.json").write_bytes(write_pin(pin))
    return folder


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sets(st.sampled_from(FOLDERS)),
    st.sampled_from([None, ".", "docs"]),
    st.sampled_from(["{path}", "{path}/", "--root={path}"]),
    st.booleans(),
)
def test_files_that_a_server_is_not_started_with_are_not_counted(
    served: Path, given_folders: set[str], cwd: str | None, written: str, is_whole: bool
) -> None:
    start = served / (cwd or ".")
    args = ["-v", "absent"]
    for name in sorted(given_folders):
        path = served / name
        args.append(written.format(path=path if is_whole else os.path.relpath(path, start)))
    said = "" if cwd is None else f'cwd = "{cwd}"\n'
    (served / "policy.toml").write_text(SERVER.format(args=json.dumps(args), cwd=said))
    tops = tuple(f"{one}/" for one in given_folders or {"docs"})
    reached = [name for name in FILES if name.startswith("docs/") and name.startswith(tops)]
    denied = [name for name in reached if name.startswith("docs/other/")]

    with closing(Workspace.open(served, keys=served.parent / "keys", trust=True)) as workspace:
        share = path_shares(workspace, "a")["peek", ""]

    assert share == Share(deny=len(denied), ask=0, allow=len(reached) - len(denied), elsewhere=True)


def test_what_makes_files_has_no_share_of_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "ws" / "docs").mkdir(parents=True)
    (tmp_path / "ws" / "docs" / "a.md").write_text("x")
    (tmp_path / "ws" / "policy.toml").write_text(POLICY.format(said='{ pattern = "md$" }'))

    with closing(Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")) as workspace:
        shares = path_shares(workspace, "a")
    assert {"read", "delete"} <= {operation for _, operation in shares}
    assert ("file", "create") not in shares
