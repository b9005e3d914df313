"""Conversations of a program: the one that an agent has by itself, and those that are named, kept and held."""

from __future__ import annotations

import asyncio
import hmac
import json
import multiprocessing
import re
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewright import ToolCall
from gatewright.base.errors import SessionConflict, WorkspaceError
from gatewright.gate import Session
from gatewright.gate.session import MOST_USERS
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ResultType, ToolExecutionContext, tool
from gatewright.workspace import Workspace
from tests.support.checkout import ROOT

POLICY = """\
gatewright = 1

[agents.a]
tools = ["tide"]

[[agents.a.tool_rules]]
tool_name = "tide"
rule_type = { MaxCalls = 3 }

[agents.b]
tools = ["tide"]

[[agents.b.tool_rules]]
tool_name = "tide"
rule_type = { MaxCalls = 3 }
"""
REQUESTS = """
import asyncio, sys
from pathlib import Path
from tests.engine.workspace.test_sessions import opened, requests
print(asyncio.run(requests(opened(Path(sys.argv[1])), 10)))
"""


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def tide(station: str) -> str:
    """Give the next high water.

    Args:
        station: Name of the station.
    """
    await asyncio.sleep(0)
    return f"{station}: 2.4 m"


CALL = ("tide", {"station": "Husum"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "ws"


def opened(folder: Path) -> Workspace:
    return Workspace.open(folder, tools=[tide], keys=folder.parent / "keys")


def kept_file(folder: Path) -> Path:
    (found,) = (folder / ".gatewright/sessions").iterdir()
    return found


async def requests(workspace: Workspace, number: int) -> int:
    """That many requests at once, each of which takes up the same conversation; how many were allowed."""

    async def request() -> str:
        async with workspace.sessions.hold("chat", agent_id="a") as session:
            return (await workspace.call("a", *CALL, session=session)).code

    return Counter(await asyncio.gather(*(request() for _ in range(number))))["allowed"]


def forked(workspace: Workspace, allowed: Any) -> None:
    allowed.put(asyncio.run(requests(workspace, 5)))


async def test_calls_without_a_session_count_for_the_agents_own_one(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        codes = [(await workspace.call("a", *CALL)).code for _ in range(4)]
        assert codes == ["allowed"] * 3 + ["max-calls"]
        assert workspace.decide("a", *CALL).code == "max-calls"
        assert (await workspace.gate.call("a", *CALL)).code == "max-calls"
        assert workspace.session("a").calls("tide") == 3

        assert workspace.decide("b", *CALL).code == "allowed"
        assert (await workspace.call("a", *CALL, session=Session())).code == "allowed"

    with closing(opened(folder)) as later:
        assert later.decide("a", *CALL).code == "allowed"


async def test_deciding_uses_nothing_up(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        assert {workspace.decide("a", *CALL).code for _ in range(9)} == {"allowed"}
        assert workspace.session("a").calls("tide") == 0


async def test_calls_for_a_user_count_for_that_users_own_session(folder: Path) -> None:
    ada, ben = (ToolExecutionContext("a", "", user_id=name) for name in ("ada", "ben"))
    with closing(opened(folder)) as workspace:
        codes = [(await workspace.call("a", *CALL, context=ada)).code for _ in range(4)]
        assert codes == ["allowed"] * 3 + ["max-calls"]
        assert workspace.decide("a", *CALL, context=ada).code == "max-calls"

        for context in (ben, None):
            assert workspace.decide("a", *CALL, context=context).code == "allowed"
            assert (await workspace.call("a", *CALL, context=context)).code == "allowed"
        (second,) = await workspace.gate.call_many("a", [ToolCall(*CALL, "t")], context=ben)
        assert second.code == "allowed"

        used = {user: workspace.session("a", user_id=user).calls("tide") for user in ("ada", "ben", None)}
        assert used == {"ada": 3, "ben": 2, None: 1}
        assert workspace.session("a", user_id="") is workspace.session("a")


async def test_calls_without_a_context_count_for_the_user_that_the_policy_gives_the_agent(folder: Path) -> None:
    (folder / "policy.toml").write_text(POLICY.replace("[agents.a]", '[agents.a]\nuser_id = "ada"'), encoding="utf-8")
    with closing(opened(folder)) as workspace:
        await workspace.call("a", *CALL)
        await workspace.call("a", *CALL, context=ToolExecutionContext("a", "", user_id="ada"))
        assert workspace.session("a").calls("tide") == 2
        assert workspace.decide("a", *CALL, context=ToolExecutionContext("a", "", user_id="ben")).code == "allowed"
        assert workspace.session("a", user_id="ben").calls("tide") == 0


async def test_more_users_than_sessions_are_kept_of_are_refused_and_no_limit_is_forgotten(folder: Path) -> None:
    ada, late = (ToolExecutionContext("a", "", user_id=name) for name in ("ada", "late"))
    with closing(opened(folder)) as workspace:
        for _ in range(3):
            await workspace.call("a", *CALL, context=ada)
        for number in range(MOST_USERS):  # to decide keeps nothing
            workspace.gate.decide("a", "no-tool", {}, context=ToolExecutionContext("a", "", user_id=f"d{number}"))
        for number in range(MOST_USERS - 1):
            workspace.session("a", user_id=f"u{number}")

        with pytest.raises(
            WorkspaceError, match=r"the gate keeps sessions of at most 50,000 users.*name one with `session`"
        ):
            await workspace.call("a", *CALL, context=late)
        with pytest.raises(WorkspaceError, match="50,000 users"):
            workspace.decide("a", *CALL, context=late)
        assert (await workspace.call("a", *CALL, context=ada)).code == "max-calls"
        assert (await workspace.call("a", *CALL)).code == "allowed"
        assert (await workspace.call("b", *CALL)).code == "allowed"
        named = workspace.session("a", "late-1")
        assert (await workspace.call("a", *CALL, context=late, session=named)).code == "allowed"


async def test_calls_of_one_turn_count_for_the_agents_own_session(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        turn = [ToolCall(*CALL, f"t{number}") for number in range(2)]
        first = await workspace.gate.call_many("a", turn)
        then = await workspace.gate.call_many("a", turn)
        assert [outcome.code for outcome in (*first, *then)] == ["allowed"] * 3 + ["max-calls"]


async def test_agent_that_the_policy_does_not_have_is_given_no_session(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        assert (await workspace.call("nobody", *CALL)).code == "unknown-agent"
        with pytest.raises(WorkspaceError, match="no agent `nobody`"):
            workspace.session("nobody")


async def test_named_session_is_made_saved_and_resumed_for_its_agent_alone(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        session = workspace.session("a", "night-7")
        assert (await workspace.call("a", *CALL, session=session)).code == "allowed"
        workspace.sessions.save(session)
        assert workspace.sessions.list(agent_id="a") == ("night-7",)
        assert workspace.sessions.list(agent_id="b") == ()

    with closing(opened(folder)) as later:
        assert later.session("a", "night-7").calls("tide") == 1
        assert later.session("b", "night-7").calls("tide") == 0
        assert later.session("a").calls("tide") == 0


async def test_session_of_one_agent_is_not_taken_for_another(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        session = workspace.session("a", "night-7")
        with pytest.raises(WorkspaceError, match="the session `night-7` belongs to the agent `a`"):
            await workspace.call("b", *CALL, session=session)
        with pytest.raises(WorkspaceError, match="belongs to the agent `a`"):
            workspace.decide("b", *CALL, session=session)


async def test_save_over_what_another_saved_meanwhile_is_refused(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        one, other = workspace.session("a", "chat"), workspace.session("a", "chat")
        await workspace.call("a", *CALL, session=one)
        await workspace.call("a", *CALL, session=other)
        workspace.sessions.save(one)
        with pytest.raises(SessionConflict, match="saved by somebody else"):
            workspace.sessions.save(other)
        await workspace.call("a", *CALL, session=one)
        workspace.sessions.save(one)
        assert workspace.session("a", "chat").calls("tide") == 3

        workspace.sessions.delete("chat", agent_id="a")
        with pytest.raises(SessionConflict, match="deleted"):
            workspace.sessions.save(one)


async def test_parallel_requests_of_one_conversation_overrun_no_limit_and_lose_no_call(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        assert await requests(workspace, 10) == 3
        assert workspace.session("a", "chat").calls("tide") == 3
        kept_file(folder)  # and nothing beside it


async def test_parallel_requests_of_four_processes_overrun_no_limit(folder: Path) -> None:
    command = [sys.executable, "-c", REQUESTS, str(folder)]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = [process.communicate()[0] for process in running]

    assert [process.returncode for process in running] == [0] * 4
    assert sum(map(int, told)) == 3
    with closing(opened(folder)) as workspace:
        assert workspace.session("a", "chat").calls("tide") == 3


def test_forks_of_one_program_overrun_no_limit(folder: Path) -> None:
    fork = multiprocessing.get_context("fork")
    with closing(opened(folder)) as workspace:
        allowed = fork.SimpleQueue()
        children = [fork.Process(target=forked, args=(workspace, allowed)) for _ in range(4)]
        for child in children:
            child.start()
        assert sum(allowed.get() for _ in children) == 3
        for child in children:
            child.join()
        assert workspace.session("a", "chat").calls("tide") == 3


async def test_held_session_is_saved_when_its_request_fails_or_is_given_up(folder: Path) -> None:
    with closing(opened(folder)) as workspace:

        async def fail() -> None:
            async with workspace.sessions.hold("chat", agent_id="a") as session:
                await workspace.call("a", *CALL, session=session)
                workspace.sessions.save(session)
                await workspace.call("a", *CALL, session=session)
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        assert workspace.session("a", "chat").calls("tide") == 2

        began = asyncio.Event()

        async def request() -> None:
            async with workspace.sessions.hold("chat", agent_id="a") as session:
                await workspace.call("a", *CALL, session=session)
                began.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(request())
        await began.wait()
        with pytest.raises(WorkspaceError, match="is held by somebody else"):
            workspace.sessions.save(workspace.session("a", "chat"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert workspace.session("a", "chat").calls("tide") == 3


async def test_holds_of_different_conversations_do_not_wait_for_each_other(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        hold = workspace.sessions.hold
        async with hold("one", agent_id="a"), hold("two", agent_id="a"), hold("one", agent_id="b"):
            pass
        assert workspace.sessions.list(agent_id="a") == ("one", "two")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rb'\["tide","","",1,', b'["tide","","",0,'),
        (rb'"uses":\[.*\]', b'"uses":[]'),
        (rb'"version":1', b'"version":7'),
        (rb'"agent":"a"', b'"agent":"b"'),
        (rb"^[0-9a-f]{64}\n", b"0" * 64 + b"\n"),
        (rb"^[0-9a-f]{64}\n", b""),
        (rb"^[0-9a-f]{64}\n", b"\xff\n"),
        (rb"(?s)^.*$", b""),
    ],
)
async def test_session_that_somebody_without_the_key_changed_is_refused(
    folder: Path, before: bytes, after: bytes
) -> None:
    with closing(opened(folder)) as workspace:
        async with workspace.sessions.hold("chat", agent_id="a") as session:
            await workspace.call("a", *CALL, session=session)
        path = kept_file(folder)
        changed, times = re.subn(before, after, path.read_bytes(), count=1)
        assert times == 1
        path.write_bytes(changed)

        with pytest.raises(WorkspaceError, match="Gatewright did not write this"):
            workspace.session("a", "chat")
        with pytest.raises(WorkspaceError, match="Gatewright did not write this"):
            async with workspace.sessions.hold("chat", agent_id="a"):
                pass
        with pytest.raises(WorkspaceError, match="Gatewright did not write this"):
            workspace.sessions.save(session)


async def test_session_of_another_conversation_put_in_its_place_is_refused(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        async with workspace.sessions.hold("chat", agent_id="a") as session:
            await workspace.call("a", *CALL, session=session)
        path = kept_file(folder)
        async with workspace.sessions.hold("chat", agent_id="b"):
            pass
        (fresh,) = {*path.parent.iterdir()} - {path}
        fresh.replace(path)

        with pytest.raises(WorkspaceError, match="another session"):
            workspace.session("a", "chat")


async def test_session_whose_key_is_gone_is_refused(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        async with workspace.sessions.hold("chat", agent_id="a"):
            pass
        for key in (folder.parent / "keys").iterdir():
            key.unlink()

    with closing(opened(folder)) as later, pytest.raises(WorkspaceError, match="its key is missing"):
        later.session("a", "chat")


async def save_a_call(workspace: Workspace) -> None:
    async with workspace.sessions.hold("chat", agent_id="a") as session:
        await workspace.call("a", *CALL, session=session)


async def test_session_copied_from_another_workspace_of_the_user_is_refused(folder: Path) -> None:
    other = Path(shutil.copytree(folder, folder.parent / "other"))
    with closing(opened(folder)) as used, closing(opened(other)) as workspace:
        await save_a_call(used)
        await save_a_call(workspace)
        await save_a_call(workspace)
        shutil.copy(kept_file(folder), kept_file(other))

        with pytest.raises(WorkspaceError, match=f"belongs to `{re.escape(str(folder))}/.gatewright`"):
            workspace.session("a", "chat")
        with pytest.raises(WorkspaceError, match="does not follow a copied or moved workspace"):
            await save_a_call(workspace)
        with pytest.raises(WorkspaceError, match="belongs to"):
            workspace.sessions.save(Session("chat", "a"))

        assert workspace.sessions.delete("chat", agent_id="a")
        await save_a_call(workspace)
        assert workspace.session("a", "chat").calls("tide") == 1


async def test_renamed_workspace_keeps_its_sessions_and_a_copy_gets_none(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        await save_a_call(workspace)
    renamed = folder.rename(folder.with_name("renamed"))
    with closing(opened(renamed)) as workspace:
        await save_a_call(workspace)
        assert workspace.session("a", "chat").calls("tide") == 2

    copied = Path(shutil.copytree(renamed, renamed.with_name("copied")))
    shutil.rmtree(renamed)
    with closing(opened(copied)) as workspace, pytest.raises(WorkspaceError, match="remove it to begin a new one"):
        workspace.session("a", "chat")


async def test_session_that_does_not_say_where_it_belongs_is_refused(folder: Path) -> None:
    with closing(opened(folder)) as workspace:
        await save_a_call(workspace)
        path = kept_file(folder)
        _, _, body = path.read_bytes().partition(b"\n")
        fields = json.loads(body)
        del fields["home"]
        older = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
        shared = (folder.parent / "keys/approvals.key").read_bytes()
        key = hmac.digest(shared, b"sessions", "sha256")
        path.write_bytes(hmac.digest(key, older, "sha256").hex().encode() + b"\n" + older)

        with pytest.raises(WorkspaceError, match="an older version saved it without its workspace"):
            workspace.session("a", "chat")
