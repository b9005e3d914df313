"""The targets of a call (a path with its level, and the action there) and the bounds of a process, as values.

Paths of a `Confinement` are absolute, without links and ``..``; `sources.roomplan` applies it to the files on disk,
`adapters.confine` has the kernel enforce it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import field

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.verdict import Action, Permission, Word, covers

Approved = bool | Callable[[], bool]
"""An approval: a function that tells whether it still holds.

It is called just before the effect, with the thing that the effect touches.
"""

FILE_LABEL = "file:"
"""The prefix of block labels that stand for files."""

NOT_PERMITTED = "not-permitted"
"""The code of a ToolFailure by which a tool denies a call because of a level, although the places it names permit
it.
"""

levels_pass: ContextVar[bool] = ContextVar("levels_pass", default=False)
"""True in a call that observe mode lets through although a level denies it, or asks; protected places stay closed."""

reading_agreed: ContextVar[bool] = ContextVar("reading_agreed", default=False)
"""True in a call that somebody approved, so that it may read what asks first."""


@frozen
class Located:
    """A place in a source: ``relative`` is canonical with ``/`` (``.`` for the base), ``absolute`` is resolved.

    ``level``: its level when somebody looked, if known; a decision that uses it belongs to the same moment.
    """

    source_id: str
    relative: str
    absolute: str
    level: LevelDecision | None = field(default=None, compare=False, repr=False)


@frozen
class FileTarget:
    """A path on disk that an argument names: ``absolute`` is resolved, ``relative`` is below its root.

    The root is the base of the source ``source_id``, else the workspace's folder, else a granted prefix. ``writes``:
    the parameter is declared as a path to write. ``root``: the root of ``[workspace]`` that holds the path;
    ``relative`` then begins with its name. ``in_source`` is the path below the source's base. ``stands``: where the
    file is in a disposable copy; None means at ``absolute``.
    """

    parameter: str
    relative: str
    absolute: str
    writes: bool
    source_id: str | None
    root: str | None = None
    in_source: str | None = None
    stands: str | None = None

    @property
    def place(self) -> Located | None:
        """The place in the source; None outside all sources."""
        if self.source_id is None:
            return None
        relative = self.relative if self.in_source is None else self.in_source
        return Located(self.source_id, relative, self.absolute)


@frozen
class NameTarget:
    """A table or an environment variable that an argument names, compared by exact text."""

    parameter: str
    name: str
    kind: CapabilityKind


@frozen
class BlockTarget:
    """The block of memory that a label names, with its level when somebody looked.

    An unknown label has ``block_id`` "" and level none, like a block that nobody may see.
    """

    parameter: str
    label: str
    block_id: str
    permission: Permission


@frozen
class CapabilityCheck:
    """The finding of the capability stage about one kind.

    ``target`` is the argument that it judged; ``""`` means the kind itself.
    """

    kind: CapabilityKind
    allowed: bool
    target: str = ""


@frozen
class Refusal:
    """The reason why a path or label is refused. ``reason`` is for the operator; ``hint`` is safe for the model."""

    code: str
    reason: str
    hint: str


@frozen
class LevelDecision:
    """The level of a place and what decides it: a rule's index (from 0) and pattern, the default, or protection.

    ``source_id``: another source over the same files whose rule or default decides; None: the place's own source.
    """

    permission: Permission
    index: int | None = None
    pattern: str | None = None
    protected: bool = False
    source_id: str | None = None


class Later:
    """A change that is computed once, on first use."""

    __slots__ = ("_known", "_work_out")

    def __init__(self, work_out: Callable[[], str | None]) -> None:
        self._work_out = work_out
        self._known: tuple[str | None] | None = None

    def __call__(self) -> str | None:
        """Return the change. Raises ToolFailure if it cannot be done."""
        if self._known is None:
            self._known = (self._work_out(),)
        return self._known[0]


@frozen
class NamedPlace:
    """The place on disk that a text of a call names: ``absolute`` has no links, ``relative`` is below the base of
    ``source_id``.

    ``level`` None: it lies in no source. ``start``: the folder where a relative text starts. ``inside``: the path below
    that folder which has the level. ``argument`` and ``action`` belong to the call; ``program``: the program that gets
    the text in a shell command; ``stands``: something exists there. ``needs_grant``: outside of the agent's sources a
    grant of files must cover it.
    """

    absolute: str
    source_id: str | None
    relative: str
    level: LevelDecision | None
    start: str | None = None
    inside: str = ""
    argument: str = ""
    action: Action = Action.READ
    program: str = ""
    stands: bool = True
    needs_grant: bool = False


@frozen
class Assessment:
    """The effect of a call: its action, a reason to ask by itself, and the change to the text.

    ``later`` computes a change that is expensive, which only an approver needs. It raises ToolFailure if the call
    cannot be done, so that nobody is asked in vain.
    """

    action: Action | None = None
    ask: str | None = None
    diff: str | None = None
    later: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)

    def change(self) -> str | None:
        """The change to the text, if any. Raises ToolFailure if it cannot be done."""
        return self.diff if self.later is None else self.later()

    @classmethod
    def failing(cls, action: Action | None, failure: ToolFailure) -> Assessment:
        """The assessment of a call that cannot be done, whoever approves it."""

        def later() -> str | None:
            raise ToolFailure(str(failure), code=failure.code)

        return cls(action, later=later)


@frozen
class FileText:
    """The text of a file and its origin: ``block`` (perhaps with unsaved edits) or ``disk``."""

    content: str
    origin: str
    unsaved: bool = False


class View(Word):
    """What a process sees of a path: nothing, a readable file, or a file that it may change and delete."""

    ABSENT = "absent"
    READ = "read"
    WRITE = "write"


_VIEWS = {
    Permission.NONE: View.ABSENT,
    Permission.READ_ONLY: View.READ,
    Permission.ASK: View.ABSENT,
    Permission.PARTNER: View.READ,
    Permission.HUMAN: View.READ,
    Permission.APPEND: View.READ,
    Permission.READ_WRITE: View.WRITE,
    Permission.ADMIN: View.WRITE,
}


def view_of(level: Permission, use: PlaceUse = PlaceUse.WRITE) -> View:
    """The view that a process with that ``use`` of the place has at a level.

    In a private copy the process may also try appends and changes that ask: the gate judges them when it writes them
    back.
    """
    view = _VIEWS[level]
    if use is PlaceUse.SNAPSHOT and view is View.READ and level is not Permission.READ_ONLY:
        return View.WRITE
    return View.READ if view is View.WRITE and use is PlaceUse.READ else view


@frozen
class Tree:
    """The levels of a source for all processes; where trees overlap, the strictest level counts."""

    base: str
    default: Permission
    rules: tuple[PermissionRule, ...] = ()

    @property
    def closes(self) -> bool:
        """True if one of its levels hides paths from processes."""
        return View.ABSENT in {_VIEWS[self.default], *(_VIEWS[rule.permission] for rule in self.rules)}


@frozen
class Place:
    """A folder or file that a process gets."""

    path: str
    use: PlaceUse


@frozen
class ProcessBounds:
    """The most that one process and its children may use; None means unlimited."""

    cpu_s: float | None = None
    memory_bytes: int | None = None
    processes: int | None = 512
    files: int | None = 1024
    file_bytes: int | None = None


@frozen
class Confinement:
    """Everything that exists for a process.

    ``trees`` give the levels in ``places``. Even in a place, paths in ``closed`` do not exist and paths in ``fixed``
    never change. ``programs``: readable files outside the system's own folders that it needs to run. ``hosts``:
    patterns of permitted connections (``*``: all that is not private), empty for no network; ``allow_private``: names
    may lead to private addresses. ``environment``: its variables. ``subject``: agent and tool, or catalog, for the log.
    """

    places: tuple[Place, ...] = ()
    trees: tuple[Tree, ...] = ()
    closed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    allow_private: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)
    etc: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)
    """The texts of files that it finds below ``/etc``, by name."""
    bounds: ProcessBounds = field(default_factory=ProcessBounds)
    folder: str = "/"
    """Its working folder."""
    takes_back: bool = False
    """True if what it makes against the levels is taken back when it ends: a file of somebody else's may be, too."""
    agent_id: str = field(default="", compare=False)
    subject: str = field(default="", compare=False)

    @property
    def windows(self) -> tuple[Place, ...]:
        """The places where the process may change files although levels hide names: such a name is hidden only after it
        appears.
        """
        closing = [tree.base for tree in self.trees if tree.closes]
        return tuple(
            place
            for place in self.places
            if place.use is PlaceUse.WRITE
            and any(covers(base, place.path) or covers(place.path, base) for base in closing)
        )
