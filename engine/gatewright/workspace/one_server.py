"""A first policy for one MCP server: everything visible and nothing enforced, to begin with."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from gatewright.adapters.package_runner import read_runner
from gatewright.base.errors import NotSupported, WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.policy.document import Agent, Catalog, CatalogType, PlaceUse, Policy
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.policyfile import render_policy
from gatewright.workspace.commandfiles import propose_places
from gatewright.workspace.location import POLICY_NAME
from gatewright.workspace.workspace import Workspace

CATALOG = "server"
_HEAD = """\
# Made by `gatewright serve --agent {agent} -- COMMAND`. Everything that the server offers is shown and nothing is
# enforced yet, but every call is recorded. Open it with `gatewright {folder}` to restrict it.
"""


def policy_for_server(
    folder: Path,
    agent_id: str,
    command: Sequence[str],
    env: Sequence[str] = (),
    *,
    state: Path | None = None,
    scripts: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return the policy file in a folder for this server and agent; make it if missing, and report that to ``tell``.

    The typed command counts as trusted, and its package is installed (``scripts``: with its install scripts). A new
    policy comes from the server's list, with all tools accepted; the paths in its arguments become its places, to
    change. Raises WorkspaceError for a folder with another policy, or a silent server; then nothing of a new policy
    stays.
    """
    path = folder.absolute() / POLICY_NAME if folder.is_dir() else folder.absolute()
    is_new = not path.exists()
    package = read_runner(command[0], command[1:])
    arguments = tuple(command[1:]) if package is None else package.arguments
    typed = Catalog(CATALOG, CatalogType.MCP, command=command[0], args=arguments)
    places = tuple(propose_places(typed, path.parent, {}))
    if is_new:
        _write(path, agent_id, command, env, tools=(), places=places)
    try:
        with Workspace.open(path, state=state) as workspace:
            catalog = workspace.policy.catalog(CATALOG)
            words = (catalog.command, *catalog.args) if catalog is not None else ()
            if words != tuple(command) or agent_id not in workspace.policy.agents:
                hint = f"serve it unchanged (`gatewright serve {path} --agent ID`), or name another folder before `--`"
                raise WorkspaceError(f"`{path}` is another policy, without this server for `{agent_id}`: {hint}")
            workspace.trust_server(CATALOG)
            asyncio.run(workspace.servers.install(CATALOG, scripts=scripts, tell=tell))
            if is_new:
                asyncio.run(workspace.servers.refresh(CATALOG))
                workspace.accept_tools(CATALOG, None, needs_capabilities=False, instructions=True, who="command line")
                (held,) = workspace.catalog_states()
                _write(path, agent_id, command, env, tools=held.tool_names, places=places)
                tell(f"made `{path}`, which shows everything and enforces nothing yet")
                named = ", ".join(f"`{place}`" for place in places) or "no folder"
                tell(f"the server reads and changes {named}, and nothing else of yours")
    except BaseException:
        if is_new:
            path.unlink(missing_ok=True)
            shutil.rmtree(path.parent / "catalogs", ignore_errors=True)
        raise
    return path


def _write(
    path: Path,
    agent_id: str,
    command: Sequence[str],
    env: Sequence[str],
    *,
    tools: Sequence[str],
    places: Sequence[str],
) -> None:
    agent = Agent(agent_id, tools=tuple(tools), approvals=dict.fromkeys(map(str, SafetyTier), Verdict.ALLOW))
    uses = dict.fromkeys(places, PlaceUse.WRITE)
    arguments, names = tuple(command[1:]), tuple(env)
    server = Catalog(CATALOG, CatalogType.MCP, command=command[0], args=arguments, env=names, places=uses)
    head = _HEAD.format(agent=agent_id if agent_id.isprintable() else "A", folder=path.parent)
    try:
        text = render_policy(Policy(agents={agent_id: agent}, catalogs=(server,)))
        write_atomically(path, (head + text).encode())
    except (OSError, NotSupported, UnicodeEncodeError) as error:
        raise WorkspaceError(f"a policy cannot be made at `{path}`: {error}; name another folder before `--`") from None
