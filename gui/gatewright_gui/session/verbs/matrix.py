"""Verbs on cells of several agents: allow, ask first, deny, turn on or off, as one edit. They know no row or column.

A few cells are edited at once. Many are worked out beside the window, which takes a moment; an edit that came between
makes the outcome void, and that is said.
"""

from collections.abc import Mapping, Sequence

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Policy
from gatewright.policy.edit import Edit
from gatewright.policy.right import ToolFacts
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.switching import often_switched
from gatewright_gui.session.verbs.rights import Target, Tick, Wish, changes_of

Cells = Mapping[str, Sequence[Target]]
"""By agent: what of each tool is meant."""
Wanted = Wish | Tick
AT_ONCE = 12
"""So many tools of agents are edited without leaving the window's thread."""
TASK = "agents.cells"
_WORDS: dict[Wanted, str] = {
    "allow": "allow",
    "ask": "ask first for",
    "deny": "turn off",
    "on": "turn on",
    "again": "turn on",
    "off": "turn off",
}


def edit_cells(document: Document, deriver: Deriver, tasks: TaskOwner, cells: Cells, wanted: Wanted) -> None:
    """Make one edit of all these cells; while one is worked out a second is refused, and that is said."""
    if TASK in tasks.names:
        document.say("warning", "the cells before are still being worked out; try again in a moment")
    elif sum(map(len, cells.values())) <= AT_ONCE:
        document.push(lambda policy, catalog: edit_of(policy, catalog, cells, wanted))
    else:
        tasks.start(_edit_beside(document, deriver, cells, wanted), TASK)


async def _edit_beside(document: Document, deriver: Deriver, cells: Cells, wanted: Wanted) -> None:
    try:
        edit = await deriver.derive(
            lambda workspace: _worked_out(workspace.policy, workspace.catalog, cells, wanted), aside=True
        )
    except EditRefused as error:
        document.say("warning", str(error))
        return
    if edit is None:
        document.say("warning", f"nothing was changed: the policy was edited meanwhile ({name_of(cells, wanted)})")
    else:
        document.push(lambda _policy, _catalog: edit)


def _worked_out(policy: Policy, catalog: Sequence[ToolFacts], cells: Cells, wanted: Wanted) -> Edit:
    with often_switched():
        return edit_of(policy, catalog, cells, wanted)


def edit_of(policy: Policy, catalog: Sequence[ToolFacts], cells: Cells, wanted: Wanted) -> Edit:
    """The edit, named; empty when all is so already. Raises EditRefused."""
    return Edit(name_of(cells, wanted), changes_of(policy, catalog, cells, wanted))


def name_of(cells: Cells, wanted: Wanted) -> str:
    """What is done, of what, for whom."""
    return f"{_WORDS[wanted]} {_what(cells)} for {_whom(tuple(cells))}"


def _what(cells: Cells) -> str:
    tools = {target.tool for targets in cells.values() for target in targets}
    operations = {(target.tool, name) for targets in cells.values() for target in targets for name in target.operations}
    if len(tools) > 1:
        return f"{len(operations):,} operations of {len(tools):,} tools"
    (tool,) = tools
    if len(operations) > 1:
        return f"{len(operations)} operations of `{tool}`"
    ((_, name),) = operations
    return f"`{name}` of `{tool}`" if name else f"`{tool}`"


def _whom(agent_ids: Sequence[str]) -> str:
    return f"`{agent_ids[0]}`" if len(agent_ids) == 1 else f"{len(agent_ids)} agents"
