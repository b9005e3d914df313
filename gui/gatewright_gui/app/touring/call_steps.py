"""More steps on the Console: a nested form, JSON with a fault, results as tree and diff, a call again, live mode."""

from collections.abc import Mapping

from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QTableView

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.console_steps import enter, last_of, page_of, press_call, readable, send, write_json
from gatewright_gui.app.touring.driver import CTRL
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.models import stages
from gatewright_gui.models.argumentcheck import syntax_faults
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.segmented import Segmented

NESTED, PART, BRANCH = "table_edit", "operations", "drop_row"
BROKEN = '{"op": read}'
LIST: Mapping[str, JsonValue] = {"op": "list", "path": "notes/"}
NEW_FILE = "drafts/from-the-{}-tour.md"


def nested_form(scene: Scene, subject: Subject, name: str = "form-nested") -> None:
    """A list of objects of several kinds, filled in field by field."""
    with scene.step(name, "console") as step:
        enter(scene, subject.agent_id)
        if not _sees(scene, subject, NESTED):
            step.not_here(f"the agent does not see the tool `{NESTED}`")
            return
        scene.choose("console.mode", "form")
        ways.choose_in(scene, "console.tool", NESTED)
        scene.driver.click("console.clear")
        scene.driver.replace_text("console.form.table", "levels")
        item = f"console.form.{PART}.0"
        scene.driver.click(f"console.form.{PART}.add")
        scene.driver.until(lambda: scene.driver.has(f"{item}.branch"), "the item")
        ways.choose_in(scene, f"{item}.branch", BRANCH)
        scene.driver.until(lambda: scene.driver.has(f"{item}.row"), "its fields")
        scene.driver.replace_text(f"{item}.row", "3")
        scene.settle()
        wanted = {"table": "levels", PART: [{"op": BRANCH, "row": 3}]}
        step.equal("the form holds what was filled in", page_of(scene).request.form.values(), wanted)
        run = scene.driver.find("console.run", QPushButton)
        scene.driver.holds_soon(lambda: "not run" in run.text(), 2.0)
        step.equal("its tool runs elsewhere, and the button says so", run.text().strip(), "Decide, not run")
        record = send(scene, "console.run")
        step.check("what was filled in fits the schema", "schema" in {row.name for row in record.stages[:-1]})


def json_fault(scene: Scene, subject: Subject, name: str = "json-fault") -> None:
    """JSON that is wrong: where, while one types."""
    with scene.step(name, "console") as step:
        enter(scene, subject.agent_id)
        if scene.driver.find("console.mode", Segmented).current != "json":
            scene.choose("console.mode", "json")
        editor = scene.driver.find("console.json", QPlainTextEdit)
        scene.driver.replace_text(editor.viewport(), BROKEN)
        said = scene.driver.find("console.jsonfault", ElidedLabel)
        fault = syntax_faults(editor.toPlainText())[0]
        scene.driver.holds_soon(lambda: said.text.startswith(str(fault)), 2.0)
        step.check("the fault is told", said.text.startswith(str(fault)))
        step.check("with its line", f"line {fault.line}" in said.text)
        scene.driver.click("console.json.go")
        cursor = editor.textCursor()
        step.equal("a click goes to it", (cursor.blockNumber() + 1), fault.line)


def result_tree(scene: Scene, subject: Subject, name: str = "result-tree") -> None:
    """A result that is JSON, as a tree; the chosen stage in full."""
    with scene.step(name, "console") as step:
        enter(scene, subject.agent_id)
        if not _may(scene, subject, LIST):
            step.not_here("the agent may not list a folder without being asked about")
            return
        write_json(scene, "file", LIST)
        record = send(scene, "console.run")
        step.equal("the call is done", record.status, "allowed")
        parts = scene.driver.find("console.resultas", Segmented)
        if parts.button("tree").isEnabled():
            scene.choose("console.resultas", "tree")
            tree = page_of(scene).outcome.result.tree.tree
            step.check("it has nodes", tree.model().rowCount() > 0)
        _stage_in_full(scene, step)
    if scene.driver.has("console.resultas"):
        scene.choose("console.resultas", "text")


def _stage_in_full(scene: Scene, step: Step) -> None:
    view = scene.driver.find("console.stages", QTableView)
    row = next(
        (r for r in range(view.model().rowCount()) if view.model().index(r, stages.REASON).data()),
        0,
    )
    scene.driver.click_cell(view, view.model().index(row, stages.STAGE))
    scene.settle()
    detail = scene.driver.find("console.stagedetail", QLabel)
    step.check("below the stages the chosen one is told in full", detail.isVisible() and bool(detail.text()))


def result_diff(scene: Scene, subject: Subject, name: str = "result-diff") -> None:
    """A file that the call makes, as a difference."""
    path = NEW_FILE.format(scene.theme)
    arguments: dict[str, JsonValue] = {"op": "create", "path": path, "content": "# A draft\n"}
    with scene.step(name, "console") as step:
        enter(scene, subject.agent_id)
        decided = scene.document.workspace.decide(subject.agent_id, "file", arguments)
        if not _sees(scene, subject, "file") or decided.verdict is Verdict.DENY:
            step.not_here("the agent may not create a draft")
            return
        write_json(scene, "file", arguments)
        calls = len(page_of(scene).console.records)
        press_call(scene, "console.run")
        if decided.verdict is Verdict.ASK:
            scene.driver.until(page_of(scene).outcome.approval.isVisible, "the question")
            scene.driver.click("console.approve")
        record = last_of(scene, calls)
        step.equal("the call is done", record.status, "allowed")
        scene.choose("console.resultas", "diff")
        lines = scene.text_of("console.diff").splitlines()
        step.check("its line is one that came", any(line.startswith("+") and "# A draft" in line for line in lines))
        there = scene.document.workspace.folder / scene.document.policy.sources[0].base_path / path
        step.check("the folder of the workspace does not have it", not there.exists())


def rule_of_level(scene: Scene, subject: Subject) -> None:
    """A call that a level denies: its rule leads to the Files page."""
    with scene.step("rule-to-files", "files") as step:
        enter(scene, subject.agent_id)
        path = _denied_by_level(scene, subject)
        if path is None:
            step.not_here("no level denies what the agent could write")
            return
        write_json(scene, "file", {"op": "create", "path": path, "content": "x"})
        record = send(scene, "console.decide")
        step.equal("it is denied", record.verdict, "deny")
        scene.driver.click("console.rule")
        scene.driver.until(lambda: scene.window.shelf.current_key != "console", "the page of the rule")
        scene.settle()
        step.equal("the rule is shown where it is edited", scene.window.shelf.current_key, "files")
        table = scene.driver.find("files.rules", QTableView)
        source = scene.document.policy.sources[0]
        asked = scene.document.workspace.explain_paths(source.source_id, [path])[0]
        at = len(source.permission_rules) if asked.index is None else asked.index
        step.equal("and it is the chosen row", table.currentIndex().row(), at)


def again(scene: Scene, subject: Subject) -> None:
    """A call, an edit, the call again: then allow, now deny. Then both beside each other."""
    view, first = scene.driver.find("console.history", QTableView), ""
    with scene.step("call-again", "console") as step:
        enter(scene, subject.agent_id)
        path = readable(scene, subject)
        if path is None or subject.tool != "file":
            step.not_here("the agent cannot read a file without being asked about")
            return
        write_json(scene, "file", {"op": "read", "path": path})
        first = str(send(scene, "console.decide").verdict)
        scene.go_to("agents")
        ways.click_box(scene, "file", "read")
        scene.settle()
        scene.go_to("console")
        scene.driver.click_cell(view, view.model().index(0, 2))
        calls = len(page_of(scene).console.records)
        press_call(scene, "console.again")
        second = last_of(scene, calls)
        step.equal("it is denied now", (second.verdict, second.stage), ("deny", "operation"))
        chip = scene.driver.find("console.then")
        step.check("it says so beside the verdict", chip.isVisible())
        told = scene.driver.find("console.then", Chip).text
        step.equal("with both verdicts", told, f"then {first}, now deny")
    with scene.step("calls-compared", "console") as step:
        scene.driver.click_cell(view, view.model().index(0, 2))
        scene.driver.click_cell(view, view.model().index(1, 2), modifiers=CTRL)
        scene.driver.click("console.compare")
        ways.wait_for_dialog(scene, "console.compare.dialog")
        told = scene.driver.find("console.compare.verdict", Chip).text
        step.equal("the dialog says what changed", told, f"then {first}, now deny")
    if ways.dialog(scene, "console.compare.dialog") is not None:
        scene.driver.click("console.compare.close")
    ways.undo(scene)


def live(scene: Scene, name: str = "live") -> None:
    """Live mode is asked about, and seen on every page; it is left again without a call."""
    with scene.step(f"{name}-asked", "console") as step:
        enter(scene, None)
        scene.driver.click("console.live")
        scene.driver.until(lambda: bool(_button(scene, "Go live")), "the question")
        stay = _button(scene, "Stay in the copy")
        step.check("the harmless answer is the default", stay is not None and stay.isDefault())
        step.check("nothing is live yet", not scene.driver.has("window.liveframe"))
    go = _button(scene, "Go live")
    if go is None:
        return
    with scene.step(name, "console") as step:
        scene.driver.click(go)
        scene.driver.until(lambda: scene.driver.has("window.liveframe"), "the frame")
        step.check("a bar says so", scene.driver.has("console.livebar"))
    with scene.step(f"{name}-elsewhere", "agents") as step:
        scene.go_to("agents")
        frame = scene.driver.find("window.liveframe")
        step.equal("the frame is around the whole window", frame.size(), scene.window.size())
    with scene.step(f"{name}-left", "agents") as step:
        scene.go_to("console")
        scene.driver.click("console.leavelive")
        scene.driver.until(lambda: not scene.driver.has("window.liveframe"), "the frame to go")
        step.check("a click leaves it", not scene.document.live.is_on)
        scene.go_to("agents")


def _button(scene: Scene, text: str) -> QPushButton | None:
    found = [b for top in scene.driver.popups() for b in top.findChildren(QPushButton)]
    return next((b for b in found if b.text().replace("&", "") == text), None)


def _sees(scene: Scene, subject: Subject, tool: str) -> bool:
    right = scene.document.rights(subject.agent_id).get(tool)
    return right is not None and not right.is_hidden


def _may(scene: Scene, subject: Subject, arguments: Mapping[str, JsonValue]) -> bool:
    return _sees(scene, subject, "file") and (
        scene.document.workspace.decide(subject.agent_id, "file", dict(arguments)).verdict is Verdict.ALLOW
    )


def _denied_by_level(scene: Scene, subject: Subject) -> str | None:
    if not _sees(scene, subject, "file") or not scene.document.policy.sources:
        return None
    base = scene.document.workspace.folder / scene.document.policy.sources[0].base_path
    for folder in sorted(base.rglob("*")) if base.is_dir() else []:
        if not folder.is_dir():
            continue
        path = f"{folder.relative_to(base).as_posix()}/x.md"
        arguments: dict[str, JsonValue] = {"op": "create", "path": path, "content": "x"}
        decided = scene.document.workspace.decide(subject.agent_id, "file", arguments)
        if decided.verdict is Verdict.DENY and decided.stage == "permission" and decided.rule is not None:
            return path
    return None
