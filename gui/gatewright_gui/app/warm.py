"""Reads in what the window needs later: the code of pages and dialogs that nobody has opened yet. It makes no widget.

It is done beside the window, before what comes last; whoever opens a page meanwhile waits for what is missing of it and
for nothing else.
"""

import asyncio
from importlib import import_module

from gatewright.workspace.api import MODULES_NEEDED_LATER
from gatewright_gui.session.document import Document

LATER = (
    *MODULES_NEEDED_LATER,
    "gatewright_gui.pages.agents.limits_pane",
    "gatewright_gui.pages.agents.agent_rules_pane",
    "gatewright_gui.window.palette",
    "gatewright_gui.session.verbs.rights",
    "gatewright_gui.pages.agents.matrix_pane",
    "gatewright_gui.pages.agents.constraint_dialog",
    "gatewright_gui.pages.agents.rights_dialog",
    "gatewright_gui.pages.home",
    "gatewright_gui.pages.console.page",
    "gatewright_gui.pages.memory.page",
    "gatewright_gui.pages.files.page",
    "gatewright_gui.pages.policy.page",
    "gatewright_gui.pages.problems",
    "gatewright_gui.pages.toml.toml_page",
    "gatewright_gui.pages.catalogs.page",
    "gatewright_gui.pages.approvals",
    "gatewright_gui.pages.audit.page",
    "gatewright_gui.window.paletterows",
    "gatewright_gui.window.selfcheck_dialog",
    "gatewright_gui.window.help_dialog",
    "gatewright_gui.window.guard",
    "gatewright_gui.pages.agents.declare_dialog",
)
"""In the order in which one gets there."""


async def warm_up(document: Document) -> None:
    """Import all of it, piece by piece, so that what is asked meanwhile need not wait for the rest; then tidy up."""
    for name in LATER:
        await asyncio.to_thread(import_module, name)
    if document.is_open:
        from gatewright_gui.session.copy import remove_dead

        await asyncio.to_thread(remove_dead, document.workspace)
