"""Where state and keys lie on disk. It makes no folder and reads no file.

A folder that somebody named is the one that its links lead to; the one beside a policy is taken as it stands, since it
came with the workspace.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

STATE_FOLDER = ".gatewright"
STATE_VARIABLE = "GATEWRIGHT_STATE"
DURABLE_VARIABLE = "GATEWRIGHT_DURABLE"
KEYS_VARIABLE = "GATEWRIGHT_KEYS"


def state_folder(policy_path: Path, explicit: Path | None = None) -> Path:
    """The folder of audit, memory and sessions: ``explicit``, else GATEWRIGHT_STATE, else beside the policy."""
    named = explicit or os.environ.get(STATE_VARIABLE)
    return Path(os.path.realpath(named)) if named else policy_path.absolute().parent / STATE_FOLDER


def key_folder(explicit: Path | None = None) -> Path:
    """The folder of keys and anchors: ``explicit``, else GATEWRIGHT_KEYS, else in the user's data folder."""
    named = explicit or os.environ.get(KEYS_VARIABLE) or platformdirs.user_data_path("gatewright") / "keys"
    return Path(os.path.realpath(named))


def is_durable(explicit: bool | None = None) -> bool:
    """Whether audit rows are to outlast a loss of power: ``explicit``, else GATEWRIGHT_DURABLE (1, true, yes or on)."""
    if explicit is not None:
        return explicit
    return os.environ.get(DURABLE_VARIABLE, "").strip().lower() in {"1", "true", "yes", "on"}
