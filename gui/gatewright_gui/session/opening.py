"""How the app comes to a workspace: opens one, makes a new one, writes the demo. It shows nothing and asks nothing."""

from collections.abc import Callable, Iterable
from pathlib import Path

from platformdirs import user_data_path

from gatewright.workspace.api import (
    Problem,
    Tool,
    Workspace,
    WorkspaceImage,
    audit_log,
    example_names,
    frozen,
    text_problems,
    write_demo,
)

__all__ = [
    "POLICY_NAME",
    "Opener",
    "audit_log",
    "demo_folder",
    "demo_policy",
    "example_names",
    "secret_patterns",
    "write_demo",
]

POLICY_NAME = "policy.toml"


@frozen
class Opener:
    """Opens workspaces with the tools of a program. ``tools`` is called in the worker process too, so it has to be
    something that can be pickled: a function of a module, or a `partial` of one.
    """

    tools: Callable[[], Iterable[Tool]] = tuple

    def open(self, path: Path, *, trust: bool = False) -> Workspace:
        """``trust``: trust what reaches outside the workspace. Raises WorkspaceError or PolicyInvalid."""
        return Workspace.open(path, trust=trust, tools=self.tools())

    def open_image(self, image: WorkspaceImage) -> Workspace:
        """The workspace that the image was made of, in another process. Raises PolicyInvalid."""
        return Workspace.of_image(image, tools=self.tools())

    def problems_of(self, path: Path, text: str) -> tuple[Problem, ...]:
        """The problems of a text for a policy file that is not open. Takes time."""
        return text_problems(path, text, self.tools())


def demo_folder() -> Path:
    """The folder where the demo of this user lies."""
    return user_data_path("gatewright") / "demo"


def unsaved_folder() -> Path:
    """The folder where unsaved edits of this user are kept until they are saved."""
    return user_data_path("gatewright") / "unsaved"


def demo_policy() -> Path:
    """The policy of the user's own copy of the bundled demo, written at the first time. Raises WorkspaceError."""
    return write_demo(demo_folder())


def secret_patterns() -> tuple[str, ...]:
    """Patterns of what a new workspace hides from every agent."""
    from gatewright.workspace.api import SECRETS  # what begins a workspace is not for the first painting

    return SECRETS
