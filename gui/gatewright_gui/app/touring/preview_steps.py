"""The steps on the preview's text: folds, find, what came since the last save, copy. By mouse and keyboard only."""

import json

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox

from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.find_bar import FindBar


def last_save(scene: Scene, subject: Subject) -> None:
    """Against what the model saw by the policy as it was saved."""
    with scene.step("difference-saved", "agents", "preview") as step:
        scene.choose("preview.base", "saved")
        ways.choose_row(scene, subject.tool)
        code = scene.text_of("preview.code").splitlines()
        saved = scene.document.workspace.saved_view(subject.agent_id)
        now = scene.document.workspace.view(subject.agent_id)
        form = str(scene.driver.find("preview.format", QComboBox).currentData())
        differs = saved is not None and _plain(saved.tools(form)) != _plain(now.tools(form))
        step.equal("there is a text where the engine's schemas differ", bool(code), differs)
        gone = [line for line in code if line.startswith("-") and ways.names(line, subject.operation)]
        step.check(f"`{subject.operation}` went since the last save", gone)
        scene.choose("preview.base", "unrestricted")


def folding(scene: Scene, subject: Subject) -> None:
    """Fold all, unfold all, copy."""
    whole = ""
    with scene.step("preview-folded", "agents", "preview") as step:
        _enter(scene, subject)
        code = scene.driver.find("preview.code", CodeView)
        whole = code.editor.toPlainText()
        scene.driver.click("preview.fold")
        folded = code.editor.toPlainText()
        step.check("fewer lines are left", folded.count("\n") < whole.count("\n"))
        text = ways.copied(scene, lambda: scene.driver.click("preview.copy"))
        step.equal("what is copied is the whole schema all the same", _json(text), _engine(scene, subject))
    with scene.step("preview-unfolded", "agents", "preview") as step:
        scene.driver.click("preview.unfold")
        step.equal("all of it is back", scene.driver.find("preview.code", CodeView).editor.toPlainText(), whole)


def finding(scene: Scene, subject: Subject) -> None:
    """Find a word in the text."""
    word = subject.asking or subject.tool
    with scene.step("preview-found", "agents", "preview") as step:
        _enter(scene, subject)
        code = scene.driver.find("preview.code", CodeView)
        scene.driver.click("preview.find")
        scene.driver.type(word)
        bar = next(one for one in code.findChildren(FindBar))
        wanted = sum(line.casefold().count(word.casefold()) for line in code.editor.lines)
        scene.driver.holds_soon(lambda: bar.hits == wanted, 2.0)
        step.equal(f"every `{word}` is counted", bar.count.text(), f"1 of {wanted:,}")
        scene.driver.key(Qt.Key.Key_Return)
        step.equal("Enter goes on to the next", bar.count.text(), f"{min(2, wanted)} of {wanted:,}")
    scene.driver.key(Qt.Key.Key_Escape)  # closes the bar


def _enter(scene: Scene, subject: Subject) -> None:
    if scene.window.shelf.current_key != "agents":
        scene.go_to("agents")
    ways.choose_agent(scene, subject.agent_id)
    scene.choose("preview.part", "schema")
    scene.choose("preview.scope", "tool")
    ways.choose_row(scene, subject.tool)


def _engine(scene: Scene, subject: Subject) -> object:
    form = str(scene.driver.find("preview.format", QComboBox).currentData())
    view = scene.document.workspace.view(subject.agent_id)
    at = [listing.name for listing in view.listings()].index(subject.tool)
    return _plain(view.tools(form)[at])


def _plain(value: object) -> object:
    return json.loads(json.dumps(value, default=dict))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
