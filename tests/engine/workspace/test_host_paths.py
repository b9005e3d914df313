"""Paths that coding agents name have the same levels as for the tool `file`, however they are spelled."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path

import pytest

from gatewright.adapters.hosts import HOST_IDS
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict
from gatewright.tools.context import ToolExecutionContext
from gatewright.workspace import Workspace
from gatewright_resources import folder as resources

LEVELS = ("none", "read_only", "ask", "partner", "append", "read_write", "admin")
NAMES = ("a", "b", ".env", "c d", "é", "*", "{x}", "e[1]", "f.py")
PATTERNS = ("a", "/b", "*.py", ".env", "a/**", "**/b", "c d/", "é", "/e[[]1]", "b/a", "*")
PATHS = 2_000
DENY = Verdict.DENY


def policy(dice: random.Random) -> str:
    rows = ", ".join(
        f"{{ pattern = '{pattern}', permission = '{dice.choice(LEVELS)}' }}"
        for pattern in dice.sample(PATTERNS, dice.randrange(1, 5))
    )
    return f"""gatewright = 1

[agents.coder]
sources = ["project"]

[[sources]]
id = "project"
type = "file"
base_path = "project"
default_permission = "{dice.choice(LEVELS)}"
permission_rules = [{rows}]
"""


def grow(folder: Path, dice: random.Random, depth: int = 3) -> None:
    folder.mkdir(exist_ok=True)
    for name in dice.sample(NAMES, 4):
        if depth and dice.random() < 0.4:
            grow(folder / name, dice, depth - 1)
        else:
            (folder / name).write_text("one\ntwo\n")


def spelled(base: Path, dice: random.Random) -> Iterator[str]:
    """Yield paths from the base of the source: there or not, with detours, out of it, absolute, and what is no path."""
    while True:
        parts = [dice.choice((*NAMES, *NAMES, "..", ".", "", "zz")) for _ in range(dice.randrange(1, 5))]
        text = "/".join(parts)
        kind = dice.random()
        if kind < 0.3:
            text = f"{base}/{text}"
        elif kind < 0.4:
            text = f"{base.parent}/{text}"
        elif kind < 0.45:
            text = dice.choice(("", "~", "~/a", "C:\\a", "a\\b", "file:///etc/passwd", "/etc/passwd", "a\x00b", "a\nb"))
        yield text


class Both:
    """One policy, asked about the same path through a coding agent's tools and through ours."""

    def __init__(self, folder: Path, dice: random.Random, text: str = "") -> None:
        folder.mkdir()
        grow(folder / "project", dice)
        (folder / "policy.toml").write_text(text or policy(dice))
        self.base = folder / "project"
        self.workspace = Workspace.open(folder / "policy.toml")
        for host in ("claude-code", "codex"):
            self.workspace.add_host_tools(host)
        self.context = ToolExecutionContext("coder", "any", folder=str(self.base))

    def verdict(self, tool: str, **arguments: JsonValue) -> Verdict:
        return self.workspace.gate.decide("coder", tool, arguments, context=self.context).verdict

    def of_file(self, operation: str, path: str, **more: JsonValue) -> Verdict:
        return self.verdict("file", op=operation, path=path, **more)

    def compare(self, path: str) -> None:
        """Compare every action at one path; the disk tells whether a write is a new file."""
        place = Path(normpath(self.base / path)) if path and "\0" not in path else self.base / "zz"
        if place.is_dir() or any(above.is_file() for above in place.parents) or path.endswith(("/", "/.", "..")):
            return  # a folder; a path that leads nowhere
        read = self.of_file("read", path)
        more: dict[str, JsonValue] = {"line": 1} if place.exists() else {}
        writes = self.of_file("insert" if place.exists() else "create", path, content="x", **more)
        assert self.verdict("claude.Read", file_path=path) is read
        assert self.verdict("claude.Grep", pattern="x", path=path) is read
        assert self.verdict("claude.Write", file_path=path, content="x") is writes
        assert self.verdict("claude.Edit", file_path=path, old_string="one", new_string="x") is writes
        if not place.exists() or path != path.strip() or any(sign in path for sign in "\n:") or not path:
            return
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-one\n+x\n*** End Patch"
        assert self.verdict("codex.apply_patch", command=patch) is writes
        removed = self.verdict("codex.apply_patch", command=f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch")
        assert removed is self.of_file("delete", path)


@pytest.mark.parametrize("number", range(10))
def test_levels_hold_for_a_coding_agent_as_for_the_tool_file(tmp_path: Path, number: int) -> None:
    dice = random.Random(f"levels {number}")
    both = Both(tmp_path / "w", dice)
    paths = spelled(both.base, dice)
    for _ in range(PATHS // 10):
        both.compare(next(paths))
    both.workspace.close()


@pytest.mark.parametrize("number", range(5))
def test_search_of_a_folder_is_denied_exactly_if_a_file_in_it_is_closed(tmp_path: Path, number: int) -> None:
    dice = random.Random(f"folders {number}")
    both = Both(tmp_path / "w", dice)
    for folder in [both.base, *(one for one in both.base.rglob("*") if one.is_dir())]:
        names = [str(one.relative_to(both.base)) for one in (folder, *folder.rglob("*"))]
        closed = any(both.of_file("read" if (both.base / name).is_file() else "list", name) is DENY for name in names)
        path = str(folder.relative_to(both.base))
        assert (both.verdict("claude.Grep", pattern="x", path=path) is DENY) is closed
        assert (both.verdict("claude.Glob", pattern="*", path=str(folder)) is DENY) is closed
    both.workspace.close()


BLANKS = (" ", "  ", "\xa0", "\u2003", "\u3000", "\ufeff", "\u200b", "\u2060", "\u180e", "\x85")
CLOSED = """gatewright = 1

[agents.coder]
sources = ["project"]

[[sources]]
id = "project"
type = "file"
base_path = "project"
default_permission = "read_write"
permission_rules = [{ pattern = "*.key", permission = "none" }, { pattern = "/caf\u00e9", permission = "none" }]
"""


def test_blanks_around_a_path_that_a_program_may_strip_lead_nowhere(tmp_path: Path) -> None:
    both = Both(tmp_path / "w", random.Random("blanks"), CLOSED)
    assert both.verdict("claude.Read", file_path="new") is Verdict.ALLOW
    outside = str(tmp_path / "w" / "policy.toml")
    for path in ("/etc/passwd", outside, "x.key", "~/x", "b/x.key"):
        for blank in BLANKS:
            for text in (blank + path, path + blank, blank + path + blank):
                patch = f"*** Begin Patch\n*** Update File: {text}\n@@\n-one\n+x\n*** End Patch"
                verdicts = {
                    both.verdict("claude.Read", file_path=text),
                    both.verdict("claude.Write", file_path=text, content="x"),
                    both.verdict("claude.Grep", pattern="x", path=text),
                    both.verdict("claude.Glob", pattern="*", path=text),
                    both.verdict("codex.apply_patch", command=patch),
                }
                assert verdicts == {DENY}, (text, verdicts)
    assert both.verdict("claude.Read", file_path="cafe\u0301") is DENY
    both.workspace.close()


def test_a_leading_at_sign_that_a_program_may_leave_out_opens_nothing(tmp_path: Path) -> None:
    text = CLOSED.replace("/caf\u00e9", "/secret/").replace("*.key", ".env")
    both = Both(tmp_path / "w", random.Random("signs"), text)
    (both.base / "secret").mkdir(exist_ok=True)
    for name in (".env", "secret/a", "secret/../.env", "b/.env"):
        for sign in ("@", "@/", "@//"):
            assert both.verdict("claude.Read", file_path=sign + name) is DENY, sign + name
            assert both.verdict("claude.Write", file_path=sign + name, content="x") is DENY, sign + name
    assert both.verdict("claude.Read", file_path="@etc/a") is Verdict.ALLOW
    assert both.verdict("claude.Read", file_path="@") is Verdict.ALLOW
    both.workspace.close()


def test_an_alternative_of_a_pattern_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    both = Both(tmp_path / "w", random.Random("patterns"), CLOSED)
    assert both.verdict("claude.Glob", pattern="{a,b}/*") is Verdict.ALLOW
    for pattern in ("{/etc,a}/*", "{a,/etc}/*", "@(a|/etc)/*", "{a,~}/*", " /etc/*", "a{b,/../../c}", "{a,..}/*"):
        assert both.verdict("claude.Glob", pattern=pattern) is DENY, pattern
    both.workspace.close()


PATHLESS = {"ExitWorktree", "save_memory"}
"""Tools that change files of their host's own, and take no path."""


@pytest.mark.parametrize("host_id", HOST_IDS)
def test_every_tool_of_a_coding_agent_that_takes_files_takes_them_as_texts_that_are_judged(host_id: str) -> None:
    manifest = json.loads(resources("hosts").joinpath(f"{host_id}.tools.json").read_text())
    for tool in manifest["tools"]:
        said, properties = tool["_meta"]["gatewright"], tool["inputSchema"].get("properties", {})
        uses: dict[str, str] = said.get("arguments", {})
        effects = {"FsRead", "FsWrite"} & {*said.get("side_effects", ())}
        assert not effects or uses or tool["name"] in PATHLESS, tool["name"]
        for place in uses:
            schema = properties.get(place, {"type": "string"})
            kinds = {schema["type"]} if isinstance(schema["type"], str) else {*schema["type"]}
            assert kinds <= {"string", "array"}, (tool["name"], place)
            assert "array" not in kinds or schema["items"]["type"] == "string", (tool["name"], place)


def test_files_that_claude_code_sends_have_the_levels_of_their_places(tmp_path: Path) -> None:
    granted = 'sources = ["project"]\napprovals = { privileged = "allow" }\n'
    text = CLOSED.replace(
        'sources = ["project"]\n', f'{granted}capabilities = [{{ NetWrite = {{ allowlist = ["*"] }} }}]\n'
    )
    both = Both(tmp_path / "w", random.Random("sent"), text)
    assert both.verdict("claude.SendUserFile", files=["new"]) is Verdict.ALLOW
    inside: list[JsonValue] = ["x.key", ["x.key"], ["new", "x.key"], [["x.key"]], {"path": "x.key"}]
    outside: list[JsonValue] = [[{"path": "x.key"}], "/etc/passwd", ["/etc/passwd"], ["../policy.toml"]]
    for shape in inside + outside:
        assert both.verdict("claude.SendUserFile", files=shape) is DENY, shape
    both.workspace.close()
