"""Policies made from another program's files: the settings of Claude Code, an agent's file of Pattern."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gatewright.adapters.claude_settings import Migrated, read_claude_settings, untold_limits
from gatewright.base.errors import WorkspaceError
from gatewright.policy.document import Dialect
from gatewright.policyfile import render_policy
from gatewright.workspace.beginning import SECRETS, secret_rules
from gatewright.workspace.client_file import content_of
from gatewright.workspace.workspace import Workspace

SETTINGS_FOLDER = ".claude"


def migrate(files: Sequence[Path], *, agent_id: str, project: Path | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the text of a policy that is at most as open as ``files``, and notes on the parts that it lacks.

    ``files``: settings of Claude Code (``.json``) that hold together, or one file of Pattern (``.toml``). ``project``:
    the folder that the settings are for; else the one around their folder ``.claude``. Raises WorkspaceError,
    PolicyInvalid.
    """
    kinds = {file.suffix.casefold() for file in files}
    if kinds == {".toml"} and len(files) == 1:
        found = _pattern(files[0])
    elif kinds == {".json"}:
        named = (project or _project_of(files[0])).absolute()
        folder = named.resolve()
        texts: dict[bool, list[str]] = {True: [], False: []}
        for file in files:
            text = _text(file)
            limits = tuple(untold_limits(text))
            if limits:
                told = "; ".join(limits)
                raise WorkspaceError(f"`{file}` says more than its rules, and would be more open here: {told}")
            texts[_project_of(file).resolve() == folder].append(text)
        found = _without_secrets(
            read_claude_settings(
                texts[True],
                elsewhere=texts[False],
                agent_id=agent_id,
                project=folder.as_posix(),
                home=Path.home().as_posix(),
                spellings=(named.as_posix(), *_below_home(folder)),
                real=os.path.realpath,
            )
        )
    else:
        raise WorkspaceError("give settings of Claude Code (`.json`), or one file of Pattern (`.toml`)")
    return render_policy(found.policy), found.notes


def _without_secrets(found: Migrated) -> Migrated:
    """Put the rules that hide secrets before all others, since the first matching pattern decides."""
    sources = tuple(
        replace(source, permission_rules=(*secret_rules(), *source.permission_rules)) for source in found.policy.sources
    )
    note = f"reading what looks like a secret ({', '.join(f'`{pattern}`' for pattern in SECRETS)}): it is hidden here"
    return Migrated(replace(found.policy, sources=sources), (*found.notes, note))


def _below_home(folder: Path) -> tuple[str, ...]:
    """Return the folder as a path below the home folder, possibly through a link."""
    home = Path.home()
    try:
        return ((home / folder.relative_to(home.resolve())).as_posix(),)
    except ValueError:
        return ()


def _project_of(file: Path) -> Path:
    folder = file.absolute().parent
    return folder.parent if folder.name == SETTINGS_FOLDER else folder


def _text(file: Path) -> str:
    try:
        return content_of(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkspaceError(f"cannot read `{file}`: it is not UTF-8") from None


def _pattern(file: Path) -> Migrated:
    """Read a file of Pattern, which is valid already, for our own dialect."""
    with Workspace.open(file) as workspace:
        if workspace.policy.dialect is not Dialect.PATTERN:
            raise WorkspaceError(f"`{file}` is a policy of this program already")
        notes = tuple(problem.message for problem in workspace.current_problems())
        return Migrated(replace(workspace.policy, dialect=Dialect.GATEWRIGHT), notes)
