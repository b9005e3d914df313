"""The command ``gatewright``: finds the command or the app that the words mean; turns errors into messages and exit
codes.

The app starts without the table of commands, so that nothing about options and reports is loaded.
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
    """Open the app, stay until it is closed, and return its exit code.

    Raises NotSupported if it cannot start, WorkspaceError if the workspace does not exist.
    """
    if workspace is not None:
        from gatewright.sources.ground import policy_path_of

        policy_path_of(workspace)
    return run_app("gui", workspace)


def run_app(name: str, *arguments: Path | None) -> int:
    """Start that app, as the installation declares it, stay until it ends, and return its exit code.

    Raises NotSupported.
    """
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
        "hook",
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
        "state",
        "stop",
        "token",
        "tour",
    }
)

COMPLETION = "_GATEWRIGHT_COMPLETE"
"""The variable by which a shell's completion asks for next words; the words so far come in variables too."""


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
        if words[0] == "gui" and is_plain:  # in which nothing has to be read
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
    """Add the command to words without one: ``gatewright`` and ``gatewright WORKSPACE`` mean ``gui``.

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
    """The console script.

    It turns garbage collection off, since modules that a start loads stay; a command turns it on again, and the app
    decides itself.
    """
    gc.disable()
    # else the search goes through everything that is installed
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.exit(main())
