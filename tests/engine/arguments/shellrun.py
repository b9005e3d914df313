"""Real bash in a folder of its own, where every program is a script that notes its name: what a command starts."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from gatewright.arguments.shell import Locate, ShellCommand, ShellRules, parse_command
from gatewright.arguments.shell_word import CommandRefused

_NAMES = (
    "ls cat id whoami rm sh bash env xargs find git tar sed awk python perl sort head tail grep nc curl wget a b x f if"
)
PROGRAMS = tuple(_NAMES.split())
_RECORDER = '#!/bin/sh\necho "${0##*/}" >>"$GATEWRIGHT_LOG"\n[ "${0##*/}" = ls ] && echo id\nexit 0\n'


class ShellRun:
    """A folder, programs that note their names, and bash to run commands with them."""

    def __init__(self, folder: Path, recorder: str = _RECORDER) -> None:
        self.programs, self.folder, self.log = folder / "bin", folder / "here", folder / "log"
        self.programs.mkdir()
        self.folder.mkdir()
        for name in PROGRAMS:
            (self.programs / name).write_text(recorder)
            (self.programs / name).chmod(0o700)

    def locate(self, target: str, writes: bool) -> str | CommandRefused:
        """Redirects lead to the folder."""
        if target.startswith("/") or ".." in target:
            return CommandRefused("outside", "outside", "outside")
        return str(self.folder / target)

    def started(self, command: str, timeout_s: float = 5.0) -> tuple[list[str], str]:
        """Return the programs that a command starts, and its output."""
        self.log.write_text("")
        limits = "ulimit -t 2 -f 1000 -v 1000000 2>/dev/null; enable -n printf test '['; "
        environment = {"PATH": str(self.programs), "GATEWRIGHT_LOG": str(self.log)}
        process = subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc", "-c", limits + command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            out = process.communicate(timeout=timeout_s)[0]
        except subprocess.TimeoutExpired:
            out = b""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return self.log.read_text().split(), out.decode(errors="replace")


def accepted(command: str, rules: ShellRules, locate: Locate) -> ShellCommand | None:
    """Return the command if it may run."""
    found = parse_command(command, rules, locate)
    return found if isinstance(found, ShellCommand) else None
