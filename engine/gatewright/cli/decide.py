"""``decide``, ``call``, ``permission`` and ``selfcheck``: sends one call, one path, or all calls through the gate."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.errors import NobodyAnswered, near_hint
from gatewright.base.late import aio
from gatewright.base.printable import printable
from gatewright.cli.output import (
    VERDICT_EXIT,
    AgentOption,
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    TrustOption,
    UsageProblem,
    decode,
    print_error,
    print_json,
    print_line,
    print_messages,
    print_passage,
    print_text,
    read_argument,
    require_agent,
)
from gatewright.memory.archive import Received
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Approval, ApprovalRequest, Decision, Outcome, Session, Status, Workspace

ToolOption = Annotated[str, typer.Option("--tool", metavar="NAME", help="the tool")]
ArgsOption = Annotated[
    str, typer.Option("--args", metavar="JSON", help="the arguments as one JSON object, or - for stdin")
]
SessionOption = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="a conversation that is kept: its calls count together")
]


class OnAsk(StrEnum):
    """A call that asks waits here for its answer, or elsewhere without a process."""

    WAIT = "wait"
    SUSPEND = "suspend"


_UNTOLD = {True: "not known yet", None: "not known yet", False: "skipped"}
_WHEN = "whether it applies hangs on earlier results"


class Approve(StrEnum):
    """Who answers when a call asks first: the operator in the app or at ``approvals list --watch``, nobody, always yes,
    or the person at the terminal.
    """

    OPERATOR = "operator"
    NEVER = "never"
    ALWAYS = "always"
    PROMPT = "prompt"


def decide(
    policy: PolicyArgument,
    agent: AgentOption,
    tool: ToolOption,
    args: ArgsOption = "{}",
    session: SessionOption = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="where the coding agent works, for a tool that it runs itself"),
    ] = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Say what the gate would do with a call, and why; nothing is executed, asked or recorded."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        agent_id = require_agent(workspace, agent)
        held = workspace.session(agent_id, session)
        given = read_argument(args)
        if folder is not None and not folder.is_dir():
            raise UsageProblem(f"--folder: `{folder}` is no folder")
        start = "" if folder is None else os.path.realpath(folder)
        decision = workspace.decide(agent_id, tool, given, session=held, folder=start)
        steps = workspace.gate.steps(agent_id, tool, given, session=held)
        if json:
            print_json({**decision.to_json(), **({"steps": [step.to_json() for step in steps]} if steps else {})})
        else:
            _print_decision(decision)
            for step in steps:
                print_line(f"  step {step.step}, {step.tool}: {step.verdict or _UNTOLD[step.applies]}")
                print_passage("    ", step.reason if step.applies is not None else f"{step.reason}; {_WHEN}")
            _print_examples(workspace, agent_id, tool, decision)
    raise typer.Exit(VERDICT_EXIT[decision.verdict])


def call(
    policy: PolicyArgument,
    agent: Annotated[str, typer.Option("--agent", metavar="AGENT", help="the agent")] = "",
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="the tool")] = "",
    args: ArgsOption = "{}",
    approve: Annotated[Approve, typer.Option("--approve", help="who answers when it asks")] = Approve.OPERATOR,
    session: SessionOption = None,
    call_id: Annotated[
        str, typer.Option("--call-id", metavar="ID", help="a name of this call: by it the call runs at most once")
    ] = "",
    conversation: Annotated[
        str, typer.Option("--conversation", metavar="NAME", help="where the call id names it (else that of --session)")
    ] = "",
    on_ask: Annotated[
        OnAsk, typer.Option("--on-ask", help="when it asks: wait for an answer, or suspend the call until one is there")
    ] = OnAsk.WAIT,
    resume: Annotated[
        str, typer.Option("--resume", metavar="ID", help="make the suspended call of this question again")
    ] = "",
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Send a call through the gate and execute it when it is allowed."""
    if resume and (agent or tool or call_id):
        raise UsageProblem("--resume names the call: it goes without --agent, --tool and --call-id")
    if not resume and not (agent and tool):
        raise UsageProblem("say --agent and --tool, or --resume")
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        approver = None if approve is Approve.OPERATOR else _Approver(approve)
        agent = workspace.suspended(resume).agent_id if resume else require_agent(workspace, agent)
        if tool and not workspace.is_executable(tool):
            held = workspace.session(agent, session)
            raise typer.Exit(_only_decide(workspace, agent, tool, read_argument(args), held, as_json=json))
        messages: list[Received] = []
        workspace.messages.subscribe(messages.append)
        make = partial(workspace.resume, resume)
        if not resume:
            named = {"call_id": call_id, "conversation": conversation or session or "", "on_ask": str(on_ask)}
            make = partial(workspace.call, agent, tool, read_argument(args), **named)
        outcome = aio.run(_make_call(workspace, agent, session, partial(make, approver=approver)))
        if json:
            more = {"messages": [message.to_json() for message in messages]} if messages else {}
            print_json({**outcome.to_json(), **more})
        else:
            if outcome.decision.verdict is not Verdict.ALLOW:
                _print_decision(outcome.decision)
            if outcome.decision.effect is Verdict.ALLOW:
                print_text(outcome.output or "")
            if outcome.question is not None:
                print_line(f"  waits as {outcome.question.request_id}")
            _print_examples(workspace, agent, tool, outcome.decision)
            print_messages(messages)
    if outcome.status is Status.WAITING:  # a step of an allowed composition may wait, too
        raise typer.Exit(Exit.ASK_UNANSWERED)
    is_failed = outcome.decision.verdict is Verdict.ALLOW and outcome.status is not Status.ALLOWED
    raise typer.Exit(Exit.TOOL_FAILED if is_failed else VERDICT_EXIT[outcome.decision.verdict])


async def _make_call(
    workspace: Workspace, agent_id: str, session_id: str | None, make: Callable[..., Awaitable[Outcome]]
) -> Outcome:
    """Make the call; in a stored conversation wait for other processes there, and count the call."""
    if session_id is None:
        return await make()
    async with workspace.sessions.hold(session_id, agent_id=agent_id) as session:
        return await make(session=session)


def _only_decide(
    workspace: Workspace, agent_id: str, tool: str, arguments: str | bytes, session: Session, *, as_json: bool
) -> Exit:
    """Return the gate's decision on a tool that another program runs; this counts nothing and records nothing."""
    decision = workspace.decide(agent_id, tool, arguments, session=session)
    detail = f"`{tool}` is run by its own program: the call was decided, not executed"
    if as_json:
        print_json({**decision.to_json(), "executed": False, "detail": detail})
    else:
        _print_decision(decision)
    print_error(detail)
    return Exit.TOOL_FAILED if decision.verdict is Verdict.ALLOW else VERDICT_EXIT[decision.verdict]


class _Approver:
    """Answers from the command line: always yes, never, or what a person types at the terminal."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve

    async def is_attended(self) -> bool:
        """Tell whether anybody can answer."""
        return self._approve is not Approve.NEVER

    async def __call__(self, request: ApprovalRequest) -> Approval:
        if self._approve is Approve.ALWAYS:
            return Approval(approved=True, who="command line")
        what = f"{request.tool} {request.operation}".strip()
        print_error(f"{request.whose} asks for {what}: {'; '.join(request.reasons)}")
        print_error(jsonlib.dumps(dict(request.arguments), ensure_ascii=False))
        if request.diff:
            print_error(request.diff, keep="\n\t")
        answer = await aio.to_thread(_answer)
        if not answer:
            raise NobodyAnswered("the input ended before an answer came")
        return Approval(approved=answer.strip() in {"y", "yes"}, who="command line")


def _answer() -> str:
    sys.stderr.write("allow this once? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().casefold()


def _print_decision(decision: Decision) -> None:
    noted = "" if decision.enforced else f", not enforced: observe mode passes it as {decision.effect}"
    print_line(f"{decision.verdict} at {decision.stage} [{decision.code}]{noted}")
    print_passage("  ", decision.reason)
    if decision.rule is not None:
        where = f" {decision.rule.file}:{decision.rule.line}" if decision.rule.file else ""
        print_line(f"  rule {decision.rule.rule_id}{where}")
    if decision.model_message:
        print_passage("  to the model: ", decision.model_message)


def _print_examples(workspace: Workspace, agent_id: str, tool: str, decision: Decision) -> None:
    """After invalid arguments, suggest calls of the tool with the operation that they named."""
    agent = workspace.gate.snapshot().agent(agent_id)
    is_misfit = decision.code in {"schema-mismatch", "arguments-mismatch"}
    plan = agent.plan(tool) if agent is not None and (is_misfit or decision.stage == "operation") else None
    if plan is None:
        return
    called = plan.tool.operations_of(decision.arguments) if is_misfit else None
    for example in plan.examples:
        if called is None or plan.tool.operations_of(example) == called:
            print_error(f"for example: --args {shlex.quote(jsonlib.dumps(dict(example), ensure_ascii=False))}")


def permission(
    policy: PolicyArgument,
    source: Annotated[str, typer.Option("--source", metavar="ID", help="the source")],
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="else one path per line on stdin")
    ] = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the permission level of each path (a trailing / means a folder) and the rule that gives it."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        known = [one.source_id for one in workspace.policy.file_sources]
        if source not in known:
            near = near_hint(source, known, listed=True)
            raise UsageProblem(f"no source `{source}` in {workspace.policy_path}{near}")
        rows = workspace.explain_paths(source, _paths(paths))
    if json:
        print_json([row.to_json() for row in rows])
        return
    for row in rows:
        why = (
            "outside"
            if row.outside
            else f"rule {row.index + 1} `{row.pattern}`"
            if row.index is not None
            else "default"
        )
        print_line(f"{row.permission}\t{printable(row.path)}\t{printable(why)}")


def _paths(paths: list[str] | None) -> list[str]:
    if paths and paths != ["-"]:
        return paths
    return [line for line in decode(sys.stdin.buffer.read(), "stdin").splitlines() if line]


def selfcheck(
    policy: PolicyArgument, json: JsonOption = False, state: StateOption = None, trust: TrustOption = False
) -> None:
    """Compare what is shown with what can be called; exit 1 when they differ."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        result = workspace.selfcheck()
    if json:
        print_json(result.to_json())
    else:
        print_line(
            f"{result.checked} checked, {len(result.differences)} differences, {len(result.no_witness)} no witness"
        )
        for difference in result.differences:
            print_line(f"  {difference}")
    raise typer.Exit(Exit.PROBLEMS if result.differences else Exit.OK)
