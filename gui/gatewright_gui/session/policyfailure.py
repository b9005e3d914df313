"""What the app knows of a policy file that is not in force: it could not be opened, or not be taken over.

It reads the text for people to look at and decides nothing.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gatewright.workspace.api import PolicyInvalid, Problem, frozen
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.causes import causes_of

NOT_TRUSTED = "not-trusted"


@frozen
class OpenFailure:
    """A policy that has errors: nothing is enforced, its text can only be read."""

    path: Path
    text: str
    problems: tuple[Problem, ...]

    @property
    def needs_only_trust(self) -> bool:
        """Tell whether nothing is wrong but that the operator has not trusted what it reaches outside its folder."""
        errors = [problem for problem in self.problems if problem.is_error]
        return bool(errors) and all(problem.code == NOT_TRUSTED for problem in errors)


@frozen
class FileAlarm:
    """The policy file was read again and not taken over, and the last good policy stays. `raised_wall_s`: when."""

    path: Path
    problems: tuple[Problem, ...]
    raised_wall_s: float

    @property
    def words(self) -> str:
        """The words to say of it."""
        errors = counted(sum(problem.is_error for problem in self.problems), "error", "errors")
        cause = next((problem for problem in self.problems if problem in causes_of(self.problems)), None)
        what = tr("{file} has {errors}", file=self.path.name, errors=errors)
        if cause is not None:
            what = tr("{cause} ({errors} with what follows from it)", cause=cause.message, errors=errors)
        what = what.replace("`", "")
        return tr("{what}: it was not taken over, and the last good policy stays in force", what=what)

    def with_those_of(self, policy: Iterable[Problem]) -> tuple[Problem, ...]:
        """The file's problems, and those of the policy in force that it has not, on whatever line."""
        told = Counter((problem.code, problem.message) for problem in self.problems)
        others: list[Problem] = []
        for problem in policy:
            words = (problem.code, problem.message)
            if told[words] > 0:
                told[words] -= 1
            else:
                others.append(problem)
        return (*self.problems, *others)


def failure_of(path: Path, problems: tuple[Problem, ...]) -> OpenFailure:
    """The failure to open that file, or the policy of that folder, with its text."""
    file = path / "policy.toml" if path.is_dir() else path
    return OpenFailure(file, text_of(file), problems)


def text_of(file: Path) -> str:
    """The text that the file holds, to read; never raises."""
    try:
        return file.read_bytes().decode("utf-8", errors="replace")
    except OSError as unreadable:
        return "# " + tr("cannot be read: {reason}", reason=unreadable.strerror) + "\n"


def first_error(error: PolicyInvalid) -> str:
    """The first of the errors, and how many more there are."""
    errors = [problem for problem in error.problems if problem.is_error]
    more = " " + tr("(and {count} more)", count=len(errors) - 1) if len(errors) > 1 else ""
    return (errors[0].message if errors else str(error)) + more


def write_time(path: Path) -> float | None:
    """When a file was last written, in seconds of the epoch; None where that cannot be told."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None
