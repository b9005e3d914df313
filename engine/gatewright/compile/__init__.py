"""The rights of agents, compiled from policy and registered tools.

``Snapshot`` holds one policy over the tools of one moment, ``AgentSnapshot`` the rights of one agent by it,
``ToolPlan`` the facts that a call of one tool needs, ``AgentView`` the tools that the agent's model sees. Boxes,
preview, gate, self-check and differences all read these.

Each layer of an answer has its module in `policy`: `policy/layer.py` joins the layers, `policy/reach.py` knows the
grants and the reach of sources, `policy/rulematch.py` the matching policy rules and the changes by `[tools.NAME]`. The
layers also close a held tool for every agent, since its definition is not the one that the operator accepted
(`tools/pin.py`). A rule that misfits the registered tools (`policy.rulematch`) closes the tools that it names, and
`Gate.problems()` reports it.
"""
