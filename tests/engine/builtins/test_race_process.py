"""Another process swaps folders for links to elsewhere while every call that takes a path is made: nothing escapes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import ApprovalRequest, Outcome, Status
from gatewright.workspace import Workspace
from tests.engine.builtins.rootbench import ROOTS, TOOLS
from tests.support.bench import OpenBench
from tests.support.swapping_process import FILES, INSIDE, SUB, TWIN

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the exchange of two names is Linux's renameat2")

ROUNDS = 13
SECRET = "4711-4712"
OUTSIDE = f"cellar\nkey {SECRET}\n"
FAR, ONLY_OUTSIDE = "farout", ("lantern.md", "deep/lantern.md", "crypt/lantern.md")
GIVEN_AWAY = (SECRET, FAR, "lantern", "crypt")
POLICY = f"""gatewright = 1

{ROOTS}
[agents.a]
tools = {[*TOOLS, "file"]}
capabilities = ["AdvancedEdit", {{ FsRead = {{ prefixes = ["."] }} }}, {{ FsWrite = {{ prefixes = ["."] }} }}]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [{{ pattern = "sub/deep/**", permission = "admin" }}]
"""
SOURCE_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read", {}),
    ("load", {}),
    ("insert", {"line": 1, "content": "x\n"}),
    ("append", {"content": "x\n"}),
    ("replace", {"old": "cellar", "new": "y"}),
    ("replace", {"old": "by far", "new": "by near"}),
    ("patch", {"patch": "@@ -1 +1 @@\n-cellar\n+y\n"}),
    ("diff", {}),
    ("status", {}),
    ("save", {}),
    ("reload", {}),
    ("create", {"content": "x\n"}),
    ("delete", {}),
)
ROOT_CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("file_read", "path", {}),
    ("read_file", "path", {}),
    ("file_search", "path", {"query": "k.y", "regex": True}),
    ("file_edit", "path", {"old_text": "cellar", "new_text": "y"}),
    ("file_edit", "path", {"old_text": "by far", "new_text": "by near"}),
    ("file_write", "path", {"content": "x\n"}),
    ("vault_copyto", "destination_path", {"source_path": "vault/plain"}),
    ("file_delete", "path", {}),
)
Call = tuple[str, dict[str, Any]]


def calls_of(number: int) -> Iterator[Call]:
    """Every call of one round, on files that are there on both sides, on new ones and on whole folders."""
    name = FILES[number % len(FILES)]
    for operation, given in SOURCE_CALLS:
        yield "file", {"op": operation, "path": f"sub/{name}", **given}
    for place in (f"sub/new{number}.md", f"sub/made{number}/new.md"):
        yield "file", {"op": "create", "path": place, "content": "x\n"}
        yield "file_write", {"path": f"shared/{place}", "content": "x\n"}
        yield "vault_copyto", {"source_path": "vault/plain", "destination_path": f"shared/{place}c"}
    for tool, parameter, given in ROOT_CALLS:
        yield tool, {parameter: f"shared/sub/{name}", **given}
    yield "vault_copyto", {"source_path": f"vault/sub/{name}", "destination_path": f"tmp/copied{number}"}
    for folder in (".", "sub", "sub/deep"):
        yield "file", {"op": "list", "path": folder, "recursive": True}
        yield "file", {"op": "list", "path": folder}
        yield "file", {"op": "status", "path": folder}
        yield "file_list", {"path": f"shared/{folder}"}
        yield "file_search", {"path": f"shared/{folder}", "query": "k.y", "regex": True}
    folder = ("sub/deep", "sub")[number % 2]
    yield "file", {"op": "delete", "path": folder, "recursive": True}
    yield "file_delete", {"path": f"shared/{folder}", "recursive": True}


def tree(folder: Path) -> dict[str, tuple[int, ...] | tuple[int | bytes, ...]]:
    """Everything in a folder: names, times, modes, numbers of names, contents."""
    found: dict[str, tuple[int, ...] | tuple[int | bytes, ...]] = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        kept = (status.st_ino, status.st_mode, status.st_nlink, status.st_mtime_ns, status.st_ctime_ns)
        found[str(path)] = (*kept, path.read_bytes()) if path.is_file() else kept
    return found


def held(folder: Path) -> Iterator[bytes]:
    """What the files of a folder hold, links left out."""
    for top, _, names in os.walk(folder):
        for path in (Path(top, name) for name in names):
            if path.is_file() and not path.is_symlink():
                yield path.read_bytes()


@contextmanager
def swapped_by_a_process(*folders: Path) -> Generator[list[int]]:
    """A process that swaps until the end of the block; gives where the number of swaps is put then."""
    command = [sys.executable, "-m", "tests.support.swapping_process", *map(str, folders)]
    swaps: list[int] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            if first == "not supported\n":
                pytest.skip("the file system does not exchange names in one step")
            assert first == "swapping\n"
            yield swaps
        finally:
            process.terminate()
            last, _ = process.communicate()
    assert process.returncode == 0
    swaps.append(int(last))


def seen_by_a_careless_reader(place: Path) -> str | None:
    """What opening by name alone gives: it is what shows that the swaps go on."""
    try:
        return place.read_text()
    except OSError:
        return None


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder, far = tmp_path / "ws", tmp_path / FAR
    for name in (*FILES, *ONLY_OUTSIDE):
        (far / name).parent.mkdir(parents=True, exist_ok=True)
        (far / name).write_text(OUTSIDE)
    for name in ("docs", "shared", "vault"):
        (folder / name).mkdir(parents=True)
        (folder / name / TWIN).symlink_to(far)
    (folder / "tmp").mkdir()
    (folder / "vault/plain").write_text(INSIDE)
    (folder / "policy.toml").write_text(POLICY)
    opened = Workspace.open(folder, keys=tmp_path / "keys")
    yield opened
    opened.close()


def given_away(outcome: Outcome, asked: list[ApprovalRequest]) -> list[str]:
    """Words from outside in what the model, the host and the operator are told."""
    told = f"{outcome!r} {(outcome.data or b'').decode()} {[request.to_json() for request in asked]}"
    return [word for word in GIVEN_AWAY if word in told]


async def test_folders_that_another_process_swaps_for_links_let_nothing_out_and_nothing_in(
    workspace: Workspace, tmp_path: Path
) -> None:
    bench = OpenBench(workspace)
    asked = bench.asked
    fates: dict[str, Counter[Status]] = {}
    careless: set[str | None] = set()
    before = tree(tmp_path / FAR)

    with swapped_by_a_process(*(workspace.folder / name for name in ("docs", "shared", "vault"))) as swaps:
        for number in range(ROUNDS):
            for tool, arguments in calls_of(number):
                asked.clear()
                outcome = await workspace.call("a", tool, arguments, approver=bench.answer)
                assert given_away(outcome, asked) == [], (tool, arguments)
                assert outcome.code not in {"internal-error", "tool-crashed"}, (tool, arguments, outcome.detail)
                fates.setdefault(f"{tool} {arguments.get('op', '')}", Counter())[outcome.status] += 1
                careless.add(seen_by_a_careless_reader(workspace.folder / "shared" / SUB / "b.md"))

    assert tree(tmp_path / FAR) == before
    assert [content for content in held(workspace.folder) if SECRET.encode() in content] == []
    assert OUTSIDE in careless
    assert len(careless) > 1
    assert swaps[0] > 1_000
    assert {name for name, fate in fates.items() if fate[Status.ALLOWED]} > {"file list", "file_list ", "file_search "}
    total = sum(fates.values(), Counter[Status]())
    assert total.total() > 500
    assert min(total[Status.ALLOWED], total[Status.DENIED]) > ROUNDS
    assert total[Status.FAILED] > 0


ABOVE = (
    POLICY.replace('base_path = "docs"', 'base_path = "docs/sub/deep"')
    .replace('shared = "shared"', 'shared = "shared/sub/deep"')
    .replace('pattern = "sub/deep/**"', 'pattern = "*"')
)
CALLS_ABOVE: tuple[Call, ...] = (
    *(("file", {"op": operation, "path": "a.md", **given}) for operation, given in SOURCE_CALLS),
    *(("file", {"op": "read", "path": name}) for name in ("a.md", "lantern.md")),
    ("file", {"op": "create", "path": "new/a.md", "content": "x"}),
    ("file", {"op": "list", "recursive": True}),
    ("file", {"op": "list"}),
    ("file", {"op": "status"}),
    *((tool, {name: "shared/a.md", **given}) for tool, name, given in ROOT_CALLS if tool != "file_delete"),
    ("file_write", {"path": "shared/new/a.md", "content": "x"}),
    ("file_read", {"path": "shared/lantern.md"}),
    ("file_list", {"path": "shared"}),
    ("file_search", {"path": "shared", "query": "k.y", "regex": True}),
    ("file_delete", {"path": "shared/a.md"}),
)


def lay_far_in(place: Path) -> None:
    for name in (*FILES, *ONLY_OUTSIDE):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(OUTSIDE)


@pytest.mark.parametrize("twin", ["link", "folder"])
async def test_folders_above_the_bases_that_another_process_swaps_let_nothing_out_and_nothing_in(
    tmp_path: Path, twin: str
) -> None:
    folder = tmp_path / "ws"
    for name in ("docs", "shared"):
        far = tmp_path / FAR / name if twin == "link" else folder / name / TWIN
        lay_far_in(far)
        (folder / name / SUB / "deep").mkdir(parents=True)
        (folder / name / SUB / "deep/a.md").write_text(INSIDE)
        if twin == "link":
            (folder / name / TWIN).symlink_to(far)
    for name in ("tmp", "vault"):
        (folder / name).mkdir()
    (folder / "vault/plain").write_text(INSIDE)
    (folder / "policy.toml").write_text(ABOVE)
    workspace = Workspace.open(folder, keys=tmp_path / "keys")
    bench = OpenBench(workspace)
    asked = bench.asked
    codes: Counter[str] = Counter()

    with swapped_by_a_process(folder / "docs", folder / "shared") as swaps:
        for _ in range(ROUNDS):
            for tool, arguments in CALLS_ABOVE:
                asked.clear()
                outcome = await workspace.call("a", tool, arguments, approver=bench.answer)
                given = [word for word in given_away(outcome, asked) if word not in str(arguments)]
                assert given == [], (tool, arguments)
                assert outcome.code not in {"internal-error", "tool-crashed"}, (tool, arguments, outcome.detail)
                codes[outcome.code] += 1
            for entry in listed(workspace):
                assert "lantern" not in entry
    workspace.close()

    assert codes["source-replaced"] > 0
    assert codes["root-replaced"] > 0
    assert codes[""] + codes["allowed"] > 0, codes
    assert swaps[0] > 1_000
    fars = [tmp_path / FAR / name for name in ("docs", "shared")]
    if twin == "folder":
        fars = [next((folder / name).glob("*/lantern.md")).parent for name in ("docs", "shared")]
    for far in fars:
        found = {str(path.relative_to(far)): path.read_text() for path in far.rglob("*") if path.is_file()}
        assert found == dict.fromkeys((*FILES, *ONLY_OUTSIDE), OUTSIDE)


def listed(workspace: Workspace) -> list[str]:
    """What people see of the source."""
    try:
        return [entry.name for entry in workspace.sources.overlay("docs").scan().entries]
    except WorkspaceError:
        return []
