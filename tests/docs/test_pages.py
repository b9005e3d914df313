"""The documentation says what is true: its commands and snippets are carried out, and what it names is there."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gatewright
from gatewright.base.amount import SystemClock
from gatewright.cli.table import COMMANDS, GROUPS, command_line
from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Source
from gatewright.policyfile import KnownTools
from gatewright.sources.basefolder import base_folder
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from gatewright.tools import ToolRegistry
from gatewright.workspace import Workspace
from tests.docs.page import Run, code_spans, fences
from tests.support.checkout import ROOT

POLICY = """\
gatewright = 1

[agents.reader]
tools = ["counter", "tide"]

[[agents.reader.tool_rules]]
tool_name = "counter"
rule_type = { AllowedOperations = ["show"] }
"""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for name in ("HOME", "GATEWRIGHT_KEYS"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return folder


def as_it_is(_: Path) -> Iterator[dict[str, Any]]:
    yield {}


def with_inbox(folder: Path) -> Iterator[dict[str, Any]]:
    (folder / "inbox").mkdir()
    text = 'gatewright = 1\n[[sources]]\nid = "inbox"\ntype = "folder_changes"\nbase_path = "inbox"\n'
    (folder / "policy.toml").write_text(text, "utf-8")
    writing = threading.Timer(0.5, (folder / "inbox" / "a.txt").write_text, ("new",))
    with Workspace.open(folder) as workspace:
        writing.start()
        yield {"workspace": workspace}
    writing.join()


def with_policy(folder: Path) -> Iterator[dict[str, Any]]:
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    yield {}


BEFORE: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
    "policy.md": with_inbox,
    "tools.md": with_policy,
}
"""What a page takes for granted."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_so(page: Path, place: Path) -> None:
    sys.modules.pop("tools", None)
    for names in BEFORE.get(page.name, as_it_is)(place):
        run = Run(page, place, names)
        run.all()
        if page.name == "tools.md":
            check_tools(run.names, run.printed)


def check_tools(names: dict[str, Any], printed: str) -> None:
    """What the page on tools says in words of what its Python makes."""
    shown = {tool["name"]: tool["inputSchema"] for tool in names["shown"]}
    assert shown["counter"]["properties"]["op"]["enum"] == ["show"]
    assert "by" not in shown["counter"]["properties"]
    assert not re.search(r"\badd\b", str(shown["counter"]))
    assert shown["tide"]["properties"]["days"]["maximum"] == 14
    assert names["decision"].verdict == "allow"
    assert names["outcome"].output == '{"value":0}'
    assert asyncio.run(names["tide"].function("Husum")) == {"metres": 2.4, "days": 1}
    assert printed.startswith("/2 broken the tool has no `inputSchema`\n2 tools; ## Tool Usage Rules")
    assert [held.name for held in names["elsewhere"].tools()] == ["issues", "shell"]
    assert names["closed"].input_schema()["properties"]["command"]["enum"] == ["status", "restart"]
    assert "delete_issue" not in str([names["narrow"].input_schema(), names["narrow"].description_for({"get_issue"})])
    assert not names["plain"].has_operations
    assert [spec.name for spec in names["valve"].with_listed_operations().operations] == ["status"]
    assert 'allowed {"days":1,"metres":2.4} True\nallowed {"value":0} True\n' in printed
    lines = printed.splitlines()
    assert lines[-9:-7] == ["Tool execution failed: `op` must be one of `show`", "allowed 2"]
    assert lines[-7:-5] == ["tool-not-listed", "the program has withdrawn `wind`"]
    assert lines[-5] == '["open/1"]'
    assert '"content":"ten chairs"' in lines[-4]
    assert lines[-3].startswith("Tool execution failed: ")
    assert "`letters` is stopped" in lines[-2]
    assert lines[-1] == "(('7', <ChangeKind.ADDED: 'added'>),)"
    with closing(gatewright.Workspace.open("policy.toml", tools=[names["tide"], names["Counter"]()])) as workspace:
        assert workspace.sessions.list(agent_id="reader") == ("night-7",)
        assert workspace.session("reader", "night-7").calls("tide") == 2


def test_every_command_and_option_that_the_pages_name_is_there() -> None:
    tree: Any = command_line([*COMMANDS, *GROUPS])
    named = 0
    for page in PAGES:
        synopses = [line for one in fences(page) if one.language in {"", "text"} for line in one.text.splitlines()]
        for text in [*code_spans(page), *synopses]:
            words = text.replace("[", " ").replace("]", " ").split()
            if words[:1] == ["gatewright"] and words[1:2] and re.fullmatch(r"[a-z-]+(\|[a-z-]+)*", words[1]):
                check_words(tree, words[1:], f"{page.name}: {text}")
                named += 1
    assert named > 35


def check_words(tree: Any, words: list[str], place: str) -> None:
    if words[0] in {"gui", "[gui]"}:
        return
    assert words[0] in tree.commands, place
    found = [tree.commands[words[0]]]
    if words[0] in GROUPS:
        if len(words) == 1:
            return
        found = [found[0].commands.get(name) for name in words[1].split("|")]
        assert all(found), place
    options = {option for one in found for parameter in one.params for option in parameter.opts}
    options |= {"--env", "--policy"} if words[0] == "serve" else set()
    own = words[: words.index("--")] if "--" in words else words
    for word in own:
        if word.startswith("--"):
            assert word.partition("=")[0].rstrip(",.") in {*options, "--help", "--json"}, (place, word)


def test_the_guides_tool_with_a_path_reads_below_its_source_only(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("one two three\n", encoding="utf-8")
    run = Run(ROOT / "docs/tools.md", tmp_path)
    python = [one.text for one in fences(run.page) if one.language == "python"]
    last = next(at for at, text in enumerate(python) if "class WordCount(Tool)" in text)
    for text in python[: last + 1]:
        run.python(text)
    words = run.names["WordCount"]()
    registry = ToolRegistry()
    blocks = BlockStore(tmp_path / "state" / "memory.sqlite")
    sources = SourceManager(lambda: registry.register(words), blocks, Protection())
    sources.follow([(Source("docs", "docs"), base_folder(tmp_path / "docs"))])
    (tmp_path / "policy.toml").write_text(
        'gatewright = 1\n[agents.a]\n[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n', encoding="utf-8"
    )
    known = KnownTools(registry.facts())
    policy = gatewright.load_policy(tmp_path / "policy.toml", known=known)
    gate = gatewright.Gate(policy, registry, ports=gatewright.Ports(sources), clock=SystemClock())
    counted = asyncio.run(gate.call("a", "words", {"op": "count", "path": "./a.md"}))
    assert counted.output == '{"words":3}'
    assert gate.decide("a", "words", {"op": "count", "path": "../policy.toml"}).stage == "arguments"
    blocks.close()


def test_type_checkers_may_read_the_types_of_the_package() -> None:
    assert (ROOT / "engine/gatewright/py.typed").is_file()


def test_every_name_of_the_public_face_can_be_had_and_no_other() -> None:
    for name in gatewright.__all__:
        assert getattr(gatewright, name) is not None
    with pytest.raises(AttributeError, match="no attribute `frobnicate`"):
        _ = gatewright.frobnicate


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import sys, gatewright; print([name for name in sys.modules if name.startswith('gatewright.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
