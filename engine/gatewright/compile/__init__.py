"""Compiles what an agent may do from the policy and the registered tools.

``Snapshot`` holds one policy over the tools of one moment, ``AgentSnapshot`` what one agent may do by it, ``ToolPlan``
what a call of one tool looks up, ``AgentView`` what the agent's model sees. Boxes, preview, gate, self-check and
differences all read these.

Each layer of an answer has a place in `policy`: `policy/layer.py` puts the layers together, `policy/reach.py` knows
what is granted and what sources let through, `policy/rulematch.py` which policy rules match and what `[tools.NAME]`
changes. A tool that is held, because it no longer fits what the operator accepted (`tools/pin.py`), is closed for every
agent by the same layers. A rule that does not fit the tools that are registered (`policy.rulecheck`) closes the tools
that it names, and `Gate.problems()` says so.
"""
