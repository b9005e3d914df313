"""Which levels the files below folders have, against every file asked for by itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.access.files.folder_levels import FolderLevels
from gatewright_gui.session import file_index
from gatewright_gui.session.file_index import Decided, FileIndex, FolderNames, decide
from tests.gui.files.support import SOURCE, opened

PARTS = st.sampled_from(("a", "b", "deep"))
FILES = st.sets(st.lists(PARTS, min_size=1, max_size=4).map("/".join).map("{}.md".format), min_size=1, max_size=12)
PATTERNS = st.sampled_from(("a/**", "*.md", "deep/", "b/a/*", "/a/b/**", "**/deep/**"))
RULES = st.lists(st.builds(PermissionRule, PATTERNS, st.sampled_from(list(Permission))), max_size=4)


def decided(files: set[str], rules: PermissionRules) -> Decided:
    """As a count finds it: every folder before those in it."""
    folders = sorted({file[: at + 1] for file in files for at, sign in enumerate(file) if sign == "/"} | {""})
    names = [
        tuple(sorted(file[len(one) :] for file in files if file.rpartition("/")[0] == one[:-1])) for one in folders
    ]
    kinds = tuple(FolderNames(one, own, (0,) * len(own), ()) for one, own in zip(folders, names, strict=True))
    codes: list[Sequence[int]] = []
    for folder in kinds:
        found = [rules.explain(folder.prefix + name).index for name in folder.names]
        codes.append([file_index.DEFAULT if index is None else index for index in found])
    counts = Counter(code for own in codes for code in own)
    index = FileIndex(kinds, len(files))
    patterns = tuple(rule.pattern for rule in rules.rules)
    return Decided(index, tuple(codes), counts, patterns, file_index.codes_below(index, codes, lambda: False))


@given(FILES, RULES)
def test_folder_has_the_levels_of_exactly_the_files_below_it(files: set[str], rules: list[PermissionRule]) -> None:
    compiled = PermissionRules(rules, Permission.APPEND)
    source = Source("s", "base", Permission.APPEND, tuple(rules))
    levels = FolderLevels(decided(files, compiled), lambda: source)
    for folder in ("", "a/", "b/", "deep/", "a/b/", "a/a/", "deep/deep/", "a/b/deep/"):
        below = levels(folder)
        wanted = {str(compiled.level(file)) for file in files if file.startswith(folder)}
        assert (set(below.words) if below is not None else set[str]()) == wanted


def test_changed_patterns_keep_only_what_is_surely_mixed_until_they_are_counted() -> None:
    rules = (PermissionRule("a/x.md", Permission.NONE), PermissionRule("b/**", Permission.ADMIN))
    source = Source("s", "base", Permission.READ_ONLY, rules)
    count = decided({"a/x.md", "a/y.md", "b/z.md"}, PermissionRules(rules, Permission.READ_ONLY))
    shown = [source]
    levels = FolderLevels(count, lambda: shown[0])

    def told(folder: str) -> tuple[object, ...]:
        below = levels(folder)
        return (*below.words, below.rule_word) if below is not None else ()

    assert told("a/") == ("none", "read_only", "rule 1, default")
    assert told("b/") == ("admin", "rule 2")
    shown[0] = replace(source, permission_rules=(rules[0], replace(rules[1], permission=Permission.HUMAN)))
    assert told("b/") == ("human", "rule 2")
    shown[0] = replace(source, permission_rules=(PermissionRule("c", Permission.ADMIN), *rules))
    assert told("a/") == ("none", "read_only", "...")
    assert told("b/") == ()
    assert told("c/") == ()


@pytest.mark.parametrize("limit", [3, 1_000])
async def test_nothing_is_said_of_folders_whose_files_were_not_all_counted(tmp_path: Path, limit: int) -> None:
    async with opened(tmp_path / "demo") as demo:
        sources = demo.document.workspace.sources
        source = sources.get(SOURCE)
        assert source is not None
        index = file_index.walk(source, lambda: False, lambda _seen: None, limit=limit)
        count = decide(index, sources.overlay(SOURCE), source.rules, lambda: False)
        levels = FolderLevels(count, lambda: demo.document.policy.source(SOURCE))
        assert (levels("drafts/") is None) == index.truncated == (limit == 3)
