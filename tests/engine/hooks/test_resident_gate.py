"""The resident gate in its own process, asked by the real client as the hook of a coding agent."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import closing

import pytest

from gatewright.adapters.hosts import claude_code
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Approval, ApprovalRequest
from gatewright.policy.verdict import Verdict
from gatewright.tools import ToolExecutionContext
from gatewright.workspace import Workspace, hooks, permission_broker
from gatewright.workspace.trust import HOOK_FILES
from gatewright_resources import folder
from tests.engine.hooks.world import POLICY, TOOLS, HookWorld
from tests.support.patience import until

READ = {"file_path": "a.txt"}


async def test_the_first_hook_starts_the_gate_and_each_call_is_in_the_log_from_its_begin_to_its_end(
    world: HookWorld,
) -> None:
    assert world.gate_pid == 0
    assert (await world.ask("Read", READ, "t1"))["permissionDecision"] == "allow"
    first = world.gate_pid
    assert world.rows("ToolCompleted") == []
    await world.report("Read", READ, "t1", {"text": "content"})
    await until(lambda: world.rows("ToolCompleted"))
    assert [kind for kind, _, _ in world.rows()][-3:] == ["ToolInvoked", "PolicyDecision", "ToolCompleted"]
    assert first == world.gate_pid


async def test_a_denied_call_gives_the_host_the_reason_of_the_rule(world: HookWorld) -> None:
    answer = await world.ask("Read", {"file_path": "yesterday.txt"}, "t1")
    assert answer["permissionDecision"] == "deny"
    assert "yesterday is over" in answer["permissionDecisionReason"]
    assert [kind for kind, _, _ in world.rows()][-1] == "ToolDenied"


async def test_an_unknown_tool_is_denied_in_every_mode_with_the_way_to_accept_it(world: HookWorld) -> None:
    for number, mode in enumerate(("default", "bypassPermissions", "dontAsk", "acceptEdits")):
        answer = await world.ask("NewThing", {"a": 1}, f"t{number}", permission_mode=mode)
        assert answer["permissionDecision"] == "deny"
        assert "catalog import" in answer["permissionDecisionReason"]


async def test_a_gate_that_is_killed_mid_call_leaves_a_sound_log_and_the_next_hook_starts_another(
    world: HookWorld,
) -> None:
    assert (await world.ask("Read", READ, "t1"))["permissionDecision"] == "allow"
    world.end(signal.SIGKILL)
    await world.report("Read", READ, "t1")
    again = await world.ask("Read", READ, "t1")
    assert again["permissionDecision"] == "deny"  # its end is unknown, so it is not repeated
    assert (await world.ask("Read", READ, "t2"))["permissionDecision"] == "allow"
    assert len(world.rows("ToolInvoked")) == 3


async def test_a_gate_that_is_told_to_end_says_that_its_calls_were_abandoned(world: HookWorld) -> None:
    await world.ask("Read", READ, "t1")
    world.end()
    ((_, _, body),) = world.rows("ToolAbandoned")
    assert body["stopped"] is False


async def test_the_end_of_a_conversation_ends_what_was_never_reported(world: HookWorld) -> None:
    await world.ask("Read", READ, "t1")
    assert (await world.send(world.message("SessionEnd", "", {}, "")))[0] == 0
    await until(lambda: world.rows("ToolAbandoned"))


async def test_a_policy_that_is_edited_meanwhile_holds_for_the_very_next_call(world: HookWorld) -> None:
    await world.ask("Read", READ, "t1")
    world.policy.write_text(POLICY.replace('tools = ["claude.Bash", "claude.Read"', 'tools = ["claude.Bash"'))
    assert (await world.ask("Read", READ, "t2"))["permissionDecision"] == "deny"
    world.policy.write_text(POLICY)
    assert (await world.ask("Read", READ, "t3"))["permissionDecision"] == "allow"


@pytest.mark.parametrize("is_running", [True, False])
async def test_a_policy_with_errors_denies_with_the_reason_until_it_is_mended(
    world: HookWorld, is_running: bool
) -> None:
    if is_running:
        await world.ask("Read", READ, "t1")
    world.policy.write_text(POLICY + "\n[agents.x]\nnonsense = 1\n")
    answer = await world.ask("Read", READ, "t2")
    assert answer["permissionDecision"] == "deny"
    assert "nonsense" in answer["permissionDecisionReason"]
    world.policy.write_text(POLICY)
    assert (await world.ask("Read", READ, "t3"))["permissionDecision"] == "allow"


async def test_fifty_calls_at_once_start_one_gate_and_each_runs_once(world: HookWorld) -> None:
    answers = await asyncio.gather(*(world.ask("Read", READ, f"t{number}") for number in range(50)))
    assert {answer["permissionDecision"] for answer in answers} == {"allow"}
    assert len(world.rows("ToolInvoked")) == 50


async def test_the_same_message_from_two_entries_is_one_call_with_one_answer(world: HookWorld) -> None:
    answers = await asyncio.gather(*(world.ask("Read", READ, "t1") for _ in range(4)))
    assert {answer["permissionDecision"] for answer in answers} == {"allow"}
    assert len(world.rows("ToolInvoked")) == 1


async def test_a_call_id_that_comes_with_other_arguments_is_denied(world: HookWorld) -> None:
    await world.ask("Read", READ, "t1")
    assert (await world.ask("Read", {"file_path": "b.txt"}, "t1"))["permissionDecision"] == "deny"


async def test_a_question_that_the_host_cannot_ask_waits_and_the_repeated_call_runs_once(world: HookWorld) -> None:
    given = {"file_path": "a.txt", "content": "x"}
    answer = await world.ask("Write", given, "t1")
    assert answer["permissionDecision"] == "deny"
    with closing(permission_broker(world.policy, keys=world.keys)) as broker:
        (question,) = broker.pending()
        assert question.request_id in answer["permissionDecisionReason"]
        again = await world.ask("Write", given, "t2")
        assert question.request_id in again["permissionDecisionReason"]
        broker.answer(question.request_id, Approval(True, "ann"))
    assert (await world.ask("Write", {**given, "content": "y"}, "t3"))["permissionDecision"] == "deny"
    assert (await world.ask("Write", given, "t4", session_id="talk-2"))["permissionDecision"] == "deny"
    assert (await world.ask("Write", given, "t4", cwd=str(world.folder)))["permissionDecision"] == "deny"
    assert (await world.ask("Write", given, "t5"))["permissionDecision"] == "allow"
    await world.report("Write", given, "t5")
    await until(lambda: world.rows("ToolCompleted"))
    assert (await world.ask("Write", given, "t6"))["permissionDecision"] == "deny"


async def test_the_same_call_id_takes_its_answer_in_another_process_of_the_gate(world: HookWorld) -> None:
    given = {"file_path": "a.txt", "content": "x"}
    await world.ask("Write", given, "t1")
    world.end()
    with closing(permission_broker(world.policy, keys=world.keys)) as broker:
        (question,) = broker.pending()
        broker.answer(question.request_id, Approval(True, "ann"))
    assert (await world.ask("Write", given, "t1"))["permissionDecision"] == "allow"


PRINTS = ("-p", "--output-format", "json")


def _transcript(world: HookWorld, *calls: str, stop: str | None = "tool_use", end: str = "\n") -> str:
    """Write the transcript of a conversation whose last answer makes these calls, each on a line of its own."""
    said = [("user", "msg_0", {"type": "text", "text": "go"}), ("assistant", "msg_0", {"type": "tool_use", "id": "t0"})]
    said += [("assistant", "msg_1", {"type": "tool_use", "id": call}) for call in calls]
    file = world.folder / "transcript.jsonl"
    lines = [
        {"type": kind, "message": {"id": answer, "content": [block], "stop_reason": stop}}
        for kind, answer, block in said
    ]
    file.write_text("half a li\n" + "\n".join(map(json.dumps, lines)) + end)
    return str(file)


async def test_a_call_for_whose_answer_the_host_ends_runs_once_when_it_goes_on(world: HookWorld) -> None:
    given, world.host = {"file_path": "a.txt", "content": "x"}, PRINTS
    transcript = _transcript(world, "t1")
    for mode in ("default", "bypassPermissions"):
        answer = await world.ask("Write", given, "t1", transcript_path=transcript, permission_mode=mode)
        assert answer["permissionDecision"] == "defer"
    with closing(permission_broker(world.policy, keys=world.keys)) as broker:
        (question,) = broker.pending()
        assert question.request_id in answer["permissionDecisionReason"]
        broker.answer(question.request_id, Approval(True, "ann"))
    assert (await world.ask("Write", given, "t1", transcript_path=transcript))["permissionDecision"] == "allow"
    await world.report("Write", given, "t1")
    await until(lambda: world.rows("ToolCompleted"))
    assert (await world.ask("Write", given, "t1", transcript_path=transcript))["permissionDecision"] == "deny"
    assert len(world.rows("ToolCompleted")) == 1


@pytest.mark.parametrize(
    ("started", "calls", "more"),
    [
        (("--output-format", "json"), ["t1"], {}),
        (("-p",), ["t1"], {}),
        (("-p", "--output-format", "text"), ["t1"], {}),
        (PRINTS, ["t1", "t2"], {}),
        (PRINTS, ["t2"], {}),
        (PRINTS, ["t1"], {"agent_id": "a1", "agent_type": "Explore"}),
        (PRINTS, [], {}),
        (PRINTS, ["t1"], {"transcript_path": ""}),
        (PRINTS, ["t1"], {"transcript_path": "/dev/zero"}),
    ],
)
async def test_a_call_that_the_host_could_run_in_place_of_ending_is_denied_with_its_id(
    world: HookWorld, started: tuple[str, ...], calls: list[str], more: dict[str, str]
) -> None:
    world.host = started
    about = {"transcript_path": _transcript(world, *calls), **more}
    answer = await world.ask("Write", {"file_path": "a.txt", "content": "x"}, "t1", **about)
    assert answer["permissionDecision"] == "deny"
    assert "gatewright approvals answer" in answer["permissionDecisionReason"]


@pytest.mark.parametrize(
    ("first", "stop", "end"),
    [((), None, "\n"), (("t1",), None, "\n"), (("t1",), "tool_use", "")],
    ids=["nothing", "incomplete", "half a line"],
)
@pytest.mark.parametrize(("later", "is_alone"), [(("t1",), True), (("t1", "t2"), False)])
async def test_an_answer_that_is_not_whole_when_its_first_call_is_asked_about_is_waited_for(
    world: HookWorld,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[str, ...],
    stop: str | None,
    end: str,
    later: tuple[str, ...],
    is_alone: bool,
) -> None:
    monkeypatch.setattr(claude_code, "_WHOLE_S", 3600.0)  # however busy the machine is
    transcript = _transcript(world, *first, stop=stop, end=end)
    event = claude_code.HOST.read(
        json.loads(world.message("PreToolUse", "Write", {}, "t1", transcript_path=transcript))
    )
    asked = asyncio.ensure_future(claude_code.HOST.can_defer(event, PRINTS))
    await asyncio.sleep(0.1)
    assert not asked.done()
    _transcript(world, *later)
    assert await asked is is_alone


@pytest.mark.parametrize(("stop", "end"), [(None, "\n"), ("tool_use", "")], ids=["incomplete", "half a line"])
async def test_a_call_whose_answer_does_not_become_whole_is_denied_with_its_id(
    world: HookWorld, stop: str | None, end: str
) -> None:
    world.host = PRINTS
    about = {"transcript_path": _transcript(world, "t1", stop=stop, end=end)}
    answer = await world.ask("Write", {"file_path": "a.txt", "content": "x"}, "t1", **about)
    assert answer["permissionDecision"] == "deny"
    assert "gatewright approvals answer" in answer["permissionDecisionReason"]


async def test_an_operator_who_is_there_answers_within_the_hosts_time(world: HookWorld) -> None:
    with closing(permission_broker(world.policy, keys=world.keys)) as broker:

        def allow(questions: tuple[ApprovalRequest, ...]) -> None:
            for one in questions:
                broker.answer(one.request_id, Approval(True, "ann"))

        leave = broker.subscribe(allow)
        answer = await world.ask("Write", {"file_path": "a.txt"}, "t1")
        leave()
    assert answer["permissionDecision"] == "allow"


async def test_a_host_that_asks_its_person_gets_the_question_and_the_log_says_who_answered(world: HookWorld) -> None:
    given, world.host = {"file_path": "a.txt", "content": "x"}, ("--output-format", "json")
    answer = await world.ask("Write", given, "t1", permission_mode="default")
    assert answer["permissionDecision"] == "ask"
    assert world.rows("ApprovalResolved", "ToolCompleted") == []
    await world.report("Write", given, "t1")
    await until(lambda: world.rows("ToolCompleted"))
    ((_, _, body),) = world.rows("ApprovalResolved")
    assert body["who"] == "the person at Claude Code"


async def test_gemini_edits_no_other_file_that_ends_like_a_missing_relative_path(world: HookWorld) -> None:
    (world.project / "there.txt").write_text("x")
    words = [word if word != "claude-code" else "gemini-cli" for word in world.words()]
    for path, is_refused in (("gone.txt", True), ("b/there.txt", True), ("there.txt", False), ("/gone.txt", False)):
        said = {"hook_event_name": "BeforeTool", "tool_name": "replace", "tool_input": {"file_path": path}}
        message = {**said, "session_id": "talk-1", "cwd": str(world.project)}
        code, out, reason = await world.start(words, json.dumps(message).encode())
        assert ("is relative" in reason, code) == (is_refused, 2 if is_refused else 0), (path, out)
        assert is_refused or json.loads(out)["decision"] == "deny"  # the policy has no such tool


@pytest.mark.parametrize("tool", ["Write", "apply_patch"])
async def test_a_path_that_somebody_leads_elsewhere_while_the_host_writes_shows_in_the_log(
    world: HookWorld, tool: str
) -> None:
    world.policy.write_text(
        POLICY.replace('"claude.Write" = "ask"', '"claude.apply_patch" = "allow"').replace(
            '"claude.Write"', f'"claude.{tool}"'
        )
    )
    patch: dict[str, object] = {
        "name": "apply_patch",
        "description": "Changes files.",
        "_meta": {"gatewright": {"arguments": {"command": "patch"}}},
    }
    patch["inputSchema"] = {"type": "object", "properties": {"command": {"type": "string"}}}
    manifest = world.folder / "catalogs" / "claude-code.tools.json"
    manifest.write_text(json.dumps({"tools": [*TOOLS["tools"], patch]}))
    for folder_name in ("one", "two"):
        (world.project / folder_name).mkdir()
    link = world.project / "link"
    said = "*** Begin Patch\n*** Add File: link/a.txt\n+x\n*** End Patch"
    given = {"command": said} if tool == "apply_patch" else {"file_path": "link/a.txt", "content": "link/b.txt"}
    for number, (before, after) in enumerate((("one", "one"), ("one", "two"))):
        link.unlink(missing_ok=True)
        link.symlink_to(before)
        answer = await world.ask(tool, given, f"t{number}")
        assert answer["permissionDecision"] == "allow", answer
        link.unlink()
        link.symlink_to(after)
        (link / "a.txt").write_text("x")
        await world.report(tool, given, f"t{number}")
        await until(lambda number=number: len(world.rows("ToolCompleted", "ToolFailed")) > number)
    (_, _, well), (_, _, body) = world.rows("ToolCompleted", "ToolFailed")
    assert (well["code"], body["code"]) == ("", "led-elsewhere")


async def test_a_host_without_ids_ends_the_call_whose_arguments_it_reports(world: HookWorld) -> None:
    text = POLICY.replace('"claude-code"', '"gemini-cli"').replace('"claude', '"gemini')
    world.policy.write_text(text)
    words = [word if word != "claude-code" else "gemini-cli" for word in world.words()]

    async def tell(moment: str, path: str) -> None:
        said = {
            "hook_event_name": moment,
            "tool_name": "Read",
            "tool_input": {"file_path": path},
            "tool_response": path,
        }
        message = {**said, "session_id": "talk-1", "cwd": str(world.project)}
        assert (await world.start(words, json.dumps(message).encode()))[0] == 0

    for path in ("a", "b", "c"):
        await tell("BeforeTool", path)
    begun = {body["arguments"]["file_path"]: number for number, (_, _, body) in enumerate(world.rows("ToolInvoked"))}
    assert sorted(begun) == ["a", "b", "c"]
    for path in ("b", "unheard of", "c", "another spelling of a"):
        await tell("AfterTool", path)
        await until(lambda path=path: path == "unheard of" or len(ends(world)) == {"b": 1, "c": 2}.get(path, 3))
    assert ends(world) == ["b", "c", "a"]


def ends(world: HookWorld) -> list[str]:
    """The paths of the calls that have ended, in the order of their ends."""
    with Workspace.open(world.policy, keys=world.keys) as workspace:
        rows = list(workspace.audit.rows())
    paths = {row.call_id: json.loads(row.body)["arguments"]["file_path"] for row in rows if row.kind == "ToolInvoked"}
    return [paths[row.call_id] for row in rows if row.kind == "ToolCompleted"]


async def test_calls_that_nobody_reports_take_only_so_much_memory(
    world: HookWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(world.run))
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(world.keys))
    monkeypatch.setattr(hooks, "MOST_HELD_BYTES", 4_000)
    gate = asyncio.ensure_future(hooks.HookGate(world.policy, lambda _: None).serve())
    await until(lambda: world.gate_pid)
    answers = [await world.ask("Read", {"file_path": f"{one}/" * 500}, f"t{one}") for one in range(4)]
    assert [one["permissionDecision"] for one in answers] == ["allow", "allow", "allow", "deny"]
    await world.report("Read", {"file_path": "0/" * 500}, "t0")
    await until(lambda: world.rows("ToolCompleted"))
    assert (await world.ask("Read", {"file_path": "x"}, "t5"))["permissionDecision"] == "allow"
    gate.cancel()
    await asyncio.gather(gate, return_exceptions=True)


@pytest.mark.parametrize("mode", ["auto", "dontAsk", "bypassPermissions", "a mode of next year"])
async def test_a_mode_in_which_no_person_answers_gets_no_question(world: HookWorld, mode: str) -> None:
    answer = await world.ask("Write", {"file_path": "a.txt", "content": "x"}, "t1", permission_mode=mode)
    assert answer["permissionDecision"] == "deny"
    assert "gatewright approvals answer" in answer["permissionDecisionReason"]


async def test_a_sub_agent_has_no_more_than_its_own_rights_and_those_of_its_caller(world: HookWorld) -> None:
    assert (await world.ask("Bash", {"command": "ls"}, "t1", agent_type="helper"))["permissionDecision"] == "deny"
    assert (await world.ask("Read", READ, "t2", agent_type="helper"))["permissionDecision"] == "allow"
    denied = await world.ask("Read", {"file_path": "yesterday"}, "t3", agent_type="helper")
    assert denied["permissionDecision"] == "deny"
    assert (await world.ask("Read", READ, "t4", agent_type="Explore"))["permissionDecision"] == "allow"
    assert [agent for _, agent, _ in world.rows("ToolInvoked")] == ["helper", "helper", "helper", "coder"]


_NO_MESSAGES = (b"", b"{", b"[]", b"null", b'{"a": 1}', b'{"hook_event_name": "PreToolUse"}', b"\xff", b"[" * 100_000)


@pytest.mark.parametrize("message", _NO_MESSAGES)
async def test_a_message_that_cannot_be_read_is_a_denial_and_the_gate_goes_on(world: HookWorld, message: bytes) -> None:
    code, out, said = await world.send(message)
    assert (code, out) == (2, "")
    assert said.startswith("gatewright: not allowed")
    assert (await world.ask("Read", READ, "t1"))["permissionDecision"] == "allow"


@pytest.mark.parametrize("tool", ["Read", "Write"])
async def test_socket_key_and_client_are_closed_to_every_tool_like_the_policy(
    world: HookWorld, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.ask("Read", READ, "t0")
    places = (world.run / "gatewright" / world.place.socket.name, world.place.key, *HOOK_FILES, world.policy)
    grants = '{ FsRead = { prefixes = ["/"] } }, { FsWrite = { prefixes = ["/"] } }'
    world.policy.write_text(POLICY.replace("{ Exec = {} }", grants))
    manifest = world.folder / "catalogs" / "claude-code.tools.json"
    manifest.write_bytes(folder("hosts").joinpath(manifest.name).read_bytes())
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(world.run))
    with Workspace.open(world.policy, keys=world.keys, trust=True) as workspace:
        for place in places:
            context = ToolExecutionContext("coder", "", folder=str(world.project))
            given: dict[str, JsonValue] = {"file_path": str(place)}
            if tool == "Write":
                given["content"] = "x"
            decision = workspace.gate.decide("coder", f"claude.{tool}", given, context=context)
            assert (decision.effect, decision.code) == (Verdict.DENY, "protected"), (place, decision)


async def test_two_agents_of_one_policy_share_a_gate_and_keep_their_rights(world: HookWorld) -> None:
    coder, helper = await asyncio.gather(
        world.ask("Bash", {"command": "true"}, "t1"), world.ask("Bash", {"command": "true"}, "t2", agent="helper")
    )
    assert (coder["permissionDecision"], helper["permissionDecision"]) == ("allow", "deny")
    assert (await world.ask("Read", READ, "t3", agent="nobody"))["permissionDecision"] == "deny"


async def test_a_gate_without_calls_ends_itself(world: HookWorld) -> None:
    words = ("-m", "gatewright", "serve", str(world.policy), "--hooks", "--idle", "1s")
    world.environment["GATEWRIGHT_KEYS"] = str(world.keys)
    code, _, said = await world.start((sys.executable, *words))
    assert (code, "answering hooks" in said) == (0, True)
    assert not world.place.socket.exists()
