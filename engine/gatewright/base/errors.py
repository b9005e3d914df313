"""The tree of exceptions, sorted by who must act; a refusal of a call is a value (Verdict), never one of these.

::

    GatewrightError
    +-- ModelMustCorrect           the model sees the message and tries again
    |   +-- JsonRefused            the arguments are not one acceptable JSON object
    |   +-- ToolFailure            a tool could not do what it was asked
    +-- HumanMustDecide            an operator is needed
    |   +-- EditRefused            an edit does not fit the policy as it is now
    |   +-- NobodyAnswered         a question to an operator that nobody took up
    +-- AuthorMustFix              somebody's file or code is wrong
    |   +-- PolicyInvalid          a policy with errors (all of them in ``problems``)
    |   +-- WorkspaceError         a folder or file is missing, unreadable, not writable
    |   |   +-- SessionConflict    a session that somebody else saved or holds meanwhile
    |   +-- SchemaError            a JSON Schema that cannot be used
    |   +-- RegistrationError      a tool that cannot be registered
    |   |   +-- AlreadyRegistered  the same name and major version twice
    |   +-- NotSupported           a thing the program does not do
    +-- WeMustFix                  a bug of ours
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright.base.problem import Problem


class GatewrightError(Exception):
    """The root of everything that Gatewright raises on purpose."""


class ModelMustCorrect(GatewrightError):
    """The model sent something that it can mend."""


class JsonRefused(ModelMustCorrect):
    """Arguments that are not one acceptable JSON object. ``code`` is stable, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ToolFailure(ModelMustCorrect):
    """A tool could not do what it was asked; the message goes to the model and names nothing hidden.

    ``detail``: what the operator reads, where that is more than the message.
    """

    def __init__(self, message: str, *, code: str = "tool-failed", detail: str = "") -> None:
        super().__init__(message)
        self.code, self.detail = code, detail


class HumanMustDecide(GatewrightError):
    """An operator has to act first."""


class EditRefused(HumanMustDecide):
    """An edit that does not fit the policy as it is now."""


class NobodyAnswered(HumanMustDecide):
    """A question to an operator that nobody took up; the call stays unanswered, which is no refusal."""


class AuthorMustFix(GatewrightError):
    """The author of a file or of a tool has to act."""


class PolicyInvalid(AuthorMustFix):
    """A policy that may not be enforced; ``problems`` holds every finding, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems) or "the policy is invalid")

    def __reduce__(self) -> tuple[type[PolicyInvalid], tuple[Sequence[Problem]]]:
        return type(self), (self.problems,)


class WorkspaceError(AuthorMustFix):
    """A folder or file of the workspace is missing, unreadable or not writable."""


class ForeignStore(WorkspaceError):
    """A store of memory that was made by somebody else or for another workspace: nothing of it is used."""

    code = "memory-foreign"


class DamagedBlock(ToolFailure, WorkspaceError):
    """A stored block cannot be opened; whoever called for it is told so, and what to do."""

    def __init__(self, advice: str = "an operator has to mend or delete it") -> None:
        super().__init__(f"the stored block is damaged and cannot be opened; {advice}", code="block-damaged")


class SessionConflict(WorkspaceError):
    """A session that somebody else saved, deleted or holds meanwhile; load it again, or hold it."""


class SchemaError(AuthorMustFix):
    """A JSON Schema that cannot be used."""


class RegistrationError(AuthorMustFix):
    """A tool that cannot be registered."""


class AlreadyRegistered(RegistrationError):
    """The same tool name and major version twice."""


class NotSupported(AuthorMustFix):
    """A thing that the program does not do; said plainly instead of pretending."""


class WeMustFix(GatewrightError):
    """A bug of ours: a state that the code rules out."""
