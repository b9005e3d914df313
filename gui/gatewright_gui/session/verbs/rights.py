"""Verbs on the rights of an agent: boxes, approvals keys, limits and constraints."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from gatewright.workspace.api import (
    AgentChange,
    Edit,
    EditRefused,
    JsonValue,
    Layer,
    Limit,
    Policy,
    RightState,
    RuleKind,
    RulePosition,
    ToolFacts,
    ToolRight,
    Verdict,
    Workspace,
    agentedit,
    apply,
    frozen,
    rights,
    rights_changes,
    ruleedit,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.task import TaskOwner

if TYPE_CHECKING:
    from gatewright_gui.session.derive import Deriver
    from gatewright_gui.session.document import Document


def set_approval(document: "Document", agent_id: str, key: str, verdict: Verdict) -> bool:
    """Give a key a verdict."""
    return document.push(lambda policy, catalog: agentedit.set_approval(policy, catalog, agent_id, key, verdict))


def rename_approval(document: "Document", agent_id: str, key: str, new_key: str) -> bool:
    """The same verdict for another key."""
    return document.push(lambda policy, catalog: agentedit.rename_approval(policy, catalog, agent_id, key, new_key))


def remove_approval(document: "Document", agent_id: str, key: str) -> bool:
    """Take a key away."""
    return document.push(lambda policy, _tools: agentedit.remove_approval(policy, agent_id, key))


def approval_refusal(document: "Document", agent_id: str, key: str, was: str | None = None) -> str:
    """Why there cannot be such a key; empty when there can."""
    if was is not None:
        return document.refusal(lambda policy, catalog: agentedit.rename_approval(policy, catalog, agent_id, was, key))
    return document.refusal(lambda policy, catalog: agentedit.set_approval(policy, catalog, agent_id, key, Verdict.ASK))


Operations = frozenset[str] | None


@frozen
class ConstraintWish:
    """An argument of a tool for some operations (None: all). `standing` and `was`: the one that stands, if any.

    `schema` None: its value may be anything; `required`: a call must give it.
    """

    agent_id: str
    tool: str
    field: str
    schema: JsonValue
    required: bool = False
    operations: frozenset[str] | None = None
    standing: RulePosition | None = None
    was: str | None = None


def set_limit(document: "Document", agent_id: str, tool: str, limit: Limit, operations: Operations) -> bool:
    """Limit a tool, or only some operations of it."""
    return document.push(lambda policy, catalog: ruleedit.set_limit(policy, catalog, agent_id, tool, limit, operations))


def change_rule(document: "Document", standing: RulePosition, kind: RuleKind) -> bool:
    """Another value for a rule where it stands."""
    return document.push(lambda policy, _tools: ruleedit.change_rule(policy, standing, kind))


def bind_rule(document: "Document", standing: RulePosition, operations: Operations, field: str | None = None) -> bool:
    """Let a rule, or what it says of one argument, hold for some operations only, or for all of them."""
    return document.push(lambda policy, catalog: ruleedit.bind_rule(policy, catalog, standing, operations, field))


def remove_rule(document: "Document", standing: RulePosition, field: str | None = None) -> bool:
    """Take a rule away; with a field, only what it says of that argument."""
    if field is None:
        return document.push(lambda policy, _tools: ruleedit.remove_rule(policy, standing))
    return document.push(lambda policy, _tools: ruleedit.remove_constraint(policy, standing, field))


def constrain(document: "Document", wish: ConstraintWish) -> bool:
    """Write a constraint: a new one, or another for one that stands."""
    return document.push(lambda policy, catalog: _constraint_edit(policy, catalog, wish))


def constraint_refusal(document: "Document", wish: ConstraintWish) -> str:
    """Why it could not be written; empty when it could."""
    return document.refusal(lambda policy, catalog: _constraint_edit(policy, catalog, wish))


def _constraint_edit(policy: Policy, catalog: Sequence[ToolFacts], wish: ConstraintWish) -> Edit:
    field, schema, required = wish.field, wish.schema, wish.required
    if wish.standing is None or wish.was is None:
        return ruleedit.set_constraint(
            policy, catalog, wish.agent_id, wish.tool, field, schema, wish.operations, required=required
        )
    return ruleedit.change_constraint(policy, catalog, wish.standing, wish.was, field, schema, required=required)


Wish = Literal["allow", "ask", "deny"]
Tick = Literal["on", "again", "off"]
"""`again`: on, and a tool that was turned off whole has what it had before."""
_UNSEEN = {RightState.OFF, RightState.OVERRULED}
_VERDICTS: Mapping[str, Verdict] = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY}
_DANGERS = {"privileged": mark("privileged"), "deletes": mark("deletes")}
TOOLS_AT_ONCE, CELLS_AT_ONCE = 40, 12
"""So many tools of one agent, and of several agents, are edited without leaving the window's thread."""
MANY_TASK, CELLS_TASK = "agents.many", "agents.cells"
_WORDS: dict[Wish | Tick, str] = {
    "allow": mark("turn on without asking {what} for {agents}"),
    "ask": mark("ask first for {what} for {agents}"),
    "deny": mark("turn off {what} for {agents}"),
    "on": mark("turn on {what} for {agents}"),
    "again": mark("turn on {what} for {agents}"),
    "off": mark("turn off {what} for {agents}"),
}


@frozen
class Target:
    """Operations of one tool."""

    tool: str
    operations: tuple[str, ...]


def tick_operations(document: "Document", agent_id: str, tool: str, operations: Iterable[str], *, on: bool) -> bool:
    """Turn operations on or off."""
    chosen = tuple(operations)
    return document.push(lambda policy, tools: rights.tick_operations(policy, tools, agent_id, tool, chosen, on=on))


def tick_tool(document: "Document", agent_id: str, tool: str, *, on: bool) -> bool:
    """Turn a tool off, or on with the operations that it had; says so where those are not all."""
    done = document.push(lambda policy, tools: rights.tick_tool(policy, tools, agent_id, tool, on=on))
    rows = document.rights(agent_id)[tool].operations if done and on else ()
    ticked = sum(row.ticked for row in rows)
    if ticked < len(rows):
        text = tr(
            "`{tool}` is on with the {some} of its {all} operations that the policy lists for `{agent}`;"
            " the others are still off",
            tool=tool,
            some=f"{ticked:,}",
            all=f"{len(rows):,}",
            agent=agent_id,
        )
        document.say("info", text)
    return done


def ask_first(document: "Document", agent_id: str, tool: str, operation: str, *, on: bool) -> bool:
    """Make an operation (`""`: the tool) ask first, or stop asking; says so when something else holds it as it was."""
    done = document.push(lambda policy, tools: rights.ask_first(policy, tools, agent_id, tool, operation, on=on))
    right = document.rights(agent_id).get(tool)
    if right is None:
        return done
    rows = [row for row in right.operations if not operation or row.operation == operation]
    asking = next((row for row in rows if row.verdict is Verdict.ASK), None)
    if asking is not None and not on:
        document.say("info", tr("it still asks first: {reason}", reason=asking.reasons[0].text))
    elif said := _denial_words([right], {tool: [row.operation for row in rows]}):
        document.say("info", said)
    return done


def edit_tools(document: "Document", agent_id: str, targets: Sequence[Target], wanted: Wish | Tick) -> bool:
    """Allow, ask first, deny, or turn on or off everything that is targeted, as one edit; says what several come to,
    and what cannot be had. What is turned on asks as it did.
    """
    if not targets:
        return False
    table, before = _table(targets), document.rights(agent_id)
    done = document.push(lambda policy, tools: _edit_of(policy, tools, agent_id, table, wanted))
    held_off = _count_excluded(document.policy, document.catalog, agent_id, table, wanted)
    if said := _many_words(agent_id, before, document.rights(agent_id) if done else before, table, wanted, held_off):
        document.say("info", said, can_undo=done)
    return done


def work_out(workspace: Workspace, agent_id: str, targets: Sequence[Target], wanted: Wish | Tick) -> tuple[Edit, str]:
    """The edit that `edit_tools` would make, and what it would say, for the worker process. Raises EditRefused."""
    policy, catalog, table = workspace.policy, workspace.catalog, _table(targets)
    edit = _edit_of(policy, catalog, agent_id, table, wanted)
    after = apply(policy, edit)
    was, now = workspace.rights(agent_id), workspace.rights_under(after, agent_id)
    held_off = _count_excluded(after, catalog, agent_id, table, wanted)
    return edit, _many_words(agent_id, was, now, table, wanted, held_off)


def _edit_of(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, table: Mapping[str, Sequence[str]], wanted: Wish | Tick
) -> Edit:
    if wanted in {"on", "again", "off"}:
        again = wanted == "again"
        return rights.tick_many(policy, catalog, agent_id, table, on=wanted != "off", as_before=again)
    return rights.set_many(policy, catalog, agent_id, table, _VERDICTS[wanted])


def _table(targets: Sequence[Target]) -> dict[str, tuple[str, ...]]:
    return {target.tool: target.operations for target in targets}


def _count_excluded(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, table: Mapping[str, Sequence[str]], wanted: Wish | Tick
) -> int:
    """Of several tools what cannot be is left out; of one it was refused with a reason."""
    wants_on = wanted not in {"deny", "off"}
    return rights.count_excluded(policy, catalog, agent_id, table) if wants_on and len(table) > 1 else 0


def _many_words(
    agent_id: str,
    was: Mapping[str, ToolRight],
    now: Mapping[str, ToolRight],
    table: Mapping[str, Sequence[str]],
    wanted: Wish | Tick,
    held_off: int,
) -> str:
    """Words for what an edit of several operations comes to, and what stays off though it was wanted."""
    rights_now = {name: now[name] for name in table if name in now}
    rows = list(rights_changes(agent_id, was, rights_now))
    come = [row for row in rows if row.before in _UNSEEN and row.after not in _UNSEEN]
    gone = sum(row.before not in _UNSEEN and row.after in _UNSEEN for row in rows)
    parts: list[str] = []
    if len(rows) > 1 and come:
        dangers = Counter([row.danger for row in come if row.danger])
        asking = sum(row.after is RightState.ASKS for row in come)
        more = [f"{count:,} {tr(_DANGERS[danger])}" for danger, count in dangers.items()]
        more += [tr("{count} asking first", count=f"{asking:,}")] if asking else []
        dangerous = ", ".join(more) or tr("none privileged or known to delete")
        what = counted(len(come), "operation", "operations")
        parts.append(tr("turned on {what} of `{agent}`, {dangerous}", what=what, agent=agent_id, dangerous=dangerous))
    elif len(rows) > 1:
        what = counted(gone or len(rows), "operation", "operations")
        text = tr("turned off {what} of `{agent}`") if gone else tr("no longer ask for {what} of `{agent}`")
        text = tr("ask first for {what} of `{agent}`") if wanted == "ask" else text
        parts.append(text.format(what=what, agent=agent_id))
    if held_off:
        what = counted(held_off, "operation stays off", "operations stay off")
        why = tr("several AllowedOperations rules of `{agent}` leave it out together", agent=agent_id)
        parts.append(f"{what}: {why}")
    denied = _denial_words(rights_now.values(), table) if wanted in {"allow", "ask"} else ""
    return "; ".join([*parts, *([denied] if denied else [])])


def _denial_words(tools: Iterable[ToolRight], table: Mapping[str, Sequence[str]]) -> str:
    """The operations among these that `approvals` of `[defaults]` deny; of the agent's own key it would be no news."""
    held = [
        reason.text
        for right in tools
        for row in right.operations
        if row.operation in table[right.facts.name] and row.verdict is Verdict.DENY
        for reason in row.reasons[:1]
        if reason.layer is Layer.APPROVALS and reason.address and reason.address[0] == "defaults"
    ]
    if not held:
        return ""
    what = counted(len(held), "operation stays denied", "operations stay denied")
    return tr("{what}: {reason}; a key of the agent's own opens it", what=what, reason=held[0])


# many tools of one agent


class ManyRights:
    """Of one document; one edit after the other."""

    def __init__(self, document: "Document", deriver: "Deriver", tasks: "TaskOwner") -> None:
        self._document, self._deriver, self._tasks = document, deriver, tasks
        self._waiting: deque[tuple[str, Sequence[Target], Wish | Tick]] = deque()

    def edit(self, agent_id: str, targets: Sequence[Target], wanted: Wish | Tick) -> None:
        """`edit_tools`: at once where these are few tools and none are worked out."""
        is_busy = MANY_TASK in self._tasks.names
        if len(targets) <= TOOLS_AT_ONCE and not is_busy:
            edit_tools(self._document, agent_id, targets, wanted)
            return
        if not is_busy:
            self._waiting.clear()  # what a closed policy left
        self._waiting.append((agent_id, targets, wanted))
        if not is_busy:
            self._tasks.start(self._work(), MANY_TASK)

    async def _work(self) -> None:
        document = self._document
        while self._waiting:
            asked, worked = self._waiting.popleft(), None
            try:
                while worked is None and document.is_open:  # another edit meanwhile makes it another question
                    worked = await self._deriver.derive(work_out, *asked)
            except EditRefused as error:
                document.say("warning", str(error))
            if worked is not None:
                edit, said = worked
                done = document.push(lambda _policy, _catalog, edit=edit: edit)
                if said:
                    document.say("info", said, can_undo=done)


# cells of several agents


Cells = Mapping[str, Sequence[Target]]
"""By agent: what of each tool is meant."""


def edit_cells(document: "Document", deriver: "Deriver", tasks: "TaskOwner", cells: Cells, wanted: Wish | Tick) -> None:
    """Make one edit of all these cells; while one is worked out a second is refused, and that is said."""
    if CELLS_TASK in tasks.names:
        document.say("warning", tr("the cells before are still being worked out; try again in a moment"))
    elif sum(map(len, cells.values())) <= CELLS_AT_ONCE:
        document.push(lambda policy, catalog: _cells_edit(policy, catalog, cells, wanted))
    else:
        tasks.start(_edit_beside(document, deriver, cells, wanted), CELLS_TASK)


async def _edit_beside(document: "Document", deriver: "Deriver", cells: Cells, wanted: Wish | Tick) -> None:
    try:
        edit = await deriver.derive(plan_cells, cells, wanted)
    except EditRefused as error:
        document.say("warning", str(error))
        return
    if edit is None:
        name = cells_name(cells, wanted)
        document.say("warning", tr("nothing was changed: the policy was edited meanwhile ({edit})", edit=name))
    else:
        document.push(lambda _policy, _catalog: edit)


def plan_cells(workspace: Workspace, cells: Cells, wanted: Wish | Tick) -> Edit:
    """The edit of these cells, named; empty when all is so already. Raises EditRefused."""
    return _cells_edit(workspace.policy, workspace.catalog, cells, wanted)


def _cells_edit(policy: Policy, catalog: Sequence[ToolFacts], cells: Cells, wanted: Wish | Tick) -> Edit:
    edits = [_edit_of(policy, catalog, agent_id, _table(targets), wanted) for agent_id, targets in cells.items()]
    changes = [one for edit in edits for one in edit.changes]
    changed = tuple(one for one in changes if isinstance(one, AgentChange) and one.before != one.after)
    return Edit(cells_name(cells, wanted), changed)


def cells_name(cells: Cells, wanted: Wish | Tick) -> str:
    """The name of what is done, of what, for whom."""
    agent_ids = tuple(cells)
    agents = f"`{agent_ids[0]}`" if len(agent_ids) == 1 else counted(len(agent_ids), "agent", "agents")
    return tr(_WORDS[wanted], what=_what(cells), agents=agents)


def _what(cells: Cells) -> str:
    tools = {target.tool for targets in cells.values() for target in targets}
    operations = {(target.tool, name) for targets in cells.values() for target in targets for name in target.operations}
    count = counted(len(operations), "operation", "operations")
    if len(tools) > 1:
        return tr("{operations} of {tools}", operations=count, tools=counted(len(tools), "tool", "tools"))
    (tool,) = tools
    if len(operations) > 1:
        return tr("{operations} of {tools}", operations=count, tools=f"`{tool}`")
    ((_, name),) = operations
    return tr("`{operation}` of `{tool}`", operation=name, tool=tool) if name else f"`{tool}`"
