"""Reading ``[[catalogs]]`` and taking the tools that they give among the known ones. It opens no manifest itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gatewright.base.printable import is_visible
from gatewright.base.problem import Severity
from gatewright.base.report import shown
from gatewright.policy.document import Catalog, CatalogType

if TYPE_CHECKING:
    from collections.abc import Collection

    from gatewright.base.report import RawPath, Report
    from gatewright.base.row import Row
    from gatewright.policy.right import ToolFacts
    from gatewright.policyfile.known import CatalogFacts, KnownTools

TYPES = {str(kind): kind for kind in CatalogType}
KEYS_OF_OTHERS = ("command", "args", "env", "cwd", "url", "headers_env", "module", "prefix")
KEYS = ("id", "type", "manifest", "trusted", *KEYS_OF_OTHERS)
OWN_ORIGIN = "built-in"


def read_catalogs(rows: list[Row], known: KnownTools | None) -> Catalogued:
    """The catalogs that can be built, and ``known`` with their tools; with ``known`` None nothing is looked up."""
    if known is not None and known.catalogs is None:
        for row in rows:
            row.report.error(row.path, "not-supported", "`[[catalogs]]` are not supported yet", at_value=False)
        return Catalogued((), known)
    found = _Catalogs(known)
    for row in rows:
        found.add(row)
    return Catalogued(tuple(found.catalogs), found.known, tuple(found.missing))


@dataclass(frozen=True, slots=True)
class Catalogued:
    """What reading the catalogs gave; ``missing``: where a manifest is named that is not there, and words for it."""

    catalogs: tuple[Catalog, ...]
    known: KnownTools | None
    missing: tuple[tuple[RawPath, str], ...] = ()

    def report_missing(self, report: Report, unread: Collection[str]) -> None:
        """Say so: as an error where the policy has ``unread`` names, which nobody else has."""
        for place, message in self.missing:
            if not unread:
                report.warning(place, "missing-path", message, at_value=True)
                continue
            first, *others = unread
            more = f", nor are {len(others):,} more that the policy has" if others else ""
            report.error(place, "missing-path", f"{message}: nothing known is named {shown(first)}{more}")


class _Catalogs:
    """The catalogs so far, and which of them gave which tool: a bare name, whatever the version, is one catalog's."""

    def __init__(self, known: KnownTools | None) -> None:
        self.catalogs: list[Catalog] = []
        self._known = known
        self._ids: dict[str, str] = {}
        self._own = {(facts.name, facts.major) for facts in known.facts} if known else set[tuple[str, int]]()
        self._given: dict[str, str] = {}
        self._facts: list[ToolFacts] = []
        self._is_complete = True
        self.missing: list[tuple[RawPath, str]] = []

    @property
    def known(self) -> KnownTools | None:
        """The known tools with those of the catalogs behind them."""
        if self._known is None:
            return None
        return replace(self._known, facts=(*self._known.facts, *self._facts), is_complete=self._is_complete)

    def add(self, row: Row) -> None:
        """Read one entry and what its manifest gives."""
        catalog = _catalog(row)
        if catalog is None:
            self._is_complete = False
            return
        folded = catalog.catalog_id.casefold()
        if folded in self._ids:
            row.fault("id", "duplicate", f"a catalog is named {shown(self._ids[folded])} already")
        self._ids.setdefault(folded, catalog.catalog_id)
        self.catalogs.append(catalog)
        if self._known is not None and self._known.catalogs is not None:
            self._take(row, catalog, self._known.catalogs(catalog))

    def _take(self, row: Row, catalog: Catalog, given: CatalogFacts) -> None:
        place = row.at("manifest")
        if given.is_missing:
            self._is_complete = False
            self.missing += [(place, message) for _, _, message in given.problems]
            return
        for severity, code, message in given.problems:
            if severity is Severity.ERROR:
                row.report.error(place, code, message)
                self._is_complete = False
            else:
                row.report.warning(place, code, message, at_value=True)
        for facts in given.facts:
            giver = self._given.setdefault(facts.name, catalog.catalog_id)
            if giver != catalog.catalog_id:
                row.report.error(place, "duplicate", f"{shown(facts.name)} is in catalog {shown(giver)} too")
                continue
            if (facts.name, facts.major) not in self._own:
                self._facts.append(facts)


def _catalog(row: Row) -> Catalog | None:
    row.only(KEYS, "a catalog")
    catalog_id = _id(row) if row.require("id", "a catalog") else None
    kind = row.choice("type", TYPES) if row.require("type", "a catalog") else None
    trusted = row.flag("trusted", otherwise=False)
    if kind is None:
        return None
    if kind is not CatalogType.HOST:
        row.fault("type", "not-supported", f"catalogs of type `{kind}` are not supported yet, only `host`")
        return None
    _refuse_keys_of_others(row)
    manifest = _manifest(row) if row.require("manifest", "a catalog of type `host`") else None
    return None if catalog_id is None or manifest is None else Catalog(catalog_id, kind, manifest, trusted)


def _id(row: Row) -> str | None:
    catalog_id = row.text("id", filled=True)
    if catalog_id == OWN_ORIGIN:
        row.fault(
            "id", "bad-value", f"no catalog may be named `{OWN_ORIGIN}`: that is where the program's own tools are"
        )
        return None
    return catalog_id


def _refuse_keys_of_others(row: Row) -> None:
    for key in KEYS_OF_OTHERS:
        if key in row.raw:
            message = f"`{key}` is not for type `host`, whose tools the program that loads the policy runs: remove it"
            row.report.error(row.at(key), "key-of-other-type", message, at_value=False)


def _manifest(row: Row) -> str | None:
    path = row.text("manifest")
    if path is None:
        return None
    if not path.strip() or not is_visible(path):
        why = "may not be blank" if not path.strip() else "may not hold characters that cannot be seen"
        row.fault("manifest", "bad-value", f"`manifest` {why}")
        return None
    if path.startswith("~"):
        row.fault("manifest", "bad-value", "`manifest` is a path as it stands: `~` stands for no folder")
        return None
    return path
