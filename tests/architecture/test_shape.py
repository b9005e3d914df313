"""How big modules may be and what no file may name. Style and types are other tools' business."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.support.checkout import ROOT, SOURCES, modules

LONGEST = 450
TEXT_ENDINGS = frozenset(
    {"", ".cfg", ".desktop", ".ini", ".json", ".md", ".py", ".qss", ".sh", ".svg", ".toml", ".txt"}
)
SHIPPED = ("run", "check", ".ci", "packaging", "docs", "README.md", "CHANGELOG.md", "pyproject.toml")
HOME_PATH = re.compile(r"(?<![\w.~*}-])/(?:home|Users)/[A-Za-z]\w*|(?<![\w.~*}-])/(?:root|work)/[A-Za-z.]")
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|proxy\.golang|(?:index|find.links)(?:.url)?[=:\s]\s*\S{0,3}(?:https?|file)://",
    re.IGNORECASE,
)


def texts(*roots: Path) -> Iterator[tuple[Path, str]]:
    for root in roots:
        files = [root] if root.is_file() else sorted(root.rglob("*"))
        for path in files:
            if path.is_file() and path.suffix in TEXT_ENDINGS and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT), path.read_text("utf-8", errors="replace")


def shipped() -> Iterator[tuple[Path, str]]:
    return texts(*SOURCES.values(), *(ROOT / name for name in SHIPPED if (ROOT / name).exists()))


def says_why_it_is_long(source: str) -> bool:
    return f"{LONGEST} lines" in (ast.get_docstring(ast.parse(source)) or "")


def test_long_module_says_in_its_docstring_why_it_exceeds_450_lines() -> None:
    long = {name: path.read_text("utf-8") for name, path in modules()}
    too_long = {name: text.count("\n") for name, text in long.items() if text.count("\n") > LONGEST}

    assert not [f"{name}: {count} lines" for name, count in too_long.items() if not says_why_it_is_long(long[name])]


def test_no_module_imports_itself_through_others() -> None:
    """Imports for the type checker and in functions count too. A cycle is an error that names its modules."""
    graph = grimp.build_graph(*(root.name for root in SOURCES.values()), cache_dir=None)

    TopologicalSorter({one: graph.find_modules_directly_imported_by(one) for one in graph.modules}).prepare()


def test_nothing_shipped_names_somebodys_home() -> None:
    found = [f"{path}: {hit.group()}" for path, text in shipped() for hit in HOME_PATH.finditer(text)]

    assert not found


def test_no_page_uses_qts_own_label_or_delegate() -> None:
    """Qt's label takes a stranger's text for HTML; its delegate paints and tells what turns a line around."""
    raw = re.compile(r"\bQLabel\(|\(QStyledItemDelegate\)|\bQStyledItemDelegate\(|\.elidedText\(")
    homes = ("qt.plaintext", "qt.prose", "qt.widget.delegate", "qt.widget.elided_label")
    found = [
        name for name, path in modules() if name.startswith("gatewright_gui.") and raw.search(path.read_text("utf-8"))
    ]

    assert found == [f"gatewright_gui.{home}" for home in homes]


def test_nothing_names_a_package_registry() -> None:
    found = [f"{path}: {hit.group()}" for path, text in shipped() for hit in REGISTRY.finditer(text)]

    assert not found


@pytest.mark.skipif(len(ROOT.parts) < 3, reason="a checkout straight below `/` has a name like any other")
def test_no_test_names_the_folder_of_this_checkout() -> None:
    found = [str(path) for path, text in texts(ROOT / "tests") if f"{ROOT}/" in text]

    assert not found


def test_homes_and_registries_are_recognised() -> None:
    assert HOME_PATH.search("see /home/" + "ann/x")
    assert HOME_PATH.search("in '/ro" + "ot/.config'")
    assert not HOME_PATH.search("${base}/root/x, docs/work/notes, ~/work/a")
    assert REGISTRY.search("pip install --index-url " + "https://example.test/simple")
    assert not REGISTRY.search("the index of the row")
