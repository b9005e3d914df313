"""Icons tinted from a palette, and the drawings of boxes, dots and arrows: SVG files of the running program."""

from pathlib import Path
from typing import Literal

from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon

from gatewright_gui.qt.look import CheckState, Palette, Role, role_hex
from gatewright_resources import icon_svg

Mode = Literal["normal", "hover", "focus", "disabled"]
MODES: tuple[Mode, ...] = ("normal", "hover", "focus", "disabled")

_STROKE = 'fill="none" stroke="{ink}" stroke-linecap="round" stroke-linejoin="round"'
_TICK = f'<path d="M4.6 8.3l2.3 2.3 4.6-5" {_STROKE} stroke-width="1.7"/>'
_BAR = f'<path d="M4.8 8h6.4" {_STROKE} stroke-width="1.8"/>'
_SLASH = f'<path d="M5.4 10.6l5.2-5.2" {_STROKE} stroke-width="1.3"/>'


def _svg(body: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">{body}</svg>'


def _line(palette: Palette, mode: Mode) -> str:
    match mode:
        case "normal":
            return palette.border_strong
        case "hover" | "focus":
            return palette.accent.fg
        case "disabled":
            return palette.disabled


def _ring(palette: Palette, mode: Mode, shape: str) -> str:
    if mode != "focus":
        return ""
    style = f'fill="none" stroke="{palette.focus}" stroke-width="1"'
    return shape.format(style=style)


def _box(fill: str, line: str, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="2 1.6"' if dashed else ""
    return f'<rect x="2.5" y="2.5" width="11" height="11" rx="2" fill="{fill}" stroke="{line}"{dash}/>'


def box_svg(palette: Palette, state: CheckState, mode: Mode) -> str:
    """A check box: full with a tick, full with a bar, empty, or dashed with a slash for `blocked`."""
    ring = _ring(palette, mode, '<rect x="0.5" y="0.5" width="15" height="15" rx="3.5" {style}/>')
    line = _line(palette, mode)
    full = palette.disabled if mode == "disabled" else palette.accent.fg
    match state:
        case CheckState.OFF:
            ground = palette.background if mode == "disabled" else palette.surface
            body = _box(ground, line)
        case CheckState.ON:
            body = _box(full, full) + _TICK.format(ink=palette.on_accent)
        case CheckState.MIXED:
            body = _box(full, full) + _BAR.format(ink=palette.on_accent)
        case CheckState.BLOCKED:
            body = _box(palette.verdict.ask.soft, palette.border_strong, dashed=True)
            body += _SLASH.format(ink=palette.verdict.ask.fg)
    return _svg(ring + body)


def dot_svg(palette: Palette, on: bool, mode: Mode) -> str:
    """A radio button."""
    ring = _ring(palette, mode, '<circle cx="8" cy="8" r="7.5" {style}/>')
    line = _line(palette, mode)
    full = palette.disabled if mode == "disabled" else palette.accent.fg
    ground = palette.background if mode == "disabled" else palette.surface
    outline = full if on else line
    body = f'<circle cx="8" cy="8" r="5.5" fill="{ground}" stroke="{outline}"/>'
    if on:
        body += f'<circle cx="8" cy="8" r="3" fill="{full}"/>'
    return _svg(ring + body)


def arrow_svg(colour: str, direction: Literal["down", "up", "right"]) -> str:
    """A thin chevron for combo boxes, spin boxes, menus and tree branches."""
    paths = {"down": "M4.5 6.2l3.5 3.6 3.5-3.6", "up": "M4.5 9.8l3.5-3.6 3.5 3.6", "right": "M6.2 4.5l3.6 3.5-3.6 3.5"}
    return _svg(
        f'<path d="{paths[direction]}" fill="none" stroke="{colour}" stroke-width="1.5"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )


def indicator_files(palette: Palette) -> dict[str, str]:
    """File name -> SVG text of everything the style sheet refers to."""
    files: dict[str, str] = {}
    for mode in MODES:
        for state in (CheckState.ON, CheckState.OFF, CheckState.MIXED):
            files[f"box-{state.value}-{mode}.svg"] = box_svg(palette, state, mode)
        files[f"dot-on-{mode}.svg"] = dot_svg(palette, True, mode)
        files[f"dot-off-{mode}.svg"] = dot_svg(palette, False, mode)
    for direction in ("down", "up", "right"):
        files[f"arrow-{direction}.svg"] = arrow_svg(palette.muted, direction)
        files[f"arrow-{direction}-disabled.svg"] = arrow_svg(palette.disabled, direction)
    return files


def tint(svg: bytes, colour: str) -> bytes:
    """The SVG with `currentColor` replaced."""
    return svg.replace(b"currentColor", colour.encode("ascii"))


def with_gap(svg: bytes) -> bytes:
    """The SVG with a quarter of its width added at the right: 4 px at the usual 16."""
    return svg.replace(b'width="24"', b'width="30"', 1).replace(b'viewBox="0 0 24 24"', b'viewBox="0 0 30 24"', 1)


class IconShelf:
    """The icons of one palette; each is tinted at first use. `folder` must last as long as the icons are used."""

    def __init__(self, palette: Palette, folder: Path) -> None:
        self._palette = palette
        self._folder = folder
        self._icons: dict[tuple[str, Role, bool], QIcon] = {}
        self._boxes: dict[tuple[CheckState, bool, bool], QIcon] = {}

    def icon(self, name: str, role: Role, *, gap: bool = False) -> QIcon:
        """A bundled icon in the colour of a role. Raises MissingResourceError for an unknown name."""
        key = (name, role, gap)
        if key not in self._icons:
            svg = with_gap(icon_svg(name)) if gap else icon_svg(name)
            normal = tint(svg, role_hex(self._palette, role))
            stem = f"icon-{name}-{role}{'-gap' if gap else ''}"
            self._icons[key] = self._make(stem, normal, tint(svg, self._palette.disabled))
        return self._icons[key]

    def check_icon(self, state: CheckState, hovered: bool, focused: bool) -> QIcon:
        """The picture of a box, for delegates that draw their own."""
        key = (state, hovered, focused)
        if key not in self._boxes:
            mode = "focus" if focused else "hover" if hovered else "normal"
            normal = box_svg(self._palette, state, mode).encode("ascii")
            off = box_svg(self._palette, state, "disabled").encode("ascii")
            self._boxes[key] = self._make(f"check-{state.value}-{mode}", normal, off)
        return self._boxes[key]

    def _make(self, stem: str, normal: bytes, disabled: bytes) -> QIcon:
        on, off = self._folder / f"{stem}.svg", self._folder / f"{stem}-off.svg"
        on.write_bytes(normal)
        off.write_bytes(disabled)
        icon = QIcon()
        for mode in (QIcon.Mode.Normal, QIcon.Mode.Active, QIcon.Mode.Selected):
            icon.addFile(str(on), QSize(), mode)
        icon.addFile(str(off), QSize(), QIcon.Mode.Disabled)
        return icon
