"""What stands at the end of the help of each command: examples, in a workspace `work` that begins as the demo."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "gui": ("gui work",),
    "init": ("init work --template demo", "init desk --example support-bot"),
    "import": ("import .claude/settings.json --out mine", "import agent.toml"),
    "tour": ("tour --out pictures",),
    "check": ("check work", "check work --json"),
    "context": ("context work --agent archivist",),
    "confinement": ("confinement work --agent archivist",),
    "inbox": ("inbox work", "inbox work --agent archivist --take"),
    "preview": (
        "preview work --agent archivist --format openai",
        "preview work/station-tools.json --tool tracker --allow open,list",
    ),
    "rules": ("rules work --agent archivist",),
    "decide": (
        """decide work --agent archivist --tool file --args '{"op": "read", "path": "notes/species.md"}'""",
        """echo '{"op": "list"}' | gatewright decide work --agent archivist --tool file --args - --json""",
    ),
    "call": (
        """call work --agent archivist --tool file --args '{"op": "list"}'""",
        """call work --agent archivist --tool memory_save --args '{"content": "Herons nest late."}' --approve always""",
    ),
    "operations": ("operations work/station-tools.json --tool tracker", "operations - < schema.json"),
    "filter": ("filter work/station-tools.json --tool tracker --allow open,list",),
    "policy-schema": ("policy-schema > policy.schema.json",),
    "permission": (
        "permission work --source archive notes/species.md drafts/",
        "git -C work ls-files | gatewright permission work --source archive -",
    ),
    "export": (
        "export work --team --out handed-over",
        "export handed-over --verify",
        "export work --dialect pattern --agent archivist",
    ),
    "selfcheck": ("selfcheck work",),
    "serve": (
        "serve work --agent archivist",
        "serve work --transport http --port 8000",
        "serve --agent helper -- uvx mcp-server-git",
    ),
    "run": (
        "run work --agent archivist -- ls",
        "run work --agent archivist --place archive=read -- find . -name '*.md'",
    ),
    "approvals list": ("approvals list work", "approvals list work --watch"),
    "approvals answer": (
        "approvals answer work ask-0123456789abcdef --once",
        "approvals answer work ask-0123456789abcdef --deny --because 'not today'",
    ),
    "approvals revoke": ("approvals revoke work grant-0123456789abcdef",),
    "audit list": (
        "audit list work --since 2026-01-31 --verdict deny",
        "audit list work --agent archivist --most 20 --json",
        "audit list work --within call-fedcba9876543210",
    ),
    "audit verify": ("audit verify work",),
    "audit export": ("audit export work > log.jsonl", "audit export work --since 2026-01-31T09:30"),
    "block list": ("block list work --agent archivist",),
    "block show": ("block show work logbook",),
    "block create": ("block create work plan --agent archivist --content plan.md",),
    "block set": ("block set work plan --agent archivist --pin --limit 2000",),
    "block edit": (
        "block edit work plan --agent archivist --append 'Count the terns.'",
        "block edit work plan --agent archivist --content - < plan.md",
    ),
    "block archive": ("block archive work plan --agent archivist",),
    "block unarchive": ("block unarchive work plan --agent archivist",),
    "block history": ("block history work plan --agent archivist --limit 5",),
    "block delete": ("block delete work plan --agent archivist",),
    "catalog list": ("catalog list work",),
    "catalog import": (
        "catalog import work --trust --accept -- uvx mcp-server-git",
        "catalog import work --url https://mcp.example.org/mcp",
        "catalog import work --from claude_desktop_config.json",
        "catalog import work --openapi api.yaml --id shop --trust",
    ),
    "catalog accept": ("catalog accept work git", "catalog accept work git --all"),
    "catalog places": (
        "catalog places work git",
        "catalog places work git --accept",
        "catalog places work git --accept --place archive=read --place ./drafts=write",
    ),
    "catalog client-config": ("catalog client-config work --client claude-desktop --agent archivist",),
    "memory adopt": ("memory adopt work",),
    "token add": ("token add work --agent archivist --user ada",),
    "token list": ("token list work",),
    "token revoke": ("token revoke work token-0123456789abcdef",),
}
"""By command; a line that pipes has `gatewright` where the command stands, others have it before them."""


def shown(name: str) -> str:
    """The examples of a command as its help ends with them."""
    return "\n\n".join(("Examples:", "\b\n" + "\n".join(f"  {line_of(example)}" for example in EXAMPLES[name])))


def line_of(example: str) -> str:
    """An example as it is typed."""
    return example if " | gatewright " in example else f"gatewright {example}"


EXITS = (
    "Exit status: 0 fine, or the call is allowed; 1 problems found; 2 a wrong word, nothing to read, no such agent; "
    "3 the call asks and nobody answered; 4 the call is denied; 5 the tool itself failed; 130 interrupted."
)
