"""What built-in tools and the gate ask of sources and the web, as Protocols.

A path that reaches a port has passed ``locate``: it is canonical and inside its base. Every method that touches the
disk checks containment again on the descriptor it opens, so that a swapped symlink between check and use gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gatewright.arguments.url import UrlTarget
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.permission import Action
from gatewright.policy.target import (
    Approved,
    Assessment,
    FileTarget,
    FileText,
    LevelDecision,
    Located,
    NamedPlace,
    Refusal,
)


class SourcePort(Protocol):
    """The sources of a workspace, as tools see them. ``allowed`` are the source ids of the calling agent.

    What changes a block or the disk asks the table of levels again when it acts, on the level of that moment: what is
    denied by then raises ToolFailure, and so does what asks unless ``approved``, that somebody agreed to the call, and
    what they agreed to where it does not hold any more.
    """

    def locate(self, path: str, *, source_id: str | None, allowed: Sequence[str]) -> Located | Refusal:
        """Where a model's path leads; touches metadata only."""
        ...

    def locate_label(self, label: str, *, allowed: Sequence[str]) -> Located | Refusal:
        """Where a block's label (``file:{hash8}:{relative}``) leads."""
        ...

    def find_file(
        self, path: str, *, folder: str | None, prefixes: Sequence[str] = (), parameter: str = "", writes: bool = False
    ) -> FileTarget | Refusal:
        """Where a path on disk leads, links resolved: inside a source, ``folder`` or one of ``prefixes`` (absolute).

        Protected files, and folders that hold one, are refused. Touches metadata only.
        """
        ...

    def named_by(
        self, text: str, action: Action, *, folders: Sequence[str] | None, bases: bool = True, contents: bool
    ) -> tuple[NamedPlace, ...] | None:
        """Every place on disk that some program may take ``text`` for, each with its level.

        None where there are too many to tell. Touches metadata only.

        ``folders`` None: absolute paths alone; else where relative ones may start from, with ``bases`` from those of
        the sources too. ``contents``: a folder has the strictest level of what is in it.
        """
        ...

    def label_of(self, at: Located) -> str:
        """The block label of a place."""
        ...

    def level(self, at: Located) -> LevelDecision:
        """The effective level of a place; protected files are none."""
        ...

    def assess_save(self, at: Located) -> Assessment:
        """Whether saving only extends the file (append) or not (overwrite), with the diff."""
        ...

    def assess_load(self, at: Located) -> Assessment:
        """Read; asks when it would throw away unsaved edits."""
        ...

    def assess_reload(self, at: Located) -> Assessment:
        """As ``assess_load``."""
        ...

    def assess_create(self, at: Located, content: str) -> Assessment:
        """Append, with the text of the new file."""
        ...

    def assess_delete(self, at: Located, *, recursive: bool = False) -> Assessment:
        """Delete; of a folder with the files that go, asking where one of them asks. Raises ToolFailure, too."""
        ...

    def text_of(self, at: Located) -> str | None:
        """The text of that place now (block, else disk); None for too much to compare.

        Raises ToolFailure where there is none.
        """
        ...

    def assess_text(self, at: Located, new_text: str) -> Assessment:
        """The diff from the text of that place (block or disk) to ``new_text``, without an action.

        Raises ToolFailure for a text that the file could not hold.
        """
        ...

    async def read(self, at: Located) -> FileText:
        """The block's text if loaded, else the disk's. Raises ToolFailure."""
        ...

    async def list_folder(self, at: Located, limit: int = 5_000) -> list[JsonValue]:
        """Entries of a folder that the agent may read, sorted: name, kind, size, permission, loaded.

        A last row of kind ``more`` says that something was left out.
        """
        ...

    async def list_tree(
        self, at: Located, pattern: str | None = None, limit: int = 5_000, *, recursive: bool = True
    ) -> list[JsonValue]:
        """The same by path, of everything below unless not ``recursive``; with a gitignore pattern files alone."""
        ...

    async def status(self, at: Located) -> JsonValue:
        """How block and disk stand to each other: one object for a file, a list for all with a block in a folder."""
        ...

    async def diff(self, at: Located) -> JsonValue:
        """``state`` and ``diff``: what writing the block would change on disk. Raises ToolFailure without a block."""
        ...

    async def load(self, at: Located, *, asked: Approved = False) -> JsonValue:
        """Read the disk into the block; answers label, size, lines. Edits go only when somebody was ``asked``."""
        ...

    async def save(
        self, at: Located, granted: Action, *, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        """Write the block to disk, atomically; refuses when the disk changed since or more than granted is needed.

        A file that was deleted since is written again when somebody was ``asked``.
        """
        ...

    async def append(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        """Add text at the end of the block (loads it first)."""
        ...

    async def replace(self, at: Located, old: str, new: str, *, approved: Approved = False) -> JsonValue:
        """Replace the one occurrence of ``old`` in the block (loads it first)."""
        ...

    async def insert(self, at: Located, line: int, content: str, *, approved: Approved = False) -> JsonValue:
        """Put whole lines before a line of the block (from 1; one past the last: behind it; loads it first)."""
        ...

    async def patch(self, at: Located, patch: str, *, approved: Approved = False) -> JsonValue:
        """Apply a unified diff to the block, all of it or nothing (loads it first)."""
        ...

    async def reload(self, at: Located, *, asked: Approved = False) -> JsonValue:
        """As ``load``, with a block that is there. Raises ToolFailure where there is none."""
        ...

    async def create(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        """Make a new file and its block; never overwrites."""
        ...

    async def delete(
        self, at: Located, *, recursive: bool = False, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        """Remove a file from disk and its block; a folder with all below only when ``recursive``, the top one never.

        ``asked``: somebody agreed to the files in it that go only then.
        """
        ...

    async def block_info(self, at: Located) -> JsonValue:
        """Metadata of the block at that place. Raises ToolFailure when it is not loaded."""
        ...


class WebPort(Protocol):
    """The web as tools see it. Methods raise ToolFailure; of a cancelled one no connection is left."""

    @property
    def allow_private(self) -> bool:
        """Whether private networks and this machine may be reached."""
        ...

    @property
    def engines(self) -> tuple[UrlTarget, ...]:
        """Where searches are sent."""
        ...

    async def fetch(
        self, url: str, *, headers: Sequence[tuple[str, str]] = (), follow: Callable[[str], str], raw: bool = False
    ) -> WebPage:
        """What stands at a canonical ``url``, with the ``headers`` sent to its own origin alone.

        HTML comes as Markdown unless ``raw``. ``follow`` gives the canonical form of each address that it redirects
        to, or raises.
        """
        ...

    async def search(self, query: str, *, count: int, freshness: str | None) -> JsonValue:
        """``engine``, ``results`` (title, url, snippet), and ``failed``: the engines that gave none, and why."""
        ...


@frozen
class WebPage:
    """An answer of a web server. ``kind`` is html, json, text or binary; of the latter there is no ``text``.

    ``size`` in bytes as far as it was read; ``is_cut``: there is more. ``headers``: names in lower case.
    """

    url: str
    status: int
    content_type: str
    kind: str
    text: str
    size: int
    is_cut: bool
    title: str = ""
    headers: tuple[tuple[str, str], ...] = ()
