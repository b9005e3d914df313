"""Two tools as an MCP server for git lists them: one that reads, and one with operations, with its hints or without."""

from typing import Any

LOG: dict[str, Any] = {
    "name": "git_log",
    "description": "Shows the log.\nNothing else.",
    "inputSchema": {"type": "object", "properties": {"repo": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
BRANCH: dict[str, Any] = {
    "name": "branch",
    "description": "Works on branches.",
    "inputSchema": {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": ["list", "create", "delete"]}},
        "required": ["action"],
    },
}
HINTED_BRANCH = {**BRANCH, "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}}
