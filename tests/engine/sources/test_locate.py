import hashlib
import os
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.target import Located, Refusal
from gatewright.policy.verdict import Permission
from tests.engine.sources.bench import Bench, source_of


@pytest.fixture
def two(bench: Bench, tmp_path: Path) -> Bench:
    other = tmp_path / "other"
    other.mkdir()
    (other / "only.md").write_text("x")
    bench.start(source_of("other"), other)
    return bench


def test_a_relative_path_leads_into_the_source(bench: Bench) -> None:
    assert bench.at("./a//b.md") == Located("docs", "a/b.md", str(bench.folder / "a/b.md"))
    assert bench.at("x/../a.md").relative == "a.md"
    assert bench.at(".").relative == "."


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd", "/", "/../etc"])
def test_a_path_that_leaves_the_base_is_refused(bench: Bench, path: str) -> None:
    refused = bench.refused(path)
    assert refused.code == "outside-base"
    assert str(bench.folder) not in refused.hint


def test_an_absolute_path_below_a_base_is_accepted(bench: Bench) -> None:
    assert bench.at(f"{bench.folder}/a.md").relative == "a.md"
    assert bench.at(f"{bench.folder}/").relative == "."
    assert bench.refused(f"{bench.folder}x/a.md").code == "outside-base"
    bench.start(source_of("inner"), bench.folder / "inner")
    (bench.folder / "inner").mkdir()
    assert bench.at(f"{bench.folder}/inner/a.md") == Located("inner", "a.md", f"{bench.folder}/inner/a.md")
    assert bench.refused(f"{bench.folder}/../a.md").code == "outside-base"


def test_a_base_reached_through_a_link_is_the_folder_itself(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(bench.folder)
    bench.stop("docs")
    bench.start(source_of(), tmp_path / "link")
    assert bench.at(f"{bench.folder}/a.md") == bench.at("a.md")
    assert bench.at("a.md").absolute == str(bench.folder / "a.md")


def test_with_several_sources_the_first_one_that_has_the_path_is_meant(two: Bench) -> None:
    assert two.at("only.md").source_id == "other"
    assert two.at("nowhere.md").source_id == "docs"
    assert two.at("nowhere.md", "other").source_id == "other"


def test_an_unknown_source_and_a_foreign_one_get_the_same_words(two: Bench) -> None:
    foreign = two.manager.locate("a.md", source_id="other", allowed=("docs",))
    unknown = two.manager.locate("a.md", source_id="nonsense", allowed=("docs",))
    assert two.manager.locate("a.md", source_id=None, allowed=("nonsense", "docs")) == two.at("a.md")
    assert isinstance(foreign, Refusal)
    assert isinstance(unknown, Refusal)
    assert (foreign.code, foreign.hint) == (unknown.code, unknown.hint)
    assert isinstance(two.manager.locate("only.md", source_id=None, allowed=()), Refusal)


def test_a_refusal_says_why_to_the_operator_and_what_to_do_to_the_model(two: Bench) -> None:
    outside, none = "give a path inside the source, relative to its top folder", "there is no such source"
    no_source = Refusal("no-source", "no source of the agent is attached", "no source is attached")
    two.write("a.md", "x")
    above = f"{two.folder}/../x"
    for path, source_id, allowed, wanted in (
        ("a.md", None, (), no_source),
        ("a.md", None, ("gone",), no_source),
        ("a.md", "other", ("docs",), ("unknown-source", "source `other` is not one of the agent's sources", none)),
        ("a.md", "gone", ("docs", "gone"), ("unknown-source", "source `gone` is not attached", none)),
        ("../x", None, ("docs", "other"), ("outside-base", "`../x` leads above the base", outside)),
        ("/etc/x", None, ("docs",), ("outside-base", "`/etc/x` lies outside the agent's sources", outside)),
        ("/../x", None, ("docs",), ("outside-base", "`/../x` lies outside the agent's sources", outside)),
        (above, None, ("docs",), ("outside-base", f"`{above}` lies outside the agent's sources", outside)),
        (
            "a.md/",
            "docs",
            ("docs",),
            ("not-a-folder", "`a.md` in source `docs`: this is a file, not a folder", "this is a file, not a folder"),
        ),
        (
            "no/",
            "docs",
            ("docs",),
            ("not-found", "`no` in source `docs`: there is no such folder", "there is no such folder"),
        ),
        ("", None, ("docs",), ("path-empty", "the path is empty", "give a path, `.` is the top folder")),
    ):
        found = two.manager.locate(path, source_id=source_id, allowed=allowed)
        assert found == (wanted if isinstance(wanted, Refusal) else Refusal(*wanted)), path
    assert two.manager.locate_label("x", allowed=()) == no_source
    reason = f"no file of the agent's sources has the label `{'x' * 200}`"
    found = two.manager.locate_label("x" * 201, allowed=("docs",))
    assert found == Refusal("unknown-label", reason, "there is no such block label")
    two.folder.rename(two.folder.with_name("away"))
    two.folder.mkdir()
    hint = "another folder stands in the place of this source's"
    reason = f"`a.md` in source `docs`: {hint}; reading the policy again attaches the folder that is there now"
    assert two.refused("a.md", "docs") == Refusal("source-replaced", reason, hint)


def test_a_path_that_a_source_could_not_hold_is_one_of_the_next_but_one_behind_a_link_is_not(
    two: Bench, tmp_path: Path
) -> None:
    two.write("file", "x")
    (two.folder / "way").symlink_to(".")
    for name in ("file", "way"):
        (tmp_path / "other" / name).mkdir()
        (tmp_path / "other" / name / "a.md").write_text("x")
    assert two.at("file/a.md").source_id == "other"
    link = "the path leads through a symbolic link, which is not followed"
    assert two.refused("way/a.md") == Refusal("symlink", f"`way/a.md` in source `docs`: {link}", link)
    assert two.at("nowhere/a.md").source_id == "docs"
    two.folder.rename(tmp_path / "away")
    assert two.at("only.md").source_id == "other"


def test_a_source_over_everything_takes_every_absolute_path(bench: Bench) -> None:
    bench.start(source_of("all", default=Permission.READ_ONLY), Path("/"))
    assert bench.at("/", "all").relative == "."
    assert bench.at("/nowhere/..", "all").relative == "."
    assert bench.at("/nowhere.md") == Located("all", "nowhere.md", "/nowhere.md")
    assert bench.at(f"{bench.folder}/a.md").source_id == "docs"


def test_a_source_that_is_not_allowed_is_never_meant(two: Bench, tmp_path: Path) -> None:
    found = two.manager.locate("only.md", source_id=None, allowed=("docs",))
    assert isinstance(found, Located)
    assert found.source_id == "docs"
    absolute = two.manager.locate(f"{tmp_path}/other/only.md", source_id=None, allowed=("docs",))
    assert isinstance(absolute, Refusal)


def test_a_label_leads_back_to_its_place(two: Bench, tmp_path: Path) -> None:
    at = two.at("only.md")
    label = two.manager.label_of(at)
    hash8 = hashlib.sha256(f"{tmp_path}/other/only.md".encode()).hexdigest()[:8]
    assert label == f"file:{hash8}:only.md"
    assert two.manager.locate_label(label, allowed=("docs", "other")) == at
    assert isinstance(two.manager.locate_label(label, allowed=("docs",)), Refusal)


@pytest.mark.parametrize("tail", ["../x", "/etc/passwd", "a/../b", ".", "", "a\\b", "~/x"])
def test_a_label_with_a_path_that_is_not_canonical_is_refused(bench: Bench, tail: str) -> None:
    source = bench.manager.get("docs")
    assert source is not None
    refused = bench.manager.locate_label(source.label(tail), allowed=("docs",))
    assert isinstance(refused, Refusal)
    assert refused.code == "unknown-label"


def test_a_slash_at_the_end_wants_a_folder(bench: Bench) -> None:
    bench.write("sub/a.md", "x")
    assert bench.at("sub/").relative == "sub"
    assert bench.refused("sub/a.md/").code == "not-a-folder"
    assert bench.refused("none/").code == "not-found"


@pytest.mark.parametrize("path", ["link", "linkdir/a.md", "outdir/x", "dangling", "loop"])
def test_a_path_through_a_symlink_is_refused_wherever_it_leads(bench: Bench, tmp_path: Path, path: str) -> None:
    bench.write("real/a.md", "x")
    (bench.folder / "link").symlink_to("real/a.md")
    (bench.folder / "linkdir").symlink_to("real")
    (bench.folder / "outdir").symlink_to(tmp_path)
    (bench.folder / "dangling").symlink_to("nowhere")
    (bench.folder / "loop").symlink_to("loop")
    refused = bench.refused(path)
    assert refused.code == "symlink"
    assert "not followed" in refused.hint


def test_a_hard_link_is_refused(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    os.link(outside, bench.folder / "inside.txt")
    assert bench.refused("inside.txt").code == "hard-link"


def test_pipes_and_sockets_are_refused(bench: Bench) -> None:
    os.mkfifo(bench.folder / "pipe")
    assert bench.refused("pipe").code == "special-file"


def test_of_a_place_with_level_none_nothing_is_told_but_the_level(bench: Bench) -> None:
    bench.update(source_of(rules=(("hidden", Permission.NONE),)))
    bench.write("hidden/real", "x")
    (bench.folder / "hidden" / "link").symlink_to("real")
    for path in ("hidden/link", "hidden/real/", "hidden/none/", "hidden/real/deeper"):
        assert bench.manager.level(bench.at(path)).permission is Permission.NONE


def test_a_missing_base_is_told_and_starting_does_not_fail(bench: Bench, tmp_path: Path) -> None:
    bench.start(source_of("later"), tmp_path / "later")
    assert bench.refused("a.md", "later").code == "source-missing"
    (tmp_path / "later").mkdir()
    assert bench.at("a.md", "later").source_id == "later"


async def test_a_base_that_is_a_file_or_vanished_is_told(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    bench.start(source_of("plain"), tmp_path / "plain")
    assert bench.refused("a.md", "plain").code == "source-missing"
    with pytest.raises(ToolFailure, match="not a folder"):
        await bench.manager.list_folder(bench.place(".", "plain"))


@pytest.mark.parametrize("path", ["secret/s.md", "secret"])
def test_a_closed_place_counts_the_same_whether_or_not_anything_is_there(two: Bench, path: str) -> None:
    two.update(source_of(rules=(("secret/", Permission.NONE),)))
    before = two.manager.locate(path, source_id=None, allowed=two.manager.ids)
    (two.folder.parent / "other/secret").mkdir()
    (two.folder.parent / "other/secret/s.md").write_text("open")
    there_in_other = two.at(path)
    two.write("secret/s.md", "hidden")
    assert two.at(path) == there_in_other
    assert there_in_other.source_id == "other"
    assert isinstance(before, Located)
