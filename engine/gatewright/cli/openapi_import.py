"""``catalog import --openapi``: the operations of a document become HTTP tools, by a manifest beside the policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from gatewright.adapters.openapi_document import read_document
from gatewright.adapters.openapi_tools import Imported, import_document
from gatewright.base.atomicfile import write_atomically
from gatewright.base.plural import plural
from gatewright.base.printable import printable
from gatewright.cli.exit import UsageProblem
from gatewright.cli.output import print_error, read_content
from gatewright.cli.server_import import import_server
from gatewright.policy.document import Catalog, CatalogType
from gatewright.schema.shapes.naming import snake
from gatewright.workspace import Workspace
from gatewright.workspace.manifest import MAX_MANIFEST_BYTES

_SHOWN = 20


def import_openapi(workspace: Workspace, file: str, made: Catalog, *, trust: bool, accept: bool, as_json: bool) -> None:
    """Write the manifest of the document in ``file`` (``-``: stdin), and add or refresh its catalog.

    ``made``: the catalog as the options say; where they name no address or headers, those of the document count.
    Raises UsageProblem, WorkspaceError for a document that cannot be read.
    """
    document = read_document(read_content(file))
    found = import_document(document)
    for fault in found.faults[:_SHOWN]:
        print_error(f"gatewright: left out: {printable(fault.message)}, at {printable(fault.pointer)}")
    if found.left_out > _SHOWN:
        print_error(f"gatewright: and {found.left_out - _SHOWN:,} more that are left out")
    if not found.tools:
        raise UsageProblem("the document has no operation that could be imported")
    catalog = _catalog(workspace, made, found)
    name = document.title or catalog.catalog_id
    text = json.dumps({"name": name, "tools": list(found.tools)}, ensure_ascii=False, allow_nan=False)
    content = f"{text}\n".encode()
    if len(content) > MAX_MANIFEST_BYTES:
        raise UsageProblem(f"its tools need more than {MAX_MANIFEST_BYTES // 1024 // 1024} MiB: import a part of it")
    write_atomically(workspace.folder / catalog.manifest, content)
    about = f"{plural(found.operations, 'operation')} in {plural(len(found.tools), 'tool')}"
    print_error(f"gatewright: `{catalog.manifest}` has {about}, which are sent to {catalog.url}")
    for header, variable in catalog.headers_env.items():
        print_error(f"gatewright: the header `{header}` is the value of the environment variable `{variable}`")
    import_server(workspace, catalog.catalog_id, catalog, trust=trust, accept=accept, scripts=False, as_json=as_json)


def _catalog(workspace: Workspace, made: Catalog, found: Imported) -> Catalog:
    """The catalog with what the document says; one that is there already stays as it is. Raises UsageProblem."""
    there = workspace.policy.catalog(made.catalog_id)
    manifest = f"{made.catalog_id}.tools.json"
    is_same = there is not None and there.kind is CatalogType.HTTP and there.manifest == manifest
    if there is not None and not is_same:
        raise UsageProblem(f"there is a catalog `{made.catalog_id}` already, which is another: choose another --id")
    if there is not None and made.url in {None, there.url} and not made.headers_env:
        return there
    url = made.url or found.url
    if not url:
        raise UsageProblem("the document does not say where its server is: say --url")
    headers = made.headers_env or _variables(made.catalog_id, found.headers)
    return replace(made, kind=CatalogType.HTTP, manifest=manifest, url=url, headers_env=headers)


def _variables(catalog_id: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The environment variable of each header, which is to hold its value."""
    return {header: _variable(f"{catalog_id}_{header}") for header in headers}


def _variable(text: str) -> str:
    plain = "".join(char if char.isascii() and char.isalnum() else "_" for char in snake(text)).upper()
    return plain if not plain[:1].isdigit() else f"_{plain}"
