"""Random trees, rules and places, and the view that a process has of them by the simple definition."""

import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree, View, view_of
from gatewright.policy.verdict import Permission

NAMES = ["a", "b", "c.key", "d.txt", "e f", "\udcff", ".env", "sub", "secret", "x" * 40]
PATTERNS = [
    *("*.key", "secret/", "/a", "/a/b", "sub/**", "**/b/", "a/*.txt", ".env", "sub/secret/", "*", "/b/sub/"),
    *("[ab]/d.txt", "a/**/d.txt", "e f", "/sub/a/b/", "x*", "/sub/*/", "/a/b/secret/.env", "b/"),
]
LEVELS = [Permission.NONE, Permission.NONE, Permission.READ_ONLY, Permission.APPEND, Permission.READ_WRITE]
USES = [PlaceUse.READ, PlaceUse.WRITE]


def grow(dice: random.Random, folder: Path, depth: int) -> Iterator[Path]:
    """Files, links and folders in a folder."""
    for name in dice.sample(NAMES, dice.randint(0, 6)):
        path = folder / name
        if depth and dice.random() < 0.5:
            path.mkdir()
            yield from grow(dice, path, depth - 1)
        elif dice.random() < 0.1:
            path.symlink_to(dice.choice(["a", "/etc/passwd", "nowhere"]))
        else:
            path.write_text("some")
        yield path


def confine(dice: random.Random, top: Path, uses: list[PlaceUse]) -> Confinement:
    """Places in ``top``, with up to two trees over them, and paths that are closed or fixed."""
    paths = [Path(path) for path in everything(top)]
    folders = [top, *(path for path in paths if path.is_dir() and not path.is_symlink())]
    trees = tuple(
        Tree(
            str(dice.choice(folders[: 1 + number * 3])),
            dice.choice(LEVELS[1:]),
            tuple(PermissionRule(dice.choice(PATTERNS), dice.choice(LEVELS)) for _ in range(dice.randint(0, 5))),
        )
        for number in range(dice.randint(0, 2))
    )
    places = {str(top): dice.choice(uses)} | {str(one): dice.choice(uses) for one in dice.sample(folders, 1)}
    picked = [str(one) for one in dice.sample(paths, min(2, len(paths))) if not one.is_symlink()]
    granted = tuple(Place(path, use) for path, use in places.items())
    return Confinement(granted, trees, closed=tuple(picked[:1]), fixed=tuple(picked[1:]))


def everything(top: Path) -> list[str]:
    """All paths below a folder."""
    return [f"{above}/{name}" for above, folders, files in os.walk(top) for name in sorted([*folders, *files])]


def change(dice: random.Random, top: Path) -> None:
    """Do one of the things that people and programs do to files."""
    paths = everything(top)
    modes = {path: os.lstat(path).st_mode for path in paths}
    folders = [str(top), *(path for path, mode in modes.items() if stat.S_ISDIR(mode))]
    target = Path(dice.choice(folders), dice.choice(NAMES))
    files = [path for path, mode in modes.items() if stat.S_ISREG(mode)]
    match dice.randrange(6):
        case 0 if not target.is_dir():
            beside = top.parent / "beside"
            beside.write_text("some")
            beside.replace(target)
        case 1 if not os.path.lexists(target):
            target.mkdir()
            list(grow(dice, target, 2))
        case 2 if paths:
            old = dice.choice(paths)
            if not os.path.lexists(target) and not f"{target}/".startswith(f"{old}/"):
                Path(old).rename(target)
        case 3 if files:
            Path(dice.choice(files)).unlink()
        case 4 if folders[1:]:
            shutil.rmtree(dice.choice(folders[1:]))
        case 5 if not os.path.lexists(target):
            target.symlink_to("a")
        case _:
            return


class Nobody:
    """A listener to a room; it fails the test if it hears anything."""

    def hide(self, mounts: object, *, anew: bool) -> None:
        raise AssertionError((mounts, anew))

    def fail(self, why: str) -> None:
        raise AssertionError(why)


def by_definition(confinement: Confinement, path: str, *, folder: bool) -> View:
    """The view that a process has of a path."""

    def is_over(other: str) -> bool:
        return path == other or path.startswith(f"{other}/")

    uses = sorted((len(place.path), place.use) for place in confinement.places if is_over(place.path))
    if not uses or any(map(is_over, confinement.closed)):
        return View.ABSENT
    found = [View.READ if uses[-1][1] is PlaceUse.READ or any(map(is_over, confinement.fixed)) else View.WRITE]
    for one in confinement.trees:
        if is_over(one.base):
            inside = path[len(one.base) + 1 :]
            level = PermissionRules(one.rules, one.default).level(f"{inside}/" if folder and inside else inside)
            found.append(view_of(level, uses[-1][1]))
    return min(found, key=[View.ABSENT, View.READ, View.WRITE].index)


def excess(confinement: Confinement, top: Path, found: dict[str, str], covers: set[str]) -> list[str]:
    """List what is seen, or written, of which the definition says otherwise, but for what is empty and covered."""
    wrong: list[str] = []
    there = {str(top), *everything(top)}
    for path, view in found.items():
        if path not in there:
            wrong.append(f"{path} is not there")
        elif view != "folder" and not (view == "hidden" and path in covers):
            meant = by_definition(confinement, path, folder=False)
            if meant is View.ABSENT or (view == "write" and meant is not View.WRITE):
                wrong.append(f"{path} is {view}, not {meant}")
    return wrong


def lack(confinement: Confinement, top: Path, found: dict[str, str]) -> list[str]:
    """List what is not seen, or not written, that should be."""
    wrong: list[str] = []
    for path in everything(top):
        mode = os.lstat(path).st_mode
        meant = by_definition(confinement, path, folder=stat.S_ISDIR(mode))
        shown: str = "folder" if stat.S_ISDIR(mode) else "read" if stat.S_ISLNK(mode) else meant
        if meant is not View.ABSENT and found.get(path) != shown:
            wrong.append(f"{path} is {found.get(path)}, not {shown}")
    return wrong
