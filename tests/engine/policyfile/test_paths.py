"""``[tools.NAME] paths``: which arguments of a tool are paths, read, held to its schema, changed by the least."""

from dataclasses import replace

import pytest

from gatewright.builtins.root_file import FileReadTool
from gatewright.policy.verdict import PathUse
from gatewright.policyfile import patch_text
from gatewright.tools import ToolDefinition
from gatewright.tools.defined import DefinedTool
from tests.engine.policyfile.catalog import known_with, load

TEXT = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "where": TEXT,
        "target": TEXT,
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": {"file": TEXT, "line": {"type": "integer"}}},
        },
    },
}
TOOL = DefinedTool(ToolDefinition("mend", "Mends", SCHEMA), origin="team")
HEAD = "gatewright = 1\n"
WRITTEN = """gatewright = 1

[tools.mend]
timeout = 5
paths = { where = "read", "edits[].file" = "write" }  # by hand
"""


KNOWN = known_with(TOOL)


def test_the_arguments_and_what_is_done_there_are_read() -> None:
    loaded = load(WRITTEN, known=KNOWN)
    assert not loaded.problems
    assert loaded.policy is not None
    assert loaded.policy.tools["mend"].paths == {"where": PathUse.READ, "edits[].file": PathUse.WRITE}


@pytest.mark.parametrize(
    ("paths", "code", "line", "column", "near"),
    [
        ('{ wher = "read" }', "unknown-argument", 3, 11, "where"),
        ('{ "edits[].fil" = "read" }', "unknown-argument", 3, 11, "edits[].file"),
        ('{ "edits[].line" = "read" }', "unknown-argument", 3, 11, None),
        ('{ where = "raed" }', "unknown-variant", 3, 19, "read"),
        ("{ where = 1 }", "wrong-type", 3, 19, None),
        ('"where"', "wrong-type", 3, 9, None),
    ],
)
def test_what_the_tool_has_no_text_at_is_an_error_with_its_place(
    paths: str, code: str, line: int, column: int, near: str | None
) -> None:
    (problem,) = load(f"{HEAD}[tools.mend]\npaths = {paths}\n", known=KNOWN).problems
    assert problem.place is not None
    assert (problem.code, problem.place.line, problem.place.column, problem.near_miss) == (code, line, column, near)


def test_an_argument_that_its_author_marked_is_not_declared_again() -> None:
    loaded = load(HEAD + '[tools.file_read]\npaths = { path = "none" }\n', known=known_with(FileReadTool(), TOOL))
    assert [problem.code for problem in loaded.problems] == ["unknown-argument"]


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (
            {"where": PathUse.WRITE, "edits[].file": PathUse.WRITE},
            'paths = { where = "write", "edits[].file" = "write" }  # by hand',
        ),
        ({"where": PathUse.READ}, 'paths = { where = "read" }  # by hand'),
        (
            {"where": PathUse.READ, "edits[].file": PathUse.WRITE, "target": PathUse.NONE},
            'paths = { where = "read", "edits[].file" = "write", target = "none" }  # by hand',
        ),
    ],
)
def test_a_change_touches_its_own_line_alone(after: dict[str, PathUse], line: str) -> None:
    policy = load(WRITTEN, known=KNOWN).policy
    assert policy is not None
    changed = replace(policy, tools={"mend": replace(policy.tools["mend"], paths=after)})
    text = patch_text(WRITTEN, policy, changed)
    assert text.splitlines() == [*WRITTEN.splitlines()[:-1], line]


def test_without_any_the_key_goes() -> None:
    policy = load(WRITTEN, known=KNOWN).policy
    assert policy is not None
    changed = replace(policy, tools={"mend": replace(policy.tools["mend"], paths={})})
    assert patch_text(WRITTEN, policy, changed) == "gatewright = 1\n\n[tools.mend]\ntimeout = 5\n"
