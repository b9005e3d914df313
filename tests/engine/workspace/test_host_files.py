"""The gate in the files of coding agents: put there, seen, and taken out again to the byte."""

import json
import os
import stat
import tomllib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.adapters.hosts import CLIENT_FILE, HOST_IDS, Around, HostScope, load_host
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue, read_json
from gatewright.policy.right import Effect
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from gatewright.workspace.host_files import (
    HostFile,
    hook_command,
    host_file,
    install_edit,
    records,
    uninstall_edit,
    work_folder,
    write_host_file,
)
from gatewright.workspace.host_status import (
    HostLevel,
    HostStatus,
    find_hosts,
    host_doctor,
    host_effects,
    host_files_there,
    host_status,
)
from gatewright.workspace.trust import host_places
from tests.engine.adapters.test_client_config import COMMENTS, VALUES, written

JSON_HOSTS = ("claude-code", "gemini-cli", "copilot", "cursor", "vscode")
PLACES = [
    (host_id, scope)
    for host_id in HOST_IDS
    for scope in HostScope
    if load_host(host_id).file(scope, Around(Path("/h"), project=Path("/p"))) is not None
]


class Machine:
    """A home folder, a project, a root for managed files, and the keys of one user."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project, self.keys, self.root = (folder / name for name in ("home", "shop", "keys", "root"))
        for place in (self.home, self.project, self.root):
            place.mkdir()
        self.policy = folder / "policy.toml"
        self.policy.write_text("gatewright = 1\n")
        self.where = Around(self.home, {"PATH": str(folder)}, self.project, "linux", self.root)

    def file(self, host_id: str, scope: HostScope = HostScope.PROJECT) -> HostFile:
        return host_file(host_id, scope, self.where)

    def install(self, file: HostFile, agent: str = "ada") -> bool:
        edit = install_edit(file, self.policy, agent, keys=self.keys)
        write_host_file(edit, keys=self.keys)
        return edit.changes

    def uninstall(self, file: HostFile) -> bool:
        edit = uninstall_edit(file, keys=self.keys)
        write_host_file(edit, keys=self.keys)
        return edit.changes

    def status(self, host_id: str) -> HostStatus:
        return host_status(host_id, self.where, keys=self.keys)

    def files(self) -> dict[str, bytes | None]:
        """Everything in the places of hosts, folders included."""
        return {
            str(path): path.read_bytes() if path.is_file() else None
            for place in (self.home, self.project, self.root)
            for path in place.rglob("*")
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(("host_id", "scope"), PLACES)
def test_a_file_that_we_made_is_gone_again_with_its_folders(machine: Machine, host_id: str, scope: HostScope) -> None:
    file, before = machine.file(host_id, scope), machine.files()
    assert machine.install(file)
    made = machine.files()
    assert CLIENT_FILE in file.path.read_text()
    assert not machine.install(file)
    assert machine.files() == made
    assert machine.uninstall(file)
    assert machine.files() == before
    assert not records(machine.keys)
    assert not machine.uninstall(file)


@pytest.mark.parametrize("host_id", JSON_HOSTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_a_file_of_json_keeps_everything_and_returns_to_the_byte(
    machine: Machine, host_id: str, data: st.DataObject
) -> None:
    """Whatever its comments, order and line ends, and whatever hooks others have in it."""
    hook = hook_command(host_id, machine.policy, "ada", machine.keys)
    ours = cast("dict[str, dict[str, JsonValue]]", read_json(load_host(host_id).entry.put("", hook)))
    events = sorted(ours["hooks"])
    others = st.lists(st.fixed_dictionaries({"command": st.text("ab", max_size=3)}), max_size=2)
    hooks = data.draw(st.dictionaries(st.sampled_from([*events, "Other"]), others, max_size=3))
    value: dict[str, JsonValue] = data.draw(st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=3))
    if data.draw(st.booleans()):
        value["hooks"] = cast("JsonValue", hooks)
    text = data.draw(st.sampled_from(["", "\ufeff"])) + written(value, data) + data.draw(st.sampled_from(["", "\n"]))
    file = machine.file(host_id)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_bytes(text.encode())
    assert machine.install(file)
    now = file.path.read_text()
    found = cast("dict[str, Any]", read_json(now))
    assert {key: one for key, one in found.items() if key not in {"hooks", "version"}} == {
        key: one for key, one in value.items() if key != "hooks"
    }
    for event, elements in hooks.items() if "hooks" in value else ():
        assert found["hooks"][event][: len(elements)] == elements
    for mark in COMMENTS:
        assert now.count(mark.strip()) == text.count(mark.strip())
    assert not machine.install(file)
    assert machine.install(file, "bob")
    assert now.count(CLIENT_FILE) == file.path.read_text().count(CLIENT_FILE)
    if data.draw(st.booleans()):
        assert machine.uninstall(file)
        assert file.path.read_bytes() == text.encode()
        return
    edited = file.path.read_text().rstrip() + " // of somebody else\n"
    file.path.write_text(edited)
    assert machine.uninstall(file)
    left = file.path.read_text()
    assert "// of somebody else" in left
    rest = cast("dict[str, JsonValue]", read_json(left))
    assert {key: one for key, one in rest.items() if key != "version" or "version" in value} == value


TOMLS = (
    'model = "o" # mine\n',
    'model = "o"\n\n[tui]\n# last words',
    '[[hooks.PreToolUse]]\nmatcher = "x"\n\n[[hooks.PreToolUse.hooks]]\ncommand = "true"\n\n[a]\nb = 1\n',
    'a = 1\r\n\r\n[b]\r\nc = """\r\n[[hooks.PreToolUse]]\r\n"""\r\n',
    '[hooks.state."file:x"]\ntrusted_hash = "sha256:1"\n',
    "\ufeffa = 1\n",
    "",
    "# only words\n",
)


@pytest.mark.parametrize("text", TOMLS)
@pytest.mark.parametrize("more", ["", "\n[later]\nx = 1\n", '\n[hooks.state."y"]\ntrusted_hash = "s"\n', "# words\n"])
def test_a_file_of_toml_keeps_everything_and_returns_to_the_byte(machine: Machine, text: str, more: str) -> None:
    """Also after somebody has added to it: then only our tables go."""
    file = machine.file("codex")
    file.path.parent.mkdir()
    file.path.write_bytes(text.encode())
    assert machine.install(file)
    now = file.path.read_bytes().decode()
    assert now.startswith(text)
    assert not machine.install(file)
    assert machine.install(file, "bob")
    file.path.write_bytes(file.path.read_bytes() + more.encode())
    assert machine.uninstall(file)
    ended = text + ("\n" if more and text and not text.endswith("\n") else "")
    assert file.path.read_bytes().decode() == ended + more


@pytest.mark.parametrize(
    "text",
    [
        "hooks = 1\n",
        "hooks = { PreToolUse = [] }\n",
        "[hooks]\nPreToolUse = [{ matcher = 'x', hooks = [] }]\n",
        "a = \n",
    ],
)
def test_toml_that_cannot_take_our_tables_is_left_alone(machine: Machine, text: str) -> None:
    file = machine.file("codex")
    file.path.parent.mkdir()
    file.path.write_text(text)
    with pytest.raises(WorkspaceError, match=r"config\.toml"):
        install_edit(file, machine.policy, "ada", keys=machine.keys)
    assert file.path.read_text() == text


def broken(path: Path) -> None:
    path.write_text('{"a": ')


def of_bytes(path: Path) -> None:
    path.write_bytes(b'{"a": "\xff"}')


def a_list(path: Path) -> None:
    path.write_text("[]")


def hooks_are_words(path: Path) -> None:
    path.write_text('{"hooks": "none"}')


def read_only(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0o400)


def a_link(path: Path) -> None:
    (path.parent / "real.json").write_text("{}")
    path.symlink_to("real.json")


def a_link_to_nowhere(path: Path) -> None:
    path.symlink_to("gone.json")


def a_hard_link(path: Path) -> None:
    (path.parent / "real.json").write_text("{}")
    os.link(path.parent / "real.json", path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def somebody_elses(path: Path) -> None:
    path.write_text("{}")
    if os.geteuid() != 0:
        pytest.skip("needs to give a file away")
    os.chown(path, 12345, -1)


FAULTS: dict[Callable[[Path], None], str] = {
    broken: "is not JSON",
    of_bytes: "UTF-8",
    a_list: "not a JSON object",
    hooks_are_words: "not an object",
    read_only: "read-only",
    a_link: "is a link",
    a_link_to_nowhere: "is a link",
    a_hard_link: "hard link",
    a_folder: "no ordinary file",
    a_pipe: "no ordinary file",
    somebody_elses: "belongs to somebody else",
}


@pytest.mark.parametrize("host_id", JSON_HOSTS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_file_that_cannot_be_edited_is_one_sentence_with_its_place(
    machine: Machine, host_id: str, fault: Callable[[Path], None]
) -> None:
    file = machine.file(host_id)
    file.path.parent.mkdir(parents=True)
    fault(file.path)
    before = {path.name: stat.S_IFMT(path.lstat().st_mode) for path in file.path.parent.iterdir()}
    with pytest.raises(WorkspaceError, match=FAULTS[fault]) as caught:
        install_edit(file, machine.policy, "ada", keys=machine.keys)
    assert str(file.path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {path.name: stat.S_IFMT(path.lstat().st_mode) for path in file.path.parent.iterdir()} == before


def test_a_folder_of_a_project_that_leads_elsewhere_is_left_alone(machine: Machine) -> None:
    (machine.home / ".claude").mkdir()
    (machine.project / ".claude").symlink_to(machine.home / ".claude")
    with pytest.raises(WorkspaceError, match="is a link"):
        install_edit(machine.file("claude-code"), machine.policy, "ada", keys=machine.keys)


def test_a_file_that_changes_between_look_and_write_is_left_alone(machine: Machine) -> None:
    file = machine.file("claude-code")
    edit = install_edit(file, machine.policy, "ada", keys=machine.keys)
    file.path.parent.mkdir()
    file.path.write_text("{}")
    with pytest.raises(WorkspaceError, match="another program changed it"):
        write_host_file(edit, keys=machine.keys)
    assert file.path.read_text() == "{}"
    assert not records(machine.keys)


def test_the_difference_shows_no_secret(machine: Machine) -> None:
    file = machine.file("claude-code")
    file.path.parent.mkdir()
    token = "ghp_" + "a1B2" * 9
    file.path.write_text(json.dumps({"env": {"TOKEN": token}}, indent=2))
    edit = install_edit(file, machine.policy, "ada", keys=machine.keys)
    assert "+" in edit.difference
    assert token not in edit.difference


def test_status_of_a_machine_without_agents_finds_none(machine: Machine) -> None:
    found = find_hosts(machine.where, keys=machine.keys)
    assert [one.host_id for one in found] == list(HOST_IDS)
    assert not any(one.is_found or one.file for one in found)
    assert {one.level for one in found} == {HostLevel.OK}


def test_an_agent_is_found_by_its_program_or_its_settings_and_without_a_gate_it_is_amber(machine: Machine) -> None:
    (machine.home / ".gemini").mkdir()
    program = machine.policy.parent / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = {one.host_id: one for one in find_hosts(machine.where, keys=machine.keys)}
    assert found["codex"].program == program
    assert [one.host_id for one in found.values() if one.is_found] == ["codex", "gemini-cli"]
    assert {found[one].level for one in ("codex", "gemini-cli")} == {HostLevel.AMBER}


def test_a_gate_of_one_project_is_told_from_one_that_holds_everywhere(machine: Machine) -> None:
    assert not machine.status("claude-code").is_everywhere
    machine.install(machine.file("claude-code", HostScope.PROJECT))
    assert not machine.status("claude-code").is_everywhere
    machine.install(machine.file("claude-code", HostScope.USER))
    assert machine.status("claude-code").is_everywhere


def test_the_files_of_hosts_that_are_there_are_listed_once(machine: Machine) -> None:
    assert not host_files_there(machine.where)
    file = machine.file("gemini-cli", HostScope.USER)
    machine.install(file)
    assert host_files_there(machine.where) == (file.path,)


@pytest.mark.parametrize("host_id", HOST_IDS)
def test_every_agent_reads_changes_and_runs_commands_by_our_definitions(host_id: str) -> None:
    assert host_effects(host_id) >= {Effect.READ, Effect.CHANGE, Effect.RUN}


def fact(status: HostStatus, name: str) -> tuple[HostLevel, str]:
    (found,) = [(one.level, one.sentence) for one in status.facts if one.name == name]
    return found


@pytest.mark.parametrize("host_id", HOST_IDS)
def test_a_hook_that_is_changed_or_gone_is_red(machine: Machine, host_id: str) -> None:
    file = machine.file(host_id)
    machine.install(file)
    assert fact(machine.status(host_id), "hook")[0] is not HostLevel.AMBER
    text = file.path.read_text()
    file.path.write_text(text.replace("--agent ada", "--agent eve").replace('"ada"', '"eve"'))
    assert fact(machine.status(host_id), "hook") == (
        HostLevel.RED,
        f"hooks in `{file.path}` were changed since the gate was put there: look at them, then install it again",
    )
    file.path.write_text("" if host_id in {"codex", "opencode"} else "{}")
    level, sentence = fact(machine.status(host_id), "hook")
    assert (level, "is gone from" in sentence) == (HostLevel.RED, True)
    file.path.unlink()
    assert fact(machine.status(host_id), "hook")[0] is HostLevel.RED


def test_what_switches_hooks_off_is_red(machine: Machine) -> None:
    machine.install(machine.file("claude-code"))
    (machine.project / ".claude" / "settings.local.json").write_text('{"disableAllHooks": true}')
    assert fact(machine.status("claude-code"), "switched-off")[0] is HostLevel.RED
    machine.install(machine.file("gemini-cli"))
    (machine.home / ".gemini").mkdir()
    (machine.home / ".gemini" / "settings.json").write_text('{"hooksConfig": {"enabled": false}}')
    assert fact(machine.status("gemini-cli"), "switched-off")[0] is HostLevel.RED


def _review(user: HostFile, group: int, hash_of: str, more: str = "") -> None:
    """Write down a review as Codex 0.171.0 does."""
    with user.path.open("a") as stream:
        stream.write(f'\n[hooks.state."{user.path}:pre_tool_use:{group}:0"]\ntrusted_hash = "{hash_of}"\n{more}')


def _hash_of(user: HostFile, group: int) -> str:
    """The digest that Codex 0.171.0 writes down for a hook of this form."""
    (hook,) = tomllib.loads(user.path.read_text())["hooks"]["PreToolUse"][group]["hooks"]
    parts = ('"async":false', f'"command":{json.dumps(hook["command"])}', '"timeout":120', '"type":"command"')
    said = f'{{"event_name":"pre_tool_use","hooks":[{{{",".join(parts)}}}],"matcher":"*"}}'
    return f"sha256:{sha256(said.encode()).hexdigest()}"


def test_a_hook_of_codex_is_red_until_somebody_has_reviewed_it_as_it_is(machine: Machine) -> None:
    user = machine.file("codex", HostScope.USER)
    machine.install(user)
    before = user.path.read_text()
    assert machine.status("codex").is_trusted is False
    assert fact(machine.status("codex"), "trusted")[0] is HostLevel.RED
    reviewed = _hash_of(user, 0)
    for group, hash_of, more, is_trusted in (
        (0, reviewed, "", True),
        (0, reviewed, "enabled = true\n", True),
        (0, reviewed, "enabled = false\n", False),
        (1, reviewed, "", False),
        (0, "sha256:0", "", False),
    ):
        user.path.write_text(before)
        _review(user, group, hash_of, more)
        status = machine.status("codex")
        assert status.is_trusted is is_trusted
        assert fact(status, "hook")[0] is HostLevel.OK
        assert [one.name for one in status.facts if one.name == "trusted"] == ["trusted"] * (not is_trusted)
    user.path.write_text(before)
    _review(user, 0, reviewed)
    machine.install(user, "another agent")  # the entry is another one now
    assert machine.status("codex").is_trusted is False


def test_a_review_of_codex_counts_for_the_place_of_the_hook(machine: Machine) -> None:
    user = machine.file("codex", HostScope.USER)
    user.path.parent.mkdir(parents=True)
    first = "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\ncommand = 'true'\n"
    user.path.write_text(first)
    machine.install(user)
    _review(user, 0, _hash_of(user, 1))
    assert machine.status("codex").is_trusted is False
    _review(user, 1, _hash_of(user, 1))
    assert machine.status("codex").is_trusted is True


@pytest.mark.parametrize(
    ("host_id", "trusts"),
    [
        ("copilot", '{"trusted_folders": ["SHOP"]}'),
        ("copilot", '{ // mine\n"trustedFolders": ["SHOP"]}'),
        ("gemini-cli", '{"SHOP": "TRUST_FOLDER"}'),
    ],
)
def test_hooks_of_a_project_are_red_until_its_folder_is_trusted(machine: Machine, host_id: str, trusts: str) -> None:
    name = {"copilot": ".copilot/config.json", "gemini-cli": ".gemini/trustedFolders.json"}[host_id]
    machine.install(machine.file(host_id))
    assert machine.status(host_id).is_trusted is False
    assert fact(machine.status(host_id), "trusted")[0] is HostLevel.RED
    (machine.home / name).parent.mkdir()
    (machine.home / name).write_text(trusts.replace("SHOP", str(machine.project)))
    assert machine.status(host_id).is_trusted is True
    machine.uninstall(machine.file(host_id))
    machine.install(machine.file(host_id, HostScope.USER))
    assert machine.status(host_id).is_trusted is None


def test_a_managed_hook_of_codex_needs_no_review(machine: Machine) -> None:
    machine.install(machine.file("codex", HostScope.MANAGED))
    assert machine.status("codex").is_trusted is None


def test_every_file_of_hooks_of_a_gated_host_is_closed_to_all_tools(machine: Machine) -> None:
    assert not host_places(machine.keys)
    machine.install(machine.file("claude-code"))
    places = host_places(machine.keys)
    assert machine.project / ".claude" / "settings.json" in places
    assert machine.project / ".claude" / "settings.local.json" in places
    assert any(place.name == "managed-settings.json" for place in places)
    machine.policy.write_text(OPEN)
    with Workspace.open(machine.policy, keys=machine.keys) as workspace:
        for name in (".claude/settings.json", ".claude/settings.local.json"):
            for arguments in ({"op": "read", "path": name}, {"op": "create", "path": name, "content": "{}"}):
                decision = workspace.gate.decide("ada", "file", arguments)
                assert decision.verdict is Verdict.DENY, (name, arguments)
        assert (
            workspace.gate.decide("ada", "file", {"op": "create", "path": "a", "content": ""}).verdict is Verdict.ALLOW
        )
        machine.install(machine.file("gemini-cli"))
        workspace.reload()
        arguments = {"op": "read", "path": ".gemini/settings.json"}
        assert workspace.gate.decide("ada", "file", arguments).verdict is Verdict.DENY


OPEN = """\
gatewright = 1
[agents.ada]
tools = ["file"]
sources = ["shop"]
[[sources]]
id = "shop"
type = "file"
base_path = "shop"
default_permission = "read_write"
"""


def test_a_record_that_is_damaged_is_said_and_not_followed(machine: Machine) -> None:
    file = machine.file("claude-code")
    machine.install(file)
    for record in (machine.keys / "hosts").glob("*.json"):
        record.write_text("{")
    assert fact(machine.status("claude-code"), "records")[0] is HostLevel.RED
    assert fact(host_doctor("claude-code", machine.where, keys=machine.keys), "records")[0] is HostLevel.RED
    with pytest.raises(WorkspaceError, match="damaged"):
        uninstall_edit(file, keys=machine.keys)


@pytest.mark.parametrize("content", ["{", "[]", '{"host_id": "claude-code"}'])
def test_no_policy_is_enforced_while_a_record_is_unreadable_since_its_files_would_be_open(
    machine: Machine, content: str
) -> None:
    """Nobody knows then which files were closed; a process that read the record before keeps them closed."""
    machine.install(machine.file("claude-code"))
    (record,) = (machine.keys / "hosts").glob("*.json")
    record.write_text(content)
    with pytest.raises(WorkspaceError, match=rf"{record.name}` is damaged; .*remove it, then install the hook again"):
        Workspace.open(machine.policy, keys=machine.keys)
    record.unlink()
    Workspace.open(machine.policy, keys=machine.keys).close()


def test_a_host_works_in_the_one_project_whose_hook_names_the_policy(machine: Machine) -> None:
    def works_in() -> Path:
        return work_folder("claude-code", machine.policy, keys=machine.keys)

    assert works_in() == machine.policy.parent
    machine.install(machine.file("claude-code", HostScope.USER))
    assert works_in() == machine.policy.parent
    machine.install(machine.file("claude-code"))
    assert works_in() == machine.project
    assert work_folder("codex", machine.policy, keys=machine.keys) == machine.policy.parent
    other = machine.project.parent / "other"
    other.mkdir()
    machine.where = Around(machine.home, machine.where.environment, other, "linux", machine.root)
    machine.install(machine.file("claude-code"))
    assert works_in() == machine.policy.parent  # it is one of two
    in_project = machine.project / ".gatewright-policy" / "policy.toml"
    assert work_folder("claude-code", in_project, machine.home, keys=machine.keys) == machine.project
