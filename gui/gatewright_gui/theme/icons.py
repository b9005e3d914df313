"""Icons tinted from a palette: SVG files in a folder of the running program, which Qt draws when they are needed.

Qt draws an SVG anew for every size and scale, so 100 % to 200 % are sharp.
"""

from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon

from gatewright_gui.qt.look import CheckState, Palette, Role, role_hex
from gatewright_gui.theme.indicator import box_svg
from gatewright_resources import icon_svg


def tinted(svg: bytes, colour: str) -> bytes:
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
            normal = tinted(svg, role_hex(self._palette, role))
            stem = f"icon-{name}-{role}{'-gap' if gap else ''}"
            self._icons[key] = self._made(stem, normal, tinted(svg, self._palette.disabled))
        return self._icons[key]

    def check_icon(self, state: CheckState, hovered: bool, focused: bool) -> QIcon:
        """The picture of a box, for delegates that draw their own."""
        key = (state, hovered, focused)
        if key not in self._boxes:
            mode = "focus" if focused else "hover" if hovered else "normal"
            normal = box_svg(self._palette, state, mode).encode("ascii")
            off = box_svg(self._palette, state, "disabled").encode("ascii")
            self._boxes[key] = self._made(f"check-{state.value}-{mode}", normal, off)
        return self._boxes[key]

    def _made(self, stem: str, normal: bytes, disabled: bytes) -> QIcon:
        on, off = self._folder / f"{stem}.svg", self._folder / f"{stem}-off.svg"
        on.write_bytes(normal)
        off.write_bytes(disabled)
        icon = QIcon()
        for mode in (QIcon.Mode.Normal, QIcon.Mode.Active, QIcon.Mode.Selected):
            icon.addFile(str(on), QSize(), mode)
        icon.addFile(str(off), QSize(), QIcon.Mode.Disabled)
        return icon
