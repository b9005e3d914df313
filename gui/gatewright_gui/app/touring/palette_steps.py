"""The steps on the window itself: the self-check in detail, the command palette. By mouse and keyboard only."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QListView

from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.driver import CTRL
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.models.palette import ENTRY, PaletteEntry
from gatewright_gui.models.selfcheck import AGENT
from gatewright_gui.qt.widget.item_view import TableView


def selfcheck(scene: Scene) -> None:
    """A click on the count at the foot of the window."""
    with scene.step("selfcheck", "agents") as step:
        scene.driver.click("status.selfcheck")
        ways.wait_for_dialog(scene, "selfcheck")
        found = scene.document.workspace.selfcheck()
        model = scene.driver.find("selfcheck.agents", TableView).model()
        scene.driver.until(lambda: model.rowCount() == len(scene.document.agents), "the agents that were checked")
        agents = [model.index(row, 0).data(AGENT).agent_id for row in range(model.rowCount())]
        step.equal("every agent was checked", agents, [agent.agent_id for agent in scene.document.agents])
        notes = scene.driver.find("selfcheck.notes", TableView).model().rowCount()
        step.check("it notes every difference that the engine found", notes >= len(found.differences))
        said = scene.driver.find("selfcheck.summary", QLabel).text()
        step.check("its heading has the number of answers", f"{found.checked:,}" in said)
    if ways.dialog(scene, "selfcheck") is not None:
        scene.driver.click("selfcheck.close")


def palette(scene: Scene) -> None:
    """Ctrl+K, letters, Enter: a tool of an agent."""
    target = _target(scene)
    with scene.step("palette", "agents") as step:
        scene.go_to("problems")
        scene.driver.key(Qt.Key.Key_K, CTRL)
        scene.driver.until(lambda: scene.driver.has("palette"), "the palette")
        if target is None:
            scene.driver.type(">export")
            entries = _entries(scene)
            step.check("what fits is listed", entries and all(entry.kind == "command" for entry in entries))
            scene.driver.key(Qt.Key.Key_Escape)
            return
        scene.driver.type(target[1])
        entries = _entries(scene)
        step.check("what fits is listed", bool(entries))
        step.check("each row has what was typed", all(target[1] in f"{e.text} {e.detail}" for e in entries))
    if target is None:
        return
    with scene.step("palette-chosen", "agents") as step:
        scene.driver.key(Qt.Key.Key_Return)
        scene.driver.until(lambda: scene.window.shelf.current_key == "agents", "the page of what was chosen")
        scene.settle()
        step.check("the palette is gone", not scene.driver.has("palette"))
        step.equal("the tool is the chosen one", scene.window.selection.tool, target[1])


def _target(scene: Scene) -> tuple[str, str] | None:
    for agent in scene.document.agents:
        for tool in scene.document.rights(agent.agent_id):
            return agent.agent_id, tool
    return None


def _entries(scene: Scene) -> list[PaletteEntry]:
    model = scene.driver.find("palette.list", QListView).model()
    return [model.index(row, 0).data(ENTRY) for row in range(model.rowCount())]
