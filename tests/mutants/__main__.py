"""`python -m tests.mutants [--count N] [--minutes M] [--seed S]`: which changes of the code does no test notice?

First all tests of the engine run once and it is written down which lines each of them reaches. Then places are drawn at
random; for each the changed module is put into a copy of the checkout and the tests that reach it run there, the few
that reach least first, then the others. A place that no test reaches counts as not noticed. The exit status is 1 when
fewer than 9 of 10 are noticed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.mutants.mutation import Mutation, mutations
from tests.mutants.reach import FOLDER, Reach
from tests.support.checkout import ROOT

ENGINE = Path("engine", "gatewright")
PARTS = ("gate", "compile", "policy", "sources")
TESTS = ("tests/engine", "tests/golden")
WANTED = 0.9
MOST_SECONDS = 240.0
NARROWEST = 12
"""How many tests run at first: most changes are noticed by them, and few modules have to be collected."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one module; `path` is relative to the checkout."""

    path: Path
    mutation: Mutation

    def __str__(self) -> str:
        was, became = (" ".join(text.split())[:90] for text in (self.mutation.was, self.mutation.became))
        return f"{self.path}:{self.mutation.lines[0]}: `{was}` -> `{became}`"


class Copy:
    """A copy of the checkout's code, or of another copy, in which one module at a time is another.

    A copy in which all tests ran holds compiled code, which halves what a run costs; no run of a changed module writes
    any, since it could be taken for that of another change.
    """

    def __init__(self, folder: Path, source: Copy | None = None) -> None:
        self.top = folder
        if source is not None:
            shutil.copytree(source.top, folder)
            return
        listed = subprocess.run(
            ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def run(
        self, words: Sequence[str], variables: Mapping[str, str] | None = None, *, seconds: float | None = None
    ) -> tuple[int, str]:
        """pytest's exit status and output; -1 when it had not ended after `seconds`."""
        roots = [str(self.top / name) for name in (".", "engine", "gui", "resources")]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": os.pathsep.join(roots)}
        environment |= variables or {}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header", *words]
        with subprocess.Popen(
            command,
            cwd=self.top,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as child:
            try:
                out, _ = child.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                return -1, ""
        return child.returncode, out

    def is_noticed(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Whether some of the tests fail, or do not end, once the module is changed, and pass as it was."""
        return any(
            self._fails_with(mutant, some) and not self._fails(some)
            for some in (tests[:NARROWEST], tests[NARROWEST:])
            if some
        )

    def _fails_with(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        path = self.top / mutant.path
        before = path.read_text("utf-8")
        path.write_text(mutant.mutation.applied(before), "utf-8")
        Path(cache_from_source(path)).unlink(missing_ok=True)
        try:
            return self._fails(tests)
        finally:
            path.write_text(before, "utf-8")

    def _fails(self, tests: Sequence[str]) -> bool:
        wanted = self.top / "mutant-tests.txt"
        wanted.write_text("\n".join(tests), "utf-8")
        words = ["-x", "-q", "--tb=no", f"@{wanted}"]
        return self.run(words, {"PYTHONDONTWRITEBYTECODE": "1"}, seconds=MOST_SECONDS)[0] != 0


def reach(folder: Path) -> tuple[Reach, Copy]:
    """Runs all tests once, in a copy in `folder`."""
    copy = Copy(folder / "reach")
    written = folder / "written"
    written.mkdir()
    words = ["-n", "auto", "-p", "tests.mutants.reach", "-q", "--tb=no", *TESTS]
    status, out = copy.run(words, {FOLDER: str(written)})
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        sys.exit(f"the tests do not run without any change:\n{out[-4000:]}")
    print(*(line for line in out.splitlines() if line.startswith("FAILED ")), sep="\n", flush=True)
    return Reach(written, copy.top), copy


def drawn(count: int, seed: int, parts: Sequence[str]) -> list[Mutant]:
    """Half of them in the first part, all places of a part being equally likely."""
    chance = random.Random(seed)
    of_part = {part: list(_mutants(part)) for part in parts}
    shares = [count - count // 2 if len(parts) > 1 else count, *_shares(count // 2, len(parts) - 1)]
    found = [m for part, share in zip(parts, shares, strict=True) for m in chance.sample(of_part[part], share)]
    chance.shuffle(found)
    return found


def _shares(count: int, parts: int) -> list[int]:
    return [count // parts + (i < count % parts) for i in range(parts)]


def _mutants(part: str) -> Iterator[Mutant]:
    for path in sorted((ROOT / ENGINE / part).rglob("*.py")):
        for mutation in mutations(path.read_text("utf-8")):
            yield Mutant(path.relative_to(ROOT), mutation)


def main(words: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser("python -m tests.mutants", description="Which changes does no test notice?")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"packages of the engine (default {PARTS})")
    parser.add_argument("--count", type=int, default=100, help="how many places (default 100)")
    parser.add_argument("--minutes", type=float, default=60, help="begin no further one after so long (default 60)")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="draws the same places again")
    chosen = parser.parse_args(words)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job would hand on that it is ignored
    ends = time.monotonic() + 60 * chosen.minutes
    mutants = drawn(chosen.count, chosen.seed, chosen.parts)
    print(f"seed {chosen.seed}, {len(mutants)} places; running all tests once", flush=True)
    with tempfile.TemporaryDirectory(prefix="gatewright-mutants-") as name:
        if (corpora := ROOT.parent / "shared").is_dir():
            Path(name, "shared").symlink_to(corpora)
        reached, whole = reach(Path(name))
        copies: SimpleQueue[Copy] = SimpleQueue()
        workers = os.cpu_count() or 1
        for number in range(workers):
            copies.put(Copy(Path(name, str(number)), whole))

        def judge(mutant: Mutant) -> bool | None:
            if time.monotonic() > ends:
                return None
            tests = reached.tests(mutant.path, mutant.mutation)
            copy = copies.get()
            try:
                noticed = bool(tests) and copy.is_noticed(mutant, tests)
            finally:
                copies.put(copy)
            word = "noticed" if noticed else "NOT NOTICED" if tests else "NOT REACHED"
            print(f"{word:12} {mutant}", flush=True)
            return noticed

        with ThreadPoolExecutor(workers) as pool:
            verdicts = [verdict for verdict in pool.map(judge, mutants) if verdict is not None]
    noticed = sum(verdicts)
    print(f"{noticed} of {len(verdicts)} changes are noticed (seed {chosen.seed})")
    return 0 if verdicts and noticed >= WANTED * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
