"""What the app remembers between two starts."""

from gatewright_gui.settings.lastplace import LastPlace
from gatewright_gui.settings.preferences import Preferences, ThemePreference

__all__ = ["LastPlace", "Preferences", "ThemePreference"]
