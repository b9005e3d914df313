"""Targets of a call (a path with its level, and what is done there) and the bounds of a process, as values.

Paths of a `Confinement` are absolute, without links and ``..``; `sources.roomplan` works out what it means for the
files that are there, `adapters.confine` has the kernel hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.word import Word
from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.scope import covers
from gatewright.policy.verdict import Action, Permission

Approved = bool | Callable[[], bool]
"""Whether somebody agreed; asked when acting, alone with what is changed, it says whether that still holds."""

FILE_LABEL = "file:"
"""How the labels of blocks begin that stand for files."""

NOT_PERMITTED = "not-permitted"
"""Code of a ToolFailure with which a tool says that a level denies the call, where the places that it names do not."""


@frozen
class Located:
    """A place in a source: ``relative`` is canonical with ``/`` (``.`` for the base), ``absolute`` is resolved.

    ``level``: its level as of when it was looked at, where it was; what decides by it decides at the same moment.
    """

    source_id: str
    relative: str
    absolute: str
    level: LevelDecision | None = field(default=None, compare=False, repr=False)


@frozen
class FileTarget:
    """A path on disk that an argument names: ``absolute`` is resolved, ``relative`` is below its root.

    The root is the base of the source ``source_id``, else the workspace's folder, else a granted prefix.
    ``writes``: whether the parameter is declared as one that is written to. ``root``: the root of ``[workspace]`` that
    the path is in, with whose name ``relative`` then begins; ``in_source`` is the path below the source's base.
    ``stands``: where it is on disk, in a disposable copy; None: where ``absolute`` says.
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
        """The same as a place in the source; None where no source holds it."""
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
    """The block of memory that a label names, with its level as of when it was looked at.

    A label that no block bears has ``block_id`` "" and level none, so that it fares as one that nobody may see.
    """

    parameter: str
    label: str
    block_id: str
    permission: Permission


@frozen
class CapabilityCheck:
    """What the capability stage found about one kind. ``target`` is the argument judged, ``""``: the kind as such."""

    kind: CapabilityKind
    allowed: bool
    target: str = ""


@frozen
class Refusal:
    """Why a path or label is not accepted. ``reason`` is the operator's; ``hint`` is safe to show the model."""

    code: str
    reason: str
    hint: str


@frozen
class LevelDecision:
    """The level of a place and what decided it: a rule's index (from 0) and pattern, the default, or protection.

    ``source_id``: whose rule or default it is, where it is another source over the same files; None: the place's own.
    """

    permission: Permission
    index: int | None = None
    pattern: str | None = None
    protected: bool = False
    source_id: str | None = None


class Later:
    """A change that is worked out when somebody asks for it, and only once."""

    __slots__ = ("_known", "_work_out")

    def __init__(self, work_out: Callable[[], str | None]) -> None:
        self._work_out = work_out
        self._known: tuple[str | None] | None = None

    def __call__(self) -> str | None:
        """The change. Raises ToolFailure where it cannot be done."""
        if self._known is None:
            self._known = (self._work_out(),)
        return self._known[0]


@frozen
class NamedPlace:
    """Where a text of a call leads on disk: ``absolute`` has no links, ``relative`` is below the base of ``source_id``.

    ``level`` None: no source holds it. ``start``: the folder that a relative text was taken to start from. ``inside``:
    the path below the base of what in that folder has the level. ``argument`` and ``action``: of the call;
    ``program``: that gets the text in a shell command; ``stands``: something is there.
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


@frozen
class Assessment:
    """What a call would do: the action it needs, why it should ask by itself, and the change to the text.

    ``later`` gives the change where working it out costs something: only whoever is asked needs it. It raises
    ToolFailure where the call cannot be done, so that nobody is asked in vain.
    """

    action: Action | None = None
    ask: str | None = None
    diff: str | None = None
    later: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)

    def change(self) -> str | None:
        """The change to the text, if any, worked out now. Raises ToolFailure where it cannot be done."""
        return self.diff if self.later is None else self.later()

    @classmethod
    def failing(cls, action: Action | None, failure: ToolFailure) -> Assessment:
        """Of a call that cannot be done, whoever agrees to it."""

        def later() -> str | None:
            raise ToolFailure(str(failure), code=failure.code)

        return cls(action, later=later)


@frozen
class FileText:
    """Text of a file and where it came from: ``block`` (with unsaved edits perhaps) or ``disk``."""

    content: str
    origin: str
    unsaved: bool = False


class View(Word):
    """The view that a process has of a path: nothing, something to read, or something to change and delete, too."""

    ABSENT = "absent"
    READ = "read"
    WRITE = "write"


_VIEWS = {
    Permission.NONE: View.ABSENT,
    Permission.READ_ONLY: View.READ,
    Permission.PARTNER: View.READ,
    Permission.HUMAN: View.READ,
    Permission.APPEND: View.READ,
    Permission.READ_WRITE: View.WRITE,
    Permission.ADMIN: View.WRITE,
}


def view_of(level: Permission, use: PlaceUse = PlaceUse.WRITE) -> View:
    """The view that a level comes to for a process that may do ``use`` where it lies.

    In a private copy it may try what asks and appends, too: that is judged when it is written back.
    """
    view = _VIEWS[level]
    if use is PlaceUse.SNAPSHOT and view is View.READ and level is not Permission.READ_ONLY:
        return View.WRITE
    return View.READ if view is View.WRITE and use is PlaceUse.READ else view


@frozen
class Tree:
    """The levels of a source, for whatever process reaches it: over one path the strictest of all trees counts."""

    base: str
    default: Permission
    rules: tuple[PermissionRule, ...] = ()

    @property
    def closes(self) -> bool:
        """True where some path in it has a level at which no process sees it."""
        return View.ABSENT in {_VIEWS[self.default], *(_VIEWS[rule.permission] for rule in self.rules)}


@frozen
class Place:
    """A folder or file that a process gets."""

    path: str
    use: PlaceUse


@frozen
class ProcessBounds:
    """The most that one process, and what it starts, may use up; None: no bound of ours."""

    cpu_s: float | None = None
    memory_bytes: int | None = None
    processes: int | None = 512
    files: int | None = 1024
    file_bytes: int | None = None


@frozen
class Confinement:
    """All that exists for a process.

    ``places`` in which ``trees`` give the levels; ``closed`` never exists, ``fixed`` never changes, places or not.
    ``programs``: what it needs to run that lies outside the system's own folders, to be read. ``hosts``: patterns of
    what it may connect to (``*``: all that is not private), empty for no network; ``allow_private``: names may lead to
    private addresses. ``environment``: the variables that it gets. ``subject``: whose it is (agent and tool or
    catalog), for the log.
    """

    places: tuple[Place, ...] = ()
    trees: tuple[Tree, ...] = ()
    closed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    allow_private: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)
    bounds: ProcessBounds = field(default_factory=ProcessBounds)
    folder: str = "/"
    """The folder where it begins."""
    agent_id: str = field(default="", compare=False)
    subject: str = field(default="", compare=False)

    @property
    def windows(self) -> tuple[Place, ...]:
        """The places to be changed in which levels close names: such a name is hidden only once it appeared."""
        closing = [tree.base for tree in self.trees if tree.closes]
        return tuple(
            place
            for place in self.places
            if place.use is PlaceUse.WRITE
            and any(covers(base, place.path) or covers(place.path, base) for base in closing)
        )
