"""Reads ``[[catalogs]]``, and adds the tools of catalogs to the known ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import cast
from urllib.parse import urlsplit

from pydantic import Field

from gatewright.base.errors import RawPath, Report, Severity, shown
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.base.printable import is_visible
from gatewright.base.row import Raw, Row, Shape, describe, one_of, table
from gatewright.policy.composition import ORIGIN as COMPOSITION
from gatewright.policy.document import Catalog, CatalogType, Confine, PlaceUse, Source, SourceType, is_folder_place
from gatewright.policy.right import of_origin
from gatewright.policy.verdict import Mode
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.table import Id, Moment, Name, Table, check_mode, keys_of, read_keys

TYPES = {str(kind): kind for kind in CatalogType}
_USES = {str(one): one for one in PlaceUse}
_WHO_RUNS = {
    CatalogType.HOST: "whose tools the program that loads the policy runs",
    CatalogType.MCP: "whose server says itself which tools it has",
    CatalogType.HTTP: "whose tools are requests below its `url`",
    CatalogType.SUBPROCESS: "whose `command` is started for each call",
    CatalogType.WASM: "whose tools a `module` runs",
}
_ABOUT = {
    CatalogType.HOST: "Tools that the program which loads the policy runs itself",
    CatalogType.MCP: "An MCP server",
    CatalogType.HTTP: "Tools that are requests over HTTP",
    CatalogType.SUBPROCESS: "Tools that a command runs, which is started for each call",
    CatalogType.WASM: "Tools that a WASM module runs, which is started for each call",
}


class CatalogTable(Table, of=Catalog):
    """A row of ``[[catalogs]]``, of any type; ``KEYS_OF`` says which type has which keys."""

    catalog_id: Id = Field(alias="id", description="Its name; for a server also the name of its pin's file")
    kind: CatalogType = Field(alias="type")
    manifest: Name = Field("", description="The file with the tools' definitions, relative to this file")
    module: Name = Field("", description="The WASM module that runs a call of a tool, relative to this file")
    command: Name | None = Field(None, description="The command that starts the server, or runs a call of a tool")
    args: tuple[str, ...] = Field((), description="The arguments of the command; no shell reads them")
    env: tuple[Name, ...] = Field((), description="The names of the environment variables that it gets")
    cwd: Name | None = Field(None, description="The folder to start in")
    url: Id | None = Field(
        None,
        description="The address of the server, in place of a `command`; or the beginning of all requests of tools",
    )
    headers_env: Mapping[str, Name] = Field(
        {}, description="Headers, each with the environment variable that holds its value"
    )
    query_env: Mapping[str, Name] = Field(
        {}, description="Fields of each query, each with the environment variable that holds its value"
    )
    prefix: str | None = Field(None, description="Its tools are named `prefix.name`")
    trusted: bool = Field(False, description="Believe the tiers that the tools declare")
    confine: Confine = Field(
        Confine.POLICY,
        description="`policy`: it gets only its `places`; `none`: everything that you may read and change",
    )
    places: Mapping[str, PlaceUse] | None = Field(
        None,
        description="Its places: sources by id, folders (`./...`, `/...`); `snapshot`: a copy, written back as "
        "levels allow",
    )
    mode: Mode = Field(
        Mode.ENFORCE, description="`observe`: what denies or asks at its tools is noted in the log and not enforced"
    )
    observe_until_s: Moment | None = Field(
        None, alias="observe_until", description="The time when enforcing begins again, at most 30 days ahead"
    )

    @classmethod
    def shape(cls) -> Shape:
        """Its JSON Schema: one for each type, and for a server one by command and one by address."""
        shapes = {key: one.shape for key, one in keys_of(cls).items()}

        def entry(kind: CatalogType, keys: Iterable[str], *needed: str) -> Shape:
            own = {key: shapes[key] for key in (*COMMON, *keys)}
            return table({**own, "type": describe(one_of([kind]), _ABOUT[kind])}, "id", "type", *needed)

        return {
            "anyOf": [
                *(entry(kind, KEYS_OF[kind], *needed) for kind, needed in _NEEDED.items()),
                entry(CatalogType.MCP, ("command", *STARTED), "command"),
                entry(CatalogType.MCP, ("url", "headers_env"), "url"),
            ]
        }


COMMON = ("id", "type", "trusted", "prefix", "mode", "observe_until")
STARTED = ("args", "env", "cwd", "confine", "places")
KEYS_OF = {
    CatalogType.HOST: ("manifest",),
    CatalogType.MCP: ("command", *STARTED, "url", "headers_env"),
    CatalogType.HTTP: ("manifest", "url", "headers_env", "query_env"),
    CatalogType.SUBPROCESS: ("manifest", "command", *STARTED),
    CatalogType.WASM: ("manifest", "module", "places"),
}
_NEEDED = {
    CatalogType.HOST: ("manifest",),
    CatalogType.HTTP: ("manifest", "url"),
    CatalogType.SUBPROCESS: ("manifest", "command"),
    CatalogType.WASM: ("manifest", "module"),
}
"""The keys that a catalog must have; an MCP server has a command or an address."""
OWN_ORIGIN = "built-in"
_FILE_STEM = late_regex(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?")
_PREFIX = late_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}")
_VARIABLE = late_regex(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = late_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIELD = late_regex(r"[\x21-\x7e]{1,100}")
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
"""Names that Windows reserves for devices, whatever follows behind a dot."""


def read_catalogs(rows: list[Row], known: KnownTools | None) -> Catalogued:
    """Read the catalogs that can be built, and add their tools to ``known``; if that is None, no file is read."""
    if known is not None and known.catalogs is None:
        for row in rows:
            row.report.error(row.path, "not-supported", "`[[catalogs]]` are not supported yet", at_value=False)
        return Catalogued((), known)
    _check_names(rows)
    read = [(row, catalog) for row in rows if (catalog := _catalog(row)) is not None]
    catalogs = tuple(catalog for _, catalog in read)
    if known is None or known.catalogs is None:
        return Catalogued(catalogs, known)
    is_complete, facts = len(read) == len(rows), list(known.facts)
    missing: list[tuple[RawPath, str]] = []
    origins: dict[tuple[str, int], str] = {}
    for (row, catalog), given in zip(read, known.catalogs(catalogs), strict=True):
        place = row.at("manifest" if catalog.kind.has_manifest else "id")
        facts += given.facts
        origins |= dict.fromkeys(given.own, catalog.catalog_id)
        if given.is_missing:
            missing += [(place, message) for _, _, message in given.problems]
        for severity, code, message in () if given.is_missing else given.problems:
            if severity is Severity.ERROR:
                row.report.error(place, code, message)
            else:
                row.report.warning(place, code, message, at_value=True)
        is_complete = is_complete and given.is_whole
    if origins:
        facts = [of_origin(one, origins.get((one.name, one.major), one.origin)) for one in facts]
    return Catalogued(catalogs, replace(known, facts=tuple(facts), is_complete=is_complete), tuple(missing))


@frozen
class Catalogued:
    """The result of reading the catalogs; ``missing``: the places of manifests that do not exist, and words for
    each.
    """

    catalogs: tuple[Catalog, ...]
    known: KnownTools | None
    missing: tuple[tuple[RawPath, str], ...] = ()

    def report_missing(self, report: Report, unread: Collection[str]) -> None:
        """Report missing manifests: as errors if the policy has ``unread`` names, which no other catalog has."""
        for place, message in self.missing:
            if not unread:
                report.warning(place, "missing-path", message, at_value=True)
                continue
            first, *others = unread
            more = f", nor are {len(others):,} more that the policy has" if others else ""
            report.error(place, "missing-path", f"{message}: nothing known is named {shown(first)}{more}")


def _check_names(rows: list[Row]) -> None:
    """Check that no two catalogs share an id, whatever the case, or a prefix."""
    ids: dict[str, Row] = {}
    prefixes: dict[str, Row] = {}
    for row in rows:
        catalog_id, prefix = row.raw.get("id"), row.raw.get("prefix")
        if isinstance(catalog_id, str) and (first := ids.setdefault(catalog_id.casefold(), row)) is not row:
            row.fault("id", "duplicate", f"a catalog is named {shown(str(first.raw['id']))} already")
        if isinstance(prefix, str) and (first := prefixes.setdefault(prefix, row)) is not row:
            whose = shown(str(first.raw.get("id")))
            row.fault("prefix", "duplicate", f"catalog {whose} has the prefix {shown(prefix)} already")


def _catalog(row: Row) -> Catalog | None:
    """Read a catalog; None after an error."""
    errors, kind = len(row.report.error_paths), TYPES.get(str(row.raw.get("type")))
    other = _keys_of_others(row, kind) if kind is not None else ()
    row = Row({key: value for key, value in row.raw.items() if key not in other}, row.path, row.report)
    found = read_keys(row, CatalogTable, "a catalog")
    check_mode(row, found)
    _check_id(row, found.get("catalog_id"))
    if kind is None:
        return None
    _check_prefix(row, found.get("prefix"))
    if kind.is_pinned:
        _check_stem(row, kind)
    if kind is CatalogType.MCP:
        _check_server(row)
    for key in _NEEDED.get(kind, ()):
        row.require(key, f"a catalog of type `{kind}`")
    for key in ("manifest", "module", "command", "cwd"):
        _check_path(row, key, found.get(key))
    _check_url(row, found.get("url"))
    for index, word in enumerate(found.get("args", ())):
        if not is_visible(word):
            message = f"an entry of `args` may not hold characters that cannot be seen: {shown(word)}"
            row.report.error(row.at("args", index), "bad-value", message)
    env, places = _variables(row), _places(row)
    headers, query = _from_variables(row, "headers_env"), _from_variables(row, "query_env")
    if len(row.report.error_paths) > errors:
        return None
    return Catalog(**found, env=env, places=places, headers_env=headers, query_env=query)


def _keys_of_others(row: Row, kind: CatalogType) -> list[str]:
    """Report the keys that only catalogs of other types have."""
    of_types = dict.fromkeys(key for keys in KEYS_OF.values() for key in keys)
    other = [key for key in of_types if key in row.raw and key not in KEYS_OF[kind]]
    for key in other:
        message = f"`{key}` is not for type `{kind}`, {_WHO_RUNS[kind]}: remove it"
        row.report.error(row.at(key), "key-of-other-type", message, at_value=False)
    return other


def _check_stem(row: Row, kind: CatalogType) -> None:
    catalog_id = row.raw.get("id")
    if not isinstance(catalog_id, str) or not catalog_id.strip():
        return
    if not _FILE_STEM.fullmatch(catalog_id) or catalog_id.partition(".")[0].casefold() in _DEVICES:
        message = f"the id of a catalog of type `{kind}` names a file: letters, digits, `_`, `-`, `.`, up to 64"
        row.fault("id", "bad-value", message)


def _check_server(row: Row) -> None:
    """Report an MCP server that has not exactly one of a command and a URL."""
    if "command" in row.raw and "url" in row.raw:
        message = "a server is started by its `command` or reached at its `url`, not both: remove one"
        row.report.error(row.at("url"), "bad-value", message, at_value=False)
    elif "url" in row.raw:
        for key in STARTED:
            if key in row.raw:
                message = f"`{key}` is for a server that is started by a `command`, not for one with a `url`: remove it"
                row.report.error(row.at(key), "key-of-other-type", message, at_value=False)
    elif "command" not in row.raw:
        message = "a catalog of type `mcp` needs a `command` that starts the server, or its `url`"
        row.report.error(row.path, "missing-key", message, at_value=False)
    elif "headers_env" in row.raw:
        message = "`headers_env` is for a server with a `url`; `env` names the variables for a `command`: remove it"
        row.report.error(row.at("headers_env"), "key-of-other-type", message, at_value=False)


def _places(row: Row) -> dict[str, PlaceUse] | None:
    """Read the use of each place, a source or a folder; None if the file says nothing."""
    table = row.table("places")
    if table is None:
        return None
    found: dict[str, PlaceUse] = {}
    for place in table.raw:
        use = table.choice(place, _USES)
        if why := _place_error(place):
            table.report.error(table.at(place), "bad-value", f"a place {why}", at_value=False)
        elif use is not None:
            found[place] = use
    return found


def _place_error(place: str) -> str | None:
    if not place.strip():
        return "may not be blank"
    if not is_visible(place):
        return "may not hold characters that cannot be seen"
    return "is a path as it stands: `~` stands for no folder" if place.startswith("~") else None


def check_places(rows: list[Row], sources: Iterable[Source]) -> None:
    """Check that every place that is no folder is a source of files in the policy."""
    kinds = {source.source_id: source.kind for source in sources}
    files = [name for name, kind in kinds.items() if kind is SourceType.FILE]
    for row in rows:
        places = row.raw.get("places")
        for place in cast("Raw", places) if isinstance(places, dict) else ():
            if _place_error(place) or is_folder_place(place) or place in files:
                continue
            path, near = row.at("places", place), row.report.near(place, files)
            if place in kinds:
                message = f"{shown(place)} is no source of files, and no process gets it: name a folder"
                row.report.error(path, "bad-value", message, at_value=False)
                continue
            message = f"no source is named {shown(place)} (a folder is written `./{place}`)"
            row.report.error(path, "unknown-source", message, near=near, at_value=False)


def _variables(row: Row) -> tuple[str, ...]:
    """Read the names in `env`, up to a wrong one.

    Their values stay out of the policy, since not only the operator reads it.
    """
    if isinstance(row.raw.get("env"), dict):
        message = "`env` is a list of the names of variables; their values stay in the environment"
        row.fault("env", "wrong-type", message)
        return ()
    words = row.words("env") or ()
    for index, word in enumerate(words):
        if not _VARIABLE.fullmatch(word):
            what = "a name without its value" if "=" in word else "the name of an environment variable"
            said = f": `{word.partition('=')[0][:80]}`" if _VARIABLE.match(word.partition("=")[0]) else ""
            row.report.error(row.at("env", index), "bad-value", f"an entry of `env` is {what}{said}")
            break
        if word in words[:index]:
            row.report.error(row.at("env", index), "duplicate", f"`env` names `{word}` twice")
            break
    return words


def _from_variables(row: Row, key: str) -> dict[str, str]:
    """Read the variable for each header, or field of a query, up to a wrong one."""
    table = row.table(key) or Row({}, (), row.report)
    found: dict[str, str] = {}
    for header in table.raw:
        variable = table.text(header)
        if not (_HEADER if key == "headers_env" else _FIELD).fullmatch(header):
            what = "no name of a header" if key == "headers_env" else "no name of a field"
            table.report.error(table.at(header), "bad-value", f"{shown(header)} is {what}", at_value=False)
            break
        if key == "headers_env" and header.casefold() in map(str.casefold, found):
            message = f"the header `{header}` stands here a second time"
            table.report.error(table.at(header), "duplicate", message, at_value=False)
            break
        if variable is None:
            break
        if not _VARIABLE.fullmatch(variable):
            table.fault(header, "bad-value", f"`{header}` is the name of the environment variable with the value")
            break
        found[header] = variable
    return found


def _check_url(row: Row, url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        is_reachable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_reachable, parts = False, None
    if not is_reachable or parts is None or " " in url:
        row.fault("url", "bad-value", "`url` is the address of a server: `https://host/path`")
    elif "@" in parts.netloc:
        row.fault("url", "bad-value", "`url` may not hold a user or a password: name a header in `headers_env`")


def _check_prefix(row: Row, prefix: str | None) -> None:
    if prefix is not None and not _PREFIX.fullmatch(prefix):
        message = "`prefix` is letters, digits, `_`, `-`, up to 32, a letter, digit or `_` first"
        row.fault("prefix", "bad-value", message)


def _check_id(row: Row, catalog_id: str | None) -> None:
    if catalog_id in {OWN_ORIGIN, COMPOSITION}:
        whose = "the program's own tools are" if catalog_id == OWN_ORIGIN else "compositions are"
        row.fault("id", "bad-value", f"no catalog may be named `{catalog_id}`: that is where {whose}")


def _check_path(row: Row, key: str, path: str | None) -> None:
    if path is None:
        return
    if not path.strip() or not is_visible(path):
        why = "may not be blank" if not path.strip() else "may not hold characters that cannot be seen"
        row.fault(key, "bad-value", f"`{key}` {why}")
    elif path.startswith("~"):
        row.fault(key, "bad-value", f"`{key}` is a path as it stands: `~` stands for no folder")
