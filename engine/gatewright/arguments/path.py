"""Paths: the grammar of one that a model sends, and every path on disk that some program may take a text for.

A model's path is relative or absolute, with ``/`` only. Percent signs, spaces and colons are ordinary characters; a
backslash, NUL, another control character, a URL scheme, a drive letter and a leading ``~`` are refused, since other
readers would take them for something else than a name. ``..`` is kept for the resolver, which knows where the base is.

Servers differ in what they take for a path: one takes a URL, one expands `~` and variables, one decodes percent signs,
one takes a backslash for a slash. ``readings`` gives what each of them would open, so that no other spelling of a
closed place is let through; which of it is there, the disk says.
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
"""Printable ASCII without a backslash, `~` and `:`: no more need be asked of it."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HIERARCHICAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/[/\\]?")
_OPAQUE = re.compile(
    r"(?:about|blob|data|dict|expect|file|ftp|git|glob|gopher|https?|jar|javascript|ldaps?|mailto|netdoc|ogg|phar|php|"
    r"s3|sftp|smb|ssh|tftp|urn|vbscript|view-source|wss?|zip|zlib)(?:\+[a-z]+)?:(?!\s)",
    re.IGNORECASE,
)


@frozen
class ModelPath:
    """An accepted path: its components without empty ones and ``.``; ``folder``: written with a ``/`` last."""

    absolute: bool
    parts: tuple[str, ...]
    folder: bool = False

    def __str__(self) -> str:
        return ("/" if self.absolute else "") + ("/".join(self.parts) or ("" if self.absolute else "."))


@frozen
class PathRefused:
    """Why a text is no path. ``reason`` is the operator's; ``hint`` is safe to show the model and echoes nothing."""

    code: str
    reason: str
    hint: str


def parse_model_path(text: str) -> ModelPath | PathRefused:
    """The parts of ``text``, or why it is refused. Never raises."""
    if _PLAIN.fullmatch(text) is None:
        refused = _refusal(text)
        if refused is not None:
            return refused
    components = text.split("/")
    parts = tuple([part for part in components if part and part != "."])
    if (len(text) > MAX_NAME_BYTES or not text.isascii()) and any(len(p.encode()) > MAX_NAME_BYTES for p in parts):
        return PathRefused(
            "path-too-long", f"a name in the path is longer than {MAX_NAME_BYTES} bytes", "use shorter names"
        )
    return ModelPath(text.startswith("/"), parts, components[-1] in {"", ".", ".."})


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


MAX_READINGS = 64
MAX_STUDIED = 16_384
"""Characters of a text whose forms are tried on each other; a longer one is made short first, if it can be."""
MAX_READ = 8 * MAX_STUDIED
"""Characters of all forms of one text together: what reading it may cost."""
MAX_ESCAPES = MAX_STUDIED
"""Stretches of percent signs that are decoded."""
_Readings = tuple[tuple[str, ...], tuple[str, ...]]
_C0 = "".join(map(chr, range(0x20)))
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_UNSEEN = "\x7f\u180e\u200b\u200c\u200d\u2060\ufeff"
_SIGNS = "\"'`<>()[]{}"
_AROUND = f"{_C0} \x85{_SPACES}{_UNSEEN}{_SIGNS}"
_EDGE = frozenset(_AROUND)
_TRIMMED = (
    "\t\n\v\f\r ",
    f"\t\n\v\f\r\x1c\x1d\x1e\x1f \x85{_SPACES}",  # Python's strip
    f"\t\n\v\f\r \x85{_SPACES}",  # Go's TrimSpace
    f"\t\n\v\f\r {_SPACES}\ufeff",  # JavaScript's trim
    f"{_C0} ",  # a reader of URLs
    f"{_C0} \x85{_SPACES}{_UNSEEN}",
    _AROUND,
)
"""Characters that programs take off both ends of a text."""
_LETTER = r"(?:[A-Za-z0-9+.\-\t\r\n]|%(?:25)*[0-9A-Fa-f]{2})"
_MAY = late_regex(
    rf"[{re.escape(_AROUND)}]*+(?:[/\\~$%]|\.\.?[\t\r\n]*[/\\%]|[A-Za-z]{_LETTER}{{0,30}}?(?::|%(?:25)*3[aA]))"
)
_PLAIN_PATH = late_regex(r"/(?:[A-Za-z0-9_\-+,=@ ()./]*[A-Za-z0-9_\-+,=@.])?", re.ASCII)
"""Nothing in it is read in two ways, but `//`, `/.` and blanks at its end."""
_SCHEME = late_regex(r"([A-Za-z][A-Za-z0-9+.\-]{0,30}):(?=[/\\~$%]|[A-Za-z][A-Za-z0-9+.\-]{0,30}:|(?<=(?i:file):))")
_VARIABLE = late_regex(r"\$(?:(\w+)|\{(\w+)\})|%(\w+)%", re.ASCII)
_ESCAPES = late_regex(r"(?:%[0-9A-Fa-f]{2})++")
_AUTHORITY = late_regex(r"//[^/]*")
_ELSEWHERE = frozenset({"http", "https", "ws", "wss", "ftp", "ftps", "ssh", "mailto", "data", "blob", "urn", "tel"})
_HEAD = 96
_BROKEN = {ord(sign): None for sign in "\t\r\n"}
_GLOB = late_regex(r"[*?\[{]")


def may_be_path(text: str) -> bool:
    """Whether a whole text may be an absolute path or a URL of a file, judged by how it begins."""
    if text[:1].isalpha() and ":" not in (head := text[:_HEAD]) and "%" not in head:
        return False  # most texts, in a fraction of the time
    return _MAY.match(text) is not None


def readings(text: str) -> _Readings | None:
    """The absolute and the relative paths that a program may take ``text`` for; often one.

    Both are spelled as written, `..` included, and once more with `..` taken out of the text, since programs do either.
    None: there are more than 64, or it is too long for all of them to be found. Time is linear in the text.
    """
    if len(text) <= MAX_PATH_BYTES and "/." not in text and "//" not in text and _PLAIN_PATH.fullmatch(text):
        return (text,), ()
    if len(text) <= MAX_STUDIED:
        return _studied([text])
    cut = text.partition("\0")[0].strip(_AROUND)
    if len(cut) <= MAX_STUDIED:
        return _studied([cut])
    if _unschemed(cut):
        return None
    short = _shortened(cut)
    return None if short is None else _studied(short)


def _studied(found: list[str]) -> _Readings | None:
    left = MAX_READ
    for held in found:  # it grows on the way: what one step gives the others are tried on as well
        left -= len(held)
        if left < 0 or len(found) > MAX_READINGS:
            return None
        for step in (
            _bare,
            _cut,
            _without_breaks,
            _decoded,
            _slashed,
            _unschemed,
            _path_alone,
            _expanded,
            _climbed,
            _composed,
        ):
            given = step(held)
            if given is None:
                return None
            found += [other for other in given if other not in found]
    return _sorted(found)


def _shortened(text: str) -> list[str] | None:
    """What a text that is too long for a path comes to where detours and escapes are taken out of it, if that is short.

    Where nothing climbs, nothing takes away what stands before it: then the beginning tells that it is too long.
    """
    begun = text if _climbs(text) else text[: 3 * MAX_STUDIED]
    decoded = _decoded(begun)
    if decoded is None:
        return None
    forms = [begun, *decoded]
    forms += [other for form in forms for other in _slashed(form)]
    ended = [form.partition("\0")[0] for form in forms if "\0" in form]
    if len(begun) < len(text):
        if any(_fits(form, 3) or _fits(normpath(form), 3) for form in forms):
            return None
        forms = []
    forms += ended
    forms += [other for form in forms for other in _climbed(form)]
    forms += [normpath(form) for form in forms]
    return list(dict.fromkeys(form for form in forms if len(form) <= MAX_STUDIED))


def _climbs(text: str) -> bool:
    """Whether some reading of a long text may hold `..` as a component."""
    if "%" not in text and "\\" not in text and "/.." not in text and not text.startswith(".."):
        return False
    return _climbing().search(text if text.isascii() else text.encode("utf-8", "replace").decode()) is not None


@cache
def _climbing() -> LinearPattern:
    """Each character as it is, or escaped once or twice."""
    dot = r"(?:\.|%(?:25)?(?:2|%32)(?:[eE]|%[64]5))"
    slash = r"(?:[/\\]|%(?:25)?(?:(?:2|%32)(?:[fF]|%[64]6)|(?:5|%35)(?:[cC]|%[64]3)))"
    return compile_linear(rf"(?:^|{slash}){dot}{dot}(?:[/\\%]|$)")


def parent_of_glob(path: str) -> str | None:
    """The folder above the first component that is a pattern, where ``path`` has one: all in it may be meant."""
    found = _GLOB.search(path)
    return None if found is None else path[: path.rfind("/", 0, found.start()) + 1] or "."


def _sorted(texts: list[str]) -> _Readings:
    forms = (form for text in texts if text for form in (text, normpath(text)))
    plain = dict.fromkeys(f"/{form.lstrip('/')}" if form.startswith("//") else form for form in forms)
    fitting = [form for form in plain if "\0" not in form and _fits(form)]
    return tuple(f for f in fitting if f.startswith("/")), tuple(f for f in fitting if not f.startswith("/"))


def _fits(path: str, times: int = 1) -> bool:
    most = times * MAX_PATH_BYTES
    return len(path) <= most and len(path.encode("utf-8", "surrogatepass")) <= most


def _bare(text: str) -> list[str]:
    """Without what stands around it, as each kind of program takes it off."""
    if text[:1] not in _EDGE and text[-1:] not in _EDGE:
        return []
    signs = (sign for sign in (text[:1], text[-1:]) if sign in _SIGNS)
    return [text.strip(around) for around in (*_TRIMMED, *signs)]


def _without_breaks(text: str) -> list[str]:
    """Without line ends and tabs, which readers of URLs leave out, of plain paths too."""
    return [text.translate(_BROKEN)]


def _cut(text: str) -> list[str]:
    return [text.partition("\0")[0], text.replace("\0", "")] if "\0" in text else []


def _decoded(text: str) -> list[str] | None:
    """With percent signs decoded, and that once more; None where there are too many of them."""
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


def _slashed(text: str) -> list[str]:
    return [text.replace("\\", "/")] if "\\" in text else []


def _unschemed(text: str) -> list[str]:
    """What stands behind the scheme of a URL, or behind a drive."""
    found = _SCHEME.match(text)
    if found is None or found[1].lower() in _ELSEWHERE:
        return []
    rest = text[found.end() :].replace("\\", "/")
    return [rest, f"/{rest}"] if found[1].lower() == "file" and not rest.startswith("/") else [rest]


def _path_alone(text: str) -> list[str]:
    """What a reader of URLs takes for the path: without a host, a query, a fragment and parameters."""
    found = [text[end.end() :]] if (end := _AUTHORITY.match(text)) else []
    return [*found, *(text.partition(sign)[0] for sign in "#?;" if sign in text)]


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
    dots = text[: len(text) - len(text.lstrip("./"))].partition("...")[0]
    climbing = dots[: dots.rfind("/") + 1]
    return [f"/{text[len(climbing) :]}"] if text.startswith(".") and ".." in climbing else []


def _composed(text: str) -> list[str]:
    return [composed(text)]


def composed(path: str) -> str:
    """``path`` with composed letters, but in what is too long for a name: the time is quadratic in a row of marks."""
    if path.isascii():
        return path
    return "/".join(
        unicodedata.normalize("NFC", name) if len(name) <= 2 * MAX_NAME_BYTES else name for name in path.split("/")
    )
