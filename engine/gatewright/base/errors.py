"""Everything that can go wrong: the tree of exceptions, by who must act, and findings about files with their places.

::

    GatewrightError
    +-- ModelMustCorrect           the model sees the message and tries again
    |   +-- JsonRefused            the arguments are not one acceptable JSON object
    |   +-- ToolFailure            a tool could not do what it was asked
    +-- HumanMustDecide            an operator is needed
    |   +-- EditRefused            an edit does not fit the policy as it is now
    |   +-- NobodyAnswered         no operator took up a question
    +-- AuthorMustFix              somebody's file or code is wrong
    |   +-- PolicyInvalid          a policy with errors (all of them in ``problems``)
    |   +-- WorkspaceError         a folder or file is missing, unreadable, not writable
    |   |   +-- SessionConflict    somebody else saved or holds the session
    |   +-- SchemaError            a JSON Schema that cannot be used
    |   +-- RegistrationError      a tool that cannot be registered
    |   |   +-- AlreadyRegistered  this name and major version exist already
    |   +-- NotSupported           the program cannot do this
    +-- WeMustFix                  a bug of ours
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from gatewright.base.frozen import frozen
from gatewright.base.printable import VERBS, printable


class GatewrightError(Exception):
    """The root of every exception that Gatewright raises on purpose."""


class ModelMustCorrect(GatewrightError):
    """The model sent something wrong and can correct it."""


class JsonRefused(ModelMustCorrect):
    """Arguments that are not one acceptable JSON object. ``code`` is stable, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ToolFailure(ModelMustCorrect):
    """A tool could not do its task; the model reads the message, which names nothing hidden.

    ``detail``: a longer message for the operator.
    """

    def __init__(self, message: str, *, code: str = "tool-failed", detail: str = "") -> None:
        super().__init__(message)
        self.code, self.detail = code, detail


class HumanMustDecide(GatewrightError):
    """An operator has to act first."""


class EditRefused(HumanMustDecide):
    """An edit that does not fit the policy as it is now."""


class NobodyAnswered(HumanMustDecide):
    """No operator took up a question, so the call stays unanswered, which differs from a refusal."""


class AuthorMustFix(GatewrightError):
    """The author of a file or of a tool has to act."""


class PolicyInvalid(AuthorMustFix):
    """A policy with errors, which nothing may enforce; ``problems`` holds every finding, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems) or "the policy is invalid")

    def __reduce__(self) -> tuple[type[PolicyInvalid], tuple[Sequence[Problem]]]:
        return type(self), (self.problems,)


class WorkspaceError(AuthorMustFix):
    """A folder or file of the workspace is missing, unreadable or not writable."""


class ForeignStore(WorkspaceError):
    """A memory store that belongs to somebody else or to another workspace; the program uses nothing of it."""

    code = "memory-foreign"


class DamagedBlock(ToolFailure, WorkspaceError):
    """A stored block that cannot be opened; the message says what to do."""

    def __init__(self, advice: str = "an operator has to mend or delete it") -> None:
        super().__init__(f"the stored block is damaged and cannot be opened; {advice}", code="block-damaged")


class SessionConflict(WorkspaceError):
    """A session that somebody else saved, deleted or holds; load it again, or hold it."""


class SchemaError(AuthorMustFix):
    """A JSON Schema that cannot be used."""


class RegistrationError(AuthorMustFix):
    """A tool that cannot be registered."""


class AlreadyRegistered(RegistrationError):
    """A tool of this name and major version exists already."""


class NotSupported(AuthorMustFix):
    """A request for something that the program cannot do."""


class WeMustFix(GatewrightError):
    """A bug of ours: the code reached a state that it rules out."""


Address = tuple[str | int, ...]
"""A key path into the policy in its canonical shape, e.g. ``("agents", "archivist", "tool_rules", 0)``."""
ToolPart = tuple[str, str | None]
"""A tool's name and one of its operations; None: the tool as a whole."""


class Severity(StrEnum):
    """The severity of a problem: an error keeps the policy from being enforced, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@frozen
class Place:
    """A position in a file; line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class Subject:
    """The topic of a finding: a part of the policy at ``address``, and the agents and tools that it concerns.

    ``agents``: ids; empty for a finding that concerns all agents alike. ``tools``: names without a version, each with
    one operation, or None for the tool as a whole.
    """

    address: Address
    agents: tuple[str, ...] = ()
    tools: tuple[ToolPart, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Shape: address (a list), agents, tools (each with tool and operation)."""
        tools = [{"tool": tool, "operation": operation} for tool, operation in self.tools]
        return {"address": list(self.address), "agents": list(self.agents), "tools": tools}


@frozen
class Problem:
    """One finding. ``code`` is stable and kebab-case; ``near_miss`` is the likely intended word.

    ``subject`` None: it concerns the text of the file, or no part of it.
    """

    severity: Severity
    code: str
    message: str
    place: Place | None = None
    near_miss: str | None = None
    subject: Subject | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f" (did you mean `{self.near_miss}`?)" if self.near_miss else ""
        return f"{where}{self.severity}: {self.message}{hint} [{self.code}]"

    @property
    def is_error(self) -> bool:
        """True for a problem that keeps the policy from being enforced."""
        return self.severity is Severity.ERROR

    def to_json(self) -> dict[str, object]:
        """Shape: severity, code, message, file, line, column, near_miss, subject (each None when unknown)."""
        place = self.place
        return {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "near_miss": self.near_miss,
            "subject": self.subject.to_json() if self.subject else None,
        }


def near_miss(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that ``word`` misspells, or None.

    It compares word by word, and a word may differ only in spelling. So it never mistakes one verb for another, nor
    treats a word that the candidates use as a slip. A name without its catalog's prefix finds the full name, unless
    several have it (``owners``); a name with an operation behind it finds the tool.
    """
    options = dict.fromkeys(candidates)
    if same := owners(word, options):
        return same[0] if len(same) == 1 else None
    written, known = _words(word), _words_of(tuple(options))
    found: dict[int, list[str]] = {}
    for option in options:
        apart = _slips(written, _words(option), known)
        if apart is None and "." in option:
            in_catalog = _slips(written, _words(option.partition(".")[2]), known)
            apart = None if in_catalog is None else in_catalog + _WITHOUT_PREFIX
        if apart is not None:
            found.setdefault(apart, []).append(option)
    if not found:
        tool = word.rpartition(".")[0]
        takes_operation = any(option.startswith(f"{tool}.") for option in options)
        return tool if tool in options and not takes_operation else None
    best = found[min(found)]
    best = [option for option in best if option.count(".") == word.count(".")] or best
    if len({(option.rpartition(".")[0], VERBS.intersection(_words(option))) for option in best}) > 1:
        return None
    return best[0] if len(best) == 1 else max(best, key=lambda one: difflib.SequenceMatcher(None, word, one).ratio())


def owners(word: str, candidates: Iterable[str]) -> list[str]:
    """List the candidates that consist of a catalog's prefix and ``word``."""
    return sorted(option for option in candidates if option.endswith(f".{word}")) if word else []


def choice_hint(word: str, candidates: Iterable[str]) -> str:
    """End a message about a name that several servers have, each under its prefix; else return empty text."""
    same = owners(word, candidates)
    if len(same) < 2:
        return ""
    shown = ", ".join(f"`{name}`" for name in same[:_LISTED])
    more = f" and {len(same) - _LISTED} more" if len(same) > _LISTED else ""
    return f": {len(same)} servers have it: choose one of {shown}{more}"


_LISTED = 5
_WITHOUT_PREFIX = 10
"""More than the slips of a single name: a name that is close as a whole comes first."""
_SLIPS = 2
"""The most slips in a misspelt name; a name with more is a different one."""


@lru_cache(4096)
def _words(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W_]+", spaced.casefold()))


@lru_cache(16)
def _words_of(names: tuple[str, ...]) -> frozenset[str]:
    """Collect the verbs and the words of the names."""
    return VERBS.union(*map(_words, names))


def _slips(written: tuple[str, ...], meant: tuple[str, ...], known: Collection[str]) -> int | None:
    """Count the words with another spelling or a missing end; None if one is another word."""
    one, other = "".join(written), "".join(meant)
    if one == other:
        return 0
    if len(written) != len(meant):
        is_other = not _is_one_slip(one, other) or any(word in VERBS and word not in other for word in written[:1])
        return None if is_other else 1
    apart = [(left, right) for left, right in zip(written, meant, strict=True) if left != right]
    is_near = len(apart) <= _SLIPS and all(
        left.rstrip("s") == right.rstrip("s")
        or (left not in known and (_is_one_slip(left, right) or (len(left) > 3 and right.startswith(left))))
        for left, right in apart
    )
    return len(apart) if is_near else None


def _is_one_slip(one: str, other: str) -> bool:
    """Tell whether the only difference is one omitted, added, wrong or swapped letter."""
    if abs(len(one) - len(other)) > 1 or max(len(one), len(other)) < 3:
        return False
    start = _alike(one, other)
    one, other = one[start:], other[start:]
    end = _alike(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    return max(len(one), len(other)) < 2 or (len(one) == 2 and one == other[::-1])


def _alike(one: str, other: str) -> int:
    """Count the letters at the beginning that both share."""
    at = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        at += 1
    return at


def near_hint(word: str, candidates: Iterable[str], *, listed: bool = False) -> str:
    """Ask in brackets, at the end of a message, whether the author meant the candidate most like ``word``.

    Without a close candidate returns an empty text or, if ``listed``, all candidates.
    """
    options = list(candidates)
    close = near_miss(word, options)
    if close:
        return f" (did you mean `{close}`?)"
    return f" (there are: {', '.join(options) or 'none'})" if listed else ""


BOM = "\ufeff"
"""The byte order mark that a UTF-8 file may begin with."""
RawPath = tuple[str | int, ...]
"""A path as the text nests its tables, e.g. ``("sources", 0, "id")``."""
MAX_COMPARISONS = 20_000
MAX_WORD = 64
MAX_SHOWN = 200


@frozen
class Finding:
    """A fault of one part of a text, before its place in the text is known.

    ``agent_id``, ``tools``: whom it concerns, if the path alone does not show that.
    """

    path: RawPath
    at_value: bool
    severity: Severity
    code: str
    message: str
    near_miss: str | None
    agent_id: str | None = None
    tools: tuple[ToolPart, ...] = ()


class Report:
    """The findings so far; ``has_errors`` becomes true with the first error.

    It searches near misses only while that is cheap.
    """

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._comparisons = 0
        self.has_errors = False

    def error(self, path: RawPath, code: str, message: str, *, near: str | None = None, at_value: bool = True) -> None:
        """Add an error at the value of ``path`` (or at its key)."""
        self.has_errors = True
        self._findings.append(Finding(path, at_value, Severity.ERROR, code, message, near))

    def warning(
        self,
        path: RawPath,
        code: str,
        message: str,
        *,
        near: str | None = None,
        at_value: bool = False,
        agent_id: str | None = None,
        tools: tuple[ToolPart, ...] = (),
    ) -> None:
        """Add a warning at the key of ``path`` (or at its value); ``agent_id``, ``tools``: see ``Finding``."""
        self._findings.append(Finding(path, at_value, Severity.WARNING, code, message, near, agent_id, tools))

    def near(self, word: str, candidates: Iterable[str]) -> str | None:
        """Return the candidate that the author probably meant by ``word``."""
        if self._comparisons >= MAX_COMPARISONS or len(word) > MAX_WORD:
            return None
        options = sorted(candidates)[: MAX_COMPARISONS - self._comparisons]
        self._comparisons += len(options)
        return near_miss(word, options)

    @property
    def first_error(self) -> tuple[RawPath, str] | None:
        """Path and message of the first error; None without one."""
        found = (finding for finding in self._findings if finding.severity is Severity.ERROR)
        return next(((finding.path, finding.message) for finding in found), None)

    @property
    def error_paths(self) -> tuple[RawPath, ...]:
        """Paths of the errors."""
        return tuple(finding.path for finding in self._findings if finding.severity is Severity.ERROR)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the reading."""
        return tuple(self._findings)


def shown(word: str) -> str:
    """Put ``word`` in backticks on one line, and shorten a very long one."""
    text = printable(word[:MAX_SHOWN])
    return f"`{text}…`" if len(word) > MAX_SHOWN else f"`{text}`"
