"""`python -m tests.translations`: brings the translations of the app up to date with the texts in its code.

It gathers what stands in `tr`, `mark` and `counted`, writes it into `languages/LANGUAGE.po` beside what is translated
already, compiles that to `.mo` and says what has no translation yet. A new language begins as an empty `.po` file.
"""

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from tests.support.checkout import ROOT

CODE = ROOT / "gui" / "gatewright_gui"
FOLDER = ROOT / "resources" / "gatewright_resources" / "languages"
KEYWORDS = {"tr": None, "mark": None, "counted": (2, 3)}
"""Which arguments of which functions are texts; the two of `counted` are one and many."""


def gather() -> Catalog:
    """All texts of the app."""
    found = Catalog()
    for _file, _line, text, _comments, _context in extract_from_dir(CODE, [("**.py", "python")], keywords=KEYWORDS):
        if text:
            found.add(text)
    return found


def read(file: Path) -> Catalog:
    """The catalog of one language; the file bears its name."""
    with file.open("rb") as stream:
        return read_po(stream, locale=file.stem)


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
        catalog.project, catalog.version, catalog.msgid_bugs_address = "Gatewright", "", ""
        catalog.last_translator, catalog.language_team = "The Gatewright maintainers", ""
        with file.open("wb") as stream:
            write_po(stream, catalog, width=120, no_location=True, sort_output=True, ignore_obsolete=True)
        file.with_suffix(".mo").write_bytes(compile_catalog(catalog))
        missing = untranslated(catalog)
        print(f"{file.stem}: {len(catalog)} texts, {len(missing)} without a translation")
        for message in missing:
            print(f"  {message.id}")


if __name__ == "__main__":
    main()
