"""The tools on files of the roots (shared, tmp, vault): to read, list, search, write, delete, copy out of the vault.

It has more than 450 lines because its tools share what a root may be asked for.

A tool that changes something shows exactly that change to the person who is asked, and makes no other.

Patterns run in linear time; one that cannot is denied as an argument. Linear can still be slow, so a pattern gets at
most the part of a line that it can match between two looks at the clock, and the result reports the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gatewright import blocks
from gatewright.base.amount import plural
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.pattern import LinearPattern, compile_linear
from gatewright.builtins.result import COUNT, FLAG, TEXT, ObjectTool, agreement, answer, fields, rows, success, text_of
from gatewright.policy.document import SHELL
from gatewright.policy.target import Assessment, Later
from gatewright.policy.verdict import EVERY_ENDPOINT, TARGETS, Action, SafetyTier
from gatewright.sources.filetext import with_change
from gatewright.sources.rootfolder import RootFolders
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.parameter import FileParameter

OPEN_ROOTS = ("shared", "tmp")
VAULT = ("vault",)
READ = FileParameter(roots=OPEN_ROOTS)
WRITTEN = FileParameter(writes=True, roots=OPEN_ROOTS)
FROM_VAULT = FileParameter(roots=VAULT)
_MARGIN_S = 1.0
"""The time before its end when a tool that goes through many files begins to answer with its findings."""


def _drop_description(schema: dict[str, Any]) -> None:
    """Drop the description of an input: its tool has it."""
    schema.pop("description", None)


class Input(BaseModel):
    """The arguments of such a tool; nothing else may be given."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_drop_description, defer_build=True)


class RootTool(ObjectTool, abstract=True):
    """A tool that needs roots, the shell or endpoints.

    ``needs``: of each group the policy provides one (`Policy.provides`).
    """

    determinism = Determinism.DETERMINISTIC
    needs: tuple[tuple[str, ...], ...] = (OPEN_ROOTS,)

    def is_there(self, provided: frozenset[str]) -> bool:
        """Tell whether a policy that provides this has the tool."""
        return not any(provided.isdisjoint(group) for group in self.needs)


class ReadingTool(RootTool, abstract=True):
    """One that only reads."""

    safety_tier = SafetyTier.READ_ONLY
    side_effects = frozenset({SideEffect.FS_READ})
    actions = (Action.READ,)


def why_absent(name: str, needs: tuple[tuple[str, ...], ...]) -> str:
    """Return the reason for the operator why the tool is missing."""
    if EVERY_ENDPOINT in needs:
        return f"`{name}` comes with `[workspace] endpoints`, where the policy has to name one of {', '.join(TARGETS)}"
    wanted = " and ".join(" or ".join(f"`{root}`" for root in group) for group in needs if group != (SHELL,))
    shell = ", and with a `backend` in `[workspace] shell`" if (SHELL,) in needs else ""
    return f"`{name}` comes with `[workspace] roots`, where the policy has to name a folder for {wanted}{shell}"


def until_stopped(context: ToolExecutionContext) -> Callable[[], bool]:
    """Return a check that tells whether the tool must come to an end."""

    def is_over() -> bool:
        left = context.remaining_s()
        return context.cancelled or (left is not None and left < _MARGIN_S)

    return is_over


def count_of(data: JsonValue, key: str) -> int:
    """Count the things under a key of a result."""
    if not isinstance(data, dict):
        raise ToolFailure("the result is no object", code="bad-result")
    rows = data.get(key)
    return len(rows) if isinstance(rows, list) else 0


_SIZE = {"bytes": COUNT, "lines": COUNT}
_COPIED = {"source_path": TEXT, "destination_path": TEXT, "sha256": TEXT, "bytes": COUNT, "created": FLAG}


class FileRead(Input):
    """What to read."""

    path: Annotated[str, READ, Field(description="The file, such as `shared/notes.txt` or `tmp/draft.md`.")]


class FileReadTool(ReadingTool):
    """Reads one file."""

    name = "file_read"
    description = "Reads a text file in UTF-8. Paths begin with `shared/` or `tmp/`; one without begins in `shared`."
    resource_bounds = ResourceBounds(timeout_s=10.0)
    examples = ({"path": "shared/notes.txt"},)
    output_schema = answer(fields({"path": TEXT, "content": TEXT, **_SIZE}, {"byte_order_mark": FLAG}))
    input_model = FileRead

    async def run(self, arguments: FileRead, context: ToolExecutionContext) -> JsonValue:
        """Give its text."""
        roots = context.require_roots()
        return success(f"text of `{roots.display_path(arguments.path)}`", await roots.read(arguments.path))


class ReadFile(FileRead):
    """What to read, as it was said before."""

    path: Annotated[str, READ, Field(description="File path to read, below `shared/` or `tmp/`.")]


class ReadFileTool(FileReadTool):
    """The same as ``file_read`` for agents that know the older name, whose result is ``{content}`` without more."""

    name = "read_file"
    description = "Reads a text file in UTF-8 and gives its content. A path that names no folder begins in `shared`."
    output_schema = answer(fields({"content": TEXT}))
    input_model = ReadFile

    async def run(self, arguments: FileRead, context: ToolExecutionContext) -> JsonValue:
        """Give its text."""
        roots = context.require_roots()
        data = await roots.read(arguments.path)
        if not isinstance(data, dict):
            raise ToolFailure("the file has no text", code="bad-result")
        return success(f"text of `{roots.display_path(arguments.path)}`", {"content": data["content"]})


class FileList(Input):
    """What to list."""

    path: Annotated[str, READ, Field(description="The folder, such as `shared/drafts` or `tmp`.")] = "shared"


class FileListTool(ReadingTool):
    """Lists one folder."""

    name = "file_list"
    description = (
        "Lists what is in a folder, sorted by name; names of folders end in `/`. "
        "Paths begin with `shared/` or `tmp/`; one without begins in `shared`."
    )
    resource_bounds = ResourceBounds(timeout_s=10.0)
    output_schema = answer(fields({"path": TEXT, "entries": rows(TEXT)}, {"left_out": COUNT, "stopped": TEXT}))
    input_model = FileList

    async def run(self, arguments: FileList, context: ToolExecutionContext) -> JsonValue:
        """Give its names."""
        roots = context.require_roots()
        data = await roots.list_folder(arguments.path, stopped=until_stopped(context))
        count = count_of(data, "entries")
        what = plural(count, "entry", "entries") if count else "no entries"
        return success(f"{what} in `{roots.display_path(arguments.path)}`", data)


class FileWrite(Input):
    """What to write."""

    path: Annotated[
        str, WRITTEN, Field(description="The file, such as `shared/notes.txt`; folders are made as needed.")
    ]
    content: Annotated[str, Field(description="The whole text, exactly as it is to stand in the file.")]


class FileWriteTool(RootTool):
    """Writes one file."""

    name = "file_write"
    description = (
        "Makes a text file, or replaces what it holds. Paths begin with `shared/` or `tmp/`; one without begins in "
        "`shared`."
    )
    examples = ({"path": "shared/notes.txt", "content": "One line.\n"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_WRITE})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    output_schema = answer(fields({"path": TEXT, "bytes": COUNT, "created": FLAG}))
    input_model = FileWrite
    texts = frozenset({"content"})
    actions = (Action.APPEND, Action.OVERWRITE)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Append a new file to its folder, or overwrite an existing one."""
        roots, path = context.require_roots(), text_of(arguments, "path")
        action = Action.OVERWRITE if roots.stands(path) else Action.APPEND
        return Assessment(action, later=Later(partial(_writing, roots, path, text_of(arguments, "content"))))

    async def run(self, arguments: FileWrite, context: ToolExecutionContext) -> JsonValue:
        """Write it."""
        roots = context.require_roots()
        approved = agreement(context, lambda: _writing(roots, arguments.path, arguments.content))
        data = await roots.write(arguments.path, arguments.content, context.granted, approved=approved)
        made = isinstance(data, dict) and data.get("created") is True
        shown = roots.display_path(arguments.path)
        return success(f"`{shown}` is a new file" if made else f"`{shown}` holds the new text", data)


def _writing(roots: RootFolders, path: str, content: str) -> str:
    """Return the difference; for a file that is not text, its present state."""
    shown = roots.display_path(path)
    try:
        before = roots.text_of(path)
    except ToolFailure:
        there = roots.note_of(path)
        head = f"replaces what is no text: {there}\n" if there is not None else "new file\n"
        return head + blocks.diff_text(shown, "", content)
    return blocks.diff_text(shown, before, content) or f"{shown} stays as it is"


class FileEdit(Input):
    """What to change."""

    path: Annotated[str, WRITTEN, Field(description="The file, such as `shared/notes.txt`.")]
    old_text: Annotated[str, Field(min_length=1, description="The text to replace; it has to occur exactly once.")]
    new_text: Annotated[str, Field(description="The text to put there instead; empty takes it out.")]


class FileEditTool(RootTool):
    """Changes one passage."""

    name = "file_edit"
    description = (
        "Replaces a passage of a text file that occurs in it exactly once. Paths begin with `shared/` or `tmp/`; one "
        "without begins in `shared`."
    )
    examples = ({"path": "shared/notes.txt", "old_text": "tea", "new_text": "coffee"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    output_schema = answer(fields({"path": TEXT, **_SIZE}))
    input_model = FileEdit
    texts = frozenset({"old_text", "new_text"})
    actions = (Action.OVERWRITE,)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Overwrite the file."""
        texts = (text_of(arguments, name) for name in ("path", "old_text", "new_text"))
        return Assessment(Action.OVERWRITE, later=Later(partial(_edit, context.require_roots(), *texts)))

    async def run(self, arguments: FileEdit, context: ToolExecutionContext) -> JsonValue:
        """Change it."""
        roots = context.require_roots()
        path, old, new = arguments.path, arguments.old_text, arguments.new_text
        approved = agreement(context, lambda: _edit(roots, path, old, new))
        data = await roots.edit(path, old, new, context.granted, approved=approved)
        return success(f"the new text is in `{roots.display_path(arguments.path)}`", data)


def _edit(roots: RootFolders, path: str, old: str, new: str) -> str:
    """Return the difference to the whole text. Raises ToolFailure unless the passage occurs in it exactly once."""
    before = roots.text_of(path)
    return blocks.diff_text(roots.display_path(path), before, with_change(before, old, new))


class FileDelete(Input):
    """What to remove."""

    path: Annotated[str, WRITTEN, Field(description="The file or folder, such as `tmp/draft.md`.")]
    recursive: Annotated[bool, Field(description="Remove a folder with everything in it.")] = False


class FileDeleteTool(RootTool):
    """Removes one file or folder."""

    name = "file_delete"
    description = (
        "Removes a file, or a folder that is empty. Paths begin with `shared/` or `tmp/`; one without begins in "
        "`shared`. These two themselves stay."
    )
    examples = ({"path": "tmp/draft.md"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_WRITE})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    output_schema = answer(fields({"path": TEXT, "kind": TEXT}, {"removed": COUNT}))
    input_model = FileDelete
    actions = (Action.DELETE,)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Delete the file or folder, and show its content to the person who is asked."""
        roots = context.require_roots()
        return Assessment(Action.DELETE, later=Later(partial(_deletion, roots, text_of(arguments, "path"))))

    async def run(self, arguments: FileDelete, context: ToolExecutionContext) -> JsonValue:
        """Remove it."""
        roots = context.require_roots()
        shown = roots.display_path(arguments.path)
        approved = agreement(context, lambda: _deletion(roots, arguments.path))
        recursive, granted = arguments.recursive, context.granted
        data = await roots.delete(arguments.path, recursive=recursive, granted=granted, approved=approved)
        return success(f"`{shown}` is gone", data)


def _deletion(roots: RootFolders, path: str) -> str:
    there = roots.note_of(path)
    if there is None:
        raise ToolFailure("there is no such file or folder", code="not-found")
    return f"removes {roots.display_path(path)}: {there}"


class VaultCopy(Input):
    """What to copy where."""

    source_path: Annotated[str, FROM_VAULT, Field(description="The file in the vault, such as `vault/report.pdf`.")]
    destination_path: Annotated[str, WRITTEN, Field(description="The file to write, such as `shared/report.pdf`.")]


class VaultCopyTool(RootTool):
    """Copies one file out of the vault: the only way out of it, in two steps that the log tells apart.

    Nobody learns the content of the file, not even the person who approves the call; size and digest represent it.
    """

    name = "vault_copyto"
    description = (
        "Copies a file out of the vault, where it cannot be read, to a file below `shared/` or `tmp/`. "
        "The source begins with `vault/`."
    )
    examples = ({"source_path": "vault/report.pdf", "destination_path": "shared/report.pdf"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
    required_capabilities = frozenset[str]()  # each path is judged by its own kind, and by that alone
    resource_bounds = ResourceBounds(timeout_s=30.0)
    output_schema = answer(fields(_COPIED))
    input_model = VaultCopy
    needs = (VAULT, OPEN_ROOTS)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action at the destination; the source is read in any case."""
        roots = context.require_roots()
        source, destination = text_of(arguments, "source_path"), text_of(arguments, "destination_path")
        action = Action.OVERWRITE if roots.stands(destination) else Action.APPEND
        return Assessment(action, later=Later(partial(_copy, roots, source, destination)))

    async def run(self, arguments: VaultCopy, context: ToolExecutionContext) -> JsonValue:
        """Copy it."""
        roots = context.require_roots()
        copied, written = arguments.source_path, arguments.destination_path
        approved = agreement(context, lambda: _copy(roots, copied, written))
        data = await roots.copy(copied, written, context.granted, approved=approved)
        source, destination = roots.display_path(arguments.source_path), roots.display_path(arguments.destination_path)
        return success(f"`{source}` was copied to `{destination}`", data)


def _copy(roots: RootFolders, source: str, destination: str) -> str:
    copied, there = roots.note_of(source), roots.note_of(destination)
    if copied is None:
        raise ToolFailure("there is no such file to copy", code="not-found")
    text = f"copies {roots.display_path(source)} ({copied}) to {roots.display_path(destination)}"
    return text if there is None else f"{text}, which replaces {there}"


MAX_HITS = 200
MAX_QUERY = 1_000
MAX_MATCHED = 8_000
"""The most characters of a line that a pattern is matched with."""
_NO_PATTERN = "the query is no regular expression that runs in linear time (RE2: no look-around, no back-references)"

_SKIPPED = fields({}, {"binary": COUNT, "large": COUNT, "unreadable": COUNT, "long_lines": COUNT, "asks_first": COUNT})


class FileSearch(Input):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="The text to look for, within a line.")]
    path: Annotated[str, READ, Field(description="The folder or file to look in, such as `shared/drafts`.")] = "shared"
    regex: Annotated[bool, Field(description="Take the query as a regular expression (RE2).")] = False
    ignore_case: Annotated[bool, Field(description="Take upper and lower case for the same.")] = False
    max_hits: Annotated[int, Field(ge=1, le=MAX_HITS, description="How many hits to give at most.")] = MAX_HITS


class FileSearchTool(ReadingTool):
    """Searches a folder."""

    name = "file_search"
    description = (
        "Searches the text files below a folder and gives the hits as `path:line:text`. Files that are no text are "
        "passed over and counted. Paths begin with `shared/` or `tmp/`; one without begins in `shared`."
    )
    resource_bounds = ResourceBounds(timeout_s=20.0)
    examples = ({"query": "tea", "path": "shared", "ignore_case": True},)
    output_schema = answer(
        fields({"path": TEXT, "hits": rows(TEXT), "files": COUNT}, {"skipped": _SKIPPED, "stopped": TEXT})
    )
    input_model = FileSearch
    texts = frozenset({"query"})

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing arguments, and a query that should be a pattern but is not."""
        found = super().missing_arguments(operation, arguments)
        query = arguments.get("query")
        if arguments.get("regex") is not True or not isinstance(query, str) or len(query) > MAX_QUERY:
            return found
        try:
            compile_linear(query)
        except ValueError:
            return (*found, ArgumentIssue("/query", _NO_PATTERN))
        return found

    async def run(self, arguments: FileSearch, context: ToolExecutionContext) -> JsonValue:
        """Give the hits."""
        roots, find = context.require_roots(), finder(arguments)
        data = await roots.search(arguments.path, find, hits=arguments.max_hits, stopped=until_stopped(context))
        if isinstance(find, _Matching) and find.long and isinstance(data, dict):
            skipped = data.get("skipped")
            told: JsonValue = {**(skipped if isinstance(skipped, dict) else {}), "long_lines": find.long}
            data = {**data, "skipped": told}
        count = count_of(data, "hits")
        what = plural(count, "hit") if count else "no hits"
        return success(f"{what} in `{roots.display_path(arguments.path)}`", data)


@dataclass(slots=True)
class _Matching:
    """Returns the place where a line matches a pattern, or None. ``long``: the number of lines searched only at the
    start.
    """

    pattern: LinearPattern
    long: int = 0

    def __call__(self, line: str) -> int | None:
        found = next(iter(self.pattern.finditer(line[:MAX_MATCHED])), None)
        if len(line) <= MAX_MATCHED:
            return None if found is None else found.span()[0]
        touches_end = found is not None and found.span()[1] == MAX_MATCHED
        if found is not None and not touches_end:
            return found.span()[0]
        self.long += 1
        return None


def finder(wanted: FileSearch) -> Callable[[str], int | None]:
    """Return a search for the query in a line: it returns the position or None. Raises ToolFailure for a bad
    pattern.
    """
    if wanted.regex:
        try:
            pattern = compile_linear(f"(?i){wanted.query}" if wanted.ignore_case else wanted.query)
        except ValueError:
            raise ToolFailure(_NO_PATTERN, code="bad-pattern") from None
        return _Matching(pattern)
    if wanted.ignore_case:
        folded = wanted.query.casefold()
        return lambda line: _position(line.casefold().find(folded))
    return lambda line: _position(line.find(wanted.query))


def _position(at: int) -> int | None:
    return None if at < 0 else at
