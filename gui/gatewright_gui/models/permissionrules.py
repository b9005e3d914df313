"""The ordered levels of one source as a table: the rules, and the default as its last row.

It does not know the folder behind the source; an edit goes to verbs that it is given.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from PySide6.QtCore import QAbstractTableModel, QMimeData, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.glob import check_pattern
from gatewright.policy.permission import Permission
from gatewright.policy.shadow import Shadow
from gatewright_gui.models.level import LEVELS
from gatewright_gui.session.files import Hits

Index = QModelIndex | QPersistentModelIndex
PATTERN, NUMBER, LEVEL, HITS, COMMENT = range(5)
"""The pattern comes first, since it stays when rows are put in; a view shows the number before it."""
HEADERS = ("Pattern", "#", "Level", "Files", "Comment")
LEVEL_ROLE = Qt.ItemDataRole.UserRole + 1
"""Permission of a row."""
DECIDING = Qt.ItemDataRole.UserRole + 2
"""Whether the row decides the path that is looked at."""
DEAD = Qt.ItemDataRole.UserRole + 3
"""Whether the row is known to decide no file."""
DEAD_WORDS = Qt.ItemDataRole.UserRole + 4
"""Why a row decides no file, in two or three words; empty for a row that decides some."""
DEFAULT_TEXT = "no rule matched"
MIME = "application/x-gatewright-permission-rule"


class RuleVerbs(Protocol):
    """What the table asks for; each answers whether something changed."""

    def set_rule(self, index: int, rule: PermissionRule) -> bool:
        """Put another rule in the place of one."""
        ...

    def set_level(self, index: int, level: Permission) -> bool:
        """Give a rule another level."""
        ...

    def set_default(self, level: Permission) -> bool:
        """Give paths that no rule matches another level."""
        ...

    def move(self, index: int, to: int) -> bool:
        """Move a rule so that it stands at `to` afterwards."""
        ...


class PermissionRuleModel(QAbstractTableModel):
    """Rows keep their identity over an edit, so that selection and editors stay."""

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

    # what is shown

    def set_source(self, source: Source | None) -> None:
        """Show the rules of a source; None shows nothing."""
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
        self._is_counting = hits is None
        self._fresh = hits is not None and len(hits.rules) == len(self._rules)
        if hits is not None:
            self._hits = hits if self._fresh else None
        self._all_changed()

    def forget_hits(self) -> None:
        """There are no counts, and none are being made."""
        self._fresh, self._hits, self._is_counting = False, None, False
        self._all_changed()

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
    def dead_rows(self) -> tuple[int, ...]:
        """Rules that are known to decide no file."""
        return tuple(row for row in range(len(self._rules)) if self._is_dead(row))

    @property
    def hits(self) -> Hits | None:
        """The counts, as long as they belong to the rules that are shown."""
        return self._hits if self._fresh else None

    def rule_at(self, row: int) -> PermissionRule | None:
        """The rule of a row; None for the default."""
        return self._rules[row] if 0 <= row < len(self._rules) else None

    @staticmethod
    def fault_of(pattern: str) -> str | None:
        """What is wrong with a pattern, or None."""
        return check_pattern(pattern.strip())

    # Qt

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The rules and the default."""
        return 0 if parent.isValid() or not self._is_open else len(self._rules) + 1

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Pattern, number, level, files, comment."""
        return 0 if parent.isValid() else len(HEADERS)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return HEADERS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole and section in {NUMBER, HITS}:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what delegates draw from."""
        if not index.isValid() or index.row() >= self.rowCount():
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
            case Qt.ItemDataRole.TextAlignmentRole if column in {NUMBER, HITS}:
                return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            case _ if role == LEVEL_ROLE:
                return self.level_at(row)
            case _ if role == DECIDING:
                return row == self._deciding
            case _ if role == DEAD:
                return self._is_dead(row)
            case _ if role == DEAD_WORDS:
                return self._dead_words(row)
            case _:
                return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Ask a verb; what it refuses it says itself."""
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        row, rule = index.row(), self.rule_at(index.row())
        if index.column() == LEVEL:
            level = Permission(value)
            return self._verbs.set_default(level) if rule is None else self._verbs.set_level(row, level)
        if rule is None:
            return False
        text = str(value).strip()
        if index.column() == PATTERN:
            return text != rule.pattern and self._verbs.set_rule(row, replace(rule, pattern=text))
        if index.column() == COMMENT:
            return text != (rule.comment or "") and self._verbs.set_rule(row, replace(rule, comment=text or None))
        return False

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rules can be edited and dragged; of the default only the level can be edited."""
        flags = super().flags(index)
        if not index.isValid():
            return flags | Qt.ItemFlag.ItemIsDropEnabled
        is_rule = index.row() < len(self._rules)
        if is_rule:
            flags |= Qt.ItemFlag.ItemIsDragEnabled
        if index.column() == LEVEL or (is_rule and index.column() in {PATTERN, COMMENT}):
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags | Qt.ItemFlag.ItemNeverHasChildren

    # dragging

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802
        """Rules are moved."""
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:  # noqa: N802
        """Only our own rows."""
        return [MIME]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:  # noqa: N802
        """The row that is dragged."""
        data = QMimeData()
        data.setData(MIME, str(indexes[0].row() if indexes else -1).encode())
        return data

    def dropMimeData(  # noqa: N802
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        """Move the dragged rule by the verb. Always False, so that the view removes nothing."""
        del column
        if action != Qt.DropAction.MoveAction or not data.hasFormat(MIME):
            return False
        text = bytes(data.data(MIME).data()).decode("ascii", "replace")
        source = int(text) if text.isdecimal() else -1
        target = parent.row() if parent.isValid() else row
        target = len(self._rules) if target < 0 else min(target, len(self._rules))
        if self.rule_at(source) is not None:
            to = target - 1 if target > source else target
            if to != source:
                self._verbs.move(source, to)
        return False

    # inside

    def level_at(self, row: int) -> Permission:
        """The level of a row, the default's included."""
        rule = self.rule_at(row)
        return rule.permission if rule else self._default

    def _text(self, row: int, column: int) -> str:
        if column == HITS:
            return self._hit_text(row)
        if column == LEVEL:
            return str(self.level_at(row))
        if column == NUMBER:
            return "" if row == len(self._rules) else str(row + 1)
        return self._raw(row, column)

    def _raw(self, row: int, column: int) -> str:
        rule = self.rule_at(row)
        if column == PATTERN:
            return rule.pattern if rule else DEFAULT_TEXT
        return (rule.comment or "") if rule and column == COMMENT else ""

    def _hit_text(self, row: int) -> str:
        count = self._count(row)
        if count is None:
            return "..." if self._is_counting else "?"
        more = "+" if self._hits is not None and self._hits.truncated else ""
        return f"{count:,}{more}"

    def _count(self, row: int) -> int | None:
        if self._hits is None or row > len(self._hits.rules):
            return None
        if len(self._hits.rules) != len(self._rules):
            return None
        return self._hits.default if row == len(self._rules) else self._hits.rules[row]

    def _shadow(self, row: int) -> Shadow | None:
        """What hides a rule; known as long as the patterns are those that were looked at."""
        return self._hits.shadow_of(row) if self._fresh and self._hits is not None else None

    def _is_dead(self, row: int) -> bool:
        if row >= len(self._rules):
            return False
        known = self._fresh and self._hits is not None and not self._hits.truncated
        return self._shadow(row) is not None or (known and self._count(row) == 0)

    def _dead_words(self, row: int) -> str:
        if not self._is_dead(row):
            return ""
        shadow = self._shadow(row)
        if shadow is None:
            return "no files"
        first, *rest = shadow.by
        return f"shadowed by rule {first + 1}" + (f" and {len(rest)} more" if rest else "")

    def _dead_sentence(self, row: int) -> str:
        shadow = self._shadow(row)
        if shadow is None:
            return "decides no file now: nothing in the folder matches it that is not decided by a rule above it"
        names = ", ".join(f"{at + 1} `{self._rules[at].pattern}`" for at in shadow.by if at < len(self._rules))
        level = "with the same level, so that it can go" if self._is_harmless(shadow) else "with another level"
        return f"can never decide: whatever it matches is decided above it, {level}, by rule {names}"

    def _is_harmless(self, shadow: Shadow) -> bool:
        """By the levels as they are shown: those may be newer than the count."""
        own = self._rules[shadow.index].permission
        return all(self._rules[at].permission is own for at in shadow.by if at < len(self._rules))

    def _tooltip(self, row: int, column: int) -> str:
        if column == LEVEL:
            level = self.level_at(row)
            return f"{level}: {LEVELS[level].explanation}"
        if column in {HITS, COMMENT} and self._is_dead(row):
            return "\n".join(part for part in (self._dead_sentence(row), self._raw(row, COMMENT)) if part)
        if column == HITS:
            return "files that this row decides"
        return self._text(row, column)

    def _spoken(self, row: int, column: int) -> str:
        dead = f", {self._dead_words(row)}" if column == HITS and self._is_dead(row) else ""
        deciding = ", decides the path that is looked at" if column == PATTERN and row == self._deciding else ""
        return f"{HEADERS[column]} {self._text(row, column)}{dead}{deciding}"

    def _all_changed(self) -> None:
        if self.rowCount():
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(HEADERS) - 1))

    def _take_rules(self, new: tuple[PermissionRule, ...]) -> None:
        old = self._rules
        if new == old:
            return
        if [r.pattern for r in new] != [r.pattern for r in old]:
            self._fresh, self._hits, self._is_counting = False, None, True
        move = _single_move(old, new)
        if move is not None:
            source, to = move
            self.beginMoveRows(QModelIndex(), source, source, QModelIndex(), to + 1 if to > source else to)
            self._rules = new
            self.endMoveRows()
        elif len(new) > len(old):
            self._insert(old, new)
        elif len(new) < len(old):
            self._remove(old, new)
        else:
            self._rules = new

    def _insert(self, old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> None:
        first = _common_head(old, new)
        self.beginInsertRows(QModelIndex(), first, first + len(new) - len(old) - 1)
        self._rules = new
        self.endInsertRows()

    def _remove(self, old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> None:
        first = _common_head(old, new)
        self.beginRemoveRows(QModelIndex(), first, first + len(old) - len(new) - 1)
        self._rules = new
        self.endRemoveRows()


def _common_head(old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> int:
    limit = min(len(old), len(new))
    return next((at for at in range(limit) if old[at] != new[at]), limit)


def _single_move(old: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...]) -> tuple[int, int] | None:
    """`(from, to)` when one row moved and nothing else changed."""
    if len(old) != len(new):
        return None
    differ = [at for at in range(len(old)) if old[at] != new[at]]
    if len(differ) < 2:
        return None
    first, last = differ[0], differ[-1]
    if old[first] == new[last] and old[first + 1 : last + 1] == new[first:last]:
        return first, last
    if old[last] == new[first] and old[first:last] == new[first + 1 : last + 1]:
        return last, first
    return None
