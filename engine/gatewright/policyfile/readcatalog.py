"""Reading ``[[catalogs]]`` and taking the tools that they give among the known ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import cast
from urllib.parse import urlsplit

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.base.printable import is_visible
from gatewright.base.problem import RawPath, Report, Severity, shown
from gatewright.base.row import Raw, Row
from gatewright.base.shape import FLAG, NAME, TEXT, Shape, by_name, one_of, several, table, told
from gatewright.policy.composition import ORIGIN as COMPOSITION
from gatewright.policy.document import Catalog, CatalogType, Confine, PlaceUse, Source, SourceType, is_folder_place
from gatewright.policyfile.names import KnownTools

TYPES = {str(kind): kind for kind in CatalogType}
CONFINES = {str(one): one for one in Confine}
_USES = {str(one): one for one in PlaceUse}
_WHO_RUNS = {
    CatalogType.HOST: "whose tools the program that loads the policy runs",
    CatalogType.MCP: "whose server says itself which tools it has",
    CatalogType.HTTP: "whose tools are requests below its `url`",
    CatalogType.SUBPROCESS: "whose `command` is started for each call",
    CatalogType.WASM: "whose tools a `module` runs",
}
COMMON: dict[str, Shape] = {
    "id": told(NAME, "Its name; that of a server names the file of its pin too"),
    "type": one_of(TYPES),
    "trusted": told(FLAG, "Whether what the tools say of their tiers counts", default=False),
    "prefix": told(TEXT, "Its tools are named `prefix.name`"),
}
_ABOUT = {
    CatalogType.HOST: "Tools that the program which loads the policy runs itself",
    CatalogType.MCP: "An MCP server",
    CatalogType.HTTP: "Tools that are requests over HTTP",
    CatalogType.SUBPROCESS: "Tools that a command runs, which is started for each call",
    CatalogType.WASM: "Tools that a WASM module runs, which is started for each call",
}
STARTED: dict[str, Shape] = {
    "args": told(several(TEXT), "What the command is given; no shell reads it", []),
    "env": told(several(NAME), "The names of the environment variables that it gets", []),
    "cwd": told(NAME, "Where it is started"),
    "confine": told(
        one_of(CONFINES),
        "`policy`: it gets its `places` and nothing else; `none`: all that you may read and change",
        str(Confine.POLICY),
    ),
    "places": told(
        by_name(one_of(_USES)),
        "What it gets: sources by id, folders (`./...`, `/...`); `snapshot`: a copy, written back as levels allow",
    ),
}
_MANIFEST = told(NAME, "The file with the tools' definitions, relative to this file")
_COMMAND = told(NAME, "What starts the server, or runs a call of a tool")
_URL = told(NAME, "Where the server is reached, in place of a `command`; or what requests of tools begin with")
_HEADERS = told(by_name(NAME), "Headers, each with the environment variable that holds its value")
_QUERY = told(by_name(NAME), "Fields of each query, each with the environment variable that holds its value")
_MODULE = told(NAME, "The WASM module that runs a call of a tool, relative to this file")
KEYS_OF: dict[CatalogType, dict[str, Shape]] = {
    CatalogType.HOST: {"manifest": _MANIFEST},
    CatalogType.MCP: {"command": _COMMAND, **STARTED, "url": _URL, "headers_env": _HEADERS},
    CatalogType.HTTP: {"manifest": _MANIFEST, "url": _URL, "headers_env": _HEADERS, "query_env": _QUERY},
    CatalogType.SUBPROCESS: {"manifest": _MANIFEST, "command": _COMMAND, **STARTED},
    CatalogType.WASM: {"manifest": _MANIFEST, "module": _MODULE, "places": STARTED["places"]},
}
_NEEDED = {
    CatalogType.HOST: ("manifest",),
    CatalogType.HTTP: ("manifest", "url"),
    CatalogType.SUBPROCESS: ("manifest", "command"),
    CatalogType.WASM: ("manifest", "module"),
}
"""The keys without which a catalog is none; an MCP server has a command or an address."""
OF_TYPES = {key: shape for keys in KEYS_OF.values() for key, shape in keys.items()}
KEYS = {**COMMON, **OF_TYPES}
OWN_ORIGIN = "built-in"
_FILE_STEM = late_regex(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?")
_PREFIX = late_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}")
_VARIABLE = late_regex(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = late_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIELD = late_regex(r"[\x21-\x7e]{1,100}")
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
"""Names that Windows keeps for devices, whatever stands behind a dot."""


def catalog_shape() -> Shape:
    """The shape of an entry of ``[[catalogs]]``, of each type; of a server by command or by address."""
    server = KEYS_OF[CatalogType.MCP]
    by_command = {key: shape for key, shape in server.items() if key not in {"url", "headers_env"}}
    by_address = {key: server[key] for key in ("url", "headers_env")}

    def entry(kind: CatalogType, keys: dict[str, Shape], *needed: str) -> Shape:
        return table({**COMMON, "type": told(one_of([kind]), _ABOUT[kind]), **keys}, "id", "type", *needed)

    return {
        "anyOf": [
            *(entry(kind, KEYS_OF[kind], *needed) for kind, needed in _NEEDED.items()),
            entry(CatalogType.MCP, by_command, "command"),
            entry(CatalogType.MCP, by_address, "url"),
        ]
    }


def read_catalogs(rows: list[Row], known: KnownTools | None) -> Catalogued:
    """The catalogs that can be built, and ``known`` with their tools; with ``known`` None nothing is looked up."""
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
    for (row, catalog), given in zip(read, known.catalogs(catalogs), strict=True):
        place = row.at("manifest" if catalog.kind.has_manifest else "id")
        facts += given.facts
        if given.is_missing:
            missing += [(place, message) for _, _, message in given.problems]
        for severity, code, message in () if given.is_missing else given.problems:
            if severity is Severity.ERROR:
                row.report.error(place, code, message)
            else:
                row.report.warning(place, code, message, at_value=True)
        is_complete = is_complete and given.is_whole
    return Catalogued(catalogs, replace(known, facts=tuple(facts), is_complete=is_complete), tuple(missing))


@frozen
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


def _check_names(rows: list[Row]) -> None:
    """No two catalogs have one id, whatever the case, or one prefix."""
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
    row.only(KEYS, "a catalog")
    catalog_id = _id(row) if row.require("id", "a catalog") else None
    kind = row.choice("type", TYPES) if row.require("type", "a catalog") else None
    trusted = row.flag("trusted", otherwise=False)
    if kind is None:
        return None
    for key in OF_TYPES:
        if key in row.raw and key not in KEYS_OF[kind]:
            message = f"`{key}` is not for type `{kind}`, {_WHO_RUNS[kind]}: remove it"
            row.report.error(row.at(key), "key-of-other-type", message, at_value=False)
    prefix = _prefix(row)
    if kind.is_pinned:
        _check_stem(row, kind)
    if kind is CatalogType.MCP:
        return None if catalog_id is None else _server(row, Catalog(catalog_id, kind, trusted=trusted, prefix=prefix))
    lacks = [key for key in _NEEDED[kind] if not row.require(key, f"a catalog of type `{kind}`")]
    if lacks:
        return None
    manifest = _path(row, "manifest")
    if catalog_id is None or manifest is None:
        return None
    catalog = Catalog(catalog_id, kind, manifest, trusted, prefix)
    match kind:
        case CatalogType.HTTP:
            return _reached(row, catalog)
        case CatalogType.SUBPROCESS:
            return _started(row, catalog)
        case CatalogType.WASM:
            module = _path(row, "module")
            return None if module is None else replace(catalog, module=module, places=_places(row))
        case _:
            return catalog


def _check_stem(row: Row, kind: CatalogType) -> None:
    catalog_id = row.raw.get("id")
    if not isinstance(catalog_id, str) or not catalog_id.strip():
        return
    if not _FILE_STEM.fullmatch(catalog_id) or catalog_id.partition(".")[0].casefold() in _DEVICES:
        message = f"the id of a catalog of type `{kind}` names a file: letters, digits, `_`, `-`, `.`, up to 64"
        row.fault("id", "bad-value", message)


def _server(row: Row, catalog: Catalog) -> Catalog | None:
    """An MCP server: a command that is started, or a URL."""
    if "command" in row.raw and "url" in row.raw:
        message = "a server is started by its `command` or reached at its `url`, not both: remove one"
        row.report.error(row.at("url"), "bad-value", message, at_value=False)
        return None
    if "url" in row.raw:
        for key in STARTED:
            if key in row.raw:
                message = f"`{key}` is for a server that is started by a `command`, not for one with a `url`: remove it"
                row.report.error(row.at(key), "key-of-other-type", message, at_value=False)
        return _reached(row, catalog)
    if "command" not in row.raw:
        message = "a catalog of type `mcp` needs a `command` that starts the server, or its `url`"
        row.report.error(row.path, "missing-key", message, at_value=False)
        return None
    if "headers_env" in row.raw:
        message = "`headers_env` is for a server with a `url`; `env` names the variables for a `command`: remove it"
        row.report.error(row.at("headers_env"), "key-of-other-type", message, at_value=False)
    return _started(row, catalog)


def _reached(row: Row, catalog: Catalog) -> Catalog | None:
    """The same with its address."""
    url, headers, query = _url(row), _from_variables(row, "headers_env"), _from_variables(row, "query_env")
    if url is None or headers is None or query is None:
        return None
    return replace(catalog, url=url, headers_env=headers, query_env=query)


def _started(row: Row, catalog: Catalog) -> Catalog | None:
    """The same with its command, and what that gets."""
    command, cwd = _path(row, "command"), _path(row, "cwd")
    args, env = _arguments(row), _variables(row)
    confine, places = row.choice("confine", CONFINES) or Confine.POLICY, _places(row)
    if command is None or args is None or env is None:
        return None
    return replace(catalog, command=command, args=args, env=env, cwd=cwd, confine=confine, places=places)


def _places(row: Row) -> dict[str, PlaceUse] | None:
    """Source or folder to what may be done there; None where nothing was said."""
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
    """Every place that is no folder is a source of files of the policy."""
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


def _arguments(row: Row) -> tuple[str, ...] | None:
    """What the command gets, each as it stands: no shell reads it."""
    words = row.words("args") if "args" in row.raw else ()
    for index, word in enumerate(words or ()):
        if not is_visible(word):
            message = f"an entry of `args` may not hold characters that cannot be seen: {shown(word)}"
            row.report.error(row.at("args", index), "bad-value", message)
            return None
    return words


def _variables(row: Row) -> tuple[str, ...] | None:
    """The names in `env`. Their values are not the policy's business: it is read by others than the operator."""
    if isinstance(row.raw.get("env"), dict):
        message = "`env` is a list of the names of variables; their values stay in the environment"
        row.fault("env", "wrong-type", message)
        return None
    words = row.words("env") if "env" in row.raw else ()
    for index, word in enumerate(words or ()):
        if not _VARIABLE.fullmatch(word):
            what = "a name without its value" if "=" in word else "the name of an environment variable"
            said = f": `{word.partition('=')[0][:80]}`" if _VARIABLE.match(word.partition("=")[0]) else ""
            row.report.error(row.at("env", index), "bad-value", f"an entry of `env` is {what}{said}")
            return None
        if words is not None and word in words[:index]:
            row.report.error(row.at("env", index), "duplicate", f"`env` names `{word}` twice")
            return None
    return words


def _from_variables(row: Row, key: str) -> dict[str, str] | None:
    """Header, or field of a query, to the variable with its value."""
    table = row.table(key)
    if table is None:
        return {} if key not in row.raw else None
    found: dict[str, str] = {}
    for header in table.raw:
        variable = table.text(header)
        if not (_HEADER if key == "headers_env" else _FIELD).fullmatch(header):
            what = "no name of a header" if key == "headers_env" else "no name of a field"
            row.report.error(table.at(header), "bad-value", f"{shown(header)} is {what}", at_value=False)
            return None
        if key == "headers_env" and header.casefold() in map(str.casefold, found):
            message = f"the header `{header}` stands here a second time"
            row.report.error(table.at(header), "duplicate", message, at_value=False)
            return None
        if variable is None:
            return None
        if not _VARIABLE.fullmatch(variable):
            table.fault(header, "bad-value", f"`{header}` is the name of the environment variable with the value")
            return None
        found[header] = variable
    return found


def _url(row: Row) -> str | None:
    url = row.text("url", filled=True)
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        is_reachable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_reachable, parts = False, None
    if not is_reachable or parts is None or " " in url:
        row.fault("url", "bad-value", "`url` is the address of a server: `https://host/path`")
        return None
    if "@" in parts.netloc:
        row.fault("url", "bad-value", "`url` may not hold a user or a password: name a header in `headers_env`")
        return None
    return url


def _prefix(row: Row) -> str | None:
    prefix = row.text("prefix")
    if prefix is not None and not _PREFIX.fullmatch(prefix):
        message = "`prefix` is letters, digits, `_`, `-`, up to 32, a letter, digit or `_` first"
        row.fault("prefix", "bad-value", message)
        return None
    return prefix


def _id(row: Row) -> str | None:
    catalog_id = row.text("id", filled=True)
    if catalog_id in {OWN_ORIGIN, COMPOSITION}:
        whose = "the program's own tools are" if catalog_id == OWN_ORIGIN else "compositions are"
        row.fault("id", "bad-value", f"no catalog may be named `{catalog_id}`: that is where {whose}")
        return None
    return catalog_id


def _path(row: Row, key: str) -> str | None:
    path = row.text(key)
    if path is None:
        return None
    if not path.strip() or not is_visible(path):
        why = "may not be blank" if not path.strip() else "may not hold characters that cannot be seen"
        row.fault(key, "bad-value", f"`{key}` {why}")
        return None
    if path.startswith("~"):
        row.fault(key, "bad-value", f"`{key}` is a path as it stands: `~` stands for no folder")
        return None
    return path
