"""The command line: one module per command over the workspace door. It decides nothing."""
