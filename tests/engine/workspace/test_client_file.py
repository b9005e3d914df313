"""Configuration files of MCP clients on disk: found, read, and written with the gateway in them."""

import json
import os
import stat
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.workspace.client_file import (
    ClientStatus,
    client_file,
    client_files,
    client_status,
    gateway_command,
    gateway_edit,
    read_client_file,
    read_servers_of,
    read_typed_servers,
    write_client_file,
)

TEXT = '{\n  "mcpServers": { "git": { "command": "git-server", "env": { "KEY": "k" } }, "b": { "command": "b" } }\n}\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "claude_desktop_config.json"
    path.write_text(TEXT)
    path.chmod(0o640)
    return path


def test_every_client_has_its_place_and_those_of_projects_theirs(tmp_path: Path) -> None:
    files = client_files(tmp_path)
    assert {file.path.relative_to(tmp_path).as_posix() for file in files if file.is_project} == {
        ".mcp.json",
        ".vscode/mcp.json",
        ".cursor/mcp.json",
        ".zed/settings.json",
        ".gemini/settings.json",
        ".amp/settings.json",
        "opencode.json",
        ".codex/config.toml",
    }
    assert {file.client.client_id for file in files if not file.is_project} == {
        "claude-desktop",
        "claude-code",
        "vscode",
        "cursor",
        "windsurf",
        "zed",
        "gemini-cli",
        "amp",
        "opencode",
        "codex",
    }
    assert client_file("zed").path == next(
        file.path for file in files if file.client.client_id == "zed" and not file.is_project
    )


def test_servers_of_a_project_run_in_its_folder(tmp_path: Path) -> None:
    path = tmp_path / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"servers": {"a": {"command": "${workspaceFolder}/a"}}}')
    [server] = read_client_file(path)
    assert server.catalog is not None
    assert (server.catalog.command, server.catalog.cwd) == (f"{tmp_path}/a", str(tmp_path))


def test_file_is_written_whole_with_a_backup_and_its_permissions_and_links_stay(config: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(config.name)
    catalogs = [server.catalog for server in read_client_file(link) if server.catalog]
    change = gateway_edit(client_file("claude-desktop", link), catalogs, tmp_path / "policy.toml", "desk")
    assert config.read_text() == TEXT

    backup = write_client_file(change)
    assert backup == tmp_path / "claude_desktop_config.json.before-gatewright"
    assert backup is not None
    assert backup.read_text() == TEXT
    assert stat.S_IMODE(backup.stat().st_mode) == stat.S_IMODE(config.stat().st_mode) == 0o640
    assert link.is_symlink()
    [entry] = json.loads(config.read_text())["mcpServers"].values()
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-4:] == ["serve", str(tmp_path / "policy.toml"), "--agent", "desk"]
    assert entry["env"] == {"KEY": "k"}
    assert [path for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []

    config.write_text(TEXT)
    again = write_client_file(gateway_edit(client_file("claude-desktop", config), [], tmp_path / "policy.toml", "desk"))
    assert again == tmp_path / "claude_desktop_config.json.before-gatewright-2"


def test_how_long_a_question_waits_is_written_and_stays_until_it_is_told_otherwise(tmp_path: Path) -> None:
    file, policy = client_file("cursor", tmp_path / "mcp.json"), tmp_path / "policy.toml"

    def args(wait: str = "") -> list[str]:
        write_client_file(gateway_edit(file, [], policy, "desk", wait))
        found: list[str] = json.loads(file.path.read_text())["mcpServers"]["gatewright"]["args"]
        return found[-4:]

    assert args("10m") == ["--agent", "desk", "--wait", "10m"]
    assert args() == ["--agent", "desk", "--wait", "10m"]
    assert args("2h") == ["--agent", "desk", "--wait", "2h"]
    with pytest.raises(WorkspaceError, match="the wait for an answer, `never`"):
        args("never")


def test_file_that_changed_meanwhile_is_left_alone(config: Path, tmp_path: Path) -> None:
    change = gateway_edit(client_file("cursor", config), [], tmp_path / "policy.toml", "desk")
    config.write_text("{}")
    with pytest.raises(WorkspaceError, match="another program changed it"):
        write_client_file(change)
    config.unlink()
    with pytest.raises(WorkspaceError, match="another program changed it"):
        write_client_file(change)
    assert list(tmp_path.iterdir()) == []


def test_file_that_is_not_there_yet_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mcp.json"
    change = gateway_edit(client_file("vscode", path), [], tmp_path / "policy.toml", "desk")
    assert not path.parent.exists()
    assert write_client_file(change) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(json.loads(path.read_text())["servers"]) == ["gatewright"]


@pytest.mark.parametrize(
    ("typed", "catalog_id", "command", "args", "env"),
    [
        ("notes-server --root 'my notes'", "notes-server", "notes-server", ("--root", "my notes"), ()),
        ("npx -y @scope/server-files@1.2 /srv", "files", "npx", ("-y", "@scope/server-files@1.2", "/srv"), ()),
        ("KEY=secret uvx mcp-server-git", "git", "uvx", ("mcp-server-git",), ("KEY",)),
        ("python -m notes_server", "notes_server", "python", ("-m", "notes_server"), ()),
        ('{"a": {"command": "x"}}', "a", "x", (), ()),
    ],
)
def test_command_that_is_typed_becomes_a_server(
    typed: str, catalog_id: str, command: str, args: tuple[str, ...], env: tuple[str, ...]
) -> None:
    [server] = read_typed_servers(typed)
    assert server.catalog is not None
    found = server.catalog
    assert (found.catalog_id, found.command, found.args, found.env) == (catalog_id, command, args, env)


def test_address_that_is_typed_becomes_a_server() -> None:
    [server] = read_typed_servers(" https://mcp.tickets.example/mcp\n")
    assert server.catalog is not None
    assert (server.catalog.catalog_id, server.catalog.url) == ("tickets", "https://mcp.tickets.example/mcp")
    for typed, why in (("", "type a command"), ("a 'b", "no closing quotation"), ("{", "it is not JSON")):
        with pytest.raises(WorkspaceError, match=why):
            read_typed_servers(typed)


def test_bad_files_are_refused_by_name_and_place(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    for content, why in (
        (b'{"mcpServers": {"a": }}', f"`{path}`: it is not JSON: expected value at line 1"),
        (b"\n\xff", "is not UTF-8 text \\(line 2\\)"),
        (b"{}", "names no MCP servers"),
    ):
        path.write_bytes(content)
        with pytest.raises(WorkspaceError, match=why):
            read_client_file(path)
    with pytest.raises(WorkspaceError, match="cannot be read: no such file"):
        read_client_file(tmp_path / "nowhere.json")
    with pytest.raises(WorkspaceError, match="no ordinary file"):
        read_client_file(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WorkspaceError, match="no ordinary file"):
        read_client_file(tmp_path / "pipe")
    with pytest.raises(WorkspaceError, match=r"^it names no MCP servers"):
        read_servers_of('{"a": 1}')


@pytest.mark.parametrize(
    ("platform", "started", "console"),
    [("win32", "gatewright-window.exe", "gatewright.exe"), ("linux", "python3.11", "gatewright")],
)
def test_the_gateway_of_a_client_is_the_console_program_beside_the_one_that_runs(
    platform: str, started: str, console: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / console).write_text("")
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("sys.executable", str(tmp_path / started))

    assert gateway_command() == (str(tmp_path / console),)


@pytest.mark.parametrize(("client_id", "text"), [
    ("claude-desktop", TEXT),
    ("opencode", '{"mcp": {"git": {"type": "local", "command": ["git-server"]}, "b": {"command": ["b"]}}}'),
    ("codex", '[mcp_servers.git]\ncommand = "git-server"\n\n[mcp_servers.b]\ncommand = "b"\n'),
])  # fmt: skip
def test_file_of_a_client_tells_what_it_reaches_and_whether_a_gate_is_there(
    tmp_path: Path, client_id: str, text: str
) -> None:
    path, policy = tmp_path / "client", tmp_path / "policy.toml"
    path.write_text(text)
    file = client_file(client_id, path)
    before = client_status(file)
    assert (before.servers, before.is_gated, before.fault) == (("git", "b"), False, "")

    git = [server.catalog for server in read_client_file(path) if server.catalog and server.server_id == "git"]
    write_client_file(gateway_edit(file, git, policy, "desk"))
    after = client_status(file)
    assert (after.servers, after.is_gated) == (("b",), True)
    assert (after.policy, after.agent_id) == (policy, "desk")


def test_file_of_a_client_that_cannot_be_read_says_why(config: Path) -> None:
    file = client_file("claude-desktop", config)
    config.write_text("{ no json")
    assert client_status(file).fault
    assert client_status(file).servers == ()
    config.write_text("")
    assert client_status(file) == ClientStatus(file)
    config.unlink()
    assert "cannot be read" in client_status(file).fault
