"""A policy, a coding agent with the gate in its hooks, and what both have left behind once the program has ended."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewright.adapters.hook_socket import KEY_FILE, HookPlace
from tests.outside import inside
from tests.outside.agents import LIMIT_S, Agent, Ended, Room
from tests.outside.models import COUNTS, Call, Model, Turn, serving
from tests.outside.programs import FOLDER

POLICY = """
[workspace.shell]
allow = ["echo", "ls", "touch"]

[[sources]]
id = "project"
type = "file"
base_path = "{project}"
default_permission = "read_write"

[[sources.permission_rules]]
pattern = "closed/**"
permission = "none"

[agents.allowed]
tools = {tools}
sources = ["project"]
capabilities = ["Exec", {{ FsRead = {{ prefixes = ["{project}"] }} }}, {{ FsWrite = {{ prefixes = ["{project}"] }} }}]
approvals = {{ read_only = "allow", side_effecting = "allow", privileged = "allow" }}

[agents.asked]
tools = {tools}
sources = ["project"]
capabilities = ["Exec", {{ FsRead = {{ prefixes = ["{project}"] }} }}, {{ FsWrite = {{ prefixes = ["{project}"] }} }}]
approvals = {{ read_only = "ask", side_effecting = "ask", privileged = "ask" }}

[agents.denied]
tools = []
sources = []
"""
CALLS = 20
COMMAND_S = 240.0


@dataclass(frozen=True)
class Row:
    """A call in the log: its verdict, and the kinds of rows that say how it went on."""

    call_id: str
    tool: str
    verdict: str
    kinds: tuple[str, ...]


class House:
    """One user with a coding agent, perhaps with several, and a policy beside the project."""

    def __init__(self, room: Room, *agents: Agent) -> None:
        self.room, self.agents, self.agent = room, agents, agents[0]
        self.policy = room.home.parent / "policy" / "policy.toml"
        self.run_time = room.home.parent / "run"
        self.policy.parent.mkdir(exist_ok=True)
        self.run_time.mkdir(mode=0o700, exist_ok=True)
        for agent in agents:
            agent.prepare(room)

    @property
    def _tools(self) -> list[str]:
        """Name the tools of `calls`, as the hosts tell them to their hooks, in the words of the policy."""
        calls = [(agent, self._call(agent, number)) for agent in self.agents for number in (0, 1)]
        names = {(agent.host, {"exec_command": "Bash"}.get(call.tool, call.tool)) for agent, call in calls}
        return sorted(f"{host.partition('-')[0]}.{name}" for host, name in names)

    @property
    def environ(self) -> dict[str, str]:
        """The surroundings of this user, for the program and for `gatewright`."""
        return {
            "HOME": str(self.room.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.run_time),
        }

    def gatewright(self, *words: str, code: int | None = 0, limit_s: float = COMMAND_S) -> str:
        """Run the command line as this user, in the project; returns what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "gatewright", *words],
            cwd=self.room.project,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        assert code is None or done.returncode == code, (words, done)
        return done.stdout

    def install(self, agent_id: str, *where: str) -> Path:
        """Put the gate into the hosts' settings of this user, or as ``where`` says; returns the file of the first."""
        self.policy.write_text("gatewright = 1\n")
        for agent in self.agents:
            self.gatewright("catalog", "import", str(self.policy), "--host", agent.host)
        with self.policy.open("a") as file:
            file.write(POLICY.format(project=self.room.project, tools=json.dumps(self._tools)))
        self.gatewright("check", str(self.policy), "--trust")
        words = ("--policy", str(self.policy), "--agent", agent_id, "--yes", *(where or ("--user",)))
        for agent in self.agents:
            self.gatewright("hook", "install", agent.host, *words)
        return Path(self.status()["hook"]["file"])

    def status(self) -> dict[str, Any]:
        """Return what `gatewright hook status` says of the first host."""
        (found,) = json.loads(self.gatewright("hook", "status", self.agent.host, "--json", code=None))
        return found

    def run_in_room(self, agent: Agent, calls: Sequence[Call]) -> dict[str, str]:
        """Run a program with its model under `gatewright run`, by no file of hooks; returns what the model saw."""
        tree = Path(__file__).parents[2]
        places = [word for folder in (tree / "tests", FOLDER) for word in ("--place", f"{folder}=read")]
        given = json.dumps([[call.tool, call.arguments] for call in calls])
        words = [sys.executable, "-P", inside.__file__, str(tree), str(FOLDER), agent.host, given, *agent.arguments]
        said = self.gatewright(*("run", str(self.policy), "--agent", "allowed", *places, "--", *words), limit_s=LIMIT_S)
        results: dict[str, str] = json.loads(said)["results"]
        COUNTS.append(lambda: len(results))
        return results

    def waiting(self) -> list[dict[str, Any]]:
        """Return the questions that wait for an answer."""
        return json.loads(self.gatewright("approvals", "list", str(self.policy), "--json"))["pending"]

    def run(
        self,
        turns: Sequence[Turn],
        before: Callable[[int], None] = lambda _: None,
        *,
        goes_on: bool = False,
        agent: Agent | None = None,
        pause_s: float = 0.0,
    ) -> tuple[Ended, Model]:
        """Run the first program, or that of ``agent``, until it ends; ``goes_on``: in its last conversation."""
        with serving(turns, before, pause_s) as model:
            return (agent or self.agent).run(self.room, model.url, goes_on=goes_on, environ=self.environ), model

    def rows(self) -> list[Row]:
        """Return the calls in the log, oldest first."""
        found: dict[str, Row] = {}
        for line in self.gatewright("audit", "export", str(self.policy)).splitlines():
            row = json.loads(line)
            if call_id := row["call_id"]:
                known = found.get(call_id, Row(call_id, row["tool"], "", ()))
                verdict = row["body"].get("verdict", known.verdict)
                found[call_id] = Row(call_id, known.tool, verdict, (*known.kinds, row["kind"]))
        return list(found.values())

    def calls(self, count: int = CALLS, *, first: int = 0, agent: Agent | None = None) -> list[Call]:
        """Return calls that each leave a mark in the project: files and commands in turn."""
        return [self._call(agent or self.agent, number) for number in range(first, first + count)]

    def _call(self, agent: Agent, number: int) -> Call:
        if number % 2:
            return agent.shell(f"echo done >> mark-{number}")
        return agent.write(self.room.project / f"mark-{number}", "done\n")

    def marks(self) -> dict[str, str]:
        """Return what the calls have left in the project: each file with its text."""
        return {file.name: file.read_text() for file in self.room.project.glob("mark-*")}

    def gates(self) -> list[int]:
        """Return the processes that answer the hooks of this policy."""
        found: list[int] = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"--hooks" in words and os.fsencode(os.path.realpath(self.policy)) in words:
                    found.append(int(folder.name))
        return found

    def place(self) -> HookPlace:
        """Return where the gate of this policy answers, once one has begun."""
        (key,) = self.room.home.rglob(KEY_FILE)
        name = HookPlace.of(self.policy, key.parent).name
        return HookPlace(key.parent, self.run_time / "gatewright", name)

    def end(self) -> None:
        """End the gates of this policy."""
        for process in self.gates():
            os.kill(process, signal.SIGKILL)


@contextmanager
def living(room: Room, *agents: Agent) -> Generator[House]:
    """Make a house, and end its gates afterwards."""
    house = House(room, *agents)
    try:
        yield house
    finally:
        house.end()
