"""Fusion under our palette, and the style sheet filled in from tokens."""

from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import cast

from gatewright_gui.qt.look import Palette, Tokens
from gatewright_gui.theme.indicator import indicator_files
from gatewright_resources import style


def style_values(tokens: Tokens, palette: Palette, indicators: Path) -> dict[str, str]:
    """Every place of the template: token names, palette names, nested ones joined by `_`."""
    values = {name: str(value) for name, value in asdict(tokens).items()}
    values["indicators"] = indicators.as_posix()
    _flatten("", cast(dict[str, object], asdict(palette)), values)
    return values


def _flatten(prefix: str, branch: dict[str, object], into: dict[str, str]) -> None:
    for name, value in branch.items():
        if isinstance(value, str):
            into[prefix + name] = value
        elif isinstance(value, dict):
            _flatten(f"{prefix}{name}_", cast(dict[str, object], value), into)


def style_sheet(tokens: Tokens, palette: Palette, indicators: Path) -> str:
    """The whole style sheet. A place that no token fills raises KeyError."""
    return Template(style("app")).substitute(style_values(tokens, palette, indicators))


def write_indicators(palette: Palette, target: Path) -> None:
    """Put the SVG files that the style sheet refers to into an existing folder."""
    for name, text in indicator_files(palette).items():
        (target / name).write_text(text, encoding="ascii")
