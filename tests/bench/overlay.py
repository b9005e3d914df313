"""Row "permission overlay": the first screen of a folder with its levels, and which rule decides how many files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.memory import BlockStore
from gatewright.policy.document import PermissionRule, Policy, Source
from gatewright.policy.permission import Permission
from gatewright.policyfile import render_policy
from gatewright.sources import Protection, SourceManager
from tests.bench.guirow import child
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Row, at_most, none_wrong

_SCREEN, _COUNTS = "first screen", "all counts"
_PAGE, _MAKE = "first screen of the Files page, painted", "(the page itself, made once)"
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
        manager.start(source, base)
        rounds = 1 if effort.quick else 5
        seen: list[int] = []
        screen = _median(lambda: seen.append(len(manager.overlay("tree").scan().entries)), rounds)
        counts = _median(lambda: seen.append(manager.overlay("tree").hit_counts().files), rounds)
        blocks.close()
        pages = [_on_the_page(base.parent, source) for _ in range(rounds)]
    entries = _IN_BASE + len(_KINDS)
    wrong = sum(one != entries for one in seen[:rounds]) + sum(one != written for one in seen[rounds:])
    wrong += sum(rows < min(entries, _ROWS) for *_, rows in pages)
    figures: dict[str, Measured] = {_SCREEN: screen, _COUNTS: Figure(counts.median, None, "ms", wrong)}
    figures[_PAGE] = Figure(sorted(shown for _, shown, _ in pages)[rounds // 2], None, "ms")
    figures[_MAKE] = Figure(sorted(made for made, _, _ in pages)[rounds // 2], None, "ms")
    return Row(
        "permission overlay",
        f"{len(_RULES)} rules, {written:,} files, {_IN_BASE} of them in the folder that is shown",
        (_SCREEN, _COUNTS, _PAGE),
        figures,
        (
            at_most(_SCREEN, figures[_SCREEN], 100, "ms"),
            at_most(_PAGE, figures[_PAGE], 100, "ms"),
            at_most(_COUNTS, figures[_COUNTS], 3_000, "ms"),
            none_wrong(figures, "every file seen and counted"),
        ),
        None,
        ("the first screen is made anew each time; the names of files are in the memory of the system",),
    )


def _on_the_page(folder: Path, source: Source) -> tuple[float, float, int]:
    """In a window of its own: milliseconds to make the page and to the painted folder, by the clock; its rows."""
    policy = folder / "policy.toml"
    policy.write_text(render_policy(Policy(sources=(source,))), "utf-8")
    found = child("files", str(policy))
    return found["make"][0] / 1e6, found["first screen"][0] / 1e6, found["rows"][0]


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
