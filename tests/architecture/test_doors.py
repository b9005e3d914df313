"""What loads its names late says the same to Python as to the type checker, and what the app takes from its door."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.checkout import modules

API = "gatewright.workspace.api"
ACTS = frozenset({"workspace", "adapters", "gate", "compile", "builtins", "policyfile", "memory"})
"""The floors of the engine that do something; the others are values to the app."""

Names = dict[str, set[str]]


def doors() -> Iterator[tuple[str, Path]]:
    for name, path in modules():
        if "\ndoor(\n" in path.read_text("utf-8"):
            yield name, path


def promised(tree: ast.Module) -> Names:
    """By module, what the type checker is told."""
    found: Names = {}
    for block in tree.body:
        for node in block.body if isinstance(block, ast.If) else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                found.setdefault(node.module, set()).update(alias.asname or alias.name for alias in node.names)
    return found


def parsed(module: str) -> ast.Module:
    return next(ast.parse(path.read_text("utf-8")) for name, path in modules() if name == module)


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
    assert {"gatewright.gate", "gatewright.workspace.api"} <= {name for name, _ in doors()}


@cache
def taken_by_the_app() -> tuple[tuple[str, str], ...]:
    """Each module of the app with a name that it imports from the engine, at whatever place in its text."""
    return tuple(
        (module, alias.name)
        for module, path in modules()
        if module.startswith("gatewright_gui.")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == API
        for alias in node.names
    )


def test_door_of_the_app_has_what_the_app_takes_and_nothing_more() -> None:
    there = {"MODULES_NEEDED_LATER"}.union(*given(parsed(API)).values())

    assert {name for _, name in taken_by_the_app()} == there


def test_app_names_no_module_of_the_engine_but_its_door() -> None:
    """The contract sees what is imported; a name in a string is imported just as well."""
    named = re.compile(r"\bgatewright\.(?!workspace\.api\b)[a-z_]+")
    found = [
        f"{module}: {hit.group()}"
        for module, path in modules()
        if module.startswith("gatewright_gui.")
        for hit in named.finditer(path.read_text("utf-8"))
    ]

    assert not found


@pytest.mark.parametrize(
    ("package", "engine"),
    [
        ("app", ACTS | {"sources", "tools"}),
        ("window", ACTS | {"sources", "tools"}),
        ("pages", ACTS | {"sources", "tools"}),
        ("models", ACTS),
    ],
)
def test_only_session_takes_what_acts_from_the_engine(package: str, engine: frozenset[str]) -> None:
    homes = {name: home for home, names in given(parsed(API)).items() for name in names}
    found = [
        f"{module} takes `{name}` of {homes[name]}"
        for module, name in taken_by_the_app()
        if module.split(".")[1] == package and name in homes and homes[name].split(".")[1] in engine
    ]

    assert not found
