"""Closing a place says by which strangers' tools the folders above it are denied from then on."""

import json
from pathlib import Path

from gatewright.workspace.api import Permission
from gatewright_gui.session.message import Message
from tests.gui.files.support import add_rule, set_level
from tests.gui.session.opened import opened_window, settled
from tests.support.demo import copy_demo


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

        add_rule(document, "tables/", Permission.READ_ONLY)
        set_level(document, 0, Permission.READ_ONLY)
        assert not any("are denied for folders above" in text for text in told)
        set_level(document, 0, Permission.NONE)
        await settled(window)

    [text] = [text for text in told if "are denied for folders above" in text]
    assert text.startswith("list_directory, write_text are denied for folders above what is none in archive")
