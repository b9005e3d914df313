"""The table of pages, in the order of the rail and of Ctrl+1, ..., Ctrl+9. It makes none of them.

All but the one that a window begins with are imported when they are first shown: the window comes up without them.
"""

from gatewright_gui.pages.agents.agents_page import AgentsPage
from gatewright_gui.pages.page import Page, PageContext, PageRow
from gatewright_gui.qt.language import mark


def _home(context: PageContext) -> Page:
    from gatewright_gui.pages.home import HomePage

    return HomePage(context)


def _files(context: PageContext) -> Page:
    from gatewright_gui.pages.files import FilesPage

    return FilesPage(context)


def _policy(context: PageContext) -> Page:
    from gatewright_gui.pages.policy import PolicyPage

    return PolicyPage(context)


def _memory(context: PageContext) -> Page:
    from gatewright_gui.pages.memory import MemoryPage

    return MemoryPage(context)


def _console(context: PageContext) -> Page:
    from gatewright_gui.pages.console import ConsolePage

    return ConsolePage(context)


def _approvals(context: PageContext) -> Page:
    from gatewright_gui.pages.approvals import ApprovalsPage

    return ApprovalsPage(context)


def _toml(context: PageContext) -> Page:
    from gatewright_gui.pages.toml import TomlPage

    return TomlPage(context)


def _problems(context: PageContext) -> Page:
    from gatewright_gui.pages.problems import ProblemsPage

    return ProblemsPage(context)


def _catalogs(context: PageContext) -> Page:
    from gatewright_gui.pages.catalogs import CatalogsPage

    return CatalogsPage(context)


def _audit(context: PageContext) -> Page:
    from gatewright_gui.pages.audit import AuditPage

    return AuditPage(context)


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
    PageRow("agents", "users", mark("Agents"), AgentsPage),
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
