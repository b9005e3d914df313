"""Loads a policy file strictly with every problem at once, stores its text, and refuses edits that would not load.

Enforcement reads with tomllib; places are looked up only for a report. Messages begin with the fault and name the file;
a write never replaces content that nobody has seen. Of an edited policy only the changed parts are checked: rules and
capabilities of agents without the names of tools and operations, which the edit itself has checked; policy rules,
defaults and ``[workspace]`` exactly as in a file.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import BOM, Problem, RawPath, Report, Severity, WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import nulls_in
from gatewright.base.row import Raw, Row, Shape
from gatewright.policy.capability import check_capabilities
from gatewright.policy.composition import ORIGIN, Composition
from gatewright.policy.document import Agent, Catalog, Defaults, Dialect, Policy, Source, ToolSettings
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policyfile.check import PolicyCheck
from gatewright.policyfile.names import KnownTools, Names, Places, problems_of
from gatewright.policyfile.readagent import read_agents, read_defaults, read_pattern, read_sources
from gatewright.policyfile.readcatalog import check_places, read_catalogs
from gatewright.policyfile.readcomposition import check_steps, read_compositions
from gatewright.policyfile.readpolicy import PolicyTable, read_policy_rule, read_policy_rules
from gatewright.policyfile.readrule import check_schemas
from gatewright.policyfile.readtool import Declaration, read_declarations, read_tool_settings
from gatewright.policyfile.readworkspace import WorkspaceTable, read_workspace
from gatewright.policyfile.table import Form, Key, Table, keys_of, plain, read_keys

MAX_BYTES = 8 * 1024 * 1024
MAX_KEY_PARTS = 200
VERSION = 1


class PolicyFile(Table):
    """The whole file."""

    version: Annotated[int, Form(lambda: {"type": "integer", "const": VERSION})] | None = Field(
        None, alias="gatewright", description="The version of the format"
    )
    name: str | None = Field(None, description="The name of the policy")
    description: str | None = Field(None, description="Its purpose")
    defaults: Defaults = Field(Defaults(), description="Settings for every agent")
    agents: Mapping[str, Agent] = Field({}, description="The agents by id")
    sources: tuple[Source, ...] = Field((), description="Folders of files that agents work with")
    catalogs: tuple[Catalog, ...] = Field((), description="Tools from elsewhere, besides the built-in ones")
    tools: Mapping[str, ToolSettings] = Field({}, description="Your settings for single tools")
    compositions: tuple[Composition, ...] = Field((), description="Tools made of calls of other tools")
    policy: PolicyTable | None = Field(None, description="Rules for the calls of any agent")
    workspace: WorkspaceTable | None = Field(None, description="Folders, shell, web and messages")


_AT = re.compile(r" \(at line (\d+), column (\d+)\)$|\s*\(at end of document\)$")
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000}")
_DUPLICATE = ("Cannot declare", "Cannot overwrite", "Cannot mutate", "Duplicate inline")


def key_at(path: Sequence[str]) -> Key:
    """The key of a part of the policy, named by the fields that lead to it; for an entry, the key of its table."""
    models: tuple[type[Table], ...] = (PolicyFile, PolicyTable, WorkspaceTable)
    found: list[Key] = []
    for name in path:
        found += [one for model in models for one in keys_of(model).values() if one.name == name]
        models = (table,) if (table := found[-1].form.table) is not None else ()
    return found[-1]


def policy_schema() -> Shape:
    """The JSON Schema of a policy file (draft 7): its tables, keys and values, as this reader accepts them.

    It cannot know which tools, operations, agents and sources exist; `parse_policy` checks that.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Gatewright policy",
        **PolicyFile.shape(),
        "required": ["gatewright"],
    }


@frozen
class LoadedPolicy:
    """The result of reading a text. ``policy`` is None if the problems contain an error.

    ``built``: the policy as far as it could be built; ``known``: the tools as it declares them, with those of its
    catalogs. For a text that is no TOML both are None.
    """

    policy: Policy | None
    problems: tuple[Problem, ...]
    text: str
    places: Places
    built: Policy | None = None
    known: KnownTools | None = None


def parse_policy(text: str, *, file: str, known: KnownTools) -> LoadedPolicy:
    """Read ``text``; problems name it ``file``. Never raises for the content of the text."""
    raw = _raw(text, file)
    if isinstance(raw, Problem):
        return LoadedPolicy(None, (raw,), text, Places(text, file, Dialect.GATEWRIGHT))
    report = Report()
    policy, known_here = _read(raw, PurePath(file).stem, known, report)
    if known_here is not None:
        PolicyCheck(policy, known_here, report.error_paths).run(report)
    places, is_good = Places(text, file, policy.dialect), not report.has_errors
    problems = problems_of(report.findings, places, policy if is_good else _names_only(policy))
    return LoadedPolicy(policy if is_good else None, problems, text, places, policy, known_here)


def _names_only(policy: Policy) -> Policy:
    """A policy with only the agents' names: faulty rows are missing, so nobody knows which row an index means."""
    return Policy(agents={agent_id: Agent(agent_id) for agent_id in policy.agents}, dialect=policy.dialect)


def value_of(text: str, fallback_id: str) -> Policy | None:
    """The policy that a text says, without checking names of tools and support; None if it is no TOML."""
    raw = _raw(text, "")
    return None if isinstance(raw, Problem) else _read(raw, fallback_id, None, Report())[0]


def _read(raw: Raw, stem: str, known: KnownTools | None, report: Report) -> tuple[Policy, KnownTools | None]:
    """Build a policy as far as possible, and return it with the tools that it is checked against."""
    row = Row(raw, (), report)
    if not {"gatewright", "agents"} & raw.keys() and {"tool_rules", "data_sources"} & raw.keys():
        known = known.with_rooted() if known is not None else None
        return read_pattern(row, stem or "agent", Names(known, report)), known
    return _gatewright(row, known)


def _gatewright(row: Row, known: KnownTools | None) -> tuple[Policy, KnownTools | None]:
    """The policy, and the tools against which the rest is checked: as it declares them, with those of its catalogs."""
    version = row.raw.get("gatewright")
    if version is None:
        message = "a policy file begins with `gatewright = 1` (only a file of one agent's `[[tool_rules]]` may lack it)"
        row.report.error((), "missing-key", message)
    elif type(version) is not int:
        row.wrong("gatewright", "the whole number 1", version)
    elif version != VERSION:
        row.fault("gatewright", "bad-value", "this release reads policy files of version 1 only")
    named = read_keys(row, PolicyFile, "a policy file")
    rows = row.rows("catalogs")
    catalogued = read_catalogs(rows, known)
    known = catalogued.known.with_rooted() if catalogued.known is not None else None
    composed = row.rows("compositions")
    compositions, known = read_compositions(composed, known)
    tools = row.table("tools")
    declared: Mapping[str, Declaration] = {}
    if tools:
        declared, known = read_declarations(tools, known)
    ids = [name for one in rows if isinstance(name := one.raw.get("id"), str)]
    names = Names(known, row.report, ids)
    settings = read_tool_settings(tools, names, declared) if tools else {}
    check_steps(composed, compositions, names)
    policy = replace(
        _rest(row, names), **named, catalogs=catalogued.catalogs, tools=settings, compositions=compositions
    )
    catalogued.report_missing(row.report, names.unread)
    if known is not None:
        check_places(rows, policy.sources)
        known = known if row.report.has_errors else known.with_compositions(policy)
    return policy, known


def _rest(row: Row, names: Names) -> Policy:
    rows = row.rows("sources")
    sources = read_sources(rows, names)
    written = {source_id for one in rows if isinstance(source_id := one.raw.get("id"), str)}
    defaults, agents = row.table("defaults"), row.table("agents")
    default, rules = read_policy_rules(row.table("policy"), names, agents.raw if agents else ())
    return Policy(
        defaults=read_defaults(defaults, names) if defaults else Defaults(),
        agents=read_agents(agents, names, written) if agents else {},
        sources=tuple(sources),
        default=default,
        rules=rules,
        **read_workspace(row.table("workspace"), agents.raw if agents else ()),
    )


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
    """The place and the reason if a text cannot even be read as TOML; None if it can."""
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
    """The part of this line that may be a key: its beginning, up to the first character that ends a plain dotted
    key.
    """
    return re.split("[=#\\]]", line, maxsplit=1)[0]


def _syntax(text: str, file: str, message: str) -> Problem:
    from gatewright.policyfile.scan import explain, scan

    found = _AT.search(message)
    said = message[: found.start()] if found else message
    code = "duplicate" if said.startswith(_DUPLICATE) else "syntax"
    offset = _offset(text, found)
    if code == "duplicate":
        second = scan(text).duplicates
        offset, words = second[0] if second else offset, "this key or table stands here a second time"
    else:
        offset, why = explain(text, offset, said)
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


def read_policy_text(path: Path) -> str:
    """The text of the file, with its line endings and BOM. Raises WorkspaceError with the reason."""
    content = _read_bytes(path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WorkspaceError(f"`{path}` is not UTF-8 text (line {line})") from None


def digest_of(text: str) -> str:
    """SHA-256 (FIPS 180-4) of the text in UTF-8, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_policy_text(path: Path, text: str, *, expected: str | None) -> None:
    """Replace the file's content, whole or not at all.

    ``expected`` is the text that it must hold now; None means that the file must not exist. Raises WorkspaceError for
    other content, and for a file that cannot be written; then the file stays as it was.
    """
    _check_unchanged(path, expected)
    _write(path, text)


def overwrite_policy_text(path: Path, text: str, *, seen: str | None) -> None:
    """Replace whatever the file holds, whole or not at all; only an ordinary file is replaced. Raises WorkspaceError.

    ``seen`` is the text that the decision was based on; None if it was unreadable, and then nothing is compared.
    """
    if seen is not None:
        _check_unchanged(path, seen)
    elif os.path.lexists(path):
        _read_bytes(path)
        if not os.access(path, os.W_OK):
            raise WorkspaceError(f"`{path}` was not saved: the file is read-only")
    _write(path, text)


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode("utf-8"))
    except UnicodeEncodeError:
        raise WorkspaceError(f"`{path}` was not saved: the text is not UTF-8") from None
    except OSError as error:
        raise WorkspaceError(f"`{path}` was not saved: {_reason(error)}") from None


def _check_unchanged(path: Path, expected: str | None) -> None:
    if expected is None:
        if os.path.lexists(path):
            raise WorkspaceError(f"`{path}` was not saved: a file of that name is there already")
        return
    if not os.path.exists(path):  # noqa: PTH110 -- Path.exists raises when the folder may not be searched
        raise WorkspaceError(f"`{path}` was not saved: the file is gone from the disk")
    if _read_bytes(path) != expected.encode("utf-8", "surrogatepass"):
        raise WorkspaceError(f"`{path}` was not saved: another program changed it meanwhile")
    if not os.access(path, os.W_OK):
        raise WorkspaceError(f"`{path}` was not saved: the file is read-only")


def _read_bytes(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise WorkspaceError(f"`{path}` is a folder, not a policy file")
        if not stat.S_ISREG(mode):
            raise WorkspaceError(f"`{path}` is no ordinary file")
        # if a pipe has taken the name meanwhile, opening it must not wait for a writer
        at_once = getattr(os, "O_NONBLOCK", 0)
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise WorkspaceError(f"`{path}` is no ordinary file")
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"`{path}` cannot be read: {_reason(error)}") from None
    if len(content) > MAX_BYTES:
        raise WorkspaceError(f"`{path}` is larger than {MAX_BYTES // 1024 // 1024} MiB: it is no policy file")
    return content


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, PermissionError):
        return "permission denied"
    said = error.strerror if isinstance(error, OSError) else str(error)
    return (said or type(error).__name__).lower()


Fault = tuple[RawPath, str]
"""The place of a fault in the file, e.g. ``("policy", "rules", 0, "when")``, and the fault."""


def agent_fault(before: Agent | None, after: Agent) -> str | None:
    """The first fault in ``after`` that ``before`` does not have; None if the agent can be written and read."""
    known = {id(rule) for rule in before.tool_rules} if before else set[int]()
    for rule in after.tool_rules:
        if id(rule) not in known and (fault := rule_fault(rule)):
            return fault
    if before is not None and before.capabilities == after.capabilities:
        return None
    report = Report()
    check_capabilities([(capability, ()) for capability in after.capabilities], report)
    return report.first_error[1] if report.first_error else None


def rule_fault(rule: ToolRule) -> str | None:
    """The fault of a rule that no file could hold, with the place inside its value; None without one."""
    report = Report()
    rule.check(report)
    if report.first_error is None and isinstance(rule.rule_type, ArgumentConstraints):
        check_schemas(rule.rule_type, ("rule_type", rule.kind), report)
    if report.first_error is None:
        return None
    (key, *inside), message = report.first_error
    place = ".".join(map(str, inside[1:]))
    return f"`{place}`: {message}" if key == "rule_type" and len(inside) > 2 else message


def catalog_fault(catalog: Catalog) -> str | None:
    """The fault of a catalog that no file could hold; None without one."""
    report = Report()
    read_catalogs([Row(plain(catalog), ("catalogs", 0), report)], None)
    return report.first_error[1] if report.first_error else None


def policy_faults(before: Policy, after: Policy, known: Callable[[], KnownTools]) -> tuple[Fault, ...]:
    """The faults of rules, defaults, workspace and compositions in ``after``, as far as ``before`` differs.

    ``known``: the tools that it may name, asked for if needed.
    """
    report, workspace = Report(), plain(after, WorkspaceTable)
    if workspace != plain(before, WorkspaceTable):
        read_workspace(Row(workspace, ("workspace",), report), after.agents)
    if after.compositions is not before.compositions:
        tools = _compositions(after, known(), report)
        known = lambda: tools  # noqa: E731
    if after.rules is not before.rules or after.defaults is not before.defaults:
        ids, read = [one.catalog_id for one in after.catalogs], {id(rule) for rule in before.rules}
        names = Names(known(), report, ids)
        named = [rule.name for rule in after.rules]
        for index, rule in enumerate(after.rules):
            if id(rule) not in read:
                row = _row(plain(rule), ("policy", "rules", index), report)
                read_policy_rule(row, names, after.agents)
                if named.count(rule.name) > 1:
                    row.fault("name", "duplicate", f"a policy rule is named `{rule.name}` already")
        if after.defaults is not before.defaults:
            read_defaults(Row(plain(after.defaults), ("defaults",), report), names)
    return tuple((found.path, found.message) for found in report.findings if found.severity is Severity.ERROR)


def _compositions(after: Policy, there: KnownTools, report: Report) -> KnownTools:
    """The known tools with those of the compositions, whose faults are reported."""
    others = replace(there, facts=tuple(facts for facts in there.facts if facts.origin != ORIGIN))
    rows = [_row(plain(one), ("compositions", at), report) for at, one in enumerate(after.compositions)]
    found, known = read_compositions(rows, others)
    known = known or others
    check_steps(rows, found, Names(known, report))
    return known


def _row(raw: Raw, path: RawPath, report: Report) -> Row:
    """A row as a file has it; null, which no file can hold, is reported."""
    for place in nulls_in(raw):
        report.error((*path, *place), "bad-value", "a policy file cannot hold null")
    return Row(raw, path, report)
