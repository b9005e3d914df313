"""The grammar of a path that a model sends: what is a path at all, and its parts.

Relative or absolute, ``/`` only. Percent signs, spaces and colons are ordinary characters; a backslash, NUL, another
control character, a URL scheme, a drive letter and a leading ``~`` are refused, since other readers would take them
for something else than a name. ``..`` is kept for the resolver, which knows where the base is.
"""

from __future__ import annotations

import re

from gatewright.base.frozen import frozen

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
