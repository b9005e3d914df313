"""Every path on disk that some program may take a text for, so that no other spelling of a closed place is let through.

Servers differ: one takes a URL, one expands `~` and variables, one decodes percent signs, one takes a backslash for a
slash. What each of them would open is read off the text here; which of it is there, the disk says.
"""

from __future__ import annotations

import os
import re
import unicodedata
from posixpath import normpath
from urllib.parse import unquote

from gatewright.arguments.path import MAX_PATH_BYTES

MAX_READINGS = 64
MAX_STUDIED = 16_384
"""Characters of a text whose forms are tried on each other; of a longer one only the simple ones are read."""
_Readings = tuple[tuple[str, ...], tuple[str, ...]]
_MAY = re.compile(r"[\s\"'`<(\x00]*(?:[/\\~$%]|\.\.?[/\\%]|[A-Za-z][A-Za-z0-9+.\-]{0,30}:)")
_CLIMBING = re.compile(r"(?:\.\.?/+)+")
_PLAIN = re.compile(r"/[A-Za-z0-9_\-+,=@ ()./]*", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]{0,30}):(?=[/\\~$%]|[A-Za-z][A-Za-z0-9+.\-]{0,30}:)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})|%(\w+)%", re.ASCII)
_AUTHORITY = re.compile(r"//[^/]*")
_AROUND = " \t\r\n\v\f\"'`<>()"
_ELSEWHERE = frozenset({"http", "https", "ws", "wss", "ftp", "ftps", "ssh", "mailto", "data", "blob", "urn", "tel"})
_GLOB = re.compile(r"[*?\[{]")


def may_be_path(text: str) -> bool:
    """Whether a whole text may be an absolute path or a URL of a file, judged by how it begins."""
    if text[:1].isalpha() and ":" not in text[:32]:
        return False  # most texts, in a fraction of the time
    return _MAY.match(text) is not None


def readings(text: str) -> _Readings | None:
    """The absolute and the relative paths that a program may take ``text`` for; often one.

    Both are spelled as written, `..` included, and once more with `..` taken out of the text, since programs do either.
    None: there are more than 64, or the text is a URL too long to be studied. Time is linear in the text.
    """
    if len(text) <= MAX_PATH_BYTES and ".." not in text and "//" not in text and _PLAIN.fullmatch(text):
        return (text,), ()
    if len(text) <= MAX_STUDIED:
        return _studied(text)
    cut = text.partition("\0")[0].strip(_AROUND)
    if len(cut) <= MAX_STUDIED:
        return _studied(cut)
    if _unschemed(cut):
        return None
    return _sorted([text, *_decoded(text), *_slashed(text), *_climbed(text)])


def _studied(text: str) -> _Readings | None:
    found = [text]
    for held in found:  # it grows on the way: what one step gives the others are tried on as well
        for step in (_bare, _cut, _decoded, _slashed, _unschemed, _expanded, _climbed, _composed):
            found += [other for other in step(held) if other not in found]
        if len(found) > MAX_READINGS:
            return None
    return _sorted(found)


def parent_of_glob(path: str) -> str | None:
    """The folder above the first component that is a pattern, where ``path`` has one: all in it may be meant."""
    found = _GLOB.search(path)
    return None if found is None else path[: path.rfind("/", 0, found.start()) + 1] or "."


def _sorted(texts: list[str]) -> _Readings:
    plain = (_one_slash(form) for text in texts for form in ((text, normpath(text)) if text else ()))
    fitting = [form for form in dict.fromkeys(plain) if "\0" not in form and _fits(form)]
    return tuple(f for f in fitting if f.startswith("/")), tuple(f for f in fitting if not f.startswith("/"))


def _one_slash(path: str) -> str:
    return f"/{path.lstrip('/')}" if path.startswith("//") else path


def _fits(path: str) -> bool:
    return len(path) <= MAX_PATH_BYTES and len(path.encode("utf-8", "surrogatepass")) <= MAX_PATH_BYTES


def _bare(text: str) -> list[str]:
    return [text.strip(_AROUND)]


def _cut(text: str) -> list[str]:
    return [text.partition("\0")[0], text.replace("\0", "")] if "\0" in text else []


def _decoded(text: str) -> list[str]:
    once = unquote(text, errors="surrogateescape") if "%" in text else text
    return [once, unquote(once, errors="surrogateescape")] if once != text else []


def _slashed(text: str) -> list[str]:
    return [text.replace("\\", "/")] if "\\" in text else []


def _unschemed(text: str) -> list[str]:
    """What stands behind the scheme of a URL, or behind a drive: with and without a host, a query and a fragment."""
    found = _SCHEME.match(text)
    if found is None or found[1].lower() in _ELSEWHERE:
        return []
    rest = text[found.end() :].replace("\\", "/")
    forms = [rest, *([rest[end.end() :]] if (end := _AUTHORITY.match(rest)) else [])]
    return [cut for form in forms for cut in (form, form.partition("#")[0], form.partition("?")[0])]


def _expanded(text: str) -> list[str]:
    """With `~` and variables put in, as far as this program has them."""
    found: list[str] = []
    if text.startswith("~"):
        home = os.environ.get("HOME") or "/"
        user, slash, rest = text[1:].partition("/")
        found.append(f"{home if not user else f'{os.path.dirname(home)}/{user}'}{slash}{rest}")  # noqa: PTH120
    if _VARIABLE.search(text):
        found.append(_VARIABLE.sub(_value, text, count=MAX_READINGS))
    return found


def _value(found: re.Match[str]) -> str:
    name = found[1] or found[2] or found[3]
    return os.environ.get("HOME" if name == "USERPROFILE" else name, found[0])[:MAX_PATH_BYTES]


def _climbed(text: str) -> list[str]:
    """From the top, where a relative path climbs: it does so from wherever it starts, if it climbs enough."""
    found = _CLIMBING.match(text)
    return [f"/{text[found.end() :]}"] if found is not None and ".." in found[0] else []


def _composed(text: str) -> list[str]:
    return [] if text.isascii() else [unicodedata.normalize("NFC", text)]
