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
    "gatewright_gui.pages.access.tools.limits_pane",
    "gatewright_gui.pages.access.tools.agent_rules_pane",
    "gatewright_gui.window.palette",
    "gatewright_gui.session.verbs.rights",
    "gatewright_gui.pages.access.tools.matrix_pane",
    "gatewright_gui.pages.access.tools.constraint_dialog",
    "gatewright_gui.pages.access.tools.rights_dialog",
    "gatewright_gui.pages.home",
    "gatewright_gui.pages.trial.page",
    "gatewright_gui.pages.access.memory.page",
    "gatewright_gui.pages.access.files.page",
    "gatewright_gui.pages.access.rules.page",
    "gatewright_gui.pages.policy_file.problems",
    "gatewright_gui.pages.policy_file.text_page",
    "gatewright_gui.pages.policy_file.settings_pane",
    "gatewright_gui.pages.servers.page",
    "gatewright_gui.pages.activity.page",
    "gatewright_gui.window.palette",
    "gatewright_gui.window.selfcheck_dialog",
    "gatewright_gui.window.help_dialog",
    "gatewright_gui.window.guard",
    "gatewright_gui.pages.access.tools.declare_dialog",
)
"""In the order in which one gets there."""


async def warm_up(document: Document) -> None:
    """Import all of it, piece by piece, so that what is asked meanwhile need not wait for the rest; then tidy up."""
    for name in LATER:
        await asyncio.to_thread(import_module, name)
    if document.is_open:
        from gatewright_gui.session.copy import remove_dead

        await asyncio.to_thread(remove_dead, document.workspace)
