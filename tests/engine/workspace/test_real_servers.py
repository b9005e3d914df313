"""Real servers from PyPI and npm behind one gate: restricted per tool, operation and argument."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Outcome, Status
from gatewright.workspace import Workspace
from tests.support.real_servers import from_npm, from_pypi

HEAD = """gatewright = 1

[agents.clerk]
tools = ["git.git_log", "git.git_branch", "time.get_current_time", "fs.read_text_file", "all.get-annotated-message",
  "mem.create_entities", "mem.read_graph", "fs.read_multiple_files", "fs.directory_tree"]
approvals = { privileged = "allow" }

[[agents.clerk.tool_rules]]
tool_name = "all.get-annotated-message"
rule_type = { AllowedOperations = ["success"] }

[[agents.clerk.tool_rules]]
tool_name = "git.git_branch"
rule_type = { AllowedOperations = ["local"] }

[[agents.clerk.tool_rules]]
tool_name = "time.get_current_time"
rule_type = { ArgumentConstraints = { timezone = { pattern = "^Europe/" } } }

[[agents.clerk.tool_rules]]
tool_name = "mem.create_entities"
rule_type = { MaxCalls = 1 }

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
permission_rules = [{ pattern = "/closed/", permission = "none" }]

[tools."all.get-annotated-message"]
operation_field = "messageType"

[tools."git.git_branch"]
operation_field = "branch_type"
operations = ["local", "remote", "all"]
"""


def catalog(catalog_id: str, words: tuple[str, ...]) -> str:
    head = f'\n[[catalogs]]\nid = "{catalog_id}"\ntype = "mcp"\nconfine = "none"\nprefix = "{catalog_id}"\n'
    return f"{head}command = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace that imported the tools of five servers and accepted them as proposed."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "notes" / "closed").mkdir(parents=True)
    (folder / "notes" / "closed" / "key.txt").write_text("the key")
    (folder / "notes" / "milk.txt").write_text("remember the milk")
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder / "repo")], check=True)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "first"], cwd=folder / "repo", check=True)
    catalogs = {
        "git": from_pypi("mcp-server-git", "--repository", str(folder / "repo")),
        "time": from_pypi("mcp-server-time"),
        "fs": from_npm("server-filesystem", "/"),
        "all": from_npm("server-everything"),
        "mem": from_npm("server-memory"),
    }
    entries = "".join(catalog(catalog_id, words) for catalog_id, words in catalogs.items())
    policy = folder / "policy.toml"
    policy.write_text("gatewright = 1\n" + entries)
    with Workspace.open(folder, keys=folder / "keys", trust=True) as importing:
        for catalog_id in catalogs:
            asyncio.run(importing.servers.refresh(catalog_id))
            importing.accept_tools(catalog_id, None, instructions=True)
    policy.write_text(HEAD + entries)
    with Workspace.open(folder, keys=folder / "keys") as workspace:
        yield workspace


async def call(workspace: Workspace, tool: str, **arguments: JsonValue) -> Outcome:
    return await workspace.call("clerk", tool, arguments)


async def test_git_answers_what_is_allowed_and_one_operation_of_a_tool(workspace: Workspace) -> None:
    repo = str(workspace.folder / "repo")
    assert "first" in (await call(workspace, "git.git_log", repo_path=repo)).output
    local = await call(workspace, "git.git_branch", repo_path=repo, branch_type="local")
    assert "trunk" in local.output
    remote = await call(workspace, "git.git_branch", repo_path=repo, branch_type="remote")
    assert (remote.status, remote.decision.stage) == (Status.DENIED, "operation")
    commit = await call(workspace, "git.git_commit", repo_path=repo, message="x")
    assert (commit.status, commit.decision.stage) == (Status.DENIED, "lookup")


async def test_an_argument_of_the_time_server_is_restricted(workspace: Workspace) -> None:
    assert "Europe/Oslo" in (await call(workspace, "time.get_current_time", timezone="Europe/Oslo")).output
    denied = await call(workspace, "time.get_current_time", timezone="Asia/Tokyo")
    assert denied.status is Status.DENIED


async def test_the_filesystem_server_reads_through_the_gate(workspace: Workspace) -> None:
    path = str(workspace.folder / "notes" / "milk.txt")
    assert (await call(workspace, "fs.read_text_file", path=path)).output == "remember the milk"
    assert (await call(workspace, "fs.write_file", path=path, content="x")).status is Status.DENIED


async def test_the_filesystem_server_reads_no_closed_file_by_any_of_its_tools(workspace: Workspace) -> None:
    notes = workspace.folder / "notes"
    for path in (f"{notes}/closed", "notes/closed", "/proc/self/cwd/notes/closed", f"{notes}/x/../closed"):
        said = [
            await call(workspace, "fs.read_text_file", path=f"{path}/key.txt"),
            await call(workspace, "fs.read_multiple_files", paths=[str(notes / "milk.txt"), f"{path}/key.txt"]),
            await call(workspace, "fs.directory_tree", path=path),
        ]
        assert [outcome.status for outcome in said] == [Status.DENIED] * 3, path
    several = await call(workspace, "fs.read_multiple_files", paths=[str(notes / "milk.txt")])
    assert "remember the milk" in several.output


async def test_an_operation_that_is_hidden_is_neither_shown_nor_callable(workspace: Workspace) -> None:
    shown = json.dumps(workspace.view("clerk").tools("mcp"))
    assert "get-annotated-message" in shown
    assert '"debug"' not in shown
    told = await call(workspace, "all.get-annotated-message", messageType="success")
    assert "Operation completed successfully" in told.output
    assert (await call(workspace, "all.get-annotated-message", messageType="error")).decision.stage == "operation"


async def test_a_limit_of_calls_holds_for_a_servers_tool(workspace: Workspace) -> None:
    entity: JsonValue = {"name": "cat", "entityType": "animal", "observations": ["black"]}
    assert (await call(workspace, "mem.create_entities", entities=[entity])).status is Status.ALLOWED
    assert (await call(workspace, "mem.create_entities", entities=[entity])).decision.stage == "rules"
    assert "cat" in (await call(workspace, "mem.read_graph")).output
