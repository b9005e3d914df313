"""Tools made of calls of other tools: how they are read, run, shown and recorded, and that they give no rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import PolicyInvalid
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.cli.main import main
from gatewright.gate import Approval, ApprovalRequest, Outcome, StageTrace, Status
from gatewright.gate.pipeline import STAGES
from gatewright.policy.agentedit import describe_agent
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import Tool, tool
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.workspace import Workspace

HEAD = "gatewright = 1\n"
SOURCE = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\ndefault_permission = "read_write"\n'
OPERATIONS = ("read", "create", "append", "delete", "list", "load")


def agent(*tools: str, more: str = "", name: str = "a") -> str:
    return f'[agents.{name}]\ntools = {json.dumps(tools)}\nsources = ["docs"]\n{more}\n'


def composition(name: str, *steps: str, schema: str = "", **keys: str) -> str:
    held = "".join(f"{key} = {value}\n" for key, value in keys.items())
    schema = f"input = {schema}\n" if schema else ""
    listed = "".join(f"  {step},\n" for step in steps)
    return f'[[compositions]]\nname = "{name}"\n{schema}{held}steps = [\n{listed}]\n'


def opened(folder: Path, text: str, *tools: Tool) -> Workspace:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs/a.md").write_text("one\n", "utf-8")
    (folder / "policy.toml").write_text(HEAD + text + SOURCE, "utf-8")
    return Workspace.open(folder, keys=folder / "keys", tools=tools)


def call(workspace: Workspace, name: str, **arguments: JsonValue) -> Outcome:
    return aio.run(workspace.call("a", name, arguments))


def problems(folder: Path, text: str) -> list[tuple[str, int, str]]:
    try:
        opened(folder, text).close()
    except PolicyInvalid as error:
        return [(one.code, one.place.line if one.place else 0, one.message) for one in error.problems if one.is_error]
    return []


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.ANY, normalization=Normalization.JSON)
async def echo(value: Any) -> Any:
    """Give back what it got.

    Args:
        value: Anything.
    """
    return value


@tool(safety_tier=SafetyTier.READ_ONLY)
async def drip() -> AsyncIterator[str]:
    """Give a text in pieces."""
    yield "one "
    yield "two"


READ = '{ tool = "file", arguments = { op = "read", path = "$input.path" } }'
COPY = '{ tool = "file", arguments = { op = "create", path = "$input.to", content = "$steps.0.data.content" } }'
IF_LONG = (
    '{ tool = "file", arguments = { op = "append", path = "$input.to", content = "more" }, '
    'when = { properties = { input = { required = ["more"] } } } }'
)
PATHS = '{ type = "object", properties = { path = { type = "string" }, to = { type = "string" }, more = {} } }'
COPIES = composition("copy", READ, COPY, IF_LONG, schema=PATHS, description='"Copies a note."')
FREE = 'approvals = { side_effecting = "allow" }'


def test_the_model_sees_one_tool_and_its_call_makes_the_steps(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy", more=FREE) + COPIES)
    shown: Any = workspace.gate.view("a").tools("mcp")
    listed = next(one for one in shown if one["name"] == "copy")
    assert listed["description"] == "Copies a note."
    assert set(listed["inputSchema"]["properties"]) == {"path", "to", "more"}

    outcome = call(workspace, "copy", path="a.md", to="b.md")

    assert outcome.status is Status.ALLOWED
    assert (tmp_path / "docs/b.md").read_text("utf-8") == "one\n"
    assert [step.status for step in outcome.steps] == [Status.ALLOWED, Status.ALLOWED]
    assert json.loads(outcome.output)["data"]["label"].endswith(":b.md")  # what the last step gave
    workspace.close()


def test_a_step_runs_only_where_its_condition_holds(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy", more=FREE) + COPIES)
    assert len(call(workspace, "copy", path="a.md", to="b.md").steps) == 2
    assert len(call(workspace, "copy", path="a.md", to="c.md", more=None).steps) == 3
    workspace.close()


def test_a_condition_may_look_at_earlier_results(tmp_path: Path) -> None:
    second = (
        '{ tool = "echo", arguments = { value = "large" }, '
        "when = { properties = { steps = { prefixItems = [{ minimum = 10 }] } } } }"
    )
    first = '{ tool = "echo", arguments = { value = "$input.n" } }'
    text = agent("echo", "look") + composition("look", first, second, schema="{ properties = { n = {} } }")
    workspace = opened(tmp_path, text, echo)
    assert call(workspace, "look", n=3).output == "3"
    assert call(workspace, "look", n=30).output == "large"
    workspace.close()


def test_its_tier_is_the_highest_of_its_steps_and_its_effects_are_theirs(tmp_path: Path) -> None:
    reads = composition("reads", READ, schema=PATHS)
    outer = composition("outer", '{ tool = "reads", arguments = { path = "a.md" } }', '{ tool = "shell_exec" }')
    workspace = opened(tmp_path, agent("file", "reads", "copy", "outer") + COPIES + reads + outer)
    tiers = {one.name: one.tier for one in workspace.gate.snapshot().registry.facts()}
    assert tiers["reads"] is SafetyTier.READ_ONLY
    assert tiers["copy"] is SafetyTier.SIDE_EFFECTING
    assert tiers["outer"] is SafetyTier.PRIVILEGED
    tools = {one.name: one for one in workspace.gate.snapshot().registry.tools()}
    assert tools["copy"].side_effects == tools["file"].side_effects
    assert workspace.decide("a", "outer", {}).verdict is Verdict.ASK
    workspace.close()


def test_settings_of_a_tool_raise_the_tier_of_what_calls_it(tmp_path: Path) -> None:
    text = agent("file", "reads") + composition("reads", READ, schema=PATHS)
    workspace = opened(tmp_path, text + '[tools.file]\nsafety_tier = "privileged"\n')
    assert workspace.decide("a", "reads", {"path": "a.md"}).verdict is Verdict.ASK
    workspace.close()


def test_every_step_asks_for_itself(tmp_path: Path) -> None:
    asked: list[str] = []

    async def approver(request: ApprovalRequest) -> Approval:
        asked.append(f"{request.tool}.{request.operation}")
        return Approval(approved=request.tool != "file", who="test")

    more = 'approvals = { side_effecting = "allow", "file.create" = "ask" }'
    workspace = opened(tmp_path, agent("file", "copy", more=more) + COPIES)
    outcome = aio.run(workspace.call("a", "copy", {"path": "a.md", "to": "b.md"}, approver=approver))

    assert asked == ["file.create"]
    assert outcome.status is Status.FAILED
    assert "the second of 3 steps was not made" in outcome.output
    assert "done before that, and not undone: the first step" in outcome.output
    assert not (tmp_path / "docs/b.md").exists()
    workspace.close()


def test_the_end_of_a_denied_step_names_nothing_hidden(tmp_path: Path) -> None:
    text = agent("copy", more=FREE) + COPIES
    workspace = opened(tmp_path, text)
    outcome = call(workspace, "copy", path="a.md", to="b.md")

    assert outcome.status is Status.FAILED
    assert "file" not in outcome.output
    assert "the first of 3 steps was not made" in outcome.output
    assert "nothing was done before" in outcome.output
    assert "`file`" in outcome.detail  # the operator reads which
    workspace.close()


def test_limits_count_the_composition_as_one_call_and_its_steps_as_theirs(tmp_path: Path) -> None:
    rule = '[[agents.a.tool_rules]]\ntool_name = "{0}"\nrule_type = {{ MaxCalls = {1} }}\n'
    text = agent("file", "copy", more=FREE) + rule.format("copy", 2) + rule.format("file", 3) + COPIES
    workspace = opened(tmp_path, text)
    assert call(workspace, "copy", path="a.md", to="b.md").status is Status.ALLOWED
    third = call(workspace, "copy", path="a.md", to="c.md")
    assert [step.status for step in third.steps] == [Status.ALLOWED, Status.DENIED]
    assert call(workspace, "copy", path="a.md", to="d.md").status is Status.DENIED  # the third of at most two
    workspace.close()


def test_rows_of_the_log_lead_from_a_step_to_its_composition(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy", more=FREE) + COPIES)
    outcome = call(workspace, "copy", path="a.md", to="b.md")
    rows = [row for row in workspace.audit.rows() if row.kind == "ToolInvoked"]
    assert [row.call_id for row in rows] == [outcome.call_id, *(step.call_id for step in outcome.steps)]
    bodies = [json.loads(row.body) for row in rows]
    links = [(body.get("within"), body.get("step")) for body in bodies]
    assert links == [(None, None), (outcome.call_id, 0), (outcome.call_id, 1)]
    workspace.close()


class Watcher:
    """Keeps what it is told of steps, and answers each when `hold` lets it."""

    def __init__(self, hold: Callable[[tuple[int, ...]], Awaitable[None]] | None = None) -> None:
        self.begun: list[tuple[tuple[int, ...], str, JsonValue]] = []
        self.stages: dict[tuple[int, ...], list[str]] = {}
        self.pieces: list[tuple[tuple[int, ...], str]] = []
        self.ended: list[tuple[tuple[int, ...], Status]] = []
        self._hold = hold

    async def begin(self, place: tuple[int, ...], tool: str, arguments: Mapping[str, JsonValue] | None) -> None:
        self.begun.append((place, tool, None if arguments is None else dict(arguments)))
        if self._hold is not None:
            await self._hold(place)

    def stage(self, place: tuple[int, ...], row: StageTrace) -> None:
        self.stages.setdefault(place, []).append(row.stage)

    def piece(self, place: tuple[int, ...], text: str) -> None:
        self.pieces.append((place, text))

    def end(self, place: tuple[int, ...], outcome: Outcome) -> None:
        self.ended.append((place, outcome.status))


def test_a_listener_to_outcomes_gets_each_step_before_its_composition(tmp_path: Path) -> None:
    made = composition("copy", '{ tool = "file", arguments = { op = "read", path = "a.md" } }')
    workspace, heard = opened(tmp_path, agent("copy", "file") + made), list[Outcome]()
    workspace.on_outcome(heard.append)
    outcome = call(workspace, "copy")
    workspace.close()

    assert heard == [*outcome.steps, outcome]
    assert [(one.tool, one.operation) for one in heard] == [("file", "read"), ("copy", "")]


def test_a_watch_is_told_each_step_with_its_own_stages_and_what_was_skipped(tmp_path: Path) -> None:
    outer = composition("outer", READ, '{ tool = "copy", arguments = { path = "a.md", to = "c.md" } }', schema=PATHS)
    workspace = opened(tmp_path, agent("file", "copy", "outer", more=FREE) + COPIES + outer)
    watcher = Watcher()
    outcome = aio.run(workspace.call("a", "outer", {"path": "a.md"}, on_step=watcher))

    assert outcome.status is Status.ALLOWED
    assert [(place, tool) for place, tool, _ in watcher.begun] == [
        ((0,), "file"), ((1,), "copy"), ((1, 0), "file"), ((1, 1), "file"), ((1, 2), "file")
    ]  # fmt: skip
    assert [arguments is None for _, _, arguments in watcher.begun] == [False] * 4 + [True]
    assert watcher.begun[3][2] == {"op": "create", "path": "c.md", "content": "one\n"}
    names = [stage.name for stage in STAGES]
    assert watcher.stages == dict.fromkeys(((0,), (1, 0), (1, 1), (1,)), names)
    assert [place for place, _ in watcher.ended] == [(0,), (1, 0), (1, 1), (1,)]
    workspace.close()


def test_pieces_of_a_step_that_streams_are_told_with_its_place(tmp_path: Path) -> None:
    text = agent("drip", "look") + composition("look", '{ tool = "drip" }')
    workspace = opened(tmp_path, text, drip)
    watcher = Watcher()
    outcome = aio.run(workspace.call("a", "look", {}, on_step=watcher))
    assert outcome.status is Status.ALLOWED
    assert watcher.pieces == [((0,), "one "), ((0,), "two")]
    workspace.close()


def test_the_time_for_which_a_watch_holds_steps_up_is_not_that_of_the_call(tmp_path: Path) -> None:
    echoing = '{ tool = "echo", arguments = { value = 1 } }'
    inner, outer = composition("inner", echoing, echoing), composition("outer", echoing, '{ tool = "inner" }')
    limits = '[tools.outer]\ntimeout = "2s"\n[tools.inner]\ntimeout = "2s"\n'
    workspace = opened(tmp_path, agent("echo", "inner", "outer") + inner + outer + limits, echo)

    async def hold(place: tuple[int, ...]) -> None:
        if place == (1, 0):  # longer than both calls have
            never = asyncio.get_running_loop().create_future()
            await asyncio.wait({never}, timeout=2.2)

    watcher = Watcher(hold)
    outcome = aio.run(workspace.call("a", "outer", {}, on_step=watcher))
    assert outcome.status is Status.ALLOWED, outcome.detail
    assert len(watcher.begun) == 4
    workspace.close()


def test_a_call_that_is_given_up_while_a_step_is_held_makes_it_not_and_is_recorded(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy", more=FREE) + COPIES)

    async def give_up() -> None:
        held = asyncio.Event()

        async def hold(place: tuple[int, ...]) -> None:
            if place == (1,):
                held.set()
                await asyncio.get_running_loop().create_future()

        call = asyncio.ensure_future(workspace.call("a", "copy", {"path": "a.md", "to": "b.md"}, on_step=Watcher(hold)))
        await held.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert asyncio.all_tasks() == {asyncio.current_task()}

    aio.run(give_up())
    assert not (tmp_path / "docs/b.md").exists()
    ends = [row.kind for row in workspace.audit.rows() if row.kind in {"ToolCompleted", "ToolAbandoned"}]
    assert ends == ["ToolCompleted", "ToolAbandoned"]
    assert workspace.audit.verify().unended == ()
    workspace.close()


def test_a_watch_that_fails_lets_no_further_step_be_made(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy", more=FREE) + COPIES)

    async def hold(place: tuple[int, ...]) -> None:
        if place == (1,):
            raise RuntimeError("broken")

    outcome = aio.run(workspace.call("a", "copy", {"path": "a.md", "to": "b.md"}, on_step=Watcher(hold)))
    assert outcome.status is Status.FAILED
    assert outcome.code == "watch-failed"
    assert "broken" not in outcome.output
    assert not (tmp_path / "docs/b.md").exists()
    workspace.close()


def test_what_each_step_would_get_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    late = '{ tool = "echo", arguments = { value = 1 }, when = { properties = { steps = { minItems = 9 } } } }'
    text = agent("file", "copy", more=FREE) + COPIES + composition("late", READ, late, schema=PATHS)
    workspace = opened(tmp_path, text.replace('"copy"]', '"copy", "late"]'), echo)
    told = workspace.gate.steps("a", "copy", {"path": "a.md", "to": "b.md"})
    assert [(one.applies, one.verdict) for one in told] == [(True, Verdict.ALLOW), (True, None), (False, None)]
    assert told[0].decision is not None
    assert told[0].decision.arguments["path"] == "a.md"
    other = workspace.gate.steps("a", "late", {"path": "a.md"})
    assert [(one.applies, one.verdict) for one in other] == [(True, Verdict.ALLOW), (None, Verdict.DENY)]
    assert not (tmp_path / "docs/b.md").exists()
    assert workspace.gate.steps("a", "file", {"op": "list"}) == ()
    workspace.close()


FAULTS = [
    ('{ tool = "file", arguments = { path = "$steps.0" } }', "forward-reference"),
    ('{ tool = "file", arguments = { path = "$steps.7" } }', "unknown-reference"),
    ('{ tool = "file", arguments = { path = "$steps.x" } }', "unknown-reference"),
    ('{ tool = "file", arguments = { path = "$input.pth" } }', "unknown-reference"),
    ('{ tool = "file", arguments = { path = "$inputs.path" } }', "unknown-reference"),
    ('{ tool = "file", arguments = { path = "$input.path and more" } }', "unknown-reference"),
    ('{ tool = "file", arguments = { list = [{ deep = "$values.x" }] } }', "unknown-reference"),
    ('{ tool = "file", arguments = { op = "raed" } }', "unknown-operation"),
    ('{ tool = "fil", arguments = {} }', "unknown-tool"),
    ('{ tool = "file@1", arguments = {} }', "bad-value"),
    ('{ tool = "c" }', "composition-cycle"),
    ('{ tool = "file", when = { properties = { inpt = {} } } }', "unknown-reference"),
    ('{ tool = "file", when = { propertes = {} } }', "unknown-keyword"),
    ('{ tool = "file", other = 1 }', "unknown-key"),
    ("{ arguments = {} }", "missing-key"),
    ('{ tool = "file", arguments = [] }', "wrong-type"),
    ('{ tool = "file", arguments = { at = 2020-01-01 } }', "bad-value"),
]


@pytest.mark.parametrize(("step", "code"), FAULTS)
def test_a_fault_of_a_step_is_told_at_its_line(tmp_path: Path, step: str, code: str) -> None:
    text = agent("file") + composition("c", step, schema=PATHS)
    line = (HEAD + text).split("\n").index(f"  {step},") + 1
    found = problems(tmp_path, text)
    assert [(one, at) for one, at, _ in found] == [(code, line)]


HEADS = [
    ('[[compositions]]\nname = "file"\nsteps = [{ tool = "file" }]\n', "name-taken"),
    ('[[compositions]]\nname = "shell_exec"\nsteps = [{ tool = "file" }]\n', "name-taken"),
    ('[[compositions]]\nname = "b c"\nsteps = [{ tool = "file" }]\n', "bad-value"),
    ('[[compositions]]\nname = "b"\nsteps = []\n', "bad-value"),
    ('[[compositions]]\nname = "b"\n', "missing-key"),
    ('[[compositions]]\nname = "b"\ninput = { type = "array" }\nsteps = [{ tool = "file" }]\n', "bad-value"),
    ('[[compositions]]\nname = "b"\ninput = { type = "obj" }\nsteps = [{ tool = "file" }]\n', "bad-value"),
    ('[[compositions]]\nname = "b"\ninput = { required = 1 }\nsteps = [{ tool = "file" }]\n', "bad-schema"),
    (composition("b", *['{ tool = "file" }'] * 17), "too-many-steps"),
    (composition("b", '{ tool = "file" }') * 2, "duplicate"),
]


@pytest.mark.parametrize(("text", "code"), HEADS)
def test_a_fault_of_a_composition_is_told(tmp_path: Path, text: str, code: str) -> None:
    assert [one for one, _, _ in problems(tmp_path, agent("file") + text)] == [code]


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_compositions_stand_at_most_four_deep(tmp_path: Path, length: int) -> None:
    rows = [composition(f"c{n}", f'{{ tool = "c{n + 1}" }}') for n in range(1, length)]
    text = agent("file") + "".join(rows) + composition(f"c{length}", '{ tool = "file" }')
    assert [code for code, _, _ in problems(tmp_path, text)] == (["composition-too-deep"] if length > 4 else [])


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_a_ring_of_compositions_is_no_policy(tmp_path: Path, length: int) -> None:
    rows = [composition(f"c{n}", f'{{ tool = "c{(n + 1) % length}" }}') for n in range(length)]
    codes = {code for code, _, _ in problems(tmp_path, agent("file") + "".join(rows))}
    assert "composition-cycle" in codes


def test_compositions_run_in_each_other(tmp_path: Path) -> None:
    whole, part = (
        '{ tool = "echo", arguments = { value = "$input" } }',
        '{ tool = "inner", arguments = { x = "$input.y" } }',
    )
    inner = composition("inner", whole, schema="{ properties = { x = {} } }")
    outer = composition("outer", part, schema="{ properties = { y = {} } }")
    workspace = opened(tmp_path, agent("echo", "inner", "outer") + outer + inner, echo)
    outcome = call(workspace, "outer", y=[1])
    assert json.loads(outcome.output) == {"x": [1]}
    assert outcome.steps[0].steps[0].status is Status.ALLOWED
    without = opened(tmp_path, agent("echo", "outer") + outer + inner, echo)
    assert call(without, "outer", y=[1]).status is Status.FAILED
    workspace.close()
    without.close()


def test_a_step_that_an_agent_cannot_make_is_a_warning_at_the_agent(tmp_path: Path) -> None:
    only_read = '[[agents.b.tool_rules]]\ntool_name = "file"\nrule_type = { AllowedOperations = ["read"] }\n'
    text = agent("file", "copy") + agent("file", "copy", name="b") + only_read + agent("copy", name="c")
    workspace = opened(tmp_path, text + COPIES)
    told = [one for one in workspace.problems if one.code == "step-hidden"]
    assert [(one.subject.agents if one.subject else (), "`file.create`" in one.message) for one in told] == [
        (("b",), True),
        (("b",), False),  # `file.append`
        (("c",), False),
        (("c",), False),
        (("c",), False),
    ]
    workspace.close()


SLOW = composition("slow", '{ tool = "wait" }', '{ tool = "echo", arguments = { value = 1 } }')


class Waiter:
    """A tool that waits for ever, and tells what became of it."""

    def __init__(self) -> None:
        self.told: list[str] = []

        @tool(safety_tier=SafetyTier.READ_ONLY)
        async def wait() -> str:
            """Wait for ever."""
            self.told.append("began")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.told.append("cancelled")
                raise
            return ""

        self.tool = wait


def test_a_composition_that_is_out_of_time_ends_its_step(tmp_path: Path) -> None:
    waiter = Waiter()
    text = agent("wait", "echo", "slow") + SLOW + "[tools.slow]\ntimeout = 0.2\n"
    workspace = opened(tmp_path, text, waiter.tool, echo)
    outcome = call(workspace, "slow")
    assert outcome.status is Status.TIMED_OUT
    assert waiter.told == ["began", "cancelled"]
    ends = [row.kind for row in workspace.audit.rows() if row.kind.startswith("Tool") and row.kind != "ToolInvoked"]
    assert sorted(ends) == ["ToolAbandoned", "ToolTimedOut"]
    workspace.close()


def test_a_step_that_is_out_of_time_ends_its_composition(tmp_path: Path) -> None:
    waiter = Waiter()
    text = agent("wait", "echo", "slow") + SLOW + "[tools.wait]\ntimeout = 0.2\n"
    workspace = opened(tmp_path, text, waiter.tool, echo)
    outcome = call(workspace, "slow")
    assert (outcome.status, outcome.code) == (Status.FAILED, "timed-out")
    assert "the first of 2 steps failed" in outcome.output
    assert waiter.told == ["began", "cancelled"]
    workspace.close()


def test_a_cancelled_call_ends_its_step(tmp_path: Path) -> None:
    waiter = Waiter()
    workspace = opened(tmp_path, agent("wait", "echo", "slow") + SLOW, waiter.tool, echo)

    async def cancelled() -> None:
        running = asyncio.ensure_future(workspace.call("a", "slow", {}))
        while not waiter.told:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    aio.run(cancelled())
    assert waiter.told == ["began", "cancelled"]
    report = workspace.audit.verify()
    assert report.is_sound
    assert report.unended == ()
    workspace.close()


def test_an_edit_may_take_a_step_away_while_it_waits_for_an_answer(tmp_path: Path) -> None:
    text = agent("file", "copy", more='approvals = { side_effecting = "ask", "copy" = "allow" }') + COPIES
    workspace = opened(tmp_path, text)

    async def approver(request: ApprovalRequest) -> Approval:
        assert request.operation == "create"
        held = workspace.policy.agents["a"]
        workspace.apply(Edit("less", (AgentChange(held, replace(held, tools=("copy",))),)))
        return Approval(approved=True, who="test")

    outcome = aio.run(workspace.call("a", "copy", {"path": "a.md", "to": "b.md"}, approver=approver))
    assert outcome.status is Status.FAILED
    assert [step.status for step in outcome.steps] == [Status.ALLOWED, Status.DENIED]
    assert not (tmp_path / "docs/b.md").exists()
    workspace.close()


@pytest.mark.parametrize("arguments", [{}, {"n": {}}, {"n": [1]}])
def test_a_value_that_is_not_there_ends_the_call(tmp_path: Path, arguments: dict[str, JsonValue]) -> None:
    schema = "{ properties = { n = {} } }"
    second = '{ tool = "echo", arguments = { value = "$steps.0.deep.er" } }'
    first = '{ tool = "echo", arguments = { value = ["$input.n"] } }'
    workspace = opened(tmp_path, agent("echo", "c") + composition("c", first, second, schema=schema), echo)
    outcome = call(workspace, "c", **arguments)
    assert (outcome.status, outcome.code) == (Status.FAILED, "no-value")
    workspace.close()


def test_secrets_do_not_go_from_step_to_step(tmp_path: Path) -> None:
    """What the agent itself would not have read cannot be carried on for it either."""
    secret = "ghp_" + "a1B2" * 9
    first = '{ tool = "file", arguments = { op = "read", path = "s.md" } }'
    second = '{ tool = "echo", arguments = { value = "$steps.0.data.content" } }'
    seen: list[object] = []

    @tool(safety_tier=SafetyTier.READ_ONLY)
    async def keep(value: str) -> str:
        """Keep it.

        Args:
            value: What to keep.
        """
        seen.append(value)
        return "kept"

    text = agent("file", "keep", "c") + composition("c", first, second.replace("echo", "keep"))
    workspace = opened(tmp_path, text, keep)
    (tmp_path / "docs/s.md").write_text(secret, "utf-8")
    call(workspace, "c")
    assert all(secret not in str(one) for one in seen)
    workspace.close()


def test_self_check_and_every_format_take_compositions_as_tools(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy", more=FREE) + COPIES)
    found = workspace.selfcheck()
    assert not found.differences
    for form in ("mcp", "openai", "anthropic", "gemini", "genai"):
        assert "copy" in json.dumps(workspace.gate.view("a").tools(form))
    workspace.close()


def test_nobody_can_start_with_a_composition(tmp_path: Path) -> None:
    rule = '[[agents.a.tool_rules]]\ntool_name = "copy"\nrule_type = "StartConstraint"\n'
    found = problems(tmp_path, agent("file", "copy") + rule + COPIES)
    assert [code for code, _, _ in found] == ["start-with-composition"]


def test_the_command_line_tells_what_each_step_would_get(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(tmp_path, agent("file", "copy", more=FREE) + COPIES).close()
    words = ["decide", str(tmp_path), "--agent", "a", "--tool", "copy", "--args", '{"path": "a.md", "to": "b.md"}']
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["steps"]
    assert [(one["tool"], one["applies"], one["verdict"]) for one in told] == [
        ("file", True, "allow"),
        ("file", True, None),
        ("file", False, None),
    ]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "step 0, file: allow" in said
    assert "step 1, file: not known yet" in said
    assert "step 2, file: skipped" in said


def test_an_edit_leaves_the_table_as_it_is(tmp_path: Path) -> None:
    workspace = opened(tmp_path, agent("file", "copy") + "# by hand\n" + COPIES)
    workspace.apply(describe_agent(workspace.policy, "a", "Other words"))
    workspace.save()
    text = (tmp_path / "policy.toml").read_text("utf-8")
    assert "# by hand\n" + COPIES in text
    assert 'description = "Other words"' in text
    workspace.close()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.text(max_size=8)
    | st.sampled_from(["$input.x", "$$x", "$steps.0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(JSON, min_size=1, max_size=4))
def test_values_are_put_in_whole_and_never_looked_into(carrying: Workspace, values: list[JsonValue]) -> None:
    outcome = call(carrying, "carry", x=values)
    assert json.loads(outcome.data or b"") == {"first": values, "second": [values[0]], "text": "$input.x"}


@pytest.fixture(scope="module")
def carrying(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    first = '{ tool = "echo", arguments = { value = "$input.x" } }'
    second = (
        '{ tool = "echo", arguments = { value = { first = "$steps.0", second = ["$steps.0.0"], text = "$$input.x", '
        'gone = "$input.y" } } }'
    )
    text = agent("echo", "carry") + composition("carry", first, second, schema="{ properties = { x = {}, y = {} } }")
    return opened(tmp_path_factory.mktemp("ws"), text, echo)


STEPS = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(["a.md", "new.md", "closed/x.md", "../out.md"])),
    min_size=1,
    max_size=4,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, allowed=st.sets(st.sampled_from(OPERATIONS), min_size=1), has_file=st.booleans(), data=st.data())
def test_a_composition_can_do_nothing_that_its_agent_cannot(
    tmp_path_factory: pytest.TempPathFactory,
    steps: Sequence[tuple[str, str]],
    allowed: set[str],
    has_file: bool,
    data: st.DataObject,
) -> None:
    """The same calls made by the agent itself come to the same, one by one, and leave the same files."""
    level = data.draw(st.sampled_from(["read_only", "read_write", "append", "none"]))
    asks = data.draw(st.sampled_from(OPERATIONS))
    kind = f"{{ AllowedOperations = {json.dumps(sorted(allowed))} }}"
    rule = f'[[agents.a.tool_rules]]\ntool_name = "file"\nrule_type = {kind}\n'
    more = f'approvals = {{ side_effecting = "allow", "file.{asks}" = "ask" }}'
    rights = agent(*(["file"] if has_file else []), "all", more=more)
    rows = [f'{{ tool = "file", arguments = {json_toml(arguments_of(*step))} }}' for step in steps]
    text = rights + rule + composition("all", *rows)
    both = [opened(tmp_path_factory.mktemp("ws"), text.replace("read_write", level)) for _ in range(2)]
    try:
        outcome = call(both[0], "all")
        alone: list[Outcome] = []
        for step in steps:
            alone.append(call(both[1], "file", **arguments_of(*step)))
            if alone[-1].status is not Status.ALLOWED:
                break
        ends = [[(one.status, one.code) for one in outcomes] for outcomes in (outcome.steps, alone)]
        assert ends[0] == ends[1]
        assert files(both[0]) == files(both[1])
        assert (outcome.status is Status.ALLOWED) == (alone[-1].status is Status.ALLOWED)
        if not has_file:
            assert "file" not in outcome.output
    finally:
        for workspace in both:
            workspace.close()


def arguments_of(operation: str, path: str) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = {"content": "x"} if operation in {"create", "append"} else {}
    return {"op": operation, **({} if operation == "list" else {"path": path}), **content}


def json_toml(arguments: Mapping[str, JsonValue]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items()) + " }"


def files(workspace: Workspace) -> dict[str, bytes]:
    base = workspace.folder
    return {str(one.relative_to(base)): one.read_bytes() for one in sorted((base / "docs").rglob("*")) if one.is_file()}
