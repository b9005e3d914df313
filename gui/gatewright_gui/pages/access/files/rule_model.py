"""The ordered levels of one source as a table: the rules, and the default as its last row.

An edit goes to verbs that it is given. Over 450 lines, because what a
row shows, says and takes has to agree and is read together.
"""

from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, Protocol

from PySide6.QtCore import QModelIndex, QObject, Qt

from gatewright.workspace.api import Permission, PermissionRule, Shadow, Source, check_pattern, frozen
from gatewright_gui.pages.access.files.level import LEVELS
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import RIGHT, FlatModel, Index
from gatewright_gui.session.file_index import DEFAULT, PatternCount
from gatewright_gui.session.files import Hits
from gatewright_gui.session.verdict import permission_words

PATTERN, NUMBER, LEVEL, HITS, COMMENT = range(5)
"""The pattern comes first, since it stays when rows are put in; a view shows the number before it."""
SHOWN = Qt.ItemDataRole.UserRole + 1
"""RuleRow: all that is drawn of a row."""
_ANSWERED = frozenset(
    map(
        int,
        (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.ToolTipRole,
            Qt.ItemDataRole.AccessibleTextRole,
            Qt.ItemDataRole.EditRole,
            Qt.ItemDataRole.TextAlignmentRole,
            SHOWN,
        ),
    )
)
"""A view asks for a dozen roles of every cell that it paints: most end at one look into this."""
DEFAULT_TEXT = mark("all else (default)")
_DEAD_SAME = mark(
    "never used: whatever it matches is decided above it, with the same level, so that it can go, by rule {rules}"
)
_DEAD_OTHER = mark("never used: whatever it matches is decided above it, with another level, by rule {rules}")
_RULE = (
    Qt.ItemFlag.ItemIsEnabled
    | Qt.ItemFlag.ItemIsSelectable
    | Qt.ItemFlag.ItemNeverHasChildren
    | Qt.ItemFlag.ItemIsDragEnabled
)
_DEFAULT = _RULE & ~Qt.ItemFlag.ItemIsDragEnabled
_EDITED_RULE, _EDITED_DEFAULT = _RULE | Qt.ItemFlag.ItemIsEditable, _DEFAULT | Qt.ItemFlag.ItemIsEditable
_BROAD = frozenset({"*", "**", "/*", "/**", "**/*"})
"""Patterns of rules that stand in for the default."""


class Insertion(int):
    """A row before which a new rule is being written."""


@frozen
class RuleRow:
    """A row as it is drawn.

    `words`: of each column; `idle_words`: why it decides no file, empty where it decides some; `is_dead`: it can decide
    none, whatever files there will be; `is_deciding`: it decides the path that is looked at; `shadowed_by`: the row of
    the first rule that hides it.
    """

    words: tuple[str, ...]
    level: Permission
    idle_words: str
    is_dead: bool
    is_deciding: bool
    is_default: bool
    shadowed_by: int | None


class RuleVerbs(Protocol):
    """The verbs that the table asks for; each answers whether something changed."""

    def set_rule(self, rule: PermissionRule, after: PermissionRule) -> bool:
        """Put another rule in the place of one."""
        ...

    def set_level(self, rule: PermissionRule, level: Permission) -> bool:
        """Give a rule another level."""
        ...

    def set_default(self, level: Permission) -> bool:
        """Give paths that no rule matches another level."""
        ...


class PermissionRuleModel(FlatModel):
    """Rows keep their identity over an edit, so that selection and editors stay."""

    headers = (mark("Pattern"), "#", mark("Level"), mark("Files"), mark("What it means"))
    numeric = frozenset({NUMBER, HITS})

    def __init__(self, verbs: RuleVerbs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._verbs = verbs
        self._rules: tuple[PermissionRule, ...] = ()
        self._default = Permission.READ_ONLY
        self._is_open = False
        self._hits: Hits | None = None
        self._fresh = False
        self._is_counting = True
        self._deciding: int | None = None
        self._trial: tuple[int, PatternCount | None] | None = None
        self._shown: dict[int, RuleRow] = {}

    # what is shown

    def set_source(self, source: Source | None) -> None:
        """Show the rules of a source; None shows nothing."""
        self._shown.clear()
        if source is None or not self._is_open:
            self.beginResetModel()
            self._is_open, self._hits, self._deciding = source is not None, None, None
            self._rules = source.permission_rules if source else ()
            self._default = source.default_permission if source else Permission.READ_ONLY
            self.endResetModel()
            return
        self._take_rules(source.permission_rules)
        if source.default_permission != self._default:
            self._default = source.default_permission
        self._all_changed()

    def start_over(self, source: Source | None) -> None:
        """Show another source: nothing of the old one stays."""
        self._is_open = False
        self.set_source(source)

    def set_hits(self, hits: Hits | None) -> None:
        """Show counts; None: they are being made."""
        before = (self._is_counting, self._fresh, self._hits)
        self._is_counting = hits is None
        self._fresh = hits is not None and len(hits.rules) == len(self._rules)
        if hits is not None:
            self._hits = hits if self._fresh else None
        if before != (self._is_counting, self._fresh, self._hits):
            self._all_changed()

    def forget_hits(self) -> None:
        """There are no counts, and none are being made."""
        self._fresh, self._hits, self._is_counting = False, None, False
        self._all_changed()

    def set_trial(self, row: int | None, count: PatternCount | None = None) -> None:
        """While a pattern is typed: what it would decide in that row, None while it is counted. No row: it is over."""
        self._trial = None if row is None else (row, count)
        self._shown.clear()
        if self.rowCount():
            self.dataChanged.emit(self.index(0, HITS), self.index(self.rowCount() - 1, HITS))

    def set_deciding(self, row: int | None) -> None:
        """Mark the row that decides the path that is looked at."""
        if row != self._deciding:
            self._deciding = row
            self._all_changed()

    @property
    def default_row(self) -> int:
        """The row of the default."""
        return len(self._rules)

    @property
    def safe_row(self) -> int:
        """The row where a rule takes nothing from those above: below all of them, and above what matches every path."""
        broad = (at for at, rule in enumerate(self._rules) if rule.pattern in _BROAD)
        return next(broad, self.default_row)

    @property
    def dead_rows(self) -> tuple[int, ...]:
        """Rules that are known to decide no path, whatever files there will be."""
        return tuple(row for row in range(len(self._rules)) if self._shadow(row) is not None)

    @property
    def hits(self) -> Hits | None:
        """The counts, as long as they belong to the rules that are shown."""
        return self._hits if self._fresh else None

    def rule_at(self, row: int) -> PermissionRule | None:
        """The rule of a row; None for the default."""
        return self._rules[row] if 0 <= row < len(self._rules) else None

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """The rules in their order."""
        return self._rules

    def row_of(self, rule: PermissionRule) -> int:
        """The row of a rule, whatever became of it; -1 where it is gone."""
        return next((row for row, one in enumerate(self._rules) if one.identity == rule.identity), -1)

    @staticmethod
    def fault_of(pattern: str) -> str | None:
        """The fault of a pattern, or None."""
        return check_pattern(pattern.strip())

    # Qt

    def count(self) -> int:
        """The rules and the default."""
        return len(self._rules) + 1 if self._is_open else 0

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what delegates draw from."""
        if role not in _ANSWERED or not index.isValid() or index.row() >= self.rowCount():
            return None
        row, column = index.row(), index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(row, column)
            case Qt.ItemDataRole.EditRole:
                return str(self.level_at(row)) if column == LEVEL else self._raw(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return self._tooltip(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(row, column)
            case Qt.ItemDataRole.TextAlignmentRole if column in self.numeric:
                return int(RIGHT)
            case _ if role == SHOWN:
                return self.rule_row(row)
            case _:
                return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Ask a verb; what it refuses it says itself."""
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        rule = self.rule_at(index.row())
        if index.column() == LEVEL:
            level = Permission(value)
            return self._verbs.set_default(level) if rule is None else self._verbs.set_level(rule, level)
        if rule is None:
            return False
        text = str(value).strip()
        if index.column() == PATTERN:
            return text != rule.pattern and self._verbs.set_rule(rule, replace(rule, pattern=text))
        if index.column() == COMMENT:
            return text != (rule.comment or "") and self._verbs.set_rule(rule, replace(rule, comment=text or None))
        return False

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rules can be edited and dragged; of the default only the level can be edited."""
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        column = index.column()
        if index.row() < len(self._rules):
            return _EDITED_RULE if column in {LEVEL, PATTERN, COMMENT} else _RULE
        return _EDITED_DEFAULT if column == LEVEL else _DEFAULT

    # dragging

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802
        """Rules are moved."""
        return Qt.DropAction.MoveAction

    # inside

    def level_at(self, row: int) -> Permission:
        """The level of a row, the default's included."""
        rule = self.rule_at(row)
        return rule.permission if rule else self._default

    def rule_row(self, row: int) -> RuleRow:
        """All that is drawn of a row; kept until something changes."""
        if row not in self._shown:
            words = tuple(self._text(row, column) for column in range(len(self.headers)))
            shadow = self._shadow(row)
            self._shown[row] = RuleRow(
                words,
                self.level_at(row),
                self._idle_words(row),
                shadow is not None,
                row == self._deciding,
                row == len(self._rules),
                shadow.by[0] if shadow is not None and shadow.by else None,
            )
        return self._shown[row]

    def _text(self, row: int, column: int) -> str:
        if column == LEVEL:
            return permission_words(self.level_at(row))
        if column == NUMBER:
            return "" if row == len(self._rules) else str(row + 1)
        if column == COMMENT:
            return self._raw(row, column) or LEVELS[self.level_at(row)].meaning  # the level beside it says that anyway
        if column != HITS:
            return self._raw(row, column)
        trial, count = self._trial, self._count(row)
        if trial is not None and trial[1] is None and trial[0] == row and not isinstance(trial[0], Insertion):
            return "..."
        if count is None:
            return "..." if self._is_counting else "?"
        more = "+" if self._hits is not None and self._hits.truncated else ""
        return f"{count:,}{more}"

    def _raw(self, row: int, column: int) -> str:
        rule = self.rule_at(row)
        if column == PATTERN:
            return rule.pattern if rule else tr(DEFAULT_TEXT)
        return (rule.comment or "") if rule and column == COMMENT else ""

    def _count(self, row: int) -> int | None:
        if self._trial is not None and self._trial[1] is not None:
            at, found = self._trial[0], self._trial[1]
            number = row + 1 if isinstance(at, Insertion) and row >= at else row
            return found.counts.get(DEFAULT if row == len(self._rules) else number, 0)
        if self._hits is None or row > len(self._hits.rules):
            return None
        if len(self._hits.rules) != len(self._rules):
            return None
        return self._hits.default if row == len(self._rules) else self._hits.rules[row]

    def _shadow(self, row: int) -> Shadow | None:
        """Return what hides a rule; known as long as the patterns are those that were looked at."""
        hits = self.hits
        return hits.shadow_of(row) if hits is not None and row < len(self._rules) else None

    def _idle_words(self, row: int) -> str:
        shadow, hits = self._shadow(row), self.hits
        if shadow is not None:
            first, *rest = shadow.by
            told = tr("rule {number} decides", number=first + 1)
            return tr("{names} and {count:,} more", names=told, count=len(rest)) if rest else told
        is_counted = row < len(self._rules) and hits is not None and not hits.truncated
        return tr("no file yet") if is_counted and self._count(row) == 0 else ""

    def _idle_sentence(self, row: int) -> str:
        shadow = self._shadow(row)
        if shadow is None:
            return tr(
                "decides no file that is in the folder now: none matches it, or a rule above decides those that do;"
                " it holds for files to come"
            )
        above = [(at, self._rules[at]) for at in shadow.by if at < len(self._rules)]
        names = ", ".join(f"{at + 1} `{rule.pattern}`" for at, rule in above)
        own = self._rules[shadow.index].permission  # as shown now, which may be newer than the count
        is_harmless = all(rule.permission is own for _, rule in above)
        return tr(_DEAD_SAME if is_harmless else _DEAD_OTHER, rules=names)

    def _tooltip(self, row: int, column: int) -> str:
        if column == LEVEL:
            return LEVELS[self.level_at(row)].tip
        if column in {HITS, COMMENT} and self._idle_words(row):
            return "\n".join(part for part in (self._idle_sentence(row), self._raw(row, COMMENT)) if part)
        if column == HITS:
            return tr("files that this row decides")
        return self._text(row, column)

    def _spoken(self, row: int, column: int) -> str:
        told = [f"{tr(self.headers[column])} {self._text(row, column)}"]
        if column == HITS and self._idle_words(row):
            told.append(self._idle_words(row))
        if column == PATTERN and row == self._deciding:
            told.append(tr("decides the path that is looked at"))
        return ", ".join(told)

    def _all_changed(self) -> None:
        self._shown.clear()
        self.tell_changed()

    def _take_rules(self, new: tuple[PermissionRule, ...]) -> None:
        old = self._rules
        if new == old:
            self._rules = new  # read again, they say the same and are others
            return
        if [r.pattern for r in new] != [r.pattern for r in old]:
            self._fresh, self._hits, self._is_counting = False, None, True
        if len(new) == len(old):
            self._rearrange(old, new)
            return
        rules = list(old)
        differences = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        for tag, first, end, start, stop in reversed(differences):  # from below: the rows above keep their numbers
            if tag in {"delete", "replace"}:
                self.beginRemoveRows(QModelIndex(), first, end - 1)
                del rules[first:end]
                self._rules = tuple(rules)
                self.endRemoveRows()
            if tag in {"insert", "replace"}:
                self.beginInsertRows(QModelIndex(), first, first + stop - start - 1)
                rules[first:first] = new[start:stop]
                self._rules = tuple(rules)
                self.endInsertRows()
        self._rules = new

    def _rearrange(self, old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> None:
        """The same rules in another order take their rows along; one that was changed stays where it is."""
        if Counter(old) != Counter(new):
            self._rules = new
            return
        places: dict[PermissionRule, list[int]] = {}
        for row, rule in reversed([*enumerate(new)]):
            places.setdefault(rule, []).append(row)
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        self._rules = new
        row_of = [*(places[rule].pop() for rule in old), len(new)]  # the default stays the last
        after = [self.index(row_of[index.row()], index.column()) for index in before]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()
