"""Loads Qt without the hook that PySide puts into `import`: the app uses none of the features that it is for.

The hook reads the source text of every module that is imported from then on, to see whether it names PySide, which
costs as much again as the import itself; and it slows down every import statement inside a function.
"""

import builtins
from importlib import import_module


def load_qt() -> None:
    """Import what every window needs. Where somebody imported it before, it stays as it is."""
    plain = builtins.__import__
    try:
        import_module("PySide6.QtWidgets")
    finally:
        builtins.__import__ = plain
