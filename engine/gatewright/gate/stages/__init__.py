"""Defines the stages of a call, grouped by idea; a stage takes a state and returns the next one with its objections."""
