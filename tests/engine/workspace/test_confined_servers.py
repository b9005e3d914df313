"""Real servers in rooms: their tools are of use as before, and reach what the policy gives and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.adapters.mcp_client import ServerStatus
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy import policyedit, sourceedit
from gatewright.policy.document import PermissionRule
from gatewright.policy.verdict import Permission
from gatewright.tools.context import ToolExecutionContext
from gatewright.workspace import Workspace
from tests.support.checkout import ROOT
from tests.support.loopback import folder_served
from tests.support.patience import pause_until
from tests.support.real_servers import from_npm, from_pypi

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=f"no process can be confined: {Confiner.why_not()}")
GOOD = str(ROOT / "tests" / "support" / "good_server.py")
KEY = "the-key-that-nobody-may-read"
HEAD = """gatewright = 1

[agents.clerk]
capabilities = [{ NetRead = { allowlist = ["127.0.0.2"] } }]

[agents.guest]

[workspace]
web = { allow_private = true }

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "admin"

[[sources.permission_rules]]
pattern = "/closed/"
permission = "none"

[[sources.permission_rules]]
pattern = "*.key"
permission = "none"
"""
Arguments = dict[str, JsonValue]


def catalog(catalog_id: str, words: tuple[str, ...], **places: str) -> str:
    given = ", ".join(f"{json.dumps(place)} = {json.dumps(use)}" for place, use in places.items())
    head = f'\n[[catalogs]]\nid = "{catalog_id}"\ntype = "mcp"\nprefix = "{catalog_id}"\nplaces = {{ {given} }}\n'
    return f"{head}command = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("site")
    for number in range(10):
        (folder / f"{number}.html").write_text(f"<html><body><p>page number {number}</p></body></html>")
    with folder_served(folder, "127.0.0.2") as address:
        yield address


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("confined") / "ws"
    for name in ("notes/closed", "notes/day", "memory"):
        (folder / name).mkdir(parents=True)
    (folder / "notes" / "closed" / "key.txt").write_text(KEY)
    (folder / "notes" / "day" / "bread.txt").write_text("remember the bread")
    (folder / "notes" / "own.key").write_text(KEY)
    (folder / "notes" / "milk.txt").write_text("remember the milk")
    (folder / "beside.txt").write_text(KEY)
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder / "repo")], check=True)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "first"], cwd=folder / "repo", check=True)
    return folder


@pytest.fixture(scope="module")
def workspace(folder: Path) -> Iterator[Workspace]:
    """A workspace with six servers as people run them, each with its places; all tools are accepted."""
    notes = str(folder / "notes")
    text = HEAD
    text += catalog("git", from_pypi("mcp-server-git", "--repository", str(folder / "repo")), **{"./repo": "write"})
    text += catalog("time", from_pypi("mcp-server-time"))
    text += catalog("fs", from_npm("server-filesystem", notes), notes="write")
    text += catalog("look", from_npm("server-filesystem", notes), notes="read")
    text += catalog("all", from_npm("server-everything"))
    text += catalog("mem", from_npm("server-memory"), **{"./memory": "write"}) + 'env = ["MEMORY_FILE_PATH"]\n'
    text += catalog("web", from_pypi("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"))
    (folder / "policy.toml").write_text(text)
    with (
        pytest.MonkeyPatch.context() as patch,
        Workspace.open(folder, keys=folder.parent / "keys", trust=True) as importing,
    ):
        patch.setenv("MEMORY_FILE_PATH", str(folder / "memory" / "graph.jsonl"))
        for one in importing.policy.catalogs:
            asyncio.run(importing.servers.refresh(one.catalog_id))
            importing.accept_tools(one.catalog_id, None, needs_capabilities=False)
        names = [name for state in importing.catalog_states() for name in state.tool_names]
    agent = (
        f"[agents.clerk]\ntools = {json.dumps(names)}\napprovals = {{ privileged = 'allow', side_effecting = 'allow' }}"
    )
    (folder / "policy.toml").write_text(text.replace("[agents.clerk]", agent))
    with (
        pytest.MonkeyPatch.context() as patch,
        Workspace.open(folder, keys=folder.parent / "keys", trust=True) as opened,
    ):
        patch.setenv("MEMORY_FILE_PATH", str(folder / "memory" / "graph.jsonl"))
        yield opened


def ask(workspace: Workspace, catalog_id: str, tool: str, arguments: Arguments, agent: str = "clerk") -> str:
    """All that a server says to a call that no gate judged, errors too."""
    context = ToolExecutionContext(agent, "session")
    try:
        return json.dumps(asyncio.run(workspace.servers.run(catalog_id, tool, arguments, context)))
    except ToolFailure as failure:
        return f"{failure} {failure.detail}"


def useful(folder: Path, site: str) -> dict[str, list[tuple[str, Arguments, str]]]:
    notes = str(folder / "notes")
    repo: Arguments = {"repo_path": str(folder / "repo")}
    day, new, moved = f"{notes}/day", f"{notes}/new.txt", f"{notes}/sub/moved.txt"
    zones = ("Oslo", "Paris", "Rome", "Madrid", "Berlin")
    node: JsonValue = {"name": "ada", "entityType": "person", "observations": ["counts"]}
    other: JsonValue = {"name": "bob", "entityType": "person", "observations": []}
    relation: JsonValue = {"from": "ada", "to": "bob", "relationType": "knows"}
    return {
        "git": [
            ("git_status", repo, "trunk"),
            ("git_log", repo, "first"),
            ("git_branch", {**repo, "branch_type": "local"}, "trunk"),
            ("git_create_branch", {**repo, "branch_name": "side"}, "side"),
            ("git_checkout", {**repo, "branch_name": "side"}, "side"),
            ("git_show", {**repo, "revision": "HEAD"}, "first"),
            ("git_diff_unstaged", repo, "nstaged"),
            ("git_diff_staged", repo, "taged"),
            ("git_diff", {**repo, "target": "trunk"}, "trunk"),
            ("git_checkout", {**repo, "branch_name": "trunk"}, "trunk"),
        ],
        "time": [
            *(("get_current_time", Arguments(timezone=f"Europe/{zone}"), zone) for zone in zones),
            *(
                ("convert_time", Arguments(source_timezone=zone, time="12:00", target_timezone="UTC"), "UTC")
                for zone in map("Europe/{}".format, zones)
            ),
        ],
        "fs": [
            ("read_text_file", {"path": f"{notes}/milk.txt"}, "the milk"),
            ("write_file", {"path": new, "content": "one"}, "wrote"),
            ("edit_file", {"path": new, "edits": [{"oldText": "one", "newText": "two"}]}, "two"),
            ("create_directory", {"path": f"{notes}/sub"}, "sub"),
            ("move_file", {"source": new, "destination": moved}, "moved"),
            ("list_directory", {"path": day}, "bread.txt"),
            ("directory_tree", {"path": f"{notes}/sub"}, "moved.txt"),
            ("search_files", {"path": day, "pattern": "**/*.txt"}, "bread.txt"),
            ("get_file_info", {"path": moved}, "size"),
            ("read_multiple_files", {"paths": [moved]}, "two"),
        ],
        "all": [
            ("echo", {"message": "hello"}, "hello"),
            ("get-sum", {"a": 1, "b": 2}, "3"),
            ("get-tiny-image", {}, "image"),
            ("get-annotated-message", {"messageType": "success"}, "success"),
            ("get-resource-links", {"count": 2}, "resource"),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "esource"),
            ("get-structured-content", {"location": "Chicago"}, "temperature"),
            ("trigger-long-running-operation", {"duration": 0.1, "steps": 1}, "ompleted"),
            ("echo", {"message": "again"}, "again"),
            ("get-sum", {"a": 3, "b": 4}, "7"),
        ],
        "mem": [
            ("create_entities", {"entities": [node, other]}, "ada"),
            ("create_relations", {"relations": [relation]}, "knows"),
            ("add_observations", {"observations": [{"entityName": "bob", "contents": ["sings"]}]}, "sings"),
            ("read_graph", {}, "sings"),
            ("search_nodes", {"query": "ada"}, "counts"),
            ("open_nodes", {"names": ["bob"]}, "sings"),
            ("delete_observations", {"deletions": [{"entityName": "bob", "observations": ["sings"]}]}, "delet"),
            ("delete_relations", {"relations": [relation]}, "delet"),
            ("delete_entities", {"entityNames": ["bob"]}, "delet"),
            ("read_graph", {}, "counts"),
        ],
        # raw: else it would have npm install what it reads pages with, in its own folder
        "web": [
            ("fetch", {"url": f"{site}/{number}.html", "raw": True}, f"page number {number}") for number in range(10)
        ],
    }


@pytest.mark.parametrize("server", ["git", "time", "fs", "all", "mem", "web"])
async def test_ten_calls_of_a_confined_server_are_of_use(
    workspace: Workspace, folder: Path, site: str, server: str
) -> None:
    calls = useful(folder, site)[server]
    assert len(calls) == 10
    for tool, arguments, wanted in calls:
        outcome = await workspace.call("clerk", f"{server}.{tool}", arguments)
        assert wanted in outcome.output, (tool, outcome.output, outcome.detail)
    assert workspace.servers.states[server].status is ServerStatus.RUNNING


CLOSED = ("closed/key.txt", "own.key", "closed", "../beside.txt", "../policy.toml", "/etc/shadow", "/proc/self/environ")


@pytest.mark.parametrize("server", ["fs", "look"])
def test_the_filesystem_server_reads_no_closed_file_by_any_of_its_tools(
    workspace: Workspace, folder: Path, server: str
) -> None:
    notes = folder / "notes"
    for name in CLOSED:
        path = os.path.normpath(notes / name)
        tried: list[tuple[str, Arguments]] = [
            *((tool, {"path": path}) for tool in ("read_file", "read_text_file", "read_media_file", "get_file_info")),
            *((tool, {"path": path}) for tool in ("list_directory", "list_directory_with_sizes", "directory_tree")),
            ("read_multiple_files", {"paths": [path, f"{notes}/milk.txt"]}),
            ("search_files", {"path": str(notes), "pattern": "**/*"}),
            ("edit_file", {"path": path, "edits": [{"oldText": "the", "newText": "a"}], "dryRun": True}),
            ("move_file", {"source": path, "destination": f"{notes}/taken"}),
            ("read_file", {"path": f"{notes}/taken"}),
            ("read_file", {"path": f"{notes}/taken/key.txt"}),
            ("write_file", {"path": path, "content": "mine"}),
        ]
        for tool, arguments in tried:
            assert KEY not in ask(workspace, server, tool, arguments), (tool, name)
    assert (notes / "closed" / "key.txt").read_text() == KEY
    assert (notes / "own.key").read_text() == KEY
    assert (folder / "beside.txt").read_text() == KEY
    if server == "look":
        listed = ask(workspace, server, "directory_tree", {"path": str(notes)})
        assert "milk.txt" in listed
        assert "own.key" not in listed
        assert "closed" not in listed
        assert "EROFS" in ask(workspace, server, "write_file", {"path": f"{notes}/milk.txt", "content": "gone"})


def test_agents_with_other_hosts_are_served_by_processes_of_their_own(workspace: Workspace, site: str) -> None:
    url: Arguments = {"url": f"{site}/1.html", "raw": True}
    assert "page number 1" in ask(workspace, "web", "fetch", url)
    assert "page number" not in ask(workspace, "web", "fetch", url, agent="guest")
    away: Arguments = {"url": site.replace("127.0.0.2", "127.0.0.3"), "raw": True}
    assert "page number" not in ask(workspace, "web", "fetch", away)


SCRIPT = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
    elif asked["method"] == "tools/list":
        said = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        path = asked["params"]["arguments"]["path"]
        try:
            text = open(path).read()
        except OSError as error:
            text = f"errno {error.errno}"
        said = {"content": [{"type": "text", "text": f"{os.getpid()} {text}"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace whose server reads whatever it is asked to."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "tool").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("some words")
    (tmp_path / "tool" / "server.py").write_text(SCRIPT)
    words = (sys.executable, str(tmp_path / "tool" / "server.py"))
    (tmp_path / "policy.toml").write_text(HEAD + catalog("s", words, notes="read"))
    with Workspace.open(tmp_path, keys=tmp_path / "keys", trust=True) as opened:
        asyncio.run(opened.servers.refresh("s"))
        opened.accept_tools("s", None, needs_capabilities=False)
        yield opened


def look(workspace: Workspace, name: str = "notes/a.txt") -> str:
    return ask(workspace, "s", "look", {"path": str(workspace.folder / name)})


@pytest.mark.parametrize("how", ["level", "place", "rule"])
def test_an_edit_that_narrows_ends_the_process_at_once_and_the_next_call_is_narrower(
    small: Workspace, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert "some words" in look(small)
    if how == "level":
        small.apply(sourceedit.set_default_level(small.policy, "notes", Permission.NONE))
    elif how == "place":
        small.apply(policyedit.set_places(small.policy, "s", {}))
    else:
        small.apply(sourceedit.add_rule(small.policy, "notes", PermissionRule("a.*", Permission.NONE), 0))
    assert "ended the server of catalog `s`: its confinement changed" in caplog.text
    assert small.servers.states["s"].status is ServerStatus.STOPPED
    said = look(small)
    assert "some words" not in said
    assert ("errno 13" if how == "level" else "errno 2") in said  # nobody enters a closed folder


def test_a_name_that_appears_where_it_is_closed_is_not_read(small: Workspace) -> None:
    assert "errno 2" in look(small, "notes/late.key")
    (small.folder / "notes" / "late.key").write_text(KEY)
    (small.folder / "notes" / "late.txt").write_text("for all")
    assert KEY not in look(small, "notes/late.key")
    assert "for all" in look(small, "notes/late.txt")


def test_a_server_sees_no_home_no_policy_and_no_state(small: Workspace) -> None:
    for path in (small.policy_path, small.state_folder / "audit.sqlite", Path.home() / ".profile", Path("/etc/shadow")):
        assert "errno" in ask(small, "s", "look", {"path": str(path)}), path
    environment = ask(small, "s", "look", {"path": "/proc/self/environ"})
    assert "GATEWRIGHT" not in environment
    assert str(Path.home()) not in environment


def test_closing_the_workspace_ends_every_process(small: Workspace) -> None:
    look(small)
    ids = {int(one.name) for one in Path("/proc").glob("[0-9]*") if str(small.folder / "tool") in _command_of(one)}
    assert ids
    small.close()

    def gone() -> bool:
        return not any(str(small.folder / "tool") in _command_of(Path("/proc", str(one))) for one in ids)

    pause_until(gone)


def _command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def test_where_nothing_can_be_confined_the_server_is_not_started_and_the_operator_reads_what_to_do(
    small: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.adapters.confine.why_no_room", lambda: "bubblewrap is missing: install it")
    asyncio.run(small.servers.stop("s"))
    call = small.servers.run("s", "look", {"path": "x"}, ToolExecutionContext("clerk", "session"))
    with pytest.raises(ToolFailure) as failure:
        asyncio.run(call)
    assert failure.value.code == "not-confined"
    assert "install it" in failure.value.detail
    assert "install it" not in str(failure.value)
    assert small.servers.states["s"].status is ServerStatus.FAILED
