"""Rules for the kernel to hold for shells and servers, as one value of the policy, the agent and what is on disk."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.adapters.mcp_client import ServerFailed
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy import agentedit, policyedit
from gatewright.policy.document import PlaceUse
from gatewright.policy.edit import inverse
from gatewright.policy.target import Confinement, Place, Tree, View, view_of
from gatewright.policy.verdict import Action, Permission, Verdict, covers, verdict_for
from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace import Workspace
from gatewright.workspace.commandfiles import Guarded, program_files, propose_places
from gatewright.workspace.trust import HOOK_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD = "gatewright = 1\n"
NOTES = """\
[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "read_write"
permission_rules = [{ pattern = "secrets/**", permission = "none" }]
[[sources]]
id = "diary"
type = "file"
base_path = "notes/diary"
default_permission = "read_only"
"""
SERVER = """\
[[catalogs]]
id = "files"
type = "mcp"
command = "cat"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "work"
    for name in ("notes/diary", "shared", "scratch", "vault", "elsewhere"):
        (top / name).mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return top


def opened(folder: Path, text: str, *, trust: bool = False) -> Workspace:
    (folder / "policy.toml").write_text(HEAD + text, "utf-8")
    return Workspace.open(folder, state=folder / "state", keys=folder / "keys", trust=trust)


def of(workspace: Workspace, agent_id: str = "a", catalog_id: str | None = "files") -> Confinement:
    found = workspace.confinement(agent_id, catalog_id)
    assert found is not None
    return found


def test_a_server_gets_the_places_of_its_catalog_and_the_levels_of_every_source(folder: Path) -> None:
    places = 'places = { notes = "write", "./elsewhere" = "read" }\n'
    with opened(folder, f'[agents.a]\nsources = ["notes"]\n{NOTES}{SERVER}{places}') as workspace:
        held = of(workspace)

    assert held.places == (
        Place(str(folder / "elsewhere"), PlaceUse.READ),
        Place(str(folder / "notes"), PlaceUse.WRITE),
    )
    assert [(tree.base, tree.default) for tree in held.trees] == [
        (str(folder / "notes"), Permission.READ_WRITE),
        (str(folder / "notes/diary"), Permission.READ_ONLY),
    ]
    assert {str(folder / "state"), str(folder / "keys")} <= set(held.closed)
    assert {str(folder / "policy.toml"), str(folder / "catalogs")} <= set(held.fixed)
    assert (held.folder, held.subject, held.agent_id, held.programs) == (str(folder), "files", "a", ())
    assert held.windows == (Place(str(folder / "notes"), PlaceUse.WRITE),)


def test_nothing_is_a_place_that_the_catalog_does_not_name_or_the_agent_may_not_use(folder: Path) -> None:
    agents = '[agents.a]\n[agents.b]\nsources = ["diary"]\n'
    with opened(folder, f'{agents}{NOTES}{SERVER}places = {{ notes = "write" }}\n') as workspace:
        assert [place.path for place in of(workspace).places] == [str(folder / "notes")]
        assert of(workspace, "b").places == ()
    with opened(folder, f"{agents}{NOTES}{SERVER}") as workspace:
        assert of(workspace).places == ()


def test_a_folder_outside_is_a_place_once_the_server_was_trusted_with_it(folder: Path) -> None:
    text = f'[agents.a]\n{SERVER}places = {{ "../outside" = "read" }}\n'
    outside = (Place(str(folder.parent / "outside"), PlaceUse.READ),)
    with opened(folder, text) as workspace:
        assert of(workspace).places == ()
        assert not workspace.trusts_server("files")
        workspace.trust_server("files")
        assert (of(workspace).places, workspace.trusts_server("files")) == (outside, True)
    with opened(folder, text) as workspace:
        assert of(workspace).places == outside
        (folder.parent / "third").mkdir()
        workspace.apply(policyedit.set_places(workspace.policy, "files", {"../third": PlaceUse.READ}))
        assert (of(workspace).places, workspace.trusts_server("files")) == ((), False)
        workspace.apply(policyedit.set_places(workspace.policy, "files", {}))
        assert workspace.trusts_server("files")


def test_a_place_that_became_a_link_out_of_the_workspace_is_none_any_more(folder: Path) -> None:
    with opened(folder, f'[agents.a]\n{SERVER}places = {{ "./elsewhere" = "write" }}\n') as workspace:
        assert [place.path for place in of(workspace).places] == [str(folder / "elsewhere")]
        (folder / "elsewhere").rmdir()
        (folder / "elsewhere").symlink_to(folder.parent / "outside")
        workspace.reload()
        assert of(workspace).places == ()


def test_a_server_that_is_trusted_is_not_when_it_says_that_it_is_not_confined(folder: Path) -> None:
    with opened(folder, f"[agents.a]\n{SERVER}places = {{}}\n", trust=True) as workspace:
        assert workspace.trusts_server("files")
        workspace.apply(policyedit.unconfine(workspace.policy, "files"))
        assert workspace.confinement("a", "files") is None
        assert not workspace.trusts_server("files")


def test_grants_give_a_shell_its_places_hosts_and_bounds(folder: Path) -> None:
    grants = """\
[agents.a]
capabilities = [
  { FsRead = { prefixes = ["notes", "scratch/x"] } }, { FsWrite = { prefixes = ["scratch"] } },
  { NetRead = { allowlist = ["*.example.com"] } }, { NetWrite = { allowlist = ["api.example.org:443"] } },
  { Exec = { cpu_limit = "2s", mem_limit = "1 MiB" } },
]
[agents.b]
capabilities = [{ NetRead = { allowlist = ["*", "x.com"] } }]
[workspace]
roots = { shared = "shared", tmp = "scratch", vault = "vault" }
shell = { backend = "host", allow = ["*"] }
web = { allow_private = true }
"""
    with opened(folder, grants + NOTES) as workspace:
        held, other = of(workspace, "a", None), of(workspace, "b", None)

    assert held.places == (
        Place(str(folder / "notes"), PlaceUse.READ),
        Place(str(folder / "scratch"), PlaceUse.WRITE),
        Place(str(folder / "shared"), PlaceUse.READ),
    )
    assert str(folder / "vault") in held.closed
    assert (held.hosts, held.allow_private) == (("*.example.com", "api.example.org:443"), True)
    assert (held.bounds.cpu_s, held.bounds.memory_bytes, held.folder) == (2.0, 1 << 20, str(folder / "shared"))
    assert (other.places, other.hosts) == ((Place(str(folder / "shared"), PlaceUse.READ),), ("*",))


def test_the_value_is_the_same_object_until_something_of_it_changes(folder: Path) -> None:
    text = f'[agents.a]\n[agents.b]\n{NOTES}{SERVER}places = {{ notes = "read" }}\n'
    with opened(folder, text) as workspace:
        server, shell = of(workspace), of(workspace, "a", None)
        assert of(workspace, "b") == server  # one process can serve both
        workspace.apply(agentedit.rename_agent(workspace.policy, "b", "c"))
        workspace.apply(policyedit.set_field(workspace.policy, "name", "another"))
        assert of(workspace) is server
        assert of(workspace, "a", None) is shell
        workspace.reload()
        assert of(workspace) is server
        workspace.apply(policyedit.set_places(workspace.policy, "files", {"notes": PlaceUse.WRITE}))
        assert of(workspace) != server
        assert of(workspace, "a", None) is shell


def test_what_is_no_process_is_not_confined_and_an_unknown_one_refused(folder: Path) -> None:
    text = '[agents.a]\n[[catalogs]]\nid = "hub"\ntype = "mcp"\nurl = "https://h.example"\n'
    with opened(folder, text + '[workspace]\nshell = { confine = "none" }\n') as workspace:
        assert workspace.confinement("a", "hub") is None
        assert workspace.confinement("a") is None
        for agent_id, catalog_id in (("x", None), ("a", "x")):
            with pytest.raises(WorkspaceError, match=r"no (agent|catalog) `x`"):
                workspace.confinement(agent_id, catalog_id)


def test_variables_are_those_that_the_catalog_names_and_that_are_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB_TOKEN", "secret-value")
    monkeypatch.delenv("LANG", raising=False)
    with opened(folder, f'[agents.a]\n{SERVER}env = ["HUB_TOKEN", "NOT_SET", "HOME"]\nplaces = {{}}\n') as workspace:
        held = of(workspace)

    assert dict(held.environment) == {"PATH": held.environment["PATH"], "HUB_TOKEN": "secret-value"}
    assert "secret-value" not in repr(held)


@pytest.mark.parametrize("level", list(Permission))
def test_a_process_never_may_more_than_the_level_lets_a_call_do_without_asking(level: Permission) -> None:
    view = view_of(level)
    assert (view is View.ABSENT) == (verdict_for(level, Action.READ) is not Verdict.ALLOW)
    if view is View.WRITE:
        assert all(verdict_for(level, action) is not Verdict.DENY for action in Action)
    assert view_of(level, PlaceUse.READ) is not View.WRITE
    is_judged = any(verdict_for(level, one) is not Verdict.DENY for one in Action if one is not Action.READ)
    assert view_of(level, PlaceUse.SNAPSHOT) is (View.WRITE if is_judged and view is not View.ABSENT else view)
    assert Tree("/x", level).closes == (view is View.ABSENT)


# what a command line means on disk


def environment(at: Path, python: str) -> Path:
    """A virtual environment as `venv` makes one, made with a Python in ``python``."""
    (at / "bin").mkdir(parents=True)
    (at / "pyvenv.cfg").write_text(f"home = {python}/bin\nversion = 3.12\n", "utf-8")
    (at / "bin/python").symlink_to(f"{python}/bin/python3")
    server = at / "bin/server"
    server.write_text(f"#!{at}/bin/python\n", "utf-8")
    server.chmod(0o755)
    return server


def installation(at: Path) -> Path:
    (at / "bin").mkdir(parents=True)
    (at / "lib/python3.12").mkdir(parents=True)
    (at / "bin/python3").touch(0o755)
    return at


def test_a_program_needs_its_environment_and_the_python_that_this_was_made_with(tmp_path: Path) -> None:
    python = installation(tmp_path / "python")
    server = environment(tmp_path / "venv", str(python))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/server").symlink_to(server)

    assert program_files("cat", (), tmp_path, Guarded()) == ()
    wanted = (str(python), str(tmp_path / "venv"))
    assert program_files(str(server), (), tmp_path, Guarded()) == wanted
    assert program_files("bin/server", (), tmp_path, Guarded()) == (str(tmp_path / "bin/server"), *wanted)
    assert program_files(str(tmp_path / "nothing"), (), tmp_path, Guarded()) == ()


def test_a_program_needs_the_folders_of_projects_that_its_environment_is_made_of(tmp_path: Path) -> None:
    python = installation(tmp_path / "python")
    server = environment(tmp_path / "venv", str(python))
    (site := tmp_path / "venv/lib/python3.12/site-packages").mkdir(parents=True)
    for name in ("project", "guarded", "guarded/part"):
        (tmp_path / name).mkdir()
    lines = (tmp_path / "project", tmp_path / "guarded/part", tmp_path / "nothing", "import os; os.remove('/x')", "..")
    (site / "_project.pth").write_text("\n".join(map(str, lines)), "utf-8")
    (site / "broken.pth").write_bytes(b"\xff\0\n/")

    guarded = Guarded((), (str(tmp_path / "guarded"),))
    wanted = (str(tmp_path / "project"), str(python), str(tmp_path / "venv"))
    assert program_files(str(server), (), tmp_path, guarded) == wanted


def test_a_server_in_our_own_environment_reads_the_gates_client_and_cannot_change_it(folder: Path) -> None:
    text = SERVER.replace('"cat"', f'"{sys.executable}"')
    with opened(folder, f"[agents.a]\n{text}") as workspace:
        held = of(workspace)

    for file in map(str, HOOK_FILES):
        assert file in held.fixed
        assert not any(covers(place, file) for place in held.closed)
        assert any(covers(place, file) for place in held.programs)


def test_a_program_of_node_needs_the_installation_that_it_lies_in(tmp_path: Path) -> None:
    modules = tmp_path / "node/lib/node_modules/server"
    modules.mkdir(parents=True)
    (tmp_path / "node/bin").mkdir()
    (tmp_path / "node/bin/node").touch(0o755)
    (modules / "index.js").write_text("#!/usr/bin/env node\n", "utf-8")
    (tmp_path / "node/bin/server").symlink_to(modules / "index.js")

    assert program_files(str(tmp_path / "node/bin/server"), (), tmp_path, Guarded()) == (str(tmp_path / "node"),)
    assert program_files(str(tmp_path / "node/bin/node"), (), tmp_path, Guarded()) == (str(tmp_path / "node"),)


def test_a_script_comes_with_its_folder_only_where_that_holds_nothing_that_counts(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    script = tmp_path / "server/main.sh"
    script.touch()
    args = ("-I", "x", "server/main.sh", "server")

    assert program_files("bash", args, tmp_path, Guarded()) == (str(tmp_path / "server"),)
    for guarded in (
        Guarded((str(tmp_path / "server"),)),
        Guarded((str(tmp_path / "server/state"),)),
        Guarded(trees=(str(tmp_path),)),
        Guarded(trees=(str(tmp_path / "server/notes"),)),
    ):
        assert program_files("bash", args, tmp_path, guarded) == (str(script),)
    assert program_files("bash", ("-c", "server/main.sh"), tmp_path, Guarded()) == ()
    assert program_files("cat", args, tmp_path, Guarded()) == ()


HOME_PROGRAMS = ("bin/x", ".local/bin/x", "x", "src/app/x")


@pytest.mark.parametrize("at", HOME_PROGRAMS)
def test_no_program_opens_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / at
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch(0o755)
    (program.parent.parent / "lib/python3.12").mkdir(parents=True, exist_ok=True)

    assert program_files(str(program), (), tmp_path, Guarded()) == (str(program),)


def test_the_python_of_these_tests_is_found_with_all_that_it_needs() -> None:
    found = program_files(sys.executable, (), Path("/"), Guarded())

    assert all(not os.path.realpath(Path.home()).startswith(f"{path}/") for path in found)
    needed = {sys.prefix, sys.base_prefix}
    assert all(any(Path(one).is_relative_to(path) for path in (*found, "/usr")) for one in needed)


def proposed(folder: Path, command: str, *args: str, sources: Mapping[str, str] | None = None) -> dict[str, str]:
    from gatewright.policy.document import Catalog, CatalogType

    catalog = Catalog("c", CatalogType.MCP, command=command, args=args)
    return {place: str(use) for place, use in propose_places(catalog, folder, sources or {}).items()}


def test_places_are_proposed_from_the_folders_and_files_of_a_command_line(folder: Path) -> None:
    (folder / "server.py").touch()
    (folder / "notes/a.db").touch()
    outside = str(folder.parent / "outside")

    assert proposed(folder, "mcp-server-filesystem", "./notes", outside) == {"./notes": "write", outside: "write"}
    assert proposed(folder, "mcp-server-fetch") == {}
    assert proposed(folder, "tool", "--db=notes/a.db", "--from", "shared") == {
        "./notes/a.db": "read",
        "./shared": "read",
    }
    assert proposed(folder, "python3", "server.py", "notes") == {"./notes": "read"}
    assert proposed(folder, "tool", "notes", "absent", "a\0b", "") == {"./notes": "read"}
    assert proposed(folder, "tool", "./notes", sources={"mine": str(folder / "notes")}) == {"mine": "read"}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["/", "/usr", "/etc", "/home", "/root", "/var", "/tmp", "~", ".."]), st.integers(0, 3))
def test_nothing_is_proposed_that_holds_a_home_or_the_system(folder: Path, word: str, up: int) -> None:
    home = os.path.realpath(Path.home())
    word = home if word == "~" else word
    path = os.path.normpath(os.path.join(word, *[".."] * up)) if word != ".." else "/"  # noqa: PTH118

    assert proposed(folder, "mcp-server-filesystem", path, f"--root={path}") == {}


# held until somebody accepted its places


def pinned(folder: Path, text: str) -> Workspace:
    """A workspace whose catalog `files` has one accepted tool."""
    (folder / "catalogs").mkdir(exist_ok=True)
    tool: dict[str, JsonValue] = {
        "name": "peek",
        "description": "Looks.",
        "inputSchema": {"type": "object", "properties": {}},
    }
    pin = accept(Pin(Listing.of([tool], name="files", version="1")), None)
    (folder / "catalogs/files.json").write_bytes(write_pin(pin))
    return opened(folder, text, trust=True)


AGENTS = """\
[agents.a]
tools = ["peek"]
approvals = { privileged = "allow", side_effecting = "allow" }
[agents.b]
approvals = { privileged = "allow", side_effecting = "allow" }
"""


@pytest.mark.parametrize(
    ("keys", "held"),
    [
        ("", True),
        ('confine = "policy"\n', True),
        ('confine = "none"\n', False),
        ("places = {}\n", False),
        ('places = { "./elsewhere" = "read" }\n', False),
        ('confine = "policy"\nplaces = {}\n', False),
    ],
)
def test_the_tools_of_a_server_are_held_from_everybody_until_its_places_were_accepted(
    folder: Path, keys: str, *, held: bool
) -> None:
    with pinned(folder, f"{AGENTS}{SERVER}{keys}") as workspace:
        for agent_id in ("a", "b"):
            view, decision = workspace.view(agent_id), workspace.decide(agent_id, "peek", {})
            listed = [tool["name"] for tool in view.tools("anthropic")]
            assert ("peek" in listed) is not held
            assert (decision.verdict is Verdict.ALLOW) is not held, decision.reason
            if held:
                assert (decision.stage, decision.code) == ("lookup", "places-not-accepted")
                assert "files" not in (decision.model_message or "")
        assert workspace.selfcheck().differences == ()
        codes = [problem.code for problem in workspace.problems]
        assert ("places-not-accepted" in codes) is held


def test_the_trace_of_a_call_names_the_confinement_of_what_it_starts(folder: Path) -> None:
    grants = 'capabilities = [{ NetRead = { allowlist = ["*.example.com"] } }]\n'
    shell = '[workspace]\nroots = { shared = "shared" }\nshell = { backend = "host", allow = ["ls"] }\n'
    agents = AGENTS.replace("[agents.b]", f"{grants}[agents.b]").replace('["peek"]', '["peek", "file"]')
    text = f'{agents}{NOTES}{SERVER}places = {{ notes = "write", "./elsewhere" = "read" }}\n{shell}'

    def told(tool: str, agent_id: str = "a") -> str:
        first = next(row for row in workspace.decide(agent_id, tool, {}).trace if row.stage == "lookup")
        return first.reason.partition("; ")[2]

    with pinned(folder, text) as workspace:
        assert told("peek") == "confined to notes (write), ./elsewhere (read); hosts: *.example.com"
        assert told("peek", "b") == "confined to notes (write), ./elsewhere (read); hosts: none"
        assert told("file") == ""
        workspace.apply(policyedit.unconfine(workspace.policy, "files"))
        assert told("peek") == "not confined"


def test_a_held_server_is_not_started(folder: Path) -> None:
    with pinned(folder, f"{AGENTS}{SERVER}") as workspace, pytest.raises(ServerFailed, match="nobody accepted yet"):
        asyncio.run(workspace.servers.start("files"))


def test_fix_gives_a_held_server_what_its_command_names_and_its_tools_are_seen(folder: Path) -> None:
    with pinned(folder, f'{AGENTS}{NOTES}{SERVER}args = ["./notes"]\n') as workspace:
        (problem,) = [one for one in workspace.current_problems() if one.code == "places-not-accepted"]
        assert problem.place is not None
        assert workspace.text().splitlines()[problem.place.line - 1 :][0] in {"[[catalogs]]", 'id = "files"'}
        first, second = workspace.mends(problem)
        assert workspace.mend_all([problem]) == (first,)

        workspace.apply(first)
        assert [place.path for place in of(workspace).places] == [str(folder / "notes")]
        assert workspace.decide("a", "peek", {}).verdict is Verdict.ALLOW
        assert "places-not-accepted" not in [one.code for one in workspace.current_problems()]
        assert 'places = { notes = "read" }' in workspace.text()
        workspace.apply(inverse(first))
        assert workspace.decide("a", "peek", {}).code == "places-not-accepted"
        workspace.apply(second)
        assert (of(workspace).places, workspace.decide("a", "peek", {}).verdict) == ((), Verdict.ALLOW)


def test_a_place_whose_folder_is_missing_is_told_with_its_place(folder: Path) -> None:
    with pinned(folder, f'{AGENTS}{SERVER}places = {{ "./gone" = "read" }}\n') as workspace:
        (problem,) = [one for one in workspace.problems if one.code == "missing-path"]

    assert (problem.code, problem.is_error) == ("missing-path", False)
    assert problem.place is not None
    assert problem.place.line == len((HEAD + AGENTS + SERVER).splitlines()) + 1
