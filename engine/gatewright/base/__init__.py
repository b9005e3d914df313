"""Errors, problems, ids, time, JSON values, patterns and safe writing, for every floor.

`@frozen` (`base/frozen.py`) makes values: frozen slotted dataclasses that cost less at the start of a process, which
defines hundreds of them. `base/late.py` loads a public name when it is first asked for.
"""
