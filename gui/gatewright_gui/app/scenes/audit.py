"""Scene of Activity: the calls of the log, one of them with all that decided it, and the proof of the chain."""

from PySide6.QtWidgets import QAbstractItemView

from gatewright_gui.app.scenes.player import NotHere, Tour
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.session.audit import LoggedCall
from gatewright_gui.session.opening import audit_log


def audit(tour: Tour) -> None:
    """The calls that were made in the workspace itself: found, decided again, proved."""
    rows = list(audit_log(tour.document.workspace.policy_path).rows())
    calls = {row.call_id for row in rows if row.call_id}
    if not calls:
        raise NotHere("no call was made in the workspace itself")
    tour.go_to("activity")
    page = tour.window.shelf.page("activity")
    assert isinstance(page, ActivityPage)
    tour.choose("activity.part", "all")
    tour.until(lambda: page.trail.now.is_whole and page.model.rowCount(), "the calls")
    tour.until(lambda: page.model.row_at(0), "the newest call")
    lines = [page.model.row_at(row) for row in range(page.model.rowCount())]
    shown = [line.item if line is not None and isinstance(line.item, LoggedCall) else None for line in lines]
    tour.check("each call of the log is a row", {call.call_id for call in shown if call and call.is_call}, calls)
    newest = next(row for row, call in enumerate(shown) if call and call.is_call)
    tour.click_cell(tour.find("activity.rows", QAbstractItemView), page.model.index(newest, 0))
    tour.until(lambda: page.detail.detail and page.detail.detail.call == shown[newest], "the chosen call")
    tour.click("activity.again")
    tour.until(lambda: tour.has("activity.detail.again"), "what it would be today")
    tour.click("activity.verify")
    tour.until(lambda: page.log.proof.text != "not checked yet", "the proof")
    tour.check("the whole log is proved", page.log.proof.text, f"proved: {len(rows):,} rows")
    tour.check("and so is the call", page.detail.chain.text, "proved")
    tour.show("audit", f"{len(calls)} calls in the log, all of it proved")
