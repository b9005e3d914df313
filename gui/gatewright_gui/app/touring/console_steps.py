"""The steps on the Console page: a denied call, an allowed one, one that asks. They are made by mouse and keyboard."""

import json
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QTableView

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.permission import Permission
from gatewright.policy.rule import RequiresConsent
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring.driver import DriveError
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject, operation_field
from gatewright_gui.app.touring.ways import choose_in
from gatewright_gui.models import stages
from gatewright_gui.models.conversation import STATE
from gatewright_gui.pages.console import ConsolePage
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.calls import CallRecord

CALL_SECONDS = 15.0


def denied_call(scene: Scene, subject: Subject, name: str = "call-denied") -> None:
    """Decide a call of the operation that is off, written as JSON."""
    with scene.step(name, "console") as step:
        enter(scene)
        choose_in(scene, "console.agent", subject.agent_id)
        arguments = {operation_field(scene.document, subject): subject.operation, "path": "README.md"}
        write_json(scene, subject.tool, arguments)
        record = send(scene, "console.decide")
        wanted = scene.document.workspace.decide(subject.agent_id, subject.tool, json.dumps(arguments))
        step.equal("the call is denied", (record.verdict, record.stage), ("deny", "operation"))
        step.equal("the console says what the gate says", _said(record), (wanted.verdict, wanted.stage, wanted.code))
        step.equal("the deciding rule is the gate's", _rule(record), wanted.rule.rule_id if wanted.rule else None)
        place = scene.document.workspace.place(record.rule.address) if record.rule else None
        if place is not None and record.rule is not None:
            step.equal("with its line of the policy as it is now", record.rule.line, place.line)
        step.check("the model is not told the rule", record.rule is None or _hides(record, record.rule.rule_id))
        _compare_stages(scene, record, step)


def rule_of_denied(scene: Scene) -> None:
    """Click the deciding rule."""
    with scene.step("call-denied-rule", "agents") as step:
        record = page_of(scene).outcome.shown
        if record is None or record.rule is None:
            step.not_here("the denial follows from no rule")
            return
        scene.driver.click("console.rule")
        scene.driver.until(lambda: scene.window.shelf.current_key != "console", "the page of the rule")
        scene.settle()
        step.check("the window shows the rule where it is edited", scene.window.shelf.current_key == "agents")


def allowed_call(scene: Scene, subject: Subject, name: str = "call-allowed") -> None:
    """Run a read through the form, in the copy."""
    with scene.step(name, "console") as step:
        enter(scene)
        file = readable(scene, subject)
        if file is None:
            step.not_here("the agent cannot read a file of a source by the tool `file` without being asked about")
            return
        choose_in(scene, "console.agent", subject.agent_id)
        write_json(scene, "file", {"op": "list"})  # an operation that the agent does not see would stand there as text
        scene.choose("console.mode", "form")
        choose_in(scene, "console.form.op", "read")
        scene.driver.replace_text("console.form.path", file)
        if scene.driver.has("console.form.source") and scene.driver.find("console.form.source").isEnabled():
            _fill_source(scene)
        record = send(scene, "console.run")
        step.equal("the call is allowed and done", (record.verdict, record.status), ("allow", "allowed"))
        text = scene.text_of("console.result")
        first = _first_line(_file(scene, file))
        step.check(f"the result holds the first line of `{file}`", bool(first) and first in text)
        _compare_stages(scene, record, step)


def asking_call(scene: Scene, subject: Subject, *, allow: bool, name: str) -> None:
    """Run a call that asks; answer it by a click."""
    path: str | None = None
    with scene.step(f"{name}-asked", "console") as step:
        enter(scene)
        path = _writable(scene)
        if subject.tool != "file" or "create" not in _shown(scene, subject) or path is None:
            step.not_here("the agent cannot create a file where it would be asked about")
            return
        choose_in(scene, "console.agent", subject.agent_id)
        write_json(scene, "file", {"op": "create", "path": path, "content": "a first line\n"})
        press_call(scene, "console.run")
        bar = page_of(scene).outcome.approval
        scene.driver.until(bar.isVisible, "the question", CALL_SECONDS)
        question = bar.question
        what = (question.agent_id, question.tool, question.operation) if question else None
        step.equal("the question names the call", what, (subject.agent_id, "file", "create"))
        step.check("it says why", bool(question and question.reasons))
        step.check("the window can be used meanwhile", scene.driver.find("rail.agents").isEnabled())
        step.check("nothing has the focus that would allow", not scene.driver.find("console.approve").hasFocus())
    if page_of(scene).outcome.approval.question is None:
        return
    with scene.step(name, "console") as step:
        calls = len(page_of(scene).console.records)
        scene.driver.click("console.approve" if allow else "console.refuse")
        record = last_of(scene, calls)
        step.equal(
            "the call is done" if allow else "the call is denied", record.status, "allowed" if allow else "denied"
        )
        step.check("the question is gone", not page_of(scene).outcome.approval.isVisible())
        step.check("the folder of the workspace is as before", path is not None and not _file(scene, path).exists())
        _compare_stages(scene, record, step)


def standing_approval(scene: Scene, subject: Subject, name: str) -> None:
    """A call that asks for consent is allowed for its scope; the next is not asked about until that is revoked."""
    page, view = page_of(scene), scene.driver.find("console.sessionstate", QTableView)
    bar = page.outcome.approval
    with scene.step(f"{name}-asked", "console") as step:
        enter(scene)
        arguments = _consented(scene, subject)
        if arguments is None:
            step.not_here("nothing that the agent may append to asks for consent with a scope")
            return
        choose_in(scene, "console.agent", subject.agent_id)
        write_json(scene, "file", arguments)
        press_call(scene, "console.run")
        scene.driver.until(bar.isVisible, "the question", CALL_SECONDS)
        answers = ("console.refuse", "console.approve", "console.while", "console.scope")
        places = [scene.driver.find(answer).mapTo(scene.window, QPoint()).x() for answer in answers]
        step.check("there are four answers, and what denies is the first", places == sorted(places))
        step.check("it says until when it waits", "waits until" in bar.about)
        question = bar.question
        named = question is not None and bool(question.scope) and str(question.scope) in bar.scope_button.text()
        step.check("the answer for a scope names it", named)
    if bar.question is None:
        return
    with scene.step(name, "console") as step:
        calls = len(page.console.records)
        scene.driver.click("console.scope")
        step.equal("the call is done", last_of(scene, calls).status, "allowed")
        scene.choose("console.below", "session")
        scene.driver.until(lambda: _standing_row(view) is not None, "the approval among what the session shows")
        record = send(scene, "console.run")
        said = [row.reason for row in record.stages if row.name == "approval"]
        step.check("the next is not asked about, and says why", said and said[0].startswith("approved earlier by"))
        step.check("the session shows what limits the next calls", view.model().rowCount() > 1)
        scene.driver.click_cell(view, _standing_row(view) or QModelIndex())
        step.check("it can be revoked", scene.driver.find("console.revoke").isEnabled())
    with scene.step(f"{name}-revoked", "console") as step:
        scene.driver.click("console.revoke")
        scene.driver.until(lambda: _standing_row(view) is None, "the approval to go")
        press_call(scene, "console.run")
        scene.driver.until(bar.isVisible, "the question to come again", CALL_SECONDS)
        step.check("the next call asks again", bar.isVisible())
        calls = len(page_of(scene).console.records)
        scene.driver.key(Qt.Key.Key_F6)
        scene.driver.key(Qt.Key.Key_D)
        step.equal("F6 and a letter answer it", last_of(scene, calls).status, "denied")
        scene.choose("console.below", "calls")


def _standing_row(view: QTableView) -> QModelIndex | None:
    model = view.model()
    rows = [model.index(row, 0) for row in range(model.rowCount())]
    return next((row for row in rows if str(row.data()).startswith("consent to")), None)


def _consented(scene: Scene, subject: Subject) -> dict[str, str] | None:
    """Arguments of a call that asks because of a scope."""
    rules = scene.document.policy.agents[subject.agent_id].tool_rules
    scoped = [rule.rule_type for rule in rules if rule.binds("append") and rule.tool_name == "file"]
    if not any(isinstance(kind, RequiresConsent) and kind.scope for kind in scoped):
        return None
    for source in scene.document.policy.sources[:1]:
        base = scene.document.workspace.folder / source.base_path
        for file in sorted(base.rglob("*.md")) if base.is_dir() else []:
            arguments = {"op": "append", "path": file.relative_to(base).as_posix(), "content": "one line more\n"}
            decided = scene.document.workspace.decide(subject.agent_id, "file", arguments)
            if decided.verdict is Verdict.ASK and decided.code == "requires-consent":
                return arguments
    return None


def show_again(scene: Scene) -> None:
    """Earlier calls are still there; the oldest one is chosen."""
    with scene.step("call-history", "console") as step:
        enter(scene)
        view = scene.driver.find("console.history", QTableView)
        records = page_of(scene).console.records
        step.equal("the history holds every call", view.model().rowCount(), len(records))
        if not records:
            step.not_here("no call could be made")
            return
        scene.driver.click_cell(view, view.model().index(len(records) - 1, 2))
        scene.settle()
        shown = page_of(scene).outcome.shown
        step.equal("the oldest is shown again", shown.number if shown else None, records[0].number)


# what several steps do


def enter(scene: Scene, agent_id: str | None = None) -> None:
    """Go to the page; a call that a failed step left behind is given up."""
    scene.go_to("console")
    if page_of(scene).console.is_busy:
        scene.driver.click("console.cancel")
        scene.driver.until(lambda: not page_of(scene).console.is_busy, "the call to be given up")
    if agent_id is not None:
        choose_in(scene, "console.agent", agent_id)


def page_of(scene: Scene) -> ConsolePage:
    """The page. Raises DriveError."""
    page = scene.window.shelf.page("console")
    if not isinstance(page, ConsolePage):
        raise DriveError("the Console page is not there")
    return page


def write_json(scene: Scene, tool: str, arguments: Mapping[str, JsonValue]) -> None:
    """Name a tool and type its arguments."""
    if scene.driver.find("console.mode", Segmented).current != "json":
        scene.choose("console.mode", "json")
    combo = scene.driver.find("console.tool", QComboBox)
    line = combo.lineEdit()
    if line is None:
        raise DriveError("the tool cannot be typed")
    scene.driver.replace_text(line, tool)
    editor = scene.driver.find("console.json", QPlainTextEdit)
    scene.driver.replace_text(editor.viewport(), json.dumps(arguments))
    scene.driver.until(lambda: combo.currentText() == tool, "the tool to be typed")
    if json.loads(editor.toPlainText()) != arguments:
        raise DriveError(f"the arguments are not as typed: {editor.toPlainText()}")


def send(scene: Scene, button: str) -> CallRecord:
    """Click what sends the call, and wait for what becomes of it."""
    calls = len(page_of(scene).console.records)
    press_call(scene, button)
    return last_of(scene, calls)


def press_call(scene: Scene, button: str) -> None:
    """Click what sends a call, once the session shows no pause that would have it denied."""
    scene.settle()
    model = scene.driver.find("console.sessionstate", QTableView).model()
    scene.driver.until(
        lambda: not any(" to wait" in _at(model.index(row, STATE)) for row in range(model.rowCount())),
        "the pause after the last call to be over",
    )
    scene.driver.click(button)


def last_of(scene: Scene, calls: int) -> CallRecord:
    """The call after so many, once its outcome is shown. Raises DriveError."""
    page = page_of(scene)
    scene.driver.until(lambda: len(page.console.records) > calls and not page.console.is_busy, "the call", CALL_SECONDS)
    scene.settle()
    shown = page.outcome.shown
    if shown is None or shown is not page.console.records[-1]:
        raise DriveError("the outcome of the call is not shown")
    return shown


def _compare_stages(scene: Scene, record: CallRecord, step: Step) -> None:
    """The rows of stages, as they are drawn, against the record."""
    model = scene.driver.find("console.stages", QTableView).model()
    rows = [
        (_at(model.index(row, stages.STAGE)), _at(model.index(row, stages.VERDICT))) for row in range(model.rowCount())
    ]
    wanted = {row.name: str(row.verdict) for row in record.stages}
    step.equal("each stage that passed is drawn", {name: word for name, word in rows if name in wanted}, wanted)
    decisive = [name for name, verdict in wanted.items() if verdict == "deny"]
    step.check("a denial ends the stages", not decisive or decisive[0] == list(wanted)[-1])


def _at(index: QModelIndex) -> str:
    return str(index.data() or "")


def _said(record: CallRecord) -> tuple[str, str, str]:
    return record.verdict, record.stage, record.code


def _rule(record: CallRecord) -> str | None:
    return record.rule.rule_id if record.rule else None


def _hides(record: CallRecord, rule_id: str) -> bool:
    return rule_id not in (record.model_message or "")


def _shown(scene: Scene, subject: Subject) -> list[str]:
    right = scene.document.rights(subject.agent_id).get("file")
    return [op.operation for op in right.operations if not op.is_hidden] if right else []


def _file(scene: Scene, path: str) -> Path:
    source = scene.document.policy.sources[0]
    return scene.document.workspace.folder / source.base_path / path


def readable(scene: Scene, subject: Subject) -> str | None:
    """A text of the first source that the agent may read without being asked about."""
    if "read" not in _shown(scene, subject) or not scene.document.policy.sources:
        return None
    source = scene.document.policy.sources[0]
    base = scene.document.workspace.folder / source.base_path
    files = sorted(f for f in base.glob("*") if f.is_file() and f.suffix in {".md", ".txt"}) if base.is_dir() else []
    for file in files:
        decided = scene.document.workspace.decide(subject.agent_id, "file", {"op": "read", "path": file.name})
        if decided.verdict is Verdict.ALLOW and _first_line(file):
            return file.name
    return None


def _writable(scene: Scene) -> str | None:
    """A path that does not exist, where a change asks a human."""
    for source in scene.document.policy.sources[:1]:
        base = scene.document.workspace.folder / source.base_path
        folders = sorted(f for f in base.glob("*") if f.is_dir()) if base.is_dir() else []
        paths = [f"{folder.name}/from-the-tour.txt" for folder in folders]
        for row in scene.document.workspace.explain_paths(source.source_id, paths):
            if row.permission in {Permission.HUMAN, Permission.PARTNER} and not (base / row.path).exists():
                return row.path
    return None


def _first_line(file: Path) -> str:
    try:
        return next((line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()), "")
    except (OSError, UnicodeDecodeError):
        return ""


def _fill_source(scene: Scene) -> None:
    """Where several sources would fit, the first is named."""
    field = scene.driver.find("console.form.source")
    if not isinstance(field, QComboBox) and len(scene.document.policy.sources) > 1:
        scene.driver.replace_text(field, scene.document.policy.sources[0].source_id)
