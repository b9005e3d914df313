"""Bundled data of Gatewright and the accessor for them."""

from gatewright_resources.access import MissingResourceError, folder, fonts, icon_names, icon_svg, style

__all__ = ["MissingResourceError", "folder", "fonts", "icon_names", "icon_svg", "style"]
