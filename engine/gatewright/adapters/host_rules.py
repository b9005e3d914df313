"""Rules of coding agents as a policy that is at most as open: the part that is the same for every format.

A reader of a format says what each of its rules is about, and a `Draft` gathers that. To leave out a rule opens
something, unless the rule is one that allows. So a forbidding rule is left out only if it surely forbids nothing here;
one without an exact equivalent becomes stricter, or a note names it. Places are compared in each spelling that leads to
them: with links and without, below the home folder, and by any case where the disk ignores it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import Enum

from gatewright.arguments.shell_entry import WRAPPERS, read_entry
from gatewright.arguments.shell_program import EVERY
from gatewright.base.errors import shown
from gatewright.base.frozen import frozen
from gatewright.policy.capability import Exec, NetRead
from gatewright.policy.document import (
    Agent,
    Defaults,
    PermissionRule,
    Policy,
    Roots,
    ShellBackend,
    ShellSettings,
    Source,
)
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.rule import ToolRule
from gatewright.policy.rulekind import AllowedOperations
from gatewright.policy.verdict import EVERY_HOST, Permission, Verdict, check_host_pattern, host_matches
from gatewright.policyfile.readagent import path_error

SOURCE_ID = "project"
EVERYTHING = "**"
_WILD = re.compile(r"[*?\[\\]")
_READING = ("read", "list", "status", "diff", "load", "reload")
_CHANGING = ("append", "create", "insert", "replace", "save")
STRICTEST_FIRST = (
    Permission.NONE, Permission.READ_ONLY, Permission.ASK, Permission.PARTNER, Permission.READ_WRITE
)  # fmt: skip
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./@%+,:=-]+")
_LETTER = re.compile(r"\\.|\[(?:[!^]?\]?[^\]]*)\]|[A-Za-z]", re.DOTALL)


@frozen
class Migrated:
    """A policy, and a sentence for each part of the original that the policy lacks."""

    policy: Policy
    notes: tuple[str, ...]


@frozen
class Reach:
    """The places that a forbidding pattern may match.

    ``patterns``: below the project, empty for nothing there. ``outside``: the file or folder elsewhere, empty for none;
    None if no single place has them all. ``is_exact``: all of it matches.
    """

    patterns: tuple[str, ...] = ()
    outside: str | None = ""
    is_exact: bool = True


@frozen
class Places:
    """The folders that patterns are about, as absolute paths with ``/``.

    ``project``: each known spelling of the project's folder; ``real``: resolves the links of a path; ``folds``: the
    disk ignores case.
    """

    project: tuple[str, ...]
    home: str
    real: Callable[[str], str] = field(default=str)
    folds: bool = False

    def forbidden(self, said: str) -> Reach:
        """Return where a forbidding pattern may match, rather too much than too little.

        ``said``: a pattern of `.gitignore` below the project, or one from the root (`/...`) or the home folder
        (`~/...`).
        """
        if said.startswith("~") and said[1:2] not in {"", "/"}:
            return Reach((EVERYTHING,), None)
        if said.startswith("~"):
            said = f"{self.home}{said[1:]}"
        is_deep = ".." in said.split("/")
        if not said.startswith("/"):
            if not is_deep:
                steps = [step for step in said.split("/") if step not in {"", "."}]
                pattern = "/" * said.startswith("./") + "/".join(steps) + "/" * said.endswith("/")
                return Reach((self._below(pattern if steps else EVERYTHING),))
            said = f"{self.project[0]}/{said}"
        steps = [step for step in said.split("/") if step not in {"", "."}]
        plain = next((at for at, step in enumerate(steps) if _WILD.search(step)), len(steps))
        wild = steps[plain:]
        if ".." in wild:
            return Reach((EVERYTHING,), None)
        begins = "/" + "/".join(steps[:plain])
        written = posixpath.normpath(begins)
        starts = {written, posixpath.normpath(self.real(begins))}
        folders = self._folders
        found = {rest for start in starts for folder in folders for rest in self._rests(start, wild, folder)}
        if "" in found or EVERYTHING in found:
            found = {EVERYTHING}
        is_above = any(self._is_within(folder, start) for start in starts for folder in folders)
        is_within = any(self._is_within(start, folder) for start in starts for folder in folders)
        outside = "" if is_within else None if is_above else written
        below = tuple(self._below(f"/{rest}" if rest != EVERYTHING else rest) for rest in sorted(found))
        return Reach(below, outside, wild in ([], ["*"], [EVERYTHING]))

    def allowed(self, said: str) -> str | None:
        """Return the pattern below the project for an allowing one; None if it cannot be said exactly."""
        if said.startswith("~/"):
            said = f"{self.home}{said[1:]}"
        steps = [step for step in said.split("/") if step]
        if said.startswith("./"):
            said = f"/{said[2:]}"
        elif said.startswith("/"):
            folder = next((one for one in map(_steps, self._folders) if steps[: len(one)] == one), None)
            if folder is None:
                return None
            rest = "/".join(steps[len(folder) :])
            said = f"/{rest}{'/' * said.endswith('/')}" if rest else EVERYTHING
        is_exact = {".", ".."}.isdisjoint(_steps(said)) and not said.startswith("~")
        return said if is_exact and check_pattern(said) is None else None

    @property
    def _folders(self) -> set[str]:
        return {f"/{one.strip('/')}" for folder in self.project for one in (folder, self.real(folder))}

    def _is_within(self, path: str, folder: str) -> bool:
        path, folder = (one.casefold() if self.folds else one for one in (path, folder))
        return path == folder or path.startswith(f"{folder.rstrip('/')}/")

    def _below(self, pattern: str) -> str:
        if self.folds:
            pattern = _LETTER.sub(
                lambda one: f"[{one[0].lower()}{one[0].upper()}]" if len(one[0]) == 1 else one[0], pattern
            )
        return pattern if check_pattern(pattern) is None else EVERYTHING

    def _rests(self, start: str, wild: Sequence[str], folder: str) -> Iterator[str]:
        """Yield what is left of a pattern below the folder, for each way to match the folder; "" for all of it."""
        pattern, steps = [*_steps(start), *wild], _steps(folder)
        seen: set[tuple[int, int]] = set()
        stack = [(0, 0)]
        while stack:
            at, depth = stack.pop()
            if (at, depth) in seen:
                continue
            seen.add((at, depth))
            if at == len(pattern):
                yield ""  # it matches the folder, or one above it
            elif depth == len(steps):
                yield "/".join(pattern[at:])
            elif pattern[at] == EVERYTHING:
                stack += [(at + 1, depth), (at, depth + 1)]
            elif self._fits(pattern[at], steps[depth]):
                stack.append((at + 1, depth + 1))

    def _fits(self, step: str, name: str) -> bool:
        if self.folds:
            step, name = step.casefold(), name.casefold()
        if not _WILD.search(step) or check_pattern(step) is not None:
            return step == name or _WILD.search(step) is not None
        return PermissionRules([PermissionRule(step, Permission.NONE)], Permission.ADMIN).level(name) is Permission.NONE


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step]


class Tail(Enum):
    """The words behind those of a pattern of commands: any, none, the rest of a word and any, or nobody can say."""

    ANY = "any"
    NONE = "none"
    REST = "rest"
    UNCLEAR = "unclear"


@frozen
class Command:
    """The commands that a rule is about: those that begin with ``words``. ``begins``: the text before any wildcard."""

    words: tuple[str, ...] = ()
    tail: Tail = Tail.ANY
    begins: str = ""

    @property
    def entry(self) -> str:
        """The entry of a list of `[workspace] shell` that allows them."""
        return f"{' '.join(self.words)}{' $' * (self.tail is Tail.NONE)}"

    @property
    def wider(self) -> str:
        """The entry that covers at least these; empty for all commands."""
        words = self.words[:-1] if self.tail is Tail.REST else self.words
        return " ".join(words[:1] if words and words[0] in WRAPPERS else words)

    def meets(self, other: Command) -> bool:
        """Tell whether both may be about the same command, by their texts."""
        return self.begins.startswith(other.begins) or other.begins.startswith(self.begins)


def read_command(pattern: str) -> Command:
    """Read a pattern of commands: `git status`, `git status:*`, `git status *`, `git st*`, `git * main`, `*`."""
    said = " ".join(pattern.split())
    if said in {"", "*", ":*"}:
        return Command()
    body = said[:-2] if said.endswith((":*", " *")) else said.removesuffix("*")
    words = body.split(" ")
    plain = next((at for at, word in enumerate(words) if not _PLAIN_WORD.fullmatch(word)), len(words))
    tail = Tail.NONE if body == said else Tail.ANY if len(said) - len(body) > 1 else Tail.REST
    kept = () if "=" in words[0] else tuple(words[:plain])
    return Command(kept, tail if len(kept) == len(words) else Tail.UNCLEAR, body.partition("*")[0])


class Draft:
    """A policy of one agent in the making. ``title``: the program whose rules it takes.

    ``in_order``: the first rule about a file counts, else the strictest. ``default``: the level of a file without a
    rule. ``allowing``: the level that permission to change a file gives. ``others``: the host's verdict on commands
    without a rule, which are denied here; ``asks_alone``: if no rule allows a command, every command asks first.
    """

    def __init__(self, agent_id: str, title: str, places: Places, *, in_order: bool = False) -> None:
        self._agent_id, self._title, self._places, self._in_order = agent_id, title, places, in_order
        self.notes: list[str] = []
        self.default, self.allowing = Permission.PARTNER, Permission.READ_WRITE
        self.lists = self.runs = True
        self.others, self.asks_alone = Verdict.ASK, False
        self.sees_through = frozenset[str]()
        """The programs that start a command which this host judges too. A command that others start asks first here."""
        self.asks: set[str] = set()
        """The tools and operations that ask first, whatever else is said."""
        self._levels: list[tuple[str, Permission, str]] = []
        self._closed: dict[str, None] = {}
        self._hosts: list[tuple[Verdict, str, str]] = []
        self._commands: list[tuple[Verdict, Command, str]] = []

    def lose(self, text: str, verdict: Verdict, why: str) -> None:
        """Note a rule that is not taken over as it is."""
        self.notes.append(f"{shown(text)} ({verdict}) {why}")

    def read(self, verdict: Verdict, said: str, text: str) -> None:
        """Take a rule on reading files."""
        if verdict is Verdict.ALLOW:
            return
        level = Permission.NONE if verdict is Verdict.DENY or self._in_order else Permission.ASK
        reach = self._forbid(verdict, level, said, text)
        if reach.outside and verdict is Verdict.ASK:
            self.lose(text, verdict, f"closes {shown(reach.outside)}")
        if reach.outside:
            self.close(reach.outside, text)
            if not reach.is_exact:
                self.lose(text, verdict, f"closes all of {shown(reach.outside)}")
        elif reach.outside is None:
            self.asks.add("shell_exec")
            self.lose(text, verdict, "is also about files outside, of which commands see none that the room lacks")

    def change(self, verdict: Verdict, said: str, text: str) -> None:
        """Take a rule on changing files."""
        if verdict is not Verdict.ALLOW:
            level = (
                Permission.READ_ONLY
                if verdict is Verdict.DENY
                else min(self.default, Permission.PARTNER, key=STRICTEST_FIRST.index)
            )
            reach = self._forbid(verdict, level, said, text)
            if reach.outside != "":
                self.lose(text, verdict, "is about files outside, which nothing changes here")
        else:
            self.give(said, self.allowing, text)

    def give(self, said: str, level: Permission, text: str) -> None:
        """Give a level to files that a rule allows to change."""
        pattern = self._places.allowed(said)
        if pattern is not None:
            self._levels.append((pattern, level, text))
        else:
            self.lose(text, Verdict.ALLOW, "cannot be said below the project: it asks first here")

    def _forbid(self, verdict: Verdict, level: Permission, said: str, text: str) -> Reach:
        reach = self._places.forbidden(said)
        self._levels += [(pattern, level, text) for pattern in reach.patterns]
        if EVERYTHING in reach.patterns and said.rstrip("/") not in {EVERYTHING, "*"}:
            self.lose(text, verdict, "may be about the project's whole folder, so it holds for every file")
        return reach

    def close(self, place: str, text: str) -> None:
        """Close a file or folder outside the project to every tool."""
        home = self._places.home.rstrip("/")
        written = f"~{place[len(home) :]}" if place.startswith(f"{home}/") else place
        if place in {"/", home} or path_error(written):
            self.asks.add("shell_exec")
            self.lose(text, Verdict.DENY, "names a folder that commands need: each of them asks first")
        else:
            self._closed.setdefault(written)

    def close_all(self) -> None:
        """Close every file, command and host, for a forbidding rule that cannot be read."""
        self._levels, self._hosts, self.default, self.runs = [], [], Permission.NONE, False

    def fetch(self, verdict: Verdict, host: str, text: str) -> None:
        """Take a rule on fetching from a host, ``*`` for every one."""
        self._hosts.append((verdict, host, text))

    def only_hosts(self, patterns: Sequence[str]) -> None:
        """Limit the hosts to those that one of the patterns matches."""
        for one in [*self._hosts]:
            if one[0] is Verdict.ALLOW and not any(host_matches(pattern, one[1], 443) for pattern in patterns):
                self._hosts.remove(one)
                self.lose(one[2], one[0], "is not taken over: the network is limited to other hosts")

    def run(self, verdict: Verdict, command: Command, text: str) -> None:
        """Take a rule on commands."""
        self._commands.append((verdict, command, text))

    def finish(self) -> Migrated:
        """Return the policy."""
        hosts, shell = self._granted_hosts(), self._shell()
        has_shell = shell.backend is not ShellBackend.DISABLED
        tools = ("file", *(("web_fetch",) if hosts else ()), *(("shell_exec",) if has_shell else ()))
        asking = (one for one in sorted(self.asks) if one.partition(".")[0] in tools)
        approvals = dict.fromkeys(["shell_exec"] * has_shell, Verdict.ALLOW) | dict.fromkeys(asking, Verdict.ASK)
        operations = [one for one in (*_READING, *_CHANGING) if self.lists or one != "list"]
        agent = Agent(
            self._agent_id,
            description=f"From the settings of {self._title}",
            tools=tools,
            sources=(SOURCE_ID,),
            approvals=approvals,
            tool_rules=(ToolRule("file", AllowedOperations(frozenset(operations))),),
            capabilities=(*((NetRead(hosts),) if hosts else ()), *((Exec(),) if has_shell else ())),
        )
        levels = self._levels
        if Permission.READ_ONLY in {self.default, *(level for _, level, _ in levels)}:
            # no level asks before reading and denies changes
            closer = {Permission.ASK: Permission.NONE}
            levels = [(pattern, closer.get(level, level), text) for pattern, level, text in levels]
        if not self._in_order:
            levels = sorted(levels, key=lambda row: STRICTEST_FIRST.index(row[1]))
        ordered: dict[str, PermissionRule] = {}
        for pattern, level, text in levels:
            ordered.setdefault(pattern, PermissionRule(pattern, level, text[:200]))
        policy = Policy(
            defaults=Defaults(unlisted_tools=Verdict.DENY),
            agents={self._agent_id: agent},
            sources=(Source(SOURCE_ID, ".", self.default, tuple(ordered.values())),),
            roots=Roots(shared=".") if has_shell else Roots(),
            shell=shell,
            closed=tuple(self._closed),
        )
        return Migrated(policy, tuple(dict.fromkeys(self.notes)))

    def _granted_hosts(self) -> tuple[str, ...]:
        """Return the hosts whose pages the agent may fetch."""
        limits = [host for verdict, host, _ in self._hosts if verdict is not Verdict.ALLOW]
        found: dict[str, None] = {}
        for verdict, host, text in self._hosts:
            if verdict is not Verdict.ALLOW:
                continue
            is_exact = host == EVERY_HOST or ("*" not in host and ":" not in host)
            if not is_exact or check_host_pattern(host) or any(_may_meet(limit, host) for limit in limits):
                self.lose(text, verdict, "is not taken over: name the hosts in `NetRead`")
            else:
                found.setdefault(host)
        return tuple(found)

    def _shell(self) -> ShellSettings:
        """Return the commands that run, with and without a question, and those that may not."""
        denied, asking, allowed = dict[str, None](), dict[str, Command](), dict[str, Command]()
        unclear: list[Command] = []
        for verdict, one, text in self._commands:
            if verdict is Verdict.ALLOW:
                continue
            opens = verdict is Verdict.ASK and one.tail is not Tail.ANY and self.others is Verdict.DENY
            if one.wider and not _entry_fault(one.wider) and not opens:
                if one.tail is not Tail.ANY:
                    self.lose(text, verdict, f"holds for all commands that begin with {shown(one.wider)}")
                denied.setdefault(one.wider) if verdict is Verdict.DENY else asking.setdefault(one.wider, one)
            elif verdict is Verdict.ASK and not opens:
                self.asks.add("shell_exec")
                self.lose(text, verdict, "holds for every command")
            else:
                unclear.append(one)
                denied |= dict.fromkeys(name for name in WRAPPERS if one.meets(Command(begins=name)))
                self.lose(text, verdict, "cannot be said here: what else it may be about is off")
        for verdict, one, text in self._commands:
            if verdict is not Verdict.ALLOW:
                continue
            why = "names commands in a way that a policy cannot"
            if one.tail is not Tail.UNCLEAR:
                why = _entry_fault(one.entry)
            if not why and any(one.meets(limit) for limit in unclear):
                why = "is not taken over: another rule may be about the same commands"
            if why:
                self.lose(text, verdict, why)
            else:
                allowed.setdefault(one.entry or EVERY, one)
        asking = {entry: one for entry, one in asking.items() if not any(one.meets(limit) for limit in unclear)}
        if self.asks_alone and self.others is Verdict.ASK and not allowed and not unclear:
            allowed[EVERY] = Command()
            self.asks.add("shell_exec")
        if not self.runs or not (allowed or asking):
            return ShellSettings()
        if EVERY not in allowed:
            aside = dict.fromkeys(sorted(WRAPPERS.keys() - self.sees_through - denied.keys() - asking.keys()))
            if self.others is Verdict.ASK:
                self.notes.append(f"commands that no rule names are denied here; {self._title} asks")
                asking |= {name: Command() for name in aside}
            else:
                denied |= aside
        return ShellSettings(ShellBackend.HOST, tuple(allowed), tuple(denied), ask=tuple(asking))


def _entry_fault(entry: str) -> str:
    """Return the reason why a list of `[workspace] shell` cannot hold an entry; empty if it can."""
    try:
        read_entry(entry or EVERY)
    except ValueError as fault:
        return f"cannot be said here: it {fault}"
    return ""


def _may_meet(limit: str, host: str) -> bool:
    """Tell whether a forbidding rule may concern a host that another rule allows."""
    if not limit or EVERY_HOST in (host, limit) or check_host_pattern(limit) or "*" in limit.removeprefix("*."):
        return True
    return host_matches(f"*.{limit.removeprefix('*.')}", host, 443)
