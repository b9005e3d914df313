"""The key of one audit log, and its anchor: how far the log had come and where it is kept, away from the log."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from gatewright.base.frozen import frozen
from gatewright.base.regex import late_regex
from gatewright.record.anchor import AnchorFile
from gatewright.record.folder import PrivateFolder
from gatewright.record.home import Home
from gatewright.record.seal import find_key, have_key

START_MAC = "0" * 64
"""What the first row of a log follows."""
_LOG_ID = late_regex(r"log-[0-9a-f]{16}")


@frozen
class Anchor:
    """The last row written: the log's id, where it is kept, the row's number and its MAC in hexadecimal.

    Number 0 and the MAC of zeros: the log was about to begin.
    """

    log_id: str
    home: Home
    seq: int = 0
    mac: str = START_MAC

    def at(self, seq: int, mac: str) -> bytes:
        """As it is written when the log has come to that row; equally long for every row."""
        return b"%s%19d%s" % (_frame(self.log_id, self.home), seq, b', "mac": "%s"}' % mac.encode())

    @classmethod
    def from_text(cls, text: bytes) -> Anchor | None:
        """What it says; None when it cannot be read."""
        try:
            fields: Any = json.loads(text)
            home = Home(str(fields["folder"]), str(fields.get("around", "")))
            return cls(str(fields["log"]), home, int(fields["seq"]), str(fields["mac"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class KeyRing:
    """The key folder, as audit sees it. Nothing is made before ``create``. Methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = PrivateFolder(folder)

    def create(self, log_id: str, home: Home) -> bytes:
        """A new random key, readable by its owner only, and the anchor of a log that begins there."""
        key = have_key(self._files, _name(log_id, "key"))
        self._files.replace(_name(log_id, "anchor"), Anchor(log_id, home).at(0, START_MAC))
        return key

    def key(self, log_id: str) -> bytes | None:
        """The key of a log, or None when it is not here."""
        return find_key(self._files, _name(log_id, "key")) if _LOG_ID.fullmatch(log_id) else None

    def anchor_file(self, log_id: str) -> AnchorFile:
        """The anchor of a log, to be held."""
        return AnchorFile(self._files, _name(log_id, "anchor"))

    def anchor(self, log_id: str) -> Anchor | None:
        """The anchor of a log, or None when there is none that can be read."""
        return self._read(_name(log_id, "anchor")) if _LOG_ID.fullmatch(log_id) else None

    def anchors_of(self, home: Home) -> tuple[Anchor, ...]:
        """Every anchor of a log that had rows in that state folder, by whatever name."""
        names = [name for name in self._files.names() if name.startswith("audit-") and name.endswith(".anchor")]
        return tuple(one for one in map(self._read, names) if one is not None and one.home.is_same(home) and one.seq)

    def _read(self, name: str) -> Anchor | None:
        with closing(AnchorFile(self._files, name)) as file, suppress(OSError):
            return Anchor.from_text(file.read())
        return None


@lru_cache(maxsize=8)
def _frame(log_id: str, home: Home) -> bytes:
    kept = json.dumps({"log": log_id, "folder": home.folder, "around": home.around})
    return f'{kept[:-1]}, "seq": '.encode()


def _name(log_id: str, what: str) -> str:
    return f"audit-{log_id}.{what}"
