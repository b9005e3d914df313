"""The first policy of a new workspace.

It lists all rules for secrets, even without such a file yet: one may come tomorrow. The policy lies in the folder
itself, where no tool reaches it whatever the rules say.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.policy.agentedit import add_agent
from gatewright.policy.document import Defaults, PermissionRule, Policy, Source
from gatewright.policy.edit import apply
from gatewright.policy.verdict import Permission, Verdict
from gatewright.policyfile import render_policy
from gatewright.policyfile.reader import write_policy_text
from gatewright.workspace.location import POLICY_NAME

SECRETS = (
    ".git/", ".ssh/", ".aws/", ".gnupg/", ".env*", ".netrc", ".npmrc", ".pypirc", "id_rsa*", "id_ed25519*", "*.pem",
    "*.key", "*.p12", "*.pfx", "*.kdbx", "credentials*", "secrets*",
)  # fmt: skip
"""Patterns of files better hidden from every agent."""
SOURCE_ID = "files"


@frozen
class Beginning:
    """The contents of a new workspace: one agent without tools, and perhaps the files of the folder.

    ``level``: the agent's level for the files, None: no files at all. ``hides_secrets``: except secrets.
    """

    agent_id: str
    level: Permission | None = None
    hides_secrets: bool = True


def secret_rules() -> tuple[PermissionRule, ...]:
    """Return rules that hide all files and folders of `SECRETS`, later ones included."""
    return tuple(PermissionRule(pattern, Permission.NONE, "a secret") for pattern in SECRETS)


def begin_workspace(folder: Path, beginning: Beginning) -> Path:
    """Write the policy of a new workspace into ``folder``, made if missing, and return the policy's path.

    Raises EditRefused for an impossible agent id, WorkspaceError if a policy exists or cannot be written.
    """
    sources: tuple[Source, ...] = ()
    if beginning.level is not None:
        rules = secret_rules() if beginning.hides_secrets else ()
        sources = (Source(SOURCE_ID, ".", beginning.level, rules),)
    agents = apply(Policy(), add_agent(Policy(), beginning.agent_id)).agents
    agent = replace(agents[beginning.agent_id], sources=tuple(source.source_id for source in sources))
    policy = Policy(defaults=Defaults(unlisted_tools=Verdict.DENY), agents={agent.agent_id: agent}, sources=sources)
    path = folder / POLICY_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot make `{folder}`: {error.strerror or error}") from None
    if path.exists():
        raise WorkspaceError(f"`{path}` exists already; open it instead")
    write_policy_text(path, render_policy(policy), expected=None)
    return path
