"""The kinds of rules and of capabilities: each value says itself how it is read, checked, written and told."""
