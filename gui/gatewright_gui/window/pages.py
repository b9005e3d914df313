"""The table of pages, in the order of the rail and of Ctrl+1, ..., Ctrl+9. It makes none of them.

All but the one that a window begins with are imported when they are first shown: the window comes up without them.
"""

from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.pages.page import Page, PageContext, PageRow
from gatewright_gui.qt.language import mark


def _home(context: PageContext) -> Page:
    from gatewright_gui.pages.home import HomePage

    return HomePage(context)


def _files(context: PageContext) -> Page:
    from gatewright_gui.pages.access.files import FilesPage

    return FilesPage(context)


def _policy(context: PageContext) -> Page:
    from gatewright_gui.pages.access.rules import RulesPage

    return RulesPage(context)


def _memory(context: PageContext) -> Page:
    from gatewright_gui.pages.access.memory import MemoryPage

    return MemoryPage(context)


def _console(context: PageContext) -> Page:
    from gatewright_gui.pages.trial import TrialPage

    return TrialPage(context)


def _approvals(context: PageContext) -> Page:
    from gatewright_gui.pages.activity.approvals import WaitingPage

    return WaitingPage(context)


def _toml(context: PageContext) -> Page:
    from gatewright_gui.pages.policy_file import TextPage

    return TextPage(context)


def _problems(context: PageContext) -> Page:
    from gatewright_gui.pages.policy_file.problems import ProblemsPage

    return ProblemsPage(context)


def _catalogs(context: PageContext) -> Page:
    from gatewright_gui.pages.servers import ServersPage

    return ServersPage(context)


def _audit(context: PageContext) -> Page:
    from gatewright_gui.pages.activity import CallsPage

    return CallsPage(context)


FIRST = "agents"
"""The page that a window begins with."""
PAGES = (
    PageRow(
        "home",
        "shield",
        mark("Home"),
        _home,
        words=mark("am I safe, all agents, risks, what waits, who can do what, calls today, unused rights"),
    ),
    PageRow("agents", "users", mark("Agents"), ToolsPage),
    PageRow("files", "folder-tree", mark("Files"), _files),
    PageRow(
        "policy",
        "scroll-text",
        mark("Policy"),
        _policy,
        words=mark("policy rules for all agents: deny, ask first, amount over"),
    ),
    PageRow("memory", "database", mark("Memory"), _memory),
    PageRow("console", "terminal", mark("Console"), _console),
    PageRow("approvals", "hand", mark("Approvals"), _approvals),
    PageRow(
        "audit",
        "history",
        mark("Audit"),
        _audit,
        words=mark("log of calls: denied, allowed, asked, history, when and why"),
    ),
    PageRow("toml", "file-code", mark("TOML"), _toml, works_without_policy=True),
    PageRow("problems", "triangle-alert", mark("Problems"), _problems, works_without_policy=True),
    PageRow("catalogs", "plug", mark("Catalogs"), _catalogs),
)
