"""What a call gave back: as text, as a table, as a tree, as the change that it makes.

What is long is read beside the window: a moment later it is there.
"""

import asyncio
import json
from json import decoder, scanner
from typing import Any, Final, Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright.workspace.api import frozen, media_type
from gatewright_gui.pages.trial.blob import BytesModel, Picture, PictureView, bytes_view, picture_of
from gatewright_gui.pages.trial.json_tree import JsonTreeView
from gatewright_gui.pages.trial.result_table import ListedRows, ResultTableView, rows_of_list
from gatewright_gui.pages.trial.stages import duration
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import Chip, CodeView, ElidedLabel, EmptyState, SectionHeader, Segmented
from gatewright_gui.qt.widget.button import icon_button
from gatewright_gui.session.calls import MAX_SHOWN, CallRecord, change_words, cut, takes_away


class _SlowDecoder(json.JSONDecoder):
    """The standard decoder, with the parts of it that are written in Python."""

    def __init__(self) -> None:
        super().__init__()
        parts: Any = self
        parts.parse_object, parts.parse_array = decoder.JSONObject, decoder.JSONArray  # type: ignore[attr-defined]
        parts.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def slow_value(text: str) -> Any:
    """The value of a JSON text. Raises ValueError where it is none, or nested too deeply."""
    try:
        return _SlowDecoder().decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


View = Literal["picture", "bytes", "text", "table", "tree", "diff", "arguments"]
MAX_TREE = 8_000_000
"""Characters of JSON text that are still made into a tree."""
MAX_TABLE = 1_000_000
"""Characters of JSON text that are still made into a table."""
AT_ONCE = 20_000
"""Characters of a result that are read in the window's thread; longer ones are read beside it."""
NO_TREE: Final = object()
"""In place of a value where a result is no JSON."""
_TREE_FIRST_LINES = 60


@frozen
class ResultViews:
    """`text` as it can be read, JSON indented; `table` None where no objects are listed, `diff` where no text changes.

    `first`: what to begin with.
    """

    text: str | None
    is_json: bool
    has_tree: bool
    table: ListedRows | None
    diff: str | None
    first: View
    picture: Picture | None = None


def views_of(record: CallRecord) -> ResultViews:
    """The ways to look at the result of a record."""
    text, is_json = (None, False) if record.output is None else _readable(record.output)
    has_tree = record.output is not None and not record.is_binary and _may_be_tree(record, is_json=is_json)
    table = rows_of_list(tree_value(record, MAX_TABLE)) if has_tree and not record.is_error else None
    diff = record.change
    picture = picture_of(record.blob) if record.blob is not None else None
    first: View = "text"
    if diff is not None and not record.is_error:
        first = "diff"
    elif table is not None:
        first = "table"
    elif has_tree and not record.is_error and (not is_json or (text or "").count("\n") > _TREE_FIRST_LINES):
        first = "tree"
    if record.blob is not None and not record.is_error:
        first = "picture" if picture is not None and picture.image is not None else "bytes"
    return ResultViews(text, is_json, has_tree, table, diff, first, picture)


def tree_value(record: CallRecord, longest: int = MAX_TREE) -> Any:
    """The whole result as a JSON value, `NO_TREE` when it is none or too long; takes time when it is long."""
    text = record.whole or record.output or ""
    if not _looks_like_json(text) or len(text) > longest:
        return NO_TREE
    try:
        return slow_value(text)
    except ValueError:
        return NO_TREE


def is_long(record: CallRecord) -> bool:
    """Tell whether reading the result takes long enough to be done beside the window."""
    return record.blob is not None or max(map(len, (record.output or "", record.whole or ""))) > AT_ONCE


def change_note(record: CallRecord) -> str:
    """Words for whether the change was made: `changed`, `would change`; a file that goes is deleted."""
    deletes = "delete" in (record.operation or record.request.tool) and takes_away(record.change or "")
    if record.kind == "decide":
        return tr("would delete") if deletes else tr("would change")
    if record.status == "allowed":
        return tr("deleted") if deletes else tr("changed")
    return tr("would have deleted") if deletes else tr("would have changed")


def _readable(output: str) -> tuple[str, bool]:
    if len(output) <= MAX_SHOWN and _looks_like_json(output):
        try:
            return cut(json.dumps(slow_value(output), ensure_ascii=False, indent=2)), True
        except (ValueError, RecursionError):
            return cut(output), False
    return cut(output), False


def _may_be_tree(record: CallRecord, *, is_json: bool) -> bool:
    if is_json:
        return True
    text = record.whole or (record.output or "" if len(record.output or "") > MAX_SHOWN else "")
    return _looks_like_json(text) and len(text) <= MAX_TREE and text.rstrip()[-1:] in {"}", "]"}


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in {"{", "["}


_TIPS = {
    "picture": mark("The picture that the result is"),
    "bytes": mark("The bytes of the result in hexadecimal, with their offsets"),
    "text": mark("What the model gets, as text"),
    "table": mark("The objects that the result lists, a row for each"),
    "tree": mark("The result as a tree of keys and values, whole"),
    "diff": mark("What the call changes in a text"),
    "arguments": mark("The arguments of the step, as they were made"),
}
TASK, TREE_TASK = "console.result", "console.resulttree"
_NOT = {
    "picture": mark("The result is no picture that can be shown"),
    "bytes": mark("The result is text"),
    "text": mark("The call was not run"),
    "table": mark("The result lists no objects of equal keys"),
    "tree": mark("The result is no JSON"),
    "diff": mark("The call changes no text"),
    "arguments": "",
}


def _reading() -> tuple[str, str, str]:
    return "scroll-text", tr("Reading the result"), tr("Large result, loading ...")


class ResultPanel(QWidget):
    """Begins with the view that tells most; the one that was chosen by hand stays chosen for results of that kind."""

    save_requested = Signal(object)
    """CallRecord: its result is to be written to a file."""

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._record: CallRecord | None = None
        self._views: ResultViews | None = None
        self._wished: dict[bool, str] = {}
        self._is_setting = False
        self._has_tree = False
        self.text = named(CodeView(tr("Result")), "console.result")
        self.text.set_wrapping(True)  # the end of a message is often what one looks for
        self.table = ResultTableView()
        self.tree = JsonTreeView(tasks)
        self.arguments = named(CodeView(tr("Arguments of the step")), "console.steparguments")
        self._is_step = False
        self.diff = named(CodeView(tr("Diff")), "console.diff")
        self.none = EmptyState("scroll-text", "", "")
        self.head = SectionHeader(tr("Result"))
        self.mark = named(Chip("", role="ask"), "console.resultmark")
        self.parts = named(Segmented(tr("The result as")), "console.resultas")
        self.picture = PictureView()
        self.bytes_model = BytesModel(self)
        self.bytes = bytes_view(self.bytes_model)
        self.save_button = icon_button("save", tr("Save the result as..."), "console.saveresult", self._save)
        for key, words in (("picture", tr("Image")), ("bytes", tr("Bytes"))):
            self.parts.add_segment(key, words)
        for key, words in (("text", tr("Text")), ("table", tr("Table")), ("tree", tr("Tree")), ("diff", tr("Diff"))):
            self.parts.add_segment(key, words)
        self.parts.add_segment("arguments", tr("Arguments"))
        self.parts.current_changed.connect(self._wish)
        self._about = named(ElidedLabel(path=True, mono=True, role="muted"), "console.changeabout")
        self._stack = stack_of(self.none, self.text, self.table, self.tree, self.diff, self.arguments)
        for part in (self.picture, self.bytes):
            self._stack.addWidget(part)
        self._lay_out()

    @property
    def record(self) -> CallRecord | None:
        """The call whose result is shown."""
        return self._record

    def show_nothing(self, icon: str, title: str, words: str) -> None:
        """There is no result, and why."""
        self._forget_reading()
        self._record = self._views = None
        self.none.set_state(icon, title, words)
        self.head.set_note("")
        self.head.setToolTip("")
        for part in (self.mark, self.parts, self._about, self.save_button):
            part.hide()
        self.bytes_model.set_data(b"")
        self.tree.clear()
        self._stack.setCurrentWidget(self.none)

    def show_stream(self, text: str) -> None:
        """The end of a result that is still coming."""
        self.text.set_plain(text)
        bar = self.text.editor.verticalScrollBar()
        bar.setValue(bar.maximum())
        self.head.set_note(tr("still coming: its end so far"))
        self._stack.setCurrentWidget(self.text)

    def show_arguments(self, record: CallRecord) -> None:
        """The arguments of a step that has no result yet; none where they are not known."""
        if not record.request.arguments:
            self.show_nothing("scroll-text", tr("No result"), tr("The step was not made"))
            return
        self.show_nothing("scroll-text", "", "")
        self.arguments.set_json(cut(record.request.text))
        self.head.set_note(tr("the arguments of the step"))
        self._stack.setCurrentWidget(self.arguments)

    def show_record(self, record: CallRecord, none: tuple[str, str, str], *, is_step: bool = False) -> None:
        """Show the result of a call; `none` is said where there is none. `is_step`: its arguments are shown too."""
        self._is_step = is_step
        if not is_long(record):
            self._forget_reading()
            self._take(record, views_of(record), none)
        else:
            self.show_nothing(*_reading())
            self._tasks.start(self._read(record, none), TASK)

    def _forget_reading(self) -> None:
        self._tasks.cancel(TASK)
        self._tasks.cancel(TREE_TASK)

    async def _read(self, record: CallRecord, none: tuple[str, str, str]) -> None:
        views = await asyncio.to_thread(views_of, record)
        if isValid(self):
            self._take(record, views, none)

    def _take(self, record: CallRecord, views: ResultViews, none: tuple[str, str, str]) -> None:
        if views.text is None and views.diff is None:
            if self._is_step:
                self.show_arguments(record)
            else:
                self.show_nothing(*none)
            return
        self._record, self._views, self._has_tree = record, views, False
        self._fill(record, views)
        self._offer()
        has_change = views.diff is not None
        wished = self._wished.get(has_change)
        self._is_setting = True
        self.parts.set_current(wished if wished is not None and self._has(wished) else views.first)
        self._is_setting = False
        self._show_part(self.parts.current)

    def _save(self) -> None:
        if self._record is not None:
            self.save_requested.emit(self._record)

    def open_find(self) -> None:
        """Search what is shown."""
        current = self._stack.currentWidget()
        if current is self.tree:
            self.tree.focus_search()
        elif isinstance(current, CodeView):
            current.open_find()

    def _fill(self, record: CallRecord, views: ResultViews) -> None:
        if views.text is None:
            self.text.set_plain("")
        elif views.is_json:
            self.text.set_json(views.text)
        else:
            self.text.set_plain(views.text)
        self.bytes_model.set_data(record.blob or b"")
        if views.picture is not None:
            self.picture.set_picture(views.picture)
        if views.table is not None:
            self.table.set_listed(views.table)
        self.diff.set_diff(cut(change_words(views.diff, record.operation)[1]) if views.diff is not None else "")
        note = tr("not run: the change that it would make") if record.output is None else _note_of(record)
        if views.picture is not None and views.picture.fault:
            note = f"{note}, {views.picture.fault}"
        self.head.set_note(note)
        self.head.setToolTip(f"SHA-256 {record.output_hash}" if record.output_hash else "")
        self.save_button.setVisible(record.output is not None and not record.is_error)
        self._mark(record)

    def _mark(self, record: CallRecord) -> None:
        """Mark what must not be overlooked: an error in place of a result, a result that was cut."""
        parts: list[str] = []
        if record.is_error:
            self.mark.set_chip(tr("error"), "circle-x", "deny")
            parts.append(tr("The model gets an error in place of a result"))
        elif record.truncated:
            self.mark.set_chip(tr("cut for the model"), "triangle-alert", "ask")
            parts.append(tr("Cut for the model from {size}", size=counted(record.output_bytes, "byte", "bytes")))
            if record.output_hash:
                parts.append(tr("SHA-256 of the whole {hash}", hash=record.output_hash))
            if record.whole is not None:
                parts.append(tr("the tree shows all of it"))
        words = "; ".join(parts)
        self.mark.setToolTip(words)
        self.mark.setAccessibleName(words)
        self.mark.setVisible(record.is_error or record.truncated)

    def _offer(self) -> None:
        self.parts.show()
        for key in self.parts.keys:
            has = self._has(key)
            self.parts.set_segment_enabled(key, has)
            self.parts.button(key).setToolTip(tr(_TIPS[key] if has else _NOT[key]))
        self.parts.button("arguments").setVisible(self._is_step)
        record = self._record
        for key in ("picture", "bytes"):
            self.parts.button(key).setVisible(record is not None and record.blob is not None)

    def _has(self, key: str) -> bool:
        views = self._views
        if views is None:
            return False
        record, picture = self._record, views.picture
        parts: dict[str, bool] = {
            "picture": picture is not None and picture.image is not None,
            "bytes": record is not None and record.blob is not None,
            "text": views.text is not None,
            "table": views.table is not None,
            "tree": views.has_tree,
            "diff": views.diff is not None,
            "arguments": self._is_step,
        }
        return parts.get(key, False)

    def _wish(self, key: object) -> None:
        if self._is_setting or self._views is None:
            return
        self._wished[self._views.diff is not None] = str(key)
        self._show_part(key)

    def _show_part(self, key: object) -> None:
        record, views = self._record, self._views
        if record is None or views is None:
            return
        self._about.setVisible(key == "diff")
        if key == "arguments":
            self.arguments.set_json(cut(record.request.text))
            self._stack.setCurrentWidget(self.arguments)
        elif key in {"picture", "bytes"}:
            self._stack.setCurrentWidget(self.picture if key == "picture" else self.bytes)
        elif key == "diff":
            said = change_words(views.diff or "", record.operation)[0]
            self._about.set_text(f"{change_note(record)} {said}".rstrip())
            self._stack.setCurrentWidget(self.diff)
        elif key == "tree" and self._has_tree:
            self._stack.setCurrentWidget(self.tree)
        elif key == "tree" and is_long(record):
            self.none.set_state(*_reading())
            self._stack.setCurrentWidget(self.none)
            self._tasks.start(self._read_tree(record), TREE_TASK, replace=True)
        elif key == "tree":
            self._take_tree(tree_value(record))
        elif key == "table":
            self._stack.setCurrentWidget(self.table)
        else:
            self._stack.setCurrentWidget(self.text)

    async def _read_tree(self, record: CallRecord) -> None:
        value = await asyncio.to_thread(tree_value, record)
        if isValid(self) and record is self._record and self.parts.current == "tree":
            self._take_tree(value)

    def _take_tree(self, value: object) -> None:
        if value is NO_TREE:
            self.parts.set_segment_enabled("tree", False)
            self.parts.set_current("text")
            return
        self._has_tree = True
        self.tree.set_value(value)
        self._stack.setCurrentWidget(self.tree)

    def _lay_out(self) -> None:
        for part in (self.mark, self.parts, self.save_button):
            self.head.add_control(part)
        column_of(self.head, row_of(self._about, margins=(2, 0)), stretch(self._stack), into=self)


def _note_of(record: CallRecord) -> str:
    """The words on a result beside its text: how it ended, how large it is, what was done to it, its hash."""
    parts = [tr("LIVE")] if record.is_live else []
    parts.append(tr((record.status or "").replace("_", " ")))
    whole = counted(record.output_bytes, "byte", "bytes")
    if record.is_binary:
        parts += [tr("binary") if record.blob is None else media_type(record.blob), whole]
        parts += [tr("too large to be kept here")] * (record.blob is None)
    else:
        parts.append(counted(len((record.output or "").encode("utf-8", "replace")), "byte", "bytes"))
    if record.truncated:
        parts.append(tr("truncated from {size}", size=whole))
    if record.secrets:
        parts.append(counted(record.secrets, "secret removed", "secrets removed"))
    if record.reused:
        parts.append(tr("reused: the tool was not run again"))
    parts.append(duration(record.elapsed_ms * 1000))
    if record.output_hash:
        parts.append(f"SHA-256 {record.output_hash[:12]}")
    return ", ".join(parts)
