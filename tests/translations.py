"""`python -m tests.translations`: brings the translations of the app up to date with the texts in its code.

It gathers what stands in `tr`, `mark`, `counted` and `forms`, writes it into `languages/LANGUAGE.po` beside what is
translated already, compiles that to `.mo` and says what has no translation yet. A new language begins as an empty
`.po` file. The files say nothing of the day or of the Babel that wrote them, so the same texts are the same bytes
everywhere.
"""

import ast
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from tests.support.checkout import ROOT

CODE = ROOT / "gui" / "gatewright_gui"
FOLDER = ROOT / "resources" / "gatewright_resources" / "languages"
KEYWORDS: dict[str, tuple[int, ...]] = {"tr": (1,), "mark": (1,), "counted": (2, 3), "forms": (1, 2)}
"""Which arguments of which functions are texts, from 1; the two of `counted` and `forms` are one and many."""
HEAD = ("Language", "Plural-Forms", "Content-Type")
"""What readers of a catalog need of its head."""


class Texts(Catalog):
    """A catalog whose head has nothing but what readers need."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        """The head: names and values."""
        return [(name, value) for name, value in super().mime_headers if name in HEAD] + [("MIME-Version", "1.0\n")]

    @mime_headers.setter
    def mime_headers(self, value: Iterable[tuple[str, str]]) -> None:
        Catalog.mime_headers.__set__(self, value)


def gather() -> Catalog:
    """All texts of the app."""
    found = Catalog()
    for file in CODE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):  # also those within an f-string
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KEYWORDS:
                at = KEYWORDS[call.func.id]
                texts = [one.value for one in call.args[at[0] - 1 : at[-1]] if isinstance(one, ast.Constant)]
                if len(texts) == len(at) and all(texts):
                    found.add(tuple(map(str, texts)) if texts[1:] else str(texts[0]))
    return found


def read(file: Path) -> Catalog:
    """The catalog of one language; the file bears its name."""
    with file.open("rb") as stream:
        found = read_po(stream, locale=file.stem)
    texts = Texts(header_comment=found.header_comment, fuzzy=False)
    texts.mime_headers = found.mime_headers
    for message in found:
        if message.id:
            texts.add(message.id, message.string, flags=message.flags, user_comments=message.user_comments)
    return texts


def compile_catalog(catalog: Catalog) -> bytes:
    """What the app reads."""
    out = BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def untranslated(catalog: Catalog) -> list[Message]:
    """The texts that have no translation."""
    return [message for message in catalog if message.id and (message.fuzzy or not all(strings_of(message)))]


def strings_of(message: Message) -> tuple[str, ...]:
    """The translation of a text: one, or one and many."""
    found = message.string if isinstance(message.string, tuple) else (message.string,)
    return tuple(string if isinstance(string, str) else "" for string in found)


def main() -> None:
    """Bring every language up to date."""
    texts = gather()
    for file in sorted(FOLDER.glob("*.po")):
        catalog = read(file)
        catalog.update(texts, no_fuzzy_matching=True, update_creation_date=False)
        catalog.obsolete.clear()
        for message in catalog:
            message.flags &= {"fuzzy"}  # which more a text deserves is another matter to each Babel
        with file.open("wb") as stream:
            write_po(stream, catalog, width=120, no_location=True, sort_output=True, ignore_obsolete=True)
        file.with_suffix(".mo").write_bytes(compile_catalog(catalog))
        missing = untranslated(catalog)
        print(f"{file.stem}: {len(catalog)} texts, {len(missing)} without a translation")
        for message in missing:
            print(f"  {message.id}")


if __name__ == "__main__":
    main()
