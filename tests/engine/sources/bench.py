"""A workspace on disk with sources, real blocks and protected files, for the tests of this folder."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.permission import Permission
from gatewright.policy.target import Located, Refusal
from gatewright.sources.manager import SourceManager
from gatewright.sources.protection import Protection

Rules = tuple[tuple[str, Permission], ...]


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


def make_bench(folder: Path, blocks: BlockStore, protected: tuple[Path, ...] = ()) -> Bench:
    registered: list[str] = []

    def register() -> Callable[[], None]:
        registered.append("on")
        return lambda: registered.append("off")

    return Bench(folder, blocks, SourceManager(register, blocks, Protection(protected)), registered)
