"""The policy file as it would be saved now."""

from gatewright_gui.pages.toml.toml_page import TomlPage

__all__ = ["TomlPage"]
