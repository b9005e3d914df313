"""The look of the application: tokens, palettes, icons and the theme that is on."""

from gatewright_gui.theme.theme import Theme, ThemeChoice, ThemeName

__all__ = ["Theme", "ThemeChoice", "ThemeName"]
