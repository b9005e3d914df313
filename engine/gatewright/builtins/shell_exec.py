"""The ``shell_exec`` tool: a command of programs that the policy allows; a port starts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import COUNT, TEXT, answer, fields, success, text_of
from gatewright.builtins.root_file import Input, RootTool
from gatewright.policy.document import ROOT_NAMES, SHELL
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.parameter import CommandParameter


@frozen
class ShellPort:
    """The executor of commands.

    ``run`` returns ``exit_code``, ``output`` and further facts about a canonical command; ``isolation`` says how far it
    is separated from the system, ``obstacle`` why the required separation is impossible.
    """

    run: Callable[[str, ToolExecutionContext], Awaitable[dict[str, JsonValue]]]
    isolation: Callable[[], str]
    obstacle: Callable[[], str]


class ShellExec(Input):
    """What to execute."""

    command: Annotated[
        str,
        CommandParameter(),
        Field(description="The command, in plain shell: programs with `|`, `&&`, `||`, `;` and redirects to files."),
    ]


class ShellExecTool(RootTool):
    """Executes one command. Without a port commands are only decided."""

    name = "shell_exec"
    description = (
        "Executes a shell command in the folder `shared` and answers its exit code and what it wrote. "
        "Only the programs that are allowed here can be started."
    )
    examples = ({"command": "ls -l"},)
    safety_tier = SafetyTier.PRIVILEGED
    side_effects = frozenset(SideEffect) - {SideEffect.DB_READ, SideEffect.DB_WRITE}
    determinism = Determinism.NON_DETERMINISTIC
    required_capabilities = frozenset({"Exec"})  # the files of redirects are judged each by its own kind
    resource_bounds = ResourceBounds(timeout_s=60.0)
    enforces_bounds = True
    leaves_copy = True
    output_schema = answer(
        fields(
            {"exit_code": {"type": ["integer", "null"]}, "output": TEXT},
            {"left_out_bytes": COUNT, "folder": TEXT, "session": TEXT},
        )
    )
    input_model = ShellExec
    needs = (ROOT_NAMES[:1], (SHELL,))

    def __init__(self, shell: ShellPort | None = None) -> None:
        self._shell = shell
        self.is_executable = shell is not None

    @property
    def obstacle(self) -> str:
        """Return the reason why this system cannot confine commands although the policy requires it."""
        return self._shell.obstacle() if self._shell is not None else ""

    @property
    def caveat(self) -> str:
        """Say how far a command is separated from the system."""
        return self._shell.isolation() if self._shell is not None else ""

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Show the person who is asked the command, and how far it is separated from the system."""
        return Assessment(diff=f"executes: {text_of(arguments, 'command')}\n{self.caveat}\n")

    async def run(self, arguments: ShellExec, context: ToolExecutionContext) -> JsonValue:
        """Execute it."""
        if self._shell is None:
            raise ToolFailure(f"`{self.name}` cannot be executed here", code="not-supported")
        data = await self._shell.run(arguments.command, context)
        return success(f"exit code {data['exit_code']}", dict(data))
