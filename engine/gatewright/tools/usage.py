"""What the model is told about using its tools: one bullet per tool under ``## Tool Usage Rules``.

It does not decide what is shown: conditions and groups that name anything hidden are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from gatewright.base.durationwords import duration_words
from gatewright.policy import rule as kinds
from gatewright.policy.rule import ANY_TOOL, OPERATION_CONDITION, ToolRule
from gatewright.policy.toolname import split_name

HEADING = "## Tool Usage Rules"
Shown = Mapping[str, frozenset[str]]
"""What the model sees: operations by tool name; ``{""}`` for a tool without operations."""

_NAMING = (
    kinds.RequiresPrecedingTools,
    kinds.RequiresFollowingTools,
    kinds.RequiredBeforeExitIf,
    kinds.ExclusiveGroups,
)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One shown tool: its usage rule (see ``Tool.usage_rule_for``) and the rules on it, in the order to be told.

    ``source_rules``: source id and rule, for calls that go to files of that source.
    """

    name: str
    shown: frozenset[str]
    usage_rule: str | None = None
    rules: tuple[ToolRule, ...] = ()
    source_rules: tuple[tuple[str, ToolRule], ...] = ()


@dataclass(frozen=True, slots=True)
class _Bullet:
    """What is told of a tool; ``is_alone``: whichever other tools are shown."""

    row: UsageRow
    text: str | None
    is_alone: bool


class UsageSection:
    """The section for some shown tools. ``before``: an earlier one, from which the bullets that stay are taken."""

    def __init__(self, rows: Iterable[UsageRow], before: UsageSection | None = None) -> None:
        shown_rows = sorted((row for row in rows if row.shown), key=lambda row: row.name)
        shown = {row.name: row.shown for row in shown_rows}
        old = before._bullets if before is not None else {}
        is_same = before is not None and before._shown == shown
        self._shown = shown
        self._bullets: dict[str, _Bullet] = {}
        for row in shown_rows:
            held = old.get(row.name)
            if held is None or not (is_same or held.is_alone) or (held.row is not row and held.row != row):
                held = _Bullet(row, _bullet(row, shown), _names_no_other(row))
            self._bullets[row.name] = held

    @cached_property
    def text(self) -> str:
        """The section, its tools in alphabetical order; empty when there is nothing to say."""
        bullets = [bullet.text for bullet in self._bullets.values() if bullet.text]
        return "\n".join([HEADING, "", *bullets]) + "\n" if bullets else ""


def usage_rules(rows: Iterable[UsageRow]) -> str:
    """The section for the shown tools, alphabetically; empty when there is nothing to say."""
    return UsageSection(rows).text


def _names_no_other(row: UsageRow) -> bool:
    """Whether what is told of the tool hangs on no other tool's being shown."""
    return not any(
        isinstance(rule.rule_type, _NAMING) for rule in (*row.rules, *(rule for _, rule in row.source_rules))
    )


def _bullet(row: UsageRow, shown: Shown) -> str | None:
    rules = _without_overruled(row.rules)
    sentences = [rule_sentence(rule, shown, tool_name=row.name) for rule in rules]
    sentences += [_at_source(source_id, rule, shown, row.name) for source_id, rule in row.source_rules]
    told = dict.fromkeys(text for text in (row.usage_rule, *sentences) if text)
    return f"- `{row.name}`: {' '.join(' '.join(told).split())}" if told else None


def _at_source(source_id: str, rule: ToolRule, shown: Shown, name: str) -> str | None:
    sentence = rule_sentence(rule, shown, tool_name=name)
    return f"For files of source `{source_id}`: {_lowered(sentence)}" if sentence else None


def _without_overruled(rules: Iterable[ToolRule]) -> list[ToolRule]:
    """``rules`` without ContinueLoop where ExitLoop holds for every call: the end wins."""
    rows = list(rules)
    ends = any(isinstance(rule.rule_type, kinds.ExitLoop) and not rule.conditions for rule in rows)
    return [rule for rule in rows if not (ends and isinstance(rule.rule_type, kinds.ContinueLoop))]


def rule_sentence(rule: ToolRule, shown: Shown, *, tool_name: str | None = None) -> str | None:
    """What ``rule`` means for calls of ``tool_name`` (the rule's own tool when None); None: nothing to tell.

    A rule that names the operations it is for begins with those of them that are shown. Groups are told to each of
    their tools, whichever the rule stands on.
    """
    subject = split_name(rule.tool_name)[0]
    name = tool_name or subject
    operations = shown.get(name, frozenset())
    limited = rule.operations if subject in (name, ANY_TOOL) else None
    visible = sorted((limited or frozenset()) & operations)
    if limited and not visible:
        return None
    sentence = _sentence(rule, name, operations, shown)
    if sentence is None or not limited:
        return sentence
    return f"For {_listed(visible, 'and')}: {_lowered(sentence)}"


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _sentence(rule: ToolRule, name: str, operations: frozenset[str], shown: Shown) -> str | None:
    kind = rule.rule_type
    match kind:
        case kinds.AllowedOperations():
            named = sorted(kind.operations & operations)
            return f"Operations open to you: {_listed(named, 'and')}." if named else None
        case kinds.ContinueLoop():
            return "After a successful call you keep the turn."
        case kinds.ExitLoop():
            return "A successful call ends your turn."
        case kinds.StartConstraint():
            return "It has to succeed before any other tool is called."
        case kinds.RequiresPrecedingTools() | kinds.RequiresFollowingTools() | kinds.RequiredBeforeExitIf():
            return _conditional(kind, _visible(rule.conditions, shown))
        case kinds.ExclusiveGroups():
            return _exclusive(kind, name, shown)
        case kinds.RequiredBeforeExit():
            return "It has to succeed before you finish."
        case kinds.MaxCalls() | kinds.Cooldown() | kinds.RateLimit() | kinds.Periodic():
            return _limit(kind)
        case kinds.RequiresConsent():
            return f"A person has to agree first{f' (scope `{kind.scope}`)' if kind.scope else ''}."
        case kinds.ArgumentConstraints():
            return _constraint(kind)
        case kinds.Needed():
            return None
        case _:
            assert_never(kind)


def _constraint(kind: kinds.ArgumentConstraints) -> str:
    if not kind.fields:
        return "Some optional arguments have to be given; a refusal says which."
    return "Some argument values are limited; a refusal says which."


def _conditional(
    kind: kinds.RequiresPrecedingTools | kinds.RequiresFollowingTools | kinds.RequiredBeforeExitIf, named: list[str]
) -> str | None:
    if not named:
        return None
    match kind:
        case kinds.RequiresPrecedingTools():
            return f"It can be called once {_listed(named, 'and')} succeeded in this session."
        case kinds.RequiresFollowingTools():
            return f"It cannot be called any more once {_listed(named, 'or')} succeeded."
        case kinds.RequiredBeforeExitIf():
            return f"Once {_listed(named, 'and')} succeeded, it has to succeed too before you finish."
        case _:
            assert_never(kind)


def _limit(kind: kinds.MaxCalls | kinds.Cooldown | kinds.RateLimit | kinds.Periodic) -> str:
    match kind:
        case kinds.MaxCalls():
            return f"At most {_calls(kind.calls)} per session."
        case kinds.Cooldown():
            return f"Calls have to start at least {duration_words(kind.seconds)} apart."
        case kinds.RateLimit():
            return f"At most {_calls(kind.calls)} per {duration_words(kind.per_s)}."
        case kinds.Periodic():
            return f"It is due every {duration_words(kind.seconds)}."
        case _:
            assert_never(kind)


def _exclusive(kind: kinds.ExclusiveGroups, name: str, shown: Shown) -> str | None:
    """The groups that hold this tool, as far as they are shown."""
    written = (group for group in kind.groups if any(one.startswith(name) for one in group))
    groups = [_visible(group, shown) for group in written]
    own = [group for group in groups if any(_owner(one, shown) == name for one in group) and len(group) > 1]
    told = [f"Only one of {_listed(group, 'and')} can be used in a session." for group in own]
    return " ".join(told) or None


def _visible(names: Iterable[str], shown: Shown) -> list[str]:
    """``names`` (``tool`` or ``tool.operation``, majors left out) as far as the model sees them, each once."""
    bare = [split_name(name)[0] for name in names if not name.startswith(OPERATION_CONDITION)]
    return list(dict.fromkeys(name for name in bare if _is_visible(name, shown)))


def _is_visible(name: str, shown: Shown) -> bool:
    owner = _owner(name, shown)
    return owner == name or (owner is not None and name[len(owner) + 1 :] in shown[owner])


def _owner(name: str, shown: Shown) -> str | None:
    """The shown tool that ``tool`` or ``tool.operation`` is about; the longest name wins."""
    if name in shown:
        return name
    return max((tool for tool in shown if name.startswith(f"{tool}.")), key=len, default=None)


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _listed(names: Sequence[str], word: str) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"
