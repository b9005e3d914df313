"""Rows as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.bench.row import Figure, Measured, Met, Row


def text_of(row: Row) -> str:
    """One row: its figures, the ratio of each to the reference, its bars."""
    return "\n".join(
        (f"{row.name}: {row.workload}", *_figures(row), *_bars(row), *(f"    note: {n}" for n in row.notes))
    )


def summary(rows: Sequence[Row]) -> str:
    """How many bars are met, and which are not."""
    bars = [(row.name, bar) for row in rows for bar in row.bars]
    counted = {met: sum(bar.met is met for _, bar in bars) for met in Met}
    lines = [f"{counted[Met.YES]} met, {counted[Met.NO]} missed, {counted[Met.UNKNOWN]} not measured"]
    lines += [f"  missed: {name}: {bar.text}, found {bar.found}" for name, bar in bars if bar.met is Met.NO]
    return "\n".join(lines)


def _figures(row: Row) -> Iterator[str]:
    width = max((len(name) for name in row.figures), default=0) + 2
    reference = row.figures.get(row.reference or "")
    yield f"  {'':{width}} {'median':>10} {'p99':>10} {'unit':<8} {'ratio':>8}"
    for name, found in row.figures.items():
        mark = "*" if name in row.ours else " "
        yield f"{mark} {name:{width}} {_cells(found, reference)}".rstrip()


def _cells(found: Measured, reference: Measured | None) -> str:
    if not isinstance(found, Figure):
        return f"{found.why:>10}"
    p99 = "" if found.p99 is None else _number(found.p99)
    ratio = ""
    if isinstance(reference, Figure) and reference.unit == found.unit:
        ratio = f"{_number(found.median / reference.median)}x"
    wrong = f"  {found.wrong:,} wrong" if found.wrong else ""
    return f"{_number(found.median):>10} {p99:>10} {found.unit:<8} {ratio:>8}{wrong}"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _bars(row: Row) -> Iterable[str]:
    width = max((len(bar.text) for bar in row.bars), default=0)
    return (f"    bar: {bar.text:{width}}  {bar.found:>12}  {bar.met}" for bar in row.bars)
