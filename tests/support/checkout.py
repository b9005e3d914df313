"""The path of the checkout and of its modules."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = {
    "gatewright": ROOT / "engine" / "gatewright",
    "gatewright_gui": ROOT / "gui" / "gatewright_gui",
    "gatewright_resources": ROOT / "resources" / "gatewright_resources",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the engine, the app and the resources: its dotted name, its file."""
    for name, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((name, *(part for part in parts if part != "__init__"))), path
