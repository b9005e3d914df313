"""The table of pages, in the order of the rail and of Ctrl+1, Ctrl+2, ... It makes none of them."""

from gatewright_gui.pages.agents import AgentsPage
from gatewright_gui.pages.console import ConsolePage
from gatewright_gui.pages.files import FilesPage
from gatewright_gui.pages.page import PageRow
from gatewright_gui.pages.problems import ProblemsPage
from gatewright_gui.pages.toml import TomlPage

PAGES = (
    PageRow("agents", "users", "Agents", AgentsPage),
    PageRow("files", "folder-tree", "Files", FilesPage),
    PageRow("console", "terminal", "Console", ConsolePage),
    PageRow("toml", "file-code", "TOML", TomlPage, works_without_policy=True),
    PageRow("problems", "triangle-alert", "Problems", ProblemsPage, works_without_policy=True),
)
