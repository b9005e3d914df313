"""The steps on the matrix of tools and agents: cells, keys for many of them, what differs. By mouse and keyboard."""

from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QPoint, Qt

from gatewright.policy.right import Layer
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.driver import CTRL, SHIFT, DriveError
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.models.matrix import UNKNOWN, MatrixModel, Place
from gatewright_gui.pages.agents.matrix_view import MatrixView
from gatewright_gui.qt.widget.segmented import Segmented

ARROW = 8
"""Where in a row's header its arrow is."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An operation that two agents are allowed, in columns beside each other."""

    operation: str
    agent_ids: tuple[str, str]


def matrix(scene: Scene, subject: Subject) -> None:
    """Ctrl+M, and what the cells say."""
    with scene.step("matrix", "matrix", "preview") as step:
        _enter(scene)
        view, model = _view(scene), _model(scene)
        step.check("it takes the place of list and tree", view.isVisible() and not scene.tree.isVisible())
        step.equal("each agent is a column", [a.agent_id for a in model.agents], _agents(scene))
        rights = scene.document.rights(subject.agent_id)
        column = model.column_of(subject.agent_id)
        found, wanted = dict[str, str](), dict[str, str]()
        for tool, right in rights.items():
            row = model.row_of(Place(tool, None))
            if right.facts.has_operations:
                on = sum(not op.is_hidden for op in right.operations)
                found[tool], wanted[tool] = model.index(row, column).data(), f"{on}/{len(right.operations)}"
        step.equal(f"the cells of `{subject.agent_id}` count what the engine allows", found, wanted)
        step.check("the preview stays beside", scene.driver.has("preview.part"))


def open_row(scene: Scene, subject: Subject) -> None:
    """The arrow of a tool: its operations come below."""
    with scene.step("matrix-operations", "matrix", "preview") as step:
        model, view = _model(scene), _view(scene)
        row = model.row_of(Place(subject.tool, None))
        names = scene.document.rights(subject.agent_id)[subject.tool].facts.operation_names
        if not model.is_open(row):
            _press_arrow(scene, row)
        places = [model.place_at(row + 1 + at) for at in range(len(names))]
        step.equal("its operations are rows", [p.operation if p else None for p in places], list(names))
        at = model.row_of(Place(subject.tool, subject.operation))
        scene.driver.click_cell(view, model.index(at, model.column_of(subject.agent_id)), QPoint(3, 3))
        scene.driver.until(lambda: scene.window.selection.operation == subject.operation, "the tree to follow")
        scene.settle()
        step.equal("the cell's agent is the chosen one", scene.window.selection.agent_id, subject.agent_id)
        said = str(model.index(at, model.column_of(subject.agent_id)).data())
        is_off = ways.right_of(scene, subject.agent_id, subject.tool, subject.operation).is_hidden
        step.equal("the cell says whether it is on", said == "off", is_off)


def keys_on_cells(scene: Scene, subject: Subject) -> None:
    """Two cells beside each other, K: one edit for both agents; undone at once."""
    before = scene.document.policy
    with scene.step("matrix-ask", "matrix") as step:
        pair = _pair(scene, subject)
        if pair is None:
            step.not_here("no two agents beside each other are allowed the same operation")
            return
        model, view = _model(scene), _view(scene)
        row = model.row_of(Place(subject.tool, pair.operation))
        first, last = (model.column_of(agent_id) for agent_id in pair.agent_ids)
        edits = scene.document.undo_stack.index()
        scene.driver.click_cell(view, model.index(row, first), QPoint(3, 3))
        scene.driver.click_cell(view, model.index(row, last), QPoint(3, 3), SHIFT)
        scene.driver.key(Qt.Key.Key_K)
        scene.driver.until(lambda: scene.document.undo_stack.index() > edits, "the edit")
        scene.settle()
        verdicts = [ways.right_of(scene, name, subject.tool, pair.operation).verdict for name in pair.agent_ids]
        step.equal("both agents ask first", verdicts, [Verdict.ASK, Verdict.ASK])
        step.equal("it is one edit", scene.document.undo_stack.index(), edits + 1)
        step.check("its name says what it was", pair.operation in scene.document.undo_stack.undoText())
    with scene.step("matrix-undone", "matrix") as step:
        ways.undo(scene)
        step.equal("one undo takes both back", scene.document.policy, before)


def differing(scene: Scene, _subject: Subject) -> None:
    """Only the rows in which agents differ."""
    with scene.step("matrix-differs", "matrix") as step:
        _enter(scene)
        model = _model(scene)
        scene.driver.click("agents.matrix.open_all")
        scene.driver.click("agents.matrix.differs")
        scene.settle()
        _wait_for_columns(scene)
        wanted = _differing(scene)
        places = [place for row in range(model.rowCount()) if (place := model.place_at(row)) is not None]
        shown = {(place.tool, place.operation) for place in places if place.operation is not None}
        step.equal("what is left is what the engine has differing", shown, {one for one in wanted if one[1]})
        tools = {place.tool for place in places if place.operation is None}
        step.equal("with the tools that they are of", tools, {tool for tool, _ in wanted})
        scene.driver.click("agents.matrix.differs")
        scene.driver.click("agents.matrix.close_all")
        step.equal("a second click brings all tools back", model.rowCount(), len(scene.document.catalog))


def leave(scene: Scene, _subject: Subject) -> None:
    """Ctrl+M again."""
    with scene.step("matrix-left", "agents", "preview") as step:
        if scene.driver.find("agents.mode", Segmented).current == "matrix":
            scene.driver.key(Qt.Key.Key_M, CTRL)
        scene.settle()
        step.check("the tree is back", scene.tree.isVisible() and not _view(scene).isVisible())
        step.check("so is the list of agents", scene.driver.has("agents.list"))


def show_again(scene: Scene, subject: Subject) -> None:
    """The matrix in the theme that is on."""
    matrix(scene, subject)
    open_row(scene, subject)
    with scene.step("matrix-selection", "matrix") as step:
        view, model = _view(scene), _model(scene)
        last = model.index(min(model.rowCount(), 6) - 1, model.columnCount() - 1)
        scene.driver.click_cell(view, model.index(0, 0), QPoint(3, 3))
        scene.driver.click_cell(view, last, QPoint(3, 3), SHIFT)
        wanted = (last.row() + 1) * (last.column() + 1)
        step.equal("a block is selected", len(view.selectionModel().selectedIndexes()), wanted)
    leave(scene, subject)


def _enter(scene: Scene) -> None:
    if scene.window.shelf.current_key != "agents":
        scene.go_to("agents")
    mode = scene.driver.find("agents.mode", Segmented)
    if mode.current != "matrix":
        scene.driver.key(Qt.Key.Key_M, CTRL)
        scene.driver.until(lambda: mode.current == "matrix", "the matrix")
    scene.settle()
    _wait_for_columns(scene)


def _wait_for_columns(scene: Scene) -> None:
    model = _model(scene)
    columns = range(min(model.columnCount(), len(_view(scene).agents_in_view())))
    rows = model.rowCount()
    scene.driver.until(
        lambda: not rows or all(model.index(0, column).data() != UNKNOWN for column in columns), "the cells"
    )


def _press_arrow(scene: Scene, row: int) -> None:
    view = _view(scene)
    view.scrollTo(view.model().index(row, 0))
    edge = view.tool_edge
    high = edge.sectionSize(row)
    scene.driver.click(edge.viewport(), QPoint(ARROW, edge.sectionViewportPosition(row) + high // 2))


def _pair(scene: Scene, subject: Subject) -> Pair | None:
    agents = _agents(scene)
    for names in pairwise(agents):
        rights = [scene.document.rights(name).get(subject.tool) for name in names]
        if None in rights:
            continue
        allowed = [
            {op.operation for op in right.operations if op.verdict is Verdict.ALLOW}
            for right in rights
            if right is not None
        ]
        both = [name for name in scene.visible_rows(scene.row(subject.tool)) if all(name in one for one in allowed)]
        if both:
            return Pair(both[0], (names[0], names[1]))
    return None


def _differing(scene: Scene) -> set[tuple[str, str]]:
    """What agents are not alike in, by the engine: what is shown of the box, and what it comes to."""
    found: dict[tuple[str, str], set[object]] = {}
    for agent_id in _agents(scene):
        for tool, right in scene.document.rights(agent_id).items():
            for op in right.operations:
                asks = {reason.layer for reason in op.reasons if reason.verdict is Verdict.ASK}
                locked = op.verdict is Verdict.ASK and asks != {Layer.APPROVALS}
                found.setdefault((tool, op.operation), set()).add((op.verdict, op.ticked, locked))
    return {place for place, states in found.items() if len(states) > 1}


def _agents(scene: Scene) -> list[str]:
    return [agent.agent_id for agent in scene.document.agents]


def _view(scene: Scene) -> MatrixView:
    return scene.driver.find("agents.matrix", MatrixView)


def _model(scene: Scene) -> MatrixModel:
    model = _view(scene).model()
    if not isinstance(model, MatrixModel):
        raise DriveError("the matrix has no model")
    return model
