"""The steps on what a provider makes of the tools, on tokens, and on strangers' tools: by mouse and keyboard only."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QLineEdit, QListView, QPushButton, QToolButton

from gatewright.schema.formats import FORMATS, format_named
from gatewright_gui.app.touring.driver import CTRL
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.app.touring.ways import choose_row
from gatewright_gui.models.lints import LINT
from gatewright_gui.models.tokens import IS_SHOWN, TOOL, TokenColumn
from gatewright_gui.models.tooltree import Column
from gatewright_gui.pages.agents.declare_dialog import DeclareDialog
from gatewright_gui.pages.preview.token_table import TokenTable
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.session.lints import LintRow
from gatewright_gui.session.readings import is_strange


def provider_notes(scene: Scene, subject: Subject) -> None:
    """A click on the provider that has most to say; a click on its first note."""
    with scene.step("provider-notes", "agents", "preview") as step:
        scene.go_to("agents")
        choose_row(scene, subject.tool)
        scene.choose("preview.part", "schema")
        scene.choose("preview.scope", "tool")
        provider = _most_said(scene, subject)
        scene.driver.click(f"preview.provider.{provider}")
        scene.settle()
        combo = scene.driver.find("preview.format", QComboBox)
        step.equal("the format is the provider's", combo.currentData(), provider)
        _compare_notes(scene, subject, provider, step)
        rows = _notes(scene)
        if not rows:
            step.not_here("no provider has anything to say")
            return
        view = scene.driver.find("preview.lints.list", QListView)
        scene.driver.click_cell(view, view.model().index(0, 0))
        scene.settle()
        cursor = scene.driver.find("preview.code", CodeView).editor.textCursor()
        step.equal("the text shows the line that the note speaks of", cursor.blockNumber() + 1, rows[0].line)


def _most_said(scene: Scene, subject: Subject) -> str:
    listings = scene.document.workspace.view(subject.agent_id).listings()
    listing = next(listing for listing in listings if listing.name == subject.tool)
    return max(FORMATS.values(), key=lambda form: len(form.lints(listing))).name


def _notes(scene: Scene) -> list[LintRow]:
    model = scene.driver.find("preview.lints.list", QListView).model()
    rows = [model.index(row, 0).data(LINT) for row in range(model.rowCount())]
    return [row for row in rows if isinstance(row, LintRow)]


def _compare_notes(scene: Scene, subject: Subject, provider: str, step: Step) -> None:
    listings = scene.document.workspace.view(subject.agent_id).listings()
    wanted = format_named(provider).lints_all(listings).get(subject.tool, ())
    shown = sorted((row.level, row.pointer, row.code) for row in _notes(scene))
    step.equal("the notes are the engine's", shown, sorted((lint.level, lint.pointer, lint.code) for lint in wanted))
    for name, form in FORMATS.items():
        says = form.lints_all(listings).get(subject.tool, ())
        button = scene.driver.find(f"preview.provider.{name}", QToolButton)
        step.check(f"the button of {name} says whether it is ok", (": ok" in button.accessibleName()) == (not says))


def tokens(scene: Scene, subject: Subject) -> None:
    """The tokens of every tool, against the engine's count."""
    with scene.step("tokens", "agents", "preview") as step:
        scene.go_to("agents")
        scene.choose("preview.part", "tokens")
        provider = str(scene.driver.find("preview.format", QComboBox).currentData())
        counted = scene.document.workspace.view(subject.agent_id).tokens(provider)
        table = scene.driver.find("preview.tokens.table", TokenTable)
        model = table.model()
        rows = [model.index(row, 0) for row in range(1, model.rowCount())]
        shown = {
            str(row.data(TOOL)): _number(row.siblingAtColumn(TokenColumn.TOKENS).data())
            for row in rows
            if row.data(IS_SHOWN)
        }
        step.equal("each tool costs what the engine counts", shown, dict(counted.per_tool))
        total = _number(model.index(0, TokenColumn.TOKENS).data())
        step.equal("the sum is the engine's", total, counted.total)
        before = _number(model.index(0, TokenColumn.UNRESTRICTED).data())
        step.equal("so is what it would be unrestricted", before, counted.unrestricted)
        rule = scene.driver.find("preview.tokens.rule", ElidedLabel)
        step.equal("it says whether that is exact", rule.text, "exact" if counted.exact else "estimate")
        step.check("and by which encoding", counted.encoding in rule.toolTip())
        in_tree = _number(scene.row(subject.tool, None, Column.TOKENS).data())
        step.equal("the tree says the same of the tool", in_tree, counted.per_tool[subject.tool])
    scene.choose("preview.part", "schema")


def _number(text: object) -> int:
    digits = str(text).replace(",", "").removeprefix("~")
    return int(digits) if digits.isdigit() else -1


def declare(scene: Scene, _subject: Subject, name: str = "declare") -> None:
    """Declare the operations of a tool that takes them as free text, and take it back."""
    found = _free_tool(scene)
    if found is None:
        with scene.step(f"{name}-dialog", "agents") as step:
            step.not_here("no tool takes its operation as free text")
        return
    tool, suggested = found
    wanted = (*suggested[:2], "close_year")
    with scene.step(f"{name}-dialog", "agents") as step:
        scene.go_to("agents")
        choose_row(scene, tool)
        scene.driver.click("agents.declare")
        scene.driver.until(lambda: bool(_dialogs(scene)), "the dialog")
        view = scene.driver.find("declare.operations", QListView)
        step.equal("what its description names is suggested", _dialog(scene).operations.rowCount(), len(suggested))
        step.equal("nothing of it is ticked", _dialog(scene).operations.names, ())
        accept = scene.driver.find("declare.accept", QPushButton)
        step.check("nothing can be declared yet", not accept.isEnabled())
        for row in range(2):
            _tick(scene, view, row)
        scene.driver.click(scene.driver.find("declare.name", QLineEdit))
        scene.driver.type("close_year")
        scene.driver.key(Qt.Key.Key_Return)
        step.equal("what is ticked and added would be declared", _dialog(scene).operations.names, wanted)
        step.check("the dialog says what follows", scene.driver.find("declare.effect").isVisible())
    with scene.step(name, "agents", "preview") as step:
        if not _dialogs(scene):
            step.check("the dialog is open", ok=False)
            return
        scene.driver.click("declare.accept")
        scene.driver.until(lambda: not _dialogs(scene), "the dialog to close")
        scene.settle()
        facts = next(facts for facts in scene.document.catalog if facts.name == tool)
        step.equal("the engine has these operations", facts.operation_names, wanted)
        scene.driver.until(lambda: len(scene.visible_rows(scene.row(tool))) == len(wanted), "the rows")
        step.equal("the tree has them", scene.visible_rows(scene.row(tool)), list(wanted))
    with scene.step(f"{name}-undone", "agents") as step:
        scene.driver.key(Qt.Key.Key_Z, CTRL)
        scene.settle()
        step.equal("one undo takes them away", scene.visible_rows(scene.row(tool)), [])


def _free_tool(scene: Scene) -> tuple[str, tuple[str, ...]] | None:
    workspace = scene.document.workspace
    for facts in scene.document.catalog:
        survey = workspace.survey(facts.name) if is_strange(facts) and not facts.has_operations else None
        if survey is not None and survey.free and len(survey.free[0].suggested) > 1:
            return facts.name, survey.free[0].suggested
    return None


def _tick(scene: Scene, view: QAbstractItemView, row: int) -> None:
    """By keyboard: the box of a list has no place of its own to aim at."""
    scene.driver.click_cell(view, view.model().index(row, 0))
    scene.driver.key(Qt.Key.Key_Space)


def _dialogs(scene: Scene) -> list[DeclareDialog]:
    return [top for top in scene.driver.popups() if isinstance(top, DeclareDialog)]


def _dialog(scene: Scene) -> DeclareDialog:
    return _dialogs(scene)[0]
