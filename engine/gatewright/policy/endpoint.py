"""Where messages of agents may go, as ``[workspace] endpoints`` says: the endpoints that there are, by target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gatewright.base.frozen import frozen

TARGETS = ("user", "agent", "group", "discord", "bluesky")
"""What a message may be sent to; each needs an endpoint of its name."""
DISCORD_URL = "https://discord.com/api/v10"
BLUESKY_URL = "https://bsky.social"


@frozen
class AgentEndpoint:
    """The inboxes of other agents. ``agents``: of these alone; None: of every agent of the policy."""

    agents: tuple[str, ...] | None = None


@frozen
class DiscordEndpoint:
    """A bot on Discord; ``token_env`` names the environment variable with its token.

    ``channels``: the ids of those that it may write to; None: every one that Discord lets it. ``url``: where Discord is
    reached, if not at its usual address.
    """

    token_env: str
    channels: tuple[str, ...] | None = None
    url: str = DISCORD_URL


@frozen
class BlueskyEndpoint:
    """The account ``handle`` on Bluesky; ``password_env`` names the environment variable with its app password.

    ``handles``: the accounts that its posts may be addressed to; None: any. ``url``: the server of the account.
    """

    handle: str
    password_env: str
    handles: tuple[str, ...] | None = None
    url: str = BLUESKY_URL


@frozen
class Endpoints:
    """``[workspace] endpoints``. ``user``: the program that runs the agents takes messages to the user.

    ``groups``: agents whose inboxes get one message together, by the name of the group.
    """

    user: bool = False
    agent: AgentEndpoint | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], hash=False)
    discord: DiscordEndpoint | None = None
    bluesky: BlueskyEndpoint | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that have an endpoint, in the order of `TARGETS`."""
        there = (self.user, self.agent, self.groups, self.discord, self.bluesky)
        return tuple(target for target, one in zip(TARGETS, there, strict=True) if one)

    @property
    def outside(self) -> dict[str, str]:
        """The targets whose endpoint connects to a service, each with its address."""
        there = {"discord": self.discord, "bluesky": self.bluesky}
        return {target: one.url for target, one in there.items() if one is not None}

    def definition(self, target: str) -> str:
        """What is trusted of an endpoint that connects, in words: where, with which secret, for whom."""
        if target == "discord" and (one := self.discord) is not None:
            whom = "every channel" if one.channels is None else f"the channels {', '.join(one.channels)}"
            return f"{one.url}\nwith the token in {one.token_env}, for {whom}"
        if target == "bluesky" and (other := self.bluesky) is not None:
            whom = "every account" if other.handles is None else f"the accounts {', '.join(other.handles)}"
            return f"{other.url}\nas {other.handle}, with the app password in {other.password_env}, for {whom}"
        return ""

    @property
    def agents(self) -> frozenset[str]:
        """Every agent that it names."""
        named = (self.agent.agents or ()) if self.agent is not None else ()
        return frozenset(named).union(*self.groups.values())

    def recipients(self, agents: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
        """For each target whom a message may go to, where that is limited; ``agents``: those of the policy."""
        found = {
            "agent": None if self.agent is None else tuple(agents) if self.agent.agents is None else self.agent.agents,
            "group": tuple(self.groups) or None,
            "discord": self.discord and self.discord.channels,
            "bluesky": self.bluesky and self.bluesky.handles,
        }
        return {target: whom for target, whom in found.items() if whom is not None}


def need_of(target: str) -> str:
    """What a tool needs that sends messages to that target, as `Policy.provides` names it."""
    return f"endpoint {target}"


EVERY_ENDPOINT = tuple(map(need_of, TARGETS))
"""What a tool needs that is there with any endpoint."""
