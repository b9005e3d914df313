"""What all tests of the engine share."""

from __future__ import annotations

from hypothesis import settings

# how long one example takes says more about the machine's load than about the code
settings.register_profile("engine", deadline=None)
settings.load_profile("engine")
