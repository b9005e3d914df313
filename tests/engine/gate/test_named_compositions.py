"""Compositions that their program names: a step that asks suspends the whole, and no step is made twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright import Workspace, tool
from gatewright.gate import Approval, ApprovalRequest, Outcome, RowKind, Status
from gatewright.gate.audit_index import AuditFilter, AuditIndex
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.tool import Tool
from tests.support.clock import ManualClock

HEAD = """gatewright = 1

[agents.clerk]
tools = ["pay", "note", "one", "two", "three", "four"]
approvals = { side_effecting = "allow", pay = "ask" }
"""
INPUT = '{ properties = { text = { type = "string" } } }'


def step(tool: str, text: str) -> str:
    return f'{{ tool = "{tool}", arguments = {{ text = "{text}" }} }}'


STEPS = {
    "one": (step("note", "$input.text"), step("pay", "$steps.0"), step("note", "z")),
    "two": (step("note", "b"), step("one", "$input.text"), step("pay", "y")),
    "three": (step("two", "$input.text"), step("note", "$steps.0")),
    "four": (step("pay", "x"), step("three", "$steps.0")),
}
COMPOSITIONS = "".join(
    f'[[compositions]]\nname = "{name}"\ninput = {INPUT}\nsteps = [{", ".join(steps)}]\n'
    for name, steps in STEPS.items()
)
Opened = Callable[..., Workspace]


class World:
    """What happened: a line for each effect, that a killed process has made too."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "effects"
        self.path.touch()
        self.then: Callable[[str], object] = bool

    @property
    def effects(self) -> list[str]:
        return self.path.read_text("utf-8").split()

    def tools(self) -> list[Tool]:
        def happen(what: str, text: str) -> str:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{what}:{text}\n")
            self.then(f"{what}:{text}")
            return text

        @tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING, normalization=Normalization.JSON)
        async def pay(text: str) -> str:
            """Pay.

            Args:
                text: What for.
            """
            return happen("pay", text)

        @tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING, normalization=Normalization.JSON)
        async def note(text: str) -> str:
            """Note.

            Args:
                text: What.
            """
            return happen("note", text)

        return [pay, note]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def opened(tmp_path: Path, world: World) -> Iterator[Opened]:
    """Opens the workspace as another process would: nothing is shared but the files."""
    folder, made, clock = tmp_path / "w", list[Workspace](), ManualClock()
    folder.mkdir()
    (folder / "policy.toml").write_text(HEAD + COMPOSITIONS, "utf-8")

    def open_it() -> Workspace:
        made.append(Workspace.open(folder, tools=world.tools(), keys=tmp_path / "keys", clock=clock))
        return made[-1]

    yield open_it
    for one in made:
        one.close()


async def make(workspace: Workspace, name: str = "one", text: str = "a", **more: Any) -> Outcome:
    given: dict[str, Any] = {"call_id": "c1", "conversation": "chat", "on_ask": "suspend"} | more
    return await workspace.call("clerk", name, {"text": text}, **given)


def answer(workspace: Workspace, approval: Approval | None = None) -> None:
    question = workspace.broker.pending()[0]
    assert workspace.broker.answer(question.request_id, approval or Approval(True, "dana"))


WHOLE = {
    "one": ["note:a", "pay:a", "note:z"],
    "two": ["note:b", "note:a", "pay:a", "note:z", "pay:y"],
    "three": ["note:b", "note:a", "pay:a", "note:z", "pay:y", "note:y"],
    "four": ["pay:x", "note:b", "note:x", "pay:x", "note:z", "pay:y", "note:y"],
}


@pytest.mark.parametrize("where", ["chat", ""])
@pytest.mark.parametrize("name", WHOLE)
async def test_a_step_that_asks_suspends_the_whole_and_no_step_is_made_twice(
    opened: Opened, world: World, name: str, where: str
) -> None:
    asked, seen = await make(opened(), name, conversation=where), 0
    while asked.status is Status.WAITING:
        assert world.effects == WHOLE[name][: len(world.effects)]
        assert asked.question is not None
        assert (await make(opened(), name, conversation=where)).question == asked.question
        assert [one.request_id for one in opened().broker.pending()] == [asked.question.request_id]
        assert asked.question.call_key.startswith("c1:")
        answer(opened())
        asked, seen = await make(opened(), name, conversation=where), seen + 1
    assert (asked.status, world.effects) == (Status.ALLOWED, WHOLE[name]), asked.detail
    assert seen == sum(effect.startswith("pay") for effect in WHOLE[name])
    report = opened().audit.verify()
    assert (report.problems, report.unended, opened().broker.pending()) == ((), (), ())
    if where:
        again = await make(opened(), name)
        assert (again.replayed, again.output, world.effects) == (True, asked.output, WHOLE[name])


@pytest.mark.parametrize("effect", ["note:a", "pay:a", "note:z", "pay:y"])
def test_a_composition_killed_in_a_step_tells_that_its_end_is_unknown(
    opened: Opened, world: World, effect: str
) -> None:
    world.then = lambda happened: happened == effect and os.kill(os.getpid(), signal.SIGKILL)
    done = WHOLE["two"][: WHOLE["two"].index(effect) + 1]
    while world.effects != done:
        _in_child(lambda: make(opened(), "two"))
        for question in opened().broker.pending():
            opened().broker.answer(question.request_id, Approval(True, "dana"))
    for replayed in (False, True):
        again = asyncio.run(make(opened(), "two"))
        assert (again.status, again.code, again.replayed) == (Status.FAILED, "end-unknown", replayed)
    assert world.effects == done


@pytest.mark.parametrize("kept", [1, 2, 3, 4, 5])
def test_a_composition_killed_between_two_steps_goes_on_where_it_was(opened: Opened, world: World, kept: int) -> None:
    opened().policy_path.write_text(HEAD.replace('"ask"', '"allow"') + COMPOSITIONS, "utf-8")
    ended = list[str]()

    def die(outcome: Outcome) -> None:
        ended.append(outcome.tool)
        if len(ended) == kept:  # which is before the next step begins
            os.kill(os.getpid(), signal.SIGKILL)

    def begin() -> Any:
        workspace = opened()
        workspace.on_outcome(die)
        return make(workspace, "two")

    _in_child(begin)
    assert len(world.effects) == min(kept, 4)  # the second step is a composition of three
    assert [row.kind for row in opened().audit.verify().unended] == ["ToolInvoked"] * (2 if 1 < kept < 5 else 1)
    made = asyncio.run(make(opened(), "two"))
    assert (made.status, world.effects) == (Status.ALLOWED, WHOLE["two"])
    assert opened().audit.verify().unended == ()


async def test_the_answer_to_the_whole_call_lasts_until_its_end(opened: Opened, world: World) -> None:
    workspace = opened()
    text = (HEAD + COMPOSITIONS).replace('pay = "ask"', 'pay = "ask", one = "ask"')
    workspace.policy_path.write_text(text, "utf-8")
    for effects in ([], ["note:a"], WHOLE["one"]):
        if world.effects or effects:
            answer(opened())
        made = await make(opened())
        assert world.effects == effects
    assert made.status is Status.ALLOWED
    spent = [json.loads(row.body) for row in workspace.audit.rows() if row.kind == RowKind.TOOL_INVOKED]
    answers = {(body["answer"], body.get("run")) for body in spent if "answer" in body}
    assert len(answers) == len({one for one, _ in answers}) == 2


async def test_a_question_of_a_step_resumes_its_composition(opened: Opened, world: World) -> None:
    asked = await make(opened(), "two", conversation="", call_id="")
    assert asked.question is not None
    assert asked.question.tool == "pay"
    answer(opened())
    second = await opened().resume(asked.question.request_id)
    assert second.question is not None
    answer(opened())
    assert (await opened().resume(second.question.request_id)).status is Status.ALLOWED
    assert world.effects == WHOLE["two"]


@pytest.mark.parametrize("at_once", [3, 50_000])
async def test_the_log_shows_that_a_composition_waits_and_then_its_end(opened: Opened, at_once: int) -> None:
    def ends() -> dict[str, str]:
        index = AuditIndex(opened().state_folder)
        while index.read_older(at_once):
            pass
        calls = index.calls(index.numbers(AuditFilter()))
        index.close()
        return {call.called: call.ended for call in calls if call.called in {"one", "pay"}}

    await make(opened())
    assert ends() == {"one": "", "pay": ""}
    answer(opened())
    await make(opened())
    assert ends() == {"one": RowKind.TOOL_COMPLETED, "pay": RowKind.TOOL_COMPLETED}


def test_a_composition_that_waits_in_its_process_makes_no_step_twice_either(opened: Opened, world: World) -> None:
    async def die(_: ApprovalRequest) -> Approval:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    async def approve(_: ApprovalRequest) -> Approval:
        return Approval(True, "dana")

    _in_child(lambda: make(opened(), "two", on_ask="wait", approver=die))
    assert world.effects == ["note:b", "note:a"]
    made = asyncio.run(make(opened(), "two", on_ask="wait", approver=approve))
    assert (made.status, world.effects) == (Status.ALLOWED, WHOLE["two"])
    assert asyncio.run(make(opened(), "two")).replayed


@pytest.mark.parametrize("effect", ["ask", "deny"])
async def test_an_outside_result_that_is_told_again_marks_the_session_too(
    opened: Opened, world: World, effect: str
) -> None:
    outside = '[tools.note]\ntrust = "outside"\n'
    rule = f'[[agents.clerk.tool_rules]]\ntool_name = "pay"\nrule_type = {{ AfterOutside = "{effect}" }}\n'
    opened().policy_path.write_text(HEAD.replace('"ask"', '"allow"') + rule + outside + COMPOSITIONS, "utf-8")
    named: dict[str, Any] = {"call_id": "n1", "conversation": "chat"}
    await opened().call("clerk", "note", {"text": "x"}, **named)
    workspace = opened()
    assert (await workspace.call("clerk", "pay", {"text": "x"})).status is Status.ALLOWED
    assert (await workspace.call("clerk", "note", {"text": "x"}, **named)).replayed
    assert (await workspace.call("clerk", "pay", {"text": "x"})).decision.verdict == effect
    for _ in range(3):
        made = await make(opened())  # whose first step is from outside
        assert made.status is (Status.WAITING if effect == "ask" else Status.FAILED)
    assert world.effects == ["note:x", "pay:x", "note:a"]
    if effect == "ask":
        answer(opened())
        assert (await make(opened())).status is Status.ALLOWED


async def test_a_refused_step_ends_the_whole(opened: Opened, world: World) -> None:
    await make(opened())
    answer(opened(), Approval(False, "dana", reason="too much"))
    for replayed in (False, True):
        refused = await make(opened())
        assert (refused.status, refused.code, refused.replayed) == (Status.FAILED, "approval-refused", replayed)
        assert "done before that, and not undone: the first step" in refused.output
    assert world.effects == ["note:a"]


async def test_other_arguments_are_another_call_while_a_step_waits(opened: Opened, world: World) -> None:
    await make(opened())
    other = await make(opened(), text="b")
    assert (other.status, other.code) == (Status.DENIED, "call-id-reused")
    answer(opened())
    assert (await make(opened())).status is Status.ALLOWED
    assert world.effects == WHOLE["one"]


async def test_other_steps_are_not_made_in_the_place_of_finished_ones(opened: Opened, world: World) -> None:
    await make(opened())
    workspace = opened()
    text = (HEAD + COMPOSITIONS).replace(step("note", "$input.text"), step("note", "other"))
    workspace.policy_path.write_text(text, "utf-8")
    changed = await make(opened())
    assert (changed.status, changed.code) == (Status.FAILED, "call-id-reused")
    assert world.effects == ["note:a"]


async def test_another_policy_voids_the_question_of_a_step(opened: Opened, world: World) -> None:
    first = await make(opened())
    answer(opened())
    opened().policy_path.write_text(HEAD.replace('"ask"', '"ask", shell_exec = "deny"') + COMPOSITIONS, "utf-8")
    second = await make(opened())
    assert (second.status, world.effects) == (Status.WAITING, ["note:a"])
    assert [one.request for one in opened().broker.stale()] == [first.question]


async def test_a_denial_of_the_whole_wins_and_is_not_its_end(opened: Opened, world: World) -> None:
    await make(opened())
    answer(opened())
    policy = opened().policy_path
    policy.write_text(HEAD.replace('pay = "ask"', 'pay = "ask", one = "deny"') + COMPOSITIONS, "utf-8")
    assert (await make(opened())).status is Status.DENIED
    policy.write_text(HEAD + COMPOSITIONS, "utf-8")
    assert (await make(opened())).status is Status.ALLOWED
    assert world.effects == WHOLE["one"]


async def test_a_composition_that_waits_counts_once_and_so_do_its_steps(opened: Opened, world: World) -> None:
    rules = ("one", "MaxCalls = 1"), ("one", 'Cooldown = "1h"'), ("note", "MaxCalls = 2"), ("pay", "MaxCalls = 1")
    limits = "".join(
        f'[[agents.clerk.tool_rules]]\ntool_name = "{name}"\nrule_type = {{ {rule} }}\n' for name, rule in rules
    )
    opened().policy_path.write_text(HEAD + limits + COMPOSITIONS, "utf-8")

    async def in_session(**more: Any) -> Outcome:
        workspace = opened()
        async with workspace.sessions.hold("s1", agent_id="clerk") as session:
            return await make(workspace, session=session, **more)

    for _ in range(3):
        assert (await in_session()).status is Status.WAITING
    answer(opened())
    assert (await in_session()).status is Status.ALLOWED
    assert (await in_session(call_id="c2")).code == "max-calls"
    assert world.effects == WHOLE["one"]


async def test_a_step_with_the_name_of_another_call_is_not_that_call(opened: Opened, world: World) -> None:
    await opened().call("clerk", "note", {"text": "a"}, call_id="c1:0", conversation="chat")
    await make(opened())
    answer(opened())
    assert (await make(opened())).status is Status.ALLOWED
    assert world.effects == ["note:a", *WHOLE["one"]]


async def test_callers_of_one_moment_make_each_step_once(opened: Opened, world: World) -> None:
    workspaces = [opened() for _ in range(3)]
    for _ in range(2):
        made = await asyncio.gather(*(make(one, "two") for one in workspaces for _ in range(2)))
        assert {one.status for one in made} <= {Status.WAITING, Status.DENIED}
        assert len(opened().broker.pending()) == 1
        answer(opened())
    made = await asyncio.gather(*(make(one, "two") for one in workspaces for _ in range(2)))
    assert {one.status for one in made} <= {Status.ALLOWED, Status.DENIED}
    assert (await make(opened(), "two")).status is Status.ALLOWED
    assert world.effects == WHOLE["two"]
    assert opened().audit.verify().unended == ()


@pytest.mark.parametrize("named", ["whole", "call", "waits"])
async def test_a_listener_hears_of_a_call_at_whatever_moment_its_caller_gives_up(
    opened: Opened, world: World, named: str
) -> None:
    opened().policy_path.write_text((HEAD if named == "waits" else HEAD.replace('"ask"', '"allow"')) + COMPOSITIONS)
    workspace, heard, ended = opened(), list[Outcome](), False
    workspace.on_outcome(heard.append)
    turns = 0
    while not ended:
        heard.clear()
        name = "pay" if named == "call" else "one"
        call = asyncio.ensure_future(make(workspace, name, call_id=f"n{turns}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        ended = not call.cancel()
        (made,) = await asyncio.gather(call, return_exceptions=True)
        if turns:  # else it never began
            last = heard[-1]
            assert last.tool == name
            assert [one.tool for one in heard].count(name) == 1
            is_given_up = isinstance(made, asyncio.CancelledError)
            assert last is made if not is_given_up else last.status is Status.ABANDONED or last.code == "cancelled"
        turns += 1 if turns < 30 else turns
    assert turns > 3


def _in_child(work: Callable[[], Any]) -> None:
    """Do it in another process, which may be killed in the midst of it."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] in {0, signal.SIGKILL}
