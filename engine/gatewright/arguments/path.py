"""Paths that models send: their one grammar, and every path on disk for which a program may take a text.

A model's path is relative or absolute and uses ``/`` only. Percent signs, spaces and colons are ordinary characters. A
backslash, NUL, another control character, a URL scheme, a drive letter and a leading ``~`` are refused, because other
readers would not take them for part of a name. ``..`` stays for the resolver, which knows where the base is.

Servers differ in how they read a path: one takes a URL, one expands `~` and variables, one decodes percent signs, one
takes a backslash for a slash. ``readings`` returns what each of them would open, so that no other spelling of a closed
place gets through. The disk tells which of these paths exist.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache
from posixpath import normpath

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.base.pattern import LinearPattern, compile_linear

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
_PLAIN = re.compile(r"[ -9;-\[\]-}]{1,1024}")
"""Printable ASCII without a backslash, `~` and `:`; such a text needs no further check."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HIERARCHICAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/[/\\]?")
_OPAQUE = re.compile(
    r"(?:about|blob|data|dict|expect|file|ftp|git|glob|gopher|https?|jar|javascript|ldaps?|mailto|netdoc|ogg|phar|php|"
    r"s3|sftp|smb|ssh|tftp|urn|vbscript|view-source|wss?|zip|zlib)(?:\+[a-z]+)?:(?!\s)",
    re.IGNORECASE,
)


@frozen
class ModelPath:
    """An accepted path: its components without empty ones and ``.``; ``folder``: the text ended with ``/``."""

    absolute: bool
    parts: tuple[str, ...]
    folder: bool = False

    def __str__(self) -> str:
        return ("/" if self.absolute else "") + ("/".join(self.parts) or ("" if self.absolute else "."))


@frozen
class PathRefused:
    """The reason why a text is not a path. The operator reads ``reason``; a model may see ``hint``, which echoes
    nothing.
    """

    code: str
    reason: str
    hint: str


def parse_model_path(text: str) -> ModelPath | PathRefused:
    """Return the parts of ``text``, or the refusal. Never raises."""
    if _PLAIN.fullmatch(text) is None:
        refused = _refusal(text)
        if refused is not None:
            return refused
    components = text.split("/")
    parts = [part for part in components if part and part != "."]
    if (len(text) > MAX_NAME_BYTES or not text.isascii()) and any(len(p.encode()) > MAX_NAME_BYTES for p in parts):
        return PathRefused(
            "path-too-long", f"a name in the path is longer than {MAX_NAME_BYTES} bytes", "use shorter names"
        )
    return ModelPath(text.startswith("/"), tuple(parts), components[-1] in {"", ".", ".."})


def _refusal(text: str) -> PathRefused | None:
    if not text:
        return PathRefused("path-empty", "the path is empty", "give a path, `.` is the top folder")
    if len(text) > MAX_PATH_BYTES or len(text.encode("utf-8", "replace")) > MAX_PATH_BYTES:
        return PathRefused("path-too-long", f"the path is longer than {MAX_PATH_BYTES} bytes", "use a shorter path")
    if any("\ud800" <= char <= "\udfff" for char in text):
        return PathRefused("path-surrogate", "the path holds half of a surrogate pair", "use ordinary characters")
    control = _CONTROL.search(text)
    if control is not None:
        return PathRefused(
            "path-control",
            f"the path holds the control character U+{ord(control[0]):04X} at position {control.start() + 1}",
            "leave control characters out of the path",
        )
    if "\\" in text:
        where = text.index("\\") + 1
        return PathRefused(
            "path-backslash", f"the path holds a backslash at position {where}", "separate names with `/`"
        )
    if text.startswith("~"):
        return PathRefused("path-home", "the path begins with `~`", "give a path relative to the top folder")
    if ":" in text and (_HIERARCHICAL.match(text) or _OPAQUE.match(text)):
        return PathRefused("path-scheme", "the path begins with a URL scheme or a drive", "give a path, not an address")
    return None


def paths_from(folder: str, text: str) -> tuple[str, ...] | PathRefused:
    """Return the absolute paths that a program in ``folder`` may open for a plain path, `~` included.

    ``..`` comes as written, and resolved in the text, and so do characters that Unicode composes, since programs do
    either; some leave a leading `@` out. Blanks around it are refused: some strip them, and open another path.
    """
    if text.strip(_BLANKS) != text:
        reason = "the path begins or ends with a blank or an unseen character"
        return PathRefused("path-blank", reason, "give the path without blanks around it")
    found: list[str] = []
    forms = (_home() + text[1:], f"./{text}") if text == "~" or text.startswith("~/") else (text,)
    if len(text) > 1 and text[0] == "@":
        forms = (text, text[1:].lstrip("/") or text, text[1:])
    for form in forms if text.isascii() else (*forms, *(unicodedata.normalize("NFC", one) for one in forms)):
        parsed = parse_model_path(form)
        if isinstance(parsed, PathRefused):
            return parsed
        written = "/".join(("" if parsed.absolute else folder.rstrip("/"), *parsed.parts)) or "/"
        found += (written, normpath(written)) if ".." in parsed.parts else (written,)
    return tuple(dict.fromkeys(found))


MAX_READINGS = 64
MAX_STUDIED = 16_384
"""The longest text, in characters, to which every kind of reading is applied; longer texts are shortened first."""
MAX_READ = 8 * MAX_STUDIED
"""The most characters that all forms of one text may have together; it bounds the cost of reading a text."""
MAX_ESCAPES = MAX_STUDIED
"""The most runs of percent signs to decode."""
_Readings = tuple[tuple[str, ...], tuple[str, ...]]
_C0 = "".join(map(chr, range(0x20)))
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_UNSEEN = "\x7f\u180e\u200b\u200c\u200d\u2060\ufeff"
_SIGNS = "\"'`<>()[]{}"
_BLANKS = f"{_C0} \x85{_SPACES}{_UNSEEN}"
_AROUND = f"{_BLANKS}{_SIGNS}"
_EDGE = frozenset(_AROUND)
_TRIMMED = (
    "\t\n\v\f\r ",
    f"\t\n\v\f\r\x1c\x1d\x1e\x1f \x85{_SPACES}",  # Python's strip
    f"\t\n\v\f\r \x85{_SPACES}",  # Go's TrimSpace
    f"\t\n\v\f\r {_SPACES}\ufeff",  # JavaScript's trim
    f"{_C0} ",  # a reader of URLs
    _BLANKS,
    _AROUND,
)
"""Sets of characters that programs strip from both ends of a text."""
_LETTER = r"(?:[A-Za-z0-9+.\-\t\r\n]|%(?:25)*[0-9A-Fa-f]{2})"
_MAY = late_regex(
    rf"[{re.escape(_AROUND)}]*+(?:[/\\~$%]|\.\.?[\t\r\n]*[/\\%]|[A-Za-z]{_LETTER}{{0,30}}?(?::|%(?:25)*3[aA]))"
)
_PLAIN_PATH = late_regex(r"/(?:[A-Za-z0-9_\-+,=@ ()./]*[A-Za-z0-9_\-+,=@.])?", re.ASCII)
"""A path that every reader understands alike, except for `//`, `/.` and blanks at its end."""
_SCHEME = late_regex(r"([A-Za-z][A-Za-z0-9+.\-]{0,30}):(?=[/\\~$%]|[A-Za-z][A-Za-z0-9+.\-]{0,30}:|(?<=(?i:file):))")
_VARIABLE = late_regex(r"\$(?:(\w+)|\{(\w+)\})|%(\w+)%", re.ASCII)
_ESCAPES = late_regex(r"(?:%[0-9A-Fa-f]{2})++")
_AUTHORITY = late_regex(r"//[^/]*")
_ELSEWHERE = frozenset({"http", "https", "ws", "wss", "ftp", "ftps", "ssh", "mailto", "data", "blob", "urn", "tel"})
_HEAD = 96
_BROKEN = {ord(sign): None for sign in "\t\r\n"}
_GLOB = late_regex(r"[*?\[{]")


def may_be_path(text: str) -> bool:
    """Tell from its beginning whether a text as a whole may be an absolute path or the URL of a file."""
    if text[:1].isalpha() and ":" not in (head := text[:_HEAD]) and "%" not in head:
        return False  # most texts end here, after a fraction of the time
    return _MAY.match(text) is not None


def readings(text: str) -> _Readings | None:
    """Return the absolute and the relative paths for which a program may take ``text``; often one.

    Each path comes as written, `..` included, and once more with `..` resolved in the text, since programs do either.
    None means that the text has more than 64 readings, or is too long to find all of them. Time is linear in the text.
    """
    if len(text) <= MAX_PATH_BYTES and "/." not in text and "//" not in text and _PLAIN_PATH.fullmatch(text):
        return (text,), ()
    if len(text) <= MAX_STUDIED:
        return _read_forms([text])
    cut = text.partition("\0")[0].strip(_AROUND)
    if len(cut) <= MAX_STUDIED:
        return _read_forms([cut])
    if _drop_scheme(cut):
        return None
    short = _shorten(cut)
    return None if short is None else _read_forms(short)


def _read_forms(found: list[str]) -> _Readings | None:
    left = MAX_READ
    for held in found:  # it grows meanwhile: every step also runs on the results of the others
        left -= len(held)
        if left < 0 or len(found) > MAX_READINGS:
            return None
        for step in (
            _strip,
            _cut,
            _drop_breaks,
            _decode,
            _turn_backslashes,
            _drop_scheme,
            _url_path,
            _expand,
            _climb,
            _compose,
        ):
            given = step(held)
            if given is None:
                return None
            found += [other for other in given if other not in found]
    return _absolute_and_relative(found)


def _shorten(text: str) -> list[str] | None:
    """Return the short forms of a text that is too long for a path, with detours and escapes resolved.

    If no part climbs, no later part removes an earlier one, so the beginning alone shows that the path is too long.
    """
    begun = text if _climbs(text) else text[: 3 * MAX_STUDIED]
    decoded = _decode(begun)
    if decoded is None:
        return None
    forms = [begun, *decoded]
    forms += [other for form in forms for other in _turn_backslashes(form)]
    ended = [form.partition("\0")[0] for form in forms if "\0" in form]
    if len(begun) < len(text):
        if any(_fits(form, 3) or _fits(normpath(form), 3) for form in forms):
            return None
        forms = []
    forms += ended
    forms += [other for form in forms for other in _climb(form)]
    forms += [normpath(form) for form in forms]
    return list(dict.fromkeys(form for form in forms if len(form) <= MAX_STUDIED))


def _climbs(text: str) -> bool:
    """Tell whether some reading of a long text may contain `..` as a component."""
    if "%" not in text and "\\" not in text and "/.." not in text and not text.startswith(".."):
        return False
    return _climbing().search(text if text.isascii() else text.encode("utf-8", "replace").decode()) is not None


@cache
def _climbing() -> LinearPattern:
    """Return a pattern for `..` as a component, each character plain or escaped once or twice."""
    dot = r"(?:\.|%(?:25)?(?:2|%32)(?:[eE]|%[64]5))"
    slash = r"(?:[/\\]|%(?:25)?(?:(?:2|%32)(?:[fF]|%[64]6)|(?:5|%35)(?:[cC]|%[64]3)))"
    return compile_linear(rf"(?:^|{slash}){dot}{dot}(?:[/\\%]|$)")


def parent_of_glob(path: str) -> str | None:
    """Return the folder above the first component that is a pattern, since a program may mean everything in it; None
    without one.
    """
    found = _GLOB.search(path)
    return None if found is None else path[: path.rfind("/", 0, found.start()) + 1] or "."


def _absolute_and_relative(texts: list[str]) -> _Readings:
    forms = (form for text in texts if text for form in (text, normpath(text)))
    plain = dict.fromkeys(f"/{form.lstrip('/')}" if form.startswith("//") else form for form in forms)
    fitting = [form for form in plain if "\0" not in form and _fits(form)]
    return tuple(f for f in fitting if f.startswith("/")), tuple(f for f in fitting if not f.startswith("/"))


def _fits(path: str, times: int = 1) -> bool:
    most = times * MAX_PATH_BYTES
    return len(path) <= most and len(path.encode("utf-8", "surrogatepass")) <= most


def _strip(text: str) -> list[str]:
    """Strip the characters around a text, once in each way that programs do."""
    if text[:1] not in _EDGE and text[-1:] not in _EDGE:
        return []
    signs = (sign for sign in (text[:1], text[-1:]) if sign in _SIGNS)
    return [text.strip(around) for around in (*_TRIMMED, *signs)]


def _drop_breaks(text: str) -> list[str]:
    """Remove line ends and tabs; readers of URLs do so even in plain paths."""
    return [text.translate(_BROKEN)]


def _cut(text: str) -> list[str]:
    return [text.partition("\0")[0], text.replace("\0", "")] if "\0" in text else []


def _decode(text: str) -> list[str] | None:
    """Decode percent signs once and twice; None if there would be too many of them."""
    found: list[str] = []
    while "%" in text and len(found) < 2:
        once, count = _ESCAPES.subn(_bytes, text, count=MAX_ESCAPES)
        if count == MAX_ESCAPES:
            return None
        if once == text:
            break
        found.append(text := once)
    return found


def _bytes(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode(errors="surrogateescape")


def _turn_backslashes(text: str) -> list[str]:
    return [text.replace("\\", "/")] if "\\" in text else []


def _drop_scheme(text: str) -> list[str]:
    """Return the text behind the scheme of a URL or behind a drive."""
    found = _SCHEME.match(text)
    if found is None or found[1].lower() in _ELSEWHERE:
        return []
    rest = text[found.end() :].replace("\\", "/")
    return [rest, f"/{rest}"] if found[1].lower() == "file" and not rest.startswith("/") else [rest]


def _url_path(text: str) -> list[str]:
    """Return the path as readers of URLs see it: without host, query, fragment and parameters."""
    found = [text[end.end() :]] if (end := _AUTHORITY.match(text)) else []
    return [*found, *(text.partition(sign)[0] for sign in "#?;" if sign in text)]


def _expand(text: str) -> list[str]:
    """Replace `~` and variables by the values that this process has."""
    found: list[str] = []
    if text.startswith("~"):
        home = _home()
        user, slash, rest = text[1:].partition("/")
        found.append(f"{home if not user else f'{os.path.dirname(home)}/{user}'}{slash}{rest}")  # noqa: PTH120
    if _VARIABLE.search(text):
        found.append(_VARIABLE.sub(_value, text, count=MAX_READINGS))
    return found


def _home() -> str:
    return os.environ.get("HOME") or "/"


def _value(found: re.Match[str]) -> str:
    name = found[1] or found[2] or found[3]
    return os.environ.get("HOME" if name == "USERPROFILE" else name, found[0])[:MAX_PATH_BYTES]


def _climb(text: str) -> list[str]:
    """Let a climbing relative path start at the top, since it reaches the top from any folder if it climbs enough."""
    dots = text[: len(text) - len(text.lstrip("./"))].partition("...")[0]
    climbing = dots[: dots.rfind("/") + 1]
    return [f"/{text[len(climbing) :]}"] if text.startswith(".") and ".." in climbing else []


def _compose(text: str) -> list[str]:
    return [compose_letters(text)]


def compose_letters(path: str) -> str:
    """Compose the letters of ``path``, except in names that are too long, since the time grows by the square of a row
    of marks.
    """
    if path.isascii():
        return path
    return "/".join(
        unicodedata.normalize("NFC", name) if len(name) <= 2 * MAX_NAME_BYTES else name for name in path.split("/")
    )
