"""Reading, listing and searching the roots of a workspace."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.gate import Status
from gatewright.sources import rootfolder, rootwalk
from tests.engine.builtins.rootbench import RootBench, opened, policy_text
from tests.support.checkout import ROOT


async def test_text_is_read_under_each_spelling_of_its_path(bench: RootBench) -> None:
    bench.write("shared/sub/a.txt", "eins\nzwei\n")
    for path in ("shared/sub/a.txt", "/shared/sub/a.txt", "sub/a.txt", "./sub//x/../a.txt"):
        data = await bench.data("file_read", path=path)
        assert data == {"path": "shared/sub/a.txt", "content": "eins\nzwei\n", "bytes": 10, "lines": 2}
    real = str(bench.folder / "shared/sub/a.txt")
    assert (await bench.data("file_read", path=real))["path"] == "shared/sub/a.txt"


async def test_older_name_gives_the_content_alone(bench: RootBench) -> None:
    bench.write("tmp/a.txt", "x")
    assert await bench.data("read_file", path="tmp/a.txt") == {"content": "x"}


async def test_byte_order_mark_is_left_out_and_told(bench: RootBench) -> None:
    bench.write("shared/a.txt", b"\xef\xbb\xbfx\r\n")
    data = await bench.data("file_read", path="a.txt")
    assert (data["content"], data["byte_order_mark"]) == ("x\r\n", True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF\0\0", "ELF"),
        (b"\xff\xfea\0b\0", "UTF-16"),
        (b"caf\xe9", "Latin-1"),
        (b"a\0b", "NUL"),
    ],
)
async def test_what_is_no_utf8_is_refused_by_its_kind(bench: RootBench, content: bytes, words: str) -> None:
    bench.write("shared/a", content)
    outcome = await bench.call("file_read", path="a")
    assert (outcome.status, outcome.code) == (Status.FAILED, "not-text")
    assert words in (outcome.output or "")


async def test_too_large_missing_and_folder_are_told_apart(bench: RootBench) -> None:
    bench.write("shared/large", b"x" * (1024 * 1024 + 1))
    bench.write("shared/full", b"x" * 1024 * 1024)
    assert await bench.code("file_read", path="large") == "too-large"
    assert (await bench.data("file_read", path="full"))["bytes"] == 1024 * 1024
    assert await bench.code("file_read", path="gone") == "not-found"
    assert await bench.code("file_read", path="shared") == "is-a-folder"


async def test_names_are_listed_sorted_with_folders_marked_and_unusable_ones_left_out(bench: RootBench) -> None:
    bench.write("shared/b.txt", "x")
    bench.write("shared/a/deep.txt", "x")
    bench.write("shared/C.txt", "x")
    bench.write("shared/odd\nname", "x")
    bench.write("shared/.b.txt.0123456789ab.tmp", "x")
    (bench.folder / "shared/link").symlink_to("b.txt")
    os.mkfifo(bench.folder / "shared/pipe")
    os.link(bench.write("tmp/one", "x"), bench.folder / "shared/hard")
    assert (await bench.data("file_list"))["entries"] == ["C.txt", "a/", "b.txt"]
    assert (await bench.data("file_list", path="shared/a"))["entries"] == ["deep.txt"]
    outcome = await bench.call("file_list", path="tmp")
    assert "no entries in `tmp`" in (outcome.output or "")
    assert await bench.code("file_list", path="b.txt") == "not-a-folder"
    assert await bench.code("file_read", path="b.txt/") == "not-a-folder"
    assert await bench.code("file_list", path="gone") == "not-found"


async def test_long_list_is_cut_and_says_how_much_is_missing(bench: RootBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootwalk, "MAX_LISTED", 3)
    for number in range(5):
        bench.write(f"shared/{number}", "")
    data = await bench.data("file_list")
    assert (data["entries"], data["left_out"]) == (["0", "1", "2"], 2)


async def test_search_finds_plain_text_and_patterns_below_a_folder(bench: RootBench) -> None:
    bench.write("shared/a.md", "Eins\nzwei (2)\r\n")
    bench.write("shared/sub/b.md", "eins\n")
    bench.write("tmp/c.md", "eins\n")
    assert (await bench.data("file_search", query="eins"))["hits"] == ["shared/sub/b.md:1:eins"]
    folded = await bench.data("file_search", query="EINS", ignore_case=True)
    assert folded["hits"] == ["shared/a.md:1:Eins", "shared/sub/b.md:1:eins"]
    assert (await bench.data("file_search", query="(2)"))["hits"] == ["shared/a.md:2:zwei (2)"]
    found = await bench.data("file_search", query=r"^e.*s$", regex=True, ignore_case=True, path="shared")
    assert found["hits"] == ["shared/a.md:1:Eins", "shared/sub/b.md:1:eins"]
    assert (await bench.data("file_search", query="eins", path="tmp/c.md"))["hits"] == ["tmp/c.md:1:eins"]


async def test_search_passes_over_binaries_and_large_files_and_counts_them(bench: RootBench) -> None:
    bench.write("shared/a", "needle")
    bench.write("shared/b", b"needle\0")
    bench.write("shared/c", b"needle" * 200_000)
    (bench.folder / "shared/d").symlink_to(bench.write("vault/d", "needle"))
    data = await bench.data("file_search", query="needle")
    assert data == {"path": "shared", "hits": ["shared/a:1:needle"], "files": 1, "skipped": {"binary": 1, "large": 1}}


async def test_search_stops_at_its_limits_and_says_so(bench: RootBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("shared/a", "x\n" * 500)
    few = await bench.data("file_search", query="x", max_hits=3)
    assert (len(few["hits"]), "more than 3 hits" in few["stopped"]) == (3, True)
    assert len((await bench.data("file_search", query="x"))["hits"]) == 200
    exact = await bench.data("file_search", query="nothing")
    assert "stopped" not in exact
    monkeypatch.setattr(rootwalk, "MAX_SEARCHED_BYTES", 500)
    assert (await bench.data("file_search", query="x", max_hits=3))["stopped"] == "there are more than 3 hits"
    bench.write("shared/b", "y\n")
    assert "enough text" in (await bench.data("file_search", query="y"))["stopped"]
    monkeypatch.setattr(rootwalk, "MAX_LOOKED_AT", 1)
    assert "too many files" in (await bench.data("file_search", query="nothing"))["stopped"]


@pytest.mark.parametrize("query", ["(?=a)b", r"(a)\1", "(unfinished", "a" * 400 + "{1000}{1000}"])
async def test_pattern_that_is_not_linear_denies_the_call_and_is_not_repeated(bench: RootBench, query: str) -> None:
    decision = bench.decide("file_search", query=query, regex=True)
    assert (decision.stage, decision.code) == ("arguments", "arguments-mismatch")
    assert query not in (decision.model_message or "")
    assert (await bench.call("file_search", query=query)).status is Status.ALLOWED


async def test_evil_pattern_costs_nothing(bench: RootBench) -> None:
    bench.write("shared/a", "a" * 200_000 + "!")
    data = await bench.data("file_search", query=r"^(a+)+$", regex=True)
    assert data["hits"] == []


async def test_slow_pattern_ends_in_time_and_tells_what_it_was_not_matched_with(
    bench: RootBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("shared/a", "a" * 700_000 + "\n" + "x" * 9_000 + "needle\n" + "needle" + "y" * 9_000)
    data = await bench.data("file_search", query="a{0,1000}a{0,1000}b", regex=True)
    assert (data["hits"], data["skipped"]) == ([], {"long_lines": 3})

    data = await bench.data("file_search", query="needle|y$", regex=True)
    assert [hit.split(":")[1] for hit in data["hits"]] == ["3"]
    assert data["skipped"] == {"long_lines": 2}
    data = await bench.data("file_search", query="[ay]$", regex=True)
    assert (data["hits"], data["skipped"]) == ([], {"long_lines": 3})
    data = await bench.data("file_search", query="needle")
    assert [hit.split(":")[1] for hit in data["hits"]] == ["2", "3"]

    bench.write("shared/b", ("a" * 7_000 + "\n") * 140)
    looks = iter([False, False, True])

    def until_third_look(_: object) -> Callable[[], bool]:
        return lambda: next(looks, True)

    monkeypatch.setattr("gatewright.builtins.root_file.until_stopped", until_third_look)
    data = await bench.data("file_search", query="a{0,1000}a{0,1000}b", path="shared/b", regex=True)
    assert "the time was over" in data["stopped"]


async def test_deep_tree_is_searched_without_end_or_crash(bench: RootBench) -> None:
    path = "shared/" + "d/" * 64 + "a.txt"
    bench.write(path, "needle")
    bench.write("shared/" + "d/" * 65 + "b.txt", "needle")
    assert (await bench.data("file_search", query="needle"))["hits"] == [f"{path}:1:needle"]


async def test_only_what_is_beyond_a_limit_is_left_out(bench: RootBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        bench.write(f"shared/dir/{number}", "x\n")
    for name, most in (("MAX_LISTED", 3), ("MAX_LOOKED_AT", 3), ("MAX_SEARCHED_BYTES", 6), ("MAX_REMOVED", 3)):
        monkeypatch.setattr(rootwalk, name, most)
    listed: dict[str, object] = {"path": "shared/dir", "entries": ["0", "1", "2"]}
    hits = [f"shared/dir/{number}:1:x" for number in range(3)]
    assert await bench.data("file_list", path="dir") == listed
    found = await bench.data("file_search", query="x", path="dir", max_hits=3)
    assert found == {"path": "shared/dir", "hits": hits, "files": 3}
    bench.write("shared/dir/3", "x\n")
    why = "there are too many files and folders; choose a smaller folder"
    assert (await bench.data("file_list", path="dir"))["stopped"] == why
    monkeypatch.setattr(rootwalk, "MAX_LOOKED_AT", 4)
    assert await bench.data("file_list", path="dir") == listed | {"left_out": 1}
    searched = await bench.data("file_search", query="y", path="dir")
    assert searched["stopped"] == "enough text was searched; search a smaller folder"
    (bench.folder / "shared/dir/3").unlink()
    assert (await bench.data("file_delete", path="dir", recursive=True))["removed"] == 4


async def test_limits_are_those_that_the_page_tells_and_the_time_is_looked_at_on_the_way(bench: RootBench) -> None:
    page = (ROOT / "docs/tools.md").read_text("utf-8")
    for words in (
        f"{rootwalk.MAX_LISTED:,} names",
        f"{rootwalk.MAX_SEARCHED_BYTES / 2**20:g} MiB and {rootwalk.MAX_LOOKED_AT:,} entries",
        f"{rootwalk.MAX_DEPTH} folders deep",
        f"up to {rootwalk.MAX_REMOVED:,} files and folders",
        f"of at most {rootfolder.MAX_TEXT_BYTES / 2**20:g} MiB;",
        f"of at most {rootfolder.MAX_COPY_BYTES / 2**20:g} MiB,",
    ):
        assert words in page
    roots = bench.workspace.gate.in_force().services.ports.roots
    assert roots is not None
    looks = list[str]()

    def looked() -> bool:
        looks.append("")
        return False

    for length, count in ((8_190, 2), (8_191, 4)):
        path = bench.write("shared/a", "\n".join(["x" * length] * 4))
        looks.clear()
        await roots.search(str(path), lambda _: None, hits=1, stopped=looked)
        assert len(looks) == count
    over = "the time was over; choose a smaller folder"
    listed = await roots.list_folder(str(bench.folder / "shared"), stopped=lambda: True)
    assert listed == {"path": "shared", "entries": [], "stopped": over}
    found = await roots.search(str(path), lambda _: 0, hits=1, stopped=lambda: True)
    assert found == {"path": "shared/a", "hits": [], "files": 1, "stopped": over}


async def test_folder_of_a_source_that_is_moved_in_while_it_is_searched_gives_nothing_away(tmp_path: Path) -> None:
    (tmp_path / "ws/docs/sub").mkdir(parents=True)
    source = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n'
    bench = opened(tmp_path, policy_text(more=source))
    roots = bench.workspace.gate.in_force().services.ports.roots
    assert roots is not None
    for name in ("shared/top/a", "shared/top/b", "shared/top/sub/c", "docs/b", "docs/sub/c"):
        bench.write(name, name)

    def moved(line: str) -> int:
        if line == "shared/top/a":
            (bench.folder / "shared/top").rename(bench.folder / "shared/old")
            (bench.folder / "docs").rename(bench.folder / "shared/top")
        return 0

    found = await roots.search(str(bench.folder / "shared/top"), moved, hits=9, stopped=lambda: False)
    assert found == {"path": "shared/top", "hits": ["shared/top/a:1:shared/top/a"], "files": 1}
    bench.workspace.close()


async def test_a_long_line_is_cut_to_what_is_around_its_hit(bench: RootBench) -> None:
    lines = {
        "hit" + "b" * 297: "hit" + "b" * 297,
        "hit" + "b" * 298: "hit" + "b" * 297 + "…",
        "a" * 100 + "hit" + "b" * 300: "a" * 100 + "hit" + "b" * 197 + "…",
        "a" * 101 + "hit" + "b" * 197: "…" + "a" * 100 + "hit" + "b" * 197,
        "a" * 999 + "hit" + "b" * 198: "…" + "a" * 100 + "hit" + "b" * 197 + "…",
    }
    bench.write("shared/a", "\ufeff" + "\n".join(lines))
    hits = (await bench.data("file_search", query="hit"))["hits"]
    assert hits == [f"shared/a:{number}:{shown}" for number, shown in enumerate(lines.values(), 1)]
