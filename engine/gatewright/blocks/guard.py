"""Loro's errors, most of them plain BaseException, as errors of our tree."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from gatewright.base.errors import GatewrightError

PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
"""What is nobody's failure: interrupts, the end of the program, cancellation."""


@contextmanager
def guarded(failure: GatewrightError) -> Generator[None]:
    """Any error of Loro becomes ``failure``; interrupts and cancellation pass."""
    try:
        yield
    except PASSING:
        raise
    except BaseException as error:
        raise failure from error
