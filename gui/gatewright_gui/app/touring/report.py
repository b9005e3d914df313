"""What a tour found: its steps with their checks, as `tour.json` has them. It drives nothing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

PageName = Literal[
    "agents", "matrix", "preview", "files", "console", "approvals", "audit", "problems", "catalogs", "toml"
]
Theme = Literal["light", "dark"]
REPORT_NAME = "tour.json"


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was compared, and whether it was as it must be."""

    what: str
    ok: bool


@dataclass(slots=True)
class Step:
    """One step while it is made."""

    number: int
    name: str
    pages: Sequence[PageName]
    theme: Theme
    checks: list[Check] = field(default_factory=list[Check])

    @property
    def picture(self) -> str:
        """The file name of its picture."""
        return f"{self.number:02d}-{self.name}-{self.theme}.png"

    @property
    def is_ok(self) -> bool:
        """Whether it checked something and all of it was so."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def check(self, what: str, ok: object) -> bool:
        """Note whether something is so; the words say what must be."""
        self.checks.append(Check(what, bool(ok)))
        return bool(ok)

    def equal(self, what: str, found: object, wanted: object) -> bool:
        """Note whether two values are the same; where they differ, both are told."""
        same = found == wanted
        return self.check(what if same else f"{what}: found {_short(found)}, must be {_short(wanted)}", same)

    def not_here(self, why: str) -> None:
        """Note that the workspace has nothing to show this on."""
        self.check(f"does not apply: {why}", True)

    def to_json(self) -> dict[str, object]:
        """The shape of `tour.json`."""
        return {
            "name": self.name,
            "pages": list(self.pages),
            "theme": self.theme,
            "picture": self.picture,
            "checks": [{"what": check.what, "ok": check.ok} for check in self.checks],
        }


@dataclass(slots=True)
class Report:
    """All steps so far."""

    steps: list[Step] = field(default_factory=list[Step])

    @property
    def is_ok(self) -> bool:
        """Whether the tour was made and every check of it holds."""
        return bool(self.steps) and all(step.is_ok for step in self.steps)

    def write(self, folder: Path) -> Path:
        """Write `tour.json`. Raises OSError."""
        file = folder / REPORT_NAME
        text = json.dumps({"steps": [step.to_json() for step in self.steps]}, indent=2, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")
        return file


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:150]}... ({len(text)} characters)"
