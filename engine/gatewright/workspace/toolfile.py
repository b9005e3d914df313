"""A file that defines tools, an OpenAPI document or a manifest, read as data and turned into a catalog.

A person who adds such a file sees its tools first. A document becomes HTTP tools through a manifest beside the policy;
a manifest stays in the policy's folder, or is copied there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from urllib.parse import urlsplit

from gatewright.adapters.client_config import catalog_id
from gatewright.adapters.openapi_document import Fault, read_document
from gatewright.adapters.openapi_tools import Imported, import_document, server_addresses
from gatewright.base.amount import plural
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.policy.document import Catalog, CatalogType, Policy
from gatewright.policyfile.reader import catalog_fault
from gatewright.schema.flat import snake
from gatewright.schema.walk import as_list, as_object
from gatewright.sources.ground import is_inside, place_file
from gatewright.tools.pin import Listing
from gatewright.workspace.manifest import MAX_MANIFEST_BYTES, parse_json

MAX_FAULTS = 500
_SAYS_TOOLS = frozenset({"openapi", "swagger", "tools"})
_YAML = re.compile(r"""^["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)
_OF_REQUESTS = frozenset({"method", "path", "query", "body", "headers", "operations"})
"""Keys of ``run`` that only requests have."""
_OF_MODULES = frozenset({"fuel"})
_NO_NAMES = frozenset({"www", "api", "mcp", "rest"})
_WORD = re.compile(r"[A-Za-z0-9]+")


@frozen
class FoundTool:
    """A tool of a file in its own words; ``operations`` is their number, 0 for a tool without operations."""

    name: str
    description: str
    operations: int


@frozen
class ToolFile:
    """The content of a file of tools. ``content``: the manifest that it is, or becomes.

    ``kinds``: the possible executors of its tools, the likeliest first. ``servers``: the addresses in a document;
    ``headers``: the headers that its security needs, each with its scheme; ``fields``: the same for queries.
    ``left_out``: the number of all faults.
    """

    is_document: bool
    title: str
    kinds: tuple[CatalogType, ...]
    tools: tuple[FoundTool, ...]
    content: bytes = field(repr=False)
    servers: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    faults: tuple[Fault, ...] = ()
    left_out: int = 0
    fields: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    @property
    def operations(self) -> int:
        """The number of operations of all its tools; a tool without any counts as one."""
        return sum(max(1, tool.operations) for tool in self.tools)

    @property
    def words(self) -> str:
        """The number of tools and operations in words."""
        return f"{plural(self.operations, 'operation')} in {plural(len(self.tools), 'tool')}"

    def variables(self, catalog: str) -> dict[str, str]:
        """Return the environment variable for the value of each header."""
        return {header: _variable(f"{catalog}_{header}") for header in self.headers}

    def field_variables(self, catalog: str) -> dict[str, str]:
        """Return the environment variable for the value of each query field."""
        return {name: _variable(f"{catalog}_{name}") for name in self.fields}


def says_tools(text: str) -> bool:
    """Tell whether a text seems to define tools, rather than servers or anything else."""
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] not in {"{", "["}:
        return _YAML.search(text) is not None
    try:
        value: object = json.loads(start)
    except (ValueError, RecursionError):
        return _YAML.search(re.sub(r"^\s*\{\s*", "", start)) is not None
    table = as_object(value)
    return as_list(value) is not None if table is None else not _SAYS_TOOLS.isdisjoint(table)


def read_tool_file(content: bytes) -> ToolFile:
    """Read the tools that a file defines. Raises WorkspaceError with the place of a fault."""
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return _manifest(content, parse_json(content, "the manifest"))
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and len(content) <= MAX_MANIFEST_BYTES:
        value = parse_json(content, "the file")
        table = as_object(value) or {}
        if "tools" in table and "openapi" not in table:
            return _manifest(content, value)
    document = read_document(content)
    return _from_document(import_document(document), document.title, server_addresses(document))


def catalog_of_file(
    policy: Policy, found: ToolFile, wanted: Catalog, folder: Path, path: Path | None = None
) -> Catalog:
    """Return the catalog of a file's tools; ``wanted`` has its id and perhaps address and variables.

    ``path``: the file, which stays if it lies in the policy's ``folder``. An existing catalog of a document stays, and
    the document is read again. Raises WorkspaceError.
    """
    if not found.tools:
        what = "the document has no operation" if found.is_document else "the manifest has no tool"
        raise WorkspaceError(f"{what} that can be imported")
    if len(found.content) > MAX_MANIFEST_BYTES:
        most = MAX_MANIFEST_BYTES // 1024 // 1024
        raise WorkspaceError(f"its tools need more than {most} MiB: import a part of it")
    there, kept = policy.catalog(wanted.catalog_id), None if found.is_document else _within(folder, path)
    manifest = kept or f"{wanted.catalog_id}.tools.json"
    is_same = there is not None and (there.kind, there.manifest) == (wanted.kind, manifest)
    if there is not None and not is_same:
        raise WorkspaceError(f"another catalog is called `{wanted.catalog_id}`: choose another id")
    if there is not None and wanted.url in {None, there.url} and wanted.headers_env in ({}, there.headers_env):
        return there
    url = wanted.url
    if wanted.kind is CatalogType.HTTP and url is None:
        url = next(iter(found.servers), None)
        if url is None:
            raise WorkspaceError("the document does not name its server: give its address (--url)")
    headers = wanted.headers_env or found.variables(wanted.catalog_id)
    fields = wanted.query_env or found.field_variables(wanted.catalog_id)
    made = replace(wanted, manifest=manifest, url=url)
    if url is not None:
        made = replace(made, headers_env=headers, query_env=fields)
    if (fault := catalog_fault(made)) is not None:
        raise WorkspaceError(fault)
    return made


def place_manifest(found: ToolFile, catalog: Catalog, folder: Path) -> None:
    """Write a catalog's manifest into the policy's folder, unless it lies there. Raises WorkspaceError."""
    if catalog.manifest != f"{catalog.catalog_id}.tools.json":
        return
    target = folder / catalog.manifest
    try:
        if target.exists() and not _is_manifest(target):
            raise WorkspaceError(f"`{catalog.manifest}` exists already and is no manifest: choose another id")
        place_file(folder, catalog.manifest, found.content)
    except OSError as error:
        raise WorkspaceError(f"cannot write `{catalog.manifest}`: {error.strerror or error}") from None


def propose_id(found: ToolFile, policy: Policy) -> str:
    """Propose a free id for a file's catalog, from its server's host or its title."""
    host = urlsplit(found.servers[0]).hostname or "" if found.servers else ""
    parts = [part for part in host.split(".")[:-1] if part not in _NO_NAMES and not part.isdecimal()]
    words = parts[-1:] or [word.lower() for word in _WORD.findall(found.title)][:3] or ["tools"]
    return catalog_id("-".join(words), [one.catalog_id for one in policy.catalogs])


def _from_document(found: Imported, title: str, servers: tuple[str, ...]) -> ToolFile:
    rows = [(str(tool["name"]), str(tool["description"]), len(tool["inputSchema"]["oneOf"])) for tool in found.tools]
    about = {"name": title} if title else {}
    text = json.dumps({**about, "tools": list(found.tools)}, ensure_ascii=False, allow_nan=False)
    return ToolFile(
        True,
        title,
        (CatalogType.HTTP,),
        tuple(FoundTool(*row) for row in rows),
        f"{text}\n".encode(),
        servers,
        found.headers,
        found.faults,
        found.left_out,
        found.query,
    )


def _manifest(content: bytes, value: object) -> ToolFile:
    listing = Listing.of_manifest(value)
    runs = [as_object(one.get("run")) or {} for one in listing.tools]
    tools = tuple(
        FoundTool(name, str(one.get("description") or ""), len(as_object(run.get("operations")) or ()))
        for run, (name, one) in zip(runs, listing.definitions.items(), strict=True)
    )
    keys = {key for run in runs for key in run}
    if keys & _OF_REQUESTS:
        kinds = (CatalogType.HTTP,)
    elif keys & _OF_MODULES:
        kinds = (CatalogType.WASM,)
    else:
        kinds = (CatalogType.SUBPROCESS, CatalogType.WASM, *(() if keys else (CatalogType.HOST,)))
    said = [(one.pointer, f"`{one.name}`: " if one.name else "", one.message) for one in listing.left_out]
    faults = [Fault(pointer, f"{name}{message}") for pointer, name, message in said]
    return ToolFile(False, listing.name, kinds, tools, content, faults=tuple(faults[:MAX_FAULTS]), left_out=len(faults))


def _within(folder: Path, path: Path | None) -> str | None:
    """Return the path of a file in the policy's folder as the policy writes it; None for any other."""
    if path is None or not is_inside(Path(os.path.realpath(path)), folder):
        return None
    return os.path.relpath(os.path.realpath(path), os.path.realpath(folder)).replace(os.sep, "/")


def _is_manifest(path: Path) -> bool:
    try:
        Listing.of_manifest(parse_json(path.read_bytes(), "it"))
    except WorkspaceError:
        return False
    return True


def _variable(text: str) -> str:
    plain = "".join(char if char.isascii() and char.isalnum() else "_" for char in snake(text)).upper()
    return plain if not plain[:1].isdigit() else f"_{plain}"
