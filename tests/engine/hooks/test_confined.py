"""Commands that a coding agent gets back to be run confined: real processes in real rooms, through the real client."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gatewright.adapters import hook_exchange
from gatewright.adapters.confine import Confiner
from gatewright.sources.roomcopy import remove_tree
from gatewright.workspace.assembly import stop_switch
from gatewright_resources import folder
from tests.engine.hooks.world import POLICY, HookWorld
from tests.support.patience import until

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason="no process can be confined here")
FREE = 'gatewright = 1\n\n[workspace]\nshell = { confine = "none" }\n'
"""The first lines of a policy that confines no command."""


async def allowed(world: HookWorld, command: str, call_id: str = "t1", **more: str) -> list[str]:
    """Ask for a command; the words by which the host runs it."""
    answer = await world.ask("Bash", {"command": command, "description": "go"}, call_id, agent="coder", **more)
    assert answer["permissionDecision"] in {"allow", "ask"}, answer
    assert answer["updatedInput"]["description"] == "go"
    return shlex.split(answer["updatedInput"]["command"])


async def run(world: HookWorld, command: str, call_id: str = "t1", given: bytes = b"") -> tuple[int, str, str]:
    return await world.start(await allowed(world, command, call_id), given)


async def begin(world: HookWorld, words: Sequence[str]) -> asyncio.subprocess.Process:
    """Start an allowed command which says `on` once it runs."""
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, env=world.environment, cwd=world.project
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"on\n"
    return process


def lives(mark: str) -> bool:
    """Tell whether a process has this word among its arguments."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in one.read_bytes().split(b"\0"):
                return True
    return False


async def test_a_command_reads_and_writes_the_hosts_own_streams_and_ends_with_its_own_code(world: HookWorld) -> None:
    (world.project / "a.txt").write_text("content\n")
    assert await run(world, "cat - a.txt; echo no >&2; exit 7", given=b"given\n") == (7, "given\ncontent\n", "no\n")
    await until(lambda: world.rows("ToolCompleted"))
    assert [kind for kind, _, _ in world.rows()][-3:] == ["ToolInvoked", "PolicyDecision", "ToolCompleted"]


async def test_the_levels_hold_in_the_kernel_and_nothing_of_ours_exists_for_a_command(world: HookWorld) -> None:
    (world.project / "x.key").write_text("hidden")
    hidden = [world.policy, world.folder / ".gatewright", world.keys / "hooks.key", world.run / "gatewright"]
    names = " ".join(shlex.quote(str(one)) for one in hidden)
    code, out, _ = await run(world, f"cat x.key; for one in {names}; do ls -d $one; done; echo new > made; echo end")
    assert (code, out) == (0, "end\n")
    assert (world.project / "made").read_text() == "new\n"


async def test_a_command_runs_once_and_only_as_it_was_decided(world: HookWorld) -> None:
    words = await allowed(world, "echo x >> made")
    other = [*words[:-1], "echo y >> made"]
    assert (await world.start(words))[0] == 0
    code, out, said = await world.start(words)
    assert (code, out) == (126, "")
    assert "run already" in said
    words = await allowed(world, "echo x >> made", "t2")
    assert (await world.start([*words[:-1], "echo y >> made"]))[0] == 126
    assert (await world.start(words))[0] == 126
    assert (await world.start(other))[0] == 126
    assert (world.project / "made").read_text() == "x\n"
    await until(lambda: len(world.rows("ToolCompleted", "ToolFailed")) == 2)


async def test_ten_that_come_for_one_command_at_once_run_it_once(world: HookWorld) -> None:
    words = await allowed(world, "echo x >> made")
    codes = [code for code, _, _ in await asyncio.gather(*(world.start(words) for _ in range(10)))]
    assert sorted(codes) == [0] + [126] * 9
    assert (world.project / "made").read_text() == "x\n"


@pytest.mark.parametrize("end", ["client", "gate", "killed gate", "stop"])
async def test_a_command_ends_with_its_client_its_gate_and_the_stop(world: HookWorld, end: str) -> None:
    mark = f"9{os.getpid()}.{len(end)}"
    process = await begin(world, await allowed(world, f"echo on; sleep {mark} & sleep {mark}"))
    await until(lambda: lives(mark))
    if end == "client":
        process.kill()
    elif end == "stop":
        stops = stop_switch(world.policy, keys=world.keys)
        stops.pull("ann")
        stops.close()
    else:
        world.end(signal.SIGKILL if end == "killed gate" else signal.SIGTERM)
    code = await process.wait()
    await until(lambda: not lives(mark))
    assert code == (-signal.SIGKILL if end == "client" else 126)
    if end != "killed gate":
        await until(lambda: world.rows("ToolFailed", "ToolAbandoned"))


async def test_what_a_command_leaves_in_the_background_ends_with_it(world: HookWorld) -> None:
    mark = f"8{os.getpid()}"
    assert (await run(world, f"sleep {mark} >/dev/null 2>&1 & echo x"))[:2] == (0, "x\n")
    await until(lambda: not lives(mark))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signals_reach_the_command_and_its_end_by_a_signal_shows_in_the_code(
    world: HookWorld, number: signal.Signals
) -> None:
    handled = await allowed(world, f"trap 'echo got; exit 5' {number.value}; echo on; while :; do sleep 0.1; done")
    process = await begin(world, handled)
    process.send_signal(number)
    assert process.stdout is not None
    assert (await process.stdout.read(), await process.wait()) == (b"got\n", 5)
    code, _, _ = await run(world, f"kill -{number.value} $$", "t2")
    assert code == 128 + number


async def test_a_room_that_is_killed_is_no_command_that_was_not_run(world: HookWorld) -> None:
    process = await begin(world, await allowed(world, "echo on; sleep 60"))
    for one in Path(f"/proc/{world.gate_pid}/task").glob("*/children"):
        for pid in map(int, one.read_text().split()):
            os.kill(pid, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL


async def test_without_confinement_by_the_policy_the_host_runs_the_command_itself(world: HookWorld) -> None:
    world.policy.write_text(POLICY.replace("gatewright = 1\n", FREE))
    answer = await world.ask("Bash", {"command": "ls"}, "t1")
    assert answer["permissionDecision"] == "allow"
    assert "updatedInput" not in answer


async def test_a_tool_that_starts_programs_and_takes_no_changed_command_is_denied(world: HookWorld) -> None:
    more = POLICY.replace("gatewright = 1\n", 'gatewright = 1\n[workspace]\nshell = { allow = ["ls"] }\n')
    world.policy.write_text(more.replace('"claude.Bash"', '"claude.Bash", "claude.Monitor"'))
    given = {"command": "ls", "description": "go"}
    denied = await world.ask("Monitor", given, "t1")
    assert denied["permissionDecision"] == "deny"
    assert "confine" in denied["permissionDecisionReason"]


async def test_a_host_that_ran_the_command_itself_is_found_out(world: HookWorld) -> None:
    await allowed(world, "ls")
    await world.report("Bash", {"command": "ls"}, "t1")
    await until(lambda: world.rows("ToolFailed"))
    ((_, _, body),) = world.rows("ToolFailed")
    assert body["code"] == "ran-unconfined"


async def test_a_person_who_agrees_at_the_host_has_the_command_run_confined(world: HookWorld) -> None:
    world.policy.write_text(POLICY.replace('"claude.Write" = "ask"', '"claude.Bash" = "ask"'))
    words = await allowed(world, "echo yes", permission_mode="default")
    assert world.rows("ApprovalResolved") == []
    assert await world.start(words) == (0, "yes\n", "")
    await until(lambda: world.rows("ToolCompleted"))
    kinds = [kind for kind, _, _ in world.rows()]
    assert kinds.index("ApprovalResolved") < kinds.index("ToolCompleted")


async def test_a_folder_that_the_agents_commands_cannot_see_is_no_place_to_start(world: HookWorld) -> None:
    code, out, said = await world.start(await allowed(world, "pwd", cwd=str(world.keys)), cwd=world.keys)
    assert (code, out) == (126, "")
    assert "does not exist for the commands" in said


async def test_a_command_starts_in_the_folder_in_which_it_was_judged_or_not_at_all(world: HookWorld) -> None:
    below = world.project / "below"
    below.mkdir()
    (world.project / "link").symlink_to("below")
    code, out, said = await world.start(await allowed(world, "pwd; echo x > made"), cwd=below)
    assert (code, out) == (126, "")
    assert "begin the command with `cd FOLDER &&`" in said
    assert not (below / "made").exists()
    await until(lambda: world.rows("ToolFailed"))
    assert world.rows("ToolFailed")[0][2]["code"] == "other-folder"
    words = await allowed(world, "pwd", "t2", cwd=str(world.project / "link"))
    assert await world.start(words, cwd=below) == (0, f"{below}\n", "")
    words = await allowed(world, "cat a", "t3", cwd=str(world.project / "link"))
    (world.project / "link").unlink()
    (world.project / "link").symlink_to(".")  # somebody leads it elsewhere before the host starts the command
    assert (await world.start(words, cwd=world.project / "link"))[0] == 126


@pytest.mark.parametrize("named", ["below", "./below/../below", "{project}/below"])
async def test_a_folder_that_the_call_names_is_where_it_is_judged_and_starts(world: HookWorld, named: str) -> None:
    tools = json.loads(json.dumps(KNOWN))
    (bash,) = (one for one in tools["tools"] if one["name"] == "Bash")
    bash["inputSchema"]["properties"]["workdir"] = {"type": "string"}
    bash["_meta"]["gatewright"]["arguments"]["workdir"] = "folder"
    (world.folder / "catalogs" / "claude-code.tools.json").write_text(json.dumps(tools))
    head = 'gatewright = 1\n[workspace]\nshell = { allow = ["cat"] }\n'
    text = POLICY.replace("gatewright = 1\n", head).replace(
        'prefix = "claude"\n', 'prefix = "claude"\ntrusted = true\n'
    )
    world.policy.write_text(text)
    below = world.project / "below"
    below.mkdir()
    (below / "a").write_text("below")
    given = {"command": "cat a", "description": "go", "workdir": named.format(project=world.project)}
    for number, (cwd, code) in enumerate(((below, 0), (world.project, 126))):
        answer = await world.ask("Bash", given, f"t{number}")
        assert answer["permissionDecision"] == "allow", answer
        assert (await world.start(shlex.split(answer["updatedInput"]["command"]), cwd=cwd))[0] == code


@pytest.mark.parametrize("below", ["", "packages/one"])
async def test_a_command_makes_no_file_in_which_a_coding_agent_looks_for_hooks_later(
    world: HookWorld, below: str
) -> None:
    for number, host in enumerate(("codex", "gemini-cli")):  # a second and a third one with our hook
        (world.keys / "hosts").mkdir(mode=0o700, exist_ok=True)
        (world.keys / "hosts" / f"{number}.json").write_text(f'{{"host_id": "{host}", "places": []}}')
    work = world.project / below
    work.mkdir(parents=True, exist_ok=True)
    names = (".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".gemini/settings.json")
    tries = [f"mkdir -p {Path(name).parent}; echo x > {name}; echo x > new; mv new {name}" for name in names]
    moved = "for one in .claude .codex .gemini; do mv $one old; mkdir new; mv new $one; rmdir $one; done"
    linked = "mkdir tree; touch tree/settings.json; ln -sfn tree .claude; ln -s . .gemini; echo end"
    for number, cwd in enumerate({world.project, work}):
        words = await allowed(world, "; ".join((*tries, moved, linked)), f"t{number}", cwd=str(cwd))
        code, out, said = await world.start(words, cwd=cwd)
        assert (code, out) == (0, "end\n"), said
        for top in {world.project, work}:
            assert [name for name in names if (top / name).exists()] == []
        for top in {world.project, cwd}:
            assert all((top / name).is_dir() and not (top / name).is_symlink() for name in (".claude", ".gemini"))


STRICT = "".join(
    f'\n[[sources.permission_rules]]\npattern = "{pattern}"\npermission = "{level}"\n'
    for pattern, level in (
        ("**/.env*", "none"),
        ("**/.git/config", "read_only"),
        ("**/.git/hooks/", "none"),
        ("tools/**", "read_only"),
    )
)
AGAINST = {
    "a file": "echo x > .env; echo x > sub/.env.local",
    "in missing folders": "mkdir -p new/.git/hooks; echo x > new/.git/hooks/post-commit",
    "kept open": "exec 3> .env; sleep 0.2; echo x >&3",
    "in an open folder": "mkdir -p .git/hooks; cd .git/hooks; sleep 0.2; echo x > ../hooks/a; echo x > b; ls",
    "a read-only one": "mkdir -p .git tools; (echo a; sleep 0.2; echo b) > .git/config; echo x > tools/a",
    "links": "mkdir .git; ln -s ../a.txt .git/config; ln -s ../sub .git/hooks; ln -s a.txt .env; ln a.txt sub/.env",
    "a moved folder": "mkdir -p one/two; echo x > one/two/a; mv one/two .env.d; mkdir hooks .git; mv hooks .git",
    "around a moved one": "mkdir g; mkdir g/hooks; echo x > g/config; echo x > g/hooks/a; mv g .git",
    "something special": "mkfifo .env; mkdir -p .git/hooks; mkfifo .git/hooks/a",
    "behind closed doors": "mkdir -p a/b/.env; echo x > a/b/.env/c; chmod 0 a/b/.env a/b; mkdir .git; chmod 555 .",
    "too deep": "deep=$(printf 'd/%.0s' $(seq 160)); mkdir -p $deep; echo x > $deep/.env",
    "more than can be covered": "mkdir $(seq 1200); for one in *; do echo > $one/.env; done",
    "in a race": "for one in $(seq 20); do echo x > .env; mv .env a; mv a .env; rm -f .env; done; echo x > .env",
    "by what it leaves behind": "(while sleep 0.01; do echo x > .env; mkdir -p .git/hooks; done) & sleep 0.5",
    "and killed": "echo x > .env; mkdir -p .git/hooks; kill -9 $$",
}
"""Commands that make, each in another way, what the levels let no process make."""


def forbidden(project: Path) -> list[str]:
    """List the names that only the operator may make."""
    found = [one.relative_to(project) for one in project.rglob("*") if one.name.startswith(".env")]
    found += [one.relative_to(project) for one in project.rglob(".git/*") if one.name in {"config", "hooks"}]
    return sorted(map(str, (*found, *(one.relative_to(project) for one in project.glob("tools/*")))))


async def test_nothing_stays_that_the_levels_let_no_command_make(world: HookWorld) -> None:
    world.policy.write_text(POLICY.replace("\n[[catalogs]]", f"{STRICT}\n[[catalogs]]"))
    for number, (way, command) in enumerate(AGAINST.items(), start=1):
        (world.project / "sub").mkdir(parents=True)
        for name in ("a.txt", "sub/.env.mine"):
            (world.project / name).write_text("mine")
        _, _, said = await run(world, f"{command}; true", f"t{number}")
        assert forbidden(world.project) == ["sub/.env.mine"], way
        assert said.endswith("were taken back\n") or way == "more than can be covered", way
        assert (world.project / "sub" / ".env.mine").read_text() == (world.project / "a.txt").read_text() == "mine"
        rows = world.rows("CopyReturned")
        assert [agent for _, agent, _ in rows] == ["coder"] * number, way
        body = rows[-1][2]
        kept = Path(body["folder"])
        assert kept.is_relative_to(world.folder / ".gatewright")
        assert body["taken_back_count"] >= len(body["taken_back"]) > 0
        for one in body["taken_back"]:
            assert os.path.lexists(kept / one["path"].lstrip("/")), (way, one)
            assert one["why"] == "its level lets no process make it, so it was taken back"
        world.project.chmod(0o755)
        for one in world.project.iterdir():
            remove_tree(str(one))


async def test_what_a_command_removes_itself_and_what_stood_before_it_is_nobodys_business(world: HookWorld) -> None:
    world.policy.write_text(POLICY.replace("\n[[catalogs]]", f"{STRICT}\n[[catalogs]]"))
    assert await run(world, "echo x > .env; rm .env; mkdir -p .git/hooks; rmdir .git/hooks; echo x > b") == (0, "", "")
    (world.project / ".env").write_text("mine")
    (world.project / "tools").mkdir()
    (world.project / "tools" / "run").write_text("mine")
    assert await run(world, "mkdir c; echo x > c/d; cat tools/run", "t2") == (0, "mine", "")
    assert forbidden(world.project) == [".env", "tools/run"]
    assert (world.project / "b").read_text() == (world.project / "c" / "d").read_text() == "x\n"
    assert world.rows("CopyReturned") == []


GIT = """
cd {project}; git init -q .; git config user.name project; git config user.email project@example.org
mkdir -p secrets/deep open; for one in .env secrets/a secrets/deep/b open/c; do echo 1 > $one; done
git add -f .; git commit -qm one; git config --unset user.name; git config --unset user.email
"""
GLOBAL = """
[user]
\tname = "Ann \\"the\\\\ first"
[include]
\tpath = more
[core]
\tpager = touch {project}/ran; cat
\tfsmonitor = touch {project}/ran
[alias]
\tst = !touch {project}/ran
[credential]
\thelper = store
"""


@pytest.fixture
def repository(world: HookWorld) -> HookWorld:
    """A project in git with closed files that are committed, and a person who has settings of git."""
    closed = f'{STRICT}\n[[sources.permission_rules]]\npattern = "secrets/"\npermission = "none"\n'
    world.policy.write_text(POLICY.replace("\n[[catalogs]]", f"{closed}\n[[catalogs]]"))
    subprocess.run(["sh", "-ec", GIT.format(project=world.project)], check=True, capture_output=True)
    home = world.folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(GLOBAL.format(project=world.project))
    (home / "more").write_text("[user]\n\temail = ann@example.org\n")
    world.environment["HOME"] = str(home)
    return world


def git(world: HookWorld, *words: str) -> str:
    """What git says of the project outside of any room."""
    found = subprocess.run(["git", *words], cwd=world.project, env=NOBODY, capture_output=True, text=True, check=True)
    return found.stdout.strip()


NOBODY = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


async def test_a_commit_in_a_room_is_the_persons_and_none_of_their_programs_runs(repository: HookWorld) -> None:
    code, _, said = await run(
        repository, "echo 2 > open/c; git add open; git commit -qm two; git config --get-all credential.helper"
    )
    assert (code, said) == (1, "")
    assert git(repository, "log", "-1", "--format=%an|%ae|%s") == 'Ann "the\\ first|ann@example.org|two'
    assert not (repository.project / "ran").exists()
    assert (await run(repository, "git config --global user.name Bob && git commit -q --allow-empty -m x", "t2"))[
        0
    ] == 0
    assert git(repository, "log", "-1", "--format=%an") == "Bob"
    assert git(repository, "status", "--short") == ""


@pytest.mark.parametrize("way", ["commit -qam two", "add -A", "add -u secrets .env open", "stash", "rm -rq secrets"])
async def test_no_command_of_git_that_means_all_files_loses_a_closed_one(repository: HookWorld, way: str) -> None:
    await run(repository, f"echo 2 > open/c; git {way}; git commit -qm more; true")
    names = git(repository, "ls-tree", "-r", "--name-only", "HEAD").split()
    assert names == [".env", "open/c", "secrets/a", "secrets/deep/b"]
    assert git(repository, "diff", "--cached", "--name-only", "--diff-filter=D") == ""
    for name in (".env", "secrets/a", "secrets/deep/b"):
        assert (repository.project / name).read_text() == "1\n"


async def test_a_folder_as_a_stream_is_refused(world: HookWorld) -> None:
    words = await allowed(world, "ls ..")
    run_id = words[words.index("confined") + 1]
    gate = hook_exchange.Gate({"policy": str(world.policy), "key": str(world.place.key)}, 0.0)
    root = os.open("/", os.O_RDONLY)
    parts = (run_id, str(world.project), b"", "ls ..")
    connection = await asyncio.to_thread(gate.connect)
    answer = await asyncio.to_thread(lambda: connection.ask(b"confined", *parts, descriptors=(root, 1, 2)))
    connection.close()
    os.close(root)
    assert answer.startswith(b"F")
    await until(lambda: world.rows("ToolFailed"))


@settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(words=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4))
def test_a_command_arrives_as_it_was_written(world: HookWorld, words: list[str]) -> None:
    command = " ".join(map(shlex.quote, ["printf", "%s|", *words]))
    code, out, _ = asyncio.run(run(world, command, f"t{os.urandom(4).hex()}"))
    assert (code, out) == (0, "".join(f"{word}|" for word in words) or "|")


KNOWN = json.loads(folder("hosts").joinpath("claude-code.tools.json").read_text())
"""Definitions that say which argument is a command, so that its words are judged before it reaches a room."""
WHOLE = """
[workspace.shell]
allow = ["cat", "cd", "echo", "find", "grep", "ls", "python3", "tee"]

[[sources]]
id = "project"
type = "file"
base_path = "."
default_permission = "read_write"

[[sources.permission_rules]]
pattern = "project/kept"
permission = "read_only"

[[sources.permission_rules]]
pattern = "asked/"
permission = "partner"
"""
FOLDERS = {
    "ls -a": "project",
    "ls -R .": "a.txt",
    "grep -r word .": "./project/a.txt:word",
    'find . -name "*.txt"': "./project/a.txt",
    "cd WORKSPACE && cat project/a.txt": "word",
    "echo x | tee WORKSPACE project": "x",
}
"""Commands, each with what they say; the closed file in the folder stays closed."""


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[HookWorld]:
    """The agent works in the policy's own folder, in which there are closed files, too."""
    policy = POLICY.replace('prefix = "claude"\n', 'prefix = "claude"\ntrusted = true\n')
    policy = policy.replace(policy[policy.index("\n[[sources]]") : policy.index("\n[[sources.p")], WHOLE, 1)
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        made = HookWorld(tmp_path, Path(run), policy, KNOWN)
        for name in ("project/x.key", "project/kept", "project/a.txt"):
            (made.folder / name).write_text("word of a key" if name.endswith("key") else "word")
        try:
            yield made
        finally:
            made.end()


@pytest.mark.parametrize("command", FOLDERS)
async def test_a_folder_with_something_closed_in_it_is_open_to_a_confined_command(
    whole: HookWorld, command: str
) -> None:
    sent = command.replace("WORKSPACE", str(whole.folder))
    _, out, said = await whole.start(await allowed(whole, sent, cwd=str(whole.folder)), cwd=whole.folder)
    assert FOLDERS[command] in out, said
    assert "word of a key" not in out
    assert "gatewright = 1" not in out


async def test_a_folder_in_which_something_asks_first_still_does(whole: HookWorld) -> None:
    (whole.folder / "asked").mkdir()
    (whole.folder / "asked" / "a").write_text("word")
    for command, verdict in (("grep -r word .", "allow"), ("python3 -m this .", "ask"), ("cat project/x.key", "deny")):
        given = {"command": command, "description": "go"}
        answer = await whole.ask("Bash", given, command[:4], cwd=str(whole.folder), permission_mode="default")
        assert answer["permissionDecision"] == verdict, (command, answer)


async def test_without_a_room_a_folder_with_something_closed_in_it_is_closed(whole: HookWorld) -> None:
    text = whole.policy.read_text()
    whole.policy.write_text(text.replace("[workspace.shell]\n", '[workspace.shell]\nconfine = "none"\n'))
    answer = await whole.ask("Bash", {"command": "grep -r word .", "description": "go"}, "t1", cwd=str(whole.folder))
    assert answer["permissionDecision"] == "deny"
