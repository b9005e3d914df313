"""Runs the commands over the workspace door, a module for each group of commands."""
