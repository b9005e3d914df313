"""Fusion under our palette: which colour each role of Qt's gets, and the style sheet filled in from tokens."""

from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import cast

from PySide6.QtGui import QColor, QPalette

from gatewright_gui.qt.look import Palette, Tokens
from gatewright_gui.theme.icons import indicator_files
from gatewright_resources import style

_ROLE = QPalette.ColorRole
_GROUP = QPalette.ColorGroup


def _base_roles(palette: Palette) -> dict[QPalette.ColorRole, str]:
    return {
        _ROLE.Window: palette.background,
        _ROLE.WindowText: palette.text,
        _ROLE.Base: palette.surface,
        _ROLE.AlternateBase: palette.raised,
        _ROLE.ToolTipBase: palette.raised,
        _ROLE.ToolTipText: palette.text,
        _ROLE.PlaceholderText: palette.muted,
        _ROLE.Text: palette.text,
        _ROLE.Button: palette.raised,
        _ROLE.ButtonText: palette.text,
        _ROLE.BrightText: palette.verdict.deny.fg,
        _ROLE.Link: palette.accent.fg,
        _ROLE.LinkVisited: palette.accent.fg,
        _ROLE.Highlight: palette.selection,
        _ROLE.HighlightedText: palette.text,
        _ROLE.Accent: palette.accent.fg,
        _ROLE.Light: palette.raised,
        _ROLE.Midlight: palette.hover,
        _ROLE.Mid: palette.border,
        _ROLE.Dark: palette.border_strong,
        _ROLE.Shadow: palette.border_strong,
    }


def qt_palette(palette: Palette) -> QPalette:
    """A whole QPalette, every group set, so that nothing of the platform's colours shows through."""
    made = QPalette()
    for role, colour in _base_roles(palette).items():
        made.setColor(role, QColor(colour))
    for role in (_ROLE.WindowText, _ROLE.Text, _ROLE.ButtonText, _ROLE.HighlightedText, _ROLE.PlaceholderText):
        made.setColor(_GROUP.Disabled, role, QColor(palette.disabled))
    made.setColor(_GROUP.Disabled, _ROLE.Base, QColor(palette.background))
    made.setColor(_GROUP.Disabled, _ROLE.Highlight, QColor(palette.selection_inactive))
    made.setColor(_GROUP.Inactive, _ROLE.Highlight, QColor(palette.selection_inactive))
    return made


def style_values(tokens: Tokens, palette: Palette, indicators: Path) -> dict[str, str]:
    """Every place of the template: token names, palette names, nested ones joined by `_`."""
    values = {name: str(value) for name, value in asdict(tokens).items()}
    values["indicators"] = indicators.as_posix()
    _flatten("", cast(dict[str, object], asdict(palette)), values)
    return values


def _flatten(prefix: str, branch: dict[str, object], into: dict[str, str]) -> None:
    for name, value in branch.items():
        if isinstance(value, str):
            into[prefix + name] = value
        elif isinstance(value, dict):
            _flatten(f"{prefix}{name}_", cast(dict[str, object], value), into)


def style_sheet(tokens: Tokens, palette: Palette, indicators: Path) -> str:
    """The whole style sheet. A place that no token fills raises KeyError."""
    return Template(style("app")).substitute(style_values(tokens, palette, indicators))


def write_indicators(palette: Palette, target: Path) -> None:
    """Put the SVG files that the style sheet refers to into an existing folder."""
    for name, text in indicator_files(palette).items():
        (target / name).write_text(text, encoding="ascii")
