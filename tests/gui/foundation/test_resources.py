"""The door to bundled data."""

import pytest

from gatewright_gui.qt.look import Palette
from gatewright_gui.theme.style import style_values
from gatewright_gui.theme.tokens import DARK, LIGHT, TOKENS
from gatewright_resources import MissingResourceError, folder, icon_names, icon_svg, style


def test_every_icon_can_be_tinted() -> None:
    assert len(icon_names()) >= 60
    for name in icon_names():
        assert b"currentColor" in icon_svg(name), name


@pytest.mark.parametrize("name", ["../access.py", "", "no-such-icon", "LICENSE", "/etc/passwd"])
def test_names_outside_the_bundle_are_refused(name: str) -> None:
    with pytest.raises(MissingResourceError):
        icon_svg(name)


def test_icons_come_with_their_licence() -> None:
    names = {entry.name for entry in folder("icons").iterdir()}
    assert {"LICENSE", "NOTICE.md"} <= names


def test_unknown_folder_is_refused() -> None:
    with pytest.raises(MissingResourceError, match="no folder named `icon`; did you mean `icons`"):
        folder("icon")


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_style_template_asks_only_for_tokens_that_exist(palette: Palette) -> None:
    from pathlib import Path
    from string import Template

    template = Template(style("app"))
    assert set(template.get_identifiers()) <= set(style_values(TOKENS, palette, Path("x")))
    assert "#" not in style("app").replace("#include", "")
