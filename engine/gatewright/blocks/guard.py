"""Loro's errors, most of them plain BaseException, as errors of our tree."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gatewright.base import aio

if TYPE_CHECKING:
    from gatewright.base.errors import GatewrightError


def passing() -> tuple[type[BaseException], ...]:
    """What is nobody's failure: interrupts, the end of the program, cancellation."""
    return KeyboardInterrupt, SystemExit, GeneratorExit, aio.CancelledError


@contextmanager
def guarded(failure: GatewrightError) -> Generator[None]:
    """Any error of Loro becomes ``failure``; interrupts and cancellation pass."""
    try:
        yield
    except passing():
        raise
    except BaseException as error:
        raise failure from error
