import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import ToolFailure
from gatewright.blocks.difftext import diff_text
from gatewright.blocks.textedit import patch_splices, with_splices

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-x", "+y", "@@ z", "\\ w", "--- v", " s"]), max_size=12)


def patched(text: str, patch: str) -> str:
    return with_splices(text, patch_splices(text, patch))


def unified(old: str, new: str, context: int) -> str:
    """What ``diff -u`` writes, markers for missing line ends included."""
    before, after = (
        [f"{line}\n" for line in text.split("\n")[:-1]] + ([text.split("\n")[-1]] if text.split("\n")[-1] else [])
        for text in (old, new)
    )
    rows = difflib.unified_diff(before, after, "a", "b", n=context)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def whole(lines: list[str], *, ends: bool) -> str:
    return "\n".join(lines) + ("\n" if ends and lines else "")


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3), st.booleans())
def test_a_difference_applied_to_the_old_text_is_the_new_text(
    before: list[str], after: list[str], old_ends: bool, new_ends: bool, context: int, carriage: bool
) -> None:
    old, new = whole(before, ends=old_ends), whole(after, ends=new_ends)
    patch = unified(old, new, context)
    if carriage and "\n" in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if old == new or not patch:
        return
    assert patched(old, patch) == new


@given(LINES, LINES)
def test_our_own_diff_applies(before: list[str], after: list[str]) -> None:
    old, new = whole(before, ends=True), whole(after, ends=True)
    if old != new:
        assert patched(old, diff_text("x", old, new)) == new


@given(LINES, LINES, LINES)
def test_a_patch_for_another_text_is_refused_or_found_where_its_lines_are(
    before: list[str], after: list[str], other: list[str]
) -> None:
    old, new, text = (whole(lines, ends=True) for lines in (before, after, other))
    if old == new:
        return
    try:
        result = patched(text, unified(old, new, 3))
    except ToolFailure:
        return
    removed = [line for line in unified(old, new, 3).split("\n")[2:] if line.startswith("-")]
    added = [line for line in unified(old, new, 3).split("\n")[2:] if line.startswith("+")]
    assert result.count("\n") == text.count("\n") - len(removed) + len(added)


def test_the_systems_own_diff_applies(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(200))
    new = old.replace("line 7\n", "line seven\nand more\n").replace("line 150\n", "").replace("line 199\n", "last")
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(new)
    ran = subprocess.run(["diff", "-u", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert patched(old, ran.stdout) == new
    assert patched(old, f"diff --git a/x b/x\nindex 1..2 100644\n{ran.stdout}") == new


def test_hunks_that_name_the_wrong_line_go_where_their_lines_stand_once() -> None:
    text = "".join(f"{number}\n" for number in range(50))
    patch = "@@ -3,3 +3,3 @@\n 20\n-21\n+x\n 22\n@@ -9,2 +9,3 @@\n 26\n+y\n 27\n"
    assert patched(text, patch) == text.replace("21\n", "x\n").replace("26\n", "26\ny\n")


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ("", "bad-patch", "no hunk"),
        ("hello", "bad-patch", "line 1"),
        ("@@ -1 +1 @@\n-one\n", "bad-patch", "1 old and 1 new lines, and it has 1 and 0"),
        ("@@ -1 +1 @@\n-one\n-two\n+x\n", "bad-patch", "line 1 of the patch"),
        ("@@ -1 +1 @@\n-one\n+x\n*two\n", "bad-patch", "line 4"),
        ("@@ -1 +1 @@\n\\ No newline\n-one\n+x\n", "bad-patch", "line 2"),
        ("@@ -1 +1 @@\n-nine\n+x\n", "patch-mismatch", "line 1 of the text is not what"),
        ("@@ -1,2 +1,2 @@\n one\n-nine\n+x\n", "patch-mismatch", "line 2 of the text"),
        ("@@ -9 +9 @@\n-nine\n+x\n", "patch-mismatch", "line 9 of the text does not exist"),
        ("@@ -9 +9 @@\n-two\n+x\n", "patch-mismatch", "several places"),
        ("@@ -9,0 +10 @@\n+x\n", "patch-mismatch", "3 lines"),
        ("@@ -3 +3 @@\n-two\n+x\n@@ -1 +1 @@\n-one\n+y\n", "patch-mismatch", "hunks go in order"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_with_its_place(patch: str, code: str, words: str) -> None:
    with pytest.raises(ToolFailure, match=words) as failure:
        patched("one\ntwo\ntwo\n", patch)
    assert failure.value.code == code


def test_a_large_hostile_patch_is_read_in_time() -> None:
    text = "a\n" * 50_000
    with pytest.raises(ToolFailure):
        patched(text, "@@ -1,20001 +1,20001 @@\n" + " a\n" * 20_000 + "-b\n+c\n")
    with pytest.raises(ToolFailure, match="more than"):
        patched(text, "@@ -1 +1 @@\n-a\n+b\n" * 5000)
