"""The words for the model: what to do next, nothing hidden, no echo of what it sent. They do not decide anything."""

from __future__ import annotations

PREFIX = "Tool execution failed:"

NO_SUCH_TOOL = "no tool of that name is available to you; use one of the tools that you were given"
INTERNAL = "the call could not be checked; try something else"
PLACE = "that path is not available to you; choose another one"
PLACE_FIXED = "that path may not be changed in this way; choose another one or another way"
NO_BLOCK = "there is no block with that label"
BLOCK_FIXED = "that block may not be changed in this way; choose another one or another way"
NO_SOURCE = "no file source is available to you"
UNANSWERED = "this call needs the approval of an operator, and nobody answered; go on without it"
AFTER_UNANSWERED = (
    "an earlier call of this turn was not approved, so this one was not made; make it again if it is still wanted"
)
REFUSED = "an operator did not approve this call; go on without it"
STALE = "what this call would do has changed since an operator approved it; make the call again"
NOT_IN_TIME = "this call needs the approval of an operator, and none came in time; go on without it"
TOO_MANY_ASKS = "too many calls wait for an operator already; go on without this one, or try it again later"
NOT_ASKABLE = "this call needs the approval of an operator, who could not be asked; go on without it"
WITHDRAWN = "the approval was taken back, or an equal call used it; make the call again if it is still needed"
UNRECORDED = "the call could not be recorded and was not made; try again later"
RESULT_UNRECORDED = "the call was made, but its result could not be recorded and is withheld"
TIMED_OUT = "the tool took too long and was stopped"
ABANDONED = "the tool took too long and its result was discarded"
CRASHED = "the tool had an internal error; try other arguments or go on without it"
MISMATCH = "the tool ran, but its result is not what it should be and was not taken; do not make this call again"
NO_USER = "this tool works for one user, and this session belongs to none; go on without it"
NOT_INSTEAD = "this call may not go on to another address; make a call of its own for it"
FOREIGN = "what is remembered here cannot be used before an operator has looked at it; go on without it"
NOT_IN_COPY = "this is a copy of the workspace, and the tool would act outside of it; nothing was done"
MARKED = "the text holds `[REDACTED]`, the mark of something that you were not shown; write without it"


def to_model(text: str) -> str:
    """``text`` with the prefix that tells the model that its call was not done."""
    return f"{PREFIX} {text}"
