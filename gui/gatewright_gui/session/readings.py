"""How the operations of strangers' tools were found, and what is left to the operator. It changes nothing.

A reading is in words: `mark` for a cell, `said` for the reasons; both empty where there is nothing to tell.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from gatewright.workspace.api import Policy, ToolFacts, Workspace, frozen, settings_of
from gatewright_gui.qt.language import mark, tr

if TYPE_CHECKING:
    from gatewright.workspace.api import Survey


Kind = Literal["declared", "read", "guessed", "free", "open", "maybe", "plain"]
BUILT_IN = "built-in"
COMPOSITION = "composition"
_CONFIDENCE = {"high": mark("high"), "medium": mark("medium"), "low": mark("low")}
DECLARE, CHOOSE = mark("Declare operations…"), mark("Treat a field as operations…")


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
    """Tell whether somebody else made the tool, so that its operations are read off its schema."""
    return facts.origin not in {BUILT_IN, COMPOSITION}


def readings(workspace: Workspace) -> Mapping[str, Reading]:
    """The reading of every stranger's tool; looks through their schemas, so not on the GUI thread."""
    policy, found = workspace.policy, dict[str, Reading]()
    for facts in workspace.catalog:
        survey = workspace.survey(facts.name) if is_strange(facts) else None
        if survey is not None:
            found[facts.name] = reading_of(policy, facts, survey)
    return found


def reading_of(policy: Policy, facts: ToolFacts, survey: "Survey") -> Reading:
    """The way in which one tool is read now."""
    settings = settings_of(policy, facts.name, facts.major)
    ends = tuple(end.reason for end in survey.open_ends)
    if settings is not None and settings.declares:
        text = tr("it has its operations by [tools.{tool}]")
        if settings.operation_field == "":
            text = tr("it has no operations by [tools.{tool}]")
        elif settings.operation_field:
            text = tr("it has its operations at `{field}` by [tools.{tool}]")
        said = text.format(field=settings.operation_field, tool=facts.name)
        return Reading("declared", tr("declared"), (said, *ends), CHOOSE)
    found = survey.found
    if found is not None:
        if found.confidence == "high":
            return Reading("read", "", ends)
        sure = tr(_CONFIDENCE.get(found.confidence, found.confidence))
        text = tr(
            "its operations are guessed, {confidence} confidence: the values of `{field}`; look whether that is so",
            confidence=sure,
            field=found.field,
        )
        return Reading("guessed", tr("guessed: {confidence}", confidence=sure), (text, *ends))
    return _unread(survey, ends)


def _unread(survey: "Survey", ends: tuple[str, ...]) -> Reading:
    if survey.free:
        first = survey.free[0]
        text = tr("`{field}` is free text: no operations are declared, so the whole tool is one box", field=first.field)
        if first.suggested:
            hint = tr("its description names {count}", count=len(first.suggested))
            text = f"{text}; {hint}"
        return Reading("free", tr("free text"), (text, *ends), DECLARE)
    if survey.open_ends:
        return Reading("open", tr("open-ended"), ends, DECLARE)
    if survey.readings:
        low = survey.readings[0]
        text = tr(
            "`{field}` has {count} values that may be operations, and are not taken for them",
            field=low.field,
            count=len(low.operations),
        )
        return Reading("maybe", "", (text,))
    return Reading("plain", act=DECLARE)
