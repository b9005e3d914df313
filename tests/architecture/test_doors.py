"""The packages that load their names late say the same to Python as to the type checker."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import modules

Names = dict[str, set[str]]


def doors() -> Iterator[tuple[str, Path]]:
    for name, path in modules():
        if path.name == "__init__.py" and "\ndoor(\n" in path.read_text("utf-8"):
            yield name, path


def promised(tree: ast.Module) -> Names:
    """By module, what the type checker is told."""
    found: Names = {}
    for block in tree.body:
        for node in block.body if isinstance(block, ast.If) else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                found.setdefault(node.module, set()).update(alias.asname or alias.name for alias in node.names)
    return found


def given(tree: ast.Module) -> Names:
    """By module, what is loaded when it is asked for."""
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id="door"), args=[_, table])):
                rows: dict[str, tuple[str, ...]] = ast.literal_eval(table)
                return {module: set(names) for module, names in rows.items()}
            case _:
                pass
    raise AssertionError("no table")


@pytest.mark.parametrize(("name", "path"), list(doors()), ids=[name for name, _ in doors()])
def test_door_gives_what_the_type_checker_is_told(name: str, path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    assert given(tree) == promised(tree)


def test_there_are_doors() -> None:
    assert {"gatewright.gate", "gatewright.workspace"} <= {name for name, _ in doors()}
