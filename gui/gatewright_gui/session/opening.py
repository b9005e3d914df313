"""How the app comes to a workspace: opens one, writes the demo. It shows nothing and asks nothing."""

from pathlib import Path

from platformdirs import user_data_path

from gatewright.workspace.api import Workspace, audit_log, write_demo

__all__ = ["POLICY_NAME", "audit_log", "demo_folder", "demo_policy", "open_workspace", "write_demo"]

POLICY_NAME = "policy.toml"


def open_workspace(path: Path, trust: bool) -> Workspace:
    """Satisfies `Opener`."""
    return Workspace.open(path, trust=trust)


def demo_folder() -> Path:
    """Where the demo of this user lies."""
    return user_data_path("gatewright") / "demo"


def demo_policy() -> Path:
    """The policy of the user's own copy of the bundled demo, written at the first time. Raises WorkspaceError."""
    return write_demo(demo_folder())
