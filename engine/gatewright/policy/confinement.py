"""All that a process of its own may reach, as one value: what holds in the kernel of what the policy says.

It says what is to hold and knows no disk: `sources.roomplan` works out what that means for the files that are there,
`adapters.confine` has the kernel hold it. Paths are absolute, without links and ``..``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gatewright.base.frozen import frozen
from gatewright.base.word import Word
from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.permission import Permission
from gatewright.policy.prefix import covers


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
