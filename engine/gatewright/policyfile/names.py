"""Names in a policy file: the tools and operations that it may name, and the places in the text of its addresses.

Canonical addresses name agents, sources and catalogs by id (``("sources", "docs", "permission_rules", 2)``) whatever
the dialect; raw paths follow the TOML. The text is scanned when somebody first asks for a place.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from itertools import accumulate, islice
from itertools import count as numbers
from typing import TYPE_CHECKING, TypeAlias

from gatewright.base.errors import (
    BOM,
    Address,
    Finding,
    Place,
    Problem,
    RawPath,
    Report,
    Severity,
    Subject,
    choice_hint,
    shown,
)
from gatewright.base.frozen import frozen
from gatewright.base.late import once
from gatewright.policy.composition import ORIGIN
from gatewright.policy.document import Catalog, Dialect, Policy
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.rulematch import subject_of
from gatewright.policy.verdict import SafetyTier, pick_tools, selected_catalog, selector_of, split_name

if TYPE_CHECKING:
    from gatewright.policyfile.scan import Item, Tree


@frozen
class CatalogFacts:
    """The result of reading one catalog: its tools, and the problems as (severity, code, message).

    ``is_missing``: neither manifest nor pin exists, which is an error only if the policy needs its tools. ``own``: the
    tools, by name and major, that the program has itself.
    """

    facts: tuple[ToolFacts, ...] = ()
    problems: tuple[tuple[Severity, str, str], ...] = ()
    is_missing: bool = False
    own: frozenset[tuple[str, int]] = frozenset()

    @property
    def is_whole(self) -> bool:
        """True if the catalog could be read."""
        return not self.is_missing and not any(severity is Severity.ERROR for severity, _, _ in self.problems)


@frozen
class Rooted:
    """A tool that needs something of ``[workspace]``: one or more of each group in ``needs`` (`Policy.provides`)."""

    facts: ToolFacts
    needs: tuple[tuple[str, ...], ...]

    def lacks(self, provided: frozenset[str]) -> tuple[str, ...] | None:
        """The first group of which nothing is ``provided``; None if the tool is available."""
        return next((group for group in self.needs if provided.isdisjoint(group)), None)


Declare: TypeAlias = "Callable[[ToolFacts, str | None, tuple[str, ...] | None], ToolFacts]"
"""Reads the facts of a registered (or catalogued) tool with an operation field, or a list of operations.

Both arguments are those of ``ToolSettings``. Raises AuthorMustFix with the problem.
"""

Catalogs: TypeAlias = "Callable[[tuple[Catalog, ...]], tuple[CatalogFacts, ...]]"
"""Reads the files that list the tools of the catalogs, in file order; no two catalogs define a tool of the same
name.
"""


Compose: TypeAlias = "Callable[[Policy, tuple[ToolFacts, ...]], tuple[ToolFacts, ...]]"
"""Returns the facts of the tools that the policy's compositions make of other tools, which come first."""


@frozen
class KnownTools:
    """The registered tools.

    Without ``declare`` no policy can name the operations of a tool; without ``catalogs`` none can add tools.
    ``rooted``: tools on files of the roots, which follow those that a policy may always name. ``is_complete``: every
    catalog could be read; otherwise an unknown name may be a tool of the unread one. Without ``compose`` compositions
    do not exist.
    """

    facts: tuple[ToolFacts, ...]
    declare: Declare | None = None
    catalogs: Catalogs | None = None
    rooted: tuple[Rooted, ...] = ()
    is_complete: bool = True
    compose: Compose | None = None
    _by_name: Mapping[str, tuple[ToolFacts, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[ToolFacts, ...]] = {}
        for facts in self.facts:
            found[facts.name] = (*found.get(facts.name, ()), facts)
        object.__setattr__(self, "_by_name", found)

    @property
    def names(self) -> frozenset[str]:
        """The bare names of the registered tools."""
        return frozenset(self._by_name)

    def has_all_of(self, catalogs: tuple[Catalog, ...]) -> bool:
        """Tell whether every one of the catalogs can be read."""
        return self.catalogs is None or all(given.is_whole for given in self.catalogs(catalogs))

    def with_rooted(self) -> KnownTools:
        """Add the tools on files of the roots, except those with the name and major version of another."""
        taken = {(facts.name, facts.major) for facts in self.facts}
        more = tuple(one for one in self.rooted if (one.facts.name, one.facts.major) not in taken)
        return replace(self, facts=(*self.facts, *(one.facts for one in more)), rooted=more) if self.rooted else self

    def with_compositions(self, policy: Policy) -> KnownTools:
        """Add the tools that the policy's compositions make of these, replacing earlier ones."""
        if self.compose is None or not (policy.compositions or any(one.origin == ORIGIN for one in self.facts)):
            return self
        others = tuple(facts for facts in self.facts if facts.origin != ORIGIN)
        return replace(self, facts=(*others, *self.compose(policy, others)))

    def there(self, provided: frozenset[str]) -> KnownTools:
        """Drop the tools that need something which this policy does not provide."""
        absent = [one.facts for one in self.rooted if one.lacks(provided) is not None]
        return replace(self, facts=tuple(facts for facts in self.facts if facts not in absent)) if absent else self

    def of(self, written: str) -> tuple[ToolFacts, ...]:
        """The registered majors that ``name`` or ``name@major`` may mean."""
        name, major = split_name(written)
        return tuple(facts for facts in self._by_name.get(name, ()) if major in {None, facts.major})

    def selected(self, written: str) -> tuple[ToolFacts, ...]:
        """The registered majors that ``written`` means: a tool, or with ``catalog:ID`` all tools of a catalog."""
        if selected_catalog(written) is None:
            return self.of(written)
        return tuple(facts for facts in self.facts if selector_of(facts.origin) == written)


TIERS = frozenset(str(tier) for tier in SafetyTier)


class Names:
    """Resolves names while one policy loads; if ``known`` is None (for a text checked before), every name passes.

    ``catalogs``: their ids. ``unread``: the unknown names that passed because an unreadable catalog may have them.
    """

    def __init__(self, known: KnownTools | None, report: Report, catalogs: Collection[str] = ()) -> None:
        self._known = known
        self._catalogs = catalogs
        self._report = report
        self._names = known.names if known else frozenset[str]()
        self._found: dict[str, tuple[ToolFacts, ...]] = {}
        self.unread: dict[str, None] = {}
        self._chosen: dict[tuple[str, ...] | None, dict[str, ToolFacts]] = {}

    @property
    def known(self) -> KnownTools | None:
        """The tools to resolve names against."""
        return self._known

    def tool(self, written: str, path: RawPath) -> tuple[ToolFacts, ...]:
        """The registered tools that ``written`` names; if it names none, reports an error at ``path``."""
        if self._known is None:
            return ()
        if not (found := self._of(written)):
            self._unknown_tool(written, path)
        return found

    def selected(self, written: str, path: RawPath) -> tuple[ToolFacts, ...]:
        """The same, or for ``catalog:ID`` the tools of a catalog, which may have none yet."""
        if self._known is None:
            return ()
        if (catalog_id := selected_catalog(written)) is None:
            return self.tool(written, path)
        self._check_catalog(catalog_id, path)
        return self._known.selected(written)

    def choose(self, listed: tuple[str, ...] | None) -> dict[str, ToolFacts]:
        """The major of each tool that an agent with this list of tools sees."""
        if self._known is None:
            return {}
        if listed not in self._chosen:
            key = tuple(name for name in listed or () if split_name(name)[1] is not None)
            if key not in self._chosen:
                self._chosen[key] = pick_tools(self._known.facts, key)
            self._chosen[listed] = self._chosen[key]
        return self._chosen[listed]

    def seen(self, written: str, listed: tuple[str, ...] | None) -> ToolFacts | None:
        """The tool that a rule on ``written`` limits for an agent with this list of tools; None if unknown."""
        if self._known is None or not (candidates := self._of(written)):
            return None
        name, major = split_name(written)
        return candidates[0] if major is not None else self.choose(listed).get(name, candidates[0])

    def operation(self, facts: ToolFacts, name: str, path: RawPath, *, at_value: bool = True) -> None:
        """Check that the tool has an operation of that name, which the file has at ``path`` as a value, or as a key."""
        if name in facts.operation_names:
            return
        near = self._report.near(name, facts.operation_names)
        message = f"`{facts.name}` has no operation {shown(name)}"
        self._report.error(path, "unknown-operation", message, near=near, at_value=at_value)

    def operation_of_any(self, tools: Iterable[ToolFacts], name: str, path: RawPath, where: str) -> None:
        """Check that one of ``tools`` has an operation of that name; ``where`` begins the message if none has."""
        candidates = tuple(tools)
        if self._known is None or any(name in facts.operation_names for facts in candidates):
            return
        if not self._known.is_complete:
            self.unread[name] = None
            return
        near = self._report.near(name, {word for facts in candidates for word in facts.operation_names})
        self._report.error(path, "unknown-operation", f"{where} has an operation {shown(name)}", near=near)

    def tool_or_operation(self, written: str, path: RawPath) -> None:
        """Check ``tool``, ``tool@major`` or either with ``.operation``; the longest registered name wins."""
        if self._known is None:
            return
        head = self._longest(written)
        if not (candidates := self._of(head)):
            self._unknown_tool(head or written, path)
            return
        operation = written[len(head) + 1 :]
        if head != written and not any(operation in facts.operation_names for facts in candidates):
            self.operation(candidates[-1], operation, path)

    def approval_key(self, key: str, path: RawPath) -> None:
        """Check a key of ``approvals``: a tier, a catalog, a tool, or ``tool.operation`` (the longest tool wins)."""
        if self._known is None or key in TIERS or key in self._names:
            return
        if (catalog_id := selected_catalog(key)) is not None:
            self._check_catalog(catalog_id, path)
            return
        if key == ANY_TOOL:
            message = (
                "`*` is no key of `approvals`: `read_only`, `side_effecting` and `privileged` are all tools together"
            )
            self._report.error(path, "bad-value", message, at_value=False)
            return
        name = self._longest(key)
        if name in self._names:
            operation = key[len(name) + 1 :]
            facts = [facts for facts in self._known.of(name) if operation in facts.operation_names]
            if not facts:
                self.operation(self._known.of(name)[-1], operation, path)
        elif split_name(key)[1] is not None or "@" in key:
            message = f"{shown(key)}: approvals of one major version are not supported yet, name the tool without it"
            self._report.error(path, "not-supported", message)
        elif not self._known.is_complete:
            self.unread[key] = None
        else:
            near = self._report.near(key, {*TIERS, *self._names})
            choice = choice_hint(key, self._in_catalogs.get(key, ()))
            message = f"{shown(key)} is neither a tier nor a tool nor `tool.operation`{choice}"
            self._report.error(path, "unknown-tool", message, near=near)

    @once
    def _in_catalogs(self) -> dict[str, list[str]]:
        """The tools with a prefix, by their names without the prefix."""
        found: dict[str, list[str]] = {}
        for name in self._names:
            for dot in (at for at, letter in enumerate(name) if letter == "."):
                found.setdefault(name[dot + 1 :], []).append(name)
        return found

    def _longest(self, key: str) -> str:
        """The longest known name (or ``name@major``) that equals ``key``, or that precedes a dot in it; else empty."""
        end = len(key)
        while end > 0:
            if split_name(key[:end])[0] in self._names:
                return key[:end]
            end = key.rfind(".", 0, end)
        return ""

    def _of(self, written: str) -> tuple[ToolFacts, ...]:
        """The registered majors that ``written`` names."""
        if written not in self._found:
            self._found[written] = self._known.of(written) if self._known else ()
        return self._found[written]

    def _check_catalog(self, catalog_id: str, path: RawPath) -> None:
        if catalog_id not in self._catalogs:
            near = self._report.near(catalog_id, self._catalogs)
            message = f"no catalog is named {shown(catalog_id)}"
            self._report.error(path, "unknown-catalog", message, near=near and selector_of(near))

    def _unknown_tool(self, written: str, path: RawPath) -> None:
        name, major = split_name(written)
        if selected_catalog(written) is not None:
            text = f"{shown(written)} is no single tool: whole catalogs stand in `tools` and `approvals` of agents, in "
            self._report.error(path, "bad-value", f"{text}policy rules and in the default `approvals`")
        elif name in self._names:
            text = f"`{name}` has no major version {major}"
            self._report.error(path, "unknown-tool", text, near=name)
        elif self._known is not None and not self._known.is_complete:
            self.unread[written] = None
        else:
            near = self._report.near(name, self._names)
            text = f"no tool is named {shown(written)}"
            hint = choice_hint(name, self._in_catalogs.get(name, ())) or (
                ""
                if near
                else ": tools of an MCP server come with `gatewright catalog import`, those of your own program with a "
                "manifest that `[[catalogs]]` names (`write_manifest`)"
            )
            self._report.error(path, "unknown-tool", f"{text}{hint}", near=near)


class Places:
    """The places of one text; they name it ``file``."""

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
            from gatewright.policyfile.scan import scan

            self._tree = scan(self._text)
        return self._tree

    def place(self, address: Address) -> Place | None:
        """The place of the part with this canonical address, or of its nearest ancestor in the text."""
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
                rows = held.rows if (held := self.tree.root.members.get("catalogs")) is not None else []
                ids = [self._text_of(row.members.get("id")) for row in rows]
                index = [ids.index(catalog_id)] if catalog_id in ids else []
                return ("catalogs", *index, *rest)
            case _:
                return address

    def place_of_raw(self, path: RawPath, *, at_value: bool = False) -> Place:
        """The place of the key (or the value) at a raw path, or of its nearest ancestor."""
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
        for index, item in enumerate(held.rows if (held := root.members.get("sources")) is not None else ()):
            source_id = self._text_of(item.members.get("id"))
            if source_id is not None:
                found.setdefault(source_id, ("sources", index))
        if self._dialect is Dialect.PATTERN and (table := root.members.get("data_sources")):
            taken = set(found)
            for key, item in table.members.items():
                paths = held.rows if (held := item.members.get("paths")) is not None else ()
                if self._text_of(item.members.get("type")) == "file":
                    for index, source_id in enumerate(ids_of_paths(key, len(paths), taken)):
                        found[source_id] = ("data_sources", key, "paths", index)
        self._sources = found
        return found

    def _text_of(self, item: Item | None) -> str | None:
        if item is None or not item.is_scalar:
            return None
        value: object = tomllib.loads(f"v = {self._text[item.start : item.end]}")["v"]
        return value if isinstance(value, str) else None


def ids_of_paths(key: str, count: int, taken: set[str]) -> list[str]:
    """The source ids of the paths of ``[data_sources.KEY]``: ``KEY``, ``KEY-2``, ...; they are added to ``taken``."""
    names = (key if number == 1 else f"{key}-{number}" for number in numbers(1))
    found = list(islice((name for name in names if name not in taken), count))
    taken.update(found)
    return found


def problems_of(findings: Iterable[Finding], places: Places, policy: Policy) -> tuple[Problem, ...]:
    """Every finding with its place, in file order; findings at one place keep their order.

    ``policy``: the policy that they are about, for their subjects.
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
    """The canonical address; empty if a path has none, as in the data sources of Pattern."""
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
