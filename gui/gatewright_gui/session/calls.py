"""Calls of the console as values: the tools that can be called, a request, what became of it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from gatewright.workspace.api import (
    Address,
    ArgumentIssue,
    JsonValue,
    SafetyTier,
    Verdict,
    Workspace,
    frozen,
    printable,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.call_paths import FilesOf, files_of
from gatewright_gui.session.readings import BUILT_IN

if TYPE_CHECKING:
    from gatewright.workspace.api import Lineage, Tool, ToolFacts, ToolListing, ToolRight

Kind = Literal["decide", "run"]
Missing: TypeAlias = Callable[[str, Mapping[str, object]], Sequence[ArgumentIssue]]
"""Of an operation and arguments: what is missing among them."""
CANCELLED = "cancelled"
"""Status and code of a call that was given up on its way."""
MAX_SHOWN = 300_000
"""Characters of one text; more would hold up the window, and nobody reads it there."""
MAX_LINE = 5_000
"""Characters of one line; laying out a longer one holds up the window far more than many short ones."""


@frozen
class OperationShape:
    """An operation that the agent sees, and the parameters it takes."""

    name: str
    description: str
    takes: frozenset[str]
    required: frozenset[str]
    is_read_only: bool = False


Runs = Literal["copy", "live", "elsewhere"]


@frozen
class ShownTool:
    """A tool as the agent sees it, its operations in its own order. `operation_field`: None without operations.

    One that the agent does not see is there with all it has, and `hidden` says why it does not; else that is None.

    `runs`: in the disposable copy, only live (it acts outside of the copy), or by the program that has it, not here.
    `files`: what the paths in its arguments name, where that is known. `missing`: what an operation needs beyond what
    the schema says, by the gate. `check_formats`: texts must be what a known `format` says. `origin`: where it
    comes from, as `ToolFacts` has it. `examples`: arguments that its author gives to try. `work_folder`: of a coding
    agent's own tool, where relative paths start by default.
    """

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)
    operation_field: str | None
    operations: tuple[OperationShape, ...]
    runs: Runs = "copy"
    files: FilesOf = "nothing"
    missing: Missing | None = field(default=None, compare=False)
    hidden: str | None = None
    check_formats: bool = False
    origin: str = BUILT_IN
    examples: Sequence[Mapping[str, JsonValue]] = field(default=(), hash=False)
    work_folder: str = ""

    @property
    def is_shown(self) -> bool:
        """Tell whether the agent sees it."""
        return self.hidden is None

    def first_operation(self, wanted: str | None = None) -> str | None:
        """The operation to begin with: the wanted one where the agent sees it, else the first that changes nothing."""
        names = [shape.name for shape in self.operations]
        harmless = [shape.name for shape in self.operations if shape.is_read_only]
        return wanted if wanted in names else next(iter(harmless or names), None)


@frozen
class CallRequest:
    """The call to decide or run. `arguments`: JSON text, or the values of a form. `folder`: where the coding agent
    works, for a tool that it runs itself; empty for any other. `lineage`: of the sub-agent that makes it.
    """

    agent_id: str
    tool: str
    arguments: str | Mapping[str, JsonValue] = field(hash=False)
    folder: str = ""
    lineage: "Lineage | None" = None

    @property
    def text(self) -> str:
        """The arguments as JSON text; takes time when they are large."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False, indent=2)


@frozen
class RuleLink:
    """A place of the policy; `line` from 1 where it was found."""

    rule_id: str
    address: Address
    line: int | None


_STAGE_WORDS = {
    "parse": mark("read the call"),
    "lookup": mark("find the tool"),
    "operation": mark("check operation"),
    "schema": mark("check values"),
    "arguments": mark("find targets"),
    "rules": mark("apply limits"),
    "capability": mark("check grants"),
    "policy": mark("apply rules"),
    "permission": mark("check levels"),
    "approval": mark("ask first"),
    "execute": mark("run the tool"),
    "output": mark("check result"),
    "normalise": mark("shape result"),
    "truncate": mark("shorten result"),
}
STAGE_NAMES = tuple(_STAGE_WORDS)
"""The stages in the gate's order, without the gate, which the first window does not load."""


def stage_words(name: str) -> str:
    """The work of a stage in words; its name where the app knows none."""
    return tr(_STAGE_WORDS.get(name, name))


@frozen
class StageRow:
    """One stage as it passed; `rule`: the place of the policy that it speaks of."""

    name: str
    verdict: Verdict
    reason: str
    elapsed_us: float
    rule: RuleLink | None = None


@frozen
class EarlierCall:
    """The fate of the same request before."""

    number: int
    wall_s: float
    verdict: Verdict
    stage: str
    code: str


@frozen
class CallRecord:
    """The fate of one request. `status` and `output` are None when it was only decided.

    `secrets`: how many were taken out of the result. `reused`: an earlier result stands for it. `is_binary`: the result
    is no text, and `output` only names it; `blob` is then all of it, and of what an MCP server gave the first image,
    sound or file, where that is not too large to be kept. `detail`: what went wrong in the execution, for the
    operator. `is_live`: it was run in the real workspace, not in a copy. `change`: what the call would change in a
    text, as a unified diff, as of just before it. `whole`: the result before it was cut for the model. `earlier`: the
    call that this one repeats.
    `telling`: the argument that tells the call from others of the same operation. A call that was cancelled has the
    stage at which it stood, and no verdict that counts. `steps`: of a composition, those that are known.
    """

    number: int
    kind: Kind
    wall_s: float
    request: CallRequest
    operation: str
    verdict: Verdict
    stage: str
    code: str
    reason: str
    model_message: str | None
    rule: RuleLink | None
    stages: tuple[StageRow, ...]
    status: str | None = None
    output: str | None = None
    truncated: bool = False
    output_hash: str | None = None
    output_bytes: int = 0
    elapsed_ms: float = 0.0
    secrets: int = 0
    reused: bool = False
    is_binary: bool = False
    blob: bytes | None = field(default=None, repr=False)
    detail: str = ""
    is_live: bool = False
    change: str | None = None
    whole: str | None = None
    earlier: EarlierCall | None = None
    telling: str = ""
    steps: "tuple[StepRow, ...]" = ()

    @property
    def is_cancelled(self) -> bool:
        """Tell whether it was given up on its way: then nobody gets anything."""
        return self.status == CANCELLED

    @property
    def is_error(self) -> bool:
        """Tell whether the model gets an error in place of a result."""
        return self.status not in {None, "allowed", CANCELLED}

    @property
    def outcome_word(self) -> str:
        """The verdict, or how a call that was carried out ended where that is more telling."""
        if self.status is None or self.status in {"denied", "allowed"}:
            return str(self.verdict)
        return self.status.replace("_", " ")

    @property
    def model_text(self) -> str | None:
        """Exactly what the model gets; None while it gets nothing."""
        return self.model_message if self.output is None else self.output

    @property
    def called(self) -> str:
        """Tool and operation, as they can be shown."""
        return visible(f"{self.request.tool}.{self.operation}" if self.operation else self.request.tool)


Place = tuple[int, ...]
"""The number of a step among those of its composition, from 0; of a step of a step both, and so on."""
StepState = Literal["waiting", "working", "held", "done", "skipped", "unknown"]


@frozen
class StepRow:
    """A step of a composition. `record`: what became of it, of one that is under way what is known so far.

    Its verdict counts where `state` is done. `held`: somebody has to let it go on; `unknown`: it hangs on results.
    `note`: what is to be said beside its reason.
    """

    place: Place
    state: StepState
    record: CallRecord
    note: str = ""

    @property
    def number(self) -> str:
        """The place as people count: `2`, `2.1`."""
        return ".".join(str(one + 1) for one in self.place)


def visible_tools(workspace: Workspace, agent_id: str) -> tuple[ShownTool, ...]:
    """The tools that the agent sees, with what each operation takes. Takes time; raises WorkspaceError."""
    return with_missing(workspace, agent_id, _tools_of(workspace, agent_id))


def with_missing(workspace: Workspace, agent_id: str, tools: Iterable[ShownTool]) -> tuple[ShownTool, ...]:
    """Tools as the worker process lists them, each with `missing`, which is a function and cannot come from there."""
    agent = workspace.gate.snapshot().agent(agent_id)

    def missing_of(name: str) -> Missing:
        def missing(operation: str, arguments: Mapping[str, object]) -> Sequence[ArgumentIssue]:
            plan = agent.plan(name) if agent is not None else None
            return () if plan is None else plan.tool.missing_arguments(operation, arguments)

        return missing

    return tuple(replace(tool, missing=missing_of(tool.name)) for tool in tools)


def tool_to_try(workspace: Workspace, agent_id: str, name: str, operation: str | None) -> ShownTool | None:
    """A tool as the agent sees it, or whole where it does not see the operation; None for no such tool.

    Without `missing`. Takes time; raises WorkspaceError.
    """
    shown = next(iter(_tools_of(workspace, agent_id, name)), None)
    if shown is not None and (operation is None or operation in {shape.name for shape in shown.operations}):
        return shown
    agent, view = workspace.gate.snapshot().agent(agent_id), workspace.view(agent_id)
    tool = next((one for one in agent.tools() if one.name == name), None) if agent is not None else None
    listing = next((one for one in view.full_listings() if one.name == name), None)
    right = view.rights.get(name)
    return _whole(workspace, listing, tool, right) if listing and tool and right else shown


def _tools_of(workspace: Workspace, agent_id: str, only: str | None = None) -> tuple[ShownTool, ...]:
    agent = workspace.gate.snapshot().agent(agent_id)
    shown: list[ShownTool] = []
    for listing in workspace.view(agent_id).listings():
        if only not in {None, listing.name}:
            continue
        plan = agent.plan(listing.name) if agent is not None else None
        if plan is None:
            shown.append(ShownTool(listing.name, listing.description, listing.schema, None, ()))
        else:
            tool = _tool_shape(workspace, listing, plan.tool, plan.right.facts, plan.operations)
            shown.append(replace(tool, examples=plan.examples))
    return tuple(shown)


def callable_tools(workspace: Workspace, agent_id: str) -> tuple[ShownTool, ...]:
    """Every tool that a call may name: first those that the agent sees, then the others, whole; all without `missing`.

    Takes time; raises WorkspaceError.
    """
    shown = _tools_of(workspace, agent_id)
    agent, view = workspace.gate.snapshot().agent(agent_id), workspace.view(agent_id)
    seen = {tool.name for tool in shown}
    tools = {tool.name: tool for tool in agent.tools()} if agent is not None else {}
    others: list[ShownTool] = []
    for listing in view.full_listings():
        right, tool = view.rights.get(listing.name), tools.get(listing.name)
        if listing.name in seen or right is None or tool is None:
            continue
        others.append(_whole(workspace, listing, tool, right))
    return (*shown, *others)


def _whole(workspace: Workspace, listing: "ToolListing", tool: "Tool", right: "ToolRight") -> ShownTool:
    """A tool with all that it has, and why the agent does not see it."""
    whole = _tool_shape(workspace, listing, tool, right.facts, tuple(row.operation for row in right.operations))
    closed = right.reasons or next((row.reasons for row in right.operations if row.reasons), ())
    why = next((one.text for one in closed if one.verdict is Verdict.DENY), tr("all of it is off"))
    return replace(whole, hidden=why, examples=tool.examples)


def restore_call(
    workspace: Workspace, agent_id: str, provider: str, name: str, arguments: object
) -> tuple[str, object]:
    """A call as a model makes it in a provider's spelling, in the tool's own. Raises WorkspaceError, NotSupported."""
    return workspace.view(agent_id).restore(provider, name, arguments)


def _tool_shape(
    workspace: Workspace, listing: "ToolListing", tool: "Tool", facts: "ToolFacts", operations: Iterable[str]
) -> ShownTool:
    known = {row.name: row for row in facts.operations}
    order = list(known)
    shapes: list[OperationShape] = []
    for name in sorted(operations, key=lambda name: order.index(name) if name in known else len(order)):
        taken = tool.parameters(name)
        required = frozenset(parameter.name for parameter in taken if parameter.required)
        fact = known.get(name)
        described = fact.description if fact is not None else ""
        harmless = fact is not None and fact.tier is SafetyTier.READ_ONLY
        names = frozenset(parameter.name for parameter in taken)
        shapes.append(OperationShape(name, described, names, required, harmless))
    selector = tool.operation_field if facts.has_operations else None
    about = (listing.name, listing.description, listing.schema, selector, tuple(shapes))
    checks = workspace.gate.policy.defaults.check_formats
    runs: Runs = "elsewhere" if not workspace.is_executable(listing.name) else "live" if tool.leaves_copy else "copy"
    start = workspace.work_folder(listing.name)
    return ShownTool(*about, runs, files_of(tool), check_formats=checks, origin=facts.origin, work_folder=start)


_FIRST = ("path", "file", "url", "name", "label", "query", "pattern")
"""Arguments that tell most."""
_MAX_TELLING = 200


def telling_argument(arguments: Mapping[str, Any], selector: str = "") -> str:
    """The argument that tells a call from others of the same operation, every character seen: a path, else a text."""
    texts = {name: value for name, value in arguments.items() if name != selector and isinstance(value, str) and value}
    known = next((texts[name] for name in _FIRST if name in texts), None)
    by_name = next((value for name, value in texts.items() if name.endswith(("path", "_id", "name"))), None)
    told = known or by_name or next(iter(texts.values()), None)
    if told is None:
        plain = (value for name, value in arguments.items() if name != selector and isinstance(value, int | float))
        told = next((json.dumps(value) for value in plain), "")
    return visible(" ".join(told[:_MAX_TELLING].split()))


def change_words(diff: str, operation: str) -> tuple[str, str]:
    """A diff without its head, and a line that says what the head means: the file, whether it is new, how much."""
    lines = diff.splitlines(keepends=True)
    if len(lines) < 3 or not (lines[0].startswith("--- ") and lines[1].startswith("+++ ")):
        return "", diff
    added = sum(line.startswith("+") for line in lines[2:])
    removed = sum(line.startswith("-") for line in lines[2:])
    was_empty = re.match(r"@@ -[01],0 ", lines[2]) is not None
    said = [tr("new file") if operation == "create" else tr("empty before")] if was_empty else []
    said += [tr("the whole file") if takes_away(diff) else ""] if not was_empty else []
    counts = [sign + counted(count, "line", "lines") for sign, count in (("+", added), ("-", removed)) if count]
    told = (visible(lines[0][4:].rstrip("\n")), *said, *counts)
    return " · ".join(filter(None, told)), "".join(lines[2:])


def takes_away(diff: str) -> bool:
    """Tell whether nothing of a text is left after a change."""
    third = diff.split("\n", 3)[2:3]
    return bool(third) and re.match(r"@@ -[0-9]+(,[0-9]+)? \+0,0 @@", third[0]) is not None


def visible(text: str) -> str:
    """Text in which no character is unseen or turns others around: those are written out as `\\u202e`."""
    return printable(text, keep="\n\t")


def cut(text: str) -> str:
    """At most `MAX_SHOWN` characters in lines that can be laid out, every one to be seen; what is left out is said."""
    return visible(laid_out(text))


def laid_out(text: str) -> str:
    """The same as `cut`, with the characters as they are."""
    shown = _LONG_LINE.sub(_line_cut, text[:MAX_SHOWN])
    if len(text) <= MAX_SHOWN:
        return shown
    return f"{shown}\n" + tr("... {count} more characters", count=f"{len(text) - MAX_SHOWN:,}")


_LONG_LINE = re.compile(rf"[^\n]{{{MAX_LINE + 1},}}")


def _line_cut(found: re.Match[str]) -> str:
    line = found.group()
    return f"{line[:MAX_LINE]} " + tr("... {count} more characters in this line", count=f"{len(line) - MAX_LINE:,}")


def argument_text(arguments: Mapping[str, JsonValue]) -> str:
    """Arguments to read."""
    return cut(json.dumps(dict(arguments), ensure_ascii=False, indent=2, default=_plain))


def _plain(value: object) -> object:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else str(value)
