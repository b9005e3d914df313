"""Which problems of a policy are the reason of others: a manifest that cannot be read hides all names that it holds."""

import re
from collections.abc import Generator, Sequence

from gatewright.workspace.api import Edit, Problem, Workspace

_UNKNOWN = frozenset({"unknown-tool", "unknown-operation"})
_CATALOG = frozenset({"bad-manifest", "not-trusted", "missing-path"})
_QUOTED = re.compile(r"`([^`]+)`")


def causes_of(problems: Sequence[Problem]) -> frozenset[Problem]:
    """The problems that explain why names are unknown; empty where no name is."""
    unknown = {_first_name(problem) for problem in problems if problem.code in _UNKNOWN}
    if not unknown:
        return frozenset()
    return frozenset(
        problem
        for problem in problems
        if (problem.code in _CATALOG and "catalog" in problem.message)
        or (problem.code == "tool-set-aside" and _first_name(problem) in unknown)
    )


def _first_name(problem: Problem) -> str:
    found = _QUOTED.search(problem.message)
    return found.group(1) if found else ""


def mends_of(workspace: Workspace, problem: Problem) -> tuple[Edit, ...]:
    """The edits by which a problem would be gone, for the worker process."""
    return workspace.mends(problem)


def names_of_mends(
    workspace: Workspace, problems: Sequence[Problem]
) -> Generator[int, None, tuple[tuple[str, ...], ...]]:
    """The names of the edits by which each of the problems would be gone, for the worker process."""
    found: list[tuple[str, ...]] = []
    for problem in problems:
        found.append(tuple(edit.name for edit in workspace.mends(problem)))
        yield len(found)
    return tuple(found)


def mends_of_all(workspace: Workspace, problems: Sequence[Problem]) -> tuple[Edit, ...]:
    """The mildest mend of each of them, for the worker process."""
    return workspace.mend_all(problems)
