"""How the app comes to a workspace: opens one, makes a new one, writes the demo. It shows nothing and asks nothing."""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from platformdirs import user_data_path

from gatewright.workspace.api import (
    GatewrightError,
    Problem,
    Tool,
    Verdict,
    Workspace,
    WorkspaceError,
    WorkspaceImage,
    audit_log,
    example_names,
    frozen,
    text_problems,
    write_demo,
)
from gatewright_gui.qt.language import tr

__all__ = [
    "DEMO_CALL",
    "POLICY_NAME",
    "Opener",
    "StoppedCall",
    "audit_log",
    "demo_folder",
    "demo_policy",
    "example_names",
    "secret_patterns",
    "stop_demo_call",
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
        workspace = Workspace.open(path, trust=trust, tools=self.tools())
        if workspace.is_shared:
            workspace.close()
            raise WorkspaceError(tr("The app does not show a shared state yet: unset GATEWRIGHT_STATE."))
        return workspace

    def open_image(self, image: WorkspaceImage) -> Workspace:
        """The workspace that the image was made of, in another process. Raises PolicyInvalid."""
        return Workspace.of_image(image, tools=self.tools())

    def problems_of(self, path: Path, text: str) -> tuple[Problem, ...]:
        """The problems of a text for a policy file that is not open. Takes time."""
        return text_problems(path, text, self.tools())


def demo_folder() -> Path:
    """The folder where the demo of this user lies."""
    return user_data_path("gatewright") / "demo"


def folder_of_unsaved() -> Path:
    """The folder where unsaved edits of this user are kept until they are saved."""
    return user_data_path("gatewright") / "unsaved"


def demo_policy() -> Path:
    """The policy of the user's own copy of the bundled demo, written at the first time. Raises WorkspaceError."""
    return write_demo(demo_folder())


@frozen
class StoppedCall:
    """A call of the demo that the gate denied. `stages`: the names of those that it passed; `stage`: the one that
    denied it; `is_shown`: the model gets the operation in its schema.
    """

    stages: tuple[str, ...]
    stage: str
    is_shown: bool


DEMO_CALL = ("archivist", "file", "delete", "drafts/report.md")
"""The call that shows what a gate does: agent, tool, operation, path."""


def stop_demo_call() -> StoppedCall | None:
    """Let the gate decide `DEMO_CALL` in a demo of its own, which is gone afterwards; None if there is none.

    Takes up to a second: not for the window's thread.
    """
    from gatewright.workspace.api import STAGES  # the gate is not for the first painting

    agent_id, tool, operation, path = DEMO_CALL
    try:
        with TemporaryDirectory(prefix="gatewright-") as folder:
            policy = write_demo(Path(folder) / "demo")
            with Workspace.open(policy, keys=Path(folder) / "keys") as workspace:
                decision = workspace.decide(agent_id, tool, {"op": operation, "path": path})
                right = workspace.rights(agent_id)[tool]
    except (GatewrightError, OSError):
        return None
    if decision.verdict is not Verdict.DENY:
        return None
    order = [stage.name for stage in STAGES]
    passed = tuple(order[: order.index(decision.stage)])
    return StoppedCall(passed, decision.stage, operation in right.shown)


def secret_patterns() -> tuple[str, ...]:
    """Patterns of what a new workspace hides from every agent."""
    from gatewright.workspace.api import SECRETS  # what begins a workspace is not for the first painting

    return SECRETS
