"""Paths that strangers' tools are given: a source's levels hold whatever the argument and however it is spelled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import ResultType, tool
from gatewright.tools.declaration import SideEffect
from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace import Workspace

TEXT = {"type": "string"}
POLICY = """gatewright = 1

[[catalogs]]
id = "team"
type = "host"
manifest = "tools.json"

[agents.a]
tools = ["read_text_file", "write_file", "move_file", "list_directory", "read_multiple_files",
  "note", "get_blob", "both"]
approvals = { privileged = "allow" }
sources = []

[[sources]]
id = "docs"
type = "file"
base_path = "notes"

[[sources.permission_rules]]
pattern = "/secrets/"
permission = "none"

[[sources.permission_rules]]
pattern = "/drafts/"
permission = "read_write"

[[sources.permission_rules]]
pattern = "/shared/"
permission = "partner"

[[sources.permission_rules]]
pattern = "/log/"
permission = "append"
"""


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


TOOLS = [
    _tool("read_text_file", path=TEXT),
    _tool("write_file", path=TEXT, content=TEXT),
    _tool("move_file", source=TEXT, destination=TEXT),
    _tool("list_directory", path={**TEXT, "default": "secrets"}),
    _tool("read_multiple_files", paths={"type": "array", "items": TEXT}),
    {"name": "note", "inputSchema": {"type": "object"}},
    _tool("get_blob", path=TEXT, bucket=TEXT),
    _tool("both", op={"type": "string", "enum": ["read", "write", "remove"]}, path=TEXT),
]


class Place:
    """A workspace with a folder of notes, and what decides calls in it."""

    def __init__(self, folder: Path, policy: str = POLICY, *, trust: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.notes = folder / "notes"
        for name in ("secrets/key1.txt", "drafts/a.md", "shared/s.md", "log/l.md", "open.md", "pub/p.md"):
            (self.notes / name).parent.mkdir(parents=True, exist_ok=True)
            (self.notes / name).write_text("x", encoding="utf-8")
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
        (folder / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
        self.workspace = Workspace.open(
            folder / "policy.toml", state=folder / "state", keys=folder / "keys", trust=trust
        )

    def decide(self, tool: str, **arguments: Any) -> Verdict:
        return self.decision(tool, **arguments).verdict

    def decision(self, tool: str, **arguments: Any) -> Any:
        return self.workspace.decide("a", tool, arguments)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.workspace.close()


ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


@pytest.mark.parametrize(
    ("relative", "read", "write", "moved_away"),
    [
        ("secrets/key1.txt", DENY, DENY, DENY),
        ("secrets/new.txt", DENY, DENY, DENY),
        ("secrets", DENY, DENY, DENY),
        ("open.md", ALLOW, DENY, DENY),
        ("drafts/a.md", ALLOW, ALLOW, ASK),
        ("shared/s.md", ALLOW, ASK, ASK),
        ("log/l.md", ALLOW, DENY, DENY),
    ],
)
def test_the_level_of_the_place_decides_by_what_the_tool_does_there(
    place: Place, relative: str, read: Verdict, write: Verdict, moved_away: Verdict
) -> None:
    path = str(place.notes / relative)
    assert place.decide("read_text_file", path=path) is read
    assert place.decide("read_multiple_files", paths=["/srv/x", path]) is read
    assert place.decide("write_file", path=path, content="x") is write
    assert place.decide("move_file", source=path, destination="/srv/x") is moved_away
    assert place.decide("move_file", source="/srv/x", destination=path) is write
    assert place.decide("both", op="read", path=path) is read
    assert place.decide("both", op="write", path=path) is write
    assert place.decide("both", op="remove", path=path) is moved_away


def test_a_file_whose_name_looks_like_a_pattern_is_that_file_alone(place: Place) -> None:
    (place.notes / "[s]ecrets*").write_text("x", encoding="utf-8")
    assert place.decide("list_directory", path=str(place.notes / "[s]ecrets*")) is ALLOW
    assert place.decide("list_directory", path=str(place.notes / "s*")) is DENY


def test_the_decision_names_the_argument_the_place_the_source_and_the_rule(place: Place) -> None:
    path = place.notes / "x" / ".." / "secrets" / "key1.txt"
    decision = place.decision("read_text_file", path=f"{place.notes}/x/../secrets/key1.txt")
    real = os.path.realpath(path)
    assert (decision.stage, decision.code) == ("permission", "level-none")
    assert f"`path` is `{real}`: `secrets/key1.txt` of `docs` is set to hidden by rule 1 `/secrets/`" in decision.reason
    assert decision.rule.address == ("sources", "docs", "permission_rules", 0)
    assert "secrets" not in decision.model_message
    notes = {step.stage: step.reason for step in decision.trace}
    assert f"`{real}`, `secrets/key1.txt` of `docs`" in notes["arguments"]


def test_a_relative_path_is_judged_from_everywhere_it_may_start(place: Place) -> None:
    for path in ("notes/secrets/key1.txt", "secrets/key1.txt", "./secrets/key1.txt", "../notes/secrets/key1.txt"):
        decision = place.decision("read_text_file", path=path)
        assert (decision.verdict, decision.code) == (DENY, "level-none"), path
        assert ", from `" in decision.reason
    assert place.decide("read_text_file", path="notes/open.md") is ALLOW
    assert place.decide("write_file", path="open.md", content="") is DENY
    assert place.decide("write_file", path="elsewhere/open.md", content="") is ALLOW


def test_a_folder_counts_as_the_strictest_thing_in_it(place: Place) -> None:
    inside = "`secrets` of `docs` in it is set to hidden by rule 1"
    for path in (place.notes, place.folder, "/", f"{place.notes}/*", f"{place.notes}/s*/key1.txt", "notes"):
        decision = place.decision("list_directory", path=str(path))
        assert (decision.verdict, decision.code) == (DENY, "level-none"), path
        assert inside in decision.reason
    assert place.decide("list_directory", path=str(place.notes / "pub")) is ALLOW
    (place.notes / "drafts" / "deep").mkdir()
    assert place.decide("move_file", source=str(place.notes / "drafts"), destination="/srv/x") is ASK


def test_a_path_that_is_left_out_is_judged_as_its_default(place: Place) -> None:
    decision = place.decision("list_directory")
    assert (decision.verdict, decision.code) == (DENY, "level-none")


def test_a_folder_that_holds_the_policy_is_closed_whatever_the_levels_are(tmp_path: Path) -> None:
    catalog, agent = POLICY.partition("[[sources]]")[0], 'default_permission = "admin"\n'
    place = Place(tmp_path, f'{catalog}[[sources]]\nid = "all"\ntype = "file"\nbase_path = "."\n{agent}')
    assert place.decide("read_text_file", path="notes/open.md") is ALLOW
    assert place.decide("list_directory", path=str(place.notes)) is ALLOW
    assert place.decide("list_directory", path=str(tmp_path)) is DENY
    assert place.decide("move_file", source=str(tmp_path), destination="/srv/x") is DENY
    place.workspace.close()


def test_a_folder_above_a_source_is_closed_for_a_path_and_not_for_any_text(place: Place) -> None:
    assert place.decide("list_directory", path=str(place.folder)) is DENY
    assert place.decide("note", page="/", text=str(place.folder)) is ALLOW


@pytest.mark.parametrize("key", ["where", "path", "anything at all"])
def test_any_text_of_any_argument_that_is_a_whole_path_takes_the_level(place: Place, key: str) -> None:
    secret, public = str(place.notes / "secrets/key1.txt"), str(place.notes / "drafts/a.md")
    for value in (secret, [secret], {"deep": [{"er": secret}]}, {secret: 1}, [[["x", {"y": {secret: None}}]]]):
        decision = place.decision("note", **{key: value})
        assert (decision.verdict, decision.code) == (DENY, "level-none"), value
    assert place.decide("note", **{key: [public, "/srv/other", "text", 3, None]}) is ALLOW


def test_a_text_that_only_mentions_a_path_is_a_text(place: Place) -> None:
    secret = place.notes / "secrets/key1.txt"
    assert place.decide("note", text=f"I may not read {secret}") is ALLOW
    assert place.decide("note", text=f"cat {secret}") is ALLOW


def test_what_no_source_holds_is_left_alone(place: Place) -> None:
    for path in ("/etc/passwd", "/srv/x/../y", "~/nothing", "file:///srv/x", "C:\\Users\\x", "/", ".", "/dev/stdin"):
        assert place.decide("note", path=path) is ALLOW, path
    assert place.decide("get_blob", path="secrets/key1.txt", bucket="b") is ALLOW


def test_the_policy_itself_is_closed_for_every_text(place: Place) -> None:
    for name in ("read_text_file", "note"):
        decision = place.decision(name, path=str(place.folder / "policy.toml"))
        assert (decision.verdict, decision.code) == (DENY, "protected")


SPELLINGS = [
    "{notes}/secrets/key1.txt",
    "{notes}//secrets///key1.txt",
    "{notes}/./secrets/./key1.txt",
    "{notes}/secrets/key1.txt/",
    "{notes}/secrets/../secrets/key1.txt",
    "{notes}/nowhere/../secrets/key1.txt",
    "//{bare}/secrets/key1.txt",
    "{notes}/secrets/",
    "{notes}/secrets/.",
    " {notes}/secrets/key1.txt\n",
    '"{notes}/secrets/key1.txt"',
    "{notes}/secrets/key1.txt\0.png",
    "file://{notes}/secrets/key1.txt",
    "file:{notes}/secrets/key1.txt",
    "FILE://{notes}/secrets/key1.txt",
    "file://localhost{notes}/secrets/key1.txt",
    "file://127.0.0.1{notes}/secrets/key1.txt",
    "file://{notes}/secrets/key1.txt?x#y",
    "file://{notes}/%73ecrets/key1%2Etxt",
    "file://{notes}/%2573ecrets/key1.txt",
    "{notes}/%73ecrets/key1.txt",
    "{notes}%2Fsecrets%2Fkey1.txt",
    "view-source:file://{notes}/secrets/key1.txt",
    "~/notes/secrets/key1.txt",
    "$HOME/notes/secrets/key1.txt",
    "${{HOME}}/notes/secrets/key1.txt",
    "%HOME%/notes/secrets/key1.txt",
    "{windows}\\secrets\\key1.txt",
    "C:{windows}\\secrets\\key1.txt",
    "{notes}/pub/link/key1.txt",
    "{folder}/outside/key1.txt",
    "/proc/self/root{notes}/secrets/key1.txt",
    "/proc/self/cwd/notes/secrets/key1.txt",
    "/proc/1/../self/cwd/notes/secrets/key1.txt",
    "/proc/thread-self/cwd/notes/secrets/key1.txt",
    "/proc/s?lf/cwd/notes/secrets/key1.txt",
    "/dev/fd/7/notes/secrets/key1.txt",
    "{folder}/process/cwd/notes/secrets/key1.txt",
    "{folder}/outside/../secrets/key1.txt",
    "{notes}/secr?ts/key1.txt",
    "{notes}/*/key1.txt",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_is_a_way_around(place: Place, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place.folder))
    (place.folder / "outside").symlink_to(place.notes / "secrets")
    (place.notes / "pub" / "link").symlink_to("../secrets")
    (place.folder / "process").symlink_to("/proc/self")
    notes = str(place.notes)
    path = spelling.format(notes=notes, bare=notes.lstrip("/"), folder=place.folder, windows=notes.replace("/", "\\"))
    for name, arguments in (("read_text_file", {"path": path}), ("note", {"x": [{"y": path}]}), ("note", {path: 1})):
        assert place.decide(name, **arguments) is DENY, (name, path)


def test_another_name_of_a_closed_file_is_closed(place: Place) -> None:
    other = place.folder / "other.txt"
    os.link(place.notes / "secrets/key1.txt", other)
    os.link(place.notes / "secrets/key1.txt", place.notes / "pub/open.txt")
    for path in (other, place.notes / "pub/open.txt"):
        for name in ("read_text_file", "note"):
            decision = place.decision(name, path=str(path))
            assert (decision.verdict, decision.code) == (DENY, "level-none")


def declared(paths: str) -> str:
    return f"{POLICY}\n[tools.note]\npaths = {{ {paths} }}\n"


@pytest.mark.parametrize(("use", "verdict"), [("read", ALLOW), ("write", DENY), ("delete", DENY), ("none", DENY)])
def test_what_the_policy_declares_counts(tmp_path: Path, use: str, verdict: Verdict) -> None:
    place = Place(tmp_path, declared(f'where = "{use}"'))
    assert place.decide("note", where=str(place.notes / "open.md")) is verdict
    assert place.decide("note", where=str(place.notes / "secrets/key1.txt")) is DENY
    assert place.decide("note", where="secrets/key1.txt") is (ALLOW if use == "none" else DENY)
    place.workspace.close()


def test_declared_as_no_path_a_folder_counts_as_itself(tmp_path: Path) -> None:
    policy = POLICY + '\n[tools.list_directory]\nsafety_tier = "read_only"\npaths = { path = "none" }\n'
    place = Place(tmp_path, policy)
    assert place.decide("list_directory", path=str(place.notes)) is ALLOW
    assert place.decide("list_directory", path=str(place.notes / "secrets")) is DENY
    place.workspace.close()


def test_what_nothing_settles_is_a_warning_until_the_policy_says_it(tmp_path: Path) -> None:
    def warned(folder: Path, policy: str) -> list[tuple[int, str]]:
        place = Place(folder, policy)
        problems = [one for one in place.workspace.current_problems() if one.code == "undeclared-paths"]
        place.workspace.close()
        return [(one.place.line if one.place else 0, one.message.partition(" of ")[0]) for one in problems]

    tools = next(at for at, line in enumerate(POLICY.splitlines(), 1) if line.startswith("tools ="))
    assert warned(tmp_path / "1", POLICY) == [(tools, "`path`")]
    said = '\n[tools.get_blob]\npaths = { path = "none" }\n'
    assert warned(tmp_path / "2", POLICY + said) == []
    assert warned(tmp_path / "3", POLICY.replace('"note", "get_blob", "both"', '"note"')) == []


def test_the_right_is_by_path_and_the_self_check_agrees(place: Place) -> None:
    rights = place.workspace.rights("a")
    (row,) = rights["read_text_file"].operations
    assert (row.verdict, row.by_path) == (ALLOW, {DENY})
    (row,) = rights["write_file"].operations
    assert row.by_path == {ASK, DENY}
    (row,) = rights["note"].operations
    assert row.by_path == frozenset()
    assert not place.workspace.selfcheck().differences


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, side_effects=(SideEffect.FS_READ,))
async def open_file(path: str, note: str = "") -> str:
    """Open a file.

    Args:
        path: Where it is.
        note: Any text.
    """
    return f"{path} {note}".strip()


OWN = """gatewright = 1

[agents.a]
tools = ["open_file"]
sources = []
capabilities = [{ FsRead = { prefixes = ["notes", "other"] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "notes"

[[policy.rules]]
name = "no drafts"
effect = "deny"
when = { properties = { path = { pattern = "/notes/drafts/" } }, required = ["path"] }
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Workspace]:
    Place(tmp_path).workspace.close()
    (tmp_path / "own.toml").write_text(OWN, encoding="utf-8")
    (tmp_path / "here").symlink_to("notes")
    with Workspace.open(tmp_path / "own.toml", state=tmp_path / "s", keys=tmp_path / "k", tools=[open_file]) as made:
        yield made


async def test_a_path_in_a_source_is_handed_on_without_links_and_any_other_as_it_was(
    own: Workspace, tmp_path: Path
) -> None:
    async def handed(**arguments: str) -> str:
        return (await own.call("a", "open_file", arguments)).output or ""

    public = os.path.realpath(tmp_path / "notes/pub/p.md")
    assert public in await handed(path=f"{tmp_path}/here//pub/./p.md")
    other = f"{tmp_path}/other/./x"
    assert other in await handed(path=other)
    assert f"{tmp_path}/here/pub/p.md" in await handed(path=public, note=f"{tmp_path}/here/pub/p.md")


def test_conditions_see_a_path_resolved_and_grants_judge_it(own: Workspace, tmp_path: Path) -> None:
    def decided(path: str) -> tuple[Verdict, str]:
        found = own.decide("a", "open_file", {"path": path})
        return found.verdict, found.code

    assert decided(f"{tmp_path}/here/pub/../drafts/a.md") == (DENY, "policy-deny")
    assert decided(f"{tmp_path}/notes/open.md")[0] is ALLOW
    assert decided(f"{tmp_path}/other/a")[0] is ALLOW
    assert decided("/srv/a") == (DENY, "path-not-granted")
    assert decided(f"{tmp_path}/other/../elsewhere") == (DENY, "path-not-granted")


def test_a_relative_path_is_judged_from_the_folder_that_its_server_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "catalogs").mkdir()
    pin = accept(Pin(Listing.of([_tool("read_text_file", path=TEXT)], name="files", version="1")), None)
    (tmp_path / "catalogs" / "team.json").write_bytes(write_pin(pin))
    server = 'type = "mcp"\ncommand = "files"\nconfine = "none"\ncwd = "{}"\n'
    host = 'type = "host"\nmanifest = "tools.json"\n'
    tools = POLICY[POLICY.index("tools = [") : POLICY.index("approvals")]
    for cwd, verdict in (("notes/secrets", DENY), ("notes/pub", ALLOW)):
        policy = POLICY.replace(host, server.format(cwd)).replace(tools, 'tools = ["read_text_file"]\n')
        place = Place(tmp_path, policy, trust=True)
        assert place.decide("read_text_file", path="key1.txt") is verdict, cwd
        place.workspace.close()


def test_a_text_with_more_readings_than_can_be_looked_at_is_denied(place: Place) -> None:
    decision = place.decision("note", text="file:" * 70 + f"//{place.notes}/secrets/key1.txt")
    assert (decision.verdict, decision.stage, decision.code) == (DENY, "arguments", "unreadable-path")
    assert "`text`" in decision.reason
    assert "text" not in decision.model_message


def test_texts_that_come_to_too_many_places_together_are_denied(place: Place) -> None:
    text = "file:///e%20x;b?c#"
    decision = place.decision("note", text=[f"{text}{number}" for number in range(2_000)])
    assert (decision.verdict, decision.stage, decision.code) == (DENY, "arguments", "too-many-targets")
    assert place.decide("note", text=[f"/srv/{number}" for number in range(5_000)]) is ALLOW


def test_operator_is_told_the_first_texts_that_lead_somewhere_and_how_many_more_there_are(place: Place) -> None:
    for count, more in ((20, ""), (22, "; and 2 more")):
        decision = place.decision("note", text=[f"{place.notes}/pub/{number}" for number in range(count)])
        said = next(row.reason for row in decision.trace if row.stage == "arguments")
        assert (said.count("`docs`"), said.rpartition("`docs`")[2]) == (20, more)
