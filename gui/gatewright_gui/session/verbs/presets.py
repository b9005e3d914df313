"""Verbs on the rights of agents: a preset, the rights of another agent, a reset.

A plan says what is wanted. What it would change is worked out by the worker process, agent by agent; the edit that was
shown is the edit that is made.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from gatewright.workspace.api import (
    AgentDiff,
    Along,
    Edit,
    EditRefused,
    Policy,
    PolicyInvalid,
    Preset,
    ToolFacts,
    Workspace,
    agent_diff,
    apply,
    copy_rights,
    frozen,
    preset_edit,
    reset_tools,
)
from gatewright_gui.qt.language import mark, tr

if TYPE_CHECKING:
    from gatewright_gui.session.document import Document

T = TypeVar("T")
PRESETS: tuple[tuple[Preset, str, str], ...] = (
    (Preset.EVERYTHING, mark("&Everything"), mark("all, and none asks first by its tier")),
    (Preset.STANDARD, mark("&Standard"), mark("all; privileged ones ask first by their tier")),
    (Preset.READ_ONLY, mark("&Read only"), mark("only what is read only by its tier")),
    (Preset.NOTHING, mark("&Nothing"), mark("no operation at all")),
)
"""Each preset with its name in the menu, and what it allows."""


@frozen
class PresetPlan:
    """A preset for these agents."""

    preset: Preset
    agent_ids: tuple[str, ...]


@frozen
class CopyPlan:
    """The rights of `source_id` for these agents."""

    source_id: str
    along: Along
    agent_ids: tuple[str, ...]


@frozen
class ResetPlan:
    """These tools back to their own defaults, for one agent."""

    tools: tuple[str, ...]
    agent_ids: tuple[str, ...]


Plan = PresetPlan | CopyPlan | ResetPlan
NO_EDIT = Edit("", ())


@frozen
class Planned:
    """The edit of a plan; `refusal` says why it cannot be made, empty when it can."""

    edit: Edit
    refusal: str = ""


def edit_of(policy: Policy, catalog: Sequence[ToolFacts], plan: Plan) -> Edit:
    """The one edit of a plan. Raises EditRefused."""
    match plan:
        case PresetPlan(preset, agent_ids):
            return preset_edit(policy, catalog, agent_ids, preset)
        case CopyPlan(source_id, along, agent_ids):
            return copy_rights(policy, source_id, agent_ids, along)
        case ResetPlan(tools, (agent_id,)):
            return reset_tools(policy, catalog, agent_id, tools)
        case ResetPlan():
            raise EditRefused(tr("tools are reset for one agent at a time"))


def difference(workspace: Workspace, plan: Plan, agent_id: str, tell: Callable[[AgentDiff], T]) -> T:
    """The change by the plan to one agent, as `tell` makes it of a difference that may be very large.

    Raises EditRefused.
    """
    policy, catalog = workspace.policy, workspace.catalog
    after = apply(policy, edit_of(policy, catalog, replace(plan, agent_ids=(agent_id,))))
    was, now = workspace.rights(agent_id), workspace.rights_under(after, agent_id)
    return tell(agent_diff(policy.agents[agent_id], after.agents[agent_id], was, now))


def plan_edit(workspace: Workspace, plan: Plan) -> Planned:
    """The edit for all agents of the plan, checked; not on the GUI thread."""
    try:
        edit = edit_of(workspace.policy, workspace.catalog, plan)
        workspace.check(edit)
    except PolicyInvalid as error:
        wrong = next((problem.message for problem in error.problems if problem.is_error), str(error))
        return Planned(NO_EDIT, wrong)
    except EditRefused as error:
        return Planned(NO_EDIT, str(error))
    return Planned(edit)


def make(document: "Document", edit: Edit) -> bool:
    """Make the edit that was shown; one that came between makes it void, and that is said."""
    return document.push(lambda _policy, _tools: edit)
