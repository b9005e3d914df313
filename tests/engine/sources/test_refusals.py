"""Every refusal of an operation on a file and its block: its code, its words, and that nothing is changed by it."""

from collections.abc import Callable

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.blocks.block import TextBlock
from gatewright.blocks.difftext import diff_text
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import Action, Permission
from gatewright.sources.descriptor import CONFLICT
from gatewright.sources.filesource import FileSource
from gatewright.sources.filetext import digest_of
from gatewright.sources.held import Strategy
from tests.engine.sources.bench import Bench, source_of

NO_BLOCK = "there is no block for this path"
NO_EDITS = "there are no edits for this file: it has no block"
GONE = "the file was deleted on disk since, and would be written again, and nobody was asked"
ONLY_MORE = "this changes what the file holds, and only more text at its end was granted"
LEFT = "the file is gone from disk: only its block is left"
EDITS = "a block with edits that were not written stands at that path"
THERE = "there is something at that path, and it is never overwritten"
TOP = "this is the top folder, not a file"
FOLDER = "this is a folder, and folders are not removed"
SHUT = "this path is not available"
DATA = "not a text file in UTF-8: byte 1 is NUL, so it is binary data"
NUL, HALF = "the text holds a NUL character", "the text holds half of a surrogate pair"


@pytest.fixture
def files(bench: Bench) -> FileSource:
    """Files and blocks in every state: ``gone`` and ``new`` are blocks alone, ``other`` was changed on disk since."""
    bench.update(source_of(default=Permission.ADMIN))
    source = bench.manager.get("docs")
    assert source is not None
    for name in ("plain", "edited", "gone", "other", "data", "twice", "large"):
        bench.write(name, "one\n")
    bench.write("twice", "one\none\n")
    bench.write("sub/a", "one\n")
    for name in ("edited", "gone", "other", "data", "large"):
        source.replace(name, "one", "mine")
    source.append("twice", "")
    mine = TextBlock.from_text("mine").snapshot()
    audit = source.label(".gatewright/audit")
    bench.blocks.put(audit, source_id="docs", snapshot=mine, disk_digest=digest_of(b"secret"))
    for name in ("gone", "other", "data"):
        (bench.folder / name).unlink()
    bench.write("other", "theirs\n")
    bench.write("data", b"\0\1")
    bench.write("large", "x" * 100_001)
    return source


def later(one: Assessment) -> str | None:
    assert one.later is not None
    return one.later()


REFUSED: tuple[tuple[Callable[[FileSource], object], str, str], ...] = (
    (lambda s: s.save("plain", Action.OVERWRITE), "no-block", NO_EDITS),
    (lambda s: s.save("gone", Action.OVERWRITE), "not-granted", GONE),
    (lambda s: s.save("gone", Action.DELETE, asked=True), "not-granted", "a new file was not granted"),
    (lambda s: s.save("edited", Action.APPEND), "not-granted", ONLY_MORE),
    (lambda s: s.save("edited", Action.DELETE), "not-granted", ONLY_MORE),
    (lambda s: s.save("other", Action.OVERWRITE), "conflict", CONFLICT),
    (lambda s: s.save("large", Action.OVERWRITE), "conflict", CONFLICT),
    (lambda s: s.save("data", Action.OVERWRITE), "conflict", CONFLICT),
    (lambda s: s.append("edited", "\0"), "not-text", NUL),
    (lambda s: s.append("edited", "\ud800"), "not-text", HALF),
    (lambda s: s.replace("edited", "mine", "\0"), "not-text", NUL),
    (lambda s: s.replace("edited", "mine", "\udfff"), "not-text", HALF),
    (lambda s: s.replace("edited", "", "x"), "empty-match", "the old text is empty; give the text that is to go"),
    (
        lambda s: s.replace("edited", "one", "x"),
        "no-match",
        "the old text does not stand in the file (0 places)",
    ),
    (
        lambda s: s.replace("twice", "one", "x"),
        "many-matches",
        "the old text stands in the file at 2 places: give more of its surroundings",
    ),
    (lambda s: s.insert("plain", 1, "\0"), "not-text", NUL),
    (lambda s: s.patch("edited", "@@ -1 +1 @@\n-mine\n+\ud800\n"), "not-text", HALF),
    (lambda s: s.load("gone"), "not-found", LEFT),
    (lambda s: s.load("large"), "too-large", "the file is larger than the limit of 100,000 bytes"),
    (lambda s: s.load("no"), "not-found", "there is no such file"),
    (lambda s: s.load("no/a"), "not-found", "there is no such file or folder"),
    (lambda s: s.reload("plain"), "no-block", NO_BLOCK),
    (lambda s: s.block_info("plain"), "no-block", NO_BLOCK),
    (lambda s: s.diff("plain"), "no-block", NO_BLOCK),
    (lambda s: s.reconcile("plain", Strategy.MERGE), "no-block", NO_BLOCK),
    (lambda s: s.diff("data"), "not-text", DATA),
    (lambda s: s.reconcile("data", Strategy.OURS), "not-text", DATA),
    (lambda s: s.create("plain", "x"), "exists", THERE),
    (lambda s: s.create("gone", "x"), "exists", EDITS),
    (lambda s: s.create(".", "x"), "is-a-folder", TOP),
    (lambda s: s.read("."), "is-a-folder", TOP),
    (lambda s: s.read("sub//a"), "not-canonical", "the path is not canonical"),
    (lambda s: s.read("./sub"), "not-canonical", "the path is not canonical"),
    (lambda s: s.read("../a"), "not-canonical", "the path is not canonical"),
    (lambda s: s.read("a\0"), "not-canonical", "the path is not canonical"),
    (lambda s: s.read("policy.toml"), "not-available", SHUT),
    (lambda s: s.save(".gatewright/audit", Action.OVERWRITE), "not-available", SHUT),
    (lambda s: s.create("sub/../x", "x"), "not-canonical", "the path is not canonical"),
    (lambda s: s.create("new", "\0"), "not-text", NUL),
    (lambda s: s.delete("."), "is-a-folder", TOP),
    (lambda s: s.delete("no"), "not-found", "there is no such file"),
    (lambda s: s.delete("sub"), "is-a-folder", FOLDER),
    (lambda s: s.text_gone("no"), "not-found", "there is no such file"),
    (lambda s: s.text_gone("sub"), "is-a-folder", FOLDER),
    (lambda s: s.status("no"), "not-found", "there is no such file"),
    (lambda s: s.assess_text("plain", "\0"), "not-text", NUL),
    (lambda s: s.assess_text("no", "\ud800"), "not-text", HALF),
    (lambda s: later(s.assess_create("new", "\0")), "not-text", NUL),
    (lambda s: later(s.assess_save("plain")), "no-block", NO_EDITS),
    (lambda s: later(s.assess_save("other")), "conflict", CONFLICT),
    (lambda s: later(s.assess_save("data")), "not-text", DATA),
    (lambda s: later(s.assess_reload("plain")), "no-block", NO_BLOCK),
    (lambda s: later(s.assess_load("gone")), "not-found", LEFT),
    (lambda s: later(s.assess_create("plain", "x")), "exists", THERE),
    (lambda s: later(s.assess_create("gone", "x")), "exists", EDITS),
)


@pytest.mark.parametrize(("call", "code", "words"), REFUSED)
def test_what_cannot_be_done_is_refused_and_changes_nothing(
    bench: Bench, files: FileSource, call: Callable[[FileSource], object], code: str, words: str
) -> None:
    names = ("plain", "edited", "gone", "other", "twice", "large")

    def all_of_it() -> list[object]:
        held = {path.name: path.read_bytes() for path in bench.folder.iterdir() if path.is_file()}
        return [
            held,
            len([*bench.folder.iterdir()]),
            files.block_places(),
            *(files.read(name).content for name in names),
        ]

    before = all_of_it()
    with pytest.raises(ToolFailure) as told:
        call(files)
    assert (told.value.code, str(told.value)) == (code, words)
    assert all_of_it() == before


def test_what_a_call_would_do_is_told_as_an_action_a_question_and_a_difference(bench: Bench, files: FileSource) -> None:
    gone = "the file was deleted on disk since, and would be written again"
    lost = "edits that were not written to disk would be thrown away"
    files.append("twice", "more\n")
    (bench.folder / "other").write_text("mine\n")
    told = {
        "append": files.assess_save("twice"),
        "over": files.assess_save("edited"),
        "again": files.assess_save("gone"),
        "none": files.assess_save("plain"),
        "same": files.assess_save("other"),
        "conflict": files.assess_save("data"),
        "load": files.assess_load("edited"),
        "plain": files.assess_load("plain"),
        "create": files.assess_create("new", "x\n"),
        "text": files.assess_text("plain", "two\n"),
        "first": files.assess_text("no", "x"),
    }
    assert {name: (one.action, one.ask) for name, one in told.items()} == {
        "append": (Action.APPEND, None),
        "over": (Action.OVERWRITE, None),
        "again": (Action.APPEND, gone),
        "none": (Action.OVERWRITE, None),
        "same": (Action.APPEND, None),
        "conflict": (Action.OVERWRITE, None),
        "load": (Action.READ, lost),
        "plain": (Action.READ, None),
        "create": (Action.APPEND, None),
        "text": (None, None),
        "first": (None, None),
    }
    for name, before, after in (
        ("append", "one\none\n", "one\none\nmore\n"),
        ("over", "one\n", "mine\n"),
        ("again", "", "mine\n"),
        ("same", "mine\n", "mine\n"),
        ("load", "mine\n", "one\n"),
        ("create", "", "x\n"),
        ("text", "one\n", "two\n"),
        ("first", "", "x"),
    ):
        path = {"append": "twice", "again": "gone", "same": "other", "create": "new", "text": "plain", "first": "no"}
        wanted = diff_text(path.get(name, "edited"), before, after)
        assert (later(told[name]) if told[name].later else told[name].diff) == wanted, name
    assert later(told["plain"]) is None
    assert files.text_gone("plain") == diff_text("plain", "one\n", "")
    assert files.text_gone("gone") == diff_text("gone", "mine\n", "")
    bench.write("empty", "")
    bench.write("binary", b"\0")
    assert [files.text_gone(name) for name in ("empty", "binary")] == [None, None]
