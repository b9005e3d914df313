"""Scenes of the page Memory: a block is made, what it holds is changed, and its history shows it."""

from PySide6.QtWidgets import QAbstractItemView, QWidget

from gatewright_gui.app.scenes.player import NotHere, Tour, column
from gatewright_gui.qt.widget.empty_state import EmptyState

LABEL = "tour notes"


def memory(tour: Tour) -> None:
    """A block of the first agent is made where there is none, typed over, and its history looked at."""
    if not tour.document.agents:
        raise NotHere("the policy has no agent")
    agent_id = tour.document.agents[0].agent_id
    blocks, theme = tour.document.workspace.blocks(agent_id), tour.window.theme.current
    tour.go_to("memory")
    tour.choose("memory.kind", "blocks")
    tour.choose_agent(agent_id)
    if all(record.label != LABEL for record in blocks.list()):
        has_some = tour.has("memory.new")
        tour.click("memory.new" if has_some else tour.find("memory.empty", EmptyState).action_button)
        tour.until(lambda: tour.has("memory_new"), "the dialog")
        tour.type_over(LABEL, "memory_new.label")
        tour.type_over("What the tour has seen.", "memory_new.content")
        tour.check("a new block is none of the agent's before it is made", LABEL not in _labels(tour))
        tour.show("new_block", f"a block for {agent_id} is typed in")
        tour.click("memory_new.accept")
    tour.until(lambda: LABEL in _labels(tour), "the block")
    view = tour.find("memory.blocks", QAbstractItemView)
    tour.click_cell(view, view.model().index(_labels(tour).index(LABEL), 0))
    tour.choose("memory.part", "value")
    seen = f"Kept for {agent_id}, changed by the operator while it was {theme}."
    tour.type_over(seen, "memory.value")
    tour.click("memory.save")
    tour.until(lambda: blocks.value(LABEL) == seen, "the value to be saved")
    tour.settle()
    tour.check("the list has every block of the agent", _labels(tour), [record.label for record in blocks.list()])
    tour.check("nothing typed is left unsaved", not tour.find("memory.save", QWidget).isEnabled())
    tour.show("memory", f"`{LABEL}` of {agent_id}: what it holds, and what the agent may do with it")
    tour.choose("memory.part", "history")
    steps = blocks.history(LABEL)
    tour.check("every change is there", column(tour.model_of("memory.steps"), 3)[-1:], [steps[0].kind])
    tour.check("as many as there are", tour.model_of("memory.steps").rowCount(), len(steps))
    tour.until(lambda: f"+{seen}" in tour.text_of("memory.step_code"), "what the last one changed")
    tour.show("history", f"{len(steps)} changes of `{LABEL}`, and what the last one changed")


def _labels(tour: Tour) -> list[str]:
    return column(tour.model_of("memory.blocks"))
