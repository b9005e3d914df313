"""The look: contrast, palettes, icons, and what a change of theme does."""

from dataclasses import fields

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QFontMetrics, QIcon, QImage, QPalette
from PySide6.QtWidgets import QApplication, QMainWindow, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.look import CheckState, Levels, Pair, Palette, Syntax, Verdicts, current_look, tie_icon
from gatewright_gui.qt.widget import CodeView, VerdictBadge
from gatewright_gui.settings import TEXT_FACTORS
from gatewright_gui.theme import Theme
from gatewright_gui.theme.tokens import DARK, LIGHT
from gatewright_resources import MissingResourceError, icon_names
from tests.gui.foundation.drive import values

PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
ENOUGH = 4.5
ENOUGH_FOR_OUTLINES = 3.0


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def pairs_in(group: Verdicts | Levels) -> dict[str, Pair]:
    return {field.name: getattr(group, field.name) for field in fields(group)}


def grounds(palette: Palette) -> dict[str, str]:
    names = ("background", "surface", "raised", "hover", "selection", "selection_inactive")
    return {name: getattr(palette, name) for name in names}


def words(palette: Palette) -> dict[str, str]:
    found = {"text": palette.text, "muted": palette.muted, "accent": palette.accent.fg, "neutral": palette.neutral.fg}
    found |= {name: pair.fg for name, pair in (pairs_in(palette.verdict) | pairs_in(palette.level)).items()}
    return found | {field.name: str(getattr(palette.syntax, field.name)) for field in fields(Syntax)}


def test_contrast_formula_gives_the_known_extremes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@PALETTES
def test_a_row_below_the_pointer_looks_otherwise_than_a_chosen_one(palette: Palette) -> None:
    for chosen in (palette.selection, palette.selection_inactive):
        assert contrast(palette.hover, chosen) > 1.1


@PALETTES
def test_every_word_can_be_read_on_every_ground(palette: Palette) -> None:
    poor = {
        f"{word} on {ground}": round(contrast(ink, paper), 2)
        for word, ink in words(palette).items()
        for ground, paper in grounds(palette).items()
        if contrast(ink, paper) < ENOUGH
    }
    assert poor == {}


@PALETTES
def test_every_soft_ground_carries_its_word_and_plain_text(palette: Palette) -> None:
    pairs = pairs_in(palette.verdict) | pairs_in(palette.level)
    pairs |= {"accent": palette.accent, "neutral": palette.neutral}
    pairs |= {"added": palette.diff_added, "removed": palette.diff_removed}
    assert {n: p for n, p in pairs.items() if contrast(p.fg, p.soft) < ENOUGH} == {}
    assert {n: p for n, p in pairs.items() if contrast(palette.text, p.soft) < ENOUGH} == {}
    assert contrast(palette.on_accent, palette.accent.fg) >= ENOUGH
    assert contrast(palette.text, palette.pressed) >= ENOUGH


@PALETTES
def test_outlines_of_controls_and_the_focus_ring_stand_out(palette: Palette) -> None:
    for ground in (palette.background, palette.surface, palette.raised):
        assert contrast(palette.border_strong, ground) >= ENOUGH_FOR_OUTLINES
        assert contrast(palette.focus, ground) >= ENOUGH_FOR_OUTLINES


def picture(icon: QIcon, pixels: int = 16, mode: QIcon.Mode = QIcon.Mode.Normal) -> QImage:
    return icon.pixmap(QSize(pixels, pixels), 1.0, mode).toImage()


def solid_colours(image: QImage) -> set[str]:
    points = ((x, y) for x in range(image.width()) for y in range(image.height()))
    colours = (image.pixelColor(x, y) for x, y in points)
    return {colour.name() for colour in colours if colour.alpha() == 255}


@pytest.mark.parametrize("name", ["light", "dark"])
def test_every_icon_draws_something_in_the_colour_of_the_text(theme: Theme, qapp: QApplication, name: str) -> None:
    theme.apply(qapp, "dark" if name == "dark" else "light")
    for icon in icon_names():
        drawn = picture(theme.icon(icon), 48)
        assert theme.palette.text in solid_colours(drawn), icon


def test_a_window_is_painted_in_the_colours_of_the_theme_that_is_on(
    theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.menuBar().addMenu("Policy")
    window.setCentralWidget(CodeView("Text"))
    window.resize(1280, 800)
    theme.dress(window)
    for name in ("light", "dark"):
        theme.apply(qapp, "dark" if name == "dark" else "light")
        drawn = window.grab().toImage()
        assert drawn.width() >= 1280
        for x, y in ((5, 5), (640, 400)):
            lightness = drawn.pixelColor(x, y).lightness()
            assert lightness < 60 if name == "dark" else lightness > 200


def test_icons_are_as_sharp_as_the_screen(theme: Theme) -> None:
    for scale in (1.0, 1.25, 1.5, 2.0):
        assert theme.icon("bot").pixmap(QSize(16, 16), scale).width() == round(16 * scale)


def test_disabled_icon_has_the_disabled_colour(theme: Theme) -> None:
    drawn = picture(theme.icon("folder", "accent"), 48, QIcon.Mode.Disabled)
    assert solid_colours(drawn) == {theme.palette.disabled}


def test_unknown_icon_is_named_with_the_nearest_one(theme: Theme) -> None:
    with pytest.raises(MissingResourceError, match="no icon named `foldr`; did you mean `folder`"):
        theme.icon("foldr")


def test_five_states_of_a_box_look_different(theme: Theme) -> None:
    pictures = [picture(theme.check_icon(state), 32) for state in CheckState]
    pictures.append(picture(theme.check_icon(CheckState.OFF, focused=True), 32))
    pictures.append(picture(theme.check_icon(CheckState.OFF), 32, QIcon.Mode.Disabled))
    for at, one in enumerate(pictures):
        assert all(one != other for other in pictures[at + 1 :])


def test_change_of_theme_retints_buttons_and_widgets(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    button, badge = QToolButton(), VerdictBadge("deny")
    for widget in (button, badge):
        qtbot.addWidget(widget)
        widget.show()
    tie_icon(button, "trash")
    assert LIGHT.text in solid_colours(picture(button.icon(), 48))
    assert badge.grab().toImage().pixelColor(3, badge.height() // 2).name() == LIGHT.verdict.deny.soft
    with qtbot.waitSignal(theme.theme_changed) as changed:
        theme.apply(qapp, "dark")
    assert values(changed) == ["dark"]
    assert DARK.text in solid_colours(picture(button.icon(), 48))
    assert badge.grab().toImage().pixelColor(3, badge.height() // 2).name() == DARK.verdict.deny.soft


def test_tying_another_icon_replaces_the_first(theme: Theme, qtbot: QtBot) -> None:
    button = QToolButton()
    qtbot.addWidget(button)
    tie_icon(button, "trash")
    tie_icon(button, "save", "accent")
    assert picture(button.icon()) == picture(theme.icon("save", "accent"))
    assert len(button.children()) == 1


def test_theme_sets_every_group_of_the_application_palette(theme: Theme, qapp: QApplication) -> None:
    theme.apply(qapp, "dark")
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK.background)
    disabled = qapp.palette().color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert disabled == QColor(DARK.disabled)


def test_system_theme_is_one_of_the_two(theme: Theme, qapp: QApplication) -> None:
    theme.apply(qapp, "system")
    assert theme.choice == "system"
    assert theme.current in {"light", "dark"}


def test_look_is_the_theme_that_was_applied(theme: Theme) -> None:
    assert current_look() is theme


def test_texts_grow_by_the_size_that_is_chosen_and_become_what_they_were(
    theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    theme.apply(qapp, "light")
    usual = (theme.ui_font.pixelSize(), theme.small_font.pixelSize(), theme.mono_font.pixelSize())
    row = theme.tokens.row_height
    window = QWidget()
    qtbot.addWidget(window)
    theme.dress(window)
    sheet = window.styleSheet()
    for factor in TEXT_FACTORS.values():
        theme.set_text_size(factor)
        grown = (theme.ui_font.pixelSize(), theme.small_font.pixelSize(), theme.mono_font.pixelSize())
        assert all(round(before * factor) == now for before, now in zip(usual, grown, strict=True))
        assert qapp.font().pixelSize() == theme.ui_font.pixelSize()
        assert QFontMetrics(theme.ui_font).height() <= row, "a row holds the words"
    assert window.styleSheet() != sheet
    theme.set_text_size(1.0)
    assert window.styleSheet() == sheet
