"""`gatewright confinement`: what holds for each process that works for an agent."""

from pathlib import Path

from tests.engine.cli.conftest import Runner

NOTES = """\
[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "read_write"
permission_rules = [{ pattern = "secrets/**", permission = "none" }]
"""
SERVER = """\
[[catalogs]]
id = "files"
type = "mcp"
command = "cat"
"""


def workspace(folder: Path, text: str) -> Path:
    (folder / "policy.toml").write_text(f"gatewright = 1\n{text}", "utf-8")
    for name in ("notes", "shared"):
        (folder / name).mkdir(exist_ok=True)
    return folder


def test_the_command_tells_what_holds_for_each_process_of_an_agent(tmp_path: Path, run: Runner) -> None:
    text = f'[agents.a]\n{NOTES}{SERVER}places = {{ notes = "write" }}\n[workspace]\nroots = {{ shared = "shared" }}\n'
    folder = workspace(tmp_path, text + 'shell = { backend = "host", confine = "none" }\n')
    told = run("confinement", str(folder), "--agent", "a")
    plain = run("confinement", str(folder), "--agent", "a", "--json").json

    assert told.status == 0
    assert "shell commands: not confined" in told.out
    assert "secrets/**  is not there" in told.out
    assert "hidden once it appears" in told.out
    shell, server = plain["processes"]
    assert shell == {"process": "shell commands", "confined": False}
    assert server["places"][0]["levels"][:2] == [
        {"base": str(folder / "notes"), "pattern": "secrets/**", "view": "absent"},
        {"base": str(folder / "notes"), "pattern": "every other path", "view": "write"},
    ]
    assert run("confinement", str(folder), "--agent", "a", "--catalog", "fiels").status == 2
    assert run("confinement", str(folder), "--agent", "b").status == 2


def test_the_command_says_that_a_server_waits_for_its_places(tmp_path: Path, run: Runner) -> None:
    folder = workspace(tmp_path, f"[agents.a]\n{SERVER}")
    assert (
        "server files: held, since its places were not accepted yet"
        in run("confinement", str(folder), "--agent", "a").out
    )
