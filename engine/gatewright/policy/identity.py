"""What makes a row of the policy the same row after edits, whatever they change of it.

Every row that is made has a number of its own, and `dataclasses.replace` and pickling carry it along. It says nothing
of the policy: equal rows may have different numbers.
"""

from __future__ import annotations

import os
from itertools import count

new_identity = count(os.getpid() << 40).__next__
"""A number that nothing else has, in this process or in what another one hands over."""
