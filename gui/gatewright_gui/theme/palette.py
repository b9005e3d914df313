"""Our palette as Qt's: which colour role each of Qt's roles and groups gets."""

from PySide6.QtGui import QColor, QPalette

from gatewright_gui.qt.look import Palette

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
