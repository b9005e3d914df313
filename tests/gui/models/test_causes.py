from gatewright.base.errors import Place, Problem, Severity
from gatewright_gui.pages.policy_file.problems import MESSAGE, ProblemModel
from gatewright_gui.session.causes import causes_of

MANIFEST = Problem(
    Severity.ERROR, "bad-manifest", "the manifest `desk.json` of catalog `desk` is not JSON", Place("p.toml", 90, 1)
)
UNKNOWN = Problem(Severity.ERROR, "unknown-tool", "no tool is named `notes`", Place("p.toml", 3, 1))
ASIDE = Problem(Severity.WARNING, "tool-set-aside", "`notes` of catalog `desk` was set aside", Place("p.toml", 90, 1))
OTHER = Problem(Severity.WARNING, "tool-set-aside", "`shelf` of catalog `desk` was set aside", Place("p.toml", 90, 1))


def test_manifest_that_cannot_be_read_is_the_cause_of_unknown_names() -> None:
    assert causes_of([UNKNOWN, MANIFEST]) == {MANIFEST}


def test_tool_set_aside_is_a_cause_only_of_its_own_name() -> None:
    assert causes_of([UNKNOWN, ASIDE, OTHER]) == {ASIDE}


def test_nothing_is_a_cause_where_no_name_is_unknown() -> None:
    assert causes_of([MANIFEST, ASIDE]) == frozenset()


def test_errors_come_first_and_causes_before_other_warnings(qapp: object) -> None:
    model = ProblemModel()
    model.set_problems([UNKNOWN, OTHER, ASIDE])

    assert [model.index(row, MESSAGE).data() for row in range(3)] == [UNKNOWN.message, ASIDE.message, OTHER.message]
