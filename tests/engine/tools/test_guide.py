"""The guides say what is true: their Python runs as it is printed, in order."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gatewright
from gatewright.base.clock import SystemClock
from gatewright.memory import BlockStore
from gatewright.policy.document import Source
from gatewright.policyfile import KnownTools
from gatewright.sources import Protection, SourceManager
from gatewright.tools import ToolRegistry
from gatewright.workspace import create_workspace
from tests.support.checkout import ROOT

POLICY = """\
gatewright = 1

[agents.reader]
tools = ["counter", "tide"]

[[agents.reader.tool_rules]]
tool_name = "counter"
rule_type = { AllowedOperations = ["show"] }
"""


def snippets(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


def ran(code: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "guide"}
    for piece in code:
        exec(compile(piece, "guide", "exec", dont_inherit=True), names)
    return names


def test_the_guide_on_tools_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    names = ran(snippets("docs/tools.md"))
    shown = {tool["name"]: tool["inputSchema"] for tool in names["shown"]}
    assert shown["counter"]["properties"]["op"]["enum"] == ["show"]
    assert "by" not in shown["counter"]["properties"]
    assert not re.search(r"\badd\b", str(shown["counter"]))
    assert shown["tide"]["properties"]["days"]["maximum"] == 14
    assert names["decision"].verdict == "allow"
    assert names["outcome"].output == '{"value":0}'
    assert asyncio.run(names["tide"].function("Husum")) == {"metres": 2.4, "days": 1}
    printed = capsys.readouterr().out
    assert printed.startswith("/2 broken the tool has no `inputSchema`\n2 tools; ## Tool Usage Rules")
    assert [held.name for held in names["elsewhere"].tools()] == ["issues", "shell"]
    assert names["closed"].input_schema()["properties"]["command"]["enum"] == ["status", "restart"]
    assert "delete_issue" not in str([names["narrow"].input_schema(), names["narrow"].description_for({"get_issue"})])
    assert not names["plain"].has_operations
    assert [spec.name for spec in names["valve"].with_listed_operations().operations] == ["status"]
    assert 'allowed {"days":1,"metres":2.4} True\nallowed {"value":0} True\n' in printed
    assert printed.splitlines()[-2:] == ["Tool execution failed: `op` must be one of `show`", "allowed 2"]
    with closing(gatewright.Workspace.open("policy.toml", tools=[names["tide"], names["Counter"]()])) as workspace:
        assert workspace.sessions.list(agent_id="reader") == ("night-7",)
        assert workspace.session("reader", "night-7").calls("tide") == 2


def test_the_guides_tool_with_a_path_reads_below_its_source_only(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("one two three\n", encoding="utf-8")
    words = ran(snippets("docs/tools.md")[:4])["WordCount"]()
    registry = ToolRegistry()
    blocks = BlockStore(tmp_path / "state" / "memory.sqlite")
    sources = SourceManager(lambda: registry.register(words), blocks, Protection())
    sources.start(Source("docs", "docs"), tmp_path / "docs")
    (tmp_path / "policy.toml").write_text(
        'gatewright = 1\n[agents.a]\n[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n', encoding="utf-8"
    )
    known = KnownTools(registry.facts())
    policy = gatewright.load_policy(tmp_path / "policy.toml", known=known)
    gate = gatewright.Gate(policy, registry, sources=sources, clock=SystemClock())
    counted = asyncio.run(gate.call("a", "words", {"op": "count", "path": "./a.md"}))
    assert counted.output == '{"words":3}'
    assert gate.decide("a", "words", {"op": "count", "path": "../policy.toml"}).stage == "arguments"
    blocks.close()


def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    create_workspace(tmp_path / "my-workspace", "demo")
    short, whole = [_ran_async(code) for code in snippets("README.md")]
    for found in (short, whole):
        assert [tool["name"] for tool in found["tools"]]
        assert "species" in found["outcome"].output
    assert whole["decision"].verdict == "allow"
    assert whole["workspace"].session("archivist", "chat-17").calls("file") == 1
    whole["workspace"].close()


def _ran_async(code: str) -> dict[str, Any]:
    body = "".join(f"    {line}\n" for line in code.splitlines())
    return asyncio.run(ran([f"async def example():\n{body}    return locals()\n"])["example"]())


def test_type_checkers_may_read_the_types_of_the_package() -> None:
    assert (ROOT / "engine/gatewright/py.typed").is_file()


def test_every_name_of_the_public_face_can_be_had_and_no_other() -> None:
    for name in gatewright.__all__:
        assert getattr(gatewright, name) is not None
    with pytest.raises(AttributeError, match="no attribute `frobnicate`"):
        _ = gatewright.frobnicate


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import sys, gatewright; print([name for name in sys.modules if name.startswith('gatewright.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
