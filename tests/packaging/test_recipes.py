"""What packages tell a system to run are command lines that the program takes, and they agree on its version."""

import json
import re
import shlex
import tomllib

import pytest
import typer

from gatewright.cli.main import NAMES
from gatewright.cli.table import command_line
from tests.support.checkout import ROOT

PACKAGING = ROOT / "packaging"


def text_of(*parts: str) -> str:
    return PACKAGING.joinpath(*parts).read_text("utf-8")


def container_words() -> list[str]:
    found = re.search(r"^CMD (.*)$", text_of("container", "Containerfile"), re.MULTILINE)
    assert found
    return json.loads(found[1])


def line_of(name: str, key: str) -> list[str]:
    found = re.search(rf"^{key}=(.*)$", text_of("linux", name), re.MULTILINE)
    assert found
    return shlex.split(found[1])[1:]


@pytest.mark.parametrize(
    "words",
    [
        container_words(),
        [word for word in line_of("gatewright@.service", "ExecStart") if not word.startswith("$")],
        line_of("gatewright.desktop", "Exec"),
    ],
    ids=["container", "service", "menu"],
)
def test_what_a_package_starts_is_a_command_of_the_program(words: list[str]) -> None:
    command = command_line(NAMES).commands[words[0]]

    context = command.make_context(words[0], words[1:], parent=typer.Context(command))

    assert words[1] in map(str, context.params.values())


def test_files_that_name_a_version_name_that_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    assert f"gatewright-{version}-linux" in text_of("flatpak", "org.gatewright.gatewright.yaml")
    assert f'<release version="{version}"' in text_of("linux", "gatewright.metainfo.xml")
