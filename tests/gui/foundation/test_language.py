"""The app in another language: what stands in its code is gathered, translated and shown."""

import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright_gui.qt.language import VARIABLE, counted, current_catalog, tr
from gatewright_resources import access
from tests.translations import FOLDER, compile_catalog, read

FILES = sorted(FOLDER.glob("*.po"))


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, "de_AT")
    current_catalog.cache_clear()
    yield
    monkeypatch.delenv(VARIABLE)
    current_catalog.cache_clear()


def _fields(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


@pytest.mark.usefixtures("german")
def test_texts_are_shown_in_the_language_of_the_environment() -> None:
    assert tr("Language") == "Sprache"
    assert tr("no text of the app") == "no text of the app"
    assert not tr("")


def test_texts_are_english_where_no_language_is_named() -> None:
    assert tr("{many} of them", many=3) == "3 of them"
    assert counted(1, "file", "files") == "1 file"
    assert counted(2000, "file", "files") == "2,000 files"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_shown_is_compiled_from_the_catalog(file: Path) -> None:
    assert access.translation(file.stem) == compile_catalog(read(file)), "run python -m tests.translations"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_translations_have_the_values_and_keys_of_the_text(file: Path) -> None:
    for message in read(file):
        if message.id and message.string and isinstance(message.id, str) and isinstance(message.string, str):
            assert _fields(message.string) == _fields(message.id), message.id
            assert message.string.count("&") == message.id.count("&"), message.id
