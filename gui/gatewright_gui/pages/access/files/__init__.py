"""The Files page: ordered levels beside the real folder."""

from gatewright_gui.pages.access.files.page import FilesPage

__all__ = ["FilesPage"]
