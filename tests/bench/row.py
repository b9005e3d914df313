"""What one row of the benchmark found, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Met(StrEnum):
    """Whether a bar is reached; ``unknown`` when what it compares with could not be measured."""

    YES = "met"
    NO = "MISSED"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured amount: the median and, where there are single samples, the 99th percentile.

    ``wrong``: how many answers differed from the truth table, None where there is no such table.
    """

    median: float
    p99: float | None = None
    unit: str = "us"
    wrong: int | None = None

    def to_json(self) -> dict[str, object]:
        """Shape: median, p99, unit, wrong."""
        return {"median": self.median, "p99": self.p99, "unit": self.unit, "wrong": self.wrong}


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no figure."""

    why: str = "peer not installed"

    def to_json(self) -> dict[str, object]:
        """Shape: missing."""
        return {"missing": self.why}


Measured = Figure | Missing


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing to reach: what it asks for, what was found, and whether that is enough."""

    text: str
    found: str
    met: Met

    def to_json(self) -> dict[str, object]:
        """Shape: bar, found, met."""
        return {"bar": self.text, "found": self.found, "met": str(self.met)}


@dataclass(frozen=True, slots=True)
class Row:
    """One row: ``ours`` names the figures of this project among ``figures``, ``reference`` the one to divide by."""

    name: str
    workload: str
    ours: tuple[str, ...]
    figures: Mapping[str, Measured] = field(hash=False)
    bars: tuple[Bar, ...] = ()
    reference: str | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Shape: name, workload, ours, reference, figures, bars, notes."""
        return {
            "name": self.name,
            "workload": self.workload,
            "ours": list(self.ours),
            "reference": self.reference,
            "figures": {name: found.to_json() for name, found in self.figures.items()},
            "bars": [bar.to_json() for bar in self.bars],
            "notes": list(self.notes),
        }


def at_most(what: str, found: Measured, limit: float, unit: str = "us") -> Bar:
    """A bar on an amount by itself."""
    text = f"{what} <= {limit:g} {unit}"
    if isinstance(found, Missing):
        return Bar(text, found.why, Met.UNKNOWN)
    return Bar(text, f"{found.median:.4g} {unit}", _met(fits=found.median <= limit))


def at_least(what: str, found: Measured, limit: float, unit: str) -> Bar:
    """A bar on an amount by itself, from below."""
    text = f"{what} >= {limit:g} {unit}"
    if isinstance(found, Missing):
        return Bar(text, found.why, Met.UNKNOWN)
    return Bar(text, f"{found.median:.4g} {unit}", _met(fits=found.median >= limit))


def p99_at_most(what: str, found: Measured, limit: float, unit: str = "us") -> Bar:
    """A bar on the slowest hundredth."""
    text = f"{what} p99 <= {limit:g} {unit}"
    if isinstance(found, Missing) or found.p99 is None:
        return Bar(text, "no samples", Met.UNKNOWN)
    return Bar(text, f"{found.p99:.4g} {unit}", _met(fits=found.p99 <= limit))


def times_at_most(what: str, found: Measured, reference: Measured, limit: float) -> Bar:
    """A bar on how many times the reference of the same run something takes."""
    text = f"{what} <= {limit:g}x"
    if isinstance(found, Missing) or isinstance(reference, Missing):
        return Bar(text, _why(found, reference), Met.UNKNOWN)
    ratio = found.median / reference.median
    return Bar(text, f"{ratio:.2f}x", _met(fits=ratio <= limit))


def times_faster(what: str, found: Measured, peer: Measured, limit: float) -> Bar:
    """A bar on how many times faster than a peer of the same run something is."""
    text = f"{what}: >= {limit:g}x faster" if limit > 1 else f"{what}: faster"
    if isinstance(found, Missing) or isinstance(peer, Missing):
        return Bar(text, _why(found, peer), Met.UNKNOWN)
    ratio = peer.median / found.median
    return Bar(text, f"{ratio:.2f}x", _met(fits=ratio >= limit))


def none_wrong(figures: Mapping[str, Measured], text: str = "every answer as in the truth table") -> Bar:
    """Whether every contestant answered as the truth table says."""
    wrong = {name: f.wrong for name, f in figures.items() if isinstance(f, Figure) and f.wrong}
    found = ", ".join(f"{name}: {count} wrong" for name, count in wrong.items()) or "0 wrong"
    return Bar(text, found, _met(fits=not wrong))


def _met(*, fits: bool) -> Met:
    return Met.YES if fits else Met.NO


def _why(*found: Measured) -> str:
    return next((one.why for one in found if isinstance(one, Missing)), "")
