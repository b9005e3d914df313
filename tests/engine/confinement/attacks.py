"""Attacks on a confined shell, as scripts for bash: each tries to get at something that its policy does not give.

A script says nothing about success. Whoever runs them asks the disk, the listeners and what was printed: a secret, the
name of a closed file, a changed file, a connection. ``{docs}`` and the other names in braces are places of `Field`.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECRET = "SECRET-OF-NOBODY"
"""The content of every file that may not be read."""
HIDDEN = "hidden-name"
"""Stands in the name of every file that may not be listed. What is covered in a writable folder is seen by its name."""


@dataclass(frozen=True, slots=True)
class Attack:
    """``kind``: which kind of way it takes; ``script``: what bash is given."""

    kind: str
    script: str


@dataclass(frozen=True, slots=True)
class Field:
    """The targets of the scripts: absolute paths by name, and the numbers of the host's listeners."""

    places: Mapping[str, str] = field(default_factory=dict[str, str])

    def fill(self, script: str) -> str:
        """The script with its places; braces that name none stay."""
        for name, value in self.places.items():
            script = script.replace(f"{{{name}}}", value)
        return script


_KINDS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "attacks.toml").read_text())


def attacks() -> Iterator[Attack]:
    """Every attack once."""
    for reader, script in _KINDS["readers"].items():
        for path in (*_KINDS["read"].values(), *_KINDS["linked"].values()):
            yield Attack(f"read by {reader}", script.replace("{path}", path))
    for spelling, form in _KINDS["spellings"].items():
        for path in _KINDS["read"].values():
            yield Attack(f"spelt {spelling}", f"cat {form.replace('{path}', path)}")
    for writer, script in _KINDS["writers"].items():
        for path in _KINDS["written"].values():
            yield Attack(f"write by {writer}", script.replace("{path}", path))
    for lister, script in _KINDS["listers"].items():
        for folder in _KINDS["folders"].values():
            yield Attack(f"list by {lister}", script.replace("{folder}", folder))
    for name, script in (*_KINDS["network"].items(), *_KINDS["kernel"].items()):
        yield Attack(name, script)
    for interpreter, script in _KINDS["interpreted"].items():
        for path in _KINDS["read"].values():
            yield Attack(f"interpreted by {interpreter}", _interpreted(script, path))


def _interpreted(script: str, path: str) -> str:
    shell = f"cat {path}"
    code = f'print(open("{path}").read())'
    filled = script.replace("{shell}", shell).replace("{path}", path).replace("{code}", code)
    # the place is not known yet, so the code is turned into digits by the script itself
    by_digits = f'$(printf %s {shlex.quote(code)} | od -An -v -tx1 | tr -d " \\n")'
    return filled.replace("{hex}", by_digits).replace("{perl}", f'open F, "{path}"; print <F>')


def lay_out(folder: Path) -> dict[str, str]:
    """Make what the attacks are about below a folder; the places by name. Listeners are the caller's."""
    workspace, docs = folder / "ws", folder / "ws" / "docs"
    texts = {
        docs / "plain.txt": "plain",
        docs / "log.txt": "log",
        docs / "sub/open.txt": "open",
        docs / "secret/hidden-name.txt": SECRET,
        docs / "secret/inner/hidden-name.txt": SECRET,
        docs / "sub/deep/hidden-name.key": SECRET,
        docs / "out/plain.txt": "plain",
        docs / "out/covered-name.key": SECRET,
        folder / "outside/hidden-name.txt": SECRET,
        folder / "home/.ssh/hidden-name": SECRET,
        folder / "keys/hidden-name.keys": SECRET,
        workspace / ".gatewright/hidden-name.state": SECRET,
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (docs / "link-to-secret").symlink_to(docs / "secret")
    (docs / "link-outside").symlink_to(folder / "outside")
    (docs / "sub/up").symlink_to("../..")
    (docs / "twin.txt").hardlink_to(docs / "secret/hidden-name.txt")
    places = {"workspace": workspace, "docs": docs, "state": workspace / ".gatewright"}
    places |= {name: folder / name for name in ("outside", "home", "keys")}
    return {name: str(path) for name, path in places.items()}
