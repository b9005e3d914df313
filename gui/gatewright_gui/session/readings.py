"""How the operations of strangers' tools were found, and what is left to the operator. It changes nothing.

A reading is in words: `mark` for a cell, `said` for the reasons; both empty where there is nothing to tell.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from gatewright.workspace.api import Policy, ToolFacts, Workspace, frozen, settings_of

if TYPE_CHECKING:
    from gatewright.workspace.api import Survey


Kind = Literal["declared", "read", "guessed", "free", "open", "maybe", "plain"]
BUILT_IN = "built-in"
DECLARE, CHOOSE = "Declare operations…", "Treat a field as operations…"


@frozen
class Reading:
    """`guessed`: found, but worth a look; `free`: a text that may be anything; `open`: no list can gate it; `maybe`: a
    list that is left alone. `act`: what the operator may do, as a button says it.
    """

    kind: Kind
    mark: str = ""
    said: tuple[str, ...] = ()
    act: str = CHOOSE


def is_strange(facts: ToolFacts) -> bool:
    """Whether somebody else made the tool, so that its operations are read off its schema."""
    return facts.origin != BUILT_IN


def readings(workspace: Workspace) -> Mapping[str, Reading]:
    """The reading of every stranger's tool; looks through their schemas, so not on the GUI thread."""
    policy, found = workspace.policy, dict[str, Reading]()
    for facts in workspace.catalog:
        survey = workspace.survey(facts.name) if is_strange(facts) else None
        if survey is not None:
            found[facts.name] = reading_of(policy, facts, survey)
    return found


def reading_of(policy: Policy, facts: ToolFacts, survey: "Survey") -> Reading:
    """How one tool is read now."""
    settings = settings_of(policy, facts.name, facts.major)
    ends = tuple(end.reason for end in survey.open_ends)
    if settings is not None and settings.declares:
        where = f" at `{settings.operation_field}`" if settings.operation_field else ""
        what = "has no operations" if settings.operation_field == "" else f"has its operations{where}"
        return Reading("declared", "declared", (f"it {what} by [tools.{facts.name}]", *ends), CHOOSE)
    found = survey.found
    if found is not None:
        if found.confidence == "high":
            return Reading("read", "", ends)
        text = f"its operations are guessed, {found.confidence} confidence: the values of `{found.field}`"
        return Reading("guessed", f"guessed: {found.confidence}", (f"{text}; look whether that is so", *ends))
    return _unread(survey, ends)


def _unread(survey: "Survey", ends: tuple[str, ...]) -> Reading:
    if survey.free:
        first = survey.free[0]
        text = f"`{first.field}` is free text: no operations are declared, so the whole tool is one box"
        hint = f"; its description names {len(first.suggested)}" if first.suggested else ""
        return Reading("free", "free text", (f"{text}{hint}", *ends), DECLARE)
    if survey.open_ends:
        return Reading("open", "open-ended", ends, DECLARE)
    if survey.readings:
        low = survey.readings[0]
        text = f"`{low.field}` has {len(low.operations)} values that may be operations, and are not taken for them"
        return Reading("maybe", "", (text,))
    return Reading("plain", act=DECLARE)
