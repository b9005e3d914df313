"""Defines the kinds of rules and capabilities: each value says itself how it is read, checked, written and named."""
