"""`python -m tests.engine.glob.sweep [--paths 100000] [--seed N]`: our matcher against ``git check-ignore`` at length.

Real patterns (of the corpus where it is there) and generated ones, each asked of git about generated paths. Ends with 1
and the first disagreements when there are any.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.verdict import Permission
from tests.engine.glob.oracle import GitOracle
from tests.engine.glob.test_git_oracle import NAMES, PIECES
from tests.support.checkout import ROOT

_PER_PATTERN = 2_000
_SHOWN = 20


def main(words: list[str]) -> int:
    """The exit status: 1 when git and we disagree."""
    parser = argparse.ArgumentParser("python -m tests.engine.glob.sweep", description=__doc__)
    parser.add_argument("--paths", type=int, default=100_000, help="how many questions to ask")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(words)
    draw = random.Random(chosen.seed)
    asked, matched, wrong = 0, 0, list[str]()
    with TemporaryDirectory() as folder:
        git = GitOracle(Path(folder))
        while asked < chosen.paths:
            pattern = _pattern(draw)
            if pattern.startswith("!") or check_pattern(pattern) is not None:
                continue
            paths = _paths(draw, pattern)
            theirs = git.ignored(pattern, paths)
            rules = PermissionRules([PermissionRule(pattern, Permission.NONE)], Permission.ADMIN)
            levels = zip(paths, rules.levels(paths), strict=True)
            ours = {path for path, level in levels if level is Permission.NONE}
            wrong += [f"{pattern!r} {path!r}: git {path in theirs}" for path in sorted(ours ^ theirs)]
            asked, matched = asked + len(paths), matched + len(theirs)
    print(f"{asked:,} paths, {matched:,} matched by git, {len(wrong):,} disagreements")
    print("\n".join(wrong[:_SHOWN]))
    return 1 if wrong else 0


def _pattern(draw: random.Random) -> str:
    real = _real()
    if real and draw.random() < 0.5:
        return draw.choice(real)
    return "".join(draw.choices(PIECES, k=draw.randint(1, 7)))


_kept: list[str] = []
_made: set[str] = set()


def _real() -> list[str]:
    if not _kept:
        file = ROOT.parent / "shared/corpora" / "gitignore_rows.json"
        sets = json.loads(file.read_text("utf-8"))["pattern_sets"].values() if file.exists() else ()
        _kept.extend({line for one in sets for line in one["patterns"] if line.strip()} or {"*.md"})
    return _kept


def _paths(draw: random.Random, pattern: str) -> list[str]:
    """Paths of names that are in the pattern and others; none is a folder and a file at once."""
    parts = [part for part in pattern.replace("*", "").replace("\\", "").split("/") if part not in {"", ".", ".."}]
    names = [*NAMES, *(part for part in parts if "\r" not in part), *(part + "x" for part in parts)]
    names = [name for name in names if name != ".git" and len(name) < 200]
    deep = ["/".join(draw.choices(names, k=draw.randint(1, 3))) for _ in range(60)]
    folders = {"/".join(path.split("/")[:depth]) + "/" for path in deep for depth in (1, 2, 3)}
    _made.update(folders)
    files = {draw.choice(["", *sorted(folders)]) + draw.choice(names) for _ in range(_PER_PATTERN)}
    return sorted(folders) + sorted(file for file in files if f"{file}/" not in _made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
