"""Row "permission overlay": the first screen of a folder with its levels, and the page of files with its counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import PermissionRule, Policy, Source
from gatewright.policy.verdict import Permission
from gatewright.policyfile import render_policy
from gatewright.sources.basefolder import base_folder
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from tests.bench.guirow import child, in_ms
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Row, at_most, none_wrong

_SCREEN = "first screen"
_PAGE, _AGAIN = "first screen of the Files page, painted", "another source chosen, painted"
_MAKE, _PAGE_COUNTS = "(the page itself, made once)", "all counts on the page"
_FILTER = "filter by level, the longest piece in the window's thread"
_IN_BASE, _IN_FOLDER = 500, 100
_ROWS = 500  # the page asks before it shows more
_NAMES = ("main.py", "readme.md", "a.log", "t.csv", "key.pem", "index.js", "old.bak", "one.txt")
_KINDS = ("src", "docs", "data", "notes", "drafts", "build", "secrets", "tests")
_RULES = (
    ("secrets/", Permission.NONE),
    ("*.pem", Permission.NONE),
    ("build/", Permission.READ_ONLY),
    ("drafts/final/**", Permission.READ_ONLY),
    ("drafts/**", Permission.READ_WRITE),
    ("notes/**", Permission.APPEND),
    ("**/*.log", Permission.APPEND),
    *((f"src/**/part{i}/*.py", Permission.READ_WRITE) for i in range(23)),
)


def permission_overlay(effort: Effort) -> Row:
    """Milliseconds until a page could be painted, and until every file is counted."""
    count = 2_000 if effort.quick else 200_000
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        base = Path(name).resolve() / "base"
        written = _write(base, count)
        source = Source("tree", "base", permission_rules=tuple(PermissionRule(*rule) for rule in _RULES))
        blocks = BlockStore(Path(name) / "blocks.sqlite")
        manager = SourceManager(lambda: lambda: None, blocks, Protection([Path(name) / "policy.toml"]))
        manager.follow([(source, base_folder(base))])
        rounds = 1 if effort.quick else 5
        seen: list[int] = []
        screen = _median(lambda: seen.append(len(manager.overlay("tree").scan().entries)), rounds)
        blocks.close()
        pages = [_on_the_page(base.parent, source) for _ in range(rounds)]
    entries = _IN_BASE + len(_KINDS)
    wrong = sum(one != entries for one in seen)
    wrong += sum(page["rows"][0] < min(entries, _ROWS) or page["files"][0] != written for page in pages)
    figures: dict[str, Measured] = {_SCREEN: Figure(screen.median, None, "ms", wrong)}
    for name, key in (
        (_PAGE, "first screen"),
        (_AGAIN, "source again"),
        (_PAGE_COUNTS, "counts"),
        (_FILTER, "filter"),
        (_MAKE, "make"),
    ):
        figures[name] = in_ms([taken for page in pages for taken in page[key]])
    return Row(
        "permission overlay",
        f"{len(_RULES)} rules, {written:,} files, {_IN_BASE} of them in the folder that is shown",
        (_SCREEN, _PAGE, _AGAIN, _PAGE_COUNTS, _FILTER),
        figures,
        (
            at_most(_SCREEN, figures[_SCREEN], 100, "ms"),
            at_most(_PAGE, figures[_PAGE], 100, "ms"),
            at_most(_AGAIN, figures[_AGAIN], 100, "ms"),
            at_most(_PAGE_COUNTS, figures[_PAGE_COUNTS], 3_000, "ms"),
            at_most(_FILTER, figures[_FILTER], 16, "ms"),
            none_wrong(figures, "every file seen and counted"),
        ),
        None,
        (
            "the first screen is made anew each time; the names of files are in the memory of the system",
            "screens by the clock, the page itself and its filter by the time of the window's thread",
        ),
    )


def _on_the_page(folder: Path, source: Source) -> dict[str, list[int]]:
    """In a window of its own, beside a source of another, small folder: nanoseconds, rows, files."""
    other = replace(source, source_id="other", base_path="other")
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "one.txt").touch()
    (folder / "other" / "two.txt").touch()
    policy = folder / "policy.toml"
    policy.write_text(render_policy(Policy(sources=(source, other))), "utf-8")
    found: dict[str, list[int]] = child("files", str(policy))
    return found


def _median(act: Callable[[], object], rounds: int) -> Figure:
    taken: list[float] = []
    for _ in range(rounds):
        with quiet():
            began = time.perf_counter()
            act()
            taken.append((time.perf_counter() - began) * 1e3)
    return Figure(sorted(taken)[len(taken) // 2], None, "ms")


def _write(base: Path, count: int) -> int:
    """Empty files, the same every time; how many."""
    base.mkdir()
    for i in range(_IN_BASE):
        (base / f"{i:03}-{_NAMES[i % len(_NAMES)]}").touch()
    folders = max((count - _IN_BASE) // _IN_FOLDER, len(_KINDS))
    for i in range(folders):
        folder = base / _KINDS[i % len(_KINDS)] / f"group{i // 200}" / f"part{i}"
        folder.mkdir(parents=True)
        for j in range(_IN_FOLDER):
            (folder / f"{j:03}-{_NAMES[j % len(_NAMES)]}").touch()
    return _IN_BASE + folders * _IN_FOLDER
