"""The table of places, in the order of the rail and of Ctrl+1, ..., Ctrl+6, each with its tabs. It makes none of them.

All but the one that a window begins with are imported when they are first shown: the window comes up without them.
"""

from gatewright_gui.pages.access.page import AccessPage
from gatewright_gui.pages.page import Page, PageContext, PageRow
from gatewright_gui.qt.language import mark


def _home(context: PageContext) -> Page:
    from gatewright_gui.pages.home import HomePage

    return HomePage(context)


def _tools(context: PageContext) -> Page:
    from gatewright_gui.pages.access.tools.page import ToolsPage

    return ToolsPage(context)


def _files(context: PageContext) -> Page:
    from gatewright_gui.pages.access.files import FilesPage

    return FilesPage(context)


def _rules(context: PageContext) -> Page:
    from gatewright_gui.pages.access.rules import RulesPage

    return RulesPage(context)


def _memory(context: PageContext) -> Page:
    from gatewright_gui.pages.access.memory import MemoryPage

    return MemoryPage(context)


def _try(context: PageContext) -> Page:
    from gatewright_gui.pages.trial.page import TrialPage

    return TrialPage(context)


def _activity(context: PageContext) -> Page:
    from gatewright_gui.pages.activity import ActivityPage

    return ActivityPage(context)


def _servers(context: PageContext) -> Page:
    from gatewright_gui.pages.servers import ServersPage

    return ServersPage(context)


def _policy_file(context: PageContext) -> Page:
    from gatewright_gui.pages.policy_file import PolicyFilePage

    return PolicyFilePage(context, POLICY_FILE)


def _text(context: PageContext) -> Page:
    from gatewright_gui.pages.policy_file import TextPage

    return TextPage(context)


def _problems(context: PageContext) -> Page:
    from gatewright_gui.pages.policy_file.problems import ProblemsPage

    return ProblemsPage(context)


def _settings(context: PageContext) -> Page:
    from gatewright_gui.pages.policy_file.settings_pane import SettingsPage

    return SettingsPage(context)


FIRST = "tools"
"""The page that a window begins with."""
ACCESS = (
    PageRow("tools", "", mark("Tools"), _tools, words=mark("agents, their tools and operations, the matrix")),
    PageRow("files", "", mark("Files"), _files, words=mark("which files, by levels")),
    PageRow(
        "rules", "", mark("Rules"), _rules, words=mark("policy rules for all agents: deny, ask first, amount over")
    ),
    PageRow("memory", "", mark("Memory"), _memory, words=mark("blocks, notes, archive, conversations")),
)
POLICY_FILE = (
    PageRow("text", "", mark("Text"), _text, works_without_policy=True, words=mark("the TOML of the policy")),
    PageRow("problems", "", mark("Problems"), _problems, works_without_policy=True),
    PageRow("settings", "", mark("Settings"), _settings, words=mark("defaults, folders, shell, web, messages")),
)
PAGES = (
    PageRow(
        "home",
        "shield",
        mark("Home"),
        _home,
        words=mark("am I safe, all agents, risks, what waits, who can do what, calls today, unused rights"),
    ),
    PageRow("access", "users", mark("Access"), lambda context: AccessPage(context, ACCESS), tabs=ACCESS),
    PageRow(
        "try",
        "terminal",
        mark("Try"),
        _try,
        words=mark("console: make a call, decide it, run it in a copy"),
        is_read=True,
    ),
    PageRow(
        "activity",
        "history",
        mark("Activity"),
        _activity,
        words=mark("approvals, what waits, standing answers, audit log of calls: denied, allowed, asked, history, why"),
        is_read=True,
    ),
    PageRow("servers", "plug", mark("Servers"), _servers, words=mark("MCP servers, coding agents, clients, catalogs")),
    PageRow(
        "policy_file",
        "file-code",
        mark("Policy file"),
        _policy_file,
        works_without_policy=True,
        tabs=POLICY_FILE,
        at_foot=True,
    ),
)


def all_rows() -> tuple[PageRow, ...]:
    """Return the pages that show something: the tabs of a place, or the place itself."""
    return tuple(one for row in PAGES for one in row.tabs or (row,))
