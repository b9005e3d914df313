"""Scenes of what holds for all agents: the Overview, and the rules of the policy."""

from PySide6.QtWidgets import QAbstractItemView

from gatewright_gui.app.scenes.player import Tour, column
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.session.calls import shown_tools


def overview(tour: Tour) -> None:
    """A card for each agent, and the picture of what all may do with what."""
    tour.click("rail.overview")
    cards, agents = tour.find("overview.agents", QAbstractItemView).model(), tour.document.agents
    tour.check("each agent has its card", column(cards), [agent.agent_id for agent in agents])
    tour.until(lambda: all(card.share for card in column(cards, role=ROW)), "the counts of each agent")
    for agent, card in zip(agents, column(cards, role=ROW), strict=True):
        tools = shown_tools(tour.document.workspace, agent.agent_id)
        wanted = sum(len(tool.operations) or 1 for tool in tools)
        tour.check(f"as many operations of {agent.agent_id} are on as its model is shown", card.share.shown, wanted)
    tour.show("overview", f"{len(agents)} agents at a glance, and a picture of their rights")


def rules(tour: Tour) -> None:
    """The rules that hold for all agents."""
    tour.click("rail.policy")
    tour.choose("policy.part", "rules")
    wanted = tour.document.policy.rules
    shown = tour.model_of("policy.rules").rowCount() if tour.has("policy.rules") else 0
    tour.check("each rule of the policy has a row", shown, len(wanted))
    tour.show("rules", f"{len(wanted)} policy rules")
