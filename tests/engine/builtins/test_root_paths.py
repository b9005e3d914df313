"""Paths into the roots: what is one, what is refused, and that nothing leads outside, whoever swaps names meanwhile."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pytest

from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.gate import Status
from gatewright.policy.target import FileTarget, Refusal
from gatewright.policy.verdict import Action, Verdict
from gatewright.sources.rootfolder import RootFolders
from gatewright.tools.parameter import FileParameter
from gatewright.workspace import Workspace
from tests.engine.builtins.rootbench import SECRET, RootBench, names, opened, policy_text
from tests.engine.sources.folding import fold_below
from tests.support.swapping_process import swapping

ROUNDS = 60
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("file_read", "path", {}),
    ("read_file", "path", {}),
    ("file_list", "path", {}),
    ("file_search", "path", {"query": "TOP"}),
    ("file_write", "path", {"content": "overwritten"}),
    ("file_edit", "path", {"old_text": "TOP", "new_text": "NO"}),
    ("file_delete", "path", {"recursive": True}),
    ("vault_copyto", "source_path", {"destination_path": "tmp/copied"}),
    ("vault_copyto", "destination_path", {"source_path": "vault/plain"}),
)
WAYS = pytest.mark.parametrize(("tool", "parameter", "rest"), CALLS, ids=lambda value: str(value)[:20])


def outside(bench: RootBench) -> tuple[Path, ...]:
    """Secrets around the roots."""
    top = bench.folder.parent
    places = (top / "etc/passwd", top / "passwd", bench.folder / "etc/passwd", bench.folder / "passwd")
    for place in places:
        place.parent.mkdir(exist_ok=True)
        place.write_text(SECRET)
    return places


@pytest.fixture
def maze(bench: RootBench) -> RootBench:
    """Links, hard links and oddities in every root."""
    places = outside(bench)
    for root in ("shared", "tmp", "vault"):
        bench.write(f"{root}/docs/a.md", "fine")
        for name, target in (
            ("up", ".."),
            ("etc", "../etc"),
            ("root", bench.folder.parent),  # not the system's own: calls here would change it, were they let through
            ("docs/back", "../.."),
            ("passwd", "../passwd"),
        ):
            (bench.folder / root / name).symlink_to(target)
        os.link(places[1], bench.folder / root / "hard")
        os.mkfifo(bench.folder / root / "pipe")
    bench.write("vault/plain", "fine")
    return bench


def leads_out_of(bench: RootBench, path: str) -> bool:
    """Tell whether the system takes a path for a place that is none of the test's own."""
    own, named = os.path.realpath(bench.folder.parent), path.replace("\0", "")
    bases = (bench.folder, *(bench.folder / root for root in ("shared", "tmp", "vault")))
    return any(os.path.commonpath((own, os.path.realpath(base / named))) != own for base in bases)


def unescaped(path: str) -> Iterator[str]:
    """The path as somebody might take it who reads escapes, twice and thrice too, backslashes and URLs."""
    for _ in range(3):
        path = unquote(path.removeprefix("file://")).replace("\\", "/")
        yield path


@WAYS
async def test_payloads_of_path_traversal_reach_nothing_outside(
    maze: RootBench, corpora: Path, tool: str, parameter: str, rest: dict[str, Any]
) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "attack_path_traversal.json").read_text("utf-8"))
    files = ("etc/passwd", "passwd", "policy.toml")
    payloads = dict.fromkeys(row["payload"].replace("{FILE}", file) for row in rows for file in files)
    places = outside(maze)
    before = names(maze.folder), names(maze.folder.parent)
    is_reading = tool in {"read_file", "file_list", "file_search"}
    for payload in payloads:
        if leads_out_of(maze, payload):
            assert maze.decide(tool, **{parameter: payload, **rest}).verdict is Verdict.DENY, payload
            continue  # never called: whoever runs the tests may change the system
        if not is_reading and any(leads_out_of(maze, text) for text in {*unescaped(payload)} - {payload}):
            continue
        outcome = await maze.call(tool, **{parameter: payload, **rest})
        assert SECRET not in (outcome.output or ""), payload
        assert "gatewright = 1" not in (outcome.output or ""), payload
        assert outcome.status in {Status.ALLOWED, Status.DENIED, Status.FAILED}
    assert [place.read_text() for place in places] == [SECRET] * 4
    now = names(maze.folder), names(maze.folder.parent)
    assert set(now[0]) - {".gatewright"} == set(before[0]) - {".gatewright"}
    assert set(now[1]) - {"keys"} == set(before[1]) - {"keys"}


@WAYS
@pytest.mark.parametrize(
    "path",
    [
        "up/passwd", "etc/passwd", "root/etc/passwd", "docs/back/passwd", "passwd", "hard", "pipe", "up", "root",
        "../passwd", "docs/../../passwd", "..", "~/x", "a\\b", "a\0b", "file:///etc/passwd", "",
    ],
)  # fmt: skip
async def test_no_way_out_of_any_root(
    maze: RootBench, tool: str, parameter: str, rest: dict[str, Any], path: str
) -> None:
    root = "vault" if parameter == "source_path" else "shared"
    named = path if path.startswith(("~", "file:")) or not path else f"{root}/{path}"
    for given in (named, f"/{named}" if not named.startswith(("~", "file:")) else named):
        decision = maze.decide(tool, **{parameter: given, **rest})
        assert (decision.verdict, decision.stage) == (Verdict.DENY, "arguments"), decision.reason
        assert "passwd" not in (decision.model_message or "")


def test_every_refusal_of_a_path_says_why_to_the_operator_and_what_to_do_to_the_model(tmp_path: Path) -> None:
    roots = '[workspace]\nroots = { shared = "shared", tmp = "tmp" }\n'
    more = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "shared/docs"\n'
    more += '[[sources]]\nid = "inner"\ntype = "file"\nbase_path = "shared/docs/in"\n'
    (tmp_path / "ws/shared/docs/in").mkdir(parents=True)
    bench = opened(tmp_path, policy_text(roots=roots, more=more))
    port, top, tmp = port_of(bench), str(bench.folder / "shared"), str(bench.folder / "tmp")
    bench.write("shared/a.md", "x")
    (bench.folder / "shared/link").symlink_to("a.md")
    other = "that path is not available to you; choose another one"
    either, above = "begin the path with `shared/` or `tmp/`", "the path leads above its folder; leave out `..`"
    linked = "the path leads through a symbolic link, which is not followed"
    for path, code, reason, hint in (
        ("../x", "outside-base", "`../x` leads above root `shared`", above),
        ("tmp/../../x", "outside-base", "`tmp/../../x` leads above root `tmp`", above),
        ("vault/x", "no-root", "`vault/x`: the policy names no folder for root `vault`", either),
        ("/etc/x", "outside-roots", "`/etc/x` lies in none of the roots", either),
        ("/../x", "outside-roots", "`/../x` lies in none of the roots", either),
        (f"{top}/../x", "outside-roots", f"`{top}/../x` lies in none of the roots", either),
        ("a.md/", "not-a-folder", f"`{top}/a.md` is no folder, and the path ends as one", other),
        ("none/", "not-a-folder", f"`{top}/none` is no folder, and the path ends as one", other),
        ("link", "symlink", f"`{top}/link`: {linked}", other),
        ("a.md/x", "not-a-folder", f"`{top}/a.md/x`: a part of the path is not a folder", other),
        ("", "path-empty", "the path is empty", "give a path, `.` is the top folder"),
    ):
        assert port.find(path, roots=("shared", "tmp", "vault")) == Refusal(code, reason, hint), path
    taken = "`shared/a.md` is in root `shared`, and this takes paths in `tmp` and `vault` only"
    begin = "begin the path with `tmp/`"
    assert port.find("shared/a.md", roots=("tmp", "vault")) == Refusal("outside-roots", taken, begin)
    taken = "`a.md` is in root `shared`, and this takes paths in `vault` only"
    assert port.find("a.md", roots=("vault",)) == Refusal("outside-roots", taken, other)
    for path, shown, source_id, inside in (
        ("a.md", "shared/a.md", None, None),
        ("/shared/a.md", "shared/a.md", None, None),
        ("docs/x", "shared/docs/x", "docs", "x"),
        ("docs/in/x", "shared/docs/in/x", "inner", "x"),
        (f"{top}/docs/in", "shared/docs/in", "inner", "."),
        ("shared", "shared", None, None),
    ):
        absolute = f"{top}/{shown.removeprefix('shared').lstrip('/')}".rstrip("/")
        wanted = FileTarget("path", shown, absolute, True, source_id, "shared", inside)
        assert port.find(path, roots=("shared",), parameter="path", writes=True) == wanted
    read = FileTarget("", "shared/a.md", f"{top}/a.md", False, None, "shared", None)
    assert port.find("a.md", roots=("shared",)) == read
    (bench.folder / "tmp").rename(bench.folder / "away")
    gone = "the folder of root `tmp` is not there"
    assert port.find("tmp/x", roots=("tmp",)) == Refusal("root-missing", f"{gone}: `{tmp}`", gone)
    (bench.folder / "tmp").mkdir()
    taken = "another folder stands in the place of root `tmp`"
    reason = f"{taken}: `{tmp}`; reading the policy again attaches the folder that is there now"
    assert port.find("tmp/x", roots=("tmp",)) == Refusal("root-replaced", reason, taken)
    bench.workspace.close()


async def test_what_is_protected_is_available_to_no_call_that_holds_its_path(tmp_path: Path) -> None:
    bench = opened(tmp_path, policy_text(roots='[workspace]\nroots = { shared = "." }\n'))
    port, policy, state = port_of(bench), str(bench.folder / "policy.toml"), str(bench.folder / ".gatewright")
    bench.write("a.md", "x")
    for change in (
        port.read(policy),
        port.write(policy, "x", Action.OVERWRITE),
        port.write(f"{state}/new", "x", Action.APPEND),
        port.edit(policy, "gatewright", "x", Action.OVERWRITE),
        port.delete(policy, recursive=False, granted=Action.DELETE),
        port.delete(state, recursive=True, granted=Action.DELETE),
        port.copy(policy, f"{bench.folder}/copy", Action.APPEND),
        port.copy(f"{bench.folder}/a.md", policy, Action.OVERWRITE),
        port.list_folder(state, stopped=idle),
        port.search(state, lambda _: 0, hits=9, stopped=idle),
    ):
        with pytest.raises(ToolFailure) as told:
            await change
        assert (told.value.code, str(told.value)) == ("not-available", "this path is not available")
    assert port.note_of(policy) == "this path is not available"
    shut = "protected, or in the folder of a moved source: no tool reaches it"
    for path in (policy, f"{policy}/x", f"{state}/new"):
        hint = "that path is not available to you; choose another one"
        assert port.find(path, roots=("shared",)) == Refusal("protected", f"`{path}` is {shut}", hint)
    assert not (bench.folder / "copy").exists()
    bench.workspace.close()


def test_words_for_the_model_are_the_same_whatever_stands_there(maze: RootBench) -> None:
    said = {
        maze.decide("file_read", path=f"shared/{name}").model_message for name in ("up/x", "hard", "pipe", "passwd")
    }
    assert len(said) == 1


def test_dots_behind_a_link_are_resolved_in_the_text_and_not_along_the_link(maze: RootBench) -> None:
    decision = maze.decide("file_read", path="shared/docs/back/../passwd")
    assert decision.arguments["path"] == str(maze.folder / "shared/docs/passwd")


async def test_benign_names_are_written_read_listed_and_removed(bench: RootBench, corpora: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "benign_paths.json").read_text("utf-8"))
    tried = 0
    for number, row in enumerate(rows):
        path: str = row["payload"]
        named = f"shared/{number}/{path.lstrip('/')}"
        await bench.data("file_write", path=named, content="x")
        assert (await bench.data("file_read", path=named))["content"] == "x"
        folder = named.rpartition("/")[0]
        assert named.rpartition("/")[2] in (await bench.data("file_list", path=folder))["entries"]
        await bench.data("file_delete", path=f"shared/{number}", recursive=True)
        tried += 1
    assert tried == len(rows) > 100


@pytest.mark.parametrize(
    "name", ["100%25.txt", "%2e%2e", "a b", "ü/ä.md", "a:b", "...", "-rf", "shared", "tmp/x", "con"]
)
async def test_odd_names_are_names(bench: RootBench, name: str) -> None:
    await bench.data("file_write", path=f"shared/{name}", content="x")
    assert bench.text(f"shared/{name}") == "x"


async def test_first_name_of_a_root_counts_and_case_does_too(bench: RootBench) -> None:
    assert bench.decide("file_list", path="/").code == "outside-roots"
    bench.write("shared/tmp/a", "in shared")
    bench.write("tmp/a", "in tmp")
    assert (await bench.data("file_read", path="tmp/a"))["content"] == "in tmp"
    assert (await bench.data("file_read", path="shared/tmp/a"))["content"] == "in shared"
    bench.write("shared/TMP/a", "by case")
    assert (await bench.data("file_read", path="TMP/a"))["content"] == "by case"


async def test_policy_state_and_keys_are_out_of_reach_even_inside_a_root(tmp_path: Path) -> None:
    bench = opened(tmp_path, policy_text(roots='[workspace]\nroots = { shared = "." }\n'))
    await bench.data("file_write", path="a.txt", content="gatewright = 1")
    entries = (await bench.data("file_list", path="."))["entries"]
    assert "a.txt" in entries
    assert {"policy.toml", ".gatewright/"}.isdisjoint(entries)
    for name in ("policy.toml", ".gatewright/audit.sqlite", ".gatewright/new", ".gatewright"):
        assert bench.decide("file_read", path=name).code == "protected"
        assert bench.decide("file_write", path=name, content="x").code == "protected"
        assert bench.decide("file_delete", path=name, recursive=True).code == "protected"
    assert (await bench.data("file_search", query="gatewright = 1"))["hits"] == ["shared/a.txt:1:gatewright = 1"]
    (bench.folder / "way").symlink_to(".gatewright")
    assert bench.decide("file_list", path="way").verdict is Verdict.DENY
    bench.workspace.close()


async def test_folder_that_holds_something_protected_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    text = policy_text(roots='[workspace]\nroots = { shared = "/" }\n')
    (tmp_path / "ws/policy.toml").write_text(text)
    with closing(Workspace.open(tmp_path / "ws", keys=tmp_path / "keys", trust=True)) as workspace:
        bench = RootBench(workspace)
        everywhere = text.replace('["."]', '["/"]')
        (tmp_path / "ws/policy.toml").write_text(everywhere)
        workspace.reload()
        bench.write("free/a", "x")
        assert await bench.code("file_delete", path=str(tmp_path / "ws"), recursive=True) == "not-available"
        assert (await bench.data("file_delete", path=str(tmp_path / "ws/free"), recursive=True))["removed"] == 2
    assert (tmp_path / "ws/policy.toml").read_text() == everywhere


def port_of(bench: RootBench) -> RootFolders:
    port = bench.workspace.gate.in_force().services.ports.roots
    assert port is not None
    return port


async def tried(work: Any) -> Any:
    try:
        return await work
    except ToolFailure:
        return None


def idle() -> bool:
    return False


async def test_folder_swapped_for_a_link_gives_nothing_away_and_takes_nothing(bench: RootBench) -> None:
    far = bench.folder.parent / "far"
    far.mkdir()
    (far / "a").write_text(SECRET)
    bench.write("shared/sub/a", "fine")
    bench.write("vault/plain", "fine")
    (bench.folder / "shared/twin").symlink_to(far)
    port, base = port_of(bench), str(bench.folder / "shared")
    told: list[Any] = []
    with swapping(bench.folder / "shared/sub", bench.folder / "shared/twin"):
        for number in range(ROUNDS):
            told.append(await tried(port.read(f"{base}/sub/a")))
            told.append(await tried(port.search(f"{base}/sub", lambda _: 0, hits=9, stopped=idle)))
            told.append(await tried(port.search(base, lambda _: 0, hits=9, stopped=idle)))
            told.append(await tried(port.list_folder(f"{base}/sub", stopped=idle)))
            told.append(await tried(asyncio.to_thread(port.text_of, f"{base}/sub/a")))
            await tried(port.write(f"{base}/sub/new{number}", "x", Action.OVERWRITE))
            await tried(port.write(f"{base}/sub/deep{number}/new", "x", Action.OVERWRITE))
            await tried(port.edit(f"{base}/sub/a", "SECRET", "x", Action.OVERWRITE))
            await tried(port.delete(f"{base}/sub/gone", recursive=False, granted=Action.DELETE))
            await tried(port.copy(str(bench.folder / "vault/plain"), f"{base}/sub/copy{number}", Action.OVERWRITE))
            told.append((await bench.call("file_read", path="sub/a")).output)
            await bench.call("file_write", path=f"sub/call{number}", content="x")
    assert "SECRET" not in json.dumps(told)
    assert names(far) == ["a"]
    assert (far / "a").read_text() == SECRET


async def test_folder_that_is_removed_while_it_is_swapped_takes_nothing_outside_along(bench: RootBench) -> None:
    far = bench.folder.parent / "far"
    for number in range(20):
        (far / f"d{number}").mkdir(parents=True)
        (far / f"d{number}/a").write_text(SECRET)
    port, base = port_of(bench), str(bench.folder / "shared")
    (bench.folder / "shared/twin").symlink_to(far)
    bench.write("shared/sub/first", "x")
    with swapping(bench.folder / "shared/sub", bench.folder / "shared/twin"):
        for _ in range(ROUNDS):
            for number in range(20):
                await tried(port.write(f"{base}/sub/d{number}/a", "x", Action.OVERWRITE))
            await tried(port.delete(f"{base}/sub", recursive=True, granted=Action.DELETE))
    assert len(names(far)) == 20
    assert {(far / f"d{number}/a").read_text() for number in range(20)} == {SECRET}


async def test_file_swapped_for_a_link_is_neither_read_nor_written(bench: RootBench) -> None:
    far = bench.folder.parent / "far"
    far.write_text(SECRET)
    path = bench.write("shared/a", "fine")
    (bench.folder / "shared/twin").symlink_to(far)
    port = port_of(bench)
    with swapping(path, bench.folder / "shared/twin"):
        for _ in range(6 * ROUNDS):
            told = await tried(port.read(str(path)))
            assert told is None or told["content"].startswith("fine")
            await tried(port.edit(str(path), "fine", "fine", Action.OVERWRITE))
            await tried(port.write(str(path), "fine", Action.OVERWRITE))
    assert (far.read_text(), far.stat().st_nlink) == (SECRET, 1)


async def test_vault_swapped_into_an_open_root_stays_closed_for_those_who_hold_a_path(bench: RootBench) -> None:
    bench.write("vault/s", SECRET)
    bench.write("shared/sub/s", "fine")
    (bench.folder / "shared/twin").symlink_to(bench.folder / "vault")
    port = port_of(bench)
    with swapping(bench.folder / "shared/sub", bench.folder / "shared/twin"):
        for _ in range(ROUNDS):
            told = await tried(port.read(str(bench.folder / "shared/sub/s")))
            assert told is None or told["content"] == "fine"


@pytest.mark.parametrize("path", ["../../etc/passwd", "shared/../../x", "/", "/etc", "relative", ""])
async def test_port_takes_no_path_that_it_did_not_give(bench: RootBench, path: str) -> None:
    port = port_of(bench)
    for given in (path, f"{bench.folder}/shared/{path}" if ".." in path else path):
        with pytest.raises(ToolFailure) as caught:
            await port.read(given)
        assert caught.value.code == "not-available"


def test_marker_with_an_unknown_root_is_an_error_where_it_is_written() -> None:
    with pytest.raises(RegistrationError, match="no root `share`"):
        FileParameter(roots=("share",))


async def test_another_spelling_of_a_name_on_disk_reaches_nothing_where_case_is_folded(
    bench: RootBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("shared/Docs/Key.md", "needle")
    fold_below(bench.folder / "shared", monkeypatch)
    for tool, arguments in (
        ("file_read", {"path": "shared/docs/Key.md"}),
        ("file_list", {"path": "shared/DOCS"}),
        ("file_search", {"path": "shared/Docs/key.md", "query": "needle"}),
        ("file_write", {"path": "shared/Docs/KEY.md", "content": "x"}),
        ("file_write", {"path": "shared/docs/new.md", "content": "x"}),
        ("file_edit", {"path": "shared/Docs/key.md", "old_text": "needle", "new_text": "x"}),
        ("file_delete", {"path": "shared/docs", "recursive": True}),
    ):
        decision = bench.decide(tool, **arguments)
        assert (decision.verdict, decision.code) == (Verdict.DENY, "other-spelling"), tool
        assert "Docs" not in (decision.model_message or "")
    assert (await bench.data("file_read", path="shared/Docs/Key.md"))["content"] == "needle"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such folder")
async def test_a_real_path_in_the_workspace_is_never_read_as_one_in_a_root_of_that_name() -> None:
    with TemporaryDirectory(dir="/tmp") as top:
        bench = opened(Path(top))
        for path in (f"{bench.folder}/policy.toml", f"{bench.folder}/plain.md"):
            assert bench.decide("file_write", path=path, content="x").code == "outside-roots"
            assert await bench.code("file_write", path=path, content="x") == "outside-roots"
        assert list((bench.folder / "tmp").iterdir()) == []
        await bench.data("file_write", path="/tmp/a.md", content="x")
        assert bench.text("tmp/a.md") == "x"
        bench.workspace.close()
