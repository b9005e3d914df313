"""Scenes of the preview: what the model gets."""

import json

from PySide6.QtGui import QAction

from gatewright_gui.app.driver import DriveError
from gatewright_gui.app.scenes.player import Tour, names
from gatewright_gui.pages.access.preview.choices import FormatChoice
from gatewright_gui.session.preview import provider_formats


def preview(tour: Tour) -> None:
    """Show what the model gets: the rules of use, what is taken away, the schema in every format."""
    agent_id, tool, _, operation = tour.subject
    tour.choose_row()
    tour.choose("inspector.tabs", "sees")
    choose_row(tour, "preview.scope.agent")
    tour.choose("preview.part", "rules")
    rules = tour.text_of("preview.code").strip()
    tour.check("the rules are the engine's", rules, tour.document.workspace.view(agent_id).usage_rules.strip())
    tour.check(f"they name `{operation}`", names(rules, operation), False)
    tour.show("rules", f"the usage rules of {agent_id}, {len(rules.splitlines())} lines")
    choose_row(tour, "preview.scope.tool")
    tour.choose("preview.part", "difference")
    lines = [line for line in tour.text_of("preview.code").splitlines() if names(line, operation)]
    tour.check(f"`{operation}` is taken away", lines and all(line.startswith("-") for line in lines))
    tour.show("difference", f"without limits {operation} would be in {len(lines)} lines more")
    tour.choose("preview.part", "schema")
    formats = provider_formats()
    for form in formats:
        choose_row(tour, f"preview.provider.{form}")
        compare_schema(tour)
    tour.show("formats", f"the schema of {tool} is the engine's in {len(formats)} formats")


def choose_row(tour: Tour, name: str) -> None:
    """Choose a row of a menu of the preview: an open menu would keep the tour waiting."""
    action = tour.window.findChild(QAction, name)
    if action is None:
        raise DriveError(f"there is no row `{name}`")
    action.trigger()
    tour.settle()


def compare_schema(tour: Tour) -> None:
    """The text of the preview is the engine's schema of the tool, in the format that is chosen."""
    form = tour.find("preview.providers", FormatChoice).current
    view = tour.document.workspace.view(tour.subject.agent_id)
    at = [listing.name for listing in view.listings()].index(tour.subject.tool)
    wanted = json.loads(json.dumps(view.tools(form)[at], default=dict))
    tour.check(f"the schema for {form} is what the model gets", json.loads(tour.text_of("preview.code")), wanted)
