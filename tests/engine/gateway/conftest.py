"""A workspace to serve, and the process that serves it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import pytest

from gatewright.workspace import Workspace, audit_log

POLICY = """\
gatewright = 1

[agents.reader]
tools = ["file"]
user_id = "ann"

[[agents.reader.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "list", "append"] }

[[agents.reader.tool_rules]]
tool_name = "file"
rule_type = { MaxCalls = 3 }
conditions = ["operation:read"]

[agents.writer]
tools = ["file", "block"]
approvals = { "file.append" = "ask" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw client", "version": "7"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@dataclass(frozen=True)
class Place:
    """A workspace on disk. ``command``: how one of its agents is served; ``environment``: what that needs."""

    folder: Path

    @property
    def policy(self) -> Path:
        return self.folder / "policy.toml"

    @property
    def keys(self) -> Path:
        return Path(os.environ["GATEWRIGHT_KEYS"])

    @property
    def environment(self) -> dict[str, str]:
        return {name: os.environ[name] for name in ("PATH", "HOME", "GATEWRIGHT_KEYS")}

    def arguments(self, *words: str) -> list[str]:
        return ["-c", "from gatewright.cli.main import script; script()", *words]

    def edit(self, old: str, new: str) -> None:
        text = self.policy.read_text("utf-8")
        assert old in text
        self.policy.write_text(text.replace(old, new), "utf-8")

    def token(self, agent: str, **more: Any) -> str:
        """A token for the agent, as `token add` makes it."""
        with Workspace.open(self.policy) as workspace:
            return workspace.tokens.add(agent, **more)[1]

    def rows(self, kind: str = "") -> list[dict[str, Any]]:
        log = audit_log(self.policy)
        try:
            assert log.verify().is_sound
            rows: list[dict[str, Any]] = [json.loads(json.dumps(row.to_json())) for row in log.rows()]
        finally:
            log.close()
        return [row for row in rows if not kind or row["kind"] == kind]


@dataclass
class Served:
    """A process that serves, and a client that speaks to it line by line."""

    process: subprocess.Popen[bytes]
    seen: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended"
        self.seen.append(json.loads(line))
        return self.seen[-1]

    def answer(self, request_id: object) -> dict[str, Any]:
        while True:
            message = self.receive()
            if message.get("id") == request_id and "method" not in message:
                return message

    def start(self) -> None:
        self.send(INITIALIZE)
        self.answer("hello")
        self.send(INITIALIZED)

    def ask(self, request_id: object, method: str, **params: Any) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return self.answer(request_id)

    def end(self) -> tuple[int, str]:
        """Close its input and wait: the exit status, and what it wrote to standard error."""
        _, errors = self.process.communicate()
        return self.process.returncode, errors.decode()


Serve = Callable[..., Served]


class Gate:
    """A process that serves over HTTP. ``lines``: what it tells the operator; ``url``: where it is."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._is_over = False
        self._news = Condition()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.told("serving ").rpartition(" ")[2]

    def told(self, part: str) -> str:
        """The first line that holds ``part``, waited for as long as the process can tell one."""
        with self._news:
            self._news.wait_for(lambda: self._is_over or any(part in line for line in self.lines))
            found = [line for line in self.lines if part in line]
            assert found, self.lines
            return found[0]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        self._reader.join()
        return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.lines.append(line.decode().rstrip())
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()


Listen = Callable[..., Gate]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("hello\n", "utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, "utf-8")
    return Place(tmp_path)


@pytest.fixture
def serve(place: Place) -> Iterator[Serve]:
    started: list[subprocess.Popen[bytes]] = []

    def start(agent: str = "reader", *words: str) -> Served:
        command = [sys.executable, *place.arguments("serve", str(place.policy), "--agent", agent, *words)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=place.environment)
        started.append(process)
        return Served(process)

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


@contextmanager
def served_over_http(place: Place, *words: str) -> Generator[Gate]:
    """A process that serves the place over HTTP, killed afterwards."""
    command = [
        sys.executable,
        *place.arguments("serve", str(place.policy), "--transport", "http", "--port", "0", *words),
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=place.environment)
    try:
        yield Gate(process)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture
def listen(place: Place) -> Iterator[Listen]:
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(served_over_http(place, *words))
