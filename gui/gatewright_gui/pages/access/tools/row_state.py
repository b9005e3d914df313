"""The state of a row of the tree, worked out of rights: what its box shows, its verdict, and the words for it."""

from enum import StrEnum

from gatewright.workspace.api import (
    Layer,
    OperationFacts,
    OperationRight,
    Reason,
    RightWord,
    ToolRight,
    Verdict,
    strictest,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.path_share import Share
from gatewright_gui.session.value_words import value_words
from gatewright_gui.session.verdict import right_words


class RowState(StrEnum):
    """What a box shows; `OVERRULED` is ticked and turned off by another layer, `MIXED` a tool that is on in part."""

    ON = "on"
    OFF = "off"
    MIXED = "mixed"
    OVERRULED = "overruled"


class Asking(StrEnum):
    """Whether a row asks first. `SOME`: some calls of it; `LOCKED`: another layer than `approvals` makes it ask."""

    NO = "no"
    YES = "yes"
    SOME = "some"
    LOCKED = "locked"


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
    """What some calls of an operation come to by their arguments, in a sentence; empty where all come to the same.

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
    """What a row says of itself."""
    if operation is None:
        return tool.facts.description
    return facts_of(tool, operation).description


def facts_of(tool: ToolRight, operation: OperationRight) -> OperationFacts:
    """What is known of the operation of a row."""
    return next(op for op in tool.facts.operations if op.name == operation.operation)


def verdict_words(tool: ToolRight, operation: OperationRight | None) -> str:
    """The word of the right, or mixed; where the box is ticked and a layer turns it off, which one.

    What goes by values says which, where that is short: `up to 100`.
    """
    if operation is None:
        rows = zip(tool.facts.operations, tool.operations, strict=True)
        shown = {_verdict_word(op, row) for op, row in rows if not row.is_hidden}
        if shown:
            return shown.pop() if len(shown) == 1 else "mixed"
    if state_of(tool, operation) is RowState.OVERRULED:
        reasons = [r for r in reasons_of(tool, operation) if r.verdict is Verdict.DENY]
        return tr("no effect: {layer}", layer=tr(_SHORT[reasons[0].layer])) if reasons else tr("off")
    return _verdict_word(facts_of(tool, operation), operation) if operation else tr("off")


def _verdict_word(op: OperationFacts, row: OperationRight) -> str:
    short = value_words(op, row).short if row.word is RightWord.BY_VALUE else ""
    return short or right_words(row.word)


_SHORT = {
    Layer.TOOLS: mark("tools"),
    Layer.RULE: mark("rule"),
    Layer.APPROVALS: mark("approvals"),
    Layer.SOURCE: mark("source"),
    Layer.CAPABILITY: mark("no grant"),
    Layer.POLICY: mark("policy"),
}
"""A layer that turns something off, in a column."""
TIER_WORDS = {"read_only": mark("read only"), "side_effecting": mark("side effects"), "privileged": mark("privileged")}
STATE_WORDS = {
    RowState.ON: mark("on"),
    RowState.OFF: mark("off"),
    RowState.MIXED: mark("mixed"),
    RowState.OVERRULED: mark("overruled"),
}
ASK_TIPS = {
    Asking.NO: mark("does not ask first"),
    Asking.YES: mark("asks first"),
    Asking.SOME: mark("some of its calls ask first"),
    Asking.LOCKED: mark("asks first, by another layer than this switch"),
}


def asking_words(tool: ToolRight, operation: OperationRight | None) -> str:
    """Whether a row asks first, in a sentence; what only a text that is a path makes ask is said, too."""
    asking = asking_of(tool, operation)
    shown = (operation,) if operation is not None else tuple(op for op in tool.operations if not op.is_hidden)
    if asking is Asking.NO and any(Verdict.ASK in op.by_text for op in shown):
        return tr("asks first only for a text that is a path into a source whose level asks")
    return tr(ASK_TIPS[asking])


def same_shape(one: ToolRight, other: ToolRight) -> bool:
    """Whether a tool has the same rows below it."""
    a, b = one.facts, other.facts
    return a is b or (a.name, a.major, a.operation_names) == (b.name, b.major, b.operation_names)


def looks_alike(one: ToolRight, other: ToolRight) -> bool:
    """Whether the cells of a tool would be painted the same; words of reasons are asked for when they are wanted."""
    return all(
        a is b
        or (
            a.ticked == b.ticked
            and a.verdict is b.verdict
            and a.word is b.word
            and (a.depends, a.by_text) == (b.depends, b.by_text)
            and [r.layer for r in a.reasons] == [r.layer for r in b.reasons]
        )
        for a, b in zip(one.operations, other.operations, strict=True)
    )
