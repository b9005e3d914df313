"""Path prefixes of a capability, compared by whole components of canonical paths. It touches no disk."""

from __future__ import annotations


def check_prefix(text: str) -> str | None:
    """What is wrong with a prefix as written, or None. ``..`` is accepted: the folder it starts from is known later."""
    if not text:
        return "a prefix is empty; `.` is the folder of the policy file"
    if "\0" in text:
        return "a prefix holds a NUL"
    if "\\" in text:
        return "names in a prefix are separated by `/`"
    if text.startswith("~"):
        return "`~` is not expanded in a prefix"
    return None


def covers(prefix: str, path: str) -> bool:
    """Whether ``path`` is ``prefix`` or lies below it; both absolute or both relative, neither with ``..``.

    A path with ``..`` is not canonical and is never covered.
    """
    if prefix.startswith("/") != path.startswith("/"):
        return False
    wanted, given = _parts(prefix), _parts(path)
    if ".." in wanted or ".." in given:
        return False
    return given[: len(wanted)] == wanted


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def common_depth(prefix: str, path: str) -> int:
    """How many leading components both have in common."""
    depth = 0
    for one, other in zip(_parts(prefix), _parts(path), strict=False):
        if one != other:
            break
        depth += 1
    return depth
