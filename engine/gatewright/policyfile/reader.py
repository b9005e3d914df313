"""Reading a policy file strictly, every problem at once. It writes nothing and touches no folder.

Enforcement reads with tomllib; places are looked up only when there is something to report.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from gatewright.base.frozen import frozen
from gatewright.base.problem import Problem, Severity
from gatewright.base.report import BOM, Finding, Report
from gatewright.base.row import Raw, Row
from gatewright.base.shape import TEXT, Shape, by_name, several, table, told
from gatewright.policy.document import Agent, Defaults, Dialect, Policy
from gatewright.policyfile.check import Checked, PolicyCheck
from gatewright.policyfile.known import KnownTools
from gatewright.policyfile.names import Names
from gatewright.policyfile.place import Places
from gatewright.policyfile.readagent import AGENT_KEYS, DEFAULTS_KEYS, read_agents, read_defaults
from gatewright.policyfile.readcatalog import catalog_shape, check_places, read_catalogs
from gatewright.policyfile.readcomposition import check_steps, composition_shape, read_compositions
from gatewright.policyfile.readdeclaration import Declaration
from gatewright.policyfile.readpolicy import POLICY_KEYS, read_policy_rules
from gatewright.policyfile.readsource import read_sources, source_shape
from gatewright.policyfile.readtool import KEYS as SETTINGS_KEYS
from gatewright.policyfile.readtool import read_tool_settings
from gatewright.policyfile.readworkspace import WORKSPACE, read_workspace
from gatewright.policyfile.report import problems_of

MAX_BYTES = 8 * 1024 * 1024
MAX_KEY_PARTS = 200
VERSION = 1
TOP_KEYS: dict[str, Shape] = {
    "gatewright": told({"type": "integer", "const": VERSION}, "The version of the format"),
    "name": told(TEXT, "What the policy is called"),
    "description": told(TEXT, "What it is for"),
    "defaults": told(table(DEFAULTS_KEYS), "What holds for every agent"),
    "agents": told(by_name(table(AGENT_KEYS)), "The agents by id"),
    "sources": told(several(source_shape()), "Folders of files that agents work with", []),
    "catalogs": told(several(catalog_shape()), "Where tools come from besides the built-in ones", []),
    "tools": told(by_name(table(SETTINGS_KEYS)), "What you override of single tools"),
    "compositions": told(several(composition_shape()), "Tools made of calls of other tools", []),
    "policy": told(table(POLICY_KEYS), "Rules for the calls of any agent"),
    "workspace": told(table(WORKSPACE), "Folders, shell, web and messages"),
}
_AT = re.compile(r" \(at line (\d+), column (\d+)\)$|\s*\(at end of document\)$")
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000}")
_DUPLICATE = ("Cannot declare", "Cannot overwrite", "Cannot mutate", "Duplicate inline")


def policy_schema() -> Shape:
    """The JSON Schema of a policy file (draft 7): its tables, keys and values, as this reader takes them.

    Which tools, operations, agents and sources there are it cannot know; `parse_policy` checks that.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Gatewright policy",
        **table(TOP_KEYS, "gatewright"),
    }


@frozen
class Reading:
    """A policy built as far as it goes, and what was found on the way: in each table, and in the whole.

    ``known``: the tools with those of its catalogs and as it declares them.
    """

    policy: Policy
    known: KnownTools | None
    report: Report
    checked: Checked

    @property
    def has_errors(self) -> bool:
        """Whether anything found is an error."""
        return any(report.has_errors for report in (self.report, *self.checked.reports))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that was found."""
        return tuple(found for report in (self.report, *self.checked.reports) for found in report.findings)


@frozen
class LoadedPolicy:
    """What came of a text. ``policy`` is None when there is an error among the problems.

    ``reading`` is how it came to that; None of a text that is no TOML.
    """

    policy: Policy | None
    problems: tuple[Problem, ...]
    text: str
    places: Places
    reading: Reading | None = None


def parse_policy(text: str, *, file: str, known: KnownTools) -> LoadedPolicy:
    """Read ``text``; ``file`` is the name that problems carry. Never raises for what the text holds."""
    raw = _raw(text, file)
    if isinstance(raw, Problem):
        return LoadedPolicy(None, (raw,), text, Places(text, file, Dialect.GATEWRIGHT))
    reading = _read(raw, PurePath(file).stem, known)
    places = Places(text, file, reading.policy.dialect)
    problems = problems_of(reading.findings, places, _named(reading) if reading.has_errors else reading.policy)
    return LoadedPolicy(None if reading.has_errors else reading.policy, problems, text, places, reading)


def _named(reading: Reading) -> Policy:
    """Only the agents' names: what could not be built is left out, so that what stands at which index is not known."""
    agents = {agent_id: Agent(agent_id) for agent_id in reading.policy.agents}
    return Policy(agents=agents, dialect=reading.policy.dialect)


def value_of(text: str, fallback_id: str) -> Policy | None:
    """The policy that a text says, tool names and support unchecked; None when it is no TOML."""
    raw = _raw(text, "")
    return None if isinstance(raw, Problem) else _read(raw, fallback_id, None).policy


def _read(raw: Raw, stem: str, known: KnownTools | None) -> Reading:
    report = Report()
    row = Row(raw, (), report)
    if not {"gatewright", "agents"} & raw.keys() and {"tool_rules", "data_sources"} & raw.keys():
        from gatewright.policyfile.patternfile import read_pattern

        known = known.with_rooted() if known is not None else None
        policy = read_pattern(row, stem or "agent", Names(known, report))
    else:
        policy, known = _gatewright(row, known)
    checked = Checked() if known is None else PolicyCheck(policy, known, report.error_paths).everything()
    return Reading(policy, known, report, checked)


def _gatewright(row: Row, known: KnownTools | None) -> tuple[Policy, KnownTools | None]:
    """The policy, and the tools with those of its catalogs and as it declares them, which all the rest is held to."""
    from gatewright.policyfile.readdeclaration import read_declarations

    version = row.raw.get("gatewright")
    if version is None:
        message = "a policy file begins with `gatewright = 1` (only a file of one agent's `[[tool_rules]]` may lack it)"
        row.report.error((), "missing-key", message)
    elif type(version) is not int:
        row.wrong("gatewright", "the whole number 1", version)
    elif version != VERSION:
        row.fault("gatewright", "bad-value", "this release reads policy files of version 1 only")
    row.only(TOP_KEYS, "a policy file")
    rows = row.rows("catalogs")
    catalogued = read_catalogs(rows, known)
    known = catalogued.known.with_rooted() if catalogued.known is not None else None
    composed = row.rows("compositions")
    compositions, known = read_compositions(composed, known)
    tools = row.table("tools")
    declared: Mapping[str, Declaration] = {}
    if tools:
        declared, known = read_declarations(tools, known)
    names = Names(known, row.report)
    settings = read_tool_settings(tools, names, declared) if tools else {}
    check_steps(composed, compositions, names)
    policy = replace(_rest(row, names), catalogs=catalogued.catalogs, tools=settings, compositions=compositions)
    catalogued.report_missing(row.report, names.unread)
    if known is not None:
        check_places(rows, policy.sources)
        known = known if row.report.has_errors else known.composed(policy)
    return policy, known


def _rest(row: Row, names: Names) -> Policy:
    rows = row.rows("sources")
    sources = read_sources(rows, names)
    written = {source_id for one in rows if isinstance(source_id := one.raw.get("id"), str)}
    defaults, agents = row.table("defaults"), row.table("agents")
    default, rules = read_policy_rules(row.table("policy"), names, agents.raw if agents else ())
    return Policy(
        name=row.text("name"),
        description=row.text("description"),
        defaults=read_defaults(defaults, names) if defaults else Defaults(),
        agents=read_agents(agents, names, written) if agents else {},
        sources=tuple(sources),
        default=default,
        rules=rules,
        **read_workspace(row.table("workspace"), agents.raw if agents else ()),
    )


def _raw(text: str, file: str) -> Raw | Problem:
    if fault := text_fault(text):
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


def text_fault(text: str) -> tuple[int, str] | None:
    """Where and why a text is not even to be read as TOML; None when it is."""
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
    from gatewright.policyfile.scan import scan
    from gatewright.policyfile.syntaxfault import explained

    found = _AT.search(message)
    said = message[: found.start()] if found else message
    code = "duplicate" if said.startswith(_DUPLICATE) else "syntax"
    offset = _offset(text, found)
    if code == "duplicate":
        second = scan(text).duplicates
        offset, words = second[0] if second else offset, "this key or table stands here a second time"
    else:
        offset, why = explained(text, offset, said)
        words = f"this is no valid TOML: {why}"
    return Problem(Severity.ERROR, code, words, Places(text, file, Dialect.GATEWRIGHT).place_at(offset))


def _offset(text: str, found: re.Match[str] | None) -> int:
    if not found or not found[1]:
        return len(text)
    line, column = int(found[1]), int(found[2])
    lines = text.split("\n", line - 1)
    start = len(text) - len(lines[-1])
    return min(start + column - 1 + (len(BOM) if line == 1 and text.startswith(BOM) else 0), len(text))


def _problem(text: str, file: str, offset: int, message: str) -> Problem:
    return Problem(Severity.ERROR, "syntax", message, Places(text, file, Dialect.GATEWRIGHT).place_at(offset))
