"""How the program keeps records of its own: the one way to open what lies in a state or key folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.record.database import Database
    from gatewright.record.folder import PrivateFolder
    from gatewright.record.fork import renew_after_fork

__all__ = ["Database", "PrivateFolder", "renew_after_fork"]

door(
    __name__,
    {
        "gatewright.record.database": ("Database",),
        "gatewright.record.folder": ("PrivateFolder",),
        "gatewright.record.fork": ("renew_after_fork",),
    },
)
