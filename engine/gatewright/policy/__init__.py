"""The policy as pure values: permission, verdict, rules, globs, agents, the document, edits."""
