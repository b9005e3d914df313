"""`gatewright confinement`: what holds for each process that works for an agent."""

from pathlib import Path

import pytest

from gatewright.workspace import Workspace
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


def test_the_command_prints_profiles_for_macos_and_says_that_nobody_tried_them(tmp_path: Path, run: Runner) -> None:
    folder = workspace(tmp_path, f'[agents.a]\n{NOTES}{SERVER}places = {{ notes = "write" }}\n')
    told = run("confinement", str(folder), "--agent", "a", "--seatbelt")

    assert told.status == 0
    assert "; server files\n; Gatewright: what a process may reach. Untested" in told.out
    assert f'(allow file-write* (subpath "{folder / "notes"}"))' in told.out
    spelled = str(folder / "notes").replace(".", r"\\.")
    assert f'(regex "^{spelled}/secrets/.*(/.*)?$")' in told.out


def test_the_command_says_that_a_server_waits_for_its_places(tmp_path: Path, run: Runner) -> None:
    folder = workspace(tmp_path, f"[agents.a]\n{SERVER}")
    assert (
        "server files: held, since its places were not accepted yet"
        in run("confinement", str(folder), "--agent", "a").out
    )


@pytest.mark.parametrize("written", ["../outside", "../outside/file", "ABSOLUTE", "./link", "../gone"])
def test_the_command_names_places_outside_that_nobody_trusted(tmp_path: Path, run: Runner, written: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")
    written = written.replace("ABSOLUTE", str(tmp_path / "outside"))
    folder = workspace(
        tmp_path / "work", f'[agents.a]\n{SERVER}places = {{ "{written}" = "write", "./notes" = "read" }}\n'
    )
    told = run("confinement", folder, "--agent", "a").out
    assert "server files: held, since a place outside the workspace is not trusted" in told
    assert f"untrusted  {written}  outside the workspace: `gatewright check POLICY --trust` trusts it" in told
    (row,) = run("confinement", folder, "--agent", "a", "--json").json["processes"]
    assert row["untrusted"] == [written]

    run("check", folder, "--trust")
    assert "untrusted" not in run("confinement", folder, "--agent", "a").out
    (row,) = run("confinement", folder, "--agent", "a", "--json").json["processes"]
    assert (row["held"], row["untrusted"]) == (None, [])


def places_of(folder: Path) -> dict[str, str] | None:
    with Workspace.open(folder) as opened:
        found = opened.policy.catalogs[0].places
    return None if found is None else {place: str(use) for place, use in found.items()}


ARGUED = f'[agents.a]\n{NOTES}{SERVER}args = ["./notes", "./shared"]\n'


def test_places_are_proposed_shown_and_written_by_whoever_accepts_them(tmp_path: Path, run: Runner) -> None:
    folder = workspace(tmp_path, ARGUED)
    shown = run("catalog", "places", folder, "files")
    assert (shown.status, shown.out) == (
        0,
        "its command names `notes` to read, `./shared` to read: --accept gives it that\n",
    )
    assert places_of(folder) is None

    accepted = run("catalog", "places", folder, "files", "--accept")
    assert accepted.out == "the process of `files` gets `notes` to read, `./shared` to read\n"
    assert places_of(folder) == {"notes": "read", "./shared": "read"}

    own = run("catalog", "places", folder, "files", "--accept", "--place", "notes=snapshot", "--json")
    assert own.json["places"] == {"notes": "snapshot"} == places_of(folder)


def test_places_that_cannot_be_given_are_refused_and_nothing_is_written(tmp_path: Path, run: Runner) -> None:
    folder = workspace(tmp_path, ARGUED + '[[catalogs]]\nid = "hub"\ntype = "mcp"\nurl = "https://h.example"\n')
    before = (folder / "policy.toml").read_bytes()
    for words in (
        ("files", "--place", "notes=read"),
        ("files", "--accept", "--place", "notes"),
        ("files", "--accept", "--place", "notes=delete"),
        ("files", "--accept", "--place", "notes=read", "--place", "notes=write"),
        ("files", "--accept", "--place", "nobody=read"),
        ("files", "--accept", "--place", "~/notes=read"),
        ("fiels", "--accept"),
        ("hub", "--accept"),
    ):
        assert run("catalog", "places", folder, *words).status in {1, 2}, words
        assert (folder / "policy.toml").read_bytes() == before


def test_a_server_that_was_trusted_stays_so_with_the_folders_outside_that_a_person_accepts(
    tmp_path: Path, run: Runner
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    folder = workspace(tmp_path / "work", ARGUED)
    place = ("catalog", "places", folder, "files", "--accept", "--place", "../outside=read", "--json")
    assert run(*place).json["trusted"] is False
    assert run("check", folder, "--trust").status == 0
    (tmp_path / "other").mkdir()
    assert run(*place[:-2], "../other=write", "--json").json["trusted"] is True


def test_an_imported_server_gets_what_its_command_names_or_what_is_said(tmp_path: Path, run: Runner) -> None:
    folder = workspace(tmp_path, f"[agents.a]\n{NOTES}")
    added = run("catalog", "import", folder, "--id", "git", "--", "mcp-server-git", "--repository", "./shared")
    assert "gatewright: the process of `git` gets `./shared` to change" in added.err
    assert places_of(folder) == {"./shared": "write"}

    again = run("catalog", "import", folder, "--id", "git", "--place", "notes=read")
    assert "the process of `git` gets `notes` to read" in again.err
    assert places_of(folder) == {"notes": "read"}
    assert run("catalog", "import", folder, "--from", folder / "x.json", "--place", "notes=read").status == 2


TOOLS = """\
[[catalogs]]
id = "run"
type = "subprocess"
manifest = "tools.json"
command = "cat"
places = {{ notes = "snapshot" }}

[[catalogs]]
id = "mod"
type = "wasm"
manifest = "tools.json"
module = "tool.wasm"
prefix = "mod"
{places}
"""


def with_tools(folder: Path, places: str, notes: str = NOTES) -> Path:
    made = workspace(folder, f"[agents.a]\n{notes}{TOOLS.format(places=places)}")
    (folder / "tools.json").write_text(
        '[{"name": "t", "description": "T.", "inputSchema": {"type": "object"}}]', "utf-8"
    )
    (folder / "tool.wasm").write_bytes(b"\0asm\1\0\0\0")
    return made


def test_the_command_tells_of_the_tools_of_a_command_and_of_a_module(tmp_path: Path, run: Runner) -> None:
    folder = with_tools(tmp_path, 'places = { "./shared" = "write" }')
    told = run("confinement", str(folder), "--agent", "a").out
    assert "command of run:" in told
    assert f"{folder / 'notes'}  to change in a copy" in told
    assert "module of mod:\n" in told
    assert f"{folder / 'shared'}  to change\n" in told
    assert "  programs   none\n" in told
    assert told.count("of each call, what the definition of its tool and the grants of the agent say") == 2
    plain = run("confinement", str(folder), "--agent", "a", "--catalog", "mod", "--json").json
    (module,) = plain["processes"]
    assert (module["hosts"], module["variables"], module["system_programs"]) == ([], [], False)
    assert "a module is no process" in run("confinement", str(folder), "--agent", "a", "--seatbelt").out


def test_the_command_says_why_a_module_cannot_be_given_its_places(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "notes" / "secrets").mkdir(parents=True)
    folder = with_tools(tmp_path, 'places = { notes = "read" }')
    assert (
        "module of mod: held, since a module cannot be given its place"
        in run("confinement", str(folder), "--agent", "a").out
    )


def test_places_of_a_module_are_shown_and_changed(tmp_path: Path, run: Runner) -> None:
    folder = with_tools(tmp_path, "")
    assert "the module of `mod` gets no place" in run("catalog", "places", str(folder), "mod").out
    accepted = run(
        "catalog", "places", str(folder), "mod", "--accept", "--place", "notes=read", "--place", "./shared=write"
    )
    assert "the module of `mod` gets `notes` to read, `./shared` to change" in accepted.out
    with Workspace.open(folder) as opened:
        catalog = opened.policy.catalog("mod")
        assert catalog is not None
        assert catalog.places == {"notes": "read", "./shared": "write"}
    refused = run("catalog", "places", str(folder), "mod", "--accept", "--place", "notes=snapshot")
    assert refused.status == 1
    assert "not get a copy" in refused.err
