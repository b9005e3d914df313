"""What an agent may do: policy and registered tools, compiled.

``Snapshot`` holds one policy over the tools of one moment, ``AgentSnapshot`` what one agent may do by it, ``ToolPlan``
what a call of one tool looks up, ``AgentView`` what the agent's model sees. Boxes, preview, gate, self-check and
differences all read these.
"""
