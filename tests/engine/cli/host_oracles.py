"""Small readings of the rules of coding agents, as their documentation says: the verdict of the host on one call.

Each takes the files as they would be written and a call: ``read``, ``write`` (a path below the project), ``run`` (a
command) or ``fetch`` (a host). They share no code with the readers under test.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

ORDER = ("allow", "ask", "deny")
Call = tuple[str, str]
Files = Mapping[str, str]
_PARTS = re.compile(r"\s*(?:&&|\|\||[;|&\n])\s*")
_WRAPPED = re.compile(r"(?:timeout \d+|nice(?: -n \d+)?|nohup|time|stdbuf -o0) (.+)")


def strictest(verdicts: Iterable[str], default: str = "allow") -> str:
    return max(verdicts, key=ORDER.index, default=default)


def commands_in(text: str) -> list[str]:
    return [part for part in _PARTS.split(text) if part]


def _forms(command: str) -> list[str]:
    found = [command]
    while wrapped := _WRAPPED.fullmatch(found[-1]):
        found.append(wrapped[1])
    return found


def claude_code(files: Files, call: Call, project: Path, home: Path) -> str:
    """Deny before ask before allow, over all files."""
    permissions = [json.loads(text).get("permissions", {}) for text in files.values()]
    mode = next((one["defaultMode"] for one in permissions if "defaultMode" in one), "default")
    rules = {kind: [rule for one in permissions for rule in one.get(kind, [])] for kind in ORDER}
    kind, what = call
    if kind == "run":
        return strictest(_claude_command(rules, one, mode) for one in commands_in(what))
    names = {"read": ["Read"], "write": ["Edit", "Write"], "fetch": ["WebFetch"]}[kind]
    for verdict in ("deny", "ask", "allow"):
        if any(_claude_about(rule, names, what, project, home) for rule in rules[verdict]):
            return verdict
    if kind == "read":
        return "allow"
    return {"dontAsk": "deny", "plan": "deny"}.get(
        mode, "allow" if mode == "acceptEdits" and kind == "write" else "ask"
    )


def _claude_command(rules: Mapping[str, list[str]], command: str, mode: str) -> str:
    for verdict in ("deny", "ask", "allow"):
        for rule in rules[verdict]:
            name, _, rest = rule.partition("(")
            if name == "Bash" and any(_claude_matches(rest.removesuffix(")"), form) for form in _forms(command)):
                return verdict
    return "deny" if mode in {"dontAsk", "plan"} else "ask"


def _claude_matches(pattern: str, command: str) -> bool:
    said = pattern.strip()
    if said in {"", "*"}:
        return True
    said = f"{said[:-2]} *" if said.endswith(":*") else said
    end = "( .*)?" if said.endswith(" *") else ""
    body = said[:-2] if end else said
    return re.fullmatch(".*".join(map(re.escape, body.split("*"))) + end, command) is not None


def _claude_about(rule: str, names: list[str], what: str, project: Path, home: Path) -> bool:
    name, _, rest = rule.partition("(")
    pattern = rest.removesuffix(")").strip()
    if name not in names:
        return False
    if name == "WebFetch":
        host = pattern.removeprefix("domain:")
        return host in {"", "*", what} or (host.startswith("*.") and what.endswith(host[1:]))
    if pattern in {"", "*", "**"}:
        return True
    path = what
    if pattern.startswith("~/"):
        pattern, path = f"{home}{pattern[1:]}", f"{project}/{what}"[1:]
    elif pattern.startswith("//"):
        pattern, path = pattern[1:], f"{project}/{what}"[1:]
    elif pattern.startswith("./"):
        pattern = pattern[1:]
    return GitIgnoreSpec.from_lines([pattern]).match_file(path)


def codex(files: Files, call: Call, project: Path, home: Path) -> str:
    """The strictest rule with a prefix; else the sandbox and the policy of approvals."""
    config: dict[str, Any] = {}
    rules: list[tuple[list[list[str]], str]] = []

    def prefix_rule(pattern: list[Any], decision: str = "allow", **_: Any) -> None:
        rules.append(([one if isinstance(one, list) else [one] for one in pattern], decision))

    for name, text in files.items():
        if name.endswith(".toml"):
            config |= tomllib.loads(text)
        else:
            exec(text, {"prefix_rule": prefix_rule})
    policy, mode = config.get("approval_policy", "on-request"), config.get("sandbox_mode", "read-only")
    asks = "deny" if policy == "never" else "ask"
    kind, what = call
    if kind == "read":
        return "allow"
    if kind == "fetch":
        return "ask"
    if kind == "write":
        if mode == "danger-full-access":
            return "ask" if policy == "untrusted" else "allow"
        is_guarded = what.split("/")[0] in {".git", ".codex", ".agents"}
        return "allow" if mode == "workspace-write" and policy != "untrusted" and not is_guarded else asks
    return strictest(_codex_command(rules, one, policy, asks) for one in commands_in(what))


def _codex_command(rules: list[tuple[list[list[str]], str]], command: str, policy: str, asks: str) -> str:
    words = shlex.split(command)
    found = [
        {"allow": "allow", "prompt": asks, "forbidden": "deny"}[decision]
        for pattern, decision in rules
        if len(words) >= len(pattern) and all(word in step for word, step in zip(words, pattern, strict=False))
    ]
    return strictest(found) if found else "ask" if policy == "untrusted" else "allow"


_GEMINI = {
    "read": ["read_file"],
    "write": ["write_file", "replace"],
    "run": ["run_shell_command"],
    "fetch": ["web_fetch"],
}


def gemini_cli(files: Files, call: Call, project: Path, home: Path) -> str:
    """The matching rule of the highest priority, over settings and policies of one tier."""
    rules: list[tuple[float, str, Callable[[str, str, str], bool]]] = []
    core: list[str] | None = None
    for name, text in files.items():
        if name.endswith(".json"):
            tools = json.loads(text).get("tools", {})
            core = tools.get("core", core)
            for key, decision, priority in (("exclude", "deny", 4.4), ("allowed", "allow", 4.3)):
                rules += [(priority, decision, _gemini_listed(one)) for one in tools.get(key, [])]
        else:
            for rule in tomllib.loads(text).get("rule", []):
                decision = str({"ask_user": "ask"}.get(rule["decision"], rule["decision"]))
                rules.append((4 + rule["priority"] / 1000, decision, _gemini_rule(rule)))
    kind, what = call
    found: list[str] = []
    for tool in _GEMINI[kind]:
        default = "allow" if kind == "read" else "ask"
        for one in commands_in(what) if kind == "run" else [what]:
            argument = {"run": "command", "fetch": "prompt"}.get(kind, "file_path")
            args = json.dumps({argument: f"{project}/{one}" if argument == "file_path" else one}, separators=(",", ":"))
            if core is not None and not any(_gemini_listed(listed)(tool, one, args) for listed in core):
                found.append("deny")
                continue
            ranked = sorted((rule for rule in rules if rule[2](tool, one, args)), key=lambda rule: -rule[0])
            best = [rule[1] for rule in ranked if rule[0] == ranked[0][0]]
            found.append(min(best, key=ORDER.index, default=default))  # of equal ones the milder: nobody says which
    return strictest(found)


def _gemini_listed(text: str) -> Callable[[str, str, str], bool]:
    name, _, rest = text.partition("(")
    prefix = rest.removesuffix(")")

    def about(tool: str, what: str, args: str) -> bool:
        return tool == name and (not rest or re.match(re.escape(prefix) + r"(\s|$)", what) is not None)

    return about


def _gemini_rule(rule: Mapping[str, Any]) -> Callable[[str, str, str], bool]:
    def about(tool: str, what: str, args: str) -> bool:
        names = rule.get("toolName", "*")
        if not any(fnmatch.fnmatchcase(tool, name) for name in ([names] if isinstance(names, str) else names)):
            return False
        if "default" not in rule.get("modes", ["default"]) or "mcpName" in rule:
            return False
        if "argsPattern" in rule and not re.search(rule["argsPattern"], args):
            return False
        if "commandRegex" in rule and not re.search('"command":"' + rule["commandRegex"], args):
            return False
        prefixes = rule.get("commandPrefix", [])
        prefixes = [prefixes] if isinstance(prefixes, str) else prefixes
        return not prefixes or any(re.match(re.escape(one) + r"(\s|$)", what) for one in prefixes)

    return about


def opencode(files: Files, call: Call, project: Path, home: Path) -> str:
    """The last rule that matches, in the order of the file."""
    (text,) = files.values()
    permission = json.loads(text).get("permission", {})
    permission = {"*": permission} if isinstance(permission, str) else permission
    rules = [("read", "*", "allow"), ("read", "*.env", "deny"), ("read", "*.env.*", "deny")]
    for key, value in permission.items():
        rules += [
            (key, pattern, action) for pattern, action in ({"*": value} if isinstance(value, str) else value).items()
        ]
    kind, what = call
    key = {"read": "read", "write": "edit", "run": "bash", "fetch": "webfetch"}[kind]
    subjects = commands_in(what) if kind == "run" else [f"https://{what}/"] if kind == "fetch" else [what]

    def verdict(subject: str) -> str:
        found = [
            action
            for name, pattern, action in rules
            if _simple(name, key) and _opencode(pattern, subject, project, home)
        ]
        return found[-1] if found else "allow"

    return strictest(verdict(subject) for subject in subjects)


def _opencode(pattern: str, subject: str, project: Path, home: Path) -> bool:
    said = re.sub(r"^(~|\$HOME)(?=/|$)", str(home), pattern)
    return _simple(said, subject) or (said.startswith("/") and _simple(said, f"{project}/{subject}"))


def _simple(pattern: str, text: str) -> bool:
    regex = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    regex = regex[:-4] + "( .*)?" if regex.endswith("\\ .*") else regex
    return re.fullmatch(regex, text, re.DOTALL) is not None
