"""The Files page: ordered levels beside the real folder. It does not read disks or decide levels."""

from gatewright_gui.pages.files.page import FilesPage

__all__ = ["FilesPage"]
