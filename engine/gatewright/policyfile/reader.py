"""Reading a policy file strictly, every problem at once. It writes nothing and touches no folder.

Enforcement reads with tomllib; places are looked up only when there is something to report.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from gatewright.base.problem import Place, Problem, Severity
from gatewright.policy.document import Defaults, Dialect, Policy
from gatewright.policyfile.check import check_policy
from gatewright.policyfile.names import Names
from gatewright.policyfile.patternfile import read_pattern
from gatewright.policyfile.place import Places
from gatewright.policyfile.readagent import read_agents, read_defaults
from gatewright.policyfile.readcatalog import read_catalogs
from gatewright.policyfile.readdeclaration import read_declarations
from gatewright.policyfile.readpolicy import read_policy_rules
from gatewright.policyfile.readsource import read_sources
from gatewright.policyfile.readtool import read_tool_settings
from gatewright.policyfile.readworkspace import read_workspace
from gatewright.policyfile.report import Report
from gatewright.policyfile.row import Raw, Row
from gatewright.policyfile.scan import BOM, scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewright.policyfile.known import KnownTools
    from gatewright.policyfile.readdeclaration import Declaration

MAX_BYTES = 8 * 1024 * 1024
MAX_KEY_PARTS = 200
VERSION = 1
TOP_KEYS = (
    "gatewright",
    "name",
    "description",
    "defaults",
    "agents",
    "sources",
    "catalogs",
    "tools",
    "compositions",
    "policy",
    "workspace",
)
_AT = re.compile(r" \(at line (\d+), column (\d+)\)$|\s*\(at end of document\)$")
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000}")
_DUPLICATE = ("Cannot declare", "Cannot overwrite", "Cannot mutate", "Duplicate inline")


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """What came of a text. ``policy`` is None when there is an error among the problems."""

    policy: Policy | None
    problems: tuple[Problem, ...]
    text: str
    places: Places


@dataclass(frozen=True, slots=True)
class _Reading:
    """A policy built as far as it goes, and what was found on the way."""

    policy: Policy
    report: Report


def parse_policy(text: str, *, file: str, known: KnownTools) -> LoadedPolicy:
    """Read ``text``; ``file`` is the name that problems carry. Never raises for what the text holds."""
    raw = _raw(text, file)
    if isinstance(raw, Problem):
        return LoadedPolicy(None, (raw,), text, Places(text, file, Dialect.GATEWRIGHT))
    reading = _read(raw, PurePath(file).stem, known)
    places = Places(text, file, reading.policy.dialect)
    problems = reading.report.problems(places)
    return LoadedPolicy(None if reading.report.has_errors else reading.policy, problems, text, places)


def value_of(text: str, fallback_id: str) -> Policy | None:
    """The policy that a text says, tool names and support unchecked; None when it is no TOML."""
    raw = _raw(text, "")
    return None if isinstance(raw, Problem) else _read(raw, fallback_id, None).policy


def _read(raw: Raw, stem: str, known: KnownTools | None) -> _Reading:
    report = Report()
    row = Row(raw, (), report)
    if _is_pattern(raw):
        known = known.with_rooted() if known is not None else None
        policy = read_pattern(row, stem or "agent", Names(known, report))
    else:
        policy, known = _gatewright(row, known)
    if known is not None:
        check_policy(policy, known, report)
    return _Reading(policy, report)


def _is_pattern(raw: Raw) -> bool:
    return "gatewright" not in raw and "agents" not in raw and ("tool_rules" in raw or "data_sources" in raw)


def _gatewright(row: Row, known: KnownTools | None) -> tuple[Policy, KnownTools | None]:
    """The policy, and the tools with those of its catalogs and as it declares them, which all the rest is held to."""
    _check_version(row)
    row.only(TOP_KEYS, "a policy file")
    _refuse_unsupported(row)
    catalogs, known = read_catalogs(row.rows("catalogs"), known)
    known = known.with_rooted() if known is not None else None
    tools = row.table("tools")
    declared: Mapping[str, Declaration] = {}
    if tools:
        declared, known = read_declarations(tools, known)
    names = Names(known, row.report)
    settings = read_tool_settings(tools, names, declared) if tools else {}
    return replace(_rest(row, names), catalogs=catalogs, tools=settings), known


def _rest(row: Row, names: Names) -> Policy:
    sources = read_sources(row.rows("sources"), names)
    defaults, agents = row.table("defaults"), row.table("agents")
    default, rules = read_policy_rules(row.table("policy"), names, agents.raw if agents else ())
    return Policy(
        name=row.text("name"),
        description=row.text("description"),
        defaults=read_defaults(defaults, names) if defaults else Defaults(),
        agents=read_agents(agents, names, {source.source_id for source in sources}) if agents else {},
        sources=tuple(sources),
        default=default,
        rules=rules,
        roots=read_workspace(row.table("workspace")),
    )


def _check_version(row: Row) -> None:
    version = row.raw.get("gatewright")
    if version is None:
        message = "a policy file begins with `gatewright = 1` (only a file of one agent's `[[tool_rules]]` may lack it)"
        row.report.error((), "missing-key", message)
    elif type(version) is not int:
        row.wrong("gatewright", "the whole number 1", version)
    elif version != VERSION:
        row.fault("gatewright", "bad-value", "this release reads policy files of version 1 only")


def _refuse_unsupported(row: Row) -> None:
    for entry in row.rows("compositions"):
        row.report.error(entry.path, "not-supported", "`[[compositions]]` are not supported yet", at_value=False)


def _raw(text: str, file: str) -> Raw | Problem:
    if fault := _text_fault(text):
        return _problem(text, file, *fault)
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except tomllib.TOMLDecodeError as error:
        return _syntax(text, file, str(error))
    except RecursionError:
        return _problem(text, file, 0, "the nesting is too deep")
    except (ValueError, OverflowError):
        found = _LONG_NUMBER.search(text)
        return _problem(text, file, found.start() if found else 0, "a number is too large or a date is impossible")


def _text_fault(text: str) -> tuple[int, str] | None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        return 0, f"a policy file may not be larger than {MAX_BYTES // 1024 // 1024} MiB"
    if (at := text.find("\0")) >= 0:
        return at, "the file holds a NUL character: it is no text"
    if not text.isascii() and (found := re.search("[\ud800-\udfff]", text)):
        return found.start(), "the file is not UTF-8"
    at = 0
    for line in text.split("\n"):
        if line.count(".") > MAX_KEY_PARTS and _head(line).count(".") > MAX_KEY_PARTS:
            return at, f"a key has more than {MAX_KEY_PARTS} parts"
        at += len(line) + 1
    return None


def _head(line: str) -> str:
    """What may be a key on this line: its beginning, up to the first mark that ends a plain dotted key."""
    return re.split("[=#\\]]", line, maxsplit=1)[0]


def _syntax(text: str, file: str, message: str) -> Problem:
    found = _AT.search(message)
    said = message[: found.start()] if found else message
    code = "duplicate" if said.startswith(_DUPLICATE) else "syntax"
    place = _place(text, file, found)
    if code == "duplicate" and (second := scan(text).duplicates):
        place = Places(text, file, Dialect.GATEWRIGHT).place_at(second[0])
    return Problem(Severity.ERROR, code, _in_our_words(said), place)


def _in_our_words(said: str) -> str:
    if said.startswith(_DUPLICATE):
        return "this key or table stands here a second time"
    return f"this is no valid TOML: {said[:1].lower()}{said[1:]}"


def _place(text: str, file: str, found: re.Match[str] | None) -> Place:
    if found and found[1]:
        return Place(file, int(found[1]), int(found[2]))
    return Places(text, file, Dialect.GATEWRIGHT).place_at(len(text))


def _problem(text: str, file: str, offset: int, message: str) -> Problem:
    return Problem(Severity.ERROR, "syntax", message, Places(text, file, Dialect.GATEWRIGHT).place_at(offset))
