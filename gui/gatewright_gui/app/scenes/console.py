"""Scenes of the page Console: calls in a copy of the workspace, and in the workspace itself."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtWidgets import QComboBox, QPlainTextEdit

from gatewright.workspace.api import Verdict
from gatewright_gui.app.driver import DriveError
from gatewright_gui.app.scenes.player import NotHere, Tour, column
from gatewright_gui.pages.trial import TrialPage, conversation, stages
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.opening import audit_log

READ = {"op": "read", "path": "README.md"}
WEB = {"url": "https://levels.example.org/today"}
COMMAND = {"command": "cat todo.md | wc -l"}
REFUSED = {"command": "cat todo.md && rm todo.md"}
SEARCH = {"op": "search", "query": "water level"}
CREATE = {"op": "create", "path": "inbox/from-the-tour.md", "content": "one line\n"}


def console(tour: Tour) -> None:
    """A call that is denied, one that is allowed, one that asks: in a copy, by the real gate."""
    (agent_id, tool, selector, operation), page = tour.subject, enter_console(tour)
    folder = file_call(tour, Verdict.ALLOW, **READ)
    tour.choose("console.mode", "form")
    tour.choose("console.tool", "file")
    tour.choose("console.form.op", READ["op"])
    tour.type_over(READ["path"], "console.form.path")
    record = send(tour, page, "console.run")
    tour.check("the call is allowed and done", (record.verdict, record.status), (Verdict.ALLOW, "allowed"))
    text = (folder / READ["path"]).read_text("utf-8")
    tour.check("the result is the file", text.splitlines()[0] in tour.text_of("console.result"))
    tour.show("allowed", f"{record.called} of {READ['path']} is allowed at every stage")
    denied = {selector: operation, "path": "README.md"}
    write_call(tour, tool, denied)
    record, said = send(tour, page, "console.decide"), tour.document.workspace.decide(agent_id, tool, denied)
    tour.check("what is unticked is denied", (record.verdict, record.stage), (Verdict.DENY, "operation"))
    rule, wanted = (one.rule.rule_id if one.rule else "" for one in (record, said))
    tour.check("its code and its rule are the gate's", (record.code, rule), (said.code, wanted))
    tour.check("the model hears nothing of the rule", not rule or rule not in str(record.model_message))
    tour.show("denied", f"{record.called} is denied: {record.reason}")
    file_call(tour, Verdict.ASK, **CREATE)
    write_call(tour, "file", CREATE)
    answer, status = ("refuse", "denied") if tour.window.theme.current == "light" else ("approve", "allowed")

    def reply() -> None:
        tour.until(page.outcome.approval.isVisible, "the question")
        asked = page.outcome.approval.question
        who = (asked.agent_id, asked.tool, asked.operation) if asked else None
        tour.check("the question names the call", who, (agent_id, "file", CREATE["op"]))
        tour.check("and says why", asked is not None and asked.reasons)
        tour.show("asked", f"file.{CREATE['op']} of {CREATE['path']} waits for an answer")
        tour.click(f"console.{answer}")

    record = send(tour, page, "console.run", reply)
    tour.check("the call is as answered", record.status, status)
    tour.check("the folder itself is as before", not (folder / CREATE["path"]).exists())
    tour.show("answered", f"{record.called} is {record.status}: {record.reason}")


def built_in(tour: Tour) -> None:
    """The web is decided and not reached, a command is judged program by program, the archive answers with scores."""
    page = enter_console(tour)
    tool_call(tour, "web_fetch", Verdict.ALLOW, WEB)
    write_call(tour, "web_fetch", WEB)
    tour.check("there is no second way to decide", not tour.has("console.decide"))
    record = send(tour, page, "console.run")
    tour.check("the call is decided", (record.kind, record.verdict, record.status), ("decide", Verdict.ALLOW, None))
    tour.check("nothing is reached", [row.name for row in record.stages if row.name == "execute"], [])
    tour.check("and that is said", page.outcome.result.none.isVisible())
    tour.show("web", f"{record.called} of {WEB['url']} is allowed; decided here and not executed")
    tool_call(tour, "shell_exec", Verdict.ASK, COMMAND)
    write_call(tour, "shell_exec", COMMAND)
    record = send(tour, page, "console.run")
    told = next(row.reason for row in record.stages if row.name == "arguments")
    tour.check("each program is named", all(f"`{name}`" in told for name in ("cat", "wc")))
    tour.check("starting them asks", (record.verdict, record.stage), (Verdict.ASK, "approval"))
    tour.show("shell", f"`{COMMAND['command']}` would ask: {told}")
    tool_call(tour, "shell_exec", Verdict.DENY, REFUSED)
    write_call(tour, "shell_exec", REFUSED)
    record = send(tour, page, "console.run")
    tour.check(
        "one program that is not allowed refuses all", (record.verdict, record.stage), (Verdict.DENY, "arguments")
    )
    tour.check("and is named", "`rm`" in record.reason)
    tour.show("refused", f"`{REFUSED['command']}` is denied: {record.reason}")
    tool_call(tour, "recall", Verdict.ALLOW, SEARCH)
    write_call(tour, "recall", SEARCH)
    record = send(tour, page, "console.run")
    hits = json.loads(record.whole or record.output or "{}")["data"]["hits"]
    scores = [hit["score"] for hit in hits]
    if not scores:
        raise NotHere("the archive holds nothing that the tour looks for")
    tour.check("the best come first", scores, sorted(scores, reverse=True))
    tour.show(
        "archive", f"{record.called} finds {len(hits)} entries, the best with a score of {max(scores, default=0)}"
    )


def live(tour: Tour) -> None:
    """A call in the workspace itself is in its audit log."""
    page = enter_console(tour)
    file_call(tour, Verdict.ALLOW, **READ)
    tour.click("console.live")
    tour.until(lambda: tour.has("choice-live"), "the question")
    tour.click("choice-live")
    tour.until(lambda: tour.has("window.liveframe"), "the frame around the window")
    write_call(tour, "file", READ)
    record = send(tour, page, "console.run")
    tour.check("the call is made in the workspace itself", (record.is_live, record.status), (True, "allowed"))
    log = audit_log(tour.document.workspace.policy_path)
    rows = list(log.rows())
    rows = [row for row in rows if row.call_id == rows[-1].call_id]
    told = [(row.kind, row.agent, row.tool, row.operation) for row in (rows[0], rows[-1])]
    called = tour.subject.agent_id, "file", READ["op"]
    tour.check("what was called is recorded", told, [("ToolInvoked", *called), ("ToolCompleted", *called)])
    tour.check("the log is whole", log.verify().problems, ())
    tour.show("live", f"{record.called} of {READ['path']} is run live: {len(rows)} rows in the audit log")
    tour.click("console.leavelive")
    tour.until(lambda: not tour.has("window.liveframe"), "the frame to go")


def enter_console(tour: Tour) -> TrialPage:
    """Go to the Console, as the agent that is shown."""
    agent_id = tour.subject.agent_id
    tour.go_to("try")
    page = tour.window.shelf.page("try")
    if not isinstance(page, TrialPage):
        raise DriveError("the Console page is not there")
    tour.choose("console.agent", agent_id)
    return page


def write_call(tour: Tour, tool: str, arguments: Mapping[str, str]) -> None:
    """Name a tool and type its arguments as JSON."""
    tour.choose("console.mode", "json")
    tour.type_over(tool, tour.find("console.tool", QComboBox))
    tour.type_over(json.dumps(arguments), tour.find("console.json", QPlainTextEdit).viewport())


def send(tour: Tour, page: TrialPage, button: str, reply: Callable[[], None] | None = None) -> CallRecord:
    """Send a call once no pause is left that would have it denied, reply where it asks; what became of it."""
    calls, session = len(page.console.records), tour.model_of("console.sessionstate")
    tour.until(
        lambda: not any(" to wait" in str(state) for state in column(session, conversation.STATE)),
        "the pause after the last call to be over",
    )
    tour.click(button)
    if reply is not None:
        reply()
    tour.until(lambda: len(page.console.records) > calls and not page.console.is_busy, "the call")
    record, model = page.console.records[-1], tour.model_of("console.stages")
    drawn = dict(zip(stages.STAGE_NAMES, column(model, role=stages.STATE), strict=True))
    wanted = {row.name: str(row.verdict) for row in record.stages}
    tour.check("each stage that passed is drawn", {name: drawn.get(name) for name in wanted}, wanted)
    return record


def tool_call(tour: Tour, tool: str, wanted: Verdict, arguments: Mapping[str, str]) -> None:
    """Raises NotHere where the gate does not give a call this verdict."""
    if tour.document.workspace.decide(tour.subject.agent_id, tool, arguments).verdict is not wanted:
        raise NotHere(f"the gate does not {wanted} `{tool}` with {dict(arguments)}")


def file_call(tour: Tour, wanted: Verdict, **arguments: str) -> Path:
    """The folder of files. Raises NotHere where the gate does not give a call of the tool `file` this verdict."""
    sources = tour.document.policy.file_sources
    tool_call(tour, "file", wanted, arguments)
    if not sources:
        raise NotHere("the policy has no source")
    return tour.document.workspace.folder / sources[0].base_path
