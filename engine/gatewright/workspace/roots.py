"""The roots of a workspace: their folders, what is wrong with them, and the tools that come and go with them.

It reads no policy text and decides no call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import SchemaError
from gatewright.base.problem import Address, Place, Problem, Severity, Subject
from gatewright.builtins import MessagePort, RootTool, SendMessageTool, ShellExecTool, ShellPort, root_tools, why_absent
from gatewright.policy.document import Policy, Roots
from gatewright.policy.right import ToolFacts
from gatewright.policyfile.names import Rooted
from gatewright.tools import Tool
from gatewright.tools.parameter import FileParameter
from gatewright.workspace.attachment import folder_problem
from gatewright.workspace.catalog import RegisteredTools
from gatewright.workspace.location import is_inside, resolved

if TYPE_CHECKING:
    from gatewright.tools import ToolRegistry
    from gatewright.workspace.trust import TrustRecords

Key = tuple[str, int]


def root_folders(roots: Roots, folder: Path) -> dict[str, Path]:
    """The real folder of each root."""
    return {name: resolved(written, folder) for name, written in roots.folders.items()}


def rooted() -> tuple[Rooted, ...]:
    """What policies may name where the roots are there."""
    return tuple(Rooted(tool.facts(), tool.needs) for tool in root_tools())


def declare_rooted(facts: ToolFacts, field: str | None, operations: tuple[str, ...] | None) -> ToolFacts:
    """The facts of one of these tools read with operations that a policy declares. Raises SchemaError."""
    tool = next((tool for tool in root_tools() if (tool.name, tool.major) == (facts.name, facts.major)), None)
    if tool is None:
        raise SchemaError(f"the schema of `{facts.name}` is not at hand")
    return tool.declared(field, operations).facts()


def absences() -> dict[str, str]:
    """Why each of the tools may not be there."""
    return {tool.name: why_absent(tool.name, tool.needs) for tool in root_tools()}


@cache
def roots_by_tool() -> Mapping[str, tuple[str, ...]]:
    """The roots that each of these tools takes paths in."""
    return {
        tool.name: tuple(dict.fromkeys(root for marker in file_markers(tool) for root in marker.roots))
        for tool in root_tools()
    }


def file_markers(tool: RootTool) -> list[FileParameter]:
    """What its parameters say of the files that they name."""
    return [mark.marker for one in tool.parameters() for mark in one.marks if isinstance(mark.marker, FileParameter)]


class RootTools:
    """The tools that need something of ``[workspace]``, in a registry. One of a program or a catalog with the same name
    comes before ours. ``shell`` and ``messages``: what executes commands, what sends messages.
    """

    def __init__(self, registry: ToolRegistry, shell: ShellPort | None, messages: MessagePort | None) -> None:
        self._registered, self._messages = RegisteredTools(registry), messages
        self._tools = tuple(ShellExecTool(shell) if tool.name == ShellExecTool.name else tool for tool in root_tools())
        self._there: dict[Key, RootTool] = {}
        self._sender: tuple[object, RootTool] = (), SendMessageTool()

    def follow(self, policy: Policy, taken: Collection[Tool], change: Callable[[], None]) -> None:
        """Have exactly the tools registered that the policy provides for; ``change`` registers ``taken`` meanwhile."""
        names = {(tool.name, tool.major) for tool in taken}
        reached = policy.endpoints, policy.recipients
        if self._sender[0] != reached:
            self._sender = reached, SendMessageTool(policy, self._messages)
        sender, provided, before = self._sender[1], policy.provides, self._there
        tools = [sender if isinstance(tool, SendMessageTool) else tool for tool in self._tools]
        self._there = {
            key: tool for tool in tools if (key := (tool.name, tool.major)) not in names and tool.is_there(provided)
        }
        self._registered.follow(tool for key, tool in before.items() if self._there.get(key) is tool)
        change()
        self._registered.follow(self._there.values())


def root_problems(
    roots: Roots,
    policy_path: Path,
    records: TrustRecords,
    places: Callable[[Address], Place | None],
    *,
    trust: bool,
) -> tuple[Problem, ...]:
    """Errors for folders that lie in each other, or outside and not trusted; warnings for missing ones."""
    folders, found = root_folders(roots, policy_path.parent), list[Problem]()
    before: dict[str, Path] = {}
    for name, folder in folders.items():
        # two may be one folder on disk, or one in the other, through links
        other = next((one for one, held in before.items() if is_inside(folder, held) or is_inside(held, folder)), None)
        before[name] = folder
        if other is not None:
            text = f"the roots `{other}` and `{name}` may not lie in each other: `{before[other]}` and `{folder}`"
            problem = Severity.ERROR, "roots-overlap", text
        else:
            problem = folder_problem("root", name, roots.folders[name], folder, policy_path, records, trust=trust)
        if problem is not None:
            severity, code, message = problem
            address: Address = ("workspace", "roots", name)
            found.append(Problem(severity, code, message, places(address), subject=Subject(address)))
    return tuple(found)
