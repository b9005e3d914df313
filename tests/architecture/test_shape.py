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
    homes = ("qt.plaintext", "qt.prose", "qt.widget.item_view")
    found = [
        name for name, path in modules() if name.startswith("gatewright_gui.") and raw.search(path.read_text("utf-8"))
    ]

    assert found == [f"gatewright_gui.{home}" for home in homes]


def test_nothing_names_a_package_registry() -> None:
    found = [f"{path}: {hit.group()}" for path, text in shipped() for hit in REGISTRY.finditer(text)]

    assert not found


def calls(source: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Every call of `owner.name(...)` in a module."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            yield node.func.value.id, node.func.attr, node


def looks_at_all_objects(source: str) -> bool:
    """Whether it lists the objects of the process, or makes an object known that somebody else is building."""
    names = {"get_objects", "get_referrers", "get_referents"}
    if not any(name in source for name in names):
        return False  # nothing to read in the hundreds of modules that name none of them
    imported = (
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "gc"
        for alias in node.names
    )
    return bool(names & {*imported, *(name for owner, name, _ in calls(source) if owner == "gc")})


def says_nothing_in_the_log(call: ast.Call) -> bool:
    """Whether its sentence is all filled in, so that the log of the app, which leaves that out, says nothing."""
    said = call.args[0] if call.args else None
    if isinstance(said, ast.JoinedStr):
        return not any(isinstance(part, ast.Constant) and str(part.value).strip(" :") for part in said.values)
    text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"%[a-z]", "", text))) < 2


def test_nobody_lists_all_objects_of_a_process_with_threads() -> None:
    """CPython hands out tuples that another thread is still building; that thread then fails with a SystemError."""
    alone = {"tests/mutants/server.py"}  # a process of its own, before it has a second thread
    files = [*(path for _, path in modules()), *sorted((ROOT / "tests").rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix() for path in files if looks_at_all_objects(path.read_text("utf-8"))}

    assert found == alone


def test_every_line_of_the_log_says_something_by_itself() -> None:
    """The log of the app keeps the sentences of our code, and nothing of what is put into them."""
    levels = {"debug", "info", "warning", "error", "exception", "critical"}
    mute = [
        f"{name}:{call.lineno}"
        for name, path in modules()
        if re.search(r"_log\.|\blog(?:ging)?\.", text := path.read_text("utf-8"))
        for owner, level, call in calls(text)
        if owner in {"_log", "log", "logging"} and level in levels and says_nothing_in_the_log(call)
    ]

    assert not mute


def test_listings_of_objects_and_mute_lines_are_recognised() -> None:
    assert looks_at_all_objects("import gc\nlen(gc.get_objects())")
    assert looks_at_all_objects("from gc import get_referrers")
    assert not looks_at_all_objects("import gc\ngc.get_count()")
    for mute in ('_log.warning("%s", error)', '_log.error("%s: %s", a, b)', '_log.error(f"{a}: {b}")'):
        assert any(says_nothing_in_the_log(call) for _, _, call in calls(mute))
    assert not any(says_nothing_in_the_log(call) for _, _, call in calls('_log.error("a watcher failed: %s", a)'))


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
