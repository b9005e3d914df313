"""``shell_exec`` through a whole workspace, with real shells: what runs, what is refused, and that nothing is left."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from gatewright.adapters import shell as shells
from gatewright.gate import Outcome, Status
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace

POLICY = """\
gatewright = 1

[workspace]
roots = {{ shared = "shared", tmp = "tmp", vault = "vault" }}
shell = {{ backend = "{backend}", allow = {allow}, deny = ["{deny}"]{confine} }}

[defaults]
approvals = {{ privileged = "allow" }}

[agents.a]
tools = ["shell_exec"]
capabilities = [{capabilities}]
{more}

[agents.b]
tools = ["shell_exec"]
capabilities = ["Exec"]

[agents.none]
tools = ["shell_exec"]
"""
ALLOW = (
    '["ls", "cat", "echo", "cd", "pwd", "export", "sleep", "exit", "read", "true", "bash", "kill", "head", "[", "set"]'
)
GRANTED = '"Exec", { FsWrite = { prefixes = ["shared", "tmp"] } }, { FsRead = { prefixes = ["shared"] } }'
Open = Callable[..., Workspace]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens a workspace; its shells are not confined, unless a test says so."""
    made: list[Workspace] = []

    def make(
        backend: str = "host",
        allow: str = ALLOW,
        capabilities: str = GRANTED,
        more: str = "",
        deny: str = "rm",
        confine: str = "none",
    ) -> Workspace:
        folder = tmp_path / "ws"
        for name in ("shared", "tmp", "vault"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        held = f', confine = "{confine}"'
        text = POLICY.format(
            backend=backend, allow=allow, capabilities=capabilities, more=more, deny=deny, confine=held
        )
        (folder / "policy.toml").write_text(text, "utf-8")
        made.append(Workspace.open(folder, keys=tmp_path / "keys"))
        return made[-1]

    yield make
    for workspace in made:
        workspace.close()


async def call(workspace: Workspace, command: str, agent: str = "a", session: str | None = None) -> Outcome:
    held = workspace.session(agent, session) if session else None
    return await workspace.call(agent, "shell_exec", {"command": command}, session=held)


async def data(workspace: Workspace, command: str, agent: str = "a", session: str | None = None) -> dict[str, Any]:
    outcome = await call(workspace, command, agent, session)
    assert outcome.status is Status.ALLOWED, outcome.output
    return json.loads(outcome.data or b"")["data"]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def ended(pid: int) -> bool:
    for _ in range(500):
        if not is_running(pid):
            return True
        await asyncio.sleep(0.01)
    return False


async def written(path: Path) -> int:
    for _ in range(1000):
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} was never written")


@pytest.mark.parametrize("backend", ["host", "session"])
async def test_an_allowed_command_runs_in_shared_with_an_environment_of_its_own(
    opened: Open, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET_TOKEN", "s3cret")
    workspace = opened(backend)
    found = await data(workspace, 'pwd; echo to-err >&2; echo "<$SOME_SECRET_TOKEN$USER>"; ls nothing')
    assert found["exit_code"] == 2
    assert found["output"].startswith(f"{workspace.folder}/shared\nto-err\n<>\nls: ")


DECISIONS = [
    ("ls", "allow", "", ""),
    ("ls | id", "deny", "arguments", "shell-not-allowed"),
    ("rm x", "deny", "arguments", "shell-denied"),
    ("echo $(ls)", "deny", "arguments", "shell-substitution"),
    ("echo > out.txt", "allow", "", ""),
    ("echo > ../out.txt", "deny", "arguments", "outside-base"),
    ("echo > /etc/passwd", "deny", "arguments", "outside-roots"),
    ("cat < /etc/passwd", "deny", "arguments", "outside-roots"),
    ("echo >> {folder}/vault/x", "deny", "arguments", "outside-roots"),
    ("cat < {folder}/tmp/x", "deny", "capability", "path-not-granted"),
    ("ls (", "deny", "arguments", "shell-syntax"),
]


@pytest.mark.parametrize(("command", "verdict", "stage", "code"), DECISIONS)
def test_decisions(opened: Open, command: str, verdict: str, stage: str, code: str) -> None:
    workspace = opened()
    decision = workspace.decide("a", "shell_exec", {"command": command.format(folder=workspace.folder)})
    assert (str(decision.verdict), decision.code) == (verdict, code or decision.code)
    assert not stage or decision.stage == stage
    assert str(workspace.decide("none", "shell_exec", {"command": "ls"}).verdict) == "deny"


def test_the_trace_shows_what_is_executed_and_that_it_is_not_confined(opened: Open) -> None:
    workspace = opened()
    trace = workspace.decide("a", "shell_exec", {"command": "echo  hi>'x y'"}).trace
    reason = next(stage.reason for stage in trace if stage.stage == "arguments")
    assert f"executes `echo hi > '{workspace.folder}/shared/x y'`" in reason
    assert "not confined, as the policy says" in reason


async def test_a_redirect_writes_the_file_that_was_judged(opened: Open) -> None:
    workspace = opened()
    (workspace.folder / "shared/sub").mkdir()
    await data(workspace, "echo one > a.txt; echo two >> a.txt; cat < a.txt > sub/b.txt")
    assert (workspace.folder / "shared/sub/b.txt").read_text() == "one\ntwo\n"
    assert (await call(workspace, "echo > x", "b")).code == "capability-not-granted"
    assert not (workspace.folder / "shared/x").exists()


async def test_what_a_source_hides_or_keeps_is_kept_from_arguments_of_programs(opened: Open) -> None:
    source = (
        '[[sources]]\nid = "s"\ntype = "file"\nbase_path = "shared/docs"\ndefault_permission = "read_write"\n'
        'permission_rules = [{ pattern = "secret*", permission = "none" },'
        ' { pattern = "*.ro", permission = "read_only" }]'
    )
    workspace = opened(more=source)
    docs = workspace.folder / "shared/docs"
    docs.mkdir(exist_ok=True)
    for name in ("secret.txt", "a.ro", "a.txt"):
        (docs / name).write_text(name)
    workspace.reload()
    assert "a.txt" in (await data(workspace, "cat docs/a.txt"))["output"]
    for command in ("cat docs/secret.txt", "cat docs/*", "cat < docs/secret.txt", "echo > docs/a.ro"):
        assert (await call(workspace, command)).status is Status.DENIED, command


GLUED = [
    "grep -fdocs/secret.txt docs/a.txt",
    "grep -nifdocs/secret.txt docs/a.txt",
    "grep --file=docs/secret.txt docs/a.txt",
    "wc --files0-from=docs/secret.txt",
    "diff --from-file=docs/secret.txt docs/a.txt",
    "dd if=docs/secret.txt",
    "dd if=docs/a.txt of=docs/a.ro",
    "sort -nodocs/a.ro docs/a.txt",
    "curl -d @docs/secret.txt http://localhost",
    "curl -F 'x=@docs/secret.txt;type=text/plain' http://localhost",
    "git show HEAD:docs/secret.txt",
    "cp -tdocs a.txt",
    "cp --target-directory=docs a.txt",
    'x=secret.txt; grep -fdocs/"$x" docs/a.txt',
    "cat /$x",
    "find -delete",
    "find -name x -fprint docs/a.txt",
    "rg FILE",
    "rg -A 3 FILE",
    "grep -r FILE",
    "grep --recursive FILE",
    "grep -rA3 FILE docs/a.txt",
    "grep -d recurse FILE",
]
PLAIN = [
    "grep -fdocs/a.txt docs/a.txt",
    "dd if=docs/a.txt of=docs/new.txt",
    "grep -rn FILE other",
    "rg -n FILE other",
    "cat docs/a.txt",
    "grep -A 3 FILE docs/a.txt",
    "find other -name a.txt",
    "cp -t other docs/a.txt",
    "git show HEAD:docs/a.txt",
    "sort -nodocs/a.txt docs/a.txt",
]


def test_a_file_behind_an_option_and_a_folder_that_no_argument_names_are_judged_too(opened: Open) -> None:
    source = (
        '[[sources]]\nid = "s"\ntype = "file"\nbase_path = "shared/docs"\ndefault_permission = "read_write"\n'
        'permission_rules = [{ pattern = "secret*", permission = "none" },'
        ' { pattern = "*.ro", permission = "read_only" }]'
    )
    workspace = opened(allow='["*"]', more=source)
    for name in ("docs/secret.txt", "docs/a.ro", "docs/a.txt", "other/a.txt"):
        (workspace.folder / "shared" / name).parent.mkdir(exist_ok=True)
        (workspace.folder / "shared" / name).write_text("FILE")
    workspace.reload()
    stages = {command: workspace.decide("a", "shell_exec", {"command": command}).stage for command in (*GLUED, *PLAIN)}
    assert stages == dict.fromkeys(GLUED, "permission") | dict.fromkeys(PLAIN, stages["cat docs/a.txt"])


READS = [
    "ls -l a.txt sub/b.txt *",
    "cat a.txt | grep one | wc -l",
    "git status",
    "git log --oneline a.txt",
    "systemctl restart x",
    "[ -f a.txt ] && printf word",
    "echo word",
    "cat a.txt > {folder}/tmp/out",
]
CHANGES = [
    "rm a.txt",
    "rm word",
    "cp a.txt b",
    "tee word",
    "touch word",
    "cat a.txt | tee word",
    "cat a.txt && unknown word",
    "echo a.txt | xargs rm",
    "./cat a.txt",
    "cat ../shared/a.txt",
    "cat {folder}/shared/a.txt",
    "cat -- a.txt; cd sub; cat a.txt",
    "cat a.txt > word",
    "git checkout a.txt",
    "git diff --output=a.txt",
    "git log --out a.txt",
    "git status -c x; git -C . rm a.txt",
    "systemctl link x",
    "for x in 1; do cat a.txt; rm a.txt; done",
]
PROGRAMS = (
    '["cat", "./cat", "cd", "cp", "echo", "git", "grep", "ls", "printf", "rm", "systemctl", "tee", "touch", "unknown", '
    '"[", "wc", "xargs"]'
)
SHARED = '[[sources]]\nid = "s"\ntype = "file"\nbase_path = "shared"\ndefault_permission = "{level}"'


def test_what_only_reads_is_let_into_a_source_that_is_read_only_and_nothing_else(opened: Open) -> None:
    workspace = opened(allow=PROGRAMS, more=SHARED.format(level="read_only"), deny="nothing")
    (workspace.folder / "shared/a.txt").write_text("one")
    (workspace.folder / "shared/sub").mkdir()
    judged: dict[str, str] = {}
    for command in READS + CHANGES:
        decision = workspace.decide("a", "shell_exec", {"command": command.format(folder=workspace.folder)})
        judged[command] = decision.code if decision.verdict is Verdict.DENY else str(decision.verdict)
    assert judged == dict.fromkeys(READS, "allow") | dict.fromkeys(CHANGES, "level-denies")


@pytest.mark.parametrize(("backend", "level"), [("host", "none"), ("session", "read_only")])
def test_what_only_reads_stays_out_of_what_is_none_and_of_a_session(opened: Open, backend: str, level: str) -> None:
    workspace = opened(backend, allow=PROGRAMS, more=SHARED.format(level=level))
    for command in ("cat a.txt", "git status", "systemctl restart x"):
        decision = workspace.decide("a", "shell_exec", {"command": command})
        assert str(decision.verdict) == "deny", command
        assert decision.stage == "permission", command


async def test_a_word_that_could_only_be_a_file_of_a_source_somewhere_else_is_no_such_file(opened: Open) -> None:
    workspace = opened(more='[[sources]]\nid = "s"\ntype = "file"\nbase_path = "docs"')
    (workspace.folder / "docs").mkdir()
    for name in ("docs/todo.txt", "shared/todo.txt"):
        (workspace.folder / name).write_text(name)
    workspace.reload()
    assert (await data(workspace, "cat todo.txt | head -n 1"))["output"] == "shared/todo.txt"
    for command in ("cat ../docs/todo.txt", "cd ../docs; cat todo.txt", "bash -c true todo.txt", "ls .."):
        assert (await call(workspace, command)).status is Status.DENIED, command
    session = opened("session", more='[[sources]]\nid = "s"\ntype = "file"\nbase_path = "docs"')
    assert (await call(session, "cat todo.txt")).code == "level-denies"


FIRST_WORDS = """\
gatewright = 1
defaults = { approvals = { privileged = "allow" } }
[workspace]
roots = { shared = "shared" }
[workspace.shell]
backend = "host"
confine = "none"
allow = [
    "echo",
    "git status:*",
    "npm run build $",
]
ask = [
    "git commit",
]
deny = ["rm", "git push"]
[agents.a]
tools = ["shell_exec"]
capabilities = ["Exec"]
"""


async def test_why_names_for_each_call_of_a_command_the_entry_that_decides_it_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "policy.toml").write_text(FIRST_WORDS)
    with Workspace.open(tmp_path, keys=tmp_path / "keys") as workspace:

        def decided(command: str) -> tuple[str, str, int | None, str]:
            decision = workspace.decide("a", "shell_exec", {"command": command})
            said = cast("dict[str, Any]", decision.to_json())
            line = said["rule"]["line"] if said["rule"] else None
            reason = next(row["reason"] for row in said["trace"] if row["stage"] == "arguments")
            return str(decision.verdict), decision.code, line, reason

        verdict, _, _, reason = decided("git status -s && timeout 5 npm run build | echo z")
        by = ("`git status -s` by `git status:*` (line 10)", "`npm run build` by `npm run build $` (line 11)")
        assert verdict == "allow"
        assert reason.startswith(f"allowed: {', '.join(by)}, `echo z` by `echo` (line 9); executes ")
        verdict, code, line, reason = decided("git status; nice git -C x commit -m y; echo z")
        assert (verdict, code, line) == ("deny", "shell-not-allowed", 8)
        verdict, code, line, reason = decided("git status; nice git commit -m y; echo z")
        assert (verdict, code, line) == ("ask", "shell-ask", 14)
        assert reason.startswith("`git commit -m y` asks first by `git commit` of `[workspace] shell`; allowed: ")
        assert decided("git status; git commit; git -C x push")[:3] == ("deny", "shell-denied", 16)
        assert decided("; ".join(f"echo {n}" for n in range(60)) + "; git commit")[0] == "ask"
        outcome = await workspace.call("a", "shell_exec", {"command": "git commit"})
        assert outcome.status is Status.UNANSWERED
        refused = workspace.decide("a", "shell_exec", {"command": "npm run build x"})
        assert refused.model_message is not None
        assert "there is `npm run build` alone: write these words first" in refused.model_message


def test_a_disabled_shell_is_not_there_and_says_why(opened: Open) -> None:
    workspace = opened("disabled")
    assert workspace.gate.view("a").listings == () or "shell_exec" not in str(workspace.gate.view("a").listings)
    decision = workspace.decide("a", "shell_exec", {"command": "ls"})
    assert decision.verdict is Verdict.DENY
    assert "`[workspace] shell`" in decision.reason
    assert any("`[workspace] shell` has no backend" in problem.message for problem in workspace.problems)


async def test_output_is_bounded_and_says_what_was_left_out(opened: Open) -> None:
    for backend in ("host", "session"):
        found = await data(opened(backend), "head -c 1000000 /dev/zero")
        assert len(found["output"]) == shells.MAX_OUTPUT_BYTES
        assert found["left_out_bytes"] == 1_000_000 - shells.MAX_OUTPUT_BYTES


@pytest.mark.parametrize("backend", ["host", "session"])
async def test_what_is_cancelled_or_too_slow_leaves_no_process(opened: Open, backend: str) -> None:
    workspace = opened(backend, more="")
    noted = workspace.folder / "shared/pid"
    command = f"echo $$ > {noted}; sleep 100 & sleep 100"
    task = asyncio.create_task(call(workspace, command))
    pid = await written(noted)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for one in (pid, *map(int, children)):
        assert await ended(one)
    assert (await data(workspace, "echo again"))["output"] == "again\n"


async def test_the_time_of_the_policy_ends_a_command(opened: Open) -> None:
    workspace = opened(more="[tools.shell_exec]\ntimeout = 0.5\n")
    outcome = await call(workspace, "sleep 100")
    assert outcome.status is Status.TIMED_OUT


async def test_nothing_in_the_background_outlives_a_command_of_the_host(opened: Open) -> None:
    workspace = opened()
    found = await data(workspace, "sleep 100 & echo $!")
    assert await ended(int(found["output"]))


async def test_a_session_keeps_folder_and_variables_for_itself_alone(opened: Open) -> None:
    workspace = opened("session")
    (workspace.folder / "shared/sub").mkdir()
    await data(workspace, "cd sub; export x=mine; y=too", session="one")
    assert (await data(workspace, 'pwd; echo "$x $y"', session="one"))["output"].endswith("/sub\nmine too\n")
    for agent, session in (("a", "two"), ("b", "three")):
        found = await data(workspace, 'pwd; echo "<$x$y>"', agent, session)
        assert found["output"] == f"{workspace.folder}/shared\n<>\n"
        assert (await data(workspace, "bash -c 'echo \"<$x>\"'", agent, session))["output"] == "<>\n"


async def test_a_session_that_died_begins_anew_and_says_so(opened: Open) -> None:
    workspace = opened("session")
    await data(workspace, "x=1")
    found = await data(workspace, "echo bye; exit 7")
    assert (found["exit_code"], found["output"]) == (7, "bye\n")
    assert "begins a new one" in found["session"]
    found = await data(workspace, 'echo "<$x>"')
    assert (found["output"], found["session"]) == ("<>\n", "begins with this command")
    assert "session" not in await data(workspace, "true")
    assert (await data(workspace, "kill -9 $$"))["exit_code"] == -signal.SIGKILL
    assert (await data(workspace, "echo here"))["output"] == "here\n"


async def test_a_program_cannot_speak_for_its_session(opened: Open) -> None:
    """No stream of the sidecar's is open in what it starts, and what looks like its answer is output."""
    workspace = opened("session")
    found = await data(
        workspace,
        "bash -c 'for n in 3 4 5 6 7 8 9 10 11 255; do echo \"0 /x\" >&$n; done' 2> /dev/null; ls -l /proc/self/fd",
    )
    assert "socket" not in found["output"]
    assert found["folder"] == f"{workspace.folder}/shared"
    assert (await data(workspace, "echo 0 /etc; true"))["output"] == "0 /etc\n"


@pytest.mark.parametrize("ends", ["session", "workspace"])
async def test_a_shell_ends_with_its_session_and_with_the_workspace(opened: Open, ends: str) -> None:
    workspace = opened("session")
    pid = int((await data(workspace, "sleep 100 & echo $!"))["output"])
    shell = int((await data(workspace, "echo $$"))["output"])
    assert is_running(pid)
    await workspace.end_shells("another")
    assert is_running(pid)
    if ends == "session":
        await workspace.end_shells(workspace.session("a").session_id)
    else:
        workspace.close()
    assert await ended(shell)
    assert await ended(pid)


async def test_a_session_ends_with_the_program_however_that_ends(opened: Open) -> None:
    folder = opened("session").folder
    keys, state = folder.parent / "keys", folder.parent / "state"
    program = f"""
        import asyncio, os
        from pathlib import Path
        from gatewright.workspace import Workspace

        async def main():
            workspace = Workspace.open({str(folder)!r}, keys=Path({str(keys)!r}), state=Path({str(state)!r}))
            command = {{"command": "echo $$ > {folder}/shared/pid; sleep 100 & true"}}
            print(await workspace.call("a", "shell_exec", command), flush=True)
            os.kill(os.getpid(), 9)

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert await ended(int((folder / "shared/pid").read_text()))


async def test_calls_of_one_session_wait_for_each_other(opened: Open) -> None:
    workspace = opened("session")
    found = await asyncio.gather(*(data(workspace, f"read x; sleep 0.1; echo {n}; cd .") for n in range(4)))
    assert [one["output"] for one in found] == ["0\n", "1\n", "2\n", "3\n"]


async def test_limits_that_are_granted_hold_for_what_is_started(opened: Open) -> None:
    workspace = opened(capabilities='{ Exec = { cpu_limit = "1s", mem_limit = "200 MiB" } }')
    found = await data(workspace, "bash -c 'ulimit -t; ulimit -v; while :; do :; done'")
    assert found["output"].splitlines()[:2] == ["1", str(200 * 1024)]
    assert found["exit_code"] != 0


async def test_the_disposable_copy_decides_and_does_not_execute(opened: Open) -> None:
    workspace = opened()
    sandbox = workspace.sandbox()
    try:
        assert workspace.is_executable("shell_exec")
        assert not sandbox.workspace.is_executable("shell_exec")
        assert sandbox.workspace.decide("a", "shell_exec", {"command": "ls"}).verdict is Verdict.ALLOW
        assert (await call(sandbox.workspace, "ls")).status is Status.FAILED
    finally:
        sandbox.close()


def test_the_self_check_finds_no_difference(opened: Open) -> None:
    assert opened().selfcheck().differences == ()


def test_editing_the_shell_brings_the_tool_and_takes_it_away(opened: Open) -> None:
    workspace = opened()
    path = workspace.folder / "policy.toml"
    text = path.read_text()
    path.write_text(text.replace('backend = "host"', 'backend = "disabled"'))
    workspace.reload()
    assert workspace.decide("a", "shell_exec", {"command": "ls"}).verdict is Verdict.DENY
    path.write_text(text.replace('"ls", ', ""))
    workspace.reload()
    assert workspace.decide("a", "shell_exec", {"command": "ls"}).code == "shell-not-allowed"
    assert workspace.decide("a", "shell_exec", {"command": "pwd"}).verdict is Verdict.ALLOW
