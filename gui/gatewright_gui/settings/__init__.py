"""What the app remembers between two starts."""

from gatewright_gui.settings.lastplace import LastPlace
from gatewright_gui.settings.preferences import TEXT_FACTORS, Preferences, TextSize, ThemePreference

__all__ = ["TEXT_FACTORS", "LastPlace", "Preferences", "TextSize", "ThemePreference"]
