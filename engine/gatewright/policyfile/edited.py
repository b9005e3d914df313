"""A policy file of which single agents are edited: only their tables are patched, read and checked again.

What comes of it is what patching, reading and checking the whole text would give: text, problems, places. That holds
since an agent's tables stand in one stretch of lines, tables do not depend on the ones before them, and a check
either looks at one agent, or is made again. Wherever that cannot be told, nothing is returned.

A stretch begins behind the last statement before the first of its headers and ends at the next header, so blank lines
and comments between two agents belong to both. An agent that also stands elsewhere, in dotted keys or inside an
inline table, has none.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter

from gatewright.base.errors import NotSupported, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.base.problem import MAX_COMPARISONS, Address, Finding, Place, RawPath, Report
from gatewright.base.row import Row
from gatewright.policy.document import Agent, Dialect, Policy
from gatewright.policyfile.check import PolicyCheck
from gatewright.policyfile.editor import Editor
from gatewright.policyfile.names import KnownTools, Names
from gatewright.policyfile.patchagent import AgentPatch
from gatewright.policyfile.place import Places, problems_of
from gatewright.policyfile.readagent import read_agents
from gatewright.policyfile.reader import MAX_BYTES, TOP_KEYS, LoadedPolicy, Reading, text_fault
from gatewright.policyfile.scan import Section, Span, begins_with_header, key_of, scan

AGENTS = "agents"
_HEADER = re.compile(
    r"^[ \t]*\[\[?[ \t]*([A-Za-z0-9_-]+)(?:[ \t]*\.[ \t]*([A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'))?",
    re.MULTILINE,
)
_BRACKET = re.compile(r"^[ \t]*\[", re.MULTILINE)
_ON_TOP = re.compile(rf"^[ \t]*[\"']?{AGENTS}[\"']?[ \t]*[.=]", re.MULTILINE)

Mark = tuple[int, int, "str | None"]
"""A header: where its stretch would begin, where its own line begins, and the agent that it is of."""


def regions_of(text: str, top_keys: Iterable[str]) -> dict[str, Span]:
    """The stretch of each agent that has one, in a text that is valid TOML and has no tables but ``top_keys``."""
    marks = _plain_marks(text, frozenset(top_keys))
    elsewhere: frozenset[str] = frozenset()
    if marks is None:
        sections = scan(text).sections
        marks, elsewhere = list[Mark](), frozenset(_dotted(sections))
        for before, section in pairwise(sections):
            end = text.find("\n", before.end)
            is_top = not before.segments and not before.statements
            behind = before.start if is_top else len(text) if end < 0 else end + 1
            marks.append((behind, text.rfind("\n", 0, section.start) + 1, agent_at(section.path)))
    found: dict[str, Span] = {}
    torn: set[str] = set(elsewhere)
    held: str | None = None
    for (start, _, agent_id), (_, line, _) in pairwise([*marks, (len(text), len(text), None)]):
        if agent_id is not None and agent_id != held and agent_id in found:
            torn.add(agent_id)
        if agent_id is not None:
            found[agent_id] = (found[agent_id][0] if agent_id in found else start, line)
        held = agent_id
    return {agent_id: span for agent_id, span in found.items() if agent_id not in torn}


def _plain_marks(text: str, top_keys: frozenset[str]) -> list[Mark] | None:
    """The headers, where lines alone tell them: no text goes over lines, and no list holds what looks like a header.

    A bare word that is the name of a table is no value, so behind a bracket at the start of a line it is a header.
    """
    if '"""' in text or "'''" in text:
        return None
    found: list[Mark] = []
    for bracket in _BRACKET.finditer(text):
        header = _HEADER.match(text, bracket.start())
        if header is None or header[1] not in top_keys or (header[1] == AGENTS and header[2] is None):
            return None
        agent_id = key_of(header[2]) if header[1] == AGENTS else None
        above = bracket.start()
        while above > 0:  # the blank lines and comments directly above belong to it too
            line = text.rfind("\n", 0, above - 1) + 1
            stripped = text[line:above].lstrip(" \t\r\n\ufeff")
            if stripped and stripped[0] != "#":
                break
            above = line
        found.append((above, bracket.start(), agent_id))
    return None if not found or _ON_TOP.search(text, 0, found[0][1]) else found


def agent_at(path: RawPath) -> str | None:
    """The agent that the part of the policy at a path is of."""
    match path:
        case (str(first), str(agent_id), *_) if first == AGENTS:
            return agent_id
        case _:
            return None


def _dotted(sections: Sequence[Section]) -> Iterator[str]:
    """The agents that stand in statements of tables above them."""
    for section in sections:
        if section.path in {(), (AGENTS,)}:
            for statement in section.statements:
                path = (*section.path, *statement.keys)
                if path[0] == AGENTS and len(path) > 1:
                    yield str(path[1])


@frozen
class _Part:
    """One edited agent. ``stretch`` and ``changed`` are offsets of the text before, ``line`` where the stretch begins.

    ``text`` is what the stretch is now, ``grows`` how many lines and ``adds`` how many bytes it has more than before.
    """

    agent: Agent
    stretch: Span
    changed: Span
    line: int
    text: str
    grows: int
    adds: int
    read: Report
    checked: Report
    places: Places


class EditableText:
    """One text and what was read of it; with it policies that differ from its own in some of its agents alone."""

    def __init__(self, loaded: LoadedPolicy, policy: Policy, reading: Reading, known: KnownTools, file: str) -> None:
        self._loaded, self._policy, self._reading, self._file = loaded, policy, reading, file
        self._known = known
        self._check = PolicyCheck(policy, known)
        self._source_ids = {source.source_id for source in policy.sources}
        self._size = len(loaded.text.encode())
        self._regions = regions_of(loaded.text, TOP_KEYS)
        self._parts: dict[str, _Part] = {}

    @classmethod
    def of(cls, loaded: LoadedPolicy, policy: Policy, file: str) -> EditableText | None:
        """None of a text that is not good, or in Pattern's shape. ``policy`` equals what the text says."""
        reading = loaded.reading
        if loaded.policy is None or reading is None or reading.known is None or policy.dialect is Dialect.PATTERN:
            return None
        return cls(loaded, policy, reading, reading.known, file)

    def edited(self, policy: Policy) -> LoadedPolicy | None:
        """The text for a policy with the same agents, and other tables alike; None: look at the whole."""
        parts: list[_Part] = []
        for agent_id, before in self._policy.agents.items():
            after = policy.agents[agent_id]
            if after is not before and after != before:
                part = self._part(before, after)
                if part is None:
                    return None
                parts.append(part)
        parts.sort(key=lambda part: part.stretch)
        if not self._fit(parts):
            return None
        if not parts:
            return self._loaded
        edited = {part.agent.agent_id: part for part in parts}
        text, together = _joined(self._loaded.text, parts), Report()
        order = self._reading.policy.agents
        self._check.together([policy.agents[agent_id] for agent_id in order], together)
        places = _EditedPlaces(text, self._file, self._loaded.places, edited)
        findings = (
            *_of_others(self._reading.report, edited),
            *(found for part in parts for found in part.read.findings),
            *_of_others(self._reading.checked.agents, edited),
            *(found for part in parts for found in part.checked.findings),
            *together.findings,
            *self._reading.checked.rules.findings,
        )
        return LoadedPolicy(policy, problems_of(findings, places, policy), text, places)

    def _fit(self, parts: Sequence[_Part]) -> bool:
        """Whether no two edits touch each other, the text is not too large, and near misses are sought in all of it."""
        sought = self._reading.report.sought + sum(part.read.sought for part in parts)
        size = self._size + sum(part.adds for part in parts)
        apart = all(one.changed[1] < other.changed[0] for one, other in pairwise(parts))
        return apart and sought < MAX_COMPARISONS and size <= MAX_BYTES

    def _part(self, before: Agent, after: Agent) -> _Part | None:
        held = self._parts.get(after.agent_id)
        if held is not None and (held.agent is after or held.agent == after):
            return held
        stretch = self._regions.get(after.agent_id)
        try:
            part = None if stretch is None else self._made(before, after, stretch)
        except (NotSupported, WeMustFix, ValueError, OverflowError, RecursionError):
            return None
        if part is not None:
            self._parts[after.agent_id] = part
        return part

    def _made(self, before: Agent, after: Agent, stretch: Span) -> _Part | None:
        whole, (start, end) = self._loaded.text, stretch
        editor = Editor(whole, scan(whole, start, end))
        AgentPatch(editor).patch((AGENTS, after.agent_id), before, after)
        changed = editor.span or (start, start)
        if changed[0] < start or changed[1] > end:
            return None
        text, old = editor.result(stretch), whole[start:end]
        read, checked = Report(), Report()
        if not self._says(text, after, read):
            return None
        self._check.agent(after, checked)
        if read.has_errors or checked.has_errors:
            return None
        line, grows = whole.count("\n", 0, start) + 1, text.count("\n") - old.count("\n")
        adds, places = len(text.encode()) - len(old.encode()), Places(text, self._file, Dialect.GATEWRIGHT)
        return _Part(after, stretch, changed, line, text, grows, adds, read, checked, places)

    def _says(self, text: str, agent: Agent, report: Report) -> bool:
        """Whether a stretch holds whole tables of that agent and nothing else, and says what is wanted."""
        if text_fault(text) is not None or not begins_with_header(text):
            return False
        raw = tomllib.loads(text)
        table = Row(raw, (), report).table(AGENTS)
        if table is None or raw.keys() != {AGENTS} or table.raw.keys() != {agent.agent_id}:
            return False
        names = Names(self._known, report)
        said = read_agents(table, names, self._source_ids)
        return said == {agent.agent_id: agent} and not names.unread


class _EditedPlaces(Places):
    """Places in the text before, moved by the lines that came and went above them; of edited agents, in their own."""

    def __init__(self, text: str, file: str, before: Places, edited: Mapping[str, _Part]) -> None:
        super().__init__(text, file, Dialect.GATEWRIGHT)
        self._before, self._edited = before, edited
        self._in_order = sorted(edited.values(), key=attrgetter("line"))
        self._grown = [0, *accumulate(part.grows for part in self._in_order)]
        above = zip(self._in_order, self._grown, strict=False)
        self._lines_above = {part.agent.agent_id: part.line - 1 + grown for part, grown in above}

    def raw_path(self, address: Address) -> RawPath:
        return self._before.raw_path(address)

    def place_of_raw(self, path: RawPath, *, at_value: bool = False) -> Place:
        agent_id = agent_at(path)
        if agent_id is not None and agent_id in self._edited:
            place = self._edited[agent_id].places.place_of_raw(path, at_value=at_value)
            return _moved(place, self._lines_above[agent_id])
        place = self._before.place_of_raw(path, at_value=at_value)
        above = bisect_right(self._in_order, place.line, key=attrgetter("line"))
        if above and _holds(self._in_order[above - 1], place.line):
            return super().place_of_raw(path, at_value=at_value)
        return _moved(place, self._grown[above])


def _moved(place: Place, lines: int) -> Place:
    return Place(place.file, place.line + lines, place.column)


def _holds(part: _Part, line: int) -> bool:
    """Whether a line of the text before is one of the part's."""
    return line < part.line + part.text.count("\n") - part.grows


def _joined(text: str, parts: Sequence[_Part]) -> str:
    """The text with the parts put in; between two of them stands what both have there unchanged."""
    pieces: list[str] = []
    at = 0
    for part in parts:
        (start, end), (first, last) = part.stretch, part.changed
        pieces += text[at:first], part.text[first - start : len(part.text) - (end - last)]
        at = last
    return "".join([*pieces, text[at:]])


def _of_others(report: Report, edited: Mapping[str, _Part]) -> Iterator[Finding]:
    return (found for found in report.findings if agent_at(found.path) not in edited)
