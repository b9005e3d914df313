"""The tree of exceptions, sorted by who must act. A refused call is no exception but a value (Verdict).

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

from collections.abc import Sequence

from gatewright.base.problem import Problem


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
    """No operator took up a question. The call stays unanswered, which differs from a refusal."""


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
    """A stored block that cannot be opened; the message advises the caller."""

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
