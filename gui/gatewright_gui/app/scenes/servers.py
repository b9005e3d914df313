"""Scenes of the place Servers: a server is added, trusted, accepted, and taken back."""

import os
import shlex
import tempfile
from pathlib import Path

from PySide6.QtCore import Qt

from gatewright_gui.app.driver import CTRL
from gatewright_gui.app.scenes.player import Tour, column
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.session.calls import visible_tools
from gatewright_gui.session.clients import gateway_command
from gatewright_gui.session.opening import POLICY_NAME, Opener

SERVED = """\
gatewright = 1

[agents.guest]
tools = ["file"]
capabilities = ["AdvancedEdit"]

[[sources]]
id = "here"
type = "file"
base_path = "."
"""
"""The policy of the server that the tour adds."""


def servers(tour: Tour) -> None:
    """A server is added by its command, trusted, and its tools accepted: the gateway itself, before another policy."""
    with tempfile.TemporaryDirectory(prefix="gatewright-tour-") as folder:
        served = Path(folder) / POLICY_NAME
        served.write_text(SERVED, "utf-8")
        with Opener().open(served) as other:
            offered = sorted(tool.name for tool in visible_tools(other, "guest"))
        before = tour.document.undo_stack.index()
        tour.go_to("servers")
        tour.click("servers.add" if tour.has("servers.add") else tour.find("servers.empty", EmptyState).action_button)
        command = shlex.join([*gateway_command(), "serve", folder, "--agent", "guest"])
        tour.until(lambda: tour.has("catalog_add.text"), "the dialog")
        tour.type_over(f"GATEWRIGHT_KEYS= {command}", "catalog_add.text")
        tour.click("catalog_add.accept")
        tour.until(lambda: tour.has("trust.cancel"), "the question")
        tour.click("trust.cancel")
        row = tour.document.policy.catalogs[-1]
        tour.check("only the name of the variable is taken", row.env, ("GATEWRIGHT_KEYS",))
        workspace = tour.document.workspace
        tour.check("nothing was started", row.catalog_id in workspace.servers.states and not tour.has("servers.ask"))
        tour.show("catalog", f"`{row.catalog_id}` is added, and not trusted")
        tour.click("servers.trust")
        tour.until(lambda: tour.has("trust.definition"), "the question")
        asked = tour.text_of("trust.definition")
        tour.check("the question has the whole command", all(word in asked for word in (row.command or "", *row.args)))
        tour.check("and its digest", workspace.server_digest(row.catalog_id) in asked)
        tour.choose("trust.use", "write")  # it keeps a log there
        tour.show("trust", "what would be started, and what it is to see, before it is")
        tour.click("trust.accept")
        tour.until(lambda: not tour.has("trust.accept"), "the answer")
        given = tour.document.policy.catalogs[-1].places or {}
        places = {os.path.realpath(place): str(use) for place, use in given.items()}
        tour.check("it gets the folder that it is given", places, {os.path.realpath(folder): "write"})
        if workspace.why_not_confined():
            _unconfine(tour)
        tools = tour.model_of("servers.tools")
        tour.until(lambda: tour.has("servers.ask") and tools.rowCount(), "the tools of the server")
        listed = sorted(map(str, column(tools)))
        tour.check("the server lists what its policy shows", listed, offered)
        if tour.has("servers.accept"):  # what was accepted once, is
            tour.click("servers.accept")
            tour.until(lambda: not tour.has("servers.accept"), "the tools to be accepted")
        held = [tool.name for tool in tour.document.catalog if tool.origin == row.catalog_id and tool.held]
        tour.check("no tool of it is held any more", held, [])
        tour.show("accept", f"`{row.catalog_id}` offers {', '.join(listed)}; accepted, so that agents can have it")
        tour.click("servers.stop")
        tour.until(lambda: not tour.has("servers.ask"), "the server to stop")
        while tour.document.undo_stack.index() > before:
            tour.key(Qt.Key.Key_Z, CTRL)
        ids = {one.catalog_id for one in tour.document.policy.catalogs}
        tour.check("undo takes the catalog back", row.catalog_id not in ids)


def _unconfine(tour: Tour) -> None:
    """On a system that confines nothing the server is not started until somebody lets it do all that they may."""
    tour.choose("servers.part", "sees")
    tour.until(lambda: tour.has("servers.sees.confine.free"), "how it is confined")
    tour.show("confine", "nothing can be confined on this system, so that the server is not started")
    tour.click("servers.sees.confine.free")
    tour.until(lambda: tour.has("unconfine.agree"), "what that gives away")
    tour.click("unconfine.agree")
    tour.click("unconfine.accept")
    tour.until(lambda: tour.has("servers.trust"), "the question about the server as it is now")
    tour.click("servers.trust")
    tour.until(lambda: tour.has("trust.accept"), "the question")
    tour.click("trust.accept")
    tour.choose("servers.part", "tools")
