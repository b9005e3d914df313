"""The steps on the whole policy: its text, what saving would change, problems, undo and redo, the export."""

import difflib
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QPushButton, QTableView

from gatewright_gui.app.touring.driver import CTRL, CTRL_SHIFT
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.session.opening import POLICY_NAME, open_workspace

MAX_EDITS = 100


def show_text(scene: Scene, name: str = "toml") -> None:
    """The policy as it would be saved."""
    with scene.step(name, "toml") as step:
        scene.go_to("toml")
        scene.choose("toml.part", "text")
        text = scene.document.workspace.text()
        step.equal("the page holds the policy's text", scene.text_of("toml.code"), _shown(text))


def show_difference(scene: Scene, name: str = "toml-difference") -> None:
    """What saving would change on disk."""
    with scene.step(name, "toml") as step:
        scene.go_to("toml")
        scene.choose("toml.part", "difference")
        file = scene.document.workspace.policy_path
        old, new = file.read_bytes().decode(), scene.document.workspace.text()
        if old == new:
            step.check("nothing is changed, and the page says so", scene.driver.has("toml.empty"))
            return
        lines = difflib.ndiff(old.splitlines(), new.splitlines())
        wanted = sorted(line[0] + line[2:] for line in lines if line[0] in "+-")
        shown = scene.text_of("toml.code").splitlines()
        changed = sorted(s for s in shown if s[:1] in {"+", "-"} and not s.startswith(("+++", "---")))
        step.equal("the page shows the lines that differ from the disk", changed, wanted)
        step.check("there are such lines", bool(wanted))


def undo_everything(scene: Scene) -> None:
    """Undo to the beginning, and redo to where one was."""
    text, edits = scene.document.workspace.text(), 0
    with scene.step("undo-all", "toml") as step:
        while scene.driver.find("top.undo").isEnabled() and edits < MAX_EDITS:
            scene.driver.key(Qt.Key.Key_Z, CTRL)
            edits += 1
        scene.settle()
        saved = scene.document.workspace.policy_path.read_bytes().decode()
        step.equal(
            "after undoing everything the text is the file's, byte by byte", scene.document.workspace.text(), saved
        )
        said = scene.driver.find("status.saved", QLabel).text()
        step.equal("the window says how it stands to the file", said, "as on disk")
        step.check("there is nothing to save", not scene.driver.find("top.save").isEnabled())
    with scene.step("redo-all", "toml") as step:
        for _ in range(edits):
            scene.driver.key(Qt.Key.Key_Z, CTRL_SHIFT)
        scene.settle()
        step.equal("redo brings every edit back", scene.document.workspace.text(), text)


def show_problems(scene: Scene, name: str = "problems") -> None:
    """What is wrong with the policy."""
    with scene.step(name, "problems") as step:
        scene.go_to("problems")
        found = scene.document.workspace.current_problems()
        table = scene.driver.find("problems.list", QTableView)
        rows = table.model().rowCount()
        step.equal("there is a row for each problem that the engine finds", rows, len(found))
        step.check("the table is shown where there are any", table.isVisible() == bool(found))
        words = scene.driver.find("status.problems", QPushButton).text()
        step.check("the foot of the window agrees", (words == "no problems") == (not found))


def export(scene: Scene) -> None:
    """Export through the dialog, by keyboard."""
    with scene.step("export-dialog", "toml") as step:
        scene.go_to("toml")
        scene.driver.click("top.export")
        scene.driver.until(lambda: bool(_dialogs(scene)), "the dialog")
        field = scene.driver.find("fileNameEdit", QLineEdit)
        scene.driver.replace_text(field, str(scene.out))
        step.equal("the folder is typed", field.text(), str(scene.out))
        step.equal("one chooses a folder", [d.fileMode() for d in _dialogs(scene)], [QFileDialog.FileMode.Directory])
    with scene.step("export", "toml") as step:
        scene.driver.key(Qt.Key.Key_Return)
        scene.driver.until(
            lambda: not _dialogs(scene) and "export" not in scene.window.tasks.names, "the dialog to close"
        )
        scene.settle()
        file = scene.out / POLICY_NAME
        text = scene.document.workspace.text()
        step.check("the policy is there", file.is_file())
        step.equal("it is the policy as edited, byte by byte", file.read_bytes(), text.encode())
        sources = scene.document.policy.sources
        missing = [s.base_path for s in sources if not (scene.out / s.base_path).is_dir()]
        step.equal("the folders that it names are there", missing, [])
        exported = open_workspace(scene.out, False)
        try:
            step.equal("the engine reads the same policy from it", exported.policy, scene.document.policy)
            found = exported.selfcheck()
            wanted = (scene.document.workspace.selfcheck().checked, 0)
            step.equal("its self-check finds no difference", (found.checked, len(found.differences)), wanted)
        finally:
            exported.close()


def untouched(scene: Scene, files: dict[Path, bytes]) -> None:
    """The end: the files that were there are as they were."""
    with scene.step("untouched", "agents") as step:
        scene.go_to("agents")
        changed = [str(file) for file, content in files.items() if file.read_bytes() != content]
        step.equal("no file of the workspace was changed", changed, [])
        message = scene.window.message
        step.check("the window complains about nothing", not message.isVisible())


def _dialogs(scene: Scene) -> list[QFileDialog]:
    return [top for top in scene.driver.popups() if isinstance(top, QFileDialog)]


def _shown(text: str) -> str:
    """As an editor holds it: any line end is one."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
