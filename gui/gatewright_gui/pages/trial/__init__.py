"""The Console page: decide a call, or run it in a disposable copy.

The page is imported when it is asked for: the window borrows a bar from here long before anybody sees the page.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright_gui.pages.trial.page import TrialPage

__all__ = ["TrialPage"]


def __getattr__(name: str) -> object:
    if name != "TrialPage":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from gatewright_gui.pages.trial.page import TrialPage

    return TrialPage
