"""Reading ``[[sources]]`` and Pattern's ``[data_sources.KEY]``: tables to values. It does not look at folders."""

from __future__ import annotations

from gatewright.base.report import shown
from gatewright.base.row import Row
from gatewright.base.shape import FLAG, NAME, TEXT, Shape, one_of, several, table, told, whole
from gatewright.policy.document import DEFAULT_MAX_FILE_BYTES, PermissionRule, Source, SourceType
from gatewright.policy.glob import check_pattern
from gatewright.policy.permission import Permission
from gatewright.policyfile.names import Names
from gatewright.policyfile.place import ids_of_paths
from gatewright.policyfile.readrule import RULES, read_required_tools

LEVELS = {str(level): level for level in Permission}
SOURCE_TYPES = {str(kind): kind for kind in SourceType}
_LEVEL = one_of(LEVELS)
PERMISSION_KEYS: dict[str, Shape] = {
    "pattern": told(TEXT, "A glob as in `.gitignore`; the first rule that matches decides"),
    "permission": told(_LEVEL, "What may be done with the files that it matches"),
    "comment": told(TEXT, "Why"),
}
SOURCE_KEYS: dict[str, Shape] = {
    "id": told(NAME, "The name by which agents have it"),
    "type": told(
        one_of(SOURCE_TYPES),
        "`file`: files to work with; `folder_changes`: a stream of what changes there; `host`: what the program adds",
    ),
    "base_path": told(
        NAME, "Its folder, relative to this file; outside of this file's folder it must be trusted first"
    ),
    "default_permission": told(_LEVEL, "What may be done where no rule matches", str(Permission.READ_ONLY)),
    "permission_rules": told(
        several(table(PERMISSION_KEYS, "pattern", "permission")), "Levels by path; the first that matches decides", []
    ),
    "required_tools": told(RULES, "Tool rules that bind only the calls that go to this source", []),
    "watch": told(FLAG, "Take changes from outside into open blocks as they happen", default=False),
    "max_file_bytes": told(whole(1), "The largest file that is read or written", DEFAULT_MAX_FILE_BYTES),
    "follow_symlinks": told({"const": False}, "Not supported yet", default=False),
}
LACKS = {
    SourceType.FILE: (),
    SourceType.FOLDER_CHANGES: ("required_tools", "watch", "max_file_bytes", "follow_symlinks"),
    SourceType.HOST: ("base_path", "watch", "follow_symlinks"),
}
"""The keys that a source of each type does not have."""


def source_shape() -> Shape:
    """What an entry of ``[[sources]]`` looks like."""
    return {
        **table(SOURCE_KEYS, "id", "type"),
        "allOf": [
            {
                "if": {"properties": {"type": one_of([kind])}},
                "then": {
                    "properties": dict.fromkeys(lacks, False),
                    "required": [key for key in ("base_path",) if key not in lacks],
                },
            }
            for kind, lacks in LACKS.items()
        ],
    }


FILE_DATA_KEYS = ("type", "paths", "permission_rules", "default_permission", "max_file_bytes")
FOREIGN_DATA_KEYS = ("name", "recursive", "include_patterns", "exclude_patterns")
DATA_TYPES = ("file", "bluesky", "discord", "shell", "custom")


def read_sources(rows: list[Row], names: Names) -> list[Source]:
    """The sources of ``[[sources]]``; one that cannot be built is left out (an error)."""
    seen: dict[str, str] = {}
    found: list[Source] = []
    for row in rows:
        source = _source(row, names)
        if source is None:
            continue
        folded = source.source_id.casefold()
        if folded in seen:
            row.fault("id", "duplicate", f"a source is named {shown(seen[folded])} already")
        seen.setdefault(folded, source.source_id)
        found.append(source)
    return found


def read_data_sources(table: Row, taken: set[str]) -> list[Source]:
    """The file sources of ``[data_sources.KEY]``, one per path; entries of other types are warnings."""
    found: list[Source] = []
    for key in table.raw:
        row = table.table(key)
        if row is None or not row.require("type", f"data source {shown(key)}"):
            continue
        kind = row.text("type")
        if kind == "file":
            for foreign in FOREIGN_DATA_KEYS:
                if foreign in row.raw and foreign != "name":
                    row.report.warning(row.at(foreign), "pattern-key", f"`{foreign}` of a data source is not read")
            row.only((*FILE_DATA_KEYS, *FOREIGN_DATA_KEYS), "a data source")
            level, size, rules = _common(row, Permission.READ_WRITE)
            paths = row.texts("paths") if row.require("paths", f"data source {shown(key)}") else []
            for index, path in paths:
                if why := path_error(path):
                    row.report.error(row.at("paths", index), "bad-value", f"a path {why}")
            ids = ids_of_paths(key, len(paths), taken)
            found += [Source(name, path, level, rules, size) for name, (_, path) in zip(ids, paths, strict=True)]
        elif kind in DATA_TYPES:
            text = f"data sources of type `{kind}` are not read: nothing of {shown(key)} is enforced here"
            row.report.warning(row.path, "pattern-key", text)
        elif kind is not None:
            near = row.report.near(kind, DATA_TYPES)
            row.fault("type", "unknown-variant", f"no data source is of type {shown(kind)}", near)
    return found


def _source(row: Row, names: Names) -> Source | None:
    row.only(SOURCE_KEYS, "a source")
    source_id = row.text("id", filled=True) if row.require("id", "a source") else None
    kind = row.choice("type", SOURCE_TYPES) if row.require("type", "a source") else None
    base_path = "" if kind is SourceType.HOST else None
    if base_path is None:
        base_path = row.text("base_path") if row.require("base_path", "a source") else None
    if base_path is not None and kind is not SourceType.HOST and (why := path_error(base_path)):
        row.fault("base_path", "bad-value", f"`base_path` {why}")
    for key in LACKS[kind or SourceType.FILE]:
        if key in row.raw:
            row.fault(key, "bad-value", f"a source of type `{kind}` has no `{key}`")
    if row.flag("follow_symlinks", otherwise=False):
        row.fault("follow_symlinks", "not-supported", "`follow_symlinks = true` is not supported yet")
    level, size, rules = _common(row, None)
    required = read_required_tools(row.rows("required_tools"), names)
    if source_id is None or base_path is None:
        return None
    watch = row.flag("watch", otherwise=False)
    return Source(source_id, base_path, level, rules, size, required, watch, kind or SourceType.FILE)


def _common(row: Row, level_of_rules: Permission | None) -> tuple[Permission, int, tuple[PermissionRule, ...]]:
    """Level, size and rules; ``level_of_rules``: of a rule that says none, where it may do without."""
    level = row.choice("default_permission", LEVELS) or Permission.READ_ONLY
    size = row.integer("max_file_bytes", 1) or DEFAULT_MAX_FILE_BYTES
    rules: list[PermissionRule] = []
    for entry in row.rows("permission_rules"):
        entry.only(PERMISSION_KEYS, "a permission rule")
        pattern = entry.text("pattern") if entry.require("pattern", "a permission rule") else None
        if pattern is not None and (why := check_pattern(pattern)):
            entry.fault("pattern", "bad-glob", why)
        permission = level_of_rules
        if "permission" in entry.raw or level_of_rules is None:
            permission = (
                entry.choice("permission", LEVELS) if entry.require("permission", "a permission rule") else None
            )
        comment = entry.text("comment")
        if pattern is not None and permission is not None:
            rules.append(PermissionRule(pattern, permission, comment))
    return level, size, tuple(rules)


def path_error(path: str) -> str | None:
    """Why ``path`` cannot be the base of a source, or None."""
    if not path.strip():
        return "may not be blank"
    return "may not hold control characters" if any(char < " " or char == "\x7f" for char in path) else None
