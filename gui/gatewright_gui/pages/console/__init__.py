"""The Console page: decide a call, or run it in a disposable copy. It does not decide or run anything itself."""

from gatewright_gui.pages.console.page import ConsolePage

__all__ = ["ConsolePage"]
