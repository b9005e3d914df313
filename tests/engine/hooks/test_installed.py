"""From a host's file to the log: the entry that we put there, started as the host does, against the real gate."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gatewright.adapters.hosts import HOST_IDS, HostScope, Reply, is_denial, load_host
from gatewright.base.jsonvalue import read_json
from gatewright.workspace.host_files import host_around, host_file, install_edit, uninstall_edit, write_host_file
from gatewright.workspace.host_status import HostCalls, HostLevel, host_doctor, host_status
from tests.engine.hooks.world import HookWorld
from tests.support.bubblewrap import why_not
from tests.support.patience import pause_until

EXCHANGES = Path(__file__).parents[2] / "golden" / "hosts"


def policy() -> str:
    """An agent and a catalog for each host; its shell may start `touch`."""
    text = 'gatewright = 1\n[workspace.shell]\nallow = ["touch"]\n'
    text += '[[sources]]\nid = "project"\ntype = "file"\nbase_path = "project"\ndefault_permission = "read_write"\n'
    for host in map(load_host, HOST_IDS):
        shell = next(iter(host.shells))
        text += f'[agents.{host.prefix}]\ntools = ["{host.prefix}.{shell}"]\nsources = ["project"]\n'
        text += f'capabilities = [{{ Exec = {{}} }}]\napprovals = {{ "{host.prefix}.{shell}" = "allow" }}\n'
        text += f'[[catalogs]]\nid = "{host.host_id}"\ntype = "host"\nprefix = "{host.prefix}"\ntrusted = true\n'
        text += f'manifest = "catalogs/{host.host_id}.tools.json"\n'
    return text


def manifest(host_id: str) -> str:
    (name, argument), *_ = load_host(host_id).shells.items()
    properties = {argument: {"type": "string"}, "description": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": [argument]}
    said = {"side_effects": ["ProcessSpawn"], "arguments": {argument: "command"}, "operation_field": ""}
    tool = {"name": name, "description": "Runs a command.", "inputSchema": schema, "_meta": {"gatewright": said}}
    return json.dumps({"tools": [tool]})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HookWorld]:
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        made = HookWorld(tmp_path, Path(run), policy())
        for host_id in HOST_IDS:
            (made.folder / "catalogs" / f"{host_id}.tools.json").write_text(manifest(host_id))
        (tmp_path / "home").mkdir()
        for name, value in {"HOME": tmp_path / "home", "XDG_RUNTIME_DIR": run, "GATEWRIGHT_KEYS": made.keys}.items():
            monkeypatch.setenv(name, str(value))
        made.environment |= {"HOME": str(tmp_path / "home")}
        try:
            yield made
        finally:
            made.end()


def words_of(host_id: str, text: str) -> list[str]:
    """The words that the host starts before a call, a shell's where it starts one."""
    if host_id == "opencode":
        return json.loads(text.partition("const COMMAND = ")[2].partition("\n\n")[0].partition("\nconst ")[0])
    hooks: dict[str, Any] = (tomllib.loads(text) if host_id == "codex" else table(text))["hooks"]
    element = next(iter(hooks.values()))[0]
    run: dict[str, Any] = element["hooks"][0] if "hooks" in element else element
    if "args" in run:
        return [run["command"], *run["args"]]
    return ["/bin/sh", "-c", str(run.get("command", run.get("bash")))]


def table(text: str) -> dict[str, Any]:
    value: Any = read_json(text)
    return value


def changed_command(host_id: str, reply: Reply) -> str:
    """The command that the host runs in place of the model's."""
    said: dict[str, Any] = json.loads(reply.stdout)
    inner: dict[str, Any] = said.get("hookSpecificOutput", said)
    keys = ("updatedInput", "tool_input", "args", "modifiedArgs", "updated_input")
    arguments: dict[str, str] = next(inner[key] for key in keys if key in inner)
    return arguments[next(iter(load_host(host_id).shells.values()))]


def wait_for_ends(world: HookWorld, agent_id: str, wanted: dict[str, int]) -> None:
    """Wait for the ends of an agent's calls: a command's client ends before the row is written."""

    def ends() -> Counter[str]:
        return Counter(kind for kind, agent, _ in world.rows("ToolDenied", "ToolCompleted") if agent == agent_id)

    pause_until(lambda: ends() == wanted, f"the ends of {agent_id}")


@pytest.mark.skipif(bool(why_not()), reason="needs confinement")
def test_an_entry_in_the_file_of_every_host_refuses_and_confines_its_commands(world: HookWorld) -> None:
    for host_id in HOST_IDS:
        where = host_around(world.project)
        file = host_file(host_id, HostScope.PROJECT, where)
        write_host_file(install_edit(file, world.policy, load_host(host_id).prefix))
        words = words_of(host_id, file.path.read_text())
        allowed: str = json.loads((EXCHANGES / host_id / "allow.json").read_text())["message"]
        message = json.dumps(allowed).replace("/work/shop", str(world.project))

        def ask(message: str, words: list[str] = words) -> Reply:
            done = subprocess.run(
                words,
                input=message,
                capture_output=True,
                text=True,
                env=world.environment,
                cwd=world.project,
                check=False,
            )
            return Reply(done.stdout, done.stderr, done.returncode)

        denied = ask(message.replace("touch original", "rm -rf /").replace("_1", "_2").replace("_01", "_02"))
        assert is_denial(denied), (host_id, denied)
        reply = ask(message.replace("touch original", f"touch {host_id}"))
        assert not is_denial(reply), (host_id, reply)
        command = changed_command(host_id, reply)
        assert not (world.project / host_id).exists()
        done = subprocess.run(["/bin/sh", "-c", command], env=world.environment, cwd=world.project, check=False)
        assert done.returncode == 0, host_id
        assert (world.project / host_id).exists()
        assert ask("{").exit_code == 2 or is_denial(ask("{"))
        doctor = host_doctor(host_id, where)
        told = {one.name: (one.level, one.sentence) for one in doctor.facts}
        assert told["answer"][0] is HostLevel.OK, told
        assert told["policy"][0] is HostLevel.OK, told
    for host in map(load_host, HOST_IDS):
        wait_for_ends(world, host.prefix, {"ToolDenied": 2, "ToolCompleted": 1})
    reasons = {agent for _, agent, body in world.rows() if "`rm` is not among the programs" in json.dumps(body)}
    assert reasons == {load_host(host_id).prefix for host_id in HOST_IDS}


def test_the_doctor_is_red_where_our_entry_lets_calls_run_or_its_policy_is_broken(world: HookWorld) -> None:
    file = host_file("claude-code", HostScope.PROJECT, host_around(world.project))
    write_host_file(install_edit(file, world.policy, "claude"))
    world.policy.write_text("gatewright = 2\n")
    told = {one.name: one for one in host_doctor("claude-code", host_around(world.project)).facts}
    assert told["policy"].level is HostLevel.RED
    assert "denie" in told["answer"].sentence
    (record,) = (world.keys / "hosts").glob("*.json")
    held = json.loads(record.read_text())
    for program, said in ((["/bin/true"] * 4, "lets a call"), (["/nowhere/python"] * 4, "does not run")):
        record.write_text(json.dumps({**held, "command": program}))
        told = {one.name: one for one in host_doctor("claude-code", host_around(world.project)).facts}
        assert (told["answer"].level, said in told["answer"].sentence) == (HostLevel.RED, True)


def test_the_gate_ends_after_the_last_hook_of_its_policy_was_taken_out(world: HookWorld) -> None:
    where = host_around(world.project)
    files = [host_file(host_id, HostScope.PROJECT, where) for host_id in ("claude-code", "gemini-cli")]
    for file in files:
        write_host_file(install_edit(file, world.policy, load_host(file.host_id).prefix))
    assert {one.name: one for one in host_doctor("claude-code", where).facts}["answer"].level is HostLevel.OK
    first = world.gate_pid
    write_host_file(uninstall_edit(files[0]))
    assert world.gate_pid == first != 0
    write_host_file(uninstall_edit(files[1]))
    pause_until(lambda: world.gate_pid == 0)


def test_the_gate_of_a_policy_ends_once_another_one_decides(world: HookWorld) -> None:
    where = host_around(world.project)
    file = host_file("claude-code", HostScope.PROJECT, where)
    write_host_file(install_edit(file, world.policy, "claude"))
    host_doctor("claude-code", where)
    assert world.gate_pid
    other = world.folder / "other.toml"
    other.write_text(world.policy.read_text())
    write_host_file(install_edit(file, other, "claude"))
    pause_until(lambda: world.gate_pid == 0)


def test_the_call_of_the_doctor_is_its_own_in_the_log_and_none_of_today(world: HookWorld) -> None:
    where = host_around(world.project)
    write_host_file(install_edit(host_file("claude-code", HostScope.PROJECT, where), world.policy, "claude"))
    assert {one.name: one for one in host_doctor("claude-code", where).facts}["answer"].level is HostLevel.OK
    ((_, _, body),) = world.rows("ToolInvoked")
    assert body["client"] == "gatewright hook doctor"
    with closing(HostCalls()) as calls:
        found = calls.counted(host_status("claude-code", where))
    assert (found.calls_today, found.last_call_s) == (0, None)
