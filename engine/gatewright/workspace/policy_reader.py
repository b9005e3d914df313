"""Reads a policy file together with its catalogs, and finds problems outside of its text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from gatewright import policyfile, schema
from gatewright.base.errors import Address, Place, PolicyInvalid, Problem, Severity, Subject, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.builtins import builtin_tools, file_tool, note_tools
from gatewright.gate import key_folder
from gatewright.policy.document import CatalogType, Policy, Source, SourceType
from gatewright.policy.right import ToolFacts
from gatewright.policyfile import (
    KnownTools,
    LoadedPolicy,
    parse_policy,
    read_policy_text,
    write_policy_text,
)
from gatewright.sources.ground import resolve_base
from gatewright.tools import Tool, ToolRegistry
from gatewright.workspace.attachment import declare_rooted, folder_problem, root_problems, tools_on_roots
from gatewright.workspace.catalog import CatalogBook, MakeRunner
from gatewright.workspace.lint import grant_problems, host_problems, lints
from gatewright.workspace.policytext import PolicyText
from gatewright.workspace.trust import TrustRecords

SERVER_NOT_TRUSTED = "server-not-trusted"
PLACES_NOT_ACCEPTED = "places-not-accepted"
ENDPOINT_NOT_TRUSTED = "endpoint-not-trusted"
_WHO = {
    CatalogType.MCP: "server",
    CatalogType.HTTP: "address",
    CatalogType.SUBPROCESS: "command",
    CatalogType.WASM: "module",
}
UNTRUSTED = frozenset({SERVER_NOT_TRUSTED, ENDPOINT_NOT_TRUSTED})


@frozen
class PolicyState:
    """An open policy as one value: the edited policy, the text that its edits started from, its catalogs."""

    policy: Policy
    text: PolicyText
    book: CatalogBook

    @property
    def loaded(self) -> LoadedPolicy:
        """The reading of the text that a save would write now."""
        return self.text.read(self.policy)


class PolicyReader:
    """Reads one policy file, any number of times, with the manifests and pins that it names.

    ``tools`` returns those of the program. ``given``: manifests to use instead of files, by the path in the policy.
    ``runner``: makes the executor of a catalog's tool; None means that such tools are only decided. ``facts``: the
    tools that exist now; ``added``: the ids of the sources that the program has added.
    """

    def __init__(
        self,
        policy_path: Path,
        tools: Callable[[], Iterable[Tool]],
        records: TrustRecords,
        facts: Callable[[], tuple[ToolFacts, ...]],
        *,
        given: Mapping[str, bytes] = MappingProxyType({}),
        runner: MakeRunner | None = None,
        added: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._added = added
        self._path, self._tools, self._records, self._facts = policy_path, tools, records, facts
        self._given, self._runner = given, runner
        self._trusts_all = False

    def catalogs(
        self, before: CatalogBook | None, given: Mapping[str, bytes] = MappingProxyType({}), *, as_read: bool = False
    ) -> CatalogBook:
        """Return the catalogs, read again if changed since ``before``.

        ``given``: contents to use instead of files. ``as_read``: look at no file again.
        """
        book = catalog_book(
            self._path,
            self._tools(),
            before,
            records=self._records,
            trust=lambda: self._trusts_all,
            given={**self._given, **given},
            runner=self._runner,
        )
        if as_read and before is not None:
            book.read = dict(before.read)
        return book

    def read(self, before: CatalogBook | None, *, trust: bool = False) -> tuple[PolicyState, tuple[Problem, ...]]:
        """Read the policy on disk, with its warnings. ``trust``: record its outside paths and its servers as trusted.

        Raises WorkspaceError if it is unreadable, PolicyInvalid if it has errors.
        """
        book, self._trusts_all = self.catalogs(before), trust
        try:
            loaded = load(self._path, book.known)
            problems = (*loaded.problems, *self.problems_beside(loaded, trust=trust))
            if loaded.policy is None or any(problem.is_error for problem in problems):
                raise PolicyInvalid(problems)
        finally:
            self._trusts_all = False
        if trust:
            for catalog_id, manifest, content in book.outside(loaded.policy.catalogs):
                self._records.trust_manifest(self._path, catalog_id, manifest, content)
            for catalog in loaded.policy.catalogs:
                if catalog.kind.is_pinned:
                    self._records.trust_server(self._path, catalog)
            for target in loaded.policy.endpoints.outside:
                self._records.trust_endpoint(self._path, loaded.policy, target)
            problems = tuple(problem for problem in problems if problem.code not in UNTRUSTED)
        return PolicyState(loaded.policy, PolicyText(self._path, loaded, loaded.policy, book.known), book), problems

    def parse(self, text: str, policy: Policy) -> PolicyState:
        """Return the state for a text that was read before and says ``policy``. Raises PolicyInvalid."""
        book = self.catalogs(None)
        loaded = parse_policy(text, file=str(self._path), known=book.known)
        if loaded.policy is None:
            raise PolicyInvalid(loaded.problems)
        return PolicyState(policy, PolicyText(self._path, loaded, policy, book.known), book)

    def problems_beside(self, loaded: LoadedPolicy, *, trust: bool = False) -> Iterator[Problem]:
        """Yield the problems outside of the text: faults of the folders that a policy names, and warnings."""
        yield from folder_problems(loaded, self._path, self._records, trust=trust)
        never_asked = {_catalog_of(problem) for problem in loaded.problems if problem.code == "missing-path"}
        if loaded.policy is not None:
            places = loaded.places.place
            untrusted = server_problems(loaded.policy, self._path, self._records, places)
            yield from (one for one in untrusted if _catalog_of(one) not in never_asked)
            yield from place_problems(loaded.policy, self._path, places)
            yield from own_source_problems(loaded.policy, self._added(), places)
            yield from endpoint_problems(loaded.policy, self._path, self._records, places)
            yield from grant_problems(loaded.policy, self._path.parent, lambda: self.facts_of(loaded), places)
            yield from host_problems(loaded.policy, self._path.parent, places)
        yield from lints(loaded, lambda: self.facts_of(loaded))

    def facts_of(self, loaded: LoadedPolicy) -> tuple[ToolFacts, ...]:
        """Return the tools that the reading of a text used; for a text that is no TOML, the present ones."""
        return self._facts() if loaded.known is None else loaded.known.facts


def catalog_book(
    policy_path: Path,
    tools: Iterable[Tool] = (),
    before: CatalogBook | None = None,
    *,
    records: TrustRecords | None = None,
    trust: Callable[[], bool] = bool,
    given: Mapping[str, bytes] = MappingProxyType({}),
    runner: MakeRunner | None = None,
) -> CatalogBook:
    """Return everything that a policy file may name: the built-ins, ``tools``, and its own catalogs' tools.

    A manifest outside the folder is read if ``records`` (the user's own, if None) or ``trust`` allows it; contents in
    ``given`` replace files. ``runner``: makes the executor of a catalog's tool; without it such tools are only decided.
    Planned features are refused as unsupported. Raises AlreadyRegistered for one of ``tools`` with the name and major
    version of another.
    """

    def judge(catalog_id: str, manifest: Path) -> Callable[[bytes], bool] | None:
        if trust():
            return lambda _: True
        return (records or TrustRecords(key_folder(None))).manifest_test(policy_path, catalog_id, manifest)

    registry, ours = ToolRegistry(), (*builtin_tools(), *note_tools(), file_tool())
    for tool in (*ours, *tools):
        registry.register(tool)
    known = KnownTools(registry.facts(), declare=declare_rooted, rooted=tools_on_roots())
    names = (tool.name for tool in ours)
    return CatalogBook(
        policy_path.parent,
        known,
        registry.tools(),
        before,
        builtins=names,
        trusted=judge,
        given=given,
        runner=runner,
    )


def text_problems(policy_path: Path, text: str, tools: Iterable[Tool] = ()) -> tuple[Problem, ...]:
    """Find the problems of a text for a policy file, whatever the file holds; ``tools``: those of the program."""
    reader = PolicyReader(policy_path, lambda: tools, TrustRecords(key_folder(None)), tuple)
    loaded = parse_policy(text, file=str(policy_path), known=reader.catalogs(None).known)
    return (*loaded.problems, *reader.problems_beside(loaded))


def load(policy_path: Path, known: KnownTools) -> LoadedPolicy:
    """Parse the policy file with all its problems. Raises WorkspaceError if it is unreadable."""
    return parse_policy(read_policy_text(policy_path), file=str(policy_path), known=known)


def load_valid(policy_path: Path, known: KnownTools | None = None) -> tuple[LoadedPolicy, Policy]:
    """Read the policy file strictly; ``known``: the tools that it may name (default: the built-in ones).

    Its catalogs add theirs, unless ``known`` reads some itself. Raises WorkspaceError if it is unreadable,
    PolicyInvalid if it has errors.
    """
    if known is None:
        known = catalog_book(policy_path).known
    elif known.catalogs is None:
        known = CatalogBook(policy_path.parent, known).known
    loaded = load(policy_path, known)
    if loaded.policy is None:
        raise PolicyInvalid(loaded.problems)
    return loaded, loaded.policy


def base_problems(
    sources: Sequence[Source],
    policy_path: Path,
    records: TrustRecords,
    places: Callable[[Address], Place | None],
    *,
    trust: bool,
) -> tuple[Problem, ...]:
    """Report untrusted source folders outside the workspace as errors, and missing ones as warnings."""
    found: list[Problem] = []
    for source in sources:
        source_id, written = source.source_id, source.base_path
        address: Address = ("sources", source_id, "base_path")
        try:
            base = resolve_base(written, policy_path.parent)
        except WorkspaceError as error:
            problem = Severity.WARNING, "unreadable", f"source `{source_id}`: {error}"
        else:
            problem = folder_problem("source", source_id, written, base, policy_path, records, trust=trust)
        if problem:
            severity, code, message = problem
            found.append(Problem(severity, code, message, places(address), subject=Subject(address)))
    return tuple(found)


def folder_problems(
    loaded: LoadedPolicy, policy_path: Path, records: TrustRecords, *, trust: bool
) -> tuple[Problem, ...]:
    """Report the faults of sources' and roots' folders; for a policy with errors, of the part that could be read.

    ``trust``: trust those outside from now on, if nothing else is wrong.
    """
    if loaded.built is None:
        return ()
    policy, places = loaded.built, loaded.places.place
    given = trust and loaded.policy is not None
    found = (
        *base_problems(policy.folder_sources, policy_path, records, places, trust=given),
        *root_problems(policy.roots, policy_path, records, places, trust=given),
    )
    told = {(problem.code, problem.subject) for problem in loaded.problems}  # the same roots, compared by their text
    fresh = (problem for problem in found if (problem.code, problem.subject) not in told)
    return tuple(problem for problem in fresh if given or not trust or problem.code != "not-trusted")


def server_problems(
    policy: Policy, policy_path: Path, records: TrustRecords, places: Callable[[Address], Place | None]
) -> tuple[Problem, ...]:
    """Warn about each catalog whose tools may not run yet; only calls of them do not work without that."""
    found: list[Problem] = []
    for catalog in policy.catalogs:
        if catalog.kind.is_pinned and not records.trusts_server(policy_path, catalog):
            address: Address = ("catalogs", catalog.catalog_id)
            what = f"`{' '.join((catalog.command, *catalog.args))}`" if catalog.command else f"`{catalog.runs}`"
            who = _WHO[catalog.kind]
            text = f"the {who} of catalog `{catalog.catalog_id}` is not used before it is trusted: {what}"
            text += "; `gatewright check --trust` trusts it"
            found.append(Problem(Severity.WARNING, SERVER_NOT_TRUSTED, text, places(address), subject=Subject(address)))
    return tuple(found)


def place_problems(policy: Policy, policy_path: Path, places: Callable[[Address], Place | None]) -> Iterator[Problem]:
    """Warn about servers whose places nobody has accepted, and about missing folders among the places."""
    for catalog in policy.catalogs:
        name = catalog.catalog_id
        address: Address = ("catalogs", name)
        if catalog.waits_for_places:
            text = f"the tools of catalog `{name}` are held: nobody has accepted the places of its process"
            text += f"; `gatewright catalog places POLICY {name} --accept` gives it what its command names"
            yield Problem(Severity.WARNING, PLACES_NOT_ACCEPTED, text, places(address), subject=Subject(address))
        for written in catalog.place_folders:
            if not os.path.lexists(policy_path.parent / written):
                where: Address = (*address, "places", written)
                text = f"the place `{written}` of the server of catalog `{name}` is missing"
                yield Problem(Severity.WARNING, "missing-path", text, places(where), subject=Subject(where))


def _catalog_of(problem: Problem) -> str | None:
    """Return the id of a problem's catalog."""
    address = problem.subject.address if problem.subject is not None else ()
    return str(address[1]) if address[:1] == ("catalogs",) and len(address) > 1 else None


def own_source_problems(
    policy: Policy, added: frozenset[str], places: Callable[[Address], Place | None]
) -> Iterator[Problem]:
    """Warn about each source of a program that this program has not added: nobody gets its tools here."""
    for source in policy.sources:
        if source.kind is SourceType.HOST and source.source_id not in added:
            address: Address = ("sources", source.source_id)
            text = f"the program that has source `{source.source_id}` adds it; here nobody did, so it has no tools"
            yield Problem(Severity.WARNING, "source-not-added", text, places(address), subject=Subject(address))


def endpoint_problems(
    policy: Policy, policy_path: Path, records: TrustRecords, places: Callable[[Address], Place | None]
) -> Iterator[Problem]:
    """Warn about each endpoint that may not connect yet; only messages to it do not work without that."""
    for target, url in policy.endpoints.outside.items():
        if not records.trusts_endpoint(policy_path, policy, target):
            address: Address = ("workspace", "endpoints", target)
            text = f"the endpoint `{target}` is not used before it is trusted: `{url}`; `gatewright check --trust` does"
            severity, place = Severity.WARNING, places(address)
            yield Problem(severity, ENDPOINT_NOT_TRUSTED, text, place, subject=Subject(address))


def load_policy(path: Path | str, *, known: KnownTools | None = None, tools: Iterable[Tool] = ()) -> Policy:
    """Read the policy of a TOML file strictly. It may name the built-in tools, ``tools`` (those of the program itself),
    and those of its own catalogs' manifests; ``known`` replaces the first two.

    Raises WorkspaceError if it is unreadable, PolicyInvalid with every problem at once, or AlreadyRegistered for a tool
    with the name and major version of another.
    """
    return load_valid(Path(path), known or _tools_for(Path(path), tools))[1]


def save_policy(
    policy: Policy, path: Path | str, *, known: KnownTools | None = None, tools: Iterable[Tool] = ()
) -> None:
    """Write a policy atomically, as a patch of an existing file, so that its comments and order stay.

    Raises WorkspaceError if it cannot be written, PolicyInvalid if the present file has errors.
    """
    target = Path(path)
    if not target.exists():
        write_policy_text(target, policyfile.render_policy(policy), expected=None)
        return
    loaded, before = load_valid(target, known or _tools_for(target, tools))
    write_policy_text(target, policyfile.patch_text(loaded.text, before, policy), expected=loaded.text)


def format_names() -> tuple[str, ...]:
    """List the provider formats of the preview."""
    return tuple(schema.FORMATS)


def _tools_for(path: Path, tools: Iterable[Tool]) -> KnownTools:
    return catalog_book(path, tools).known
