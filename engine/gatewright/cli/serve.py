"""``preview``, ``rules``, ``serve`` and ``token``: shows the tools of agents as models see them, and serves MCP
clients.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from enum import StrEnum
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatewright.base.amount import iso_utc, parse_duration, plural
from gatewright.base.errors import near_hint
from gatewright.base.frozen import frozen
from gatewright.cli.output import (
    AgentOption,
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    ToolFile,
    TrustOption,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    print_text,
    read_tool_file,
    require_agent,
)
from gatewright.cli.schema import ChosenToolOption, FieldOption, OperationsOption, filter_notes, reading, reduce_schema
from gatewright.gate import ApprovalLimits
from gatewright.gate.sessionstore import ServingProcess
from gatewright.schema import ToolListing, format_named
from gatewright.schema.filter import output_without
from gatewright.schema.formats import ProviderLint, count_tokens
from gatewright.schema.walk import Schema
from gatewright.tools import ToolDefinition
from gatewright.workspace import Workspace, format_names

if TYPE_CHECKING:
    from gatewright.workspace.gateway import Gateway

LEVELS = ("refused", "looser", "narrower", "note")


def notes(listings: Sequence[ToolListing], form: str, unrestricted: Sequence[ToolListing]) -> Iterator[str]:
    """Yield the tokens of each tool and in all, then the lints, the gravest first, repeated ones once."""
    count = count_tokens(listings, form, unrestricted)
    about = "" if count.exact else "about "
    for name, tokens in count.per_tool.items():
        yield f"{name}: {about}{tokens:,} tokens"
    how = "exact" if count.exact else "an estimate"
    saving = f"{count.saving or 0:.0%} less than unrestricted"
    yield f"{about}{count.total:,} tokens in all ({count.encoding}), {how}, {saving}"
    found = [(name, lint) for name, lints in format_named(form).lints_all(listings).items() for lint in lints]
    noted: dict[str, list[str]] = {}
    for name, lint in sorted(found, key=lambda row: LEVELS.index(row[1].level)):
        if lint.level == "note":
            noted.setdefault(lint.message, []).append(_line(name, lint))
        else:
            yield _line(name, lint)
    for message, lines in noted.items():
        yield lines[0] if len(lines) == 1 else f"note: {len(lines):,} times: {message}"


def _line(name: str, lint: ProviderLint) -> str:
    where = f" at {lint.pointer}" if lint.pointer else ""
    return f"{lint.level}: {name or 'all tools'}{where}: {lint.message}"


NEEDED = 'give a tool definition, `{"name": "...", "inputSchema": ...}`'


@frozen
class Choice:
    """The options that choose a tool in the file, and parts of it; None for one that is not given."""

    tool: str | None = None
    allow: str | None = None
    field: str | None = None
    operations: str | None = None

    def words(self) -> list[str]:
        """Return the given options."""
        given = {"tool": self.tool, "allow": self.allow, "field": self.field, "operations": self.operations}
        return [f"--{name}" for name, value in given.items() if value is not None]


def is_tool_file(path: str) -> bool:
    """Tell whether ``path`` is JSON rather than a policy: by its name, else by its beginning."""
    if path == "-" or path.endswith(".json"):
        return True
    if path.endswith(".toml"):
        return False
    try:
        with Path(path).open("rb") as file:
            start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, ValueError):
        return False
    return start.startswith(b"{") or (start.startswith(b"[") and start[1:].lstrip().startswith((b"{", b"]")))


def preview_file(path: str, form: str, choice: Choice, *, as_json: bool) -> Exit:
    """Print the tools of a file as a provider gets them; unusable tools, costs and losses go to stderr."""
    source = read_tool_file(path)
    if source.kind == "schema" and choice.tool is None and choice.allow is None:
        raise UsageProblem(f"{source.what} is a bare schema and has no name: {NEEDED}")
    source.print_warnings()
    chosen = _choose(source, choice)
    whole = [ToolListing(tool.name, tool.description, tool.input_schema, _output(tool)) for tool in chosen]
    shown, told = (whole, []) if choice.allow is None else _narrow(source, choice)
    print_json(format_named(form).render_all(shown))
    if not as_json:
        for line in (*told, *notes(shown, form, whole)):
            print_error(line)
    return Exit.PROBLEMS if source.set_aside else Exit.OK


def _output(tool: ToolDefinition, hidden: frozenset[str] = frozenset()) -> Schema | None:
    output = None if tool.output_schema is None else output_without(tool.output_schema, hidden)
    return output if output is not None and output.get("type") == "object" else None


def _choose(source: ToolFile, choice: Choice) -> list[ToolDefinition]:
    """Return all tools, the highest major of each name, or the chosen one."""
    if choice.allow is None and (choice.field is not None or choice.operations is not None):
        raise UsageProblem("`--field` and `--operations` go with `--allow`")
    if choice.tool is not None or choice.allow is not None:
        return [source.one(choice.tool)]
    return [source.one(name) for name in dict.fromkeys(tool.name for tool in source.tools)] if source.tools else []


def _narrow(source: ToolFile, choice: Choice) -> tuple[list[ToolListing], list[str]]:
    """Return the chosen tool with the allowed operations only, and notes about it."""
    tool = source.one(choice.tool)
    result = reduce_schema(*reading(tool, choice.field, choice.operations), choice.allow or "")
    if result is None:
        raise UsageProblem(f"no operations found in `{tool.name}`, so there is nothing to `--allow`")
    if result.schema is None:
        return [], []
    listing = ToolListing(tool.name, result.clean(tool.description), result.schema, _output(tool, result.hidden))
    return [listing], list(filter_notes(result))


def preview(
    source: Annotated[
        str, typer.Argument(metavar="POLICY|FILE", help="a policy (or its folder), or JSON: a tool list, a definition")
    ],
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="the agent, with a policy")] = None,
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", help="mcp, openai, openai-responses, anthropic, gemini or genai")
    ] = "mcp",
    tool: ChosenToolOption = None,
    allow: Annotated[
        str | None, typer.Option("--allow", metavar="A,B", help="with JSON: the operations of one tool to keep")
    ] = None,
    field: FieldOption = None,
    operations: OperationsOption = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the tools that a model gets, as JSON: those of an agent, or of a file; cost and losses on stderr."""
    if format not in format_names():
        raise UsageProblem(f"no format `{format}` (known are {', '.join(format_names())})")
    choice = Choice(tool, allow, field, operations)
    if is_tool_file(source):
        if agent is not None:
            raise UsageProblem(f"`{source}` is no policy, so it has no `--agent`")
        raise typer.Exit(preview_file(source, format, choice, as_json=json))
    if agent is None:
        raise UsageProblem("a policy needs `--agent`, to say whose tools are meant")
    if words := choice.words():
        raise UsageProblem(f"`{words[0]}` is for JSON; what an agent sees of a policy is what the policy says")
    with Workspace.open(Path(source), state=state, trust=trust) as workspace:
        view = workspace.view(require_agent(workspace, agent))
        print_json(view.tools(format))
        if not json:
            for line in notes(view.listings(), format, view.full_listings()):
                print_error(line)


def rules(
    policy: PolicyArgument,
    agent: AgentOption,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the usage rules that the model of one agent gets, and what the servers of its tools say, as Markdown."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        text = workspace.view(require_agent(workspace, agent)).instructions
    if json:
        print_json({"rules": text})
    else:
        print_text(text.rstrip("\n"))


_COMMAND = "--command"


class Transport(StrEnum):
    """The ways by which clients reach the gateway."""

    STDIO = "stdio"
    HTTP = "http"


def serve(
    policy: Annotated[
        Path | None,
        typer.Argument(metavar="[POLICY] [-- COMMAND ARGS...]", help="a policy file, or the folder that holds one"),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="the agent, with stdio")] = None,
    transport: Annotated[
        Transport, typer.Option("--transport", help="stdio: one client, one agent; http: many, by their tokens")
    ] = Transport.STDIO,
    session: Annotated[
        str | None, typer.Option("--session", metavar="NAME", help="with stdio: the conversation that calls count in")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="with http: the address to listen at")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="with http; 0: any that is free")] = 8765,
    known_as: Annotated[
        list[str] | None,
        typer.Option("--known-as", metavar="NAME", help="with http: a host name that clients use, besides --host"),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME", help="with COMMAND: a variable that the server gets")
    ] = None,
    install_scripts: Annotated[
        bool,
        typer.Option("--install-scripts", help="with COMMAND: its package may run code of its own to be installed"),
    ] = False,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="DURATION", help="how long a call that asks waits for an answer (45s)"),
    ] = None,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="answer the hooks of coding agents instead; a hook starts this when needed")
    ] = False,
    idle: Annotated[
        str | None, typer.Option("--idle", metavar="DURATION", help="with --hooks: end so long after a call (15m)")
    ] = None,
    command: Annotated[str | None, typer.Option(_COMMAND, hidden=True)] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="print which processes serve the policy now, and who is connected there")
    ] = False,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Serve the tools of an agent to an MCP client, or of many agents over HTTP; each call passes the gate.

    With `-- COMMAND ARGS...` one server is put behind the gate: its policy is made in the folder POLICY, else in this
    one, shows everything and enforces nothing yet, and is used as it is from then on. `npx` and `uvx` are not run: the
    package is installed once in one version and started from there. Folders in ARGS are what the server may change.
    """
    if command is not None:
        policy = _make_policy(policy or Path(), agent, loads(command), env or [], state, scripts=install_scripts)
    elif policy is None:
        raise UsageProblem("serve what? a policy, or `-- COMMAND`")
    if json and not list_:
        raise UsageProblem("`--json` goes with `--list`")
    if hooks:
        _serve_hooks(policy, state, idle)
        return
    with Workspace.open(policy, state=state, trust=trust, approvals=_limits(wait)) as workspace:
        if list_:
            _print_serving(workspace.serving.list(workspace.policy_path), as_json=json)
            return
        gateway = _gateway(workspace)
        if transport is Transport.STDIO:
            if agent is None:
                raise UsageProblem("stdio needs `--agent`, to say whose tools are served")
            with _exporting(workspace):
                asyncio.run(gateway.serve_stdio(require_agent(workspace, agent), session))
        elif agent is not None or session is not None:
            raise UsageProblem("over http a token says who a client speaks for: no `--agent`, no `--session`")
        else:
            with _exporting(workspace):
                asyncio.run(gateway.serve_http(workspace.tokens, host, port, tuple(known_as or ())))


def with_command(words: list[str]) -> list[str]:
    """Return the words of `serve`, with everything behind `--` as one option, since it is for another program."""
    if "--" not in words:
        return words
    end = words.index("--")
    return [*words[:end], _COMMAND, dumps(words[end + 1 :])]


def _serve_hooks(policy: Path, state: str | None, idle: str | None) -> None:
    from gatewright.workspace.hooks import IDLE_S, HookGate

    try:
        idle_s = IDLE_S if idle is None else parse_duration(idle)
    except ValueError as error:
        raise UsageProblem(f"--idle `{idle}`: {error}") from None

    def began(workspace: Workspace) -> Callable[[], None]:
        gc.freeze()  # the modules and the policy stay: a collection that goes through them would hold up a call
        exporting = ExitStack()
        exporting.enter_context(_exporting(workspace))
        return exporting.close

    gate = HookGate(policy, lambda line: print_error(f"gatewright: {line}"), state=state, idle_s=idle_s, began=began)
    asyncio.run(gate.serve())


def _limits(wait: str | None) -> ApprovalLimits | None:
    """Return how long calls wait, from the option."""
    if wait is None:
        return None
    try:
        return ApprovalLimits(timeout_s=parse_duration(wait))
    except ValueError as error:
        raise UsageProblem(f"--wait `{wait}`: {error}") from None


def _make_policy(
    folder: Path, agent: str | None, command: list[str], env: list[str], state: str | None, *, scripts: bool
) -> Path:
    """Return the policy for one server, which is made if missing."""
    from gatewright.workspace.gateway import policy_for_server

    if agent is None or not command:
        raise UsageProblem("one server is served so: `gatewright serve [FOLDER] --agent ID -- COMMAND ARGS...`")

    def tell(words: str) -> None:
        print_error(f"gatewright: {words}")

    return policy_for_server(folder, agent, command, env, state=state, scripts=scripts, tell=tell)


def _gateway(workspace: Workspace) -> Gateway:
    try:
        from gatewright.workspace.gateway import Gateway
    except ModuleNotFoundError as error:
        raise UsageProblem(f"`serve` needs the extra `mcp`, pip install 'gatewright[mcp]': {error}") from None
    return Gateway(workspace, lambda line: print_error(f"gatewright: {line}"))


_EXPORT = ("OTEL_EXPORTER_OTLP_", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


@contextmanager
def _exporting(workspace: Workspace) -> Generator[None]:
    """Export spans and metrics meanwhile, if the environment says where to."""
    if not any(name.startswith(_EXPORT) for name in os.environ):
        yield
        return

    def tell(words: str) -> None:
        print_error(f"gatewright: {words}")

    try:
        from gatewright.adapters.telemetry import export_calls

        end = export_calls(workspace.gate, workspace.broker, tell)
    except ModuleNotFoundError as error:
        tell(f"no telemetry, though the environment names an exporter: {error} (pip install 'gatewright[telemetry]')")
        yield
        return
    try:
        yield
    finally:
        end()


def _print_serving(processes: tuple[ServingProcess, ...], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(process) for process in processes])
        return
    for process in processes:
        served = ", ".join(process.agents) or "nobody, there is no token"
        where = f" {process.address}" if process.address else ""
        print_line(
            f"{process.transport}{where}  process {process.pid}, since {iso_utc(process.since_wall_s)}: {served}"
        )
        for client in process.clients:
            by = " ".join(word for word in (client.user_id, client.token_id) if word)
            waits = f", {len(client.waits):,} wait for an operator" if client.waits else ""
            print_line(
                f"  {client.client or 'a client without a name'} as {client.agent_id}"
                f"{f' ({by})' if by else ''}: {plural(client.calls, 'call')}, {client.denied:,} denied{waits}"
            )
        if not process.clients:
            print_line("  no client is connected")
    if not processes:
        print_line("nobody serves the policy now")


def add(
    policy: PolicyArgument,
    agent: AgentOption,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="the user, else the agent's own")] = None,
    elicit: Annotated[
        bool, typer.Option("--elicit", help="ask the user of the client, if it can, in place of the operator")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a token for one agent and user, and print it: it is not kept and cannot be shown again."""
    with Workspace.open(policy) as workspace:
        made, secret = workspace.tokens.add(require_agent(workspace, agent), user_id=user, elicit=elicit)
    if json:
        print_json({**made.to_json(), "token": secret})
    else:
        print_line(secret)
        print_error(f"{made.token_id}: copy it now, only its hash is kept")


def list_(policy: PolicyArgument, json: JsonOption = False) -> None:
    """Print the tokens of a policy, without what they are."""
    with Workspace.open(policy) as workspace:
        tokens = workspace.tokens.list()
    if json:
        print_json([token.to_json() for token in tokens])
        return
    for token in tokens:
        for_user = f" for {token.user_id}" if token.user_id else ""
        print_line(f"{token.token_id}  {token.agent_id}{for_user}{', elicits' if token.elicit else ''}, {token.made}")
    if not tokens:
        print_line("there is no token")


def revoke(
    policy: PolicyArgument,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="the token, as `token list` names it")],
    json: JsonOption = False,
) -> None:
    """Take a token back; what is connected by it is cut off."""
    with Workspace.open(policy) as workspace:
        tokens = workspace.tokens
        revoked = tokens.revoke(token_id)
        if revoked is None:
            near = near_hint(token_id, (token.token_id for token in tokens.list()), listed=True)
            raise UsageProblem(f"no token `{token_id}`{near}")
    if json:
        print_json({"revoked": revoked.to_json()})
    else:
        print_line(f"{token_id} revoked")
