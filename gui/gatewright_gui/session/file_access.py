"""What every agent may do with a file or folder by the tool `file`, as the gate decides. For the worker process."""

from collections.abc import Generator, Mapping
from contextlib import suppress

from gatewright.workspace.api import (
    JsonValue,
    ToolFailure,
    Verdict,
    Workspace,
    frozen,
)
from gatewright_gui.qt.language import mark
from gatewright_gui.session.verdict import verdict_words

TOOL = "file"
GROUPS: Mapping[str, str] = {
    "read": mark("Read"),
    "append": mark("Append"),
    "overwrite": mark("Overwrite"),
    "delete": mark("Delete"),
}
"""What is done to a file, as the columns say it."""
_NEW = "new"
"""What would be made in a folder is called so."""


@frozen
class OperationAnswer:
    """What the gate says to an operation at the file, and why."""

    operation: str
    verdict: Verdict
    why: str

    @property
    def words(self) -> str:
        """For a tooltip: `append: ask first, ...`."""
        return f"{self.operation}: {verdict_words(self.verdict)}, {self.why}"


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
    operations = next((tool.operations for tool in workspace.catalog if tool.name == TOOL and tool.needs_source), ())
    source, text = workspace.sources.get(source_id), None
    if source is not None and not path.endswith("/"):
        with suppress(ToolFailure):
            text = source.text_of(path)
    wanted = _calls(path, text)
    calls = [(op, wanted[op.name]) for op in operations if op.name in wanted]
    found: list[FileAccess] = []
    for agent_id in workspace.policy.agents:
        answers: dict[str, tuple[OperationAnswer, ...]] = {}
        for op, more in calls:
            decision = workspace.decide(agent_id, TOOL, {"op": op.name, "source": source_id, **more})
            answer = OperationAnswer(op.name, decision.verdict, decision.reason.replace("`", ""))
            group = str(op.actions[-1])
            answers[group] = (*answers.get(group, ()), answer)
        found.append(FileAccess(agent_id, answers))
        yield len(found)
    return tuple(found)


def _calls(path: str, text: str | None) -> dict[str, dict[str, JsonValue]]:
    """A call of each operation that fits the path; `text`: what stands there, None where that is no text."""
    if path.endswith("/"):
        folder = path.rstrip("/") or "."
        new = {"path": f"{path}{_NEW}", "content": "x"}
        return {"list": {"path": folder}, "create": {**new}, "delete": {"path": folder, "recursive": True}}
    at: dict[str, JsonValue] = {"path": path}
    if text is None:
        return {name: {**at} for name in ("read", "delete")} | {"create": {**at, "content": "x"}}
    calls: dict[str, dict[str, JsonValue]] = {name: {**at} for name in ("read", "load", "save", "delete")}
    calls |= {"append": {**at, "content": "x"}, "insert": {**at, "line": 1, "content": "x"}}
    return calls | ({"replace": {**at, "old": text, "new": "x"}} if text else {})
