"""New workspaces from bundled templates. It overwrites nothing."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree, ignore_patterns

from gatewright.base.errors import WorkspaceError
from gatewright.workspace.location import POLICY_NAME

_EMPTY = """\
gatewright = 1

[defaults]
unlisted_tools = "deny"
"""


def template_names() -> tuple[str, ...]:
    """The templates that ``create_workspace`` knows."""
    return ("demo", "empty")


def create_workspace(folder: Path, template: str) -> Path:
    """Write the template into ``folder`` (made when missing); the path of its policy. Raises WorkspaceError."""
    policy_path = folder / POLICY_NAME
    try:
        if policy_path.exists():
            raise WorkspaceError(f"`{policy_path}` exists already; nothing was written")
        if template == "demo":
            _refuse_clash(folder)
            with as_file(files("gatewright_resources") / "demo") as demo:
                copytree(demo, folder, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", "__init__.py"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            policy_path.write_text(_EMPTY, encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{folder}`: {error.strerror or error}") from None
    return policy_path


def write_demo(folder: Path) -> Path:
    """The demo workspace in ``folder``: written at first, left as it is when it is there already."""
    policy_path = folder / POLICY_NAME
    return policy_path if policy_path.is_file() else create_workspace(folder, "demo")


def _refuse_clash(folder: Path) -> None:
    if (folder / "workspace").exists():
        raise WorkspaceError(f"`{folder / 'workspace'}` exists already; nothing was written")
