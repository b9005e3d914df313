"""`python -m tests.mutants [--count N] [--minutes M] [--seed S] [--reach F]`: which changes does no test notice?

First all tests of the engine run once and it is written down which lines each of them reaches; `--reach` keeps that for
the next seed. Then places are drawn at random; for each the changed module is put into a copy of the checkout and the
tests that reach it run there, the nearest and narrowest first, then the others. A place that no test reaches counts as
not noticed. The exit status is 1 when fewer than 9 of 10 are noticed.
"""

from __future__ import annotations

import argparse
import hashlib
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
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.mutants.mutation import Mutation, mutations
from tests.mutants.reach import FOLDER, Reach
from tests.mutants.server import CannotBeSwapped, Job, Server
from tests.support.checkout import ROOT

ENGINE = Path("engine", "gatewright")
PARTS = ("gate", "compile", "policy", "sources")
TESTS = ("tests/engine", "tests/golden")
WANTED = 0.9
MOST_SECONDS = 240.0
NARROWEST, MOST_TESTS = 12, 500
"""How many tests run at first, and in all, where everything is loaded again: few modules have to be collected."""
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header")


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

    def __init__(self, folder: Path, source: Path | None = None) -> None:
        self.top = folder
        if source is not None:
            shutil.copytree(source, folder)
            return
        for name in _files():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)

    def run(
        self, words: Sequence[str], variables: Mapping[str, str] | None = None, *, seconds: float | None = None
    ) -> tuple[int, str]:
        """pytest's exit status and output; -1 when it had not ended after `seconds`."""
        with subprocess.Popen(
            [*PYTEST, *words],
            cwd=self.top,
            env=self._environment(variables or {}),
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

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        roots = os.pathsep.join(str(self.top / name) for name in (".", "engine", "gui", "resources"))
        return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": roots, **variables}

    def serve(self) -> Copy:
        """Collect the tests for all changes to come."""
        self._server = Server([*PYTEST, *TESTS], self.top, self._environment({"PYTHONDONTWRITEBYTECODE": "1"}))
        return self

    def end(self) -> None:
        """Serve no more."""
        self._server.close()

    def is_noticed(self, mutant: Mutant, tests: Sequence[str], *, loaded: bool) -> bool:
        """Whether some test fails, or does not end, once the module is changed, and passes as it was.

        `loaded`: the changed code ran when its module was loaded, so everything has to be loaded again.
        """
        path = self.top / mutant.path
        source, times = path.read_text("utf-8"), path.stat()
        changed = mutant.mutation.applied(source)
        path.write_text(changed, "utf-8")
        try:
            if loaded:
                raise CannotBeSwapped
            failing = self._server.failing(Job(tests, path, source, changed))
        except CannotBeSwapped:
            failing = next(
                (some for some in (tests[:NARROWEST], tests[NARROWEST:MOST_TESTS]) if self._fails(some)), None
            )
        finally:
            path.write_text(source, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if isinstance(failing, str):
            passes = self._server.failing(Job([failing])) is None
            return passes or self.is_noticed(mutant, tests[tests.index(failing) + 1 :], loaded=False)
        return failing is not None and not self._fails(failing)

    def _fails(self, tests: Sequence[str]) -> bool:
        if not tests:
            return False
        wanted = self.top / "mutant-tests.txt"
        wanted.write_text("\n".join(tests), "utf-8")
        words = ["-x", "-q", "--tb=no", f"@{wanted}"]
        return self.run(words, {"PYTHONDONTWRITEBYTECODE": "1"}, seconds=MOST_SECONDS)[0] != 0


def _files() -> list[str]:
    """The files of the checkout that belong to it, relative to it."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return sorted(name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


def _state() -> str:
    """A digest of the whole checkout."""
    digest = hashlib.sha256()
    for name in _files():
        digest.update(f"{name}\0{hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _put_corpora_beside(folder: Path) -> None:
    if (corpora := ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to(corpora)


def reach(folder: Path) -> tuple[Reach, Path]:
    """Which lines the tests reach, and the copy in `folder` where they ran: now, or when the checkout was the same."""
    top, written, known = folder / "reach", folder / "written", folder / "state"
    state = _state()
    if not known.is_file() or known.read_text("utf-8") != state:
        shutil.rmtree(folder, ignore_errors=True)
        written.mkdir(parents=True)
        _put_corpora_beside(folder)
        _run_all(Copy(top), written)
        known.write_text(state, "utf-8")
    return Reach(written, top), top


def _run_all(copy: Copy, written: Path) -> None:
    words = ["-n", "auto", "-p", "tests.mutants.reach", "-q", "--tb=no", *TESTS]
    status, out = copy.run(words, {FOLDER: str(written)})
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        sys.exit(f"the tests do not run without any change:\n{out[-4000:]}")
    print(*(line for line in out.splitlines() if line.startswith("FAILED ")), sep="\n", flush=True)


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
    parser.add_argument("--reach", type=Path, help="a folder of its own: keeps there which lines the tests reach")
    chosen = parser.parse_args(words)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job would hand on that it is ignored
    ends = time.monotonic() + 60 * chosen.minutes
    mutants = drawn(chosen.count, chosen.seed, chosen.parts)
    print(f"seed {chosen.seed}, {len(mutants)} places; running all tests once", flush=True)
    with tempfile.TemporaryDirectory(prefix="gatewright-mutants-") as name:
        _put_corpora_beside(Path(name))
        reached, whole = reach(chosen.reach or Path(name, "all"))
        copies: SimpleQueue[Copy] = SimpleQueue()
        workers = os.cpu_count() or 1

        def serving(number: int) -> Copy:
            return Copy(Path(name, str(number)), whole).serve()

        def judge(mutant: Mutant) -> bool | None:
            if time.monotonic() > ends:
                return None
            tests, loaded = reached.tests(mutant.path, mutant.mutation)
            copy = copies.get()
            try:
                noticed = bool(tests) and copy.is_noticed(mutant, tests, loaded=loaded)
            finally:
                copies.put(copy)
            word = "noticed" if noticed else "NOT NOTICED" if tests else "NOT REACHED"
            print(f"{word:12} {mutant}", flush=True)
            return noticed

        with ThreadPoolExecutor(workers) as pool:
            for copy in pool.map(serving, range(workers)):
                copies.put(copy)
            verdicts = [verdict for verdict in pool.map(judge, mutants) if verdict is not None]
        while not copies.empty():
            copies.get().end()
    noticed = sum(verdicts)
    print(f"{noticed} of {len(verdicts)} changes are noticed (seed {chosen.seed})")
    return 0 if verdicts and noticed >= WANTED * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
