"""A grant on files that reaches no folder of the tools that need it is told; one that may be of use is not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import pytest

from gatewright.base.errors import Problem, Subject
from gatewright.policy.agentedit import grant
from gatewright.policy.capability import FsRead
from gatewright.tools import FileParameter, Tool, tool
from gatewright.workspace import Workspace

ROOTS = '\n[workspace]\nroots = { shared = "desk", tmp = "tmp", vault = "vault" }\n'
CODE = "grant-reaches-nothing"


@tool
async def take_in(place: Annotated[str, FileParameter()] = "") -> str:
    """Takes a file in.

    place: where it lies.
    """
    return place


def opened(tmp_path: Path, agent: str, *, tools: tuple[Tool, ...] = (), rest: str = ROOTS) -> Workspace:
    folder = tmp_path / "ws"
    for name in ("desk", "tmp", "vault", "notes"):
        (folder / name).mkdir(parents=True)
    (folder / "policy.toml").write_text(f"gatewright = 1\n[agents.a]\n{agent}\n{rest}")
    return Workspace.open(folder, keys=tmp_path / "keys", tools=tools)


def told(workspace: Workspace) -> list[Problem]:
    return [problem for problem in workspace.current_problems() if problem.code == CODE]


def grants(kind: str, *prefixes: str) -> str:
    return f"capabilities = [{{ {kind} = {{ prefixes = {list(prefixes)} }} }}]"


def test_grant_apart_from_every_root_of_its_tools_is_told_at_the_grant(tmp_path: Path) -> None:
    agent = f'tools = ["file_search", "file_read"]\n{grants("FsRead", "notes")}'
    with closing(opened(tmp_path, agent)) as workspace:
        (problem,) = told(workspace)
        assert problem.message == (
            "this FsRead of agent `a` reaches nothing of `desk` and `tmp`, "
            "where `file_read` and `file_search` work: every path there is denied"
        )
        address = ("agents", "a", "capabilities", 0)
        assert problem.subject == Subject(address, ("a",), (("file_read", None), ("file_search", None)))
        assert problem.place is not None
        assert problem.place.line == 4
        assert [found.code for found in workspace.problems] == [CODE]


def test_it_is_told_as_soon_as_the_grant_is_made_and_no_longer_after_its_undo(tmp_path: Path) -> None:
    from gatewright.policy.edit import inverse

    with closing(opened(tmp_path, 'tools = ["file_search"]')) as workspace:
        assert told(workspace) == []
        edit = grant(workspace.policy, "a", FsRead(("notes",)))
        workspace.apply(edit)
        assert [problem.message.partition(":")[0] for problem in told(workspace)] == [
            "this FsRead of agent `a` reaches nothing of `desk` and `tmp`, where `file_search` works"
        ]
        workspace.apply(inverse(edit))
        assert told(workspace) == []


@pytest.mark.parametrize("prefix", ["desk", "desk/notes/2024", ".", "/", "tmp"])
def test_grant_that_meets_a_root_is_not_told(tmp_path: Path, prefix: str) -> None:
    with closing(opened(tmp_path, f'tools = ["file_search"]\n{grants("FsRead", "notes", prefix)}')) as workspace:
        assert told(workspace) == []


def test_second_grant_that_meets_a_root_is_enough(tmp_path: Path) -> None:
    both = 'capabilities = [{ FsRead = { prefixes = ["notes"] } }, { FsRead = { prefixes = ["desk"] } }]'
    with closing(opened(tmp_path, f'tools = ["file_search"]\n{both}')) as workspace:
        assert told(workspace) == []


def test_link_to_a_root_reaches_it(tmp_path: Path) -> None:
    with closing(opened(tmp_path, f'tools = ["file_read"]\n{grants("FsRead", "way")}')) as workspace:
        assert len(told(workspace)) == 1
        (tmp_path / "ws" / "way").symlink_to(tmp_path / "ws" / "desk")
        assert told(workspace) == []


@pytest.mark.parametrize(
    ("tools", "kind", "prefix", "is_told"),
    [
        ("file_read", "FsRead", "vault", True),
        ("vault_copyto", "FsRead", "vault", False),
        ("vault_copyto", "FsRead", "desk", True),
        ("vault_copyto", "FsWrite", "vault", True),
        ("file_edit", "FsRead", "notes", True),
        ("file_edit", "FsWrite", "tmp", False),
        ("file_write", "FsRead", "notes", False),
        ("block", "FsRead", "notes", False),
    ],
)
def test_each_kind_counts_for_the_folders_that_the_tools_judge_by_it(
    tmp_path: Path, tools: str, kind: str, prefix: str, is_told: bool
) -> None:
    with closing(opened(tmp_path, f'tools = ["{tools}"]\n{grants(kind, prefix)}')) as workspace:
        assert bool(told(workspace)) is is_told
        if is_told and tools == "file_read":
            decision = workspace.decide("a", tools, {"path": "shared/x.txt"})
            assert decision.code == "path-not-granted"


def test_grant_that_may_serve_a_tool_of_a_program_is_not_told(tmp_path: Path) -> None:
    agent = f'tools = ["file_read", "take_in"]\n{grants("FsRead", "notes")}'
    with closing(opened(tmp_path, agent, tools=(take_in,))) as workspace:
        assert told(workspace) == []


def test_nothing_is_told_without_roots(tmp_path: Path) -> None:
    with closing(opened(tmp_path, f'tools = ["block"]\n{grants("FsRead", "notes")}', rest="")) as workspace:
        assert told(workspace) == []
