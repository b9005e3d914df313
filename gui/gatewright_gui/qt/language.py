"""The language of the app: English as it stands in the code, or what a catalog of translations says for it.

    tr("{agent} may do {count} more", agent=name, count=3)

What the engine says (problems, reasons, the words that a model gets) stays English, as in the log and on the command
line. `python -m tests.translations` brings the catalogs up to date with the code.
"""

import gettext
import os
import re
from functools import cache
from io import BytesIO

from gatewright_resources import access

VARIABLE = "GATEWRIGHT_LANGUAGE"
"""The environment variable that names the language, such as `de`: the processes that the app starts have it too."""


def tr(text: str, /, **values: object) -> str:
    """``text`` in the language of the app, with ``{name}`` replaced by the value of that name."""
    catalog = current_catalog()
    found = catalog.gettext(text) if catalog is not None and text else text
    return found.format(**values) if values else found


def counted(count: int, one: str, many: str) -> str:
    """``1 file``, ``2,000 files``."""
    catalog = current_catalog()
    noun = (one if count == 1 else many) if catalog is None else catalog.ngettext(one, many, count)
    return f"{count:,} {noun}"


def mark(text: str) -> str:
    """``text`` as it is: a text of a table in the code, which `tr` translates where it is shown."""
    return text


def forms(one: str, many: str) -> tuple[str, str]:
    """The two forms of a counted noun in a table of the code, which `counted` translates where it is shown."""
    return one, many


_KEYS = (
    *(mark("Ctrl"), mark("Shift"), mark("Space"), mark("Escape"), mark("Enter"), mark("Return"), mark("Del")),
    *(mark("Ins"), mark("Up"), mark("Down"), mark("Left"), mark("Right")),
)


def key_names(keys: str) -> str:
    """The keys as the language of the app names them."""
    return re.sub("[A-Z][a-z]+", lambda name: tr(name[0]) if name[0] in _KEYS else name[0], keys)


@cache
def current_catalog() -> gettext.GNUTranslations | None:
    """The translations of the language in force; None for English."""
    language = os.environ.get(VARIABLE, "")[:2]
    if language not in access.languages():
        return None
    return gettext.GNUTranslations(BytesIO(access.translation(language)))
