"""opencode: a plugin of ours in its folder of plugins starts the client, measured with 1.18.33."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import MappingProxyType

from gatewright.adapters.hosts import (
    NO_GATE,
    TIMEOUT_S,
    Around,
    Enforcement,
    EventKind,
    Hook,
    Host,
    HostAnswer,
    HostEvent,
    HostScope,
    Reply,
    effective,
)
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict

_KINDS = {
    "tool.definition": EventKind.SHOW,
    "tool.execute.before": EventKind.BEFORE,
    "tool.execute.after": EventKind.AFTER,
    "session.deleted": EventKind.END,
}
_BEGIN, _END = "// gatewright: begin\n", "// gatewright: end\n"
_OURS = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_PLUGIN = """\
// `gatewright hook install opencode` wrote this, and `gatewright hook uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = @COMMAND@
const TIMEOUT_MS = @TIMEOUT@
const NO_GATE = @NO_GATE@
const SHOWN_MS = 10000 // an edit of the policy shows after this time; calls are decided anew in any case
const shown = new Map()

function ask(message, more = []) {
  return new Promise((resolve, reject) => {
    const client = spawn(COMMAND[0], [...COMMAND.slice(1), ...more], { stdio: ["pipe", "pipe", "pipe"] })
    const heard = { stdout: "", stderr: "" }
    const late = setTimeout(() => { client.kill("SIGKILL"); reject(new Error(NO_GATE)) }, TIMEOUT_MS)
    client.stdout.on("data", (piece) => { heard.stdout += piece })
    client.stderr.on("data", (piece) => { heard.stderr += piece })
    client.stdin.on("error", () => {})
    client.on("error", () => { clearTimeout(late); reject(new Error(NO_GATE)) })
    client.on("close", (code) => {
      clearTimeout(late)
      if (code !== 0) return reject(new Error(heard.stderr.trim() || NO_GATE))
      try { resolve(JSON.parse(heard.stdout)) } catch { reject(new Error(NO_GATE)) }
    })
    client.stdin.end(JSON.stringify(message))
  })
}

export const Gatewright = async ({ directory }) => ({
  "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
    const args = output.args ?? {}
    const answer = await ask({ event: "tool.execute.before", tool, sessionID, callID, args, directory })
    if (answer.decision !== "allow") throw new Error(answer.reason || NO_GATE)
    if (answer.args) {
      for (const name of Object.keys(output.args)) delete output.args[name]
      Object.assign(output.args, answer.args)
    }
  },
  "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
    const message = { event: "tool.execute.after", tool, sessionID, callID, args: args ?? {}, directory }
    await ask({ ...message, output: output?.output ?? null }, ["--report"]).catch(() => {})
  },
  "tool.definition": async ({ toolID }, output) => {
    const message = { event: "tool.definition", tool: toolID, directory }
    const held = shown.get(toolID)
    const isFresh = held && Date.now() - held.at < SHOWN_MS
    const asking = isFresh ? held.asking : ask(message).catch(() => ({}))
    if (!isFresh) shown.set(toolID, { at: Date.now(), asking })
    const answer = await asking
    if (answer.decision === "deny") {
      output.description = "Not available."
      output.jsonSchema = { type: "object", properties: {}, additionalProperties: false }
    } else if (answer.parameters) {
      output.jsonSchema = answer.parameters
    }
  },
})
"""


class PluginFile:
    """A file of ours alone. What somebody added to it, outside our lines, stays."""

    def put(self, text: str, hook: Hook) -> str:
        """Return the plugin. Raises WorkspaceError for a file of somebody else's."""
        written = _PLUGIN.replace("@COMMAND@", json.dumps(list(hook.command), indent=2))
        written = written.replace("@TIMEOUT@", str(TIMEOUT_S * 1000)).replace("@NO_GATE@", json.dumps(NO_GATE))
        written = f"{_BEGIN}{written}{_END}"
        if text.strip() and not _OURS.search(text):
            raise WorkspaceError("a plugin of somebody else's has this name")
        return _OURS.sub(lambda _: written, text, count=1) if text.strip() else written

    def drop(self, text: str, before: str) -> str:  # noqa: ARG002 - the rest is not ours
        """Return what is not ours of the text."""
        return _OURS.sub("", text)

    def hooks(self, text: str) -> JsonValue:
        """Return the whole text: all of it runs before a call."""
        return text


class OpenCode(Host):
    """opencode: a plugin that throws stops a call; it may change its arguments, and the description of a tool."""

    host_id = "opencode"
    title = "opencode"
    prefix = "opencode"
    programs = ("opencode",)
    shells = MappingProxyType({"bash": "command"})
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=False,
        changes=frozenset({"bash"}),
        fails_closed=True,
        open_ways=(
            "a plugin that cannot be loaded is left out: after an update of opencode, see that a denied call is denied",
            "`opencode --pure` and `OPENCODE_PURE` leave plugins out",
        ),
    )
    entry = PluginFile()

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer to our plugin."""
        if event.kind is EventKind.SHOW:
            shown = None if answer.arguments is None else dict(answer.arguments)
            is_hidden = answer.verdict is Verdict.DENY
            return Reply(json.dumps({"decision": "deny"} if is_hidden else {"decision": "allow", "parameters": shown}))
        if event.kind is not EventKind.BEFORE:
            return Reply("{}")
        answer = effective(self, event, answer)
        if answer.verdict is Verdict.DENY:
            return Reply(json.dumps({"decision": "deny", "reason": answer.reason}))
        changed = {} if answer.arguments is None else {"args": dict(answer.arguments)}
        return Reply(json.dumps({"decision": "allow", **changed}))

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        named = around.environment.get("OPENCODE_CONFIG_DIR")
        return Path(named) if named else around.folder("XDG_CONFIG_HOME", ".config") / "opencode"

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return our plugin in the folder of that scope; there is none for a machine."""
        if scope is HostScope.USER:
            return self.folder(around) / "plugins" / "gatewright.js"
        return (
            None if scope is HostScope.MANAGED else next(iter(around.within(".opencode/plugins/gatewright.js")), None)
        )

    def other_files(self, around: Around) -> tuple[Path, ...]:
        """List the files that name plugins."""
        user = (self.folder(around) / "opencode.json", self.folder(around) / "opencode.jsonc")
        return (*user, *around.within("opencode.json", "opencode.jsonc", ".opencode/opencode.json"))


HOST = OpenCode()
