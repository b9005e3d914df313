"""That journeys have a display of their own, with a mouse that moves, and that it is gone afterwards."""

import os
import subprocess

import pytest

from tests.support.xvfb import Display, NoDisplayError, private_display

pytestmark = pytest.mark.journey


def test_mouse_moves_on_the_private_display(display: Display) -> None:
    display.xdotool("mousemove", "321", "123")

    assert display.xdotool("getmouselocation").startswith("x:321 y:123 ")
    assert display.xdotool("getdisplaygeometry") == f"{display.width} {display.height}"


def test_programs_of_a_journey_draw_on_the_private_display(display: Display) -> None:
    assert os.environ["DISPLAY"] == display.name
    assert os.environ["QT_QPA_PLATFORM"] == "xcb"


def test_display_is_gone_after_its_journey() -> None:
    with private_display(640, 480) as display:
        display.xdotool("getdisplaygeometry")

    with pytest.raises(subprocess.CalledProcessError):
        display.xdotool("getdisplaygeometry")


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(NoDisplayError, match="`Xvfb` and `xdotool`"), private_display():
        pass
