"""What the log tells of one call, where its rule stands today, how it would be decided today, what would mend it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from gatewright.workspace.api import (
    Address,
    AuditRow,
    Decision,
    Edit,
    EditRefused,
    JsonValue,
    Lineage,
    LoggedCall,
    Permission,
    PermissionRule,
    PermissionRules,
    Policy,
    PolicyInvalid,
    RowKind,
    ToolFacts,
    Verdict,
    Workspace,
    apply,
    decide_again,
    diff_text,
    duration_words,
    frozen,
    lacks_of,
    lineage_of,
    rights,
    ruleedit,
    worked_in,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.call_record import line_of
from gatewright_gui.session.calls import STAGE_NAMES, stage_words
from gatewright_gui.session.files import pattern_of
from gatewright_gui.session.verbs.sources import rule_edit
from gatewright_gui.session.verdict import permission_words

ENDS: Mapping[str, str] = {
    RowKind.TOOL_COMPLETED: mark("completed"),
    RowKind.TOOL_FAILED: mark("failed"),
    RowKind.TOOL_TIMED_OUT: mark("timed out"),
    RowKind.TOOL_ABANDONED: mark("abandoned"),
    RowKind.TOOL_DENIED: mark("not made"),
}
EVENTS: Mapping[str, str] = {
    RowKind.LOG_OPENED: mark("The log begins here"),
    RowKind.LOG_MOVED: mark("Log moved"),
    RowKind.POLICY_CHANGED: mark("Policy changed"),
    RowKind.GRANT_REVOKED: mark("Approval taken back"),
    RowKind.CATALOG_ACCEPTED: mark("Tools accepted"),
    RowKind.MEMORY_ADOPTED: mark("Memory taken over"),
    RowKind.SESSION_DELETED: mark("Session deleted"),
    RowKind.CONNECTION: mark("Connection"),
    RowKind.COPY_RETURNED: mark("Changes of a process"),
    RowKind.STOP_PULLED: mark("Agents stopped"),
    RowKind.STOP_LIFTED: mark("Agents go on"),
}
_NO_END, _WAITS = mark("no end"), mark("waits")
_OUTCOMES = {"allow": mark("allowed"), "ask": mark("asked"), "deny": mark("denied")}
_LONGEST = 80
_PART = re.compile(r"[^.\[\]]+|\[(\d+)\]")


def outcomes() -> tuple[str, ...]:
    """Everything that `outcome_words` says of a call that it knows."""
    ends = (*ENDS.values(), _NO_END)
    asked = (", ".join((tr("asked"), tr(words))) for words in (*ends, _WAITS))
    allowed = (", ".join((tr("allowed"), tr(words))) for words in ends)
    return (tr("asked, unanswered"), tr("begun"), tr("denied"), *allowed, *asked)


def outcome_words(call: LoggedCall) -> str:
    """The outcome of a call, in a word or two; empty for a row that belongs to none."""
    if not call.is_call:
        return ""
    match call.verdict, call.ended:
        case "allow", RowKind.TOOL_COMPLETED:
            return tr("allowed")
        case "allow", ended:
            return ", ".join((tr("allowed"), tr(ENDS.get(ended, _NO_END))))
        case "ask", RowKind.TOOL_DENIED:
            return tr("asked, unanswered")
        case "ask", ended:
            return ", ".join((tr("asked"), tr(ENDS.get(ended, _WAITS))))
        case verdict, _:
            return decision_words(verdict) or tr("begun")


def decision_words(verdict: str) -> str:
    """The verdict of a call: allowed, asked, denied."""
    return tr(_OUTCOMES.get(verdict, verdict))


@frozen
class CallDetail:
    """Everything that the rows of one call say. ``arguments``: as the log keeps them, None where it has none.

    ``scrubbed``: how many secrets were taken out of them, ``lacks``: what of them is missing; ``policy``: the digest
    of the policy that decided; ``facts``: a name and what it says, in the order in which one asks for it. ``parent``:
    the call that it is a step of, once that is read. ``sent``: the row with which it began.
    """

    call: LoggedCall
    arguments: Mapping[str, JsonValue] | None
    scrubbed: int
    lacks: str
    stage: str
    rule: str | None
    policy: str
    facts: tuple[tuple[str, str], ...]
    rows: str
    parent: LoggedCall | None = None
    sent: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    @property
    def folder(self) -> str:
        """The folder where the coding agent worked that made it."""
        return worked_in(self.sent)

    def find_lineage(self) -> Lineage | None:
        """Return the descent of the sub-agent that made it, or None. Raises WorkspaceError for a row that hides it."""
        return lineage_of(self.call, self.sent)

    @property
    def is_orphan(self) -> bool:
        """True for a step of a call that was not found so far."""
        return bool(self.call.within) and self.parent is None


def step_words(call: LoggedCall) -> str:
    """The place of a step among those of its call, as people count; empty for any other call."""
    return tr("step {number}", number=call.step + 1) if call.within and call.step is not None else ""


def agent_words(call: LoggedCall) -> str:
    """The agent of a call, of a sub-agent with its callers."""
    whose = call.agent
    for caller in reversed(call.callers):
        whose = tr("{agent}, started by {caller}", agent=whose, caller=caller)
    return whose


def calls_words(call: LoggedCall) -> str:
    """The number of steps that a call made, and of calls by a sub-agent that it started; empty for none."""
    parts = (
        counted(call.steps, "step", "steps") if call.steps else "",
        counted(call.started, "call under it", "calls under it") if call.started else "",
    )
    return ", ".join(filter(None, parts))


def detail_of(call: LoggedCall, rows: Sequence[AuditRow], parent: LoggedCall | None = None) -> CallDetail:
    """The details that the rows tell."""
    told = {row.kind: _body(row) for row in rows}  # of two decisions the last
    sent, decided = told.get(RowKind.TOOL_INVOKED, {}), told.get(RowKind.POLICY_DECISION, {})
    arguments = sent.get("arguments")
    rule = decided.get("rule")
    return CallDetail(
        call,
        cast("Mapping[str, JsonValue]", arguments) if isinstance(arguments, dict) else None,
        sent["scrubbed"] if isinstance(sent.get("scrubbed"), int) else 0,
        lacks_of(sent),
        str(decided.get("stage") or ""),
        rule if isinstance(rule, str) else None,
        str(decided.get("policy") or ""),
        tuple(_facts(call, told)),
        "\n".join(json.dumps(row.to_json(), ensure_ascii=False, indent=2) for row in rows),
        parent,
        sent,
    )


def _facts(call: LoggedCall, told: Mapping[str, Mapping[str, Any]]) -> Sequence[tuple[str, str]]:
    decided, asked = told.get(RowKind.POLICY_DECISION, {}), told.get(RowKind.APPROVAL_REQUESTED)
    answered, ended = told.get(RowKind.APPROVAL_RESOLVED), told.get(call.ended, {})
    checked = told.get(RowKind.CAPABILITY_CHECK)
    stage = str(decided.get("stage") or "")
    found: list[tuple[str, str]] = []
    if stage and call.verdict != "allow":
        words = f"{stage_words(stage)} ({decided['code']})" if decided.get("code") else stage_words(stage)
        if stage in STAGE_NAMES:
            number, count = STAGE_NAMES.index(stage) + 1, len(STAGE_NAMES)
            words = tr("{words}, step {number} of {count}", words=words, number=number, count=count)
        found.append((tr("Decided at"), words))
    if checked is not None:
        kinds = ", ".join(map(str, checked.get("kinds") or ()))
        said = tr("granted") if checked.get("allowed") else tr("not granted")
        found.append((tr("Capabilities"), f"{kinds}: {said}"))
    if answered is not None:
        found.append((tr("Approval"), _answer_words(answered)))
    elif decided.get("grant"):
        found.append((tr("Approval"), tr("stood already ({grant})", grant=decided["grant"])))
    elif asked is not None:
        said = tr("asked, and nobody answered") if call.ended else tr("asked, no answer yet")
        found.append((tr("Approval"), said))
    if call.ended and call.ended != RowKind.TOOL_DENIED:
        found.append((tr("Result"), _result_words(call, ended)))
    if call.is_call and not call.ended:
        still = tr("none yet: it still runs, or its program has ended")
        if asked is not None and answered is None:
            still = tr("none yet: it still waits, or its program has ended")
        found.append((tr("Result"), still))
    if call.client:
        found.append((tr("Client"), call.client))
    if folder := worked_in(told.get(RowKind.TOOL_INVOKED, {})):
        found.append((tr("Works in"), folder))
    if call.session:
        found.append((tr("Session"), call.session))
    return found


def answer_words(call: LoggedCall) -> str:
    """The one who let a call through that asked; empty where nobody did, or something else than the answer decided."""
    if not call.answer or call.verdict != "allow":
        return ""
    return _answer_words(_object(call.answer))


def fate_words(call: LoggedCall) -> str:
    """Words for who said what to a call that asked, and how it ended."""
    said = _answer_words(_object(call.answer)) if call.answer else call.reason.replace("`", "")
    outcome = tr(ENDS[call.ended]) if call.ended in ENDS else tr("under way")
    return tr("{said}; the call: {outcome}.", said=f"{said[:1].upper()}{said[1:]}", outcome=outcome)


def _answer_words(said: Mapping[str, Any]) -> str:
    who, seconds = said.get("who") or tr("somebody"), said.get("seconds")
    if said.get("approved") is not True:
        return tr("refused by {who}", who=who)
    if isinstance(seconds, int | float):
        words = tr("allowed for {time} by {who}", time=duration_words(seconds), who=who)
    elif said.get("remember") == "scope":
        words = tr("allowed in its session by {who}", who=who)
    else:
        words = tr("allowed once by {who}", who=who)
    return ", ".join((words, tr("consent group {group}", group=said["scope"]))) if said.get("scope") else words


def _result_words(call: LoggedCall, ended: Mapping[str, Any]) -> str:
    words = [tr(ENDS.get(call.ended, call.ended))]
    if ended.get("code"):
        words.append(str(ended["code"]))
    if call.elapsed_ms is not None:
        words.append(tr("in {time}", time=f"{call.elapsed_ms:,.1f} ms"))
    if isinstance(ended.get("bytes"), int):
        words.append(counted(ended["bytes"], "byte", "bytes"))
    return ", ".join(words)


def _body(row: AuditRow) -> dict[str, Any]:
    return _object(row.body)


def _object(text: str) -> dict[str, Any]:
    try:
        found = cast("object", json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


# today


@frozen
class RuleToday:
    """The place today of the rule that decided: its address and line, None where it is no longer there.

    ``is_same``: the policy is still the one that decided.
    """

    address: Address
    line: int | None
    is_same: bool


def rule_today(workspace: Workspace, detail: CallDetail) -> RuleToday | None:
    """The place where the rule stands; None for a call that no rule decided. Reads the text of the policy."""
    if detail.rule is None:
        return None
    address = _address_of(workspace.policy, detail.rule)
    is_same = workspace.gate.snapshot().policy_digest == detail.policy
    return RuleToday(address, line_of(workspace, address), is_same)


def _address_of(policy: Policy, rule_id: str) -> Address:
    """The address of a rule by its own id, else as its id says: ``agents.archivist.tool_rules[0]``."""
    for agent in policy.agents.values():
        for index, rule in enumerate(agent.tool_rules):
            if rule.rule_id == rule_id:
                return ("agents", agent.agent_id, "tool_rules", index)
    return tuple(int(part[1]) if part[1] else part[0] for part in _PART.finditer(rule_id))


@frozen
class Again:
    """A call decided again today. ``lacks``: what of its arguments the log does not have, so that it may differ."""

    decision: Decision
    lacks: str

    def words(self, then: str) -> str:
        """Words for what it was and what it would be."""
        now = str(self.decision.verdict)
        words = {"allow": tr("allowed"), "ask": tr("asked first"), "deny": tr("denied")}
        is_same, is_allowed = now == then, self.decision.verdict is Verdict.ALLOW
        if is_allowed:
            text = tr("Then {was}. Today it would be {will}")
            text = tr("Then {was}. Today it would still be {will}") if is_same else text
        else:
            text = tr("Then {was}. Today it would be {will} at {stage}: {reason}")
            text = tr("Then {was}. Today it would still be {will} at {stage}: {reason}") if is_same else text
        was = words.get(then, then or tr("not decided"))
        said = text.format(
            was=was, will=words[now], stage=stage_words(self.decision.stage), reason=self.decision.reason
        )
        lacks = tr("{lacks}: with these it may differ", lacks=self.lacks)
        return f"{said} ({lacks})" if self.lacks else said


def decide_today(workspace: Workspace, detail: CallDetail) -> Again:
    """Decide a call with the arguments and for the agents that the log keeps, by the policy of today, without any
    effect. Reads the disk. Raises WorkspaceError.
    """
    return Again(decide_again(workspace, detail.call, detail.sent), detail.lacks)


# mending


@frozen
class Mending:
    """An edit that a call suggests: what it does in words, and how it is made of the policy as it is."""

    words: str
    make: Callable[[Policy, Sequence[ToolFacts]], Edit]


def mendings_of(workspace: Workspace, detail: CallDetail) -> tuple[Mending, ...]:
    """The rules that can be made of a call, of each kind the strictest first; only those that the policy would take.

    Tries each of them: not for the GUI thread.
    """
    call, policy = detail.call, workspace.policy
    facts = next((one for one in workspace.catalog if one.name == call.tool), None)
    if call.agent not in policy.agents or facts is None:
        return ()
    operation = call.operation or _operation(facts, detail)
    found = [*_levels(policy, detail), *_boxes(call, facts, operation), *_limits(call, facts, operation, detail)]
    return tuple(one for one in found if _changes(workspace, one))


def _changes(workspace: Workspace, mending: Mending) -> bool:
    try:
        edit = mending.make(workspace.policy, workspace.catalog)
        if not edit.is_empty:
            workspace.check(edit)
    except (EditRefused, PolicyInvalid):
        return False
    return not edit.is_empty


def _operation(facts: ToolFacts, detail: CallDetail) -> str:
    """The operation that the arguments name, where the call was denied before it was known."""
    named = {value for value in (detail.arguments or {}).values() if isinstance(value, str)}
    fits = [name for name in facts.operation_names if name in named]
    return fits[0] if len(fits) == 1 else ""


def _boxes(call: LoggedCall, facts: ToolFacts, operation: str) -> list[Mending]:
    if facts.has_operations and not operation:
        return []
    table = {facts.name: (operation,)}
    what = f"`{facts.name}.{operation}`" if operation else f"`{facts.name}`"
    wishes = (
        (Verdict.DENY, tr("Turn off {what} for `{agent}`")),
        (Verdict.ASK, tr("Let `{agent}` use {what} after asking")),
        (Verdict.ALLOW, tr("Let `{agent}` use {what} without asking")),
    )

    def maker(verdict: Verdict) -> Callable[[Policy, Sequence[ToolFacts]], Edit]:
        return lambda policy, tools: rights.set_many(policy, tools, call.agent, table, verdict)

    return [Mending(words.format(what=what, agent=call.agent), maker(verdict)) for verdict, words in wishes]


def _limits(call: LoggedCall, facts: ToolFacts, operation: str, detail: CallDetail) -> list[Mending]:
    operations = frozenset({operation}) if operation else None
    what = f"`{facts.name}.{operation}`" if operation else f"`{facts.name}`"

    def maker(field: str, value: JsonValue) -> Callable[[Policy, Sequence[ToolFacts]], Edit]:
        schema: JsonValue = {"enum": [value]}
        return lambda policy, tools: ruleedit.set_constraint(
            policy, tools, call.agent, facts.name, field, schema, operations
        )

    text = tr("Let `{field}` of {what} be only `{value}` for `{agent}`")
    return [
        Mending(text.format(field=field, what=what, value=value, agent=call.agent), maker(field, value))
        for field, value in (detail.arguments or {}).items()
        if isinstance(value, str | int | float) and value != operation and len(str(value)) <= _LONGEST
        if not (detail.scrubbed and "[REDACTED]" in str(value))
    ]


def _levels(policy: Policy, detail: CallDetail) -> list[Mending]:
    """Another level for the path that was denied or asked about."""
    address = _address_of(policy, detail.rule) if detail.rule is not None else ()
    if address[:1] != ("sources",) or len(address) < 3 or detail.stage != "permission":
        return []
    source_id, path = str(address[1]), (detail.arguments or {}).get("path")
    source = policy.source(source_id)
    if source is None or not isinstance(path, str) or not path:
        return []
    # the rule that decides it today: what stands at the place that the log names may be another one by now
    decided = PermissionRules(source.permission_rules, source.default_permission).explain(path)
    if decided.outside:
        return []
    above, now = None if decided.index is None else source.permission_rules[decided.index], decided.permission

    def maker(level: Permission) -> Callable[[Policy, Sequence[ToolFacts]], Edit]:
        rule = PermissionRule(pattern_of(path.removeprefix("./")), level)
        return lambda now, _tools: rule_edit(now, source, rule, above)

    text = tr("Give `{path}` of `{source}` the level {level}, for every agent")
    levels = (Permission.READ_ONLY, Permission.APPEND, Permission.READ_WRITE)
    return [
        Mending(text.format(path=path, source=source_id, level=permission_words(level)), maker(level))
        for level in levels
        if level != now
    ]


def text_change(workspace: Workspace, edit: Edit) -> str:
    """The change that an edit would make in the policy file, as a unified diff, for the worker process."""
    after = workspace.text_under(apply(workspace.policy, edit))
    _, _, difference = diff_text("", workspace.text(), after).partition("\n@@")
    return f"@@{difference}"
