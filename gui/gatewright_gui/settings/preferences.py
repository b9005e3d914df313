"""What the app remembers of its user: preferences, workspaces, window geometry, splitter sizes, in one ini file."""

from pathlib import Path
from typing import Literal, cast, get_args

from PySide6.QtCore import QByteArray, QObject, QSettings, QStandardPaths, Signal, SignalInstance

from gatewright_gui.settings.lastplace import LastPlace, line_of, read_line

ThemePreference = Literal["light", "dark", "system"]
TextSize = Literal["normal", "large", "largest"]
TEXT_FACTORS: dict[TextSize, float] = {"normal": 1.0, "large": 1.15, "largest": 1.3}
MAX_RECENT = 10
WRAPPED_AT_FIRST = frozenset({"preview"})
"""Views whose long lines are wrapped until somebody says otherwise."""


def default_file() -> Path:
    """The file where the preferences of this user are kept."""
    config = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
    return Path(config) / "gatewright" / "preferences.ini"


class Preferences(QObject):
    """Typed access to the preferences file; pass another `file` to be apart from the user's own."""

    preference_changed = Signal()
    """The theme, the language, a switch or the wrapping of a view was chosen anew."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self._file = file or default_file()
        self._store = QSettings(str(self._file), QSettings.Format.IniFormat)

    @property
    def changed(self) -> SignalInstance:
        """`preference_changed`, under the name that widgets know."""
        return self.preference_changed

    @property
    def file(self) -> Path:
        """The ini file; it need not exist yet."""
        return self._file

    @property
    def theme(self) -> ThemePreference:
        """The chosen theme; `system` when nothing usable is stored."""
        value = self._text("window/theme")
        return cast(ThemePreference, value) if value in get_args(ThemePreference) else "system"

    @theme.setter
    def theme(self, choice: ThemePreference) -> None:
        self._store.setValue("window/theme", choice)
        self.preference_changed.emit()

    @property
    def text_size(self) -> TextSize:
        """The chosen size of texts; `normal` when nothing usable is stored."""
        value = self._text("window/text-size")
        return cast(TextSize, value) if value in get_args(TextSize) else "normal"

    @text_size.setter
    def text_size(self, size: TextSize) -> None:
        self._store.setValue("window/text-size", size)
        self.preference_changed.emit()

    @property
    def language(self) -> str:
        """The chosen language, such as `de`; empty for that of the system."""
        return self._text("window/language")

    @language.setter
    def language(self, code: str) -> None:
        self._store.setValue("window/language", code)
        self.preference_changed.emit()

    @property
    def notifies(self) -> bool:
        """Tell whether the desktop tells of calls that begin to wait."""
        return self.choice("approvals.notify") != "off"

    @notifies.setter
    def notifies(self, on: bool) -> None:
        self.set_choice("approvals.notify", "" if on else "off")
        self.preference_changed.emit()

    @property
    def reviews_gains_only(self) -> bool:
        """Tell whether saving shows what changes only where somebody may do more."""
        return self.choice("save-review") == "gains"

    @reviews_gains_only.setter
    def reviews_gains_only(self, on: bool) -> None:
        self.set_choice("save-review", "gains" if on else "")
        self.preference_changed.emit()

    @property
    def last_workspace(self) -> Path | None:
        """The workspace that was open last."""
        value = self._text("workspace/last")
        return Path(value) if value else None

    @last_workspace.setter
    def last_workspace(self, workspace: Path | None) -> None:
        self._store.setValue("workspace/last", str(workspace) if workspace else "")

    @property
    def recent_workspaces(self) -> tuple[Path, ...]:
        """Newest first, at most MAX_RECENT."""
        return tuple(Path(text) for text in self._texts("workspace/recent") if text)[:MAX_RECENT]

    def add_recent_workspace(self, workspace: Path) -> None:
        """Move a workspace to the front of the recent ones."""
        others = [path for path in self.recent_workspaces if path != workspace]
        self._keep_recent([workspace, *others][:MAX_RECENT])

    def forget_recent_workspace(self, workspace: Path) -> None:
        """Take a workspace out of the recent ones."""
        self._keep_recent([path for path in self.recent_workspaces if path != workspace])

    def last_place(self, workspace: Path) -> LastPlace | None:
        """The place where one was in a workspace when it was left; None when that is not known."""
        return self._places().get(str(workspace))

    def keep_last_place(self, workspace: Path, place: LastPlace) -> None:
        """Remember where one is in a workspace; of MAX_RECENT of them, the newest."""
        others = {name: kept for name, kept in self._places().items() if name != str(workspace)}
        lines = [line_of(name, kept) for name, kept in {str(workspace): place, **others}.items()]
        self._store.setValue("workspace/places", lines[:MAX_RECENT])

    def _places(self) -> dict[str, LastPlace]:
        return dict(read for line in self._texts("workspace/places") if (read := read_line(line)) is not None)

    @property
    def window_geometry(self) -> bytes | None:
        """The bytes that `QWidget.saveGeometry` gave."""
        return self._bytes("window/geometry")

    @window_geometry.setter
    def window_geometry(self, geometry: bytes) -> None:
        self._store.setValue("window/geometry", QByteArray(geometry))

    @property
    def window_state(self) -> bytes | None:
        """The bytes that `QMainWindow.saveState` gave."""
        return self._bytes("window/state")

    @window_state.setter
    def window_state(self, state: bytes) -> None:
        self._store.setValue("window/state", QByteArray(state))

    def splitter_sizes(self, key: str) -> tuple[int, ...] | None:
        """Sizes kept for a splitter, in pixels; None when there are none."""
        texts = self._texts(f"splitter/{key}")
        if not texts or not all(text.isascii() and text.isdigit() for text in texts):
            return None
        return tuple(int(text) for text in texts)

    def set_splitter_sizes(self, key: str, sizes: tuple[int, ...]) -> None:
        """Keep the sizes of a splitter."""
        self._store.setValue(f"splitter/{key}", [str(size) for size in sizes])

    def wraps_lines(self, key: str) -> bool:
        """Tell whether long lines of a view are wrapped."""
        return {"yes": True, "no": False}.get(self._text(f"wrap/{key}"), key in WRAPPED_AT_FIRST)

    def set_wraps_lines(self, key: str, wraps: bool) -> None:
        """Keep whether long lines of a view are wrapped."""
        self._store.setValue(f"wrap/{key}", "yes" if wraps else "no")
        self.preference_changed.emit()

    def choice(self, key: str) -> str:
        """Which of several views was chosen last; empty when nobody has chosen."""
        return self._text(f"choice/{key}")

    def set_choice(self, key: str, chosen: str) -> None:
        """Keep which of several views was chosen."""
        self._store.setValue(f"choice/{key}", chosen)

    def save(self) -> None:
        """Write to disk now. Raises OSError when the file cannot be written."""
        self._store.sync()
        if self._store.status() is QSettings.Status.AccessError:
            raise PermissionError(f"cannot write the preferences file `{self._file}`")

    def _keep_recent(self, workspaces: list[Path]) -> None:
        self._store.setValue("workspace/recent", [str(path) for path in workspaces])

    def _text(self, key: str) -> str:
        value: object = self._store.value(key, "")
        return value if isinstance(value, str) else ""

    def _texts(self, key: str) -> list[str]:
        value: object = self._store.value(key, [])
        if isinstance(value, str):  # an ini list of one reads back as a string
            return [value]
        if isinstance(value, list):
            return [item for item in cast(list[object], value) if isinstance(item, str)]
        return []

    def _bytes(self, key: str) -> bytes | None:
        value: object = self._store.value(key)
        return bytes(value.data()) if isinstance(value, QByteArray) else None
