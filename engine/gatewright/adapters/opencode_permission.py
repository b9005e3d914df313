"""Turns the `permission` of opencode (`opencode.json`) into a policy that is at most as open.

There the last rule that matches counts; here the first one does, so the rules come in reverse. A pattern is a text with
`*` for any characters, slashes too: a forbidding one becomes a pattern of `.gitignore` that matches at least as much,
an allowing one a pattern that matches at most as much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gatewright.adapters.host_rules import EVERYTHING, STRICTEST_FIRST, Draft, Migrated, Places, read_command
from gatewright.base.errors import WorkspaceError, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, read_json
from gatewright.policy.verdict import EVERY_HOST, Permission, Verdict

_ACTIONS = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY}
_LEVELS = {
    Verdict.ALLOW: Permission.READ_WRITE,
    Verdict.ASK: Permission.PARTNER,
    Verdict.DENY: Permission.READ_ONLY,
}
_LISTING = ("glob", "grep", "list")
_KNOWN = frozenset({"*", "read", "edit", "bash", "webfetch", *_LISTING})
_WILD = re.compile(r"[*?]")
_SIGNS = re.compile(r"[\[\]\\!#]")


@frozen
class _Rule:
    verdict: Verdict
    pattern: str
    text: str


def read_opencode_permission(texts: Iterable[str], *, agent_id: str, places: Places) -> Migrated:
    """Read configurations, the most important last, as the policy of one agent. Raises WorkspaceError."""
    draft = Draft(agent_id, "opencode", places, in_order=True)
    merged: JsonValue = {}
    for text in texts:
        held = read_json(text)
        if not isinstance(held, dict):
            raise WorkspaceError("it is no configuration of opencode")
        merged = _merge(merged, {key: held[key] for key in ("permission", "tools", "agent", "mode") if key in held})
    given = merged if isinstance(merged, dict) else {}
    rules = list(_rules(given["permission"])) if "permission" in given else []
    tools = given.get("tools")
    rules += _rules({key: "deny" for key, on in tools.items() if not on}) if isinstance(tools, dict) else ()
    for key in ("agent", "mode"):
        if given.get(key):
            draft.notes.append(f"`{key}`: permissions of single agents are lost; import them by themselves")
    if not rules:
        draft.notes.append("it has no `permission`: changes ask first here, and commands are off")
    _add_files(draft, _about("read", rules), _about("edit", rules))
    _add_commands(draft, _about("bash", rules))
    for key in _LISTING:
        found = _about(key, rules)
        draft.lists = draft.lists and all(rule.verdict is Verdict.ALLOW for rule in found)
    for rule in _about("webfetch", rules):
        host = EVERY_HOST if rule.verdict is not Verdict.ALLOW or rule.pattern == "*" else ""
        draft.fetch(rule.verdict, host, rule.text)
    for key, rule in rules:
        if key not in _KNOWN and rule.verdict is not Verdict.ALLOW:
            draft.lose(rule.text, rule.verdict, f"concerns nothing here: no tool is called {shown(key)}")
    return draft.finish()


def _merge(one: JsonValue, other: JsonValue) -> JsonValue:
    """Merge two configurations as opencode does: a key stays in its place, the later value counts."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return one | {key: _merge(one[key], value) if key in one else value for key, value in other.items()}


def _rules(value: JsonValue) -> Iterator[tuple[str, _Rule]]:
    """Yield the rules with their keys, in order. Raises WorkspaceError."""
    keys = value if isinstance(value, dict) else {"*": value}
    for key, held in keys.items():
        for pattern, action in held.items() if isinstance(held, dict) else [("*", held)]:
            if not isinstance(action, str) or action not in _ACTIONS:
                raise WorkspaceError(f"`permission.{key}` is not as opencode writes it")
            yield key, _Rule(_ACTIONS[action], pattern, f"{key}: {pattern}" if isinstance(held, dict) else key)


def _about(key: str, rules: Sequence[tuple[str, _Rule]]) -> list[_Rule]:
    """Return the rules about a key, the most important first; those behind one for everything do not count.

    An allowing rule for several keys leaves what stands before it, since some versions sort such keys to the front.
    """
    found: list[_Rule] = []
    for name, rule in reversed(rules):
        if name != key and not re.fullmatch(re.escape(name).replace(r"\*", ".*").replace(r"\?", "."), key):
            continue
        found.append(rule)
        if rule.pattern in {"*", EVERYTHING} and (name == key or rule.verdict is not Verdict.ALLOW):
            break
    return found


def _add_files(draft: Draft, reading: Sequence[_Rule], changing: Sequence[_Rule]) -> None:
    strictest = max((rule.verdict for rule in changing), key=list(_ACTIONS.values()).index, default=Verdict.ASK)
    guard = min(_LEVELS[strictest], Permission.PARTNER, key=STRICTEST_FIRST.index)
    for at, rule in enumerate(reading):
        if rule.verdict is not Verdict.ALLOW:
            draft.read(rule.verdict, _at_least(rule.pattern), rule.text)
        elif any(one.verdict is not Verdict.ALLOW for one in reading[at + 1 :]):
            _allow(draft, rule, _LEVELS[strictest], Permission.NONE)
    draft.read(Verdict.DENY, "*.env", "read: *.env (by default)")
    draft.read(Verdict.DENY, "*.env.*", "read: *.env.* (by default)")
    for rule in changing:
        if rule.verdict is Verdict.ALLOW:
            _allow(draft, rule, Permission.READ_WRITE, guard)
        else:
            draft.change(rule.verdict, _at_least(rule.pattern), rule.text)


def _allow(draft: Draft, rule: _Rule, level: Permission, guard: Permission) -> None:
    """Give a level to files; ``guard``: that of whatever lies below a folder of such a name."""
    said = _at_most(rule.pattern)
    if said is None:
        draft.lose(rule.text, rule.verdict, "cannot be said below the project: it asks first here")
    elif said.endswith(EVERYTHING):
        draft.give(said, level, rule.text)
    else:
        draft.give(f"{said}/**", guard, rule.text)
        draft.give(said, level, rule.text)


_FREE = re.compile(r"\*+/?([^*?]*)(\**)")
"""Any characters, a text, and perhaps any characters again."""


def _at_least(pattern: str) -> str:
    """Return a pattern for `Places` that matches at least as much, for whole and relative paths."""
    said = re.sub(r"\$HOME(?=/|$)", "~", pattern)
    head = _WILD.split(said, maxsplit=1)[0]
    free = _FREE.fullmatch(said[len(head) :])
    start = _escape(head if head.startswith(("/", "~")) or not head else f"./{head}")
    if head == said:
        return start
    if free is None or (head and not head.endswith("/")):
        return f"{start}*" if head else EVERYTHING
    if not free[1]:
        return f"{start}**"
    return f"{start}**/*{_escape(free[1])}{'*' if free[2] else ''}{'*' * free[1].endswith('/')}"


def _escape(text: str) -> str:
    return _SIGNS.sub(lambda sign: f"\\{sign[0]}", text)


def _at_most(pattern: str) -> str | None:
    """Return a pattern of files that matches at most as much, for whole and relative paths; None without one."""
    if pattern in {"*", EVERYTHING}:
        return EVERYTHING
    head, star, name = pattern.partition("*")
    deep = "**/"
    if name.startswith("*/*"):  # `src/**/*.ts` there needs a folder between
        deep, name = "*/**/", name[3:]
    elif name == "*":
        name = ""
    is_odd = _WILD.search(name) or _SIGNS.search(pattern) or "?" in head or "/" in name
    if is_odd or pattern.startswith(("/", "~", "$", "./", "../")) or (star and head and not head.endswith("/")):
        return None
    if not star:
        return f"./{head}"
    return f"./{head}{deep}*{name}" if name else f"./{head}**"


def _add_commands(draft: Draft, rules: Sequence[_Rule]) -> None:
    for rule in rules:
        if rule.pattern not in {"*", EVERYTHING}:
            draft.run(rule.verdict, read_command(rule.pattern), rule.text)
        elif rule.verdict is Verdict.ALLOW:
            draft.run(rule.verdict, read_command("*"), rule.text)
        else:
            draft.others, draft.asks_alone = rule.verdict, True
