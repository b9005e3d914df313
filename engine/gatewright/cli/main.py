"""The command ``gatewright``: how words find their command or the desktop app, errors as messages and exit codes.

The app starts past the table of commands: all that reads options and writes reports stays unloaded.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from gatewright.base.errors import GatewrightError, NotSupported, PolicyInvalid, WorkspaceError, near_hint


def launch(workspace: Path | None = None) -> int:
    """Open the app and stay until it is closed; its exit code.

    Raises NotSupported where it cannot start, WorkspaceError where the workspace is not there.
    """
    if workspace is not None:
        from gatewright.sources.ground import policy_path_of

        policy_path_of(workspace)
    return run_app("gui", workspace)


def run_app(name: str, *arguments: Path | None) -> int:
    """Start that app, as the installation declares it, and stay until it ends; its exit code. Raises NotSupported."""
    for point in entry_points(group="gatewright.apps", name=name):
        try:
            return cast("Callable[..., int]", point.load())(*arguments)
        except ImportError as error:
            raise NotSupported(f"the desktop app cannot start: {error} (pip install 'gatewright[gui]')") from error
    raise NotSupported("the desktop app is not installed (pip install 'gatewright[gui]')")


NAMES = frozenset(
    {
        "approvals",
        "audit",
        "block",
        "call",
        "catalog",
        "check",
        "confinement",
        "context",
        "decide",
        "export",
        "filter",
        "go",
        "gui",
        "import",
        "inbox",
        "init",
        "memory",
        "operations",
        "permission",
        "policy-schema",
        "preview",
        "rules",
        "run",
        "selfcheck",
        "serve",
        "stop",
        "token",
        "tour",
    }
)

COMPLETION = "_GATEWRIGHT_COMPLETE"
"""Variable by which a shell's completion asks for next words; its words come in variables too."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; it never raises."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except KeyboardInterrupt:
        from gatewright.cli.output import Exit

        return Exit.INTERRUPTED
    except OSError as error:
        return _refuse(f"gatewright: {error.strerror or error}" + (f": `{error.filename}`" if error.filename else ""))
    except Exception as error:
        if os.environ.get("GATEWRIGHT_DEBUG"):
            raise
        what = f"internal error, {type(error).__name__}: {error}"
        return _refuse(f"gatewright: {what} (GATEWRIGHT_DEBUG=1 shows where)", status=1)


def _run(words: list[str]) -> int:
    try:
        if COMPLETION in os.environ:
            from gatewright.cli.table import complete

            return complete(COMPLETION)
        words = _with_command(words)
        is_plain = len(words) <= 2 and not any(word.startswith("-") for word in words[1:])
        if words[0] == "gui" and is_plain:  # with nothing that has to be read
            return launch(*map(Path, words[1:]))
        from gatewright.cli.table import run

        return run(words)
    except PolicyInvalid as error:
        from gatewright.cli.output import print_error, print_json

        if "--json" in words:
            print_json({"ok": False, "problems": [problem.to_json() for problem in error.problems]})
        for problem in error.problems:
            print_error(str(problem))
        return 1
    except GatewrightError as error:
        from gatewright.cli.output import exit_of

        return _refuse(f"gatewright: {error}", status=exit_of(error))


def _refuse(text: str, *, status: int = 2) -> int:
    from gatewright.cli.output import print_error

    print_error(text)
    return status


def _with_command(words: list[str]) -> list[str]:
    """Without a command the app starts: ``gatewright`` and ``gatewright WORKSPACE`` mean ``gui``.

    Raises WorkspaceError for a word that is neither a command nor anything on disk.
    """
    if not words:
        return ["gui"]
    if words[0] in NAMES or words[0].startswith("-"):
        return words
    if not Path(words[0]).exists():
        raise WorkspaceError(f"no command and no workspace `{words[0]}`{near_hint(words[0], sorted(NAMES))}")
    return ["gui", *words]


def script() -> None:
    """The console script. What a start reads in stays: nobody looks for garbage in it, a command does from then on.

    The app says itself when garbage is collected.
    """
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it looks through all that is installed
    sys.exit(main())
