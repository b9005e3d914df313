"""How the program keeps records of its own: the one way to open what lies in a state or key folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.record.database import Database
    from gatewright.record.folder import PrivateFolder

__all__ = ["Database", "PrivateFolder"]

door(
    __name__,
    {
        "gatewright.record.database": ("Database",),
        "gatewright.record.folder": ("PrivateFolder",),
    },
)
