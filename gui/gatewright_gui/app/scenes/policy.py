"""Scenes of the policy as a file: the differences, the problems, saving, publishing."""

import difflib

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright_gui.app.driver import CTRL
from gatewright_gui.app.scenes.player import Tour
from gatewright_gui.session.opening import POLICY_NAME, Opener


def policy(tour: Tour) -> None:
    """Show what saving would change, problems, the self-check."""
    workspace = tour.document.workspace
    tour.go_to("text")
    tour.choose("toml.part", "difference")
    lines = difflib.ndiff(workspace.policy_path.read_text("utf-8").splitlines(), workspace.text().splitlines())
    wanted = sorted(line[0] + line[2:] for line in lines if line[0] in "+-")
    shown = [line for line in tour.text_of("toml.code").splitlines() if line[:1] in {"+", "-"}]
    shown = sorted(line for line in shown if not line.startswith(("+++", "---")))
    tour.check("the page shows the lines that saving would change", shown, wanted)
    tour.show("toml", f"saving would change {len(wanted)} lines")
    tour.go_to("problems")
    problems, foot = workspace.current_problems(), tour.text_of("status.problems")
    tour.check("each problem of the engine has a row", tour.model_of("problems.list").rowCount(), len(problems))
    tour.check("the foot of the window agrees", foot == "no problems", not problems)
    tour.show("problems", foot)
    tour.click("status.selfcheck")
    tour.until(lambda: tour.has("selfcheck.agents"), "the dialog")
    agents, found = tour.model_of("selfcheck.agents"), workspace.selfcheck()
    tour.until(lambda: agents.rowCount() == len(tour.document.agents), "the agents that were checked")
    tour.check("its heading has the engine's count", f"{found.checked:,}" in tour.text_of("selfcheck.summary"))
    tour.check("nothing differs", len(found.differences), 0)
    tour.show("selfcheck", f"{found.checked:,} answers compared, {len(found.differences)} differ")
    tour.click("selfcheck.close")


def save(tour: Tour) -> None:
    """Save the policy, and publish it."""
    workspace = tour.document.workspace
    tour.go_to("text")
    tour.choose("toml.part", "text")
    text = workspace.text()
    tour.key(Qt.Key.Key_S, CTRL)
    diff = workspace.unsaved_rights()
    if not diff.is_empty:
        tour.until(lambda: tour.has("review.accept"), "what saving changes")
        told = tour.model_of("review.changes")
        said = "\n".join(str(told.index(row, 0).data()) for row in range(told.rowCount()))
        silent = [agent.agent_id for agent in diff.agents if agent.opens and agent.agent_id not in said]
        tour.check("each agent that can do more is named before it is written", len(silent) == 0 or "others" in said)
        tour.show("review", f"saving changes what {len(diff.agents)} agents can do")
        tour.click("review.accept")
        tour.until(lambda: "save" not in tour.window.tasks.names, "the file")
    tour.check("the file is as edited, byte by byte", workspace.policy_path.read_bytes(), text.encode())
    tour.check("the page shows it", tour.text_of("toml.code").splitlines(), text.splitlines())
    tour.check("nothing is left to save", not tour.find("top.save", QWidget).isEnabled())
    tour.show("save", f"{workspace.policy_path.name} is saved")
    tour.click("top.publish")
    tour.until(lambda: tour.has("publish.policy.folder"), "the dialog")
    tour.type_over(str(tour.out), "publish.policy.folder")
    write = tour.find("publish.policy.accept", QPushButton)
    tour.until(write.isEnabled, "what would be written")
    files = tour.model_of("publish.policy.files").rowCount()
    tour.click("publish.policy.accept")
    tour.until(lambda: tour.has("publish.policy.next"), "what was written")
    tour.check("each file of the list lies there", len(list(tour.out.rglob("*"))) >= files)
    with Opener().open(tour.out) as published:
        tour.check("the engine reads the same policy from it", published.policy, tour.document.policy)
        found = published.selfcheck()
    tour.check("whose self-check finds no difference", len(found.differences), 0)
    tour.check("the window complains about nothing", not tour.window.message.isVisible())
    tour.show("publish", f"{POLICY_NAME} is published; its own self-check: {found.checked:,} answers")
    tour.click("publish.close")
