"""Reading the policy again while the gate is held: one gate for good, an alarm for what cannot be taken over."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Alarm, AuditLog, DecisionProof, ProvenCall
from gatewright.policy.agentedit import add_agent, describe_agent
from gatewright.policy.edit import Edit, SourceChange
from gatewright.policy.verdict import Permission
from gatewright.workspace import Status, Workspace

POLICY = """\
gatewright = 1

[agents.archivist]
tools = ["file", "block"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""
BROKEN = POLICY + "\n[agents.x]\ntols = []\n"
READ = {"op": "read", "path": "a.md"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("docs", "other"):
        (tmp_path / "ws" / name).mkdir(parents=True)
        (tmp_path / "ws" / name / "a.md").write_text(f"{name}\n", encoding="utf-8")
    write(tmp_path / "ws", POLICY)
    return tmp_path / "ws"


def write(folder: Path, text: str) -> None:
    (folder / "policy.toml").write_text(text, encoding="utf-8")


def opened(folder: Path) -> Workspace:
    return Workspace.open(folder, keys=folder.parent / "keys")


def log_of(workspace: Workspace) -> AuditLog:
    return AuditLog(workspace.folder / ".gatewright", workspace.folder.parent / "keys")


def test_gate_and_views_stay_the_same_objects_through_a_reload(folder: Path) -> None:
    workspace = opened(folder)
    gate = workspace.gate
    before = workspace.view("archivist")
    write(folder, POLICY + "\n[agents.scribe]\ntools = []\n")
    workspace.reload()

    assert workspace.gate is gate
    assert workspace.view("archivist") is before
    assert workspace.view("scribe").tools("mcp") == []
    workspace.close()


async def test_reload_moves_a_source_and_gives_it_other_rules(folder: Path) -> None:
    workspace = opened(folder)
    assert "docs" in (await workspace.call("archivist", "file", READ)).output
    write(folder, POLICY.replace('base_path = "docs"', 'base_path = "other"').replace("read_write", "read_only"))
    workspace.reload()
    read = await workspace.call("archivist", "file", READ)
    write_there = workspace.decide("archivist", "file", {"op": "append", "path": "a.md", "content": "x"})

    assert "other" in read.output
    assert (write_there.verdict, write_there.stage) == ("deny", "operation")
    workspace.close()


async def test_file_tool_goes_with_the_last_source_and_comes_back(folder: Path) -> None:
    workspace = opened(folder)
    write(folder, POLICY.split("[[sources]]", maxsplit=1)[0])
    workspace.reload()
    gone = workspace.decide("archivist", "file", READ)
    write(folder, POLICY)
    workspace.reload()

    assert (gone.stage, gone.code) == ("lookup", "not-available")
    assert (await workspace.call("archivist", "file", READ)).status is Status.ALLOWED
    workspace.close()


def test_broken_policy_raises_an_alarm_until_a_good_one_is_read(folder: Path) -> None:
    workspace = opened(folder)
    heard: list[Alarm | None] = []
    workspace.gate.on_alarm(heard.append)
    write(folder, BROKEN)
    problems = workspace.reload()
    alarm = workspace.alarm

    assert alarm is not None
    assert alarm.problems == problems
    assert alarm.file == str(folder / "policy.toml")
    assert str(alarm) == f"`{folder / 'policy.toml'}` has 1 error; the last good policy stays in force"
    assert json.loads(json.dumps(alarm.to_json()))["problems"][0]["code"] == "unknown-key"
    write(folder, POLICY)
    workspace.reload()
    assert workspace.alarm is None
    assert heard == [alarm, None]
    workspace.close()


def test_policy_that_is_gone_raises_the_alarm_too(folder: Path) -> None:
    workspace = opened(folder)
    (folder / "policy.toml").unlink()
    with pytest.raises(WorkspaceError):
        workspace.reload()

    assert workspace.alarm is not None
    assert workspace.decide("archivist", "file", READ).verdict == "allow"
    workspace.close()


async def test_refused_and_changed_policies_stand_in_the_log(folder: Path) -> None:
    workspace = opened(folder)
    write(folder, BROKEN)
    workspace.reload()
    write(folder, POLICY.replace("read_write", "read_only"))
    workspace.reload()
    workspace.apply(describe_agent(workspace.policy, "archivist", "reads"))
    await workspace.call("archivist", "file", READ)
    bodies = [json.loads(row.body) for row in log_of(workspace).rows() if row.kind == "PolicyChanged"]

    assert [body["refused"] for body in bodies] == [True, False]
    assert bodies[1]["file"] == str(folder / "policy.toml")
    assert bodies[1]["changes"] == ["agent `archivist` changed", "source `docs` changed"]
    workspace.close()


async def test_running_call_ends_on_its_own_rules_while_the_source_changes(folder: Path) -> None:
    workspace = opened(folder)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(_request: object) -> object:
        asked.set()
        await answer.wait()
        raise AssertionError

    source = workspace.policy.sources[0]
    partner = replace(source, default_permission=Permission.PARTNER)
    workspace.apply(Edit("ask", (SourceChange(source, partner),)))
    call = asyncio.create_task(
        workspace.call("archivist", "file", {"op": "append", "path": "a.md", "content": "x"}, approver=slow)  # pyright: ignore[reportArgumentType]
    )
    await asked.wait()
    workspace.apply(Edit("close", (SourceChange(partner, replace(partner, default_permission=Permission.NONE)),)))
    answer.set()
    outcome = await call

    assert (outcome.status, outcome.decision.verdict) == (Status.DENIED, "deny")
    workspace.close()


def test_line_of_an_old_decision_is_the_line_of_its_own_policy(folder: Path) -> None:
    rule = '\n[[agents.archivist.tool_rules]]\ntool_name = "file"\nrule_type = { AllowedOperations = ["read"] }\n'
    write(folder, POLICY + rule)
    workspace = opened(folder)
    old = workspace.decide("archivist", "file", {"op": "delete", "path": "a.md"})
    write(folder, "# one\n# two\n" + POLICY + rule)
    workspace.reload()
    new = workspace.decide("archivist", "file", {"op": "delete", "path": "a.md"})

    assert old.rule is not None
    assert new.rule is not None
    assert (old.rule.line, new.rule.line) == (12, 14)
    workspace.close()


def test_deciding_and_proving_make_no_file(folder: Path) -> None:
    before = sorted(folder.parent.rglob("*"))
    workspace = opened(folder)
    for tool, arguments in (("file", READ), ("file", {"op": "delete", "path": "a.md"}), ("teleport", {})):
        proof = workspace.decide("archivist", tool, arguments).proof
        assert workspace.gate.verify(proof, ProvenCall("archivist", tool, arguments)).holds
    workspace.close()

    assert sorted(folder.parent.rglob("*")) == before


async def test_proof_outlives_the_process_with_the_key_of_the_log(folder: Path) -> None:
    workspace = opened(folder)
    text = (await workspace.call("archivist", "file", READ)).decision.proof.to_text()
    workspace.close()
    again = opened(folder)

    assert again.gate.verify(DecisionProof.from_text(text), ProvenCall("archivist", "file", READ)).holds
    again.apply(add_agent(again.policy, "scribe"))
    assert not again.gate.verify(DecisionProof.from_text(text), ProvenCall("archivist", "file", READ)).policy
    again.close()


@pytest.mark.parametrize(("said", "level"), [("1", 2), ("yes", 2), ("", 1), ("0", 1)])
async def test_environment_makes_the_log_durable(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, level: int
) -> None:
    monkeypatch.setenv("GATEWRIGHT_DURABLE", said)
    workspace = opened(folder)
    await workspace.call("archivist", "file", READ)
    audit = workspace._parts.audit  # pyright: ignore[reportPrivateUsage]
    assert isinstance(audit, AuditLog)
    with audit._database.writing() as connection:  # pyright: ignore[reportPrivateUsage]
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
    workspace.close()
