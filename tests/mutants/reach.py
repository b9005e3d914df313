"""Which tests reach which lines of the engine: a pytest plugin that writes it down, and what reads it.

Each process of a run writes one JSON file into the folder named by `FOLDER`: the node ids, and path -> line -> places
in the list of these. The node id of a line that ran outside of any test, while modules were imported, is empty. A test
that fails, as those that measure time may under the tracer, tells nothing about a change and is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest
from coverage import Coverage

from tests.mutants.mutation import Mutation

FOLDER = "GATEWRIGHT_MUTANTS_REACH"
AT_IMPORT = ""

_measured: list[Coverage] = []
_failed: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Measure from here on, in memory, in the processes that run tests."""
    if not hasattr(config, "workerinput"):
        return
    coverage = Coverage(data_file=None, source_pkgs=["gatewright"], config_file=False)
    coverage.start()
    _measured.append(coverage)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Everything that runs for a test, its fixtures included, is reached by it."""
    _measured[-1].switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Which tests fail."""
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down what this process saw: later a worker is given a few seconds and then ended."""
    if not _measured:
        return
    coverage = _measured.pop()
    coverage.stop()
    data = coverage.get_data()
    tests = [test for test in sorted(data.measured_contexts()) if test not in _failed]
    places = {test: place for place, test in enumerate(tests)}
    seen = {
        name: {
            line: [places[one] for one in ran if one in places] for line, ran in data.contexts_by_lineno(name).items()
        }
        for name in data.measured_files()
    }
    Path(os.environ[FOLDER], f"{os.getpid()}.json").write_text(json.dumps([tests, seen]), "utf-8")


class Reach:
    """Which tests reach a line, those first that reach least in all."""

    def __init__(self, folder: Path, top: Path) -> None:
        self._tests: dict[Path, dict[int, set[str]]] = {}
        self._width: dict[str, int] = {}
        for written in folder.glob("*.json"):
            named: list[str]
            seen: dict[str, dict[str, list[int]]]
            named, seen = json.loads(written.read_text("utf-8"))
            for name, lines in seen.items():
                known = self._tests.setdefault(Path(name).relative_to(top), {})
                for line, places in lines.items():
                    tests = [named[place] for place in places]
                    known.setdefault(int(line), set()).update(tests)
                    for test in tests:
                        self._width[test] = self._width.get(test, 0) + 1

    def tests(self, path: Path, mutation: Mutation) -> tuple[list[str], bool]:
        """Those that reach the line, then those that reach anything of its module; and whether it ran at import.

        The latter notice what ran at import, or once for all tests since its answer is kept; all tests where the module
        has nothing else. None for a line that never ran.
        """
        lines = self._tests.get(path, {})
        found = set[str]().union(*(lines.get(line, ()) for line in mutation.lines))
        if mutation.at_import:  # seen or not: some modules are loaded before anything is measured
            found.add(AT_IMPORT)
        if not found:
            return [], False
        near = (set[str]().union(*lines.values()) - {AT_IMPORT} or set(self._width)) - found
        tests = [test for some in (found, near) for test in sorted(some, key=partial(self._rank, path)) if test]
        return tests, AT_IMPORT in found

    def _rank(self, path: Path, test: str) -> tuple[int, int, str]:
        """Nearest by the name of its module or told of the whole gate, then by its folder, then the narrowest."""
        module, folder, file = path.stem.replace("_", ""), path.parts[2], Path(test.partition("::")[0])
        is_near = module in file.stem.replace("_", "") or "golden" in file.parts
        distance = 0 if is_near else 1 if folder in file.parts else 2
        return distance, self._width.get(test, 0), test
