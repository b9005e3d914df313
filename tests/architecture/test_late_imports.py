"""Late imports, under `TYPE_CHECKING` or in a function, all listed here: only what a start measurably need not load.

A module stays late where it would add a module to what `decide`, `check`, `serve` or the window load at their start,
close a cycle, or need an extra or a platform. The doors (`__init__`, `workspace.api`) load names at their first use.
"""

import ast
import re
from pathlib import Path

from tests.support.checkout import modules

LATE = {
    "a library that few runs need": (
        "gatewright.adapters.bubblewrap",
        "gatewright.adapters.mcp_client",
        "gatewright.adapters.mcp_transport",
        "gatewright.adapters.telemetry",
        "gatewright.adapters.web",
        "gatewright.adapters.web_page",
        "gatewright.arguments.shell",
        "gatewright.arguments.shell_judge",
        "gatewright.arguments.shell_word",
        "gatewright.arguments.url",
        "gatewright.base.late",
        "gatewright.memory.embedding",
        "gatewright.memory.notes",
        "gatewright.policy.glob",
        "gatewright.policy.rule",
        "gatewright.schema.check",
        "gatewright.sources.watch",
    ),
    "a platform, or a program that starts with the standard library alone": (
        "gatewright.adapters.confined_cover",
        "gatewright.adapters.confined_init",
        "gatewright.adapters.hook_exchange",
        "gatewright.record.folder",
        "gatewright.workspace.sandbox",
    ),
    "a command loads its own room": (
        "gatewright.cli.catalog",
        "gatewright.cli.main",
        "gatewright.cli.memory",
        "gatewright.cli.policy",
        "gatewright.cli.serve",
        "gatewright.cli.table",
    ),
    "a part that `decide` or `check` never reaches": (
        "gatewright.adapters.client_notation",
        "gatewright.adapters.mcp_call",
        "gatewright.adapters.mcp_server",
        "gatewright.compile.agent",
        "gatewright.compile.plan",
        "gatewright.compile.snapshot",
        "gatewright.compile.view",
        "gatewright.gate.broker",
        "gatewright.gate.gate",
        "gatewright.gate.inforce",
        "gatewright.memory.agentblocks",
        "gatewright.policyfile.names",
        "gatewright.policyfile.reader",
        "gatewright.sources.manager",
        "gatewright.sources.rootfolder",
        "gatewright.tools.context",
        "gatewright.tools.define",
        "gatewright.tools.shape",
        "gatewright.workspace.assembly",
        "gatewright.workspace.attachment",
        "gatewright.workspace.catalog",
        "gatewright.workspace.pins",
        "gatewright.workspace.gateway",
        "gatewright.workspace.hooks",
        "gatewright.workspace.pins",
        "gatewright.workspace.policytext",
        "gatewright.workspace.template",
        "gatewright.workspace.workspace",
    ),
    "a part of the window that is built when it is first shown": (
        "gatewright_gui.app.main",
        "gatewright_gui.app.warm",
        "gatewright_gui.pages.access.agent_pane",
        "gatewright_gui.pages.access.tools.page",
        "gatewright_gui.pages.access.tools.declare_menu",
        "gatewright_gui.pages.access.tools.inspector",
        "gatewright_gui.pages.access.tools.limits_pane",
        "gatewright_gui.pages.access.tools.rights_menu",
        "gatewright_gui.pages.access.tools.tool_pane",
        "gatewright_gui.pages.access.tools.tool_view",
        "gatewright_gui.session.calls",
        "gatewright_gui.session.condition",
        "gatewright_gui.session.context",
        "gatewright_gui.session.draft",
        "gatewright_gui.session.exporting",
        "gatewright_gui.session.file_index",
        "gatewright_gui.session.opening",
        "gatewright_gui.session.preview",
        "gatewright_gui.session.readings",
        "gatewright_gui.session.selfcheck",
        "gatewright_gui.session.watch",
        "gatewright_gui.session.tokens",
        "gatewright_gui.session.verbs.file",
        "gatewright_gui.session.verbs.presets",
        "gatewright_gui.session.verbs.rights",
        "gatewright_gui.window.first_steps",
        "gatewright_gui.window.guard",
        "gatewright_gui.window.impact_strip",
        "gatewright_gui.window.main_window",
        "gatewright_gui.window.pages",
        "gatewright_gui.window.welcome",
    ),
}


def is_late(source: str) -> bool:
    """Tell whether a module imports something under `TYPE_CHECKING` or in a function."""
    if re.search(r"^\s+(?:from|import)\s", source, re.MULTILINE) is None:
        return False  # nothing to parse
    return any(is_apart(node) and has_import(node) for node in ast.walk(ast.parse(source)))


def is_apart(node: ast.AST) -> bool:
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))


def has_import(node: ast.AST) -> bool:
    return any(isinstance(child, ast.Import | ast.ImportFrom) for child in ast.walk(node))


def is_door(name: str, path: Path) -> bool:
    return name == "gatewright.workspace.api" or path.name == "__init__.py"


def test_every_module_that_imports_late_is_listed_with_the_reason_and_no_other() -> None:
    listed = {module for group in LATE.values() for module in group}
    found = {name for name, path in modules() if is_late(path.read_text("utf-8")) and not is_door(name, path)}
    assert found - listed == set()
    assert listed - found == set()


def test_late_imports_are_seen() -> None:
    assert is_late("def f():\n    import re\n")
    assert is_late("if TYPE_CHECKING:\n    import re\n")
    assert not is_late("import re\n")
