"""The ``file`` and ``source`` tools: files of the attached sources, the blocks of their unsaved text, streams.

Over 450 lines, because each operation of the two tools is a method here with the text that the model reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.block import FILE_BLOCK
from gatewright.builtins.result import (
    COUNT,
    FLAG,
    TEXT,
    ObjectTool,
    agreement,
    answer,
    either,
    fields,
    place,
    place_of_label,
    rows,
    success,
    text_argument,
    text_of,
)
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import Approved, Assessment, Later, Located
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.sources.filesource import MAX_LISTED
from gatewright.sources.filetext import in_line_ending_of, with_change, with_lines, with_patch
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.parameter import LabelParameter, PathParameter, SourceParameter
from gatewright.tools.registry import operation
from gatewright.tools.tool import Tool

_PATH = Field(description="Path below the base of a source, `/` between the names.")
Path = Annotated[str, PathParameter(), _PATH]
NewPath = Annotated[str, PathParameter(makes=True), _PATH]
Label = Annotated[str, LabelParameter(), Field(description="Label of the block, in place of its path.")]
SourceId = Annotated[str, SourceParameter(), Field(description="Which source, if several could hold the path.")]
Content = Annotated[str, Field(description="The text, exactly as it is to stand in the file.")]
Old = Annotated[str, Field(min_length=1, description="The text to look for; it has to occur exactly once.")]
New = Annotated[str, Field(description="The text to put there instead; empty takes it out.")]

Line = Annotated[int, Field(ge=1, description="The line to put it before, from 1; one past the last: behind it.")]
PatchText = Annotated[
    str,
    Field(
        min_length=1, description="Hunks in unified format (`@@ -2 +2 @@`); what they keep or take out has to be there."
    ),
]
Pattern = Annotated[
    str, Field(min_length=1, description="Only files that match, as in `.gitignore`, on the path below the folder.")
]
Limit = Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many entries at most.")]
Recursive = Annotated[bool, Field(description="With everything below, if the path is a folder.")]

_AT = {"path": TEXT, "source": TEXT}
_STATE = {"state": TEXT, "unsaved": FLAG}
_PROBLEM = {"problem": TEXT}
_FILE = fields({"path": TEXT, **_STATE}, _PROBLEM)
_MORE = fields({"kind": {"type": "string", "const": "more"}}, {"left_out": COUNT, "why": TEXT})
_ENTRY = fields({"kind": TEXT, "permission": TEXT, "loaded": FLAG}, {"name": TEXT, "path": TEXT, "size": COUNT})
_GONE = fields({"label": TEXT, "file": FLAG, "block": FLAG})
_FOLDER_GONE = fields({"files": COUNT, "folders": COUNT, "blocks": COUNT})


class FileTool(ObjectTool):
    """Files of the sources of the calling agent."""

    name = "file"
    description = (
        "Works with text files in the folders that are attached for you. Changes to a text gather in the file's block; "
        "the disk keeps what it has until the block is written to it."
    )
    examples = (
        {"op": "read", "path": "notes/today.md"},
        {"op": "list", "pattern": "*.md", "recursive": True},
        {"op": "status"},
        {"op": "diff", "path": "notes/today.md"},
        {"op": "load", "path": "notes/today.md"},
        {"op": "reload", "path": "notes/today.md"},
        {"op": "save", "path": "notes/today.md"},
        {"op": "append", "path": "notes/today.md", "content": "One more line.\n"},
        {"op": "replace", "path": "notes/today.md", "old": "tea", "new": "coffee"},
        {"op": "insert", "path": "notes/today.md", "line": 1, "content": "A new first line.\n"},
        {"op": "patch", "path": "notes/today.md", "patch": "@@ -1 +1 @@\n-old\n+new\n"},
        {"op": "create", "path": "notes/today.md", "content": "A new file.\n"},
        {"op": "delete", "path": "notes/today.md"},
    )
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE, SideEffect.DB_READ, SideEffect.DB_WRITE})
    determinism = Determinism.DETERMINISTIC
    resource_bounds = ResourceBounds(timeout_s=20.0)
    usage_rule = "Paths are relative to the base of their source; nothing outside it can be reached."
    tool_rules = (ToolRule("file", ContinueLoop()),)
    texts = frozenset({"content", "old", "new", "patch", "pattern"})
    needs_source = True
    required_capabilities = frozenset[str]()  # an attached source implies access by this tool
    assessed = frozenset({"save", "load", "reload", "delete", "create", "append", "replace", "insert", "patch"})

    @operation(
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        output_schema=answer(fields({**_AT, "content": TEXT, "origin": TEXT, "unsaved": FLAG})),
    )
    async def read(self, context: ToolExecutionContext, path: Path, source: SourceId | None = None) -> JsonValue:
        """Give the text of a file, from its block if there is one, else from disk."""
        at = _at_path(context, path, source)
        text = await context.require_sources().read(at)
        data: dict[str, JsonValue] = {"content": text.content, "origin": text.origin, "unsaved": text.unsaved}
        return success(f"text of `{at.relative}` from {text.origin}", {**_place_row(at), **data})

    @operation(
        name="list",
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        output_schema=answer(fields({**_AT, "entries": rows(either(_ENTRY, _MORE))})),
    )
    async def list_folder(
        self,
        context: ToolExecutionContext,
        path: Path = ".",
        recursive: Recursive = False,
        pattern: Pattern | None = None,
        limit: Limit | None = None,
        source: SourceId | None = None,
    ) -> JsonValue:
        """Show what is in a folder (the base, if no path is given), as far as it is open to you."""
        at, sources = _at_path(context, path, source), context.require_sources()
        if recursive or pattern is not None:
            entries = await sources.list_tree(at, pattern, limit or MAX_LISTED, recursive=recursive)
        else:
            entries = await sources.list_folder(at, limit or MAX_LISTED)
        more = bool(entries) and isinstance(entries[-1], dict) and entries[-1].get("kind") == "more"
        found = len(entries) - more
        count = f"{found:,} {'entry' if found == 1 else 'entries'}{', and there are more,' if more else ''}"
        return success(f"{count} in `{at.relative}`", {**_place_row(at), "entries": entries})

    @operation(
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        output_schema=answer(
            either(fields({**_AT, **_STATE}, _PROBLEM), fields({**_AT, "files": rows(either(_FILE, _MORE))}))
        ),
    )
    async def status(
        self, context: ToolExecutionContext, path: Path = ".", source: SourceId | None = None
    ) -> JsonValue:
        """Tell how the block of a file, or of each file below a folder, stands to the disk: in step, or who changed."""
        at = _at_path(context, path, source)
        found = await context.require_sources().status(at)
        if isinstance(found, dict):
            return success(f"`{at.relative}` is {found.get('state')}", {**found, **_place_row(at)})
        return success(f"the files with a block below `{at.relative}`", {**_place_row(at), "files": found})

    @operation(
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        output_schema=answer(fields({**_AT, "state": TEXT, "diff": TEXT})),
    )
    async def diff(self, context: ToolExecutionContext, path: Path, source: SourceId | None = None) -> JsonValue:
        """Show what writing the block of a file to disk would change there."""
        at = _at_path(context, path, source)
        found = await context.require_sources().diff(at)
        data = {**found, **_place_row(at)} if isinstance(found, dict) else {**_place_row(at), "diff": found}
        same = not data.get("diff")
        return success(f"block and disk hold the same text of `{at.relative}`" if same else f"`{at.relative}`", data)

    @operation(actions=(Action.READ,), output_schema=answer(fields(FILE_BLOCK)))
    async def load(self, context: ToolExecutionContext, path: Path, source: SourceId | None = None) -> JsonValue:
        """Take the text of a file from disk into its block."""
        at = _at_path(context, path, source)
        sources = context.require_sources()
        asked = context.agreed and agreement(context, lambda: sources.assess_load(at).change())
        return success(f"`{at.relative}` is in its block", await sources.load(at, asked=asked))

    @operation(actions=(Action.READ,), output_schema=answer(fields(FILE_BLOCK)))
    async def reload(self, context: ToolExecutionContext, path: Path, source: SourceId | None = None) -> JsonValue:
        """Throw away what the block of a file holds and take the text on disk instead."""
        at = _at_path(context, path, source)
        sources = context.require_sources()
        asked = context.agreed and agreement(context, lambda: sources.assess_reload(at).change())
        return success(f"the block of `{at.relative}` holds what is on disk", await sources.reload(at, asked=asked))

    @operation(
        actions=(Action.APPEND, Action.OVERWRITE),
        one_of=(("path", "label"),),
        usage_rule="End a series of changes to a file with `save`, since only that puts them on disk.",
        output_schema=answer(fields(FILE_BLOCK)),
    )
    async def save(
        self,
        context: ToolExecutionContext,
        path: Path | None = None,
        label: Label | None = None,
        source: SourceId | None = None,
    ) -> JsonValue:
        """Write the block of a file to disk; this fails if the file was changed there meanwhile."""
        at = _at_either(context, path, label, source)
        if context.granted is None:
            raise ToolFailure("writing was not granted", code="not-granted")
        sources = context.require_sources()
        approved = agreement(context, lambda: sources.assess_save(at).change())
        data = await sources.save(at, context.granted, asked=context.agreed and approved, approved=approved)
        return success(f"`{at.relative}` is on disk", data)

    @operation(actions=(Action.APPEND,), output_schema=answer(fields(FILE_BLOCK)))
    async def append(
        self, context: ToolExecutionContext, path: Path, content: Content, source: SourceId | None = None
    ) -> JsonValue:
        """Add the content at the end of a file's block."""
        at = _at_path(context, path, source)
        data = await context.require_sources().append(at, content, approved=_edit_agreed(context, at, _append(content)))
        return success(f"text was added at the end of the block of `{at.relative}`", data)

    @operation(actions=(Action.OVERWRITE,), output_schema=answer(fields(FILE_BLOCK)))
    async def replace(
        self, context: ToolExecutionContext, path: Path, old: Old, new: New, source: SourceId | None = None
    ) -> JsonValue:
        """Put the new text where the old one stands in a file's block."""
        at = _at_path(context, path, source)
        approved = _edit_agreed(context, at, _replace(old, new))
        data = await context.require_sources().replace(at, old, new, approved=approved)
        return success(f"the new text is in the block of `{at.relative}`", data)

    @operation(actions=(Action.OVERWRITE,), output_schema=answer(fields(FILE_BLOCK)))
    async def insert(
        self,
        context: ToolExecutionContext,
        path: Path,
        line: Line,
        content: Content,
        source: SourceId | None = None,
    ) -> JsonValue:
        """Put the content, as whole lines, before a line of a file's block."""
        at = _at_path(context, path, source)
        approved = _edit_agreed(context, at, _insert(line, content))
        data = await context.require_sources().insert(at, line, content, approved=approved)
        return success(f"the lines are in the block of `{at.relative}`", data)

    @operation(actions=(Action.OVERWRITE,), capabilities=("AdvancedEdit",), output_schema=answer(fields(FILE_BLOCK)))
    async def patch(
        self, context: ToolExecutionContext, path: Path, patch: PatchText, source: SourceId | None = None
    ) -> JsonValue:
        """Apply hunks to a file's block, all of them or none."""
        at = _at_path(context, path, source)
        data = await context.require_sources().patch(at, patch, approved=_edit_agreed(context, at, _patch(patch)))
        return success(f"the hunks are in the block of `{at.relative}`", data)

    @operation(actions=(Action.APPEND,), output_schema=answer(fields(FILE_BLOCK)))
    async def create(
        self, context: ToolExecutionContext, path: NewPath, content: Content = "", source: SourceId | None = None
    ) -> JsonValue:
        """Make a new file on disk, empty without content; this fails if there is one."""
        at = _at_path(context, path, source)
        data = await context.require_sources().create(at, content, approved=context.approved)
        return success(f"`{at.relative}` is a new file", data)

    @operation(actions=(Action.DELETE,), output_schema=answer(either(_GONE, _FOLDER_GONE)))
    async def delete(
        self,
        context: ToolExecutionContext,
        path: Path,
        recursive: Recursive = False,
        source: SourceId | None = None,
    ) -> JsonValue:
        """Remove a file from disk, and its block; of folders only one that is named with all below, never the base."""
        at = _at_path(context, path, source)
        sources = context.require_sources()
        approved = agreement(context, lambda: sources.assess_delete(at, recursive=recursive).change())
        data = await sources.delete(at, recursive=recursive, asked=context.agreed and approved, approved=approved)
        return success(f"`{at.relative}` is gone", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action, the reason to ask, and the change to the text. Raises ToolFailure for a refused place."""
        sources = context.require_sources()
        match operation:
            case "save":
                return sources.assess_save(_of(arguments, context))
            case "load":
                return sources.assess_load(_of(arguments, context))
            case "reload":
                return sources.assess_reload(_of(arguments, context))
            case "delete":
                return sources.assess_delete(_of(arguments, context), recursive=arguments.get("recursive") is True)
            case "create":
                return sources.assess_create(_of(arguments, context), text_of(arguments, "content"))
            case "append" | "replace" | "insert" | "patch":
                later = Later(lambda: _diff_at(context, _of(arguments, context), _edit_of(operation, arguments)))
                return Assessment(super().assess(operation, arguments, context).action, later=later)
            case _:
                return super().assess(operation, arguments, context)


@cache
def file_tool() -> Tool:
    """Return the ``file`` tool, to register with the first source."""
    return FileTool()


def _at_path(context: ToolExecutionContext, path: str, source_id: str | None) -> Located:
    return place(context.require_sources().locate(path, source_id=source_id, allowed=context.source_ids))


def _at_either(context: ToolExecutionContext, path: str | None, label: str | None, source_id: str | None) -> Located:
    if path is not None:
        return _at_path(context, path, source_id)
    if label is None:
        raise ToolFailure("a path or a label is needed", code="bad-argument")
    return place_of_label(context, label, source_id)


def _of(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Located:
    path, label, source_id = (text_argument(arguments, name) for name in ("path", "label", "source"))
    return _at_either(context, path, label, source_id)


def _place_row(at: Located) -> dict[str, JsonValue]:
    return {"path": at.relative, "source": at.source_id}


@frozen
class _Edit:
    """A change as the arguments describe it; ``passage``: the changed part, if the whole text is unavailable."""

    passage: str
    change: Callable[[str], str]


def _edit_of(operation: str, arguments: Mapping[str, JsonValue]) -> _Edit:
    content = text_of(arguments, "content")
    match operation:
        case "insert":
            line = arguments.get("line")
            return _insert(line if isinstance(line, int) else 1, content)
        case "patch":
            return _patch(text_of(arguments, "patch"))
        case "replace":
            return _replace(text_of(arguments, "old"), text_of(arguments, "new"))
        case _:
            return _append(content)


def _insert(line: int, content: str) -> _Edit:
    passage = f"@@ before line {line:,} @@\n{_passage('', content)}"
    return _Edit(passage, lambda text: with_lines(text, line, content))


def _patch(patch: str) -> _Edit:
    return _Edit(patch, lambda text: with_patch(text, patch))


def _replace(old: str, new: str) -> _Edit:
    return _Edit(_passage(old, new), lambda text: with_change(text, old, new))


def _append(content: str) -> _Edit:
    return _Edit(_passage("", content), lambda text: text + in_line_ending_of(text, content))


def _edit_agreed(context: ToolExecutionContext, at: Located, edit: _Edit) -> Approved:
    return agreement(context, lambda: _diff_at(context, at, edit))


def _diff_at(context: ToolExecutionContext, at: Located, edit: _Edit) -> str | None:
    """Return the change to the whole text; of one too long to compare, the passage alone.

    Raises ToolFailure for an edit that does not fit.
    """
    sources = context.require_sources()
    before = sources.text_of(at)
    return edit.passage if before is None else sources.assess_text(at, edit.change(before)).diff


def _passage(old: str, new: str) -> str:
    """Return the old passage and the new one, line by line."""
    gone = [f"-{line}" for line in old.splitlines()]
    return "\n".join([*gone, *(f"+{line}" for line in new.splitlines())])


NamedSource = Annotated[str, Field(min_length=1, max_length=256, description="The id of the source.")]

_SOURCE_STATE = fields({"source_id": TEXT, "type": TEXT, "state": TEXT}, {"subscribers": COUNT, "problem": TEXT})


class SourceTool(ObjectTool):
    """Sources by their ids."""

    name = "source"
    description = "Tells which sources of files and streams of changes you have, and what they do now."
    examples = (
        {"op": "list"},
        {"op": "status"},
        {"op": "pause", "source_id": "changes"},
        {"op": "resume", "source_id": "changes"},
    )
    safety_tier = SafetyTier.SIDE_EFFECTING
    determinism = Determinism.MAYBE
    texts = frozenset({"source_id"})
    resource_bounds = ResourceBounds(timeout_s=10.0)
    required_capabilities = frozenset[str]()  # an attached source implies access

    @operation(actions=(Action.READ,), output_schema=answer(_SOURCE_STATE))
    async def pause(self, context: ToolExecutionContext, source_id: NamedSource) -> JsonValue:
        """Have a stream tell nothing for now; of files the state is given, which stays."""
        row = context.require_streams().pause(source_id, agent_id=context.agent_id)
        return success(_state_words(row), row)

    @operation(actions=(Action.READ,), output_schema=answer(_SOURCE_STATE))
    async def resume(self, context: ToolExecutionContext, source_id: NamedSource) -> JsonValue:
        """Let a stream go on that tells nothing; of files the state is given, which stays."""
        row = context.require_streams().resume(source_id, agent_id=context.agent_id)
        return success(_state_words(row), row)

    @operation(
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        output_schema=answer(either(_SOURCE_STATE, rows(_SOURCE_STATE))),
    )
    async def status(self, context: ToolExecutionContext, source_id: NamedSource | None = None) -> JsonValue:
        """Give the state of one source, or of all."""
        rows = context.require_streams().rows(agent_id=context.agent_id)
        if source_id is None:
            return success("; ".join(map(_state_words, rows)) or "no source", rows)
        row = next((one for one in rows if isinstance(one, dict) and one["source_id"] == source_id), None)
        if row is None:
            raise ToolFailure("there is no source of that id", code="no-source")
        return success(_state_words(row), row)

    @operation(
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        name="list",
        output_schema=answer(rows(fields({"source_id": TEXT, "type": TEXT}))),
    )
    async def list_sources(self, context: ToolExecutionContext) -> JsonValue:
        """Give the id and type of every source."""
        rows = [row for row in context.require_streams().rows(agent_id=context.agent_id) if isinstance(row, dict)]
        named: list[JsonValue] = [{"source_id": row["source_id"], "type": row["type"]} for row in rows]
        return success(f"{len(named)} of your sources", named)


def _state_words(row: JsonValue) -> str:
    return f"`{row['source_id']}` is {row['state']}" if isinstance(row, dict) else ""
