"""New workspaces from bundled templates, beside existing files."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path

from gatewright.base.clock import SystemClock
from gatewright.base.errors import WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.gate import key_folder, state_folder
from gatewright.policyfile import policy_schema
from gatewright.workspace.location import POLICY_NAME

_EMPTY = """\
gatewright = 1

[defaults]
unlisted_tools = "deny"
"""
SCHEMA_NAME = "policy.schema.json"


def template_names() -> tuple[str, ...]:
    """List the templates of ``create_workspace``: the demo, an empty policy, then full examples."""
    return ("demo", "empty", *example_names())


def example_names() -> tuple[str, ...]:
    """List the bundled examples, each a workspace for a common kind of agent."""
    return tuple(sorted(path.name for path in (files("gatewright_resources") / "examples").iterdir() if path.is_dir()))


def create_workspace(folder: Path, template: str) -> Path:
    """Write the template into ``folder`` (made if missing) and return its policy's path. Raises WorkspaceError."""
    policy_path = folder / POLICY_NAME
    try:
        if policy_path.exists():
            raise WorkspaceError(f"`{policy_path}` exists already; nothing was written")
        if template != "empty":
            origin = files("gatewright_resources") / ("demo" if template == "demo" else f"examples/{template}")
            for entry in origin.iterdir():
                if (folder / entry.name).exists():
                    raise WorkspaceError(f"`{folder / entry.name}` exists already; nothing was written")
            with as_file(origin) as place:
                _copy_whole(place, folder)
            if template == "demo":
                _fill_memory(state_folder(policy_path), key_folder())
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(policy_path, _EMPTY.encode("utf-8"))
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{folder}`: {error.strerror or error}") from None
    return policy_path


def name_schema(policy_path: Path) -> None:
    """Write the JSON Schema of policies beside the policy, and name it in its first line, where editors look for it.

    Raises WorkspaceError.
    """
    try:
        schema_path = policy_path.parent / SCHEMA_NAME
        if not schema_path.exists():
            write_atomically(schema_path, f"{json.dumps(policy_schema(), indent=2)}\n".encode())
        write_atomically(policy_path, f"#:schema {SCHEMA_NAME}\n".encode() + policy_path.read_bytes())
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{policy_path.parent}`: {error.strerror or error}") from None


def _copy_whole(origin: Path, folder: Path) -> None:
    """Copy a template, the policy last; remove a failed copy. Raises OSError."""
    made: list[Path] = []
    try:
        _make_folder(folder, made)
        for path in sorted(_members(origin), key=lambda path: path.name == POLICY_NAME):
            goal = folder / path.relative_to(origin)
            if path.is_dir():
                _make_folder(goal, made)
                continue
            _make_folder(goal.parent, made)
            made.append(goal)
            goal.write_bytes(path.read_bytes())
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _fill_memory(state: Path, keys: Path) -> None:
    """Fill the demo's blocks, archive, conversations and notes, unless the state folder has memory."""
    from gatewright.blocks.schemajson import schema_from_json
    from gatewright.memory.agentblocks import owner_of
    from gatewright.memory.archive import Archive, Conversations
    from gatewright.memory.block_store import FILE_NAME, BlockStore
    from gatewright.memory.blocks import BlockService
    from gatewright.memory.blocktable import BlockType
    from gatewright.memory.notes import FOLDER, NoteBook
    from gatewright.policy.verdict import Permission

    if (state / FILE_NAME).exists():
        return
    rows = json.loads((files("gatewright_resources") / "demo-memory.json").read_bytes())
    with BlockStore(state / FILE_NAME, keys=keys) as store, store.exclusive():
        for row in rows["blocks"]:
            owner = owner_of(row["agent"]) if "agent" in row else ""
            BlockService(store, owner=owner, operator=True).create(
                row["label"],
                schema_from_json(row.get("schema", {"type": "text"})),
                author="demo",
                content=row["content"],
                type=BlockType(row.get("type", BlockType.WORKING)),
                permission=Permission(row.get("permission", Permission.READ_WRITE)),
                pinned=row.get("pinned", False),
                description=row["description"],
                char_limit=row.get("char_limit"),
            )
        for row in rows["archive"]:
            Archive(store).insert(row["content"], row["metadata"])
        for row in rows["conversations"]:
            Conversations(store, owner=owner_of(row["agent"]), user_id=row["user"]).append(row["role"], row["content"])
    if not NoteBook.why_absent():
        book = NoteBook(state / FOLDER, SystemClock(), keys=keys)
        for row in rows["notes"]:
            book.of(row["user"]).save(row["content"])
        book.close()


def _members(origin: Path) -> list[Path]:
    found = sorted(origin.rglob("*"))
    return [path for path in found if "__pycache__" not in path.parts and path.name != "__init__.py"]


def _make_folder(folder: Path, made: list[Path]) -> None:
    if not folder.exists():
        _make_folder(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def write_demo(folder: Path) -> Path:
    """Return the demo workspace in ``folder``; write it the first time, then leave it alone."""
    policy_path = folder / POLICY_NAME
    return policy_path if policy_path.is_file() else create_workspace(folder, "demo")
