"""What every agent may do with a file or folder by any of its tools, as the gate decides. For the worker process."""

from collections.abc import Generator, Mapping

from gatewright.workspace.api import Verdict, Workspace, frozen, touches
from gatewright_gui.qt.language import mark
from gatewright_gui.session.verdict import verdict_words

GROUPS: Mapping[str, str] = {
    "read": mark("Read"),
    "append": mark("Append"),
    "overwrite": mark("Overwrite"),
    "delete": mark("Delete"),
}
"""What is done to a file, as the columns say it."""


@frozen
class OperationAnswer:
    """The verdict of the gate on an operation of a tool at the file, and why."""

    tool: str
    operation: str
    verdict: Verdict
    why: str

    @property
    def words(self) -> str:
        """For a tooltip: `file.append: ask first, ...`."""
        called = f"{self.tool}.{self.operation}" if self.operation else self.tool
        return f"{called}: {verdict_words(self.verdict)}, {self.why}"


@frozen
class FileAccess:
    """One agent's answers, by what the operations do."""

    agent_id: str
    answers: Mapping[str, tuple[OperationAnswer, ...]]

    def of(self, group: str) -> tuple[OperationAnswer, ...]:
        """The operations of a group."""
        return self.answers.get(group, ())


def file_access(workspace: Workspace, source_id: str, path: str) -> Generator[int, None, tuple[FileAccess, ...]]:
    """Of every agent, in the order of the file. `path`: from the base; of a folder with `/` at its end.

    Yields after each agent how many are done.
    """
    found: list[FileAccess] = []
    for agent_id in workspace.policy.agents:
        answers: dict[str, tuple[OperationAnswer, ...]] = {}
        for one in touches(workspace, agent_id, source_id, path):
            answer = OperationAnswer(one.tool, one.operation, one.verdict, one.why.replace("`", ""))
            answers[str(one.action)] = (*answers.get(str(one.action), ()), answer)
        found.append(FileAccess(agent_id, answers))
        yield len(found)
    return tuple(found)
