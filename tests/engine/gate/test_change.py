"""What a call would change in a text, told without any effect."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.workspace import Approval, ApprovalRequest, Workspace, write_demo

DELETE = {"op": "delete", "path": "drafts/report.md"}
CREATE = {"op": "create", "path": "drafts/fresh.md", "content": "hello\n"}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    opened = Workspace.open(write_demo(tmp_path / "demo"))
    yield opened
    opened.close()


def test_change_of_an_edit_is_told_and_nothing_is_written(workspace: Workspace) -> None:
    change = workspace.gate.change("archivist", "file", CREATE)
    assert change is not None
    assert change.endswith("+hello\n")
    assert not (workspace.folder / "workspace" / "drafts" / "fresh.md").exists()


def test_denied_call_and_one_that_only_reads_change_nothing(workspace: Workspace) -> None:
    assert workspace.gate.change("researcher", "file", CREATE) is None
    assert workspace.gate.change("archivist", "file", {"op": "read", "path": "README.md"}) is None
    assert workspace.gate.change("nobody", "file", CREATE) is None
    assert workspace.gate.change("archivist", "file", "no json") is None


def test_deleting_a_file_tells_the_text_that_goes(workspace: Workspace) -> None:
    text = (workspace.folder / "workspace" / "drafts" / "report.md").read_text(encoding="utf-8")
    change = workspace.gate.change("operator", "file", DELETE)
    assert change is not None
    gone = [line[1:] for line in change.splitlines()[3:]]
    assert gone == text.splitlines()
    assert workspace.gate.change("operator", "file", {**DELETE, "path": "drafts/none.md"}) is None


async def test_deletion_is_approved_with_the_text_that_was_shown_and_no_other(workspace: Workspace) -> None:
    file = workspace.folder / "workspace" / "drafts" / "report.md"
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Approval:
        asked.append(request)
        if len(asked) == 1:
            file.write_text("something else by now\n", encoding="utf-8")
        return Approval(True, "a person")

    first = await workspace.call("operator", "file", DELETE, approver=approve)
    assert asked[0].diff is not None
    assert asked[0].diff.count("\n-") > 3
    assert str(first.status) != "allowed"
    assert file.exists()
    second = await workspace.call("operator", "file", DELETE, approver=approve)
    assert asked[-1].diff is not None
    assert "-something else by now" in asked[-1].diff
    assert str(second.status) == "allowed"
    assert not file.exists()
