"""Scenes of what holds for all agents: Home, and the rules of the policy."""

from gatewright_gui.app.scenes.player import Tour, column
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.session.calls import visible_tools


def home(tour: Tour) -> None:
    """Show the reach of agents in a sentence, as a picture, and by risk."""
    tour.go_to("home")
    agents = tour.document.agents
    if not agents:
        tour.show("home", "no agent yet, and the way to the first")
        return
    tour.until(lambda: tour.text_of("home.headline"), "the sentence about all agents")
    tour.choose("home.mode", "list")
    rows = column(tour.model_of("home.flows"), role=ROW)
    for at, agent in enumerate(agents):
        tools = visible_tools(tour.document.workspace, agent.agent_id)
        wanted = sum(len(tool.operations) or 1 for tool in tools)
        shown = sum(flow.count.every for flow in rows if flow.agent == at)
        tour.check(f"as many operations of {agent.agent_id} are on as its model is shown", shown, wanted)
    tour.choose("home.mode", "risk")
    tour.show("home", tour.text_of("home.headline").replace("\n", " "))


def rules(tour: Tour) -> None:
    """The rules that hold for all agents."""
    tour.go_to("rules")
    tour.choose("policy.part", "rules")
    wanted = tour.document.policy.rules
    shown = tour.model_of("policy.rules").rowCount() if tour.has("policy.rules") else 0
    tour.check("each rule of the policy has a row", shown, len(wanted))
    tour.show("rules", f"{len(wanted)} policy rules")
