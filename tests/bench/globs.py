"""Row "glob levels": the levels of many paths by thirty rules, and of one path alone."""

from __future__ import annotations

import random
import time
from typing import Any

from pathspec import PathSpec

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules
from gatewright.policy.verdict import Permission
from tests.bench.measure import Effort, quiet, race_calls
from tests.bench.row import Figure, Measured, Missing, Row, at_least, at_most, times_at_most

_BULK, _ONE, _PATHSPEC = "in bulk", "one path", "pathspec, gitignore, in bulk"
_PATTERNS = (
    *("*.log", "*.tmp", "*.key", "*.pem", ".env*", "build/", "dist/", "node_modules/", "__pycache__/", "secrets/"),
    *("/docs/**", "/src/**/generated/", "**/fixtures/**", "notes/**/*.bak", "drafts/final/**", "drafts/**", "*.md"),
    *("[Mm]akefile", "a?/b*/c", "/top/*.txt", "**/CHANGELOG.*", "data/*/raw/", "data/**/*.csv", "*.min.js", "vendor/"),
    *("/config/*.yaml", "/config/local/**", "tests/**/snap*/", "*~", "target/"),
)
_LEVELS = (Permission.NONE, Permission.READ_ONLY, Permission.APPEND, Permission.READ_WRITE)
_FOLDERS = (
    "src",
    "docs",
    "data",
    "notes",
    "drafts",
    "config",
    "tests",
    "lib",
    "app",
    "web",
    "raw",
    "final",
    "generated",
)
_NAMES = ("main.py", "readme.md", "a.log", "t.csv", "key.pem", "index.js", "x.min.js", "Makefile", "old.bak", "one.txt")


def glob_levels(effort: Effort) -> Row:
    """Paths of a second in bulk; a path by itself in microseconds."""
    paths = _paths(2_000 if effort.quick else 200_000)
    rules = [PermissionRule(pattern, _LEVELS[i % 4]) for i, pattern in enumerate(_PATTERNS)]
    warm = PermissionRules(rules)
    warm.levels(paths[: len(paths) // 2])
    figures: dict[str, Measured] = {
        _BULK: _rate(lambda: PermissionRules(rules).levels(paths), len(paths)),
        _ONE: race_calls({_ONE: warm.level}, paths, effort.scaled(0.5))[_ONE],
        _PATHSPEC: _pathspec(paths) if effort.peers else Missing("peer left out"),
    }
    return Row(
        "glob levels",
        f"{len(_PATTERNS)} rules, {len(paths):,} paths in {len({p.rpartition('/')[0] for p in paths}):,} folders",
        (_BULK, _ONE),
        figures,
        (
            at_least("in bulk", figures[_BULK], 300_000, "paths/s"),
            at_most("one path", figures[_ONE], 5),
            times_at_most("pathspec's rate, of ours", figures[_PATHSPEC], figures[_BULK], 1),
        ),
        _BULK,
        ("rates are the best of three, the rules compiled anew each time",),
    )


def _rate(action: Any, count: int) -> Figure:
    best = 0.0
    for _ in range(3):
        with quiet():
            began = time.process_time_ns()
            action()
            best = max(best, count * 1e9 / max(time.process_time_ns() - began, 1))
    return Figure(best, None, "paths/s")


def _pathspec(paths: list[str]) -> Figure:
    """Its own patterns, which tell whether a path matches, not by which rule; that is less than a level."""
    spec = PathSpec.from_lines("gitignore", _PATTERNS)
    return _rate(lambda: [spec.match_file(path) for path in paths], len(paths))


def _paths(count: int) -> list[str]:
    draw = random.Random(7)
    folders = ["/".join((*draw.choices(_FOLDERS, k=draw.randint(1, 4)), f"p{i}")) for i in range(max(count // 17, 1))]
    return [f"{draw.choice(folders)}/{i}-{draw.choice(_NAMES)}" for i in range(count)]
