"""What a small widget needs to know of the look: shapes of tokens and palette, and the port `Look` that has them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol
from weakref import ref

from PySide6.QtCore import QObject, QSize, Qt, SignalInstance
from PySide6.QtGui import QAction, QColor, QFont, QIcon
from PySide6.QtWidgets import QAbstractButton, QPushButton, QToolButton, QWidget

VerdictName = Literal["allow", "ask", "deny"]
LevelName = Literal["none", "read_only", "ask", "partner", "human", "append", "read_write", "admin"]
Role = Literal[
    "text", "muted", "disabled", "accent", "on_accent", "neutral",
    "allow", "ask", "deny",
    "none", "read_only", "partner", "human", "append", "read_write", "admin",
]  # fmt: skip


class CheckState(StrEnum):
    """The state of a gate's box; `BLOCKED` is off because another layer turned it off."""

    ON = "on"
    OFF = "off"
    MIXED = "mixed"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Sizes in device-independent pixels."""

    space_1: int
    space_2: int
    space_3: int
    space_4: int
    title_text_size: int
    heading_text_size: int
    text_size: int
    small_text_size: int
    radius: int
    small_radius: int
    row_height: int
    control_height: int
    icon_size: int
    small_icon_size: int
    rail_width: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A colour for words and lines (`fg`), and a soft ground they may stand on (`soft`). `#rrggbb`."""

    fg: str
    soft: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The three verdict colours."""

    allow: Pair
    ask: Pair
    deny: Pair


@dataclass(frozen=True, slots=True)
class Levels:
    """One colour for each permission level."""

    none: Pair
    read_only: Pair
    partner: Pair
    human: Pair
    append: Pair
    read_write: Pair
    admin: Pair


@dataclass(frozen=True, slots=True)
class Syntax:
    """Colours of highlighted text, on the surface."""

    key: str
    string: str
    number: str
    keyword: str
    punctuation: str
    comment: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A dark ground in both themes, and what stands on it."""

    ground: str
    text: str
    muted: str
    link: str
    danger: str


@dataclass(frozen=True, slots=True)
class Palette:
    """Every colour of one theme, `#rrggbb`.

    `background` is the window, `surface` the views in it, `raised` buttons and bars.
    `border` separates; `border_strong` outlines what can be operated.
    """

    background: str
    surface: str
    raised: str
    hover: str
    pressed: str
    border: str
    border_strong: str
    text: str
    muted: str
    disabled: str
    accent: Pair
    on_accent: str
    selection: str
    selection_inactive: str
    focus: str
    neutral: Pair
    verdict: Verdicts
    level: Levels
    syntax: Syntax
    diff_added: Pair
    diff_removed: Pair
    strip: Strip


class Look(Protocol):
    """The running look; the theme package satisfies it."""

    @property
    def tokens(self) -> Tokens:
        """Sizes."""
        ...

    @property
    def palette(self) -> Palette:
        """Colours of the theme that is on."""
        ...

    @property
    def changed(self) -> SignalInstance:
        """Emitted after the theme changed, with one argument to ignore."""
        ...

    @property
    def mono_font(self) -> QFont:
        """The monospaced face for code, paths and numbers."""
        ...

    @property
    def small_font(self) -> QFont:
        """The smaller of the two text sizes."""
        ...

    def icon(self, name: str, role: Role = "text", *, gap: bool = False) -> QIcon:
        """A bundled icon tinted for the theme that is on. `gap`: with room behind it, for words that follow."""
        ...

    def check_icon(self, state: CheckState, *, hovered: bool = False, focused: bool = False) -> QIcon:
        """The picture of a box; its disabled mode is in the same icon."""
        ...

    def dress(self, window: QWidget) -> None:
        """Style a window that no other has opened, or a popup without a parent, now and whenever the look changes."""
        ...


_installed: list[Look] = []


def install_look(look: Look) -> None:
    """Make `look` the one that widgets use from now on."""
    _installed[:] = [look]


def current_look() -> Look:
    """The installed look. Raises RuntimeError when none is installed yet."""
    if not _installed:
        raise RuntimeError("no look installed: apply a theme before making widgets")
    return _installed[0]


def role_colour(role: Role) -> QColor:
    """The colour that a role has in the theme that is on."""
    return QColor(role_hex(current_look().palette, role))


def role_hex(palette: Palette, role: Role) -> str:
    """`#rrggbb` of a role in a palette."""
    return role_pair(palette, role).fg


def role_pair(palette: Palette, role: Role) -> Pair:
    """Words and soft ground of a role; plain text roles stand on the raised ground."""
    match role:
        case "accent":
            return palette.accent
        case "neutral":
            return palette.neutral
        case "allow" | "ask" | "deny":
            return verdict_pair(palette, role)
        case "none" | "read_only" | "partner" | "human" | "append" | "read_write" | "admin":
            return level_pair(palette, role)
        case "text":
            return Pair(palette.text, palette.raised)
        case "muted":
            return Pair(palette.muted, palette.raised)
        case "disabled":
            return Pair(palette.disabled, palette.raised)
        case "on_accent":
            return Pair(palette.on_accent, palette.accent.fg)


def verdict_pair(palette: Palette, name: VerdictName) -> Pair:
    """The colours of a verdict."""
    return {"allow": palette.verdict.allow, "ask": palette.verdict.ask, "deny": palette.verdict.deny}[name]


def level_pair(palette: Palette, name: LevelName) -> Pair:
    """The colours of a permission level."""
    level = palette.level
    return {
        "none": level.none,
        "read_only": level.read_only,
        "ask": palette.verdict.ask,
        "partner": level.partner,
        "human": level.human,
        "append": level.append,
        "read_write": level.read_write,
        "admin": level.admin,
    }[name]


class _IconTie(QObject):
    """Keeps one button or action in the icon of the theme that is on, as long as it lives."""

    def __init__(self, target: QAbstractButton | QAction, name: str, role: Role) -> None:
        super().__init__(target)
        self._target: Callable[[], QAbstractButton | QAction | None] = ref(target)
        self._name = name
        self._role: Role = role
        current_look().changed.connect(self.refresh)
        self.refresh()

    def set(self, name: str, role: Role) -> None:
        self._name, self._role = name, role
        self.refresh()

    def refresh(self) -> None:
        target = self._target()
        if target is not None:
            target.setIcon(current_look().icon(self._name, self._role, gap=_has_words_behind(target)))


def tie_icon(target: QAbstractButton | QAction, name: str, role: Role = "text") -> None:
    """Give a button or an action an icon that follows the theme; call again to change it."""
    for child in target.children():
        if isinstance(child, _IconTie):
            child.set(name, role)
            return
    if isinstance(target, QAbstractButton):
        tokens = current_look().tokens
        room = tokens.space_1 if _has_words_behind(target) else 0
        target.setIconSize(QSize(tokens.icon_size + room, tokens.icon_size))
    _IconTie(target, name, role)


def _has_words_behind(target: QAbstractButton | QAction) -> bool:
    """Tell whether the style would draw words close behind the icon; a menu keeps its own distance."""
    if isinstance(target, QToolButton):
        return target.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon
    return isinstance(target, QPushButton)
