"""A workspace on disk with sources, real blocks and protected files, for the tests of this folder."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.target import Located, Refusal
from gatewright.policy.verdict import Permission
from gatewright.sources.basefolder import BaseFolder, base_folder
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager

Rules = tuple[tuple[str, Permission], ...]
OPEN = Path("/proc/self/fd")


def open_now() -> Counter[str]:
    """What this process has open. Look for what is new in it: what other tests left open may be closed at any time."""
    found = Counter[str]()
    for one in OPEN.iterdir():
        with suppress(OSError):
            found[str(one.readlink())] += 1
    return found


def source_of(
    source_id: str = "docs",
    rules: Rules = (),
    default: Permission = Permission.READ_WRITE,
    max_file_bytes: int = 100_000,
) -> Source:
    rows = tuple(PermissionRule(pattern, level) for pattern, level in rules)
    return Source(source_id, "unused", default, rows, max_file_bytes)


@dataclass
class Bench:
    folder: Path
    blocks: BlockStore
    manager: SourceManager
    registered: list[str] = field(default_factory=list[str])

    def start(self, source: Source, base: Path) -> None:
        start_source(self.manager, source, base)

    def update(self, source: Source) -> None:
        change_source(self.manager, source)

    def stop(self, source_id: str) -> None:
        stop_source(self.manager, source_id)

    def at(self, path: str, source_id: str | None = None) -> Located:
        located = self.manager.locate(path, source_id=source_id, allowed=self.manager.ids)
        assert isinstance(located, Located), located
        return located

    def refused(self, path: str, source_id: str | None = None) -> Refusal:
        refusal = self.manager.locate(path, source_id=source_id, allowed=self.manager.ids)
        assert isinstance(refusal, Refusal), refusal
        return refusal

    def place(self, relative: str, source_id: str = "docs") -> Located:
        """A place that did not pass ``locate``, as after a race."""
        return Located(source_id, relative, "unused")

    def write(self, relative: str, content: str | bytes) -> Path:
        path = self.folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def swap(self, relative: str, content: str | bytes) -> None:
        """Write a file in one step, as an editor does: nobody sees half of it."""
        self.write(f"{relative}.new", content).replace(self.folder / relative)


def start_source(manager: SourceManager, source: Source, base: Path) -> None:
    manager.follow([*_running(manager), (source, base_folder(base))])


def change_source(manager: SourceManager, changed: Source) -> None:
    running = _running(manager)
    manager.follow([(changed if one.source_id == changed.source_id else one, folder) for one, folder in running])


def stop_source(manager: SourceManager, source_id: str) -> None:
    manager.follow([(one, folder) for one, folder in _running(manager) if one.source_id != source_id])()


def _running(manager: SourceManager) -> list[tuple[Source, BaseFolder]]:
    return [(one.source, one.folder) for name in manager.ids if (one := manager.get(name)) is not None]


def make_bench(folder: Path, blocks: BlockStore, protected: tuple[Path, ...] = ()) -> Bench:
    registered: list[str] = []

    def register() -> Callable[[], None]:
        registered.append("on")
        return lambda: registered.append("off")

    return Bench(folder, blocks, SourceManager(register, blocks, Protection(protected)), registered)
