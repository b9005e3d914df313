"""The state of a row of the tree, worked out of rights: its box, its switch, its verdict, and the words for it."""

from enum import StrEnum

from gatewright.workspace.api import (
    Agent,
    CapabilityKind,
    Effect,
    Layer,
    OperationFacts,
    OperationRight,
    Reason,
    ToolRight,
    Verdict,
    kind_of,
    strictest,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.path_share import Share
from gatewright_gui.session.value_words import value_words
from gatewright_gui.session.verbs.agents import ACCESS_WORDS


class RowState(StrEnum):
    """The state of a box; `OVERRULED` is ticked and turned off by another layer, `MIXED` a tool that is on in part."""

    ON = "on"
    OFF = "off"
    MIXED = "mixed"
    OVERRULED = "overruled"


class Asking(StrEnum):
    """A row's way of asking first. `SOME`: some calls of it; `LOCKED`: another layer than `approvals` makes it ask."""

    NO = "no"
    YES = "yes"
    SOME = "some"
    LOCKED = "locked"


class Switch(StrEnum):
    """The lit half of the switch beside a ticked box. `LOCKED`: asks first, and *On* is closed by another layer than
    `approvals`; `MIXED`: the operations of a tool differ.
    """

    ON = "on"
    ASK = "ask"
    LOCKED = "locked"
    MIXED = "mixed"


_SWITCHES = {
    Asking.NO: Switch.ON,
    Asking.SOME: Switch.ON,
    Asking.YES: Switch.ASK,
    Asking.LOCKED: Switch.LOCKED,
}


def switch_of(tool: ToolRight, operation: OperationRight | None) -> Switch | None:
    """The switch of a row; None where nothing is ticked. Without effect it is what it would be with effect."""
    rows = (operation,) if operation is not None else tool.operations
    ticked = [row for row in rows if row.ticked]
    found = {_switch(row) for row in [row for row in ticked if not row.is_hidden] or ticked}
    if len(found) > 1:
        return Switch.MIXED
    return found.pop() if found else None


def _switch(row: OperationRight) -> Switch:
    if not row.is_hidden:
        return _SWITCHES[operation_asking(row)]
    return Switch.ASK if any(reason.verdict is Verdict.ASK for reason in row.reasons) else Switch.ON


def operation_state(right: OperationRight) -> RowState:
    """Of one operation."""
    if right.is_overruled:
        return RowState.OVERRULED
    return RowState.ON if right.ticked else RowState.OFF


def tool_state(right: ToolRight) -> RowState:
    """Of a tool with all its operations: on where every one of them is ticked, and no other layer turns it off."""
    if not right.ticked:
        return RowState.OFF
    on = sum([op.ticked and not op.is_hidden for op in right.operations])
    if not on:
        return RowState.OVERRULED
    return RowState.ON if on == len(right.operations) else RowState.MIXED


def tool_verdict(right: ToolRight) -> Verdict:
    """Deny when all of it is hidden, else the strictest of what is shown."""
    shown = [op.verdict for op in right.operations if not op.is_hidden]
    return strictest(*shown) if shown else Verdict.DENY


def operation_asking(right: OperationRight) -> Asking:
    """Of one operation; a hidden one does not ask."""
    if right.verdict is not Verdict.ASK:
        return Asking.SOME if right.asks_for_some else Asking.NO
    asking = [reason.layer for reason in right.reasons if reason.verdict is Verdict.ASK]
    return Asking.YES if all(layer is Layer.APPROVALS for layer in asking) else Asking.LOCKED


def tool_asking(right: ToolRight) -> Asking:
    """Of what is shown of a tool."""
    found = {operation_asking(op) for op in right.operations if not op.is_hidden}
    if len(found) == 1:
        return found.pop()
    return Asking.SOME if found - {Asking.NO} else Asking.NO


def depending_words(op: OperationFacts, right: OperationRight, share: Share | None = None) -> str:
    """A sentence on what some calls of an operation come to by their arguments; empty where all come to the same.

    `share`: how many files it may touch, where that was counted.
    """
    counted = share.words if share is not None else ""
    path = counted or _some_words(right.by_path) if right.by_path else ""
    block = (counted if not path else "") or _some_words(right.by_block) if right.by_block else ""
    values = "; ".join(value_words(op, right).sentences) or _some_words(right.by_value)
    by_path = tr("depends on the file: {verdicts}", verdicts=path) if path else ""
    by_block = tr("depends on the block: {verdicts}", verdicts=block) if block else ""
    by_values = tr("depends on the values: {verdicts}", verdicts=values) if values else ""
    text = _some_words(right.by_text)
    by_text = tr("takes the level of a source for a text that is a path: {verdicts}", verdicts=text) if text else ""
    return "; ".join(filter(None, (by_path, by_block, by_values, by_text)))


def _some_words(verdicts: frozenset[Verdict]) -> str:
    said = tr(" and some ").join(tr(_SAYS[verdict]) for verdict in _SAYS if verdict in verdicts)
    return tr("some calls {verdicts}", verdicts=said) if said else ""


_SAYS = {Verdict.ASK: mark("ask first"), Verdict.DENY: mark("are denied")}


def tool_reasons(right: ToolRight) -> tuple[Reason, ...]:
    """Every distinct reason of the tool and its operations, the tool's own first."""
    return tuple(dict.fromkeys([*right.reasons, *(r for op in right.operations for r in operation_reasons(op))]))


def operation_reasons(right: OperationRight) -> tuple[Reason, ...]:
    """Every reason of an operation; of one that is off only what turns it off, since it does not ask."""
    if not right.is_hidden:
        return right.reasons
    return tuple(reason for reason in right.reasons if reason.verdict is Verdict.DENY)


def state_of(tool: ToolRight, operation: OperationRight | None) -> RowState:
    """Of a row: a tool, or one of its operations."""
    return operation_state(operation) if operation else tool_state(tool)


def verdict_of(tool: ToolRight, operation: OperationRight | None) -> Verdict:
    """Of a row."""
    return operation.verdict if operation else tool_verdict(tool)


def asking_of(tool: ToolRight, operation: OperationRight | None) -> Asking:
    """Of a row."""
    return operation_asking(operation) if operation else tool_asking(tool)


def reasons_of(tool: ToolRight, operation: OperationRight | None) -> tuple[Reason, ...]:
    """Of a row."""
    return operation_reasons(operation) if operation else tool_reasons(tool)


def description_of(tool: ToolRight, operation: OperationRight | None) -> str:
    """The words of a row about itself."""
    if operation is None:
        return tool.facts.description
    return facts_of(tool, operation).description


def facts_of(tool: ToolRight, operation: OperationRight) -> OperationFacts:
    """The facts known of the operation of a row."""
    return next(op for op in tool.facts.operations if op.name == operation.operation)


def fact_words(tool: ToolRight, operation: OperationRight | None, share: Share | None = None) -> str:
    """Words for what narrows the calls of a row that is on: `11 of 12 files`, `up to 100`; empty where nothing does."""
    row = operation or tool.operations[0]
    if not row.ticked or row.is_hidden:
        return ""
    op = facts_of(tool, row)
    parts: list[str] = []
    if row.by_path or row.by_block:
        counts = share_words(share, row.verdict) if share is not None else ""
        parts.append(counts or _goes_by(op, row))
    if row.by_value:
        parts.append(value_words(op, row).short or tr("depends on the values"))
    if row.by_text and not parts:
        parts.append(tr("may name files"))
    return ", ".join(parts)


def _goes_by(op: OperationFacts, row: OperationRight) -> str:
    if not row.by_path:
        return tr("depends on the block")
    if op.roots:
        return tr("files in {folders}", folders=", ".join(sorted(op.roots)))
    return tr("depends on the folder") if op.makes else tr("depends on the file")


def share_words(share: Share, verdict: Verdict) -> str:
    """The number of files a row with this verdict may touch: `11 of 12 files`, and one that asks `2 files, 10 never`.

    Empty where the count says nothing: where calls may reach files that nobody counts, and none of the counted ones.
    """
    if not share.tells:
        return tr("no file yet") if not share.files and not share.elsewhere else ""
    if share.blocks == share.files:
        name = counted(share.files, "block", "blocks")
    elif share.blocks:
        name = counted(share.files, "file or block", "files and blocks")
    elif share.elsewhere:
        name = counted(share.files, "known file", "known files")
    else:
        name = counted(share.files, "file", "files")
    if share.is_partial:
        name = tr("the first {files}", files=name)
    if verdict is Verdict.ALLOW and share.ask and not share.allow:
        return ""  # perhaps counted before the row stopped asking
    reached = share.allow if verdict is Verdict.ALLOW else share.ask + share.allow
    if reached == share.files:
        return tr("all of {files}", files=name)
    if verdict is Verdict.ALLOW and share.ask:
        asks = counted(share.ask, "more asks", "more ask")
        return tr("{count:,} of {files}, {more}", count=share.allow, files=name, more=asks)
    if verdict is Verdict.ASK and reached and not share.is_partial and not share.blocks:
        return tr("{files}, {count:,} never", files=counted(reached, "file", "files"), count=share.deny)
    if not reached:
        return tr("none of {files}", files=name)
    return tr("{count:,} of {files}", count=reached, files=name)


_STOPS = {
    "no-source": mark("needs a source"),
    "no-level-permits": mark("no level of its sources permits it"),
    "source-operation-not-allowed": mark("a source turns it off"),
    "capability-unjudgeable": mark("needs a grant without bounds"),
    "tool-held": mark("waits to be accepted"),
    "places-not-accepted": mark("its places wait to be accepted"),
    "no-endpoint": mark("needs an endpoint"),
    "policy-default": mark("the default of the policy denies it"),
}
_STOPPED_BY = {
    Layer.TOOLS: mark("the list of tools turns it off"),
    Layer.RULE: mark("a tool rule turns it off"),
    Layer.APPROVALS: mark("an approval denies it"),
    Layer.SOURCE: mark("a source turns it off"),
    Layer.CAPABILITY: mark("needs a grant"),
    Layer.POLICY: mark("a policy rule denies it"),
}


def stop_of(tool: ToolRight, operation: OperationRight | None) -> Reason | None:
    """The reason for which a ticked row has no effect; None for any other row."""
    if state_of(tool, operation) is not RowState.OVERRULED:
        return None
    return next((one for one in reasons_of(tool, operation) if one.verdict is Verdict.DENY), None)


def no_effect_words(agent: Agent, tool: ToolRight, operation: OperationRight | None) -> str:
    """The lack of a ticked row, or who turns it off: `no effect: needs write access`; empty for any other row."""
    reason = stop_of(tool, operation)
    if reason is None:
        return ""
    if reason.code == "capability-not-granted" and (lacks := lacking(agent, tool, operation)):
        why = tr("needs {what}", what=tr(" and ").join(tr(ACCESS_WORDS[kind]) for kind in lacks))
    elif reason.layer is Layer.POLICY and reason.rule_id:
        why = tr("policy rule {name} denies it", name=reason.rule_id)
    else:
        why = tr(_STOPS.get(reason.code) or _STOPPED_BY[reason.layer])
    return tr("no effect: {why}", why=why)


def lacking(agent: Agent, tool: ToolRight, operation: OperationRight | None = None) -> tuple[CapabilityKind, ...]:
    """The kinds of grants that a ticked operation of a row needs and the agent does not have."""
    held = {kind_of(one) for one in agent.capabilities if one.scope != ()}
    needed = {facts.name: facts.capabilities for facts in tool.facts.operations}
    rows = (operation,) if operation is not None else tool.operations
    lacks = {kind for row in rows if row.ticked for kind in needed.get(row.operation, ()) if kind not in held}
    return tuple(kind for kind in CapabilityKind if kind in lacks)


EFFECT_WORDS = {Effect.DELETE: mark("deletes"), Effect.SEND: mark("sends out"), Effect.RUN: mark("runs commands")}
"""The effects that a mark warns of."""


def danger_of(tool: ToolRight, operation: OperationRight | None) -> Effect | None:
    """The effect that a mark before the name warns of; None on the row of a tool with operations, and for the rest."""
    if operation is None and tool.facts.has_operations:
        return None
    effect = (facts_of(tool, operation) if operation is not None else tool.facts.operations[0]).effect
    return effect if effect in EFFECT_WORDS else None


STATE_WORDS = {
    RowState.ON: mark("on"),
    RowState.OFF: mark("off"),
    RowState.MIXED: mark("mixed"),
    RowState.OVERRULED: mark("no effect"),
}
ASK_TIPS = {
    Asking.NO: mark("does not ask first"),
    Asking.YES: mark("asks first"),
    Asking.SOME: mark("some of its calls ask first"),
    Asking.LOCKED: mark("asks first, and this switch cannot change that"),
}


def asking_words(tool: ToolRight, operation: OperationRight | None) -> str:
    """A sentence on whether a row asks first; what only a text that is a path makes ask is said, too."""
    asking = asking_of(tool, operation)
    shown = (operation,) if operation is not None else tuple(op for op in tool.operations if not op.is_hidden)
    if asking is Asking.NO and any(Verdict.ASK in op.by_text for op in shown):
        return tr("asks first only for a text that is a path into a source whose level asks")
    return tr(ASK_TIPS[asking])


def same_shape(one: ToolRight, other: ToolRight) -> bool:
    """Tell whether a tool has the same rows below it."""
    a, b = one.facts, other.facts
    return a is b or (a.name, a.major, a.operation_names) == (b.name, b.major, b.operation_names)


def looks_alike(one: ToolRight, other: ToolRight) -> bool:
    """True if the cells of a tool would be painted the same; words of reasons are asked for when they are wanted."""
    return all(
        a is b
        or (
            a.ticked == b.ticked
            and a.verdict is b.verdict
            and a.word is b.word
            and (a.by_path, a.by_block, a.by_value, a.by_text) == (b.by_path, b.by_block, b.by_value, b.by_text)
            and a.limits == b.limits
            and [r.layer for r in a.reasons] == [r.layer for r in b.reasons]
        )
        for a, b in zip(one.operations, other.operations, strict=True)
    )
