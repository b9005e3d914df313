"""The page of catalogs: MCP servers in and out of clients, trusted, started, and their tools accepted."""

from gatewright_gui.pages.servers.page import ServersPage

__all__ = ["ServersPage"]
