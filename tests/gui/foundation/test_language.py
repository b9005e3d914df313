"""The app in another language: what stands in its code is gathered, translated and shown."""

import ast
import re
import string
from collections.abc import Iterator
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path

import pytest

from gatewright_gui.qt.language import counted, tr
from gatewright_resources import access
from tests.gui.dress import app_in
from tests.translations import CODE, FOLDER, compile_catalog, gather, read, untranslated

HOW = "run python -m tests.translations and translate what it lists"
FILES = sorted(FOLDER.glob("*.po"))
SHOWING = frozenset(
    [
        "setText",
        "setToolTip",
        "setWindowTitle",
        "setPlaceholderText",
        "setAccessibleName",
        "setAccessibleDescription",
        "setStatusTip",
        "QPushButton",
        "Label",
        "ElidedLabel",
        "QCheckBox",
        "QRadioButton",
        "QAction",
        "addAction",
        "addMenu",
        "addRow",
        "addItem",
        "EmptyState",
        "set_state",
        "SectionHeader",
        "set_note",
        "SearchField",
        "IconButton",
        "CopyButton",
        "Choice",
        "Segmented",
        "TableView",
        "TreeView",
        "add_segment",
        "add_heading",
        "show_note",
        "show_message",
        "say",
        "Message",
        "ask",
        "PageRow",
    ]
)
"""What is given a text to show, in its first or second argument or one of these."""
SHOWN = frozenset({"spoken", "tip", "text", "title", "tooltip", "action", "other", "more", "about"})


@pytest.fixture
def german() -> Iterator[None]:
    with app_in("de_AT"):
        yield


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
    assert _shown_by(access.translation(file.stem)) == _shown_by(compile_catalog(read(file))), HOW


def _shown_by(compiled: bytes) -> dict[str, object]:
    texts = vars(GNUTranslations(BytesIO(compiled)))["_catalog"]
    return {text: translation for text, translation in texts.items() if text}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_catalogs_say_nothing_of_the_day_and_the_tool_that_wrote_them(file: Path) -> None:
    needed = {"content-type", "language", "mime-version", "plural-forms"}
    assert set(GNUTranslations(BytesIO(access.translation(file.stem))).info()) == needed, HOW
    head = file.read_text("utf-8").partition("\n\n")[0]
    assert {name.lower() for name in re.findall(r'^"([\w-]+): ', head, re.MULTILINE)} == needed, HOW


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_translations_have_the_values_and_keys_of_the_text(file: Path) -> None:
    for message in read(file):
        if message.id and message.string and isinstance(message.id, str) and isinstance(message.string, str):
            assert _fields(message.string) == _fields(message.id), message.id
            assert message.string.count("&") == message.id.count("&"), message.id


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_catalog_has_every_text_of_the_app_and_no_other(file: Path) -> None:
    translated = read(file)
    wanted, found = (sorted(str(message.id) for message in catalog) for catalog in (gather(), translated))
    assert found == wanted, HOW
    assert not untranslated(translated), HOW


def test_what_a_widget_is_given_to_show_goes_through_the_catalog() -> None:
    bare = [
        f"{file.relative_to(CODE)}:{line}: {text}"
        for file in CODE.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call)
        for line, text in _shown(call)
        if re.search("[A-Za-z]{3}", text) and (" " in text.strip() or re.match("&?[A-Z][a-z]", text))
    ]
    assert [place for place in bare if not re.search('Gatewright|<p style|{ "', place)] == []


def _shown(call: ast.Call) -> Iterator[tuple[int, str]]:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    values = [*(call.args if name in SHOWING else ()), *(one.value for one in call.keywords if one.arg in SHOWN)]
    while values and name not in {"tr", "mark", "counted", "forms"}:
        match values.pop():
            case ast.IfExp(body=one, orelse=other):
                values += [one, other]
            case ast.BoolOp(values=some):
                values += some
            case ast.Constant(value=str() as text, lineno=line):
                yield line, text
            case ast.JoinedStr(values=parts, lineno=line):
                yield line, "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            case _:
                pass
