"""Changes of a server in its private copy that a level asks about: the operator is asked, and nothing waits for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Approval, ApprovalLimits, Remember
from gatewright.policy import sourceedit
from gatewright.policy.verdict import Permission
from gatewright.tools.context import ToolExecutionContext
from gatewright.workspace import Workspace
from tests.engine.gate.asking import Desk
from tests.support.patience import until

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=f"no process can be confined: {Confiner.why_not()}")
LEVELS = ("partner", "human", "read_write", "append", "admin")
SCRIPT = """
import json, subprocess, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
    elif asked["method"] == "tools/list":
        said = {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        script = asked["params"]["arguments"]["script"]
        text = subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
        said = {"content": [{"type": "text", "text": text}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""
Row = dict[str, JsonValue]


def policy(words: tuple[str, ...]) -> str:
    rules = "".join(f'{{ pattern = "{one}/**", permission = "{one}" }}, ' for one in LEVELS)
    return f"""gatewright = 1

[agents.clerk]

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "admin"
permission_rules = [{rules}]

[[catalogs]]
id = "s"
type = "mcp"
places = {{ notes = "snapshot" }}
command = {json.dumps(words[0])}
args = {json.dumps(words[1:])}
"""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Workspace]]:
    """Makes a workspace whose server does what it is told in a copy of the notes."""
    folder, made = tmp_path / "ws", list[Workspace]()
    for one in LEVELS:
        (folder / "notes" / one).mkdir(parents=True)
        for name in ("a", "b"):
            (folder / "notes" / one / name).write_text("old\n")
    (tmp_path / "server.py").write_text(SCRIPT)
    (folder / "policy.toml").write_text(policy((sys.executable, str(tmp_path / "server.py"))))

    def open_it(limits: ApprovalLimits | None = None) -> Workspace:
        made.append(Workspace.open(folder, keys=tmp_path / "keys", trust=True, approvals=limits))
        return made[-1]

    yield open_it
    for one in made:
        one.close()


async def do(workspace: Workspace, script: str) -> None:
    """Let the server do something in its copy, for the agent, and end."""
    if workspace.pin("s") is None:
        await workspace.servers.refresh("s")
        workspace.accept_tools("s", None, needs_capabilities=False)
    notes = workspace.folder / "notes"
    arguments: dict[str, JsonValue] = {"script": f"cd {notes} && {script}"}
    await workspace.servers.run("s", "do", arguments, ToolExecutionContext("clerk", "session"))
    await workspace.servers.stop("s")


def rows(workspace: Workspace) -> list[Row]:
    return [json.loads(one.body) for one in workspace.audit.rows() if one.kind == "CopyReturned"]


def note(workspace: Workspace, name: str) -> str | None:
    file = workspace.folder / "notes" / name
    return file.read_text() if file.exists() else None


@pytest.mark.parametrize("agrees", [True, False])
@pytest.mark.parametrize(
    ("script", "name", "action", "new"),
    [
        ("echo more >> partner/a", "partner/a", "append", "old\nmore\n"),
        ("echo new > partner/c", "partner/c", "append", "new\n"),
        ("echo other > partner/a", "partner/a", "overwrite", "other\n"),
        ("rm read_write/a", "read_write/a", "delete", None),
        ("rm partner/a", "partner/a", "delete", None),
    ],
)
async def test_operator_is_asked_and_the_answer_says_what_is_written(
    opened: Callable[..., Workspace], script: str, name: str, action: str, new: str | None, agrees: bool
) -> None:
    workspace = opened()
    desk, old, file = Desk(workspace.broker), note(workspace, name), str(workspace.folder / "notes" / name)
    await do(workspace, f"echo all > admin/a; {script}")  # comes back while nobody has answered
    assert note(workspace, "admin/a") == "all\n"
    assert note(workspace, name) == old
    question = await desk.question()
    assert (question.agent_id, question.tool, question.operation) == ("clerk", "s", action)
    assert question.arguments == {"path": file}
    assert file in question.reasons[0]
    assert question.diff
    assert question.expires_wall_s is not None
    workspace.broker.answer(question.request_id, Approval(agrees, "dana", Remember.DURATION, 600.0))
    await until(lambda: len(rows(workspace)) == 2)
    first, second = rows(workspace)
    assert note(workspace, name) == (new if agrees else old)
    assert first["kept_back_count"] == 1
    if agrees:
        assert second["written"] == [{"path": file, "action": action, "approved_by": "dana"}]
    else:
        assert second["written"] == []
        assert "dana refused it" in str(second["kept_back"])
    await do(workspace, "echo again > partner/b")  # no answer counts for another file
    assert (await desk.question()).arguments == {"path": str(workspace.folder / "notes" / "partner/b")}
    desk.leave()


async def test_nobody_there_is_said_and_nobody_is_asked(opened: Callable[..., Workspace]) -> None:
    workspace = opened()
    await do(workspace, "echo other > partner/a; rm read_write/a; rm human/a")
    (row,) = rows(workspace)
    assert "its level asks, and nobody is there" in str(row["kept_back"])
    assert workspace.broker.pending() == ()
    kept = Path(str(row["folder"]), str(workspace.folder / "notes")[1:])
    assert (kept / "partner" / "a").read_text() == "other\n"


async def test_one_question_without_an_answer_ends_the_asking(opened: Callable[..., Workspace]) -> None:
    workspace = opened(ApprovalLimits(timeout_s=0.3))
    desk, seen = Desk(workspace.broker), set[str]()
    leave = workspace.broker.subscribe(lambda pending: seen.update(one.request_id for one in pending))
    await do(workspace, "for one in 1 2 3 4 5; do echo new > partner/$one; done")
    await until(lambda: len(rows(workspace)) == 2)
    assert rows(workspace)[1]["kept_back_count"] == 5
    assert "nobody answered" in str(rows(workspace)[1]["kept_back"])
    assert len(seen) == 1
    assert workspace.broker.pending() == ()
    leave()
    desk.leave()


async def test_closing_the_workspace_waits_for_no_answer_and_withdraws_the_question(
    opened: Callable[..., Workspace],
) -> None:
    workspace = opened(ApprovalLimits(timeout_s=86_400.0))
    desk = Desk(workspace.broker)
    await do(workspace, "echo other > partner/a; echo other > partner/b")
    await desk.question()
    workspace.close()
    again = opened()
    assert again.broker.pending() == ()
    assert note(again, "partner/a") == "old\n"
    assert "nobody answered" in str(rows(again)[1]["kept_back"])
    assert Path(str(rows(again)[1]["folder"])).is_dir()


async def test_an_edit_that_narrows_counts_for_what_is_written_back(opened: Callable[..., Workspace]) -> None:
    workspace = opened()
    desk = Desk(workspace.broker)
    await do(workspace, "echo other > partner/a")
    question = await desk.question()
    edit = sourceedit.set_level(workspace.policy, "notes", 0, Permission.READ_ONLY)
    workspace.apply(edit)
    workspace.broker.answer(question.request_id, Approval(True, "dana"))
    await until(lambda: len(rows(workspace)) == 2)
    assert "its level does not let it be done" in str(rows(workspace)[1]["kept_back"])
    assert note(workspace, "partner/a") == "old\n"
    desk.leave()
