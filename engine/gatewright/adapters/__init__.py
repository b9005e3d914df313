"""Reaches what lies outside the program: MCP servers and clients, HTTP, processes, WASM, shells, rooms, messages.

MCP, outwards: `adapters/mcp_client.py` manages one server from start to end, in a task of the one loop thread
(`adapters/server_process.py`) that opens, keeps and closes the connection. `adapters/mcp_transport.py` has the ways to
a server, `adapters/server_process.py` its process and the guard that ends it. `adapters/package_runner.py` reads what
`npx` and `uvx` would run, and `adapters/server_install.py` installs that in rooms that reach only the registries. The
client uses only the SDK's dispatcher and HTTP transport; definitions and results stay raw JSON, since the SDK's models
lose a whole list for one bad tool.

MCP, inwards: `adapters/mcp_server.py` serves one agent and session, on the SDK's low-level server. A call has a task of
its own (`adapters/mcp_call.py`), since the SDK interrupts every step of a cancelled task, but the end of a call must be
recorded. `adapters/mcp_server.py` bounds the standard streams; `adapters/mcp_http.py` has one session manager for each
token, so that no request reaches another token's sessions.

Clients: `adapters/client_config.py` has the table of programs whose configuration names servers,
`workspace/client_file.py` puts the gateway into such a file, `adapters/claude_settings.py` and its neighbours turn
rules of coding agents into a policy that is at least as strict, by the common part in `adapters/host_rules.py`.

Tools of catalogs: `adapters/web.py`, `adapters/subprocess_tool.py` and `adapters/wasm_tool.py` implement `ToolAdapter`,
which `adapters/subprocess_tool.py` defines. A WASM run has an engine of its own, since ending a run ends everything in
its engine. `adapters/web_request.py` resolves a name, judges it and dials it in one place; before a tool follows a
redirect, it has the gate decide again.

Rooms: a confined process runs in a `Room` (`adapters/confine.py`). `adapters/bubblewrap.py` makes its root and the
filter of system calls; `adapters/confined_init.py` is the first program inside, adds Landlock and limits, and becomes
the real program once that may begin; `adapters/confined_cover.py` hides later names from outside. The one way out is a
port whose listening socket goes to a `HostProxy` (`adapters/host_proxy.py`): it reads which host a program asks for,
judges, resolves and dials it, and stops TLS that asks for another host (`adapters/web_request.py`). `adapters/shell.py`
runs commands in such rooms, one shell for each, or one for a session.

OpenTelemetry: `adapters/telemetry.py` alone imports it; only those who ask for it load that module, which follows the
calls of a gate (`Gate.follow`).
"""
