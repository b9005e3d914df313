"""Tries calls that nobody makes: recorded calls under two policies, and every call that can touch a given file.

Each decision has no effect and ignores the earlier calls of its session, so limits there do not count. For every
argument that may name the file (paths in sources and on disk, labels, commands) a call is invented from the tool's
schema. If no call fits, the level of the file decides.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from gatewright.arguments.shell_entry import read_entry
from gatewright.arguments.shell_program import only_reads
from gatewright.base.amount import plural
from gatewright.base.errors import GatewrightError, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.operation import path_plans
from gatewright.compile.plan import ToolPlan
from gatewright.gate import AuditFilter, AuditIndex, AuditRow, Decision, LoggedCall, RowKind
from gatewright.gate.witness import witness
from gatewright.policy import policyedit
from gatewright.policy.delegation import Lineage
from gatewright.policy.document import Policy, Source
from gatewright.policy.edit import inverse
from gatewright.policy.reach import level_verdict
from gatewright.policy.right import OperationFacts, OperationRight, ToolRight
from gatewright.policy.rule import PolicyRule
from gatewright.policy.target import Located
from gatewright.policy.verdict import Action, PathUse, Permission, Verdict, bare_names, strictest
from gatewright.schema import SchemaChecker
from gatewright.schema.operation import Steps, steps_of
from gatewright.tools.parameter import (
    At,
    CommandParameter,
    FileParameter,
    LabelParameter,
    PathParameter,
    SourceParameter,
    replace_texts,
    values_at,
)
from gatewright.workspace.workspace import Workspace

NEWEST = 2_000
"""The most calls to decide again."""
MOST = 200
"""The most differing calls to report; the rest is counted."""
MOST_OF_RULE, NEWEST_OF_RULE = 50, 20_000
"""Limits for one rule: the most calls to decide again, and the most calls to look at."""
_ROWS_A_CALL = 5
_A_PIECE = 20
_AT_ONCE = 500


@frozen
class ReplayedCall:
    """A recorded call with its verdicts under two policies.

    ``reason``: of the second decision. ``lacks``: arguments that are missing in the log, so that the verdict may
    differ.
    """

    call: LoggedCall
    before: Verdict
    after: Verdict
    reason: str
    lacks: str

    @property
    def is_changed(self) -> bool:
        """True if the policies decide it differently."""
        return self.before is not self.after


@frozen
class Replay:
    """Calls, newest first.

    ``differing``: the number of all that differ; ``looked_at``: the number of the newest ones that were read.
    """

    calls: tuple[ReplayedCall, ...]
    differing: int
    looked_at: int


def replay(workspace: Workspace, before: Policy, after: Policy) -> Generator[int, None, Replay]:
    """Decide the newest recorded calls by both policies, and return those that differ; yield the count after every few
    decisions.

    Reads the log, so keep it off the GUI thread. Raises AuditUnavailable, PolicyInvalid.
    """
    found: list[ReplayedCall] = []
    differing = decided = 0
    with ExitStack() as stack:
        index = stack.enter_context(closing(AuditIndex(workspace.state_folder)))
        sides = [
            workspace if policy is workspace.policy else stack.enter_context(workspace.under(policy))
            for policy in (before, after)
        ]
        index.read_older(NEWEST * _ROWS_A_CALL)
        for call in islice(_newest(index), NEWEST):
            sent = sent_of(index.rows_of(call)) if call.is_call else {}
            if not sent:
                continue
            decided += 1
            one, other = (_decide(side, call, sent) for side in sides)
            if one is not None and other is not None and one.verdict is not other.verdict:
                differing += 1
                if len(found) < MOST:
                    found.append(ReplayedCall(call, one.verdict, other.verdict, other.reason, lacks_of(sent)))
            if decided % _A_PIECE == 0:
                yield decided
    return Replay(tuple(found), differing, decided)


def replay_rule(workspace: Workspace, index: int | None, rule: PolicyRule) -> Replay:
    """Decide the newest recorded calls that a policy rule may match, without the rule and with it.

    ``index``: the rule that it replaces; None for a new rule. Reads the log, so keep it off the GUI thread. Raises
    EditRefused for an impossible rule, AuditUnavailable.
    """
    tools = None if rule.tools is None else bare_names(rule.tools, workspace.catalog)
    with closing(AuditIndex(workspace.state_folder)) as log:
        log.read_older()
        looked_at, about = 0, list[tuple[LoggedCall, dict[str, Any]]]()
        for call in islice(_newest(log), NEWEST_OF_RULE):
            looked_at += 1
            if (
                call.is_call
                and call.agent in workspace.policy.agents
                and (rule.agents is None or not {call.agent, *call.callers}.isdisjoint(rule.agents))
                and (tools is None or call.tool in tools)
                and (rule.operations is None or call.operation in rule.operations)
            ):
                about.append((call, sent_of(log.rows_of(call))))
            if len(about) == MOST_OF_RULE:
                break
    before = [_decide(workspace, *one) for one in about]
    edit = policyedit.put_rule(workspace.policy, index, rule)
    workspace.apply(edit)
    try:
        after = [_decide(workspace, *one) for one in about]
    finally:
        workspace.apply(inverse(edit))
    calls = tuple(
        ReplayedCall(call, one.verdict, other.verdict, other.reason, lacks_of(sent))
        for (call, sent), one, other in zip(about, before, after, strict=True)
        if one is not None and other is not None
    )
    return Replay(calls, sum(call.is_changed for call in calls), looked_at)


def sent_of(rows: Sequence[AuditRow]) -> dict[str, Any]:
    """Return the logged values of a call; empty if the log has none of the arguments."""
    for row in rows:
        if row.kind == RowKind.TOOL_INVOKED:
            try:
                body = cast("object", json.loads(row.body))
            except (ValueError, RecursionError):
                return {}
            if isinstance(body, dict) and isinstance(cast("dict[str, Any]", body).get("arguments"), dict):
                return cast("dict[str, Any]", body)
    return {}


def worked_in(sent: Mapping[str, Any]) -> str:
    """Return the folder in which the calling program worked, as the log names it; empty if it does not."""
    folder = sent.get("folder")
    return folder if isinstance(folder, str) else ""


def decide_again(workspace: Workspace, call: LoggedCall, sent: Mapping[str, Any]) -> Decision:
    """Decide a call with the arguments that the log keeps, in the folder and for the agents that it names, without any
    effect. Raises GatewrightError.
    """
    line, agent_id = lineage_of(call, sent), call.agent
    if line is not None:  # who a sub-agent is hangs on the policy, as before the gate
        agent_id = line.sub_agent(workspace.policy).agent_id
    given = cast("dict[str, JsonValue]", sent.get("arguments") or {})
    return workspace.decide(agent_id, call.tool, given, folder=worked_in(sent), lineage=line)


def lineage_of(call: LoggedCall, sent: Mapping[str, Any]) -> Lineage | None:
    """Return the descent of the sub-agent that made the call, in a row without it as its callers tell it; None for an
    agent that nobody started. Raises WorkspaceError for a row that tells nonsense.
    """
    if "lineage" in sent:
        try:
            return Lineage.from_json(sent["lineage"])
        except ValueError as error:
            raise WorkspaceError(f"the log does not tell who started the sub-agent: {error}") from None
    if not call.callers:
        return None
    root_id, *between = call.callers
    return Lineage(root_id, call.agent, ((*between, call.agent),))


def lacks_of(sent: Mapping[str, Any]) -> str:
    """Describe the arguments that the log lacks; empty if complete."""
    scrubbed, cut = sent.get("scrubbed"), sent.get("cut")
    parts = [f"{plural(scrubbed, 'secret')} taken out"] if isinstance(scrubbed, int) and scrubbed else []
    return "; ".join((*parts, *(map(str, cast("list[object]", cut)) if isinstance(cut, list) else ())))


def _newest(index: AuditIndex) -> Iterator[LoggedCall]:
    numbers = index.numbers(AuditFilter())
    for begin in range(0, len(numbers), _AT_ONCE):
        yield from index.calls(numbers[begin : begin + _AT_ONCE])


def _decide(workspace: Workspace, call: LoggedCall, sent: Mapping[str, Any]) -> Decision | None:
    try:
        return decide_again(workspace, call, sent)
    except GatewrightError:  # a policy may lack the agent
        return None


_TOOL = "file"
_NEW = "new"
"""Name for a new entry in a folder."""
_ELSEWHERE = "/elsewhere/x"
"""The value for the other paths of a call: outside of all sources."""
_LEAST_READ = "cat"


@frozen
class Touch:
    """The gate's verdict on an operation that does this to the file, with the reason."""

    tool: str
    operation: str
    action: Action
    verdict: Verdict
    why: str


@frozen
class _Use:
    """One argument that may name the file: its value for the file, its value otherwise, and the action there."""

    steps: Steps
    at: At
    text: str
    other: str
    action: Action


def touches(workspace: Workspace, agent_id: str, source_id: str, path: str) -> tuple[Touch, ...]:
    """List what the agent can do to a file, or with a final ``/`` to a folder; ``path`` starts at the source's base.

    It covers every fitting operation of the tool `file`, and those of other tools that are on.
    """
    asked = _Asked(workspace, agent_id, source_id, path)
    found = list(asked.by_file())
    for tool in workspace.rights(agent_id).values():
        if tool.is_hidden or (tool.facts.needs_source and tool.facts.name == _TOOL):
            continue
        for op, row in zip(tool.facts.operations, tool.operations, strict=True):
            if not row.is_hidden:
                found += asked.by_operation(tool, op, row)
    return tuple(found)


class _Asked:
    """The questions about one file or folder for one agent."""

    def __init__(self, workspace: Workspace, agent_id: str, source_id: str, path: str) -> None:
        self._workspace, self._agent_id, self._source_id, self._path = workspace, agent_id, source_id, path
        self._relative = path.rstrip("/") or "."
        self._running = workspace.sources.get(source_id)
        self._source: Source = next(one for one in workspace.policy.file_sources if one.source_id == source_id)
        base = os.path.join(workspace.folder, self._source.base_path)  # noqa: PTH118
        self._absolute = os.path.normpath(os.path.join(base, self._relative))  # noqa: PTH118

    def by_file(self) -> Iterator[Touch]:
        """Yield the touches by the tool on files of sources."""
        facts = next((one for one in self._workspace.catalog if one.name == _TOOL and one.needs_source), None)
        wanted = self._file_calls()
        for op in facts.operations if facts is not None else ():
            if op.name in wanted:
                arguments = {"op": op.name, "source": self._source_id, **wanted[op.name]}
                found = self._workspace.decide(self._agent_id, _TOOL, arguments)
                yield Touch(_TOOL, op.name, op.actions[-1], found.verdict, found.reason)

    def _file_calls(self) -> Mapping[str, Mapping[str, JsonValue]]:
        """Return one call for each operation that fits the path."""
        if self._path.endswith("/"):
            new = {"path": f"{self._path}{_NEW}", "content": "x"}
            return {
                "list": {"path": self._relative},
                "create": new,
                "delete": {"path": self._relative, "recursive": True},
            }
        text = None
        with suppress(ToolFailure):
            text = None if self._running is None else self._running.text_of(self._path)
        at: dict[str, JsonValue] = {"path": self._path}
        if text is None:
            return {"read": at, "delete": at, "create": {**at, "content": "x"}}
        calls: dict[str, Mapping[str, JsonValue]] = dict.fromkeys(("read", "load", "save", "delete"), at)
        calls |= {"append": {**at, "content": "x"}, "insert": {**at, "line": 1, "content": "x"}}
        return calls | ({"replace": {**at, "old": text, "new": "x"}} if text else {})

    def by_operation(self, tool: ToolRight, op: OperationFacts, row: OperationRight) -> Iterator[Touch]:
        """Yield the touches by one operation of another tool, for each of its arguments that may name the file."""
        agent = self._workspace.gate.snapshot().agent(self._agent_id)
        plan = None if agent is None else agent.plan(tool.facts.name)
        uses = [] if plan is None else [*self._uses_by_mark(plan, op), *self._uses_by_guess(op)]
        by_action: dict[Action, Touch] = {}
        for use in uses:
            assert plan is not None
            said = self._verdict(plan, op, use, uses) or self._by_level(tool, op, row)
            touch = Touch(tool.facts.name, op.name, use.action, *said)
            held = by_action.get(use.action)
            if held is None or strictest(held.verdict, touch.verdict) is not touch.verdict:
                by_action[use.action] = touch
        yield from by_action.values()

    def _verdict(self, plan: ToolPlan, op: OperationFacts, use: _Use, uses: list[_Use]) -> tuple[Verdict, str] | None:
        """Return the mildest verdict on calls with the file at one argument; None if no call fits."""
        own = plan.tool.schema_for(frozenset({op.name})) or {}
        checker = SchemaChecker(own)
        # the shown schema has the other arguments under their constraints, but not for one of several operations
        schemas = [own] if plan.shape is None or plan.has_operations else [plan.shape.listing.schema, own]
        found: tuple[Verdict, str] | None = None
        for schema in schemas:
            with suppress(LookupError):
                made = witness(schema, [use.steps])
                for alike in (False, True):
                    texts = {p: one.text if alike else one.other for one in uses for p, _ in values_at(made, one.at)}
                    texts |= {pointer: use.text for pointer, _ in values_at(made, use.at)}
                    call = cast("dict[str, JsonValue]", replace_texts(made, texts))
                    if use.text not in texts.values() or not checker.is_valid(call):
                        continue
                    decided = self._workspace.decide(self._agent_id, plan.tool.name, call)
                    is_told = decided.stage != "schema" or not plan.has_operations or _is_narrowed(plan, use)
                    is_told = is_told and decided.code != "arguments-mismatch"
                    if is_told and (found is None or strictest(found[0], decided.verdict) is not decided.verdict):
                        found = decided.verdict, decided.reason
        return found

    def _uses_by_mark(self, plan: ToolPlan, op: OperationFacts) -> Iterator[_Use]:
        """Yield the arguments with their author's marks."""
        is_folder = self._path.endswith("/")
        for parameter in plan.tool.parameters(op.name):
            for mark in parameter.marks:
                steps, at, does = (parameter.name,), (parameter.name, *mark.at), op.actions or (Action.READ,)
                match mark.marker:
                    case PathParameter():
                        yield _Use(steps, at, self._relative, self._relative, does[-1])
                    case SourceParameter():
                        continue
                    case LabelParameter(makes=False) if not is_folder and (label := self._label()):
                        yield _Use(steps, at, label, label, does[-1])
                    case FileParameter(writes=writes, roots=roots):
                        text = self._in_root(roots) if roots else self._absolute
                        action = op.actions[-1] if op.actions else Action.OVERWRITE if writes else Action.READ
                        if text is not None:
                            yield _Use(steps, at, text, f"{roots[0]}/x" if roots else _ELSEWHERE, action)
                    case CommandParameter():
                        yield from (_Use(steps, at, text, "", action) for text, action in self._commands())
                    case _:
                        continue

    def _uses_by_guess(self, op: OperationFacts) -> Iterator[_Use]:
        """Yield the arguments of a foreign tool that are, or look like, paths."""
        for one in op.paths:
            if one.use is not PathUse.NONE:
                [plan] = path_plans(replace(op, paths=(replace(one, confidence="declared"),)))
                action = op.text_action if one.use is None else one.use.action
                yield _Use(steps_of(one.argument), plan.at, self._absolute, _ELSEWHERE, action)

    def _label(self) -> str | None:
        place = Located(self._source_id, self._relative, self._absolute)
        return None if self._running is None else self._workspace.sources.label_of(place)

    def _in_root(self, roots: tuple[str, ...]) -> str | None:
        """Return the path below its root's name; None outside of all roots."""
        for name, folder in self._workspace.policy.roots.folders.items():
            top = os.path.normpath(os.path.join(self._workspace.folder, folder))  # noqa: PTH118
            if name in roots and f"{self._absolute}/".startswith(f"{top}/"):
                return f"{name}{self._absolute[len(top) :]}"
        return None

    def _commands(self) -> Iterator[tuple[str, Action]]:
        """Yield a command of each allowed program with the file as its argument."""
        shell = self._workspace.policy.shell
        for entry in map(read_entry, (*shell.allow, *shell.ask) or (_LEAST_READ,)):
            reads = only_reads(entry.program, (*entry.words, self._absolute))
            command = shlex.join((entry.program, *entry.words, self._absolute))
            yield command, Action.READ if reads else Action.OVERWRITE

    def _by_level(self, tool: ToolRight, op: OperationFacts, row: OperationRight) -> tuple[Verdict, str]:
        level = Permission.NONE
        if self._running is not None:
            level = self._workspace.sources.level(Located(self._source_id, self._relative, self._absolute)).permission
        said = strictest(row.verdict, level_verdict(self._source, tool.facts, op, level))
        return said, f"its level is {level}; no call was possible to ask the gate"


def _is_narrowed(plan: ToolPlan, use: _Use) -> bool:
    """Tell whether a constraint on the argument itself may make the shown schema refuse the file."""
    return plan.shape is not None and use.steps[0] in plan.shape.narrowed
