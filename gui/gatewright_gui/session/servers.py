"""The rows of the place Servers in words: each one's nature, state, effects, agents and calls.

A row stands for a server or another group of tools of the policy, a coding agent, the file of an MCP client, or a
client that is served now. Over 450 lines, since all words of the place stand here, by the kinds of rows.
"""

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path

from gatewright.workspace.api import (
    Catalog,
    CatalogType,
    ClientStatus,
    Effect,
    HostLevel,
    SafetyTier,
    ToolCalls,
    ToolFacts,
    Waiting,
    WorkspaceError,
    frozen,
    is_observed,
    read_runner,
)
from gatewright_gui.qt.language import counted, forms, mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.prose import plain
from gatewright_gui.session.catalogs import CatalogRow
from gatewright_gui.session.clients import ClientSession, ServingProcess
from gatewright_gui.session.coding_agents import OPEN, HostStatus, facts_of
from gatewright_gui.session.confinement import Standing
from gatewright_gui.session.effects import Count, Effects, OriginReach, together
from gatewright_gui.session.question import span

FORM = "%Y-%m-%d %H:%M"
_NAMED = 4
"""Agents that a sentence names."""
_EFFECTS = {
    Effect.READ: forms("reads", "read"),
    Effect.CHANGE: forms("changes", "change"),
    Effect.DELETE: forms("deletes", "delete"),
    Effect.SEND: forms("sends", "send"),
    Effect.RUN: forms("runs programs", "run programs"),
}
_DANGERS = {
    Effect.DELETE: mark("{agents} can delete with it without asking."),
    Effect.RUN: mark("{agents} can run programs with it without asking."),
    Effect.SEND: mark("{agents} can send data out with it without asking."),
    Effect.CHANGE: mark("{agents} can change things with it without asking."),
}
"""The worst first."""


class Group(StrEnum):
    """The groups of rows, in their order."""

    SERVERS = mark("MCP servers")
    OTHERS = mark("Other tools (not MCP)")
    AGENTS = mark("Coding agents on this machine")
    CLIENTS = mark("Clients that could be gated")


@frozen
class Fact:
    """A sentence about a row, with its weight."""

    icon: str
    role: Role
    text: str


@frozen
class Connected:
    """A client that a process of the gateway serves now; ``client`` None: nobody is connected there."""

    process: ServingProcess
    client: ClientSession | None

    @property
    def waits(self) -> tuple[str, ...]:
        """The digests of its calls that wait for an answer."""
        return self.client.waits if self.client is not None else ()


Subject = CatalogRow | HostStatus | ClientStatus | Connected


@frozen
class Row:
    """A row, or the heading of a group (``subject`` None) with its ``state`` as a note.

    ``does``: what it can do by effect, in short; ``agents``: those that may use it; ``last_s``: its last call, in
    seconds since 1970; ``today``: its calls today. None: unknown, or none. ``needs``: somebody should look at it.
    """

    group: Group
    key: tuple[str, str]
    name: str
    state: str
    icon: str = ""
    role: Role = "muted"
    does: str = ""
    does_role: Role = "muted"
    agents: tuple[str, ...] = ()
    last_s: float | None = None
    today: int | None = None
    subject: Subject | None = None
    needs: bool = False

    @property
    def last_words(self) -> str:
        """The time since the last call; `none` once it is known that there was none."""
        if self.last_s is None:
            return "" if self.today is None or isinstance(self.subject, Connected) else tr("none")
        return tr("{time} ago", time=span(max(1.0, time.time() - self.last_s)))

    @property
    def today_words(self) -> str:
        """The number of calls today."""
        return "" if self.today is None else f"{self.today:,}"

    @property
    def agent_words(self) -> str:
        """The agent, or how many there are."""
        return self.agents[0] if len(self.agents) == 1 else f"{len(self.agents):,}" if self.agents else ""


@frozen
class Known:
    """All that rows are made of. ``reaches`` None: still to be worked out; ``calls`` None: the log is not read yet."""

    catalogs: tuple[CatalogRow, ...] = ()
    hosts: tuple[HostStatus, ...] | None = None
    clients: tuple[ClientStatus, ...] | None = None
    processes: tuple[ServingProcess, ...] = ()
    reaches: Mapping[str, OriginReach] | None = None
    calls: tuple[ToolCalls, ...] | None = None
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tool to origin."""
    proposed: Mapping[str, Mapping[Effect, int]] = field(default_factory=dict[str, Mapping[Effect, int]])
    """The effects of tools that wait to be accepted, by origin."""
    policy: Path | None = None

    @property
    def is_whole(self) -> bool:
        """True once coding agents and clients were looked for."""
        return self.hosts is not None and self.clients is not None

    def reach(self, origin: str) -> OriginReach | None:
        """The reach of the tools of an origin, with those that wait; None while it is unknown."""
        if self.reaches is None:
            return None
        found = self.reaches.get(origin, OriginReach())
        return replace(found, effects=Counter(found.effects) + Counter(self.proposed.get(origin, {})))

    def agent(self, agent_id: str) -> Effects:
        """The reach of an agent with all its tools."""
        return together(one.agents.get(agent_id, {}) for one in (self.reaches or {}).values())


def rows_of(known: Known) -> tuple[Row, ...]:
    """Return the rows with a heading above each group; no heading without rows, but for the MCP servers."""
    calls = _calls_by(known)
    made: list[Row] = [_catalog_row(row, known, calls) for row in known.catalogs]
    made += [_host_row(one, known) for one in known.hosts or ()]
    made += [_connection_row(one, known) for one in connections(known.processes)]
    made += [_client_row(one, known, calls) for one in known.clients or ()]
    found: list[Row] = []
    for group in Group:
        rows = [row for row in made if row.group is group]
        if rows or group is Group.SERVERS:
            found += [_heading(group, rows), *rows]
    return tuple(found)


def connections(processes: Iterable[ServingProcess]) -> tuple[Connected, ...]:
    """List the clients that are served now, and each process that has none."""
    return tuple(Connected(process, client) for process in processes for client in process.clients or (None,))


def _heading(group: Group, rows: Sequence[Row]) -> Row:
    needing = sum(row.needs for row in rows)
    note = counted(needing, "needs you", "need you") if needing else ""
    if not rows:
        note = tr("none yet: add one by its command, its address, or the file of a client")
    return Row(group, ("", group), tr(group), note, role="ask" if needing else "muted")


_Calls = Mapping[str, tuple[float, int]]


def _calls_by(known: Known) -> tuple[_Calls, _Calls]:
    """The last call and the number of calls today, by origin, and of clients by agent."""
    origins: dict[str, tuple[float, int]] = {}
    agents: dict[str, tuple[float, int]] = {}
    for one in known.calls or ():
        origin = known.origins.get(one.tool)
        for key, found, counts in ((origin, origins, True), (one.agent, agents, one.by_client)):
            if key is not None and counts:
                last_s, today = found.get(key, (0.0, 0))
                found[key] = max(last_s, one.last_s), today + one.today
    return origins, agents


def _last_and_today(known: Known, calls: _Calls, key: str) -> tuple[float | None, int | None]:
    if known.calls is None:
        return None, None
    return calls.get(key, (None, 0))


def effect_words(effects: Mapping[Effect, int]) -> str:
    """`3 read · 5 change · 1 deletes`: the number of operations by effect."""
    return " · ".join(counted(effects[one], *_EFFECTS[one]) for one in Effect if effects.get(one))


def effects_of(facts: ToolFacts, waits: Waiting | None) -> Iterator[Effect]:
    """Yield the effects of the operations of a tool; of one that waits, as it is proposed."""
    after = waits.after if waits is not None else None
    only_reads = after is not None and after.tier is SafetyTier.READ_ONLY
    for op in facts.operations:
        yield Effect.READ if only_reads and op.effect in {Effect.CHANGE, Effect.DELETE} else op.effect


def waiting_effects(row: CatalogRow, tools: Mapping[str, ToolFacts]) -> Counter[Effect]:
    """Count the effects of the tools of a server that wait. ``tools``: by their names in the policy."""
    called = dict(zip(row.state.listed_names, row.state.tool_names, strict=True))
    found = ((tools.get(called.get(one.name, "")), one) for one in row.waiting)
    return Counter(effect for facts, one in found if facts is not None for effect in effects_of(facts, one))


def _totals(effects: Effects) -> dict[Effect, int]:
    return {effect: count.every for effect, count in effects.items()}


def _is_free(effects: Iterable[Effects]) -> bool:
    """Tell whether any of these deletes, runs or sends without asking."""
    return any(part.get(one, Count()).free for part in effects for one in (Effect.DELETE, Effect.RUN, Effect.SEND))


# servers and other tools


def _catalog_row(row: CatalogRow, known: Known, calls: tuple[_Calls, _Calls]) -> Row:
    reach = known.reach(row.catalog_id)
    does, role = _catalog_does(row, reach)
    state, icon, tone = row.status
    held = row.held_count
    if is_observed(row.state.catalog, time.time()):
        state, icon, tone = tr("{state}, only observed", state=state), "eye", "ask"
    elif held and row.is_trusted and not row.has_failed and not row.fault:
        state, icon, tone = tr("{count} to accept", count=f"{held:,}"), "hand", "ask"
    last_s, today = _last_and_today(known, calls[0], row.catalog_id)
    needs = not row.is_trusted or bool(held) or row.has_failed or bool(row.fault) or row.waits_for_places
    return Row(
        Group.SERVERS if row.state.catalog.kind is CatalogType.MCP else Group.OTHERS,
        ("catalog", row.catalog_id),
        row.catalog_id,
        state,
        icon,
        tone,
        does,
        role,
        () if reach is None else tuple(reach.agents),
        last_s,
        today,
        row,
        needs,
    )


def _catalog_does(row: CatalogRow, reach: OriginReach | None) -> tuple[str, Role]:
    if row.fault:
        return tr("unknown"), "muted"
    if _is_unknown(row):
        return tr("unknown: not started yet") if row.is_server else tr("unknown: not read yet"), "muted"
    if reach is None or (row.held_count and not row.waiting):
        return "…", "muted"
    if not reach.effects:
        return tr("nothing: it has no tools"), "muted"
    return effect_words(reach.effects), "deny" if _is_free(reach.agents.values()) else "text"


def _is_unknown(row: CatalogRow) -> bool:
    """Tell whether nobody knows its tools yet."""
    return bool(row.fault) or (row.is_run_here and row.state.pin is None)


def catalog_facts(row: CatalogRow, found: Row, reach: OriginReach | None, standing: Standing) -> tuple[Fact, ...]:
    """Say in plain words what a server is, what it can do and for whom, what holds it, when it was called."""
    facts = [Fact("info", "muted", _what_it_is(row)), *_faults(row)]
    if found.does == "…":
        facts.append(Fact("clock", "muted", tr("What it can do is being worked out.")))
    elif _is_unknown(row):
        words = tr("What it can do is unknown until it was started once, and so is its risk.")
        if row.fault or not row.is_server:
            words = tr("What it can do is unknown, and so is its risk: its tools were not read.")
        facts.append(Fact("circle-help", "ask", words))
    elif reach is None or not reach.effects:
        facts.append(Fact("package", "muted", tr("It has no tools, so it can do nothing here.")))
    else:
        tools = counted(len(row.state.tool_names), "tool", "tools")
        words = tr("{tools}; their operations by effect: {effects}.", tools=tools, effects=effect_words(reach.effects))
        facts += [Fact("package", "muted", words), *_risk(reach)]
    if row.held_count:
        words = counted(
            row.held_count,
            "tool waits until you accept it; no agent sees it before.",
            "tools wait until you accept them; no agent sees them before.",
        )
        facts.append(Fact("hand", "ask", words))
    until_s = row.state.catalog.observe_until_s
    if until_s is not None and is_observed(row.state.catalog, time.time()):
        words = tr(
            "Only observed until {until}: denials and questions are noted, not enforced.", until=moment_words(until_s)
        )
        facts.append(Fact("eye", "ask", words))
    if standing.tone != "muted" and (row.is_trusted or not row.waits_for_places):  # else it is said above
        facts.append(Fact(standing.icon, standing.tone, standing.words))
    if row.is_trusted:
        facts.append(Fact("history", "muted", _call_words(found)))
    return tuple(facts)


def moment_words(wall_s: float) -> str:
    """A moment, to the minute, by the clock of this computer."""
    return time.strftime(FORM, time.localtime(wall_s))


def _what_it_is(row: CatalogRow) -> str:
    catalog = row.state.catalog
    command = shlex.join((catalog.command or "", *catalog.args))
    match catalog.kind:
        case CatalogType.MCP if catalog.command is not None:
            return tr("An MCP server that runs on this computer: `{command}`.", command=command)
        case CatalogType.MCP:
            return tr("An MCP server elsewhere: calls go to `{url}`. Nothing of it runs here.", url=catalog.url or "")
        case CatalogType.HTTP:
            return tr("A web service: each call is a request to `{url}`.", url=catalog.url or "")
        case CatalogType.SUBPROCESS:
            return tr("A program that is started for each call: `{command}`.", command=command)
        case CatalogType.WASM:
            return tr("A WASM module that runs for each call: `{module}`.", module=catalog.module or "")
        case _:
            manifest = catalog.manifest or ""
            return tr("Tools that another program runs; the file `{manifest}` describes them.", manifest=manifest)


def install_words(catalog: Catalog) -> str:
    """Say what is installed before it first runs; nothing where its command fetches no package."""
    try:
        package = read_runner(catalog.command or "", catalog.args)
    except WorkspaceError as error:
        return tr("It cannot start as it is written: {reason}.", reason=plain(str(error)))
    if package is None:
        return ""
    if catalog.is_confined:
        words = tr("{package}, once, before it runs; the installation reaches only the registries of packages.")
    else:
        words = tr("{package}, once, before it runs; nothing limits what the installation does.")
    return words.format(package=package.requirement)


def _faults(row: CatalogRow) -> Iterable[Fact]:
    """Say what keeps it from running, with the remedy."""
    if row.fault:
        yield Fact("circle-x", "deny", _sentence(row.fault))
        return
    if not row.is_trusted:
        told = tr("Off until you trust it: nothing of it starts, and no agent can use it.")
        yield Fact("lock", "ask", told)
    elif row.waits_for_places:
        told = tr("It is off until you say which folders it gets; no agent sees its tools before.")
        yield Fact("lock", "ask", told)
    server = row.server
    if server is None:
        return
    if server.reason and row.is_trusted:
        words = " ".join(_sentence(part) for part in (server.reason, server.advice) if part)
        yield Fact("circle-x" if row.has_failed else "info", "deny" if row.has_failed else "muted", words)
    yield from (Fact("info", "muted", _sentence(note)) for note in server.notes)


def _risk(reach: OriginReach) -> Iterable[Fact]:
    """Say the worst that can happen without a question, and who may use it."""
    if not reach.agents:
        yield Fact("ban", "muted", tr("No agent may use it yet: switch its tools on in Access."))
        return
    yield Fact("users", "muted", tr("{agents} may use it.", agents=names(tuple(reach.agents))))
    told = [(effect, free) for effect in _DANGERS if (free := reach.free(effect))]
    for effect, free in told:
        is_bad = effect is not Effect.CHANGE
        words = tr(_DANGERS[effect], agents=names(free))
        yield Fact("triangle-alert", "deny" if is_bad else "ask", words)
    if not told:
        asks = any(count.asks for part in reach.agents.values() for count in part.values())
        words = tr("Without asking agents can only read with it.") if asks else tr("Agents can only read with it.")
        is_asked = asks and not reach.free(Effect.READ)
        yield Fact("shield-check", "allow", tr("Every call asks first.") if is_asked else words)


def names(agents: Sequence[str]) -> str:
    """`desk, coder and 3 more`."""
    told = ", ".join(agents[:_NAMED])
    return tr("{names} and {count:,} more", names=told, count=more) if (more := len(agents) - _NAMED) > 0 else told


def _call_words(row: Row) -> str:
    if row.today is None:
        return tr("Its calls are not read yet.")
    if row.last_s is None:
        return tr("No call in the last 30 days.")
    today = counted(row.today, "call today", "calls today") if row.today else tr("none today")
    return tr("Last call {ago}, {today}.", ago=row.last_words, today=today)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


# coding agents

_LEVELS: Mapping[HostLevel, tuple[str, Role]] = {
    HostLevel.OK: ("circle-check", "allow"),
    HostLevel.AMBER: ("triangle-alert", "ask"),
    HostLevel.RED: ("circle-x", "deny"),
}


def _host_row(host: HostStatus, known: Known) -> Row:
    icon, role = _LEVELS[host.level]
    row = Row(
        Group.AGENTS,
        ("host", host.host_id),
        host.title,
        _gate_words(host),
        icon,
        role,
        subject=host,
        needs=_needs(host),
    )
    if host.file is None:
        return replace(row, icon="shield-alert", does=tr("all that you can"), does_role="deny")
    does, does_role = tr("what another policy lets it"), "muted"
    if host.policy is not None and host.policy == known.policy:
        effects = known.agent(host.agent_id)
        does = effect_words(_totals(effects)) or tr("nothing")
        does_role = "deny" if _is_free((effects,)) else "text"
        if known.reaches is None:
            does, does_role = "…", "muted"
    return replace(
        row,
        does=does,
        does_role=does_role,
        agents=(host.agent_id,) if host.agent_id else (),
        last_s=host.last_call_s,
        today=host.calls_today,
    )


def _needs(host: HostStatus) -> bool:
    return host.file is None or host.level is HostLevel.RED


def _gate_words(host: HostStatus) -> str:
    if host.file is None:
        return tr("not gated")
    if host.is_trusted is False:
        return tr("hook not trusted")
    if host.level is HostLevel.RED:
        return tr("its gate does not hold")
    if not host.fails_closed:
        return tr("gated, hook fails open")
    return tr("gated") if host.is_confined else tr("gated, commands not confined")


def host_facts(host: HostStatus, found: Row) -> tuple[Fact, ...]:
    """Say what a coding agent is, what its gate holds and what passes it, the worst first."""
    facts = [Fact("info", "muted", tr("A coding agent: it reads and changes files and runs commands by itself."))]
    if host.file is not None:
        where = f"`{host.file.path}`"
        words = tr("Its gate is in {file}.", file=where)
        if host.agent_id:
            words = tr("Its gate is in {file}: it asks as agent `{agent}`.", file=where, agent=host.agent_id)
        facts.append(Fact("shield-check", "muted", words))
        if host.policy is not None:
            facts.append(
                Fact("scroll-text", "muted", tr("What it may do is decided by `{policy}`.", policy=host.policy))
            )
        if found.does_role != "muted":
            words = tr("It may: {effects}.", effects=found.does)
            is_bad = found.does_role == "deny"
            if is_bad:
                words = tr("It may, some of it without asking: {effects}.", effects=found.does)
            facts.append(Fact("triangle-alert" if is_bad else "package", "deny" if is_bad else "muted", words))
    for fact in facts_of(host):
        icon, role = ("shield-x", "deny") if fact.name == OPEN else _LEVELS[fact.level]
        facts.append(Fact(icon, role, _sentence(fact.sentence)))
    if host.file is not None:
        words = _call_words(found) if host.last_call_s is not None else tr("No call of it came here yet.")
        facts.append(Fact("history", "muted", words))
    return tuple(facts)


# clients


def _client_row(client: ClientStatus, known: Known, calls: tuple[_Calls, _Calls]) -> Row:
    file, count = client.file, len(client.servers)
    name = tr("{client} (this project)", client=file.client.name) if file.is_project else file.client.name
    row = Row(Group.CLIENTS, ("client", str(file.path)), name, "", subject=client)
    if client.fault:
        state = tr("its file cannot be read")
        return replace(row, state=state, icon="circle-x", role="deny", does=tr("unknown"), needs=True)
    direct = counted(count, "server", "servers")
    if not client.is_gated:
        if not count:
            return replace(row, state=tr("no servers"), icon="circle-slash", does=tr("nothing: it has no servers"))
        does = tr("all that its {servers} can", servers=direct)
        return replace(
            row, state=tr("not gated"), icon="shield-alert", role="ask", does=does, does_role="deny", needs=True
        )
    agents = (client.agent_id,) if client.agent_id else ()
    row = replace(row, state=tr("gated"), icon="circle-check", role="allow", agents=agents)
    if count:
        state = tr("gated, but {servers} directly", servers=direct)
        row = replace(row, state=state, icon="triangle-alert", role="ask", needs=True)
    here = known.policy.resolve() if known.policy is not None else None
    if here is None or client.policy not in {here, here.parent}:
        return replace(row, does=tr("what another policy lets it"))
    effects = known.agent(client.agent_id)
    last_s, today = _last_and_today(known, calls[1], client.agent_id)
    words = "…" if known.reaches is None else effect_words(_totals(effects)) or tr("nothing")
    role: Role = "muted" if known.reaches is None else "deny" if _is_free((effects,)) else "text"
    return replace(row, does=words, does_role=role, last_s=last_s, today=today)


def client_facts(client: ClientStatus, found: Row) -> tuple[Fact, ...]:
    """Say what a client reaches, and what a gate there does."""
    place = f"`{client.file.path}`"
    facts = [
        Fact("info", "muted", tr("A program that uses MCP servers. Its file {file} names them.", file=place)),
    ]
    if client.fault:
        return (*facts, Fact("circle-x", "deny", _sentence(client.fault)))
    direct = ", ".join(f"`{name}`" for name in client.servers)
    if not client.is_gated:
        if client.servers:
            facts += [
                Fact(
                    "shield-alert",
                    "deny",
                    tr("It reaches these directly, and nobody decides: {servers}.", servers=direct),
                ),
                Fact("circle-help", "ask", tr("What they can do is unknown here until you add them and start them.")),
            ]
        words = tr("With a gate it sees just the tools that you switch on, and each call is decided and logged.")
        return (*facts, Fact("shield-check", "allow", words))
    words = tr("The gate is in its file.")
    if client.agent_id:
        words = tr(
            "The gate is in its file: it is agent `{agent}` of `{policy}`.", agent=client.agent_id, policy=client.policy
        )
    facts.append(Fact("shield-check", "allow", words))
    if client.servers:
        facts.append(Fact("triangle-alert", "deny", tr("These it still reaches directly: {servers}.", servers=direct)))
    if found.does_role != "muted":
        is_bad = found.does_role == "deny"
        words = tr("It may: {effects}.", effects=found.does)
        if is_bad:
            words = tr("It may, some of it without asking: {effects}.", effects=found.does)
        facts.append(Fact("triangle-alert" if is_bad else "package", "deny" if is_bad else "muted", words))
        facts.append(Fact("history", "muted", _call_words(found)))
    return tuple(facts)


def _connection_row(one: Connected, known: Known) -> Row:
    process, client = one.process, one.client
    if client is None:
        key = ("process", str(process.pid))
        state = tr("no client is connected")
        return Row(Group.CLIENTS, key, tr("the gateway"), state, "clock", agents=tuple(process.agents), subject=one)
    effects = known.agent(client.agent_id)
    state, icon, role = tr("connected now"), "circle-check", "allow"
    if one.waits:
        state, icon, role = tr("waits for you: {calls}", calls=counted(len(one.waits), "call", "calls")), "hand", "ask"
    return Row(
        Group.CLIENTS,
        ("session", client.session_id),
        client.client or tr("a client without a name"),
        state,
        icon,
        role,
        "…" if known.reaches is None else effect_words(_totals(effects)) or tr("nothing"),
        "deny" if _is_free((effects,)) else "text",
        (client.agent_id,),
        None,
        client.calls,
        one,
        bool(one.waits),
    )


def connection_facts(one: Connected) -> tuple[Fact, ...]:
    """Say who is connected, by which way, and what became of its calls."""
    process, client = one.process, one.client
    address = process.address.removeprefix("http://").removesuffix("/mcp")
    way = tr("on standard input") if process.transport == "stdio" else tr("over HTTP at `{address}`", address=address)
    number = process.pid
    if client is None:
        ago = span(max(1, time.time() - process.since_wall_s))
        words = tr("The gateway serves {way} since {time}, as process {number}.", way=way, time=ago, number=number)
        whom = tr("For {agents}.", agents=names(process.agents)) if process.agents else tr("It has no token yet.")
        return Fact("info", "muted", words), Fact("users", "muted", whom)
    ago = span(max(1, time.time() - client.since_wall_s))
    words = tr("A client that is connected {way} since {time}.", way=way, time=ago)
    facts = [Fact("info", "muted", words), Fact("users", "muted", tr("It is agent `{agent}`.", agent=client.agent_id))]
    by = ", ".join(word for word in (client.user_id, client.token_id) if word)
    if by:
        facts.append(Fact("users", "muted", tr("Its token is that of {who}.", who=by)))
    calls = counted(client.calls, "call", "calls")
    facts.append(Fact("history", "muted", tr("{calls}, {denied} denied.", calls=calls, denied=f"{client.denied:,}")))
    if one.waits:
        waits = counted(len(one.waits), "call waits", "calls wait")
        facts.append(Fact("hand", "ask", tr("{calls} for your answer.", calls=waits)))
    told = tr("Process {number}, session `{session}`.", number=number, session=client.session_id)
    return (*facts, Fact("info", "muted", told))


def tool_effects(operations: Iterable[Effect]) -> str:
    """`reads`, or `reads, deletes`: what the operations of one tool do."""
    found = Counter(operations)
    return ", ".join(tr(_EFFECTS[one][0]) for one in Effect if found[one])
