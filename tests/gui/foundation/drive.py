"""What the tests of the foundation need around Qt's own test tools; it does not know the widgets."""

from typing import Protocol, cast


class Waited(Protocol):
    """What `qtbot.waitSignal` hands out."""

    args: object


def values(waited: object) -> list[object]:
    """The arguments that a waited-for signal carried."""
    return cast(list[object], cast(Waited, waited).args)
