"""Gives every floor errors, problems, ids, time, JSON values, patterns and safe writing.

Values are made by `@frozen` (`base/frozen.py`): a frozen slotted dataclass without what hundreds of them cost every
process at its start. `base/late.py` loads a public name when it is first asked for.
"""
