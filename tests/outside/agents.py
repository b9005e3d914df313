"""How each coding agent is started without a person, with a home of its own and a model on loopback."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.outside.models import Call
from tests.outside.programs import PROGRAMS

LIMIT_S = 240.0
"""For one run of a program, on a busy machine."""


@dataclass(frozen=True)
class Room:
    """The folders of one run: the home of the program's user and the project that it works in."""

    home: Path
    project: Path
    temporary: Path

    @staticmethod
    def make(top: Path) -> "Room":
        """Make them below a folder; the project is a repository of its own."""
        room = Room(top / "home", top / "project", top / "tmp")
        for folder in (room.home, room.project, room.temporary):
            folder.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", room.project], check=True)
        return room


@dataclass(frozen=True)
class Ended:
    """A run that is over."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Agent:
    """A coding agent that is started with one prompt and ends by itself.

    ``arguments``: of its command. ``environ``: beside that of a bare user; ``{url}`` stands for the model's address in
    both. ``goes_on``: the words in the place of ``{again}`` by which it goes on with its last conversation. ``files``:
    its settings, below the home.
    """

    host: str
    arguments: tuple[str, ...]
    environ: Mapping[str, str]
    goes_on: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict[str, str])

    def prepare(self, room: Room) -> None:
        """Write the settings of the program; its hooks come on top."""
        for name, text in self.files.items():
            file = room.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def run(self, room: Room, url: str, *, goes_on: bool = False, environ: Mapping[str, str] | None = None) -> Ended:
        """Run the program until it ends. Raises TimeoutExpired, after having ended it and what it started."""
        command = [*PROGRAMS[self.host].command]
        for word in self.arguments:
            command += self.goes_on * goes_on if word == "{again}" else (word.replace("{url}", url),)
        surroundings = {
            "HOME": str(room.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TMPDIR": str(room.temporary),
            **NOWHERE,
            **{name: value.replace("{url}", url) for name, value in self.environ.items()},
            **(environ or {}),
        }
        process = subprocess.Popen(
            command,
            cwd=room.project,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            said, errors = process.communicate(timeout=LIMIT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return Ended(process.returncode, said, errors)

    def shell(self, command: str) -> Call:
        """Call the tool that runs a command."""
        name, argument, more = _SHELLS[self.host]
        return Call(name, {argument: command, **more})

    def write(self, path: Path, text: str) -> Call:
        """Call the tool that makes a file."""
        match self.host:
            case "claude-code":
                return Call("Write", {"file_path": str(path), "content": text})
            case "codex":
                lines = "".join(f"+{line}\n" for line in text.splitlines())
                return Call("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
            case "gemini-cli":
                return Call("write_file", {"file_path": str(path), "content": text})
            case "opencode":
                return Call("write", {"filePath": str(path), "content": text})
            case _:
                return Call("create", {"path": str(path), "file_text": text})


NOWHERE = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
    "npm_config_offline": "true",
}
"""Surroundings in which a program reaches nothing but this machine: it sends nothing home and fetches no update."""

_SHELLS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "claude-code": ("Bash", "command", {}),
    "codex": ("exec_command", "cmd", {}),
    "gemini-cli": ("run_shell_command", "command", {}),
    "opencode": ("bash", "command", {"description": "go"}),
    "copilot": ("bash", "command", {"description": "go"}),
}

_CODEX = """model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.loopback]
name = "loopback"
wire_api = "responses"
env_key = "MODEL_KEY"

[analytics]
enabled = false

[otel]
exporter = "none"
"""

_OPENCODE = {
    "$schema": "https://opencode.ai/config.json",
    "autoupdate": False,
    "share": "disabled",
    "model": "loopback/any",
    "provider": {
        "loopback": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{env:MODEL_URL}", "apiKey": "x"},
            "models": {"any": {"name": "any", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}},
        }
    },
}

AGENTS = {
    agent.host: agent
    for agent in (
        Agent(
            "claude-code",
            (
                "-p",
                "go",
                "--output-format",
                "json",
                "--max-turns",
                "400",
                "--permission-mode",
                "bypassPermissions",
                "{again}",
            ),
            {
                "IS_SANDBOX": "1",
                "ANTHROPIC_BASE_URL": "{url}",
                "ANTHROPIC_API_KEY": "x",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            },
            ("--continue",),
        ),
        Agent(
            "codex",
            (
                "exec",
                "{again}",
                "--json",
                "--model",
                "gpt-5.5",
                "--dangerously-bypass-hook-trust",
                "-c",
                'model_providers.loopback.base_url="{url}/v1"',
                "go",
            ),
            {"MODEL_KEY": "x"},
            ("resume", "--last"),
            {".codex/config.toml": _CODEX},
        ),
        Agent(
            "gemini-cli",
            ("--approval-mode", "yolo", "--model", "gemini-2.5-flash", "{again}", "--prompt", "go"),
            {
                "GOOGLE_GEMINI_BASE_URL": "{url}",
                "GEMINI_API_KEY": "x",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_TELEMETRY_ENABLED": "false",
            },
            ("--resume", "latest"),
            {
                ".gemini/settings.json": json.dumps(
                    {
                        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
                        "privacy": {"usageStatisticsEnabled": False},
                        "security": {"auth": {"selectedType": "gemini-api-key"}},
                    }
                )
            },
        ),
        Agent(
            "opencode",
            ("run", "{again}", "--print-logs", "go"),
            {
                "MODEL_URL": "{url}/v1",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
            },
            ("--continue",),
            {".config/opencode/opencode.json": json.dumps(_OPENCODE)},
        ),
        Agent(
            "copilot",
            ("--allow-all-tools", "--allow-all-paths", "--no-color", "{again}", "-p", "go"),
            {
                "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
                "COPILOT_PROVIDER_API_KEY": "x",
                "COPILOT_MODEL": "gpt-4.1",
                "COPILOT_OFFLINE": "true",
                "COPILOT_AUTO_UPDATE": "false",
            },
            ("--continue",),
        ),
    )
}
