"""Built-in tools of coding agents, by the definitions that we ship: what their calls may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.cli.main import main
from gatewright.gate import Decision
from gatewright.policy.right import RightWord
from gatewright.policy.target import Refusal
from gatewright.policy.verdict import Verdict
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace import Workspace
from gatewright_resources import folder

POLICY = """gatewright = 1

[[catalogs]]
id = "claude-code"
type = "host"
manifest = "catalogs/claude-code.tools.json"
prefix = "claude"
trusted = TRUSTED

[agents.coder]
sources = ["project"]
approvals = { privileged = "allow" }
capabilities = [
  { NetRead = { allowlist = ["*.example.org"] } },
  { FsRead = { prefixes = ["reference"] } },
  { Exec = {} },
]

[workspace.shell]
allow = ["ls", "cat", "touch"]
deny = ["rm"]

[[sources]]
id = "project"
type = "file"
base_path = "project"
default_permission = "read_write"
permission_rules = [
  { pattern = "secret/**", permission = "none" },
  { pattern = "log.txt", permission = "append" },
  { pattern = "shared/**", permission = "partner" },
]
"""


class Agent:
    """A coding agent that works in the folder of the source."""

    def __init__(self, home: Path, *, trusted: bool = True) -> None:
        self.project = home / "project"
        for name in ("secret/key", "sub/b.py", "shared/notes", "a.py", "log.txt"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text("text")
        (home / "reference").mkdir()
        (home / "catalogs").mkdir()
        definitions = folder("hosts").joinpath("claude-code.tools.json").read_bytes()
        (home / "catalogs" / "claude-code.tools.json").write_bytes(definitions)
        (home / "policy.toml").write_text(POLICY.replace("TRUSTED", str(trusted).lower()))
        self.workspace = Workspace.open(home / "policy.toml")

    def decide(self, tool: str, below: str = "", /, **arguments: JsonValue) -> Decision:
        """Decide a call of Claude Code that starts in the project, or in a folder below it."""
        return self.decide_any(f"claude.{tool}", arguments, below)

    def decide_any(self, tool: str, arguments: dict[str, JsonValue], below: str = "") -> Decision:
        """Decide a call of any coding agent."""
        context = ToolExecutionContext("coder", "any", folder=str(self.project / below))
        return self.workspace.gate.decide("coder", tool, arguments, context=context)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.workspace.close()


ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


@pytest.mark.parametrize(
    ("path", "reads", "writes"),
    [
        ("a.py", ALLOW, ALLOW),
        ("new.py", ALLOW, ALLOW),
        ("./sub/../a.py", ALLOW, ALLOW),
        ("secret/key", DENY, DENY),
        ("sub/../secret/key", DENY, DENY),
        ("secret/new", DENY, DENY),
        ("log.txt", ALLOW, DENY),
        ("shared/notes", ALLOW, ASK),
        ("../reference/r.md", ALLOW, DENY),
        ("../policy.toml", DENY, DENY),
        ("../catalogs/claude-code.tools.json", DENY, DENY),
        ("/etc/passwd", DENY, DENY),
        ("~/notes", DENY, DENY),
        ("C:\\notes", DENY, DENY),
        ("file:///etc/passwd", DENY, DENY),
        ("", DENY, DENY),
        ("a\0b", DENY, DENY),
    ],
)
def test_levels_and_grants_decide_about_the_files_of_a_coding_agent(
    agent: Agent, path: str, reads: Verdict, writes: Verdict
) -> None:
    assert agent.decide("Read", file_path=path).verdict is reads
    assert agent.decide("Write", file_path=path, content="/etc/passwd").verdict is writes
    assert agent.decide("Edit", file_path=path, old_string="~/x", new_string="/etc").verdict is writes
    assert agent.decide("NotebookEdit", notebook_path=path, new_source="1").verdict is writes
    if path.startswith(".") or "/" not in path:
        return
    whole = str(agent.project / path) if not path.startswith(("/", "~", "C:", "file:")) else path
    assert agent.decide("Read", file_path=whole).verdict is reads


@pytest.mark.parametrize("grant", ['{ FsRead = { prefixes = ["reference"] } },', ""])
def test_path_elsewhere_is_refused_as_a_path_with_and_without_a_grant(tmp_path: Path, grant: str) -> None:
    agent = Agent(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text().replace('{ FsRead = { prefixes = ["reference"] } },', grant))
    agent.workspace.reload()
    decision = agent.decide("Read", file_path="/etc/passwd")
    assert decision.verdict is DENY
    assert "that path is not available to you" in str(decision.model_message)
    agent.workspace.close()


def test_relative_path_starts_where_the_coding_agent_works(agent: Agent) -> None:
    assert agent.decide("Read", "secret", file_path="key").verdict is DENY
    assert agent.decide("Read", "sub", file_path="b.py").arguments["file_path"] == str(agent.project / "sub" / "b.py")
    assert agent.decide("Read", "sub", file_path="../secret/key").code == "level-none"
    assert agent.decide("Bash", "secret", command="cat key").code == "level-none"
    assert agent.decide("Bash", "sub", command="cat b.py").verdict is ALLOW


def test_new_file_is_an_append_and_one_that_is_there_is_overwritten(agent: Agent) -> None:
    (agent.project / "log.txt").unlink()
    assert agent.decide("Write", file_path="log.txt", content="").verdict is ALLOW
    (agent.project / "log.txt").write_text("text")
    assert agent.decide("Write", file_path="log.txt", content="").code == "level-denies"


def test_link_leads_to_the_level_of_its_target(agent: Agent) -> None:
    (agent.project / "plain").symlink_to("secret/key")
    (agent.project / "out").symlink_to("/etc")
    (agent.project / "twin").hardlink_to(agent.project / "secret" / "key")
    for path in ("plain", "out/passwd", "twin"):
        assert agent.decide("Read", file_path=path).verdict is DENY
        assert agent.decide("Edit", file_path=path, old_string="", new_string="").verdict is DENY


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"path": "sub"}, ALLOW),
        ({}, DENY),
        ({"path": "."}, DENY),
        ({"path": ".."}, DENY),
        ({"path": "sub/.."}, DENY),
        ({"path": "secret"}, DENY),
        ({"path": "/"}, DENY),
        ({"path": "../reference"}, ALLOW),
    ],
)
def test_search_needs_every_file_of_its_folder(agent: Agent, arguments: dict[str, JsonValue], verdict: Verdict) -> None:
    decision = agent.decide("Grep", pattern="/etc/passwd", **arguments)
    assert decision.verdict is verdict
    assert "secret" not in str(decision.model_message)
    if arguments in ({}, {"path": "."}):
        assert "one kind of files" in str(decision.model_message)
    assert agent.decide("Glob", pattern="**/*", **arguments).verdict is verdict


@pytest.mark.parametrize(
    ("pattern", "verdict"),
    [
        ("*.py", ALLOW),
        ("sub/**/*.{py,md}", ALLOW),
        ("*.PY", ALLOW),
        ("*.pem", DENY),
        ("*.{py,PEM}", DENY),
        ("*", DENY),
        ("*.py *.pem", DENY),
        ("*.py,*.pem", DENY),
        ("!*.pem", DENY),
        ("*.p[ye]*", DENY),
        ("", DENY),
    ],
)
def test_search_of_one_kind_of_files_needs_the_files_of_that_kind(agent: Agent, pattern: str, verdict: Verdict) -> None:
    (agent.project / "secret" / "deep").mkdir()
    (agent.project / "secret" / "deep" / "x.Pem").write_text("key")
    agent.workspace.add_host_tools("gemini-cli")
    agent.workspace.add_host_tools("vscode")
    assert agent.decide("Grep", pattern="x", glob=pattern).verdict is verdict
    assert agent.decide("Grep", pattern="x", glob=pattern, path="secret").verdict is verdict
    assert agent.decide("Grep", pattern="x", glob=pattern, path="secret/deep/x.Pem").verdict is DENY
    assert agent.decide_any("vscode.grep_search", {"query": "x", "includePattern": pattern}).verdict is verdict
    assert agent.decide_any("gemini.read_many_files", {"include": [pattern, "**/*"]}).verdict is DENY
    if "," not in pattern and " " not in pattern and "!" not in pattern and pattern:
        assert agent.decide("Glob", pattern=f"**/{pattern.removeprefix('sub/**/')}").verdict is verdict
        assert agent.decide_any("gemini.read_many_files", {"include": [pattern, "**/*.py"]}).verdict is verdict


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "~/*", "../secret/*", "*/../../secret/*", "{a,../secret}/*"])
def test_pattern_leads_no_further_than_its_folder(agent: Agent, pattern: str) -> None:
    assert agent.decide("Glob", pattern=pattern, path="sub").verdict is DENY


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("ls sub", ALLOW),
        ("rm -rf sub", DENY),
        ("ls; rm a.py", DENY),
        ("curl https://example.org", DENY),
        ("cat secret/key", DENY),
        ("cat a.py > b.py", ALLOW),
        ("cat a.py > secret/key", DENY),
        ("cat a.py >> log.txt", DENY),
        ("cat a.py > shared/notes", ASK),
        ("cat a.py > /etc/motd", DENY),
        ("cat < secret/key", DENY),
        ("ls > /dev/null", ALLOW),
    ],
)
def test_shell_rules_and_levels_decide_about_a_command(agent: Agent, command: str, verdict: Verdict) -> None:
    assert agent.decide("Bash", command=command).verdict is verdict
    watch = agent.decide("Monitor", command=command, description="d", timeout_ms=1)
    assert watch.verdict is verdict


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ("*** Add File: new.py\n+x", ALLOW),
        ("*** Add File: secret/new\n+x", DENY),
        ("*** Add File: log.txt\n+x", DENY),
        ("*** Update File: a.py\n@@\n-text\n+x", ALLOW),
        ("*** Update File: sub/../secret/key\n@@\n-text\n+x", DENY),
        ("*** Update File: a.py\n@@\n-text\n+x\n*** Update File: secret/key\n@@\n-text\n+x", DENY),
        ("*** Update File: a.py\n*** Move to: shared/a.py\n@@\n-text\n+x", ASK),
        ("*** Update File: a.py\n*** Move to: secret/a.py\n@@\n-text\n+x", DENY),
        ("*** Delete File: a.py", ASK),
        ("*** Delete File: log.txt", DENY),
        ("*** Update File: /etc/passwd\n@@\n-text\n+x", DENY),
        ("+*** Delete File: secret/key", DENY),
        ("*** Add File: new.py\n+*** Delete File: secret/key", ALLOW),
        ("*** Update File: a.py\n@@\n *** Delete File: secret/key", DENY),
        ("  *** update file: secret/key\r\n@@\n-text\n+x", DENY),
        ("***Update File:secret/key\n@@\n-text\n+x", DENY),
        ("*** Update File: a.py:secret/key\n@@\n-text\n+x", DENY),
        ("*** Update File:  a.py\n@@\n-text\n+x", DENY),
        ("*** Rename File: a.py\n*** To: b.py", DENY),
        ("*** Move to: secret/key", DENY),
        ("--- a.py\n+++ a.py", DENY),
        ("", DENY),
    ],
)
@pytest.mark.parametrize(
    ("host", "tool", "argument"),
    [
        ("codex", "codex.apply_patch", "command"),
        ("opencode", "opencode.apply_patch", "patchText"),
        ("copilot", "copilot.apply_patch", "input"),
        ("vscode", "vscode.apply_patch", "input"),
    ],
)
def test_each_file_of_a_patch_has_its_level(
    agent: Agent, host: str, tool: str, argument: str, lines: str, verdict: Verdict
) -> None:
    agent.workspace.add_host_tools(host)
    for patch in (
        f"*** Begin Patch\n{lines}\n*** End Patch",
        f"<<'EOF'\n*** Begin Patch\n{lines}\n*** End Patch\nEOF\n",
    ):
        assert agent.decide_any(tool, {argument: patch}).verdict is verdict


def test_command_starts_in_the_folder_that_the_call_names(agent: Agent) -> None:
    for host, tool, name in (
        ("opencode", "opencode.bash", "workdir"),
        ("gemini-cli", "gemini.run_shell_command", "dir_path"),
        ("cursor", "cursor.Shell", "working_directory"),
    ):
        agent.workspace.add_host_tools(host)
        assert agent.decide_any(tool, {"command": "cat b.py", name: "sub"}).verdict is ALLOW
        assert agent.decide_any(tool, {"command": "cat key", name: "secret"}).code == "level-none"
        assert (
            agent.decide_any(tool, {"command": "cat ../key", name: str(agent.project / "secret" / "x")}).verdict is DENY
        )
        assert agent.decide_any(tool, {"command": "cat passwd", name: "/etc"}).verdict is DENY
        assert agent.decide_any(tool, {"command": "touch x > y", name: "sub"}).verdict is ALLOW
        assert agent.decide_any(tool, {"command": "cat x > log.txt", name: "sub/.."}).code == "level-denies"


def test_search_without_a_path_is_one_of_the_folder_where_the_agent_works(agent: Agent) -> None:
    agent.workspace.add_host_tools("vscode")
    call: dict[str, JsonValue] = {"query": "x", "isRegexp": False}
    assert agent.decide_any("vscode.grep_search", call).code == "level-none"
    assert agent.decide_any("vscode.grep_search", call, "sub").verdict is ALLOW
    assert agent.decide_any("vscode.semantic_search", {"query": "x"}).code == "level-none"
    assert agent.decide_any("vscode.file_search", {"query": "../secret/*"}, "sub").verdict is DENY


def test_address_needs_the_network(agent: Agent) -> None:
    assert agent.decide("WebFetch", url="https://a.example.org/x", prompt="p").verdict is ALLOW
    assert agent.decide("WebFetch", url="https://example.com/x", prompt="p").code == "host-not-granted"
    assert agent.decide("WebFetch", url="http://127.0.0.1/x", prompt="p").verdict is DENY
    assert agent.decide("WebSearch", query="anything").verdict is DENY


def test_distrusted_definition_loosens_nothing(tmp_path: Path) -> None:
    agent = Agent(tmp_path, trusted=False)
    assert agent.decide("Read", file_path="secret/key").verdict is DENY
    assert agent.decide("Bash", command="rm a.py").verdict is DENY
    assert agent.decide("WebFetch", url="https://example.com/x", prompt="p").verdict is DENY
    whole = str(agent.project / "secret" / "key")  # an argument that it calls a text by naming no use
    assert agent.decide("Edit", file_path="a.py", old_string=whole, new_string="").verdict is DENY
    agent.workspace.close()


@pytest.mark.parametrize("trusted", [True, False])
def test_only_a_trusted_definition_says_that_a_path_is_only_read(tmp_path: Path, trusted: bool) -> None:
    agent = Agent(tmp_path, trusted=trusted)
    path = {"type": "object", "properties": {"path": {"type": "string"}, "note": {"type": "string"}}}
    tool = {"name": "save_file", "inputSchema": path, "_meta": {"gatewright": {"arguments": {"path": "read"}}}}
    (tmp_path / "catalogs" / "claude-code.tools.json").write_text(json.dumps([tool]))
    agent.workspace.reload()
    assert agent.decide("save_file", path="log.txt").verdict is (ALLOW if trusted else DENY)
    assert agent.decide("save_file", note=str(agent.project / "secret" / "key")).verdict is (ALLOW if trusted else DENY)
    agent.workspace.close()


HOSTS = sorted(entry.name.partition(".")[0] for entry in folder("hosts").iterdir() if entry.name.endswith(".json"))


@pytest.mark.parametrize("host", HOSTS)
def test_built_in_tools_come_into_a_policy_by_one_command(tmp_path: Path, host: str) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("gatewright = 1\n\n[agents.coder]\ntools = []\n")
    assert main(["catalog", "import", str(policy), "--host", host]) == 0
    text = policy.read_text()
    with Workspace.open(policy) as workspace:
        assert workspace.problems == ()
        (state,) = workspace.catalog_states()
        assert (state.catalog.catalog_id, state.catalog.trusted, state.held) == (host, True, ())
        for name, listed in zip(state.tool_names, state.listed_names, strict=True):
            assert name == f"{state.catalog.prefix}.{listed}"
            assert workspace.host_tool(host, listed) == name
        assert workspace.add_host_tools(host) == ()
    assert policy.read_text() == text


def test_unknown_tool_of_a_newer_version_is_denied_until_it_is_accepted(agent: Agent) -> None:
    refused = agent.workspace.host_tool("claude-code", "Teleport")
    assert isinstance(refused, Refusal)
    assert "catalog accept POLICY claude-code NAME" in refused.reason
    assert agent.decide("Teleport", to="x").code == "unknown-tool"
    policy = str(agent.workspace.policy_path)
    agent.workspace.close()
    for names in ((), ("Teleport", "bad name\n")):
        assert main(["catalog", "accept", policy, "claude-code", *names]) == 2
    assert main(["catalog", "accept", policy, "claude-code", "Teleport"]) == 0
    agent.workspace = Workspace.open(Path(policy))
    assert agent.workspace.host_tool("claude-code", "Teleport") == "claude.Teleport"
    assert agent.decide("Teleport", to="x").verdict is ALLOW  # privileged ones are allowed in this policy
    assert agent.decide("Teleport", to=str(agent.project / "secret" / "key")).code == "level-none"
    agent.workspace.add_host_tools("claude-code")
    assert agent.workspace.host_tool("claude-code", "Teleport") == "claude.Teleport"


def test_argument_of_a_newer_version_is_denied_until_it_is_accepted(agent: Agent) -> None:
    refused = agent.decide("Read", file_path="a.py", newly=True)
    assert refused.code == "schema-mismatch"
    assert "gatewright catalog accept POLICY claude-code Read" in refused.reason
    assert "gatewright" not in str(refused.model_message)
    agent.workspace.accept_host_tools("claude-code", ["Read"])
    assert agent.decide("Read", file_path="a.py", newly=True).verdict is ALLOW
    assert agent.decide("Read", file_path="a.py", newly=str(agent.project / "secret" / "key")).code == "level-none"
    assert agent.workspace.add_host_tools("claude-code") == ("Read",)
    assert agent.decide("Read", file_path="a.py", newly=True).code == "schema-mismatch"


def test_copy_that_is_older_than_our_definitions_is_told_until_it_is_renewed(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("gatewright = 1\n\n[agents.coder]\ntools = []\n")
    assert main(["catalog", "import", str(policy), "--host", "claude-code"]) == 0
    with Workspace.open(policy) as workspace:
        workspace.accept_host_tools("claude-code", ["Read", "Teleport"])
        workspace.reload()
        assert workspace.problems == ()  # what somebody accepted is not older
    (copy,) = (tmp_path / "catalogs").glob("*.json")
    manifest = json.loads(copy.read_text())
    manifest["tools"] = [row for row in manifest["tools"] if row["name"] != "Edit"]
    next(row for row in manifest["tools"] if row["name"] == "Bash")["description"] = "As it was."
    copy.write_text(json.dumps(manifest))
    with Workspace.open(policy) as workspace:
        (problem,) = workspace.problems
        assert (problem.code, problem.place.line if problem.place else 0) == ("older-definitions", 6)
        assert "the definitions of `Bash` and `Edit` of `claude-code` differ" in problem.message
    assert main(["catalog", "import", str(policy), "--host", "claude-code"]) == 0
    with Workspace.open(policy) as workspace:
        assert workspace.problems == ()


def test_every_view_agrees_on_the_tools_of_all_coding_agents(agent: Agent) -> None:
    for host in HOSTS:
        agent.workspace.add_host_tools(host)
    checked = agent.workspace.selfcheck()
    assert checked.differences == ()
    assert checked.checked >= 150
    rights = agent.workspace.rights("coder")
    for name in ("claude.Read", "claude.Write", "claude.Grep", "codex.apply_patch", "vscode.grep_search"):
        assert [row.word for row in rights[name].operations] == [RightWord.BY_PATH], name
    (bash,) = rights["claude.Bash"].operations
    assert Verdict.DENY in bash.by_value
    assert rights["claude.WebSearch"].is_hidden  # no address of it could be judged
    shown = {listing.name for listing in agent.workspace.view("coder").listings()}
    assert {name for name, right in rights.items() if not right.is_hidden} == shown


SERVER = """
[[catalogs]]
id = "hub.one"
type = "mcp"
command = "hub"
places = {}
"""


def test_tool_of_a_server_has_one_name_in_the_policy_whoever_calls_it(agent: Agent) -> None:
    pin = accept(Pin(Listing.of([{"name": "make.issue", "inputSchema": {"type": "object"}}])), None)
    (agent.workspace.folder / "catalogs" / "hub.one.json").write_bytes(write_pin(pin))
    policy = agent.workspace.policy_path
    policy.write_text(policy.read_text() + SERVER)
    assert not [problem for problem in agent.workspace.reload() if problem.is_error]
    assert agent.workspace.host_tool("claude-code", "mcp__hub_one__make_issue") == "make.issue"
    for name in ("mcp__hub_one__other", "mcp__other__make_issue", "make.issue", "", "x" * 10_000):
        assert isinstance(agent.workspace.host_tool("claude-code", name), Refusal)
