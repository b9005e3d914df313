"""Every refusal of an operation on a file and its block: its code, its words, and that nothing is changed by it."""

from collections.abc import Callable

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.permission import Action, Permission
from gatewright.policy.target import Assessment
from gatewright.sources.descriptor import CONFLICT
from gatewright.sources.filesource import FileSource
from gatewright.sources.reconcile import Strategy
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
DATA = "not a text file in UTF-8"


@pytest.fixture
def files(bench: Bench) -> FileSource:
    """Files and blocks in every state: ``gone`` and ``new`` are blocks alone, ``other`` was changed on disk since."""
    bench.manager.update(source_of(default=Permission.ADMIN))
    source = bench.manager.get("docs")
    assert source is not None
    for name in ("plain", "edited", "gone", "other", "data", "twice"):
        bench.write(name, "one\n")
    bench.write("twice", "one\none\n")
    bench.write("sub/a", "one\n")
    for name in ("edited", "gone", "other", "data"):
        source.replace(name, "one", "mine")
    for name in ("gone", "other", "data"):
        (bench.folder / name).unlink()
    bench.write("other", "theirs\n")
    bench.write("data", b"\0\1")
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
    (lambda s: s.load("gone"), "not-found", LEFT),
    (lambda s: s.load("no"), "not-found", "there is no such file"),
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
    (lambda s: s.delete("no"), "not-found", "there is no such file"),
    (lambda s: s.delete("sub"), "is-a-folder", FOLDER),
    (lambda s: s.text_gone("no"), "not-found", "there is no such file"),
    (lambda s: s.text_gone("sub"), "is-a-folder", FOLDER),
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
    names = ("plain", "edited", "gone", "other")

    def all_of_it() -> list[object]:
        held = {path.name: path.read_bytes() for path in bench.folder.iterdir() if path.is_file()}
        return [held, files.loaded_places(), *(files.read(name).content for name in names)]

    before = all_of_it()
    with pytest.raises(ToolFailure) as told:
        call(files)
    assert (told.value.code, str(told.value).startswith(words)) == (code, True), told.value
    assert all_of_it() == before


def test_what_a_call_would_do_is_told_as_an_action_a_question_and_a_difference(files: FileSource) -> None:
    gone = "the file was deleted on disk since, and would be written again"
    lost = "edits that were not written to disk would be thrown away"
    files.append("twice", "more\n")
    told = {
        "append": files.assess_save("twice"),
        "over": files.assess_save("edited"),
        "again": files.assess_save("gone"),
        "none": files.assess_save("plain"),
        "conflict": files.assess_save("other"),
        "load": files.assess_load("edited"),
        "plain": files.assess_load("plain"),
        "create": files.assess_create("new", "x\n"),
        "text": files.assess_text("plain", "two\n"),
    }
    assert {name: (one.action, one.ask) for name, one in told.items()} == {
        "append": (Action.APPEND, None),
        "over": (Action.OVERWRITE, None),
        "again": (Action.APPEND, gone),
        "none": (Action.OVERWRITE, None),
        "conflict": (Action.OVERWRITE, None),
        "load": (Action.READ, lost),
        "plain": (Action.READ, None),
        "create": (Action.APPEND, None),
        "text": (None, None),
    }
    changed = {
        name: (later(told[name]) if told[name].later else told[name].diff) for name in ("append", "load", "create")
    }
    lines = {
        name: [line for line in (diff or "").splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
        for name, diff in changed.items()
    }
    assert lines == {"append": ["+more"], "load": ["-mine", "+one"], "create": ["+x"]}
    assert later(told["plain"]) is None
