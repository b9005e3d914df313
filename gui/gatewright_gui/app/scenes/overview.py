"""Scenes of what holds for all agents: the Overview, and the rules of the policy."""

from PySide6.QtWidgets import QAbstractItemView

from gatewright_gui.app.scenes.player import Tour, column
from gatewright_gui.pages.overview.agent_cards import SHARE
from gatewright_gui.session.calls import shown_tools
from gatewright_gui.session.rights_picture import RightShare


def overview(tour: Tour) -> None:
    """A card for each agent, and the picture of what all may do with what."""
    tour.click("rail.overview")
    cards, agents = tour.find("overview.agents", QAbstractItemView).model(), tour.document.agents
    tour.check("each agent has its card", column(cards), [agent.agent_id for agent in agents])
    tour.until(lambda: None not in column(cards, role=SHARE), "the counts of each agent")
    for agent, share in zip(agents, column(cards, role=SHARE), strict=True):
        tools = shown_tools(tour.document.workspace, agent.agent_id)
        wanted = sum(len(tool.operations) or 1 for tool in tools)
        counted = share.shown if isinstance(share, RightShare) else None
        tour.check(f"as many operations of {agent.agent_id} are on as its model is shown", counted, wanted)
    tour.show("overview", f"{len(agents)} agents at a glance, and a picture of their rights")


def rules(tour: Tour) -> None:
    """The rules that hold for all agents."""
    tour.click("rail.policy")
    tour.choose("policy.part", "rules")
    wanted = tour.document.policy.rules
    shown = tour.model_of("policy.rules").rowCount() if tour.has("policy.rules") else 0
    tour.check("each rule of the policy has a row", shown, len(wanted))
    tour.show("rules", f"{len(wanted)} policy rules")
