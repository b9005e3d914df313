"""The Console page: decide a call, or run it in a disposable copy.

The page is imported when it is asked for: the window borrows a bar from here long before anybody sees the page.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright_gui.pages.console.page import ConsolePage

__all__ = ["ConsolePage"]


def __getattr__(name: str) -> object:
    if name != "ConsolePage":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from gatewright_gui.pages.console.page import ConsolePage

    return ConsolePage
