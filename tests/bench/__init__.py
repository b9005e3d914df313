"""The project's own benchmark: `python -m tests.bench`. It measures and compares, and fails nobody."""
