"""Scenes of the window as a whole: its start, and the other theme."""

from gatewright_gui.app.scenes.agents import compare_views
from gatewright_gui.app.scenes.player import Tour, column
from gatewright_gui.pages.access.agents import AGENT_ID


def open_window(tour: Tour) -> None:
    """The window as it comes up."""
    tour.settle()
    tour.until(lambda: " of " in tour.text_of("status.selfcheck"), "the self-check")
    document = tour.document
    found = document.workspace.selfcheck()
    told = f"self-check {found.checked - len(found.differences):,} of {found.checked:,}"
    tour.check("the foot of the window tells the engine's self-check", tour.text_of("status.selfcheck"), told)
    tour.check("the self-check finds no difference", len(found.differences), 0)
    agents = [agent.agent_id for agent in document.agents]
    tour.check("the list holds the agents of the policy", column(tour.model_of("agents.list"), role=AGENT_ID), agents)
    tour.show("open", f"{document.name}: {', '.join(agents)}; {told}")


def dark(tour: Tour) -> None:
    """The other theme."""
    tour.click("top.theme")
    tour.check("the theme", tour.window.theme.current, "dark")
    tour.check("the window is dark", tour.window.grab().toImage().pixelColor(4, 400).lightness() < 128)
    compare_views(tour)
    tour.show("agent", f"the same in the dark; {tour.text_of('agents.tally.can')}")
