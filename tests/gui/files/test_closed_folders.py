"""Closing a place says by which strangers' tools the folders above it are denied from then on."""

import json
from dataclasses import replace
from pathlib import Path

from gatewright.workspace.api import Permission
from gatewright_gui.session.message import Message
from gatewright_gui.session.verbs import sources as verbs
from tests.gui.files.support import add_rule, set_level
from tests.gui.session.opened import opened_window, settled
from tests.support.demo import copy_demo

SAID = "list_directory, write_text are denied for folders above what is none in"


async def test_a_level_of_none_names_the_tools_that_are_denied_above_it(tmp_path: Path) -> None:
    policy = copy_demo(tmp_path / "demo")
    path = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"name": name, "inputSchema": path} for name in ("list_directory", "write_text", "unlisted")]
    (policy.parent / "hub.json").write_text(json.dumps(tools), "utf-8")
    more = '\n[agents.helper]\ntools = ["list_directory", "write_text"]\n\n'
    more += '[[catalogs]]\nid = "hub"\ntype = "host"\nmanifest = "hub.json"\n'
    policy.write_text(policy.read_text("utf-8") + more, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        document, told = window.document, list[str]()

        def hear(message: Message) -> None:
            told.append(message.text)

        document.said.connect(hear)

        def denied() -> list[str]:
            """The messages that were said since, as far as they begin so."""
            said = [text.partition(":")[0] for text in told if text.startswith("list_directory")]
            told.clear()
            return said

        add_rule(document, "tables/", Permission.READ_ONLY)
        set_level(document, 0, Permission.READ_ONLY)
        assert denied() == []
        sources = document.policy.file_sources

        set_level(document, 0, Permission.NONE)
        assert denied() == [f"{SAID} archive"]
        set_level(document, 0, Permission.READ_ONLY)
        assert denied() == []
        assert verbs.set_default_level(document, sources[0], Permission.NONE)
        assert denied() == [f"{SAID} archive"]
        assert verbs.set_default_level(document, sources[0], Permission.READ_ONLY)
        now = document.policy.file_sources[0]
        assert verbs.change_source(document, now, replace(now, default_permission=Permission.NONE))
        assert denied() == [f"{SAID} archive"]
        document.undo_stack.undo()

        before = document.workspace.text()
        typed = f'{before}\n[[sources]]\nid = "shut"\ntype = "file"\nbase_path = "."\ndefault_permission = "none"\n'
        window.draft.type(before, lambda: typed)
        assert await window.draft.apply()
        assert denied() == [f"{SAID} shut"]
        await settled(window)
