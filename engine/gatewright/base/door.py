"""How things are loaded late, so that a start pays for what it shows and a library user for what is used.

There are two ways, and no third:

- A package that gathers names of its modules, or a module that gathers them from several packages, is a *door*:
  importing it loads nothing, a name loads its module when it is first asked for. It imports its names for the type
  checker only and says here which module has which; a module of a package is a name like any other.
- What a module needs only to do something rare (a dialog, a call, a save) is imported in the function that does it.

`tests/architecture` keeps the two lists of a door in step and says what a start may load.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType


def door(name: str, names: Mapping[str, tuple[str, ...]]) -> None:
    """Make the package or module (its ``__name__``) a door. ``names``: by full name of the module, what it gives."""
    module = sys.modules[name]
    module.__class__ = _Door
    vars(module)["_homes"] = {one: home for home, given in names.items() for one in given}


class _Door(ModuleType):
    """A name that is a module and also one of ours is ours: ``package.survey`` is the function, whoever was first."""

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> object:
        home = self._homes.get(name)
        if home is None:
            raise AttributeError(f"module `{self.__name__}` has no attribute `{name}`")
        value: object = getattr(__import__(home, fromlist=(name,)), name)
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self._homes):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._homes})
