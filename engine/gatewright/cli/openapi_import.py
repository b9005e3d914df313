"""``catalog import --openapi``: the operations of a document become HTTP tools, by a manifest beside the policy."""

from __future__ import annotations

from gatewright.base.printable import printable
from gatewright.cli.exit import UsageProblem
from gatewright.cli.output import print_error, read_content
from gatewright.cli.server_import import import_server
from gatewright.policy.document import Catalog
from gatewright.workspace import Workspace
from gatewright.workspace.toolfile import catalog_of_file, place_manifest, read_tool_file

_SHOWN = 20


def import_openapi(workspace: Workspace, file: str, made: Catalog, *, trust: bool, accept: bool, as_json: bool) -> None:
    """Write the manifest of the document in ``file`` (``-``: stdin), and add or refresh its catalog.

    ``made``: the catalog as the options say; where they name no address or headers, those of the document count.
    Raises UsageProblem, WorkspaceError for a document that cannot be read.
    """
    found = read_tool_file(read_content(file))
    if not found.is_document:
        raise UsageProblem("it is a manifest, not an OpenAPI document: --manifest adds one")
    for fault in found.faults[:_SHOWN]:
        print_error(f"gatewright: left out: {printable(fault.message)}, at {printable(fault.pointer)}")
    if found.left_out > _SHOWN:
        print_error(f"gatewright: and {found.left_out - _SHOWN:,} more that are left out")
    catalog = catalog_of_file(workspace.policy, found, made, workspace.folder)
    place_manifest(found, catalog, workspace.folder)
    print_error(f"gatewright: `{catalog.manifest}` has {found.words}, which are sent to {catalog.url}")
    for header, variable in catalog.headers_env.items():
        what = " (all of it, such as `name=value`)" if header.lower() == "cookie" else ""
        print_error(f"gatewright: the header `{header}` is the value of the environment variable `{variable}`{what}")
    for name, variable in catalog.query_env.items():
        print_error(f"gatewright: `{name}` of each query is the value of the environment variable `{variable}`")
    import_server(workspace, catalog.catalog_id, catalog, trust=trust, accept=accept, scripts=False, as_json=as_json)
