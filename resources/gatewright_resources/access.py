"""The one door to the bundled data, read through `importlib.resources`: icons, fonts, styles, languages, folders."""

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_PACKAGE = "gatewright_resources"
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class MissingResourceError(LookupError):
    """A name that is not in the bundle; the message gives the nearest one."""


def _names(folder_name: str, suffix: str) -> tuple[str, ...]:
    entries = files(_PACKAGE).joinpath(folder_name).iterdir()
    return tuple(sorted(entry.name.removesuffix(suffix) for entry in entries if entry.name.endswith(suffix)))


def _missing(kind: str, name: str, known: tuple[str, ...]) -> MissingResourceError:
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return MissingResourceError(f"no {kind} named `{name}`{hint}")


def _read(kind: str, folder_name: str, name: str, suffix: str) -> bytes:
    try:
        if _PLAIN_NAME.fullmatch(name):
            return _inside(folder_name).joinpath(name + suffix).read_bytes()
    except FileNotFoundError:
        pass
    raise _missing(kind, name, _names(folder_name, suffix))


@cache
def _inside(folder_name: str) -> Traversable:
    return files(_PACKAGE).joinpath(folder_name)


def icon_names() -> tuple[str, ...]:
    """Names of all bundled icons, sorted."""
    return _names("icons", ".svg")


def icon_svg(name: str) -> bytes:
    """SVG source of an icon, drawn with `currentColor` in a 24 x 24 box.

    Raises MissingResourceError for an unknown name.
    """
    return _read("icon", "icons", name, ".svg")


def fonts() -> tuple[bytes, ...]:
    """Every bundled font file: a regular and a semi-bold face of Inter and of JetBrains Mono."""
    files_of_fonts = (entry for entry in _inside("fonts").iterdir() if entry.name.endswith((".otf", ".ttf")))
    return tuple(entry.read_bytes() for entry in sorted(files_of_fonts, key=lambda entry: entry.name))


def style(name: str) -> str:
    """Text of a Qt style sheet template with `${token}` places.

    Raises MissingResourceError for an unknown name.
    """
    return _read("style", "styles", name, ".qss").decode("utf-8")


def languages() -> tuple[str, ...]:
    """The languages that texts are translated to, such as `de`, sorted."""
    return _names("languages", ".mo")


def translation(language: str) -> bytes:
    """The compiled catalog (`.mo`) of a language.

    Raises MissingResourceError for an unknown one.
    """
    return _read("language", "languages", language, ".mo")


def folder(name: str) -> Traversable:
    """A bundled folder, such as `demo`; wrap it in `importlib.resources.as_file` where a real path is needed.

    Raises MissingResourceError for an unknown name.
    """
    known = tuple(entry.name for entry in files(_PACKAGE).iterdir() if entry.is_dir() and entry.name != "__pycache__")
    if name not in known:
        raise _missing("folder", name, known)
    return files(_PACKAGE).joinpath(name)
