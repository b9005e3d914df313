"""The table of ordered levels, by itself."""

from dataclasses import dataclass, field, replace

import pytest
from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.shadow import Shadow
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.access.files import rule_model
from gatewright_gui.pages.access.files.rule_model import PermissionRuleModel
from gatewright_gui.session.files import Hits

RULES = tuple(
    PermissionRule(pattern, level)
    for pattern, level in (
        ("secrets/**", Permission.NONE),
        ("drafts/**", Permission.READ_WRITE),
        ("*.log", Permission.APPEND),
    )
)
SOURCE = Source("notes", "workspace", Permission.READ_ONLY, RULES)


@dataclass
class Verbs:
    """Keeps what was asked for."""

    asked: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def set_rule(self, rule: PermissionRule, after: PermissionRule) -> bool:
        self.asked.append(("rule", RULES.index(rule), after.pattern, after.comment))
        return True

    def set_level(self, rule: PermissionRule, level: Permission) -> bool:
        self.asked.append(("level", RULES.index(rule), level))
        return True

    def set_default(self, level: Permission) -> bool:
        self.asked.append(("default", level))
        return True


@pytest.fixture
def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
def model(verbs: Verbs, qapp: object) -> PermissionRuleModel:
    made = PermissionRuleModel(verbs)
    made.tester = QAbstractItemModelTester(  # pyright: ignore[reportAttributeAccessIssue]
        made, QAbstractItemModelTester.FailureReportingMode.Fatal
    )
    made.start_over(SOURCE)
    return made


def text(model: PermissionRuleModel, row: int, column: int) -> str:
    return str(model.index(row, column).data())


def test_default_is_the_last_row_with_a_line_of_its_own(model: PermissionRuleModel) -> None:
    assert model.rowCount() == 4
    assert text(model, 3, rule_model.PATTERN) == "all else (default)"
    assert text(model, 3, rule_model.LEVEL) == "read only"
    assert text(model, 3, rule_model.NUMBER) == ""


def test_level_of_the_default_is_edited_by_its_own_verb(model: PermissionRuleModel, verbs: Verbs) -> None:
    assert model.setData(model.index(3, rule_model.LEVEL), "none")
    assert model.setData(model.index(1, rule_model.LEVEL), "admin")
    assert verbs.asked == [("default", Permission.NONE), ("level", 1, Permission.ADMIN)]


def test_pattern_and_comment_keep_the_rest_of_the_rule(model: PermissionRuleModel, verbs: Verbs) -> None:
    model.setData(model.index(1, rule_model.PATTERN), "drafts/*.md")
    model.setData(model.index(1, rule_model.COMMENT), "mine")
    assert verbs.asked == [("rule", 1, "drafts/*.md", None), ("rule", 1, "drafts/**", "mine")]
    assert not model.setData(model.index(1, rule_model.PATTERN), "drafts/**")


def test_move_keeps_the_identity_of_rows(model: PermissionRuleModel) -> None:
    watched = QPersistentModelIndex(model.index(0, rule_model.PATTERN))
    model.set_source(replace(SOURCE, permission_rules=(RULES[1], RULES[2], RULES[0])))
    assert watched.row() == 2
    model.set_source(replace(SOURCE, permission_rules=(RULES[0], RULES[1], RULES[2])))
    assert watched.row() == 0


def test_insert_and_remove_keep_the_other_rows(model: PermissionRuleModel) -> None:
    watched = QPersistentModelIndex(model.index(2, rule_model.PATTERN))
    added = PermissionRule("new/**", Permission.HUMAN)
    model.set_source(replace(SOURCE, permission_rules=(RULES[0], added, *RULES[1:])))
    assert (watched.row(), watched.data()) == (3, "*.log")
    model.set_source(SOURCE)
    assert watched.row() == 2


def test_rule_without_files_says_so_and_is_not_dead(model: PermissionRuleModel) -> None:
    assert text(model, 0, rule_model.HITS) == "..."
    model.set_hits(Hits((4, 0, 1234), 7, 1245))
    assert [text(model, row, rule_model.HITS) for row in range(4)] == ["4", "0", "1,234", "7"]
    assert model.dead_rows == ()
    cell = model.index(1, rule_model.COMMENT)
    assert cell.data(rule_model.SHOWN).idle_words == "no file yet"
    assert not cell.data(rule_model.SHOWN).is_dead
    assert "holds for files to come" in str(cell.data(Qt.ItemDataRole.ToolTipRole))


def test_truncated_counts_say_of_no_rule_that_it_has_no_file(model: PermissionRuleModel) -> None:
    model.set_hits(Hits((4, 0, 1), 7, 12, truncated=True))
    assert model.dead_rows == ()
    assert [model.index(row, 0).data(rule_model.SHOWN).idle_words for row in range(4)] == [""] * 4
    assert text(model, 0, rule_model.HITS) == "4+"


def test_counts_of_other_patterns_are_not_shown(model: PermissionRuleModel) -> None:
    model.set_hits(Hits((4, 0, 1), 7, 12))
    model.set_source(replace(SOURCE, permission_rules=(RULES[1], RULES[0], RULES[2])))
    assert text(model, 0, rule_model.HITS) == "..."
    model.set_hits(Hits((4, 0), 7, 11))
    assert model.hits is None


@pytest.mark.parametrize("pattern", ["!keep.md", "", "#note", "a/../b", "[x"])
def test_patterns_that_protect_nothing_have_a_fault(pattern: str) -> None:
    assert PermissionRuleModel.fault_of(pattern)


def test_usable_patterns_have_no_fault() -> None:
    assert PermissionRuleModel.fault_of("drafts/**/*.md") is None


def test_rule_that_can_never_decide_is_shadowed_whether_the_count_is_whole_or_not(model: PermissionRuleModel) -> None:
    model.set_hits(Hits((4, 0, 1), 7, 12, truncated=True, shadows=(Shadow(1, (0,), harmless=False),)))
    assert model.dead_rows == (1,)
    cell = model.index(1, rule_model.COMMENT)
    assert cell.data(rule_model.SHOWN).idle_words == "rule 1 decides"
    told = str(cell.data(Qt.ItemDataRole.ToolTipRole))
    assert "never used" in told
    assert "`secrets/**`" in told
    assert "with another level" in told
