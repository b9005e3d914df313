"""Writes what a coding agent can enforce of a policy by itself, as a second net below the hook.

Nothing becomes an allowing rule that the gate would judge more finely: commands, hosts, and whatever the arguments
decide ask first there. The first matching pattern decides here and the strictest rule there, so a file never gets a
milder verdict than from the gate. What a host cannot say is listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

from gatewright.adapters.host_rules import EVERYTHING
from gatewright.arguments.shell_entry import read_entry
from gatewright.arguments.shell_program import EVERY
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import Wild, parse_git_pattern
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for


@frozen
class Area:
    """A folder whose files have levels: its absolute path, the rules in their order, and the level without a rule."""

    folder: str
    rules: tuple[PermissionRule, ...]
    default: Permission


@frozen
class Net:
    """The rights of one agent in the words of coding agents.

    ``project``: the folder where the agent works. ``reads``, ``writes``, ``runs``, ``fetches``: the verdict on such
    calls if nothing of the call decided. ``closed``: places that nobody touches. ``asking``, ``denied``: entries of
    commands. ``hidden``: tools of servers that are off, as (server, tool).
    """

    project: str
    reads: Verdict
    writes: Verdict
    runs: Verdict
    fetches: Verdict
    areas: tuple[Area, ...] = ()
    closed: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()


@frozen
class Exported:
    """The text of a host's file, below the project, and a sentence for each part of the policy that it lacks."""

    file: str
    text: str
    lost: tuple[str, ...]


class _Files:
    """Patterns of files below the project, or absolute, for each verdict on an action."""

    def __init__(self, net: Net, action: Action, verdict: Verdict) -> None:
        self.patterns: dict[Verdict, dict[str, None]] = {one: {} for one in Verdict}
        self.lost: list[str] = []
        levels = [level for area in net.areas for level in (area.default, *(rule.permission for rule in area.rules))]
        found = {verdict_for(level, action) for level in levels}
        is_whole = any(area.folder == net.project for area in net.areas)
        defaults = {verdict_for(area.default, action) for area in net.areas}
        if not is_whole:
            defaults.add(Verdict.DENY)
        self.whole = verdict
        """The verdict on every file that no pattern names."""
        if verdict is Verdict.DENY or found <= {Verdict.DENY}:
            self.whole = Verdict.DENY
            return
        if Verdict.DENY in defaults or Verdict.ASK in defaults:
            self.whole = Verdict.ASK
        for area in net.areas:
            others = () if area.folder == net.project else (PermissionRule(EVERYTHING, area.default),)
            is_alone = not any(one is not area and _overlap(one.folder, area.folder) for one in net.areas)
            for rule in (*area.rules, *others):
                mine = verdict_for(rule.permission, action)
                if mine is Verdict.ALLOW and not (is_alone and verdict is Verdict.ALLOW):
                    mine = Verdict.ASK
                self.patterns[mine].setdefault(_placed(rule.pattern, area.folder, net.project))
        for place in net.closed:
            self.patterns[Verdict.DENY].setdefault(_placed("/", place, net.project))
        if Verdict.DENY in defaults:
            self.lost.append(f"files that no rule opens are denied here, and ask first there ({action})")


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _placed(pattern: str, folder: str, project: str) -> str:
    """Return a pattern of a folder as one of the project: `x`, `/docs/x`, or `//etc/x` elsewhere."""
    inside = folder == project or folder.startswith(f"{project}/")
    base = folder[len(project) :] if inside else f"/{folder}"
    if pattern == "/":
        return base or "/"
    if not base:
        return pattern
    is_free = "/" not in pattern.rstrip("/")
    return f"{base}/{f'**/{pattern}' if is_free and pattern != EVERYTHING else pattern.lstrip('/')}"


def export_claude(net: Net) -> Exported:
    """Write the settings of Claude Code."""
    lists: dict[str, list[JsonValue]] = {"allow": [], "ask": [], "deny": []}
    reading, writing = _Files(net, Action.READ, net.reads), _Files(net, Action.OVERWRITE, net.writes)
    for tool, files in (("Read", reading), ("Edit", writing)):
        if files.whole is not Verdict.ALLOW and (tool == "Read" or files.whole is Verdict.DENY):
            lists[files.whole].append(tool)
        elif tool == "Edit" and files.whole is Verdict.ALLOW:
            lists["allow"].append("Edit(/**)")
        for verdict, patterns in files.patterns.items():
            if tool == "Edit" or verdict is not Verdict.ALLOW:
                lists[verdict] += [f"{tool}({pattern})" for pattern in patterns]
    lists["deny"] += [f"Edit({pattern})" for pattern in reading.patterns[Verdict.DENY]]
    for verdict, entries in ((Verdict.ASK, net.asking), (Verdict.DENY, net.denied)):
        lists[verdict] += [f"Bash({entry}:*)" for entry in _commands(entries)]
    for tool, verdict in (("Bash", net.runs), ("WebFetch", net.fetches)):
        if verdict is Verdict.DENY:
            lists["deny"].append(tool)
    lists["deny"] += [f"mcp__{server}__{tool}" for server, tool in net.hidden]
    permissions: dict[str, JsonValue] = {key: list(dict.fromkeys(map(str, value))) for key, value in lists.items()}
    settings: dict[str, JsonValue] = {"permissions": permissions}
    if net.runs is not Verdict.DENY:
        plain = [*reading.patterns[Verdict.DENY]]
        settings["sandbox"] = {
            "enabled": True,
            "autoAllowBashIfSandboxed": False,
            "allowUnsandboxedCommands": False,
            "filesystem": {
                "denyRead": _sandboxed(plain),
                "denyWrite": _sandboxed([*plain, *writing.patterns[Verdict.DENY]]),
            },
            "network": {"allowedDomains": [host for host in net.hosts if host != EVERY and ":" not in host]},
        }
    text = f"{json.dumps(settings, indent=2)}\n"
    return Exported(".claude/settings.json", text, (*reading.lost, *writing.lost, *_lost(net, "Claude Code")))


def _sandboxed(patterns: Iterable[str]) -> list[JsonValue]:
    """Return the patterns that are paths, as the sandbox writes them; it knows no others."""
    plain = (one.removesuffix("/**").rstrip("/") for one in patterns)
    return [
        f".{one}" if not one.startswith("//") else one
        for one in plain
        if one[:1] == "/" and not set(one) & set("*?[\\")
    ]


def _commands(entries: Iterable[str]) -> list[str]:
    """Return the first words of entries that are commands."""
    found = (read_entry(entry) for entry in entries if entry != EVERY and not entry.endswith("="))
    return [" ".join((one.program, *one.words)) for one in found]


def _lost(net: Net, title: str) -> list[str]:
    found: list[str] = []
    if net.runs is not Verdict.DENY:
        found.append(f"commands that nothing allows are denied here, and ask first in {title}")
    if net.fetches is not Verdict.DENY:
        found.append(f"the hosts of `NetRead`: each page asks first in {title}")
    return found


def export_codex(net: Net) -> Exported:
    """Write the rules of Codex, with the two settings that they need as a comment."""
    lines = ["# In ~/.codex/config.toml, so that whatever has no rule asks first:", '#   approval_policy = "untrusted"']
    lines += [f'#   sandbox_mode = "{"read-only" if net.writes is Verdict.DENY else "workspace-write"}"', ""]
    for entries, decision in ((net.denied, "forbidden"), (net.asking, "prompt")):
        for entry in _commands(entries):
            lines.append(f'prefix_rule(pattern = {json.dumps(entry.split())}, decision = "{decision}")')
    lost = ["levels of files: Codex reads every file, and asks before it changes one", *_lost(net, "Codex")]
    if net.runs is Verdict.DENY:
        lost.append("commands are off here; Codex asks before each, and runs those that only read")
    return Exported(".codex/rules/gatewright.rules", "\n".join([*lines, ""]), tuple(lost))


def export_gemini(net: Net) -> Exported:
    """Write a policy of Gemini CLI."""
    rows: list[tuple[Mapping[str, JsonValue], str, int]] = []
    reading, writing = _Files(net, Action.READ, net.reads), _Files(net, Action.OVERWRITE, net.writes)
    readers: list[JsonValue] = ["read_file", "read_many_files"]
    writers: list[JsonValue] = ["write_file", "replace"]
    closed = [*reading.patterns[Verdict.DENY]]
    for tools, files, patterns in (
        (readers, reading, closed),
        (writers, writing, [*closed, *writing.patterns[Verdict.DENY]]),
    ):
        decision = {Verdict.DENY: "deny", Verdict.ASK: "ask_user"}.get(files.whole, "")
        if files.whole is Verdict.DENY:
            rows.append(({"toolName": tools}, decision, 990))
            continue
        if tools is writers or decision:
            rows.append(({"toolName": tools}, "ask_user", 900))
        asking = [_arguments(pattern, net.project) for pattern in files.patterns[Verdict.ASK]]
        rows += [({"toolName": tools, "argsPattern": text}, "ask_user", 950) for text in asking]
        if patterns:
            rows.append(({"toolName": tools, "argsPattern": r'"file_path":"[^"]*(\.\.|/\./|//)'}, "deny", 990))
        texts = [_arguments(pattern, net.project) for pattern in dict.fromkeys(patterns)]
        rows += [({"toolName": tools, "argsPattern": text}, "deny", 990) for text in texts]
    if net.runs is Verdict.DENY:
        rows.append(({"toolName": "run_shell_command"}, "deny", 990))
    else:
        rows.append(({"toolName": "run_shell_command"}, "ask_user", 900))
        prefixes = _commands(net.denied)
        rows += [({"toolName": "run_shell_command", "commandPrefix": one}, "deny", 990) for one in prefixes]
    rows.append(({"toolName": "web_fetch"}, "deny" if net.fetches is Verdict.DENY else "ask_user", 990))
    rows += [({"mcpName": server, "toolName": tool}, "deny", 990) for server, tool in net.hidden]
    blocks = [
        "[[rule]]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in match.items())
        + f'decision = "{decision}"\npriority = {priority}\n'
        for match, decision, priority in rows
    ]
    lost = (*reading.lost, *writing.lost, *_lost(net, "Gemini CLI"), "files that commands read or change")
    return Exported(".gemini/policies/gatewright.toml", "\n".join(blocks), lost)


def _arguments(pattern: str, project: str) -> str:
    """Return the regular expression for a call with a file that the pattern matches, or one below it."""
    is_outside = pattern.startswith("//")
    parsed = parse_git_pattern(pattern[1:] if is_outside else pattern)
    words: list[str] = []
    for token in parsed.tokens or ():
        if isinstance(token, Wild):
            words.append({Wild.STAR: '[^/"]*', Wild.DEEP_STAR: '[^"]*', Wild.DEEP_FOLDERS: '([^"]*/)?'}[token])
        elif len(token) == 1 and (byte := min(token)) < 128:
            words.append(re.sub(r"\W", lambda sign: f"\\x{ord(sign[0]):02x}", chr(byte)))
        else:
            words.append('[^/"]+')
    base = "/" if is_outside else f"({re.escape(project)}/)?"
    above = '([^"]*/)?' if parsed.basename else ""
    return f'"file_path":"{base}{above}{"".join(words)}(/|")'


def export_opencode(net: Net) -> Exported:
    """Write the permissions of opencode: the last match counts there, so the strictest come last."""
    reading, writing = _Files(net, Action.READ, net.reads), _Files(net, Action.OVERWRITE, net.writes)
    permission: dict[str, JsonValue] = {"*": "ask"}
    closed = dict.fromkeys(reading.patterns[Verdict.DENY], Verdict.DENY)
    for key, files in (("read", reading), ("edit", writing)):
        rules: dict[str, JsonValue] = {"*": str(files.whole)}
        for verdict in (Verdict.ASK, Verdict.DENY):
            for pattern in (*files.patterns[verdict], *(closed if verdict is Verdict.DENY else ())):
                for said in _texts(pattern):
                    rules.pop(said, None)
                    rules[said] = str(verdict)
        permission[key] = rules
    commands: dict[str, JsonValue] = {"*": "deny" if net.runs is Verdict.DENY else "ask"}
    commands |= {f"{one} *": "deny" for one in _commands(net.denied)}
    permission |= {"bash": commands, "webfetch": "deny" if net.fetches is Verdict.DENY else "ask"}
    permission |= {f"{server}_{tool}": "deny" for server, tool in net.hidden}
    permission["external_directory"] = "deny"
    text = f"{json.dumps({'$schema': 'https://opencode.ai/config.json', 'permission': permission}, indent=2)}\n"
    lost = (*reading.lost, *writing.lost, *_lost(net, "opencode"), "files that commands read or change")
    return Exported("opencode.json", text, lost)


def _texts(pattern: str) -> list[str]:
    """Return texts with `*` that match at least what a pattern does, for whole and relative paths."""
    body = pattern[1:].rstrip("/") if pattern.startswith("//") else pattern.strip("/")
    body = re.sub(r"\\(.)|\*\*/|\*+|\[[^\]]*\]|\?", lambda sign: sign[1] or "*", body)
    starts = [body] if "/" in pattern.rstrip("/") else [body, f"*/{body}"]
    return [text for one in starts for text in (one, f"{one}/*")]


EXPORTS: Mapping[str, Callable[[Net], Exported]] = {
    "claude-code": export_claude,
    "codex": export_codex,
    "gemini-cli": export_gemini,
    "opencode": export_opencode,
}
