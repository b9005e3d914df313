"""Calls of sub-agents that a program makes: suspended and resumed under the rights of their callers, and decided again
from the log as they were decided then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewright import ToolExecutionContext, Workspace
from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, AuditFilter, AuditIndex, Outcome, Status
from gatewright.policy.delegation import Lineage
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict
from gatewright.workspace.replay import decide_again, replay, replay_rule, sent_of

POLICY = """gatewright = 1

[agents.coder]
tools = ["block"]
sources = ["docs"]
sub_agents = ["writer"]

[agents.writer]
tools = ["file"]
sources = ["docs"]
approvals = { "file.create" = "ask" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""
RULE = '[[policy.rules]]\nname = "hands off"\neffect = "deny"\nagents = ["coder"]\ntools = ["file"]\n'
CREATE: dict[str, Any] = {"op": "create", "path": "new.md", "content": "two\n"}
READ: dict[str, Any] = {"op": "read", "path": "note.md"}
WRITER = Lineage("coder", "writer", (("writer",),), "id-writer", "call-1")
Opened = Callable[..., Workspace]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the workspace as another process would, after another text was written if one is given."""
    folder, made = tmp_path / "w", list[Workspace]()
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "note.md").write_text("one\n", "utf-8")

    def open_it(text: str = POLICY) -> Workspace:
        (folder / "policy.toml").write_text(text, "utf-8")
        made.append(Workspace.open(folder, keys=tmp_path / "keys"))
        return made[-1]

    yield open_it
    for one in made:
        one.close()


async def _suspend(workspace: Workspace, lineage: Lineage | None = WRITER) -> str:
    named: dict[str, Any] = {"call_id": "c1", "conversation": "chat", "on_ask": "suspend"}
    context = ToolExecutionContext(agent_id="writer", session_id="", client="a host", folder=str(workspace.folder))
    asked = await workspace.call("writer", "file", CREATE, lineage=lineage, context=context, **named)
    assert (asked.status, _made(workspace)) == (Status.WAITING, ""), asked
    assert asked.question is not None
    return asked.question.request_id


def _made(workspace: Workspace) -> str:
    made = workspace.folder / "docs" / "new.md"
    return made.read_text("utf-8") if made.exists() else ""


def _begun(workspace: Workspace) -> list[dict[str, Any]]:
    return [json.loads(row.body) for row in workspace.audit.rows() if row.kind == "ToolInvoked"]


async def test_a_sub_agents_call_is_resumed_by_another_process_once_and_stands_under_its_callers(
    opened: Opened,
) -> None:
    question_id = await _suspend(opened())
    later = opened()
    assert later.suspended(question_id).whose == "writer, started by coder"
    assert (await later.resume(question_id)).status is Status.WAITING
    assert later.broker.answer(question_id, Approval(True, "dana"))
    done = await opened().resume(question_id)
    assert (done.status, _made(later)) == (Status.ALLOWED, "two\n")
    with pytest.raises(WorkspaceError, match="no suspended call"):
        await later.resume(question_id)
    named: dict[str, Any] = {"call_id": "c1", "conversation": "chat", "on_ask": "suspend"}
    context = ToolExecutionContext(agent_id="writer", session_id="", folder=str(later.folder))
    told = await later.call("writer", "file", CREATE, lineage=WRITER, context=context, **named)
    assert (told.replayed, _made(later)) == (True, "two\n")
    said = [(body["callers"], body["child"], body["within"]) for body in _begun(later)]
    assert set(map(str, said)) == {str((["coder"], "id-writer", "call-1"))}
    assert later.audit.verify().problems == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (POLICY + RULE, "the caller `coder` is denied this"),
        (POLICY.replace('sub_agents = ["writer"]', ""), "the caller `coder` may not do this"),
        (
            POLICY.replace('sub_agents = ["writer"]', 'sub_agents = ["writer"]\ndelegate = "intersect"'),
            "may not do this",
        ),
    ],
)
async def test_what_its_caller_may_not_do_by_then_is_denied_in_spite_of_the_answer(
    opened: Opened, text: str, reason: str
) -> None:
    first = opened()
    question_id = await _suspend(first)
    assert first.broker.answer(question_id, Approval(True, "dana"))
    denied = await opened(text).resume(question_id)
    assert (denied.status, denied.code, _made(first)) == (Status.DENIED, "caller-denied", "")
    assert reason in denied.decision.reason


async def test_an_answer_for_a_sub_agent_of_one_caller_is_none_for_the_agent_itself(opened: Opened) -> None:
    first = opened()
    assert first.broker.answer(await _suspend(first), Approval(True, "dana"))
    named: dict[str, Any] = {"call_id": "c1", "conversation": "chat", "on_ask": "suspend"}
    context = ToolExecutionContext(agent_id="writer", session_id="", folder=str(first.folder))
    again = await opened().call("writer", "file", CREATE, context=context, **named)
    assert again.status is Status.WAITING
    assert _made(first) == ""


async def _recorded(workspace: Workspace, lineage: Lineage | None = WRITER) -> Outcome:
    return await workspace.call("writer", "file", READ, lineage=lineage)


def _newest(workspace: Workspace) -> Verdict:
    """The verdict on the newest recorded call, decided again."""
    with closing(AuditIndex(workspace.state_folder)) as index:
        index.read_older()
        (call, *_) = index.calls(index.numbers(AuditFilter()))
        return decide_again(workspace, call, sent_of(index.rows_of(call))).verdict


async def test_a_recorded_call_of_a_sub_agent_is_decided_again_under_its_callers(opened: Opened) -> None:
    with_rule = opened(POLICY + RULE)
    assert (await _recorded(with_rule)).status is Status.DENIED
    assert _newest(with_rule) is Verdict.DENY
    without = opened()
    assert _newest(without) is Verdict.ALLOW
    *_, last = _run(replay(without, without.policy, with_rule.policy))
    assert [(call.before, call.after) for call in last.calls] == [(Verdict.ALLOW, Verdict.DENY)]
    assert (await _recorded(with_rule, None)).status is Status.ALLOWED
    assert _newest(with_rule) is Verdict.ALLOW  # the agent itself, whom nobody started


async def test_a_rule_for_a_caller_is_tried_on_the_calls_of_its_sub_agents(opened: Opened) -> None:
    workspace = opened()
    await _recorded(workspace)
    rule = PolicyRule("hands off", Verdict.DENY, agents=("coder",), tools=("file",))
    tried = replay_rule(workspace, None, rule)
    assert [(call.before, call.after) for call in tried.calls] == [(Verdict.ALLOW, Verdict.DENY)]
    other = PolicyRule("hands off", Verdict.DENY, agents=("coder",), tools=("block",))
    assert replay_rule(workspace, None, other).calls == ()


def _run(steps: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(next(steps))
        except StopIteration as end:
            return [*found, end.value]
