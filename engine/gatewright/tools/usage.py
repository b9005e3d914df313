"""The model's instructions for its tools: one bullet per tool under ``## Tool Usage Rules``.

The caller decides what is shown: the section leaves out conditions and groups that name anything hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatewright.base.frozen import frozen
from gatewright.base.late import once
from gatewright.base.printable import printable
from gatewright.policy import rule as kinds
from gatewright.policy.kinds.access import join_names
from gatewright.policy.rule import ANY_TOOL, OPERATION_CONDITION, ToolRule
from gatewright.policy.verdict import split_name

HEADING = "## Tool Usage Rules"
MAX_SAID = 4_096
"""The most characters of one server's instructions that the model reads."""
Shown = Mapping[str, frozenset[str]]
"""The operations that the model sees, by tool name; ``{""}`` for a tool without operations."""


@frozen
class UsageRow:
    """One shown tool: its usage rule (see ``Tool.usage_rule_for``) and the rules on it, in the order of the text.

    ``source_rules``: source id and rule, for calls on files of that source.
    """

    name: str
    shown: frozenset[str]
    usage_rule: str | None = None
    rules: tuple[ToolRule, ...] = ()
    source_rules: tuple[tuple[str, ToolRule], ...] = ()


@frozen
class _Bullet:
    """The text about a tool; ``is_alone``: it holds whichever other tools are shown."""

    row: UsageRow
    text: str | None
    is_alone: bool


class UsageSection:
    """The section for some shown tools. ``before``: an earlier one, whose unchanged bullets serve again."""

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
                held = _bullet(row, shown)
            self._bullets[row.name] = held

    @once
    def text(self) -> str:
        """The section, its tools in alphabetical order; empty without any text."""
        bullets = [bullet.text for bullet in self._bullets.values() if bullet.text]
        return "\n".join([HEADING, "", *bullets]) + "\n" if bullets else ""


def usage_rules(rows: Iterable[UsageRow]) -> str:
    """Return the section for the shown tools, alphabetically; empty without any text."""
    return UsageSection(rows).text


def server_section(catalog_id: str, instructions: str) -> str:
    """Quote a server's words about its tools, so that they do not look like ours; empty without any."""
    text = printable(instructions, keep="\n\t").strip()
    if len(text) > MAX_SAID:
        text = f"{text[:MAX_SAID].rstrip()} [...]"
    lines = [f"> {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f"## Instructions of the server `{catalog_id}`", "", *lines]) + "\n" if lines else ""


def _bullet(row: UsageRow, shown: Shown) -> _Bullet:
    told = {row.usage_rule: None} if row.usage_rule else {}
    ends = any(isinstance(rule.rule_type, kinds.ExitLoop) and not rule.conditions for rule in row.rules)
    for source_id, rule in (*(("", rule) for rule in row.rules), *row.source_rules):
        if ends and not source_id and isinstance(rule.rule_type, kinds.ContinueLoop):
            continue  # every call is the last one
        sentence = rule_sentence(rule, shown, tool_name=row.name)
        if sentence is not None:
            told[f"For files of source `{source_id}`: {_lower_first(sentence)}" if source_id else sentence] = None
    text = f"- `{row.name}`: {' '.join(' '.join(told).split())}" if told else None
    rules = [rule.rule_type for rule in (*row.rules, *(rule for _, rule in row.source_rules))]
    return _Bullet(row, text, not any(kind.names_tools or isinstance(kind, kinds.ExclusiveGroups) for kind in rules))


def rule_sentence(rule: ToolRule, shown: Shown, *, tool_name: str | None = None) -> str | None:
    """Describe ``rule`` for calls of ``tool_name`` (the rule's own tool when None); None: no text.

    A rule for named operations begins with the shown ones. Each tool of a group gets the group's rule, whichever tool
    the rule stands on.
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
    return f"For {join_names(visible, 'and')}: {_lower_first(sentence)}"


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _sentence(rule: ToolRule, name: str, operations: frozenset[str], shown: Shown) -> str | None:
    kind = rule.rule_type
    if isinstance(kind, kinds.AllowedOperations):
        return kind.usage_words(sorted(kind.operations & operations))
    if isinstance(kind, kinds.ExclusiveGroups):
        groups = (_visible(group, shown) for group in kind.groups if any(one.startswith(name) for one in group))
        own = (group for group in groups if any(_owner(one, shown) == name for one in group))
        return " ".join(filter(None, map(kind.usage_words, own))) or None
    return kind.usage_words(_visible(rule.conditions, shown))


def _visible(names: Iterable[str], shown: Shown) -> list[str]:
    """Return the ``names`` (``tool`` or ``tool.operation``, without majors) that the model sees, each once."""
    found: dict[str, None] = {}
    for name in (split_name(written)[0] for written in names if not written.startswith(OPERATION_CONDITION)):
        owner = _owner(name, shown)
        if owner == name or (owner is not None and name[len(owner) + 1 :] in shown[owner]):
            found[name] = None
    return list(found)


def _owner(name: str, shown: Shown) -> str | None:
    """Return the shown tool that ``tool`` or ``tool.operation`` belongs to; the longest name wins."""
    if name in shown:
        return name
    return max((tool for tool in shown if name.startswith(f"{tool}.")), key=len, default=None)
