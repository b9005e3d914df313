"""Regular expressions of ours that are compiled when one is first used, not when its module is loaded."""

from __future__ import annotations

import re
from typing import cast


def late_regex(pattern: str, flags: re.RegexFlag | int = 0) -> re.Pattern[str]:
    """What ``re.compile`` gives, made at the first use: a process that starts has hundreds and uses a few."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: re.RegexFlag | int) -> None:
        self._written = pattern, flags

    def __getattr__(self, name: str) -> object:
        """Asked once for each method: from then on the object has it."""
        found: object = getattr(re.compile(*self._written), name)
        setattr(self, name, found)
        return found
