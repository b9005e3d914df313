"""How many files an operation may touch, counted the same however its constraint on the path is spelt."""

from contextlib import closing
from pathlib import Path

import pytest

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
