"""What makes a row of the policy the same row after edits, whatever they change of it.

Every row that is made has a number of its own, and `dataclasses.replace` and pickling carry it along. It says nothing
of the policy: equal rows may have different numbers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from gatewright.base.errors import EditRefused


class Row(Protocol):
    """What has an identity."""

    @property
    def identity(self) -> int:
        """Its number."""
        ...


new_identity = count(os.getpid() << 40).__next__
"""A number that nothing else has, in this process or in what another one hands over."""


def place_in(rows: Sequence[Row], row: Row, what: str) -> int:
    """Where a row stands among these, whatever edits made of it. ``what``: how to call it where it is gone.

    Raises EditRefused when it is not among them: it was removed, or is of another policy.
    """
    for at, one in enumerate(rows):
        if one.identity == row.identity:
            return at
    raise EditRefused(f"{what} is not there any more")
