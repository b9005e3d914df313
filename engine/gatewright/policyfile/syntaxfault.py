"""Where and why a text is no valid TOML, for who has to mend it: at what was left open, not where reading gave up.

It takes what the reader of TOML says and judges nothing itself.
"""

from __future__ import annotations

import re

from gatewright.policyfile.scan import scan

_GAP = re.compile(r"(?:\s|#[^\n]*)*")
_VALUE = re.compile(r"[^=\n\[\]]*=[ \t]*")
_NEW = re.compile(r"[ \t]*(?:\[\[?[^\[\],]+\]\]?[ \t]*(?:#.*)?\r?$|[A-Za-z0-9_.\"'-]+[ \t]*=|\r?$)", re.MULTILINE)
_WORD = re.compile(r"[^\s,\]}#=]+")
_SAID: dict[str, str] = {
    "Unclosed array": "a comma is missing before this, or the list is not closed",
    "Expected newline or end of document after a statement": "nothing may stand here: the value ends before it",
    "Expected '=' after a key in a key/value pair": "a key is followed by `=` and a value",
    "Invalid statement": "neither a key with a value nor the name of a table in brackets",
    "Expected ']' at the end of a table declaration": "the name of the table is not closed with `]`; a name with "
    "spaces stands in quotes",
}
_BRACES = "; a table in braces stands on one line and ends without a comma"


def explained(text: str, offset: int, said: str) -> tuple[int, str]:
    """A better place for what was said at ``offset``, and words for it."""
    if said == "Unterminated string" or "'''" in said:
        return max(text.rfind('"""'), text.rfind("'''"), 0), "this text is not closed"
    last = scan(text).sections[-1]
    gap = _GAP.match(text, last.end)
    found = _VALUE.match(text, gap.end() if gap else last.end)
    value = found.end() if found is not None else offset  # of the statement that could not be read
    if value < offset and "\n" in text[value : offset + 1].replace("\r", "\n"):
        if text[value] in "\"'":
            return value, "this text is not closed on its line"
        if text[value] == "[" and _NEW.match(text, text.rfind("\n", 0, offset) + 1):
            return value, "this list is not closed"
    return offset, _words(text, offset, said)


def _words(text: str, offset: int, said: str) -> str:
    if said == "Invalid value":
        found = _WORD.match(text, offset)
        if found is None:
            return "a value is missing here"
        return (
            f"`{found[0][:40]}` is no value: a text stands in quotes" if found[0].isprintable() else "this is no value"
        )
    if said == "Invalid initial character for a key part":
        line = text[text.rfind("\n", 0, offset) + 1 : offset]
        return f"a key is expected here{_BRACES if '{' in line else ''}"
    if said in _SAID:
        return _SAID[said]
    if said.startswith("Illegal character"):
        return (
            f"the character U+{ord(text[offset]):04X} may not stand here" if offset < len(text) else "a bad character"
        )
    if "\\" in said or said == "Invalid hex value":
        return "a backslash begins an escape here: write two of them, or the text in single quotes"
    return f"{said[:1].lower()}{said[1:]}"
