"""Finds the files that a command line needs to run, and proposes the places that it names.

A person accepts the proposals, which stay narrow: no home folder or folder above one, no folder that holds a
``guarded`` place.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gatewright.base.frozen import frozen
from gatewright.policy.document import Catalog, PlaceUse
from gatewright.policy.verdict import covers

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders of the system that every process may read."""
_SCRIPTED = re.compile(r"(python|pypy|node|deno|bun|ruby|perl|php|bash|sh|dash|zsh|tsx|ts-node)[0-9.]*")
_WITH_VALUE = frozenset({"-W", "-X", "-r", "--require", "--import", "--loader", "-I", "--conditions", "-C"})
"""Options of interpreters that take a value: the word after one is no script."""
_INSTEAD = frozenset({"-m", "-c", "-e", "-p", "--eval", "--print"})
"""Options of interpreters that replace a script."""
_WRITERS = ("filesystem", "memory", "sqlite", "git")
"""Words in the name of a server that writes; its proposed places are writable, those of other servers readable."""
_MOST_FIRST_LINE = 512
_MOST_STEPS = 8
_SHIM = re.compile(r"""^\s*exec\s+["']?(?:[^"'\s]*/)?([a-z]+env|asdf|mise|rtx)["']?\s+exec\s""", re.MULTILINE)
"""The line by which a script calls a version manager."""
_LINKED_SHIMS = {"mise": "mise", "volta-shim": "volta"}
"""Programs of version managers, to which the names of other programs are linked."""
_MOST_OF_A_SHIM = 4_096
_MOST_NAMED = 65_536
"""Limit of characters in a file that names folders of modules."""


@frozen
class Guarded:
    """Places to keep out of a program's folder: no ``folders`` and nothing above them, no ``trees`` and nothing inside
    them.
    """

    folders: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()

    def refuses(self, path: str, *, strict: bool = False) -> bool:
        """Tell whether a folder holds a guarded place or, if ``strict``, lies in a guarded tree."""
        held = (*self.folders, *self.trees, *_homes())
        if any(covers(path, one) for one in held) or covers(path, "/tmp") or covers(path, "/var"):
            return True
        return strict and any(covers(tree, path) for tree in self.trees)


def program_files(command: str, args: Sequence[str], folder: Path, guarded: Guarded) -> tuple[str, ...]:
    """Find the files that a command needs to start, beside the system's own folders.

    The program, with its virtual environment and the Python behind that, or the prefix of Node; the interpreter in its
    first line; the script among the arguments, with its folder if that holds nothing else of value.
    """
    found: dict[str, None] = {}
    start = locate(command, folder)
    if start is not None:
        found.update(dict.fromkeys(_of_program(start, guarded, _MOST_STEPS)))
    if (script := script_of(command, args, folder)) is not None:
        found.update(dict.fromkeys(_of_script(script, guarded)))
    return tuple(_outermost(path for path in found if not is_of_system(path)))


def locate(command: str, folder: Path) -> str | None:
    """Find the file that a command starts, under its own name; None if missing."""
    if "/" in command:
        path = os.path.normpath(folder / command)
        return path if Path(path).is_file() else None
    return shutil.which(command)


def shim_fault(command: str, folder: Path) -> tuple[str, str] | None:
    """Return advice on a command that cannot start confined, None for any other.

    The shim of a version manager (pyenv, asdf, mise, ...) searches the user's own files for the real program.
    """
    path = locate(command, folder)
    manager = None if path is None else _manager_of(path)
    if path is None or manager is None:
        return None
    name = Path(path).name
    return (
        f"`{command}` is a shim of {manager}: it finds the real program through files that are hidden here",
        f"name that program with its path; `{manager} which {name}` prints it",
    )


def _manager_of(path: str) -> str | None:
    """Name the version manager of a shim."""
    real = Path(os.path.realpath(path))
    if (manager := _LINKED_SHIMS.get(real.name)) is not None and real.name != Path(path).name:
        return manager
    try:
        with real.open("rb") as stream:
            text = stream.read(_MOST_OF_A_SHIM).decode("utf-8", "replace")
    except OSError:
        return None
    found = _SHIM.search(text) if text.startswith("#!") else None
    return None if found is None else found[1]


def is_of_system(path: str) -> bool:
    """Tell whether a path lies in the system's folders, which every process sees."""
    return any(covers(one, path) for one in SYSTEM)


def script_of(command: str, args: Sequence[str], folder: Path) -> str | None:
    """Find the script of an interpreter, as an absolute path; None for other programs, or without a script."""
    if not _SCRIPTED.fullmatch(Path(command).name):
        return None
    words = iter(args)
    for word in words:
        if word in _INSTEAD:
            return None
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            path = os.path.normpath(folder / word)
            return path if Path(path).is_file() else None
    return None


def _of_program(path: str, guarded: Guarded, steps: int) -> Iterator[str]:
    real = os.path.realpath(path)
    yield path
    yield real
    if steps == 0:
        return
    environments = dict.fromkeys(found for one in (path, real) if (found := _environment_of(one)) is not None)
    for environment in environments:
        if not guarded.refuses(environment):
            yield environment
            yield from (folder for folder in _project_folders(environment) if not guarded.refuses(folder, strict=True))
        if (base := _base_of(environment)) is not None and not guarded.refuses(base):
            yield base
    if not environments and (prefix := _prefix_of(real)) is not None and not guarded.refuses(prefix):
        yield prefix
    if (interpreter := _interpreter_of(real)) is not None:
        yield from _of_program(interpreter, guarded, steps - 1)


def _of_script(script: str, guarded: Guarded) -> Iterator[str]:
    real = os.path.realpath(script)
    yield real
    folder = str(_modules_of(real) or _package_of(real) or Path(real).parent)
    if not guarded.refuses(folder, strict=True):
        yield folder


def _environment_of(path: str) -> str | None:
    """Find the virtual environment of a program."""
    folder = Path(path).parent
    for one in (folder, folder.parent):
        if (one / "pyvenv.cfg").is_file():
            return os.path.realpath(one)
    return None


def _project_folders(environment: str) -> Iterator[str]:
    """Yield the folders of projects in development that a virtual environment includes."""
    for file in sorted(Path(environment).glob("lib/python3*/site-packages/*.pth")):
        with file.open(encoding="utf-8", errors="replace") as stream:
            lines = stream.read(_MOST_NAMED).splitlines()
        yield from (os.path.realpath(line) for line in lines if line.startswith("/") and Path(line).is_dir())


def _base_of(environment: str) -> str | None:
    """Find the installation behind a virtual environment."""
    try:
        lines = Path(environment, "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    home = next(
        (value.strip() for key, sep, value in (line.partition("=") for line in lines) if key.strip() == "home" and sep),
        None,
    )
    return None if home is None else _python_prefix(os.path.realpath(home))


def _python_prefix(binaries: str) -> str | None:
    prefix = Path(binaries).parent
    return str(prefix) if any(prefix.glob("lib/python3*")) else None


def _prefix_of(real: str) -> str | None:
    """Find a self-contained installation: of Python, of Node, or one of ``/opt``."""
    binaries = Path(real).parent
    if covers("/opt", real):
        return str(Path(*Path(real).parts[:3]))
    if binaries.name == "bin":
        prefix = binaries.parent
        if (binaries / "node").is_file() and (prefix / "lib/node_modules").is_dir():
            return str(prefix)
        return _python_prefix(str(binaries))
    for folder in Path(real).parents:
        if (
            folder.name == "node_modules"
            and folder.parent.name == "lib"
            and (folder.parent.parent / "bin/node").exists()
        ):
            return str(folder.parent.parent)
    modules = _modules_of(real)
    return None if modules is None else str(modules)


def _modules_of(real: str) -> Path | None:
    """Find the packages of Node around a file."""
    found = [folder for folder in Path(real).parents if folder.name == "node_modules"]
    return found[-1] if found else None


def _package_of(script: str) -> Path | None:
    """Find the package of Node around a script, which contains the script's needs."""
    if Path(script).suffix not in {".js", ".mjs", ".cjs"}:
        return None
    return next((folder for folder in list(Path(script).parents)[:3] if (folder / "package.json").is_file()), None)


def _interpreter_of(path: str) -> str | None:
    """Find the program in a script's first line."""
    try:
        with Path(path).open("rb") as stream:
            first = stream.readline(_MOST_FIRST_LINE)
    except OSError:
        return None
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if not words:
        return None
    if Path(words[0]).name != "env":
        return words[0] if Path(words[0]).is_file() else None
    named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    return None if named is None else shutil.which(named)


def _homes() -> tuple[str, ...]:
    """List the home folders of users, this one's and those beside it."""
    home = os.path.realpath(Path.home())
    return (home, f"{home}/.local", f"{home}/.config", f"{home}/.cache", "/root", "/home")


def _outermost(paths: Iterable[str]) -> list[str]:
    """Drop the paths that lie in another one of them."""
    found: list[str] = []
    for path in sorted(paths):
        if not any(covers(one, path) for one in found):
            found.append(path)
    return found


def propose_places(catalog: Catalog, folder: Path, sources: Mapping[str, str]) -> dict[str, PlaceUse]:
    """Propose the places that a server's command line names: existing folders and files among its arguments, and its
    ``cwd``.

    The ids of ``sources`` stand for their folders. Places are readable, or writable if the server's name says that it
    writes. A home folder, a folder above one, the system's folders and the server's own script are never among them. A
    person accepts the proposals.
    """
    start = folder / (catalog.cwd or ".")
    script = script_of(catalog.command or "", catalog.args, start)
    words = list(_words(catalog.args, start))
    if catalog.cwd is not None:
        words.append(str(start))
    by_path = {path: name for name, path in sources.items()}
    named = " ".join((Path(catalog.command or "").name, *catalog.args, catalog.catalog_id)).casefold()
    use = PlaceUse.WRITE if any(word in named for word in _WRITERS) else PlaceUse.READ
    found: dict[str, PlaceUse] = {}
    for word in words:
        path = os.path.realpath(start / word)
        if os.path.normpath(start / word) == script or _is_too_much(path):
            continue
        found[by_path.get(path) or as_written(path, folder)] = use
    return found


def as_written(path: str, folder: Path) -> str:
    """Return a real path in the form of a place for a policy in ``folder``."""
    top = os.path.realpath(folder)
    if not covers(top, path):
        return path
    rest = os.path.relpath(path, top)
    return "." if rest == "." else f"./{rest}"


def _words(args: Sequence[str], start: Path) -> Iterator[str]:
    """Yield the arguments that exist on disk; of an argument with ``=``, the part behind it."""
    behind_option = False
    for word in args:
        is_option = word.startswith("-")
        value = word.partition("=")[2] if is_option else word
        if value and "\0" not in value and os.path.lexists(start / value):
            is_path = "/" in value or value.startswith(".") or is_option or behind_option
            if is_path or (start / value).is_dir():
                yield value
        behind_option = is_option and "=" not in word


def _is_too_much(path: str) -> bool:
    """Tell whether a place is too large to propose: the whole disk, a home folder or above one, or the system's."""
    return any(covers(path, one) for one in (*_homes(), "/tmp", "/var", "/etc")) or is_of_system(path)
