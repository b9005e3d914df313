"""The pattern of paths below one folder, and the folder back from such a pattern."""

from __future__ import annotations

import re

_NAME = r"([^/\\.][^/\\]*|\.[^/\\.][^/\\]*|\.\.[^/\\]+)"
"""One name in a path: neither `.` nor `..`, nor empty."""
_BELOW = f"(/{_NAME})+$"
"""What follows the folder in a path below it."""


def folder_pattern(folder: str) -> str:
    """The pattern of paths below a folder that lead nowhere else: no name in them is `..`."""
    escaped = re.sub(r"([^\w/ -])", r"\\\1", folder)
    return f"^{escaped}{_BELOW}"


def is_folder(text: str) -> bool:
    """Whether a text names a folder by names that lead down only; it may begin at the top."""
    return all(name not in {"", ".", ".."} for name in text.removeprefix("/").split("/"))


def folder_of(pattern: object) -> str | None:
    """The folder that `folder_pattern` made a pattern of; None for any other value."""
    if not isinstance(pattern, str) or not pattern.startswith("^") or not pattern.endswith(_BELOW):
        return None
    folder = re.sub(r"\\(.)", r"\1", pattern[1 : -len(_BELOW)])
    return folder if is_folder(folder) and folder_pattern(folder) == pattern else None
