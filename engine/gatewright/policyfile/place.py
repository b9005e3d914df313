"""Places in a policy file: canonical addresses to lines and columns, and the findings of a load as problems there.

Canonical addresses name agents, sources and catalogs by id (``("sources", "docs", "permission_rules", 2)``) whatever
the dialect; raw paths follow the TOML. The text is scanned at the first question.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from gatewright.base.problem import BOM, Address, Finding, Place, Problem, RawPath, Subject
from gatewright.policy.document import Dialect, Policy
from gatewright.policy.rulematch import subject_of
from gatewright.policyfile.scan import Item, Kind, Tree, scan


class Places:
    """The places of one text. ``file`` is the name that they carry."""

    def __init__(self, text: str, file: str, dialect: Dialect) -> None:
        self._text = text
        self._file = file
        self._dialect = dialect
        self._tree: Tree | None = None
        self._lines: list[int] | None = None
        self._sources: dict[str, RawPath] | None = None

    @property
    def tree(self) -> Tree:
        """The scanned text."""
        if self._tree is None:
            self._tree = scan(self._text)
        return self._tree

    def place(self, address: Address) -> Place | None:
        """The place of the part with this canonical address, or of its nearest known parent."""
        return self.place_of_raw(self.raw_path(address))

    def raw_path(self, address: Address) -> RawPath:
        """The path in the TOML for a canonical address."""
        match address:
            case ("agents", _, *rest) if self._dialect is Dialect.PATTERN:
                return tuple(rest)
            case ("sources", str(source_id), *rest):
                path = self._source_paths().get(source_id, ("sources",))
                if rest == ["base_path"] and path[0] == "data_sources":
                    return path
                return (*(path[:2] if path[0] == "data_sources" else path), *rest)
            case ("catalogs", str(catalog_id), *rest):
                rows = _elements(self.tree.root.members.get("catalogs"))
                ids = [self._text_of(row.members.get("id")) for row in rows]
                index = [ids.index(catalog_id)] if catalog_id in ids else []
                return ("catalogs", *index, *rest)
            case _:
                return address

    def place_of_raw(self, path: RawPath, *, at_value: bool = False) -> Place:
        """The place of the key (or the value) at a raw path, or of its nearest parent."""
        item, depth = self.tree.nearest(path)
        return self.place_at(item.start if at_value and depth == len(path) else item.key_start)

    def place_at(self, offset: int) -> Place:
        """Line and column of an offset."""
        if self._lines is None:
            self._lines = [0, *accumulate(len(line) + 1 for line in self._text.split("\n"))]
        line = bisect_right(self._lines, offset)
        start = self._lines[line - 1]
        skipped = len(BOM) if line == 1 and self._text.startswith(BOM) else 0
        return Place(self._file, line, max(offset - start - skipped, 0) + 1)

    def source_path(self, source_id: str) -> RawPath | None:
        """The raw path of a source: ``("sources", 0)``, or in Pattern's files ``("data_sources", KEY, "paths", 0)``."""
        return self._source_paths().get(source_id)

    def _source_paths(self) -> dict[str, RawPath]:
        if self._sources is not None:
            return self._sources
        root = self.tree.root
        found: dict[str, RawPath] = {}
        for index, item in enumerate(_elements(root.members.get("sources"))):
            source_id = self._text_of(item.members.get("id"))
            if source_id is not None:
                found.setdefault(source_id, ("sources", index))
        if self._dialect is Dialect.PATTERN and (table := root.members.get("data_sources")):
            taken = set(found)
            for key, item in table.members.items():
                paths = _elements(item.members.get("paths"))
                if self._text_of(item.members.get("type")) == "file":
                    for index, source_id in enumerate(ids_of_paths(key, len(paths), taken)):
                        found[source_id] = ("data_sources", key, "paths", index)
        self._sources = found
        return found

    def _text_of(self, item: Item | None) -> str | None:
        if item is None or item.kind is not Kind.SCALAR:
            return None
        value: object = tomllib.loads(f"v = {self._text[item.start : item.end]}")["v"]
        return value if isinstance(value, str) else None


def ids_of_paths(key: str, count: int, taken: set[str]) -> list[str]:
    """The source ids of the paths of ``[data_sources.KEY]``: ``KEY``, ``KEY-2``, ...; it adds them to ``taken``."""
    found: list[str] = []
    number = 1
    while len(found) < count:
        candidate = key if number == 1 else f"{key}-{number}"
        number += 1
        if candidate not in taken:
            taken.add(candidate)
            found.append(candidate)
    return found


def _elements(item: Item | None) -> list[Item]:
    return item.elements if item is not None and item.kind in {Kind.TABLES, Kind.ARRAY} else []


def problems_of(findings: Iterable[Finding], places: Places, policy: Policy) -> tuple[Problem, ...]:
    """Every finding with its place, in file order; findings at one place keep their order.

    ``policy``: the one that they are about, for their subjects.
    """
    found = [(finding, places.place_of_raw(finding.path, at_value=finding.at_value)) for finding in findings]
    found.sort(key=lambda pair: (pair[1].line, pair[1].column))
    problems: list[Problem] = []
    for finding, place in found:
        subject: Subject | None = None
        if address := address_of(policy, finding.path):
            about = subject_of(policy, address)
            agents = about.agents if finding.agent_id is None else (finding.agent_id,)
            subject = Subject(address, agents, finding.tools or about.tools)
        problems.append(Problem(finding.severity, finding.code, finding.message, place, finding.near_miss, subject))
    return tuple(problems)


def address_of(policy: Policy, path: RawPath) -> Address:
    """The canonical address; empty if it has none, as in the data sources of Pattern."""
    match path:
        case ("data_sources", *_):
            return ()
        case ("sources", int(index), *rest):
            return ("sources", policy.sources[index].source_id, *rest) if index < len(policy.sources) else path[:1]
        case ("catalogs", int(index), *rest):
            return ("catalogs", policy.catalogs[index].catalog_id, *rest) if index < len(policy.catalogs) else path[:1]
        case ("sources" | "defaults", *_):
            return path
        case _ if policy.dialect is Dialect.PATTERN:
            return ("agents", *list(policy.agents)[:1], *path)
        case _:
            return path
