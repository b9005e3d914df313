"""How `run` starts the app and when it sets up, tried in a small checkout whose programs only write down their calls.

That a bare machine gets everything it needs is shown on a bare machine, not here.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

NO_DISPLAY = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}
DISPLAY = {"DISPLAY": ":7", "WAYLAND_DISPLAY": ""}
APP = '#!/bin/sh\necho "app $* platform=$QT_QPA_PLATFORM" >>"$CALLS"\nexit "${APP_STATUS:-0}"\n'
VENV_PYTHON = '#!/bin/sh\necho "venv $*" >>"$CALLS"\ncase "$*" in *install*) exit "${PIP_STATUS:-0}";; esac\n'
APT = '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\n'
# stands for the Python of the system: its venv module copies the venv that the test prepared
PYTHON = """#!/bin/sh
echo "python $*" >>"$CALLS"
case "$*" in "-m venv --clear "*) rm -rf "$4"; cp -R "$PREPARED" "$4";; esac
"""
TOOLS = ("bash", "sh", "cat", "cp", "dirname", "env", "flock", "mktemp", "mv", "rm", "sha256sum", "tail")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of the scripts, and a PATH that holds no apt-get, no dpkg-query and no real Python."""

    root: Path

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / ".gatewright-ready"

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "run"), *arguments],
            env={"PATH": str(self.root / "bin"), "CALLS": str(self.calls_file), **NO_DISPLAY, **environ}
            | {"PREPARED": str(self.root / "prepared"), "TMPDIR": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls_file(self) -> Path:
        return self.root / "calls"

    def take_calls(self) -> list[str]:
        calls = self.calls_file.read_text("utf-8").splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return calls


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def link_tools(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        found = shutil.which(name, path=os.defpath)
        assert found, f"`{name}` is missing"
        (folder / name).symlink_to(found)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "a checkout"
    (root / "packaging" / "servers").mkdir(parents=True)
    for name in ("run", "pyproject.toml", "packaging/setup.sh", "packaging/servers/package.json"):
        shutil.copy(ROOT / name, root / name)
    program(root / "bin" / "python3", PYTHON)
    program(root / "prepared" / "bin" / "python", VENV_PYTHON)
    program(root / "prepared" / "bin" / "gatewright", APP)
    link_tools(root / "bin", TOOLS)
    return Checkout(root)


def test_without_a_display_the_tour_is_made_offscreen(checkout: Checkout) -> None:
    done = checkout.run()

    assert checkout.take_calls()[-1] == "app tour --out gatewright-tour platform=offscreen"
    assert "no display" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(("words", "told"), [(("gui",), ""), (("gui", "w.toml"), " w.toml"), (("w.toml",), " w.toml")])
def test_a_window_that_no_display_could_show_becomes_a_tour(
    checkout: Checkout, words: tuple[str, ...], told: str
) -> None:
    checkout.run(*words)

    assert checkout.take_calls()[-1] == f"app tour --out gatewright-tour{told} platform=offscreen"


def test_arguments_without_a_display_reach_the_app_offscreen(checkout: Checkout) -> None:
    checkout.run("check", "my policy.toml")

    assert checkout.take_calls()[-1] == "app check my policy.toml platform=offscreen"


def test_with_a_display_the_window_opens(checkout: Checkout) -> None:
    checkout.run(**DISPLAY)

    assert checkout.take_calls()[-1] == "app gui platform="


def test_status_of_the_app_is_the_status_of_run(checkout: Checkout) -> None:
    assert checkout.run("decide", APP_STATUS="4").returncode == 4


def test_second_start_runs_nothing_but_the_app(checkout: Checkout) -> None:
    checkout.run()
    checkout.take_calls()

    checkout.run("tour")

    assert checkout.take_calls() == ["app tour platform=offscreen"]


def test_failed_installation_leaves_no_stamp_and_starts_nothing(checkout: Checkout) -> None:
    done = checkout.run(PIP_STATUS="1")

    assert done.returncode == 1
    assert "failed" in done.stderr
    assert not checkout.stamp.exists()
    assert not [call for call in checkout.take_calls() if call.startswith("app")]


def test_start_after_a_failed_installation_sets_up_again(checkout: Checkout) -> None:
    checkout.run(PIP_STATUS="1")
    checkout.take_calls()

    done = checkout.run("tour")

    assert done.returncode == 0
    assert any("pip install" in call for call in checkout.take_calls())


@pytest.mark.parametrize("name", ["pyproject.toml", "packaging/setup.sh", "packaging/servers/package.json"])
def test_changed_project_is_installed_again(checkout: Checkout, name: str) -> None:
    checkout.run()
    checkout.take_calls()
    with (checkout.root / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")

    checkout.run()

    assert any("pip install" in call for call in checkout.take_calls())


def test_first_start_with_a_display_takes_debians_packages_and_installs_nothing_again(checkout: Checkout) -> None:
    checkout.run()
    checkout.take_calls()
    link_tools(checkout.root / "bin", ("comm", "sed", "sort", "tr"))
    program(checkout.root / "bin" / "dpkg-query", "#!/bin/sh\n")  # nothing is there
    program(checkout.root / "bin" / "apt-get", APT)

    done = checkout.run(**DISPLAY)
    calls = checkout.take_calls()
    assert "libxcb-cursor0" in done.stderr + done.stdout  # who is not the superuser is told what to install
    assert not [call for call in calls if "pip install" in call]
    assert (done.returncode == 0) == any("apt-get" in call and "libxcb-cursor0" in call for call in calls)


@pytest.mark.parametrize("first", [NO_DISPLAY, DISPLAY])
def test_starts_with_and_without_a_display_in_turns_install_nothing_again(
    checkout: Checkout, first: dict[str, str]
) -> None:
    checkout.run(**first)
    checkout.take_calls()

    for environ in (DISPLAY, NO_DISPLAY, DISPLAY, NO_DISPLAY):
        checkout.run(**environ)
    assert not [call for call in checkout.take_calls() if "pip install" in call or "-m venv" in call]


def test_missing_python_is_named_in_one_line(checkout: Checkout) -> None:
    program(checkout.root / "bin" / "python3", "#!/bin/sh\nexit 1\n")
    script = checkout.root / "packaging" / "setup.sh"
    script.write_text(script.read_text("utf-8").replace("/usr/bin/python3", "/nowhere/python3"), "utf-8")

    done = checkout.run()

    assert done.returncode == 1
    assert "no Python 3.11 or newer found" in done.stderr
    assert done.stderr.count("\n") == 1
