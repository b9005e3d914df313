"""The page Home: the answer to *am I safe?*, what waits, what could hurt, who can do what, and what nobody uses."""

from gatewright_gui.pages.home.page import HomePage

__all__ = ["HomePage"]
