"""Path payloads of others against strangers' tools: what any of several servers would open of a `none` file is denied.

The oracle opens files: each reader takes a text as some servers do, and tells whether the closed file comes out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.policy.verdict import Verdict
from tests.engine.workspace.test_paths import POLICY, Place

Reader = Callable[[str, str], str]
"""The path that a server opens for a text, given its working folder."""

READERS: tuple[Reader, ...] = (
    lambda text, folder: os.path.join(folder, text),  # noqa: PTH118 - as a server does it, with texts
    lambda text, folder: os.path.normpath(os.path.join(folder, text)),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, unquote(text)),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, unquote(unquote(text))),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, text.replace("\\", "/")),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, unquote(text).replace("\\", "/")),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, text.partition("\0")[0].strip()),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, unquote(text).partition("\0")[0]),  # noqa: PTH118
    lambda text, folder: os.path.join(folder, os.path.expandvars(os.path.expanduser(text))),  # noqa: PTH111, PTH118
    lambda text, folder: unquote(urlsplit(text).path) if text[:5].lower() == "file:" else folder,
    lambda text, folder: os.path.join(folder, text.strip("\"' \n")),  # noqa: PTH118
)
NOWHERE = "/nonexistent-folder-of-no-server"
MARK = "x of the closed file"


def opened(text: str, folders: tuple[str, ...]) -> Iterator[str]:
    """What the readers get out of the text, each in each of the folders."""
    for folder in folders:
        for reader in READERS:
            try:
                yield Path(reader(text, folder)).read_text(encoding="utf-8")
            except (OSError, ValueError):
                continue


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("payloads"), f'{POLICY}\n[tools.note]\nsafety_tier = "read_only"\n')
    (made.notes / "secrets/key1.txt").write_text(MARK, encoding="utf-8")
    (made.folder / "outside").symlink_to(made.notes / "secrets")
    (made.notes / "pub" / "link").symlink_to("../secrets")
    os.link(made.notes / "secrets/key1.txt", made.folder / "second.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(made.folder))
        patch.setenv("DOCS", str(made.notes))
        yield made
    made.workspace.close()


def missed(place: Place, text: str) -> list[str]:
    """The tools that are let through though a server would read the closed file."""
    start = (str(place.folder), str(place.notes), str(place.folder.parent))
    found: list[str] = []
    if MARK in opened(text, start) and place.decide("read_text_file", path=text) is not Verdict.DENY:
        found.append("read_text_file")
    first = text.partition("/")[0]
    begins_with_a_name = len(first) > 2 and first[0] not in "%~$\\ \"'" and ":" not in first  # no whole path
    if (
        not begins_with_a_name
        and MARK in opened(text, (NOWHERE,))
        and place.decide("note", any=[{"text": text}]) is not Verdict.DENY
    ):
        found.append("note")
    return found


def spelled(payload: str, place: Place) -> Iterator[str]:
    """A payload aimed at the closed file: from the top, from the base, below a public folder."""
    secret = f"{place.notes}/secrets/key1.txt"
    for end in (secret.lstrip("/"), "secrets/key1.txt", "notes/secrets/key1.txt"):
        aimed = payload.replace("{FILE}", end)
        for old in ("etc/passwd", "boot.ini", "etc/issue", "etc/shadow", "etc/hosts"):
            aimed = aimed.replace(old, end)
        if aimed == payload:
            aimed = f"{payload}/{end}"
        yield from (aimed, f"{place.notes}/pub/{aimed}", f"file://{place.notes}/pub/{aimed}", f"/{aimed}")


def test_no_payload_reaches_a_closed_file(place: Place, corpora: Path) -> None:
    rows: list[Any] = json.loads((corpora / "attack_path_traversal.json").read_text("utf-8"))
    texts = [text for row in rows for text in spelled(row["payload"], place)]
    start = (str(place.folder), str(place.notes), NOWHERE)
    reaching = [text for text in dict.fromkeys(texts) if MARK in opened(text, start)]
    assert len(reaching) > 300  # how many lead up far enough depends on how deep the folder lies
    assert [(text, tools) for text in reaching if (tools := missed(place, text))] == []


@pytest.mark.parametrize(
    ("file", "tools"),
    [
        ("benign_paths.json", ("read_text_file", "note", "read_multiple_files")),
        ("benign_urls.json", ("note",)),
        ("benign_shell_commands.json", ("note",)),
    ],
)
def test_no_benign_text_is_refused(place: Place, corpora: Path, file: str, tools: tuple[str, ...]) -> None:
    texts = [row["payload"] for row in json.loads((corpora / file).read_text("utf-8"))]
    if file == "benign_paths.json":
        texts += [f"{place.notes}/{text}" for text in texts] + [f"/srv/{text}" for text in texts]
    argument = {"read_text_file": "path", "note": "text", "read_multiple_files": "paths"}
    refused = [
        (tool, text)
        for text in texts
        for tool in tools
        if place.decide(tool, **{argument[tool]: [text] if tool == "read_multiple_files" else text})
        is not Verdict.ALLOW
    ]
    assert len(texts) > 100
    assert refused == []


HOPS = st.sampled_from(["", "/", "/.", "/./", "/pub/..", "/nowhere/..", "//", "/drafts/../pub/..", "/pub/link/.."])
ENDS = st.sampled_from(
    [
        "/secrets/key1.txt",
        "/secrets//key1.txt",
        "/secrets/./key1.txt",
        "/secrets/../secrets/key1.txt",
        "/pub/link/key1.txt",
    ]
)
STARTS = st.sampled_from(
    ["{notes}", "{folder}/notes", "~/notes", "$HOME/notes", "${DOCS}", "$DOCS", "{folder}/pub/../notes"]
)
TURNS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "percent": lambda text: text.replace("e", "%65"),
    "percent of slashes": lambda text: text.replace("/", "%2F"),
    "twice": lambda text: text.replace("e", "%2565"),
    "backslashes": lambda text: text.replace("/", "\\"),
    "url": lambda text: f"file://{text}",
    "host": lambda text: f"FILE://localhost{text}",
    "quoted": lambda text: f'"{text}"',
    "blank": lambda text: f" {text}\n",
    "cut": lambda text: f"{text}\0.png",
    "cut, percent": lambda text: f"{text}%00.png",
}


@settings(max_examples=400, deadline=None)
@given(
    STARTS,
    st.lists(HOPS, max_size=4),
    ENDS,
    st.lists(st.sampled_from(sorted(TURNS)), min_size=1, max_size=3, unique=True),
)
def test_whatever_a_server_opens_of_a_closed_file_is_denied(
    place: Place, start: str, hops: list[str], end: str, turns: list[str]
) -> None:
    text = start.replace("{notes}", str(place.notes)).replace("{folder}", str(place.folder)) + "".join(hops) + end
    for turn in turns:
        text = TURNS[turn](text)
    assert missed(place, text) == []


def test_the_policy_of_these_tests_closes_one_folder_alone() -> None:
    assert POLICY.count('permission = "none"') == 1
