"""Compares what agents can do under two policies: before an edit, or in the file, and now. For the worker process.

Each number is counted from what the gate decides by: the compiled rights of each agent, and the levels of real files.
Recorded calls are decided by both.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from weakref import WeakKeyDictionary, finalize

from gatewright.workspace.api import (
    Agent,
    ChangeKind,
    Edit,
    Effect,
    OperationFacts,
    OperationRight,
    Permission,
    PlaceRight,
    Policy,
    Replay,
    ReplayedCall,
    RightState,
    Source,
    ToolListing,
    Verdict,
    Workspace,
    Written,
    apply,
    count_tokens,
    inverse,
    place_rights,
    replay,
    replay_rule,
    rights_changes,
    sources_reached,
    strictest,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.impact import (
    HARM,
    CallImpact,
    CallLine,
    Gain,
    Impact,
    ImpactLine,
    LimitWords,
    ModelImpact,
    agent_pairs,
    policy_lines,
)
from gatewright_gui.session.path_share import (
    FileUse,
    SourceFiles,
    block_levels,
    forget_files,
    server_folders,
    source_files,
)

MOST_LINES, MOST_CALLS = 500, 200
__all__ = ["PROVIDER", "Replay", "ReplayedCall", "call_impact", "impact", "model_impact", "replay_rule", "without_text"]

PROVIDER = "mcp"
"""The format in which the tokens of tools are counted."""
Since = Edit | None
"""The edit before which the policy was another one; None: the policy in the file."""


def impact(workspace: Workspace, since: Since, limit_words: LimitWords) -> Generator[None, None, Impact]:
    """Compare what agents can do now with what they could; yields after each agent."""
    before = _twin(workspace, since)
    forget_files(workspace)
    forget_files(before)
    return (yield from _Comparison(before, workspace).impact(limit_words))


def model_impact(workspace: Workspace, since: Since) -> ModelImpact:
    """Compare what the models of all agents see."""
    before = _twin(workspace, since)
    same_agents = _differ_in_agents_alone(before.policy, workspace.policy)
    more = fewer = models = 0
    changed: tuple[list[ToolListing], list[ToolListing]] = [], []
    for was, now in agent_pairs(before.policy, workspace.policy):
        if was is not None and same_agents and was == now:
            continue
        sides = [
            {} if one is None else {row.name: row for row in side.view(one.agent_id).listings()}
            for side, one in ((before, was), (workspace, now))
        ]
        differing = [name for name in {**sides[0], **sides[1]} if sides[0].get(name) != sides[1].get(name)]
        if differing:
            models += 1
            for kept, side in zip(changed, sides, strict=True):
                kept.extend(side[name] for name in differing if name in side)
            seen = [_seen(side, one) for side, one in ((before, was), (workspace, now))]
            more, fewer = more + len(seen[1] - seen[0]), fewer + len(seen[0] - seen[1])
    if not models:
        return ModelImpact(0, 0, 0, exact=True, models=0)
    counts = [count_tokens(listings, PROVIDER) for listings in changed]
    tokens = sum(counts[1].per_tool.values()) - sum(counts[0].per_tool.values())
    return ModelImpact(more, fewer, tokens, exact=all(one.exact for one in counts), models=models)


def call_impact(workspace: Workspace, since: Since) -> Generator[int, None, CallImpact]:
    """Decide the newest recorded calls by both policies; yields how many are decided."""
    found = yield from replay(workspace, _policy_before(workspace, since), workspace.policy)
    lacking = "  " + tr("(not all arguments are known)")
    lines = [
        CallLine(
            one.call.agent,
            f"{one.call.called}  {one.call.arguments}{lacking if one.lacks else ''}",
            one.before,
            one.after,
            one.reason.replace("`", ""),
        )
        for one in found.calls
    ]
    return CallImpact(tuple(lines[:MOST_CALLS]), found.differing, found.looked_at)


def without_text(edit: Edit) -> Edit:
    """Return the edit without the text that was typed for it, which decides nothing and may be large."""
    return replace(edit, changes=tuple(one for one in edit.changes if not isinstance(one.after, Written)))


def _policy_before(workspace: Workspace, since: Since) -> Policy:
    return workspace.saved_policy if since is None else apply(workspace.policy, inverse(since))


_twins: WeakKeyDictionary[Workspace, dict[bool, Workspace]] = WeakKeyDictionary()
"""A twin under the saved policy, and one under that before an edit: both questions may be under way at once."""


def _twin(workspace: Workspace, since: Since) -> Workspace:
    """Return the same workspace under the policy before, kept to be brought up to the next one."""
    policy, twins = _policy_before(workspace, since), _twins.setdefault(workspace, {})
    held = twins.get(since is None)
    if held is not None and (held.policy == policy or held.follow(replace(workspace.image(), policy=policy))):
        return held
    if held is not None:
        held.close()
    found = twins[since is None] = workspace.under(policy)
    finalize(workspace, found.close).atexit = False
    return found


def _differ_in_agents_alone(old: Policy, new: Policy) -> bool:
    return replace(old, agents=new.agents) == new


def _seen(side: Workspace, agent: Agent | None) -> set[tuple[str, str]]:
    """Tools and operations that the agent's model sees."""
    if agent is None:
        return set()
    rights = side.rights(agent.agent_id)
    return {(name, row.operation) for name, tool in rights.items() for row in tool.operations if not row.is_hidden}


# the comparison


class _Way:
    """One operation of one agent under one policy; ``place``: its verdicts file by file."""

    def __init__(
        self,
        right: OperationRight,
        op: OperationFacts,
        place: PlaceRight | None,
        sources: Sequence[Source],
        folders: tuple[str, ...],
        *,
        in_memory: bool,
    ) -> None:
        self.right = right
        self.is_placed = bool(sources) or in_memory
        """True if calls act on files or blocks that are there."""
        self.elsewhere = bool(op.path_actions or op.disk_actions)
        self.use = None if place is None else FileUse(place)
        self.sources = {one.source_id: one for one in sources}
        self.folders = folders
        self.in_memory = in_memory
        self._held: dict[tuple[str, Permission], Verdict] = {}

    @property
    def is_careful(self) -> bool:
        """True if two files of one level may differ."""
        return bool(self.folders) or (self.use is not None and self.use.has_conditions)

    @property
    def is_limited(self) -> bool:
        """True if some calls are denied or ask for other reasons than the place that they name."""
        return bool(self.right.by_value or self.right.by_text or (not self.is_placed and self.right.depends))

    def at_file(self, files: SourceFiles | None, path: str, level: Permission | None) -> Verdict:
        """The verdict at a file; deny if the operation does not reach its source."""
        source = None if files is None or level is None else self.sources.get(files.source.source_id)
        if source is None or files is None or level is None:
            return Verdict.DENY
        if self.folders and not f"{files.base}/{path}".startswith(self.folders):
            return Verdict.DENY
        if self.use is None:
            return self.right.verdict  # the same at each of them
        if self.is_careful:
            return self.use.verdict(source, path, level)
        key = source.source_id, level
        if key not in self._held:
            self._held[key] = self.use.verdict(source, path, level)
        return self._held[key]

    def at_block(self, level: Permission) -> Verdict:
        """The verdict at a block of memory."""
        if not self.in_memory:
            return Verdict.DENY
        return self.right.verdict if self.use is None else self.use.block_verdict(level)


Ways = Mapping[str, _Way]
"""By `tool.operation`, of those that the model sees."""


class _Tally:
    """The places of one kind of change, and the operations by which they change."""

    def __init__(self) -> None:
        self.files = self.blocks = 0
        self.ways: dict[str, None] = {}
        self.is_uneven = False

    def add(self, keys: Iterable[str], files: int, blocks: int) -> None:
        """Count places that change by these operations."""
        ways = dict.fromkeys(keys)
        self.is_uneven = self.is_uneven or (bool(self.ways) and ways.keys() != self.ways.keys())
        self.files, self.blocks, self.ways = self.files + files, self.blocks + blocks, self.ways | ways


class _Comparison:
    """Two workspaces that differ in their policy."""

    def __init__(self, before: Workspace, after: Workspace) -> None:
        self._before, self._after = before, after
        self._places: dict[str, _Places] = {}

    def impact(self, limit_words: LimitWords) -> Generator[None, None, Impact]:
        """Compare agent by agent; equal lines become one for all of their agents."""
        old, new = self._before.policy, self._after.policy
        same_others = _differ_in_agents_alone(old, new)
        found: dict[ImpactLine, list[str]] = {}
        idle = 0
        for was, now in agent_pairs(old, new):
            if was is not None and same_others and was == now:
                continue
            name = (now or was or Agent("")).agent_id
            for line in self._agent_lines(was, now):
                found.setdefault(line, []).append(name)
            idle += self._idle(was, now)
            yield
        for line, agents in policy_lines(old, new, limit_words):
            found.setdefault(line, []).extend(agents)
        lines = sorted(
            (replace(line, agents=tuple(agents)) for line, agents in found.items()), key=lambda one: one.rank
        )
        return Impact(tuple(lines[:MOST_LINES]), idle, max(len(lines) - MOST_LINES, 0))

    def _idle(self, was: Agent | None, now: Agent | None) -> int:
        """The number of boxes of an agent that are ticked now and change nothing."""
        if was is None or now is None:
            return 0
        rows = rights_changes(now.agent_id, self._before.rights(was.agent_id), self._after.rights(now.agent_id))
        return sum(row.kind is ChangeKind.WRITTEN and row.after is RightState.OVERRULED for row in rows)

    def _agent_lines(self, was: Agent | None, now: Agent | None) -> Iterator[ImpactLine]:
        if now is None:
            yield ImpactLine((), text=tr("{who}: deleted", who="{who}"), opens=False)
            return
        if was is None:
            yield ImpactLine((), text=tr("{who}: new", who="{who}"), opens=False)
        before = {} if was is None else _ways(self._before, was)
        after = _ways(self._after, now)
        for effect in HARM:
            lines = self._lines(effect, before.get(effect, {}), after.get(effect, {}), now.agent_id)
            yield from (line for line in lines if was is not None or line.gain is None or not line.gain.again)

    def _lines(self, effect: Effect, was: Ways, now: Ways, agent_id: str) -> Iterator[ImpactLine]:
        keys = dict.fromkeys((*was, *now))
        placed = {key for key in keys if any(self._is_placed(side.get(key)) for side in (was, now))}
        before, after = ({key: way for key, way in side.items() if key in placed} for side in (was, now))
        by_file = self._count(effect, before, after, agent_id)
        told = set(chain.from_iterable(tally.ways for tally in by_file.values()))
        by_none: dict[Gain, _Tally] = {}
        by_call: dict[Gain, _Tally] = {}
        for key in keys:
            used = [way for side in (was, now) if (way := side.get(key)) is not None]
            gain = _gain(effect, *(_verdict(side.get(key)) for side in (was, now)))
            if gain is not None and key not in told:
                is_counted = key in placed and not any(way.elsewhere for way in used)
                (by_none if is_counted else by_call).setdefault(gain, _Tally()).ways[key] = None
        kinds: tuple[tuple[dict[Gain, _Tally], bool], ...] = ((by_file, True), (by_none, True), (by_call, False))
        for kind, counts in kinds:
            for gain, tally in kind.items():
                used = [way for key in tally.ways for side in (was, now) if (way := side.get(key)) is not None]
                sources = {source_id for way in used for source_id in way.sources}
                yield ImpactLine(
                    (),
                    gain,
                    tally.files,
                    tally.blocks,
                    counts,
                    tuple(sorted(tally.ways)),
                    limited=any(way.is_limited for way in used),
                    elsewhere=counts and any(way.elsewhere for way in used),
                    partial=counts and any(self._places_of(source_id).is_partial for source_id in sources),
                    is_uneven=tally.is_uneven,
                )

    def _is_placed(self, way: _Way | None) -> bool:
        return way is not None and (
            way.in_memory or any(self._places_of(source_id).is_known for source_id in way.sources)
        )

    def _places_of(self, source_id: str) -> "_Places":
        if source_id not in self._places:
            self._places[source_id] = _Places(self._before, self._after, source_id)
        return self._places[source_id]

    def _count(self, effect: Effect, was: Ways, now: Ways, agent_id: str) -> dict[Gain, _Tally]:
        """Count the files and blocks whose mildest verdict by any operation of the effect changes."""
        tallies: dict[Gain, _Tally] = {}

        def add(before: Mapping[str, Verdict], after: Mapping[str, Verdict], files: int, blocks: int) -> None:
            for gain, keys in _changes(effect, before, after):
                tallies.setdefault(gain, _Tally()).add(keys, files, blocks)

        ways = (*was.values(), *now.values())
        is_careful = any(way.is_careful for way in ways)
        for source_id in dict.fromkeys(chain.from_iterable(way.sources for way in ways)):
            places = self._places_of(source_id)
            for path, one, other, count in places.each() if is_careful else places.classes():
                before = {key: way.at_file(places.before, path, one) for key, way in was.items()}
                after = {key: way.at_file(places.after, path, other) for key, way in now.items()}
                add(before, after, count, 0)
        if any(way.in_memory for way in ways):
            levels = Counter(block_levels(self._after, agent_id))
            for level, count in levels.items():
                before, after = ({key: way.at_block(level) for key, way in side.items()} for side in (was, now))
                add(before, after, 0, count)
        return tallies


class _Places:
    """The files of one source, with their levels before and after."""

    def __init__(self, before: Workspace, after: Workspace, source_id: str) -> None:
        old, new = (_source(side.policy, source_id) for side in (before, after))
        self.after = None if new is None else source_files(after, new)
        self.before = None if old is None else source_files(before, old, self.after)
        self._classes: Counter[tuple[Permission | None, Permission | None]] | None = None

    @property
    def is_known(self) -> bool:
        """True if the folder of the source can be read."""
        return self.before is not None or self.after is not None

    @property
    def is_partial(self) -> bool:
        """True if there are more files than were counted."""
        return any(one is not None and one.decided.index.truncated for one in (self.before, self.after))

    def each(self) -> Iterator[tuple[str, Permission | None, Permission | None, int]]:
        """Every file, with 1."""
        old, new = ({} if one is None else dict(one.paths()) for one in (self.before, self.after))
        for path in {**old, **new}:
            yield path, _level(self.before, old.get(path)), _level(self.after, new.get(path)), 1

    def classes(self) -> Iterator[tuple[str, Permission | None, Permission | None, int]]:
        """Levels before and after, with the number of their files."""
        if self._classes is None:
            self._classes = Counter((one, other) for _, one, other, _ in self.each())
        yield from (("", one, other, count) for (one, other), count in self._classes.items())


def _source(policy: Policy, source_id: str) -> Source | None:
    return next((one for one in policy.file_sources if one.source_id == source_id), None)


def _level(files: SourceFiles | None, code: int | None) -> Permission | None:
    return None if files is None or code is None else files.levels[code]


def _ways(side: Workspace, agent: Agent) -> dict[Effect, dict[str, _Way]]:
    """The operations that the agent's model sees, by effect."""
    found: dict[Effect, dict[str, _Way]] = {}
    for name, tool in side.rights(agent.agent_id).items():
        if tool.is_hidden:
            continue
        facts = tool.facts
        places = place_rights(side.policy, agent.agent_id, tool)
        folders: tuple[str, ...] | None = None
        for op, right in zip(facts.operations, tool.operations, strict=True):
            if not right.is_hidden:
                sources = () if op.makes else sources_reached(side.policy, agent, facts, op)
                in_memory = bool(op.labels) and not facts.needs_source
                if sources and folders is None:
                    folders = server_folders(side, facts.origin)
                place = places.get(op.name) if sources or in_memory else None
                way = _Way(right, op, place, sources, folders or (), in_memory=in_memory)
                found.setdefault(op.effect, {})[f"{name}.{op.name}" if op.name else name] = way
    return found


def _verdict(way: _Way | None) -> Verdict:
    return Verdict.DENY if way is None else way.right.verdict


def _gain(effect: Effect, before: Verdict, after: Verdict, *, again: bool = False) -> Gain | None:
    """The kind of a change from one verdict to another."""
    if before is after:
        return None
    more = strictest(before, after) is before
    return Gain(effect, more, after is Verdict.ASK, again)


def _changes(
    effect: Effect, before: Mapping[str, Verdict], after: Mapping[str, Verdict]
) -> Iterator[tuple[Gain, list[str]]]:
    """The changes at one place, each with the operations that it is due to: first of the mildest verdict there."""
    keys = dict.fromkeys((*before, *after))
    pairs = {key: (before.get(key, Verdict.DENY), after.get(key, Verdict.DENY)) for key in keys}
    was, now = (_mildest(side.values()) for side in (before, after))
    gain, due = _gain(effect, was, now), list[str]()
    if gain is not None:
        mildest = now if gain.more else was
        due = [key for key, pair in pairs.items() if pair[gain.more] is mildest and pair[not gain.more] is not mildest]
        yield gain, due
    others: dict[Gain, list[str]] = {}
    for key, pair in pairs.items():
        again = _gain(effect, *pair, again=True)
        if again is not None and key not in due:
            others.setdefault(again, []).append(key)
    yield from others.items()


def _mildest(verdicts: Iterable[Verdict]) -> Verdict:
    held = set(verdicts)
    return next((one for one in (Verdict.ALLOW, Verdict.ASK) if one in held), Verdict.DENY)
