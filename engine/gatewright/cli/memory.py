"""``memory adopt``: taking over what somebody else's state folder, or a copy of an own one, remembers."""

from __future__ import annotations

from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, user_name
from gatewright.cli.output import print_json, print_line
from gatewright.workspace import Workspace


def adopt(policy: PolicyArgument, json: JsonOption = False, state: StateOption = None) -> None:
    """Take over blocks, archive, messages and notes that were made elsewhere: from then on models are told them."""
    with Workspace.open(policy, state=state) as workspace:
        adopted = workspace.adopt_memory(who=user_name())
    if json:
        print_json({"adopted": [str(path) for path in adopted]})
        return
    for path in adopted:
        print_line(f"adopted {path}")
    if not adopted:
        print_line("there is no foreign memory")
